"""Holds the measured selection rate at the request, so that no weight has to be tuned."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["RateController"]


def _log_odds(rate: float) -> float:
    rate = min(max(rate, 1e-3), 1 - 1e-3)
    return math.log(rate / (1 - rate))


@dataclass
class RateController:
    """Integral control in log-odds: the offset by which all of the selector's log-odds are lowered.

    Lowering every log-odds by one lowers the log-odds of the rate by about one, so a gain well below 1
    converges without oscillation, whatever the losses do. With ``active`` False the offset stays 0 and the
    rate is left to the method's own price of a word, e.g. a pinned weight of the selection information.

    Attributes:
        target: the requested share of tokens.
        gain: how much of the measured error is corrected per step.
        active: whether the offset moves.
        offset: the present shift.
    """

    target: float
    gain: float
    active: bool = True
    offset: float = 0.0

    def update(self, selected: float, tokens: int) -> None:
        """Correct the offset by what one batch selected."""
        if self.active:
            self.offset += self.gain * (_log_odds(selected / tokens) - _log_odds(self.target))
