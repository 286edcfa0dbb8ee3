"""Calibrating each token's rank against the guider's own attribution (beyond the paper)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from infocal.losses.reductions import masked_mean

__all__ = ["effect", "smooth", "token_calibration"]


def token_calibration(logits: Tensor, attribution: Tensor, partner: Tensor, mask: Tensor) -> Tensor:
    """softplus(-sign(A_i - A_j) (l_i - l_j)): the selector ranks tokens as the guider uses them.

    It carries L_g's idea, that the guider tells the selector what it missed or over-picked, from one vector
    per document down to every token.

    Args:
        logits: (b, t), the selector's log-odds l.
        attribution: (b, t), how much the guider's answer hangs on each token, A; no gradient flows into it.
        partner: (b, t) int64, for each token i another real token j of the same document.
        mask: (b, t), True on real tokens.

    Returns:
        (b,), the mean over tokens; pairs of equal attribution count as zero.
    """
    attribution = attribution.detach()
    sign = torch.sign(attribution - attribution.gather(1, partner))
    margin = logits - logits.gather(1, partner)
    return masked_mean(F.softplus(-sign * margin) * sign.abs(), mask)


def effect(gradient: Tensor, vectors: Tensor, mask: Tensor) -> Tensor:
    """How much the output hangs on each token: what its removal changes, and the most that it could change.

    To first order, removing a token with vector x changes the output by g . x; no token whose vector is as long
    changes it by more than |g| |x|. The first alone is noisy (a word's vector may happen to be orthogonal to the
    gradient), the second knows nothing of the word but its length. Each is divided by its mean in the document
    before they are added, the first at half weight.

    Args:
        gradient: (b, t, d), of the output with respect to the token vectors.
        vectors: (b, t, d).
        mask: (b, t), True on real tokens.

    Returns:
        (b, t), not negative, 0 on padding.
    """

    def relative(values: Tensor) -> Tensor:
        return values * mask / masked_mean(values, mask).clamp(min=1e-12).unsqueeze(-1)

    bound = gradient.norm(dim=-1) * vectors.norm(dim=-1)
    return relative(bound) + 0.5 * relative((gradient * vectors).sum(dim=-1).abs())


def smooth(values: Tensor, mask: Tensor, *, window: int) -> Tensor:
    """Moving average over ``window`` tokens centred on each, over real tokens only.

    Args:
        values: (b, t).
        mask: (b, t), True on real tokens.
        window: odd number of tokens; 1 changes nothing.

    Returns:
        (b, t), 0 on padding.
    """
    if window < 1 or window % 2 == 0:
        raise ValueError(f"the window is an odd number of tokens, got {window}")
    real = mask.to(values.dtype)

    def pooled(inputs: Tensor) -> Tensor:
        return F.avg_pool1d(inputs.unsqueeze(1), window, stride=1, padding=window // 2).squeeze(1)

    return pooled(values * real) / pooled(real).clamp(min=1e-9) * real
