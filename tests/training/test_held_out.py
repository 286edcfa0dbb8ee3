"""The texts on which thresholds are fitted."""

import numpy as np
import pytest
import torch

from infocal.data.corpus import Corpus
from infocal.data.readers import BadRows
from infocal.data.toy import toy_reviews
from infocal.decoding import fit_decoding
from infocal.errors import SettingsError
from infocal.fitting import fit
from infocal.methods import build_method
from infocal.training import held_out as module
from infocal.training.held_out import HeldOut, agreement, threshold_texts
from infocal.training.inference import token_scores
from infocal.training.preparation import build_embedding, prepare


def corpus(*texts):
    lengths = [len(text) for text in texts]
    return Corpus(
        ids=np.array([word for text in texts for word in text], dtype=np.int32),
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        lines=np.arange(len(texts), dtype=np.int32),
        targets=np.zeros(len(texts), dtype=np.int64),
        gold=np.ones(sum(lengths), dtype=np.bool_),
        annotated=np.ones(len(texts), dtype=np.bool_),
    )


def of_lengths(lengths):
    return corpus(*([number] * int(length) for number, length in enumerate(lengths, 1)))


def drawn(dev, train, **most):
    """The held-out texts among those that thresholds are fitted on."""
    texts = threshold_texts(dev, train, **most).drawn()
    known = min(most.get("most", 2000), len(train))
    return texts.subset(np.arange(len(texts) - known))


def test_lengths_are_distributed_as_those_of_the_training_texts():
    generator = np.random.default_rng(0)
    dev, train = of_lengths(generator.integers(1, 60, 600)), of_lengths(generator.integers(1, 90, 3000))
    found = drawn(dev, train).lengths
    for length in (10, 20, 30, 40, 50):
        assert abs((found <= length).mean() - (train.lengths <= length).mean()) < 0.02
    assert abs(len(found) - 2000) <= 20


def test_as_many_training_texts_evenly_spaced():
    texts = threshold_texts(corpus([1, 2], [3]), corpus([10], [11, 11], [12], [13, 13, 13], [14]), most=3).drawn()
    assert texts.ids.tolist()[-3:] == [10, 12, 14]
    assert texts.targets is None
    assert texts.gold is None
    assert texts.annotated is None


def test_texts_of_the_same_length_as_in_training_are_taken_evenly():
    dev = of_lengths([3, 5, 8] * 40)
    times = np.bincount(drawn(dev, of_lengths([3, 5, 8] * 400)).lines, minlength=len(dev))
    assert set(times) == {10}


@pytest.mark.parametrize("lengths", [[4], [4, 4, 4], [1, 2, 3]])
def test_few_held_out_texts_are_one_class_of_length(lengths):
    found = drawn(of_lengths(lengths), of_lengths([1, 9, 9, 9]))
    assert np.unique(found.lines).tolist() == list(range(len(lengths)))


def test_training_texts_unlike_any_held_out_one_count_as_the_nearest():
    assert drawn(of_lengths(np.arange(1, 101)), of_lengths([500] * 900)).lengths.min() > 70


def test_held_out_texts_shorter_than_the_others_do_not_decide_the_share(tiny):
    """Mostly fragments are held out; alone they would put the threshold where whole texts show too little."""
    rows = toy_reviews(400)
    new = toy_reviews(200, seed=7)
    fragments = [type(row)(" ".join(row.text.split()[:4]), row.label) for row in new[:150]]
    settings = tiny(select=0.25)
    held_out = [*fragments, *new[150:]]
    model = fit(rows, settings, dev=held_out)
    unseen = model.encode(toy_reviews(200, seed=8), bad_rows=BadRows(skip=False), source="new")
    scores = token_scores(model.method, unseen)
    selected = model.decoding.select(scores, unseen.offsets).mean()
    dev = prepare(rows, held_out, settings, bad_rows=BadRows(skip=False)).dev
    by_fragments = fit_decoding(token_scores(model.method, dev), dev.offsets, share=0.25)
    alone = by_fragments.select(scores, unseen.offsets).mean()
    assert abs(selected - 0.25) < abs(alone - 0.25)
    assert abs(selected - 0.25) < 0.25 * 0.15


def held_out(tiny, rows, **changes):
    settings = tiny(**{"select": 0.25, "training__stopping": "rationale_recall", **changes})
    prepared = prepare(rows, rows[:40], settings, bad_rows=BadRows(skip=False))
    torch.manual_seed(0)
    method = build_method(settings, embedding=build_embedding(prepared, settings), task=prepared.task)
    texts = threshold_texts(prepared.dev, prepared.train)
    return HeldOut(method, prepared.dev, shares=(0.25,), texts=texts)


def test_the_papers_rule_goes_by_recall_where_precision_is_high_enough(tiny):
    rows = toy_reviews(100)
    judged = held_out(tiny, rows)
    found = agreement(judged.method, judged.corpus, 0.25)
    assert judged.judge("joint")[0].tolist() == [1 - found["recall"]]
    assert len(judged.judge("warm_up")[0]) == 40
    floor = held_out(tiny, rows, training__precision_floor=0.99)
    assert floor.judge("joint")[0].tolist() == [pytest.approx(1 + 0.99 - found["precision"])]


def test_the_papers_rule_needs_marked_words(tiny):
    rows = [type(row)(row.text, row.label) for row in toy_reviews(100)]
    with pytest.raises(SettingsError, match="no held-out row has any"):
        held_out(tiny, rows)
    with pytest.raises(
        SettingsError, match="no held-out row has any"
    ):  # some rows have marks, not the held-out ones
        held_out(tiny, [*rows[:60], *toy_reviews(100)[60:]])


def test_rounds_are_judged_by_some_of_very_many_rows(tiny, monkeypatch):
    monkeypatch.setattr(module, "MOST_JUDGED", 7)
    judged = held_out(tiny, toy_reviews(100), training__stopping="task_loss")
    assert judged.corpus.lines.tolist() == [0, 6, 13, 19, 26, 32, 39]
    assert len(judged.judge("joint")[0]) == 7


def test_every_text_is_read_once_however_often_it_counts(tiny):
    judged = held_out(tiny, toy_reviews(100))
    texts = judged.texts
    assert len(np.unique(texts.rows)) == len(texts.corpus) < len(texts.rows)
    drawn, (scores,) = texts.drawn(), texts.scores(judged.method)
    assert len(scores) == len(drawn.ids)
    first = {}
    for row, start, end in zip(texts.rows, drawn.offsets, drawn.offsets[1:], strict=False):
        assert np.array_equal(first.setdefault(row, scores[start:end]), scores[start:end])
