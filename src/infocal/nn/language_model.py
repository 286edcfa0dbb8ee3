"""The vector language model: how expected is the next token's vector, given the words before it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["VectorLanguageModel"]


class VectorLanguageModel(nn.Module):
    """p(x_i | x_<i) = sigmoid(h_i' M e_i) (paper, appendix "Language Model as Rationale Regularizer").

    Args:
        width: d of the token vectors.
        hidden_width: of the left-to-right recurrence.
    """

    def __init__(self, *, width: int, hidden_width: int) -> None:
        super().__init__()
        self.recurrence = nn.GRU(width, hidden_width, batch_first=True)
        self.bilinear = nn.Linear(hidden_width, width, bias=False)

    def expectations(self, vectors: Tensor) -> Tensor:
        """h_i' M: the direction in which the next vector is expected.

        Args:
            vectors: (b, t, d), unmasked.

        Returns:
            (b, t, d); position 0, which has no predecessor, is 0.
        """
        states, _ = self.recurrence(vectors[:, :-1])
        expected: Tensor = self.bilinear(states)
        return nn.functional.pad(expected, (0, 0, 1, 0))

    def forward(self, vectors: Tensor) -> Tensor:
        """Scores s_i = h_i' M e_i.

        Args:
            vectors: (b, t, d), unmasked.

        Returns:
            (b, t).
        """
        return (self.expectations(vectors) * vectors).sum(dim=-1)

    def contrast(self, vectors: Tensor, negatives: Tensor) -> tuple[Tensor, Tensor]:
        """Scores of the words that follow and of words drawn at random.

        Args:
            vectors: (b, t, d).
            negatives: (k, d), shared by all positions of the batch.

        Returns:
            (b, t) and (b, t, k).
        """
        expected = self.expectations(vectors)
        return (expected * vectors).sum(dim=-1), torch.matmul(expected, negatives.T)
