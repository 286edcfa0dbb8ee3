"""Documents as flat arrays of ids: a million of them are a few arrays, not a million lists."""

from __future__ import annotations

import hashlib
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infocal.errors import DataError
from infocal.text.segmentation import Segmenter, normalise
from infocal.text.sources import shown
from infocal.text.vocabulary import Vocabulary
from infocal.types import Document, Label, Span

__all__ = ["Corpus", "CorpusBuilder", "Pieces", "View", "flat_positions"]

CHUNK = 4096
"""Documents that are copied at a time, and so many hundred tokens: what lies beside the corpus stays small."""


class Pieces:
    """Arrays that lie apart, as in several memory-mapped files, read as if one stood behind the other.

    Args:
        parts: the arrays, one-dimensional, of numbers of four bytes.
    """

    dtype = np.dtype(np.int32)

    def __init__(self, parts: Sequence[NDArray[np.int32]]) -> None:
        self.parts = [part for part in parts if len(part)]
        self.starts = np.concatenate([[0], np.cumsum([len(part) for part in self.parts])]).astype(np.int64)

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def shape(self) -> tuple[int]:
        """(total,)."""
        return (len(self),)

    def __getitem__(self, places: NDArray[np.int64] | slice) -> NDArray[np.int32]:
        if isinstance(places, slice):
            places = np.arange(*places.indices(len(self)))
        found = np.empty(len(places), dtype=self.dtype)
        owner = np.searchsorted(self.starts, places, side="right") - 1
        for number in np.unique(owner):
            here = owner == number
            found[here] = self.parts[number][places[here] - self.starts[number]]
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        whole = np.concatenate([np.empty(0, dtype=np.int32), *self.parts])
        return whole if dtype is None else whole.astype(dtype)


