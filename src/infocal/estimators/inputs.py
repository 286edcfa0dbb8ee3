"""What users pass as X and y, checked; what is wrong with it is a ValueError."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite, column_or_1d

from infocal.data.labels import class_name
from infocal.errors import DataError, SettingsError
from infocal.text.sources import shown

__all__ = ["check_names", "column", "listed", "name_of", "pair", "targets", "value_errors"]


@contextmanager
def value_errors() -> Iterator[None]:
    """Bad data and bad parameters as the ValueError that scikit-learn's tools expect."""
    try:
        yield
    except (DataError, SettingsError) as error:
        raise ValueError(str(error)) from error


def listed(values: Any) -> Any:
    """Arrow columns as lists, anything else as it is."""
    return values.to_pylist() if hasattr(values, "to_pylist") else values


def column(values: Any) -> Any:
    """The texts of what a user may pass as X: a column, or a table or array that has one column."""
    shape: tuple[int, ...] = getattr(values, "shape", ())
    if len(shape) == 2:
        if shape[1] != 1:
            raise DataError(f"X has {shape[1]} columns", allowed="one column, that of the texts")
        if hasattr(values, "iloc"):
            values = values.iloc[:, 0]
        else:
            values = values.column(0) if hasattr(values, "column") else values[:, 0]
    return listed(values)


def pair(dev: Any) -> tuple[Any, Any]:
    """The two parts of held-out rows."""
    if isinstance(dev, tuple | list) and len(dev) == 2:
        return dev[0], dev[1]
    raise DataError(f"dev is {type(dev).__name__} {shown(dev)}", allowed="a pair (X, y)")


def targets(y: Any, *, estimator: str, dtype: Any = None) -> NDArray[Any]:
    """(n,) the targets, none of them missing.

    Args:
        y: as the user has them.
        estimator: who asks, for messages.
        dtype: to convert them to; None keeps theirs.
    """
    if y is None:
        # scikit-learn's tools look for this very sentence.
        raise ValueError(f"This {estimator} estimator requires y to be passed, but the target y is None.")
    labels: NDArray[Any] = column_or_1d(np.asarray(listed(y)), dtype=dtype, warn=True)
    if not len(labels):
        raise DataError("y is empty", allowed="at least two rows")
    labels = _uniform(labels) if labels.dtype == object else labels
    assert_all_finite(labels, input_name="y")
    return labels


def _uniform(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels of any Python type as text or as numbers; DataError names the first that is of another kind."""
    values = labels.tolist()
    kind = str if any(isinstance(value, str) for value in values) else Real
    for row, value in enumerate(values):
        if not isinstance(value, kind):
            allowed = "only text, or only numbers"
            raise DataError(f"the label is {shown(value)}", allowed=allowed, source=f"y, row {row}")
    return labels if kind is str else np.array(values)


def name_of(label: str | float) -> str:
    """A class as the model names it: whole numbers without a fraction, text without space around it."""
    whole = isinstance(label, float) and label.is_integer()
    return class_name(int(label) if whole else label).strip()


def check_names(classes: list[Any]) -> None:
    """Raise DataError if two classes have one name."""
    seen: dict[str, Any] = {}
    for label in classes:
        other = seen.setdefault(name_of(label), label)
        if other != label:
            raise DataError(
                f"the classes {shown(other)} and {shown(label)} differ only in white space",
                allowed="classes that can be told apart",
                source="y",
            )
