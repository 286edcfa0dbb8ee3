"""The contest benchmark: the pages it makes of finished runs, and post-hoc methods in the form of a run."""

import argparse
import gzip
import importlib
import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from infocal.comparison.results import Results
from infocal.data.toy import toy_reviews, write_toy

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def contest(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module("contest")
    for name in ("contest", "contest_report", "contest_runs", "contest_summary", "posthoc"):
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
        only=["restaurant-0.19", "restaurant-0.095"],
        methods=["infocal"],
        posthoc=True,
    )


@pytest.fixture
def quick(contest, here_and_now, monkeypatch, tmp_path):
    """The contest with a small network, few rounds, one post-hoc method, and results in a folder of the test."""
    request = contest.request_of

    def tiny(field, given, **more):
        changes = ("encoder.hidden_width=8", "training.warm_up_rounds=1", "training.joint_rounds=1")
        steps = ("training.least_round_steps=3", "training.most_round_steps=3", "training.settle_steps=2")
        return request(field, given, changes=(*changes, *steps), **more)

    monkeypatch.setattr(contest, "request_of", tiny)
    monkeypatch.setattr(contest, "GRADIENTS", ("gradient-norm",))
    monkeypatch.setattr(contest, "SLOW", ())
    monkeypatch.setattr(sys.modules["contest_runs"], "TABLES", tmp_path / "tables")
    monkeypatch.setattr(sys.modules["contest_runs"], "FIGURES", tmp_path / "figures")
    monkeypatch.setattr(contest, "ProcessPoolExecutor", here_and_now)
    return contest


def test_post_hoc_methods_are_runs_of_the_same_form(quick, arguments, tmp_path):
    quick.run(arguments)
    runs = Path(arguments.runs)
    gold, half = (runs / f"restaurant-{share}" / "runs" for share in ("0.19", "0.095"))
    ours, norm, less = (
        json.loads(path.read_text())
        for path in (gold / "infocal-0.json", gold / "gradient-norm-0.json", half / "gradient-norm-0.json")
    )
    assert norm["of"] == less["of"] == ours["identity"]
    assert norm["lines"] == ours["lines"]
    assert norm["scores"]["average"]["full_text"] == ours["scores"]["average"]["full_text"]
    assert norm["scores"]["equal"]["selected"] == pytest.approx(ours["scores"]["equal"]["selected"])
    assert less["scores"]["equal"]["selected"] < norm["scores"]["equal"]["selected"]
    quick.report()
    page = (tmp_path / "tables" / "section.md").read_text(encoding="utf-8")
    assert "### restaurant, 19 %" in page
    assert "### restaurant, 9.5 %" in page
    assert page.count("| gradient-norm |") >= 3
    assert re.search(r"^2 of the \d+ runs of the plan \(5 seeds each; 3 of ablations", page, flags=re.MULTILINE)
    (picture,) = (line for line in page.splitlines() if "quality-by-share" in line)
    assert picture == "![restaurant, quality-by-share](figures/restaurant/quality-by-share.png)"
    assert (tmp_path / "figures" / "restaurant" / "quality-by-share.png").stat().st_size > 10_000
    for decoder in ("average", "equal", "spans"):
        table = (tmp_path / "tables" / f"restaurant-0.19-{decoder}.csv").read_text(encoding="utf-8")
        assert "gradient-norm" in table


def test_the_contest_goes_on_elsewhere_from_what_is_kept(quick, arguments, tmp_path, monkeypatch):
    quick.run(arguments)
    files = {path: path.read_bytes() for path in (tmp_path / "tables" / "runs").iterdir()}
    assert {path.name for path in files} == {f"restaurant-{share}-seed0.jsonl.gz" for share in ("0.19", "0.095")}
    assert not any(str(tmp_path).encode() in gzip.decompress(content) for content in files.values())
    shutil.rmtree(arguments.runs)
    monkeypatch.setattr(quick, "do_jobs", lambda jobs, **_: pytest.fail("trained again") if jobs else None)
    monkeypatch.setattr(quick, "attribute", lambda *_, **__: pytest.fail("explained again"))
    quick.run(arguments)
    assert {path: path.read_bytes() for path in files} == files


