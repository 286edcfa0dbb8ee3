"""The contest benchmark: the pages it makes of finished runs, and post-hoc methods in the form of a run."""

import argparse
import importlib
import json
import sys
from pathlib import Path

import pytest

from infocal.data.toy import toy_reviews, write_toy

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def contest(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module("contest")
    for name in ("contest", "posthoc"):
        sys.modules.pop(name, None)


@pytest.fixture
def arguments(tmp_path):
    """A tiny data set in the place of the restaurant reviews."""
    folder = tmp_path / "data" / "restaurant"
    folder.mkdir(parents=True)
    for part, seed, count in (("train", 1, 60), ("dev", 2, 16), ("test", 3, 20)):
        write_toy(folder / f"{part}.jsonl", toy_reviews(count, seed=seed))
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("the 0.1 0.2 0.3\nbattery 0.3 0.1 0.2\n", encoding="utf-8")
    return argparse.Namespace(
        data=str(tmp_path / "data"),
        vectors=str(vectors),
        runs=str(tmp_path / "runs"),
        processes=1,
        seeds=1,
        only=["restaurant-0.19"],
        methods=["infocal"],
        posthoc=True,
    )


def test_post_hoc_methods_are_runs_of_the_same_form(contest, arguments, monkeypatch, tmp_path):
    monkeypatch.setattr(contest, "GRADIENTS", ("gradient-norm",))
    monkeypatch.setattr(contest, "SLOW", ())
    request = contest.request_of

    def tiny(field, given, methods, **more):
        changes = ("encoder.hidden_width=8", "training.warm_up_rounds=1", "training.joint_rounds=1")
        steps = ("training.least_round_steps=3", "training.most_round_steps=3", "training.settle_steps=2")
        return request(field, given, methods, changes=(*changes, *steps), **more)

    monkeypatch.setattr(contest, "request_of", tiny)
    monkeypatch.setattr(contest, "TABLES", tmp_path / "tables")
    contest.run(arguments)
    folder = Path(arguments.runs) / "restaurant-0.19"
    ours, norm = (json.loads((folder / "runs" / f"{n}-0.json").read_text()) for n in ("infocal", "gradient-norm"))
    assert norm["of"] == ours["identity"]
    assert norm["lines"] == ours["lines"]
    assert norm["scores"]["average"]["full_text"] == ours["scores"]["average"]["full_text"]
    assert norm["scores"]["equal"]["selected"] == pytest.approx(ours["scores"]["equal"]["selected"])
    made = (folder / "runs" / "gradient-norm-0.json").stat().st_mtime_ns
    contest.run(arguments)
    assert (folder / "runs" / "gradient-norm-0.json").stat().st_mtime_ns == made
    contest.report(arguments)
    page = (tmp_path / "tables" / "section.md").read_text(encoding="utf-8")
    assert "### restaurant, 19 %" in page
    assert "| gradient-norm |" in page
    for decoder in ("average", "equal", "spans"):
        table = (tmp_path / "tables" / f"restaurant-0.19-{decoder}.csv").read_text(encoding="utf-8")
        assert "gradient-norm" in table


def test_failed_runs_are_named_and_explanations_of_another_model_are_left_out(contest, tmp_path):
    (tmp_path / "runs").mkdir()
    records = [
        {**run_with("infocal", 0, [4]), "identity": "new"},
        {**run_with("gradient-norm", 0, [4]), "of": "old"},
        {"state": "failed", "contender": "printed", "seed": 0, "message": "the loss became nan"},
    ]
    for record in records:
        path = tmp_path / "runs" / f"{record['contender']}-0.json"
        path.write_text(json.dumps(record), encoding="utf-8")
    results = contest.collect(tmp_path, ("infocal", "printed", "gradient-norm"), "average", 0.2)
    assert results.finished == ("infocal",)
    assert results.failures == (("printed", 0, "the loss became nan"),)


def test_without_a_guider_there_is_nothing_to_explain(contest, arguments, capsys):
    field = next(field for field in contest.FIELDS if field.key == "restaurant-0.19")
    contest.explain_afterwards(field, arguments, ("gradient-norm",), 0)
    assert "no guider to explain" in capsys.readouterr().out


def run_with(contender, seed, hits):
    rows = list(range(len(hits)))
    parts = {"rows": rows, "hits": hits, "selected": [4] * len(hits), "gold": [4] * len(hits)}
    return {
        "state": "done",
        "contender": contender,
        "seed": seed,
        "lines": [10 + row for row in rows],
        "documents": {"average": parts},
    }


def test_slow_methods_are_compared_on_the_texts_that_they_have_read(contest, tmp_path):
    (tmp_path / "runs").mkdir()
    for record in (run_with("infocal", 0, [4, 4, 0, 0]), run_with("lime", 0, [1, 1])):
        path = tmp_path / "runs" / f"{record['contender']}-0.json"
        path.write_text(json.dumps(record), encoding="utf-8")
    (row,) = contest.slow_table(tmp_path, "average").splitlines()[2:]
    assert row.startswith("| lime | 25.0 | 100.0 | +75.0 ")
    assert row.endswith("| 1, 2 texts |")
    assert contest.slow_table(tmp_path / "nowhere", "average") == ""
