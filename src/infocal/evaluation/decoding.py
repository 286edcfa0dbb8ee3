"""From token scores to selected tokens.

All functions take flat scores (total,) with offsets (n + 1,) and give a flat mask (total,) of bool. A
document that has tokens always keeps at least one: a prediction made from nothing explains nothing.
"""

from __future__ import annotations

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
    "run_statistics",
    "select_above",
    "select_share",
    "select_spans",
    "select_spans_exact",
]

CHUNK_BYTES = 32_000_000
BISECTIONS = 30


def select_above(scores: ArrayLike, offsets: ArrayLike, *, threshold: float) -> Flags:
    """Select the tokens with a score above ``threshold``; a document with none keeps its (first) best.

    Returns:
        (total,) bool.
    """
    places = as_offsets(offsets)
    values = as_scores(scores, places)
    return _keep_one(values > threshold, values, places)


def fit_threshold(scores: ArrayLike, offsets: ArrayLike, *, share: float) -> float:
    """The threshold with which `select_above` selects ``share`` of all tokens as nearly as possible.

    The best token of a document is selected whatever the threshold, so only the others are counted out.
    """
    _check_share(share)
    places = as_offsets(offsets)
    values = _some(as_scores(scores, places))
    others = np.ones(values.size, dtype=np.bool_)
    others[_best(values, places)] = False
    if not others.any():
        return float(values.min())
    levels, counts = np.unique(values[others], return_counts=True)
    levels, reached = levels[::-1], np.concatenate(([0], np.cumsum(counts[::-1])))
    wanted = share * values.size - (values.size - others.sum())
    return _between(levels, int(np.argmin(np.abs(reached - wanted))))


def _between(levels: Floats, position: int) -> float:
    """A number below the first ``position`` of the falling levels and not below the others."""
    if position == 0:
        return float(levels[0])
    if position == levels.size:
        return float(np.nextafter(levels[-1], -np.inf))
    upper, lower = float(levels[position - 1]), float(levels[position])
    middle = lower + (upper - lower) / 2
    return middle if middle < upper else lower


def select_share(scores: ArrayLike, offsets: ArrayLike, *, share: float) -> Flags:
    """Select the best max(1, round(share * n)) of the n tokens of every document; of equals, the earlier.

    Returns:
        (total,) bool.
    """
    places = as_offsets(offsets)
    values = as_scores(scores, places)
    owner = owners(places)
    order = np.lexsort((-values, owner))
    selected = np.empty(values.size, dtype=np.bool_)
    selected[order] = np.arange(values.size) - places[owner] < _budgets(places, share)[owner]
    return selected


def select_spans(
    scores: ArrayLike,
    offsets: ArrayLike,
    *,
    threshold: float,
    span_cost: float,
    breaks: ArrayLike | None = None,
) -> Flags:
    """Select the tokens that maximise sum(score - threshold) - span_cost * spans, exactly.

    Where selecting nothing is best, the document keeps its best single token.

    Args:
        scores: (total,).
        offsets: (n + 1,).
        threshold: what a token must bring.
        span_cost: what a span costs.
        breaks: (total,) bool, tokens that begin a sentence: a span that begins or ends inside a sentence costs
            ``span_cost`` more at that end, and one that goes on into the next sentence counts as two.

    Returns:
        (total,) bool.
    """
    _check_cost(span_cost)
    places = as_offsets(offsets)
    values = as_scores(scores, places)
    costs = SpanCosts.of(span_cost, values.size, _as_breaks(breaks, places))
    found = best_spans(values, Columns.of(places), threshold=threshold, costs=costs)
    return _keep_one(found, values, places)


def fit_span_threshold(
    scores: ArrayLike,
    offsets: ArrayLike,
    *,
    share: float,
    span_cost: float,
    breaks: ArrayLike | None = None,
) -> float:
    """The threshold with which `select_spans` selects ``share`` of all tokens as nearly as possible.

    What is selected never grows with the threshold, so bisection finds it.
    """
    _check_share(share)
    _check_cost(span_cost)
    places = as_offsets(offsets)
    values = _some(as_scores(scores, places))
    columns, wanted = Columns.of(places), share * values.size
    costs = SpanCosts.of(span_cost, values.size, _as_breaks(breaks, places))
    low, high = float(values.min()) - 3 * span_cost - 1.0, float(values.max())
    best, best_gap = low, np.inf
    for _ in range(BISECTIONS):
        middle = low + (high - low) / 2
        found = best_spans(values, columns, threshold=middle, costs=costs)
        count = int(_keep_one(found, values, places).sum())
        if abs(count - wanted) < best_gap:
            best, best_gap = middle, abs(count - wanted)
        if best_gap < 0.5 or not low < middle < high:
            break
        low, high = (middle, high) if count > wanted else (low, middle)
    return best


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
    budgets = _budgets(places, share)
    lengths = np.diff(places)
    order = np.argsort(-lengths, kind="stable")
    order = order[lengths[order] > 0]
    costs = SpanCosts.of(span_cost, values.size, _as_breaks(breaks, places))
    selected = np.zeros(values.size, dtype=np.bool_)
    while order.size:
        length, width = int(lengths[order[0]]), int(budgets[order[0]]) + 1
        size = max(1, CHUNK_BYTES // (length * 2 * -(-width // 8) + 64 * width))
        columns = Columns.of(places, order[:size])
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


def _budgets(offsets: Integers, share: float) -> Integers:
    """How many tokens to select in every document: (n,) int64."""
    _check_share(share)
    lengths = np.diff(offsets)
    return np.minimum(lengths, np.maximum(1, np.rint(share * lengths).astype(np.int64)))


def _best(values: Floats, offsets: Integers) -> Integers:
    """The place of the first highest score of every document that has tokens."""
    filled = np.diff(offsets) > 0
    if not filled.any():
        return np.empty(0, np.int64)
    tops = np.zeros(filled.size)
    tops[filled] = np.maximum.reduceat(values, offsets[:-1][filled])
    owner = owners(offsets)
    places = np.flatnonzero(values == tops[owner])
    return places[np.diff(owner[places], prepend=-1) > 0]


def _keep_one(selected: Flags, values: Floats, offsets: Integers) -> Flags:
    """Add the best token of every document in which nothing is selected."""
    best = _best(values, offsets)
    selected[best[sums(selected, offsets)[owners(offsets)[best]] == 0]] = True
    return selected
