"""The paper's table of beer reviews with our figures beside the printed ones, as Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from infocal.markup import markdown_table
from infocal.reproduce.beer import ROWS
from infocal.reproduce.published import BEER_TABLE, GOLD_SHARES, Verdict, best_f1, check_table
from infocal.reproduce.scoring import SCORINGS, RunResult

__all__ = [
    "COLUMNS",
    "MEASURED",
    "PUBLISHED",
    "Line",
    "Mean",
    "csv_table",
    "latex_tables",
    "lines_of",
    "markdown_report",
    "prediction_lines",
]

COLUMNS = {"precision": "P", "recall": "R", "f1": "F", "selected_share": "% selected"}
MARK = {"markdown": "†", "latex": r"$^\dagger$"}
MEASURED, PUBLISHED = "measured", "published"


@dataclass(frozen=True, slots=True)
class Mean:
    """A figure over the seeds.

    Attributes:
        value: the mean.
        spread: the standard deviation; None with one seed, or where the paper prints none.
        impossible: whether a printed figure does not go with the others of its cell.
    """

    value: float
    spread: float | None = None
    impossible: bool = False

    @classmethod
    def over(cls, values: Sequence[float]) -> Mean:
        """The mean of the seeds' values."""
        return cls(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None)


@dataclass(frozen=True)
class Line:
    """A line of the table.

    Attributes:
        row: its name on the command line.
        title: what the table calls it.
        source: "measured" or "published".
        cells: by aspect and column the figure in per cent; a missing one is None.
    """

    row: str
    title: str
    source: str
    cells: Mapping[str, Mapping[str, Mean | None]]


def lines_of(results: Sequence[RunResult], aspects: Sequence[str], scoring: str) -> list[Line]:
    """For every row what was measured with a scoring, then what the paper prints for it.

    Args:
        results: of all runs.
        aspects: the columns.
        scoring: a name of ``SCORINGS``.
    """
    impossible = {(v.method, v.aspect, v.value) for v in verdicts_of(results, scoring)}
    lines = []
    for row in dict.fromkeys(result.row for result in results):
        ours = {aspect: _measured(results, row, aspect, scoring) for aspect in aspects}
        lines.append(Line(row, ROWS[row].title, MEASURED, ours))
        if published := ROWS[row].published:
            printed = {aspect: _published(published, aspect, impossible) for aspect in aspects}
            lines.append(Line(row, f"{published}, as published", PUBLISHED, printed))
    return lines


def _measured(results: Sequence[RunResult], row: str, aspect: str, scoring: str) -> dict[str, Mean | None]:
    runs = [r.agreement[scoring] for r in results if (r.row, r.aspect) == (row, aspect) and scoring in r.agreement]
    return {name: Mean.over([100 * run[name] for run in runs]) if runs else None for name in COLUMNS}


def _published(method: str, aspect: str, impossible: Collection[tuple[str, str, str]]) -> dict[str, Mean | None]:
    cell = BEER_TABLE[method][aspect]
    values = {"precision": cell.precision, "recall": cell.recall, "f1": cell.f1, "selected_share": cell.selected}
    return {name: Mean(value, impossible=(method, aspect, name) in impossible) for name, value in values.items()}


def gold_shares(results: Sequence[RunResult], scoring: str) -> dict[str, float]:
    """Tokens that humans marked, in per cent by aspect: as measured, or as known of the usual cut."""
    measured = {r.aspect: 100 * r.agreement[scoring]["gold_share"] for r in results if scoring in r.agreement}
    return {**GOLD_SHARES, **measured}


def verdicts_of(results: Sequence[RunResult], scoring: str) -> list[Verdict]:
    """The printed figures that do not go together at the measured share of marked words."""
    return check_table(gold=gold_shares(results, scoring))


def prediction_lines(
    results: Sequence[RunResult], aspects: Sequence[str]
) -> Iterator[tuple[str, dict[str, list[Mean]]]]:
    """For every row by aspect: squared error from the selected words, from the full text, per cent selected."""
    for row in dict.fromkeys(result.row for result in results):
        cells = {}
        for aspect in aspects:
            runs = [result for result in results if (result.row, result.aspect) == (row, aspect)]
            cells[aspect] = [
                Mean.over([run.mse for run in runs]),
                Mean.over([run.full_text_mse for run in runs]),
                Mean.over([100 * run.selected for run in runs]),
            ]
        yield row, cells


def markdown_report(results: Sequence[RunResult], aspects: Sequence[str], first: str, notes: Sequence[str]) -> str:
    """The whole outcome as one Markdown page.

    Args:
        results: of all runs.
        aspects: the columns.
        first: the scoring that comes first.
        notes: sentences for the end.
    """
    parts = ["# Beer reviews"]
    scored = any(result.agreement for result in results)
    for scoring in sorted(SCORINGS, key=lambda name: name != first) if scored else ():
        parts += [
            f"## Agreement with the human's words: {SCORINGS[scoring]}",
            _markdown(results, aspects, scoring),
        ]
        gold = gold_shares(results, scoring)
        parts.append("Marked by humans: " + ", ".join(f"{a} {gold[a]:.1f} %" for a in aspects) + ".")
    parts += ["## Predictions on the test reviews", _markdown_predictions(results, aspects)]
    if scored:
        parts += ["## Printed figures that do not go together (†)", _markdown_verdicts(results, aspects, first)]
    if notes:
        parts += ["## Notes", "\n".join(f"- {' '.join(note.split())}" for note in notes)]
    return "\n\n".join(parts) + "\n"


