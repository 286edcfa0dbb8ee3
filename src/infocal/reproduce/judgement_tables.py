"""The paper's table of court cases with our figures, beside the printed ones where the data is the paper's."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence

from infocal.markup import markdown_table
from infocal.reproduce.judgement_rows import ROWS
from infocal.reproduce.judgements import Result
from infocal.reproduce.published_cail import CAIL_TABLES, impossible_cells
from infocal.reproduce.tables import MEASURED, PUBLISHED, Line, Mean

__all__ = ["COLUMNS", "csv_table", "filter_rows", "latex_table", "lines_of", "markdown_report", "shown_cells"]

COLUMNS = {
    "accuracy": "Acc",
    "macro_precision": "MP",
    "macro_recall": "MR",
    "macro_f1": "F1",
    "selected": "%S",
}
CALIBRATION = {
    "unscaled_error": "predictor, plain",
    "error": "predictor, scaled",
    "temperature": "predictor's temperature",
    "full_text_unscaled_error": "guider, plain",
    "full_text_error": "guider, scaled",
    "full_text_temperature": "guider's temperature",
}
NOTES = (
    "MP, MR and F1 are means over the classes that occur in the test cases or among a row's answers; %S is the "
    "share of words that the answer was made from. Rows that read all words show no evidence.",
    "One model answers one task in the rows above the line, all of them in the rows below it.",
)


def lines_of(results: Sequence[Result], tasks: Sequence[str], official: str | None) -> list[Line]:
    """For every row what was measured, then what the paper prints for it on the same data.

    Args:
        results: of all runs.
        tasks: the columns.
        official: "small" or "big" where the data is the paper's, None where it is other.
    """
    lines = []
    for name in sorted(dict.fromkeys(result.row for result in results), key=list(ROWS).index):
        row = ROWS[name]
        ours = {task: _measured(results, name, task) for task in tasks}
        lines.append(Line(name, row.title, MEASURED, ours))
        if official is not None and row.published is not None:
            lines.append(_printed(name, row.published, tasks, official))
            lines += [_printed(other, other, tasks, official) for other in row.also_published]
    return sorted(lines, key=_joint)


def _printed(row: str, method: str, tasks: Sequence[str], official: str) -> Line:
    cells = {task: _published(official, method, task) for task in tasks}
    return Line(row, f"{method}, as published", PUBLISHED, cells)


def _joint(line: Line) -> bool:
    return line.row in ROWS and ROWS[line.row].joint


def _measured(results: Sequence[Result], row: str, task: str) -> dict[str, Mean | None]:
    runs = [result.tasks[task] for result in results if result.row == row and task in result.tasks]
    return {name: Mean.over([float(run[name]) for run in runs]) if runs else None for name in COLUMNS}


def _published(official: str, method: str, task: str) -> dict[str, Mean | None]:
    cell = CAIL_TABLES[official][method][task]
    wrong = any((bad.size, bad.method, bad.task) == (official, method, task) for bad in impossible_cells())
    share = None if cell.selected is None else Mean(cell.selected / 100)
    return {
        "accuracy": Mean(cell.accuracy),
        "macro_precision": Mean(cell.macro_precision),
        "macro_recall": Mean(cell.macro_recall),
        "macro_f1": Mean(cell.macro_f1, impossible=wrong),
        "selected": share,
    }


def markdown_report(
    results: Sequence[Result],
    tasks: Sequence[str],
    *,
    official: str | None,
    data: Mapping[str, object],
    filters: Mapping[str, Mapping[str, int]] | None = None,
    notes: Sequence[str] = (),
) -> str:
    """A page: the table of each task, the data, and what to know.

    Args:
        results: of all runs.
        tasks: the columns.
        official: as in :func:`lines_of`.
        data: what the cases are, by name.
        filters: part -> what of it was read, left out for each reason, and stayed; None where that is not known.
        notes: more sentences.
    """
    lines = lines_of(results, tasks, official)
    parts = ["# Court cases: article, charge and penalty term", markdown_table(("data", ""), _facts(data))]
    if filters:
        parts += ["## Cases read, left out, and kept", markdown_table(("", *filters), filter_rows(filters))]
    for task in tasks:
        header = ["", *COLUMNS.values(), "seeds", "training s"]
        rows = [[line.title, *shown_cells(line, task), *_effort(results, line, task)] for line in lines]
        if any(map(_joint, lines)):
            rows.insert(
                sum(not _joint(line) for line in lines), ["**all tasks in one**", *[""] * (len(header) - 1)]
            )
        parts += [f"## {task}", markdown_table(header, rows)]
    said = [*NOTES, *notes, *_about_the_paper(official)]
    parts += ["## Notes", "\n".join(f"- {note}" for note in said)]
    if errors := _calibration_rows(results, tasks):
        parts += [
            "## Are the probabilities right?",
            "Expected calibration error on the test cases, without temperatures and with those that were fitted "
            "on held-out cases; a guider reads all words, and rows without one have no figures of it.",
            markdown_table(("model", "task", *CALIBRATION.values()), errors),
        ]
    return "\n\n".join(parts) + "\n"


def _calibration_rows(results: Sequence[Result], tasks: Sequence[str]) -> list[list[str]]:
    """For each row and task the mean errors and temperatures over the seeds, of those that have them."""
    rows = []
    for name in sorted({result.row for result in results}, key=list(ROWS).index):
        for task in tasks:
            runs = [result.tasks[task] for result in results if result.row == name and task in result.tasks]
            found = [run["calibration"] for run in runs if run.get("calibration")]
            if found:
                unguided = () if ROWS[name].guided else ("full_text",)
                cells = ["-" if figure.startswith(unguided) else _mean_of(found, figure) for figure in CALIBRATION]
                rows.append([ROWS[name].title, task, *cells])
    return rows


def _mean_of(found: Sequence[Mapping[str, float | None]], name: str) -> str:
    values = [value for one in found if (value := one.get(name)) is not None]
    return f"{sum(values) / len(values):.3f}" if values else "-"


def filter_rows(filters: Mapping[str, Mapping[str, int]]) -> list[tuple[str, ...]]:
    """For each step of the preparation the cases of each part, as text."""
    steps = dict.fromkeys(step for part in filters.values() for step in part)
    return [(step, *(f"{part.get(step, 0):,}" for part in filters.values())) for step in steps]


def _facts(data: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for name, value in data.items():
        yield name, f"{value:,}" if isinstance(value, int) else str(value)


def _about_the_paper(official: str | None) -> Iterator[str]:
    bad = [cell for cell in impossible_cells() if official is None or cell.size == official]
    total = sum(
        len(row) for size, table in CAIL_TABLES.items() if official in (None, size) for row in table.values()
    )
    if official is None:
        yield "The paper's figures are of other data (the official CAIL2018), so they do not stand beside ours."
    yield (
        f"A macro F1 cannot be larger than the mean of macro precision and macro recall, but {len(bad)} of the "
        f"{total} cells that the paper prints are{'; they are marked †' if official else ''}."
    )


def _effort(results: Sequence[Result], line: Line, task: str) -> tuple[str, str]:
    if line.source == PUBLISHED:
        return "", ""
    results = [result for result in results if result.row == line.row and task in result.tasks]
    seconds = [result.seconds for result in results]
    return str(len(results)), f"{sum(seconds) / len(seconds):.0f}" if seconds else "-"


def shown_cells(line: Line, task: str, *, mark: str = " †", plus: str = " ± ") -> list[str]:
    """The figures of a task as text."""
    cells = line.cells[task]
    return [_figure(name, cells[name], mark=mark, plus=plus) for name in COLUMNS]


def _figure(name: str, mean: Mean | None, *, mark: str, plus: str) -> str:
    if mean is None:
        return "-"
    scale, digits = (100, 1) if name == "selected" else (1, 3)
    spread = "" if mean.spread is None or name == "selected" else f"{plus}{scale * mean.spread:.{digits}f}"
    return f"{scale * mean.value:.{digits}f}{spread}{mark if mean.impossible else ''}"


def csv_table(results: Sequence[Result], tasks: Sequence[str], official: str | None) -> str:
    """A line per row, source and task."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["row", "source", "task", *(f"{name}{end}" for name in COLUMNS for end in ("", "_deviation"))])
    for line in lines_of(results, tasks, official):
        for task in tasks:
            cells = [line.cells[task][name] for name in COLUMNS]
            figures = [
                "" if value is None else f"{value:.6f}"
                for cell in cells
                for value in ((None, None) if cell is None else (cell.value, cell.spread))
            ]
            writer.writerow([line.row, line.source, task, *figures])
    return stream.getvalue()


def latex_table(results: Sequence[Result], tasks: Sequence[str], official: str | None) -> str:
    r"""The table in the paper's layout, for a document with the package booktabs."""
    lines = lines_of(results, tasks, official)
    width = len(COLUMNS)
    heads = " & ".join(rf"\multicolumn{{{width}}}{{c}}{{{task}}}" for task in tasks)
    names = " & ".join(name.replace("%", r"\%") for _ in tasks for name in COLUMNS.values())
    body = []
    for place, line in enumerate(lines):
        if place and _joint(line) and not _joint(lines[place - 1]):
            body.append(r"\midrule")
        cells = [cell for task in tasks for cell in shown_cells(line, task, mark=r"$^\dagger$", plus=r" $\pm$ ")]
        body.append(rf"{line.title.replace('_', chr(92) + '_')} & {' & '.join(cells)} \\")
    return "\n".join(
        [
            rf"\begin{{tabular}}{{l{'c' * width * len(tasks)}}}",
            r"\toprule",
            rf" & {heads} \\",
            rf" & {names} \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )
