"""Pretrained word vectors from the text formats of GloVe and word2vec."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from infocal.errors import DataError
from infocal.text.segmentation import normalise
from infocal.text.sources import open_bytes, shown

__all__ = ["Vectors", "read_vectors"]

_CHUNK = 2000
_LOOK_AT_LINES = 100
_LARGEST = float(np.finfo(np.float32).max)

_Line = tuple[int, bytes]
_Row = tuple[int, str, bytes]


@dataclass(frozen=True, slots=True)
class Vectors:
    """Words and their vectors.

    Attributes:
        words: n normalised words, each once.
        matrix: (n, d) float32.
    """

    words: list[str]
    matrix: NDArray[np.float32]


def read_vectors(
    path: str | Path, *, wanted: Callable[[str], bool] | None = None, limit: int | None = None
) -> Vectors:
    """Read a text file of vectors, plain or gzip, in one pass; of words alike once normalised the first wins.

    Args:
        path: lines of a word and d numbers; a first line "count d" is allowed.
        wanted: which normalised words to keep; all if None.
        limit: stop after so many kept words.

    Raises:
        DataError: the file is empty, or a line has not d finite numbers.
    """
    source = str(path)
    words: list[str] = []
    parts: list[NDArray[np.float32]] = []
    with open_bytes(path) as stream:
        width, lines = _width(_lines(stream), source)
        rows = islice(_rows(lines, width, wanted, source), limit)
        while chunk := list(islice(rows, _CHUNK)):
            words += [word for _, word, _ in chunk]
            parts.append(_matrix(chunk, width, source))
    matrix = np.concatenate(parts) if parts else np.empty((0, width), dtype=np.float32)
    return Vectors(words, matrix)


def _lines(stream: Iterable[bytes]) -> Iterator[_Line]:
    for number, line in enumerate(stream, 1):
        stripped = line.replace(b"\t", b" ").strip(b" \r\n")
        if stripped:
            yield number, stripped


def _width(lines: Iterator[_Line], source: str) -> tuple[int, Iterator[_Line]]:
    """The number of dimensions, from the header or from what most of the first lines have."""
    first = list(islice(lines, _LOOK_AT_LINES))
    if not first:
        raise DataError("the file is empty", allowed="a word and its numbers on every line", source=source)
    header = first[0][1].removeprefix(b"\xef\xbb\xbf").split()
    if len(header) == 2 and all(field.isdigit() for field in header):
        return int(header[1]), chain(first[1:], lines)
    counts = Counter(line.count(b" ") for _, line in first)
    width = max(counts, key=lambda count: (counts[count], -count))
    if width < 1:
        number, line = first[0]
        raise _bad_line(number, line, "no numbers", "a word and its numbers", source)
    return width, chain(first, lines)


def _rows(lines: Iterator[_Line], width: int, wanted: Callable[[str], bool] | None, source: str) -> Iterator[_Row]:
    """The lines to keep as (line, normalised word, its numbers still as text)."""
    seen: set[str] = set()
    for number, line in lines:
        raw, numbers = _split(number, line, width, source)
        # Public files hold a few words of broken UTF-8: no text will ever ask for them.
        word = normalise(raw.decode("utf-8", errors="replace"))
        if word not in seen and (wanted is None or wanted(word)):
            seen.add(word)
            yield number, word, numbers


def _split(number: int, line: bytes, width: int, source: str) -> tuple[bytes, bytes]:
    """Take the last ``width`` fields as numbers: a word may hold spaces."""
    if line.count(b" ") == width:
        word, _, numbers = line.partition(b" ")
        return word, numbers
    fields = [field for field in line.split(b" ") if field]
    word_fields = fields[: len(fields) - width]
    if not word_fields or (len(word_fields) > 1 and _is_number(word_fields[-1])):
        found = f"{len(fields) - 1} numbers"
        raise _bad_line(number, line, found, f"a word and {width} numbers, as on the other lines", source)
    return b" ".join(word_fields), b" ".join(fields[-width:])


def _matrix(chunk: list[_Row], width: int, source: str) -> NDArray[np.float32]:
    """(n, d) the numbers of n rows."""
    texts = [numbers.decode("latin-1") for _, _, numbers in chunk]
    try:
        with np.errstate(over="ignore"):
            matrix = np.loadtxt(texts, dtype=np.float32, comments=None, ndmin=2)
    except ValueError as error:
        raise _first_problem(chunk, width, source) from error
    if matrix.shape != (len(chunk), width) or not np.isfinite(matrix).all():
        raise _first_problem(chunk, width, source)
    return matrix


def _first_problem(chunk: list[_Row], width: int, source: str) -> DataError:
    """The error for the first row that is not ``width`` finite numbers."""
    allowed = f"{width} finite numbers after the word"
    for number, word, numbers in chunk:
        fields = numbers.split()
        bad = next((field for field in fields if not _is_number(field)), None)
        if bad is not None or len(fields) != width:
            found = f"{len(fields)} numbers" if bad is None else shown(bad.decode("utf-8", errors="replace"))
            return DataError(f"{found} for {shown(word)}", allowed=allowed, source=source, line=number)
    return DataError("numbers that cannot be read", allowed=allowed, source=source, line=chunk[0][0])


def _is_number(field: bytes) -> bool:
    """Whether a field is a number that float32 can hold."""
    try:
        return b"_" not in field and abs(float(field)) <= _LARGEST
    except ValueError:
        return False


def _bad_line(number: int, line: bytes, found: str, allowed: str, source: str) -> DataError:
    start = shown(line[:200].decode("utf-8", errors="replace"))
    return DataError(f"{found} on the line {start}", allowed=allowed, source=source, line=number)
