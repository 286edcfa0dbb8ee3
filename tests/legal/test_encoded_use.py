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
    assert "(`infocal prepare cail --max-tokens` changes that)" in " ".join(result.stderr.split())
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
