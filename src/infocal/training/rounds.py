"""Which round is kept: held-out losses of one against those of the best so far."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

__all__ = ["Change", "change_of"]

LEAST_LOSS = 0.05
"""Changes of a task with a smaller held-out loss are measured by this; a guess that knows nothing has 1."""


@dataclass(frozen=True)
class Change:
    """How a round's held-out losses differ from those of another, as a share of the other's.

    Attributes:
        mean: over documents and tasks; below 0 the round is better. Not a number if the losses are none.
        error: standard error of the mean, by the differences of single documents.
    """

    mean: float
    error: float

    @property
    def better(self) -> bool:
        """Whether losses fell."""
        return self.mean < 0

    @property
    def unclear(self) -> bool:
        """Whether they are worse by no more than one standard error."""
        return self.mean <= self.error


def change_of(losses: Tensor, reference: Tensor) -> Change:
    """Compare two rounds by how much of its loss each task has gained or lost.

    So a task which is hard to learn, whose loss is large and moves with every round, does not decide for all of
    them; nor does one that has hardly anything to lose any more.

    Args:
        losses: (n,), or (n, k) of several tasks.
        reference: of the same shape, the losses of the same documents in the other round.
    """
    usual = reference.mean(dim=0)
    scale = usual.clamp(min=LEAST_LOSS)
    differences = ((losses - reference) / scale).reshape(len(losses), -1).mean(dim=1)
    mean = float(((losses.mean(dim=0) - usual) / scale).mean())
    return Change(mean, float(differences.std(correction=0)) / math.sqrt(len(losses)))
