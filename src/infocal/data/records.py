"""Rows of users' files, one at a time, each with the line where it starts."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from infocal.errors import DataError, MissingExtraError
from infocal.text.sources import open_bytes, shown, shown_list

__all__ = [
    "FORMATS",
    "BadRows",
    "Record",
    "check_columns",
    "format_of",
    "missing_column",
    "no_row",
    "read_records",
]

FORMATS = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")
_KEPT_EXAMPLES = 5
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_ARRAY_START = re.compile(rb"\s*\[\s*(\{|$)")
_LARGEST_FIELD = min(sys.maxsize, 2**31 - 1)

Record = tuple[int, dict[str, Any]]
"""A line number and the row that starts there, by column."""


@dataclass(slots=True)
class BadRows:
    """What happens to rows that cannot be used.

    Attributes:
        skip: whether to leave them out and go on.
        count: how many were left out.
        examples: the first of their errors.
    """

    skip: bool = False
    count: int = 0
    examples: list[DataError] = field(default_factory=list)

    def report(self, error: DataError) -> None:
        """Raise the error, or count it where bad rows are to be left out."""
        if not self.skip:
            raise error
        self.count += 1
        if len(self.examples) < _KEPT_EXAMPLES:
            self.examples.append(error)

    def summary(self) -> str | None:
        """One paragraph on the rows left out; None if there are none."""
        if not self.count:
            return None
        shown_errors = "\n".join(f"  {error}" for error in self.examples)
        more = f"\n  and {self.count - len(self.examples):,} more" if self.count > len(self.examples) else ""
        return f"{self.count:,} bad row{'s' if self.count > 1 else ''} left out:\n{shown_errors}{more}"


def no_row(allowed: str, source: str | None, bad_rows: BadRows) -> DataError:
    """The error for data of which every row was left out, with what is wrong with one of them."""
    example = next((error for error in bad_rows.examples if error.source == source), None)
    first = f", e.g. {example}" if example else ""
    return DataError(f"there is no row that can be used{first}", allowed=allowed, source=source)


def format_of(path: str | Path) -> str:
    """The suffix that says how a file is to be read, without ``.gz``.

    Raises:
        DataError: the suffix is none of the known ones, or the path is a folder.
    """
    if Path(path).is_dir():
        raise _folder(Path(path))
    name = Path(path).name.lower().removesuffix(".gz")
    suffix = Path(name).suffix
    if suffix not in FORMATS:
        allowed = f"{', '.join(FORMATS)}, each but the last also with .gz"
        raise DataError(f"the file's name ends in {shown(suffix)}", allowed=allowed, source=str(path))
    return suffix


def _folder(path: Path) -> DataError:
    """The error for a folder; those who can use an encoded corpus have looked for one before."""
    from infocal.data.encoded import is_encoded

    if is_encoded(path):
        found = "this is a folder of `infocal prepare`, which keeps numbers of words and no texts"
        return DataError(found, allowed="a file of texts", source=str(path))
    allowed = (
        "a file of texts; of a folder of court cases `infocal prepare cail` makes one that `infocal train` and "
        "`evaluate` take"
    )
    return DataError("this is a folder", allowed=allowed, source=str(path))


def read_records(
    path: str | Path, bad_rows: BadRows, *, required: Collection[str], optional: Collection[str] = ()
) -> Iterator[Record]:
    """The rows of a file in any known format.

    Args:
        path: the file.
        bad_rows: told of rows that are broken.
        required: columns that a file with a header must have; dotted names may be nested in a column.
        optional: columns to read if they are there.

    Raises:
        DataError: the file as a whole cannot be used.
    """
    suffix = format_of(path)
    if suffix == ".parquet":
        return _parquet(path, bad_rows, required, optional)
    return _csv(path, suffix, bad_rows, required) if suffix in (".csv", ".tsv") else _json(path, bad_rows)


def check_columns(columns: Collection[str], required: Iterable[str], source: str) -> None:
    """Raise DataError unless every required column, or the column it is nested in, is there."""
    for name in required:
        if name not in columns and name.split(".")[0] not in columns:
            raise missing_column(name, columns, source)


def missing_column(name: str, columns: Collection[str], source: str, line: int | None = None) -> DataError:
    """The error for a column that is not there, with those that are."""
    allowed = "one of these, chosen with --text NAME, --label NAME or --rationale NAME"
    if {"fact", "meta"} <= set(columns):
        allowed = "of court cases --text fact and --label article, charge or term, or `infocal prepare cail` first"
    return DataError(
        f"there is no column {shown(name)}; the columns are {shown_list(list(columns))}",
        allowed=allowed,
        source=source,
        line=line,
    )


class _Lines:
    """Decoded lines of a file, which remembers where a row starts and whether one of its lines was broken."""

    def __init__(self, stream: BinaryIO, bad_rows: BadRows, source: str) -> None:
        self._raw = _physical_lines(stream)
        self._bad_rows, self._source = bad_rows, source
        self.number = 0
        self.start = 1
        self.broken = False
        self.ended = False

    def begin(self) -> None:
        """A new row starts with the next line."""
        self.start, self.broken = self.number + 1, False

    def __iter__(self) -> Iterator[str]:
        for raw in self._raw:
            self.number += 1
            line = raw.removeprefix(_BYTE_ORDER_MARK) if self.number == 1 else raw
            problem = _encoding_problem(line, self._source, self.number)
            if problem and not self.broken:
                self.broken = True
                self._bad_rows.report(problem)
            # The broken row is dropped later, but its quotation marks must still be seen.
            yield line.decode("utf-8", errors="replace")
        self.ended = True


def _physical_lines(stream: BinaryIO) -> Iterator[bytes]:
    """Lines ended by any of LF, CR LF and CR, with their ends."""
    for line in stream:
        if b"\r" in line:
            yield from line.splitlines(keepends=True)
        else:
            yield line


def _encoding_problem(line: bytes, source: str, number: int) -> DataError | None:
    """The error for a line that is not UTF-8 or holds NUL; None if it is right."""
    try:
        line.decode("utf-8")
        if b"\0" not in line:
            return None
        found = f"a NUL byte at position {line.index(0)} of the line"
    except UnicodeDecodeError as error:
        found = f"byte 0x{line[error.start]:02x} at position {error.start} of the line is not UTF-8"
    if number == 1 and line.startswith(_UTF16_MARKS):
        found += "; the file looks like UTF-16"
    return DataError(found, allowed="UTF-8 text without NUL bytes", source=source, line=number)


def _csv(path: str | Path, suffix: str, bad_rows: BadRows, required: Collection[str]) -> Iterator[Record]:
    source = str(path)
    csv.field_size_limit(_LARGEST_FIELD)
    with open_bytes(path) as stream:
        lines = _Lines(stream, bad_rows, source)
        rows = _csv_rows(lines, suffix, bad_rows, source)
        header = [name.strip() for name in next(rows, (0, []))[1]]
        _check_header(header, lines, required, source)
        for line, row in rows:
            if len(row) == len(header):
                yield line, dict(zip(header, row, strict=True))
                continue
            found = f"{len(row)} fields, the first {shown(row[0])}"
            allowed = f"{len(header)} fields, as in the header"
            bad_rows.report(DataError(found, allowed=allowed, source=source, line=line))


def _csv_rows(lines: _Lines, suffix: str, bad_rows: BadRows, source: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that are neither blank nor broken, with the line where each starts."""
    decoded = iter(lines)
    first = next(decoded, "")
    reader = csv.reader(chain([first], decoded), delimiter=_delimiter(first, suffix))
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            bad_rows.report(DataError(str(error), allowed="quoted CSV", source=source, line=lines.start))
            row = []
        if row and lines.ended:  # a row that is whole is given before the end is looked for
            found = f"a quotation mark is opened and never closed: {shown(row[-1])}"
            allowed = "a closing mark, or no mark at the beginning of the field"
            bad_rows.report(DataError(found, allowed=allowed, source=source, line=lines.start))
            return
        # The header's own line is judged by the caller: without it nothing can be read.
        if row and (not lines.broken or lines.start == 1):
            yield lines.start, row
        lines.begin()


