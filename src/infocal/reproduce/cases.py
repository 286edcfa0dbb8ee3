"""The page of cases: a review with the words that each method, and the human, go by for each aspect, in colours.

The colours are from the palette of Okabe and Ito, which people with any kind of colour vision tell apart; the line
under the words differs too, for grey print.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, groupby, pairwise

from infocal.data.beer import ASPECTS
from infocal.markup import escape, page, percent, value_text
from infocal.types import Document, Explanation, Span

__all__ = ["Case", "Reading", "cases_page", "choose_cases"]

GOOD_LENGTH = 90
"""Tokens of a text that is read at a glance and still says something of every aspect."""

COLOURS: Mapping[str, tuple[str, str, str]] = {
    "appearance": ("#f3c766", "#8a5a00", "solid"),
    "smell": ("#9fd3f3", "#00588f", "dashed"),
    "palate": ("#86cdb4", "#005c43", "double"),
}
"""By aspect the ground, the line under the words, and the line's style."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What was marked in a text for one aspect.

    Attributes:
        spans: the marked ranges of characters.
        prediction: the rating predicted from them; None for a human.
        share: marked tokens / tokens; None for a human.
    """

    spans: tuple[Span, ...]
    prediction: float | None = None
    share: float | None = None

    @classmethod
    def of(cls, explanation: Explanation) -> Reading:
        """What a model selected."""
        return cls(explanation.spans, float(explanation.prediction), explanation.share)


@dataclass(frozen=True)
class Case:
    """A text with what each reader marked in it.

    Attributes:
        documents: the text by aspect, with that aspect's rating and what humans marked for it.
        readings: by reader and aspect.
    """

    documents: Mapping[str, Document]
    readings: dict[str, dict[str, Reading]] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The text, the same for every aspect."""
        return next(iter(self.documents.values())).text

    def add(self, reader: str, aspect: str, reading: Reading) -> None:
        """Add what a reader marked for an aspect."""
        self.readings.setdefault(reader, {})[aspect] = reading

    def human(self) -> dict[str, Reading]:
        """What humans marked, by aspect; empty where nobody did."""
        marked = {aspect: document.rationale for aspect, document in self.documents.items()}
        return {aspect: Reading(spans) for aspect, spans in marked.items() if spans is not None}


def choose_cases(candidates: Iterable[Mapping[str, Document]], count: int) -> list[Case]:
    """The texts of a good length, in their order; where humans marked words, only those marked for each aspect.

    Args:
        candidates: by aspect the same text.
        count: how many to choose.
    """
    usable = [
        documents
        for documents in candidates
        if all(document.rationale is None or document.rationale for document in documents.values())
    ]
    lengths = [abs(len(next(iter(documents.values())).text.split()) - GOOD_LENGTH) for documents in usable]
    nearest = sorted(range(len(usable)), key=lambda place: (lengths[place], place))[:count]
    return [Case(usable[place]) for place in sorted(nearest)]


def cases_page(cases: Sequence[Case], aspects: Sequence[str], *, title: str, notes: Sequence[str] = ()) -> str:
    """A self-contained page in which everything from the texts is escaped.

    Args:
        cases: the texts.
        aspects: those that were trained.
        title: the heading.
        notes: sentences for the end.
    """
    body = [f"<h1>{escape(title)}</h1>", _legend(aspects)]
    body += [_case(number, case, aspects) for number, case in enumerate(cases, 1)]
    if not cases:
        body.append("<p>No review is shown: none was asked for, or in none was every aspect marked.</p>")
    if notes:
        items = "".join(f"<li>{escape(note)}</li>" for note in notes)
        body.append(f"<h2>Notes</h2><ul>{items}</ul>")
    return page(title, "\n".join(body), style=CASES_STYLE + _aspect_styles())


def _legend(aspects: Sequence[str]) -> str:
    marks = " ".join(f'<mark class="{_class((aspect,))}">{escape(aspect)}</mark>' for aspect in aspects)
    both = "; words that count for several aspects show all their colours" if len(aspects) > 1 else ""
    return f'<p class="legend">Marked for {marks}{both}.</p>'


