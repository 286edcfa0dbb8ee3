"""What the players of class-wise rationalization want (Chang et al. 2019), besides telling rationales apart."""

from __future__ import annotations

import torch
from torch import Tensor

from infocal.losses.reductions import masked_sum

__all__ = ["doubt", "share_gap"]


def doubt(logits: Tensor) -> Tensor:
    """1 - d_t(Z): how little the discriminator takes a rationale for a factual one.

    Both generators of a class want it small. It is the linear choice of the paper's h_0 and h_1, up to a constant.

    Args:
        logits: (b,), the log-odds of d_t.

    Returns:
        (b,), between 0 and 1.
    """
    return torch.sigmoid(-logits)


def share_gap(selection: Tensor, mask: Tensor, classes: Tensor, *, share: float) -> Tensor:
    """|share of words that is selected - alpha|, of all texts of a batch that a class's generator reads.

    Args:
        selection: (b, t), the masks of the generators.
        mask: (b, t), True on real tokens.
        classes: (b,) int64, whose generator has read each document.
        share: alpha.

    Returns:
        (b,), the same value for all documents of a generator, since it belongs to all of them.
    """
    same = (classes.unsqueeze(1) == classes).to(selection.dtype)
    words = mask.to(selection.dtype).sum(dim=1)
    measured = (same @ masked_sum(selection, mask)) / (same @ words).clamp(min=1.0)
    return torch.abs(measured - share)
