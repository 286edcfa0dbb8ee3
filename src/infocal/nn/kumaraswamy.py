"""Gates that are exactly 0, exactly 1 or between, and still differentiable (HardKuma, Bastings et al. 2019)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from infocal.nn.dropout import Dropout
from infocal.nn.encoders import build_encoder

__all__ = ["HardKumaraswamy", "KumaraswamySelector"]

LEAST, GREATEST = 1e-6, 100.0
"""The range of a and b."""
TINY = -15.0
"""Below this x, log(1 - e^x) = -e^x and log(1 - e^(-e^x)) = x in single precision."""
START = 0.1
"""The a of gates that are to be mostly shut at the start: with it the open ones are spread from 0 to 1."""
NODES, WEIGHTS = (torch.from_numpy(part) for part in np.polynomial.legendre.leggauss(64))


def _log1mexp(x: Tensor) -> Tensor:
    """log(1 - e^x) for x < 0; each branch sees only what it is exact for, so that its gradient is finite too."""
    near = x > -math.log(2)
    by_difference = torch.log(-torch.expm1(torch.where(near, x, -1.0)))
    by_sum = torch.log1p(-torch.exp(torch.where(near, -1.0, x)))
    return torch.where(near, by_difference, by_sum)


def _log_minus_log1mexp(x: Tensor) -> Tensor:
    """log(-log(1 - e^x)) for x < 0, also where e^x is too small to be a number."""
    tiny = x < TINY
    return torch.where(tiny, x, torch.log(-_log1mexp(torch.where(tiny, -1.0, x))))


@dataclass(frozen=True, slots=True)
class HardKumaraswamy:
    """A Kumaraswamy variable, stretched beyond [0, 1] and cut back: it has mass at 0 and at 1.

    K has the distribution function F(k) = 1 - (1 - k^a)^b on (0, 1); S = K (1 + 2 m) - m lies in (-m, 1 + m), and
    the gate is z = min(1, max(0, S)).

    Attributes:
        a: (...), positive.
        b: (...), positive.
        stretch: m.
    """

    a: Tensor
    b: Tensor
    stretch: float

    def sample(self, draws: Tensor) -> Tensor:
        """Gates through the inverse of F, differentiable in a and b wherever they are between 0 and 1.

        Args:
            draws: (...), uniform in [0, 1).
        """
        log_draws = torch.log(draws.clamp(1e-6, 1 - 1e-6))
        inner = torch.exp(_log1mexp(log_draws / self.b) / self.a)
        return torch.clamp(inner * (1 + 2 * self.stretch) - self.stretch, 0.0, 1.0)

    def log_density(self, values: Tensor) -> Tensor:
        """(...): log of the density at ``values`` (...) strictly between 0 and 1."""
        log_inner = torch.log(self._inner(values))
        shape = (self.a - 1) * log_inner + (self.b - 1) * _log1mexp(self.a * log_inner)
        return torch.log(self.a) + torch.log(self.b) + shape - math.log(1 + 2 * self.stretch)

    def log_zero(self) -> Tensor:
        """(...): log P(z = 0)."""
        hazard = self._log_hazard(0.0)
        tiny = hazard < TINY
        return torch.where(tiny, hazard, _log1mexp(-torch.exp(torch.where(tiny, 0.0, hazard))))

    def log_nonzero(self) -> Tensor:
        """(...): log P(z > 0)."""
        return -torch.exp(self._log_hazard(0.0))

    def log_one(self) -> Tensor:
        """(...): log P(z = 1)."""
        return -torch.exp(self._log_hazard(1.0))

    def log_odds(self) -> Tensor:
        """(...): log P(z > 0) - log P(z = 0)."""
        return self.log_nonzero() - self.log_zero()

    def mean(self) -> Tensor:
        """(...): E z, which is the integral of P(z > s) over s from 0 to 1, by Gauss-Legendre quadrature.

        In closed form it is an incomplete beta function, which torch lacks.
        """
        nodes, weights = (part.to(self.a) for part in (NODES, WEIGHTS))
        log_inner = torch.log(self._inner((nodes + 1) / 2))
        above = torch.exp(self.b.unsqueeze(-1) * _log1mexp(self.a.unsqueeze(-1) * log_inner))
        return above @ weights / 2

    def deterministic(self) -> Tensor:
        """(...): 0, 1 or the mean, by which of zero, one and something between is likeliest."""
        zero, one = torch.exp(self.log_zero()), torch.exp(self.log_one())
        between = 1 - zero - one
        ends = (one > zero).to(zero.dtype)
        return torch.where(between > torch.maximum(zero, one), self.mean(), ends)

    def _inner(self, values: Tensor) -> Tensor:
        """The k that is stretched to ``values``."""
        return (values + self.stretch) / (1 + 2 * self.stretch)

    def _log_hazard(self, value: float) -> Tensor:
        """log(-log P(S > value)): in this form probabilities near 0 and near 1 both keep their digits."""
        inner = (value + self.stretch) / (1 + 2 * self.stretch)
        return torch.log(self.b) + _log_minus_log1mexp(self.a * math.log(inner))


class KumaraswamySelector(nn.Module):
    """Reads the full text and gives each token a gate.

    Args:
        encoder: "rcnn", "lstm" or "gru".
        input_width: d of the token vectors.
        hidden_width: per direction.
        layers: of the encoder.
        dropout: between layers and on the states.
        stretch: how far the gates' support goes beyond 0 and 1.
        open_share: how many gates are open at the start, about; None leaves it to chance (mostly open).
    """

    def __init__(
        self,
        *,
        encoder: str,
        input_width: int,
        hidden_width: int,
        layers: int,
        dropout: float,
        stretch: float,
        open_share: float | None = None,
    ) -> None:
        super().__init__()
        self.encoder = build_encoder(
            encoder, input_width=input_width, hidden_width=hidden_width, layers=layers, dropout=dropout
        )
        self.dropout = Dropout(dropout)
        self.shape = nn.Linear(self.encoder.output_width, 2)
        self.stretch = stretch
        if open_share is not None:
            shapes = torch.tensor([START, _open_shape(START, open_share, stretch)])
            with torch.no_grad():
                self.shape.bias.copy_(torch.log(torch.expm1(shapes)))  # what softplus makes these of

    def forward(self, inputs: Tensor, mask: Tensor) -> HardKumaraswamy:
        """Gates (b, t) for token vectors (b, t, d) with ``mask`` (b, t), True on real tokens."""
        shapes = F.softplus(self.shape(self.dropout(self.encoder(inputs, mask)))).clamp(LEAST, GREATEST)
        a, b = shapes.unbind(-1)
        return HardKumaraswamy(a, b, self.stretch)


def _open_shape(a: float, share: float, stretch: float) -> float:
    """The b with which, beside ``a``, a gate is open with probability ``share``: (1 - k^a)^b, k where 0 begins."""
    edge = stretch / (1 + 2 * stretch)
    return math.log(share) / math.log1p(-(edge**a))