def _delimiter(header: str, suffix: str) -> str:
    """Tab for .tsv; for .csv a comma, or what spreadsheets of other countries write where there is none."""
    if suffix == ".tsv":
        return "\t"
    return next((mark for mark in ",;\t" if mark in header), ",")


def _check_header(header: list[str], lines: _Lines, required: Collection[str], source: str) -> None:
    if not header:
        raise DataError("the file is empty", allowed="a header and rows", source=source)
    if lines.broken:
        raise DataError("the header is not UTF-8 text", allowed="UTF-8", source=source, line=lines.start)
    _check_once(header, source, lines.start)
    check_columns(header, required, source)


def _check_once(names: Sequence[str], source: str, line: int | None = None) -> None:
    twice = [name for name in dict.fromkeys(names) if name and names.count(name) > 1]
    if twice:
        found = f"the header names a column twice: {shown_list(twice)}"
        raise DataError(found, allowed="each name once", source=source, line=line)


def _json(path: str | Path, bad_rows: BadRows) -> Iterator[Record]:
    source = str(path)
    with open_bytes(path) as stream:
        for number, raw in enumerate(stream, 1):
            line = raw.removeprefix(_BYTE_ORDER_MARK) if number == 1 else raw
            if number == 1 and _ARRAY_START.match(line):
                found = "the file is one JSON array"
                allowed = "one JSON object a line; jq -c '.[]' FILE writes it so"
                raise DataError(found, allowed=allowed, source=source, line=number)
            if not line.strip():
                continue
            try:
                yield number, _json_object(line, source, number)
            except DataError as error:
                bad_rows.report(error)