def test_a_guider_that_was_not_explained_is_trained_again_where_its_model_is_lost(quick, arguments):
    quick.run(arguments)
    folder = Path(arguments.runs) / "restaurant-0.19"
    (folder / "runs" / "gradient-norm-0.json").unlink()
    shutil.rmtree(folder / "models")
    quick.run(arguments)
    assert (folder / "runs" / "gradient-norm-0.json").exists()


def test_failed_runs_are_named_and_explanations_of_another_model_are_left_out(contest):
    records = [
        {**run_with("infocal", 0, [4]), "identity": "new"},
        {**run_with("gradient-norm", 0, [4]), "of": "old"},
        {"state": "failed", "contender": "printed", "seed": 0, "message": "the loss became nan"},
    ]
    collect = sys.modules["contest_report"].collect
    results = collect(records, {0: "new"}, ("infocal", "printed", "gradient-norm"), "average", 0.2)
    assert results.finished == ("infocal",)
    assert results.failures == (("printed", 0, "the loss became nan"),)


def test_without_a_guider_there_is_nothing_to_explain(contest, arguments):
    field = next(field for field in contest.FIELDS if field.key == "restaurant-0.19")
    (note,) = contest.explain_guider([field], arguments, 0)
    assert "no guider to explain" in note


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


def test_slow_methods_are_compared_on_the_texts_that_they_have_read(contest):
    report = sys.modules["contest_report"]
    records = [run_with("infocal", 0, [4, 4, 0, 0]), run_with("lime", 0, [1, 1])]
    (found,) = report.against_slow(records, {}, "average")
    (row,) = report.slow_table([found]).splitlines()[2:]
    assert row.startswith("| lime | 25.0 | 100.0 | +75.0 ")
    assert row.endswith("| 1, 2 texts |")
    assert report.slow_table(report.against_slow([], {}, "average")) == ""


def test_a_kept_run_stays_while_it_is_done_again(quick, arguments, tmp_path):
    runs = sys.modules["contest_runs"]
    (field,) = (field for field in quick.FIELDS if field.key == "restaurant-0.19")
    folder = tmp_path / "runs" / field.key
    runs.keep(field, folder, 0)
    assert not runs.kept_file(field, 0).exists()
    for name, identity in (("infocal", "first"), ("car", "second")):
        path = folder / "runs" / f"{name}-0.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"contender": name, "seed": 0, "identity": identity}), encoding="utf-8")
    runs.keep(field, folder, 0)
    (folder / "runs" / "infocal-0.json").unlink()
    (folder / "runs" / "car-0.json").write_text('{"contender": "car", "seed": 0, "identity": "third"}')
    runs.keep(field, folder, 0)
    assert {record["contender"]: record["identity"] for record in runs.kept(field)} == {
        "car": "third",
        "infocal": "first",
    }


@pytest.fixture
def outcome(contest):
    """Three seeds of InfoCal, an ablation and two rivals on one data set, of known figures."""
    summary, fields = sys.modules["contest_summary"], contest.FIELDS
    figures = {
        "infocal": (0.60, 0.80, 2.0),
        "hardkuma": (0.45, 0.82, 3.0),
        "attention": (0.52, 0.70, 1.0),
        "infocal-full": (0.58, 0.79, 2.5),
    }
    runs = {
        name: {seed: scored(f1 + seed / 100, accuracy, run) for seed in range(3)}
        for name, (f1, accuracy, run) in figures.items()
    }
    for name in ("hardkuma", "attention"):
        runs[name] = {seed: {**run, "learns_full_text": name != "hardkuma"} for seed, run in runs[name].items()}
    runs["hardkuma"][0]["scores"]["average"]["rationale"]["f1"] += 0.001
    results = Results(tuple(figures), runs)
    return summary.Outcome(fields[0], {"average": results, "spans": results}, {"lime": -0.02})


def scored(f1, accuracy, run):
    part = {
        "rationale": {"f1": f1},
        "accuracy": accuracy,
        "full_text": {"accuracy": 0.81},
        "fluency": {"mean_run": run},
    }
    counts = {"rows": [0, 1], "hits": [1, 1], "selected": [2, 2], "gold": [2, 1], "outcome": [1, 0]}
    return {
        "lines": [1, 2],
        "documents": {"average": counts},
        "scores": {"average": part, "spans": part},
        "task": {"kind": "classify"},
    }


