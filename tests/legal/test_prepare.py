"""Cases to an encoded corpus: what is left out, what is read back, the commands."""

import gzip
import json
import os
import pickle
import shutil
import sys
from collections import Counter
from itertools import chain

import numpy as np
import pytest
from click.testing import CliRunner

from infocal.cli import main
from infocal.cli.prepare import by_name
from infocal.cli.prepare import cail as verb
from infocal.config import load_settings
from infocal.data.encoded import EncodedFolder
from infocal.errors import BusyFolderError, DataError, MissingExtraError
from infocal.files import one_at_a_time
from infocal.legal.prepare import Request, prepare_cases
from infocal.text.segmentation import chinese
from infocal.training.preparation import open_encoded

pytest.importorskip("pyarrow")
pytest.importorskip("rjieba")
pytestmark = pytest.mark.usefixtures("small_blocks")


def counted(some):
    return Counter(one["meta"]["accusation"][0] for one in some)


def test_every_filter_is_counted_and_classes_are_those_with_enough_cases(tmp_path, asked):
    summary = prepare_cases(asked(tmp_path / "out"))["summary"]
    assert summary["train"] == {
        "read": 154,
        "not readable": 0,
        "no charge": 0,
        "several charges": 1,
        "no article": 0,
        "several articles": 1,
        "no term": 0,
        "second instance": 1,
        "rare class": 1,
        "cases": 150,
        "tokens": summary["train"]["tokens"],
        "cut": 0,
    }
    assert (summary["valid"]["cases"], summary["test"]["cases"], summary["test"]["rare class"]) == (30, 30, 1)
    folder = EncodedFolder.open(tmp_path / "out")
    assert set(folder.classes("charge")) == {"盗窃", "危险驾驶", "故意伤害"}
    assert folder.classes("article") == ("133", "234", "264")
    assert len(folder.classes("term")) == 11
    assert not (tmp_path / "out" / "work").exists()


def test_what_is_read_back_is_what_was_written(tmp_path, cases, asked):
    prepare_cases(asked(tmp_path / "out"))
    folder = EncodedFolder.open(tmp_path / "out")
    corpus = folder.part("train", "charge")
    for row in (0, 39, 40, 149):  # at the edges of blocks too
        fact = cases(150)[row]["fact"]
        tokens = [fact[start:end] for start, end in chinese(fact)]
        ids = corpus.subset(np.array([row])).ids
        assert ids.tolist() == folder.vocabulary.ids(tokens)
        assert folder.classes("charge")[corpus.targets[row]] == cases(150)[row]["meta"]["accusation"][0]
        assert corpus.lines[row] == row + 1
    assert len(corpus.ids.parts) == 4
    assert corpus.fingerprint() == folder.part("train", "charge").fingerprint()
    assert corpus.fingerprint() != folder.part("train", "term").fingerprint()
    with pytest.raises(DataError, match="there is no label 'money'; there are 'article', 'charge', 'term'"):
        folder.part("train", "money")
    with pytest.raises(DataError, match="there is no part 'dev'"):
        folder.part("dev", "charge")


def test_two_processes_give_what_one_gives(tmp_path, asked, contents):
    prepare_cases(asked(tmp_path / "one"))
    prepare_cases(asked(tmp_path / "two", processes=2))
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_a_missing_package_is_told_before_any_work(tmp_path, monkeypatch, asked):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"infocal\[legal\]") as caught:
        prepare_cases(asked(tmp_path / "out", processes=2))
    assert not (tmp_path / "out").exists()
    again = pickle.loads(pickle.dumps(caught.value))  # as it comes from another process
    assert str(again) == str(caught.value)


def test_facts_are_cut_and_counted(tmp_path, asked):
    summary = prepare_cases(asked(tmp_path / "out", max_tokens=12))["summary"]
    assert summary["train"]["cut"] == 150
    assert summary["train"]["tokens"] == 150 * 12
    assert EncodedFolder.open(tmp_path / "out").part("train", "charge").cut == 150


