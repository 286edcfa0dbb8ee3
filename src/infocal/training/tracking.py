"""Who is told how a run goes: a progress bar, a metrics file, TensorBoard."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infocal.errors import MissingExtraError
from infocal.files import write_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from infocal.methods.base import Method

__all__ = ["MetricsFile", "ProgressBar", "TensorBoard", "Tracker"]


class Tracker:
    """Does nothing; override what you want to hear of."""

    def start(self, *, total_steps: int, step: int, history: Sequence[Mapping[str, Any]]) -> None:
        """The run begins, or goes on at ``step`` with the rounds of ``history`` behind it."""

    def advance(self, *, step: int, phase: str, tokens: int) -> None:
        """A training step is done."""

    def measure(self, method: Method, phase: str) -> Mapping[str, Any]:
        """A round's weights are being judged; figures given here join the held-out ones of its record."""
        return {}

    def round(self, record: Mapping[str, Any]) -> None:
        """A round is done; ``record`` is what the metrics file gets."""

    def finish(self) -> None:
        """The run is over, also after an interrupt."""


class MetricsFile(Tracker):
    """One JSON object per round, appended; on resume the file is cut back to the checkpoint."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def start(self, *, total_steps: int, step: int, history: Sequence[Mapping[str, Any]]) -> None:
        """Write the rounds that are behind the run, and nothing else."""
        write_text(self.path, "".join(json.dumps(record) + "\n" for record in history))

    def round(self, record: Mapping[str, Any]) -> None:
        """Append one line."""
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record) + "\n")


class ProgressBar(Tracker):
    """A bar with rate and time left on a terminal; one line per round, if asked, elsewhere.

    Args:
        console: where to draw; a console that is no terminal gets no bar.
        lines: whether to print a line per round.
    """

    def __init__(self, console: Console, *, lines: bool = True) -> None:
        self.console, self.lines = console, lines
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._began, self._tokens = time.monotonic(), 0

    def start(self, *, total_steps: int, step: int, history: Sequence[Mapping[str, Any]]) -> None:
        """Draw the bar."""
        self._began, self._tokens = time.monotonic(), 0
        if not self.console.is_terminal:
            return
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        self._progress = Progress(
            TextColumn("{task.description:<8}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TextColumn("at most"),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=self.console,
            transient=True,
        )
        self._progress.start()
        self._task = self._progress.add_task("start", total=total_steps, completed=step, rate="")

    def advance(self, *, step: int, phase: str, tokens: int) -> None:
        """Move the bar."""
        self._tokens += tokens
        if self._progress is not None and self._task is not None:
            rate = self._tokens / max(time.monotonic() - self._began, 1e-9)
            name = phase.replace("_", "-")
            self._progress.update(self._task, completed=step, description=name, rate=f"{rate / 1000:.1f}k words/s")

    def round(self, record: Mapping[str, Any]) -> None:
        """Print one line of what the round reached on the held-out part."""
        if self.lines:
            self.console.print(_line(record), highlight=False)

    def finish(self) -> None:
        """Remove the bar."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


def _line(record: Mapping[str, Any]) -> str:
    dev = record["dev"]
    parts = [f"{record['phase'].replace('_', '-'):<8} round {record['round']}:"]
    for name, title in (("guide", "full text"), ("selection", "selected words")):
        if name in dev:
            parts.append(f"{title} {_told(dev[name])}")
    if "selected" in dev:
        parts.append(f"sampled share {record['rate']:.2f}")
    return "  ".join([*parts, f"({record['seconds']:.0f} s)"])


def _told(figures: Mapping[str, Any]) -> str:
    """The figure that says most; of several tasks that of each."""
    for metric in ("accuracy", "mse"):
        if metric in figures:
            return f"{metric} {figures[metric]:.3f}"
    return ", ".join(f"{name} {_told(part)}" for name, part in figures.items())


class TensorBoard(Tracker):
    """Losses and held-out figures for TensorBoard (extra ``tensorboard``)."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise MissingExtraError("tensorboard", "tensorboard", "--tensorboard") from None
        self._writer = SummaryWriter(str(folder))

    def round(self, record: Mapping[str, Any]) -> None:
        """Write every number of the record under its dotted name."""
        for name, value in _numbers(record):
            self._writer.add_scalar(name, value, record["step"])

    def finish(self) -> None:
        """Flush."""
        self._writer.close()


def _numbers(record: Mapping[str, Any], prefix: str = "") -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    for name, value in record.items():
        if isinstance(value, Mapping):
            found += _numbers(value, f"{prefix}{name}/")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found.append((prefix + name, float(value)))
    return found
