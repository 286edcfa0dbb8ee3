"""Article, charge and term by one model, from an encoded corpus to explanations."""

import json

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import infocal
from infocal.cli import main
from infocal.data.encoded import EncodedFolder
from infocal.errors import DataError, ModelError, SettingsError
from infocal.legal.prepare import Request, prepare_cases
from infocal.loading import load_one
from infocal.types import Batch, Document

pytest.importorskip("pyarrow")
pytest.importorskip("rjieba")

LABELS = ("article", "charge", "term")


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def several():
    return [item for label in LABELS for item in ("--label", label)]


@pytest.fixture(scope="module")
def encoded(tmp_path_factory, cases, write):
    folder = tmp_path_factory.mktemp("several")
    parts = {}
    for number, (part, count) in enumerate({"train": 120, "valid": 30, "test": 30}.items()):
        write(folder / f"{part}.json", cases(count, seed=number))
        parts[part] = [folder / f"{part}.json"]
    prepare_cases(Request(parts=parts, out=folder / "cases", least_cases=10))
    return folder / "cases"


@pytest.fixture(scope="module")
def model(encoded, tmp_path_factory, tiny_options):
    out = tmp_path_factory.mktemp("joint") / "model"
    result = run("train", encoded, *several(), "--out", out, *tiny_options)
    assert result.exit_code == 0, result.output
    assert all(f"{label}: 30 held-out rows" in result.stdout for label in LABELS)
    return out


def test_targets_have_a_column_for_each_label(encoded):
    folder = EncodedFolder.open(encoded)
    both = folder.part("train", ["charge", "term"])
    assert np.array_equal(both.targets, np.stack([folder.part("train", x).targets for x in ("charge", "term")], 1))
    with pytest.raises(DataError, match="no label 'money'"):
        folder.part("train", ["charge", "money"])


def test_every_label_is_scored(model, encoded, tmp_path):
    result = run("evaluate", model, encoded, "--json", tmp_path / "figures.json")
    assert result.exit_code == 0, result.output
    assert "charge: Predictions on 30 rows" in result.stdout
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["n"] == 30
    assert list(figures["tasks"]) == list(LABELS)
    for scores in figures["tasks"].values():
        assert {"accuracy", "macro_f1", "selected", "full_text", "faithfulness", "calibration"} <= set(scores)
    assert run("evaluate", model, encoded, "--label", "charge").exit_code == 2


def test_every_label_is_explained_with_words_of_its_own(model):
    text = "被告人李某在超市盗窃手机一部，价值人民币二千元。"
    (found,) = infocal.load(model).explain(text, full_text=True)
    assert list(found) == list(LABELS)
    for label, explanation in found.items():
        assert explanation.task == label
        assert explanation.spans
        assert explanation.full_text_prediction is not None
    result = run("explain", model, text, "--format", "json")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["task"] for line in lines] == list(LABELS)
    assert [line["prediction"] for line in lines] == [one.prediction for one in found.values()]
    assert "charge " in run("explain", model, text).stdout
    assert "charge <bdi>" in run("explain", model, text, "--format", "html").stdout


def test_a_row_that_cannot_be_read_is_told_once(model):
    from infocal.data.readers import BadRows

    bad = BadRows(skip=True)
    rows = [Document("盗窃手机"), Document("   "), Document("打伤他人", label="x")]
    found = list(infocal.load(model).explain_documents(rows, bad_rows=bad))
    assert [(one.text, one.task, one.label) for one in found] == [
        (text, label, None) for text in ("盗窃手机", "打伤他人") for label in LABELS
    ]
    assert bad.count == 1


def test_a_saved_model_answers_as_before_and_damage_is_told(model, tmp_path):
    first = infocal.load(model)
    first.save(tmp_path / "copy")
    second = infocal.load(tmp_path / "copy")
    texts = ["被告人盗窃手机", "被告人醉酒驾驶机动车"]
    assert first.predict(texts) == second.predict(texts)
    assert "Predicts several labels" in (tmp_path / "copy" / "README.md").read_text()
    with pytest.raises(ModelError, match="several labels \\(article, charge, term\\)"):
        load_one(model)
    header = json.loads((tmp_path / "copy" / "model.json").read_text())
    del header["parts"]["term"]
    (tmp_path / "copy" / "model.json").write_text(json.dumps(header))
    with pytest.raises(ModelError, match="parts are"):
        infocal.load(tmp_path / "copy")


def test_what_is_for_one_label(encoded, tmp_path):
    result = run("train", encoded, *several(), "--method", "hardkuma", "--out", tmp_path / "m")
    assert result.exit_code != 0
    assert "hardkuma answers one task" in result.stderr
    assert "use one of infocal\n" in result.stderr
    assert not (tmp_path / "m").exists()  # nothing is begun that stands in the way of the right command
    assert "Traceback" not in result.output


def test_a_method_that_shows_no_evidence_is_not_trained_for_it(encoded, tmp_path):
    result = run("train", encoded, *several(), "--recipe", "topjudge", "--out", tmp_path / "m")
    assert result.exit_code == 2
    assert "shows no evidence; `infocal reproduce cail` compares with it" in " ".join(result.stderr.split())


def test_a_labels_answer_hangs_on_its_own_words_alone(model):
    """With the mask fixed, other words change nothing of a loaded model's answer, bit for bit."""
    whole = infocal.load(model)
    view = whole.parts["charge"].method
    ids = torch.randint(1, len(whole.vocabulary), (2, 9), generator=torch.Generator().manual_seed(0))
    mask, selected = torch.ones(2, 9, dtype=torch.bool), torch.zeros(2, 9, dtype=torch.bool)
    selected[:, 2:4] = True
    other = torch.where(selected, ids, torch.roll(ids, 1, dims=1))
    batches = [Batch(ids=values, mask=mask, rows=torch.arange(2)) for values in (ids, other)]
    first, second = (view.predict(batch, selected) for batch in batches)
    assert torch.equal(first, second)


def test_a_part_is_not_saved_as_if_it_were_a_model(model, tmp_path):
    with pytest.raises(SettingsError, match="save the whole"):
        infocal.load(model).parts["charge"].save(tmp_path / "part")
    assert not (tmp_path / "part").exists()


def test_the_progress_bar_tells_of_every_label():
    from rich.console import Console

    from infocal.training.tracking import ProgressBar

    console = Console(record=True, width=200)
    figures = {"article": {"accuracy": 0.5}, "term": {"mse": 2.0}}
    record = {"phase": "joint", "round": 1, "dev": {"guide": figures, "selection": figures, "selected": 0.2}}
    ProgressBar(console, lines=True).round({**record, "rate": 0.2, "seconds": 3.0})
    assert "full text article accuracy 0.500, term mse 2.000" in console.export_text()
