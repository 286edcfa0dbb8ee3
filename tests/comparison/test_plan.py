"""Which runs there are, and when one counts as another."""

from dataclasses import replace

import pytest

from infocal.comparison.plan import Request, Sources, plan_runs
from infocal.data.readers import BadRows
from infocal.data.toy import toy_reviews, write_toy
from infocal.errors import SettingsError
from infocal.types import Document


@pytest.fixture
def request_for(tmp_path):
    for part, seed in (("train", 1), ("dev", 2), ("test", 3)):
        write_toy(tmp_path / f"{part}.jsonl", toy_reviews(8, seed=seed))
    sources = Sources(**{part: tmp_path / f"{part}.jsonl" for part in ("train", "dev", "test")})

    def make(*methods, **options):
        return Request(sources=sources, out=tmp_path / "out", methods=methods, **{"seeds": 2, **options})

    return make


def identities(request):
    return [run.identity for run in plan_runs(request)]


def test_every_contender_with_every_seed_and_its_own_file(request_for, tmp_path):
    mine = tmp_path / "my recipe.yaml"
    mine.write_text("extends: printed\nselect: 0.4\n")
    runs = plan_runs(request_for("infocal", "demo", str(mine), task="classify"))
    assert [(run.contender, run.seed) for run in runs] == [
        (name, seed) for seed in (0, 1) for name in ("infocal", "demo", "my recipe")
    ]
    assert [run.path.name for run in runs[:3]] == ["infocal-0.json", "demo-0.json", "my_recipe-0.json"]
    assert [run.settings.select for run in runs[:3]] == [0.2, 0.2, 0.4]
    assert runs[2].settings.loss.discrimination_form == "printed"
    assert len(set(identities(request_for("infocal", "demo", str(mine))))) == 6


def test_select_goes_to_all(request_for):
    assert {run.settings.select for run in plan_runs(request_for("infocal", "demo", select=0.15))} == {0.15}


def test_unknown_names_list_the_choices(request_for):
    with pytest.raises(SettingsError, match=r"'nix'.*methods: infocal, .*recipes: demo, .*YAML file"):
        plan_runs(request_for("infocal", "nix"))


@pytest.mark.parametrize("methods", [("demo", "demo"), ("demo", "other/demo.yaml")])
def test_two_of_one_name_are_refused(request_for, tmp_path, monkeypatch, methods):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "demo.yaml").write_text("select: 0.4\n")
    with pytest.raises(SettingsError, match="two of the methods are called 'demo'"):
        plan_runs(request_for(*methods))


def test_a_contender_cannot_be_called_like_the_human(request_for, tmp_path):
    (tmp_path / "human.yaml").write_text("select: 0.4\n")
    with pytest.raises(SettingsError, match="'human' is the row of the human's own words"):
        plan_runs(request_for(str(tmp_path / "human.yaml")))


def test_a_file_that_names_a_method_without_evidence_is_refused(request_for, tmp_path):
    (tmp_path / "mine.yaml").write_text("extends: topjudge\n")
    with pytest.raises(SettingsError, match="mine is the method topjudge, which shows no evidence"):
        plan_runs(request_for(str(tmp_path / "mine.yaml")))


@pytest.mark.parametrize(("named", "read"), [(None, True), ("", False), ("rationale", True)])
def test_an_empty_name_leaves_the_rationales_alone(request_for, named, read):
    sources = replace(request_for("demo").sources, rationale=named)
    assert any(row.rationale is not None for row in sources.read("test", BadRows())) is read


def test_files_without_rationales_can_be_read_with_an_empty_name(request_for, tmp_path):
    bare = [Document(row.text, row.label) for row in toy_reviews(4, seed=1)]
    write_toy(tmp_path / "test.jsonl", bare)
    sources = replace(request_for("demo").sources, rationale="")
    assert len(list(sources.read("test", BadRows()))) == 4


def test_nothing_to_compare_is_refused(request_for):
    with pytest.raises(SettingsError, match="nothing to compare"):
        plan_runs(request_for())


def test_a_setting_of_one_method_goes_to_that_method_only(request_for):
    request = request_for("infocal", "hardkuma", changes=("hardkuma.stretch=0.3", "encoder.dropout=0.1"))
    ours, theirs = plan_runs(request)[:2]
    assert ours.settings.hardkuma is None
    assert theirs.settings.hardkuma.stretch == 0.3
    assert ours.settings.encoder.dropout == theirs.settings.encoder.dropout == 0.1
    with pytest.raises(SettingsError, match="method car; add car to --methods"):
        plan_runs(request_for("infocal", changes=("car.sparsity=1",)))
    with pytest.raises(SettingsError, match="did you mean 'dropout'"):
        plan_runs(request_for("infocal", changes=("encoder.dropuot=1",)))


def test_identity_follows_settings_data_and_shares_but_not_places(request_for, tmp_path):
    request = request_for("infocal")
    before = identities(request)
    assert identities(replace(request, out=tmp_path / "elsewhere", decoder="spans", processes=4)) == before
    moved = tmp_path / "moved.jsonl"
    moved.write_bytes((tmp_path / "test.jsonl").read_bytes())
    assert identities(replace(request, sources=replace(request.sources, test=moved))) == before
    for other in (
        replace(request, shares=(0.1,)),
        replace(request, select=0.3),
        replace(request, changes=("encoder.dropout=0.1",)),
        replace(request, sources=replace(request.sources, skip_bad=True)),
        replace(request, sources=replace(request.sources, test=request.sources.dev)),
    ):
        assert not set(identities(other)) & set(before)
    write_toy(tmp_path / "train.jsonl", toy_reviews(9, seed=1))
    assert not set(identities(request)) & set(before)


def test_identity_follows_what_is_in_the_vectors_not_where_they_are(request_for, tmp_path):
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text("fine 1 2\n")
    two.write_text("fine 1 2\n")
    before = identities(request_for("infocal", vectors=one))
    assert before != identities(request_for("infocal"))
    assert before == identities(request_for("infocal", vectors=two))
    two.write_text("fine 1 3\n")
    assert before != identities(request_for("infocal", vectors=two))
