"""The folder of an encoded corpus: a second preparation, files of the user's own, damage."""

import json
import shutil
from pathlib import Path

import pytest

from infocal.data.encoded import EncodedFolder, is_encoded
from infocal.errors import DataError, SettingsError
from infocal.legal import folder
from infocal.legal.prepare import prepare_cases

pytest.importorskip("pyarrow")
pytest.importorskip("rjieba")
pytestmark = pytest.mark.usefixtures("small_blocks")


def test_a_second_call_does_nothing_and_another_plan_is_refused(tmp_path, asked):
    out = tmp_path / "out"
    first = prepare_cases(asked(out))
    before = {item.name: item.stat().st_mtime_ns for item in out.iterdir()}
    assert prepare_cases(asked(out)) == first
    assert {item.name: item.stat().st_mtime_ns for item in out.iterdir()} == before
    for changes, found in (
        ({"least_cases": 5}, "--least-cases 10 there, 5 here"),
        ({"max_tokens": 7, "least_cases": 5}, "--least-cases 10 there, 5 here; --max-tokens 1000 there, 7 here"),
        ({"segmenter": "characters"}, "segmenter chinese there, characters here"),
        (
            {"parts": {"train": asked(out).parts["train"]}},
            r"for valid it read 'valid\.json', and none are named here",
        ),
    ):
        with pytest.raises(SettingsError, match=rf"another preparation \({found}.*--overwrite"):
            prepare_cases(asked(out, **changes))
    assert prepare_cases(asked(out, least_cases=1, overwrite=True))["labels"]["charge"][-1] == "抢劫"


def test_another_preparation_that_is_begun_stays(tmp_path, asked):
    out = tmp_path / "out"
    prepare_cases(asked(out))
    (out / "work").mkdir()
    (out / "work" / "plan.json").write_text('{"format": 1, "least_cases": 7}')
    prepare_cases(asked(out))
    assert (out / "work" / "plan.json").exists()


def test_what_other_rules_made_is_not_the_same(tmp_path, monkeypatch, asked):
    prepare_cases(asked(tmp_path / "out"))
    monkeypatch.setattr(folder, "RULES", folder.RULES + 1)
    with pytest.raises(SettingsError, match=r"another preparation \(of another version of infocal\)"):
        prepare_cases(asked(tmp_path / "out"))


def test_files_that_changed_are_named(tmp_path, asked, files):
    shutil.copytree(files, tmp_path / "cases")
    prepare_cases(asked(tmp_path / "out", where=tmp_path / "cases"))
    with (tmp_path / "cases" / "test.json").open("a") as stream:
        stream.write("\n")
    with pytest.raises(SettingsError, match=r"another preparation \(changed since: 'test\.json'\)"):
        prepare_cases(asked(tmp_path / "out", where=tmp_path / "cases"))


def test_a_folder_of_the_users_own_is_left_alone(tmp_path, asked):
    (tmp_path / "mine.txt").touch()
    with pytest.raises(SettingsError, match="did not write"):
        prepare_cases(asked(tmp_path, overwrite=True))
    assert (tmp_path / "mine.txt").exists()


@pytest.mark.parametrize("name", ["mine.txt", "work/mine.txt", "test.json"])
def test_overwrite_never_throws_away_what_prepare_did_not_write(tmp_path, name, asked):
    out = tmp_path / "out"
    prepare_cases(asked(out))
    (out / "work").mkdir()
    (out / name).write_text("mine")
    with pytest.raises(SettingsError, match=f"did not write.*{name}.*name a new or empty folder"):
        prepare_cases(asked(out, least_cases=5, overwrite=True))
    assert (out / name).read_text() == "mine"
    assert is_encoded(out)


def test_a_manifest_of_something_else_is_not_ours(tmp_path, asked):
    (tmp_path / "manifest.json").write_text('{"format": 1, "kind": "music"}')
    with pytest.raises(SettingsError, match="did not write"):
        prepare_cases(asked(tmp_path, overwrite=True))
    assert (tmp_path / "manifest.json").exists()