def _case(number: int, case: Case, aspects: Sequence[str]) -> str:
    rows = []
    if human := case.human():
        rows.append(_row("Human", human, case, aspects))
    rows += [_row(reader, readings, case, aspects) for reader, readings in case.readings.items()]
    ratings = ", ".join(
        f"{escape(aspect)} {value_text(case.documents[aspect].label)}"
        for aspect in aspects
        if case.documents[aspect].label is not None
    )
    line = next(iter(case.documents.values())).line
    place = f"line {line} of its file; " if line is not None else ""
    return (
        f'<section><h2>Review {number}</h2><p class="facts">{place}rated {ratings}</p>'
        f"<table><tbody>{''.join(rows)}</tbody></table></section>"
    )


def _row(reader: str, readings: Mapping[str, Reading], case: Case, aspects: Sequence[str]) -> str:
    facts = "".join(_fact(aspect, readings[aspect]) for aspect in aspects if aspect in readings)
    text = _marked(case.text, {aspect: readings[aspect].spans for aspect in aspects if aspect in readings})
    return (
        f'<tr><th scope="row">{escape(reader)}{f"<ul>{facts}</ul>" if facts else ""}</th>'
        f'<td dir="auto" lang="">{text}</td></tr>'
    )


def _fact(aspect: str, reading: Reading) -> str:
    if reading.prediction is None or reading.share is None:
        return ""
    said = f"{aspect} {reading.prediction:.2f} from {percent(reading.share)}"
    return f"<li>{escape(said)}</li>"


def _marked(text: str, spans: Mapping[str, Sequence[Span]]) -> str:
    """The text with its marked ranges, cut wherever what is marked changes."""
    ordered = sorted({0, len(text), *(place for found in spans.values() for span in found for place in span)})
    pieces = [
        (
            tuple(aspect for aspect, found in spans.items() if any(s <= start and end <= e for s, e in found)),
            text[start:end],
        )
        for start, end in pairwise(ordered)
    ]
    parts = []
    for aspects, group in groupby(pieces, key=lambda piece: piece[0]):
        inner = escape("".join(piece for _, piece in group))
        title = escape(", ".join(aspects))
        parts.append(f'<mark class="{_class(aspects)}" title="{title}">{inner}</mark>' if aspects else inner)
    return "".join(parts)


def _class(aspects: Sequence[str]) -> str:
    return "for-" + "-".join(aspects)


def _aspect_styles() -> str:
    """A rule for each aspect and each set of aspects that a word may count for."""
    rules = []
    for size in range(1, len(ASPECTS) + 1):
        for aspects in combinations(ASPECTS, size):
            grounds = [COLOURS[aspect][0] for aspect in aspects]
            _, line, style = COLOURS[aspects[0]]
            edges = [f"{100 * place / size:.0f}%" for place in range(size + 1)]
            stops = ",".join(
                f"{ground} {first} {last}" for ground, (first, last) in zip(grounds, pairwise(edges), strict=True)
            )
            ground = grounds[0] if size == 1 else f"linear-gradient({stops})"
            name = _class(aspects)
            rules.append(
                f".{name}{{background:{ground};border-bottom:{'3px' if style == 'double' else '2px'} "
                f"{style} {line}}}"
            )
            rules.append(f'.{name}::before{{content:" [{", ".join(aspects)}: "}}')
    return "\n".join(rules)


CASES_STYLE = """
main{max-width:72rem}
.legend,.facts{color:var(--soft);margin:.3rem 0 .8rem}
table{border-collapse:collapse;width:100%}
tr{border-top:1px solid var(--line);break-inside:avoid}
tr:last-child{border-bottom:1px solid var(--line)}
th{width:13rem;text-align:start;vertical-align:top;padding:.6rem .8rem .6rem 0;font-weight:600}
th ul{list-style:none;margin:.25rem 0 0;padding:0;color:var(--soft);font-size:.82rem;font-weight:400;
line-height:1.5}
td{vertical-align:top;padding:.6rem 0;line-height:1.85;overflow-wrap:anywhere;white-space:pre-wrap}
mark{color:#14181e;padding:.08em .12em;border-radius:.15em;-webkit-box-decoration-break:clone;
box-decoration-break:clone;print-color-adjust:exact;-webkit-print-color-adjust:exact}
mark::before,mark::after{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(100%);
white-space:nowrap}
mark::after{content:"] "}
@media (max-width:44rem){tr,th,td{display:block;width:auto}th{padding-bottom:0}td{padding-top:.2rem}}
"""
