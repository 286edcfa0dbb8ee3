"""Training on an encoded corpus from the command line: what may be asked of it, and what the model remembers."""

import json

import pytest
from click.testing import CliRunner

from infocal.cli import main

pytest.importorskip("pyarrow")
pytest.importorskip("rjieba")

TINY = {
    "encoder.hidden_width": 8,
    "text.width": 8,
    "model.feature_width": 8,
    "training.warm_up_rounds": 1,
    "training.joint_rounds": 1,
    "training.least_round_steps": 3,
    "training.settle_steps": 2,
}
CHANGES = [word for name, value in TINY.items() for word in ("--set", f"{name}={value}")]


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture(scope="module")
def files(tmp_path_factory, cases, write):
    folder = tmp_path_factory.mktemp("files")
    for number, part in enumerate(("train", "valid", "test")):
        write(folder / f"{part}.json", cases(60, seed=number))
    return folder


@pytest.fixture(scope="module")
def corpus(files, tmp_path_factory):
    out = tmp_path_factory.mktemp("encoded") / "cases"
    words = ("--least-cases", 5, "--max-tokens", 25, "--processes", 1)
    assert run("prepare", "cail", "--data", files, "--out", out, *words).exit_code == 0
    return out


@pytest.fixture(scope="module")
def model(corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("trained") / "model"
    result = run("train", corpus, "--label", "charge", "--out", out, *CHANGES)
    assert result.exit_code == 0, result.output
    assert "(--max-tokens when they are prepared changes that)" in " ".join(result.stderr.split())
    return out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--task", "regress"), "--task cannot be used with it"),
        (("--task", "charge=regress"), "--task cannot be used with it"),
        (("--set", "task=regress"), "--task cannot be used with it"),
        (("--rationale", "words"), "--rationale cannot be used with it"),
        (("--skip-bad",), "--skip-bad cannot be used with it"),
        (("--set", "text.segmenter=characters"), "encoded already, with 'chinese'; leave it out"),
        (("--set", "text.max_tokens=50"), "with 25; leave it out, or prepare them anew with --max-tokens"),
        (("--set", "text.min_count=50"), "text.min_count is 50, but the texts are encoded already, with 2"),
        (("--set", "text.max_words=50"), "text.max_words is 50"),
        (("--set", "text.unknown_buckets=7"), "text.unknown_buckets is 7"),
    ],
)
def test_what_an_encoded_corpus_cannot_give_is_refused(corpus, tmp_path, words, said):
    result = run("train", corpus, "--label", "charge", "--out", tmp_path / "model", *words)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
    assert not (tmp_path / "model").exists()


def test_the_saved_settings_say_how_the_texts_were_cut(model):
    text = json.loads((model / "model.json").read_text())["settings"]["text"]
    assert (text["segmenter"], text["max_tokens"]) == ("chinese", 25)


def test_a_model_of_cases_reads_files_of_cases_as_they_are(model, files):
    result = run("explain", model, "--input", files / "test.json", "--format", "json", "--limit", 2)
    assert result.exit_code == 0, result.output
    first = json.loads((files / "test.json").read_text().splitlines()[0])
    assert json.loads(result.stdout.splitlines()[0])["text"] == first["fact"]


def test_cases_may_stand_in_a_file_of_text_and_behind_a_broken_line(model, files, tmp_path):
    content = (files / "test.json").read_text()
    (tmp_path / "cases.txt").write_text(content)
    result = run("explain", model, "--input", tmp_path / "cases.txt", "--format", "json", "--limit", 1)
    assert json.loads(result.stdout)["text"] == json.loads(content.splitlines()[0])["fact"]
    (tmp_path / "facts.txt").write_text("被告人李某窃得现金500元\n")
    result = run("explain", model, "--input", tmp_path / "facts.txt", "--format", "json")
    assert json.loads(result.stdout)["text"] == "被告人李某窃得现金500元"
    (tmp_path / "broken.json").write_text("{broken\n" + content)
    assert "broken.json, line 1" in " ".join(run("evaluate", model, tmp_path / "broken.json").stderr.split())
    result = run("evaluate", model, tmp_path / "broken.json", "--skip-bad", "--json", "-")
    assert json.loads(result.stdout)["n"] == 60


