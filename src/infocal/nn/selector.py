"""Reads the full text and says for each token how much it should be selected."""

from __future__ import annotations

from torch import Tensor, nn

from infocal.losses.reductions import masked_mean
from infocal.nn.dropout import Dropout
from infocal.nn.encoders import build_encoder

__all__ = ["Selector"]


class Selector(nn.Module):
    """Sel of the paper: an encoder and a linear layer per token.

    The scores of a document are relative to their mean. Without that, a threshold that is the same for all
    documents gives whole documents too much or too little: no objective compares tokens of different ones.
    Where a cost per word, not a controller, decides the share, the scores must be free to move together instead.

    Args:
        encoder: "rcnn", "lstm" or "gru".
        input_width: d of the token vectors.
        hidden_width: per direction.
        layers: of the encoder.
        dropout: between layers and on the states.
        centred: whether the scores are relative to their document's mean.
        outputs: k, how many selections it makes of the same text.
    """

    def __init__(
        self,
        *,
        encoder: str,
        input_width: int,
        hidden_width: int,
        layers: int,
        dropout: float,
        centred: bool = True,
        outputs: int = 1,
    ) -> None:
        super().__init__()
        self.centred = centred
        self.encoder = build_encoder(
            encoder, input_width=input_width, hidden_width=hidden_width, layers=layers, dropout=dropout
        )
        self.dropout = Dropout(dropout)
        self.score = nn.Linear(self.encoder.output_width, outputs)

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """Log-odds of selecting each token, up to an offset that is the same for all documents.

        Args:
            inputs: (b, t, d).
            mask: (b, t), True on real tokens.

        Returns:
            (b, t); (k, b, t) if it makes several selections.
        """
        return self.read(inputs, mask)[0]

    def read(self, inputs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The log-odds (b, t) or (k, b, t), and the states (b, t, d) that they were made from."""
        states: Tensor = self.dropout(self.encoder(inputs, mask))
        scores: Tensor = self.score(states)
        scores = scores.squeeze(-1) if scores.shape[-1] == 1 else scores.permute(2, 0, 1)
        if self.centred:
            scores = scores - masked_mean(scores, mask).unsqueeze(-1)
        return scores, states
