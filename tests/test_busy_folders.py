"""A folder that another process is writing: every verb that writes one is refused, at once, and decides inside."""

import json
import os

import pytest
from click.testing import CliRunner

from infocal.cli import main
from infocal.comparison import compare
from infocal.data.toy import toy_reviews, write_toy
from infocal.files import one_at_a_time
from infocal.training import preparation

pytestmark = pytest.mark.skipif(os.name != "posix", reason="folders are locked on POSIX systems only")


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def assert_busy(result):
    assert (result.exit_code, result.stdout) == (7, "")
    assert "another infocal process is at work in" in " ".join(result.stderr.split())


@pytest.fixture
def folder(tmp_path):
    for part, seed in (("train", 1), ("dev", 2), ("test", 3)):
        write_toy(tmp_path / f"{part}.jsonl", toy_reviews(60, seed=seed))
        (tmp_path / f"{part}.json").write_text(
            json.dumps(
                {
                    "fact": "被告人李某窃得手机一部。",
                    "meta": {
                        "accusation": ["盗窃"],
                        "relevant_articles": [264],
                        "term_of_imprisonment": {
                            "imprisonment": 6,
                            "life_imprisonment": False,
                            "death_penalty": False,
                        },
                    },
                },
                ensure_ascii=False,
            )
        )
    return tmp_path


def commands(folder):
    train, dev, test = (folder / f"{part}.jsonl" for part in ("train", "dev", "test"))
    return {
        "train": ["train", train],
        "train --resume": ["train", train, "--resume"],
        "train --overwrite": ["train", train, "--overwrite"],
        "compare": ["compare", train, "--dev", dev, "--test", test, "--methods", "infocal"],
        "reproduce beer": ["reproduce", "beer", "--reviews", train, "--aspects", "appearance"],
        "reproduce cail": ["reproduce", "cail", "--data", folder],
        "prepare cail": ["prepare", "cail", "--data", folder],
    }


@pytest.mark.parametrize("verb", ["train", "train --resume", "train --overwrite", "compare"])
def test_who_writes_a_folder_is_told_at_once(folder, verb):
    out = folder / "out"
    out.mkdir()
    (out / "settings.yaml").write_text("seed: 1")  # what a run that is going on has written
    with one_at_a_time(out):
        (folder / "train.jsonl").write_text("")  # an error if it were read
        assert_busy(run(*commands(folder)[verb], "--out", out))
    assert [item.name for item in out.iterdir()] == ["settings.yaml"]


@pytest.mark.parametrize("verb", ["reproduce cail", "prepare cail"])
def test_who_reproduces_or_prepares_is_told(folder, verb):
    pytest.importorskip("pyarrow")
    pytest.importorskip("rjieba")
    with one_at_a_time(folder / "out"):
        assert_busy(run(*commands(folder)[verb], "--out", folder / "out"))
    assert not (folder / "out").exists()


def test_who_reproduces_beer_is_told(folder):
    lines = [
        json.dumps({"text": f"it looks {word}", "appearance": score})
        for word, score in (("fine", 0.9), ("poor", 0.2), ("so so", 0.5)) * 20
    ]
    (folder / "train.jsonl").write_text("\n".join(lines))
    with one_at_a_time(folder / "out"):
        assert_busy(run(*commands(folder)["reproduce beer"], "--out", folder / "out"))


def test_training_decides_and_reads_where_nobody_else_does(folder, monkeypatch, tiny_options):
    """A second process that was refused only when it has read its data could have found a finished model there."""
    words = [*commands(folder)["train"], "--out", folder / "model", *tiny_options]
    usual, others = preparation.prepare, []

    def prepare(*arguments, **options):
        if not others:
            others.append(None)
            others[0] = run(*words)
        return usual(*arguments, **options)

    monkeypatch.setattr(preparation, "prepare", prepare)
    result = run(*words)
    assert result.exit_code == 0, result.output
    assert_busy(others[0])


def test_a_comparison_decides_what_is_missing_where_nobody_else_does(folder, monkeypatch):
    words, others = [*commands(folder)["compare"], "--out", folder / "out"], []

    def check(*_):
        others.append(run(*words))
        raise KeyboardInterrupt

    monkeypatch.setattr(compare, "_check_data", check)
    assert run(*words).exit_code == 130
    assert_busy(others[0])
    assert not (folder / "out").exists()
