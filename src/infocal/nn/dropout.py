"""Dropout whose random numbers cost little: on a processor, drawing them is what dropout costs."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["Dropout"]

LEVELS = 2**16


class Dropout(nn.Module):
    """As `torch.nn.Dropout`, with 16 random bits to a value, of which one draw of 64 gives four.

    Args:
        p: the share of values dropped in training, to 1 / 65,536; at least 0 and below 1.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"the share of values to drop is {p}; allowed: from 0 to below 1")
        self.p = p
        self._dropped = min(round(p * LEVELS), LEVELS - 1)

    def forward(self, values: Tensor) -> Tensor:
        """Values of any shape, some of them zero and the others larger by as much, on average."""
        if not self.training or not self._dropped:
            return values
        count = values.numel()
        draws = torch.empty(-(-count // 4), dtype=torch.int64, device=values.device).random_(-(2**63), None)
        kept = draws.view(torch.int16)[:count].view(values.shape) >= self._dropped - LEVELS // 2
        return values * (kept * (LEVELS / (LEVELS - self._dropped)))

    def extra_repr(self) -> str:
        """What `repr` shows."""
        return f"p={self.p}"
