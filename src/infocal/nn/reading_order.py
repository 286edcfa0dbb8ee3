"""In which order documents that are padded at the right are read from their end."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["reversed_positions"]


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
