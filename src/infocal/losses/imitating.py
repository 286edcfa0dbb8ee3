"""How far a model is from another model's answer (what L2X's approximator minimises)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["answer_cross_entropy", "answer_error"]


def answer_cross_entropy(logits: Tensor, answers: Tensor) -> Tensor:
    """-sum_y p_m(y | x) log q(y | x_S): the expectation that L2X bounds the mutual information with.

    Args:
        logits: (b, c), the approximator's output q on the selected words.
        answers: (b, c), the output p_m of the model being explained; no gradient flows into it.

    Returns:
        (b,).
    """
    return -(torch.softmax(answers.detach(), dim=-1) * F.log_softmax(logits, dim=-1)).sum(dim=-1)


def answer_error(logits: Tensor, answers: Tensor) -> Tensor:
    """(sigmoid(q) - sigmoid(p_m))^2, the form for scores.

    Args:
        logits: (b, 1), the approximator's output on the selected words.
        answers: (b, 1), the output of the model being explained; no gradient flows into it.

    Returns:
        (b,).
    """
    return ((torch.sigmoid(logits) - torch.sigmoid(answers.detach())) ** 2).squeeze(-1)
