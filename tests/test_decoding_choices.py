"""The choices at explain time."""

import json

import numpy as np
import pytest

from infocal import decoding as module
from infocal.decoding import DECODERS, Decoding, ScoredTexts, fit_decoding, suggest_span_cost
from infocal.errors import ModelError, SettingsError


@pytest.fixture
def scored():
    generator = np.random.default_rng(0)
    offsets = np.concatenate([[0], np.cumsum(generator.integers(10, 80, size=200))]).astype(np.int64)
    scores = generator.normal(size=offsets[-1]).astype(np.float32)
    breaks = generator.random(offsets[-1]) < 0.08
    breaks[offsets[:-1]] = True
    return scores, offsets, breaks


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("share", [None, 0.1, 0.37])
def test_every_decoder_gives_the_share_and_at_least_one_word(scored, decoder, share):
    scores, offsets, breaks = scored
    decoding = fit_decoding(scores, offsets, share=0.2, breaks=breaks)
    chosen = decoding.select(scores, offsets, decoder=decoder, share=share, breaks=breaks)
    assert chosen.mean() == pytest.approx(share or 0.2, rel=0.12)
    assert np.add.reduceat(chosen.astype(int), offsets[:-1]).min() >= 1


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("tokens", [1, 40, 333])
def test_many_documents_are_taken_in_pieces(monkeypatch, scored, decoder, tokens):
    scores, offsets, breaks = scored
    decoding = fit_decoding(scores, offsets, share=0.2, breaks=breaks)
    whole = decoding.select(scores, offsets, decoder=decoder, breaks=breaks)
    monkeypatch.setattr(module, "PIECE_TOKENS", tokens)
    assert np.array_equal(decoding.select(scores, offsets, decoder=decoder, breaks=breaks), whole)
    assert len(decoding.select(scores[:0], offsets[:1], decoder=decoder)) == 0


def test_equal_shares_are_equal_and_average_ones_are_not(scored):
    scores, offsets, breaks = scored
    decoding = fit_decoding(scores, offsets, share=0.2, breaks=breaks)

    def shares(decoder):
        chosen = decoding.select(scores, offsets, decoder=decoder, breaks=breaks)
        return np.add.reduceat(chosen.astype(int), offsets[:-1]) / np.diff(offsets)

    assert np.ptp(shares("equal")) < 0.1 < np.ptp(shares("average"))
    np.testing.assert_array_equal(shares("equal"), shares("spans-equal"))


def test_it_survives_json(scored):
    scores, offsets, breaks = scored
    decoding = fit_decoding(scores, offsets, share=0.17, breaks=breaks)
    assert Decoding.from_json(json.loads(json.dumps(decoding.to_json())), decoding.texts) == decoding
    with pytest.raises(ModelError, match="damaged"):
        Decoding.from_json({"share": "much"}, decoding.texts)


@pytest.mark.parametrize("decoder", ["average", "spans"])
@pytest.mark.parametrize("share", [0.04, 0.85, 0.93, 0.98])
def test_shares_near_the_ends_are_kept_too(scored, decoder, share):
    scores, offsets, breaks = scored
    decoding = fit_decoding(scores, offsets, share=0.2, breaks=breaks)
    chosen = decoding.select(scores, offsets, decoder=decoder, share=share, breaks=breaks)
    assert chosen.mean() == pytest.approx(share, rel=0.12 if share < 0.5 else 0.03)


@pytest.mark.parametrize("cost", [0.0, 1.0, 6.0])
def test_another_cost_of_spans_is_one_threshold_however_documents_come(scored, cost):
    scores, offsets, breaks = scored
    decoding = fit_decoding(scores, offsets, share=0.2, breaks=breaks)
    whole = decoding.select(scores, offsets, decoder="spans", span_cost=cost, breaks=breaks)
    assert whole.mean() == pytest.approx(0.2, rel=0.05)
    half, choice = offsets[100], {"decoder": "spans", "span_cost": cost}
    parts = [
        decoding.select(scores[:half], offsets[:101], breaks=breaks[:half], **choice),
        decoding.select(scores[half:], offsets[100:] - half, breaks=breaks[half:], **choice),
    ]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_a_model_keeps_the_scores_of_some_whole_documents(monkeypatch, scored):
    scores, offsets, breaks = scored
    monkeypatch.setattr("infocal.decoding.SAMPLE_TOKENS", 1000)
    texts = ScoredTexts.some(scores, offsets, breaks)
    assert 500 < len(texts.scores) < 1500
    step = -(-len(scores) // 1000)
    second = slice(offsets[step], offsets[step + 1])
    ours = slice(texts.offsets[1], texts.offsets[2])
    np.testing.assert_array_equal(texts.scores[ours], scores[second])
    np.testing.assert_array_equal(texts.breaks[ours], breaks[second])


def test_wrong_choices_are_named(scored):
    scores, offsets, breaks = scored
    decoding = fit_decoding(scores, offsets, share=0.2, breaks=breaks)
    with pytest.raises(SettingsError, match="spans-equal"):
        decoding.select(scores, offsets, decoder="best")
    with pytest.raises(SettingsError, match="between 0 and 1"):
        decoding.select(scores, offsets, share=1.5)


def test_many_sentences_make_spans_dear():
    offsets = np.array([0, 50, 100])
    few, many = np.zeros(100, bool), np.zeros(100, bool)
    few[[0, 50]] = True
    many[::10] = True
    assert suggest_span_cost(offsets, many) > suggest_span_cost(offsets, few) == suggest_span_cost(offsets, None)
