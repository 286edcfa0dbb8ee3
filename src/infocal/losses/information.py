"""How much the selection and the guider's features tell of the text (L_ib and L_mi)."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from infocal.losses.reductions import masked_mean, masked_sum

__all__ = ["guider_information", "selection_information"]


def selection_information(
    logits: Tensor, mask: Tensor, *, prior: float, reduction: Literal["mean", "sum"] = "mean"
) -> Tensor:
    """KL(p(z_i | x) || r) of each token's choice to a fixed prior: the paper's L_ib (Eq. ib).

    Args:
        logits: (b, t), log-odds of selecting each token.
        mask: (b, t), True on real tokens.
        prior: r, always the prior probability of SELECTING a token.
        reduction: "sum" over tokens as printed, or "mean" per token, which does not grow with the document.

    Returns:
        (b,), never negative.
    """
    if not 0.0 < prior < 1.0:
        raise ValueError(f"the prior of selecting a token lies between 0 and 1, got {prior}")
    probability = torch.sigmoid(logits)
    log_on, log_off = torch.nn.functional.logsigmoid(logits), torch.nn.functional.logsigmoid(-logits)
    divergence = probability * (log_on - math.log(prior)) + (1 - probability) * (log_off - math.log1p(-prior))
    return masked_sum(divergence, mask) if reduction == "sum" else masked_mean(divergence, mask)


def guider_information(mean: Tensor, deviation: Tensor, *, reduction: Literal["mean", "sum"] = "mean") -> Tensor:
    """0.5 (mu^2 + sigma^2 - 1 - 2 log sigma): the paper's L_mi (Eq. mi), KL of the features to N(0, 1).

    Args:
        mean: (b, d).
        deviation: (b, d), positive.
        reduction: over the d features; "mean" makes the weight independent of the width.

    Returns:
        (b,), never negative.
    """
    divergence = 0.5 * (mean**2 + deviation**2 - 1 - 2 * torch.log(deviation))
    return divergence.sum(dim=-1) if reduction == "sum" else divergence.mean(dim=-1)
