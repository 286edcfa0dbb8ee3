"""Several label columns of an ordinary file: read, trained, scored and explained together."""

import csv
import json

import pytest
from click.testing import CliRunner

import infocal
from infocal.cli import main
from infocal.data.readers import BadRows, read_documents
from infocal.errors import DataError
from infocal.tasks import Classification, Joint, Regression
from infocal.training.labelling import settle_labels

WORDS = {"good": 4.5, "bad": 1.5, "fair": 3.0}
PLACES = ("hotel", "train", "museum")


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def rows_of(count):
    words = list(WORDS)
    for number in range(count):
        word, place = words[number % 3], PLACES[number // 3 % 3]
        yield f"the {place} was {word} on day {number % 7}", place, WORDS[word] + number % 2 / 4


def write(path, rows, header=("text", "place", "stars")):
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([header, *rows])
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory, tiny_options):
    folder = tmp_path_factory.mktemp("columns")
    data = write(folder / "rows.csv", rows_of(90))
    result = run("train", data, "--label", "place", "--label", "stars", "--out", folder / "model", *tiny_options)
    assert result.exit_code == 0, result.output
    assert "place: 9 held-out rows" in result.stdout
    assert "stars: 9 held-out rows" in result.stdout
    assert "the words each prediction was made from" in result.stdout
    return folder / "model"


def test_classes_and_scores_stand_side_by_side(model):
    whole = infocal.load(model)
    assert {name: type(task) for name, task in whole.task.tasks.items()} == {
        "place": Classification,
        "stars": Regression,
    }
    (found,) = whole.explain("the hotel was good on day 3")
    assert found["place"].prediction in PLACES
    assert 1.5 <= found["stars"].prediction <= 4.75
    assert "place" in (model / "README.md").read_text(encoding="utf-8")


def test_a_file_is_scored_label_by_label(model, tmp_path):
    data = write(tmp_path / "test.csv", rows_of(30))
    result = run("evaluate", model, data, "--json", tmp_path / "figures.json")
    assert result.exit_code == 0, result.output
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["n"] == 30
    assert "accuracy" in figures["tasks"]["place"]
    assert "mse" in figures["tasks"]["stars"]
    assert run("evaluate", model, data, "--label", "stars", "--label", "place").exit_code == 0
    result = run("evaluate", model, data, "--label", "stars")
    assert result.exit_code == 2
    assert "the model's labels are place, stars" in result.stderr
    assert run("evaluate", model, data, "--part", "test").exit_code == 2


def test_an_unknown_class_is_told_with_its_label_and_line(model, tmp_path):
    data = write(tmp_path / "test.csv", [*rows_of(4), ("the zoo was good", "zoo", 4.5)])
    result = run("evaluate", model, data)
    assert result.exit_code == 3
    message = " ".join(result.stderr.split())
    assert "line 6: label 'place':" in message
    assert "zoo" in message
    result = run("evaluate", model, data, "--skip-bad", "--json", "-")
    assert json.loads(result.stdout)["skipped"] == 1


def test_explanations_show_the_true_labels_where_the_file_has_them(model, tmp_path):
    data = write(tmp_path / "rows.csv", [("the hotel was good", "hotel", 4.5)])
    result = run("explain", model, "--input", data, "--format", "json")
    assert [json.loads(line)["label"] for line in result.stdout.splitlines()] == ["hotel", 4.5]
    bare = write(tmp_path / "bare.csv", [("the hotel was good",)], header=("text",))
    result = run("explain", model, "--input", bare, "--format", "json")
    assert result.exit_code == 0, result.output
    assert all("label" not in json.loads(line) for line in result.stdout.splitlines())
    result = run("explain", model, "--input", bare, "--label", "place", "--label", "stars")
    assert result.exit_code == 3
    assert "place" in result.stderr


def test_evidence_is_not_for_several_labels(tmp_path):
    data = write(tmp_path / "rows.csv", rows_of(9))
    labels = ("--label", "place", "--label", "stars")
    result = run("train", data, *labels, "--rationale", "why", "--out", tmp_path / "model")
    assert result.exit_code == 2
    assert "which of several labels" in result.stderr
    result = run("train", data, *labels, "--method", "hardkuma", "--out", tmp_path / "model")
    assert result.exit_code == 2
    assert "hardkuma answers one task" in result.stderr
    assert not (tmp_path / "model").exists()


def test_a_missing_or_empty_label_is_named(tmp_path):
    data = write(tmp_path / "rows.csv", [*rows_of(3), ("the hotel was good", "", 4.5)])
    with pytest.raises(DataError, match="line 5: the label 'place' is empty"):
        list(read_documents(data, bad_rows=BadRows(), label=["place", "stars"]))
    with pytest.raises(DataError, match="money"):
        list(read_documents(data, bad_rows=BadRows(), label=["place", "money"]))
    kept = list(read_documents(data, bad_rows=BadRows(skip=True), label=["place", "stars"]))
    assert [document.label["place"] for document in kept] == ["hotel"] * 3


def settle(labels, *, skip=False, kind="auto"):
    import numpy as np

    bad = BadRows(skip=skip)
    lines = np.arange(2, 2 + len(labels), dtype=np.int32)
    return settle_labels(labels, lines, kind, source="rows.csv", bad_rows=bad, from_text=False), bad


def test_a_row_left_out_for_one_label_may_leave_a_class_of_another_alone():
    pairs = [("x", "p"), ("x", "p"), ("y", "p"), ("y", "q"), ("z", "q"), ("x", "r"), ("y", "r")]
    labels = [{"a": a, "b": b} for a, b in pairs]
    with pytest.raises(DataError, match="line 6: label 'a': the class 'z' has no other row"):
        settle(labels)
    found, bad = settle(labels, skip=True)
    assert isinstance(found.goal, Joint)
    assert found.rows.tolist() == [0, 1, 2, 5, 6]  # without z's row q is alone
    assert bad.count == 2
    assert found.targets.tolist() == [[0, 0], [0, 0], [1, 0], [0, 1], [1, 1]]


def test_all_labels_are_what_task_says():
    found, _ = settle([{"a": 1, "b": 2}, {"a": 2, "b": 4}, {"a": 1, "b": 2}, {"a": 2, "b": 4}], kind="regress")
    assert all(isinstance(task, Regression) for task in found.goal.tasks.values())
    with pytest.raises(DataError, match="label 'b': every label is 2"):
        settle([{"a": 1, "b": 2}, {"a": 2, "b": 2}], kind="regress")
