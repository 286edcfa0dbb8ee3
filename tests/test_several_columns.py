"""Several label columns of an ordinary file: read, trained, scored and explained together."""

import csv
import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

import infocal
from infocal.cli import main
from infocal.config import load_settings
from infocal.data.readers import BadRows, documents_from, read_documents
from infocal.errors import DataError, SettingsError
from infocal.tasks import Classification, Joint, Regression
from infocal.training.labelling import settle_labels
from infocal.training.preparation import prepare

WORDS = {"good": 4.5, "bad": 1.5, "fair": 3.0}
PLACES = ("hotel", "train", "museum")
COLUMNS = ("text", "place", "stars")


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def rows_of(count):
    words = list(WORDS)
    for number in range(count):
        word, place = words[number % 3], PLACES[number // 3 % 3]
        yield f"the {place} was {word} on day {number % 7}", place, WORDS[word] + number % 2 / 4


def write(path, rows, header=COLUMNS):
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
    figures = json.loads(result.stdout)
    assert [figures["skipped"], *(part["skipped"] for part in figures["tasks"].values())] == [1, 1, 1]


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
    marked = write(tmp_path / "marked.csv", ((*row, "[[0, 3]]") for row in rows_of(9)), (*COLUMNS, "rationale"))
    result = run("train", marked, *labels, "--supervise", "--out", tmp_path / "model")
    assert result.exit_code == 2
    assert "--supervise is for one label" in result.stderr
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


def test_each_label_may_be_said_to_be_something():
    labels = [{"a": 1, "b": 2}, {"a": 2, "b": 4}, {"a": 1, "b": 2}, {"a": 2, "b": 4}]
    found, _ = settle(labels, kind={"b": "regress"})
    assert [type(task) for task in found.goal.tasks.values()] == [Classification, Regression]
    with pytest.raises(SettingsError, match="task names the label 'c'; allowed: one of 'a', 'b'"):
        settle(labels, kind={"c": "regress"})
    with pytest.raises(SettingsError, match="since there is one label"):
        settle([1, 2, 1, 2], kind={"label": "regress"})


def test_the_command_line_takes_a_kind_for_each_label(tmp_path, tiny_options):
    data = write(tmp_path / "rows.csv", ((text, place, round(stars)) for text, place, stars in rows_of(60)))
    command = ("train", data, "--label", "place", "--label", "stars", "--out", tmp_path / "model", *tiny_options)
    for wrong, said in (
        (("--task", "stars=number"), "allowed: auto, classify, regress, or one of these as LABEL=KIND"),
        (("--task", "auto", "--task", "stars=regress"), "labels by name"),
        (("--task", "money=regress"), "task names the label 'money'"),
    ):
        result = run(*command, *wrong)
        assert result.exit_code == 2, result.output
        assert said in " ".join(result.stderr.replace("│", " ").split())
    assert run(*command, "--task", "stars=regress").exit_code == 0
    assert isinstance(infocal.load(tmp_path / "model").task.tasks["stars"], Regression)


def test_the_command_line_takes_a_share_for_each_label(tmp_path, tiny_options):
    data = write(tmp_path / "rows.csv", rows_of(60))
    command = ("train", data, "--label", "place", "--label", "stars", "--out", tmp_path / "model", *tiny_options)
    for wrong, said in (
        (("--select", "much"), "allowed: a share such as 0.15, or LABEL=0.15"),
        (("--select", "place=1.5"), "between 0 and 1"),
        (("--select", "0.2", "--select", "stars=0.3"), "labels by name"),
        (("--select", "stars=0.2", "--select", "stars=0.3"), "each once"),
        (("--select", "=0.2"), "names no label"),
        (("--select", "place=0.2"), "select has shares for place; allowed: one for each of place, stars"),
        (("--set", "select={place: 0.2, stars: 3}"), "select.stars is 3; allowed: a share of words"),
    ):
        result = run(*command, *wrong)
        assert result.exit_code == 2, result.output
        assert said in " ".join(result.stderr.replace("│", " ").split())
    assert run(*command, "--select", "place=0.1", "--select", "stars=0.45").exit_code == 0
    model = infocal.load(tmp_path / "model")
    assert {name: part.decoding.share for name, part in model.parts.items()} == {"place": 0.1, "stars": 0.45}
    assert "0.1 for place, 0.45 for stars" in (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    result = run("evaluate", tmp_path / "model", data, "--json", "-")
    tasks = json.loads(result.stdout)["tasks"]
    assert tasks["place"]["selected"] < 0.25 < tasks["stars"]["selected"]
    alone = ("train", data, "--label", "place", "--out", tmp_path / "one", *tiny_options, "--select", "place=0.1")
    assert "allowed: one share, since there is one label" in run(*alone).stderr


def pairs(count):
    texts, places, stars = zip(*rows_of(count), strict=True)
    return list(texts), [{"place": place, "stars": star} for place, star in zip(places, stars, strict=True)]


def test_python_trains_several_labels(tiny_changes):
    model = infocal.fit(documents_from(*pairs(60)), load_settings("infocal", tiny_changes))
    texts, _ = pairs(6)
    found = model.predict(iter(texts))
    assert {name: len(values) for name, values in found.items()} == {"place": 6, "stars": 6}
    assert found["place"] == model.parts["place"].predict(texts)
    assert found["stars"] == model.parts["stars"].predict(texts)
    with pytest.raises(DataError, match="allowed: a list, array, Series or Arrow column of texts"):
        model.predict("the hotel was good")
    marked = [infocal.Document("the hotel was good", {"place": "hotel", "stars": 4.5}, ((0, 3),))] * 2
    assert all(part["rationale"] is None for part in model.evaluate(marked)["tasks"].values())


def test_all_labels_are_scored_in_one_pass(model, monkeypatch):
    whole, texts = infocal.load(model), pairs(40)[0]
    calls = []
    selector = whole.method.selector
    forward = selector.forward
    monkeypatch.setattr(selector, "forward", lambda *given: calls.append(1) or forward(*given))
    whole.predict(texts)
    once = len(calls)
    whole.parts["place"].predict(texts)
    assert len(calls) == 2 * once


def test_the_full_text_is_read_once_for_all_labels(model, monkeypatch):
    whole, (texts, labels) = infocal.load(model), pairs(40)
    documents = [infocal.Document(text, label) for text, label in zip(texts, labels, strict=True)]
    alone = {
        name: part.evaluate([replace(document, label=document.label[name]) for document in documents])
        for name, part in whole.parts.items()
    }
    calls, predict_full = [], whole.method.predict_full
    monkeypatch.setattr(whole.method, "predict_full", lambda batch: calls.append(1) or predict_full(batch))
    together = whole.evaluate(documents)["tasks"]
    assert len(calls) == 1
    for name, figures in alone.items():
        assert together[name]["full_text"] == figures["full_text"]
        assert together[name]["faithfulness"] == figures["faithfulness"]
    shown = whole.explain(texts[:3], full_text=True)
    assert len(calls) == 2
    guesses = whole.parts["stars"].explain(texts[:3], full_text=True)
    assert [one["stars"].full_text_prediction for one in shown] == [
        guess.full_text_prediction for guess in guesses
    ]


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ({"place": "hotel"}, "the labels are 'place', where rows before have 'place', 'stars'"),
        ({"place": "hotel", "stars": 1.5, "more": 1}, "the labels are 'place', 'stars', 'more', where"),
        ({"place": None, "stars": 1.5}, "label 'place': there is no label"),
        ({"place": "hotel", "stars": float("nan")}, "label 'stars': there is no label"),
        ({}, "there is no label"),
        ("hotel", "there is one label, where rows before have 'place', 'stars'"),
        (None, "there is no label"),
    ],
)
def test_labels_that_do_not_fit_those_before_are_bad_rows(label, said):
    texts, labels = pairs(30)
    rows = [infocal.Document(*row, line=line) for line, row in enumerate(zip(texts, labels, strict=True))]
    rows.append(infocal.Document("the hotel was good", label, line=30))
    with pytest.raises(DataError, match="line 30: ") as caught:
        prepare(rows, None, load_settings(), bad_rows=BadRows())
    assert said in str(caught.value)
    bad = BadRows(skip=True)
    assert len(prepare(rows, None, load_settings(), bad_rows=bad).train) == 27
    assert bad.count == 1