def test_the_summary_says_who_leads_and_what_is_not_so(outcome):
    summary = sys.modules["contest_summary"]
    table = summary.overview([outcome], ("infocal", "hardkuma", "attention", "car"))
    assert "| infocal | **61.0 ± 1.0** | 3 |" in table
    assert "car" not in table
    assert summary.overview([outcome], ("infocal",), "spans") == summary.overview([outcome], ("infocal",))
    said = [row.split(" | ")[1:] for row in summary.verdicts([outcome]).splitlines()[2:]]
    by_name = {asked: (found, so.strip(" |")) for asked, found, so in said}
    assert by_name["F1 10 points over hardkuma, p < .01"][1] == "yes"
    assert by_name["F1 over attention, a part of which reads the full text too"] == ("+8.0, p -", "yes")
    assert by_name["F1 first, or within a standard error of the first"][1] == "yes"
    assert by_name["accuracy within 1.5 points of its guider's"] == ("-1.0", "yes")
    assert by_name["longest mean run among learned methods of its F1 or more"][1] == "yes"
    assert by_name["F1 over lime, on the texts that it has read"] == ("-2.0", "**no**")


def test_one_seed_has_no_standard_error(outcome):
    summary = sys.modules["contest_summary"]
    for runs in outcome.shown.runs.values():
        for seed in (1, 2):
            del runs[seed]
    page = summary.verdicts([outcome])
    assert "standard error unknown | yes |" in page
    outcome.shown.runs["attention"][0]["scores"]["average"]["rationale"]["f1"] = 0.9
    assert "standard error unknown | too few seeds |" in summary.verdicts([outcome])


def test_a_rival_ahead_with_longer_runs_is_reported(outcome):
    summary = sys.modules["contest_summary"]
    for run in outcome.shown.runs["hardkuma"].values():
        run["scores"]["average"]["rationale"]["f1"] += 0.3
    page = summary.verdicts([outcome])
    assert page.count("**no**") == 4
    assert "-14.9" in page or "-15.0" in page


def test_ablations_stand_beside_the_default(outcome):
    rows = sys.modules["contest_summary"].ablations([outcome]).splitlines()[2:]
    assert rows[0].startswith(
        "| infocal | the default: guider and token calibration, no L_g, no L_lm | 61.0 ± 1.0"
    )
    assert rows[0].endswith("| 61.0 | 2.00 | 80.0 | 3 |")
    assert rows[1].startswith("| infocal-full | all terms of the paper | 59.0 ± 1.0")
    assert len(rows) == 2


def test_what_a_part_is_worth_is_tested_on_common_seeds(outcome, monkeypatch):
    summary = sys.modules["contest_summary"]
    monkeypatch.setattr(summary, "PAIRS", {"a part": ("infocal", "infocal-full"), "none": ("infocal", "printed")})
    del outcome.shown.runs["infocal-full"][2]
    (row,) = summary.parts_tested([outcome]).splitlines()[2:]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[:2] == ["a part", "restaurant 19 %"]
    assert cells[2].startswith("+2.0 (") and cells[-1] == "2"


def test_differences_to_the_default_are_of_common_seeds(outcome):
    summary = sys.modules["contest_summary"]
    del outcome.shown.runs["infocal-full"][2]
    row = summary.ablations([outcome]).splitlines()[3]
    assert " (-2.0) |" in row


def test_some_ablations_are_run_at_half_of_the_gold_share(contest, outcome):
    summary = sys.modules["contest_summary"]
    of_half = next(field for field in contest.FIELDS if field.half)
    runs = {"infocal": outcome.shown.runs["infocal"], "infocal-no-ib": outcome.shown.runs["infocal-full"]}
    results = Results(tuple(runs), runs)
    half = summary.Outcome(of_half, {"average": results, "spans": results})
    rows = summary.ablations([outcome, half], half=True).splitlines()[2:]
    assert [row.split(" | ")[0] for row in rows] == ["| infocal", "| infocal-no-ib"]
    assert "59.0 ± 1.0" in rows[1]
    assert of_half.planned == 5 * 6 + 3 + 3  # CAR on restaurant reviews and the ablation have three seeds
