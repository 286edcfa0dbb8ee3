"""Temperatures of a trained model: fitted on held-out rows, saved, shown in probabilities, and nowhere else."""

import dataclasses
import json

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import infocal
from infocal.cli import main
from infocal.config import load_settings
from infocal.data.readers import BadRows
from infocal.errors import ModelError
from infocal.estimators import RationaleClassifier
from infocal.evaluation.calibration import Temperatures, expected_calibration_error, fit_temperatures
from infocal.fitting import fit
from infocal.training.inference import full_text_outputs
from infocal.types import Document

UNEVEN = Temperatures(predictor=3.0, full_text=0.5, rows=70)


@pytest.fixture(scope="module")
def held_out(suppers):
    return suppers(70, seed=2)


@pytest.fixture(scope="module")
def trained(suppers, held_out):
    """A model that was trained a little."""
    changes = {
        "text.width": 12,
        "encoder.hidden_width": 10,
        "model.feature_width": 8,
        "training.learning_rate": 0.01,
        "training.warm_up_rounds": 2,
        "training.most_round_steps": 10,
        "training.joint_rounds": 1,
        "training.batch_documents": 16,
        "training.settle_steps": 0,
        "loss.calibration_window": 3,
    }

    def make(documents=None, dev=held_out, **more):
        torch.set_num_threads(1)  # before the fixture of each test does it: sums depend on it
        return fit(documents or suppers(120, seed=0), load_settings("infocal", {**changes, **more}), dev=dev)

    return make


@pytest.fixture(scope="module")
def model(trained):
    return trained()


@pytest.fixture(scope="module")
def hot(model):
    """The same model with temperatures that are easy to see."""
    return dataclasses.replace(model, temperatures=UNEVEN)


@pytest.fixture(scope="module")
def texts(suppers):
    return [document.text for document in suppers(12, seed=5)]


def test_both_sides_are_fitted_on_the_held_out_rows(model, held_out):
    corpus = model.encode(held_out, bad_rows=BadRows(), source="held out")
    chosen = model.decision([document.text for document in held_out])
    expected = fit_temperatures(chosen, full_text_outputs(model.method, corpus), corpus.targets)
    assert model.temperatures.rows == 70
    assert model.temperatures.predictor == pytest.approx(expected.predictor, rel=1e-3)
    assert model.temperatures.full_text == pytest.approx(expected.full_text, rel=1e-3)
    assert model.temperatures.full_text != 1.0


def test_training_and_answers_are_the_same_without_them(trained, model, texts):
    plain = trained(**{"model.temperature_scaling": False})
    assert plain.temperatures == Temperatures()
    one, other = plain.method.state_dict(), model.method.state_dict()
    assert all(torch.equal(one[name], other[name]) for name in one)
    np.testing.assert_array_equal(plain.decision(texts), model.decision(texts))
    assert plain.predict(texts) == model.predict(texts)


def test_too_few_held_out_rows_give_none(trained, held_out):
    few = trained(dev=held_out[:49])
    assert few.temperatures == Temperatures(1.0, 1.0, 0)


def test_probabilities_have_the_temperature_and_answers_do_not(model, hot, texts):
    logits = model.decision(texts).astype(np.float64)
    np.testing.assert_array_equal(hot.decision(texts), model.decision(texts))
    shown = hot.predict_proba(texts)
    np.testing.assert_allclose(shown, hot.task.probabilities(logits / 3.0))
    assert hot.predict(texts) == model.predict(texts)
    for row, explanation in enumerate(hot.explain(texts)):
        assert next(iter(explanation.probabilities)) == explanation.prediction
        assert explanation.probabilities["yes"] == pytest.approx(shown[row, 1])


def test_the_estimator_shows_the_same_probabilities(hot, texts):
    np.testing.assert_allclose(RationaleClassifier.from_model(hot).predict_proba(texts), hot.predict_proba(texts))


def test_evaluation_says_how_far_probabilities_are_off(hot, suppers):
    test = suppers(60, seed=3)
    figures = hot.evaluate(test)
    corpus = hot.encode(test, bad_rows=BadRows(), source="test")
    full = full_text_outputs(hot.method, corpus).astype(np.float64)
    plain = hot.decision([row.text for row in test]).astype(np.float64)
    assert figures["calibration"] == {
        "error": pytest.approx(
            expected_calibration_error(hot.predict_proba([row.text for row in test]), corpus.targets)
        ),
        "full_text_error": pytest.approx(
            expected_calibration_error(hot.task.probabilities(full / 0.5), corpus.targets)
        ),
        "unscaled_error": pytest.approx(expected_calibration_error(hot.task.probabilities(plain), corpus.targets)),
        "full_text_unscaled_error": pytest.approx(
            expected_calibration_error(hot.task.probabilities(full), corpus.targets)
        ),
        "temperature": 3.0,
        "full_text_temperature": 0.5,
    }


def test_faithfulness_and_metrics_do_not_see_temperatures(model, hot, suppers):
    one, other = (m.evaluate(suppers(60, seed=3)) for m in (model, hot))
    for name in ("faithfulness", "full_text", "accuracy", "macro_f1", "rationale"):
        assert one[name] == other[name]
    assert one["calibration"] != other["calibration"]


def test_scores_have_none(trained, suppers):
    rows = [
        Document(row.text, 0.25 + (row.label == "yes") / 2 + row.line % 7 / 50) for row in suppers(120, seed=0)
    ]
    scored = trained(documents=rows, dev=rows[:60])
    assert scored.temperatures == Temperatures()
    assert scored.evaluate(rows[:10])["calibration"] is None


def test_they_are_saved_and_a_model_without_them_has_one(hot, tmp_path, texts):
    hot.save(tmp_path / "m")
    back = infocal.load(tmp_path / "m")
    assert back.temperatures == UNEVEN
    assert back.task == hot.task
    assert back.task.priors is not None
    np.testing.assert_allclose(back.predict_proba(texts), hot.predict_proba(texts), rtol=1e-5)
    assert "temperature of 3 (0.5 for the full text)" in (tmp_path / "m" / "README.md").read_text()

    header = tmp_path / "m" / "model.json"
    record = json.loads(header.read_text(encoding="utf-8"))
    del record["parts"][""]["temperatures"]
    del record["settings"]["model"]["temperature_scaling"], record["settings"]["loss"]["balance"]
    header.write_text(json.dumps(record), encoding="utf-8")
    assert infocal.load(tmp_path / "m").temperatures == Temperatures()
    for wrong in ({"predictor": -1.0}, {"predictor": "hot"}, {"warmth": 2.0}):
        record["parts"][""]["temperatures"] = wrong
        header.write_text(json.dumps(record), encoding="utf-8")
        with pytest.raises(ModelError, match="cannot be read"):
            infocal.load(tmp_path / "m")


def test_the_command_line_shows_them(hot, tmp_path, suppers):
    hot.save(tmp_path / "m")
    rows = [json.dumps({"text": row.text, "label": row.label}) for row in suppers(20, seed=3)]
    (tmp_path / "test.jsonl").write_text("\n".join(rows), encoding="utf-8")
    out = tmp_path / "figures.json"
    result = CliRunner().invoke(
        main, ["evaluate", str(tmp_path / "m"), str(tmp_path / "test.jsonl"), "--json", str(out)]
    )
    assert result.exit_code == 0
    assert "calibration error" in result.stdout
    calibration = json.loads(out.read_text(encoding="utf-8"))["calibration"]
    assert 0 <= calibration["error"] <= 1
    assert (calibration["temperature"], calibration["full_text_temperature"]) == (3.0, 0.5)
