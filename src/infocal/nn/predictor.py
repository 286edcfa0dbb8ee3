"""From token vectors straight to an output: the network that the rivals of InfoCal read with."""

from __future__ import annotations

from torch import Tensor, nn

from infocal.nn.dropout import Dropout
from infocal.nn.encoders import build_encoder
from infocal.nn.reader import attend

__all__ = ["Predictor"]


class Predictor(nn.Module):
    """Encoder, attention, linear layer; the same bricks as `infocal.nn.reader.Reader`, without its Gaussian.

    Args:
        encoder: "rcnn", "lstm" or "gru".
        input_width: d of the token vectors.
        hidden_width: per direction.
        layers: of the encoder.
        dropout: between layers and on the pooled vector.
        outputs: c.
    """

    def __init__(
        self, *, encoder: str, input_width: int, hidden_width: int, layers: int, dropout: float, outputs: int
    ) -> None:
        super().__init__()
        self.encoder = build_encoder(
            encoder, input_width=input_width, hidden_width=hidden_width, layers=layers, dropout=dropout
        )
        self.attention = nn.Linear(self.encoder.output_width, 1)
        self.dropout = Dropout(dropout)
        self.head = nn.Linear(self.encoder.output_width, outputs)

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """Read a document.

        Args:
            inputs: (b, t, d), zeros where masked.
            mask: (b, t), True on real tokens.

        Returns:
            (b, c).
        """
        return self.read(inputs, mask)[0]

    def read(self, inputs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The output (b, c), and the attention's scores (b, t) before their softmax."""
        states = self.encoder(inputs, mask)
        scores: Tensor = self.attention(states).squeeze(-1)
        logits: Tensor = self.head(self.dropout(attend(states, scores, mask)))
        return logits, scores
