"""Batches of documents of like length, so that little is computed on padding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from infocal.data.corpus import Corpus, flat_positions

if TYPE_CHECKING:
    from infocal.types import Batch

__all__ = ["collate", "fill", "plan_batches"]

_JITTER = 0.02
_LEAST_FILL = 0.95

Plan = list[NDArray[np.int64]]


def plan_batches(
    lengths: NDArray[np.int64], *, tokens: int, documents: int, rng: np.random.Generator | None
) -> Plan:
    """Group rows of like length into as few batches as keep 95 % of the padded positions real tokens.

    Args:
        lengths: (n,) tokens of each row.
        tokens: most padded positions of a batch; a longer document is a batch by itself.
        documents: most rows of a batch.
        rng: varies which rows meet, and shuffles the batches; None for the same sorted plan every time.

    Returns:
        row numbers, every row once.
    """
    keys = lengths if rng is None else lengths * rng.uniform(1 - _JITTER, 1 + _JITTER, len(lengths))
    order = np.argsort(keys, kind="stable")
    ordered = np.asarray(lengths)[order]
    waste, plan = tokens, _cut(order, ordered, tokens, documents, tokens)
    while waste and fill(plan, lengths) < _LEAST_FILL:
        waste = waste * 3 // 4
        plan = _cut(order, ordered, tokens, documents, waste)
    if rng is not None:
        rng.shuffle(plan)
    return plan


def _cut(order: NDArray[np.int64], lengths: NDArray[np.int64], tokens: int, documents: int, waste: int) -> Plan:
    """Cut rows in order into batches of at most ``tokens`` positions, of which ``waste`` are padding."""
    plan: Plan = []
    start = 0
    while start < len(order):
        room = max(1, min(documents, tokens // max(1, int(lengths[start]))))
        window = lengths[start : start + room]
        positions = np.maximum.accumulate(window) * np.arange(1, len(window) + 1)
        good = (positions <= tokens) & (positions - np.cumsum(window) <= waste)
        size = len(window) if good.all() else max(1, int(np.argmin(good)))
        plan.append(order[start : start + size])
        start += size
    return plan


def fill(plan: Plan, lengths: NDArray[np.int64]) -> float:
    """Real tokens per padded position; 1 if there is no batch."""
    padded = sum(len(rows) * int(lengths[rows].max()) for rows in plan)
    real = sum(int(lengths[rows].sum()) for rows in plan)
    return real / padded if padded else 1.0


def collate(corpus: Corpus, rows: NDArray[np.int64]) -> Batch:
    """The documents of some rows as tensors, padded to the longest; see :class:`infocal.types.Batch`."""
    import torch

    from infocal.types import Batch

    lengths = corpus.lengths[rows]
    positions = flat_positions(corpus.offsets, rows)
    mask = np.arange(int(lengths.max())) < lengths[:, None]
    ids = np.zeros(mask.shape, dtype=np.int64)
    ids[mask] = corpus.ids[positions]
    gold = annotated = None
    if corpus.gold is not None and corpus.annotated is not None and corpus.annotated[rows].any():
        flags = np.zeros(mask.shape, dtype=np.float32)
        flags[mask] = corpus.gold[positions]
        gold, annotated = torch.from_numpy(flags), torch.from_numpy(corpus.annotated[rows])
    return Batch(
        ids=torch.from_numpy(ids),
        mask=torch.from_numpy(mask),
        rows=torch.from_numpy(np.asarray(rows, dtype=np.int64)),
        targets=None if corpus.targets is None else torch.from_numpy(corpus.targets[rows]),
        gold=gold,
        annotated=annotated,
    )