def _json_object(line: bytes, source: str, number: int) -> dict[str, Any]:
    problem = _encoding_problem(line, source, number)
    if problem:
        raise problem
    text = line.decode("utf-8").strip()
    try:
        record = json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        why = f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
        found = f"the line is no usable JSON ({why}): {shown(text)}"
        allowed = "one JSON object a line, each name once"
        raise DataError(found, allowed=allowed, source=source, line=number) from error
    if not isinstance(record, dict):
        found = f"the line is not a JSON object but {shown(record)}"
        raise DataError(found, allowed="one JSON object a line", source=source, line=number)
    return record


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        twice = [name for name in record if names.count(name) > 1]
        raise ValueError(f"a name stands twice in it: {shown_list(twice)}")
    return record


def _parquet(
    path: str | Path, bad_rows: BadRows, required: Collection[str], optional: Collection[str]
) -> Iterator[Record]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", "parquet", "reading Parquet files") from error
    source = str(path)
    number = 0
    with open_bytes(path) as stream:
        try:
            file = pyarrow.parquet.ParquetFile(stream)
            names = file.schema_arrow.names
            _check_once(names, source)
            check_columns(names, required, source)
            wanted = {name if name in names else name.split(".")[0] for name in (*required, *optional)}
            for batch in file.iter_batches(batch_size=4096, columns=sorted(wanted & set(names))):
                for record in _batch_rows(batch):
                    number += 1
                    if isinstance(record, UnicodeDecodeError):
                        found = f"a text is not UTF-8: byte 0x{record.object[record.start]:02x} at {record.start}"
                        bad_rows.report(DataError(found, allowed="UTF-8 text", source=source, line=number))
                    else:
                        yield number, record
        except pyarrow.ArrowException as error:
            raise DataError(f"the file is not readable Parquet: {error}", source=source) from error


def _batch_rows(batch: Any) -> Iterator[dict[str, Any] | UnicodeDecodeError]:
    """The rows of an Arrow batch; in place of one whose text cannot be decoded, why."""
    try:
        yield from batch.to_pylist()
        return
    except UnicodeDecodeError:
        pass
    for row in range(batch.num_rows):
        try:
            yield batch.slice(row, 1).to_pylist()[0]
        except UnicodeDecodeError as error:
            yield error
