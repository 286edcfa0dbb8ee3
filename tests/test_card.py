"""The model card: what stands in it, and that a user's words do nothing in it."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from infocal.card import model_card
from infocal.config import load_settings
from infocal.evaluation.calibration import HIGHEST, LOWEST, Temperatures, fit_temperature
from infocal.tasks import Classification, Joint, Regression


def card(classes, notes=(), temperatures=None, **changes):
    return model_card(
        SimpleNamespace(
            settings=load_settings(changes=changes),
            task=Classification(tuple(classes)) if classes else Regression(0.0, 5.0, 0.1),
            temperatures=temperatures or Temperatures(),
            record={
                "data": {"training_rows": 3, "classes": dict.fromkeys(classes, 1)},
                "results": {"selected": 0.2},
                "notes": list(notes),
            },
        )
    )


def test_names_of_classes_stay_as_they_are():
    text = card(["not_good", "a|b"])
    assert "`not_good`, `a\\|b`" in text
    assert "| classes: not\\_good | 1 |" in text
    assert "| training rows | 3 |" in text


def test_nothing_of_the_users_words_acts_as_markdown():
    evil = ["[x](javascript:alert(1))", "![](http://t/x.png)", "<img src=x>", "`code`", "**b**"]
    text = card(evil, notes=["1 bad row left out: " + " ".join(evil)])
    table = text.split("## Data")[1]
    for active in ("[x]", "![", "<img", "`code`", "**b**"):
        assert not re.search(r"(?<!\\)" + re.escape(active), table)


def test_the_card_says_what_the_probabilities_of_this_model_are_worth():
    assert "not calibrated: no temperature was fitted" in card(["a", "b"])
    fitted = card(["a", "b"], temperatures=Temperatures(1.4, 2.25, 1200))
    assert "not calibrated" not in fitted
    assert "temperature of 1.4 (2.25 for the full text), fitted on 1,200 held-out rows" in fitted
    assert "robabilit" not in card([])


@pytest.mark.parametrize("end", [LOWEST, HIGHEST])
def test_the_card_does_not_call_probabilities_calibrated_that_no_temperature_suits(end):
    logits = np.tile([[9.0, 0.0]] if end == HIGHEST else [[1e-3, 0.0]], (60, 1))
    fitted = fit_temperature(logits, np.arange(60) % 2 if end == HIGHEST else np.zeros(60, dtype=int))
    said = card(["a", "b"], temperatures=Temperatures(fitted, 1.0, 60))
    assert "not calibrated: no temperature suits the held-out rows" in said


def test_the_card_says_that_rare_classes_were_strengthened():
    assert "loss.balance 0.5" in card(["a", "b"], **{"loss.balance": 0.5})
    assert "loss.balance" not in card(["a", "b"])
    assert "loss.balance" not in card([], **{"loss.balance": 0.5})  # scores have no classes


def test_each_of_several_labels_has_its_own_sentence():
    parts = {
        "charge": SimpleNamespace(task=Classification(("a", "b")), temperatures=Temperatures(1.5, 1.0, 60)),
        "term": SimpleNamespace(task=Regression(0.0, 5.0, 0.1), temperatures=Temperatures()),
        "article": SimpleNamespace(task=Classification(("x", "y")), temperatures=Temperatures()),
    }
    task = Joint({name: part.task for name, part in parts.items()})
    text = model_card(SimpleNamespace(settings=load_settings(), task=task, parts=parts, record={}))
    assert "- `charge`: Probabilities are calibrated" in text
    assert "- `article`: Probabilities are not calibrated" in text
    assert "- `term`: Probabilities" not in text
