"""Reads the full text and says for each token how much it speaks for a given class."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from infocal.losses.reductions import masked_mean
from infocal.nn.dropout import Dropout
from infocal.nn.encoders import build_encoder

__all__ = ["ClasswiseSelector"]


class ClasswiseSelector(nn.Module):
    """The selectors of all classes: one encoder, and per class a linear layer and an offset.

    As in `infocal.nn.selector.Selector` the scores of a document are relative to their mean; the offset of the
    class is what lets a penalty on the share of selected words move that share.

    Args:
        encoder: "rcnn", "lstm" or "gru".
        input_width: d of the token vectors.
        hidden_width: per direction.
        layers: of the encoder.
        dropout: between layers and on the states.
        classes: c.
    """

    def __init__(
        self, *, encoder: str, input_width: int, hidden_width: int, layers: int, dropout: float, classes: int
    ) -> None:
        super().__init__()
        self.encoder = build_encoder(
            encoder, input_width=input_width, hidden_width=hidden_width, layers=layers, dropout=dropout
        )
        self.dropout = Dropout(dropout)
        self.score = nn.Linear(self.encoder.output_width, classes, bias=False)
        self.offset = nn.Parameter(torch.zeros(classes))

    def forward(self, inputs: Tensor, mask: Tensor, classes: Tensor) -> Tensor:
        """Log-odds of selecting each token for the class that is asked for.

        Args:
            inputs: (b, t, d).
            mask: (b, t), True on real tokens.
            classes: (b,) int64, one per document.

        Returns:
            (b, t).
        """
        states = self.dropout(self.encoder(inputs, mask))
        scores = torch.einsum("btd,bd->bt", states, self.score.weight[classes])
        return scores - masked_mean(scores, mask).unsqueeze(-1) + self.offset[classes].unsqueeze(-1)
