"""Documents from users' files and from Python data, one at a time, every one checked."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from infocal.data.records import BadRows, missing_column, read_records
from infocal.errors import DataError
from infocal.text.sources import shown, shown_list
from infocal.types import Document, Label, Span, joined_spans

__all__ = ["BadRows", "checked_text", "documents_from", "read_documents"]

_MISSING: Any = object()
_NOT_LABELS = {"nan", "inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"}

Problem = Callable[..., DataError]
"""Builds the error for what was found in a row, with the place of the row."""


def read_documents(
    path: str | Path,
    *,
    bad_rows: BadRows,
    text: str = "text",
    label: str | Sequence[str] | None = "label",
    rationale: str | None = "rationale",
    require_label: bool = True,
    require_rationale: bool = False,
) -> Iterator[Document]:
    """Read documents from CSV, TSV, JSON lines (each also .gz) or Parquet, as a stream.

    Args:
        path: the file; its name says the format.
        bad_rows: raises the error of a row that cannot be used, or counts it.
        text: the column of the text; a dotted name reaches into nested objects.
        label: the column of the label; a list of columns gives each document a mapping of labels; None to read no
            labels.
        rationale: the column of the human's spans, JSON lists of [start, end]; None to read none.
        require_label: whether a document must have a label; if not, what is no label is None.
        require_rationale: whether the column must be there; if not, it is used where it is.

    Raises:
        DataError: the file cannot be used, or holds no document; its message says where and why.
    """
    source = str(path)
    labels = [label] if isinstance(label, str) else list(label or ())
    columns = _Columns(text, labels, not isinstance(label, str), rationale, require_label, source)
    required = [text, *(labels if require_label else [])]
    required += [rationale] if rationale and require_rationale else []
    optional = [*labels, *([rationale] if rationale else [])]
    documents, annotated, keys = 0, False, tuple[str, ...]()
    for line, record in read_records(path, bad_rows, required=required, optional=optional):
        annotated = annotated or _field(record, rationale) is not _MISSING
        keys = tuple(record)
        try:
            document = columns.document(record, line)
        except DataError as error:
            bad_rows.report(error)
            continue
        documents += 1
        yield document
    if not documents:
        raise _no_document(bad_rows, source)
    if rationale and require_rationale and not annotated:
        raise missing_column(rationale, keys, source)


def _no_document(bad_rows: BadRows, source: str) -> DataError:
    first = f": none of its rows can be used, e.g. {bad_rows.examples[0]}" if bad_rows.examples else ""
    return DataError(f"the file holds no document{first}", allowed="at least one row", source=source)


@dataclass(frozen=True, slots=True)
class _Columns:
    """Where a document's parts stand in a record."""

    text: str
    labels: Sequence[str]
    by_name: bool
    rationale: str | None
    require_label: bool
    source: str

    def document(self, record: Mapping[str, Any], line: int) -> Document:
        problem = partial(DataError, source=self.source, line=line)
        text = checked_text(self._needed(record, self.text, line), problem)
        labels = {name: self._label(record, name, line, problem) for name in self.labels}
        label = (labels or None) if self.by_name else labels[self.labels[0]]
        return Document(text, label, _spans(_field(record, self.rationale), text, problem), line)

    def _label(self, record: Mapping[str, Any], name: str, line: int, problem: Problem) -> Label | None:
        if not self.require_label:
            return _label_or_none(_field(record, name))
        what = f"label {name!r}" if self.by_name else "label"
        return _label(self._needed(record, name, line), problem, what)

    def _needed(self, record: Mapping[str, Any], name: str, line: int) -> Any:
        value = _field(record, name)
        if value is _MISSING:
            raise missing_column(name, tuple(record), self.source, line)
        return value


def _field(record: Mapping[str, Any], name: str | None) -> Any:
    """The value under a name, or down the path that a dotted name is; a number picks from a list."""
    if name is None:
        return _MISSING
    if name in record:
        return record[name]
    value: Any = record
    for part in name.split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return _MISSING
    return value


def _plain(value: Any) -> Any:
    """A value without the wrappers of numpy, Arrow and pandas."""
    if hasattr(value, "as_py"):
        return value.as_py()
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return None if type(value).__name__ in ("NAType", "NaTType") else value


def _is_nothing(value: object) -> bool:
    return value is None or value is _MISSING or (isinstance(value, float) and math.isnan(value))


def checked_text(value: Any, problem: Problem) -> str:
    """A text that can be read; otherwise ``problem`` makes the error that is raised."""
    value = _plain(value)
    if not isinstance(value, str):
        raise problem(f"the text is {shown(value)}", allowed="a string")
    if not value.strip():
        raise problem(f"the text is empty: {shown(value)}", allowed="a text with at least one word")
    _check_characters(value, "text", problem)
    return value


