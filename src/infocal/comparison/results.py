"""The finished runs of a comparison, and the figures that tables and pictures are made of."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["HUMAN", "Cell", "Measure", "Results", "at"]

HUMAN = "human"
"""The row of the human's own words, where test documents have them."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A column.

    Attributes:
        key: its name in files.
        title: its name for readers.
        path: where a run's record has it; ``{decoder}`` stands for the decoder.
        better: 1 if more is better, -1 if less is, 0 if neither.
        scale: what values are multiplied by for readers.
        digits: after the point.
    """

    key: str
    title: str
    path: tuple[str, ...]
    better: int = 1
    scale: float = 100.0
    digits: int = 1

    def text(self, value: float | None) -> str:
        """A value for readers."""
        return "-" if value is None else f"{self.scale * value:.{self.digits}f}"


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure over the seeds.

    Attributes:
        mean: None if no run has it.
        deviation: the sample's standard deviation; None for fewer than two runs.
        count: runs that have it.
    """

    mean: float | None
    deviation: float | None
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Cell:
        """Sum up the values of some seeds."""
        mean = statistics.fmean(values) if values else None
        return cls(mean, statistics.stdev(values) if len(values) > 1 else None, len(values))


@dataclass(frozen=True)
class Results:
    """All that came out.

    Attributes:
        contenders: their names, in the order asked for.
        runs: the records of the finished runs, each contender's by seed.
        failures: (contender, seed, message) of the others.
        decoder: the one that is shown.
        asked: the share of words asked for, by contender.
    """

    contenders: tuple[str, ...]
    runs: Mapping[str, Mapping[int, Mapping[str, Any]]]
    failures: tuple[tuple[str, int, str], ...] = ()
    decoder: str = "average"
    asked: Mapping[str, float] = field(default_factory=dict)

    @property
    def finished(self) -> tuple[str, ...]:
        """The contenders with a run to show."""
        return tuple(name for name in self.contenders if self.runs.get(name))

    @property
    def any_run(self) -> Mapping[str, Any] | None:
        """Some finished run, for what all have in common."""
        return next((run for name in self.finished for run in self.runs[name].values()), None)

    @property
    def quality(self) -> Measure:
        """How good predictions from the selected words are: accuracy, or the squared error of scores."""
        run = self.any_run
        return MSE if run is not None and run["task"]["kind"] == "regress" else ACCURACY

    def measures(self) -> tuple[Measure, ...]:
        """The columns."""
        full = FULL_MSE if self.quality is MSE else FULL_ACCURACY
        return (*AGREEMENT, self.quality, full, *(CHANGES if self.quality is MSE else FAITHFULNESS), *THE_REST)

    def values(self, contender: str, measure: Measure) -> dict[int, float]:
        """Seed -> value, of the runs that have it."""
        path = [self.decoder if part == "{decoder}" else part for part in measure.path]
        found = {seed: at(run, path) for seed, run in self.runs.get(contender, {}).items()}
        return {seed: float(value) for seed, value in found.items() if value is not None and math.isfinite(value)}

    def cell(self, contender: str, measure: Measure) -> Cell:
        """Mean and deviation over the seeds."""
        return Cell.of(list(self.values(contender, measure).values()))

    def human(self, measure: Measure) -> float | None:
        """The same of the human's words, where it means something."""
        path = OF_HUMANS.get(measure.key)
        return None if path is None else at(self.any_run, ("human", *path))

    def reads_full_text(self, contender: str) -> bool:
        """Whether a part of the contender learned to read full texts to the end of its training."""
        return all(run.get("learns_full_text", True) for run in self.runs[contender].values())

    def best(self, measure: Measure) -> str | None:
        """The contender that is ahead; None if the measure has no better side or nobody has it."""
        means = {name: self.cell(name, measure).mean for name in self.finished}
        known = {name: mean for name, mean in means.items() if mean is not None}
        return max(known, key=lambda name: measure.better * known[name]) if known and measure.better else None


def at(record: Any, path: Sequence[str]) -> Any:
    """What nested mappings hold at a path; None where it ends early."""
    for part in path:
        if not isinstance(record, Mapping):
            return None
        record = record.get(part)
    return record


def _scored(*path: str) -> tuple[str, ...]:
    return ("scores", "{decoder}", *path)


F1 = Measure("f1", "F1", _scored("rationale", "f1"))
AGREEMENT = (
    Measure("precision", "P", _scored("rationale", "precision")),
    Measure("recall", "R", _scored("rationale", "recall")),
    F1,
    Measure("iou_f1", "IoU F1", _scored("rationale", "iou_f1")),
    Measure("share", "share", _scored("selected"), better=0),
    Measure("marked_share", "of marked", _scored("rationale", "selected_share"), better=0),
)
ACCURACY = Measure("accuracy", "accuracy", _scored("accuracy"))
MSE = Measure("mse", "MSE", _scored("mse"), better=-1, scale=1.0, digits=3)
FULL_ACCURACY = Measure("full_text_accuracy", "full text", _scored("full_text", "accuracy"))
FULL_MSE = Measure("full_text_mse", "full text", _scored("full_text", "mse"), better=-1, scale=1.0, digits=3)
FAITHFULNESS = (
    Measure("sufficiency", "suff.", _scored("faithfulness", "sufficiency"), better=-1),
    Measure("comprehensiveness", "compr.", _scored("faithfulness", "comprehensiveness")),
)
CHANGES = (
    Measure("sufficiency", "suff.", _scored("faithfulness", "sufficiency"), better=-1, scale=1.0, digits=3),
    Measure("comprehensiveness", "compr.", _scored("faithfulness", "comprehensiveness"), scale=1.0, digits=3),
)
THE_REST = (
    Measure("mean_run", "run", _scored("fluency", "mean_run"), scale=1.0, digits=2),
    Measure("language_model", "LM", _scored("fluency", "language_model"), scale=1.0, digits=2),
    Measure("training_seconds", "seconds", ("seconds", "training"), better=-1, scale=1.0, digits=0),
    Measure("processor_seconds", "CPU s", ("seconds", "processor"), better=-1, scale=1.0, digits=0),
)
OF_HUMANS = {
    "marked_share": ("selected",),
    "mean_run": ("fluency", "mean_run"),
    "language_model": ("fluency", "language_model"),
}
"""What the human's words have too, and where a run's record has it."""
