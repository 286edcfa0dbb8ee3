import time

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from infocal.data.batches import collate, fill, plan_batches
from infocal.data.corpus import Corpus


def mixed_lengths(count, seed=0):
    lengths = np.exp(np.random.default_rng(seed).normal(4.3, 1.0, count)).astype(np.int64)
    return np.clip(lengths, 5, 1000)


def check(plan, lengths, tokens, documents):
    assert sorted(np.concatenate(plan).tolist()) == list(range(len(lengths)))
    for rows in plan:
        assert len(rows) <= documents
        assert len(rows) == 1 or len(rows) * lengths[rows].max() <= tokens


@pytest.mark.parametrize("count", [300, 5000])
@pytest.mark.parametrize(("tokens", "documents"), [(4096, 64), (16384, 256), (100_000, 10_000)])
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_little_is_padding(count, tokens, documents, seed):
    lengths = mixed_lengths(count)
    rng = None if seed is None else np.random.default_rng(seed)
    plan = plan_batches(lengths, tokens=tokens, documents=documents, rng=rng)
    check(plan, lengths, tokens, documents)
    assert fill(plan, lengths) >= 0.95
    assert len(plan) < count / 6


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=60), st.integers(1, 200), st.integers(1, 9), st.booleans()
)
@settings(deadline=None)
def test_limits_hold(lengths, tokens, documents, random):
    lengths = np.array(lengths)
    rng = np.random.default_rng(0) if random else None
    check(plan_batches(lengths, tokens=tokens, documents=documents, rng=rng), lengths, tokens, documents)


def test_a_long_document_is_a_batch_by_itself():
    plan = plan_batches(np.array([3, 100, 3]), tokens=10, documents=8, rng=None)
    assert [rows.tolist() for rows in plan] == [[0, 2], [1]]


def test_plans_are_reproducible_and_vary():
    lengths = mixed_lengths(500)

    def plan(seed):
        rng = None if seed is None else np.random.default_rng(seed)
        return [rows.tolist() for rows in plan_batches(lengths, tokens=2000, documents=32, rng=rng)]

    assert plan(1) == plan(1) and plan(None) == plan(None)
    assert {tuple(sorted(rows)) for rows in plan(1)} != {tuple(sorted(rows)) for rows in plan(2)}
    longest = [lengths[rows].max() for rows in plan(None)]
    assert longest == sorted(longest)
    assert [lengths[rows].max() for rows in plan(1)] != sorted(lengths[rows].max() for rows in plan(1))


def test_a_million_rows_are_planned_quickly():
    lengths = mixed_lengths(1_000_000)
    start = time.process_time()
    plan_batches(lengths, tokens=32_768, documents=256, rng=np.random.default_rng(0))
    assert time.process_time() - start < 8


def test_fill():
    assert fill([np.array([0, 1]), np.array([2])], np.array([1, 3, 5])) == pytest.approx(9 / 11)
    assert fill([], np.array([])) == 1.0


def corpus(**changes):
    values = {
        "ids": np.array([5, 6, 7, 8, 9, 4], dtype=np.int32),
        "offsets": np.array([0, 3, 4, 6]),
        "lines": np.array([1, 2, 3], dtype=np.int32),
        "targets": np.array([1, 0, 1]),
        "gold": np.array([True, False, True, False, False, True]),
        "annotated": np.array([True, False, True]),
    }
    return Corpus(**(values | changes))


def test_collate():
    batch = collate(corpus(), np.array([2, 0]))
    assert batch.ids.tolist() == [[9, 4, 0], [5, 6, 7]]
    assert batch.mask.tolist() == [[True, True, False], [True, True, True]]
    assert batch.gold.tolist() == [[0, 1, 0], [1, 0, 1]]
    assert batch.annotated.tolist() == [True, True]
    assert batch.targets.tolist() == [1, 1] and batch.rows.tolist() == [2, 0]
    kinds = [batch.ids.dtype, batch.mask.dtype, batch.gold.dtype, batch.rows.dtype]
    assert kinds == [torch.int64, torch.bool, torch.float32, torch.int64]


def test_collate_without_gold_or_targets():
    batch = collate(corpus(), np.array([1]))
    assert batch.gold is None and batch.annotated is None
    bare = collate(corpus(targets=None, gold=None, annotated=None), np.array([0, 1]))
    assert bare.targets is None and bare.gold is None
    scores = corpus(targets=np.array([0.1, 0.2, 0.3], dtype=np.float32))
    assert collate(scores, np.array([0])).targets.dtype == torch.float32
