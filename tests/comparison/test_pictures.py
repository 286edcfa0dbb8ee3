"""Figures and the page of cases."""

import re
from itertools import pairwise

import pytest

from infocal.comparison.cases import cases_html, draw_cases
from infocal.comparison.colours import PALETTE, look
from infocal.comparison.figures import carried, precision_recall, quality_by_share, write_figures
from infocal.comparison.plan import Sources
from infocal.data.toy import toy_reviews, write_toy
from infocal.types import Document

EVIL = "<script>alert('x')</script> & a \"quoted\" fine strap"
NAME = "<img src=x onerror=alert(1)>"


def case(spans):
    return {
        "prediction": "<b>bad</b>",
        "probabilities": {"<b>bad</b>": 0.8},
        "spans": spans,
        "share": 0.25,
        "read_to": len(EVIL),
        "label": "good",
    }


@pytest.fixture
def evil(make_results):
    given = {NAME: [(0.5, 0.8)], "plain": [(0.6, 0.8)], "failed": []}
    return make_results(given, cases={"7": case([[0, 8], [30, 35]])}, failures=[("failed", 0, "no")])


class TestCases:
    def test_everything_from_the_user_is_escaped(self, evil):
        page = cases_html(evil, [Document(EVIL, "good", ((4, 10),), 7)])
        assert "<script" not in page
        assert "<img" not in page
        assert "<b>bad" not in page
        assert "onerror=alert(1)&gt;" in page
        assert not re.search(r"(src|href)=\"|https?://", page)

    def test_human_and_every_finished_method_have_a_row_with_the_whole_text(self, evil):
        page = cases_html(evil, [Document(EVIL, "good", ((4, 10),), 7)])
        texts = re.findall(r'<div class="infocal-text".*?>(.*?)</div>', page, flags=re.DOTALL)
        plain = [re.sub(r"<[^>]*>", "", text) for text in texts]
        assert len(plain) == 3
        assert len(set(plain)) == 1
        assert re.findall(r'class="row ([\w-]+)"', page) == ["human", "by-0", "by-1"]
        assert "no finished run" in page

    def test_colour_is_not_the_only_sign(self):
        looks = [look(number) for number in range(7)]
        assert {item.colour for item in looks} == set(PALETTE)
        assert len({(item.colour, item.underline) for item in looks}) == 7
        assert all(one.underline != two.underline for one, two in pairwise(looks))
        assert len({(item.colour, item.dash) for item in map(look, range(14))}) == 14

    def test_texts_are_drawn_by_chance_among_those_with_gold(self, tmp_path):
        reviews = toy_reviews(60, seed=4)
        rows = [Document(row.text, row.label, row.rationale if n % 2 else None) for n, row in enumerate(reviews)]
        write_toy(tmp_path / "test.jsonl", rows)
        sources = Sources(**dict.fromkeys(("train", "dev", "test"), tmp_path / "test.jsonl"))
        drawn = draw_cases(sources, count=5)
        assert drawn == draw_cases(sources, count=5)
        assert drawn != draw_cases(sources, count=5, seed=1)
        assert len(drawn) == 5
        assert all(document.rationale for document in drawn)

    def test_data_without_gold_have_no_human_row(self, tmp_path, make_results):
        write_toy(tmp_path / "test.jsonl", [Document(row.text, row.label) for row in toy_reviews(3)])
        sources = Sources(**dict.fromkeys(("train", "dev", "test"), tmp_path / "test.jsonl"))
        drawn = draw_cases(sources)
        assert len(drawn) == 3
        assert 'class="row human"' not in cases_html(make_results({"a": [(None, 0.5)]}), drawn)


class TestFigures:
    def test_every_method_is_in_the_legend_whatever_its_name(self, make_results):
        names = ["_hidden", "$a$_b", "plain"]
        results = make_results({name: [(0.5, 0.8), (0.6, 0.7)] for name in names})
        for figure in (quality_by_share(results), precision_recall(results)):
            shown = [text.get_text().strip() for text in figure.legends[0].get_texts()]
            assert [text.replace("\\", "") for text in shown[:3]] == names

    def test_points_are_at_the_measured_shares_with_the_full_text_line(self, make_results):
        figure = quality_by_share(make_results({"a": [(0.5, 0.8), (0.5, 0.6)]}))
        (axis,) = figure.axes
        points = next(line for line in axis.lines if line.get_marker() == "o")
        assert list(points.get_xdata()) == pytest.approx([10, 20, 30])
        assert list(points.get_ydata()) == pytest.approx([65, 70, 75])
        assert any(set(line.get_ydata()) == {90.0} for line in axis.lines)

    def test_rounds_are_means_over_the_seeds(self, make_results):
        figure = precision_recall(make_results({"a": [(0.5, 0.8), (0.7, 0.6)]}))
        line = next(line for line in figure.axes[0].lines if line.get_marker() == "o")
        assert list(line.get_xdata()) == [1, 2]
        assert list(line.get_ydata()) == pytest.approx([60, 60])

    def test_settling_which_has_a_number_of_its_own_hides_no_round(self, make_results):
        results = make_results({"a": [(0.5, 0.8)]})
        results.runs["a"][0]["rounds"].append({"phase": "settle", "round": 1, "dev": {"selected": 0.1}})
        line = next(line for line in precision_recall(results).axes[0].lines if line.get_marker() == "o")
        assert list(line.get_xdata()) == [1, 2]

    def test_files_are_the_same_for_the_same_runs_and_old_ones_go(self, make_results, tmp_path):
        results = make_results({"a": [(0.5, 0.8)]})
        assert write_figures(tmp_path, results) == ["quality-by-share", "precision-recall-by-round"]
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        assert len(before) == 4
        write_figures(tmp_path, results)
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
        assert write_figures(tmp_path, make_results({"a": [(None, 0.8)]}, scores=True)) == ["quality-by-share"]
        assert {path.stem for path in tmp_path.iterdir()} == {"quality-by-share"}


def test_a_run_that_ended_sooner_counts_with_its_last_round():
    assert carried([{1: 10.0, 2: 20.0, 3: 30.0}, {}, {1: 40.0, 2: 50.0}]) == {
        1: [10.0, 40.0],
        2: [20.0, 50.0],
        3: [30.0, 50.0],
    }
    assert carried([{2: 1.0, 4: 3.0}, {1: 5.0, 2: 6.0}]) == {2: [1.0, 6.0], 3: [1.0, 6.0], 4: [3.0, 6.0]}
    assert carried([]) == carried([{}]) == {}
