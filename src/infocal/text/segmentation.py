"""Text to tokens as character spans, so that an explanation always points into the reader's own text."""

from __future__ import annotations

import importlib.util
import operator
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Protocol

import regex

from infocal.errors import DataError, ModelError, SettingsError
from infocal.text.chinese import cut_spans, require_rjieba
from infocal.text.sources import shown
from infocal.types import Span

__all__ = [
    "CustomSegmenter",
    "Segmenter",
    "characters",
    "chinese",
    "normalise",
    "resolve_segmenter",
    "segmenter_named",
    "whitespace",
    "words",
]


class Segmenter(Protocol):
    """What turns a text into the spans of its tokens: ordered, not empty or overlapping, inside the text."""

    @property
    def name(self) -> str:
        """The name that a saved model keeps."""

    @property
    def note(self) -> str | None:
        """Something the user should know of this choice, if there is something."""

    def __call__(self, text: str) -> list[Span]:
        """The spans of the tokens of ``text``."""


# Python's own idea of white space: \s lacks the four separators U+001C to U+001F.
_SPACE = r"\s\x1C-\x1F"
# What belongs to the character before it: accents, vowel signs, joiners, variation selectors.
_TAIL = r"\p{GCB=Extend}\p{GCB=SpacingMark}\p{GCB=ZWJ}"
# Scripts written without spaces; the long-vowel marks of kana belong to no script.
_UNSPACED = (
    r"\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\u30FC\uFF70\u3031-\u3035"
)
_LETTER = rf"[[\p{{L}}\p{{N}}]--[{_UNSPACED}]]"
_LETTERS = rf"{_LETTER}[[\p{{L}}\p{{N}}{_TAIL}]--[[{_UNSPACED}]--[{_TAIL}]]]*+"
_ADDRESS = rf"[[[!-~\p{{L}}\p{{N}}]--[<>\"`{_UNSPACED}]]||[{_TAIL}]]"
_GRAPHEME = rf"\p{{GCB=Prepend}}++(?=[{_SPACE}])|(?![{_SPACE}])\X"

_WORDS = regex.compile(
    rf"""(?x)
      [a-zA-Z]++ (?=[ ,!?])                                              # most words, found quickly
    | (?i:https?://|ftp://|www\.) {_ADDRESS}+ (?<![!'(),.:;?\[\]]) (?![{_TAIL}])       # an address
    | (?<![\p{{L}}\p{{N}}]) [@＠\#＃] (?:_*+ {_LETTERS})++ _*+ (?![{_TAIL}])             # @handle, #tag
    | {_LETTERS}
      (?: (?: ['’_] (?={_LETTER}) | (?<=\p{{Nd}}) [.,] (?=\p{{Nd}}) ) {_LETTERS} )*+    # don't, 1,000.5
    | {_GRAPHEME}
    """,
    flags=regex.V1,
)
# The same rules for texts of ASCII alone, which the standard library matches almost three times as fast.
_ASCII_WORDS = re.compile(
    r"""(?x)
      [a-zA-Z]++ (?=[ ,!?])
    | (?i:https?://|ftp://|www\.) [!#-;=?-_a-~]+ (?<![!'(),.:;?\[\]])
    | (?<![a-zA-Z0-9]) [@\#] (?:_*+ [a-zA-Z0-9]++)++ _*+
    | [a-zA-Z0-9]++ (?: (?: ['_] (?=[a-zA-Z0-9]) | (?<=[0-9]) [.,] (?=[0-9]) ) [a-zA-Z0-9]++ )*+
    | \S
    """
)
_CHARACTERS = regex.compile(_GRAPHEME, flags=regex.V1)
_BETWEEN_SPACES = re.compile(r"\S+", flags=re.ASCII)


@dataclass(frozen=True, slots=True)
class _PatternSegmenter:
    """Tokens are the matches of a pattern, or of its quick twin where a text is ASCII."""

    name: str
    pattern: Any
    ascii_pattern: re.Pattern[str]
    note: str | None = None

    def __call__(self, text: str) -> list[Span]:
        pattern = self.ascii_pattern if text.isascii() else self.pattern
        return [match.span() for match in pattern.finditer(text)]


@dataclass(frozen=True, slots=True)
class _ChineseSegmenter:
    """Tokens are jieba's words, cut by rjieba."""

    name: str = "chinese"
    note: str | None = None

    def __call__(self, text: str) -> list[Span]:
        return cut_spans(text)


