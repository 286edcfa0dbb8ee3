"""Words and their ids; a rare word shares its id with words of the same shape and ending."""

from __future__ import annotations

import zlib
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import regex

from infocal.errors import ModelError
from infocal.text.segmentation import normalise

__all__ = ["Vocabulary", "coarse_key"]

_CACHE_LIMIT = 200_000
_HAN_END = regex.compile(r"\p{Han}\Z")
_ENDING = 3


SENTENCE_ENDS = (".", "!", "?", ";", "…", "。", "；", "？", "！", "।", "؟", "۔")
"""Marks that end a sentence; normalised ones are looked up, so full-width forms need no entry of their own."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The ids: 0 is padding, then come ``unknown_buckets`` ids for unknown words, then the words.

    Attributes:
        words: normalised, in the order of their ids.
        unknown_buckets: how many ids unknown words share, by their shape and ending.
    """

    words: tuple[str, ...]
    unknown_buckets: int
    _known: dict[str, int] = field(init=False, repr=False)
    _cache: dict[str, int] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        first = 1 + self.unknown_buckets
        object.__setattr__(self, "_known", {word: first + place for place, word in enumerate(self.words)})

    @classmethod
    def build(
        cls,
        counts: Mapping[str, int],
        *,
        min_count: int,
        max_words: int,
        unknown_buckets: int,
        keep: Container[str] = (),
        extra: Sequence[str] = (),
    ) -> Vocabulary:
        """Choose the words, most frequent first, equal counts in alphabetical order.

        Args:
            counts: how often each normalised word was seen.
            min_count: fewer times seen is unknown.
            max_words: at most so many words are chosen for their counts.
            unknown_buckets: ids for all other words, at least 1.
            keep: words with a pretrained vector: they stay whatever their count, beyond ``max_words`` too.
            extra: words appended although never seen, so that new texts can use their vectors.
        """
        chosen: list[str] = []
        room = max_words
        for word in sorted(counts, key=lambda word: (-counts[word], word)):
            if word in keep:
                chosen.append(word)
            elif room > 0 and counts[word] >= min_count:
                chosen.append(word)
                room -= 1
        return cls(tuple(dict.fromkeys([*chosen, *extra])), unknown_buckets)

    def __len__(self) -> int:
        return 1 + self.unknown_buckets + len(self.words)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return (self.words, self.unknown_buckets) == (other.words, other.unknown_buckets)

    def __hash__(self) -> int:
        return hash((self.words, self.unknown_buckets))

    def __contains__(self, word: object) -> bool:
        return word in self._known

    def ids(self, tokens: Iterable[str]) -> list[int]:
        """The ids of tokens as they stand in a text; never 0."""
        cached = self._cache.get
        return [cached(token) or self._look_up(token) for token in tokens]

    def _look_up(self, token: str) -> int:
        word = normalise(token)
        found = self._known.get(word) or self._bucket(word)
        if len(self._cache) >= _CACHE_LIMIT:
            self._cache.clear()
        self._cache[token] = found
        return found

    def _bucket(self, word: str) -> int:
        return 1 + zlib.crc32(coarse_key(word).encode("utf-8", "surrogatepass")) % self.unknown_buckets

    def sentence_ends(self) -> list[int]:
        """The ids of the marks that end a sentence."""
        return [self._known[mark] for mark in SENTENCE_ENDS if mark in self._known]

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"unknown_buckets": self.unknown_buckets, "words": list(self.words)}

    @classmethod
    def from_json(cls, record: object) -> Vocabulary:
        """The vocabulary that :meth:`to_json` wrote.

        Raises:
            ModelError: the record is not such a vocabulary.
        """
        if not isinstance(record, dict):
            raise ModelError("the model's vocabulary is damaged: it is not a JSON object")
        words, buckets = record.get("words"), record.get("unknown_buckets")
        if type(buckets) is not int or buckets < 1:
            raise ModelError(f"the model's vocabulary is damaged: unknown_buckets is {buckets!r}, not >= 1")
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ModelError("the model's vocabulary is damaged: words is not a list of strings")
        if len(set(words)) != len(words):
            raise ModelError("the model's vocabulary is damaged: a word stands in it twice")
        return cls(tuple(words), buckets)


def coarse_key(word: str) -> str:
    """What unknown words share a bucket by: the shape, and the ending of an alphabetic or Han word."""
    if word.startswith(("http://", "https://", "ftp://", "www.")):
        return "address"
    if len(word) > 1 and word[0] in "@#":
        return "handle"
    if any(map(str.isdigit, word)):
        return "digits" if not any(map(str.isalpha, word)) else "has digit"
    if _HAN_END.search(word):
        return f"han {word[-1]}"
    return f"letters {word[-_ENDING:]}" if any(map(str.isalpha, word)) else "other"
