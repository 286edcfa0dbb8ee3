"""What a reproduction leaves behind: tables in three formats, two figures, the page of cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from infocal.errors import MissingExtraError
from infocal.files import write_text
from infocal.report import Table
from infocal.reproduce.beer import Outcome, Plan
from infocal.reproduce.cases import cases_page
from infocal.reproduce.figures import draw_agreement_by_round, draw_error_by_share
from infocal.reproduce.scoring import RunResult
from infocal.reproduce.tables import (
    COLUMNS,
    MEASURED,
    PUBLISHED,
    Mean,
    csv_table,
    latex_tables,
    lines_of,
    markdown_report,
    prediction_lines,
)

__all__ = ["result_tables", "write_outputs"]

CASE_NOTES = (
    "Behind each method's row stands one model per aspect. It knows the ratings of that aspect alone, and is "
    "never told which words speak of it. The figures are the rating it predicts from the marked words, and the "
    "share of the words that these are.",
)


def write_outputs(
    outcome: Outcome, plan: Plan, out: Path, *, scoring: str, rounds_are: str
) -> tuple[list[Path], list[str]]:
    """Write every table, figure and page.

    Args:
        outcome: what was found.
        plan: what was run.
        out: the folder.
        scoring: what comes first in the tables, and what is drawn.
        rounds_are: what a round of training is called.

    Returns:
        the files, and sentences that the user should read.
    """
    results, aspects = outcome.results, plan.aspects
    scored = any(result.agreement for result in results)
    texts = {
        "table.md": markdown_report(results, aspects, scoring, outcome.notes),
        "table.csv": csv_table(results, aspects),
        **({"table.tex": latex_tables(results, aspects)} if scored else {}),
        "cases.html": cases_page(
            outcome.cases, aspects, title="What each method reads to rate a beer", notes=CASE_NOTES
        ),
    }
    for name, content in texts.items():
        write_text(out / name, content)
    written = [out / name for name in texts]
    try:
        written += draw_error_by_share(results, aspects, out)
        if scored:
            written += draw_agreement_by_round(results, aspects, scoring, out, rounds_are=rounds_are)
    except MissingExtraError as error:
        return written, [f"The figures are left out: {error}"]
    return written, []


def result_tables(results: Sequence[RunResult], aspects: Sequence[str], scoring: str) -> Iterator[Table]:
    """For a terminal: a table per aspect, in per cent, with the printed figures in brackets."""
    scored = any(result.agreement for result in results)
    lines = {(line.row, line.source): line for line in lines_of(results, aspects, scoring)}
    for aspect in aspects:
        rows: list[tuple[object, ...]] = []
        for row, cells in prediction_lines(results, aspects):
            error, full, selected = (mean.value for mean in cells[aspect])
            figures = [f"{selected:.1f}"]
            if scored:
                ours = lines[row, MEASURED].cells[aspect]
                printed = lines[row, PUBLISHED].cells[aspect] if (row, PUBLISHED) in lines else {}
                figures = [_beside(ours[name], printed.get(name)) for name in COLUMNS]
            rows.append((row, *figures, error, full))
        names = ("P", "R", "F1", "share") if scored else ("share",)
        title = (
            f"{aspect}, scored as {scoring}, in %; in brackets as published"
            if scored
            else f"{aspect}, share of words in %"
        )
        header = ("", *names, "MSE", "full")
        yield Table(title, header, rows, caption="full: the MSE of reading the full text")


def _beside(measured: Mean | None, printed: Mean | None) -> str:
    ours = "-" if measured is None else f"{measured.value:.1f}"
    return ours if printed is None else f"{ours} ({printed.value:g})"
