"""Texts to scores."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from infocal.estimators.base import RationaleEstimator, held_out_rate
from infocal.estimators.inputs import targets, value_errors
from infocal.rationalizer import Rationalizer

__all__ = ["RationaleRegressor"]


class RationaleRegressor(RegressorMixin, RationaleEstimator):  # type: ignore[misc]
    """Predicts a score of each text, and shows the words that it was made from.

    Predictions lie between the least and the greatest score seen in training.

    Attributes:
        model_: the trained :class:`infocal.Rationalizer`.
        rate_: the share of words selected in the held-out rows.
    """

    _task: ClassVar[Literal["classify", "regress"]] = "regress"

    def fit(self, X: Any, y: Any, *, rationales: Any = None, dev: Any = None) -> Self:  # noqa: N803
        """Train on texts and their scores.

        Args:
            X: a list, array, Series or Arrow column of texts, or a table with no other column.
            y: as many finite numbers, in any unit.
            rationales: for each text the [(start, end), ...] that a human marked, or None where nobody did;
                given, they are learned from with weight 1.0 or ``settings["loss.rationale_supervision"]``.
            dev: a pair (X, y) that decides when to stop; None holds a part of the rows out.
        """
        with value_errors():
            self._take(self._train(X, y, rationales, dev))
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """(n,): the score of each text, in the units of ``y``."""
        outputs = self._outputs(X)
        return np.asarray(self.model_.task.decode(outputs), dtype=np.float64)

    def _labels(self, y: Any) -> list[float]:
        labels: list[float] = targets(y, estimator=type(self).__name__, dtype=np.float64).tolist()
        return labels

    def _take(self, model: Rationalizer) -> None:
        self.model_, self.rate_ = model, held_out_rate(model)