class View:
    """The tokens of some documents, read as if they stood behind one another; none of them is copied before.

    Args:
        whole: the tokens of all documents.
        bounds: (n + 1,) the bounds of all documents.
        rows: (k,) which of them, in their order.
    """

    dtype = np.dtype(np.int32)

    def __init__(
        self, whole: NDArray[np.int32] | Pieces, bounds: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> None:
        self.whole = whole
        self.offsets = np.concatenate([[0], np.cumsum(np.diff(bounds)[rows])]).astype(np.int64)
        self._shift = bounds[rows] - self.offsets[:-1]

    def __len__(self) -> int:
        return int(self.offsets[-1])

    @property
    def shape(self) -> tuple[int]:
        """(total,)."""
        return (len(self),)

    def __getitem__(self, places: NDArray[np.int64] | slice) -> NDArray[np.int32]:
        if isinstance(places, slice):
            places = np.arange(*places.indices(len(self)))
        if not len(places):
            return np.empty(0, dtype=self.dtype)
        document = np.searchsorted(self.offsets, places, side="right") - 1
        return self.whole[places + self._shift[document]]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self[:].astype(self.dtype if dtype is None else dtype)


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """n encoded documents, one after the other.

    Attributes:
        ids: (total,) int32, the tokens' ids, in one array, in pieces, or as a view of either.
        offsets: (n + 1,) int64, document i is ids[offsets[i]:offsets[i + 1]].
        lines: (n,) int32, where each document stands in its source; -1 if unknown.
        targets: (n,) int64 classes or float32 scores; None if unknown.
        gold: (total,) bool, tokens of the human's rationale; None if no document is annotated.
        annotated: (n,) bool, which documents have a human rationale; None with ``gold``.
        cut: how many documents were longer than the model reads and lost their ends.
    """

    ids: NDArray[np.int32] | Pieces | View
    offsets: NDArray[np.int64]
    lines: NDArray[np.int32]
    targets: NDArray[Any] | None = None
    gold: NDArray[np.bool_] | None = None
    annotated: NDArray[np.bool_] | None = None
    cut: int = 0

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(n,) tokens of each document."""
        return np.diff(self.offsets)

    def subset(self, rows: NDArray[np.int64]) -> Corpus:
        """The documents of some rows, in their order; ``cut`` stays that of the whole."""
        return self._of(rows, in_place=False)

    def shrink(self, rows: NDArray[np.int64]) -> Corpus:
        """The same for rising rows, in the memory of this corpus, which must not be used any more."""
        if len(rows) > 1 and np.diff(rows).min() <= 0:
            raise ValueError("the rows to shrink to must rise")
        return self._of(rows, in_place=True)

    def view(self, rows: NDArray[np.int64]) -> Corpus:
        """The same as ``subset``, but tokens stay where they are: for a large part of a corpus on disk."""
        if self.gold is not None or isinstance(self.ids, View):
            return self.subset(rows)
        tokens = View(self.ids, self.offsets, rows)
        targets = None if self.targets is None else self.targets[rows]
        return Corpus(ids=tokens, offsets=tokens.offsets, lines=self.lines[rows], targets=targets, cut=self.cut)

    def word_counts(self, size: int) -> NDArray[np.int64]:
        """(size,) how often each id occurs."""
        return _counts(self.ids, size)

    def _of(self, rows: NDArray[np.int64], *, in_place: bool) -> Corpus:
        offsets = np.concatenate([[0], np.cumsum(self.lengths[rows])]).astype(np.int64)

        def gathered(values: NDArray[Any] | Pieces | View) -> NDArray[Any]:
            reuse = in_place and isinstance(values, np.ndarray)
            found = np.asarray(values) if reuse else np.empty(offsets[-1], dtype=values.dtype)
            for start in range(0, len(rows), CHUNK):
                end = min(start + CHUNK, len(rows))
                found[offsets[start] : offsets[end]] = values[flat_positions(self.offsets, rows[start:end])]
            return found[: offsets[-1]]

        return Corpus(
            ids=gathered(self.ids),
            offsets=offsets,
            lines=self.lines[rows],
            targets=None if self.targets is None else self.targets[rows],
            gold=None if self.gold is None else gathered(self.gold),
            annotated=None if self.annotated is None else self.annotated[rows],
            cut=self.cut,
        )

    def sentence_starts(self, ends: Sequence[int]) -> NDArray[np.bool_]:
        """(total,) which tokens begin a document or follow a mark that ends a sentence.

        Args:
            ends: ids of such marks; of several in a row only the last ends the sentence.
        """
        mark = np.isin(np.asarray(self.ids), np.asarray(ends, dtype=np.int32))
        starts = np.zeros(len(self.ids), dtype=np.bool_)
        starts[1:] = mark[:-1] & ~mark[1:]
        starts[self.offsets[:-1]] = True
        return starts

    def fingerprint(self) -> str:
        """The SHA-256 of all that is in the corpus, in hexadecimal."""
        digest = hashlib.sha256()
        for part in fields(self):
            value = getattr(self, part.name)
            digest.update(f"{part.name} {getattr(value, 'dtype', value)} {getattr(value, 'shape', ())};".encode())
            for piece in _in_memory(value):
                if isinstance(piece, np.ndarray):
                    digest.update(np.ascontiguousarray(piece).data)
        return digest.hexdigest()


def flat_positions(offsets: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the tokens of some documents stand in a flat array, document after document.

    Args:
        offsets: (n + 1,) the documents' bounds.
        rows: (k,) which documents.
    """
    starts = offsets[rows]
    lengths = offsets[np.asarray(rows) + 1] - starts
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(total)


def _in_memory(value: Any) -> Iterable[Any]:
    """Arrays, one after the other, that make up what a corpus holds; anything else is given as it is."""
    if isinstance(value, View):
        return (value[start : start + 100 * CHUNK] for start in range(0, len(value), 100 * CHUNK))
    return value.parts if isinstance(value, Pieces) else [value]


def _counts(ids: NDArray[np.int32] | Pieces | View, size: int) -> NDArray[np.int64]:
    """(size,) how often each id occurs; numpy widens what it counts, so it gets a part at a time."""
    counted = np.zeros(size, dtype=np.int64)
    for start in range(0, len(ids), 100 * CHUNK):
        counted += np.bincount(ids[start : start + 100 * CHUNK], minlength=size)
    return counted


class _Words(dict[str, int]):
    """Tokens as they stand in texts -> provisional ids, which tokens alike once normalised share."""

    def __init__(self) -> None:
        self.normalised: dict[str, int] = {}

    def __missing__(self, token: str) -> int:
        word = normalise(token)
        place = self[token] = self.normalised.setdefault(word, len(self.normalised))
        return place


class CorpusBuilder:
    """Encodes documents as they stream by; the vocabulary can be chosen when all were seen.

    Args:
        segmenter: cuts texts into tokens.
        max_tokens: longer documents lose their ends.
        source: what messages call the data.
    """

    def __init__(self, segmenter: Segmenter, *, max_tokens: int, source: str) -> None:
        self.labels: list[Label | Mapping[str, Label | None] | None] = []
        self._segmenter, self._max_tokens, self._source = segmenter, max_tokens, source
        self._words = _Words()
        self._ids, self._offsets = array("i"), array("q", [0])
        self._gold, self._annotated = bytearray(), bytearray()
        self._lines = array("i")
        self._cut = 0

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, document: Document) -> list[Span]:
        """Encode one more document; gives the spans of the tokens that the model reads.

        Raises:
            DataError: the segmenter finds no token in its text; nothing is added.
        """
        text = document.text
        spans = self._segmenter(text)
        if not spans:
            found = f"the text has no token: {shown(text)}"
            raise DataError(found, allowed="a text with words", source=self._source, line=document.line)
        self._cut += len(spans) > self._max_tokens
        spans = spans[: self._max_tokens]
        words = self._words
        self._ids.extend([words[text[start:end]] for start, end in spans])
        self._offsets.append(len(self._ids))
        self._gold += gold_tokens(spans, document.rationale or ()).tobytes()
        self._annotated.append(document.rationale is not None)
        self._lines.append(-1 if document.line is None else document.line)
        label = document.label
        self.labels.append(sys.intern(label) if type(label) is str else label)
        return spans

    def counts(self) -> dict[str, int]:
        """How often each normalised word was seen, in the order of their provisional ids."""
        words = self._words.normalised
        counted = _counts(np.frombuffer(self._ids, dtype=np.int32), len(words))
        return dict(zip(words, counted.tolist(), strict=True))

    @property
    def lines(self) -> NDArray[np.int32]:
        """(n,) where each document stands in its source; -1 if unknown."""
        return np.array(self._lines, dtype=np.int32)

    def provisional(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The provisional ids of all tokens, and where documents begin."""
        return np.frombuffer(self._ids, dtype=np.int32), np.array(self._offsets, dtype=np.int64)

    @property
    def cut(self) -> int:
        """How many documents were longer than the model reads."""
        return self._cut

    def finish(self, vocabulary: Vocabulary, targets: NDArray[Any] | None = None) -> Corpus:
        """The corpus of all documents added, in the ids of ``vocabulary`` and in the memory of the builder.

        It can be finished once; its counts are gone then.

        Args:
            vocabulary: the words and their ids.
            targets: (n,) what to predict of each document.
        """
        if targets is not None and len(targets) != len(self):
            raise ValueError(f"{len(targets)} targets for {len(self)} documents")
        table = np.array(vocabulary.ids(self._words.normalised), dtype=np.int32)
        ids = np.frombuffer(self._ids, dtype=np.int32)
        for start in range(0, len(ids), 100 * CHUNK):
            ids[start : start + 100 * CHUNK] = table[ids[start : start + 100 * CHUNK]]
        gold = np.frombuffer(self._gold, dtype=bool)
        del self._ids, self._gold
        annotated = np.array(self._annotated, dtype=bool)
        known = bool(annotated.any())
        return Corpus(
            ids=ids,
            offsets=np.array(self._offsets, dtype=np.int64),
            lines=self.lines,
            targets=targets,
            gold=gold if known else None,
            annotated=annotated if known else None,
            cut=self._cut,
        )


def gold_tokens(spans: list[Span], rationale: tuple[Span, ...]) -> NDArray[np.bool_]:
    """(t,) which tokens share a character with the human's spans, which are sorted and do not overlap."""
    if not rationale:
        return np.zeros(len(spans), dtype=bool)
    bounds = np.fromiter(chain.from_iterable(spans), dtype=np.int64, count=2 * len(spans))
    gold = np.array(rationale, dtype=np.int64)
    # The first gold span that ends after the token starts is the only one that can come first to meet it.
    place = np.searchsorted(gold[:, 1], bounds[0::2], side="right")
    starts = np.append(gold[:, 0], np.iinfo(np.int64).max)
    return np.asarray(starts[place] < bounds[1::2])
