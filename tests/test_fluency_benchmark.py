"""benchmarks/language_model.py: the selections that a human's words are held against, and its table."""

import argparse
import importlib
import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from infocal.data.corpus import Corpus
from infocal.data.toy import toy_reviews, write_toy
from infocal.evaluation.ragged import runs, sums

FOLDER = Path(__file__).parents[1] / "benchmarks"
OFFSETS = np.array([0, 12, 15, 40])
MARKED = np.zeros(40, dtype=bool)
MARKED[[0, 1, 2, 6, 7, 13, 20, 21, 22, 23, 30]] = True


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module("language_model")
    for name in ("language_model", "contest_runs"):
        sys.modules.pop(name, None)


def lengths_by_document(flags):
    starts, ends = runs(flags, OFFSETS)
    owner = np.searchsorted(OFFSETS, starts, side="right") - 1
    return [sorted((ends - starts)[owner == number].tolist()) for number in range(3)]


def test_runs_put_elsewhere_stay_runs_of_their_document(benchmark):
    rng = np.random.default_rng(0)
    found = [benchmark.elsewhere(MARKED, OFFSETS, rng) for _ in range(50)]
    assert all(lengths_by_document(flags) == [[2, 3], [1], [1, 4]] for flags in found)
    assert np.all(np.mean(found, axis=0) > 0)  # every place can be hit


def test_scattered_words_are_as_many_in_each_document(benchmark):
    flags = benchmark.scattered(MARKED, OFFSETS, np.random.default_rng(0))
    assert sums(flags, OFFSETS).tolist() == sums(MARKED, OFFSETS).tolist()
    assert flags.tolist() != MARKED.tolist()


def test_costs_are_those_of_the_equation(benchmark):
    class Scores(torch.nn.Module):
        def forward(self, vectors):
            return vectors[..., 0]

    values = torch.linspace(-2, 2, 40)
    corpus = Corpus(np.arange(40, dtype=np.int32), OFFSETS, np.arange(3))
    found = benchmark.costs(Scores(), lambda ids: values[ids].unsqueeze(-1), corpus, MARKED)
    expected = np.zeros(3)
    for number, (start, end) in enumerate(itertools.pairwise(OFFSETS)):
        for place in range(start + 1, end):
            if MARKED[place - 1]:
                expected[number] += np.log1p(np.exp(-float(values[place]) * MARKED[place]))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("more", [False, True])
def test_it_prints_a_row_for_each_data_set(benchmark, tmp_path, monkeypatch, capsys, more):
    for name in ("restaurant", "tweets", "hatexplain"):
        (tmp_path / name).mkdir()
        for part, count in (("train", 40), ("dev", 12)):
            write_toy(tmp_path / name / f"{part}.jsonl", toy_reviews(count, seed=count))
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("the 0.1 0.2 0.3\nbattery 0.3 0.1 0.2\n", encoding="utf-8")
    fields = [argparse.Namespace(**{**vars(one), "label": "label"}) for one in benchmark.FIELDS if not one.half]
    monkeypatch.setattr(benchmark, "FIELDS", fields)
    others = tmp_path / "others.jsonl"
    write_toy(others, toy_reviews(30, seed=5))
    read = []
    train = benchmark.pretrain_language_model
    monkeypatch.setattr(
        benchmark, "pretrain_language_model", lambda *parts: read.append(len(parts[2])) or train(*parts)
    )
    words = ["x", "--data", str(tmp_path), "--vectors", str(vectors), *(["--texts", str(others)] if more else [])]
    monkeypatch.setattr(sys, "argv", words)
    benchmark.main()
    assert read == ([30, 40] if more else [40]) * 3
    cells = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if "| ---" not in line]
    assert [row[0].strip("| ") for row in cells] == ["data", "restaurant", "tweets", "toxic"]
    assert all(0 < float(row[2]) < 1 and 0 < float(row[5]) < 1.5 for row in cells[1:])