def test_no_case_counts_twice(files, tmp_path, asked):
    folder = tmp_path / "twice"
    shutil.copytree(files, folder)
    (folder / "train.json.gz").write_bytes(gzip.compress((folder / "train.json").read_bytes()))
    result = CliRunner().invoke(main, ["prepare", "cail", "--data", str(folder), "--out", str(tmp_path / "out")])
    assert result.exit_code == 3
    said = " ".join(result.stderr.split())
    assert "train.json.gz" in said
    assert "stands beside" in said
    assert "each file once" in said
    both = {"train": [files / "train.json"], "test": [files / "train.json"]}
    with pytest.raises(DataError, match="is named twice; its cases would count twice"):
        prepare_cases(asked(tmp_path / "out", parts=both))
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(os.name != "posix", reason="folders are locked on POSIX systems only")
def test_one_process_prepares_in_a_folder_at_a_time(files, tmp_path, asked):
    out = tmp_path / "out"
    with one_at_a_time(out):
        with pytest.raises(BusyFolderError, match="at work in"):
            prepare_cases(asked(out))
        assert list(out.iterdir()) == []
        result = run("prepare", "cail", "--data", files, "--out", out)
        assert (result.exit_code, result.stdout) == (7, "")
        assert "another infocal process is at work" in " ".join(result.stderr.split())
    prepare_cases(asked(out))
    (tmp_path / "file").touch()
    assert run("prepare", "cail", "--data", files, "--out", tmp_path / "file").exit_code == 7


def test_words_are_those_of_train_and_classes_are_counted_in_train_and_valid(tmp_path, write, one_case, cases):
    """Nothing of test cases goes into what is learned from, nor into what is left out of it."""
    own = {part: f"{word}某在" for part, word in zip(("train", "valid", "test"), "赵钱孙", strict=True)}

    def some(part, count, charge, article):
        return [one_case(charge, article, f"{own[part]}某地作案") for _ in range(count)]

    both, alone = ("抢劫", 263), ("诈骗", 266)
    parts = {
        "train": [*cases(90), *some("train", 6, *both), *some("train", 6, *alone)],
        "valid": some("valid", 4, *both),
        "test": [*some("test", 4, *both), *some("test", 9, *alone)],
    }
    paths = {part: [write(tmp_path / f"{part}.json", rows)] for part, rows in parts.items()}
    made = prepare_cases(Request(parts=paths, out=tmp_path / "out", least_cases=10))
    assert "抢劫" in made["labels"]["charge"] and "263" in made["labels"]["article"]  # 6 and 4
    assert "诈骗" not in made["labels"]["charge"] and "266" not in made["labels"]["article"]  # 6 without test's 9
    assert made["summary"]["test"]["rare class"] == 9
    words = EncodedFolder.open(tmp_path / "out").vocabulary.words
    assert any("赵" in word for word in words)
    assert not any("钱" in word or "孙" in word for word in words)
    prepared = open_encoded(tmp_path / "out", "charge", load_settings())
    assert (len(prepared.train), prepared.dev.lines.tolist()) == (96, [1, 2, 3, 4])
    assert {prepared.task.classes[target] for target in prepared.dev.targets} == {"抢劫"}


def test_long_cases_of_rare_classes_do_not_count_as_cut(tmp_path, cases, write, one_case, asked):
    long = [one_case("抢劫", 263, "被告人李某抢劫" * 30), one_case("盗窃", 264, "被告人李某盗窃" * 30)]
    path = write(tmp_path / "train.json", [*cases(100), *long])
    wanted = asked(tmp_path / "out", parts={"train": [path]}, max_tokens=60)
    assert prepare_cases(wanted)["summary"]["train"]["cut"] == 1


