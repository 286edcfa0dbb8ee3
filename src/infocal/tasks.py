"""What is predicted: a task is a head's width, a loss, a way to decode, and the metrics that judge it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from infocal.data.labels import class_name, number
from infocal.errors import DataError, ModelError
from infocal.evaluation.faithfulness import comprehensiveness, prediction_change, sufficiency
from infocal.evaluation.predictions import classification_scores, regression_scores

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Classification", "Regression", "Task", "fit_task", "task_from_json"]

Array = NDArray[Any]

INVERSE_TEMPERATURES = np.exp(np.linspace(-3.0, 1.0, 41))


class Task(ABC):
    """What all tasks have in common."""

    kind: str

    @property
    @abstractmethod
    def outputs(self) -> int:
        """c, the width of the head."""

    @property
    @abstractmethod
    def unit(self) -> float:
        """What a loss of 1 is in the plain loss: the loss of a guess that knows nothing."""

    @abstractmethod
    def encode(self, label: object, *, source: str | None = None, line: int | None = None) -> float:
        """A user's label as the number the loss reads; DataError where it is not of this task."""

    @abstractmethod
    def known(self, label: object) -> str | float | None:
        """A user's label in the terms of predictions, to show beside one; None where there is none."""

    @abstractmethod
    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """(b, c), (b,) -> (b,); about 1 for a model that knows nothing, whatever the label's units."""

    @abstractmethod
    def held_out_losses(self, logits: Array, targets: Array) -> Array:
        """(n, c), (n,) -> (n,) double: the loss of each held-out document, by which rounds are compared."""

    @abstractmethod
    def margin(self, logits: Tensor) -> Tensor:
        """(b, c) -> (b,): how strongly the model holds its own answer; attributions are its gradient."""

    @abstractmethod
    def decode(self, logits: Array) -> list[str] | list[float]:
        """(n, c) -> n predictions in the user's own terms."""

    @abstractmethod
    def probabilities(self, logits: Array) -> Array | None:
        """(n, c) -> (n, c), or None where the task has none."""

    @abstractmethod
    def scores(self, logits: Array, targets: Array) -> dict[str, Any]:
        """Metrics by name, in the user's units."""

    @abstractmethod
    def faithfulness(self, chosen: Array, full: Array, rest: Array) -> dict[str, float]:
        """Sufficiency and comprehensiveness from the logits on the selection, the full text and the rest."""

    @abstractmethod
    def target_array(self, targets: Sequence[float]) -> Array:
        """Encoded labels as the array that batches carry."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Plain data that :func:`task_from_json` reads back."""


