"""What the paper prints of legal judgement prediction, and which of it does not go together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from infocal.data.cail import TASKS

__all__ = [
    "CAIL_CASES",
    "CAIL_LINES",
    "CAIL_TABLES",
    "Cell",
    "Impossible",
    "best_macro_f1",
    "impossible_cells",
    "which_official",
]

ROUNDING = 0.001
"""The printed F1 may be off by half of its last digit, and the mean of precision and recall by as much."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What is printed for a method and a task.

    Attributes:
        accuracy: share of right answers.
        macro_precision: mean over classes.
        macro_recall: mean over classes.
        macro_f1: mean over classes.
        selected: share of selected words in per cent; None for methods that select none.
    """

    accuracy: float
    macro_precision: float
    macro_recall: float
    macro_f1: float
    selected: float | None = None


def _row(*numbers: float | None) -> dict[str, Cell]:
    width = len(numbers) // len(TASKS)
    return {task: Cell(*numbers[width * place : width * (place + 1)]) for place, task in enumerate(TASKS)}  # type: ignore[arg-type]


CAIL_TABLES: Mapping[str, Mapping[str, Mapping[str, Cell]]] = {
    "small": {
        "Bernoulli, all words": _row(
            0.812, 0.726, 0.765, 0.756, 100, 0.810, 0.788, 0.760, 0.777, 100, 0.331, 0.323, 0.297, 0.306, 100
        ),
        "Bernoulli": _row(
            0.755, 0.701, 0.737, 0.728, 14, 0.761, 0.753, 0.739, 0.754, 14, 0.323, 0.308, 0.265, 0.278, 30
        ),
        "HardKuma, all words": _row(
            0.807, 0.704, 0.757, 0.739, 100, 0.811, 0.776, 0.763, 0.776, 100, 0.345, 0.355, 0.307, 0.319, 100
        ),
        "HardKuma": _row(
            0.783, 0.706, 0.735, 0.729, 14, 0.778, 0.757, 0.714, 0.736, 14, 0.340, 0.328, 0.296, 0.309, 30
        ),
        "InfoCal": _row(
            0.834, 0.744, 0.776, 0.786, 14, 0.849, 0.817, 0.798, 0.813, 14, 0.358, 0.372, 0.335, 0.337, 30
        ),
        "InfoCal-L_adv": _row(
            0.826, 0.739, 0.774, 0.777, 14, 0.845, 0.804, 0.781, 0.797, 14, 0.351, 0.374, 0.329, 0.330, 30
        ),
        "InfoCal-L_adv-L_ib": _row(
            0.841, 0.759, 0.785, 0.793, 100, 0.850, 0.820, 0.801, 0.814, 100, 0.368, 0.378, 0.341, 0.346, 100
        ),
        "InfoCal-L_lm": _row(
            0.822, 0.723, 0.768, 0.773, 14, 0.843, 0.796, 0.770, 0.772, 14, 0.347, 0.361, 0.318, 0.320, 30
        ),
        "FLA": _row(0.803, 0.724, 0.720, 0.714, 0.767, 0.758, 0.738, 0.732, 0.371, 0.310, 0.300, 0.299),
        "TOPJUDGE": _row(0.872, 0.819, 0.808, 0.800, 0.871, 0.864, 0.851, 0.846, 0.380, 0.350, 0.353, 0.346),
        "MPBFN-WCA": _row(0.883, 0.832, 0.824, 0.822, 0.887, 0.875, 0.857, 0.859, 0.414, 0.406, 0.369, 0.392),
    },
    "big": {
        "Bernoulli, all words": _row(
            0.876, 0.636, 0.388, 0.625, 100, 0.857, 0.643, 0.410, 0.569, 100, 0.509, 0.511, 0.304, 0.312, 100
        ),
        "Bernoulli": _row(
            0.857, 0.632, 0.374, 0.621, 14, 0.848, 0.635, 0.402, 0.543, 14, 0.496, 0.505, 0.289, 0.306, 30
        ),
        "HardKuma, all words": _row(
            0.907, 0.664, 0.397, 0.627, 100, 0.907, 0.689, 0.438, 0.608, 100, 0.555, 0.547, 0.335, 0.356, 100
        ),
        "HardKuma": _row(
            0.876, 0.645, 0.384, 0.609, 14, 0.892, 0.676, 0.425, 0.587, 14, 0.534, 0.535, 0.310, 0.334, 30
        ),
        "InfoCal": _row(
            0.956, 0.852, 0.742, 0.805, 20, 0.955, 0.868, 0.788, 0.820, 20, 0.556, 0.519, 0.362, 0.372, 30
        ),
        "InfoCal-L_adv": _row(
            0.953, 0.844, 0.711, 0.782, 20, 0.954, 0.857, 0.772, 0.806, 20, 0.552, 0.490, 0.353, 0.356, 30
        ),
        "InfoCal-L_adv-L_ib": _row(
            0.959, 0.862, 0.751, 0.791, 100, 0.957, 0.878, 0.776, 0.807, 100, 0.584, 0.519, 0.411, 0.427, 30
        ),
        "InfoCal-L_lm": _row(
            0.953, 0.851, 0.730, 0.775, 20, 0.950, 0.857, 0.756, 0.789, 20, 0.563, 0.486, 0.374, 0.367, 30
        ),
        "FLA": _row(0.942, 0.763, 0.695, 0.746, 0.931, 0.798, 0.747, 0.780, 0.531, 0.437, 0.331, 0.370),
        "TOPJUDGE": _row(0.963, 0.870, 0.778, 0.802, 0.960, 0.906, 0.824, 0.853, 0.569, 0.480, 0.398, 0.426),
        "MPBFN-WCA": _row(0.978, 0.872, 0.789, 0.820, 0.977, 0.914, 0.836, 0.867, 0.604, 0.534, 0.430, 0.464),
    },
}
"""The paper's tables by size of the data, row and task."""

