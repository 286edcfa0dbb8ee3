"""Texts to classes."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from infocal.errors import ModelError
from infocal.estimators.base import RationaleEstimator, held_out_rate
from infocal.estimators.inputs import check_names, name_of, targets, value_errors
from infocal.rationalizer import Rationalizer

__all__ = ["RationaleClassifier"]


class RationaleClassifier(ClassifierMixin, RationaleEstimator):  # type: ignore[misc]
    """Classifies texts, and shows the words that each prediction was made from.

    Attributes:
        classes_: the classes, sorted, as ``y`` has them.
        model_: the trained :class:`infocal.Rationalizer`.
        rate_: the share of words selected in the held-out rows.
    """

    _task: ClassVar[Literal["classify", "regress"]] = "classify"

    def fit(self, X: Any, y: Any, *, rationales: Any = None, dev: Any = None) -> Self:  # noqa: N803
        """Train on texts and their classes.

        Args:
            X: a list, array, Series or Arrow column of texts, or a table with no other column.
            y: as many classes: strings, integers or truth values.
            rationales: for each text the [(start, end), ...] that a human marked, or None where nobody did;
                given, they are learned from with weight 1.0 or ``settings["loss.rationale_supervision"]``.
            dev: a pair (X, y) that decides when to stop; None holds a part of the rows out.
        """
        with value_errors():
            y = targets(y, estimator=type(self).__name__)
            model = self._train(X, y, rationales, dev)
        classes = np.unique(y)
        self._take(dataclasses.replace(model, record={**model.record, "labels": classes.tolist()}))
        self.classes_ = classes
        return self

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """(n,): the class of each text, as in ``y``."""
        best = self._outputs(X).argmax(axis=1)
        return np.asarray(self.classes_[self._places[best]])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """(n, c): the probability of each class, in the order of ``classes_``."""
        outputs = self._outputs(X)
        probabilities = np.empty(outputs.shape)
        probabilities[:, self._places] = self.model_.probabilities(outputs)
        return probabilities

    def _labels(self, y: Any) -> list[str]:
        labels = targets(y, estimator=type(self).__name__)
        check_classification_targets(labels)
        check_names(np.unique(labels).tolist())
        return [name_of(label) for label in labels.tolist()]

    def _take(self, model: Rationalizer) -> None:
        outputs: list[str] = model.task.to_json()["classes"]
        # A model that was not trained here knows its classes as text only.
        self.classes_ = np.unique(model.record.get("labels", outputs))
        names = [name_of(label) for label in self.classes_.tolist()]
        if sorted(names) != sorted(outputs):
            raise ModelError(f"the model's record names the classes {names}, its outputs are {outputs}")
        self._places = np.array([names.index(output) for output in outputs])
        self.model_, self.rate_ = model, held_out_rate(model)
