"""Two pictures: prediction quality against the share of words, and agreement with the human by round."""

from __future__ import annotations

import io
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from infocal.comparison.colours import Look, look
from infocal.comparison.results import Cell, Results, at
from infocal.files import write_bytes

__all__ = ["carried", "precision_recall", "quality_by_share", "write_figures"]

KINDS = ("png", "svg")
STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.hashsalt": "infocal",
}
GREY = "#555555"
FEW = 3
"""Contenders up to which bars of deviation can be told apart round by round."""
FULL_TEXT = "full text\n(mean and range)"

Point = tuple[float, Cell]
"""A place on the x axis and what was found there over the seeds."""


def write_figures(folder: Path, results: Results) -> list[str]:
    """Write each figure that the data allow as PNG and SVG, remove others; their names."""
    import matplotlib

    written = []
    with matplotlib.rc_context(STYLE):
        for name, draw in (
            ("quality-by-share", quality_by_share),
            ("precision-recall-by-round", precision_recall),
        ):
            figure = draw(results)
            for kind in KINDS:
                path = folder / f"{name}.{kind}"
                if figure is None:
                    path.unlink(missing_ok=True)
                else:
                    write_bytes(path, _bytes(figure, kind))
            written += [name] if figure is not None else []
    return written


def quality_by_share(results: Results) -> Any:
    """Accuracy or squared error of the trained models at other shares; None if no run has finished."""
    if not results.finished:
        return None
    figure, axes = _figure(1)
    (axis,) = axes
    for name, style in _looks(results):
        _line(axis, _sweep(results, name), style, name)
    lowest, mean, highest = _full_text(results)
    axis.axhspan(lowest, highest, color=GREY, alpha=0.12, linewidth=0)
    axis.axhline(mean, color=GREY, linewidth=1.2, linestyle=(0, (6, 3)), label=FULL_TEXT)
    axis.set_xlabel("words selected, % of all")
    axis.set_ylabel(_quality_title(results))
    axis.set_xlim(left=0)
    _legend(figure, axis)
    return figure


def precision_recall(results: Results) -> Any:
    """Precision and recall on the held-out rows by round of joint training; None without a human's words.

    Each point is a mean over all runs of a contender: one that ended sooner counts with its last round.
    """
    curves = {
        name: {key: _by_round(results, name, key) for key in ("precision", "recall")} for name in results.finished
    }
    if not any(points for curve in curves.values() for points in curve.values()):
        return None
    from matplotlib.ticker import MaxNLocator

    figure, axes = _figure(2)
    for axis, key in zip(axes, ("precision", "recall"), strict=True):
        for name, style in _looks(results):
            _line(axis, curves[name][key], style, name, bars=len(curves) <= FEW)
        axis.set_title(key, loc="left")
        axis.set_xlabel("round of joint training")
        axis.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes[0].set_ylabel("agreement with the human, held-out rows, %")
    _legend(figure, axes[0])
    return figure


def _figure(columns: int) -> tuple[Any, Sequence[Any]]:
    from matplotlib.figure import Figure  # without pyplot, which keeps state of its own

    figure = Figure(figsize=(2.2 + 4.4 * columns, 4.0), layout="constrained")
    axes = figure.subplots(1, columns, sharey=True, squeeze=False)[0]
    return figure, axes


def _line(axis: Any, points: Sequence[Point], style: Look, name: str, *, bars: bool = True) -> None:
    known = [(place, cell.mean, cell.deviation or 0.0) for place, cell in points if cell.mean is not None]
    if not known:
        return
    places, means, deviations = zip(*known, strict=True)
    axis.errorbar(
        places,
        means,
        yerr=deviations if bars and any(deviations) else None,
        label=_label(name),
        color=style.colour,
        ecolor=(style.colour, 0.55),
        marker=style.marker,
        linestyle=style.dash,
        markersize=5.5,
        markeredgecolor="white",
        markeredgewidth=0.6,
        linewidth=1.7,
        elinewidth=0.9,
        capsize=2.5,
    )


def _legend(figure: Any, axis: Any) -> None:
    handles, labels = axis.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda place: labels[place] == FULL_TEXT)  # after the contenders
    figure.legend(
        [handles[place] for place in order],
        [labels[place] for place in order],
        loc="outside right upper",
        handlelength=2.6,
    )


def _label(name: str) -> str:
    """A name as it is: matplotlib reads a formula between dollars and hides what begins with an underscore."""
    shown = name.replace("\\", "\\\\").replace("$", "\\$") if "$" in name else name
    return f" {shown}" if shown.startswith("_") else shown


def _looks(results: Results) -> list[tuple[str, Look]]:
    """The finished contenders; each keeps its look whoever else has failed."""
    return [(name, look(n)) for n, name in enumerate(results.contenders) if name in results.finished]


def _quality_title(results: Results) -> str:
    if results.quality.key == "mse":
        return "mean squared error (less is better)"
    return "accuracy from the selected words, %"


def _sweep(results: Results, name: str) -> list[Point]:
    """The share that was measured and the quality there, at the shares of the sweep and the one trained for."""
    quality, groups = results.quality, defaultdict[float, list[tuple[float, float]]](list)
    for run in results.runs[name].values():
        own = {"share": run["settings"]["select"], **run["scores"][results.decoder]}
        entries = {entry["share"]: entry for entry in [*run["sweep"][results.decoder], own]}
        for share, entry in entries.items():
            groups[share].append((100 * entry["selected"], quality.scale * entry[quality.key]))
    points = []
    for _, pairs in sorted(groups.items()):
        places, values = zip(*pairs, strict=True)
        points.append((statistics.fmean(places), Cell.of(values)))
    return points


def _full_text(results: Results) -> tuple[float, float, float]:
    """The lowest, the mean and the highest quality on the full text, of the contenders that learn to read it."""
    quality = results.quality
    readers = [name for name in results.finished if results.reads_full_text(name)] or results.finished
    means = [
        statistics.fmean(
            quality.scale * run["scores"][results.decoder]["full_text"][quality.key]
            for run in results.runs[name].values()
        )
        for name in readers
    ]
    return min(means), statistics.fmean(means), max(means)


def carried(runs: Iterable[Mapping[int, float]]) -> dict[int, list[float]]:
    """By round the values of all runs; one that ended sooner counts with its last from there on.

    Args:
        runs: round -> value, of each run; those without any do not count.
    """
    known = [run for run in runs if run]
    if not known:
        return {}
    numbers = range(max(map(min, known)), max(map(max, known)) + 1)
    return {n: [run[max(own for own in run if own <= n)] for run in known] for n in numbers}


def _by_round(results: Results, name: str, key: str) -> list[Point]:
    runs = []
    for run in results.runs[name].values():
        found = ((record["round"], at(record, ("dev", "rationale", key))) for record in run["rounds"])
        runs.append({number: 100 * value for number, value in found if value is not None})
    return [(float(number), Cell.of(values)) for number, values in carried(runs).items()]


def _bytes(figure: Any, kind: str) -> bytes:
    stream = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else None  # the same runs give the same file
    figure.savefig(stream, format=kind, dpi=160, metadata=metadata)
    return stream.getvalue()
