"""Reviews that the package writes itself, for the demo, the docs and the tests.

Each review judges several aspects of a watch, each its own way. The label is the opinion on one of them, so
only that aspect's clause tells it, and the clause's place is known to the character.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import TypeVar

from infocal.data.toy_phrases import CLAUSES, COMMON, NEUTRAL, PHRASES, Graded
from infocal.errors import SettingsError
from infocal.files import write_text
from infocal.types import Document, Span

__all__ = ["ASPECTS", "ToyClause", "ToyReview", "compose_reviews", "toy_reviews", "toy_scores", "write_toy"]

ASPECTS: tuple[str, ...] = tuple(PHRASES)
"""What a review can judge; each can be the target."""

_T = TypeVar("_T")
_CENTRES = (1.4, 2.4, 3.6, 4.6)
_NEGATED_SHARE = 0.25
_JOINED_SHARE = 0.35
_OPENERS = ("Honestly, ", "For me, ", "So far ", "After a month ", "In my case ", "Well, ", "As I see it, ")
_ENDS = (".", ".", ".", ".", ".", "!", "...", "!!")
_EMOJI = (" 🙂", " 📦", " ⌚", " 🤷", " ☕", " 👋")
_SLOT = re.compile(r"\[([^\]]*)\]|\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class ToyClause:
    """One opinion in a review.

    Attributes:
        aspect: what it judges.
        grade: 0 awful, 1 poor, 2 fair, 3 superb.
        negated: whether it is said by denying the contrary.
        span: where it stands in the review's text.
    """

    aspect: str
    grade: int
    negated: bool
    span: Span = (0, 0)


@dataclass(frozen=True, slots=True)
class ToyReview:
    """A review with all that is known of it.

    Attributes:
        text: the review.
        target: its clause on the target aspect.
        others: its clauses on other aspects, in order.
        score: from 1.0 to 5.0, by the target's grade and some noise; above 3 where the opinion is good.
    """

    text: str
    target: ToyClause
    others: tuple[ToyClause, ...]
    score: float


@dataclass(frozen=True, slots=True)
class _Piece:
    """A stretch of text, with the opinion it is if it is one; terse ones have no verb to join by "and"."""

    text: str
    clause: ToyClause | None = None
    terse: bool = False


def toy_reviews(count: int, *, aspect: str = "battery", seed: int = 0) -> list[Document]:
    """Reviews labelled "good" or "bad" by their opinion on one aspect, half of each.

    The first reviews of a longer list are those of a shorter one with the same seed.

    Args:
        count: how many.
        aspect: one of ``ASPECTS``; the rationale is the clause on it.
        seed: the same seed gives the same reviews on every machine and Python.
    """
    return [
        Document(review.text, "good" if review.target.grade >= 2 else "bad", (review.target.span,), row)
        for row, review in enumerate(compose_reviews(count, aspect=aspect, seed=seed))
    ]


def toy_scores(count: int, *, aspect: str = "battery", seed: int = 0) -> list[Document]:
    """The reviews of ``toy_reviews`` with a score from 1.0 to 5.0 in place of the class."""
    return [
        Document(review.text, review.score, (review.target.span,), row)
        for row, review in enumerate(compose_reviews(count, aspect=aspect, seed=seed))
    ]


def write_toy(path: str | Path, documents: Sequence[Document]) -> None:
    """Write documents as JSON lines with the fields ``text``, ``label`` and ``rationale``."""
    lines = (
        json.dumps(
            {"text": document.text, "label": document.label, "rationale": document.rationale},
            ensure_ascii=False,
        )
        for document in documents
    )
    write_text(path, "".join(f"{line}\n" for line in lines))


def compose_reviews(count: int, *, aspect: str = "battery", seed: int = 0) -> list[ToyReview]:
    """The reviews behind ``toy_reviews`` and ``toy_scores``, with every clause's aspect, grade and place."""
    if aspect not in PHRASES:
        raise SettingsError(f"the toy reviews have no aspect {aspect!r}; choose one of: {', '.join(ASPECTS)}")
    if count < 1:
        raise SettingsError(f"asked for {count} toy reviews; ask for at least 1")
    random = Random(seed)  # noqa: S311 - nothing here is secret
    reviews: list[ToyReview] = []
    good = False
    for row in range(count):
        good = not good if row % 2 else _chance(random, 0.5)
        reviews.append(_review(random, aspect, good=good))
    return reviews


