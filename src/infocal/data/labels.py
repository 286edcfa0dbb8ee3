"""What kind of thing the labels are, and one label as a class or as a number."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Literal

import numpy as np

from infocal.errors import DataError
from infocal.text.sources import shown

__all__ = ["class_name", "infer_task", "number"]

_INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*")


def infer_task(labels: Sequence[object], *, from_text: bool) -> Literal["classify", "regress"]:
    """Whether the labels are classes or scores.

    Strings, truth values and integers are classes, numbers with a fraction part are scores; in a file where
    everything is text, labels are scores if all are numbers and not all integers.

    Args:
        labels: as they were read.
        from_text: whether they come from a format without types, as CSV.

    Raises:
        DataError: some labels are scores and some are not numbers.
    """
    if from_text:
        return _infer_from_text([str(label) for label in labels])
    scores = any(isinstance(label, float | np.floating) for label in labels)
    named = next((label for label in labels if isinstance(label, str | bool | np.bool_)), None)
    if scores and named is not None:
        raise DataError(
            f"some labels are numbers with a fraction part, and one is {shown(named)}",
            allowed="only numbers (scores), or only names and integers (classes)",
        )
    return "regress" if scores else "classify"


def _infer_from_text(labels: Sequence[str]) -> Literal["classify", "regress"]:
    if all(_INTEGER.fullmatch(label) for label in labels):
        return "classify"
    return "regress" if all(_parsed(label) is not None for label in labels) else "classify"


def class_name(label: object) -> str:
    """A label as the name of a class: 3 is "3", True is "true"."""
    if isinstance(label, bool | np.bool_):
        return str(bool(label)).lower()
    return str(label.item() if isinstance(label, np.generic) else label)


def number(label: object, *, source: str, line: int | None) -> float:
    """A label as a score.

    Raises:
        DataError: the label is not a finite number.
    """
    if isinstance(label, int | float | np.integer | np.floating) and not isinstance(label, bool):
        value: float | None = float(label)
    else:
        value = _parsed(label) if isinstance(label, str) else None
    if value is None or not math.isfinite(value):
        raise DataError(f"the label is {shown(label)}", allowed="a finite number", source=source, line=line)
    return value


def _parsed(text: str) -> float | None:
    """The finite number that a text is, if it is one."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in text else None
