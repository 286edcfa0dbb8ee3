import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infocal.errors import DataError, SettingsError
from infocal.evaluation import decoding
from infocal.evaluation.decoding import (
    fit_span_threshold,
    fit_threshold,
    run_statistics,
    select_above,
    select_share,
    select_spans,
    select_spans_exact,
)


def corpus(seed, *, documents=30, longest=10, shortest=1, ties=False):
    generator = np.random.default_rng(seed)
    offsets = np.concatenate(([0], np.cumsum(generator.integers(shortest, longest + 1, documents))))
    scores = generator.normal(size=offsets[-1])
    return (np.round(scores) if ties else scores), offsets


def pieces(offsets, *arrays):
    for start, end in itertools.pairwise(offsets):
        yield tuple(array[start:end] for array in arrays)


def value(scores, chosen, *, threshold, span_cost):
    spans = int(np.sum(np.diff(np.concatenate(([0], np.asarray(chosen, int)))) == 1))
    return float(np.sum((scores - threshold)[np.asarray(chosen, bool)])) - span_cost * spans


def every_choice(length):
    return [np.array(choice, bool) for choice in itertools.product([False, True], repeat=length)]


def test_above_a_threshold_and_the_best_where_none_is():
    scores = np.array([0.1, 0.9, 0.6, 0.2, 0.3, 0.3, 0.5])
    chosen = select_above(scores, [0, 3, 3, 6, 7], threshold=0.5)
    assert chosen.tolist() == [False, True, True, False, True, False, True]


def test_a_float32_score_is_not_compared_in_single_precision():
    scores = np.array([0.1, 0.2], dtype=np.float32)
    assert select_above(scores, [0, 2], threshold=float(np.nextafter(np.float64(scores[0]), 0))).all()


@settings(deadline=None)
@given(
    lengths=st.lists(st.integers(0, 6), min_size=1, max_size=6).filter(any),
    share=st.floats(0.05, 1.0),
    data=st.data(),
)
def test_the_fitted_threshold_is_the_nearest_of_all_thresholds(lengths, share, data):
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    values = st.sampled_from([-1.5, 0.0, 0.25, 0.5, 2.0]) | st.floats(-3, 3)
    scores = np.array(data.draw(st.lists(values, min_size=sum(lengths), max_size=sum(lengths))))

    def gap(threshold):
        return abs(select_above(scores, offsets, threshold=threshold).sum() - share * scores.size)

    fitted = fit_threshold(scores, offsets, share=share)
    assert gap(fitted) == min(gap(level) for level in [scores.min() - 1, *scores])


def test_neighbouring_floats_can_still_be_told_apart():
    upper = 1.0
    lower = float(np.nextafter(upper, 0))
    scores = np.array([5.0, upper, lower, lower])
    assert select_above(scores, [0, 4], threshold=fit_threshold(scores, [0, 4], share=0.5)).sum() == 2


@pytest.mark.parametrize("share", [0.01, 0.2, 0.5, 1.0])
@pytest.mark.parametrize("ties", [False, True])
def test_a_share_of_every_document_takes_the_best_and_of_equals_the_earlier(share, ties):
    scores, offsets = corpus(0, ties=ties, shortest=0)
    chosen = select_share(scores, offsets, share=share)
    for part, flags in pieces(offsets, scores, chosen):
        budget = min(part.size, max(1, round(share * part.size)))
        best = np.argsort(-part, kind="stable")[:budget]
        assert set(np.flatnonzero(flags)) == set(best)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("threshold", "span_cost"), [(0.0, 0.0), (0.3, 0.7), (-0.4, 1.5), (1.0, 0.2)])
def test_spans_are_the_optimum_of_all_choices(seed, threshold, span_cost):
    scores, offsets = corpus(seed, documents=8, ties=seed % 2 == 1)
    chosen = select_spans(scores, offsets, threshold=threshold, span_cost=span_cost)
    for part, flags in pieces(offsets, scores, chosen):
        values = [value(part, c, threshold=threshold, span_cost=span_cost) for c in every_choice(part.size)]
        if max(values) > 0:
            found = value(part, flags, threshold=threshold, span_cost=span_cost)
            assert found == pytest.approx(max(values))
        else:
            assert flags.sum() == 1
            assert part[flags][0] == part.max()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("share", "span_cost"), [(0.3, 0.0), (0.3, 0.8), (0.5, 2.0), (1.0, 1.0), (0.01, 1.0)])
@pytest.mark.parametrize("chunk_bytes", [1, 32_000_000])
def test_exact_spans_are_the_optimum_of_all_choices_of_that_size(seed, share, span_cost, chunk_bytes, monkeypatch):
    monkeypatch.setattr(decoding, "CHUNK_BYTES", chunk_bytes)
    scores, offsets = corpus(seed, documents=8, ties=seed % 2 == 1)
    chosen = select_spans_exact(scores, offsets, share=share, span_cost=span_cost)
    for part, flags in pieces(offsets, scores, chosen):
        budget = max(1, round(share * part.size))
        choices = [choice for choice in every_choice(part.size) if choice.sum() == budget]
        best = max(value(part, choice, threshold=0.0, span_cost=span_cost) for choice in choices)
        assert flags.sum() == budget
        assert value(part, flags, threshold=0.0, span_cost=span_cost) == pytest.approx(best)


