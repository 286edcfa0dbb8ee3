"""From labels as they were read to what is predicted: which rows can be used, the goal, and the targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from infocal.data.labels import class_name, infer_task, mostly_numbers, number
from infocal.data.readers import BadRows
from infocal.data.split import check_classes
from infocal.errors import DataError, naming
from infocal.tasks import Goal, Joint, Task, fit_task

__all__ = ["Labelled", "settle_labels"]

Kind = Literal["classify", "regress"]


@dataclass(frozen=True)
class Labelled:
    """What labels come to.

    Attributes:
        goal: what is predicted.
        rows: those that can be used, rising.
        targets: (n,) or, of several labels, (n, k), of those rows.
    """

    goal: Goal
    rows: NDArray[np.int64]
    targets: NDArray[Any]


def settle_labels(
    labels: Sequence[Any],
    lines: NDArray[np.int32],
    kind: Literal["auto", "classify", "regress"],
    *,
    source: str,
    bad_rows: BadRows,
    from_text: bool,
) -> Labelled:
    """Find out what labels are, and leave out rows that cannot be learned from.

    Args:
        labels: of each row, one or a mapping of several.
        lines: of each row.
        kind: what to make of the labels.
        source: a name for the rows in messages.
        bad_rows: what to do with rows that cannot be used.
        from_text: whether labels come from a file in which everything is text.
    """
    reader = _Reader(kind, source, bad_rows, from_text)
    several = isinstance(labels[0], Mapping)
    columns = {name: [label[name] for label in labels] for name in labels[0]} if several else {"": list(labels)}
    kinds = {name: reader.kind_of(name, column, lines) for name, column in columns.items()}
    rows, before = np.arange(len(labels)), -1
    while len(rows) != before:  # a row left out for one label may leave a class of another alone
        before = len(rows)
        for name, column in columns.items():
            here = [column[row] for row in rows.tolist()]
            rows = rows[reader.usable(name, here, lines[rows], kinds[name])]
    kept = {name: [column[row] for row in rows.tolist()] for name, column in columns.items()}
    tasks = {name: reader.task(name, column, lines[rows], kinds[name]) for name, column in kept.items()}
    goal: Goal = Joint(tasks) if several else tasks[""]
    encoded = [
        goal.encode(labels[row], source=source, line=line)
        for row, line in zip(rows.tolist(), lines[rows].tolist(), strict=True)
    ]
    return Labelled(goal, rows, goal.target_array(encoded))


@dataclass(frozen=True)
class _Reader:
    """Reads one label of all rows at a time; messages name it where there are several."""

    kind: Literal["auto", "classify", "regress"]
    source: str
    bad_rows: BadRows
    from_text: bool

    def kind_of(self, name: str, labels: Sequence[Any], lines: NDArray[np.int32]) -> Kind:
        """What the labels are; where bad rows are left out, a few names among scores are such rows."""
        if self.kind != "auto":
            return self.kind
        with naming(name):
            try:
                return infer_task(labels, from_text=self.from_text, source=self.source, lines=lines.tolist())
            except DataError:
                if self.bad_rows.skip and mostly_numbers(labels):
                    return "regress"
                raise

    def usable(self, name: str, labels: Sequence[Any], lines: NDArray[np.int32], kind: Kind) -> NDArray[np.int64]:
        """The rows whose label can be learned from."""
        with naming(name):
            if kind == "regress":
                return self._numbers(labels, lines)
            names = [class_name(label) for label in labels]
            return check_classes(names, lines, source=self.source, bad_rows=self.bad_rows)

    def task(self, name: str, labels: Sequence[Any], lines: NDArray[np.int32], kind: Kind) -> Task:
        """What the labels that are left define."""
        with naming(name):
            return fit_task(kind, labels, source=self.source, lines=lines.tolist())

    def _numbers(self, labels: Sequence[Any], lines: NDArray[np.int32]) -> NDArray[np.int64]:
        kept = []
        for row, (label, line) in enumerate(zip(labels, lines.tolist(), strict=True)):
            try:
                number(label, source=self.source, line=None if line < 0 else line)
            except DataError as error:
                self.bad_rows.report(error)
            else:
                kept.append(row)
        if not kept:
            allowed = "rows with a text and a number"
            raise DataError("there is no row that can be used", allowed=allowed, source=self.source)
        return np.array(kept, dtype=np.int64)