def test_the_old_corpus_stays_until_the_new_one_is_complete(files, tmp_path, write, cases, asked, contents):
    out = tmp_path / "out"
    prepare_cases(asked(out))
    before = contents(out)
    bad = write(tmp_path / "train.json", cases(100))
    bad.write_bytes(bad.read_bytes() + b"{broken\n")
    other = {"parts": {"train": [bad], "valid": [files / "valid.json"]}, "overwrite": True}
    with pytest.raises(DataError, match="line 101"):
        prepare_cases(asked(out, **other))
    assert contents(out) == before
    assert len(EncodedFolder.open(out).part("train", "charge")) == 150
    write(bad, cases(60))
    prepare_cases(asked(out, **other))
    prepare_cases(asked(tmp_path / "whole", **other))
    assert contents(out) == contents(tmp_path / "whole")  # the vocabulary too is the new one
    assert sorted(item.name for item in out.iterdir()) == [
        "manifest.json",
        "train-00000.arrow",
        "train-00001.arrow",
        "valid-00000.arrow",
        "vocabulary.json",
    ]


def test_the_same_files_by_another_path_are_the_same(files, tmp_path, monkeypatch, asked):
    out = tmp_path / "out"
    first = prepare_cases(asked(out))
    assert str(files) not in (out / "manifest.json").read_text()
    monkeypatch.chdir(files)
    assert prepare_cases(asked(out, where=Path(), skip_bad=True)) == first
    (tmp_path / "linked").symlink_to(files)
    assert prepare_cases(asked(out, where=tmp_path / "linked")) == first


def edit(path, **changes):
    record = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({name: value for name, value in record.items() if value is not None}))


@pytest.mark.parametrize(
    ("damage", "file", "why"),
    [
        (lambda out, _: edit(out / "manifest.json", labels=None), "manifest", "labels: Field required"),
        (lambda out, _: edit(out / "manifest.json", parts=[1]), "manifest", "parts: "),
        (lambda out, _: edit(out / "manifest.json", max_tokens=None), "manifest", "max_tokens: "),
        (lambda out, _: edit(out / "vocabulary.json", words=["一"]), "vocabulary", "its checksum"),
        (lambda out, _: (out / "vocabulary.json").unlink(), "vocabulary", "No such file"),
        (lambda out, flip: flip(out / "train-00001.arrow"), "train-00001", "its checksum"),
        (
            lambda out, _: shutil.copy(out / "test-00000.arrow", out / "train-00000.arrow"),
            "train-00000",
            "its checksum",
        ),
        (lambda out, _: (out / "train-00002.arrow").unlink(), "train-00002", "No such file"),
    ],
)
def test_damage_is_seen_and_the_file_is_named(tmp_path, damage, file, why, asked, contents, flip):
    out = tmp_path / "out"
    prepare_cases(asked(out))
    whole = contents(out)
    damage(out, flip)
    message = rf"{file}\.\w+: the file is missing or damaged \({why}.*run it again with --overwrite"
    with pytest.raises(DataError, match=message):
        EncodedFolder.open(out).part("train", "charge")
    with pytest.raises(DataError, match=message):
        prepare_cases(asked(out))
    prepare_cases(asked(out, overwrite=True))
    assert contents(out) == whole


def test_damage_is_seen_without_checksums_too(tmp_path, asked):
    out = tmp_path / "out"
    made = prepare_cases(asked(out))
    for shard in made["parts"]["train"]["shards"]:
        del shard["crc32"]
    edit(out / "manifest.json", parts=made["parts"], labels={**made["labels"], "charge": ["盗窃"]})
    with pytest.raises(DataError, match="a class of charge that is none of the manifest's 1"):
        EncodedFolder.open(out).part("train", "charge")
    edit(out / "manifest.json", labels=made["labels"])
    assert len(EncodedFolder.open(out).part("train", "charge")) == 150
    edit(out / "manifest.json", labels={**made["labels"], "money": ["1"]})
    with pytest.raises(DataError, match="no column 'money'"):
        EncodedFolder.open(out).part("train", "charge")
    edit(out / "manifest.json", labels=made["labels"])
    shutil.copy(out / "train-00003.arrow", out / "train-00000.arrow")
    with pytest.raises(DataError, match=r"train-00000\.arrow: .* rows with .* tokens instead of 40 with"):
        EncodedFolder.open(out).part("train", "charge")


def test_a_corpus_without_its_summary_is_damaged(tmp_path, asked):
    prepare_cases(asked(tmp_path / "out"))
    edit(tmp_path / "out" / "manifest.json", summary=None)
    with pytest.raises(DataError, match="no summary"):
        prepare_cases(asked(tmp_path / "out"))