Sizes = Mapping[str, Mapping[str, int]]

CAIL_LINES: Sizes = {"small": {"train": 154_592, "test": 32_508}, "big": {"train": 1_710_856, "test": 217_016}}
"""Lines of the files as they were released."""

CAIL_CASES: Sizes = {"small": {"train": 101_685, "test": 26_766}, "big": {"train": 1_588_894, "test": 185_228}}
"""Cases after filters like the paper's, as Yang et al. (MPBFN) count them."""


def which_official(summary: Mapping[str, Mapping[str, int]]) -> tuple[str, str] | None:
    """The paper's data, and by what it is known; None if it is neither.

    Train and test must both have about the right size; releases and filters differ a little, so a tenth more or
    less counts as the same.

    Args:
        summary: part -> ``read``, the lines of its files, and ``cases``, those that passed the filters.
    """
    for sizes, column, words in (
        (CAIL_LINES, "read", "the number of lines in its files of train and test"),
        (CAIL_CASES, "cases", "the number of its cases of train and test after the filters"),
    ):
        for name, parts in sizes.items():
            if all(_near(summary.get(part, {}).get(column, 0), size) for part, size in parts.items()):
                return name, words
    return None


def _near(found: int, size: int) -> bool:
    return abs(found - size) <= size / 10


def best_macro_f1(precision: float, recall: float) -> float:
    """The largest macro F1 that goes with a macro precision and recall.

    The F1 of a class is at most the mean of its precision and recall, and macro figures are means over classes.
    """
    return (precision + recall) / 2


@dataclass(frozen=True, slots=True)
class Impossible:
    """A printed macro F1 that its precision and recall do not allow.

    Attributes:
        size: of the data.
        method: the row.
        task: the column.
        printed: the macro F1.
        most: the largest that is possible.
    """

    size: str
    method: str
    task: str
    printed: float
    most: float


def impossible_cells() -> Iterator[Impossible]:
    """The printed cells that cannot be."""
    for size, table in CAIL_TABLES.items():
        for method, row in table.items():
            for task, cell in row.items():
                most = best_macro_f1(cell.macro_precision, cell.macro_recall)
                if cell.macro_f1 > most + ROUNDING:
                    yield Impossible(size, method, task, cell.macro_f1, most)
