"""The paper's two figures of beer reviews: squared error by share, and agreement by round (extra ``compare``)."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infocal.comparison.colours import look
from infocal.comparison.figures import carried
from infocal.errors import MissingExtraError
from infocal.files import write_bytes
from infocal.reproduce.beer import ROWS, SELECT
from infocal.reproduce.scoring import RunResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_agreement_by_round", "draw_error_by_share"]

FULL_TEXT_ROWS = (
    "attention",
    "infocal",
    "infocal-search",
    "infocal-paper",
    "infocal-paper-hk",
    "infocal-paper-no-lm",
    "l2x",
    "invase",
)
"""Those with a part that learns to read full texts; the error of the first that was trained is the baseline."""


def draw_error_by_share(results: Sequence[RunResult], aspects: Sequence[str], folder: Path) -> list[Path]:
    """Squared error on the test reviews against the share of words selected, a panel per aspect.

    Each model is read at several shares. The dashed line is the error of a reader of the full text; there is none
    where no row has learned to read it.

    Returns:
        the files written, a PNG and a PDF.
    """
    figure = _figure(max(5.0, 3.6 * len(aspects)), 3.4)
    panels = figure.subplots(1, len(aspects), squeeze=False)[0]
    for axes, aspect in zip(panels, aspects, strict=True):
        for place, (row, runs) in enumerate(_by_row(results, aspect)):
            points = defaultdict(list)
            for run in runs:
                for point in run.by_share:
                    points[point["share"]].append((100 * point["selected"], point["mse"]))
            _curve(axes, place, row, [_middle(found) for _, found in sorted(points.items())])
        reader = next((row for row in FULL_TEXT_ROWS if row in dict(_by_row(results, aspect))), None)
        if reader is not None:
            error = statistics.fmean(r.full_text_mse for r in results if (r.row, r.aspect) == (reader, aspect))
            title = f"full text ({ROWS[reader].title})"
            axes.axhline(error, color="#0000c0", linestyle="--", linewidth=1.2, label=title)
        axes.axvline(
            100 * SELECT[aspect], color="#777777", linestyle=":", linewidth=1.2, label="share trained for"
        )
        axes.set(title=aspect, xlabel="words selected, %", xlim=(0, None))
    panels[0].set_ylabel("mean squared error")
    return _save(figure, panels, folder / "error-by-share")


def draw_agreement_by_round(
    results: Sequence[RunResult], aspects: Sequence[str], scoring: str, folder: Path, *, rounds_are: str = "round"
) -> list[Path]:
    """Precision (left) and recall (right) on the annotated reviews after each round, a line of panels per aspect.

    A run that ended sooner than others of its row counts with its last round from there on.

    Args:
        results: of all runs.
        aspects: the aspects; the paper shows smell.
        scoring: how the reviews are cut.
        folder: where to write.
        rounds_are: what a round is called on the axis.

    Returns:
        the files written, a PNG and a PDF.
    """
    figure = _figure(7.6, 2.7 * len(aspects) + 0.5)
    panels = figure.subplots(len(aspects), 2, squeeze=False)
    for (left, right), aspect in zip(panels, aspects, strict=True):
        for axes, name in ((left, "precision"), (right, "recall")):
            for place, (row, runs) in enumerate(_by_row(results, aspect)):
                values = carried(
                    {record["round"]: 100 * record[scoring][name] for record in run.rounds if record.get(scoring)}
                    for run in runs
                )
                _curve(
                    axes,
                    place,
                    row,
                    [_middle([(float(number), value) for value in found]) for number, found in values.items()],
                )
            axes.set(title=f"{aspect}: {name}, %", xlabel=rounds_are, ylim=(0, 100))
            axes.xaxis.get_major_locator().set_params(integer=True)
    return _save(figure, panels.flat, folder / "agreement-by-round")


def _figure(width: float, height: float) -> Figure:
    try:
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError:
        raise MissingExtraError("matplotlib", "compare", "drawing the figures") from None
    return Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08))


def _by_row(results: Sequence[RunResult], aspect: str) -> list[tuple[str, list[RunResult]]]:
    rows = dict.fromkeys(result.row for result in results)
    return [(row, [r for r in results if (r.row, r.aspect) == (row, aspect)]) for row in rows]


def _middle(points: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """The means of both numbers over the seeds, and the spread of the second."""
    first, second = zip(*points, strict=True)
    spread = statistics.stdev(second) if len(second) > 1 else 0.0
    return statistics.fmean(first), statistics.fmean(second), spread


def _curve(axes: Axes, place: int, row: str, points: Sequence[tuple[float, float, float]]) -> None:
    if not points:
        return
    across, up, spread = zip(*points, strict=True)
    style = look(place)
    axes.plot(
        across,
        up,
        color=style.colour,
        marker=style.marker,
        linestyle=style.dash,
        markersize=4.5,
        linewidth=1.5,
        label=ROWS[row].title,
    )
    if any(spread):
        low, high = ([u + sign * s for u, s in zip(up, spread, strict=True)] for sign in (-1, 1))
        axes.fill_between(across, low, high, color=style.colour, alpha=0.15, linewidth=0)


def _save(figure: Figure, panels: Iterable[Any], stem: Path) -> list[Path]:
    import io

    entries: dict[str, Any] = {}
    for axes in panels:
        axes.grid(alpha=0.3, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    figure.legend(
        entries.values(),
        entries.keys(),
        loc="outside lower center",
        ncols=max(1, int(figure.get_figwidth() / 2.4)),
        frameon=False,
    )
    written = []
    for suffix, options in ((".png", {"dpi": 160}), (".pdf", {"metadata": {"CreationDate": None}})):
        stream = io.BytesIO()
        figure.savefig(stream, format=suffix[1:], **options)
        write_bytes(stem.with_suffix(suffix), stream.getvalue())
        written.append(stem.with_suffix(suffix))
    return written
