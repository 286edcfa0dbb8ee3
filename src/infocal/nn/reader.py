"""From token vectors to a document's feature vector: the network that predictor and guider share."""

from __future__ import annotations

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from infocal.nn.dropout import Dropout
from infocal.nn.encoders import build_encoder
from infocal.types import Features

__all__ = ["DEVIATION_FLOOR", "Reader", "attend"]

DEVIATION_FLOOR = 1e-3
"""Keeps log sigma of L_mi finite; the paper's linear sigma may be zero or negative."""


def attend(states: Tensor, scores: Tensor, mask: Tensor) -> Tensor:
    """Average of the states, weighted by a softmax of the scores over the real tokens.

    Args:
        states: (b, t, d).
        scores: (b, t).
        mask: (b, t), True on real tokens, at least one per document.

    Returns:
        (b, d).
    """
    weights = torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)
    return torch.einsum("bt,btd->bd", weights, states)


class Reader(nn.Module):
    """Pred and Pred_G of the paper: encoder, attention, Gaussian heads.

    Attention pools because the gradient of its output names the words that matter better than that of a
    maximum or of the last states does, and the selector is calibrated against that gradient.

    Of several tasks each has an attention of its own, and with it a feature vector of its own: a penalty hangs on
    other words than a charge does. The encoder and the Gaussian heads are theirs together.

    Masked token vectors come in as zeros; with them fixed nothing of the unselected words can come out.

    Args:
        encoder: "rcnn", "lstm" or "gru".
        input_width: d of the token vectors.
        hidden_width: per direction.
        feature_width: of the feature vector.
        layers: of the encoder.
        dropout: between layers and on the pooled vector.
        tasks: k, how many feature vectors it makes of the same text.
    """

    def __init__(
        self,
        *,
        encoder: str,
        input_width: int,
        hidden_width: int,
        feature_width: int,
        layers: int,
        dropout: float,
        tasks: int = 1,
    ) -> None:
        super().__init__()
        self.encoder = build_encoder(
            encoder, input_width=input_width, hidden_width=hidden_width, layers=layers, dropout=dropout
        )
        self.attention = nn.Linear(self.encoder.output_width, tasks)
        self.mean = nn.Linear(self.encoder.output_width, feature_width)
        self.deviation = nn.Linear(self.encoder.output_width, feature_width)
        self.dropout = Dropout(dropout)
        nn.init.constant_(self.deviation.bias, -1.0)

    def forward(self, inputs: Tensor, mask: Tensor, *, generator: Generator | None = None) -> Features:
        """Read a document.

        Args:
            inputs: (b, t, d), zeros where masked.
            mask: (b, t), True on real tokens.
            generator: draws the sample in training; without one the sample is the mean.

        Returns:
            Vectors (b, d); (b, k, d) of several tasks.
        """
        states = self.encoder(inputs, mask)
        pooled = self.dropout(self._pool(states, self.attention(states), mask))
        mean = self.mean(pooled)
        deviation = F.softplus(self.deviation(pooled)) + DEVIATION_FLOOR
        if generator is None:
            return Features(mean, deviation, mean)
        noise = torch.randn(mean.shape, generator=generator, dtype=mean.dtype, device=mean.device)
        return Features(mean, deviation, mean + deviation * noise)

    def _pool(self, states: Tensor, scores: Tensor, mask: Tensor) -> Tensor:
        """(b, t, w), (b, t, k) -> (b, w), or (b, k, w)."""
        if scores.shape[-1] == 1:
            return attend(states, scores.squeeze(-1), mask)
        return torch.stack([attend(states, own, mask) for own in scores.unbind(-1)], dim=1)
