"""Whether a prediction really rests on the selected words: hide them, or hide all others, and look again.

Sufficiency and comprehensiveness are those of DeYoung et al. 2020, "ERASER: A Benchmark to Evaluate
Rationalized NLP Models" (section 4.2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from infocal.errors import DataError
from infocal.evaluation.ragged import Floats

__all__ = ["comprehensiveness", "prediction_change", "sufficiency"]


def sufficiency(full_prob: ArrayLike, rationale_prob: ArrayLike) -> float:
    """mean(p(full text) - p(selected words only)); lower is better, about 0 if the words suffice.

    Args:
        full_prob: (n,) probability of the class that is predicted from the full text.
        rationale_prob: (n,) probability of the same class from the selected words only.
    """
    return float(_differences(full_prob, rationale_prob, probabilities=True).mean())


def comprehensiveness(full_prob: ArrayLike, without_prob: ArrayLike) -> float:
    """mean(p(full text) - p(text without the selected words)); higher is better.

    Args:
        full_prob: (n,) probability of the class that is predicted from the full text.
        without_prob: (n,) probability of the same class when the selected words are taken away.
    """
    return float(_differences(full_prob, without_prob, probabilities=True).mean())


def prediction_change(full_value: ArrayLike, other_value: ArrayLike) -> float:
    """mean(|predicted from the full text - predicted from a part|), for scores, in the user's units.

    Lower is better if the part is the selected words (sufficiency); higher is better if it is the text
    without them (comprehensiveness).

    Args:
        full_value: (n,) predicted from the full text.
        other_value: (n,) predicted from the part.
    """
    return float(np.abs(_differences(full_value, other_value, probabilities=False)).mean())


def _differences(full: ArrayLike, part: ArrayLike, *, probabilities: bool) -> Floats:
    first, second = np.asarray(full, dtype=np.float64), np.asarray(part, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1 or first.size == 0:
        raise DataError(
            f"predictions of shapes {first.shape} and {second.shape}",
            allowed="two of the same shape (n,), with n at least 1",
        )
    both = np.concatenate((first, second))
    if not np.isfinite(both).all():
        raise DataError("predictions that are not finite", allowed="finite numbers")
    if probabilities and (both.min() < 0.0 or both.max() > 1.0 + 1e-6):
        raise DataError(f"probabilities from {both.min()} to {both.max()}", allowed="0 to 1")
    return first - second