def _check_characters(value: str, what: str, problem: Problem) -> None:
    if "\0" in value:
        raise problem(f"the {what} holds a NUL character at {value.index(chr(0))}", allowed="text without NUL")
    try:
        value.isascii() or value.encode("utf-8")
    except UnicodeEncodeError as error:
        found = f"the {what} holds the lone surrogate U+{ord(value[error.start]):04X} at {error.start}"
        raise problem(found, allowed="valid Unicode") from error


def _label(value: Any, problem: Problem, what: str = "label") -> Label:
    value = _plain(value)
    if isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]
    allowed = "one class (a name or an integer) or one finite number"
    if isinstance(value, str):
        name = value.strip()
        _check_characters(name, what, problem)
        if name and name.lower() not in _NOT_LABELS:
            return name
    elif isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    found = f"the {what} is " + ("empty" if value in (None, "") else shown(value))
    raise problem(found, allowed=allowed)


def _one_or_several(value: Any, problem: Problem) -> Label | dict[str, Label]:
    if not isinstance(value, Mapping):
        return _label(value, problem)
    return {str(name): _label(part, problem, f"label {name!r}") for name, part in value.items()}


def _label_or_none(value: Any) -> Label | None:
    try:
        return _label(value, DataError)
    except DataError:
        return None


def _spans(value: Any, text: str, problem: Problem) -> tuple[Span, ...] | None:
    """The human's spans, sorted, overlapping ones joined; None if the document is not annotated."""
    value = _plain(value)
    allowed = f"a list of [start, end] with 0 <= start < end <= {len(text)}, the text's length; or nothing"
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else None
        except (ValueError, RecursionError) as error:
            allowed += "; --rationale '' leaves the column alone"
            raise problem(f"the rationale is {shown(value)}", allowed=allowed) from error
    if _is_nothing(value):
        return None
    if not isinstance(value, list | tuple):
        raise problem(f"the rationale is {shown(value)}", allowed=allowed)
    pairs = [_plain(pair) for pair in value]
    for pair in pairs:
        if not _is_span(pair, len(text)):
            raise problem(f"the rationale holds {shown(pair)}", allowed=allowed)
    return joined_spans((int(start), int(end)) for start, end in pairs)


def _is_span(pair: Any, length: int) -> bool:
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        return False
    start, end = map(_plain, pair)
    return type(start) is int and type(end) is int and 0 <= start < end <= length


def documents_from(
    texts: Iterable[Any],
    labels: Iterable[Any] | None = None,
    rationales: Iterable[Any] | None = None,
    *,
    source: str = "data",
) -> Iterator[Document]:
    """Documents from lists, numpy arrays, pandas Series or Arrow columns; ``line`` is the row, from 0.

    Args:
        texts: the texts.
        labels: as many labels, or mappings from name to label where there are several of each; or None.
        rationales: as many lists of (start, end), None where a document is not annotated; or None.
        source: what messages call the data.

    Raises:
        DataError: the lengths differ, or a row cannot be used.
    """
    given: dict[str, Any] = {"texts": texts, "labels": labels, "rationales": rationales}
    columns = {name: values for name, values in given.items() if values is not None}
    for name, values in columns.items():
        _check_column(name, values, source)
    lengths = {name: len(values) for name, values in columns.items() if hasattr(values, "__len__")}
    if len(set(lengths.values())) > 1:
        found = " but ".join(f"{length:,} {name}" for name, length in lengths.items())
        raise DataError(found, allowed="as many of each", source=source)
    return _rows(columns, source)


def _check_column(name: str, values: Any, source: str) -> None:
    allowed = f"a list, array, Series or Arrow column of {name}"
    if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__iter__"):
        raise DataError(f"{name} is {type(values).__name__} {shown(values)}", allowed=allowed, source=source)
    if getattr(values, "ndim", 1) != 1:
        raise DataError(f"{name} has {values.ndim} dimensions", allowed=allowed, source=source)


def _rows(columns: dict[str, Any], source: str) -> Iterator[Document]:
    for row, values in enumerate(zip_longest(*columns.values(), fillvalue=_MISSING)):
        problem = partial(_row_problem, source, row)
        fields = dict(zip(columns, values, strict=True))
        short = [name for name, value in fields.items() if value is _MISSING]
        if short:
            raise problem(f"the {shown_list(short)} end before this row", allowed="as many of each")
        text = checked_text(fields["texts"], problem)
        label = _one_or_several(fields["labels"], problem) if "labels" in fields else None
        yield Document(text, label, _spans(fields.get("rationales"), text, problem), row)


def _row_problem(source: str, row: int, found: str, *, allowed: str = "") -> DataError:
    error = DataError(found, allowed=allowed, source=f"{source}, row {row}")
    error.source, error.line = source, row
    return error
