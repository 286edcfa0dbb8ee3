"""The paper's tables of court cases: printed figures beside ours, cells that cannot be, which data is its."""

import pytest

from infocal.reproduce import judgement_rows
from infocal.reproduce.judgement_tables import latex_table, lines_of, markdown_report
from infocal.reproduce.judgements import Result
from infocal.reproduce.published_cail import CAIL_TABLES, impossible_cells, which_official


def figures(accuracy):
    names = ("macro_precision", "macro_recall", "macro_f1", "selected")
    return {"accuracy": accuracy, **dict.fromkeys(names, 0.5)}


def test_published_figures_stand_beside_ours_on_the_papers_data():
    results = [Result("topjudge", seed, {"charge": figures(0.8 + seed / 10)}, 10.0) for seed in range(2)]
    ours, printed = lines_of(results, ["charge"], "small")
    assert ours.cells["charge"]["accuracy"].value == pytest.approx(0.85)
    assert printed.cells["charge"]["accuracy"].value == 0.871
    page = markdown_report(results, ["charge"], official="small", data={"train cases": 3})
    assert "0.850 ± 0.071" in page
    assert "TOPJUDGE, as published" in page
    assert r"\pm" in latex_table(results, ["charge"], "small")


def test_every_printed_row_has_a_place_in_the_table():
    rows = judgement_rows.ROWS.values()
    placed = {row.published for row in rows} | {other for row in rows for other in row.also_published}
    assert all(set(table) <= placed for table in CAIL_TABLES.values())
    results = [Result("hardkuma", 0, {"charge": figures(0.8)}, 10.0)]
    lines = lines_of(results, ["charge"], "big")
    assert [line.title for line in lines] == [
        "HardKuma",
        "HardKuma, as published",
        "HardKuma, all words, as published",
    ]
    assert lines[2].cells["charge"]["accuracy"].value == 0.907


def test_printed_cells_that_cannot_be():
    found = list(impossible_cells())
    assert len(found) == 27
    assert sum(len(row) for table in CAIL_TABLES.values() for row in table.values()) == 66
    assert all(cell.printed > cell.most for cell in found)
    bernoulli = CAIL_TABLES["big"]["Bernoulli"]["article"]
    assert (bernoulli.macro_precision, bernoulli.macro_recall, bernoulli.macro_f1) == (0.632, 0.374, 0.621)


@pytest.mark.parametrize(
    ("column", "train", "test", "name"),
    [
        ("read", 154_592, 32_508, "small"),
        ("read", 1_710_856, 217_016, "big"),
        ("cases", 101_000, 27_000, "small"),
        ("cases", 1_500_000, 190_000, "big"),
        ("cases", 101_000, 12_000, None),  # half of the test cases
        ("cases", 60_000, 26_766, None),
        ("cases", 3_000, 500, None),
    ],
)
def test_which_data_is_the_papers(column, train, test, name):
    found = which_official({"train": {column: train}, "test": {column: test}})
    assert (found and found[0]) == name
    assert found is None or ("lines" if column == "read" else "after the filters") in found[1]
