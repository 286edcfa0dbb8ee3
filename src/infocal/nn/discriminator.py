"""Tells the predictor's feature vector from the guider's."""

from __future__ import annotations

from torch import Tensor, nn

__all__ = ["Discriminator"]


class Discriminator(nn.Module):
    """D of the paper: a feature vector in, the log-odds that it is the guider's out.

    Args:
        feature_width: d of the feature vectors.
        hidden_width: width of its two hidden layers.
    """

    def __init__(self, *, feature_width: int, hidden_width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(feature_width, hidden_width),
            nn.LeakyReLU(0.2),
            nn.Linear(hidden_width, hidden_width),
            nn.LeakyReLU(0.2),
            nn.Linear(hidden_width, 1),
        )

    def forward(self, features: Tensor) -> Tensor:
        """(b, d) -> (b,)."""
        logits: Tensor = self.layers(features)
        return logits.squeeze(-1)