@dataclass(frozen=True, slots=True)
class CustomSegmenter:
    """A user's own function, whose spans are checked at every call."""

    function: Callable[[str], Iterable[Span]]
    name: str = "custom"
    note: str | None = None

    def __call__(self, text: str) -> list[Span]:
        """The function's spans as pairs of Python integers.

        Raises:
            DataError: a span is not a pair of integers, is empty, outside the text or before the last one.
        """
        spans: list[Span] = []
        reached = 0
        for found in self.function(text):
            start, end = _pair(found)
            if not reached <= start < end <= len(text):
                raise _bad_span(found, f"for a text of {len(text)} characters, after character {reached}")
            spans.append((start, end))
            reached = end
        return spans


def _pair(found: Any) -> Span:
    try:
        start, end = found
        return operator.index(start), operator.index(end)
    except (TypeError, ValueError) as error:
        raise _bad_span(found, "") from error


def _bad_span(found: object, where: str) -> DataError:
    return DataError(
        f"the segmenter gave the span {shown(found)} {where}".rstrip(),
        allowed="pairs (start, end) of integers, in order, not empty, not overlapping, inside the text",
    )


words = _PatternSegmenter("words", _WORDS, _ASCII_WORDS)
"""Words, numbers, addresses, @handles and #tags; every other sign, and every grapheme of a script without
spaces, by itself."""

characters = _PatternSegmenter("characters", _CHARACTERS, re.compile(r"\S"))
"""One grapheme a token."""

chinese = _ChineseSegmenter()
"""Chinese words exactly as jieba cuts them; needs the extra ``chinese``."""

whitespace = _PatternSegmenter("whitespace", _BETWEEN_SPACES, _BETWEEN_SPACES)
"""What stands between ASCII white space, for texts that come tokenised; a no-break space is part of a token."""

_BUILT_IN: dict[str, Segmenter] = {
    "words": words,
    "chinese": chinese,
    "characters": characters,
    "whitespace": whitespace,
}


def resolve_segmenter(choice: str | Callable[[str], Iterable[Span]], sample: Iterable[str] = ()) -> Segmenter:
    """The segmenter that ``choice`` means for texts like those of ``sample``.

    Args:
        choice: "auto", a segmenter's name, or a function from a text to spans.
        sample: some of the texts; only "auto" looks at them.

    Raises:
        SettingsError: no segmenter has this name.
        MissingExtraError: the segmenter needs a package that is not installed.
    """
    if callable(choice):
        own = any(choice is segmenter for segmenter in _BUILT_IN.values())
        return choice if own else CustomSegmenter(choice)  # type: ignore[return-value]
    if choice == "auto":
        return _for_script_of(sample)
    if choice not in _BUILT_IN:
        allowed = ", ".join(["auto", *_BUILT_IN])
        raise SettingsError(f"there is no segmenter {shown(choice)}; allowed: {allowed}, or a function")
    return segmenter_named(choice)


def segmenter_named(name: str) -> Segmenter:
    """The segmenter that a saved model names.

    Raises:
        ModelError: the model was trained with a function of the user's, or names what does not exist.
        MissingExtraError: the segmenter needs a package that is not installed.
    """
    if name == "custom":
        raise ModelError(
            "the model was trained with a segmenter of your own, which a model folder cannot hold; "
            "pass the same function again: segmenter=..."
        )
    if name not in _BUILT_IN:
        raise ModelError(f"the model names the segmenter {shown(name)}; allowed: {', '.join(_BUILT_IN)}")
    if name == "chinese":
        require_rjieba()
    return _BUILT_IN[name]


_HAN_SHARE = 0.3
_KANA_SHARE = 0.1
_LOOK_AT_TEXTS, _LOOK_AT_CHARACTERS = 1000, 2000


def _for_script_of(sample: Iterable[str]) -> Segmenter:
    if not _is_chinese(sample):
        return words
    if importlib.util.find_spec("rjieba") is None:
        note = "the texts look Chinese and are read by the character; for words: pip install 'infocal[chinese]'"
        return replace(characters, note=note)
    return chinese


def _is_chinese(sample: Iterable[str]) -> bool:
    """Whether Han makes up more than 0.3 of the letters, and kana too little for Japanese."""
    letters = han = kana = 0
    for text in islice(sample, _LOOK_AT_TEXTS):
        start = text[:_LOOK_AT_CHARACTERS]
        letters += len(regex.findall(r"\p{L}", start))
        han += len(regex.findall(r"\p{Han}", start))
        kana += len(regex.findall(r"[\p{Hiragana}\p{Katakana}]", start))
    return han > _HAN_SHARE * letters and kana <= _KANA_SHARE * letters


def normalise(token: str) -> str:
    """The form in which tokens are compared: NFKC, case folded, one kind of apostrophe; idempotent."""
    if token.isascii():
        return token.lower()
    # Unicode's own recipe: one folding of a composed form can give something that folds again.
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", token).casefold())
    return unicodedata.normalize("NFKC", folded.casefold()).replace("’", "'")
