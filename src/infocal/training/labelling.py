"""From labels as they were read to what is predicted: which rows can be used, the goal, and the targets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from infocal.data.labels import class_name, infer_task, mostly_numbers, number
from infocal.data.readers import BadRows
from infocal.data.records import no_row
from infocal.data.split import check_classes
from infocal.errors import DataError, SettingsError, naming
from infocal.tasks import Goal, Joint, Task, fit_task
from infocal.text.sources import shown_list
from infocal.types import Document

__all__ = ["Labelled", "check_label", "settle_labels"]

Kind = Literal["classify", "regress"]
Wanted = Literal["auto", "classify", "regress"]


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


def check_label(document: Document, like: object, *, source: str) -> None:
    """Raise DataError unless a document has a label, or one for each name that the first row has.

    Args:
        document: any row.
        like: the label of the first row that could be used; None if there was none yet.
        source: a name for the rows in messages.
    """
    found = _what_is_wrong(document.label, like)
    if found is not None:
        allowed = "a class or a number, or one for each name, the same names in all rows"
        raise DataError(found, allowed=allowed, source=source, line=document.line)


def _what_is_wrong(label: object, like: object) -> str | None:
    if not isinstance(label, Mapping):
        if _is_nothing(label):
            return "there is no label"
        return f"there is one label, where rows before have {_names(like)}" if isinstance(like, Mapping) else None
    if not label:
        return "there is no label"
    if like is not None and not isinstance(like, Mapping):
        return f"there are the labels {_names(label)}, where rows before have one without a name"
    if like is not None and set(like) != set(label):
        return f"the labels are {_names(label)}, where rows before have {_names(like)}"
    empty = next((name for name, part in label.items() if _is_nothing(part)), None)
    return None if empty is None else f"label {empty!r}: there is no label"


def _names(labels: Mapping[Any, Any]) -> str:
    return ", ".join(repr(name) for name in labels)


def _is_nothing(label: object) -> bool:
    return label is None or label != label  # NaN alone differs from itself


def settle_labels(
    labels: Sequence[Any],
    lines: NDArray[np.int32],
    kind: Wanted | Mapping[str, Wanted],
    *,
    source: str,
    bad_rows: BadRows,
    from_text: bool,
) -> Labelled:
    """Find out what labels are, and leave out rows that cannot be learned from.

    Args:
        labels: of each row, one or a mapping of several.
        lines: of each row.
        kind: what to make of the labels; of several, by name, those that are not named are "auto".
        source: a name for the rows in messages.
        bad_rows: what to do with rows that cannot be used.
        from_text: whether labels come from a file in which everything is text.
    """
    reader = _Reader(kind, source, bad_rows, from_text)
    several = isinstance(labels[0], Mapping)
    columns = {name: [label[name] for label in labels] for name in labels[0]} if several else {"": list(labels)}
    reader.check_names(columns)
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

    kind: Wanted | Mapping[str, Wanted]
    source: str
    bad_rows: BadRows
    from_text: bool

    def check_names(self, names: Iterable[str]) -> None:
        """Raise SettingsError if the kind of a label is asked for that is not there."""
        known = [name for name in names if name]
        for name in self.kind if isinstance(self.kind, Mapping) else ():
            if name not in known:
                allowed = f"one of {shown_list(known)}" if known else "without a name, since there is one label"
                raise SettingsError(f"task names the label {name!r}; allowed: {allowed}")

    def kind_of(self, name: str, labels: Sequence[Any], lines: NDArray[np.int32]) -> Kind:
        """What the labels are; where bad rows are left out, a few names among scores are such rows."""
        wanted = self.kind.get(name, "auto") if isinstance(self.kind, Mapping) else self.kind
        if wanted != "auto":
            return wanted
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
            raise no_row("rows with a text and a number", self.source, self.bad_rows)
        return np.array(kept, dtype=np.int64)
