import re
from pathlib import Path

import pytest
import yaml

from infocal import config

PAGE = Path(__file__).parents[1] / "docs" / "python.md"
TINY = {
    "encoder": {"hidden_width": 8},
    "text": {"width": 8},
    "training": {
        "warm_up_rounds": 1,
        "joint_rounds": 1,
        "settle_steps": 2,
        "least_round_steps": 3,
        "most_round_steps": 3,
    },
}


@pytest.fixture
def tiny_recipe(tmp_path, monkeypatch):
    """The default recipe with sizes that train in a moment, so that the page can show the real calls."""
    values = yaml.safe_load((config.RECIPES / "infocal.yaml").read_text(encoding="utf-8"))
    for group, changes in TINY.items():
        assert changes.keys() <= values[group].keys()
        values[group] |= changes
    (tmp_path / "infocal.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    monkeypatch.setattr(config, "RECIPES", tmp_path)


def test_the_pages_snippets_run_in_order(tiny_recipe, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    namespace = {}
    for block in re.finditer(r"^```python\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL):
        line = page[: block.start(1)].count("\n")
        code = compile("\n" * line + block[1], str(PAGE), "exec")  # errors then name the page's own line
        exec(code, namespace)
    assert "row 3: the text is None" in capsys.readouterr().out.splitlines()[-1]
    assert namespace["result"]["n"] == 300
    assert (tmp_path / "model" / "README.md").is_file()
