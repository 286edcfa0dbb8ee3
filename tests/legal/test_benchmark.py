"""The benchmark on court cases: runs that are kept, goes on from them, and the page it makes."""

import argparse
import importlib
import json
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from infocal.data.encoded import EncodedFolder
from infocal.legal.prepare import prepare_cases

pytest.importorskip("pyarrow")
pytest.importorskip("rjieba")

FOLDER = Path(__file__).parents[2] / "benchmarks"
MODULES = ("legal", "legal_report", "legal_rare", "many_classes", "articles_found")


@pytest.fixture
def legal(here_and_now, monkeypatch, tiny_changes, tmp_path):
    monkeypatch.syspath_prepend(str(FOLDER))
    module = importlib.import_module("legal")
    monkeypatch.setattr(module, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(module, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(module, "ProcessPoolExecutor", here_and_now)
    usual = module.Variant(rows=("infocal", "infocal-joint"), changes=tiny_changes, least_cases=10)
    balanced = module.Variant(rows=("infocal",), changes=(*tiny_changes, "loss.balance=1.0"), least_cases=10)
    many = replace(balanced, tasks=("charge",), least_cases=3)
    variants = {
        "plain": usual,
        "many": replace(many, changes=tiny_changes),
        "many-balanced": many,
        "unread": replace(usual, rows=("bernoulli",), tasks=("charge",)),
        "unread-printed": replace(usual, rows=("hardkuma",), tasks=("charge",)),
    }
    monkeypatch.setattr(module, "VARIANTS", variants)
    yield module
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.fixture
def arguments(tmp_path, cases, write):
    (tmp_path / "data").mkdir()
    for number, (part, count) in enumerate({"train": 90, "valid": 30, "test": 30}.items()):
        write(tmp_path / "data" / f"{part}.json", cases(count, seed=number))
    return argparse.Namespace(data=tmp_path / "data", out=tmp_path / "work", seeds=1, processes=1, rows=[])


def test_runs_are_kept_and_gone_on_from(legal, arguments, tmp_path, monkeypatch, capsys):
    legal.run(arguments)
    assert "plain infocal charge 0: charge 0." in capsys.readouterr().out
    kept = {path.name: path.read_bytes() for path in (tmp_path / "kept").iterdir()}
    assert len(kept) == 9  # three tasks, all in one, two of many, two that do not read first, and the cases
    assert not any(str(tmp_path).encode() in content for content in kept.values())
    shutil.rmtree(arguments.out)
    from infocal.reproduce import judgements

    monkeypatch.setattr(judgements, "train_model", lambda *_, **__: pytest.fail("trained again"))
    legal.run(arguments)
    assert {path.name: path.read_bytes() for path in (tmp_path / "kept").iterdir()} == kept
    legal.report()
    page = legal.PAGE.read_text(encoding="utf-8")
    assert "| charge | within 2 points of its own guider | 0." in page
    assert "| charge | 3 points above HardKuma | - | not run |" in page
    assert "| charge | Bernoulli | not run | not run |" in page  # it has run without reading first only
    assert "## Cases read, left out, and kept" in page
    assert f"torch {torch.__version__}" in page
    assert "| InfoCal, all tasks in one | term | 0." in page
    assert page.count(" -> 0.") == 6  # three figures of both readers of many charges
    assert "| charge | 3 | chosen words | 0." in page


def test_how_often_rare_charges_are_found(legal, arguments):
    arguments.rows = ["infocal"]
    legal.run(arguments)
    legal.rare(arguments.out)
    found = json.loads((legal.KEPT / legal.RARE).read_text())
    assert {name: len(runs) for name, runs in found.items()} == {"plain": 1, "balanced": 1}
    legal.report()
    page = legal.PAGE.read_text(encoding="utf-8")
    assert "| held out | chosen words |" in page and "| test | all words |" in page


def test_found_is_counted_by_the_size_of_the_class(legal):
    rare = sys.modules["legal_rare"]
    targets, sizes = np.array([0, 0, 1, 1, 2]), np.array([3, 5, 30])
    assert rare.by_size(np.array([0, 1, 1, 1, 0]), targets, sizes) == {"up to 5": 0.75, "6 to 30": 0.0}


def test_a_run_of_another_recipe_is_done_again_and_a_failed_one_does_not_stop_the_others(
    legal, arguments, monkeypatch, capsys
):
    arguments.rows = ["infocal-joint"]
    legal.run(arguments)
    (kept,) = legal.KEPT.glob("plain-infocal-joint-*.json")
    before = kept.read_bytes()
    plain = legal.VARIANTS["plain"]
    longer = replace(plain, changes=(*plain.changes, "training.settle_steps=3"))
    monkeypatch.setitem(legal.VARIANTS, "plain", longer)
    legal.run(arguments)
    assert kept.read_bytes() != before
    monkeypatch.setattr(legal, "reproduce_cail", lambda *_: 1 / 0)
    legal.run(arguments)
    assert "plain infocal-joint all 0: failed: ZeroDivisionError" in capsys.readouterr().out


def test_a_begun_run_is_not_ended_by_an_older_record(legal, arguments):
    arguments.rows = ["infocal-joint"]
    legal.run(arguments)
    job = legal.Job("plain", "infocal-joint", "all", 0)
    begun, gone = arguments.out / "begun", arguments.out / "gone"
    job.folder(begun).mkdir(parents=True)
    for out in (begun, gone):
        legal.lay_out(job, out)
    assert not list(job.folder(begun).iterdir())
    assert {path.name for path in job.folder(gone).iterdir()} == {"result.json", "trained.json"}


def test_a_page_of_unfinished_runs(legal, arguments):
    arguments.rows = ["infocal"]
    legal.run(arguments)
    for path in legal.KEPT.glob("plain-infocal-article-*.json"):
        path.unlink()
    legal.report()
    page = legal.PAGE.read_text(encoding="utf-8")
    assert "| article | within 2 points of its own guider | - | not run |" in page
    assert "4 of the 24 runs of the plan are done so far" in page


def test_verdicts_count_points(legal):
    page = sys.modules["legal_report"]
    record = {"result.json": {"seconds": 1.0, "tasks": {}}}

    def runs(row, accuracy, full):
        tasks = {task: {"accuracy": accuracy, "full_text": {"accuracy": full}} for task in ("article", "charge")}
        return ("plain", row, 0, {"result.json": {**record["result.json"], "tasks": tasks}})

    found = [runs("infocal", 0.85, 0.88), runs("bernoulli", 0.82, 0.9), runs("hardkuma", 0.84, 0.9)]
    table = page.verdicts(page.results_of(found, "plain"))
    assert "| charge | within 2 points of its own guider | 0.850 against 0.880, -3.0, 1 seed | **no** |" in table
    assert "| charge | 3 points above Bernoulli | 0.850 against 0.820, +3.0, 1 seed | yes |" in table
    assert "| charge | 3 points above HardKuma | 0.850 against 0.840, +1.0, 1 seed | **no** |" in table
    assert "| charge | all tasks in one at least level with TOPJUDGE | - | not run |" in table


def test_what_reading_first_gives(legal):
    page = sys.modules["legal_report"]

    def runs(row, seed, accuracy):
        return page.Result(row, seed, {"charge": {"accuracy": accuracy, "selected": 0.2}}, 1.0)

    read = [
        runs("infocal", 0, 0.92),
        runs("infocal", 1, 0.5),
        runs("bernoulli", 0, 0.9),
        runs("bernoulli", 1, 0.5),
    ]
    alone = page.Result("bernoulli", 2, {"charge": {"accuracy": 0.1, "selected": 0.9}}, 1.0)
    table = page.unread(read, [runs("bernoulli", 0, 0.875), alone])
    assert "| charge | Bernoulli | 0.900 | 0.875 | 20.0 | +4.5 | 1 |" in table
    assert "| charge | HardKuma | not run | not run | not run | not run | 0 |" in table


@pytest.fixture
def many(legal, here_and_now, monkeypatch, tiny_changes, tmp_path):
    module = sys.modules["many_classes"]
    tiny = dict(change.split("=") for change in tiny_changes)
    usual = module.load_settings
    monkeypatch.setattr(module, "load_settings", lambda *, changes, **rest: usual(changes=tiny | changes, **rest))
    monkeypatch.setattr(module, "ProcessPoolExecutor", here_and_now)
    monkeypatch.setattr(module, "KEPT", tmp_path / "kept" / "made-up.json")
    monkeypatch.setattr(module, "CLASSES", 6)
    monkeypatch.setattr(module, "rows_of_classes", lambda: np.array([20, 12, 10, 8, 4, 3]))
    monkeypatch.setattr(module, "BALANCES", (0.0, 1.0))
    return module


def test_made_up_classes_are_as_unequal_as_told(many):
    rows, again = many.made_up(3), many.made_up(3)
    assert rows == again != many.made_up(4)
    labels = [str(row.label) for row in rows]
    assert [labels.count(f"class {k}") for k in range(6)] == [20, 12, 10, 8, 4, 3]
    assert all(len(row.text.split()) == many.LENGTH for row in rows)
    told = [f"own{str(row.label).split()[1]}" in row.text.split() for row in rows]
    assert 0.7 < np.mean(told) < 1


def test_made_up_classes_are_run_once_and_shown(many, legal, arguments, monkeypatch, capsys):
    many.run(1, 1)
    kept = many.read(many.KEPT)
    assert [record["balance"] for record in kept] == [0.0, 1.0]
    assert set(kept[0]["readers"]["chosen words"]["found"]) == {"up to 5", "6 to 30"}
    monkeypatch.setattr(many, "once", lambda *_: pytest.fail("trained again"))
    many.run(1, 1)
    assert many.read(many.KEPT) == kept
    monkeypatch.setattr(many, "once", lambda *_: 1 / 0)
    capsys.readouterr()
    many.run(2, 1)
    assert "balance 1, seed 1: failed: division by zero" in capsys.readouterr().out
    assert many.read(many.KEPT) == kept
    arguments.rows = ["infocal"]
    legal.run(arguments)
    legal.report()
    page = legal.PAGE.read_text(encoding="utf-8")
    assert "| chosen words | 1 | 0." in page and "| all words | 0 | 0." in page


def test_every_run_of_the_table_is_planned():
    sys.path.insert(0, str(FOLDER))
    try:
        legal = importlib.import_module("legal")
        planned = [job.kept.name for job in legal.jobs(3)]
    finally:
        sys.path.remove(str(FOLDER))
        for name in MODULES:
            sys.modules.pop(name, None)
    assert len(planned) == len(set(planned))
    assert "plain-topjudge-all-seed2.json" in planned
    assert "plain-hardkuma-term-seed0.json" in planned
    assert "plain-infocal-full-term-seed0.json" in planned
    assert "plain-infocal-paper-article-seed2.json" in planned
    assert "many-balanced-infocal-charge-seed2.json" in planned
    order = [
        "plain-infocal-term-seed2.json",
        "many-balanced-infocal-charge-seed2.json",
        "plain-infocal-full-article-seed0.json",
        "unread-printed-hardkuma-charge-seed0.json",
    ]
    assert sorted(order, key=planned.index) == order  # what a reader of the table misses most is run first


def test_how_often_the_first_article_found_is_right(legal, asked, tmp_path, capsys):
    module = importlib.import_module("articles_found")
    manifest = prepare_cases(asked(tmp_path / "cases"))
    train = EncodedFolder.open(tmp_path / "cases").part("train", "article")
    for number in range(len(manifest["labels"]["article"])):
        always = module.first_is_right(train, lambda ids, number=number: torch.full((len(ids), 1), number))
        assert always == pytest.approx((np.asarray(train.targets) == number).mean())
    module.main(str(tmp_path / "cases"))
    assert re.fullmatch(
        r"training facts 1\.000, each by a retriever without it [01]\.\d{3}, held-out facts [01]\.\d{3}\n",
        capsys.readouterr().out,
    )
