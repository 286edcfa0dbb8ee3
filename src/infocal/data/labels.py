"""What kind of thing the labels are, and one label as a class or as a number."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Literal

import numpy as np

from infocal.errors import DataError
from infocal.text.sources import shown

__all__ = ["class_name", "infer_task", "mostly_numbers", "number"]

_INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*")


MOSTLY = 0.9
"""Labels of which so many are numbers are meant as numbers; the others are slips."""

LARGEST = 1e100
"""The squares of larger scores would have no place among numbers."""


def infer_task(
    labels: Sequence[object], *, from_text: bool, source: str | None = None, lines: Sequence[int] | None = None
) -> Literal["classify", "regress"]:
    """Whether the labels are classes or scores.

    Strings, truth values and integers are classes, numbers with a fraction part are scores; in a file where
    everything is text, labels are scores if all are numbers and not all integers, and if nearly all are, the rest
    are errors.

    Args:
        labels: as they were read.
        from_text: whether they come from a format without types, as CSV.
        source: what messages call the data.
        lines: where each label stands in it; -1 if unknown.

    Raises:
        DataError: some labels are scores and some are not numbers.
    """
    if from_text:
        scores, named = _read_as_text([str(label) for label in labels])
    else:
        scores = any(isinstance(label, float | np.floating) for label in labels)
        named = next((n for n, label in enumerate(labels) if isinstance(label, str | bool | np.bool_)), None)
    if scores and named is not None:
        line = None if lines is None or lines[named] < 0 else int(lines[named])
        raise DataError(
            f"other labels are numbers with a fraction part, and this one is {shown(labels[named])}",
            allowed="only numbers (scores), or only names and integers (classes); --task says which",
            source=source,
            line=line,
        )
    return "regress" if scores else "classify"


def mostly_numbers(labels: Sequence[object]) -> bool:
    """Whether so many labels are numbers that the others are slips."""
    found = sum(_value(label) is not None for label in labels)
    return found >= MOSTLY * len(labels)


def _read_as_text(labels: Sequence[str]) -> tuple[bool, int | None]:
    """Whether the labels are scores, and the place of the first that is none."""
    if all(_INTEGER.fullmatch(label) for label in labels):
        return False, None
    others = [place for place, label in enumerate(labels) if _parsed(label) is None]
    fractions = len(labels) - len(others) > sum(_INTEGER.fullmatch(label) is not None for label in labels)
    if fractions and len(others) <= (1 - MOSTLY) * len(labels):
        return True, others[0] if others else None
    return False, None


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
    value = _value(label)
    if value is None or abs(value) > LARGEST:
        allowed = f"a finite number, at most {LARGEST:.0e} in size"
        raise DataError(f"the label is {shown(label)}", allowed=allowed, source=source, line=line)
    return value


def _value(label: object) -> float | None:
    """The finite number that a label is, if it is one."""
    if isinstance(label, int | float | np.integer | np.floating) and not isinstance(label, bool):
        try:
            return float(label) if math.isfinite(label) else None
        except OverflowError:
            return None
    return _parsed(label) if isinstance(label, str) else None


def _parsed(text: str) -> float | None:
    """The finite number that a text is, if it is one."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in text else None
