"""Theorem 1: of two selections of the same size the consecutive one has the lower L_lm."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from infocal.losses.fluency import language_model_cost


def cost(selection, scores, epsilon):
    """L_lm as printed, of masks that are epsilon or 1 - epsilon."""
    soft = np.where(selection, 1 - epsilon, epsilon)
    values = torch.tensor(np.stack([soft, np.broadcast_to(scores, soft.shape)]), dtype=torch.float64)
    mask = torch.ones(1, len(soft), dtype=torch.bool)
    return language_model_cost(values[:1], values[1:], mask, form="printed", reduction="sum").item()


@st.composite
def sentences(draw):
    """A length, scores of words that the language model expects, and a run inside the sentence."""
    length = draw(st.integers(12, 30))
    scores = np.array(draw(st.lists(st.floats(1.0, 6.0), min_size=length, max_size=length)))
    size = draw(st.integers(2, 5))
    start = draw(st.integers(1, length - size - 3))
    return length, scores, start, size


@settings(deadline=None, max_examples=200)
@given(sentences(), st.floats(1e-6, 1e-3))
def test_a_token_torn_out_of_the_middle_of_a_run_costs_more(sentence, epsilon):
    length, scores, start, size = sentence
    run = np.zeros(length, dtype=bool)
    run[start : start + size] = True
    for inside in range(start + 1, start + size):
        scattered = run.copy()
        scattered[inside] = False
        scattered[length - 2] = True  # the same number of tokens, one of them far away
        assert cost(run, scores, epsilon) < cost(scattered, scores, epsilon)


@settings(deadline=None, max_examples=200)
@given(sentences(), st.floats(1e-6, 1e-3))
def test_a_lonely_first_token_costs_more_than_a_longer_run(sentence, epsilon):
    length, scores, start, size = sentence
    if start < 2:
        start = 2
    run = np.zeros(length, dtype=bool)
    run[start : start + size] = True
    for inside in range(start, min(start + size, length)):
        scattered = run.copy()
        scattered[inside] = False
        scattered[0] = True
        if inside == start + size - 1:
            continue  # the run only becomes shorter at its end; one boundary is exchanged for another
        assert cost(run, scores, epsilon) < cost(scattered, scores, epsilon)


def test_the_theorem_needs_a_successor_the_last_word_of_a_text_is_free():
    """The proof writes a term for position n + 1; at the end of a text there is none, and (1) fails."""
    scores = np.full(8, 1.0)
    run, torn = np.zeros(8, dtype=bool), np.zeros(8, dtype=bool)
    run[1:3] = True
    torn[[1, 7]] = True
    assert cost(run, scores, 1e-6) > cost(torn, scores, 1e-6)


def test_scores_enter_only_behind_a_selected_word():
    scores = np.array([3.0, -2.0, 5.0, 1.0])
    lonely = np.array([False, False, False, True])
    assert cost(lonely, scores, 0.0) == 0.0  # entering a run costs nothing, and the last word has no successor
