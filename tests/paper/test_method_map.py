"""docs/method.md names real things."""

import importlib
import re
from pathlib import Path

import pytest

from infocal.config import load_settings

PAGE = (Path(__file__).parents[2] / "docs" / "method.md").read_text(encoding="utf-8")
NAMES = sorted(set(re.findall(r"`(infocal\.[\w.]+)`", PAGE)))
SETTINGS = sorted(
    set(re.findall(r"`((?:loss|model|gate|encoder|training|language_model)\.\w+)(?:=[\w<>]+)?`", PAGE))
)


def test_the_page_maps_all_losses_and_parts():
    assert len(NAMES) > 25


@pytest.mark.parametrize("name", NAMES)
def test_name_exists(name):
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return
    pytest.fail(f"{name} cannot be imported")


@pytest.mark.parametrize("name", SETTINGS)
def test_setting_exists(name):
    group, last = name.split(".")
    assert hasattr(getattr(load_settings(), group), last)
