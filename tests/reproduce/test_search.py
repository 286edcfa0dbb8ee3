"""Ranges of weights, and what is drawn from them."""

import pytest

from infocal.config import load_settings
from infocal.errors import SettingsError
from infocal.reproduce.search import Range, Search, read_search, search_names


def test_the_papers_ranges_are_those_it_states():
    beer, legal = read_search("paper-beer"), read_search("paper-legal")
    assert beer.ranges["loss.selection_information"].values()[:2] == [0.0001, 0.0002]
    assert [len(one.values()) for one in beer.ranges.values()] == [10, 10, 11, 11]
    assert [len(one.values()) for one in legal.ranges.values()] == [11, 10, 11, 11]
    assert beer.points() == 10 * 10 * 11 * 11


@pytest.mark.parametrize("name", search_names())
def test_what_the_paper_chose_lies_in_its_ranges_and_all_settings_exist(name):
    search = read_search(name)
    settings = load_settings(search.recipe)
    for setting, one in search.ranges.items():
        group, field = setting.split(".")
        assert getattr(getattr(settings, group), field) in one.values()
    for drawn in search.draw(5, seed=0):
        load_settings(search.recipe, drawn)


def test_draws_differ_follow_the_seed_and_end_with_the_grid():
    search = Search("infocal", {"a": Range(0, 1, 0.5), "b": Range(2, 3, 1)})
    assert search.draw(100, seed=0) == search.draw(6, seed=0)
    assert len({tuple(drawn.values()) for drawn in search.draw(6, seed=0)}) == 6
    assert search.draw(3, seed=1) == search.draw(5, seed=1)[:3]
    assert search.draw(3, seed=1) != search.draw(3, seed=2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("recipe: infocal", "not a search"),
        ("recipe: infocal\nranges: {loss.imitation: {first: 0, last: 1}}", "'step'"),
        ("recipe: infocal\nranges: {loss.imitation: {first: 2, last: 1, step: 1}}", "no values"),
        ("recipe: infocal\nranges: {loss.imitation: {first: 0, last: 1, step: 0.3}}", "whole steps"),
        ("a: [", "not a search"),
    ],
)
def test_a_search_that_cannot_be_read(tmp_path, content, message):
    (tmp_path / "mine.yaml").write_text(content)
    with pytest.raises(SettingsError, match=message):
        read_search(tmp_path / "mine.yaml")
    with pytest.raises(SettingsError, match=r"paper-beer, paper-legal"):
        read_search("none")
