"""One class of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from infocal.data.labels import class_name
from infocal.errors import DataError
from infocal.evaluation.faithfulness import comprehensiveness, sufficiency
from infocal.evaluation.predictions import classification_scores
from infocal.tasks.base import Array, Task

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Classification"]

INVERSE_TEMPERATURES = np.exp(np.linspace(-3.0, 1.0, 41))


@dataclass(frozen=True)
class Classification(Task):
    """One class of several.

    Args:
        classes: their names, in the order of the outputs.
        priors: how frequent each is in the training rows, all positive; None where nobody counted.
    """

    classes: tuple[str, ...]
    priors: tuple[float, ...] | None = None
    kind = "classify"

    def __post_init__(self) -> None:
        if self.priors is None:
            return
        if len(self.priors) != len(self.classes) or not all(0 < prior <= 1 for prior in self.priors):
            raise ValueError(f"priors are {self.priors}; allowed: a number from 0 (excluded) to 1 for each class")

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

    def with_priors(self, targets: Array) -> Self:
        """With the classes' frequencies; one that no training row has counts as if one row had it."""
        counts = np.maximum(np.bincount(targets, minlength=self.outputs), 1)
        return replace(self, priors=tuple((counts / counts.sum()).tolist()))

    def loss(self, logits: Tensor, targets: Tensor, *, balance: float = 0.0, plain: bool = False) -> Tensor:
        """Cross-entropy divided by that of a uniform guess, or as it is.

        With ``balance`` a row counts as its class's frequency to the power of ``-balance``, 1 on average over the
        training rows: at 0.5 by the root, at 1 all classes count the same however many rows they have.
        """
        from infocal.losses.prediction import cross_entropy

        losses = cross_entropy(logits, targets) / (1.0 if plain else self.unit)
        return losses * logits.new_tensor(self._weights(balance))[targets] if balance else losses

    def held_out_losses(self, logits: Array, targets: Array, *, balance: float = 0.0) -> Array:
        """The loss at the temperature that suits these logits best.

        A network goes on learning which class it is long after its probabilities have become too sure of
        themselves; the plain loss would stop it there.

        With ``balance`` rows count as in training, so that rounds are compared by what is trained for.
        """
        chosen = (np.arange(len(targets)), targets)
        weights = self._weights(balance)[targets] if balance else 1.0
        scaled = (logits.astype(np.float64) * temperature for temperature in INVERSE_TEMPERATURES)
        losses = [weights * (np.logaddexp.reduce(values, axis=1) - values[chosen]) for values in scaled]
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

    def target_array(self, targets: Sequence[Any] | Array) -> Array:
        """int64 class numbers."""
        return np.asarray(targets, dtype=np.int64)

    def to_json(self) -> dict[str, Any]:
        """Kind, class names, and the priors where they are known."""
        record: dict[str, Any] = {"kind": self.kind, "classes": list(self.classes)}
        return record if self.priors is None else record | {"priors": list(self.priors)}

    def _weights(self, balance: float) -> Array:
        """(c,): what a row of each class counts."""
        if self.priors is None:
            raise ValueError("loss.balance needs the classes' priors; Task.with_priors counts them")
        priors = np.asarray(self.priors)
        return np.asarray(priors**-balance / (priors ** (1 - balance)).sum())
