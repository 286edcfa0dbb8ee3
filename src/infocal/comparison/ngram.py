"""A small language model of counts, by which to judge how well selected words read.

Interpolated absolute discounting (Ney, Essen and Kneser 1994): every seen pair gives up a little of its count, and
what is saved goes to the words in general, whose own savings go to all words alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["BigramModel", "selection_score"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

LEAST, MOST = 0.1, 0.9
"""Bounds of a discount: in tiny data the estimate may be 0 or 1, and nothing would be left for one side."""


@dataclass(frozen=True, eq=False)
class BigramModel:
    """p(word | the word before it).

    Attributes:
        words: (size,), p(word) without context.
        keys: (k,) int64, the pairs that were seen, as context * size + word, rising.
        shares: (k,), the discounted share of each pair among those of its context.
        saved: (size + 1,), what each context leaves to the words in general; the last context is the start of a
            text, one that was never seen leaves everything.
    """

    words: Floats
    keys: Integers
    shares: Floats
    saved: Floats

    @property
    def start(self) -> int:
        """The context of a text's first word."""
        return len(self.words)

    @classmethod
    def fit(cls, ids: NDArray[np.integer], offsets: NDArray[np.int64], *, size: int) -> BigramModel:
        """Count the words of documents.

        Args:
            ids: (total,) in [0, size).
            offsets: (n + 1,), where documents begin.
            size: how many ids there are.
        """
        flat = np.asarray(ids, dtype=np.int64)
        contexts = _words_before(flat, offsets, start=size)
        keys, counts = np.unique(contexts * size + flat, return_counts=True)
        discount = _discount(counts)
        owner = keys // size
        totals = np.bincount(contexts, minlength=size + 1)
        kinds = np.bincount(owner, minlength=size + 1)
        saved = np.where(totals > 0, discount * kinds / np.maximum(totals, 1), 1.0)
        return cls(_unigrams(flat, size), keys, (counts - discount) / totals[owner], saved)

    def log_probabilities(self, words: NDArray[np.integer], contexts: NDArray[np.integer]) -> Floats:
        """(k,) natural logarithms of p(word | context).

        Args:
            words: (k,) ids.
            contexts: (k,) the ids before them, or ``start``.
        """
        flat, before = np.asarray(words, dtype=np.int64), np.asarray(contexts, dtype=np.int64)
        wanted = before * len(self.words) + flat
        places = np.minimum(np.searchsorted(self.keys, wanted), max(len(self.keys) - 1, 0))
        seen = self.keys[places] == wanted if len(self.keys) else np.zeros(wanted.shape, dtype=np.bool_)
        pairs = np.where(seen, self.shares[places], 0.0) if len(self.keys) else np.zeros(wanted.shape)
        return np.asarray(np.log(pairs + self.saved[before] * self.words[flat]))


def selection_score(
    model: BigramModel,
    ids: NDArray[np.integer],
    offsets: NDArray[np.int64],
    selected: NDArray[np.bool_],
) -> float | None:
    """The mean log-probability of the selected words, read as if each document held nothing else.

    A word's context is the selected word before it, near or far, so that words torn from their phrases cost; the
    first of a document has the start of a text as its context. None if nothing is selected.

    Args:
        model: of the training texts.
        ids: (total,).
        offsets: (n + 1,).
        selected: (total,).
    """
    words = np.asarray(ids, dtype=np.int64)[selected]
    if not len(words):
        return None
    bounds = np.concatenate(([0], np.cumsum(selected)))[offsets]
    return float(model.log_probabilities(words, _words_before(words, bounds, start=model.start)).mean())


def _words_before(ids: Integers, offsets: NDArray[np.int64], *, start: int) -> Integers:
    """(total,) the id before each, ``start`` where a document begins."""
    before = np.concatenate(([start], ids[:-1])).astype(np.int64)[: len(ids)]
    firsts = offsets[:-1][np.diff(offsets) > 0]
    before[firsts] = start
    return before


def _unigrams(ids: Integers, size: int) -> Floats:
    counts = np.bincount(ids, minlength=size)
    total, discount = max(1, len(ids)), _discount(counts[counts > 0])
    kept = np.maximum(counts - discount, 0.0) / total
    return np.asarray(kept + (1.0 - kept.sum()) / size)


def _discount(counts: NDArray[np.integer]) -> float:
    """What each count gives up: once / (once + 2 * twice), from how many things were seen once and twice."""
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    return min(MOST, max(LEAST, once / max(1, once + 2 * twice)))
