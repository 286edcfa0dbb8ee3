"""A preparation that was stopped: the same command goes on, and what comes out is the same."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from infocal.data.encoded import is_encoded
from infocal.errors import DataError, InfocalError, SettingsError
from infocal.legal import prepare
from infocal.legal.prepare import prepare_cases
from infocal.legal.processes import Processes

pytest.importorskip("pyarrow")
pytest.importorskip("rjieba")
pytestmark = pytest.mark.usefixtures("small_blocks")


def test_what_a_kill_at_the_very_end_leaves_is_removed(tmp_path, asked):
    out = tmp_path / "out"
    first = prepare_cases(asked(out))
    for left in ("train-000-000000.arrow", "plan.json"):
        (out / "work").mkdir()
        (out / "work" / left).write_text(json.dumps(json.loads((out / "manifest.json").read_text())["plan"]))
        assert prepare_cases(asked(out)) == first
        assert not (out / "work").exists()


def test_what_is_begun_serves_another_floor_of_classes(tmp_path, asked):
    out = tmp_path / "out"
    with pytest.raises(DataError, match=r"too few classes .*\(--least-cases\)"):
        prepare_cases(asked(out, least_cases=1000))
    shards = sorted((out / "work").glob("*.arrow"))
    before = [shard.stat().st_mtime_ns for shard in shards]
    assert before
    with pytest.raises(DataError, match=r"too few classes .*\(--least-cases\)"):
        prepare_cases(asked(out, least_cases=999))
    assert [shard.stat().st_mtime_ns for shard in shards] == before
    manifest = prepare_cases(asked(out))
    assert manifest == prepare_cases(asked(tmp_path / "other"))


def test_a_plan_of_which_nothing_is_done_gives_way(tmp_path, write, cases, asked):
    bad = tmp_path / "train.json"
    bad.write_bytes(b"{broken\n")
    wanted = asked(tmp_path / "out")
    with pytest.raises(DataError, match="line 1"):
        prepare_cases(replace(wanted, parts={**wanted.parts, "train": [bad]}))
    assert [item.name for item in (tmp_path / "out" / "work").iterdir()] == ["plan.json"]
    assert prepare_cases(wanted) == prepare_cases(asked(tmp_path / "other"))


def test_what_a_kill_at_the_very_start_leaves_is_gone_on_with(tmp_path, asked):
    (tmp_path / "out" / "work").mkdir(parents=True)
    assert prepare_cases(asked(tmp_path / "out"))["summary"]["train"]["cases"] == 150


def test_a_damaged_plan_is_said_and_can_be_replaced(tmp_path, asked):
    work = tmp_path / "out" / "work"
    work.mkdir(parents=True)
    (work / "plan.json").write_text('{"form')
    with pytest.raises(
        DataError, match=r"plan\.json: what an earlier call was preparing cannot be read.*--overwrite"
    ):
        prepare_cases(asked(tmp_path / "out"))
    prepare_cases(asked(tmp_path / "out", overwrite=True))
    assert is_encoded(tmp_path / "out")


def test_an_error_names_the_line_and_nothing_done_is_lost(files, tmp_path, monkeypatch, write, cases, asked):
    path = write(tmp_path / "train.json", cases(100))
    path.write_bytes(path.read_bytes() + b"{broken\n")
    parts = {"train": [path], "valid": [files / "valid.json"]}
    out = tmp_path / "out"
    with pytest.raises(DataError, match=r"train\.json, line 101: the line is not JSON.*or --skip-bad"):
        prepare_cases(asked(out, parts=parts))
    assert len(list((out / "work").glob("train-*.arrow"))) == 2
    assert not is_encoded(out)
    before = {item.name: item.stat().st_mtime_ns for item in (out / "work").glob("train-*.arrow")}
    with monkeypatch.context() as patch:
        patch.setattr(prepare, "publish", lambda folder: None)
        prepare_cases(asked(out, parts=parts, skip_bad=True))
    assert before.items() <= {item.name: item.stat().st_mtime_ns for item in (out / "work").iterdir()}.items()
    with pytest.raises(SettingsError, match="another preparation"):  # lines were left out
        prepare_cases(asked(out, parts=parts))
    done = prepare_cases(asked(out, parts=parts, skip_bad=True))
    assert done["summary"]["train"]["not readable"] == 1
    assert "line 101" in done["not readable"][0]


def test_a_mended_file_is_read_again_and_nothing_else(files, tmp_path, monkeypatch, write, cases, asked, contents):
    path, parts = write(tmp_path / "test.json", cases(100, seed=2)), asked(tmp_path).parts
    whole, encoded = path.read_bytes(), []
    path.write_bytes(whole + b"{broken\n" * 50)
    wanted = asked(tmp_path / "out", parts={**parts, "test": [path]})
    with pytest.raises(DataError, match="line 101"):
        prepare_cases(wanted)
    path.write_bytes(whole[: len(whole) // 2].rpartition(b"\n")[0])
    usual = prepare.encode_block
    monkeypatch.setattr(prepare, "encode_block", lambda block: encoded.append(block.target.name) or usual(block))
    prepare_cases(wanted)
    assert encoded == ["test-000-000000.arrow", "test-000-000001.arrow"]
    prepare_cases(replace(wanted, out=tmp_path / "other"))
    assert contents(tmp_path / "out") == contents(tmp_path / "other")


def test_what_makes_no_difference_to_what_is_begun_is_not_told(tmp_path, monkeypatch, asked):
    begin(asked(tmp_path / "out", skip_bad=True), monkeypatch)
    with pytest.raises(SettingsError, match=r"another preparation \(with --skip-bad there\)"):
        prepare_cases(asked(tmp_path / "out", least_cases=5))


def test_a_file_that_is_written_while_it_is_read_is_read_again(
    files, tmp_path, monkeypatch, write, cases, asked, contents
):
    path = write(tmp_path / "test.json", cases(60, seed=2))
    wanted = asked(tmp_path / "out", parts={**asked(tmp_path).parts, "test": [path]})
    usual = prepare._finish

    def finish(*arguments):
        write(path, cases(70, seed=2))
        return usual(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(prepare, "_finish", finish)
        with pytest.raises(DataError, match=r"test\.json: the file changed while it was read; .* again"):
            prepare_cases(wanted)
    assert not is_encoded(tmp_path / "out")
    assert prepare_cases(wanted)["summary"]["test"]["read"] == 70
    prepare_cases(replace(wanted, out=tmp_path / "other"))
    assert contents(tmp_path / "out") == contents(tmp_path / "other")


def test_what_is_begun_with_other_files_stays(files, tmp_path, monkeypatch, write, cases, asked):
    begin(asked(tmp_path / "out"), monkeypatch)
    before = sorted(item.name for item in (tmp_path / "out" / "work").iterdir())
    other = {"train": [write(tmp_path / "other.json", cases(100))]}
    with pytest.raises(SettingsError, match=r"for train it read 'train\.json', and 'other\.json' are named here"):
        prepare_cases(asked(tmp_path / "out", parts=other))
    assert sorted(item.name for item in (tmp_path / "out" / "work").iterdir()) == before


def dies(*arguments):
    raise KeyboardInterrupt


def begin(wanted, monkeypatch):
    """Write first shards, but no final ones."""
    with monkeypatch.context() as patch:
        patch.setattr(prepare, "_finish", dies)
        with pytest.raises(KeyboardInterrupt):
            prepare_cases(wanted)


def test_blocks_that_are_done_are_not_done_again(tmp_path, monkeypatch, asked, contents):
    out = tmp_path / "out"
    begin(asked(out), monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(prepare, "encode_block", dies)
        prepare_cases(asked(out))
    prepare_cases(asked(tmp_path / "whole"))
    assert contents(out) == contents(tmp_path / "whole")


def test_first_shards_that_were_damaged_are_written_again(tmp_path, monkeypatch, asked, contents, flip):
    monkeypatch.setattr(prepare, "BLOCK_LINES", 35)
    out, encoded = tmp_path / "out", []
    prepare_cases(asked(tmp_path / "whole"))
    begin(asked(out), monkeypatch)
    shards = sorted((out / "work").glob("*.arrow"))
    damage = [
        flip,
        lambda shard: flip(shard, at=8),
        lambda shard: flip(shard, at=-8),
        lambda shard: shard.write_bytes(shard.read_bytes()[:-9]),
        Path.unlink,
        lambda shard: shard.with_suffix(".crc32").unlink(),
    ]
    *harmed, _ = shards
    for shard, harm in zip(harmed, damage, strict=True):
        harm(shard)
    usual = prepare.encode_block
    monkeypatch.setattr(prepare, "encode_block", lambda block: encoded.append(block.target) or usual(block))
    prepare_cases(asked(out))
    assert sorted(encoded) == harmed
    assert contents(out) == contents(tmp_path / "whole")


def test_a_shard_that_is_damaged_on_the_way_is_seen_and_mended_by_the_next_call(
    tmp_path, monkeypatch, asked, contents, flip
):
    out, usual = tmp_path / "out", prepare._final_shards

    def harm(final, shards, *others):
        flip(shards["train"][1])
        return usual(final, shards, *others)

    with monkeypatch.context() as patch:
        patch.setattr(prepare, "_final_shards", harm)
        with pytest.raises(DataError, match=r"train-000-000001\.arrow: .*its checksum.*; run it again$"):
            prepare_cases(asked(out))
    assert not is_encoded(out)
    prepare_cases(asked(out))
    prepare_cases(asked(tmp_path / "whole"))
    assert contents(out) == contents(tmp_path / "whole")


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
def test_kill_minus_nine_then_the_same_command_gives_the_same_folder(processes, tmp_path, cases, write, contents):
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


def test_a_process_that_is_killed_is_said_with_what_to_do(tmp_path):
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
