"""From words to sentences to a text: two levels of GRUs, each with attention (Yang et al., NAACL 2016)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from infocal.nn.encoders import build_encoder

__all__ = ["ContextAttention", "Sentences", "TwoLevelEncoder", "find_sentences", "weighted_mean"]


@dataclass(frozen=True, slots=True)
class Sentences:
    """Where the words of some documents stand, sentence by sentence.

    Attributes:
        words: (s, w) int64, for each sentence its words' places in the documents laid end to end, b x t.
        real: (s, w) bool, True on words, False behind a sentence's end.
        rows: (b, n) int64, for each document its sentences' places among all.
        present: (b, n) bool, True on sentences, False behind a document's end.
    """

    words: Tensor
    real: Tensor
    rows: Tensor
    present: Tensor


def find_sentences(ids: Tensor, mask: Tensor, ends: Tensor, *, longest: int) -> Sentences:
    """Cut documents after the marks that end a sentence, and after ``longest`` words without one.

    Args:
        ids: (b, t) int64.
        mask: (b, t) bool, True on real tokens, which come first, at least one per document.
        ends: (e,) int64, ids of such marks; of several in a row only the last ends the sentence.
        longest: most words of a sentence.
    """
    place = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
    mark = torch.isin(ids, ends)
    starts = torch.zeros_like(mask)
    starts[:, 0] = True
    starts[:, 1:] = mark[:, :-1] & ~mark[:, 1:]
    within = place - torch.where(starts, place, 0).cummax(dim=1).values
    first = (within % longest == 0) & mask
    words, real = _rows((first.flatten().cumsum(0) - 1)[mask.flatten()], torch.nonzero(mask.flatten()).squeeze(1))
    count = first.sum(dim=1)
    owner = torch.repeat_interleave(count)
    rows, present = _rows(owner, torch.arange(len(owner), device=ids.device))
    return Sentences(words, real, rows, present)


def _rows(owner: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Lay out values (n,) as one row per owner, 0 behind its last, and say which are values.

    Args:
        owner: (n,) int64, rising by steps of 0 or 1, from 0.
        values: (n,) int64.
    """
    counts = torch.bincount(owner)
    column = torch.arange(len(owner), device=owner.device) - (counts.cumsum(0) - counts)[owner]
    real = torch.arange(int(counts.max()), device=owner.device) < counts.unsqueeze(1)
    table = torch.zeros(real.shape, dtype=values.dtype, device=owner.device)
    table[owner, column] = values
    return table, real


class ContextAttention(nn.Module):
    """a_t = softmax of tanh(W h_t + b) u, and the average of the h_t by these weights; u is the context.

    Args:
        width: d of the states and of the context.
    """

    def __init__(self, *, width: int) -> None:
        super().__init__()
        self.key = nn.Linear(width, width)

    def scores(self, states: Tensor, mask: Tensor, context: Tensor) -> Tensor:
        """(b, t): what the softmax is taken of, -inf where ``mask`` is not True; arguments as for `forward`."""
        keys = torch.tanh(self.key(states))
        scores = torch.einsum("btd,bd->bt", keys, context.expand(len(states), -1))
        return scores.masked_fill(~mask, float("-inf"))

    def forward(self, states: Tensor, mask: Tensor, context: Tensor) -> Tensor:
        """Pool every sequence in the light of its own context.

        Args:
            states: (b, t, d).
            mask: (b, t), True on what is real, at least one per row.
            context: (b, d), or (d,) for all.

        Returns:
            (b, d).
        """
        return weighted_mean(self.scores(states, mask, context), states)

    def across(self, states: Tensor, mask: Tensor, contexts: Tensor) -> Tensor:
        """Pool every sequence in the light of every context.

        Args:
            states: (s, t, d).
            mask: (s, t).
            contexts: (b, d).

        Returns:
            (b, s, d).
        """
        scores = torch.einsum("std,bd->bst", torch.tanh(self.key(states)), contexts)
        weights = torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)
        return torch.einsum("bst,std->bsd", weights, states)


def weighted_mean(scores: Tensor, states: Tensor) -> Tensor:
    """(b, d): the states (b, t, d), averaged by the softmax of their scores (b, t)."""
    return torch.einsum("bt,btd->bd", torch.softmax(scores, dim=-1), states)


class TwoLevelEncoder(nn.Module):
    """A GRU in both directions over the words of a sentence, one over the sentences, attention on top of each.

    Args:
        input_width: of the token vectors.
        hidden_width: h, per direction; contexts and results have the width 2h.
    """

    def __init__(self, *, input_width: int, hidden_width: int) -> None:
        super().__init__()
        self.output_width = 2 * hidden_width
        self.words = build_encoder("gru", input_width=input_width, hidden_width=hidden_width)
        self.word_attention = ContextAttention(width=self.output_width)
        self.sentences = build_encoder("gru", input_width=self.output_width, hidden_width=hidden_width)
        self.sentence_attention = ContextAttention(width=self.output_width)

    def forward(self, vectors: Tensor, layout: Sentences, word: Tensor, sentence: Tensor) -> Tensor:
        """Read documents, all of them with the same contexts.

        Args:
            vectors: (b, t, d).
            layout: of these documents.
            word: (2h,), the context of words.
            sentence: (2h,), that of sentences.

        Returns:
            (b, 2h).
        """
        pooled = self.word_attention(self._word_states(vectors, layout), layout.real, word)
        states = self.sentences(pooled[layout.rows], layout.present)
        read: Tensor = self.sentence_attention(states, layout.present, sentence)
        return read

    def for_readers(
        self, vectors: Tensor, layout: Sentences, wanted: Tensor, word: Tensor, sentence: Tensor
    ) -> Tensor:
        """Read documents in the light of contexts that several readers bring, each reader some of the documents.

        Args:
            vectors: (a, t, d), of the documents.
            layout: of these documents.
            wanted: (b, k) int64, which documents each reader reads.
            word: (b, 2h), each reader's context of words.
            sentence: (b, 2h), that of sentences.

        Returns:
            (b, k, 2h).
        """
        readers, count = wanted.shape
        pooled = self.word_attention.across(self._word_states(vectors, layout), layout.real, word)
        rows, present = layout.rows[wanted], layout.present[wanted].flatten(0, 1)
        own = pooled[torch.arange(readers, device=wanted.device).view(-1, 1, 1), rows].flatten(0, 1)
        states = self.sentences(own, present)
        read: Tensor = self.sentence_attention(states, present, sentence.repeat_interleave(count, dim=0))
        return read.view(readers, count, -1)

    def _word_states(self, vectors: Tensor, layout: Sentences) -> Tensor:
        """(s, w, 2h)."""
        states: Tensor = self.words(vectors.flatten(0, 1)[layout.words], layout.real)
        return states
