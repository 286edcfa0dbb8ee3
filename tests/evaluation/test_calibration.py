"""Calibration errors by hand, and temperatures that minimise what they should."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infocal.errors import DataError
from infocal.evaluation.calibration import (
    HIGHEST,
    LOWEST,
    Temperatures,
    expected_calibration_error,
    fit_temperature,
    fit_temperatures,
)


def softmax(logits):
    values = np.exp(logits - logits.max(axis=1, keepdims=True))
    return values / values.sum(axis=1, keepdims=True)


def cost(logits, targets, temperature):
    scaled = logits / temperature
    return (np.logaddexp.reduce(scaled, axis=1) - scaled[np.arange(len(targets)), targets]).mean()


def drawn(count, *, classes=3, seed=0):
    """Logits, and targets drawn from their own softmax: calibrated as they are."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=2.0, size=(count, classes))
    targets = (softmax(logits).cumsum(axis=1) < rng.random((count, 1))).sum(axis=1)
    return logits, np.minimum(targets, classes - 1)


def test_error_by_hand():
    probabilities = np.array([[0.9, 0.1], [0.85, 0.15], [0.4, 0.6], [0.55, 0.45]])
    targets = [0, 1, 1, 1]
    # Bins of a fifth: (.8, 1] has confidence .875 and half right, (.4, .6] has .575 and half right.
    expected = 0.5 * abs(0.875 - 0.5) + 0.5 * abs(0.575 - 0.5)
    assert expected_calibration_error(probabilities, targets, bins=5) == pytest.approx(expected)


def test_a_confidence_between_two_bins_is_in_the_lower_one():
    probabilities = np.array([[0.5, 0.5], [0.75, 0.25]])
    # In one bin the two would cancel to |.625 - .5|.
    assert expected_calibration_error(probabilities, [0, 1], bins=2) == pytest.approx((0.5 + 0.75) / 2)


def test_sure_and_right_has_no_error_and_sure_and_wrong_the_greatest():
    sure = np.eye(3)[[0, 1, 2]]
    assert expected_calibration_error(sure, [0, 1, 2]) == 0.0
    assert expected_calibration_error(sure, [1, 2, 0]) == 1.0


def test_calibrated_probabilities_have_a_small_error_and_overconfident_ones_a_large():
    logits, targets = drawn(4000)
    assert expected_calibration_error(softmax(logits), targets) < 0.03
    assert expected_calibration_error(softmax(4 * logits), targets) > 0.1


@pytest.mark.parametrize("factor", [0.2, 1.0, 3.0, 8.0])
def test_the_temperature_undoes_a_factor(factor):
    logits, targets = drawn(4000)
    assert fit_temperature(factor * logits, targets) == pytest.approx(factor, rel=0.1)


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 40), st.integers(2, 5), st.integers(0, 10**6), st.floats(0.01, 200))
def test_no_temperature_of_a_grid_is_better(count, classes, seed, factor):
    rng = np.random.default_rng(seed)
    logits, targets = factor * rng.normal(size=(count, classes)), rng.integers(0, classes, count)
    found = fit_temperature(logits, targets)
    assert LOWEST * 0.999 <= found <= HIGHEST * 1.001
    best = min(cost(logits, targets, t) for t in np.geomspace(LOWEST, HIGHEST, 60))
    assert cost(logits, targets, found) <= best + 1e-6 * max(1.0, best)


def test_all_right_all_wrong_one_row_and_nothing_known():
    logits, targets = np.array([[2.0, 0.0], [0.0, 3.0]]), np.array([0, 1])
    assert fit_temperature(logits, targets) == pytest.approx(LOWEST)
    assert fit_temperature(logits, 1 - targets) == pytest.approx(HIGHEST)
    assert fit_temperature(logits[:1], targets[:1]) == pytest.approx(LOWEST)
    assert fit_temperature(np.zeros((4, 2)), [0, 1, 0, 0]) == 1.0
    assert fit_temperature(np.ones((3, 1)), [0, 0, 0]) == 1.0


def test_huge_logits_do_not_overflow():
    logits = np.array([[1e6, -1e6], [1e6, -1e6], [-1e6, 1e6]], dtype=np.float32)
    assert fit_temperature(logits, [0, 1, 1]) == pytest.approx(HIGHEST)


def test_rows_that_are_all_right_do_not_make_the_model_surer_than_they_allow():
    rng = np.random.default_rng(0)
    targets = rng.integers(0, 2, 100)
    logits = 3.0 * np.eye(2)[targets] + rng.normal(scale=0.3, size=(100, 2))
    assert (logits.argmax(axis=1) == targets).all()
    fitted = fit_temperatures(logits, logits, targets)
    confidence = softmax(logits / fitted.predictor).max(axis=1).mean()
    assert 0.97 < confidence < 1 - 1 / (2 * 102)


def test_each_side_has_its_own_temperature_and_few_rows_have_none():
    logits, targets = drawn(400)
    fitted = fit_temperatures(3 * logits, logits, targets)
    assert fitted.rows == 400
    assert fitted.predictor == pytest.approx(3 * fitted.full_text, rel=0.02)
    assert fit_temperatures(3 * logits[:49], logits[:49], targets[:49]) == Temperatures(1.0, 1.0, 0)
    assert fit_temperatures(3 * logits[:50], logits[:50], targets[:50]).rows == 50


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_a_temperature_is_positive(value):
    with pytest.raises(ValueError, match="positive"):
        Temperatures(full_text=value)


@pytest.mark.parametrize(
    ("values", "targets", "message"),
    [
        (np.zeros((0, 2)), [], r"shape \(0, 2\)"),
        (np.zeros(3), [0, 0, 0], r"shape \(3,\)"),
        ([[float("nan"), 0.0]], [0], "finite"),
        ([[0.5, 0.5]], [0, 1], "one for each"),
        ([[0.5, 0.5]], [2], "0 to 1"),
        ([[0.5, 0.5]], [0.5], "0 to 1"),
    ],
)
@pytest.mark.parametrize("function", [expected_calibration_error, fit_temperature])
def test_what_cannot_be_used_is_said(function, values, targets, message):
    with pytest.raises(DataError, match=message):
        function(values, targets)


def test_logits_are_no_probabilities():
    with pytest.raises(DataError, match="from -1 to 3"):
        expected_calibration_error([[3.0, -1.0]], [0])
    with pytest.raises(DataError, match="bins is 0"):
        expected_calibration_error([[0.5, 0.5]], [0], bins=0)