def _markdown(results: Sequence[RunResult], aspects: Sequence[str], scoring: str) -> str:
    header = ["method", *(f"{aspect} {short}" for aspect in aspects for short in COLUMNS.values())]
    rows = [[line.title, *_shown(line, aspects, "markdown")] for line in lines_of(results, aspects, scoring)]
    return markdown_table(header, rows)


def _markdown_predictions(results: Sequence[RunResult], aspects: Sequence[str]) -> str:
    names = ("MSE", "full-text MSE", "% selected")
    header = ["method", *(f"{aspect} {name}" for aspect in aspects for name in names)]
    rows = []
    for row, cells in prediction_lines(results, aspects):
        figures = [
            _with_spread(mean, digits)
            for aspect in aspects
            for mean, digits in zip(cells[aspect], (4, 4, 1), strict=True)
        ]
        rows.append([ROWS[row].title, *figures])
    return markdown_table(header, rows)


def _markdown_verdicts(results: Sequence[RunResult], aspects: Sequence[str], scoring: str) -> str:
    gold = gold_shares(results, scoring)
    rows = [
        [
            f"{verdict.method}, {verdict.aspect}",
            {"recall": "R", "f1": "F"}[verdict.value],
            f"{verdict.printed:.1f}",
            f"{verdict.allowed:.1f}",
            "no" if verdict.certain else "yes",
        ]
        for verdict in verdicts_of(results, scoring)
        if verdict.aspect in aspects
    ]
    bounds = ", ".join(
        f"{aspect} {best_f1(BEER_TABLE['InfoCal'][aspect].selected, gold[aspect]):.1f}" for aspect in aspects
    )
    return (
        "Over all tokens together R = P · selected / marked, so the share bounds the figures. The greatest F at "
        f"the stated shares, with not one wrong word: {bounds}.\n\n"
        + markdown_table(["printed cell", "figure", "printed", "allowed", "explained by rounding"], rows)
    )


def _shown(line: Line, aspects: Sequence[str], style: str) -> Iterator[str]:
    for aspect in aspects:
        for name, mean in line.cells[aspect].items():
            digits = 0 if line.source == PUBLISHED and name == "selected_share" else 1
            yield "-" if mean is None else _with_spread(mean, digits) + (MARK[style] if mean.impossible else "")


def _with_spread(mean: Mean, digits: int) -> str:
    return f"{mean.value:.{digits}f}" + (f" ± {mean.spread:.{digits}f}" if mean.spread is not None else "")


def csv_table(results: Sequence[RunResult], aspects: Sequence[str]) -> str:
    """A row per method, aspect and scoring, measured and published; shares in per cent."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(
        ["method", "source", "scoring", "aspect", *COLUMNS, "f1_spread", "mse", "full_text_mse", "seeds"]
    )
    for scoring in SCORINGS if any(result.agreement for result in results) else ("",):
        for line in lines_of(results, aspects, scoring):
            for aspect in aspects:
                runs = [result for result in results if (result.row, result.aspect) == (line.row, aspect)]
                writer.writerow([line.row, line.source, scoring, aspect, *_csv_cells(line, aspect, runs)])
    return stream.getvalue()


def _csv_cells(line: Line, aspect: str, runs: Sequence[RunResult]) -> list[object]:
    cells = line.cells[aspect]
    figures: list[object] = ["" if mean is None else round(mean.value, 3) for mean in cells.values()]
    if line.source == PUBLISHED:
        return [*figures, "", "", "", ""]
    spread = cells["f1"].spread if cells["f1"] is not None else None
    errors = [
        round(statistics.fmean(run.mse for run in runs), 6),
        round(statistics.fmean(run.full_text_mse for run in runs), 6),
    ]
    return [*figures, "" if spread is None else round(spread, 3), *errors, len(runs)]


def latex_tables(results: Sequence[RunResult], aspects: Sequence[str]) -> str:
    """The table in the paper's layout for every scoring; needs the package ``booktabs``."""
    return "\n".join(_latex(results, aspects, scoring) for scoring in SCORINGS)


def _latex(results: Sequence[RunResult], aspects: Sequence[str], scoring: str) -> str:
    width = len(COLUMNS)
    heads = " & ".join(rf"\multicolumn{{{width}}}{{c}}{{{aspect.capitalize()}}}" for aspect in aspects)
    rules = " ".join(rf"\cmidrule(lr){{{2 + width * n}-{1 + width * (n + 1)}}}" for n in range(len(aspects)))
    shorts = " & ".join(short.replace("%", r"\%") for _ in aspects for short in COLUMNS.values())
    lines = [
        f"% {SCORINGS[scoring]}",
        rf"\begin{{tabular}}{{l{'r' * width * len(aspects)}}}",
        r"\toprule",
        rf"Method & {heads} \\",
        rules,
        rf" & {shorts} \\",
        r"\midrule",
    ]
    for line in lines_of(results, aspects, scoring):
        title = line.title.replace("-L_adv", r"$-L_\text{adv}$").replace("-L_lm", r"$-L_\text{lm}$")
        cells = (cell.replace("±", r"$\pm$") for cell in _shown(line, aspects, "latex"))
        lines.append(" & ".join([title, *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])
