"""The paper's experiment on court cases, end to end on made-up ones."""

import csv
import json
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from infocal.cli import main, reproduce_cail
from infocal.config import load_settings
from infocal.data.corpus import View
from infocal.errors import TrainingError
from infocal.reproduce import judgements, runs
from infocal.reproduce.published_cail import best_macro_f1
from infocal.storage import CHECKPOINT
from infocal.training.preparation import open_encoded

pytest.importorskip("pyarrow")
pytest.importorskip("rjieba")
pytest.importorskip("sklearn")

SMALL = {
    "text.width": 12,
    "encoder.hidden_width": 8,
    "model.feature_width": 8,
    "training.least_round_steps": 3,
    "training.most_round_steps": 3,
    "training.warm_up_rounds": 0,
    "training.joint_rounds": 1,
    "training.settle_steps": 0,
    "training.batch_documents": 32,
}


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def data(tmp_path_factory, cases, write):
    folder = tmp_path_factory.mktemp("cail")
    for number, (part, count) in enumerate({"train": 90, "valid": 30, "test": 40}.items()):
        write(folder / f"{part}.json", cases(count, seed=number))
    return folder


@pytest.fixture(scope="module")
def command(data):
    changes = [word for name, value in SMALL.items() for word in ("--set", f"{name}={value}")]
    return ["reproduce", "cail", "--data", data, "--least-cases", 10, "--threads", 1, "--cases", 2, *changes]


@pytest.fixture(scope="module")
def out(command, tmp_path_factory):
    folder = tmp_path_factory.mktemp("legal") / "out"
    methods = "full-text,infocal,infocal-joint,topjudge,mpbfn,fla"
    result = run(*command, "--out", folder, "--methods", methods, "--tasks", "article,charge")
    assert result.exit_code == 0, result.output
    assert "charge" in result.stdout
    assert "second instance" in result.stdout
    assert "given the texts of 0 of the 3 law articles" in " ".join(result.stderr.split())
    shutil.copy(folder / "cases.html", folder.parent)  # tests that ask for no page remove it
    return folder


def test_the_table_has_every_row_and_task(out):
    rows = list(csv.DictReader((out / "table.csv").read_text().splitlines()))
    assert {(row["row"], row["task"]) for row in rows} == {
        (name, task)
        for name in ("full-text", "infocal", "infocal-joint", "topjudge", "mpbfn", "fla")
        for task in ("article", "charge")
    }
    for row in rows:
        assert row["source"] == "measured"  # the paper's figures are of other data
        everything = row["row"] in ("full-text", "topjudge", "mpbfn", "fla")
        assert (float(row["selected"]) == 1.0) == everything
        assert (
            float(row["macro_f1"])
            <= best_macro_f1(float(row["macro_precision"]), float(row["macro_recall"])) + 1e-6
        )
    page = (out / "table.md").read_text()
    assert "| train cases | 90 |" in page
    assert "| read | 90 | 30 | 40 |" in page
    assert "| not readable | 0 | 0 | 0 |" in page
    assert "| several charges | 0 | 0 | 0 |" in page
    assert "given the texts of 0 of the 3 law articles" in page
    assert "27 of the 66 cells" in page
    assert "InfoCal, all tasks in one" in page
    errors = page.split("## Are the probabilities right?")[1]
    for title in ("InfoCal", "InfoCal, all tasks in one"):
        for task in ("article", "charge"):
            line = next(line for line in errors.splitlines() if line.startswith(f"| {title} | {task} |"))
            plain = line.split("|")[3].strip()
            assert 0 <= float(plain) <= 1
    assert "TOPJUDGE" not in errors
    assert not (out / "warm-ups").exists()


