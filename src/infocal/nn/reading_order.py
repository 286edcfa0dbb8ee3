"""Which token is read when: both directions of documents that are padded at the right."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["ReadingOrder", "reversed_positions"]

ROWS_PER_BLOCK = 1024
"""Tokens projected at once: enough rows for a full-speed matrix product, few enough to stay in the cache."""


def reversed_positions(mask: Tensor) -> Tensor:
    """Where each token stands when its document is read from its last word to its first.

    The table is its own inverse, and padding stays where it is.

    Args:
        mask: (b, t) bool, True on real tokens, which come first.

    Returns:
        (b, t) int64.
    """
    positions = torch.arange(mask.shape[1], device=mask.device).expand(mask.shape)
    return torch.where(mask, mask.sum(1, keepdim=True) - 1 - positions, positions)


@dataclass(frozen=True, slots=True)
class ReadingOrder:
    """Which token is read at which step, in both directions.

    Attributes:
        rows: (2, t, b) int64, the row of ``inputs.view(b * t, d)`` that is read at a step.
        states: (b, t, 2) int64, the row of the states (2, t + 1, b, h) that belongs to a token; row 0, which
            is the zero state, on padding.
        real: (t, b) bool, whether a step reads a real token.
        shortest: the length of the shortest document.
    """

    rows: Tensor
    states: Tensor
    real: Tensor
    shortest: int

    @classmethod
    def from_mask(cls, mask: Tensor) -> ReadingOrder:
        """The order for documents whose real tokens are True in ``mask`` (b, t)."""
        documents, tokens = mask.shape
        device = mask.device
        positions = torch.arange(tokens, device=device).expand(mask.shape)
        document = torch.arange(documents, device=device)
        steps = torch.stack((positions, reversed_positions(mask)), 2)
        blocks = torch.arange(2, device=device) * (tokens + 1) + steps + 1
        states = blocks * documents + document.view(-1, 1, 1)
        rows = (steps.permute(2, 1, 0) + document * tokens).contiguous()
        shortest = int(mask.sum(1).min()) if documents else tokens
        return cls(rows, states.masked_fill(~mask.unsqueeze(2), 0), mask.t(), shortest)

    def blocks(self) -> list[tuple[int, int]]:
        """The steps in blocks [start, end) of about ``ROWS_PER_BLOCK`` tokens."""
        steps, documents = self.real.shape
        size = max(1, ROWS_PER_BLOCK // max(1, documents))
        return [(start, min(start + size, steps)) for start in range(0, steps, size)]
