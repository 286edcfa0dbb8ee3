"""The rows of the paper's tables of court cases: their settings, schedules and shares of words."""

from dataclasses import replace

import pytest

from infocal.cli import reproduce_cail
from infocal.reproduce import judgement_rows


def test_the_names_on_the_command_line_are_those_of_the_package():
    assert tuple(judgement_rows.ROWS) == reproduce_cail.ROWS
    assert judgement_rows.DEFAULT_ROWS == reproduce_cail.USUAL
    assert tuple(judgement_rows.TASKS) == reproduce_cail.TASKS


@pytest.mark.parametrize("name", ["topjudge", "infocal"])
def test_epochs_are_whole_passes(name):
    training = judgement_rows.Plan(rows=(name,), epochs=5).settings(name, "charge", 0).training
    assert (training.joint_rounds, training.joint_patience) == (5, 5)
    assert training.most_round_steps > 1_710_856  # a round is never cut before the end of the data
    assert training.least_round_steps == 1
    usual = judgement_rows.Plan(rows=(name,)).settings(name, "charge", 0).training
    assert usual.most_round_steps == 250
    assert usual.joint_rounds > 5


def test_everybody_may_read_all_words_as_long_as_the_judges():
    def rounds(row, *changes):
        training = judgement_rows.Plan(rows=(row,), changes=changes).settings(row, "charge", 0).training
        return training.warm_up_rounds, training.joint_rounds

    judges = rounds("topjudge")[1]
    assert judges == rounds("full-text")[1] == 16
    for row in ("infocal-joint", "infocal", "infocal-full", "bernoulli", "hardkuma"):
        assert rounds(row)[0] == judges
    assert rounds("infocal-no-guider")[0] == rounds("infocal-paper")[0] == 0  # nobody there reads all words first
    assert rounds("infocal-joint", "training.warm_up_rounds=3")[0] == 3  # what the user says wins


def test_choosing_words_has_the_same_price_with_a_guider_and_without():
    def rounds(row):
        return judgement_rows.Plan(rows=(row,)).settings(row, "charge", 0).training.joint_rounds

    for ours in ("infocal", "infocal-full", "infocal-no-lm", "infocal-joint"):
        assert 2 * rounds(ours) == rounds("bernoulli") == rounds("hardkuma") == rounds("infocal-no-guider")


def test_systems_of_one_task_share_an_encoder():
    rows = judgement_rows.ROWS
    kinds = {row: judgement_rows.Plan(rows=(row,)).settings(row, "charge", 0).encoder.kind for row in rows}
    alone = {row: kind for row, kind in kinds.items() if not rows[row].joint}
    assert set(alone.values()) == {"lstm"}
    assert kinds["infocal-joint"] == "rcnn"


def test_less_than_a_pass_is_said():
    plan = judgement_rows.Plan(rows=("infocal", "topjudge"))
    said = plan.schedule_note(102_400_000)
    assert "250 steps, about 1 % of these training cases, and methods have 16 to 24 rounds" in said
    assert plan.schedule_note(1_000_000) is None
    alone = replace(plan, rows=("topjudge",)).schedule_note(102_400_000)
    assert "methods have 16 rounds at most" in alone
    asked = replace(plan, epochs=3).schedule_note(102_400_000)
    assert asked.startswith("Before the 3 passes of --epochs some methods read all words for up to 16 passes")
    assert replace(plan, epochs=3, rows=("topjudge",)).schedule_note(102_400_000) is None
    longer = replace(plan, changes=("training.most_round_steps=500",))
    assert "500 steps, about 2 % of" in longer.schedule_note(102_400_000)


def test_a_model_of_all_tasks_has_the_share_of_each():
    def asked(row, task, **more):
        return judgement_rows.Plan(rows=(row,), **more).settings(row, task, 0).select

    assert asked("infocal", "charge") == 0.2
    assert asked("infocal", "charge", official="small") == 0.14
    assert asked("infocal-joint", "all") == {"article": 0.2, "charge": 0.2, "term": 0.3}
    assert asked("infocal-joint", "all", tasks=("article", "charge")) == 0.2
    assert asked("infocal-joint", "all", select=0.1) == 0.1
    assert asked("infocal-joint", "all", select={"term": 0.25}, official="small")["term"] == 0.25
    assert asked("topjudge", "all") == 0.2  # it reads all words, whatever is asked


def test_a_methods_own_settings_go_to_its_runs_only():
    plan = judgement_rows.Plan(rows=("topjudge", "fla"), changes=("fla.articles=3", "training.clip=0.5"))
    fla, topjudge = (plan.settings(name, "all", 0) for name in ("fla", "topjudge"))
    assert fla.fla.articles == 3
    assert topjudge.fla is None
    assert fla.training.clip == topjudge.training.clip == 0.5
