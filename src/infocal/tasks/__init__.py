"""What is predicted: one class of several, a score, or several of these at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from infocal.data.labels import class_name, number
from infocal.errors import DataError, ModelError, SettingsError
from infocal.tasks.base import Goal, Task
from infocal.tasks.classification import Classification
from infocal.tasks.joint import Joint
from infocal.tasks.regression import Regression

__all__ = [
    "Classification",
    "Goal",
    "Joint",
    "Regression",
    "Task",
    "fit_task",
    "goal_from_json",
    "parts_of",
    "shares_of",
    "task_from_json",
]


def parts_of(goal: Goal) -> tuple[Task, ...]:
    """The tasks of which a goal consists."""
    if isinstance(goal, Task):
        return (goal,)
    if isinstance(goal, Joint):
        return tuple(goal.tasks.values())
    raise TypeError(f"{goal!r} is neither one task nor several")


def shares_of(goal: Goal, select: float | Mapping[str, float]) -> tuple[float, ...]:
    """The share of words for each part of a goal.

    Args:
        goal: what is predicted.
        select: one share for all parts, or one for each by its name.

    Raises:
        SettingsError: a part has none, or there is no such part.
    """
    if not isinstance(select, Mapping):
        return (select,) * len(parts_of(goal))
    names = tuple(goal.tasks) if isinstance(goal, Joint) else ()
    if set(names) != set(select):
        wanted = f"one for each of {', '.join(names)}" if names else "one share, since there is one label"
        raise SettingsError(f"select has shares for {', '.join(select)}; allowed: {wanted}")
    return tuple(select[name] for name in names)


def fit_task(
    kind: Literal["classify", "regress"], labels: Sequence[object], *, source: str, lines: Sequence[int]
) -> Task:
    """The task that training labels define.

    Args:
        kind: what to make of the labels.
        labels: the raw labels of the training rows.
        source: where they come from, for messages.
        lines: the line of each label, for messages.
    """
    if kind == "classify":
        names = {class_name(label) for label in labels}
        return Classification(tuple(sorted(names, key=_natural)))
    values = np.array([number(label, source=source, line=line) for label, line in zip(labels, lines, strict=True)])
    low, high = float(values.min()), float(values.max())
    if low == high:
        raise DataError(
            f"every label is {low:g}", allowed="at least two different scores to learn from", source=source
        )
    return Regression(low, high, max(float(((values - low) / (high - low)).var()), 1e-4))


def _natural(name: str) -> tuple[int, int, str]:
    """Numbers in their order, then words in theirs."""
    try:
        return (0, int(name), name)
    except ValueError:
        return (1, 0, name)


def task_from_json(record: Mapping[str, Any]) -> Task:
    """Read back what :meth:`Task.to_json` wrote; ModelError if it is something else."""
    try:
        if record["kind"] == "classify":
            priors = record.get("priors")
            return Classification(
                tuple(str(name) for name in record["classes"]),
                None if priors is None else tuple(float(prior) for prior in priors),
            )
        if record["kind"] == "regress":
            return Regression(float(record["low"]), float(record["high"]), float(record["variance"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"the model's task record is damaged: {error!r} in {dict(record)}") from None
    raise ModelError(
        f"the model's task {record['kind']!r} is unknown; this version knows classify, regress and joint"
    )


def goal_from_json(record: Mapping[str, Any]) -> Goal:
    """The same for what :meth:`Goal.to_json` wrote, one task or several."""
    if record.get("kind") != "joint":
        return task_from_json(record)
    try:
        parts = dict(record["tasks"])
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"the model's task record is damaged: {error!r} in {dict(record)}") from None
    return Joint({str(name): task_from_json(part) for name, part in parts.items()})
