"""The beer reviews of Lei et al. 2016, "Rationalizing Neural Predictions", from their files.

A document's text is its tokens joined by one space, so that the segmenter ``whitespace`` gives their tokens back
and an interval of tokens is a range of characters.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from infocal.data.records import BadRows
from infocal.errors import DataError
from infocal.text.sources import open_bytes, shown
from infocal.types import Document, Span

__all__ = [
    "ANNOTATIONS",
    "ASPECTS",
    "VECTORS",
    "aspect_number",
    "first_tokens",
    "read_annotations",
    "read_reviews",
    "review_file",
]

ASPECTS = ("appearance", "smell", "palate")
"""In the order of the files' numbers and of the ratings on each line."""
ANNOTATIONS = "annotations.json"
VECTORS = "review+wiki.filtered.200.txt.gz"

_REVIEW = "ratings in [0, 1] separated by spaces, a tab, the tokens separated by spaces"


def review_file(aspect: str, part: str) -> str:
    """The name of the file of an aspect's ``"train"`` or ``"heldout"`` reviews."""
    return f"reviews.aspect{aspect_number(aspect)}.{part}.txt.gz"


def aspect_number(aspect: str) -> int:
    """The number that the files know an aspect by."""
    return ASPECTS.index(aspect)


def read_reviews(
    path: str | Path, aspect: str, *, bad_rows: BadRows, most_tokens: int | None = None
) -> Iterator[Document]:
    """Read the reviews of one file, each labelled with its rating of ``aspect``.

    Lines without any token are passed over, as the authors' own reader does.

    Args:
        path: a file of lines of ratings, a tab and tokens; plain or gzip.
        aspect: one of ``ASPECTS``.
        bad_rows: raises the error of a line that cannot be used, or counts it.
        most_tokens: keep only so many tokens of each review; None keeps all.

    Raises:
        DataError: the file is missing or holds no review.
    """
    number, source, found_any = aspect_number(aspect), str(path), False
    for line, raw in _lines(path):
        try:
            document = _review(raw, number, source, line)
        except DataError as error:
            bad_rows.report(error)
            continue
        if document is not None:
            found_any = True
            yield document if most_tokens is None else first_tokens(document, most_tokens)
    if not found_any:
        raise DataError("the file holds no review", allowed=f"lines of {_REVIEW}", source=source)


def read_annotations(path: str | Path, aspect: str, *, bad_rows: BadRows) -> Iterator[Document]:
    """Read the annotated reviews, each with its rating of ``aspect`` and the tokens that humans marked for it.

    Args:
        path: a file of one JSON object a line: ``x`` the tokens, ``y`` the ratings, and under the number of each
            aspect the half-open intervals of tokens that were marked; plain or gzip.
        aspect: one of ``ASPECTS``.
        bad_rows: raises the error of a line that cannot be used, or counts it.

    Raises:
        DataError: the file is missing or holds no review.
    """
    number, source, found_any = aspect_number(aspect), str(path), False
    for line, raw in _lines(path):
        try:
            document = _annotated(raw, number, source, line)
        except DataError as error:
            bad_rows.report(error)
            continue
        found_any = True
        yield document
    if not found_any:
        raise DataError("the file holds no review", allowed="one JSON object a line", source=source)


def first_tokens(document: Document, count: int) -> Document:
    """The document cut after so many tokens, its marked spans with it."""
    tokens = document.text.split(" ", count)
    if len(tokens) <= count:
        return document
    text = " ".join(tokens[:count])
    rationale = document.rationale
    if rationale is not None:
        rationale = tuple((start, min(end, len(text))) for start, end in rationale if start < len(text))
    return Document(text, document.label, rationale, document.line)


