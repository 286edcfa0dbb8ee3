"""Explanations as plain text, for a terminal and as HTML; the lowest layer.

Whatever comes from a user's text or label is escaped on its way: nothing of it can act as markup, as a
script or as a terminal's control sequence.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from infocal.types import Explanation

__all__ = [
    "escape",
    "explanation_html",
    "explanation_text",
    "markdown_table",
    "markdown_text",
    "page",
    "percent",
    "plain",
    "show",
    "value_text",
]

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
HIGHLIGHT = "bold underline dark_orange3"
MARK_STYLE = (
    "background:var(--infocal-mark,#ffdf80);color:var(--infocal-mark-ink,#1a1a1a);"
    "font-weight:600;border-radius:.2em;padding:.1em 0 .25em;"
    "-webkit-box-decoration-break:clone;box-decoration-break:clone"
)
GOLD_STYLE = (
    "text-decoration:underline solid 2px var(--infocal-gold,#2b7de0);"
    "text-underline-offset:.15em;text-decoration-skip-ink:none"
)
UNREAD_STYLE = "opacity:.65;font-style:italic"
TEXT_STYLE = "white-space:pre-wrap;overflow-wrap:anywhere;line-height:1.7"

_ILLEGAL_IN_HTML = re.compile(
    "[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef"
    + "".join(chr(plane << 16 | 0xFFFE) + chr(plane << 16 | 0xFFFF) for plane in range(17))
    + "]"
)
_ACTIVE_IN_MARKDOWN = re.compile(r"[\\`*_{}\[\]<>|!~]")
_NOT_FOR_TERMINALS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def plain(explanation: Explanation) -> str:
    """The prediction with what is known of it, then the text with the selected ranges in ``[[...]]``.

    No control characters are in it.
    """
    text = "".join(
        f"[[{visible(piece.text)}]]" if piece.selected else visible(piece.text)
        for piece in _joined(_pieces(explanation, with_tokens=False))
    )
    head = " · ".join(fact.line() for fact in (_headline(explanation), *_facts(explanation)))
    return f"{visible(head)}\n{text}"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, its first column to the left and the others to the right."""
    ruler = ["---", *("---:" for _ in header[1:])]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, ruler, *rows))


def markdown_text(text: object) -> str:
    """A user's own words on one line of Markdown, in which nothing of them is markup."""
    return _ACTIVE_IN_MARKDOWN.sub(r"\\\g<0>", " ".join(str(text).split()).replace("&", "&amp;"))


def show(console: Console, explanation: Explanation) -> None:
    """Print an explanation, in colour on a terminal, with ``[[...]]`` elsewhere."""
    if console.is_terminal:
        console.print(explanation)
    else:
        console.print(plain(explanation), soft_wrap=True, markup=False, highlight=False)
    console.print()


def explanation_text(explanation: Explanation) -> Text:
    """The prediction with what is known of it, then the text with the selected ranges highlighted."""
    from rich.text import Text

    result = Text()
    result.append(visible(_headline(explanation).line()), style="bold")
    for fact in _facts(explanation):
        result.append(f" · {visible(fact.line())}")
    result.append("\n")
    for piece in _joined(_pieces(explanation, with_tokens=False)):
        style = HIGHLIGHT if piece.selected else "dim italic" if piece.unread else ""
        result.append(visible(piece.text), style=style)
    return result


def explanation_html(explanation: Explanation, *, language: str = "") -> str:
    """A self-contained fragment of HTML; ``language`` is the text's tag, if it is known.

    Selected ranges are in ``<mark>``, the human's words in ``<u>``; a token's title says how probable its
    selection was. Stripped of its tags, the text's element holds the text exactly, except that characters
    which HTML forbids (NUL and other controls, lone surrogates, noncharacters) are shown as U+FFFD.
    """
    facts = "".join(f' <span class="infocal-fact">· {fact.html()}</span>' for fact in _facts(explanation))
    text = f'class="infocal-text" dir="auto" lang="{escape(language)}" style="{TEXT_STYLE}"'
    return (
        '<div class="infocal-explanation">'
        f'<div class="infocal-head"><strong>{_headline(explanation).html()}</strong>{facts}</div>'
        f"<div {text}>{_text_html(explanation)}</div>"
        "</div>"
    )


