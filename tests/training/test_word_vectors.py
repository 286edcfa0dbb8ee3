"""Word vectors from the training texts: counted, weighed and factorised as the definitions say."""

import math

import numpy as np
import pytest
import torch

from infocal.config import load_settings
from infocal.data.corpus import Corpus
from infocal.data.readers import BadRows
from infocal.data.toy import toy_reviews
from infocal.fitting import fit
from infocal.training import word_vectors
from infocal.training.preparation import build_embedding, prepare
from infocal.training.pretrain import start_word_vectors
from infocal.training.word_vectors import association, cooccurrence, learn_word_vectors
from infocal.types import Document


def corpus_of(*documents: list[int]) -> Corpus:
    return Corpus(
        ids=np.concatenate([np.array(d, dtype=np.int32) for d in documents]),
        offsets=np.cumsum([0, *map(len, documents)]),
        lines=np.arange(len(documents), dtype=np.int32),
    )


def counted(*documents: list[int], window: int = 5) -> dict[tuple[int, int], float]:
    corpus = corpus_of(*documents)
    rows, columns, counts = cooccurrence(corpus.ids, corpus.offsets, size=10, window=window)
    return {(r, c): n for r, c, n in zip(rows.tolist(), columns.tolist(), counts.tolist(), strict=True)}


def test_neighbours_count_by_distance_in_both_directions():
    assert counted([1, 2, 3]) == {(1, 2): 1, (2, 1): 1, (2, 3): 1, (3, 2): 1, (1, 3): 0.5, (3, 1): 0.5}


def test_documents_do_not_touch_and_the_window_ends():
    assert counted([1, 2], [3, 4]) == {(1, 2): 1, (2, 1): 1, (3, 4): 1, (4, 3): 1}
    assert (1, 3) not in counted([1, 2, 3], window=1)


@pytest.mark.parametrize("chunk", [1, 3, 9, 1000])
def test_against_a_loop_over_all_pairs(monkeypatch, chunk):
    monkeypatch.setattr(word_vectors, "CHUNK", chunk)
    rng = np.random.default_rng(0)
    documents = [rng.integers(1, 10, size=n).tolist() for n in (1, 7, 2, 30, 1)]
    expected: dict[tuple[int, int], float] = {}
    for document in documents:
        for i, first in enumerate(document):
            for j, second in enumerate(document):
                if 0 < abs(i - j) <= 5:
                    pair = (first, second)
                    expected[pair] = expected.get(pair, 0.0) + 1 / abs(i - j)
    assert counted(*documents) == pytest.approx(expected)


def test_the_association_is_positive_mutual_information_with_flattened_contexts():
    rows, columns, counts = np.array([1, 1, 2, 3]), np.array([2, 3, 1, 1]), np.array([4.0, 1.0, 4.0, 1.0])
    matrix = association(rows, columns, counts, size=4).to_dense()
    words = {1: 5.0, 2: 4.0, 3: 1.0}
    flat = {word: n**0.75 for word, n in words.items()}
    total = sum(flat.values())
    for row, column, n in zip(rows, columns, counts, strict=True):
        expected = max(0.0, math.log(n / words[row] / (flat[column] / total)))
        assert matrix[row, column].item() == pytest.approx(expected, rel=1e-5)
    assert matrix[0].abs().sum() == 0


def test_the_vectors_factorise_the_association():
    rng = np.random.default_rng(1)
    corpus = corpus_of(*(rng.integers(1, 12, size=20).tolist() for _ in range(8)))
    known, vectors = learn_word_vectors(corpus, size=12, width=12, seed=0)
    dense = association(*cooccurrence(corpus.ids, corpus.offsets, size=12), size=12).to_dense()
    left, strength, _ = torch.linalg.svd(dense)
    expected = (left * strength.sqrt())[torch.from_numpy(known)]
    expected *= 0.4 / expected.square().mean().sqrt()
    assert torch.allclose(vectors @ vectors.T, expected @ expected.T, atol=1e-3)  # free up to signs


def test_words_in_the_same_company_are_near():
    company = [[1, 5, 2], [1, 6, 2], [3, 7, 4], [3, 8, 4]] * 10
    known, vectors = learn_word_vectors(corpus_of(*company), size=9, width=4, seed=0)
    unit = dict(zip(known.tolist(), torch.nn.functional.normalize(vectors, dim=1), strict=True))
    assert unit[5] @ unit[6] > 0.9
    assert abs(unit[5] @ unit[7]) < 0.1


def test_texts_of_one_word_have_no_company():
    known, vectors = learn_word_vectors(corpus_of([1], [2]), size=3, width=4, seed=0)
    assert len(known) == 0
    assert vectors.shape == (0, 3)


def test_large_corpora_are_read_in_part_and_evenly(monkeypatch):
    monkeypatch.setattr(word_vectors, "MOST_TOKENS", 10)
    ids, offsets = word_vectors._sample(corpus_of(*([i, i] for i in range(1, 10))))
    assert ids.tolist() == [1, 1, 3, 3, 5, 5, 7, 7, 9, 9]
    assert len(offsets) == 6


def test_the_table_starts_from_them_and_other_words_keep_what_they_have(tiny):
    settings = tiny(text__width=8)
    prepared = prepare(toy_reviews(40), None, settings, bad_rows=BadRows(skip=False))
    torch.manual_seed(0)
    embedding = build_embedding(prepared, settings)
    before = embedding.free.detach().clone()
    start_word_vectors(embedding, prepared.train, settings)
    seen = torch.zeros(len(before), dtype=torch.bool)
    seen[torch.from_numpy(np.unique(prepared.train.ids))] = True
    assert torch.equal(embedding.free[~seen], before[~seen])
    assert (embedding.free[seen] != before[seen]).any(dim=1).all()
    assert embedding.free[0].abs().sum() == 0
    assert embedding.free.requires_grad


@pytest.mark.parametrize("learn", [True, False])
def test_training_starts_from_them_unless_told_not_to(monkeypatch, tiny, learn):
    started = []
    monkeypatch.setattr("infocal.training.pretrain.start_word_vectors", lambda *given: started.append(given))
    fit(toy_reviews(40), tiny(text__learn_vectors=learn))
    assert bool(started) is learn


def test_a_vectors_file_is_left_as_it_is(monkeypatch, tiny, tmp_path):
    file = tmp_path / "vectors.txt"
    file.write_text("the 1 2 3\nwatch 3 2 1\n", encoding="utf-8")

    def forbidden(*given: object) -> None:
        raise AssertionError

    monkeypatch.setattr("infocal.training.pretrain.start_word_vectors", forbidden)
    fit(toy_reviews(40), tiny(text__vectors=str(file)))


def test_one_word_texts_train(tiny):
    words = ["good", "fine", "bad", "poor"]
    documents = [Document(words[i % 4], label="ny"[i % 4 < 2]) for i in range(40)]
    fit(documents, tiny())


def test_the_default_recipe_learns_them():
    assert load_settings("infocal").text.learn_vectors
