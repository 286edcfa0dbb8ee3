import io
import re

import pytest
from rich.console import Console

from infocal import demo
from infocal.config import load_settings
from infocal.data.toy import toy_reviews
from infocal.errors import SettingsError

SIZES = {
    "encoder.hidden_width": 16,
    "text.width": 16,
    "model.feature_width": 16,
    "training.warm_up_rounds": 1,
    "training.joint_rounds": 1,
    "training.settle_steps": 2,
    "training.least_round_steps": 2,
}


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(demo, "load_settings", lambda recipe, **top: load_settings(recipe, SIZES, **top))
    monkeypatch.setattr(demo, "DEV_ROWS", 40)
    monkeypatch.setattr(demo, "TEST_ROWS", 40)


def test_shows_saves_and_reports_the_same_figures(small, tmp_path):
    from infocal.loading import load_one as load

    console = Console(file=io.StringIO(), width=100)
    out, report = tmp_path / "model", tmp_path / "report.html"
    results = demo.run_demo(out, report, seed=3, rows=120, console=console)
    printed, page = console.file.getvalue(), report.read_text(encoding="utf-8")
    for name in ("average", "spans"):
        figures = results[name]
        again = load(out).evaluate(toy_reviews(40, seed=11), decoder=name)
        assert again | {"seconds": 0} == figures | {"seconds": 0}
        f1 = f"{figures['rationale']['f1']:.3f}"
        assert f1 in printed
        assert f1 in page
    assert len(re.findall(r"^(?:good|bad) \(\d+ %\) · ", printed, re.MULTILINE)) == 5
    assert printed.count("[[") >= 5
    assert page.count('<div class="infocal-explanation">') == 20
    assert not re.search(r"(src|href)=|https?://|<script", page)


def test_asks_for_the_share_of_words_that_decide(small, tmp_path):
    console = Console(file=io.StringIO())
    results = demo.run_demo(tmp_path / "model", tmp_path / "r.html", seed=0, rows=120, console=console)
    assert results["select"] == pytest.approx(results["average"]["rationale"]["gold_share"], abs=0.03)


def test_training_held_out_and_test_reviews_are_different():
    parts = [{document.text for document in part} for part in demo._reviews(1, 2400)]
    assert [len(part) > 250 for part in parts] == [True] * 3
    assert not (parts[0] & parts[2])
    assert not (parts[1] & parts[2])


def test_refuses_a_folder_with_other_files_before_it_trains(tmp_path):
    from infocal.errors import SettingsError

    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(SettingsError, match=r"thesis\.tex"):
        demo.run_demo(tmp_path, tmp_path / "r.html", seed=0, rows=100, console=Console(file=io.StringIO()))


def test_another_model_is_not_replaced(small, tmp_path):
    console, report = Console(file=io.StringIO()), tmp_path / "r.html"
    demo.run_demo(tmp_path / "model", report, seed=0, rows=120, console=console)
    header = tmp_path / "model" / "model.json"
    header.write_text(header.read_text().replace("generated watch reviews", "mine.csv"))
    with pytest.raises(SettingsError, match="not the demo's"):
        demo.run_demo(tmp_path / "model", report, seed=0, rows=120, console=console)


@pytest.mark.slow
def test_the_demo_finds_the_right_words(tmp_path):
    """The bar that `make demo` promises, with what it really trains."""
    results = demo.run_demo(
        tmp_path / "model", tmp_path / "r.html", seed=0, rows=2400, console=Console(file=io.StringIO())
    )
    assert results["average"]["rationale"]["f1"] >= 0.8
    assert results["spans"]["rationale"]["f1"] >= 0.8
