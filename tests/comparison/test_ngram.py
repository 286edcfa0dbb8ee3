"""The language model of counts, against a slow one written from the formula."""

from collections import Counter

import numpy as np
import pytest

from infocal.comparison.ngram import BigramModel, selection_score

SIZE = 7
TEXTS = [[1, 2, 3, 1, 2], [2, 2, 4], [], [1, 2, 3], [5, 1, 2, 6, 6]]


def flat(texts):
    ids = np.array([word for text in texts for word in text], dtype=np.int32)
    return ids, np.concatenate([[0], np.cumsum([len(text) for text in texts])]).astype(np.int64)


def slow(texts):
    """p(word | context) by the formula, context None for the start."""
    pairs, words = Counter(), Counter()
    for text in texts:
        for before, word in zip([None, *text], text, strict=False):
            pairs[before, word] += 1
            words[word] += 1

    def discount(counts):
        once, twice = (sum(value == wanted for value in counts) for wanted in (1, 2))
        return min(0.9, max(0.1, once / (once + 2 * twice)))

    one, two, total = discount(words.values()), discount(pairs.values()), sum(words.values())

    def general(word):
        return max(words[word] - one, 0) / total + one * len(words) / total / SIZE

    def probability(word, context):
        seen = {pair: count for pair, count in pairs.items() if pair[0] == context}
        if not seen:
            return general(word)
        count = sum(seen.values())
        own = max(pairs[context, word] - two, 0) / count
        return own + two * len(seen) / count * general(word)

    return probability


@pytest.fixture
def model():
    ids, offsets = flat(TEXTS)
    return BigramModel.fit(ids, offsets, size=SIZE)


def test_every_probability_is_that_of_the_formula(model):
    expected = slow(TEXTS)
    for context in [*range(SIZE), None]:
        number = model.start if context is None else context
        found = np.exp(model.log_probabilities(np.arange(SIZE), np.full(SIZE, number)))
        assert found == pytest.approx([expected(word, context) for word in range(SIZE)])
        assert found.sum() == pytest.approx(1.0)


def test_selected_words_are_read_as_a_text_of_their_own(model):
    ids, offsets = flat([[1, 2, 3, 4], [5, 6], [2]])
    selected = np.array([1, 0, 1, 1, 0, 0, 1], dtype=bool)
    expected = slow(TEXTS)
    pairs = [(1, None), (3, 1), (4, 3), (2, None)]
    logs = [np.log(expected(word, context)) for word, context in pairs]
    assert selection_score(model, ids, offsets, selected) == pytest.approx(np.mean(logs))


def test_torn_words_score_lower_than_a_phrase(model):
    ids, offsets = flat([[1, 2, 3, 1, 2, 3]])
    phrase = selection_score(model, ids, offsets, np.array([1, 1, 0, 0, 0, 0], dtype=bool))
    torn = selection_score(model, ids, offsets, np.array([1, 0, 0, 1, 0, 0], dtype=bool))
    assert phrase > torn


def test_nothing_selected_has_no_score(model):
    ids, offsets = flat(TEXTS)
    assert selection_score(model, ids, offsets, np.zeros(len(ids), dtype=bool)) is None


def test_a_model_of_nothing_knows_all_words_alike():
    model = BigramModel.fit(np.zeros(0, dtype=np.int32), np.zeros(1, dtype=np.int64), size=4)
    found = model.log_probabilities(np.array([0, 3]), np.array([1, model.start]))
    assert np.exp(found) == pytest.approx([0.25, 0.25])
