"""Exact dynamic programming over documents of different lengths, many documents at a time.

The loops run over positions only: documents stand longest first, so that those which still have a token
at a position are always the first few.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from infocal.evaluation.ragged import Flags, Floats, Integers

__all__ = ["Columns", "SpanCosts", "best_spans", "fill_budgets"]


@dataclass(frozen=True, slots=True)
class Columns:
    """Where the documents' tokens stand, longest document first.

    Attributes:
        starts: (n,) the first token of each.
        lengths: (n,) falling.
        active: (longest,) how many documents have a token at each position.
    """

    starts: Integers
    lengths: Integers
    active: Integers

    @classmethod
    def of(cls, offsets: Integers, order: Integers | None = None) -> Columns:
        """Documents of a corpus; ``order`` names some of them, which must be longest first."""
        lengths = np.diff(offsets)
        chosen = np.argsort(-lengths, kind="stable") if order is None else order
        ordered = lengths[chosen]
        longest = int(ordered[0]) if ordered.size else 0
        active = ordered.size - np.searchsorted(ordered[::-1], np.arange(longest), side="right")
        return cls(offsets[:-1][chosen], ordered, active.astype(np.int64))


@dataclass(frozen=True, slots=True)
class SpanCosts:
    """What spans cost at each token.

    Attributes:
        start: (total,) to begin a span with this token.
        stay: (total,) to go on from the token before to this one.
        end: (total,) to have ended with the token before; a document's end is free.
    """

    start: Floats
    stay: Floats
    end: Floats

    @classmethod
    def of(cls, span_cost: float, size: int, breaks: Flags | None) -> SpanCosts:
        """A cost per span; with ``breaks`` spans also keep to sentences.

        Args:
            span_cost: what each span costs.
            size: total number of tokens.
            breaks: (total,) tokens that begin a sentence. A span that begins or ends inside a sentence then costs
                ``span_cost`` more at that end, and one that goes on into the next sentence counts as two.
        """
        if breaks is None:
            return cls(np.full(size, span_cost), np.zeros(size), np.zeros(size))
        inner = np.where(breaks, 0.0, span_cost).astype(np.float64)
        return cls(inner + span_cost, span_cost - inner, inner)


def best_spans(values: Floats, columns: Columns, *, threshold: float, costs: SpanCosts) -> Flags:
    """Maximise sum(value - threshold) - costs of the spans in every document: (total,) bool, maybe none.

    Viterbi's algorithm with two states, inside a span and outside.
    """
    gains = values - threshold
    inside = np.full(columns.starts.size, -np.inf)
    outside = np.zeros(columns.starts.size)
    came_inside = np.empty((2, values.size), dtype=np.bool_)  # [state now, token]: was it inside before
    for position, count in enumerate(columns.active):
        place = columns.starts[:count] + position
        stay, end = inside[:count] - costs.stay[place], inside[:count] - costs.end[place]
        start, skip = outside[:count] - costs.start[place], outside[:count]
        came_inside[1, place] = stay >= start
        came_inside[0, place] = end > skip
        inside[:count], outside[:count] = gains[place] + np.maximum(stay, start), np.maximum(end, skip)
    state = inside > outside
    selected = np.zeros(values.size, dtype=np.bool_)
    for position in range(columns.active.size - 1, -1, -1):
        count = columns.active[position]
        place = columns.starts[:count] + position
        selected[place] = state[:count]
        state[:count] = came_inside[state[:count].astype(np.int64), place]
    return selected


def fill_budgets(
    selected: Flags, values: Floats, columns: Columns, budgets: Integers, *, costs: SpanCosts
) -> None:
    """Mark exactly ``budgets`` tokens of each document, maximising sum(value) - costs of the spans.

    Args:
        selected: (total,) bool, written into.
        values: (total,) scores.
        columns: the documents of this chunk.
        budgets: (n,) tokens to mark in each, at most its length.
        costs: what spans cost.
    """
    width = int(budgets.max()) + 1
    inside = np.full((budgets.size, width), -np.inf)
    outside = np.full((budgets.size, width), -np.inf)
    outside[:, 0] = 0.0
    came_inside = []  # per position (2, documents, budget) as bits
    for position, count in enumerate(columns.active):
        place = columns.starts[:count] + position
        gain, skip = values[place, None], outside[:count]
        stay, end = inside[:count] - costs.stay[place, None], inside[:count] - costs.end[place, None]
        start = skip - costs.start[place, None]
        came_inside.append(np.packbits(np.stack((end > skip, stay >= start)), axis=-1))
        now, out = np.maximum(stay, start), np.maximum(end, skip)
        inside[:count, 1:], inside[:count, 0], outside[:count] = gain + now[:, :-1], -np.inf, out
    rows = np.arange(budgets.size)
    used = budgets.copy()
    state = (inside[rows, used] > outside[rows, used]).astype(np.int64)
    for position in range(columns.active.size - 1, -1, -1):
        count = columns.active[position]
        now_state = state[:count].copy()
        selected[columns.starts[:count] + position] = now_state == 1
        used[:count] -= now_state
        cell = came_inside[position][now_state, rows[:count], used[:count] >> 3]
        state[:count] = (cell >> (7 - (used[:count] & 7))) & 1
