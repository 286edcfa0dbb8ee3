"""The calibration game between predictor and guider features (L_g and L_d)."""

from __future__ import annotations

from typing import Literal

from torch import Tensor
from torch.nn import functional as F

__all__ = ["discrimination", "imitation"]


def imitation(fake_logits: Tensor) -> Tensor:
    """-log D(z~): the predictor's features should pass for the guider's (L_g).

    Args:
        fake_logits: (b,), the discriminator's log-odds on the predictor's features.

    Returns:
        (b,).
    """
    return F.softplus(-fake_logits)


def discrimination(
    real_logits: Tensor, fake_logits: Tensor, *, form: Literal["bounded", "printed"] = "bounded"
) -> Tensor:
    """The discriminator's loss L_d (Eq. D).

    Args:
        real_logits: (b,), log-odds on the guider's features.
        fake_logits: (b,), log-odds on the predictor's features.
        form: "bounded" is -log D(z) - log(1 - D(z~)); "printed" is -log D(z) + log D(z~), which has no
            lower bound: D(z~) -> 0 drives it to minus infinity.

    Returns:
        (b,).
    """
    real = F.softplus(-real_logits)
    if form == "bounded":
        return real + F.softplus(fake_logits)
    if form == "printed":
        return real - F.softplus(-fake_logits)
    raise ValueError(f"form {form!r} is unknown; choose 'bounded' or 'printed'")
