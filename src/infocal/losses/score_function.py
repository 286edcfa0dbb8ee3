"""Learning from choices that cannot be differentiated: the score function, or REINFORCE (Williams 1992)."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from infocal.losses.reductions import masked_sum

__all__ = ["log_probability", "score_function"]


def log_probability(logits: Tensor, choices: Tensor, mask: Tensor) -> Tensor:
    """How likely the choices were that were made: log p(z | x), the sum over the words of a document.

    Args:
        logits: (b, t), the log-odds that each choice was made with.
        choices: (b, t), 0 or 1.
        mask: (b, t), True on real tokens.

    Returns:
        (b,), never positive.
    """
    values = -F.binary_cross_entropy_with_logits(logits, choices.detach(), reduction="none")
    return masked_sum(values, mask)


def score_function(cost: Tensor, log_probability: Tensor, *, baseline: Tensor | float = 0.0) -> Tensor:
    """(cost - baseline) log p(z | x), whose gradient is in expectation that of the expected cost.

    Lei et al. 2016 (baseline 0), and the actor of Yoon et al. 2019 (the baseline is another network's
    loss). Only the gradient means something: the value itself may rise while the cost falls.

    Args:
        cost: (b,), what one sample of the choices cost; no gradient flows into it.
        log_probability: (b,), as `log_probability` gives it.
        baseline: (b,) or a number, which must not depend on the choices; no gradient flows into it.

    Returns:
        (b,).
    """
    return (cost - baseline).detach() * log_probability
