"""From documents to corpora: what is read, what is told, what is refused."""

import numpy as np
import pytest
import torch

from infocal.data.readers import BadRows
from infocal.data.toy import toy_reviews, toy_scores
from infocal.errors import DataError
from infocal.training import preparation
from infocal.training.preparation import build_embedding, prepare
from infocal.types import Document


def strict():
    return BadRows(skip=False)


def test_the_held_out_part_is_stratified_and_the_user_is_told(tiny):
    documents = [Document(f"word{i} and more", "rare" if i % 10 == 0 else "common") for i in range(200)]
    prepared = prepare(documents, None, tiny(), bad_rows=strict())
    assert len(prepared.dev) == 20
    assert np.bincount(prepared.dev.targets).tolist() == [18, 2]
    assert any("20 of 200 rows are held out" in note for note in prepared.notes)
    assert any("little data" in note for note in prepared.notes)


def test_no_more_is_split_off_than_is_needed(tiny, monkeypatch):
    documents = [Document(f"word{i} and more", "rare" if i % 10 == 0 else "common") for i in range(200)]
    monkeypatch.setattr(preparation, "MOST_HELD_OUT", 10)
    prepared = prepare(documents, None, tiny(), bad_rows=strict())
    assert (len(prepared.train), len(prepared.dev)) == (190, 10)
    assert np.bincount(prepared.dev.targets).tolist() == [9, 1]


def test_a_label_of_dev_that_training_lacks_is_named(tiny):
    train = [Document("good thing", "a"), Document("bad thing", "b")] * 3
    with pytest.raises(DataError, match=r"dev\.csv, line 7: the label 'c'.*'a', 'b'"):
        prepare(train, [Document("what", "c", line=7)], tiny(), bad_rows=strict(), dev_source="dev.csv")
    skipping = BadRows(skip=True)
    prepared = prepare(
        train, [Document("what", "c"), Document("good", "a")], tiny(), bad_rows=skipping, dev_source="dev.csv"
    )
    assert len(prepared.dev) == 1 and skipping.count == 1


def test_one_class_only_and_a_class_seen_once(tiny):
    with pytest.raises(DataError, match="only one class"):
        prepare([Document("x y", "a")] * 5, None, tiny(), bad_rows=strict())
    rows = [Document("x y", "a"), Document("y z", "b")] * 5 + [Document("lonely", "c", line=11)]
    with pytest.raises(DataError, match="line 11"):
        prepare(rows, None, tiny(), bad_rows=strict())
    assert prepare(rows, None, tiny(), bad_rows=BadRows(skip=True)).task.classes == ("a", "b")


def test_scores_are_scaled_inside_and_reported_in_the_users_units(tiny):
    prepared = prepare(toy_scores(100), None, tiny(), bad_rows=strict())
    assert prepared.task.kind == "regress"
    assert 0 <= prepared.train.targets.min() <= prepared.train.targets.max() <= 1
    logits = np.array([[-50.0], [50.0]])
    assert prepared.task.decode(logits) == pytest.approx([prepared.task.low, prepared.task.high])
    with pytest.raises(DataError, match="every label is 3"):
        prepare([Document("a b", 3.0)] * 9, None, tiny(), bad_rows=strict())


def test_long_texts_are_cut_and_the_user_is_told(tiny):
    rows = [Document("word " * 50, "a"), Document("other " * 3, "b")] * 5
    prepared = prepare(rows, None, tiny(text__max_tokens=20), bad_rows=strict())
    assert prepared.train.lengths.max() == 20
    assert any("5 texts are longer than 20 tokens" in note for note in prepared.notes)


@pytest.mark.parametrize("label", [None, float("nan")])
def test_training_rows_without_a_label_are_bad(tiny, label):
    rows = [*toy_reviews(20), Document("what is it", label, line=20)]
    with pytest.raises(DataError, match="line 20: there is no label"):
        prepare(rows, None, tiny(), bad_rows=strict())
    assert len(prepare(rows, None, tiny(), bad_rows=BadRows(skip=True)).train) == 18


def test_vectors_of_another_language_are_noticed(tiny, tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("batterie 1 2 3\n", encoding="utf-8")
    prepared = prepare(toy_reviews(60), None, tiny(text__vectors=str(path)), bad_rows=strict())
    assert prepared.summary["tokens_with_a_pretrained_vector"] == 0
    assert any("Only 0% of the words have a vector" in note for note in prepared.notes)


def test_vectors_are_frozen_words_without_one_learn(tiny, tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("battery 1 2 3\nunseen 4 5 6\n", encoding="utf-8")
    settings = tiny(text__vectors=str(path), text__train_vectors=False)
    prepared = prepare(toy_reviews(60), None, settings, bad_rows=strict())
    embedding = build_embedding(prepared, settings)
    ids = prepared.vocabulary.ids(["battery", "unseen", "the"])
    assert embedding.is_frozen[ids].tolist() == [True, True, False]
    assert embedding(torch.tensor([ids[:2]])).tolist() == [[[1, 2, 3], [4, 5, 6]]]


def test_vectors_are_trained_where_the_texts_can_teach_them(tiny, tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("battery 1 2 3\nunseen 4 5 6\nzeppelin 7 8 9\n", encoding="utf-8")
    settings = tiny(text__vectors=str(path), text__train_vectors=True, text__min_count=2)
    rows = [*toy_reviews(60), Document("a zeppelin has a battery", toy_reviews(1)[0].label)]
    prepared = prepare(rows, toy_reviews(20), settings, bad_rows=strict())
    embedding = build_embedding(prepared, settings)
    ids = torch.tensor(prepared.vocabulary.ids(["battery", "unseen", "zeppelin", "the"]))
    assert embedding.is_frozen[ids].tolist() == [False, True, True, False]
    assert embedding(ids[None, :3]).tolist() == [[[1, 2, 3], [4, 5, 6], [7, 8, 9]]]