def test_too_few_cases_are_an_error(tmp_path, asked):
    found = r"too few classes of article: 4 in all, of which 133 with 64, 264 with 59, 234 with 57"
    allowed = r"at least two that have 1,000 cases each \(--least-cases\)"
    with pytest.raises(DataError, match=f"{found}; allowed: {allowed}$"):
        prepare_cases(asked(tmp_path / "out", least_cases=1000))


def test_every_class_that_stays_has_enough_cases_among_those_that_stay(tmp_path, cases, write, one_case, asked):
    # 292 is rare, so 斗殴 becomes rare, and with it 237, most of whose cases had rare charges from the start
    odd = [one_case(f"罪{number}", 237, "被告人李某侮辱他人") for number in range(12)]
    odd += [one_case("斗殴", 237, "被告人李某斗殴") for _ in range(5)]
    odd += [one_case("斗殴", 292, "被告人李某聚众斗殴") for _ in range(9)]
    path = write(tmp_path / "train.json", [*cases(100), *odd])
    made = prepare_cases(asked(tmp_path / "out", parts={"train": [path]}))
    assert made["labels"]["article"] == ["133", "234", "264"]
    assert made["labels"]["charge"] == sorted(counted(cases(100)), key=lambda name: -counted(cases(100))[name])
    assert (made["summary"]["train"]["cases"], made["summary"]["train"]["rare class"]) == (100, len(odd))


def test_blocks_without_a_case_and_blank_files_do_no_harm(files, tmp_path, cases, write, one_case, asked):
    several = [one_case("盗窃", 264, "被告人李某盗窃", accusation=["盗窃", "诈骗"])] * 40
    path = write(tmp_path / "train.json", [*cases(40), *several])
    (tmp_path / "blank.json").write_text("\n\n")
    parts = {"train": [path, tmp_path / "blank.json"], "valid": [files / "valid.json"]}
    summary = prepare_cases(asked(tmp_path / "out", parts=parts, least_cases=1))["summary"]
    assert (summary["train"]["cases"], summary["train"]["several charges"]) == (40, 40)
    assert len(EncodedFolder.open(tmp_path / "out").part("train", "charge")) == 40


def test_a_part_without_a_case_is_refused_with_what_removed_its_cases(files, tmp_path, write, one_case, asked):
    several = [one_case("盗窃", 264, "李某盗窃", accusation=["盗窃", "诈骗"]), one_case("抢劫", 263, "原审李某")]
    write(tmp_path / "odd.json", several)
    write(tmp_path / "rare.json", [one_case("抢劫", 263, "被告人李某持刀抢劫路人")])
    (tmp_path / "blank.json").write_text("\n")
    (tmp_path / "empty.json").touch()
    usual = asked(tmp_path).parts
    for number, (part, name, message) in enumerate(
        [
            (
                "train",
                "odd",
                r"odd\.json: no case is left for the part train: 2 read: 1 several charges; 1 second",
            ),
            ("train", "blank", r"blank\.json: no case is left for the part train: 0 read; allowed"),
            ("train", "empty", r"empty\.json: the file is empty; allowed: cases, one JSON object a line"),
            ("valid", "odd", r"odd\.json: no case is left for the part valid.*or no files for valid"),
            ("test", "rare", r"rare\.json: .* 1 read: 1 rare class; allowed: .*--least-cases"),
        ]
    ):
        parts = {**usual, part: [tmp_path / f"{name}.json"]}
        with pytest.raises(DataError, match=message):
            prepare_cases(asked(tmp_path / str(number), parts=parts))