def test_a_run_that_fails_leaves_the_others(command, tmp_path, monkeypatch):
    trained = judgements.train_model

    def explode(folder, prepared, settings, **options):
        if settings.select == 0.3:  # the term's
            raise TrainingError("the rationalizer's loss became nan at step 7")
        return trained(folder, prepared, settings, **options)

    monkeypatch.setattr(judgements, "train_model", explode)
    base = (*command, "--out", tmp_path / "o", "--methods", "infocal", "--tasks")
    result = run(*base, "article,term")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "o" / "table.md").read_text()
    assert "infocal, term, seed 0 failed and is not in the table: the rationalizer's loss became nan" in page
    assert "failed and is not in the table" in " ".join(result.stderr.split())
    assert "| InfoCal | - | - | - | - | - | 0 | - |" in page.split("## term")[1]
    shown = (tmp_path / "o" / "cases.html").read_text()
    assert "<h3>article</h3>" in shown and "<h3>term</h3>" not in shown
    result = run(*base, "term")
    assert result.exit_code == 5
    assert "became nan" in result.stderr


def test_the_page_of_cases_shows_facts_with_marks_for_each_task(out):
    page = (out.parent / "cases.html").read_text()
    assert page.count("<section") == 2
    assert page.count("<mark") >= 4
    assert page.count('lang="zh"') == 2 + page.count('class="infocal-text"')
    assert "Noto Sans CJK SC" in page
    assert "被告人" in page


METHODS = "full-text,infocal,infocal-joint,topjudge,mpbfn,fla"


def changed(folder, name):
    return {path: path.stat().st_mtime_ns for path in folder.rglob(name)}


def test_what_is_done_is_not_done_again(out, command):
    before = changed(out, "result.json")
    result = run(*command, "--out", out, "--methods", METHODS, "--tasks", "article,charge")
    assert result.exit_code == 0, result.output
    assert result.stderr.count("done already") == len(before)
    assert before == changed(out, "result.json")


def test_what_is_trained_is_only_scored_again(out, command):
    """After a kill before the figures were written, and for another decoder."""
    results = json.loads((out / "runs/topjudge/article+charge/seed0/result.json").read_text())
    trained = {**changed(out, "model.json"), **changed(out, "weights.safetensors")}
    for name in ("topjudge", "fla"):
        (out / f"runs/{name}/article+charge/seed0/result.json").unlink()
    result = run(*command, "--out", out, "--methods", METHODS, "--tasks", "article,charge", "--decoder", "spans")
    assert result.exit_code == 0, result.output
    assert result.stderr.count("done already") == 3  # full-text twice, mpbfn: no words are chosen
    assert trained == {**changed(out, "model.json"), **changed(out, "weights.safetensors")}
    again = json.loads((out / "runs/topjudge/article+charge/seed0/result.json").read_text())
    assert again["tasks"] == results["tasks"]
    assert again["seconds"] == results["seconds"] > 0


def test_other_settings_and_other_articles_are_another_run(out, command, tmp_path):
    words = [*command, "--out", out, "--tasks", "article,charge"]
    other = run(*words, "--methods", "topjudge", "--set", "training.clip=0.5")
    assert "is of other data or settings; remove it" in other.stderr
    assert other.exit_code == 2
    (tmp_path / "law.jsonl").write_text(json.dumps({"article": "264", "text": "盗窃公私财物"}) + "\n")
    other = run(*words, "--methods", "fla", "--articles", tmp_path / "law.jsonl")
    assert "is of other data or settings" in other.stderr


def test_one_task_by_a_model_of_all(out, command):
    result = run(*command, "--out", out, "--methods", "infocal-joint,topjudge", "--tasks", "charge", "--cases", 0)
    assert result.exit_code == 0, result.output
    assert "charge" in result.stdout
    assert "cases.html" not in result.stdout


def test_a_line_that_cannot_be_read_is_left_out_and_told(command, data, tmp_path):
    for path in data.iterdir():
        (tmp_path / path.name).write_bytes(
            path.read_bytes() + (b"{broken\n" if path.name == "train.json" else b"")
        )
    words = [tmp_path if word == data else word for word in command]
    words = [*words, "--out", tmp_path / "o", "--methods", "topjudge", "--tasks", "charge"]
    assert "train.json, line 91" in run(*words).stderr
    assert run(*words, "--skip-bad").exit_code == 0
    said = " ".join(run(*words).stderr.split())  # of the cases that are there, a line was left out
    assert "holds another preparation (with --skip-bad there);" in said
    assert "`infocal prepare cail --overwrite` replaces it; or remove it, or name another folder" in said
    page = (tmp_path / "o" / "table.md").read_text()
    assert "| not readable | 1 | 0 | 0 |" in page
    assert "- Left out: " in page and "train.json, line 91" in page
    assert "law articles (--articles)" not in page  # FLA was not asked for