def _lines(path: str | Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers."""
    with open_bytes(path) as stream:
        for number, raw in enumerate(stream, 1):
            if raw.strip():
                yield number, raw


def _review(raw: bytes, aspect: int, source: str, line: int) -> Document | None:
    problem = partial(DataError, source=source, line=line)
    ratings, tab, review = _decoded(raw, source, line).partition("\t")
    if not tab:
        raise problem(f"there is no tab on the line {shown(ratings.strip())}", allowed=_REVIEW)
    values = [_rating(field, source, line) for field in ratings.split()]
    tokens = _ascii_split(review)
    if len(values) <= aspect:
        raise _too_few(len(values), aspect, source, line)
    return Document(" ".join(tokens), values[aspect], None, line) if tokens else None


def _annotated(raw: bytes, aspect: int, source: str, line: int) -> Document:
    problem = partial(DataError, source=source, line=line)
    record = _record(_decoded(raw, source, line), source, line)
    tokens = record["x"]
    if not isinstance(tokens, list) or not tokens or not all(map(_is_token, tokens)):
        odd = tokens if not isinstance(tokens, list) else next((t for t in tokens if not _is_token(t)), tokens)
        raise problem(f"'x' holds {shown(odd)}", allowed="a list of tokens: strings that are not empty, no spaces")
    ratings = record["y"]
    if not isinstance(ratings, list):
        raise problem(f"'y' is {shown(ratings)}", allowed="a list of ratings in [0, 1]")
    values = [_rating(value, source, line) for value in ratings]
    if len(values) <= aspect:
        raise _too_few(len(values), aspect, source, line)
    spans = _character_spans(tokens, _intervals(record, str(aspect), len(tokens), source, line))
    return Document(" ".join(tokens), values[aspect], spans, line)


def _decoded(raw: bytes, source: str, line: int) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        found = f"byte 0x{raw[error.start]:02x} at position {error.start} of the line is not UTF-8"
        raise DataError(found, allowed="UTF-8 text", source=source, line=line) from error


def _ascii_split(text: str) -> list[str]:
    """Cut at ASCII white space alone, as the authors' reader does: a no-break space is part of a token."""
    return [part.decode("utf-8") for part in text.encode("utf-8").split()]


def _rating(value: object, source: str, line: int) -> float:
    try:
        rating = float(value) if isinstance(value, str | int | float) and value is not True else -1.0
    except ValueError:
        rating = -1.0
    if not 0.0 <= rating <= 1.0:
        raise DataError(f"the rating is {shown(value)}", allowed="a number from 0 to 1", source=source, line=line)
    return rating


def _too_few(count: int, aspect: int, source: str, line: int) -> DataError:
    found = f"{count} ratings, none for {ASPECTS[aspect]} (number {aspect})"
    return DataError(found, allowed=f"at least {aspect + 1}", source=source, line=line)


def _record(text: str, source: str, line: int) -> dict[str, Any]:
    allowed = 'one JSON object a line, with "x", "y" and the aspects\' numbers'
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        found = f"the line is not JSON ({error}): {shown(text.strip())}"
        raise DataError(found, allowed=allowed, source=source, line=line) from error
    missing = [name for name in ("x", "y") if not isinstance(record, dict) or name not in record]
    if missing:
        raise DataError(f"there is no {missing[0]!r} on the line", allowed=allowed, source=source, line=line)
    return dict(record)


def _is_token(value: object) -> bool:
    return isinstance(value, str) and len(_ascii_split(value)) == 1 and value == _ascii_split(value)[0]


def _intervals(record: dict[str, Any], name: str, length: int, source: str, line: int) -> list[Span]:
    problem = partial(DataError, source=source, line=line)
    allowed = f"a list of [start, end) with 0 <= start <= end <= {length}, the number of tokens"
    found = record.get(name)
    if not isinstance(found, list):
        what = "is not there" if name not in record else f"is {shown(found)}"
        raise problem(f"the list of marked tokens {name!r} {what}", allowed=allowed)
    for pair in found:
        right = isinstance(pair, list) and len(pair) == 2 and all(type(place) is int for place in pair)
        if not right or not 0 <= pair[0] <= pair[1] <= length:
            raise problem(f"the marked tokens {name!r} hold {shown(pair)}", allowed=allowed)
    return sorted((start, end) for start, end in found if start < end)


def _character_spans(tokens: Sequence[str], intervals: Sequence[Span]) -> tuple[Span, ...]:
    """Intervals of tokens, sorted, as ranges of characters of the joined text; those that touch become one."""
    joined: list[Span] = []
    for first, last in intervals:
        if joined and first <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    starts = [0, *accumulate(len(token) + 1 for token in tokens)]
    return tuple((starts[first], starts[last] - 1) for first, last in joined)
