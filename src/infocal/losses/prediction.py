"""How wrong a prediction is (L_sp and L_guide)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["cross_entropy", "squared_error"]


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """-log p(y | z) under a softmax (Eq. lsp and Eq. full, one sample of the expectation).

    Args:
        logits: (b, c).
        targets: (b,) int64.

    Returns:
        (b,).
    """
    return F.cross_entropy(logits, targets, reduction="none")


def squared_error(logits: Tensor, targets: Tensor) -> Tensor:
    """(sigmoid(logit) - y)^2, the regression form of the same losses (paper, appendix, Beer Reviews).

    Args:
        logits: (b, 1).
        targets: (b,) in [0, 1].

    Returns:
        (b,).
    """
    if logits.dim() != 2 or logits.shape[1] != 1:
        raise ValueError(f"a score has one output, got logits of shape {tuple(logits.shape)}")
    return (torch.sigmoid(logits[:, 0]) - targets) ** 2
