"""From log-odds to binary masks: a gate samples, decides deterministically, and gives a probability."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Generator, Tensor

__all__ = [
    "binary_gumbel",
    "positional_gumbel",
    "sample_gate",
    "straight_through",
    "subset_gumbel",
    "subset_sizes",
]


def _uniform(like: Tensor, generator: Generator | None) -> Tensor:
    noise = torch.rand(like.shape, generator=generator, dtype=like.dtype, device=like.device)
    return noise.clamp(1e-6, 1 - 1e-6)


def binary_gumbel(logits: Tensor, *, temperature: float, noise: float, generator: Generator | None) -> Tensor:
    """Each token's own two-way Gumbel (concrete) choice, hard going forward, relaxed going backward.

    The difference of two Gumbel variables is logistic, so one uniform draw per token is enough.

    Args:
        logits: (b, t), log-odds of selecting.
        temperature: tau of the relaxation that the gradient sees.
        noise: scale of the logistic noise; 1 samples with the stated probability, 0 is deterministic.
        generator: the source of randomness.

    Returns:
        (b, t), exactly 0 or 1 in value (straight-through).
    """
    uniform = _uniform(logits, generator)
    return straight_through(logits + noise * (torch.log(uniform) - torch.log1p(-uniform)), temperature=temperature)


def straight_through(logits: Tensor, *, temperature: float) -> Tensor:
    """The sign of the log-odds going forward, their relaxation going backward: a gate without noise.

    Args:
        logits: (b, t), log-odds of selecting.
        temperature: tau of the relaxation that the gradient sees.

    Returns:
        (b, t), exactly 0 or 1 in value.
    """
    relaxed = torch.sigmoid(logits / temperature)
    hard = (logits > 0).to(logits.dtype)
    # (relaxed - relaxed.detach()) is exactly 0 in value, so the mask stays exactly 0 or 1.
    return hard + (relaxed - relaxed.detach())


def positional_gumbel(logits: Tensor, mask: Tensor, *, temperature: float, generator: Generator | None) -> Tensor:
    """The mask as printed (Eq. maski): a softmax over the positions of (log p_i + Gumbel noise) / tau.

    Its values sum to 1 over a document and are never exactly 0: an option for study, not for use.

    Args:
        logits: (b, t), log-odds of selecting.
        mask: (b, t), True on real tokens.
        temperature: tau.
        generator: the source of randomness.

    Returns:
        (b, t).
    """
    gumbel = -torch.log(-torch.log(_uniform(logits, generator)))
    scores = (torch.nn.functional.logsigmoid(logits) + gumbel) / temperature
    return torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)


def sample_gate(
    logits: Tensor,
    mask: Tensor,
    *,
    relaxation: Literal["binary", "positional"],
    temperature: float,
    noise: float,
    generator: Generator | None,
) -> Tensor:
    """The training mask of the named relaxation, 0 on padding.

    Args:
        logits: (b, t), log-odds of selecting.
        mask: (b, t), True on real tokens.
        relaxation: "binary" (default of the package) or "positional" (as printed).
        temperature: tau.
        noise: scale of the noise of the binary gate.
        generator: the source of randomness.

    Returns:
        (b, t).
    """
    if relaxation == "positional":
        return positional_gumbel(logits, mask, temperature=temperature, generator=generator)
    if relaxation != "binary":
        raise ValueError(f"relaxation {relaxation!r} is unknown; choose 'binary' or 'positional'")
    gate = binary_gumbel(logits, temperature=temperature, noise=noise, generator=generator)
    return gate * mask.to(gate.dtype)


def subset_sizes(mask: Tensor, *, share: float) -> Tensor:
    """The number of words k = max(1, round(share * tokens)) of each document, as decoders count.

    Args:
        mask: (b, t), True on real tokens.
        share: of the words, between 0 and 1.

    Returns:
        (b,) int64.
    """
    return (share * mask.sum(dim=1).double()).round().long().clamp(min=1)


def subset_gumbel(
    logits: Tensor, mask: Tensor, sizes: Tensor, *, temperature: float, generator: Generator | None
) -> Tensor:
    """A relaxed choice of k tokens: k Gumbel-softmax samples over the tokens, the largest value of each token.

    The gate of L2X (Chen et al. 2018). The samples are independent, so that one token may be drawn twice: the
    values of a document sum to k at most. All documents draw as many samples as the largest k asks for, and the
    surplus is left out; that takes b * k * t numbers, about a million for a training batch of long texts.

    Args:
        logits: (b, t), the tokens' scores.
        mask: (b, t), True on real tokens, at least one per document.
        sizes: (b,) int64, k of each document.
        temperature: tau.
        generator: the source of randomness.

    Returns:
        (b, t), between 0 and 1, 0 on padding.
    """
    most = int(sizes.max())
    scores = logits.masked_fill(~mask, float("-inf")).unsqueeze(1).expand(-1, most, -1)
    gumbel = -torch.log(-torch.log(_uniform(scores, generator)))
    samples = torch.softmax((scores + gumbel) / temperature, dim=-1)
    surplus = torch.arange(most, device=sizes.device) >= sizes.unsqueeze(1)
    return samples.masked_fill(surplus.unsqueeze(-1), 0.0).amax(dim=1)
