"""The vector language model learns what follows what."""

import math

import torch

from infocal.data.readers import BadRows
from infocal.data.toy import toy_reviews
from infocal.methods import build_method
from infocal.training import pretrain
from infocal.training.preparation import build_embedding, prepare
from infocal.training.pretrain import pretrain_language_model


def test_it_beats_a_model_that_knows_nothing_and_leaves_the_vectors_alone(tiny):
    sizes = {"text__width": 32, "language_model__hidden_width": 32}
    settings = tiny(loss__fluency=0.1, language_model__passes=10, language_model__learning_rate=0.01, **sizes)
    prepared = prepare(toy_reviews(200), None, settings, bad_rows=BadRows(skip=False))
    torch.manual_seed(0)
    embedding = build_embedding(prepared, settings)
    with torch.no_grad():
        embedding.free.mul_(10)
    method = build_method(settings, embedding=embedding, task=prepared.task)
    before = embedding.free.detach().clone()
    loss = pretrain_language_model(method.language_model, embedding, prepared.train, settings)
    assert loss < 0.8 * 2 * math.log(2)
    assert torch.equal(before, embedding.free)
    assert not any(p.requires_grad for p in method.language_model.parameters())


def test_it_is_reproducible(tiny):
    settings = tiny(loss__fluency=0.1)
    prepared = prepare(toy_reviews(80), None, settings, bad_rows=BadRows(skip=False))
    losses = []
    for _ in range(2):
        torch.manual_seed(0)
        embedding = build_embedding(prepared, settings)
        method = build_method(settings, embedding=embedding, task=prepared.task)
        losses.append(pretrain_language_model(method.language_model, embedding, prepared.train, settings))
    assert losses[0] == losses[1]


def test_a_pass_over_a_large_corpus_ends(tiny, monkeypatch):
    settings = tiny(loss__fluency=0.1, language_model__passes=2)
    prepared = prepare(toy_reviews(200), None, settings, bad_rows=BadRows(skip=False))
    embedding = build_embedding(prepared, settings)
    method = build_method(settings, embedding=embedding, task=prepared.task)
    read = []
    collate = pretrain.collate
    monkeypatch.setattr(pretrain, "collate", lambda some, rows: read.append(tuple(rows)) or collate(some, rows))
    monkeypatch.setattr(pretrain, "MOST_BATCHES", 2)
    pretrain_language_model(method.language_model, embedding, prepared.train, settings)
    assert len(read) == 4
    assert set(read[:2]) != set(read[2:])
