"""The texts on which thresholds are fitted."""

import numpy as np

from infocal.data.corpus import Corpus
from infocal.data.readers import BadRows
from infocal.data.toy import toy_reviews
from infocal.fitting import fit
from infocal.training.held_out import threshold_texts
from infocal.training.inference import token_scores
from infocal.training.preparation import prepare


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


def test_all_held_out_texts_and_evenly_spaced_training_texts():
    dev, train = corpus([1, 2], [3]), corpus([10], [11, 11], [12], [13, 13, 13], [14])
    texts = threshold_texts(dev, train, most=3)
    assert texts.ids.tolist() == [1, 2, 3, 10, 12, 14]
    assert texts.offsets.tolist() == [0, 2, 3, 4, 5, 6]
    assert threshold_texts(dev, train).ids.tolist() == [*dev.ids, *train.ids]


def test_neither_labels_nor_rationales_are_at_hand():
    texts = threshold_texts(corpus([1, 2]), corpus([3]))
    assert texts.targets is None
    assert texts.gold is None
    assert texts.annotated is None


def test_a_held_out_part_of_short_texts_does_not_decide_the_share(tiny):
    """Ten held-out texts of three words would, alone, put the threshold where long texts show far too little."""
    rows = toy_reviews(200)
    short = [type(row)(" ".join(row.text.split()[:3]), row.label) for row in rows[:10]]
    settings = tiny(select=0.25)
    model = fit(rows, settings, dev=short)
    train = prepare(rows, short, settings, bad_rows=BadRows(skip=False)).train
    selected = model.decoding.select(token_scores(model.method, train), train.offsets)
    assert abs(selected.mean() - 0.25) < 0.01
