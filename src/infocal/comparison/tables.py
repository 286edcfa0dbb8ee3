"""What came out, as CSV, Markdown and LaTeX: figures, who is really better, and which runs failed."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from infocal.comparison.contests import Contest
from infocal.comparison.results import HUMAN, Cell, Measure, Results
from infocal.files import write_text
from infocal.markup import markdown_table, markdown_text, visible

__all__ = ["as_csv", "as_latex", "as_markdown", "figure_rows", "p_text", "write_tables"]

CONTEST_HEADER = (
    "measure",
    "first",
    "against",
    "difference",
    "95 % interval",
    "p, seeds",
    "p, documents",
    "seeds",
)
CSV_HEADER = (
    "section",
    "method",
    "measure",
    "against",
    "seed",
    "value",
    "deviation",
    "runs",
    "low",
    "high",
    "p_seeds",
    "p_documents",
    "message",
)
LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "<": "$<$",
    ">": "$>$",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}

Emphasis = Callable[[str], str]


def write_tables(folder: Path, results: Results, contests: Sequence[Contest]) -> None:
    """Write ``table.csv``, ``table.md`` and ``table.tex``."""
    write_text(folder / "table.csv", as_csv(results, contests))
    write_text(folder / "table.md", as_markdown(results, contests))
    write_text(folder / "table.tex", as_latex(results, contests))


def as_csv(results: Results, contests: Sequence[Contest]) -> str:
    """One table for all: ``section`` says whether a line is a score, a contest or a failed run.

    Values are in their own units: shares as fractions, differences as best - other.
    """
    stream = io.StringIO()
    writer = csv.DictWriter(stream, CSV_HEADER, lineterminator="\n")
    writer.writeheader()
    for name in results.contenders:
        for measure in results.measures():
            cell = results.cell(name, measure)
            row = {"section": "scores", "method": name, "measure": measure.key, "value": cell.mean}
            writer.writerow({**row, "deviation": cell.deviation, "runs": cell.count})
    for measure in results.measures():
        if (value := results.human(measure)) is not None:
            writer.writerow({"section": "scores", "method": HUMAN, "measure": measure.key, "value": value})
    for contest in contests:
        writer.writerow(_contest_record(contest))
    for name, seed, message in results.failures:
        writer.writerow({"section": "failed", "method": name, "seed": seed, "message": message})
    return stream.getvalue()


def as_markdown(results: Results, contests: Sequence[Contest]) -> str:
    """A page with a heading per section."""
    parts = [
        "# Comparison",
        _setting(results),
        markdown_table(*figure_rows(results, lambda text: f"**{text}**", markdown_text)),
        "## Significance",
        _significance_note(contests),
    ]
    if contests:
        parts.append(
            markdown_table(CONTEST_HEADER, [_contest_row(contest, markdown_text) for contest in contests])
        )
    if results.failures:
        parts += ["## Failed runs", "\n".join(f"- {markdown_text(line)}" for line in _failure_lines(results))]
    return "\n\n".join(parts) + "\n"


def as_latex(results: Results, contests: Sequence[Contest]) -> str:
    """Two tables to put into a paper as they are; failed runs are comments."""
    header, rows = figure_rows(results, lambda text: f"\\textbf{{{text}}}", _latex_text)
    parts = [
        "% needs \\usepackage{booktabs,graphicx}",
        *(f"% failed: {' '.join(line.split())}" for line in _failure_lines(results)),
        _latex_table([_latex_text(name) for name in header], rows, _latex_text(_setting(results)), "comparison"),
    ]
    if contests:
        head = [_latex_text(name) for name in CONTEST_HEADER]
        rows = [_contest_row(contest, _latex_text) for contest in contests]
        parts.append(_latex_table(head, rows, _latex_text(_significance_note(contests)), "significance"))
    return "\n".join(parts) + "\n"


def figure_rows(
    results: Results, bold: Emphasis = str, plain: Emphasis = str
) -> tuple[list[str], list[list[str]]]:
    """Header, and a row per contender: mean and deviation, the best of a column bold.

    Args:
        results: what came out.
        bold: marks a cell as the best.
        plain: escapes a text.
    """
    measures = results.measures()
    header = ["method", *(measure.title for measure in measures), "runs"]
    columns = [_column(results, measure, bold, plain) for measure in measures]
    counts = [str(len(results.runs.get(name, {}))) for name in results.contenders]
    names = [plain(name) for name in results.contenders]
    rows = [list(row) for row in zip(names, *columns, counts, strict=True)]
    human = [measure.text(results.human(measure)) for measure in measures]
    if any(cell != "-" for cell in human):
        rows.append([HUMAN, *map(plain, human), "-"])
    return header, rows


def _column(results: Results, measure: Measure, bold: Emphasis, plain: Emphasis) -> list[str]:
    cells = [results.cell(name, measure) for name in results.contenders]
    known = [cell.mean for cell in cells if cell.mean is not None]
    best = None
    if measure.better and len(known) > 1:
        best = measure.text(max(known, key=lambda mean: measure.better * mean))
    return [
        bold(plain(_cell_text(cell, measure)))
        if best is not None and measure.text(cell.mean) == best
        else plain(_cell_text(cell, measure))
        for cell in cells
    ]


def _cell_text(cell: Cell, measure: Measure) -> str:
    deviation = "" if cell.deviation is None else f" ± {measure.text(cell.deviation)}"
    return measure.text(cell.mean) + deviation


def _setting(results: Results) -> str:
    run = results.any_run
    if run is None:
        return "No run has finished."
    asked = sorted(set(results.asked.values()))
    rows = f"{run['data']['test_rows']:,} test rows"
    shares = ", ".join(f"{100 * share:g} %" for share in asked)
    how = f"{rows}, decoder {results.decoder}, {shares} of the words asked for"
    return f"{how}. Mean over the runs (seeds) ± standard deviation; shares in per cent."


def _significance_note(contests: Sequence[Contest]) -> str:
    if not contests:
        return "There are no two methods to hold against each other."
    return (
        "The first of the two against the second: p of a paired t-test over the seeds, and p and 95 % interval of "
        "the difference from a paired bootstrap over the test documents. Not corrected for how many there are."
    )


def _contest_row(contest: Contest, plain: Emphasis) -> list[str]:
    measure, documents = contest.measure, contest.documents
    cells = [
        measure.title,
        contest.best,
        contest.other,
        _signed(measure, contest.difference),
        f"{_signed(measure, documents.low)} to {_signed(measure, documents.high)}",
        p_text(contest.p_seeds),
        p_text(documents.p),
        str(contest.seeds),
    ]
    return [plain(cell) for cell in cells]


def _signed(measure: Measure, value: float) -> str:
    return f"{measure.scale * value:+.{measure.digits}f}"


def p_text(value: float | None) -> str:
    """A p for a table; "-" where there is none."""
    if value is None:
        return "-"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _contest_record(contest: Contest) -> dict[str, object]:
    return {
        "section": "significance",
        "method": contest.best,
        "measure": contest.measure.key,
        "against": contest.other,
        "value": contest.difference,
        "runs": contest.seeds,
        "low": contest.documents.low,
        "high": contest.documents.high,
        "p_seeds": contest.p_seeds,
        "p_documents": contest.documents.p,
    }


def _failure_lines(results: Results) -> list[str]:
    return [f"{name}, seed {seed}: {visible(message)}" for name, seed, message in results.failures]


def _latex_text(text: str) -> str:
    escaped = "".join(LATEX_SPECIAL.get(sign, sign) for sign in " ".join(text.split()))
    return re.sub(r"(?<!\S)([-+])(?=\d)", r"$\1$", escaped)


def _latex_table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str, label: str) -> str:
    columns = "l" + "r" * (len(header) - 1)
    lines = [
        "\\begin{table}",
        "\\centering",
        f"\\caption{{{caption}}}",
        f"\\label{{tab:{label}}}",
        f"\\resizebox{{\\linewidth}}{{!}}{{\\begin{{tabular}}{{@{{}}{columns}@{{}}}}",
        "\\toprule",
        " & ".join(header) + " \\\\",
        "\\midrule",
        *(" & ".join(row) + " \\\\" for row in rows),
        "\\bottomrule",
        "\\end{tabular}}",
        "\\end{table}",
    ]
    return "\n".join(lines)