def test_names_after_one_label_are_a_bad_row():
    rows = [infocal.Document("good", "yes", line=0), infocal.Document("bad", {"a": "no"}, line=1)]
    with pytest.raises(DataError, match="line 1: there are the labels 'a', where rows before have one"):
        prepare(rows, None, load_settings(), bad_rows=BadRows())


@pytest.mark.parametrize("seed", range(0, 100, 7))
def test_no_class_of_any_label_is_held_out_altogether(seed):
    texts, labels = pairs(60)
    labels = [{**label, "rare": "yes" if row in (5, 17) else "no"} for row, label in enumerate(labels)]
    prepared = prepare(documents_from(texts, labels), None, load_settings(seed=seed), bad_rows=BadRows())
    assert set(prepared.train.targets[:, 2]) == {0, 1}
    assert len(prepared.train) + len(prepared.dev) == 60
    assert "keeping the classes' shares of the label 'place'" in " ".join(prepared.notes)


def test_scores_alone_are_spread():
    texts, labels = pairs(60)
    labels = [{"first": label["stars"], "second": -label["stars"]} for label in labels]
    prepared = prepare(documents_from(texts, labels), None, load_settings(), bad_rows=BadRows())
    assert "spread over the scores of the label 'first'" in " ".join(prepared.notes)


def test_the_card_and_the_page_keep_to_the_users_names_and_texts(tmp_path, tiny_options):
    rows = ((text, f"{place}_1", stars) for text, place, stars in rows_of(60))
    data = write(tmp_path / "rows.csv", rows, ("text", "pl_ace", "sta_rs"))
    labels = ("--label", "pl_ace", "--label", "sta_rs")
    assert run("train", data, *labels, "--out", tmp_path / "model", *tiny_options).exit_code == 0
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8").replace("\\_", "_")
    assert "| labels: pl_ace: classes: hotel_1 |" in card
    assert "| pl_ace: selected words: accuracy |" in card
    assert "| columns: label | pl_ace, sta_rs |" in card
    page = tmp_path / "page.html"
    assert run("explain", tmp_path / "model", "--input", data, "--limit", "3", "--out", page).exit_code == 0
    assert "Words selected in these 3 texts, for 2 labels, on average" in page.read_text(encoding="utf-8")


def test_a_model_of_one_label_knows_its_columns(tmp_path, tiny_options):
    data = write(tmp_path / "rows.csv", rows_of(60), ("body", "place", "stars"))
    options = ("--text", "body", "--label", "place", "--out", tmp_path / "model", *tiny_options)
    assert run("train", data, *options).exit_code == 0
    assert run("evaluate", tmp_path / "model", data).exit_code == 0
    result = run("explain", tmp_path / "model", "--input", data, "--limit", "1", "--format", "json")
    assert json.loads(result.stdout)["label"] == "hotel"
    result = run("evaluate", tmp_path / "model", data, "--label", "stars")
    assert result.exit_code == 3
