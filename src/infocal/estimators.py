"""The scikit-learn face: a classifier and a regressor of texts that show the words they used."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from infocal import fitting
from infocal.config import Settings, load_settings
from infocal.data.labels import class_name
from infocal.data.readers import documents_from
from infocal.decoding import DECODERS
from infocal.errors import DataError, MissingExtraError, ModelError, SettingsError
from infocal.rationalizer import Rationalizer, load
from infocal.tasks import Classification
from infocal.text.sources import shown
from infocal.types import Document, Explanation, Span

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils import assert_all_finite, check_random_state, column_or_1d
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted
except ImportError as error:
    purpose = "RationaleClassifier and RationaleRegressor"
    raise MissingExtraError("scikit-learn", "sklearn", purpose) from error

if TYPE_CHECKING:
    from infocal.training.tracking import Tracker

__all__ = ["RationaleClassifier", "RationaleRegressor"]

_OWN = {
    "select": "select",
    "method": "method",
    "seed": "random_state",
    "text.vectors": "vectors",
    "text.segmenter": "segmenter",
    "training.dev_share": "dev_share",
}
"""Settings that are parameters of the estimators, so that each has one place."""


class _RationaleEstimator(BaseEstimator):  # type: ignore[misc]
    """What both estimators share.

    Args:
        select: the share of words that a prediction may be made from.
        method: the published method.
        recipe: the name of a recipe of the package, or the path of a YAML file.
        vectors: a file of pretrained word vectors.
        settings: any other settings, by dotted name: ``{"encoder.kind": "lstm"}``.
        segmenter: "auto" (as in the recipe), a segmenter's name, or a function from a text to spans.
        decoder: how words are chosen: "average", "equal", "spans" or "spans-equal".
        dev_share: the share of rows held out to decide when to stop; None as in the recipe.
        random_state: the seed; as everywhere in scikit-learn, None draws another one at each fit.
        verbose: whether to show notes and progress on the error stream.
    """

    _task: ClassVar[Literal["classify", "regress"]]

    def __init__(
        self,
        *,
        select: float = 0.2,
        method: str = "infocal",
        recipe: str | Path = "infocal",
        vectors: str | Path | None = None,
        settings: Mapping[str, Any] | None = None,
        segmenter: str | Callable[[str], Iterable[Span]] = "auto",
        decoder: str = "average",
        dev_share: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.select = select
        self.method = method
        self.recipe = recipe
        self.vectors = vectors
        self.settings = settings
        self.segmenter = segmenter
        self.decoder = decoder
        self.dev_share = dev_share
        self.random_state = random_state
        self.verbose = verbose

    def explain(
        self,
        X: Any,
        *,
        decoder: str | None = None,
        share: float | None = None,
        span_cost: float | None = None,
        full_text: bool = False,
    ) -> list[Explanation]:
        """Predictions with their evidence; classes by their names, as text.

        Args:
            X: texts as in ``fit``, or one text.
            decoder: another than the estimator's.
            share: another share of words than the model was trained for.
            span_cost: another cost per span for the span decoders.
            full_text: whether to ask the part that reads every word, too.
        """
        check_is_fitted(self)
        with _value_errors():
            return self.model_.explain(
                [X] if isinstance(X, str) else _column(X),
                decoder=decoder or self.decoder,
                share=share,
                span_cost=span_cost,
                full_text=full_text,
            )

    def save(self, path: str | Path) -> None:
        """Write the trained model to a folder, which ``infocal`` on the command line can use, too."""
        check_is_fitted(self)
        self.model_.save(path)

    @classmethod
    def load(cls, path: str | Path, *, segmenter: Callable[[str], Iterable[Span]] | None = None) -> Self:
        """The estimator of a model that ``save`` or ``infocal train`` wrote; nothing in it is executed.

        Args:
            path: the model's folder.
            segmenter: the function of a model that was trained with one of the user's own.
        """
        return cls.from_model(load(path, segmenter=segmenter))

    @classmethod
    def from_model(cls, model: Rationalizer) -> Self:
        """The fitted estimator of a trained model; its parameters are those the model was trained with.

        Raises:
            ModelError: the model predicts scores and this is a classifier, or the other way round.
        """
        if model.task.kind != cls._task:
            right = "RationaleClassifier" if model.task.kind == "classify" else "RationaleRegressor"
            raise ModelError(f"the model's task is {model.task.kind!r}; use {right}")
        estimator = cls(**_parameters(model))
        estimator._take(model)
        return estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags

    def _outputs(self, X: Any) -> NDArray[np.float32]:
        """(n, c): what the network says of the selected words."""
        check_is_fitted(self)
        with _value_errors():
            return self.model_.decision(_column(X), decoder=self.decoder)

    def _train(
        self, documents: Iterator[Document], dev: Iterator[Document] | None, *, supervised: bool
    ) -> Rationalizer:
        if self.decoder not in DECODERS:
            raise SettingsError(
                f"decoder {shown(self.decoder)} is unknown; choose from {', '.join(DECODERS)}"
            )
        trackers, tell = _audience() if self.verbose else ((), _silence)
        return fitting.fit(
            documents,
            self._settings(supervised=supervised),
            dev=dev,
            source="X",
            dev_source="dev",
            segmenter=self.segmenter if callable(self.segmenter) else None,
            trackers=trackers,
            tell=tell,
        )

    def _settings(self, *, supervised: bool) -> Settings:
        """All settings of the run; SettingsError where they contradict one another."""
        changes = dict(self.settings or {})
        for name in changes.keys() & _OWN:
            raise SettingsError(
                f"settings has {name!r}; use the estimator's parameter {_OWN[name]!r} instead"
            )
        if supervised:
            changes.setdefault("loss.rationale_supervision", 1.0)
        if self.vectors is not None:
            changes["text.vectors"] = str(self.vectors)
        if self.segmenter != "auto" and not callable(self.segmenter):
            changes["text.segmenter"] = self.segmenter
        if self.dev_share is not None:
            changes["training.dev_share"] = self.dev_share
        return load_settings(
            self.recipe, changes, select=self.select, method=self.method, task=self._task, seed=self._seed()
        )

    def _seed(self) -> int:
        """An integer is the seed itself, so that it means the same as on the command line."""
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _take(self, model: Rationalizer) -> None:
        self.model_ = model
        self.rate_ = float(model.record.get("results", {}).get("selected", model.decoding.share))


class RationaleClassifier(ClassifierMixin, _RationaleEstimator):  # type: ignore[misc]
    __doc__ = f"""Classifies texts and shows the words that each prediction was made from.

    {(_RationaleEstimator.__doc__ or "").partition("    ")[2]}
    Attributes:
        classes_: the classes, sorted, as they were given.
        model_: the trained :class:`infocal.Rationalizer`.
        rate_: the share of words selected on the held-out rows.
    """

    _task: ClassVar[Literal["classify", "regress"]] = "classify"

    def fit(self, X: Any, y: Any, *, rationales: Any = None, dev: tuple[Any, Any] | None = None) -> Self:
        """Train on texts and their classes.

        Args:
            X: a list, array, Series or Arrow column of texts, or a table that has no other column.
            y: as many classes: strings, integers, truth values.
            rationales: for each text the (start, end) that a human marked, or None; where they are given,
                they are learned from with the weight 1.0, or ``settings["loss.rationale_supervision"]``.
            dev: (X, y) that decides when to stop; None holds a part of the rows out.
        """
        labels = _targets(self, y)
        classes = np.unique(labels)
        with _value_errors():
            names = _names(classes)
            documents = documents_from(_column(X), _named(labels, names), _spans(rationales), source="X")
            held = _dev_documents(dev, lambda values: _named(_targets(self, values), names))
            model = self._train(documents, held, supervised=rationales is not None)
        record = {**model.record, "labels": classes.tolist()}
        self._take(dataclasses.replace(model, record=record))
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """(n,): the class of each text, as in ``y``."""
        best = self._outputs(X).argmax(axis=1)
        return np.asarray(self.classes_[self._places[best]])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """(n, c): the probability of each class, in the order of ``classes_``."""
        outputs = self._outputs(X)
        probabilities = np.empty(outputs.shape)
        probabilities[:, self._places] = self.model_.task.probabilities(outputs)
        return probabilities

    def _take(self, model: Rationalizer) -> None:
        super()._take(model)
        outputs = model.task.to_json()["classes"]
        labels = model.record.get("labels", outputs)
