"""Whether probabilities mean what they say, and the one number that makes them mean it better."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from infocal.errors import DataError
from infocal.evaluation.ragged import Floats, Integers

__all__ = ["LEAST_ROWS", "Temperatures", "expected_calibration_error", "fit_temperature", "fit_temperatures"]

LEAST_ROWS = 50
"""With fewer rows a temperature says more about these rows than about the model."""
LOWEST, HIGHEST = 0.05, 20.0
"""Temperatures beyond these would make every probability 1, or all of them equal."""
HALVINGS = 60


@dataclass(frozen=True, slots=True)
class Temperatures:
    """What logits are divided by before probabilities are shown; 1 leaves them as they are.

    Attributes:
        predictor: for the answers from the selected words.
        full_text: for those from the full text.
        rows: on how many held-out rows both were fitted; 0 where they were not.
    """

    predictor: float = 1.0
    full_text: float = 1.0
    rows: int = 0

    def __post_init__(self) -> None:
        for value in (self.predictor, self.full_text):
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"a temperature is {value!r}; allowed: a positive number")

    @property
    def at_limit(self) -> bool:
        """Whether no temperature suited the rows, so that one of them is an end of what is allowed."""
        return any(
            math.isclose(value, limit, rel_tol=1e-6)
            for value in (self.predictor, self.full_text)
            for limit in (LOWEST, HIGHEST)
        )


def expected_calibration_error(probabilities: ArrayLike, targets: ArrayLike, *, bins: int = 15) -> float:
    """The mean distance between how sure the answers are and how often they are right (Guo et al. 2017).

    Args:
        probabilities: (n, c); the answer is the most likely class, and its probability the confidence.
        targets: (n,) integers in [0, c).
        bins: of equal width, in which confidences and hits are averaged; each holds its upper end.
    """
    values, truth = _checked(probabilities, targets)
    if bins < 1:
        raise DataError(f"bins is {bins}", allowed="at least 1")
    if values.min() < 0 or values.max() > 1 + 1e-6:
        raise DataError(
            f"the probabilities go from {values.min():g} to {values.max():g}", allowed="numbers from 0 to 1"
        )
    confidence, right = values.max(axis=1), values.argmax(axis=1) == truth
    places = np.clip(np.ceil(confidence * bins).astype(np.int64) - 1, 0, bins - 1)
    gaps = np.bincount(places, weights=confidence - right, minlength=bins)
    return float(np.abs(gaps).sum() / len(truth))


def fit_temperature(logits: ArrayLike, targets: ArrayLike, *, smoothing: float = 0.0) -> float:
    """The temperature at which softmax(logits / temperature) is the most likely to give the targets.

    The negative log-likelihood is convex in 1 / temperature, so that the zero of its slope is found by halving,
    whatever the logits. Where it has no minimum (all answers right, or no better than chance) the nearest
    end of what is allowed is the answer, and 1 where the temperature changes nothing.

    Args:
        logits: (n, c).
        targets: (n,) integers in [0, c).
        smoothing: the part of each target that is spread evenly over all classes.
    """
    values, truth = _checked(logits, targets)
    values = values - values.max(axis=1, keepdims=True)
    wanted = (1 - smoothing) * values[np.arange(len(truth)), truth] + smoothing * values.mean(axis=1)

    def slope(inverse: float) -> float:
        weights = np.exp(inverse * values)
        return float(((weights * values).sum(axis=1) / weights.sum(axis=1) - wanted).mean())

    if slope(1.0) == 0.0:
        return 1.0
    low, high = -math.log(HIGHEST), -math.log(LOWEST)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(math.exp(middle)) < 0 else (low, middle)
    return math.exp(-(low + high) / 2)


def fit_temperatures(predictor: ArrayLike, full_text: ArrayLike, targets: ArrayLike) -> Temperatures:
    """The temperatures of both outputs (n, c) on held-out rows; all 1 where these are fewer than `LEAST_ROWS`.

    Of n rows that are all right nobody can tell that the next one will be: targets are smoothed by
    1 / (n + 2), as the rule of succession has it, so that no probability becomes surer than n rows allow.
    """
    count = len(np.asarray(targets))
    if count < LEAST_ROWS:
        return Temperatures()
    smoothing = 1 / (count + 2)
    return Temperatures(
        predictor=fit_temperature(predictor, targets, smoothing=smoothing),
        full_text=fit_temperature(full_text, targets, smoothing=smoothing),
        rows=count,
    )


def _checked(values: ArrayLike, targets: ArrayLike) -> tuple[Floats, Integers]:
    """A row of finite numbers for each target, in double precision."""
    rows, truth = np.asarray(values, dtype=np.float64), np.asarray(targets)
    if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():
        raise DataError(f"values of shape {rows.shape}", allowed="finite numbers, documents x classes")
    if truth.shape != rows.shape[:1]:
        raise DataError(f"targets of shape {truth.shape} for {len(rows)} documents", allowed="one for each")
    if not np.issubdtype(truth.dtype, np.integer) or truth.min() < 0 or truth.max() >= rows.shape[1]:
        raise DataError("targets are not all classes", allowed=f"integers from 0 to {rows.shape[1] - 1}")
    return rows, truth.astype(np.int64)
