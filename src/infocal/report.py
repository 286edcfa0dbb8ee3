"""One HTML file that shows how good a model is and what it read: no scripts, nothing fetched, prints well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from infocal.errors import DataError
from infocal.files import write_text
from infocal.markup import (
    GOLD_STYLE,
    MARK_STYLE,
    UNREAD_STYLE,
    escape,
    explanation_html,
    page,
    percent,
    value_text,
    visible,
)
from infocal.types import Explanation

if TYPE_CHECKING:
    from rich.table import Table as RichTable

__all__ = ["Table", "report_html", "write_report"]


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the report.

    Attributes:
        title: its heading.
        header: the names of the columns.
        rows: as many cells in each as the header has; the first names the row.
        caption: a sentence below, or "".
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[object]]
    caption: str = ""

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            if len(row) != len(self.header):
                raise DataError(
                    f"row {number} of the table {self.title!r} has {len(row)} cells",
                    allowed=f"{len(self.header)}, as many as the header has",
                )

    def __rich__(self) -> RichTable:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(
            title=Text(visible(self.title)), title_justify="left", title_style="bold", box=SIMPLE_HEAD
        )
        numeric = [_is_numeric([row[column] for row in self.rows]) for column in range(len(self.header))]
        for name, right in zip(self.header, numeric, strict=True):
            # Folded where a terminal is narrow: a name or a figure that is cut short says something else.
            table.add_column(Text(visible(name)), justify="right" if right else "left", overflow="fold")
        for row in self.rows:
            table.add_row(*(Text(visible(_plain(cell))) for cell in row))
        table.caption, table.caption_justify = (Text(visible(self.caption)) if self.caption else None), "left"
        return table


def write_report(
    path: str | Path,
    *,
    title: str,
    summary: Mapping[str, object],
    tables: Sequence[Table],
    explanations: Sequence[Explanation],
    notes: Sequence[str] = (),
) -> None:
    """Write the report as one self-contained HTML file.

    Args:
        path: where to write it; an old file is replaced in one step.
        title: the heading.
        summary: key figures by name, shown large at the top.
        tables: shown in order.
        explanations: predictions whose words are shown highlighted.
        notes: sentences for the end, e.g. what the figures do not say.
    """
    source = report_html(title=title, summary=summary, tables=tables, explanations=explanations, notes=notes)
    write_text(path, source)


def report_html(
    *,
    title: str,
    summary: Mapping[str, object],
    tables: Sequence[Table],
    explanations: Sequence[Explanation],
    notes: Sequence[str] = (),
) -> str:
    """The report that `write_report` writes."""
    parts = [f'<h1 dir="auto">{escape(title)}</h1>', _summary(summary)]
    parts.extend(_table(table) for table in tables)
    parts.extend((_explanations(explanations), _notes(notes)))
    return page(title, "\n".join(part for part in parts if part), style=REPORT_STYLE)


def _summary(summary: Mapping[str, object]) -> str:
    figures = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{_value(value)}</dd></div>" for name, value in summary.items()
    )
    return f'<dl class="figures">{figures}</dl>' if figures else ""


def _table(table: Table) -> str:
    numeric = [_is_numeric([row[column] for row in table.rows]) for column in range(len(table.header))]
    head = "".join(
        f'<th scope="col"{_number_class(right)}>{escape(name)}</th>'
        for name, right in zip(table.header, numeric, strict=True)
    )
    decimals = [_decimals([row[column] for row in table.rows]) for column in range(len(table.header))]
    body = "".join(f"<tr>{_cells(row, numeric, decimals)}</tr>" for row in table.rows)
    caption = f'<p class="caption" dir="auto">{escape(table.caption)}</p>' if table.caption else ""
    # Focusable so that a keyboard can scroll a table that is wider than the screen.
    return (
        f'<section><h2 dir="auto">{escape(table.title)}</h2>'
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(table.title)}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{caption}</section>"
    )


def _cells(row: Sequence[object], numeric: Sequence[bool], decimals: Sequence[int]) -> str:
    cells = []
    for column, (cell, right, places) in enumerate(zip(row, numeric, decimals, strict=True)):
        tag, scope = ("th", ' scope="row"') if column == 0 else ("td", "")
        even = isinstance(cell, float) and (cell == 0.0 or abs(cell) >= 0.001)
        cells.append(
            f"<{tag}{scope}{_number_class(right)}>{_value(f'{cell:.{places}f}' if even else cell)}</{tag}>"
        )
    return "".join(cells)


def _decimals(cells: Sequence[object]) -> int:
    """Digits after the point that a column's numbers share, so that they can be compared at a glance."""
    shown = (value_text(cell).partition(".")[2] for cell in cells if isinstance(cell, float))
    return max((len(digits) for digits in shown if len(digits) <= 3), default=3)


def _is_numeric(cells: Sequence[object]) -> bool:
    known = [cell for cell in cells if cell is not None]
    return bool(known) and all(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in known)


