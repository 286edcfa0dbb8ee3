import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infocal.evaluation.decoding import (
    fit_span_threshold,
    fit_threshold,
    least_share,
    select_above,
    select_share,
    select_spans,
    select_spans_exact,
)

LENGTHS = (40, 7, 0, 25, 1)
OFFSETS = np.concatenate(([0], np.cumsum(LENGTHS)))


def scores_of(seed, spread=1.0):
    """Documents whose scores lie at different heights: some have nothing above any common threshold."""
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(3 * number, spread, size) for number, size in enumerate(LENGTHS)])


def per_document(flags):
    return np.array([flags[a:b].sum() for a, b in itertools.pairwise(OFFSETS)])


@given(seed=st.integers(0, 50), least=st.sampled_from([0.0, 0.1, 0.3]), threshold=st.floats(-5, 15))
@settings(max_examples=40, deadline=None)
def test_no_document_falls_below_its_floor_and_others_are_untouched(seed, least, threshold):
    scores = scores_of(seed)
    floors = np.minimum(LENGTHS, np.maximum(1, np.rint(least * np.array(LENGTHS))))
    plain, floored = scores > threshold, select_above(scores, OFFSETS, threshold=threshold, least=least)
    enough = per_document(plain) >= floors
    assert (per_document(floored) == np.maximum(per_document(plain), floors)).all()
    for number in np.flatnonzero(enough):
        part = slice(OFFSETS[number], OFFSETS[number + 1])
        assert (plain[part] == floored[part]).all()


def test_a_document_with_nothing_above_keeps_its_best_tokens():
    scores = scores_of(0)
    best = select_share(scores, OFFSETS, share=0.2)
    assert (select_above(scores, OFFSETS, threshold=99.0, least=0.2) == best).all()


def test_a_document_in_which_no_span_pays_shows_its_best_span_instead_of_a_word():
    scores = np.array([0.0, 0.1, 0.3, 0.3, 0.3, 0.1, 0.0, 0.0, 0.31, 0.0, 9.0, 9.0, 9.0, 0.0, 0.0])
    offsets = [0, 10, 15]
    found = select_spans(scores, offsets, threshold=2.0, span_cost=1.0, least=0.3)
    assert np.flatnonzero(found).tolist() == [2, 3, 4, 10, 11, 12]


@pytest.mark.parametrize("cost", [0.0, 0.5, 4.0])
@pytest.mark.parametrize("share", [0.1, 0.2, 0.4])
def test_the_fitted_thresholds_hit_the_share_with_the_floor_counted(cost, share):
    rng = np.random.default_rng(1)
    lengths = rng.integers(5, 60, 200)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    scores = rng.normal(size=lengths.sum()) + np.repeat(rng.normal(size=200), lengths)
    least = least_share(share)
    plain = fit_threshold(scores, offsets, share=share, least=least)
    spans = fit_span_threshold(scores, offsets, share=share, span_cost=cost, least=least)
    assert select_above(scores, offsets, threshold=plain, least=least).mean() == pytest.approx(share, rel=0.02)
    found = select_spans(scores, offsets, threshold=spans, span_cost=cost, least=least)
    assert found.mean() == pytest.approx(share, rel=0.05)


def test_the_floor_of_spans_is_the_exact_budget_decoder():
    scores = scores_of(3)
    found = select_spans(scores, OFFSETS, threshold=99.0, span_cost=1.0, least=0.2)
    assert (found == select_spans_exact(scores, OFFSETS, share=0.2, span_cost=1.0)).all()
