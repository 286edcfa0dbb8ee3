"""Holding an average at a wanted value by a Lagrange multiplier (Bastings et al. 2019)."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["constraint", "next_multiplier"]


def constraint(values: Tensor, multiplier: Tensor, *, target: float) -> Tensor:
    """A constrained quantity as a part of the loss: lambda (C - r).

    Args:
        values: (b,), the quantity C of each document.
        multiplier: (), lambda; no gradient flows into it.
        target: r.

    Returns:
        (b,).
    """
    return multiplier.detach() * (values - target)


def next_multiplier(multiplier: Tensor, excess: Tensor, *, rate: float, limits: tuple[float, float]) -> Tensor:
    """The multiplier after a batch: it grows while the quantity is above its target.

    lambda exp(rate * excess), so that it stays positive and moves by a factor, not by a step.

    Args:
        multiplier: (), lambda, positive.
        excess: (), how far the quantity is above its target, averaged over the last batches.
        rate: how fast lambda follows.
        limits: the least and the greatest lambda.

    Returns:
        ().
    """
    least, greatest = limits
    return (multiplier * torch.exp(rate * excess)).clamp(least, greatest).detach()
