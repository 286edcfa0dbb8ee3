"""Learning from rows in which a human marked the evidence."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from infocal.losses.reductions import masked_mean

__all__ = ["rationale_supervision"]


def rationale_supervision(logits: Tensor, gold: Tensor, annotated: Tensor, mask: Tensor) -> Tensor:
    """Binary cross-entropy of the selector against the human's tokens, where there are any.

    Args:
        logits: (b, t), the selector's log-odds.
        gold: (b, t), 1 on the human's tokens.
        annotated: (b,), which documents a human marked.
        mask: (b, t), True on real tokens.

    Returns:
        (b,), 0 for documents that nobody marked.
    """
    loss = F.binary_cross_entropy_with_logits(logits, gold.to(logits.dtype), reduction="none")
    return masked_mean(loss, mask) * annotated.to(logits.dtype)
