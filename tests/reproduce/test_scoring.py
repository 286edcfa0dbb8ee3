"""Both scorings of the literature against counts by hand, and the printed figures that cannot be."""

import json

import numpy as np
import pytest

from infocal.data.beer import read_annotations
from infocal.data.corpus import CorpusBuilder
from infocal.data.records import BadRows
from infocal.evaluation.rationales import rationale_scores
from infocal.reproduce.published import BEER_TABLE, GOLD_SHARES, Cell, best_f1, check_cell, check_table
from infocal.reproduce.scoring import agreement, cut_as
from infocal.text.segmentation import whitespace
from infocal.text.vocabulary import Vocabulary
from infocal.types import Document

LONG = [f"w{place}" for place in range(300)]


@pytest.fixture
def documents(tmp_path):
    records = [
        {"x": list("abcdefghij"), "y": [0.8], "0": [[2, 5]]},  # 3 marked of 10
        {"x": list("abcdefghij"), "y": [0.5], "0": [[0, 2], [8, 10]]},  # 4 of 10, undecided
        {"x": LONG, "y": [0.4], "0": [[250, 260]]},  # 10 of 300, 6 of the first 256
        {"x": list("abc"), "y": [1.0], "0": []},  # nothing marked
        {"x": list("abcde"), "y": [0.6], "0": [[0, 5]]},  # all 5
    ]
    path = tmp_path / "annotations.json"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return list(read_annotations(path, "appearance", bad_rows=BadRows()))


CHOSEN = {1: {2, 3, 7}, 2: {0, 9}, 3: {255, 256, 299}, 4: {0}, 5: {1}}
"""Tokens selected by line."""


def scored(documents):
    builder = CorpusBuilder(whitespace, max_tokens=1000, source="test")
    flags = []
    for document in documents:
        flags += [place in CHOSEN[document.line] for place in range(len(builder.add(document)))]
    vocabulary = Vocabulary.build(builder.counts(), min_count=1, max_words=1000, unknown_buckets=4)
    corpus = builder.finish(vocabulary)
    selected = np.array(flags)
    return agreement(
        rationale_scores(
            selected, corpus.gold, corpus.offsets, annotated=corpus.annotated, scores=selected.astype(float)
        )
    )


def test_lei_takes_every_marked_review_whole(documents):
    kept = cut_as("lei", documents)
    assert [document.line for document in kept] == [1, 2, 3, 5]
    # hits: 2 (tokens 2, 3) + 2 (0, 9) + 2 (255, 256) + 1; selected 3 + 2 + 3 + 1; marked 3 + 4 + 10 + 5
    assert scored(kept) == pytest.approx(
        {"precision": 7 / 9, "recall": 7 / 22, "f1": 14 / 31, "selected_share": 9 / 325, "gold_share": 22 / 325}
    )


def test_car_drops_the_undecided_and_cuts_at_256(documents):
    kept = cut_as("car", documents)
    assert [document.line for document in kept] == [1, 3, 5]
    assert [len(document.text.split()) for document in kept] == [10, 256, 5]
    # hits: 2 + 1 (255) + 1; selected 3 + 1 + 1; marked 3 + 6 + 5
    assert scored(kept) == pytest.approx(
        {"precision": 4 / 5, "recall": 4 / 14, "f1": 8 / 19, "selected_share": 5 / 271, "gold_share": 14 / 271}
    )


def test_the_bounds_of_the_undecided_are_kept():
    documents = [Document("a b", rating, ((0, 1),)) for rating in (0.4, 0.41, 0.59, 0.6, 0.0)]
    assert [document.label for document in cut_as("car", documents)] == [0.4, 0.6, 0.0]


def test_greatest_f1_at_the_stated_shares():
    found = [best_f1(share, GOLD_SHARES[aspect]) for aspect, share in zip(GOLD_SHARES, (13, 7, 7), strict=True)]
    assert found == pytest.approx([82.5, 61.9, 72.2], abs=0.06)
    assert best_f1(50, 20) == pytest.approx(2 * 20 / 70 * 100)


def test_table_is_consistent_in_itself():
    for cells in BEER_TABLE.values():
        for cell in cells.values():
            harmonic = 2 * cell.precision * cell.recall / (cell.precision + cell.recall)
            assert cell.f1 == pytest.approx(harmonic, abs=0.1)


def test_impossible_cells_of_the_printed_table():
    verdicts = check_table()
    high_f1 = {(v.method, v.aspect) for v in verdicts if v.value == "f1"}
    assert high_f1 == {("InfoCal", "appearance"), ("InfoCal(HK)", "appearance")}
    too_high = {(v.method, v.aspect) for v in verdicts if v.value == "recall" and v.too_high}
    assert {("InfoCal", aspect) for aspect in GOLD_SHARES} <= too_high
    certain = {(v.method, v.aspect) for v in verdicts if v.certain and v.too_high}
    assert certain == {
        ("Bernoulli", "palate"),
        ("InfoCal", "appearance"),
        ("InfoCal", "palate"),
        ("InfoCal(HK)", "palate"),
    }
    too_low = {(v.method, v.aspect) for v in verdicts if v.certain and not v.too_high}
    assert ("Attention", "appearance") in too_low
    assert len(too_low) == 8


def test_figures_that_go_together_pass():
    # 13 of 100 selected, 12 of them right, 20 marked: P 92.3, R 60.0, F 72.7
    assert list(check_cell("any", "smell", Cell(92.3, 60.0, 72.7, 13), 20.0)) == []
    (verdict,) = check_cell("any", "smell", Cell(92.3, 65.0, 76.3, 13), 20.0)
    assert (verdict.value, verdict.too_high, verdict.certain) == ("recall", True, True)
    assert verdict.allowed == pytest.approx(59.995)
