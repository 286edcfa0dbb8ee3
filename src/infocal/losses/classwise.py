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


def share_gap(selection: Tensor, mask: Tensor, *, share: float) -> Tensor:
    """|share of the batch's words that is selected - alpha|: the batch as a whole is held to the target.

    Args:
        selection: (b, t), the mask of a generator.
        mask: (b, t), True on real tokens.
        share: alpha.

    Returns:
        (b,), the same value for each document, since it belongs to all of them.
    """
    measured = masked_sum(selection, mask).sum() / mask.to(selection.dtype).sum().clamp(min=1.0)
    return torch.abs(measured - share).expand(len(selection))
