"""The model card: what stands in it, and that a user's words do nothing in it."""

import re
from types import SimpleNamespace

from infocal.card import model_card
from infocal.config import load_settings
from infocal.tasks import Classification


def card(classes, notes=()):
    return model_card(
        SimpleNamespace(
            settings=load_settings(),
            task=Classification(tuple(classes)),
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
