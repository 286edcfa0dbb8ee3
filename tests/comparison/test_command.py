"""The whole command on a toy corpus: runs in processes of their own, some of which fail or are killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from infocal.cli import main
from infocal.comparison import compare as module
from infocal.comparison.plan import Request, Sources, plan_runs
from infocal.comparison.runner import do_jobs, read_result
from infocal.comparison.worker import Job, write_failure
from infocal.data.toy import toy_reviews, toy_scores, write_toy
from infocal.types import Document

TINY = """
extends: infocal
text: {width: 12}
encoder: {hidden_width: 10}
model: {feature_width: 8, discriminator_width: 8}
training:
  least_round_steps: 4
  most_round_steps: 6
  warm_up_rounds: 1
  joint_rounds: 2
  settle_steps: 2
  batch_documents: 16
"""


@pytest.fixture
def folder(tmp_path):
    for part, seed, count in (("train", 1, 60), ("dev", 2, 16), ("test", 3, 24)):
        write_toy(tmp_path / f"{part}.jsonl", toy_reviews(count, seed=seed))
        plain = [Document(row.text, row.label) for row in toy_scores(count, seed=seed)]
        write_toy(tmp_path / f"{part}-scores.jsonl", plain)
    (tmp_path / "tiny.yaml").write_text(TINY)
    (tmp_path / "other.yaml").write_text("extends: tiny.yaml\nloss: {token_calibration: 0.0}\n")
    return tmp_path


def words(folder, *methods, data="", out="out"):
    files = [str(folder / f"{part}{data}.jsonl") for part in ("train", "dev", "test")]
    names = ",".join(str(folder / f"{name}.yaml") for name in methods)
    command = ["compare", files[0], "--dev", files[1], "--test", files[2], "--methods", names]
    return [*command, "--seeds", "1", "--out", str(folder / out), "--processes", "2", "--threads", "1"]


def run(*command):
    return CliRunner().invoke(main, list(command))


def request_for(folder, *methods):
    sources = Sources(**{part: folder / f"{part}.jsonl" for part in ("train", "dev", "test")})
    paths = tuple(str(folder / f"{name}.yaml") for name in methods)
    return Request(sources=sources, out=folder / "out", methods=paths, seeds=1)


def made(folder):
    return {path.name: path.stat().st_mtime_ns for path in (folder / "out" / "runs").iterdir()}


def test_two_recipes_then_a_failed_run_again_then_other_settings(folder):
    command = words(folder, "tiny", "other")
    result = run(*command)
    assert result.exit_code == 0, result.output
    out = folder / "out"
    assert max(map(len, result.stdout.splitlines()[:6])) <= 80
    assert [line.split()[0] for line in result.stdout.splitlines()[4:6]] == ["tiny", "other"]
    assert "full text" in result.stdout
    assert "(2 of 2)" in result.stderr
    names = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert names == {
        *(f"runs/{name}-0.json" for name in ("tiny", "other")),
        *(f"table.{kind}" for kind in ("csv", "md", "tex")),
        *(
            f"figures/{name}.{kind}"
            for name in ("quality-by-share", "precision-recall-by-round")
            for kind in ("png", "svg")
        ),
        "cases.html",
    }
    assert "| accuracy |" in (out / "table.md").read_text("utf-8")
    assert (out / "cases.html").read_text("utf-8").count('class="row by-1"') == 12

    before = made(folder)
    failed, _ = plan_runs(request_for(folder, "tiny", "other"))
    scores = read_result(failed)["scores"]
    write_failure(failed, "the disk was full")
    result = run(*command)
    assert result.exit_code == 0, result.output
    assert "1 of 2 runs are there already" in result.stderr
    assert {name for name, when in made(folder).items() if when != before[name]} == {"tiny-0.json"}
    assert read_result(failed)["scores"] == scores

    before = made(folder)
    result = run(*words(folder, "other"), "--keep-models")  # a finished run without its model is done again
    assert result.exit_code == 0, result.output
    assert {name for name, when in made(folder).items() if when != before[name]} == {"other-0.json"}
    assert [path.name for path in (out / "models").iterdir()] == ["other-0"]
    before = made(folder)
    assert run(*words(folder, "other"), "--keep-models").exit_code == 0
    assert made(folder) == before

    result = run(*words(folder, "other"), "--set", "encoder.dropout=0.1", "--quiet")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert made(folder).keys() == before.keys()
    assert made(folder)["other-0.json"] != before["other-0.json"]


def test_scores_without_gold_and_a_run_that_fails(folder):
    (folder / "broken.txt").write_text("fine 0.1 0.2\nstrap 0.1\n")
    (folder / "broken.yaml").write_text(f"extends: tiny.yaml\ntext: {{vectors: {folder / 'broken.txt'}}}\n")
    result = run(*words(folder, "tiny", "broken", data="-scores"))
    assert result.exit_code == 5
    assert "1 of 2 runs failed, the first is broken, seed 0" in result.stderr
    assert "broken.txt" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("error: ")
    text = (folder / "out" / "table.md").read_text("utf-8")
    assert "## Failed runs" in text
    assert "MSE" in text
    (row,) = [line for line in text.splitlines() if line.startswith("| broken")]
    assert set(row.strip("|").replace(" ", "").split("|")) == {"broken", "-", "0"}
    assert [path.stem for path in sorted((folder / "out" / "figures").iterdir())] == ["quality-by-share"] * 2
    assert "Traceback" not in result.output


def test_a_process_that_dies_is_recorded_and_the_others_go_on(folder, monkeypatch):
    shell = folder / "python"
    shell.write_text(
        "#!/bin/sh\nread -r job\n"
        """case "$job" in *'"contender": "tiny"'*) echo "out of memory" >&2; kill -9 $$;; esac\nexit 3\n"""
    )
    shell.chmod(0o755)
    request = request_for(folder, "tiny", "other")
    jobs = [Job(run=run, sources=request.sources, shares=(), cases=(), threads=1) for run in plan_runs(request)]
    monkeypatch.setattr("infocal.comparison.runner.sys.executable", str(shell))
    told = []
    do_jobs(jobs, processes=1, done=lambda job, record: told.append((job.run.contender, record["message"])))
    assert [name for name, _ in told] == ["tiny", "other"]
    assert told[0][1].endswith("signal 9 (SIGKILL) before there was a result: out of memory")
    assert "exit code 3" in told[1][1]
    assert read_result(jobs[0].run)["state"] == "failed"


def children(process):
    path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(number) for number in path.read_text().split()]


def alive(number):
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(condition, seconds=240):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_comparison_leaves_no_process_and_keeps_what_is_done(folder, number):
    slow = "extends: tiny.yaml\ntraining: {joint_rounds: 100000, joint_patience: 100000}\n"
    (folder / "slow.yaml").write_text(slow)
    command = [sys.executable, "-m", "infocal", *words(folder, "tiny", "slow")]
    done, said = folder / "out" / "runs" / "tiny-0.json", folder / "stderr.txt"
    heed = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}  # a shell's "&" has it ignored
    with said.open("wb") as stream, subprocess.Popen(command, stdout=stream, stderr=stream, **heed) as process:
        try:
            wait_for(lambda: done.is_file() or process.poll() is not None)
            wait_for(lambda: len(children(process)) == 1)
            (worker,) = children(process)
            os.kill(process.pid, number)
            process.wait(timeout=240)
            wait_for(lambda: not alive(worker))
        finally:
            process.kill()
    stderr = said.read_text("utf-8")
    assert process.returncode == (130 if number == signal.SIGINT else -signal.SIGKILL), stderr
    assert "Traceback" not in stderr
    assert [path.name for path in done.parent.iterdir()] == ["tiny-0.json"]
    assert json.loads(done.read_text("utf-8"))["state"] == "done"
    result = run(*words(folder, "tiny"))
    assert result.exit_code == 0
    assert "1 of 1 runs are there already" in result.stderr


def test_a_missing_extra_is_told_before_anything_is_read(folder, monkeypatch):
    find = module.importlib.util.find_spec
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None if name == "scipy" else find(name))
    result = run(*words(folder, "tiny"))
    assert result.exit_code == 6
    assert "pip install 'infocal[compare]'" in result.stderr
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("extra", "code", "found"),
    [
        (["--shares", "0.1,x"], 2, "not a list of numbers"),
        (["--shares", "0.1,1.0"], 2, "between 0 and 1"),
        (["--select", "2"], 2, "select"),
        (["--methods", "infocal,nix"], 2, "methods: infocal"),
        (["--test", "nothing.jsonl"], 3, "nothing.jsonl"),
        (["--label", "nix"], 3, "there is no column 'nix'"),
    ],
)
def test_what_cannot_be_used_is_told_before_anything_is_trained(folder, extra, code, found):
    result = run(*words(folder, "tiny"), *extra)
    assert result.exit_code == code, result.output
    assert found in result.stderr
    assert not (folder / "out").exists()


def test_a_label_that_only_the_test_rows_have_is_told_before_anything_is_trained(folder):
    with (folder / "test.jsonl").open("a", encoding="utf-8") as stream:
        stream.write('{"text": "so so", "label": "middling"}\n')
    result = run(*words(folder, "tiny"))
    assert result.exit_code == 3
    assert "test.jsonl, line 25" in result.stderr
    assert not (folder / "out").exists()


@pytest.mark.parametrize("name", ["table.csv", "models/attention-0/notes.txt", "warm-ups/plan.txt"])
def test_files_of_others_are_not_replaced(folder, name):
    path = folder / "out" / name
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    result = run(*words(folder, "tiny"))
    assert result.exit_code == 2
    assert "is not of a comparison" in result.stderr
    assert path.read_text() == "mine"


def test_a_method_that_cannot_do_the_task_is_found_before_any_run(folder):
    (folder / "classes.yaml").write_text("extends: car\n")
    result = run(*words(folder, "tiny", "classes", data="-scores"))
    assert result.exit_code == 2
    assert "the method car finds words for each class" in result.stderr
    assert not (folder / "out" / "runs").exists()
