"""Where a run stands, and how it ended."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from infocal.methods.base import Phase, Step

__all__ = ["Progress", "Result"]

LOSS = "loss."
"""What the names of summed objectives begin with."""


@dataclass(frozen=True)
class Result:
    """How a run ended.

    Attributes:
        history: one record per round.
        seconds: spent in training, over all resumed parts.
        interrupted: whether the user stopped it.
        trained: whether the selector has been trained at all.
    """

    history: list[dict[str, Any]]
    seconds: float
    interrupted: bool
    trained: bool


@dataclass
class Progress:
    """Where a run stands; everything here is in the checkpoint."""

    phase: Phase = "warm_up"
    round: int = 0
    round_step: int = 0
    step: int = 0
    data_pass: int = 0
    position: int = 0
    best: float = math.inf
    stale: int = 0
    followed: int = 0
    seconds: float = 0.0
    done: bool = False
    history: list[dict[str, Any]] = field(default_factory=list)
    sums: dict[str, float] = field(default_factory=dict)

    def count(self, step: Step, documents: int) -> None:
        """Add what a step of the present round found."""
        found = {"documents": documents, "tokens": step.tokens, "selected": fmean(step.counts or (0.0,))}
        found |= {f"{LOSS}{name}": float(value.detach().sum()) for name, value in step.objectives.items()}
        for name, value in found.items():
            self.sums[name] = self.sums.get(name, 0.0) + value

    @property
    def rate(self) -> float:
        """The share of words that the present round has selected so far."""
        return self.sums["selected"] / self.sums["tokens"]

    def mean_losses(self) -> dict[str, float]:
        """Objective -> its mean over the documents of the present round so far."""
        losses = {name.removeprefix(LOSS): value for name, value in self.sums.items() if name.startswith(LOSS)}
        return {name: value / self.sums["documents"] for name, value in losses.items()}

    def to_json(self) -> dict[str, Any]:
        """Plain data that ``Progress.from_json`` reads back; JSON has no infinity."""
        return {**self.__dict__, "best": None if math.isinf(self.best) else self.best}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Progress:
        """Read back what :meth:`to_json` gave."""
        return cls(**{**values, "best": math.inf if values["best"] is None else values["best"]})
