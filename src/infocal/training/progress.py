"""Where a run stands, and how it ended."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from infocal.methods.base import Phase

__all__ = ["Progress", "Result"]


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

    def to_json(self) -> dict[str, Any]:
        """Plain data that ``Progress.from_json`` reads back; JSON has no infinity."""
        return {**self.__dict__, "best": None if math.isinf(self.best) else self.best}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Progress:
        """Read back what :meth:`to_json` gave."""
        return cls(**{**values, "best": math.inf if values["best"] is None else values["best"]})
