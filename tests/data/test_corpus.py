import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infocal.data.corpus import CorpusBuilder, Pieces, View, flat_positions, gold_tokens
from infocal.errors import DataError
from infocal.text.segmentation import characters, words
from infocal.text.vocabulary import Vocabulary
from infocal.types import Document

DOCUMENTS = [
    Document("Good beer, good ale", "a", ((5, 12),), 2),
    Document("bad", "b", None, 4),
    Document("BAD bad ale beer x", "a", (), None),
]


def build(documents=DOCUMENTS, max_tokens=4, vocabulary=None):
    builder = CorpusBuilder(words, max_tokens=max_tokens, source="f.csv")
    for document in documents:
        builder.add(document)
    counts = builder.counts()
    vocabulary = vocabulary or Vocabulary.build(counts, min_count=1, max_words=99, unknown_buckets=3)
    return (builder, counts), vocabulary, builder.finish(vocabulary, np.arange(len(documents)))


def test_counts_labels_and_cutting():
    (builder, counts), _, corpus = build()
    assert counts == {"good": 2, "beer": 2, ",": 1, "bad": 3, "ale": 1}
    assert builder.labels == ["a", "b", "a"]
    assert corpus.cut == 2
    assert corpus.lines.tolist() == [2, 4, -1]
    assert corpus.lengths.tolist() == [4, 1, 4]


def test_ids_are_those_of_the_vocabulary():
    for vocabulary in (None, Vocabulary(("beer",), 7)):
        _, vocabulary, corpus = build(vocabulary=vocabulary)
        for row, document in enumerate(DOCUMENTS):
            tokens = [document.text[start:end] for start, end in words(document.text)[:4]]
            ids = corpus.ids[corpus.offsets[row] : corpus.offsets[row + 1]]
            np.testing.assert_array_equal(ids, vocabulary.ids(tokens))
        assert corpus.ids.dtype == np.int32


def test_gold_is_what_overlaps():
    corpus = build()[2]
    assert corpus.gold.tolist() == [False, True, True, True] + [False] * 5
    assert corpus.annotated.tolist() == [True, False, True]
    unannotated = build([dataclasses.replace(document, rationale=None) for document in DOCUMENTS])[2]
    assert unannotated.gold is None and unannotated.annotated is None


@given(st.text("ab c", min_size=1, max_size=30), st.lists(st.integers(0, 30), max_size=8, unique=True))
@settings(deadline=None)
def test_gold_tokens_against_the_definition(text, bounds):
    bounds = sorted(bounds)
    gold = tuple(zip(bounds[0::2], bounds[1::2], strict=False))
    spans = words(text)
    expected = [any(start < right and left < end for left, right in gold) for start, end in spans]
    assert gold_tokens(spans, gold).tolist() == expected


def test_a_document_without_tokens_changes_nothing():
    builder = CorpusBuilder(characters, max_tokens=4, source="f.csv")
    builder.add(DOCUMENTS[1])
    with pytest.raises(DataError, match=r"f\.csv, line 9: the text has no token"):
        builder.add(Document("  ", "a", None, 9))
    corpus = builder.finish(Vocabulary((), 1))
    assert len(corpus) == len(builder) == len(builder.labels) == 1
    assert corpus.targets is None


def test_targets_must_match():
    builder = CorpusBuilder(words, max_tokens=4, source="f.csv")
    for document in DOCUMENTS:
        builder.add(document)
    with pytest.raises(ValueError, match="1 targets for 3 documents"):
        builder.finish(Vocabulary((), 1), np.zeros(1))


def test_subset_and_positions():
    corpus = build()[2]
    rows = np.array([2, 0])
    part = corpus.subset(rows)
    assert part.lengths.tolist() == [4, 4] and len(part) == 2
    np.testing.assert_array_equal(part.ids, np.concatenate([corpus.ids[5:9], corpus.ids[:4]]))
    np.testing.assert_array_equal(part.gold, np.concatenate([corpus.gold[5:9], corpus.gold[:4]]))
    assert part.targets.tolist() == [2, 0] and part.lines.tolist() == [-1, 2]
    assert part.annotated.tolist() == [True, True]
    assert len(corpus.subset(np.array([], dtype=np.int64))) == 0
    assert flat_positions(corpus.offsets, rows).tolist() == [5, 6, 7, 8, 0, 1, 2, 3]


@pytest.mark.parametrize("rows", [[2, 0], [1], [], [0, 1, 2]])
def test_a_view_reads_as_a_subset_and_copies_no_token(rows):
    plain = dataclasses.replace(build()[2], gold=None, annotated=None)
    pieces = Pieces([plain.ids[:3], plain.ids[3:5], plain.ids[5:]])
    corpus, rows = dataclasses.replace(plain, ids=pieces), np.array(rows, dtype=np.int64)
    view, copy = corpus.view(rows), corpus.subset(rows)
    assert isinstance(view.ids, View) and view.ids.whole is pieces
    assert view.fingerprint() == copy.fingerprint()
    np.testing.assert_array_equal(np.asarray(view.ids), copy.ids)
    np.testing.assert_array_equal(view.word_counts(20), copy.word_counts(20))
    again = np.arange(len(rows))[::-1]
    assert view.subset(again).fingerprint() == view.view(again).fingerprint() == copy.subset(again).fingerprint()


@pytest.mark.parametrize("chunk", [1, 2, 4096])
def test_shrinking_is_a_subset_in_the_same_memory(monkeypatch, chunk):
    monkeypatch.setattr("infocal.data.corpus.CHUNK", chunk)
    documents = [
        Document(" ".join(f"w{i}" for i in range(row, row + 1 + row % 3)), "a", ((0, 2),) if row % 2 else None)
        for row in range(20)
    ]
    rows = np.array([1, 2, 3, 7, 8, 11, 18])
    corpus, again = build(documents)[2], build(documents)[2]
    expected, memory = corpus.subset(rows), again.ids
    found = again.shrink(rows)
    assert found.fingerprint() == expected.fingerprint()
    assert np.shares_memory(found.ids, memory)
    with pytest.raises(ValueError, match="must rise"):
        corpus.shrink(rows[::-1])


def test_word_counts():
    corpus = build()[2]
    assert corpus.word_counts(20).tolist() == np.bincount(corpus.ids, minlength=20).tolist()


def test_fingerprint_knows_every_part():
    corpus = build()[2]
    assert corpus.fingerprint() == build()[2].fingerprint()
    changed = [
        dataclasses.replace(corpus, ids=corpus.ids + 1),
        dataclasses.replace(corpus, targets=corpus.targets + 1),
        dataclasses.replace(corpus, targets=corpus.targets.astype(np.float32)),
        dataclasses.replace(corpus, gold=~corpus.gold),
        dataclasses.replace(corpus, gold=None),
        dataclasses.replace(corpus, lines=corpus.lines + 1),
        dataclasses.replace(corpus, cut=0),
    ]
    assert len({corpus.fingerprint(), *(other.fingerprint() for other in changed)}) == 8