# Random.random is the one method whose numbers Python promises never to change: all draws go through it.
def _chance(random: Random, probability: float) -> bool:
    return random.random() < probability


def _pick(random: Random, options: Sequence[_T]) -> _T:
    return options[int(random.random() * len(options))]


def _shuffled(random: Random, items: Sequence[_T]) -> list[_T]:
    rest, order = list(items), []
    while rest:
        order.append(rest.pop(int(random.random() * len(rest))))
    return order


def _fill(random: Random, template: str, words: Mapping[str, str]) -> str:
    """Draw one alternative for each ``[a|b]`` and each ``{name}`` of a template."""

    def draw(slot: re.Match[str]) -> str:
        alternatives: str = slot[1] or words[slot[2]]
        return _pick(random, alternatives.split("|"))

    return _SLOT.sub(draw, template)


def _words(aspect: str, *, grade: int, negated: bool) -> dict[str, str]:
    """The alternatives for each slot of a clause."""
    phrases = PHRASES[aspect]
    said = (grade + 2) % 4 if negated else grade  # "not great" is poor, "not good" awful, "not weak" superb
    graded: dict[str, Graded] = {"acts": phrases.acts, "moments": phrases.moments, **COMMON}
    return {
        "topics": phrases.topics,
        "subjects": phrases.subjects,
        "nouns": phrases.nouns,
        "proofs": phrases.proofs[grade],
        **{name: alternatives[said] for name, alternatives in graded.items()},
    }


def _opinion(random: Random, aspect: str, grade: int) -> _Piece:
    """A clause of 5 to 10 words that judges an aspect."""
    negated = _chance(random, _NEGATED_SHARE)
    words = _words(aspect, grade=grade, negated=negated)
    while True:
        shape = _pick(random, CLAUSES["negated" if negated else "plain"])
        text = _fill(random, shape, words)
        if 5 <= len(text.split()) <= 10:
            terse = not shape.startswith(("{subjects}", "{topics}", "I "))
            return _Piece(text, ToyClause(aspect, grade, negated), terse)


def _review(random: Random, aspect: str, *, good: bool) -> ToyReview:
    """A review of 40 to 90 words, of which the target's clause is a tenth to a fifth."""
    grade = 2 * good + _chance(random, 0.5)
    score = round(_CENTRES[grade] + 0.8 * (random.random() - 0.5), 2)
    target = _opinion(random, aspect, grade)
    while True:
        pieces = _pieces(random, target)
        length = len("".join(piece.text for piece in pieces).split())
        if 40 <= length <= 90 and 0.1 <= len(target.text.split()) / length <= 0.2:
            return _assemble(_roughened(random, pieces), aspect, score)


def _pieces(random: Random, target: _Piece) -> list[_Piece]:
    """The target's clause among other opinions and neutral sentences, with what stands between them."""
    aspect = target.clause.aspect if target.clause else ""
    others = _shuffled(random, [name for name in ASPECTS if name != aspect])[: _pick(random, (2, 3, 3, 4))]
    opinions = [_opinion(random, name, int(4 * random.random())) for name in others]
    neutral = _neutral(random, aspect, count=_pick(random, (2, 2, 3)))
    items = _shuffled(random, [target, *opinions, *neutral])
    pieces: list[_Piece] = []
    while items:
        size = 2 if len(items) > 1 and _chance(random, _JOINED_SHARE) else 1
        pieces += [*_sentence(random, items[:size], aspect), _Piece(" ")]
        items = items[size:]
    return pieces[:-1]


