"""A tiny known corpus: the label hangs on one phrase, and the model must find it without being told."""

import pytest

from infocal.config import load_settings
from infocal.fitting import fit
from infocal.loading import load_one as load
from infocal.types import Document


@pytest.fixture(scope="module")
def model(suppers):
    changes = {
        "text.width": 24,
        "encoder.hidden_width": 24,
        "model.feature_width": 16,
        "training.batch_documents": 32,
        "training.learning_rate": 0.005,
        "training.least_round_steps": 40,
        "training.warm_up_rounds": 3,
        "training.joint_rounds": 4,
        "training.settle_steps": 20,
    }
    return fit(suppers(500, 0), load_settings("infocal", changes, select=0.2))


def test_it_reaches_its_bar(model, suppers):
    scores = model.evaluate(suppers(200, 1))
    assert scores["accuracy"] >= 0.97
    assert scores["rationale"]["f1"] >= 0.7
    assert scores["selected"] == pytest.approx(0.2, rel=0.15)
    assert scores["full_text"]["accuracy"] >= 0.97
    assert abs(scores["faithfulness"]["sufficiency"]) < 0.1 < scores["faithfulness"]["comprehensiveness"]
    wanted = {"n", "accuracy", "macro_precision", "macro_recall", "macro_f1", "seconds", "faithfulness"}
    assert wanted <= scores.keys()
    assert {"precision", "recall", "f1", "iou_f1", "auprc", "n"} <= scores["rationale"].keys()


def test_a_saved_model_says_the_same_elsewhere(model, tmp_path, suppers):
    texts = [document.text for document in suppers(40, 2)]
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert [e.to_dict() for e in again.explain(texts)] == [e.to_dict() for e in model.explain(texts)]
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    for heading in ("## Data", "## Settings", "## Results on the held-out rows", "## Training", "## Limits"):
        assert heading in card
    assert "`no`, `yes`" in card


def test_explanations_are_ranges_of_the_readers_own_text(model):
    text = "We  had\r\na truly WONDERFUL\tsupper 👩‍👩‍👧 ｉｎ the cafe\u0301 …"
    (explanation,) = model.explain(text)
    assert explanation.text == text
    assert all(text[start:end].strip() for start, end in explanation.spans)
    assert "".join(text[a:b] for a, b in explanation.tokens) == "".join(text.split())
    assert explanation.share == sum(explanation.selected) / len(explanation.tokens)


def test_changing_an_unselected_word_with_the_mask_fixed_changes_nothing(model, suppers):
    from infocal.data.corpus import CorpusBuilder
    from infocal.training.inference import outputs

    document = suppers(1, 5)[0]
    (explanation,) = model.explain(document.text)
    words = [document.text[a:b] for a, b in explanation.tokens]
    changed = " ".join(w if s else "river" for w, s in zip(words, explanation.selected, strict=True))
    answers = []
    for text in (" ".join(words), changed):
        builder = CorpusBuilder(model.segmenter, max_tokens=1000, source="x")
        builder.add(Document(text))
        import numpy as np

        answers.append(outputs(model.method, builder.finish(model.vocabulary), np.array(explanation.selected)))
    assert (answers[0] == answers[1]).all()


def test_supervision_learns_from_marked_rows(suppers):
    changes = {
        "text.width": 16,
        "encoder.hidden_width": 16,
        "training.least_round_steps": 30,
        "training.warm_up_rounds": 1,
        "training.joint_rounds": 2,
        "training.settle_steps": 10,
        "training.learning_rate": 0.01,
        "loss.token_calibration": 0.0,  # which finds this corpus's words by itself
    }
    found = []
    for weight in (0.0, 5.0):
        settings = load_settings("infocal", {**changes, "loss.rationale_supervision": weight}, select=0.2)
        found.append(fit(suppers(300, 0), settings).evaluate(suppers(100, 1))["rationale"]["f1"])
    assert found[1] > max(0.9, found[0])