def _number_class(right: bool) -> str:
    return ' class="number"' if right else ""


def _value(value: object) -> str:
    """A cell: numbers short, unknown as a dash, all else as escaped text."""
    if value is None:
        return '<span aria-label="none">–</span>'
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace(",", "\u202f")
    return f"<bdi>{escape(value_text(value))}</bdi>"


def _plain(value: object) -> str:
    """The same for a terminal."""
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) and abs(value) < 1e6 else value_text(value)


def _explanations(explanations: Sequence[Explanation]) -> str:
    if not explanations:
        return ""
    share = sum(explanation.share for explanation in explanations) / len(explanations)
    labels = {explanation.task for explanation in explanations}
    texts = f"{len(explanations) // len(labels)} texts"
    if len(labels) > 1:
        texts += f", for {len(labels)} labels"
    items = "".join(
        f'<li class="{_verdict(explanation)}">{explanation_html(explanation)}{_bar(explanation.share)}</li>'
        for explanation in explanations
    )
    return (
        "<section><h2>Predictions and the words they were made from</h2>"
        f"{_legend(explanations)}"
        f'<div class="overall"><span>Words selected in these {texts}, on average: '
        f"<strong>{escape(percent(share))}</strong></span>{_bar(share)}</div>"
        f'<ol class="cards">{items}</ol></section>'
    )


def _verdict(explanation: Explanation) -> str:
    """The card's class: a thick edge where the answer is known to be wrong."""
    wrong = (
        explanation.label is not None
        and explanation.probabilities is not None
        and str(explanation.label) != str(explanation.prediction)
    )
    return "wrong" if wrong else ""


def _legend(explanations: Sequence[Explanation]) -> str:
    lines = [
        f'<mark style="{MARK_STYLE}">Highlighted</mark> words are the ones the prediction was made from: '
        "with them and their places fixed, changing any other word changes nothing."
    ]
    if any(explanation.gold for explanation in explanations):
        lines.append(f'<u style="{GOLD_STYLE}">Underlined</u> words were marked by a human.')
    if any(explanation.truncated for explanation in explanations):
        lines.append(f'<span style="{UNREAD_STYLE}">Faded</span> words were not read: the text was too long.')
    if any(map(_verdict, explanations)):
        lines.append("A thick edge at the side means that the prediction differs from the true label.")
    return '<ul class="legend">' + "".join(f"<li>{line}</li>" for line in lines) + "</ul>"


def _bar(share: float) -> str:
    width = 100 * min(max(share, 0.0), 1.0)
    return (
        f'<div class="bar" role="img" aria-label="{escape(percent(share))} of the words selected">'
        f'<div style="width:{width:.1f}%"></div></div>'
    )


def _notes(notes: Sequence[str]) -> str:
    items = "".join(f'<li dir="auto">{escape(note)}</li>' for note in notes)
    return f'<section><h2>Notes</h2><ul class="notes">{items}</ul></section>' if items else ""


REPORT_STYLE = """
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.5rem,1fr));gap:.75rem;margin:0}
.figures div{background:var(--panel);border:1px solid var(--line);border-radius:.5rem;padding:.6rem .8rem}
.figures dt{color:var(--soft);font-size:.85rem}
.figures dd{margin:0;font-size:1.45rem;font-weight:600;line-height:1.3;overflow-wrap:anywhere;
font-variant-numeric:tabular-nums}
.scroll{overflow-x:auto;width:fit-content;min-width:min(100%,22rem);max-width:100%;
border:1px solid var(--line);border-radius:.5rem}
.scroll:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
table{border-collapse:collapse;width:100%;font-size:.95rem}
th,td{padding:.45rem .8rem;text-align:start;vertical-align:top;border-bottom:1px solid var(--line)}
tbody tr:last-child>*{border-bottom:0}
thead th{background:var(--panel);white-space:nowrap}
tbody th{font-weight:500}
.number{text-align:end;font-variant-numeric:tabular-nums;white-space:nowrap}
.caption{color:var(--soft);font-size:.9rem;margin:.4rem 0 0}
.legend,.notes{padding-inline-start:1.2rem;margin:.5rem 0}
.overall{margin:1rem 0}
.bar{height:.5rem;border:1px solid var(--line);border-radius:.3rem;overflow:hidden;background:var(--panel);
margin-top:.6rem}
.cards .bar{height:.35rem}
.bar div{height:100%;background:var(--accent)}
.cards{list-style:none;margin:0;padding:0;display:grid;gap:.9rem;grid-template-columns:minmax(0,1fr)}
.cards>li{border:1px solid var(--line);border-radius:.5rem;
padding:.8rem 1rem}
.cards>.wrong{border-inline-start:.4rem solid var(--soft)}
@media print{.scroll{overflow:visible}.cards>li,tr,.figures div{break-inside:avoid}h2{break-after:avoid}
.bar,.bar div{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
"""
