import csv
import json
import os
import pty
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import get_args

import pytest
from click.testing import CliRunner

from infocal.cli import main
from infocal.cli.evaluate import finite
from infocal.cli.failures import EXIT_CODES
from infocal.cli.options import DECODERS, METHODS
from infocal.config import load_settings
from infocal.data.toy import toy_reviews, toy_scores, write_toy

SIZES = {
    "encoder.hidden_width": 16,
    "text.width": 16,
    "model.feature_width": 16,
    "model.discriminator_width": 8,
    "language_model.hidden_width": 8,
    "training.warm_up_rounds": 1,
    "training.joint_rounds": 1,
    "training.settle_steps": 2,
    "training.least_round_steps": 2,
}
TINY = [word for name, value in SIZES.items() for word in ("--set", f"{name}={value}")]
DOCS = Path(__file__).parents[1] / "docs" / "cli.md"


def run(*words, **options):
    return CliRunner().invoke(main, [str(word) for word in words], **options)


def command(*words):
    return [sys.executable, "-m", "infocal", *(str(word) for word in words)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("cli")
    write_toy(place / "train.jsonl", toy_reviews(200, seed=1))
    write_toy(place / "test.jsonl", toy_reviews(40, seed=2))
    (place / "lines.txt").write_text("The battery died.\n\nA fine battery, I say.\n", encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def trained(folder):
    return run("train", folder / "train.jsonl", "--out", folder / "model", *TINY)


@pytest.fixture(scope="module")
def model(folder, trained):
    assert trained.exit_code == 0, trained.output
    return folder / "model"


@pytest.fixture
def copied(model, tmp_path):
    return Path(shutil.copytree(model, tmp_path / "copied"))


class TestTrain:
    def test_result_goes_to_stdout_and_notes_to_stderr(self, trained, model):
        assert f"Model saved in {model}" in trained.stdout
        assert "selected words" in trained.stdout
        assert "full text" in trained.stdout
        assert f"infocal evaluate {model}" in trained.stdout
        assert len(re.findall(r"^(?:good|bad) \(\d+ %\) · ", trained.stdout, re.MULTILINE)) == 3
        assert "20 of 200 rows are held out" in trained.stderr
        assert "180 training rows have human evidence; it is not learned from" in trained.stderr
        assert "note:" not in trained.stdout

    def test_leaves_metrics_and_settings_but_no_checkpoint(self, model):
        rounds = [json.loads(line) for line in (model / "metrics.jsonl").read_text().splitlines()]
        assert [record["phase"] for record in rounds] == ["warm_up", "joint", "settle"]
        settings = load_settings(model / "settings.yaml")
        assert settings.encoder.hidden_width == 16
        assert isinstance(settings.loss.calibration_window, int)
        assert not (model / "checkpoint.safetensors").exists()

    def test_refuses_to_replace_a_model(self, folder, copied):
        before = (copied / "model.json").read_bytes()
        result = run("train", folder / "train.jsonl", "--out", copied, *TINY)
        assert result.exit_code == 2
        assert "--resume" in result.stderr
        assert "--overwrite" in result.stderr
        assert (copied / "model.json").read_bytes() == before

    def test_leftovers_of_a_kill_do_not_stand_in_the_way(self, folder, tmp_path):
        process = subprocess.Popen([sys.executable, "-c", ""])
        process.wait()
        out = tmp_path / "model"
        out.mkdir()
        (out / f".checkpoint.safetensors.{process.pid}.partial").write_bytes(b"half")
        result = run("train", folder / "train.jsonl", "--out", out, "--resume", *TINY)
        assert result.exit_code == 0, result.output
        assert not list(out.glob(".*"))

    def test_a_run_killed_before_it_saved_anything_is_no_finished_one(self, folder, copied, monkeypatch):
        from infocal.training.loop import Trainer

        def dies(trainer, stop):
            raise MemoryError

        with monkeypatch.context() as patch:
            patch.setattr(Trainer, "_round", dies)
            words = ("train", folder / "train.jsonl", "--out", copied, "--seed", 7, *TINY)
            assert run(*words, "--overwrite").exit_code != 0
        assert json.loads((copied / "model.json").read_text())["settings"]["seed"] == 0
        result = run(*words, "--resume")
        assert result.exit_code == 0, result.output
        assert json.loads((copied / "model.json").read_text())["settings"]["seed"] == 7

    def test_the_record_says_where_the_data_came_from(self, model):
        data = json.loads((model / "model.json").read_text())["record"]["data"]
        assert data["source"] == "train.jsonl"
        assert data["held_out_source"] == "a part of the same"
        assert data["columns"] == {"text": "text", "label": "label"}

    def test_a_rationale_column_of_another_kind_can_be_left_alone(self, tmp_path):
        rows = [f"it is {w},{w},because it is {w}" for w in ("good", "bad") for _ in range(10)]
        (tmp_path / "a.csv").write_text("\n".join(["text,label,rationale", *rows]), encoding="utf-8")
        words = ("train", tmp_path / "a.csv", "--out", tmp_path / "model", *TINY)
        result = run(*words)
        assert result.exit_code == 3
        assert "--rationale '' leaves the column alone" in result.stderr
        assert run(*words, "--rationale", "").exit_code == 0

    def test_resuming_a_finished_run_does_nothing(self, folder, copied):
        before = (copied / "model.json").read_bytes()
        result = run("train", folder / "train.jsonl", "--out", copied, "--resume", *TINY)
        assert result.exit_code == 0
        assert "nothing to resume" in result.stdout
        assert (copied / "model.json").read_bytes() == before

    @pytest.mark.parametrize(
        ("other", "name"),
        [
            (("--seed", 7), "seed"),
            (("--label", "verdict"), "label"),
            (("--method", "hardkuma"), "method"),
            (("--text", "body"), "--text"),
            (("--dev", "test.jsonl"), "--dev"),
            (("--vectors", "vectors.txt"), "--vectors"),
        ],
    )
    def test_a_finished_run_of_another_kind_is_none(self, folder, copied, other, name):
        before = (copied / "model.json").read_bytes()
        result = run("train", folder / "train.jsonl", "--out", copied, "--resume", *TINY, *other)
        assert (result.exit_code, result.stdout) == (5, "")
        said = " ".join(result.stderr.split())
        assert re.search(rf"is finished, with another [^;]*{name}[^;]*; --overwrite trains anew", said)
        assert (copied / "model.json").read_bytes() == before
        result = run("train", folder / "test.jsonl", "--out", copied, "--resume", *TINY)
        assert "with another DATA" in " ".join(result.stderr.split())

    def test_overwrite_replaces_the_model_and_quiet_says_only_the_result(self, folder, copied):
        words = ("--overwrite", "--quiet", "--seed", 5, "--supervise", "--tensorboard", "--threads", 1)
        result = run("train", folder / "train.jsonl", "--out", copied, *words, *TINY)
        assert result.exit_code == 0, result.output
        assert result.stderr == ""
        header = json.loads((copied / "model.json").read_text(encoding="utf-8"))
        assert header["settings"]["seed"] == 5
        assert header["settings"]["loss"]["rationale_supervision"] == 1.0
        assert list((copied / "tensorboard").iterdir())

    @pytest.mark.parametrize("option", [[], ["--overwrite"], ["--resume"]])
    def test_never_deletes_files_that_are_not_a_models(self, folder, tmp_path, option):
        (tmp_path / "thesis.tex").write_text("years of work")
        result = run("train", folder / "train.jsonl", "--out", tmp_path, *option, *TINY)
        assert result.exit_code == 2
        assert "thesis.tex" in result.stderr
        assert (tmp_path / "thesis.tex").read_text() == "years of work"

    def test_failing_data_leaves_no_folder(self, folder, tmp_path):
        result = run("train", folder / "nothing.csv", "--out", tmp_path / "model")
        assert result.exit_code == 3
        assert "nothing.csv" in result.stderr
        assert not (tmp_path / "model").exists()

    def test_supervise_needs_annotated_rows(self, folder, tmp_path):
        rows = [json.loads(line) for line in (folder / "train.jsonl").read_text("utf-8").splitlines()]
        data = tmp_path / "plain.jsonl"
        data.write_text("".join(json.dumps({**row, "rationale": None}) + "\n" for row in rows))
        result = run("train", data, "--out", tmp_path / "model", "--supervise", *TINY)
        assert result.exit_code == 2
        assert "no training row" in result.stderr

    def test_scores_in_a_csv_file_with_other_columns_and_a_dev_file(self, tmp_path):
        for name, seed, count in (("train", 1, 120), ("dev", 2, 30)):
            with (tmp_path / f"{name}.csv").open("w", newline="", encoding="utf-8") as stream:
                writer = csv.writer(stream)
                writer.writerow(["body", "stars"])
                writer.writerows((row.text, row.label) for row in toy_scores(count, seed=seed))
        names = ("--text", "body", "--label", "stars")
        out, dev = tmp_path / "model", tmp_path / "dev.csv"
        result = run("train", tmp_path / "train.csv", "--dev", dev, "--out", out, *names, *TINY)
        assert result.exit_code == 0, result.output
        assert "mean squared error" in result.stdout
        assert "held out" not in result.stderr
        figures = json.loads(run("evaluate", out, dev, *names, "--json", "-").stdout)
        assert figures["n"] == 30
        assert figures["rationale"] is None
        assert "mse" in figures
        told = run("explain", out, "--input", dev, *names, "--format", "json", "--limit", 1)
        record = json.loads(told.stdout)
        assert record["label"] == pytest.approx(toy_scores(1, seed=2)[0].label)
        assert 1.0 <= record["prediction"] <= 5.0

    def test_unknown_setting_lists_the_choices(self, folder, tmp_path):
        change = ("--set", "encoder.hiden_width=3")
        result = run("train", folder / "train.jsonl", "--out", tmp_path / "model", *change)
        assert result.exit_code == 2
        assert "did you mean 'hidden_width'" in result.stderr
        assert "dropout" in result.stderr

    @pytest.mark.parametrize("words", [["--select", "1.5"], ["--recipe", "nix"], ["--task", "rank"]])
    def test_impossible_options_are_usage_errors(self, folder, tmp_path, words):
        result = run("train", folder / "train.jsonl", "--out", tmp_path / "model", *words)
        assert result.exit_code == 2
        assert words[1] in result.stderr

    def test_interrupt_keeps_the_best_model_and_resume_goes_on(self, folder, tmp_path):
        out = tmp_path / "model"
        rounds = ("joint_rounds=12", "joint_patience=12", "settle_steps=100")  # time enough to be interrupted
        slow = [f"--set=training.{change}" for change in rounds]
        words = command("train", folder / "train.jsonl", "--out", out, "--threads", 1, *TINY, *slow)
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_for_joint_round(out / "metrics.jsonl", process)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
        assert process.returncode == 130, stderr
        assert "Stopped by the user" in stderr
        assert "Model saved" in stdout
        assert (out / "checkpoint.safetensors").is_file()
        assert run("explain", out, "A battery that lasts.").exit_code == 0
        assert run(*words[3:]).exit_code == 2
        result = run(*words[3:], "--resume")
        assert result.exit_code == 0, result.output
        assert not (out / "checkpoint.safetensors").exists()
        rounds = [json.loads(line)["round"] for line in (out / "metrics.jsonl").read_text().splitlines()]
        assert rounds == [1, *range(1, 13), 1]


def wait_for_joint_round(metrics, process):
    deadline = time.monotonic() + 60
    while not (metrics.is_file() and '"joint"' in metrics.read_text()):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


BAD_FILES = {
    "empty.csv": (b"", "the file is empty"),
    "no_label.csv": (b"text,topic\nfine,a\n", "there is no column 'label'"),
    "empty_text.csv": (b"text,label\nfine,a\n ,b\n", "line 3"),
    "empty_label.csv": (b"text,label\nfine,a\nbad,\n", "line 3"),
    "cells.csv": (b"text,label\nfine,a\nbad,b,c\n", "line 3"),
    "latin.csv": (b"text,label\nfine,a\nb\xe4d,b\n", "latin.csv, line 3: "),
    "twice.csv": (b"text,label,text\nfine,a,b\n", "twice.csv, line 1: "),
    "utf16.csv": ("text,label\nfine,a\n".encode("utf-16"), "utf16.csv, line 1: "),
    "nan.jsonl": b'{"text": "fine", "label": 1.5}\n{"text": "bad", "label": NaN}\n',
    "broken.jsonl": b'{"text": "fine", "label": "a"}\n{"text": \n',
    "number.jsonl": b'{"text": "fine", "label": "a"}\n{"text": 3, "label": "a"}\n',
    "span.jsonl": b'{"text": "fine", "label": "a"}\n{"text": "bad", "label": "b", "rationale": [[0, 9]]}\n',
    "array.json": (b'[{"text": "fine", "label": "a"}]', "one JSON array"),
    "one_class.csv": (b"text,label\nfine,a\nbad,a\n", "at least two classes"),
    "alone.csv": (b"text,label\nfine,a\ngood,a\nbad,b\nawful,b\nodd,c\n", "line 6"),
    "notes.docx": (b"PK", ".docx"),
    "fake.parquet": (b"PAR", "not readable Parquet"),
}


class TestBadInput:
    @pytest.mark.parametrize("name", BAD_FILES)
    def test_every_kind_exits_with_3_and_names_the_place(self, tmp_path, name):
        entry = BAD_FILES[name]
        content, found = entry if isinstance(entry, tuple) else (entry, f"{name}, line 2: ")
        (tmp_path / name).write_bytes(content)
        result = run("train", tmp_path / name, "--out", tmp_path / "model")
        assert result.exit_code == 3, result.output
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1
        assert str(tmp_path / name) in result.stderr
        assert found in result.stderr
        assert not (tmp_path / "model").exists()

    def test_skip_bad_counts_what_it_leaves_out(self, folder, model, tmp_path):
        rows = (folder / "test.jsonl").read_text("utf-8")
        (tmp_path / "some.jsonl").write_text(rows + '{"text": "", "label": "good"}\n', encoding="utf-8")
        assert run("evaluate", model, tmp_path / "some.jsonl").exit_code == 3
        result = run("evaluate", model, tmp_path / "some.jsonl", "--skip-bad", "--json", "-")
        assert result.exit_code == 0
        assert "1 bad row left out" in result.stderr
        assert json.loads(result.stdout)["skipped"] == 1

    def test_message_holds_no_control_characters(self, model, tmp_path):
        (tmp_path / "odd.csv").write_text("text,label\nfine,\x1b[31mred\n", encoding="utf-8")
        result = run("evaluate", model, tmp_path / "odd.csv")
        assert result.exit_code == 3
        assert "\x1b" not in result.stderr


class TestEvaluate:
    def test_json_has_the_figures_of_the_api(self, folder, model, tmp_path):
        from infocal.data.readers import BadRows, read_documents
        from infocal.loading import load_one as load

        out = tmp_path / "figures.json"
        result = run("evaluate", model, folder / "test.jsonl", "--decoder", "spans", "--share", 0.3, "--json", out)
        assert result.exit_code == 0, result.output
        written = json.loads(out.read_text(encoding="utf-8"))
        documents = read_documents(folder / "test.jsonl", bad_rows=BadRows())
        expected = load(model).evaluate(documents, decoder="spans", share=0.3)
        assert written | {"seconds": 0} == expected | {"seconds": 0}
        assert f"{written['accuracy']:.3f}" in result.stdout
        assert "token F1" in result.stdout
        assert "comprehensiveness" in result.stdout

    def test_unknown_label_names_the_line_and_the_classes(self, model, tmp_path):
        (tmp_path / "other.csv").write_text("text,label\nfine,good\nbad,awful\n")
        result = run("evaluate", model, tmp_path / "other.csv")
        assert result.exit_code == 3
        assert "other.csv, line 3" in result.stderr
        assert "'bad', 'good'" in result.stderr

    @pytest.mark.parametrize("words", [["--share", "0"], ["--share", "nan"], ["--span-cost", "1"]])
    def test_impossible_choices_are_usage_errors(self, folder, model, words):
        assert run("evaluate", model, folder / "test.jsonl", *words).exit_code == 2

    def test_what_cannot_be_written_exits_with_7(self, folder, model):
        out = folder / "test.jsonl" / "figures.json"
        result = run("evaluate", model, folder / "test.jsonl", "--json", out)
        assert result.exit_code == 7
        assert f"cannot write {out}: Not a directory" in result.stderr

    def test_choices_are_those_of_the_library(self):
        from infocal import decoding

        assert decoding.DECODERS == DECODERS

    def test_methods_are_those_of_the_package(self):
        from infocal.methods import METHODS as built
        from infocal.methods import WITHOUT_EVIDENCE
        from infocal.settings import Settings

        assert set(built) == set(get_args(Settings.model_fields["method"].annotation))
        assert set(METHODS) == set(built) - WITHOUT_EVIDENCE


class TestLargeScores:
    def test_one_that_has_no_square_is_bad_input(self, tmp_path):
        rows = "".join(f"word number {n},{n}.5\n" for n in range(60))
        (tmp_path / "data.csv").write_text(f"text,label\n{rows}huge,1e300\n")
        result = run("train", tmp_path / "data.csv", "--out", tmp_path / "model", *TINY)
        assert result.exit_code == 3
        assert "line 62: the label is '1e300'; allowed: a finite number, at most 1e+100" in result.stderr

    def test_figures_are_valid_json(self):
        figures = {"mse": float("inf"), "parts": [float("nan"), 1.5, None, "x"], "n": 3}
        assert finite(figures) == {"mse": None, "parts": [None, 1.5, None, "x"], "n": 3}


class TestSlips:
    ROWS = "text,label\n" + "".join(f"word{n % 7} is here,{n % 4 + 0.5}\n" for n in range(40))

    def test_a_name_among_scores_is_an_error_or_left_out(self, tmp_path):
        path = tmp_path / "scores.csv"
        path.write_text(self.ROWS + "this one slipped,n/a\n", encoding="utf-8")
        small = [
            f"--set={name}" for name in ("encoder.hidden_width=4", "text.width=4", "training.warm_up_rounds=1")
        ]
        small += [f"--set=training.{name}" for name in ("joint_rounds=1", "least_round_steps=2", "settle_steps=1")]
        for words in ([], ["--task", "regress"]):
            result = run("train", path, "--out", tmp_path / "model", *small, *words)
            assert result.exit_code == 3
            assert "scores.csv, line 42" in result.stderr
            assert "'n/a'" in result.stderr
        result = run("train", path, "--out", tmp_path / "model", *small, "--skip-bad")
        assert result.exit_code == 0, result.output
        assert "1 bad row left out" in result.stderr
        assert "accuracy" not in result.stdout  # scores, not classes

    def test_an_empty_text_of_the_command_line(self, model):
        result = run("explain", model, "The battery died.", "  ")
        assert result.exit_code == 3
        assert "TEXT 2" in result.stderr
        result = run("explain", model, "  ", "The battery died.", "--skip-bad")
        assert result.exit_code == 0
        assert "battery" in result.stdout
        assert "1 bad row left out" in result.stderr

    def test_a_model_of_an_older_format_is_refused_by_all(self, model, tmp_path):
        old = tmp_path / "old"
        shutil.copytree(model, old)
        header = json.loads((old / "model.json").read_text(encoding="utf-8"))
        (old / "model.json").write_text(json.dumps({**header, "format": 1}), encoding="utf-8")
        for words in (["info", old], ["explain", old, "text"]):
            result = run(*words)
            assert result.exit_code == 4
            assert "saved by an older infocal (model format 1" in result.stderr


class TestWhatIsReadIsNotReplaced:
    def test_by_what_is_written(self, folder, copied, tmp_path):
        data = Path(shutil.copy(folder / "test.jsonl", tmp_path / "rows.jsonl"))
        kept = {path: path.read_bytes() for path in (data, copied / "model.json")}
        for words in (
            ("explain", copied, "--input", data, "--out", data),
            ("explain", copied, "--input", data, "--out", copied / "new.html"),
            ("evaluate", copied, data, "--json", data),
            ("evaluate", copied, data, "--json", copied / "model.json"),
        ):
            result = run(*words)
            assert result.exit_code == 2, words
            assert "would replace what is read from" in " ".join(result.stderr.split())
        assert {path: path.read_bytes() for path in kept} == kept

    def test_a_target_that_cannot_be_is_told_before_the_work(self, folder, model, tmp_path, monkeypatch):
        other = Path(shutil.copy(folder / "test.jsonl", tmp_path / "other.jsonl"))
        monkeypatch.setattr("infocal.loading.load", lambda path: pytest.fail("the work has begun"))
        for words in (
            ("explain", model, "--input", folder / "test.jsonl", "--out", folder, "--format", "html"),
            ("evaluate", model, folder / "test.jsonl", "--json", folder / "test.jsonl" / "x.json"),
        ):
            result = run(*words)
            assert result.exit_code == 7
            assert f"error: cannot write {folder}" in result.stderr
        nowhere = folder / "test.jsonl" / "x"
        words = ("--dev", folder / "test.jsonl", "--test", other, "--methods", "infocal", "--out", nowhere)
        for result in (
            run("train", folder / "train.jsonl", "--out", nowhere, *TINY),
            run("compare", folder / "train.jsonl", *words),
        ):
            assert result.exit_code == 7
            assert result.stderr.startswith(f"error: cannot write {nowhere}")
            assert "held out" not in result.stderr
        monkeypatch.setattr("infocal.demo.run_demo", lambda *_, **__: pytest.fail("the work has begun"))
        assert run("demo", "--report", folder / "test.jsonl" / "x.html").exit_code == 7
        for inside in (folder / "demo", folder / "demo" / "model.json"):
            result = run("demo", "--out", folder / "demo", "--report", inside)
            assert result.exit_code == 2
            assert "lies in the model's folder" in " ".join(result.stderr.split())

    def test_rows_to_judge_by_are_others(self, folder, tmp_path):
        data = folder / "train.jsonl"
        result = run("train", data, "--dev", folder / ".." / folder.name / "train.jsonl", "--out", tmp_path / "m")
        assert result.exit_code == 2
        assert "DATA and --dev are the same file" in " ".join(result.stderr.split())
        words = ("--dev", data, "--test", folder / "test.jsonl", "--methods", "infocal", "--out", tmp_path / "c")
        assert "DATA and --dev are the same file" in " ".join(run("compare", data, *words).stderr.split())
        assert not list(tmp_path.iterdir())

    def test_classes_that_differ_in_capitals_are_told(self, tmp_path):
        rows = [f"battery number {n},{('Good', 'good', 'bad')[n % 3]}\n" for n in range(90)]
        (tmp_path / "data.csv").write_text("text,label\n" + "".join(rows))
        said = " ".join(run("train", tmp_path / "data.csv", "--out", tmp_path / "model", *TINY).stderr.split())
        assert "Some classes differ in capitals or spaces only: 'Good', 'good'." in said

    def test_a_comparison_does_not_go_into_a_models_folder(self, folder, copied):
        other = Path(shutil.copy(folder / "test.jsonl", copied.parent / "other.jsonl"))
        words = ("--dev", folder / "test.jsonl", "--test", other, "--methods", "infocal", "--out", copied)
        result = run("compare", folder / "train.jsonl", *words)
        assert result.exit_code == 2
        assert "holds a model" in " ".join(result.stderr.split())

    def test_held_out_texts_that_are_training_texts_are_told(self, folder, tmp_path):
        lines = (folder / "train.jsonl").read_text().splitlines()
        (tmp_path / "dev.jsonl").write_text("\n".join(lines[:30]) + "\n")
        words = ("--dev", tmp_path / "dev.jsonl", "--out", tmp_path / "model")
        result = run("train", folder / "train.jsonl", *words, *TINY)
        said = " ".join(result.stderr.split())
        assert "30 of the 30 held-out texts have the words of a training text" in said


class TestExplain:
    def test_texts_show_the_words_in_brackets(self, model):
        result = run("explain", model, "The battery died.", "The strap is [[odd]] but the battery lasts.")
        assert result.exit_code == 0
        assert result.stdout.count("[[") >= 3
        assert len(re.findall(r"^(good|bad) \(\d+ %\) · words selected", result.stdout, re.MULTILINE)) == 2

    def test_json_lines_point_into_the_text(self, folder, model):
        result = run("explain", model, "--input", folder / "test.jsonl", "--format", "json", "--full-text")
        records = [json.loads(line) for line in result.stdout.splitlines()]
        assert len(records) == 40
        for record in records:
            assert record["rationale"] == [record["text"][start:end] for start, end in record["spans"]]
            assert record["full_text_prediction"] in ("good", "bad")
            assert record["gold"]

    def test_lines_of_stdin_and_of_a_text_file_are_the_same(self, folder, model):
        piped = run("explain", model, "--format", "json", input=(folder / "lines.txt").read_text())
        read = run("explain", model, "--format", "json", "--input", folder / "lines.txt")
        assert piped.stdout == read.stdout
        assert [json.loads(line)["text"] for line in piped.stdout.splitlines()] == [
            "The battery died.",
            "A fine battery, I say.",
        ]

    def test_limit_reads_no_further(self, model):
        result = run("explain", model, "--limit", 1, "--format", "json", input=b"fine battery\n\xff\xfe\n")
        assert result.exit_code == 0
        assert len(result.stdout.splitlines()) == 1

    def test_stdin_that_is_not_utf8_names_the_line(self, model):
        result = run("explain", model, input=b"fine battery\nb\xe4d\n")
        assert result.exit_code == 3
        assert "stdin, line 2" in result.stderr

    def test_a_line_of_stdin_is_checked_as_a_row_is(self, model):
        result = run("explain", model, input=b"fine battery\na\0b\n")
        assert result.exit_code == 3
        assert "stdin, line 2" in result.stderr

    def test_empty_stdin_is_an_error(self, model):
        result = run("explain", model, input="\n")
        assert result.exit_code == 3
        assert "no text" in result.stderr

    def test_html_is_one_page_in_which_the_text_is_escaped(self, model, tmp_path):
        page = tmp_path / "deep" / "page.html"
        result = run("explain", model, "<script>alert(1)</script> battery", "--out", page)
        assert result.exit_code == 0
        source = page.read_text(encoding="utf-8")
        assert source.startswith("<!DOCTYPE html>")
        assert "<script" not in source
        assert not re.search(r"(src|href)=|https?://", source)
        assert [path.name for path in page.parent.iterdir()] == ["page.html"]

    def test_failing_midway_leaves_the_old_file(self, model, tmp_path):
        (tmp_path / "lines.txt").write_bytes(b"fine\n\xff\n")
        (tmp_path / "out.jsonl").write_text("old")
        result = run("explain", model, "--input", tmp_path / "lines.txt", "--out", tmp_path / "out.jsonl")
        assert result.exit_code == 3
        assert (tmp_path / "out.jsonl").read_text() == "old"
        assert len(list(tmp_path.iterdir())) == 2

    def test_terminal_without_texts_is_a_usage_error(self, model):
        ours, theirs = pty.openpty()
        try:
            done = subprocess.run(command("explain", model), stdin=theirs, capture_output=True, text=True)
        finally:
            os.close(ours)
            os.close(theirs)
        assert done.returncode == 2
        assert "nothing to explain" in done.stderr

    def test_lines_join_explanations_to_their_rows(self, model, tmp_path):
        (tmp_path / "some.csv").write_text("text\na fine battery\n \nit died at noon\n", encoding="utf-8")
        result = run("explain", model, "--input", tmp_path / "some.csv", "--format", "json", "--skip-bad")
        assert [json.loads(line)["line"] for line in result.stdout.splitlines()] == [2, 4]

    def test_a_text_that_is_not_utf8_is_bad_input(self, model):
        result = run("explain", model, "caf\udce9 battery", "fine battery")
        assert result.exit_code == 3
        assert "TEXT 1: the text holds the lone surrogate" in result.stderr
        assert run("explain", model, "caf\udce9 battery", "fine battery", "--skip-bad").exit_code == 0

    def test_an_ending_that_means_nothing_is_a_usage_error(self, model, tmp_path):
        result = run("explain", model, "a text", "--out", tmp_path / "page.pdf")
        assert result.exit_code == 2
        assert "--out ends in .pdf; known are .htm, .html, .json" in result.stderr
        assert not list(tmp_path.iterdir())
        assert run("explain", model, "a text", "--out", tmp_path / "a.log", "--format", "text").exit_code == 0

    def test_texts_and_input_together_are_a_usage_error(self, folder, model):
        assert run("explain", model, "text", "--input", folder / "lines.txt").exit_code == 2

    def test_reader_that_leaves_early_is_no_failure(self, model, tmp_path):
        (tmp_path / "many.txt").write_text("the battery is fine but the strap is not\n" * 3000)
        words = command("explain", model, "--input", tmp_path / "many.txt", "--format", "json")
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert json.loads(process.stdout.readline())["prediction"] in ("good", "bad")
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=60) == 0
        process.stderr.close()


class TestModelFolder:
    def test_info_shows_card_and_size(self, model):
        result = run("info", model)
        assert result.exit_code == 0
        assert "InfoCal model card" in result.stdout
        assert "parameters, model format 4" in result.stdout

    def test_info_as_json(self, model):
        from safetensors.numpy import load_file

        facts = json.loads(run("info", model, "--json").stdout)
        assert facts["task"] == {"kind": "classify", "classes": ["bad", "good"], "priors": [0.5, 0.5]}
        weights = load_file(model / "weights.safetensors")
        assert facts["parameters"] == sum(tensor.size for tensor in weights.values())
        assert facts["bytes"] > (model / "weights.safetensors").stat().st_size

    def test_info_without_a_card_writes_one(self, copied):
        (copied / "README.md").unlink()
        assert "InfoCal model card" in run("info", copied).stdout

    @pytest.mark.parametrize("verb", ["info", "explain", "evaluate"])
    @pytest.mark.parametrize("damage", ["gone", "header", "weights", "truncated", "newer"])
    def test_broken_folder_exits_with_4(self, copied, folder, verb, damage):
        if damage == "gone":
            shutil.rmtree(copied)
        elif damage == "header":
            (copied / "model.json").write_text("{")
        elif damage == "weights":
            (copied / "weights.safetensors").unlink()
        elif damage == "truncated":
            os.truncate(copied / "weights.safetensors", 100)
        else:
            header = json.loads((copied / "model.json").read_text(encoding="utf-8"))
            (copied / "model.json").write_text(json.dumps(header | {"format": 99}))
        words = {"info": [], "explain": ["text"], "evaluate": [folder / "test.jsonl"]}[verb]
        result = run(verb, copied, *words)
        assert result.exit_code == 4
        assert str(copied) in result.stderr
        assert result.stderr.count("\n") == 1


class TestFailures:
    def test_bug_advises_to_report_it(self, model, monkeypatch):
        monkeypatch.setattr("infocal.storage.read_header", lambda path: 1 / 0)
        monkeypatch.delenv("INFOCAL_DEBUG", raising=False)
        result = run("info", model)
        assert result.exit_code == 70
        assert result.stderr.count("\n") == 1
        assert "INFOCAL_DEBUG=1" in result.stderr

    def test_bug_shows_its_traceback_when_asked(self, model, monkeypatch):
        monkeypatch.setattr("infocal.storage.read_header", lambda path: 1 / 0)
        monkeypatch.setenv("INFOCAL_DEBUG", "1")
        result = run("info", model)
        assert result.exit_code == 70
        assert "Traceback" in result.stderr
        assert "division by zero" in result.stderr

    def test_interrupt_exits_with_130(self, model, monkeypatch):
        def interrupt(path):
            raise KeyboardInterrupt

        monkeypatch.setattr("infocal.storage.read_header", interrupt)
        result = run("info", model)
        assert result.exit_code == 130
        assert result.stderr == "error: interrupted\n"

    def test_full_disk_exits_with_7_and_changes_nothing(self, folder, copied):
        def small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))

        before = {path.name: path.read_bytes() for path in copied.iterdir()}
        words = command("train", folder / "train.jsonl", "--out", copied, "--overwrite", *TINY)
        done = subprocess.run(words, capture_output=True, text=True, preexec_fn=small_files)
        assert done.returncode == 7, done.stderr
        assert "Traceback" not in done.stderr
        after = {path.name: path.read_bytes() for path in copied.iterdir()}
        kept = ("model.json", "weights.safetensors", "vocabulary.json", "README.md")
        assert {name: after[name] for name in kept} == {name: before[name] for name in kept}


