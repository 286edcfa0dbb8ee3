"""Tables: layout, what is best, what is unknown, what must not act as markup."""

import csv
import io
import re

import pytest

from infocal.comparison.contests import contests, paired_t
from infocal.comparison.tables import as_csv, as_latex, as_markdown, figure_rows, write_tables


@pytest.fixture
def two(make_results):
    return make_results(
        {"good_one": [(0.6, 0.7), (0.7, 0.72)], "other": [(0.5, 0.9), (0.52, 0.8)]},
        failures=[("other", 2, "the loss became nan | <b>")],
    )


def lines_of(text, start):
    return [line for line in text.splitlines() if line.startswith(start)]


def test_markdown_shows_mean_deviation_and_the_best_in_bold(two):
    text = as_markdown(two, contests(two))
    header = [cell.strip() for cell in lines_of(text, "| method")[0].strip("|").split("|")]
    (row,) = lines_of(text, r"| good\_one")
    cells = dict(zip(header, (cell.strip() for cell in row.strip("|").split("|")), strict=True))
    assert cells["F1"] == "**65.0 ± 7.1**"
    assert cells["accuracy"] == "71.0 ± 1.4"
    assert cells["share"] == "20.0 ± 0.0"
    assert cells["of marked"] == "10.0 ± 0.0"
    assert cells["seconds"] == "**10 ± 1**"
    assert cells["runs"] == "2"
    assert "**85.0 ± 7.1**" in lines_of(text, "| other")[0]
    (human,) = lines_of(text, "| human")
    assert human.count(" - ") == len(header) - 4
    assert "9.00" in human
    of_human = [cell.strip() for cell in human.strip("|").split("|")]
    assert of_human[header.index("of marked")] == "14.0"


def test_failed_runs_are_listed_and_nothing_in_them_is_markup(two):
    text = as_markdown(two, [])
    assert r"- other, seed 2: the loss became nan \| \<b\>" in text
    assert "% failed: other, seed 2" in as_latex(two, [])


def test_every_row_of_a_table_has_as_many_cells(two):
    for line in as_markdown(two, contests(two)).splitlines():
        if line.startswith("|"):
            assert len(re.split(r"(?<!\\)\|", line)) in (18, 10)
    for table in as_latex(two, contests(two)).split("\\begin{tabular}")[1:]:
        rows = [line for line in table.splitlines() if line.endswith("\\\\")]
        assert len({line.count(" & ") for line in rows}) == 1


def test_latex_is_escaped_and_bold(two):
    text = as_latex(two, contests(two))
    assert "good\\_one" in text
    assert "good_one" not in text
    assert "\\textbf{65.0 $\\pm$ 7.1}" in text
    assert "20 \\% of the words" in text


def test_csv_is_one_table_that_can_be_read_back(two):
    rows = list(csv.DictReader(io.StringIO(as_csv(two, contests(two)))))
    scores = {(row["method"], row["measure"]): row for row in rows if row["section"] == "scores"}
    assert float(scores["good_one", "f1"]["value"]) == pytest.approx(0.65)
    assert scores["good_one", "f1"]["runs"] == "2"
    assert float(scores["human", "mean_run"]["value"]) == 9.0
    found = [row for row in rows if row["section"] == "significance"]
    assert [(row["method"], row["against"], row["measure"]) for row in found] == [
        ("good_one", "other", "f1"),
        ("other", "good_one", "accuracy"),
    ]
    assert all(0 < float(row["p_documents"]) <= 1 for row in found)
    (failed,) = [row for row in rows if row["section"] == "failed"]
    assert (failed["method"], failed["seed"]) == ("other", "2")


def test_what_is_unknown_is_a_dash(make_results):
    results = make_results({"a": [(None, 0.4)], "b": [(None, 0.5)]}, scores=True)
    header, rows = figure_rows(results, bold=lambda text: f"*{text}*")
    cells = dict(zip(header, rows[0], strict=True))
    assert cells["P"] == cells["F1"] == cells["IoU F1"] == "-"
    assert cells["MSE"] == "*0.400*"
    assert cells["full text"] == "*0.500*"
    assert len(rows) == 2
    assert {contest.measure.key for contest in contests(results)} == {"mse"}


def test_one_method_is_never_bold_and_has_no_contest(make_results):
    results = make_results({"a": [(0.5, 0.5), (0.6, 0.6)]})
    text = as_markdown(results, contests(results))
    assert "**" not in text
    assert "no two methods" in text


def test_all_failed_still_gives_tables(make_results, tmp_path):
    results = make_results({"a": []}, failures=[("a", 0, "no")])
    write_tables(tmp_path, results, contests(results))
    assert "No run has finished." in (tmp_path / "table.md").read_text("utf-8")
    assert {path.name for path in tmp_path.iterdir()} == {"table.csv", "table.md", "table.tex"}


def test_paired_t_by_hand():
    first, second = [0.60, 0.66, 0.63], [0.58, 0.60, 0.62]
    # gaps .02 .06 .01: mean .03, deviation .026458, t = .03 / (.026458 / sqrt(3)) = 1.96396, 2 degrees of freedom
    t = 1.963961
    expected = 1 - t / (2 + t * t) ** 0.5
    assert paired_t(first, second) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(("first", "second"), [([0.5], [0.4]), ([0.5, 0.6], [0.4, 0.5]), ([0.5, 0.5], [0.5, 0.5])])
def test_paired_t_needs_gaps_that_differ(first, second):
    assert paired_t(first, second) is None


def test_contests_take_the_documents_and_seeds_that_both_have(make_results, make_record):
    results = make_results({"a": [(0.6, 0.9), (0.6, 0.9)], "b": [(0.4, 0.8)]})
    short = make_record("b", 0, f1=0.4, quality=0.8)
    for counts in short["documents"].values():
        for name in ("outcome", "hits", "selected", "gold"):
            counts[name] = counts[name][10:]
        counts["rows"] = counts["rows"][:-10]
        break  # the decoders share one record
    short["lines"] = short["lines"][10:]
    results.runs["b"][0] = short
    by_key = {contest.measure.key: contest for contest in contests(results)}
    mine = results.runs["a"][0]["documents"]["average"]
    theirs = short["documents"]["average"]
    expected = sum(mine["outcome"][10:]) / 30 - sum(theirs["outcome"]) / 30
    assert by_key["accuracy"].documents.value == pytest.approx(expected)
    assert by_key["accuracy"].seeds == 1
    assert by_key["accuracy"].p_seeds is None
    assert by_key["accuracy"].difference == pytest.approx(0.1)