def test_fla_needs_the_articles(out, command):
    result = run(*command, "--out", out, "--methods", "fla", "--tasks", "charge")
    assert "fla needs the task article; add it to --tasks, or leave fla out" in " ".join(result.stderr.split())


class _Killed(BaseException):
    """In place of kill -9."""


def test_a_begun_run_does_not_go_on_with_another_law(command, tmp_path, monkeypatch):
    words = [*command, "--out", tmp_path / "o", "--methods", "fla", "--tasks", "article,charge"]
    (tmp_path / "law.jsonl").write_text(json.dumps({"article": "264", "text": "盗窃公私财物"}) + "\n")
    with monkeypatch.context() as patch:

        def killed(*_):
            raise _Killed

        patch.setattr(runs, "save_weights", killed)  # the training is over, and its last state on file
        with pytest.raises(_Killed):
            CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)
    assert (tmp_path / "o/runs/fla/article+charge/seed0" / CHECKPOINT).is_file()
    other = run(*words, "--articles", tmp_path / "law.jsonl")
    assert "beginnings of a run with other data or settings" in " ".join(other.stderr.split())
    assert other.exit_code == 2
    assert run(*words).exit_code == 0
    shutil.rmtree(tmp_path / "o" / "runs")
    result = run(*words, "--articles", tmp_path / "law.jsonl")
    assert "given the texts of 1 of the 3 law articles" in " ".join(result.stderr.split())


@pytest.mark.parametrize("method", ["topjudge", "infocal"])
def test_a_run_that_is_killed_when_its_model_is_saved_is_not_trained_again(command, tmp_path, monkeypatch, method):
    words = [*command, "--out", tmp_path / "o", "--methods", method, "--tasks", "charge"]
    with monkeypatch.context() as patch:
        unlink = Path.unlink

        def killed(self, missing_ok=False):
            if self.name == CHECKPOINT:  # the weights are saved
                raise _Killed
            unlink(self, missing_ok=missing_ok)

        patch.setattr(Path, "unlink", killed)
        with pytest.raises(_Killed):
            CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)
    weights = changed(tmp_path / "o" / "runs", "weights.safetensors")
    assert len(weights) == 1
    result = run(*words)
    assert result.exit_code == 0, result.output
    assert weights == changed(tmp_path / "o" / "runs", "weights.safetensors")


def test_articles_that_nobody_reads_are_told(command, out, tmp_path):
    (tmp_path / "law.jsonl").write_text(json.dumps({"article": "264", "text": "盗窃公私财物"}) + "\n")
    words = [*command, "--out", out, "--methods", "topjudge", "--tasks", "article,charge"]
    result = run(*words, "--articles", tmp_path / "law.jsonl")
    assert "only fla uses them" in " ".join(result.stderr.split())
    assert "cases.html" not in result.stdout  # no row shows words


@pytest.mark.parametrize(
    "name", ["cases.html", "table.csv", "runs/topjudge/article+charge/seed0/weights.safetensors"]
)
def test_files_of_others_are_not_replaced(command, tmp_path, name):
    path = tmp_path / "o" / name
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    result = run(*command, "--out", tmp_path / "o", "--methods", "topjudge", "--tasks", "article,charge")
    assert result.exit_code == 2
    assert "is not of this experiment, which would replace it" in " ".join(result.stderr.split())
    assert [item for item in (tmp_path / "o").rglob("*") if item.is_file()] == [path]
    assert path.read_text() == "mine"


def test_what_was_begun_goes_on_with_other_cases_when_the_old_ones_are_removed(command, tmp_path, monkeypatch):
    words = [*command, "--out", tmp_path / "o", "--methods", "infocal", "--tasks", "charge"]
    with monkeypatch.context() as patch:

        def killed(*_, **__):
            raise _Killed

        patch.setattr(runs, "save_model", killed)
        with pytest.raises(_Killed):
            CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)
    result = run(*words, "--least-cases", 5)
    said = " ".join(result.stderr.split())
    assert (
        "another preparation (--least-cases 10 there, 5 here);" in said and "or remove it, or name another" in said
    )
    shutil.rmtree(tmp_path / "o" / "cases")
    assert run(*words).exit_code == 0


