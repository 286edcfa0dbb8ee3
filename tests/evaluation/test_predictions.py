import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infocal.errors import DataError
from infocal.evaluation.predictions import (
    ClassificationCounts,
    RegressionSums,
    classification_scores,
    majority_accuracy,
    regression_scores,
)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("classes", [2, 3, 7])
def test_classification_equals_scikit_learn(seed, classes):
    metrics = pytest.importorskip("sklearn.metrics")
    generator = np.random.default_rng(seed)
    # Some classes occur on one side only, some on neither.
    gold = generator.integers(0, max(1, classes - 1), 12)
    predicted = generator.integers(0, classes, 12)
    scores = classification_scores(predicted, gold, classes=classes)
    keywords = {"average": "macro", "zero_division": 0}
    assert scores["n"] == 12
    assert scores["accuracy"] == pytest.approx(metrics.accuracy_score(gold, predicted))
    assert scores["macro_precision"] == pytest.approx(metrics.precision_score(gold, predicted, **keywords))
    assert scores["macro_recall"] == pytest.approx(metrics.recall_score(gold, predicted, **keywords))
    assert scores["macro_f1"] == pytest.approx(metrics.f1_score(gold, predicted, **keywords))


@pytest.mark.parametrize("shift", [0.0, 1e7])
def test_regression_equals_scikit_learn(shift):
    metrics = pytest.importorskip("sklearn.metrics")
    generator = np.random.default_rng(0)
    gold = generator.normal(size=50) + shift
    predicted = gold + generator.normal(size=50)
    scores = regression_scores(predicted, gold)
    assert scores["n"] == 50
    assert scores["mse"] == pytest.approx(metrics.mean_squared_error(gold, predicted))
    assert scores["mae"] == pytest.approx(metrics.mean_absolute_error(gold, predicted))
    assert scores["r2"] == pytest.approx(metrics.r2_score(gold, predicted))


def test_no_r2_for_a_constant_that_binary_numbers_cannot_hold():
    assert regression_scores([0.1, 0.3, 0.2], [0.1, 0.1, 0.1])["r2"] is None
    parts = RegressionSums.of([0.0], [0.1]) + RegressionSums.of([0.0] * 3, [0.1] * 3)
    assert parts.scores()["r2"] is None


@settings(deadline=None)
@given(
    parts=st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=5), min_size=1).filter(any)
)
def test_parts_add_up_to_the_whole(parts):
    predicted, gold = (np.array([pair[i] for part in parts for pair in part]) for i in (0, 1))
    columns = [(np.array([p for p, _ in part], int), np.array([g for _, g in part], int)) for part in parts]
    counts = functools.reduce(
        ClassificationCounts.__add__, (ClassificationCounts.of(p, g, classes=4) for p, g in columns)
    )
    assert counts.scores() == classification_scores(predicted, gold, classes=4)
    sums = functools.reduce(
        RegressionSums.__add__, (RegressionSums.of(p + 2000.5, g + 2000.5) for p, g in columns)
    )
    assert sums.scores() == pytest.approx(regression_scores(predicted + 2000.5, gold + 2000.5))


def test_the_majority():
    assert majority_accuracy([2, 2, 0, 1]) == 0.5
    with pytest.raises(DataError, match="nothing to score"):
        majority_accuracy([])


def test_wrong_input_is_named():
    with pytest.raises(DataError, match="gold 1 is class 5; allowed: 0 to 2"):
        classification_scores([0, 0], [0, 5], classes=3)
    with pytest.raises(DataError, match="2 predictions for 1 documents"):
        classification_scores([0, 0], [0], classes=3)
    with pytest.raises(DataError, match="float64"):
        classification_scores([0.0, 1.0], [0, 1], classes=3)
    with pytest.raises(DataError, match="finite"):
        regression_scores([float("nan")], [1.0])
    with pytest.raises(DataError, match="nothing to score"):
        regression_scores([], [])
