"""How good predictions are.

The counts of two halves of a corpus add up to the counts of the whole, so parts can be scored anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from infocal.errors import DataError
from infocal.evaluation.ragged import Floats, Integers

__all__ = [
    "ClassificationCounts",
    "RegressionSums",
    "classification_scores",
    "majority_accuracy",
    "regression_scores",
]


@dataclass(frozen=True, slots=True, eq=False)
class ClassificationCounts:
    """How often each class was predicted for each class.

    Attributes:
        confusion: (c, c) int64, rows are the true classes, columns the predicted ones.
    """

    confusion: Integers

    @classmethod
    def of(cls, predicted: ArrayLike, gold: ArrayLike, *, classes: int) -> ClassificationCounts:
        """Count predictions (n,) against the truth (n,), both integers in [0, classes)."""
        answers = _as_classes(predicted, "predicted", classes)
        truth = _as_classes(gold, "gold", classes)
        _check_pair(answers.shape, truth.shape)
        cells = np.bincount(truth * classes + answers, minlength=classes * classes)
        return cls(cells.reshape(classes, classes).astype(np.int64))

    def __add__(self, other: ClassificationCounts) -> ClassificationCounts:
        return ClassificationCounts(self.confusion + other.confusion)

    def scores(self) -> dict[str, float | int]:
        """Accuracy, and precision, recall and F1 averaged over the classes that occur; 0 where undefined."""
        count = int(self.confusion.sum())
        _check_some(count)
        hits = np.diagonal(self.confusion).astype(np.float64)
        truths, answers = self.confusion.sum(axis=1), self.confusion.sum(axis=0)
        occurs = truths + answers > 0
        return {
            "n": count,
            "accuracy": float(hits.sum()) / count,
            "macro_precision": float(_ratio(hits, answers)[occurs].mean()),
            "macro_recall": float(_ratio(hits, truths)[occurs].mean()),
            "macro_f1": float(_ratio(2 * hits, truths + answers)[occurs].mean()),
        }


@dataclass(frozen=True, slots=True)
class RegressionSums:
    """Errors of predicted scores, and how the true ones spread.

    Attributes:
        count: documents.
        squared_error: sum of (predicted - gold) ** 2.
        absolute_error: sum of |predicted - gold|.
        mean: mean of gold.
        spread: sum of (gold - mean) ** 2.
        lowest: the lowest of gold.
        highest: the highest of gold.
    """

    count: int = 0
    squared_error: float = 0.0
    absolute_error: float = 0.0
    mean: float = 0.0
    spread: float = 0.0
    lowest: float = float("inf")
    highest: float = float("-inf")

    @classmethod
    def of(cls, predicted: ArrayLike, gold: ArrayLike) -> RegressionSums:
        """Sum up predictions (n,) against the truth (n,), both finite."""
        answers, truth = _as_values(predicted, "predicted"), _as_values(gold, "gold")
        _check_pair(answers.shape, truth.shape)
        if truth.size == 0:
            return cls()
        errors, mean = answers - truth, float(truth.mean())
        return cls(
            count=truth.size,
            squared_error=float(np.square(errors).sum()),
            absolute_error=float(np.abs(errors).sum()),
            mean=mean,
            spread=float(np.square(truth - mean).sum()),
            lowest=float(truth.min()),
            highest=float(truth.max()),
        )

    def __add__(self, other: RegressionSums) -> RegressionSums:
        count = self.count + other.count
        # Sums about each part's own mean: plain sums of squares lose all digits for scores such as years.
        step, weight = other.mean - self.mean, other.count / max(1, count)
        return RegressionSums(
            count=count,
            squared_error=self.squared_error + other.squared_error,
            absolute_error=self.absolute_error + other.absolute_error,
            mean=self.mean + step * weight,
            spread=self.spread + other.spread + step * step * weight * self.count,
            lowest=min(self.lowest, other.lowest),
            highest=max(self.highest, other.highest),
        )

    def scores(self) -> dict[str, float | int | None]:
        """Mean squared error, mean absolute error and R2 (None where all true scores are equal)."""
        _check_some(self.count)
        constant = self.lowest == self.highest or self.spread == 0.0
        return {
            "n": self.count,
            "mse": self.squared_error / self.count,
            "mae": self.absolute_error / self.count,
            "r2": None if constant else 1.0 - self.squared_error / self.spread,
        }


def classification_scores(predicted: ArrayLike, gold: ArrayLike, *, classes: int) -> dict[str, float | int]:
    """n, accuracy, macro_precision, macro_recall and macro_f1 of predicted classes.

    Args:
        predicted: (n,) integers in [0, classes).
        gold: (n,) the true classes.
        classes: how many classes there are; those that occur nowhere do not count in the means.
    """
    return ClassificationCounts.of(predicted, gold, classes=classes).scores()


def regression_scores(predicted: ArrayLike, gold: ArrayLike) -> dict[str, float | int | None]:
    """n, mse, mae and r2 of predicted scores (n,) in the user's units; r2 is None if gold is constant."""
    return RegressionSums.of(predicted, gold).scores()


def majority_accuracy(gold: ArrayLike) -> float:
    """The accuracy of always answering the most frequent class of gold (n,): what to be better than."""
    _, counts = np.unique(np.asarray(gold), return_counts=True)
    _check_some(int(counts.sum()))
    return float(counts.max() / counts.sum())


def _ratio(part: Floats, whole: Integers) -> Floats:
    return part / np.maximum(whole, 1)


def _as_classes(values: ArrayLike, name: str, classes: int) -> Integers:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size > 0 and not np.issubdtype(array.dtype, np.integer)):
        raise DataError(f"{name} is {array.dtype} of shape {array.shape}", allowed="one axis of integers")
    wrong = (array < 0) | (array >= classes)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise DataError(f"{name} {row} is class {array[row]}", allowed=f"0 to {classes - 1}")
    return array.astype(np.int64)


def _as_values(values: ArrayLike, name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise DataError(f"{name} of shape {array.shape}", allowed="one axis of finite numbers")
    return array


def _check_pair(predicted: tuple[int, ...], gold: tuple[int, ...]) -> None:
    if predicted != gold:
        raise DataError(f"{predicted[0]} predictions for {gold[0]} documents", allowed="one for each")


def _check_some(count: int) -> None:
    if count == 0:
        raise DataError("nothing to score", allowed="at least one document with a label")