def test_prepared_cases_that_are_damaged_are_told_with_what_to_do(out, command, tmp_path):
    shutil.copytree(out / "cases", tmp_path / "o" / "cases")
    (tmp_path / "o" / "cases" / "vocabulary.json").write_text("{}")
    result = run(*command, "--out", tmp_path / "o", "--methods", "topjudge", "--tasks", "article,charge")
    assert result.exit_code == 3
    said = " ".join(result.stderr.split())
    assert "vocabulary.json: the file is missing or damaged" in said
    assert "as `infocal prepare` wrote it; run it again with --overwrite, or after removing the folder" in said


def test_an_empty_folder_of_the_name_is_not_ours(command, tmp_path):
    (tmp_path / "o" / "cases").mkdir(parents=True)
    (tmp_path / "o" / "table.md").write_text("mine")
    result = run(*command, "--out", tmp_path / "o", "--methods", "topjudge", "--tasks", "charge")
    assert "is not of this experiment" in " ".join(result.stderr.split())
    assert (tmp_path / "o" / "table.md").read_text() == "mine"


def test_a_page_of_cases_that_goes_is_told(command, out):
    words = [*command, "--out", out, "--tasks", "article,charge", "--methods", "infocal"]
    assert "cases.html" in run(*words).stdout
    result = run(*words, "--cases", 0)
    assert not (out / "cases.html").exists()
    assert "cases.html of an earlier call is removed" in " ".join(result.stderr.split())


def test_rows_that_read_all_words_stay_when_another_share_is_asked_for(out, command):
    words = [*command, "--out", out, "--tasks", "article,charge", "--methods", "full-text,topjudge"]
    result = run(*words, "--select", "charge=0.5", "--cases", 0)
    assert result.exit_code == 0, result.output
    assert result.stderr.count("done already") == 3


def test_article_texts_are_read(command, data, tmp_path):
    (tmp_path / "law.jsonl").write_text(json.dumps({"article": "264", "text": "盗窃公私财物"}) + "\n{}\n")
    words = [*command, "--out", tmp_path / "o", "--methods", "topjudge,fla", "--articles", tmp_path / "law.jsonl"]
    result = run(*words)
    assert result.exit_code == 3
    assert not (tmp_path / "o" / "runs").exists()  # said before another row is trained
    assert "law.jsonl" in result.stderr
    assert "line 2" in result.stderr or ":2" in result.stderr


def test_the_user_says_which_data_it_is(out, command):
    words = [*command, "--out", out, "--methods", "topjudge", "--tasks", "article,charge", "--cases", 0]
    assert run(*words, "--official", "big").exit_code == 0
    assert "| the paper's data | CAIL-big, by --official |" in (out / "table.md").read_text()
    assert "TOPJUDGE, as published" in (out / "table.md").read_text()
    assert not (out / "cases.html").exists()  # one of other runs would not belong to the table
    assert run(*words).exit_code == 0
    page = (out / "table.md").read_text()
    assert "| the paper's data | no, by its size" in page
    assert "as published" not in page


def test_the_page_of_the_experiment_names_every_option_and_row():
    page = (Path(__file__).parents[2] / "docs" / "legal.md").read_text(encoding="utf-8")
    for parameter in reproduce_cail.cail.params:
        assert any(f"`{name}" in page or f" {name}" in page for name in parameter.opts), parameter.opts
    assert all(f"`{row}`" in page for row in reproduce_cail.ROWS)


