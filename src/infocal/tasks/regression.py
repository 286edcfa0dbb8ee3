"""A score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from infocal.data.labels import number
from infocal.errors import DataError
from infocal.evaluation.faithfulness import prediction_change
from infocal.evaluation.predictions import regression_scores
from infocal.tasks.base import Array, Task

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Regression"]


@dataclass(frozen=True)
class Regression(Task):
    """A score between the least and the greatest seen in training.

    Args:
        low: the user's value that the network sees as 0.
        high: the user's value that the network sees as 1.
        variance: of the scaled training targets, which the loss is measured in.
    """

    low: float
    high: float
    variance: float
    kind = "regress"

    @property
    def outputs(self) -> int:
        """One output, through a sigmoid."""
        return 1

    def encode(self, label: object, *, source: str | None = None, line: int | None = None) -> float:
        """The score scaled so that the training range is [0, 1]; new scores may lie outside it."""
        return (number(label, source=source or "data", line=line) - self.low) / (self.high - self.low)

    @property
    def unit(self) -> float:
        """The variance of the training targets."""
        return self.variance

    def known(self, label: object) -> float | None:
        """The score, also where a file without types has it as text."""
        try:
            return number(label, source="", line=None)
        except DataError:
            return None

    def with_priors(self, targets: Array) -> Self:
        """A score has no classes."""
        return self

    def loss(self, logits: Tensor, targets: Tensor, *, balance: float = 0.0, plain: bool = False) -> Tensor:
        """Squared error through a sigmoid, divided by the variance of the targets, or as it is."""
        from infocal.losses.prediction import squared_error

        return squared_error(logits, targets) / (1.0 if plain else self.variance)

    def held_out_losses(self, logits: Array, targets: Array, *, balance: float = 0.0) -> Array:
        """The loss itself."""
        values = 1 / (1 + np.exp(-logits[:, 0].astype(np.float64)))
        return np.asarray((values - targets) ** 2 / self.variance)

    def margin(self, logits: Tensor) -> Tensor:
        """The score before the sigmoid."""
        return logits[:, 0]

    def values(self, logits: Array) -> Array:
        """(n, 1) logits -> (n,) scores in the user's units."""
        scaled = 1.0 / (1.0 + np.exp(-np.clip(logits[:, 0].astype(np.float64), -60, 60)))
        return np.asarray(self.low + scaled * (self.high - self.low))

    def decode(self, logits: Array) -> list[float]:
        """Scores in the user's units."""
        return [float(value) for value in self.values(logits)]

    def probabilities(self, logits: Array) -> None:
        """A score has no probabilities."""

    def scores(self, logits: Array, targets: Array) -> dict[str, Any]:
        """Squared and absolute error in the user's units."""
        gold = self.low + np.asarray(targets, dtype=np.float64) * (self.high - self.low)
        return regression_scores(self.values(logits), gold)

    def faithfulness(self, chosen: Array, full: Array, rest: Array) -> dict[str, float]:
        """Mean absolute changes of the predicted value, in the user's units."""
        whole = self.values(full)
        return {
            "sufficiency": prediction_change(whole, self.values(chosen)),
            "comprehensiveness": prediction_change(whole, self.values(rest)),
        }

    def target_array(self, targets: Sequence[Any] | Array) -> Array:
        """float32 scaled scores."""
        return np.asarray(targets, dtype=np.float32)

    def to_json(self) -> dict[str, Any]:
        """Kind, range and variance."""
        return {"kind": self.kind, "low": self.low, "high": self.high, "variance": self.variance}
