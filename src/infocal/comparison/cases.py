"""The same texts as every contender and the human saw them, on one page that needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from infocal.comparison.colours import look
from infocal.comparison.plan import Sources
from infocal.comparison.results import HUMAN, Results
from infocal.data.readers import BadRows
from infocal.files import write_text
from infocal.markup import escape, explanation_html, page, value_text
from infocal.types import Document, Explanation

__all__ = ["cases_html", "draw_cases", "write_cases"]

COUNT = 12
HUMAN_COLOUR, HUMAN_TINT = "#8a7a00", "#F0E442"


def draw_cases(sources: Sources, *, count: int = COUNT, seed: int = 0) -> list[Document]:
    """Some test documents, drawn by chance among those with a human's words, or among all if none has any."""
    documents = list(sources.read("test", BadRows(skip=sources.skip_bad)))
    pool = [document for document in documents if document.rationale] or documents
    rows = np.random.default_rng(seed).choice(len(pool), size=min(count, len(pool)), replace=False)
    return [pool[row] for row in sorted(rows.tolist())]


def write_cases(path: Path, results: Results, documents: Sequence[Document]) -> None:
    """Write the page."""
    write_text(path, cases_html(results, documents))


def cases_html(results: Results, documents: Sequence[Document]) -> str:
    """The page: a section per text, in it a row for the human and one for each contender."""
    title = "The same texts, seen by each method"
    seeds = {name: min(results.runs[name]) for name in results.finished}
    intro = (
        f"Test texts drawn by chance (seed 0): {len(documents)}. Each row shows the words that one reader went "
        f"by; decoder {results.decoder}."
    )
    parts = [f"<h1>{escape(title)}</h1>", f"<p>{escape(intro)}</p>", _legend(results, seeds, documents)]
    for number, document in enumerate(documents, 1):
        parts.append(_case(number, document, results, seeds))
    return page(title, "\n".join(parts), style=STYLE + _styles(results))


def _case(number: int, document: Document, results: Results, seeds: Mapping[str, int]) -> str:
    label = (
        "" if document.label is None else f' <span class="label">true label <bdi>{_label(document)}</bdi></span>'
    )
    rows = [] if document.rationale is None else [_row(HUMAN, "human", _human(document))]
    for place, name in enumerate(results.contenders):
        if name not in seeds:
            continue
        found = results.runs[name][seeds[name]]["cases"][results.decoder].get(str(document.line))
        if found is not None:
            rows.append(_row(name, f"by-{place}", explanation_html(_explanation(document, found))))
    return f"<section><h2>Text {number}{label}</h2>{''.join(rows)}</section>"


def _row(name: str, kind: str, content: str) -> str:
    return f'<div class="row {kind}"><div class="name"><bdi>{escape(name)}</bdi></div>{content}</div>'


def _human(document: Document) -> str:
    """The human's words, in the shape that a method's have; nothing is predicted."""
    whole = Explanation(
        text=document.text,
        prediction="",
        probabilities=None,
        spans=document.rationale or (),
        tokens=(),
        scores=(),
        selected=(),
        share=0.0,
        read_to=len(document.text),
    )
    return explanation_html(whole)


def _explanation(document: Document, found: Mapping[str, Any]) -> Explanation:
    """What a run's file says, with the text of the test file."""
    return Explanation(
        text=document.text,
        prediction=found["prediction"],
        probabilities=found["probabilities"],
        spans=tuple((start, end) for start, end in found["spans"]),
        tokens=(),
        scores=(),
        selected=(),
        share=found["share"],
        read_to=found["read_to"],
        label=found["label"],
    )


def _label(document: Document) -> str:
    return escape(value_text(document.label))


def _legend(results: Results, seeds: Mapping[str, int], documents: Sequence[Document]) -> str:
    items = []
    if any(document.rationale is not None for document in documents):
        items.append(f'<li class="human"><mark class="infocal-selected">{HUMAN}</mark></li>')
    for place, name in enumerate(results.contenders):
        mark = f'<mark class="infocal-selected"><bdi>{escape(name)}</bdi></mark>'
        note = f"seed {seeds[name]}" if name in seeds else "no finished run"
        items.append(f'<li class="by-{place}">{mark} <small>{note}</small></li>')
    return f'<ul class="legend">{"".join(items)}</ul>'


def _styles(results: Results) -> str:
    rules = [_rule(".human", HUMAN_COLOUR, HUMAN_TINT, "solid")]
    for place in range(len(results.contenders)):
        style = look(place)
        rules.append(_rule(f".by-{place}", style.colour, style.tint, style.underline))
    return "".join(rules)


def _rule(name: str, colour: str, tint: str, underline: str) -> str:
    on_dark = f"@media (prefers-color-scheme:dark){{{name}{{--own:#fff}}}}" if colour == "#000000" else ""
    return (
        f"{name}{{--infocal-mark:{tint};--own:{colour}}}{on_dark}"
        f"{name} .infocal-selected{{text-decoration:underline {underline} 2px {colour}}}\n"
    )


STYLE = """
main{max-width:72rem}
.legend{list-style:none;margin:1rem 0;padding:0;display:flex;flex-wrap:wrap;gap:.4rem 1.4rem}
.legend small{color:var(--soft)}
.label{color:var(--soft);font-size:.95rem;font-weight:400;margin-inline-start:.6rem}
.row{display:grid;grid-template-columns:9rem minmax(0,1fr);gap:0 1rem;padding:.55rem 0;
border-top:1px solid var(--line)}
.name{font-weight:600;overflow-wrap:anywhere;border-inline-start:.35rem solid var(--own);
padding-inline-start:.6rem}
.human .infocal-head{display:none}
.infocal-selected{background:var(--infocal-mark);color:var(--infocal-mark-ink);text-underline-offset:.18em;
text-decoration-skip-ink:none;border-radius:.2em;padding:.1em 0 .25em}
@media (max-width:40rem){.row{grid-template-columns:minmax(0,1fr)}}
@media print{.row{break-inside:avoid}h2{break-after:avoid}}
"""