class TestHelp:
    def test_is_quick_and_imports_nothing_heavy(self):
        script = (
            "import sys\nfrom infocal.cli import main\n"
            "try:\n    main(['--help'])\nexcept SystemExit as end:\n    assert end.code == 0\n"
            "print(*sorted({'torch', 'rich', 'pydantic', 'numpy', 'yaml'} & set(sys.modules)), file=sys.stderr)"
        )
        seconds = []
        for _ in range(3):
            began = os.times()
            done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
            ended = os.times()
            # Processor time, since other tests may run beside this one.
            seconds.append(sum(ended[2:4]) - sum(began[2:4]))
            assert done.stderr.strip() == ""
        assert "Exit codes" in done.stdout
        assert min(seconds) < 0.5

    def test_version(self):
        from infocal import __version__

        assert run("--version").stdout == f"infocal {__version__}\n"

    def test_reference_names_every_verb_option_and_exit_code(self):
        text = DOCS.read_text(encoding="utf-8")
        for name, verb in main.commands.items():
            section = text.partition(f"## infocal {name}\n")[2].partition("\n## ")[0]
            for parameter in verb.params:
                for spelling in parameter.opts if parameter.param_type_name == "option" else ():
                    assert f"`{spelling}" in section, (name, spelling)
        for code, meaning in EXIT_CODES.items():
            assert f"| {code} | {meaning} |" in text

    def test_recipes_are_listed_and_printed_in_full(self, tmp_path):
        assert "infocal" in run("recipes").stdout
        printed = run("recipes", "infocal").stdout
        (tmp_path / "mine.yaml").write_text(printed)
        assert load_settings(tmp_path / "mine.yaml") == load_settings("infocal")
        assert "# as in the paper" in printed  # values have their reasons
        assert "method: hardkuma" in run("recipes", "hardkuma").stdout
        listed = run("recipes").stdout.splitlines()
        assert all(line.endswith(".") and not line.endswith("al.") for line in listed)

    def test_columns_are_told_as_each_verb_takes_them(self):
        said = {verb: " ".join(run(verb, "--help").output.split()) for verb in ("train", "compare", "explain")}
        assert "several are predicted together" in said["train"]
        assert "several" not in said["compare"].partition("--label")[2].partition("--rationale")[0]
        assert "[default: the model's]" in said["explain"]
