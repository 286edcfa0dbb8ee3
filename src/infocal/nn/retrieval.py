"""Law articles, and a linear classifier that finds those that may apply to a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

__all__ = ["ArticleRetriever", "Articles", "fold_of", "top_unseen"]


class ArticleRetriever(nn.Module):
    """A linear classifier per article on tf-idf of token ids; fitted elsewhere, nothing here is trained.

    Args:
        places: (v,) int64, for each token id its place among the f words that are looked at, or f.
        inverse_frequency: (f,), what a word's count is multiplied with.
        weights: (m, f), of each article.
        bias: (m,).
    """

    places: Tensor
    inverse_frequency: Tensor
    weights: Tensor
    bias: Tensor

    def __init__(self, *, places: Tensor, inverse_frequency: Tensor, weights: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.register_buffer("places", places)
        self.register_buffer("inverse_frequency", inverse_frequency)
        self.register_buffer("weights", weights)
        self.register_buffer("bias", bias)

    @torch.no_grad()
    def forward(self, ids: Tensor) -> Tensor:
        """How much speaks for each article.

        Args:
            ids: (b, t) int64; 0 is no word.

        Returns:
            (b, m): products with the counts times inverse frequencies, brought to length 1.
        """
        found = self.places[ids].masked_fill(ids == 0, len(self.inverse_frequency))
        counts = self.weights.new_zeros(len(ids), len(self.inverse_frequency) + 1)
        counts.scatter_add_(1, found, torch.ones_like(found, dtype=counts.dtype))
        features = nn.functional.normalize(counts[:, :-1] * self.inverse_frequency, dim=1)
        return features @ self.weights.T + self.bias

    def top(self, ids: Tensor, count: int) -> Tensor:
        """(b, k) int64: the ``count`` articles for which most speaks, the best first; all if they are fewer."""
        best: Tensor = self(ids).topk(min(count, len(self.bias)), dim=1).indices
        return best


def fold_of(ids: Tensor, folds: int) -> Tensor:
    """(b,) int64: into which of so many parts a document falls, by its words; the same text always into the same.

    Args:
        ids: (b, t) int64; 0 is no word.
        folds: how many there are.
    """
    return ids.sum(dim=1) % folds


def top_unseen(retrievers: Sequence[ArticleRetriever], ids: Tensor, count: int) -> Tensor:
    """(b, k) int64: as `ArticleRetriever.top`, for each document by the retriever of its fold."""
    found = torch.stack([retriever.top(ids, count) for retriever in retrievers], dim=1)
    return found[torch.arange(len(ids)), fold_of(ids, len(retrievers))]


@dataclass(frozen=True, slots=True)
class Articles:
    """What FLA knows of the law.

    Attributes:
        ids: (total,) int64, the tokens' ids of all m articles, one after the other.
        offsets: (m + 1,) int64, article i is ids[offsets[i]:offsets[i + 1]].
        sentence_ends: ids of the marks that end a sentence.
        retriever: finds articles, in the same order.
        unseen: the same for training documents: the n-th was fitted without those of the n-th fold (`fold_of`), so
            that it finds articles for them as for new ones. May be empty.
    """

    ids: Tensor
    offsets: Tensor
    sentence_ends: tuple[int, ...]
    retriever: ArticleRetriever
    unseen: tuple[ArticleRetriever, ...] = ()

    def table(self, *, longest: int) -> Tensor:
        """(m, t) int64: the articles as rows, at most ``longest`` tokens of each, 0 behind their ends."""
        texts = [self.ids[start:end][:longest] for start, end in self.offsets.unfold(0, 2, 1).tolist()]
        return nn.utils.rnn.pad_sequence(texts, batch_first=True)
