"""Paired bootstrap over documents."""

import itertools

import numpy as np
import pytest

from infocal.errors import DataError
from infocal.evaluation.significance import Ratios, paired_bootstrap


def test_f1_is_micro_and_averaged_over_runs():
    hits, selected, gold = [[1, 0], [2, 1]], [[2, 1], [2, 4]], [[1, 1], [3, 3]]
    score = Ratios.f1(hits, selected, gold).score(np.ones((1, 2)))
    assert score[0] == pytest.approx((2 * 3 / (4 + 4) + 2 * 1 / (5 + 4)) / 2)


def test_all_draws_of_three_documents_give_the_exact_interval_and_p():
    first, second = np.array([1.0, 1.0, 1.0]), np.array([0.0, 1.0, 0.0])
    found = paired_bootstrap(Ratios.mean(first[:, None]), Ratios.mean(second[:, None]), draws=40_000)
    gaps = first - second
    drawn = np.array([gaps[list(rows)].mean() for rows in itertools.product(range(3), repeat=3)])
    assert found.value == pytest.approx(2 / 3)
    assert found.low == pytest.approx(np.percentile(np.repeat(drawn, 1000), 2.5))
    assert found.high == pytest.approx(np.percentile(np.repeat(drawn, 1000), 97.5))
    assert found.p == pytest.approx((np.abs(drawn - 2 / 3) >= 2 / 3 - 1e-9).mean(), abs=0.005)


def test_agrees_with_scipy_on_a_mean_difference():
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(1)
    first = rng.normal(0.12, 1.0, size=400)
    second = rng.normal(0.0, 1.0, size=400)
    found = paired_bootstrap(Ratios.mean(first[:, None]), Ratios.mean(second[:, None]))
    theirs = stats.ttest_rel(first, second)
    interval = theirs.confidence_interval(0.95)
    assert found.value == pytest.approx(first.mean() - second.mean())
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), abs=0.015)
    assert found.p == pytest.approx(theirs.pvalue, abs=0.02)


def test_equal_systems_differ_by_nothing():
    one = Ratios.mean(np.arange(10.0)[:, None])
    found = paired_bootstrap(one, one)
    assert (found.value, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)


def test_runs_of_either_side_may_differ_in_number_and_order_is_a_sign():
    rng = np.random.default_rng(2)
    one, two = Ratios.mean(rng.random((50, 3)) + 0.3), Ratios.mean(rng.random((50, 2)))
    there, back = paired_bootstrap(one, two, draws=500), paired_bootstrap(two, one, draws=500)
    assert there.value == pytest.approx(-back.value)
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low))
    assert there.p == back.p < 0.05


def test_chunks_do_not_change_the_result(monkeypatch):
    rng = np.random.default_rng(3)
    one, two = Ratios.mean(rng.random((30, 1))), Ratios.mean(rng.random((30, 1)))
    whole = paired_bootstrap(one, two, draws=100)
    monkeypatch.setattr("infocal.evaluation.significance.CHUNK", 7 * 30)
    parts = paired_bootstrap(one, two, draws=100)
    assert (parts.low, parts.high, parts.p) == pytest.approx((whole.low, whole.high, whole.p))


def test_a_ratio_of_nothing_is_zero():
    empty = Ratios.f1([[0], [1]], [[0], [1]], [[0], [1]])
    assert empty.score(np.array([[2.0, 0.0]]))[0] == 0.0


def test_other_documents_are_refused():
    with pytest.raises(DataError, match="same n"):
        paired_bootstrap(Ratios.mean(np.ones((3, 1))), Ratios.mean(np.ones((4, 1))))
