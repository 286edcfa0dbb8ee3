"""From token scores to selected tokens.

All functions take flat scores (total,) with offsets (n + 1,) and give a flat mask (total,) of bool. A
document that has tokens always keeps at least one: a prediction made from nothing explains nothing. With
``least`` it keeps at least that share of its tokens, so that a text in which nothing stands out still shows a
phrase.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from infocal.errors import DataError, SettingsError
from infocal.evaluation.ragged import (
    Flags,
    Floats,
    Integers,
    as_flags,
    as_offsets,
    as_scores,
    owners,
    runs,
    sums,
)
from infocal.evaluation.span_search import Columns, SpanCosts, best_spans, fill_budgets

__all__ = [
    "RunStatistics",
    "fit_span_threshold",
    "fit_threshold",
    "least_share",
    "run_statistics",
    "select_above",
    "select_average",
    "select_share",
    "select_spans",
    "select_spans_exact",
]

CHUNK_BYTES = 32_000_000
BISECTIONS = 30
LEAST = 0.5
ROOM = 1e-4


def least_share(share: float) -> float:
    """What a document keeps in any case when ``share`` is asked for on average: half of it."""
    return LEAST * share


def select_above(scores: ArrayLike, offsets: ArrayLike, *, threshold: float, least: float = 0.0) -> Flags:
    """Select the tokens with a score above ``threshold``; a document with fewer than ``least`` keeps its best.

    Returns:
        (total,) bool.
    """
    places = as_offsets(offsets)
    values = as_scores(scores, places)
    return (values > threshold) | _best_of_each(values, places, _budgets(places, least, floor=True))


def fit_threshold(scores: ArrayLike, offsets: ArrayLike, *, share: float, least: float = 0.0) -> float:
    """The threshold with which `select_above` selects ``share`` of all tokens as nearly as possible.

    The best tokens of a document are selected whatever the threshold, so only the others are counted out.
    """
    _check_share(share)
    places = as_offsets(offsets)
    values = _some(as_scores(scores, places))
    others = ~_best_of_each(values, places, _budgets(places, least, floor=True))
    if not others.any():
        return float(values.min())
    levels, counts = np.unique(values[others], return_counts=True)
    levels, reached = levels[::-1], np.concatenate(([0], np.cumsum(counts[::-1])))
    wanted = share * values.size - (values.size - others.sum())
    return _between(levels, int(np.argmin(np.abs(reached - wanted))))


def select_average(scores: ArrayLike, offsets: ArrayLike, *, share: float) -> Flags:
    """Select ``share`` of all tokens by one threshold that is fitted on these very documents.

    Returns:
        (total,) bool.
    """
    least = least_share(share)
    threshold = fit_threshold(scores, offsets, share=share, least=least)
    return select_above(scores, offsets, threshold=threshold, least=least)


def _between(levels: Floats, position: int) -> float:
    """A number below the first ``position`` of the falling levels and not below the others.

    Beyond either end it keeps clear of the level: the same text, read among others, may have a score that
    differs in its last digit.
    """
    if position == 0:
        return float(levels[0]) + ROOM * (1 + abs(float(levels[0])))
    if position == levels.size:
        return float(levels[-1]) - ROOM * (1 + abs(float(levels[-1])))
    upper, lower = float(levels[position - 1]), float(levels[position])
    middle = lower + (upper - lower) / 2
    return middle if middle < upper else lower


def select_share(scores: ArrayLike, offsets: ArrayLike, *, share: float) -> Flags:
    """Select the best max(1, round(share * n)) of the n tokens of every document; of equals, the earlier.

    Returns:
        (total,) bool.
    """
    places = as_offsets(offsets)
    return _best_of_each(as_scores(scores, places), places, _budgets(places, share))


def select_spans(
    scores: ArrayLike,
    offsets: ArrayLike,
    *,
    threshold: float,
    span_cost: float,
    breaks: ArrayLike | None = None,
    least: float = 0.0,
) -> Flags:
    """Select the tokens that maximise sum(score - threshold) - span_cost * spans, exactly.

    Where that is fewer than ``least`` of a document, it keeps its best spans of that many tokens instead.

    Args:
        scores: (total,).
        offsets: (n + 1,).
        threshold: what a token must bring.
        span_cost: what a span costs.
        breaks: (total,) bool, tokens that begin a sentence: a span that begins or ends inside a sentence costs
            ``span_cost`` more at that end, and one that goes on into the next sentence counts as two.
        least: share of a document that is selected in any case.

    Returns:
        (total,) bool.
    """
    _check_cost(span_cost)
    places = as_offsets(offsets)
    values = as_scores(scores, places)
    costs = SpanCosts.of(span_cost, values.size, _as_breaks(breaks, places))
    found = best_spans(values, Columns.of(places), threshold=threshold, costs=costs)
    budgets = _budgets(places, least, floor=True)
    short = sums(found, places) < budgets
    if short.any():
        instead = _exact_spans(values, places, np.where(short, budgets, 0), costs)
        found = np.where(short[owners(places)], instead, found)
    return found


def fit_span_threshold(
    scores: ArrayLike,
    offsets: ArrayLike,
    *,
    share: float,
    span_cost: float,
    breaks: ArrayLike | None = None,
    least: float = 0.0,
) -> float:
    """The threshold with which `select_spans` selects ``share`` of all tokens, as nearly as it can.

    How many are selected never grows with the threshold, so that two thresholds, one with too many and one with
    too few, close in on the right one.
    """
    _check_share(share)
    _check_cost(span_cost)
    places = as_offsets(offsets)
    values = _some(as_scores(scores, places))
    columns, floors = Columns.of(places), _budgets(places, least, floor=True)
    costs = SpanCosts.of(span_cost, values.size, _as_breaks(breaks, places))

    def counted(threshold: float) -> int:
        found = best_spans(values, columns, threshold=threshold, costs=costs)
        return int(np.maximum(sums(found, places), floors).sum())

    low, high = float(values.min()) - 3 * span_cost - 1.0, float(values.max())
    return _close_in(counted, share * values.size, low, high)


def _close_in(counted: Callable[[float], int], wanted: float, low: float, high: float) -> float:
    """The threshold whose count, which never grows with it, is right to a thousandth, or as nearly as can be.

    Steps go by turns to where a straight line between the two ends has it and to their middle.
    """
    counts = {threshold: counted(threshold) for threshold in (low, high)}
    for step in range(BISECTIONS):
        above, below = counts[low] - wanted, wanted - counts[high]
        if min(abs(above), abs(below)) < max(0.5, wanted / 1000):
            break
        part = 0.5 if step % 2 or above + below <= 0 else min(0.95, max(0.05, above / (above + below)))
        middle = low + part * (high - low)
        if not low < middle < high:
            break
        counts[middle] = counted(middle)
        low, high = (middle, high) if counts[middle] >= wanted else (low, middle)
    return min(counts, key=lambda threshold: abs(counts[threshold] - wanted))


def select_spans_exact(
    scores: ArrayLike,
    offsets: ArrayLike,
    *,
    share: float,
    span_cost: float,
    breaks: ArrayLike | None = None,
) -> Flags:
    """Select exactly max(1, round(share * n)) tokens of every document, the best at a cost per span.

    Maximises sum(score) - span_cost * spans by dynamic programming over (tokens used, inside a span or
    not); documents are taken in chunks so that the tables stay small.

    Returns:
        (total,) bool.
    """
    _check_cost(span_cost)
    places = as_offsets(offsets)
    values = as_scores(scores, places)
    costs = SpanCosts.of(span_cost, values.size, _as_breaks(breaks, places))
    return _exact_spans(values, places, _budgets(places, share), costs)


def _exact_spans(values: Floats, offsets: Integers, budgets: Integers, costs: SpanCosts) -> Flags:
    """The best spans of exactly ``budgets`` (n,) tokens; documents without a budget are left out."""
    lengths = np.diff(offsets)
    order = np.argsort(-lengths, kind="stable")
    order = order[budgets[order] > 0]
    selected = np.zeros(values.size, dtype=np.bool_)
    while order.size:
        length, width = int(lengths[order[0]]), int(budgets[order[0]]) + 1
        size = max(1, CHUNK_BYTES // (length * 2 * -(-width // 8) + 64 * width))
        columns = Columns.of(offsets, order[:size])
        fill_budgets(selected, values, columns, budgets[order[:size]], costs=costs)
        order = order[size:]
    return selected


@dataclass(frozen=True, slots=True)
class RunStatistics:
    """How the selected tokens lie.

    Attributes:
        mean_run: tokens per run of selected tokens; 0 if nothing is selected.
        runs_per_document: runs per document.
        share: selected tokens / tokens.
    """

    mean_run: float
    runs_per_document: float
    share: float


def run_statistics(selected: ArrayLike, offsets: ArrayLike) -> RunStatistics:
    """Measure how long and how many the runs of selected tokens are."""
    places = as_offsets(offsets)
    flags = as_flags(selected, places)
    count, run_count = int(flags.sum()), runs(flags, places)[0].size
    return RunStatistics(
        mean_run=count / max(1, run_count),
        runs_per_document=run_count / max(1, places.size - 1),
        share=count / max(1, flags.size),
    )


def _check_share(share: float) -> None:
    if not 0.0 < share <= 1.0:
        raise SettingsError(f"share is {share}; allowed: a number above 0 and up to 1")


def _check_cost(span_cost: float) -> None:
    if not 0.0 <= span_cost < np.inf:
        raise SettingsError(f"span_cost is {span_cost}; allowed: a finite number from 0 upwards")


def _as_breaks(breaks: ArrayLike | None, offsets: Integers) -> Flags | None:
    return None if breaks is None else as_flags(breaks, offsets)


def _some(values: Floats) -> Floats:
    if values.size == 0:
        raise DataError("no tokens to fit a threshold on", allowed="at least one document with a token")
    return values


def _budgets(offsets: Integers, share: float, *, floor: bool = False) -> Integers:
    """How many tokens to select in every document, at least one where there are any: (n,) int64."""
    if not (floor and share == 0):
        _check_share(share)
    lengths = np.diff(offsets)
    return np.minimum(lengths, np.maximum(1, np.rint(share * lengths).astype(np.int64)))


def _best_of_each(values: Floats, offsets: Integers, budgets: Integers) -> Flags:
    """Mark the ``budgets`` (n,) best tokens of every document; of equals, the earlier."""
    owner = owners(offsets)
    order = np.lexsort((-values, owner))
    selected = np.empty(values.size, dtype=np.bool_)
    selected[order] = np.arange(values.size) - offsets[owner] < budgets[owner]
    return selected
