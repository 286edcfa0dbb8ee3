"""Cases to an encoded corpus: the same in one process or two, after a kill, and read back as they were."""

import gzip
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from infocal.cli import main
from infocal.cli.prepare import by_name
from infocal.cli.prepare import cail as verb
from infocal.config import load_settings
from infocal.data.encoded import EncodedFolder, is_encoded
from infocal.errors import BusyFolderError, DataError, InfocalError, MissingExtraError, SettingsError
from infocal.files import one_at_a_time
from infocal.legal import folder, prepare
from infocal.legal.prepare import Request, prepare_cases
from infocal.legal.processes import Processes
from infocal.text.segmentation import chinese
from infocal.training.preparation import open_encoded

pytest.importorskip("pyarrow")
pytest.importorskip("rjieba")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(prepare, "BLOCK_LINES", 40)


@pytest.fixture(scope="module")
def files(tmp_path_factory, cases, write, one_case):
    folder = tmp_path_factory.mktemp("cases")
    odd = [
        one_case("抢劫", 263, "被告人李某持刀抢劫路人"),
        one_case("盗窃", 264, "原审被告人李某盗窃"),
        one_case("盗窃", 264, "被告人李某盗窃", accusation=["盗窃", "诈骗"]),
        one_case("盗窃", 264, "被告人李某盗窃", relevant_articles=[264, 25]),
    ]
    write(folder / "train.json", [*cases(150), *odd])
    write(folder / "valid.json", cases(30, seed=1), encoding="gb18030")
    write(folder / "test.json", [*cases(30, seed=2), odd[0]])
    return folder


def request(files, out, **changes):
    parts = {part: [files / f"{part}.json"] for part in ("train", "valid", "test")}
    return Request(**{"parts": parts, "out": out, "least_cases": 10, **changes})


def contents(folder):
    return {item.name: item.read_bytes() for item in sorted(folder.iterdir()) if item.name != "manifest.json"} | {
        "manifest": json.loads((folder / "manifest.json").read_text())
    }


def counted(some):
    return Counter(one["meta"]["accusation"][0] for one in some)


def test_every_filter_is_counted_and_classes_are_those_with_enough_cases(files, tmp_path):
    summary = prepare_cases(request(files, tmp_path / "out"))["summary"]
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


def test_what_is_read_back_is_what_was_written(files, tmp_path, cases):
    prepare_cases(request(files, tmp_path / "out"))
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


def test_two_processes_give_what_one_gives(files, tmp_path):
    prepare_cases(request(files, tmp_path / "one"))
    prepare_cases(request(files, tmp_path / "two", processes=2))
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_a_missing_package_is_told_before_any_work(files, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"infocal\[legal\]") as caught:
        prepare_cases(request(files, tmp_path / "out", processes=2))
    assert not (tmp_path / "out").exists()
    again = pickle.loads(pickle.dumps(caught.value))  # as it comes from another process
    assert str(again) == str(caught.value)


def test_facts_are_cut_and_counted(files, tmp_path):
    summary = prepare_cases(request(files, tmp_path / "out", max_tokens=12))["summary"]
    assert summary["train"]["cut"] == 150
    assert summary["train"]["tokens"] == 150 * 12
    assert EncodedFolder.open(tmp_path / "out").part("train", "charge").cut == 150


def test_a_second_call_does_nothing_and_another_plan_is_refused(files, tmp_path):
    out = tmp_path / "out"
    first = prepare_cases(request(files, out))
    before = {item.name: item.stat().st_mtime_ns for item in out.iterdir()}
    assert prepare_cases(request(files, out)) == first
    assert {item.name: item.stat().st_mtime_ns for item in out.iterdir()} == before
    with pytest.raises(SettingsError, match="--overwrite"):
        prepare_cases(request(files, out, least_cases=5))
    assert prepare_cases(request(files, out, least_cases=1, overwrite=True))["labels"]["charge"][-1] == "抢劫"


