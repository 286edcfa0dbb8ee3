"""The one masked mean and the one weighted sum of the package."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

__all__ = ["masked_mean", "masked_sum", "weighted_sum"]


def masked_sum(values: Tensor, mask: Tensor) -> Tensor:
    """Sum over real tokens.

    Args:
        values: (b, t).
        mask: (b, t), True or 1 on the tokens that count.

    Returns:
        (b,).
    """
    return (values * mask.to(values.dtype)).sum(dim=-1)


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Mean over real tokens; 0 for a document in which none counts.

    Args:
        values: (b, t).
        mask: (b, t), True or 1 on the tokens that count.

    Returns:
        (b,).
    """
    return masked_sum(values, mask) / mask.to(values.dtype).sum(dim=-1).clamp(min=1.0)


def weighted_sum(objectives: Mapping[str, Tensor], weights: Mapping[str, float]) -> Tensor:
    """The scalar that a player minimises: the weighted batch means of its objectives (Eq. G, J_total).

    Args:
        objectives: name -> (b,), unreduced.
        weights: name -> weight; every objective must have one.
    """
    missing = sorted(set(objectives) - set(weights))
    if missing:
        raise ValueError(f"no weight for {missing}; weights are known for {sorted(weights)}")
    if not objectives:
        raise ValueError("a player needs at least one objective")
    return torch.stack([weights[name] * value.mean() for name, value in objectives.items()]).sum()
