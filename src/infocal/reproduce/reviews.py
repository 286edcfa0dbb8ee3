"""Where the beer reviews come from: Lei's files, or any file of texts with the three ratings."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Self

from infocal.data.beer import ANNOTATIONS, VECTORS, read_annotations, read_reviews, review_file
from infocal.data.readers import BadRows, read_documents
from infocal.errors import DataError
from infocal.files import sha256_of
from infocal.types import Document

__all__ = ["WHAT_TO_BRING", "LeiReviews", "RatedReviews", "Reviews", "aligned"]

TRAINING_TOKENS = 256
"""What the methods compared read of a training review."""

WHAT_TO_BRING = (
    "The beer reviews were withdrawn at the request of their owner, so infocal cannot fetch them. If you have the "
    "files of Lei et al. (2016), put them into one folder and name it with --data:",
    f"  {review_file('appearance', 'train')} and {review_file('appearance', 'heldout')}, likewise aspect1 (smell) "
    "and aspect2 (palate): a review a line, its ratings in [0, 1] separated by spaces, a tab, its tokens "
    "separated by spaces",
    f'  {ANNOTATIONS}: a JSON object a line with "x" (list of tokens), "y" (list of ratings) and "0", "1", "2" '
    "(lists of half-open [start, end) token intervals that humans marked for each aspect)",
    f"  {VECTORS}: a word and 200 numbers a line (or another file of vectors with --vectors)",
    "Without them, --reviews FILE takes any .jsonl, .csv or .parquet file with a text and the columns appearance, "
    "smell and palate: that shows predictions and highlighted words, but no precision or recall.",
)

Part = Literal["train", "dev", "test"]


class Reviews(ABC):
    """Reviews of beer, in three parts.

    Attributes:
        segmenter: the name of the segmenter that gives their tokens.
        annotated: whether humans marked words of the test part.
        vectors: the file of word vectors; None without one.
        limit: how many training and held-out reviews are read; None for all.
        bad_rows: what happens to lines that cannot be used.
    """

    segmenter: str
    annotated: bool
    vectors: Path | None
    limit: int | None
    bad_rows: BadRows

    @abstractmethod
    def read(self, part: Part, aspect: str) -> Iterator[Document]:
        """The reviews of a part, labelled with their rating of an aspect."""

    @abstractmethod
    def files(self, aspects: Sequence[str]) -> dict[str, Path]:
        """What is read for some aspects, by name."""

    @abstractmethod
    def counting_anew(self) -> Self:
        """The same reviews; bad rows are counted from none."""

    def check(self, aspects: Sequence[str]) -> None:
        """Raise DataError unless every file that is needed is there."""
        missing = [path.name for path in self.files(aspects).values() if not path.is_file()]
        if missing:
            raise DataError(f"there is no {', no '.join(missing)}", source=str(self))

    def fingerprints(self, aspects: Sequence[str]) -> dict[str, str]:
        """The SHA-256 of each file, by what it is for."""
        return {name: sha256_of(path) for name, path in self.files(aspects).items()}

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What else decides what is read."""


@dataclass(frozen=True)
class LeiReviews(Reviews):
    """The files of Lei et al. 2016.

    Args:
        folder: where they are.
        vectors: their file of vectors, or another.
        limit: read only so many training and held-out reviews.
        bad_rows: what to do with broken lines.
    """

    folder: Path
    vectors: Path
    limit: int | None = None
    bad_rows: BadRows = field(default_factory=BadRows)
    segmenter = "whitespace"
    annotated = True

    def read(self, part: Part, aspect: str) -> Iterator[Document]:
        """Training and held-out reviews cut as the methods compared do, annotated ones whole."""
        if part == "test":
            return read_annotations(self.folder / ANNOTATIONS, aspect, bad_rows=self.bad_rows)
        path = self.folder / review_file(aspect, "train" if part == "train" else "heldout")
        documents = read_reviews(path, aspect, bad_rows=self.bad_rows, most_tokens=TRAINING_TOKENS)
        return islice(documents, self.limit)

    def files(self, aspects: Sequence[str]) -> dict[str, Path]:
        """Two per aspect, the annotations and the vectors."""
        names = [review_file(aspect, part) for aspect in aspects for part in ("train", "heldout")]
        paths = {name: self.folder / name for name in (*names, ANNOTATIONS)}
        return {**paths, "vectors": self.vectors}

    def counting_anew(self) -> Self:
        """The same reviews; bad rows are counted from none."""
        return replace(self, bad_rows=BadRows(skip=self.bad_rows.skip))

    def facts(self) -> dict[str, Any]:
        """How many reviews are read."""
        return {"kind": "lei", "limit": self.limit}

    def __str__(self) -> str:
        return str(self.folder)


@dataclass(frozen=True)
class RatedReviews(Reviews):
    """Any file of texts with a column of ratings for each aspect; nobody marked words in them.

    A tenth of the reviews is held out and a tenth kept for the test, both chosen by the text alone, so that every
    aspect and every method have the same and a text that occurs twice is on one side.

    Args:
        path: a file that ``infocal train`` reads.
        text: the column of the text.
        vectors: a file of word vectors, if there is one.
        limit: read only so many reviews.
        bad_rows: what to do with rows that cannot be used.
    """

    path: Path
    text: str = "text"
    vectors: Path | None = None
    limit: int | None = None
    bad_rows: BadRows = field(default_factory=BadRows)
    segmenter = "auto"
    annotated = False

    def read(self, part: Part, aspect: str) -> Iterator[Document]:
        """The part's reviews, whole."""
        documents = read_documents(self.path, bad_rows=self.bad_rows, text=self.text, label=aspect, rationale=None)
        return (document for document in islice(documents, self.limit) if _PARTS[_tenth(document)] == part)

    def files(self, aspects: Sequence[str]) -> dict[str, Path]:
        """The file, and the vectors if there are any."""
        vectors = {} if self.vectors is None else {"vectors": self.vectors}
        return {"reviews": self.path, **vectors}

    def counting_anew(self) -> Self:
        """The same reviews; bad rows are counted from none."""
        return replace(self, bad_rows=BadRows(skip=self.bad_rows.skip))

    def facts(self) -> dict[str, Any]:
        """How many reviews are read, which column, and whether there are vectors."""
        return {"kind": "rated", "limit": self.limit, "text": self.text, "vectors": self.vectors is not None}

    def __str__(self) -> str:
        return str(self.path)


_PARTS: tuple[Part, ...] = ("test", "dev", *("train",) * 8)


def _tenth(document: Document) -> int:
    return zlib.crc32(document.text.encode("utf-8", errors="replace")) % 10


def aligned(documents: Mapping[str, Sequence[Document]]) -> Iterator[dict[str, Document]]:
    """The documents that every aspect has, by aspect, in the order of their lines."""
    by_line = {aspect: {document.line: document for document in found} for aspect, found in documents.items()}
    for line in next(iter(by_line.values()), {}):
        if all(line in found for found in by_line.values()):
            yield {aspect: found[line] for aspect, found in by_line.items()}
