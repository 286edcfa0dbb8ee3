"""Pairs of words that stand near one another, and attention over them."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["Collocations", "attend_pairs"]


class Collocations(nn.Module):
    """A vector for every pair of tokens at a distance of 1 to ``distance``: tanh(L_n x_i + R_n x_(i+n) + b_n).

    Args:
        input_width: d of the token vectors.
        output_width: of a pair's vector.
        distance: the largest n.
    """

    def __init__(self, *, input_width: int, output_width: int, distance: int) -> None:
        super().__init__()
        self.distance, self.output_width = distance, output_width
        self.left = nn.Linear(input_width, distance * output_width)
        self.right = nn.Linear(input_width, distance * output_width, bias=False)

    def forward(self, inputs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The pairs of a document.

        Args:
            inputs: (b, t, d).
            mask: (b, t), True on real tokens.

        Returns:
            (b, p, o) and (b, p): their vectors, and True where both tokens of a pair are real; p = distance x t.
        """
        left, right = (part(inputs).chunk(self.distance, dim=-1) for part in (self.left, self.right))
        vectors, real = [], []
        for number, (first, second) in enumerate(zip(left, right, strict=True), 1):
            vectors.append(torch.tanh(first + _ahead(second, number)))
            real.append(mask & _ahead(mask.unsqueeze(-1), number).squeeze(-1))
        return torch.cat(vectors, dim=1), torch.cat(real, dim=1)


def _ahead(values: Tensor, steps: int) -> Tensor:
    """(b, t, d): what stands so many tokens further on, zeros behind the end."""
    return F.pad(values[:, steps:], (0, 0, 0, min(steps, values.shape[1])))


def attend_pairs(pairs: Tensor, real: Tensor, query: Tensor) -> Tensor:
    """The average of the pairs, weighted by a softmax of their products with the query; 0 where there is no pair.

    Args:
        pairs: (b, p, o).
        real: (b, p), True where the pair counts.
        query: (b, o).

    Returns:
        (b, o).
    """
    scores = torch.einsum("bpo,bo->bp", pairs, query)
    least = torch.finfo(scores.dtype).min  # infinities would make a document without pairs no number
    weights = torch.softmax(scores.masked_fill(~real, least), dim=-1) * real
    return torch.einsum("bp,bpo->bo", weights, pairs)
