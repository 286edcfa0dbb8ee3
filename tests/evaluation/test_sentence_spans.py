"""Spans that keep to sentences, against all choices."""

import itertools

import numpy as np
import pytest

from infocal.evaluation.decoding import fit_span_threshold, select_spans, select_spans_exact


def random_document(seed, length=9):
    generator = np.random.default_rng(seed)
    breaks = generator.random(length) < 0.35
    breaks[0] = True
    return generator.normal(size=length), breaks


def value(scores, breaks, chosen, *, threshold, cost):
    """By hand: a span is cut at every break inside it; each end that is not at a break costs once more."""
    total = float(np.sum((scores - threshold)[chosen]))
    length = len(scores)
    for i in range(length):
        if not chosen[i]:
            continue
        if i == 0 or not chosen[i - 1]:
            total -= cost + (0 if breaks[i] else cost)
        elif breaks[i]:
            total -= cost
        if i + 1 < length and not chosen[i + 1] and not breaks[i + 1]:
            total -= cost
    return total


def every_choice(length):
    return [np.array(choice, bool) for choice in itertools.product([False, True], repeat=length)]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("threshold", "cost"), [(0.0, 0.3), (-0.5, 0.8), (-1.0, 0.2)])
def test_the_optimum_of_all_choices(seed, threshold, cost):
    scores, breaks = random_document(seed)
    offsets = np.array([0, len(scores)])
    chosen = select_spans(scores, offsets, threshold=threshold, span_cost=cost, breaks=breaks)
    best = max(value(scores, breaks, c, threshold=threshold, cost=cost) for c in every_choice(len(scores)))
    if best > 0:
        found = value(scores, breaks, chosen, threshold=threshold, cost=cost)
        assert found == pytest.approx(best)
    else:
        assert chosen.sum() == 1


@pytest.mark.parametrize("seed", range(8))
def test_the_optimum_of_all_choices_of_a_size(seed):
    scores, breaks = random_document(seed)
    chosen = select_spans_exact(scores, np.array([0, 9]), share=0.4, span_cost=0.6, breaks=breaks)
    sized = [choice for choice in every_choice(9) if choice.sum() == 4]
    best = max(value(scores, breaks, choice, threshold=0, cost=0.6) for choice in sized)
    assert chosen.sum() == 4
    assert value(scores, breaks, chosen, threshold=0, cost=0.6) == pytest.approx(best)


def test_a_blurred_score_is_drawn_to_the_sentence_it_is_about():
    breaks = np.zeros(20, bool)
    breaks[[0, 6, 12]] = True
    scores = np.exp(-(((np.arange(20) - 8.5) / 3) ** 2))
    offsets = np.array([0, 20])
    plain = select_spans(scores, offsets, threshold=0.2, span_cost=0.3)
    kept = select_spans(scores, offsets, threshold=0.2, span_cost=0.3, breaks=breaks)
    assert set(np.flatnonzero(plain)) != set(range(6, 12))
    assert np.flatnonzero(kept).tolist() == list(range(6, 12))


def test_the_fitted_threshold_hits_the_share_with_breaks():
    generator = np.random.default_rng(0)
    offsets = np.concatenate([[0], np.cumsum(generator.integers(20, 60, size=100))])
    scores, breaks = generator.normal(size=offsets[-1]), generator.random(offsets[-1]) < 0.1
    breaks[offsets[:-1]] = True
    threshold = fit_span_threshold(scores, offsets, share=0.25, span_cost=0.5, breaks=breaks)
    chosen = select_spans(scores, offsets, threshold=threshold, span_cost=0.5, breaks=breaks)
    assert chosen.mean() == pytest.approx(0.25, abs=0.01)
