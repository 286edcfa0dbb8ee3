"""Whether one of two systems is really better, or lucky in the documents it was scored on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from infocal.errors import DataError
from infocal.evaluation.ragged import Floats

__all__ = ["Difference", "Ratios", "paired_bootstrap"]

DRAWS = 5000
CHUNK = 4_000_000
"""Documents drawn at once, over all draws of a chunk."""


@dataclass(frozen=True, slots=True, eq=False)
class Ratios:
    """A figure that is a sum over documents divided by another, for each of s runs; their mean is the score.

    Attributes:
        parts: (n, s), what each document adds above the line.
        wholes: (n, s), what it adds below.
    """

    parts: Floats
    wholes: Floats

    @classmethod
    def f1(cls, hits: ArrayLike, selected: ArrayLike, gold: ArrayLike) -> Ratios:
        """Micro F1 from counts of tokens, (n, s) each."""
        found, chosen, marked = (np.asarray(counts, dtype=np.float64) for counts in (hits, selected, gold))
        return cls(2 * found, chosen + marked)

    @classmethod
    def mean(cls, values: ArrayLike) -> Ratios:
        """The mean over documents of (n, s) values: accuracy from hits and misses, an error from its squares."""
        array = np.asarray(values, dtype=np.float64)
        return cls(array, np.ones_like(array))

    def score(self, weights: Floats) -> Floats:
        """(k, n) how often each document counts -> (k,) the score; a ratio without a whole is 0."""
        parts, wholes = weights @ self.parts, weights @ self.wholes
        return np.asarray(np.divide(parts, wholes, out=np.zeros_like(parts), where=wholes > 0).mean(axis=1))


@dataclass(frozen=True, slots=True)
class Difference:
    """How far two systems are apart.

    Attributes:
        value: score of the first minus score of the second, on the documents as they are.
        low: lower end of the 95 % interval of the difference over drawn documents.
        high: its upper end.
        p: two-sided probability of a difference this large if there is none.
    """

    value: float
    low: float
    high: float
    p: float


def paired_bootstrap(first: Ratios, second: Ratios, *, draws: int = DRAWS, seed: int = 0) -> Difference:
    """Draw the documents again and again, with replacement, the same for both systems and all their runs.

    The interval is the percentile one of Efron and Tibshirani 1993 (chapter 13); p counts the draws whose
    difference lies as far from the observed one as that lies from 0 (their chapter 16), itself included.

    Args:
        first: of n documents and any number of runs.
        second: of the same documents, in the same order.
        draws: how often.
        seed: of the draws.
    """
    count = _check(first, second)
    whole = np.ones((1, count))
    observed = float((first.score(whole) - second.score(whole))[0])
    rng = np.random.default_rng(seed)
    size = max(1, CHUNK // count)
    drawn = np.concatenate(
        [_differences(first, second, _draw(rng, min(size, draws - done), count)) for done in range(0, draws, size)]
    )
    low, high = np.percentile(drawn, (2.5, 97.5))
    far = np.abs(drawn - observed) >= abs(observed) - 1e-12
    return Difference(observed, float(low), float(high), (1 + int(far.sum())) / (1 + draws))


def _differences(first: Ratios, second: Ratios, weights: Floats) -> Floats:
    return first.score(weights) - second.score(weights)


def _draw(rng: np.random.Generator, draws: int, count: int) -> Floats:
    """(draws, count): how often each document was drawn."""
    places = rng.integers(0, count, size=(draws, count)) + count * np.arange(draws)[:, None]
    return np.bincount(places.ravel(), minlength=draws * count).reshape(draws, count).astype(np.float64)


def _check(first: Ratios, second: Ratios) -> int:
    shapes = [array.shape for ratios in (first, second) for array in (ratios.parts, ratios.wholes)]
    if any(len(shape) != 2 or 0 in shape or shape[0] != shapes[0][0] for shape in shapes):
        raise DataError(
            f"arrays of shapes {', '.join(map(str, shapes))}",
            allowed="(n, s) with the same n, at least 1, in both systems",
        )
    return int(shapes[0][0])