@dataclass(frozen=True)
class Classification(Task):
    """One class of several.

    Args:
        classes: their names, in the order of the outputs.
    """

    classes: tuple[str, ...]
    kind = "classify"

    @property
    def outputs(self) -> int:
        """c, one output per class."""
        return len(self.classes)

    def encode(self, label: object, *, source: str | None = None, line: int | None = None) -> float:
        """The number of the class; an unknown one raises DataError listing those known."""
        name = class_name(label)
        if name not in self.classes:
            raise DataError(
                f"the label {name!r} was not in the training data",
                allowed=", ".join(map(repr, self.classes[:20])) + (", ..." if len(self.classes) > 20 else ""),
                source=source,
                line=line,
            )
        return self.classes.index(name)

    @property
    def unit(self) -> float:
        """The cross-entropy of a uniform guess."""
        return float(np.log(max(2, self.outputs)))

    def known(self, label: object) -> str | None:
        """The name of the class, also of one that was not in the training data."""
        return None if label is None else class_name(label)

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Cross-entropy divided by that of a uniform guess."""
        from infocal.losses.prediction import cross_entropy

        return cross_entropy(logits, targets) / self.unit

    def held_out_losses(self, logits: Array, targets: Array) -> Array:
        """The loss at the temperature that suits these logits best.

        A network goes on learning which class it is long after its probabilities have become too sure of
        themselves; the plain loss would stop it there.
        """
        chosen = (np.arange(len(targets)), targets)
        scaled = (logits.astype(np.float64) * temperature for temperature in INVERSE_TEMPERATURES)
        losses = [np.logaddexp.reduce(values, axis=1) - values[chosen] for values in scaled]
        best: Array = min(losses, key=lambda values: float(values.mean()))
        return best / self.unit

    def margin(self, logits: Tensor) -> Tensor:
        """Logit of the model's own answer minus the log-sum of the others: the log-odds of the answer."""
        import torch

        best = logits.argmax(dim=1, keepdim=True)
        others = logits.scatter(1, best, float("-inf"))
        return logits.gather(1, best).squeeze(1) - torch.logsumexp(others, dim=1)

    def decode(self, logits: Array) -> list[str]:
        """The class with the largest logit, the first of equals."""
        return [self.classes[index] for index in logits.argmax(axis=1)]

    def probabilities(self, logits: Array) -> Array:
        """Softmax in double precision."""
        shifted = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
        return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))

    def scores(self, logits: Array, targets: Array) -> dict[str, Any]:
        """Accuracy and the macro averages."""
        return classification_scores(logits.argmax(axis=1), targets, classes=self.outputs)

    def faithfulness(self, chosen: Array, full: Array, rest: Array) -> dict[str, float]:
        """Changes of the probability of the class that the full text gives."""
        answer = full.argmax(axis=1)[:, None]
        on_chosen, on_full, on_rest = (
            np.take_along_axis(self.probabilities(logits), answer, axis=1)[:, 0] for logits in (chosen, full, rest)
        )
        return {
            "sufficiency": sufficiency(on_full, on_chosen),
            "comprehensiveness": comprehensiveness(on_full, on_rest),
        }

    def target_array(self, targets: Sequence[float]) -> Array:
        """int64 class numbers."""
        return np.asarray(targets, dtype=np.int64)

    def to_json(self) -> dict[str, Any]:
        """Kind and class names."""
        return {"kind": self.kind, "classes": list(self.classes)}


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

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Squared error through a sigmoid, divided by the variance of the targets."""
        from infocal.losses.prediction import squared_error

        return squared_error(logits, targets) / self.variance

    def held_out_losses(self, logits: Array, targets: Array) -> Array:
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

    def target_array(self, targets: Sequence[float]) -> Array:
        """float32 scaled scores."""
        return np.asarray(targets, dtype=np.float32)

    def to_json(self) -> dict[str, Any]:
        """Kind, range and variance."""
        return {"kind": self.kind, "low": self.low, "high": self.high, "variance": self.variance}


def fit_task(
    kind: Literal["classify", "regress"], labels: Sequence[object], *, source: str, lines: Sequence[int]
) -> Task:
    """The task that training labels define.

    Args:
        kind: what to make of the labels.
        labels: the raw labels of the training rows.
        source: where they come from, for messages.
        lines: the line of each label, for messages.
    """
    if kind == "classify":
        names = {class_name(label) for label in labels}
        return Classification(tuple(sorted(names, key=_natural)))
    values = np.array([number(label, source=source, line=line) for label, line in zip(labels, lines, strict=True)])
    low, high = float(values.min()), float(values.max())
    if low == high:
        raise DataError(
            f"every label is {low:g}", allowed="at least two different scores to learn from", source=source
        )
    return Regression(low, high, max(float(((values - low) / (high - low)).var()), 1e-4))


def _natural(name: str) -> tuple[int, int, str]:
    """Numbers in their order, then words in theirs."""
    try:
        return (0, int(name), name)
    except ValueError:
        return (1, 0, name)


def task_from_json(record: Mapping[str, Any]) -> Task:
    """Read back what :meth:`Task.to_json` wrote; ModelError if it is something else."""
    try:
        if record["kind"] == "classify":
            return Classification(tuple(str(name) for name in record["classes"]))
        if record["kind"] == "regress":
            return Regression(float(record["low"]), float(record["high"]), float(record["variance"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"the model's task record is damaged: {error!r} in {dict(record)}") from None
    raise ModelError(f"the model's task {record['kind']!r} is unknown; this version knows classify and regress")