def test_new_cases_are_scored_in_the_layout_of_the_challenge(model, corpus, files, tmp_path):
    whole = json.loads(run("evaluate", model, corpus, "--json", "-").stdout)
    result = run("evaluate", model, files / "test.json", "--json", "-")
    assert result.exit_code == 0, result.output
    again = json.loads(result.stdout)
    for name in ("n", "accuracy", "macro_f1", "selected"):
        assert again[name] == pytest.approx(whole[name])
    lines = (files / "test.json").read_text(encoding="utf-8").splitlines()
    other = json.loads(lines[3])
    other["meta"]["relevant_articles"] = [264, 266]
    lines[3] = json.dumps(other, ensure_ascii=False)
    (tmp_path / "new.json").write_text("\n".join(lines), encoding="gb18030")
    result = run("evaluate", model, tmp_path / "new.json")
    assert result.exit_code == 3
    assert "new.json, line 4: the case is left out: several articles" in " ".join(result.stderr.split())
    result = run("evaluate", model, tmp_path / "new.json", "--skip-bad", "--json", "-")
    assert json.loads(result.stdout)["n"] == whole["n"] - 1
    result = run("explain", model, "--input", tmp_path / "new.json", "--format", "json", "--limit", 4)
    shown = [json.loads(line) for line in result.stdout.splitlines()]
    assert [one["text"] for one in shown] == [json.loads(line)["fact"] for line in lines[:4]]
    assert [one.get("label") is None for one in shown] == [False, False, False, True]


def test_new_cases_are_scored_from_a_file_with_a_column_for_each_label(model, files, tmp_path):
    cases = [json.loads(line) for line in (files / "test.json").read_text().splitlines()]
    rows = [{"fact": case["fact"], "charge": case["meta"]["accusation"][0]} for case in cases]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "new.jsonl").write_text(lines)
    result = run("evaluate", model, tmp_path / "new.jsonl", "--json", "-")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["n"] == len(rows)


def test_a_folder_in_place_of_a_file_is_called_what_it_is(model, corpus, files, tmp_path):
    result = run("explain", model, "--input", corpus)
    assert result.exit_code == 3
    said = " ".join(result.stderr.split())
    assert "which keeps numbers of words and no texts; allowed: a file of texts" in said
    named = ("--dev", corpus, "--test", corpus, "--methods", "infocal", "--out", tmp_path / "o")
    result = run("compare", corpus, *named)
    assert result.exit_code == 3
    assert "this is a folder of `infocal prepare`" in " ".join(result.stderr.split())
    said = " ".join(run("explain", model, "--input", files).stderr.split())
    assert "`infocal prepare cail` makes one that `infocal train` and `evaluate` take" in said


def test_held_out_cases_that_are_training_cases_are_told(tmp_path, cases, write):
    for part in ("train", "valid"):
        write(tmp_path / f"{part}.json", cases(60, seed=0))
    words = ("--least-cases", 5, "--processes", 1)
    assert run("prepare", "cail", "--data", tmp_path, "--out", tmp_path / "cases", *words).exit_code == 0
    result = run("train", tmp_path / "cases", "--label", "charge", "--out", tmp_path / "model", *CHANGES)
    assert "60 of the 60 held-out texts have the words of a training text" in " ".join(result.stderr.split())


def test_a_finished_run_on_encoded_cases_is_known(corpus, model):
    words = ("train", corpus, "--out", model, "--resume", *CHANGES)
    assert "nothing to resume" in run(*words, "--label", "charge").stdout
    for others, found in (
        (("--label", "term"), "with another label;"),
        (("--label", "charge", "--set", "text.max_tokens=50"), "text.max_tokens is 50, but the texts are encoded"),
        (("--label", "charge", "--set", "text.max_tokens=25"), "nothing to resume"),
    ):
        assert found in " ".join(run(*words, *others).output.split())


def test_who_takes_the_one_for_the_other_is_told(corpus, files, tmp_path):
    """A folder of cases is not prepared yet; one that is, is not prepared again."""
    result = run("train", files, "--label", "charge", "--out", tmp_path / "model")
    assert "`infocal prepare cail`" in " ".join(result.stderr.split())
    result = run("train", files / "train.json", "--label", "charge", "--out", tmp_path / "model")
    assert "--text fact and --label article, charge or term" in " ".join(result.stderr.split())
    result = run("prepare", "cail", "--data", corpus, "--out", tmp_path / "cases")
    assert result.exit_code == 3
    assert "this is what `infocal prepare` wrote" in " ".join(result.stderr.split())
