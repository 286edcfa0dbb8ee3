"""What makes a selection read as phrases (L_lm, its pre-training L_pre, and the fused lasso)."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from infocal.losses.reductions import masked_mean, masked_sum

__all__ = ["fused_lasso", "language_model_cost", "language_model_pretraining"]


def language_model_cost(
    selection: Tensor,
    scores: Tensor,
    mask: Tensor,
    *,
    form: Literal["centred", "printed"] = "centred",
    reduction: Literal["mean", "sum"] = "mean",
) -> Tensor:
    """-sum_i m_{i-1} log p_lm(m_i x_i | x_<i): the paper's L_lm (Eq. lm).

    The vector language model gives p_lm(m_i x_i | x_<i) = sigmoid(m_i s_i) with s_i = h_i' M e_i, so that a
    masked token has probability sigmoid(0) = 1/2. Position 0 has no predecessor and no term.

    Args:
        selection: (b, t), the mask m.
        scores: (b, t), the scores s of the unmasked tokens.
        mask: (b, t), True on real tokens.
        form: "printed" is the equation; every term of it is positive, so selecting nothing is its optimum.
            "centred" subtracts ln 2 per selected predecessor: leaving a run costs nothing, going on pays
            where the language model expects the next word and costs where it is surprised.
        reduction: "sum" over tokens as printed, or "mean" per token.

    Returns:
        (b,).
    """
    before = selection[:, :-1]
    cost = F.softplus(-selection[:, 1:] * scores[:, 1:])
    if form == "centred":
        cost = cost - math.log(2)
    elif form != "printed":
        raise ValueError(f"form {form!r} is unknown; choose 'centred' or 'printed'")
    total = masked_sum(before * cost, mask[:, 1:])
    return total if reduction == "sum" else total / mask.to(total.dtype).sum(dim=-1).clamp(min=1.0)


def language_model_pretraining(
    positive: Tensor, negative: Tensor, *, form: Literal["bounded", "printed"] = "bounded"
) -> Tensor:
    """Negative sampling for the vector language model: the paper's L_pre (Eq. pre).

    Args:
        positive: (...), scores h_i' M e_i of the words that follow.
        negative: (..., k), scores of k words drawn from the unigram distribution.
        form: "bounded" is -[log s(pos) + E log s(-neg)]; "printed" is -[log s(pos) - E log s(neg)], which
            has no lower bound.

    Returns:
        (...).
    """
    if form == "bounded":
        return F.softplus(-positive) + F.softplus(negative).mean(dim=-1)
    if form == "printed":
        return F.softplus(-positive) - F.softplus(-negative).mean(dim=-1)
    raise ValueError(f"form {form!r} is unknown; choose 'bounded' or 'printed'")


def fused_lasso(selection: Tensor, mask: Tensor) -> Tensor:
    """Mean of |m_i - m_{i-1}|: all boundaries cost the same (Lei et al. 2016; Bastings et al. 2019).

    Args:
        selection: (b, t), the mask or the probabilities.
        mask: (b, t), True on real tokens.

    Returns:
        (b,).
    """
    return masked_mean(torch.abs(selection[:, 1:] - selection[:, :-1]), mask[:, 1:])
