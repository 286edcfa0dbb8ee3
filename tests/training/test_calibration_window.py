"""Over how many words attributions are averaged where the recipe leaves it open."""

import pytest

from infocal.data.readers import BadRows
from infocal.fitting import calibration_window, resolve_settings
from infocal.training.preparation import prepare
from infocal.types import Document


@pytest.mark.parametrize(
    ("median_tokens", "window"), [(1, 3), (16, 3), (27, 3), (29, 5), (36, 5), (43, 7), (63, 9), (1000, 9)]
)
def test_the_window_grows_with_the_texts_from_three_to_nine(median_tokens, window):
    assert calibration_window(median_tokens) == window


@pytest.mark.parametrize(("words", "window"), [(6, 3), (40, 5)])
def test_the_settings_of_a_run_name_the_window_that_its_texts_call_for(tiny, words, window):
    texts = [Document(" ".join(["word"] * words), label) for label in ("a", "b")] * 10
    settings = tiny(loss__calibration_window="auto")
    prepared = prepare(texts, None, settings, bad_rows=BadRows(skip=False))
    assert resolve_settings(settings, prepared).loss.calibration_window == window


def test_a_window_that_the_user_has_set_stays(tiny):
    texts = [Document("some words here", label) for label in ("a", "b")] * 10
    settings = tiny(loss__calibration_window=7)
    prepared = prepare(texts, None, settings, bad_rows=BadRows(skip=False))
    assert resolve_settings(settings, prepared).loss.calibration_window == 7
