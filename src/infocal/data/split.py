"""Setting rows aside for choosing a model, and checks that classes can be learned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from infocal.data.records import BadRows
from infocal.errors import DataError
from infocal.text.sources import shown, shown_list

__all__ = ["check_classes", "split_rows"]

_BINS = 10


def split_rows(
    targets: NDArray[np.generic], *, share: float, seed: int, stratify: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Set a share of the rows aside, the same ones for the same seed.

    Args:
        targets: (n,) integer classes or scores.
        share: of the rows, which go to the second part; it gets at least one.
        seed: of the draw.
        stratify: whether to take the share of every class, or of ten bins of the scores; no class loses its
            only row.

    Returns:
        the rows to train on and the rows set aside, both sorted.

    Raises:
        DataError: there are fewer than two rows.
    """
    total = len(targets)
    if total < 2:
        raise DataError(f"{total} rows to split into two parts", allowed="at least 2 rows")
    strata = _strata(targets) if stratify else np.zeros(total, dtype=np.int64)
    quotas = _quotas(np.bincount(strata), max(1, round(share * total)))
    order = np.lexsort((np.random.default_rng(seed).random(total), strata))
    ordered = strata[order]
    rank = np.arange(total) - np.searchsorted(ordered, ordered)
    aside = rank < quotas[ordered]
    return np.sort(order[~aside]), np.sort(order[aside])


def _strata(targets: NDArray[np.generic]) -> NDArray[np.int64]:
    """(n,) the group of each row: its class, or the tenth that its score falls into."""
    if np.issubdtype(targets.dtype, np.integer):
        return np.asarray(np.unique(targets, return_inverse=True)[1], dtype=np.int64)
    rank = np.empty(len(targets), dtype=np.int64)
    rank[np.argsort(targets, kind="stable")] = np.arange(len(targets))
    bins = min(_BINS, max(1, len(targets) // 2))
    return np.asarray(rank * bins // len(targets), dtype=np.int64)


def _quotas(sizes: NDArray[np.int64], wanted: int) -> NDArray[np.int64]:
    """How many rows of each group to set aside: by its size, leaving one, ``wanted`` in all if possible."""
    room = np.maximum(sizes - 1, 0)
    exact = sizes * (wanted / sizes.sum())
    quotas: NDArray[np.int64] = np.minimum(exact.astype(np.int64), room)
    missing = min(wanted, int(room.sum())) - int(quotas.sum())
    while missing > 0:
        # Largest remainder first, of equal ones the larger group.
        order = np.lexsort((-sizes, quotas - exact))
        order = order[quotas[order] < room[order]][:missing]
        quotas[order] += 1
        missing -= len(order)
    if not quotas.any():
        quotas[np.argmax(sizes)] = 1
    return quotas


def check_classes(
    names: Sequence[str], lines: Iterable[int], *, bad_rows: BadRows, source: str
) -> NDArray[np.int64]:
    """The rows whose class can be learned: all but those of a class seen once, which are bad rows.

    Args:
        names: each row's class.
        lines: each row's line.
        bad_rows: told of rows that are alone in their class.
        source: the file.

    Raises:
        DataError: fewer than two classes are left.
    """
    counts = Counter(names)
    alone = [counts[name] == 1 for name in names]
    for name, line, single in zip(names, lines, alone, strict=True):
        # One row of one class: that there is only one class is the better thing to say.
        if single and len(counts) > 1:
            allowed = "at least two rows per class, or --skip-bad to leave such rows out"
            found = f"the class {shown(name)} has no other row"
            bad_rows.report(DataError(found, allowed=allowed, source=source, line=_known(line)))
    classes = [name for name, count in counts.items() if count > 1]
    if len(classes) < 2:
        found = "there is only one class: " if len(classes) == 1 else "there is no class with two rows: "
        raise DataError(found + shown_list(sorted(counts)), allowed="at least two classes", source=source)
    return np.flatnonzero(~np.array(alone, dtype=bool))


def _known(line: int) -> int | None:
    return int(line) if line >= 0 else None