def test_articles_of_other_names_are_not_passed_over(command, tmp_path):
    (tmp_path / "law.jsonl").write_text(json.dumps({"article": "第264条", "text": "盗窃公私财物"}) + "\n")
    result = run(*command, "--out", tmp_path / "o", "--methods", "fla", "--articles", tmp_path / "law.jsonl")
    assert result.exit_code == 3
    assert "law.jsonl: the articles are called '第264条'" in " ".join(result.stderr.split())
    assert "names as in the cases: '133', '234', '264'" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("wrong", "said", "code"),
    [
        (("--set", "training.jont_rounds=1"), "jont_rounds", 2),
        (("--articles", "nope.jsonl"), "nope.jsonl: there is no such file", 3),
        (("--vectors", "nope.txt"), "nope.txt: there is no such file", 3),
        (("--set", "text.max_tokens=50"), "text.max_tokens is 50, but the texts are encoded already", 2),
        (("--set", "mpbfn.filters=3"), "add mpbfn to --methods", 2),
        (("--set", 'topjudge.parents={"term":["law"]}'), "topjudge.parents names the task 'law'", 2),
        (("--set", 'topjudge.parents={"article":["term"]}'), "topjudge.parents leads in a circle", 2),
        (("--set", "topjudge.parents.term=[charge]"), "give all of it: topjudge.parents=...", 2),
    ],
)
def test_options_are_checked_before_the_cases_are_prepared(command, tmp_path, wrong, said, code):
    result = run(*command, "--out", tmp_path / "o", "--methods", "infocal,fla,topjudge", *wrong)
    assert result.exit_code == code
    assert said in " ".join(result.stderr.split())
    assert not (tmp_path / "o").exists()


def test_a_missing_package_is_said_before_anything_is_trained(command, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    result = run(*command, "--out", tmp_path / "o", "--methods", "infocal,fla")
    assert result.exit_code == 6
    assert "pip install 'infocal[legal]'" in " ".join(result.stderr.split())
    assert not (tmp_path / "o").exists()


def test_data_without_a_test_file_is_refused_before_it_is_prepared(command, data, tmp_path):
    shutil.copy(data / "train.json", tmp_path / "train.json")
    words = [tmp_path if word == data else word for word in command]
    result = run(*words, "--out", tmp_path / "o")
    assert "there are no test cases" in result.stderr
    assert not (tmp_path / "o").exists()


@pytest.fixture(scope="module")
def without_valid(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("released")
    for part in ("train", "test"):
        shutil.copy(data / f"{part}.json", folder)
    return folder


def test_cases_are_held_out_where_there_is_no_file_of_them(command, data, without_valid, tmp_path):
    words = [without_valid if word == data else word for word in command]
    result = run(*words, "--out", tmp_path, "--methods", "topjudge")
    assert result.exit_code == 0, result.output
    assert "9 of 90 rows are held out" in " ".join(result.stderr.split())


def test_what_is_held_out_stays_on_disk_and_is_the_same_for_a_seed(without_valid, tmp_path):
    assert run("prepare", "cail", "--data", without_valid, "--out", tmp_path, "--least-cases", 10).exit_code == 0
    settings = load_settings(seed=3)
    first, second, other = (open_encoded(tmp_path, "charge", load_settings(seed=seed)) for seed in (3, 3, 4))
    assert first.dev.fingerprint() == second.dev.fingerprint() != other.dev.fingerprint()
    assert not set(first.train.lines.tolist()) & set(first.dev.lines.tolist())
    assert len(first.train) + len(first.dev) == 90
    assert len(first.dev) == round(settings.training.dev_share * 90)
    assert set(first.dev.targets.tolist()) == {0, 1, 2}  # every charge keeps its share
    assert isinstance(first.train.ids, View) and isinstance(first.dev.ids, View)
    several = open_encoded(tmp_path, ["article", "charge"], settings)
    assert several.dev.targets.shape == (len(several.dev), 2)
    assert "a part of the same" in several.summary["held_out_source"]


def test_shares_of_other_tasks_are_refused(command, tmp_path):
    words = [*command, "--out", tmp_path / "out", "--tasks", "article,charge", "--select", "term=0.2"]
    result = run(*words)
    assert result.exit_code == 2
    assert "there are shares of words for term; allowed: for article, charge" in result.stderr


def test_other_epochs_are_another_run(out, command):
    words = [*command, "--out", out, "--methods", "topjudge", "--tasks", "article,charge"]
    assert "is of other data or settings" in run(*words, "--epochs", 2).stderr
