"""What is predicted: a head's width, a loss, a way to decode, and the metrics that judge it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Array", "Goal", "Task"]

Array = NDArray[Any]


class Goal(ABC):
    """What a network is trained for: one task, or several.

    Attributes:
        kind: names it in saved models.
    """

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
    def encode(self, label: object, *, source: str | None = None, line: int | None = None) -> float | list[float]:
        """A user's label as what the loss reads, a number for each task; DataError where it cannot be."""

    @abstractmethod
    def with_priors(self, targets: Array) -> Self:
        """The same goal, knowing how frequent each class is in the training targets (n,)."""

    @abstractmethod
    def loss(self, logits: Tensor, targets: Tensor, *, balance: float = 0.0, plain: bool = False) -> Tensor:
        """(b, c), (b,) -> (b,); about 1 for a model that knows nothing, whatever the label's units; or plain.

        ``balance`` (0 to 1) is how far a rare class is to count like a frequent one; scores ignore it.
        """

    @abstractmethod
    def held_out_losses(self, logits: Array, targets: Array, *, balance: float = 0.0) -> Array:
        """(n, c), (n,) -> (n,) double: the loss of each held-out document, by which rounds are compared.

        (n, k) of several tasks.
        """

    @abstractmethod
    def scores(self, logits: Array, targets: Array) -> dict[str, Any]:
        """Metrics by name, in the user's units."""

    @abstractmethod
    def target_array(self, targets: Sequence[Any] | Array) -> Array:
        """Encoded labels as the array that batches carry."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Plain data that :func:`task_from_json` reads back."""


class Task(Goal):
    """One answer to a text, in the user's own terms."""

    @abstractmethod
    def encode(self, label: object, *, source: str | None = None, line: int | None = None) -> float:
        """A user's label as the number the loss reads; DataError where it is not of this task."""

    @abstractmethod
    def known(self, label: object) -> str | float | None:
        """A user's label in the terms of predictions, to show beside one; None where there is none."""

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
    def faithfulness(self, chosen: Array, full: Array, rest: Array) -> dict[str, float]:
        """Sufficiency and comprehensiveness from the logits on the selection, the full text and the rest."""