def test_what_a_kill_at_the_very_end_leaves_is_removed(files, tmp_path):
    out = tmp_path / "out"
    first = prepare_cases(request(files, out))
    for left in ("train-000-000000.arrow", "plan.json"):
        (out / "work").mkdir()
        (out / "work" / left).write_text(json.dumps(json.loads((out / "manifest.json").read_text())["plan"]))
        assert prepare_cases(request(files, out)) == first
        assert not (out / "work").exists()


def test_another_preparation_that_is_begun_stays(files, tmp_path):
    out = tmp_path / "out"
    prepare_cases(request(files, out))
    (out / "work").mkdir()
    (out / "work" / "plan.json").write_text('{"format": 1, "least_cases": 7}')
    prepare_cases(request(files, out))
    assert (out / "work" / "plan.json").exists()


def test_no_case_counts_twice(files, tmp_path):
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
        prepare_cases(request(files, tmp_path / "out", parts=both))
    assert not (tmp_path / "out").exists()


def test_what_is_begun_serves_another_floor_of_classes(files, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(DataError, match="smaller --least-cases"):
        prepare_cases(request(files, out, least_cases=1000))
    shards = sorted((out / "work").glob("*.arrow"))
    before = [shard.stat().st_mtime_ns for shard in shards]
    assert before
    with pytest.raises(DataError, match="smaller --least-cases"):
        prepare_cases(request(files, out, least_cases=999))
    assert [shard.stat().st_mtime_ns for shard in shards] == before
    manifest = prepare_cases(request(files, out))
    assert manifest == prepare_cases(request(files, tmp_path / "other"))


def test_what_other_rules_made_is_not_the_same(files, tmp_path, monkeypatch):
    prepare_cases(request(files, tmp_path / "out"))
    monkeypatch.setattr(folder, "RULES", folder.RULES + 1)
    with pytest.raises(SettingsError, match="another preparation"):
        prepare_cases(request(files, tmp_path / "out"))


def test_a_plan_of_which_nothing_is_done_gives_way(files, tmp_path, write, cases):
    bad = tmp_path / "train.json"
    bad.write_bytes(b"{broken\n")
    asked = request(files, tmp_path / "out")
    with pytest.raises(DataError, match="line 1"):
        prepare_cases(replace(asked, parts={**asked.parts, "train": [bad]}))
    assert [item.name for item in (tmp_path / "out" / "work").iterdir()] == ["plan.json"]
    assert prepare_cases(asked) == prepare_cases(request(files, tmp_path / "other"))


def test_a_folder_of_the_users_own_is_left_alone(files, tmp_path):
    (tmp_path / "mine.txt").touch()
    with pytest.raises(SettingsError, match="did not write"):
        prepare_cases(request(files, tmp_path, overwrite=True))
    assert (tmp_path / "mine.txt").exists()


@pytest.mark.parametrize("name", ["mine.txt", "work/mine.txt", "test.json"])
def test_overwrite_never_throws_away_what_prepare_did_not_write(files, tmp_path, name):
    out = tmp_path / "out"
    prepare_cases(request(files, out))
    (out / "work").mkdir()
    (out / name).write_text("mine")
    with pytest.raises(SettingsError, match=f"did not write.*{name}.*name a new or empty folder"):
        prepare_cases(request(files, out, least_cases=5, overwrite=True))
    assert (out / name).read_text() == "mine"
    assert is_encoded(out)


def test_a_manifest_of_something_else_is_not_ours(files, tmp_path):
    (tmp_path / "manifest.json").write_text('{"format": 1, "kind": "music"}')
    with pytest.raises(SettingsError, match="did not write"):
        prepare_cases(request(files, tmp_path, overwrite=True))
    assert (tmp_path / "manifest.json").exists()


def test_the_old_corpus_stays_until_the_new_one_is_complete(files, tmp_path, write, cases):
    out = tmp_path / "out"
    prepare_cases(request(files, out))
    before = contents(out)
    bad = write(tmp_path / "train.json", cases(100))
    bad.write_bytes(bad.read_bytes() + b"{broken\n")
    other = {"parts": {"train": [bad], "valid": [files / "valid.json"]}, "overwrite": True}
    with pytest.raises(DataError, match="line 101"):
        prepare_cases(request(files, out, **other))
    assert {name: content for name, content in before.items() if name != "manifest"}.items() <= {
        item.name: item.read_bytes() for item in out.iterdir() if item.is_file()
    }.items()
    assert len(EncodedFolder.open(out).part("train", "charge")) == 150
    write(bad, cases(60))
    prepare_cases(request(files, out, **other))
    prepare_cases(request(files, tmp_path / "whole", **other))
    assert contents(out) == contents(tmp_path / "whole")  # the vocabulary too is the new one
    assert sorted(item.name for item in out.iterdir()) == [
        "manifest.json",
        "train-00000.arrow",
        "train-00001.arrow",
        "valid-00000.arrow",
        "vocabulary.json",
    ]


def test_what_a_kill_at_the_very_start_leaves_is_gone_on_with(files, tmp_path):
    (tmp_path / "out" / "work").mkdir(parents=True)
    assert prepare_cases(request(files, tmp_path / "out"))["summary"]["train"]["cases"] == 150


def test_a_damaged_plan_is_said_and_can_be_replaced(files, tmp_path):
    work = tmp_path / "out" / "work"
    work.mkdir(parents=True)
    (work / "plan.json").write_text('{"form')
    with pytest.raises(
        DataError, match=r"plan\.json: what an earlier call was preparing cannot be read.*--overwrite"
    ):
        prepare_cases(request(files, tmp_path / "out"))
    prepare_cases(request(files, tmp_path / "out", overwrite=True))
    assert is_encoded(tmp_path / "out")


def test_an_error_names_the_line_and_nothing_done_is_lost(files, tmp_path, monkeypatch, write, cases):
    path = write(tmp_path / "train.json", cases(100))
    path.write_bytes(path.read_bytes() + b"{broken\n")
    parts = {"train": [path], "valid": [files / "valid.json"]}
    out = tmp_path / "out"
    with pytest.raises(DataError, match=r"train\.json, line 101: the line is not JSON.*or --skip-bad"):
        prepare_cases(request(files, out, parts=parts))
    assert len(list((out / "work").glob("train-*.arrow"))) == 2
    assert not is_encoded(out)
    before = {item.name: item.stat().st_mtime_ns for item in (out / "work").glob("train-*.arrow")}
    with monkeypatch.context() as patch:
        patch.setattr(prepare, "publish", lambda folder: None)
        prepare_cases(request(files, out, parts=parts, skip_bad=True))
    assert before.items() <= {item.name: item.stat().st_mtime_ns for item in (out / "work").iterdir()}.items()
    with pytest.raises(SettingsError, match="another preparation"):  # lines were left out
        prepare_cases(request(files, out, parts=parts))
    done = prepare_cases(request(files, out, parts=parts, skip_bad=True))
    assert done["summary"]["train"]["not readable"] == 1
    assert "line 101" in done["not readable"][0]


def test_the_same_files_by_another_path_are_the_same(files, tmp_path, monkeypatch):
    out = tmp_path / "out"
    first = prepare_cases(request(files, out))
    assert str(files) not in (out / "manifest.json").read_text()
    monkeypatch.chdir(files)
    assert prepare_cases(request(Path(), out, skip_bad=True)) == first
    (tmp_path / "linked").symlink_to(files)
    assert prepare_cases(request(tmp_path / "linked", out)) == first


def test_blocks_that_are_done_are_not_done_again(files, tmp_path, monkeypatch):
    out = tmp_path / "out"

    def dies(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(prepare, "_finish", dies)
        with pytest.raises(KeyboardInterrupt):
            prepare_cases(request(files, out))
    with monkeypatch.context() as patch:
        patch.setattr(prepare, "encode_block", dies)
        prepare_cases(request(files, out))
    prepare_cases(request(files, tmp_path / "whole"))
    assert contents(out) == contents(tmp_path / "whole")


def begun(files, out, monkeypatch, **changes):
    """First shards are written, final ones are not."""

    def dies(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(prepare, "_finish", dies)
        with pytest.raises(KeyboardInterrupt):
            prepare_cases(request(files, out, **changes))


def test_first_shards_that_were_damaged_are_written_again(files, tmp_path, monkeypatch):
    out, encoded = tmp_path / "out", []
    prepare_cases(request(files, tmp_path / "whole"))
    begun(files, out, monkeypatch)
    shards = sorted((out / "work").glob("*.arrow"))
    damage = [
        flip,
        lambda shard: flip(shard, at=8),
        lambda shard: flip(shard, at=-8),
        lambda shard: shard.write_bytes(shard.read_bytes()[:-9]),
        Path.unlink,
        lambda shard: shard.with_suffix(".crc32").unlink(),
    ]
    assert len(shards) == len(damage)
    for shard, harm in zip(shards[:-1], damage, strict=False):
        harm(shard)
    usual = prepare.encode_block
    monkeypatch.setattr(prepare, "encode_block", lambda block: encoded.append(block.target) or usual(block))
    prepare_cases(request(files, out))
    assert sorted(encoded) == shards[:-1]
    assert contents(out) == contents(tmp_path / "whole")


def test_a_shard_that_is_damaged_on_the_way_is_seen_and_the_next_call_mends_it(files, tmp_path, monkeypatch):
    out, usual = tmp_path / "out", prepare._final_shards

    def harm(final, shards, *others):
        flip(shards["train"][1])
        return usual(final, shards, *others)

    with monkeypatch.context() as patch:
        patch.setattr(prepare, "_final_shards", harm)
        with pytest.raises(DataError, match=r"train-000-000001\.arrow: .*its checksum.*; run it again$"):
            prepare_cases(request(files, out))
    assert not is_encoded(out)
    prepare_cases(request(files, out))
    prepare_cases(request(files, tmp_path / "whole"))
    assert contents(out) == contents(tmp_path / "whole")


@pytest.mark.skipif(os.name != "posix", reason="folders are locked on POSIX systems only")
def test_one_process_prepares_in_a_folder_at_a_time(files, tmp_path):
    out = tmp_path / "out"
    with one_at_a_time(out):
        with pytest.raises(BusyFolderError, match="at work in"):
            prepare_cases(request(files, out))
        assert list(out.iterdir()) == []
        result = run("prepare", "cail", "--data", files, "--out", out)
        assert (result.exit_code, result.stdout) == (7, "")
        assert "another infocal process is at work" in " ".join(result.stderr.split())
    prepare_cases(request(files, out))
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


def test_long_cases_of_rare_classes_do_not_count_as_cut(files, tmp_path, cases, write, one_case):
    long = [one_case("抢劫", 263, "被告人李某抢劫" * 30), one_case("盗窃", 264, "被告人李某盗窃" * 30)]
    path = write(tmp_path / "train.json", [*cases(100), *long])
    asked = request(files, tmp_path / "out", parts={"train": [path]}, max_tokens=60)
    assert prepare_cases(asked)["summary"]["train"]["cut"] == 1


def test_too_few_cases_are_an_error(files, tmp_path):
    with pytest.raises(DataError, match="fewer than two classes of article and charge have 1000 cases or more"):
        prepare_cases(request(files, tmp_path / "out", least_cases=1000))


def test_every_class_that_stays_has_enough_cases_among_those_that_stay(files, tmp_path, cases, write, one_case):
    # 292 is rare, so 斗殴 becomes rare, and with it 237, most of whose cases had rare charges from the start
    odd = [one_case(f"罪{number}", 237, "被告人李某侮辱他人") for number in range(12)]
    odd += [one_case("斗殴", 237, "被告人李某斗殴") for _ in range(5)]
    odd += [one_case("斗殴", 292, "被告人李某聚众斗殴") for _ in range(9)]
    path = write(tmp_path / "train.json", [*cases(100), *odd])
    made = prepare_cases(request(files, tmp_path / "out", parts={"train": [path]}))
    assert made["labels"]["article"] == ["133", "234", "264"]
    assert made["labels"]["charge"] == sorted(counted(cases(100)), key=lambda name: -counted(cases(100))[name])
    assert (made["summary"]["train"]["cases"], made["summary"]["train"]["rare class"]) == (100, len(odd))


def test_blocks_without_a_case_and_blank_files_do_no_harm(files, tmp_path, cases, write, one_case):
    several = [one_case("盗窃", 264, "被告人李某盗窃", accusation=["盗窃", "诈骗"])] * 40
    path = write(tmp_path / "train.json", [*cases(40), *several])
    (tmp_path / "blank.json").write_text("\n\n")
    parts = {"train": [path, tmp_path / "blank.json"], "valid": [files / "valid.json"]}
    summary = prepare_cases(request(files, tmp_path / "out", parts=parts, least_cases=1))["summary"]
    assert (summary["train"]["cases"], summary["train"]["several charges"]) == (40, 40)
    assert len(EncodedFolder.open(tmp_path / "out").part("train", "charge")) == 40


def test_a_part_without_a_case_is_refused_with_what_removed_its_cases(files, tmp_path, write, one_case):
    several = [one_case("盗窃", 264, "李某盗窃", accusation=["盗窃", "诈骗"]), one_case("抢劫", 263, "原审李某")]
    write(tmp_path / "odd.json", several)
    write(tmp_path / "rare.json", [one_case("抢劫", 263, "被告人李某持刀抢劫路人")])
    (tmp_path / "blank.json").write_text("\n")
    (tmp_path / "empty.json").touch()
    usual = request(files, tmp_path).parts
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
            prepare_cases(request(files, tmp_path / str(number), parts=parts))


SCRIPT = """
import sys
from infocal.legal import prepare
prepare.BLOCK_LINES = 40
from infocal.cli import main
if __name__ == "__main__":
    words = ["--data", sys.argv[1], "--out", sys.argv[2], "--processes", sys.argv[3], "--least-cases", "10"]
    main(["prepare", "cail", *words])
"""


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_kill_minus_nine_then_the_same_command_gives_the_same_folder(processes, tmp_path, cases, write):
    data = tmp_path / "data"
    data.mkdir()
    write(data / "train.json", cases(4000))
    write(data / "dev.json", cases(40, seed=1))

    def start(out):
        words = [str(data), str(out), str(processes)]
        return subprocess.Popen([sys.executable, "-c", SCRIPT, *words], stdout=subprocess.DEVNULL)

    process = start(tmp_path / "killed")
    work = tmp_path / "killed" / "work"
    deadline = time.monotonic() + 60
    while process.poll() is None and len(list(work.glob("train-*.arrow"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.002)
    assert process.poll() is None
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not is_encoded(tmp_path / "killed")
    for out in ("killed", "whole"):
        assert start(tmp_path / out).wait(timeout=120) == 0
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


def test_a_process_that_is_killed_is_said_with_what_to_do(files, tmp_path):
    with (
        Processes(2) as processes,
        pytest.raises(
            InfocalError, match=r"one of 2 processes was ended.*same command goes on.*fewer --processes"
        ),
    ):
        list(processes.map(os._exit, [(9,)]))


PARENT = """
import os, signal, sys
from infocal.legal.processes import Processes
if __name__ == "__main__":
    processes = Processes(2)
    print(*set(processes.map(os.getpid, [()] * 20)), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_processes_end_with_the_one_that_started_them(tmp_path):
    (tmp_path / "parent.py").write_text(PARENT)
    command = [sys.executable, str(tmp_path / "parent.py")]
    done = subprocess.run(command, capture_output=True, timeout=60)  # its output ends when the last of them does
    assert done.returncode == -signal.SIGKILL
    assert done.stdout.split()


def test_an_interrupt_leaves_other_processes_to_the_first():
    with Processes(2) as processes:
        assert list(processes.map(signal.getsignal, [(signal.SIGINT,)] * 3)) == [signal.SIG_IGN] * 3


def edit(path, **changes):
    record = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({name: value for name, value in record.items() if value is not None}))


def flip(path, at=None):
    content = bytearray(path.read_bytes())
    content[len(content) // 2 if at is None else at] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "file", "why"),
    [
        (lambda out: edit(out / "manifest.json", labels=None), "manifest", "labels: Field required"),
        (lambda out: edit(out / "manifest.json", parts=[1]), "manifest", "parts: "),
        (lambda out: edit(out / "manifest.json", max_tokens=None), "manifest", "max_tokens: "),
        (lambda out: edit(out / "vocabulary.json", words=["一"]), "vocabulary", "its checksum"),
        (lambda out: (out / "vocabulary.json").unlink(), "vocabulary", "No such file"),
        (lambda out: flip(out / "train-00001.arrow"), "train-00001", "its checksum"),
        (
            lambda out: shutil.copy(out / "test-00000.arrow", out / "train-00000.arrow"),
            "train-00000",
            "its checksum",
        ),
        (lambda out: (out / "train-00002.arrow").unlink(), "train-00002", "No such file"),
    ],
)
def test_damage_is_seen_and_the_file_is_named(files, tmp_path, damage, file, why):
    out = tmp_path / "out"
    prepare_cases(request(files, out))
    whole = contents(out)
    damage(out)
    message = rf"{file}\.\w+: the file is missing or damaged \({why}.*run it again with --overwrite"
    with pytest.raises(DataError, match=message):
        EncodedFolder.open(out).part("train", "charge")
    with pytest.raises(DataError, match=message):
        prepare_cases(request(files, out))
    prepare_cases(request(files, out, overwrite=True))
    assert contents(out) == whole


def test_damage_is_seen_without_checksums_too(files, tmp_path):
    out = tmp_path / "out"
    made = prepare_cases(request(files, out))
    for shard in made["parts"]["train"]["shards"]:
        del shard["crc32"]
    edit(out / "manifest.json", parts=made["parts"], labels={**made["labels"], "charge": ["盗窃"]})
    with pytest.raises(DataError, match="a class of charge that is none of the manifest's 1"):
        EncodedFolder.open(out).part("train", "charge")
    edit(out / "manifest.json", labels=made["labels"])
    assert len(EncodedFolder.open(out).part("train", "charge")) == 150
    edit(out / "manifest.json", labels={**made["labels"], "money": ["1"]})
    with pytest.raises(DataError, match="no column 'money'"):
        EncodedFolder.open(out).part("train", "charge")
    edit(out / "manifest.json", labels=made["labels"])
    shutil.copy(out / "train-00003.arrow", out / "train-00000.arrow")
    with pytest.raises(DataError, match=r"train-00000\.arrow: .* rows with .* tokens instead of 40 with"):
        EncodedFolder.open(out).part("train", "charge")


def test_a_corpus_without_its_summary_is_damaged(files, tmp_path):
    prepare_cases(request(files, tmp_path / "out"))
    edit(tmp_path / "out" / "manifest.json", summary=None)
    with pytest.raises(DataError, match="no summary"):
        prepare_cases(request(files, tmp_path / "out"))


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


def test_wrong_ways_to_use_an_encoded_corpus(files, tmp_path):
    out = tmp_path / "cases"
    prepare_cases(request(files, out))
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