def page(title: str, body: str, *, language: str = "en", style: str = "") -> str:
    """A complete HTML page without scripts or anything fetched from elsewhere, for light and dark screens.

    Args:
        title: plain text; it is escaped.
        body: HTML, inserted as it is.
        language: the page's language tag.
        style: more CSS after the page's own.
    """
    return (
        f'<!DOCTYPE html>\n<html lang="{escape(language)}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{PAGE_STYLE}{style}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def escape(text: str) -> str:
    """Text for HTML, in an element or a quoted attribute; a carriage return survives, illegal ones do not."""
    return html.escape(_ILLEGAL_IN_HTML.sub("�", text), quote=True).replace("\r", "&#13;")


def visible(text: str) -> str:
    """Text for a terminal: control characters except line feed and tab become pictures of themselves."""
    return _NOT_FOR_TERMINALS.sub(_picture, text)


def percent(share: float) -> str:
    """A share in whole per cent; never 0 or 100 unless it is exactly that."""
    if 0.0 < share < 0.005:
        return "<1 %"
    if 0.995 <= share < 1.0:
        return ">99 %"
    return f"{100 * share:.0f} %"


def value_text(value: object) -> str:
    """A label as it is, a number with no more digits than help a reader."""
    if not isinstance(value, float):
        return str(value)
    if value == 0.0 or abs(value) >= 0.001:
        return f"{value:.3f}".rstrip("0").rstrip(".") if abs(value) < 1e15 else f"{value:.6g}"
    return f"{value:.3g}"


@dataclass(frozen=True, slots=True)
class _Piece:
    """A stretch of text to which the same things apply."""

    text: str
    selected: bool
    gold: bool
    unread: bool
    title: str


def _pieces(explanation: Explanation, *, with_tokens: bool) -> Iterator[_Piece]:
    """The text cut at every boundary, in order."""
    length = len(explanation.text)
    tokens = explanation.tokens if with_tokens else ()
    read_to = explanation.read_to if explanation.truncated else length
    selected = _clip(explanation.spans, length)
    gold = _clip(explanation.gold or (), length)
    titles = {start: percent(score) for (start, _), score in zip(tokens, explanation.scores, strict=False)}
    token_spans = _clip(tokens, length)
    cuts = {0, length, min(max(read_to, 0), length)}
    cuts.update(place for spans in (selected, gold, token_spans) for span in spans for place in span)
    ordered = sorted(cuts)
    inside_selected, inside_gold, inside_token = (
        _covered(spans, ordered) for spans in (selected, gold, token_spans)
    )
    title = ""
    for index, (start, end) in enumerate(pairwise(ordered)):
        title = titles.get(start, title) if inside_token[index] else ""
        yield _Piece(
            explanation.text[start:end], inside_selected[index], inside_gold[index], start >= read_to, title
        )


def _clip(spans: Sequence[tuple[int, int]], length: int) -> list[tuple[int, int]]:
    """The spans as far as they lie in the text, without empty ones."""
    clipped = ((min(max(start, 0), length), min(max(end, 0), length)) for start, end in spans)
    return [(start, end) for start, end in clipped if start < end]


def _covered(spans: Sequence[tuple[int, int]], cuts: Sequence[int]) -> list[bool]:
    """For each stretch between cuts, whether a span covers it; every span's ends are cuts."""
    steps = dict.fromkeys(cuts, 0)
    for start, end in spans:
        steps[start] += 1
        steps[end] -= 1
    depth, covered = 0, []
    for cut in cuts:
        depth += steps[cut]
        covered.append(depth > 0)
    return covered


def _joined(pieces: Iterator[_Piece]) -> Iterator[_Piece]:
    """Neighbours joined where both are selected or neither is, whatever the human marked."""
    for (selected, unread), group in groupby(pieces, key=lambda piece: (piece.selected, piece.unread)):
        yield _Piece("".join(piece.text for piece in group), selected, gold=False, unread=unread, title="")


def _text_html(explanation: Explanation) -> str:
    parts: list[str] = []
    for selected, run in groupby(_pieces(explanation, with_tokens=True), key=lambda piece: piece.selected):
        inner = "".join(_gold_html(gold, group) for gold, group in groupby(run, key=lambda piece: piece.gold))
        parts.append(f'<mark class="infocal-selected" style="{MARK_STYLE}">{inner}</mark>' if selected else inner)
    return "".join(parts)


def _gold_html(gold: bool, pieces: Iterator[_Piece]) -> str:
    inner = "".join(_piece_html(piece) for piece in pieces)
    return f'<u class="infocal-gold" style="{GOLD_STYLE}">{inner}</u>' if gold else inner


def _piece_html(piece: _Piece) -> str:
    text = escape(piece.text)
    if piece.unread:
        return f'<span class="infocal-unread" style="{UNREAD_STYLE}" title="not read">{text}</span>'
    return f'<span title="{escape(piece.title)}">{text}</span>' if piece.title else text


@dataclass(frozen=True, slots=True)
class _Fact:
    """Something known of a prediction: our own words around a value that may be the user's."""

    name: str
    value: str
    remark: str = ""

    def line(self) -> str:
        return " ".join(part for part in (self.name, self.value, self.remark) if part)

    def html(self) -> str:
        # Set apart in <bdi>, so that a label in Hebrew or Arabic does not turn our words around.
        parts = (escape(self.name), f"<bdi>{escape(self.value)}</bdi>", escape(self.remark))
        return " ".join(part for part in parts if part)


def _headline(explanation: Explanation) -> _Fact:
    name = value_text(explanation.prediction)
    probability = (explanation.probabilities or {}).get(str(explanation.prediction))
    return _Fact(explanation.task or "", name, "" if probability is None else f"({percent(probability)})")


def _facts(explanation: Explanation) -> Iterator[_Fact]:
    """What else is known."""
    if explanation.label is not None:
        yield _Fact("true label", value_text(explanation.label), f"({_comparison(explanation)})")
    yield _Fact("words selected", percent(explanation.share))
    if explanation.truncated:
        yield _Fact("cut at character", str(explanation.read_to))
    other = explanation.full_text_prediction
    if other is not None:
        yield _Fact("from the full text", value_text(other))


def _comparison(explanation: Explanation) -> str:
    label, prediction = explanation.label, explanation.prediction
    if isinstance(label, int | float) and isinstance(prediction, float):
        return f"off by {value_text(abs(float(label) - prediction))}"
    return "matches" if str(label) == str(prediction) else "differs"


def _picture(match: re.Match[str]) -> str:
    """The Unicode control picture of a character below 32 or of delete, else U+FFFD; none of a line end."""
    if match.string.startswith("\r\n", match.start()):
        return ""
    code = ord(match.group())
    return chr(0x2400 + code) if code < 32 else "␡" if code == 127 else "�"


PAGE_STYLE = """
:root{--ink:#1c2430;--soft:#5a6675;--ground:#fff;--panel:#f5f7fa;--line:#d5dbe3;--accent:#1f5fa8;
--infocal-mark:#ffdf80;--infocal-mark-ink:#1a1a1a;--infocal-gold:#1f6fd0;color-scheme:light dark}
@media (prefers-color-scheme:dark){:root{--ink:#e6eaf0;--soft:#a3afbd;--ground:#14181e;--panel:#1d232b;
--line:#37414d;--accent:#7db4f0;--infocal-mark:#f2c94c;--infocal-gold:#4a9cf5}
.infocal-selected .infocal-gold{text-decoration-color:#0d4a94!important}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
main{max-width:60rem;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.8rem;line-height:1.2;margin:.5rem 0 1rem;overflow-wrap:anywhere}
h2{font-size:1.2rem;line-height:1.3;margin:2.25rem 0 .75rem}
.infocal-head{margin-bottom:.4rem;overflow-wrap:anywhere}
.infocal-fact{color:var(--soft);font-size:.9em}
.infocal-selected::before,.infocal-selected::after{position:absolute;width:1px;height:1px;overflow:hidden;
clip-path:inset(100%);white-space:nowrap}
.infocal-selected::before{content:" [selected: "}
.infocal-selected::after{content:"] "}
@media print{:root{--ink:#000;--soft:#444;--ground:#fff;--panel:#fff;--line:#999;--accent:#1f5fa8;
--infocal-mark:#ffdf80;--infocal-gold:#1f6fd0}
body{font-size:11pt}main{max-width:none;padding:0}
.infocal-selected{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
"""
