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

        With ``balance`` it sees the logits plus so many times the logarithms of the priors: what the frequencies
        alone explain is then not learned, and the logits that inference reads do not drown rare classes (logit
        adjustment, Menon et al. 2021).
        """
        from infocal.losses.prediction import cross_entropy

        if balance:
            logits = logits + logits.new_tensor(self._shift(balance))
        return cross_entropy(logits, targets) / (1.0 if plain else self.unit)

    def held_out_losses(self, logits: Array, targets: Array, *, balance: float = 0.0) -> Array:
        """The loss at the temperature that suits these logits best.

        A network goes on learning which class it is long after its probabilities have become too sure of
        themselves; the plain loss would stop it there.

        With ``balance`` the priors are added as in training: held-out rows have the classes' frequencies, so that
        bare logits, which leave those out, would seem to get worse the better they balance. The temperature does
        not act on the priors, which were counted, not learned.
        """
        chosen = (np.arange(len(targets)), targets)
        shift = self._shift(balance) if balance else 0.0
        scaled = (logits.astype(np.float64) * temperature + shift for temperature in INVERSE_TEMPERATURES)
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

    def target_array(self, targets: Sequence[Any] | Array) -> Array:
        """int64 class numbers."""
        return np.asarray(targets, dtype=np.int64)

    def to_json(self) -> dict[str, Any]:
        """Kind, class names, and the priors where they are known."""
        record: dict[str, Any] = {"kind": self.kind, "classes": list(self.classes)}
        return record if self.priors is None else record | {"priors": list(self.priors)}

    def _shift(self, balance: float) -> Array:
        """(c,): what is added to logits while training."""
        if self.priors is None:
            raise ValueError("loss.balance needs the classes' priors; Task.with_priors counts them")
        return np.asarray(balance * np.log(self.priors))
