"""What the estimators share."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from infocal.config import load_settings
from infocal.data.readers import documents_from
from infocal.decoding import DECODERS
from infocal.errors import ModelError, SettingsError
from infocal.estimators.inputs import column, listed, pair, value_errors
from infocal.fitting import StoppedEarlyError, fit, one_label
from infocal.loading import load_one
from infocal.rationalizer import Rationalizer
from infocal.settings import Settings
from infocal.text.segmentation import CustomSegmenter
from infocal.text.sources import shown, shown_list
from infocal.types import Explanation, Span

if TYPE_CHECKING:
    from infocal.training.tracking import Tracker

__all__ = ["RationaleEstimator", "held_out_rate"]

_OWN = {
    "select": "select",
    "method": "method",
    "seed": "random_state",
    "text.vectors": "vectors",
    "text.segmenter": "segmenter",
    "training.dev_share": "dev_share",
}
"""Settings that are parameters of the estimators: each has one place where it is set."""


class RationaleEstimator(BaseEstimator, ABC):  # type: ignore[misc]
    """What the estimators share."""

    _task: ClassVar[Literal["classify", "regress"]]

    def __init__(
        self,
        *,
        select: float = 0.2,
        method: str | None = None,
        recipe: str | Path | None = None,
        vectors: str | Path | None = None,
        settings: Mapping[str, Any] | None = None,
        segmenter: str | Callable[[str], Iterable[Span]] = "auto",
        decoder: str = "average",
        dev_share: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        """Store the parameters; ``fit`` checks them.

        Args:
            select: the share of words that a prediction may be made from.
            method: the published method; None means the recipe's, or infocal.
            recipe: the name of a recipe of the package, or the path of a YAML file; None takes the method's own.
            vectors: a file of pretrained word vectors.
            settings: all other settings, by dotted name: ``{"encoder.kind": "lstm"}``.
            segmenter: "auto" (as in the recipe), a segmenter's name, or a function from a text to spans.
            decoder: how words are chosen: "average", "equal", "spans" or "spans-equal".
            dev_share: the share of rows held out to decide when to stop; None as in the recipe.
            random_state: the seed; as elsewhere in scikit-learn, None draws another one at each fit.
            verbose: whether to show notes and progress on the error stream.
        """
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
        X: Any,  # noqa: N803
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
        with value_errors():
            explanations: list[Explanation] = self.model_.explain(
                X if isinstance(X, str) else column(X),
                decoder=self.decoder if decoder is None else decoder,
                share=share,
                span_cost=span_cost,
                full_text=full_text,
            )
        return explanations

    def save(self, path: str | Path) -> None:
        """Write the trained model to a folder, which the command line can use, too."""
        check_is_fitted(self)
        self.model_.save(path)

    @classmethod
    def load(cls, path: str | Path, *, segmenter: Callable[[str], Iterable[Span]] | None = None) -> Self:
        """The fitted estimator of a folder that ``save`` or ``infocal train`` wrote; nothing in it is executed.

        Args:
            path: the model's folder.
            segmenter: the function of a model that was trained with one of the user's own.
        """
        return cls.from_model(load_one(path, segmenter=segmenter))

    @classmethod
    def from_model(cls, model: Rationalizer) -> Self:
        """The fitted estimator of a trained model; its parameters are those of the model's training.

        Raises:
            ModelError: the model predicts scores and this is a classifier, or the other way round.
        """
        if model.task.kind != cls._task:
            right = "RationaleClassifier" if model.task.kind == "classify" else "RationaleRegressor"
            raise ModelError(f"the model's task is {model.task.kind!r}; use {right} for it")
        estimator = cls(**_parameters(model))
        estimator._take(model)
        return estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags

    @abstractmethod
    def _take(self, model: Rationalizer) -> None:
        """Set what a fitted estimator has."""

    @abstractmethod
    def _labels(self, y: Any) -> list[Any]:
        """The user's targets, checked, as labels of documents."""

    def _train(self, X: Any, y: Any, rationales: Any, dev: Any) -> Rationalizer:  # noqa: N803
        if self.decoder not in DECODERS:
            raise SettingsError(f"decoder {shown(self.decoder)} is unknown; choose from {shown_list(DECODERS)}")
        settings = self._settings(supervised=rationales is not None)
        documents = documents_from(column(X), self._labels(y), listed(rationales), source="X")
        held = None
        if dev is not None:
            texts, targets = pair(dev)
            held = documents_from(column(texts), self._labels(targets), source="dev")
        trackers, tell = _audience(verbose=self.verbose)
        try:
            found = fit(
                documents,
                settings,
                dev=held,
                source="X",
                dev_source="dev",
                segmenter=self.segmenter if callable(self.segmenter) else None,
                trackers=trackers,
                tell=tell,
            )
        except StoppedEarlyError as error:
            raise KeyboardInterrupt from error
        model = one_label(found)
        if cut := model.record["data"]["texts_cut"]:
            warnings.warn(
                f"{cut:,} texts are longer than {settings.text.max_tokens:,} tokens; the model reads their "
                "beginning only (settings={'text.max_tokens': ...} changes that)",
                UserWarning,
                stacklevel=3,
            )
        if model.record["training"]["interrupted"]:
            warnings.warn("stopped by the user: this is the best model so far", ConvergenceWarning, stacklevel=3)
        return model

    def _settings(self, *, supervised: bool) -> Settings:
        changes = dict(self.settings or {})
        for name in sorted(changes.keys() & _OWN):
            raise SettingsError(f"settings has {name!r}; set the estimator's parameter {_OWN[name]!r} instead")
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
        # An integer is the seed itself, so that it means the same as on the command line.
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _outputs(self, X: Any) -> NDArray[np.float32]:  # noqa: N803
        """(n, c): what the network makes of the selected words."""
        check_is_fitted(self)
        with value_errors():
            outputs: NDArray[np.float32] = self.model_.decision(column(X), decoder=self.decoder)
        return outputs


def held_out_rate(model: Rationalizer) -> float:
    """The share of words that the model selects in the rows held out in training."""
    return float(model.record.get("results", {}).get("selected", model.decoding.share))


def _audience(*, verbose: bool) -> tuple[tuple[Tracker, ...], Callable[[str], None]]:
    """Who hears of the progress, and who is told the notes."""
    if not verbose:
        return (), lambda note: None
    from rich.console import Console

    from infocal.training.tracking import ProgressBar

    console = Console(stderr=True)
    return (ProgressBar(console),), lambda note: console.print(note, markup=False, highlight=False)


def _parameters(model: Rationalizer) -> dict[str, Any]:
    """The parameters with which an estimator trains as this model was trained."""
    used = _flat(model.settings.model_dump())
    usual = _flat(load_settings(method=model.settings.method).model_dump())
    parameters = {parameter: used[name] for name, parameter in _OWN.items()}
    if isinstance(model.segmenter, CustomSegmenter):
        parameters["segmenter"] = model.segmenter.function
    changes = {name: value for name, value in used.items() if value != usual[name] and name not in _OWN}
    changes.pop("task", None)
    return {**parameters, "settings": changes or None}


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by their dotted names."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat
