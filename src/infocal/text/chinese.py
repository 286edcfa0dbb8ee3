"""Chinese words as jieba cuts them, by its fast counterpart rjieba."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from infocal.errors import MissingExtraError
from infocal.types import Span

__all__ = ["cut_spans", "require_rjieba"]

# jieba's dictionary looks at runs of these alone; any other character is a token by itself.
_RUN = re.compile(r"[\u4E00-\u9FD5a-zA-Z0-9+#&._%-]+|\S")
# rjieba keeps "EF17-40mm" and "0.07g" whole; jieba cuts them so, unless they stand in its dictionary.
_PIECE = re.compile(r"[a-zA-Z0-9]+(?:\.[0-9]+)?%?|[^a-zA-Z0-9]+")


def require_rjieba() -> None:
    """Raise MissingExtraError unless rjieba can be imported."""
    _cutter()


@cache
def _cutter() -> Any:
    try:
        import rjieba
    except ImportError as error:
        raise MissingExtraError("rjieba", "chinese", "cutting Chinese text into words") from error
    return rjieba.Jieba()


def cut_spans(text: str) -> list[Span]:
    """The spans of the words of ``text`` as jieba cuts it, without white space.

    Where unknown words have equally likely cuts (one sign many times over), rjieba may take the other one.

    Raises:
        MissingExtraError: rjieba is not installed.
    """
    cutter = _cutter()
    spans: list[Span] = []
    for run in _RUN.finditer(text):
        start = run.start()
        for word in _run_words(cutter, run.group()):
            spans.append((start, start + len(word)))
            start += len(word)
    return spans


def _run_words(cutter: Any, run: str) -> list[str]:
    if len(run) == 1:
        return [run]
    words: list[str] = cutter.cut(run)
    if run.isalnum():
        return words
    return [piece for word in words for piece in _pieces(cutter, word)]


def _pieces(cutter: Any, word: str) -> list[str]:
    if word.isalnum() or not word.isascii() or cutter.has_word(word):
        return [word]
    return _PIECE.findall(word)
