"""Documents of different lengths as one flat array with offsets.

Document i owns the tokens ``offsets[i]:offsets[i + 1]`` of every flat array; a document may be empty.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from infocal.errors import DataError

__all__ = ["Flags", "Floats", "Integers", "as_flags", "as_offsets", "as_scores", "owners", "runs", "sums"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Integers = NDArray[np.int64]


def as_offsets(offsets: ArrayLike) -> Integers:
    """Check offsets: (n + 1,) int64, from 0 upwards."""
    array = np.asarray(offsets, dtype=np.int64)
    if array.ndim != 1 or array.size == 0 or array[0] != 0 or bool(np.any(np.diff(array) < 0)):
        raise DataError(
            f"offsets of shape {array.shape} that do not run upwards from 0",
            allowed="one axis of n + 1 integers: 0, the end of the first document, ..., the end of the last",
        )
    return array


def as_scores(scores: ArrayLike, offsets: Integers) -> Floats:
    """Check one finite number per token: (total,) float64."""
    array = np.asarray(scores, dtype=np.float64)
    _check_length(array.shape, offsets)
    if not np.isfinite(array).all():
        place = int(np.flatnonzero(~np.isfinite(array))[0])
        document = int(np.searchsorted(offsets, place, side="right")) - 1
        raise DataError(
            f"the score of token {place - int(offsets[document])} of document {document} is {array[place]}",
            allowed="finite numbers",
        )
    return array


def as_flags(flags: ArrayLike, offsets: Integers) -> Flags:
    """Check one yes or no per token: (total,) bool."""
    array = np.asarray(flags, dtype=np.bool_)
    _check_length(array.shape, offsets)
    return array


def _check_length(shape: tuple[int, ...], offsets: Integers) -> None:
    if shape != (int(offsets[-1]),):
        raise DataError(
            f"an array of shape {shape} for documents with {int(offsets[-1])} tokens in all",
            allowed="one value per token, in one axis",
        )


def owners(offsets: Integers) -> Integers:
    """The document of every token: (total,) int64."""
    return np.repeat(np.arange(offsets.size - 1), np.diff(offsets))


def sums(values: NDArray[np.generic], offsets: Integers) -> Floats:
    """The sum of a flat array in every document: (n,) float64, 0 for an empty one."""
    return np.bincount(owners(offsets), weights=values, minlength=offsets.size - 1).astype(np.float64)


def runs(flags: Flags, offsets: Integers) -> tuple[Integers, Integers]:
    """Starts and ends (exclusive) of the maximal runs of True; no run crosses documents."""
    place = np.flatnonzero(flags)
    if place.size == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    owner = owners(offsets)[place]
    breaks = (np.diff(place) > 1) | (np.diff(owner) > 0)
    starts = place[np.concatenate(([True], breaks))]
    ends = place[np.concatenate((breaks, [True]))] + 1
    return starts, ends
