"""Settings: recipes extend one another, changes are checked, errors list the choices."""

import pytest

from infocal.config import load_settings, recipe_names
from infocal.errors import SettingsError
from infocal.settings import Settings


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_is_valid_and_survives_yaml(name, tmp_path):
    settings = load_settings(name)
    path = tmp_path / "again.yaml"
    path.write_text(settings.to_yaml(), encoding="utf-8")
    assert load_settings(path) == settings


def test_recipes_extend_and_changes_come_last(tmp_path):
    (tmp_path / "base.yaml").write_text("select: 0.4\nencoder: {kind: lstm}\n", encoding="utf-8")
    child = tmp_path / "child.yaml"
    child.write_text("extends: base.yaml\nencoder: {hidden_width: 7}\n", encoding="utf-8")
    settings = load_settings(child, ["loss.imitation=0.5"], seed=9)
    assert (settings.select, settings.encoder.kind, settings.encoder.hidden_width) == (0.4, "lstm", 7)
    assert (settings.loss.imitation, settings.seed) == (0.5, 9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("loss.imitatoin=1", "did you mean 'imitation'"),
        ("lose.imitation=1", "did you mean 'loss'"),
        ("encoder.kind=cnn", "rcnn"),
        ("select=1.5", "select is 1.5; allowed: a share of words between 0 and 1"),
        ("loss=3", "group of settings"),
        ("training.clip", "name=value"),
        ("training.learning_rate=.nan", "finite"),
        ("loss.calibration_window=4", "^loss.calibration_window is 4: allowed: an odd number, or auto"),
        ("loss.calibration_window=-1", "calibration_window is -1"),
        ("seed=18446744073709551616", "seed is"),
    ],
)
def test_wrong_changes_say_what_is_allowed(change, message):
    with pytest.raises(SettingsError, match=message):
        load_settings("infocal", [change])


def test_nobody_gets_fewer_rounds_than_the_default():
    usual = load_settings().training
    least = usual.warm_up_rounds + usual.joint_rounds
    for name in recipe_names():
        training = load_settings(name).training
        assert training.warm_up_rounds + training.joint_rounds >= (
            10 if name in ("attention", "demo") else least
        ), name


def test_unknown_recipes_broken_yaml_and_circles(tmp_path):
    with pytest.raises(SettingsError, match="infocal"):
        load_settings("nothing")
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [", encoding="utf-8")
    with pytest.raises(SettingsError, match="not a YAML"):
        load_settings(broken)
    loop = tmp_path / "loop.yaml"
    loop.write_text("extends: loop.yaml\n", encoding="utf-8")
    with pytest.raises(SettingsError, match="extends itself"):
        load_settings(loop)


def test_settings_are_frozen_and_know_no_other_names():
    settings = load_settings()
    with pytest.raises(ValueError, match="frozen"):
        settings.select = 0.9
    with pytest.raises(SettingsError, match="there is no setting 'colour'"):
        Settings.parse({**settings.model_dump(), "colour": "red"})


def test_a_method_that_cannot_learn_from_evidence_says_so():
    with pytest.raises(SettingsError, match="hardkuma does not learn from human evidence"):
        load_settings(method="hardkuma", changes={"loss.rationale_supervision": 1.0})


def test_method_and_recipe_must_agree():
    assert load_settings("printed", method="infocal").method == "infocal"
    assert load_settings(method="l2x").l2x.temperature == 0.5
    assert load_settings("l2x").method == "l2x"
    with pytest.raises(SettingsError, match="recipe printed is of the method infocal, not of l2x"):
        load_settings("printed", method="l2x")
    with pytest.raises(SettingsError, match=r"method 'nix' is unknown; choose from infocal, .*car"):
        load_settings(method="nix")


def test_settings_of_a_method_that_is_not_used_are_unknown():
    with pytest.raises(SettingsError, match="there is no setting 'l2x'"):
        load_settings(method="hardkuma", changes={"l2x.temperature": 1.0})