def _sentence(random: Random, items: Sequence[_Piece], aspect: str) -> list[_Piece]:
    """One or two clauses with what opens, joins and ends them."""
    first, rest = items[0], items[1:]
    if first.clause is not None and _chance(random, 0.15):
        pieces = [_Piece(_pick(random, _OPENERS)), first]
    else:
        pieces = [replace(first, text=first.text[0].upper() + first.text[1:])]
    for second in rest:
        pieces += [_Piece(_joiner(random, first, second, aspect)), second]
    emoji = _pick(random, _EMOJI) if _chance(random, 0.04) else ""
    return [*pieces, _Piece(_pick(random, _ENDS) + emoji)]


def _neutral(random: Random, aspect: str, *, count: int) -> list[_Piece]:
    """Clauses that judge nothing; now and then one that names the target aspect, or another."""
    pieces = [_Piece(_fill(random, text, {})) for text in _shuffled(random, NEUTRAL)[:count]]
    if _chance(random, 0.3):
        named = aspect if _chance(random, 0.5) else _pick(random, ASPECTS)
        pieces[0] = _Piece(_pick(random, PHRASES[named].facts.split("|")))
    return pieces


def _joiner(random: Random, first: _Piece, second: _Piece, aspect: str) -> str:
    """A conjunction; next to the target it must not depend on polarity, or it would tell the label."""
    if first.terse or second.terse:
        return _pick(random, ("; ", " ... ", " / "))
    if first.clause is None or second.clause is None:
        return _pick(random, (", and ", ", but ", "; "))
    if aspect in (first.clause.aspect, second.clause.aspect):
        return _pick(random, (", and ", " and ", " while ", ", while ", "; "))
    if (first.clause.grade >= 2) == (second.clause.grade >= 2):
        return _pick(random, (" and ", ", and "))
    return _pick(random, (" but ", ", but ", ", yet ", " while "))


def _roughened(random: Random, pieces: list[_Piece]) -> list[_Piece]:
    """The pieces as people type them: typos, shouted words, no capitals at all, curly apostrophes."""
    if _chance(random, 0.25):
        pieces = _with_changed_word(random, pieces, typo=True)
    if _chance(random, 0.15):
        pieces = _with_changed_word(random, pieces, typo=False)
    if _chance(random, 0.1):
        pieces = [replace(piece, text=piece.text.lower()) for piece in pieces]
    if _chance(random, 0.2):
        pieces = [replace(piece, text=piece.text.replace("'", "’")) for piece in pieces]
    return pieces


def _with_changed_word(random: Random, pieces: list[_Piece], *, typo: bool) -> list[_Piece]:
    """Misspell, or shout, a word of five letters or more in one of the opinions."""
    places = [
        (index, word)
        for index, piece in enumerate(pieces)
        if piece.clause is not None
        for word in re.finditer(r"[a-z]{5,}", piece.text)
    ]
    if not places:
        return pieces
    index, word = _pick(random, places)
    text = pieces[index].text
    changed = _misspelt(random, word[0]) if typo else word[0].upper()
    piece = replace(pieces[index], text=text[: word.start()] + changed + text[word.end() :])
    return [*pieces[:index], piece, *pieces[index + 1 :]]


def _misspelt(random: Random, word: str) -> str:
    """The word with an inner letter swapped with the next, lost or doubled."""
    cut = 1 + int(random.random() * (len(word) - 2))
    swapped = word[:cut] + word[cut + 1] + word[cut] + word[cut + 2 :]
    return _pick(random, (swapped, word[:cut] + word[cut + 1 :], word[: cut + 1] + word[cut:]))


def _assemble(pieces: list[_Piece], aspect: str, score: float) -> ToyReview:
    """Join the pieces and note where each opinion came to stand."""
    text, clauses = "", []
    for piece in pieces:
        if piece.clause is not None:
            clauses.append(replace(piece.clause, span=(len(text), len(text) + len(piece.text))))
        text += piece.text
    target = next(clause for clause in clauses if clause.aspect == aspect)
    return ToyReview(text, target, tuple(clause for clause in clauses if clause is not target), score)