TINY = {
    "encoder.hidden_width": 8,
    "text.width": 8,
    "model.feature_width": 8,
    "training.warm_up_rounds": 1,
    "training.joint_rounds": 1,
    "training.least_round_steps": 3,
    "training.settle_steps": 2,
}


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def test_from_files_to_scores_on_the_command_line(files, tmp_path):
    out, model = tmp_path / "cases", tmp_path / "model"
    result = run("prepare", "cail", "--data", files, "--out", out, "--least-cases", 10, "--max-tokens", 25)
    assert result.exit_code == 0, result.output
    assert "second instance" in result.stdout
    assert "charge: 3 classes" in result.stdout
    changes = [word for name, value in TINY.items() for word in ("--set", f"{name}={value}")]
    result = run("train", out, "--label", "charge", "--out", model, *changes)
    assert result.exit_code == 0, result.output
    assert "texts are longer than 25 tokens" in result.stderr
    result = run("evaluate", model, out, "--json", "-")
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert figures["n"] == 30
    assert run("evaluate", model, out, "--part", "valid", "--json", "-").exit_code == 0
    header = json.loads((model / "model.json").read_text())
    assert header["settings"]["text"]["max_tokens"] == 25
    assert header["record"]["data"]["columns"]["label"] == "charge"
    assert run("explain", model, "被告人李某在北京市窃得手机一部").exit_code == 0


def test_wrong_ways_to_use_an_encoded_corpus(files, tmp_path, asked):
    out = tmp_path / "cases"
    prepare_cases(asked(out))
    assert "--dev cannot be used" in run("train", out, "--dev", files, "--out", tmp_path / "m").stderr
    result = run("train", out, "--out", tmp_path / "m")
    assert result.exit_code == 3
    assert "there are 'article', 'charge', 'term'" in result.stderr
    (out / "train-00000.arrow").write_bytes(b"damaged")
    result = run("train", out, "--label", "charge", "--out", tmp_path / "m")
    assert result.exit_code == 3
    assert "missing or damaged" in result.stderr
    (out / "manifest.json").write_text(json.dumps({"format": 99}))
    assert "format 99" in run("train", out, "--label", "charge", "--out", tmp_path / "m").stderr


def test_the_command_lines_defaults_are_those_of_the_library(tmp_path):
    usual = Request(parts={}, out=tmp_path)
    named = {option.name: option.default for option in verb.params}
    assert (named["least_cases"], named["max_tokens"]) == (usual.least_cases, usual.max_tokens)


def test_nothing_to_prepare_is_a_usage_error(files, tmp_path):
    assert run("prepare", "cail", "--out", tmp_path / "out").exit_code == 2
    assert run("prepare", "cail", "--data", files, "--train", files, "--out", tmp_path / "out").exit_code == 2
    assert run("prepare", "cail", "--train", files / "none.json", "--out", tmp_path / "out").exit_code == 3
    assert (
        "no such file or folder" in run("prepare", "cail", "--data", files / "no", "--out", tmp_path / "o").stderr
    )
    (tmp_path / "cases.json").touch()
    result = run("prepare", "cail", "--data", tmp_path, "--out", tmp_path / "o")
    assert result.exit_code == 3
    assert "no file has train in its name; there are 'cases.json'" in result.stderr
    assert "this is a folder; allowed: a file" in run("train", files, "--out", tmp_path / "m").stderr


def test_files_go_to_parts_by_whole_words_of_their_names(tmp_path):
    names = {
        "train": ["data_train.json", "first_stage_train.json.gz", "latest_train.json", "train2.json"],
        "valid": ["CAIL2018_valid.json", "cail-dev.json", "validation.json"],
        "test": ["Final-Test.jsonl"],
    }
    for name in [*chain(*names.values()), "contest.json", "devices.json"]:
        (tmp_path / name).touch()
    told = []
    found = by_name(tmp_path, tell=told.append)
    assert {part: sorted(file.name for file in some) for part, some in found.items()} == {
        part: sorted(some) for part, some in names.items()
    }
    (note,) = told
    assert note.endswith("'contest.json', 'devices.json'")
    (tmp_path / "train_and_test.json").touch()
    with pytest.raises(DataError, match=r"train_and_test\.json: the file's name fits several parts: train, test"):
        by_name(tmp_path)
