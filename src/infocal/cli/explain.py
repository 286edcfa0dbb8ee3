"""``infocal explain``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from infocal.cli.options import FILE, Columns, columns_of_model, decoding, examples, skip_bad
from infocal.cli.output import Voice, byte_sink, check_target
from infocal.markup import show

if TYPE_CHECKING:
    from infocal.data.readers import BadRows
    from infocal.types import Document, Explanation

__all__ = ["explain"]

STYLES = {
    "": "text",
    ".txt": "text",
    ".html": "html",
    ".htm": "html",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}


@click.command(
    short_help="Predict, and show the words each prediction was made from.",
    epilog=examples(
        "infocal explain model 'The strap broke but the battery lasts.'",
        "infocal explain model --input reviews.csv --text body --out page.html",
        "cat lines.txt | infocal explain model --format json",
    ),
)
@click.argument("model", type=FILE)
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@click.option(
    "--input", "source", type=FILE, metavar="FILE", help=".csv, .tsv, .jsonl, .parquet, or .txt by line."
)
@columns_of_model
@click.option(
    "--format", "style", type=click.Choice(["text", "json", "html"]), help="[default: by --out, or text]"
)
@click.option("--out", type=FILE, metavar="FILE", help="Write there  [default: stdout].")
@decoding
@click.option("--full-text", is_flag=True, help="Also say what the model predicts having read every word.")
@skip_bad
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after N texts.")
def explain(
    model: Path,
    texts: tuple[str, ...],
    source: Path | None,
    columns: Columns,
    style: str | None,
    out: Path | None,
    choice: dict[str, Any],
    full_text: bool,
    skip_bad: bool,
    limit: int | None,
) -> None:
    """Explain TEXTs, the rows of a file, or the lines of stdin."""
    _check_source(texts, source)
    style = style or _style_of(out)
    check_target(out, "--out", spare=(model, source))
    from infocal.data.readers import BadRows
    from infocal.loading import load

    bad_rows, place = BadRows(skip=skip_bad), "TEXT" if texts else str(source or "stdin")
    trained = load(model)
    named = bool(columns.labels)
    documents = islice(_documents(texts, source, bad_rows, columns.of_model(trained), require_label=named), limit)
    explanations = trained.explain_documents(
        documents, full_text=full_text, bad_rows=bad_rows, source=place, **choice
    )
    _deliver(explanations, style, out, title=f"{model.name}: {place}")
    if note := bad_rows.summary():
        Voice().tell(note)


def _style_of(out: Path | None) -> str:
    ending = "" if out is None else out.suffix.lower()
    if ending not in STYLES:
        raise click.UsageError(
            f"--out ends in {ending}; known are {', '.join(sorted(filter(None, STYLES)))}; or say --format"
        )
    return STYLES[ending]


def _check_source(texts: tuple[str, ...], source: Path | None) -> None:
    if texts and source is not None:
        raise click.UsageError("give TEXTs or --input FILE, not both")
    if not texts and source is None and sys.stdin.isatty():
        raise click.UsageError("nothing to explain: give TEXTs, --input FILE, or lines on stdin")


def _documents(
    texts: tuple[str, ...], source: Path | None, bad_rows: BadRows, columns: Columns, *, require_label: bool
) -> Iterator[Document]:
    from infocal.text.sources import open_bytes

    if texts:
        yield from _given(texts, bad_rows)
    elif source is None:
        yield from _lines(sys.stdin.buffer, "stdin", bad_rows)
    elif source.name.lower().removesuffix(".gz").endswith(".txt") and not columns.mean_cases(source):
        with open_bytes(source) as stream:
            yield from _lines(stream, str(source), bad_rows)
    else:
        yield from columns.read(source, bad_rows, require_label=require_label)


def _given(texts: tuple[str, ...], bad_rows: BadRows) -> Iterator[Document]:
    """The texts of the command line, counted from 1."""
    from infocal.data.readers import checked_text
    from infocal.errors import DataError
    from infocal.types import Document

    for number, text in enumerate(texts, 1):
        try:
            yield Document(checked_text(text, partial(DataError, source=f"TEXT {number}")), line=number)
        except DataError as error:
            bad_rows.report(error)


def _lines(stream: BinaryIO, source: str, bad_rows: BadRows) -> Iterator[Document]:
    """One document a line, without blank ones."""
    from infocal.data.readers import checked_text
    from infocal.errors import DataError
    from infocal.types import Document

    found_any = False
    for number, raw in enumerate(stream, 1):
        try:
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            found = f"byte {error.object[error.start]:#04x} at {error.start} is not UTF-8"
            bad_rows.report(DataError(found, allowed="UTF-8 text", source=source, line=number))
            continue
        if not text.strip():
            continue
        found_any = True
        try:
            yield Document(checked_text(text, partial(DataError, source=source, line=number)), line=number)
        except DataError as error:
            bad_rows.report(error)
    if not found_any:
        raise DataError("there is no text", allowed="one text a line", source=source)


def _deliver(explanations: Iterable[Explanation], style: str, out: Path | None, title: str) -> None:
    if style == "text" and out is None:
        console = Voice().result
        for explanation in explanations:
            show(console, explanation)
        return
    with byte_sink(out) as write:
        if style == "html":
            write(_page(list(explanations), title))
            return
        for explanation in explanations:
            write(explanation.to_json() if style == "json" else f"{explanation}\n")


def _page(explanations: list[Explanation], title: str) -> str:
    from infocal.report import report_html

    return report_html(title=title, summary={}, tables=[], explanations=explanations)
