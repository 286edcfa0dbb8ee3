"""What the paper prints for beer reviews, and which of it can be true of one and the same selection.

Over all tokens together, with s the share selected and g the share that humans marked, recall is R = P * s / g:
both count the same hits. So at a given share even a precision of 100 leaves a greatest F1, 2s / (s + g).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

__all__ = [
    "BEER_TABLE",
    "GOLD_SHARES",
    "Cell",
    "Verdict",
    "best_f1",
    "check_cell",
    "check_table",
    "implied_recall",
]

Value = Literal["recall", "f1"]


@dataclass(frozen=True, slots=True)
class Cell:
    """Figures of one method for one aspect, in per cent."""

    precision: float
    recall: float
    f1: float
    selected: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """A printed figure that does not go with the others of its cell.

    Attributes:
        method: the row.
        aspect: the aspect.
        value: which figure.
        printed: what the paper prints.
        allowed: what the printed share allows: the recall that goes with the printed precision, or the best F1.
        low: the least that is allowed if every printed figure was rounded down as far as can be; 0 for ``f1``.
        high: the most that is allowed if every one was rounded up as far as can be.
    """

    method: str
    aspect: str
    value: Value
    printed: float
    allowed: float
    low: float
    high: float

    @property
    def too_high(self) -> bool:
        """Whether the figure is above what the printed share allows."""
        return self.printed - HALF_TENTH > self.allowed

    @property
    def certain(self) -> bool:
        """Whether rounding, the share being printed in whole per cent, does not explain the figure either."""
        return self.printed - HALF_TENTH > self.high or self.printed + HALF_TENTH < self.low


HALF_TENTH, HALF = 0.05, 0.5

GOLD_SHARES: Mapping[str, float] = {"appearance": 18.5, "smell": 15.6, "palate": 12.4}
"""Tokens that humans marked, in per cent, on the usual test cut; a user's own files are measured instead."""

_ASPECTS = ("appearance", "smell", "palate")


def _row(*numbers: float) -> dict[str, Cell]:
    return {aspect: Cell(*numbers[4 * place : 4 * place + 4]) for place, aspect in enumerate(_ASPECTS)}


BEER_TABLE: Mapping[str, Mapping[str, Cell]] = {
    "Attention": _row(80.6, 35.6, 49.4, 13, 88.4, 20.6, 33.4, 7, 65.3, 35.8, 46.2, 7),
    "Bernoulli": _row(96.3, 56.5, 71.2, 14, 95.1, 38.2, 54.5, 7, 80.2, 53.6, 64.3, 7),
    "HardKuma": _row(98.1, 65.1, 78.3, 13, 96.8, 31.5, 47.5, 7, 89.8, 48.6, 63.1, 7),
    "InfoCal": _row(98.5, 73.2, 84.0, 13, 95.6, 45.6, 61.7, 7, 89.6, 59.8, 71.7, 7),
    "InfoCal(HK)": _row(97.9, 71.7, 82.8, 13, 94.8, 42.3, 58.5, 7, 89.4, 56.9, 69.5, 7),
    "InfoCal-L_adv": _row(97.3, 67.8, 79.9, 13, 94.3, 34.5, 50.5, 7, 89.6, 51.2, 65.2, 7),
    "InfoCal-L_lm": _row(79.8, 54.9, 65.0, 13, 87.1, 32.3, 47.1, 7, 83.1, 47.4, 60.4, 7),
}
"""Precision, recall, F1 and share of selected tokens by row and aspect, in per cent."""


def best_f1(selected: float, gold: float) -> float:
    """The F1 of a selection of ``selected`` % that makes no mistake while ``gold`` % are marked, in per cent."""
    return 200.0 * min(selected, gold) / (selected + gold)


def implied_recall(precision: float, selected: float, gold: float) -> float:
    """The recall that goes with a precision at these shares, all in per cent."""
    return precision * selected / gold


def check_cell(method: str, aspect: str, cell: Cell, gold: float) -> Iterator[Verdict]:
    """The figures of a cell that are above what its share allows, or off by more than rounding explains.

    Args:
        method: the row, for the verdict.
        aspect: the column, likewise.
        cell: the printed figures.
        gold: tokens that humans marked, in per cent.
    """
    fewest, most = max(0.0, cell.selected - HALF), cell.selected + HALF
    recalls = (
        implied_recall(cell.precision, cell.selected, gold),
        implied_recall(cell.precision - HALF_TENTH, fewest, gold + HALF_TENTH),
        implied_recall(cell.precision + HALF_TENTH, most, gold - HALF_TENTH),
    )
    f1s = (best_f1(cell.selected, gold), 0.0, best_f1(most, gold - HALF_TENTH))
    for verdict in (
        Verdict(method, aspect, "recall", cell.recall, *recalls),
        Verdict(method, aspect, "f1", cell.f1, *f1s),
    ):
        if verdict.too_high or verdict.certain:
            yield verdict


def check_table(
    table: Mapping[str, Mapping[str, Cell]] = BEER_TABLE, gold: Mapping[str, float] = GOLD_SHARES
) -> list[Verdict]:
    """Every printed figure that cannot be one of all tokens together at the printed share."""
    return [
        verdict
        for method, cells in table.items()
        for aspect, cell in cells.items()
        if aspect in gold
        for verdict in check_cell(method, aspect, cell, gold[aspect])
    ]
