"""Word vectors from the training texts themselves: what words keep company says much of what they mean.

Levy and Goldberg (2014): skip-gram vectors factorise the words' pointwise mutual information. For a user's few
thousand texts the factorisation can be had directly, in seconds, and a network that starts from it has not to
learn from labels alone which words are alike.
"""

from __future__ import annotations

import itertools

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from infocal.data.corpus import Corpus

__all__ = ["association", "cooccurrence", "learn_word_vectors"]

WINDOW = 5
MOST_TOKENS = 1_000_000
"""Larger corpora are read in part, evenly: memory stays bounded, and frequent words need no more."""
CHUNK = 200_000
"""Tokens whose pairs are in memory before they are added up."""
CONTEXT_POWER = 0.75
"""Flattens the contexts' frequencies, so that rare contexts do not look more telling than they are."""
SPREAD = 0.4
"""Root mean square of an entry, near that of published vectors."""
SPARE_RANK, POWER_ROUNDS = 20, 4

Pairs = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]


def learn_word_vectors(corpus: Corpus, *, size: int, width: int, seed: int) -> tuple[NDArray[np.int64], Tensor]:
    """Vectors of the words of a corpus.

    Args:
        corpus: the training texts.
        size: number of ids, V.
        width: of a vector; a vocabulary of fewer words gives fewer columns.
        seed: of the random projection.

    Returns:
        The ids that have a vector (n,), and their vectors (n, min(width, V)).
    """
    ids, offsets = _sample(corpus)
    rows, columns, counts = cooccurrence(ids, offsets, size=size)
    if not len(rows):
        return np.empty(0, dtype=np.int64), torch.empty(0, min(width, size))
    known = np.unique(rows)
    vectors = _factors(association(rows, columns, counts, size=size), width=min(width, size), seed=seed)
    vectors = vectors[torch.from_numpy(known)]
    return known, vectors * (SPREAD / vectors.square().mean().sqrt().clamp(min=1e-12))


def cooccurrence(ids: NDArray[np.int32], offsets: NDArray[np.int64], *, size: int, window: int = WINDOW) -> Pairs:
    """How often words stand near each other in a document; words d apart count 1 / d.

    Args:
        ids: (total,) the documents' tokens, one after the other.
        offsets: (n + 1,) the documents' bounds.
        size: number of ids.
        window: words further apart do not count.

    Returns:
        Rows, columns and counts of the pairs that occur, each pair once in either direction, sorted.
    """
    keys, counts = np.empty(0, dtype=np.int64), np.empty(0)
    firsts = np.unique(np.searchsorted(offsets, np.arange(0, len(ids), CHUNK), side="right") - 1)
    bounds = [*offsets[firsts].tolist(), len(ids)]
    document = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    for start, end in itertools.pairwise(bounds):
        found, often = _near(ids[start:end].astype(np.int64), document[start:end], size=size, window=window)
        keys, counts = _add_up(np.concatenate((keys, found)), np.concatenate((counts, often)))
    return keys // size, keys % size, counts


def _near(
    ids: NDArray[np.int64], document: NDArray[np.int64], *, size: int, window: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Pairs as ``first * size + second``, each once, and their counts."""
    keys: list[NDArray[np.int64]] = []
    counts: list[NDArray[np.float64]] = []
    for distance in range(1, min(window, len(ids) - 1) + 1):
        same = document[:-distance] == document[distance:]
        first, second = ids[:-distance][same], ids[distance:][same]
        keys += [first * size + second, second * size + first]
        counts.append(np.full(2 * len(first), 1.0 / distance))
    if not keys:
        return np.empty(0, dtype=np.int64), np.empty(0)
    return _add_up(np.concatenate(keys), np.concatenate(counts))


def _add_up(keys: NDArray[np.int64], counts: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    found, places = np.unique(keys, return_inverse=True)
    return found, np.bincount(places, weights=counts, minlength=len(found)).astype(np.float64)


def association(
    rows: NDArray[np.int64], columns: NDArray[np.int64], counts: NDArray[np.float64], *, size: int
) -> Tensor:
    """Positive pointwise mutual information: max(0, log p(w, c) / (p(w) p'(c))), p' flattened.

    Args:
        rows: (n,) words, as :func:`cooccurrence` gives them.
        columns: (n,) contexts.
        counts: (n,).
        size: number of ids.

    Returns:
        (size, size), sparse.
    """
    word = np.bincount(rows, weights=counts, minlength=size)
    context = word**CONTEXT_POWER
    information = np.log(counts / word[rows] * context.sum() / context[columns])
    kept = information > 0
    places = torch.from_numpy(np.stack((rows[kept], columns[kept])))
    values = torch.from_numpy(information[kept].astype(np.float32))
    return torch.sparse_coo_tensor(places, values, (size, size), is_coalesced=True, check_invariants=False)


def _sample(corpus: Corpus) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    total = len(corpus.ids)
    if total <= MOST_TOKENS:
        return np.asarray(corpus.ids), corpus.offsets
    step = -(-total // MOST_TOKENS)
    part = corpus.subset(np.arange(0, len(corpus), step))
    return np.asarray(part.ids), part.offsets


def _factors(matrix: Tensor, *, width: int, seed: int) -> Tensor:
    """U sqrt(S) of the matrix's largest singular values, by random projection and power iterations."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        rank = min(width + SPARE_RANK, matrix.shape[0])
        left, strength, _ = torch.svd_lowrank(matrix, q=rank, niter=POWER_ROUNDS)
    factors: Tensor = left[:, :width] * strength[:width].sqrt()
    return factors