def test_exact_spans_of_long_documents_of_mixed_lengths_keep_their_budgets():
    scores, offsets = corpus(1, documents=40, longest=150, shortest=0)
    chosen = select_spans_exact(scores, offsets, share=0.2, span_cost=2.0)
    for part, flags in pieces(offsets, scores, chosen):
        assert flags.sum() == min(part.size, max(1, round(0.2 * part.size)))
    plain = select_share(scores, offsets, share=0.2)
    assert run_statistics(chosen, offsets).mean_run > 1.5 * run_statistics(plain, offsets).mean_run


def test_without_a_cost_exact_spans_are_the_plain_share():
    scores, offsets = corpus(2, documents=20, longest=60)
    exact = select_spans_exact(scores, offsets, share=0.3, span_cost=0.0)
    assert np.array_equal(exact, select_share(scores, offsets, share=0.3))


@pytest.mark.parametrize("share", [0.05, 0.2, 0.6, 0.95])
@pytest.mark.parametrize("span_cost", [0.0, 1.0, 4.0])
def test_the_fitted_span_threshold_hits_the_share(share, span_cost):
    scores, offsets = corpus(3, documents=60, longest=80, shortest=40)
    threshold = fit_span_threshold(scores, offsets, share=share, span_cost=span_cost)
    chosen = select_spans(scores, offsets, threshold=threshold, span_cost=span_cost)
    nearest = min(
        abs(select_spans(scores, offsets, threshold=t, span_cost=span_cost).mean() - share)
        for t in np.linspace(scores.min() - span_cost, scores.max(), 60)
    )
    assert abs(chosen.mean() - share) <= max(nearest, 1 / scores.size)


def test_a_share_that_cannot_be_reached_gives_the_nearest():
    scores, offsets = np.array([0.1, 0.2, 0.3, 0.4]), [0, 2, 4]
    threshold = fit_span_threshold(scores, offsets, share=0.01, span_cost=1.0)
    assert select_spans(scores, offsets, threshold=threshold, span_cost=1.0).sum() == 2
    threshold = fit_span_threshold(scores, offsets, share=1.0, span_cost=1.0)
    assert select_spans(scores, offsets, threshold=threshold, span_cost=1.0).all()


def test_runs_end_where_a_document_ends():
    statistics = run_statistics([True, True, False, True, True, True], [0, 3, 4, 4, 6])
    assert statistics == decoding.RunStatistics(mean_run=5 / 3, runs_per_document=0.75, share=5 / 6)
    assert run_statistics([], [0]) == decoding.RunStatistics(mean_run=0.0, runs_per_document=0.0, share=0.0)


@pytest.mark.parametrize(
    "decode",
    [
        lambda scores, offsets: select_above(scores, offsets, threshold=0.0),
        lambda scores, offsets: select_share(scores, offsets, share=0.5),
        lambda scores, offsets: select_spans(scores, offsets, threshold=0.0, span_cost=1.0),
        lambda scores, offsets: select_spans_exact(scores, offsets, share=0.5, span_cost=1.0),
    ],
)
def test_empty_input_bad_scores_and_bad_offsets(decode):
    assert decode([], [0]).shape == (0,)
    assert decode([], [0, 0, 0]).shape == (0,)
    assert decode([1.0], [0, 0, 1, 1]).tolist() == [True]
    with pytest.raises(DataError, match="token 1 of document 1 is nan"):
        decode([0.0, 1.0, float("nan")], [0, 1, 3])
    for offsets in ([0, 2], [1, 3], [0, 3, 2, 3], []):
        with pytest.raises(DataError):
            decode([0.0, 1.0, 2.0], offsets)


def test_settings_out_of_range_are_named():
    for share in (0.0, 1.01, float("nan")):
        with pytest.raises(SettingsError, match="share is"):
            select_share([1.0], [0, 1], share=share)
    with pytest.raises(SettingsError, match="span_cost is -1"):
        select_spans([1.0], [0, 1], threshold=0.0, span_cost=-1.0)
    with pytest.raises(DataError, match="no tokens"):
        fit_threshold([], [0], share=0.5)


def test_a_threshold_beyond_all_scores_keeps_clear_of_them():
    """The same text, read among others, may have scores that differ in their last digit."""
    scores, offsets = np.array([3.0, 1.0, 3.0, -2.0], dtype=np.float32), [0, 2, 4]
    above = fit_threshold(scores, offsets, share=0.5)
    assert 1.0 + 1e-5 < above < 1.01
    below = fit_threshold(scores, offsets, share=0.99)
    assert -2.01 < below < -2.0 - 1e-5
