"""Token ids to token vectors: frozen where a pretrained vector is known, learned elsewhere."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["TokenEmbedding"]


class TokenEmbedding(nn.Module):
    """One vector per token id.

    Args:
        size: number of ids; id 0 is padding and stays zero.
        width: d.
        frozen: (size,) bool, which ids have a vector that is not trained; None if all are trained.
    """

    places: Tensor
    is_frozen: Tensor
    frozen: Tensor

    def __init__(self, *, size: int, width: int, frozen: Tensor | None = None) -> None:
        super().__init__()
        fixed = torch.zeros(size, dtype=torch.bool) if frozen is None else frozen
        free_count = int((~fixed).sum())
        places = torch.zeros(size, dtype=torch.int64)
        places[~fixed] = torch.arange(free_count)
        places[fixed] = torch.arange(size - free_count)
        self.width = width
        self.register_buffer("places", places)
        self.register_buffer("is_frozen", fixed)
        self.register_buffer("frozen", torch.zeros(size - free_count, width))
        self.free = nn.Parameter(torch.randn(free_count, width) * 0.1)
        with torch.no_grad():
            self.free[0] = 0.0

    @torch.no_grad()
    def fill(self, ids: Tensor, vectors: Tensor) -> None:
        """Set the vectors of some ids.

        Args:
            ids: (n,) int64.
            vectors: (n, d).
        """
        fixed = self.is_frozen[ids]
        self.frozen[self.places[ids[fixed]]] = vectors[fixed]
        self.free[self.places[ids[~fixed]]] = vectors[~fixed]

    def forward(self, ids: Tensor) -> Tensor:
        """(b, t) int64 -> (b, t, d)."""
        places = self.places[ids]
        if not len(self.frozen):
            return nn.functional.embedding(places, self.free, padding_idx=0)
        fixed = self.is_frozen[ids]
        free = nn.functional.embedding(places.masked_fill(fixed, 0), self.free, padding_idx=0)
        known = nn.functional.embedding(places.masked_fill(~fixed, 0), self.frozen)
        return torch.where(fixed.unsqueeze(-1), known, free)
