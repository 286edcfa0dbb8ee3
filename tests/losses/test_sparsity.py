"""Sizes and pieces of selections, against numpy."""

import numpy as np
import pytest
import torch

from infocal.losses.constraints import constraint, next_multiplier
from infocal.losses.fluency import fused_lasso
from infocal.losses.sparsity import expected_transitions, selected_share, selected_words

RNG = np.random.default_rng(0)
PROBABILITY = RNG.random((3, 5))
LENGTHS = np.array([5, 3, 1])
MASK = np.arange(5) < LENGTHS[:, None]


def test_words_and_share_of_real_tokens():
    values, mask = torch.tensor(PROBABILITY), torch.tensor(MASK)
    sums = [PROBABILITY[row, :length].sum() for row, length in enumerate(LENGTHS)]
    np.testing.assert_allclose(selected_words(values, mask), sums)
    np.testing.assert_allclose(selected_share(values, mask), sums / LENGTHS)


def test_expected_transitions_by_hand():
    expected = []
    for row, length in enumerate(LENGTHS):
        p = PROBABILITY[row, :length]
        pairs = [p[i - 1] * (1 - p[i]) + (1 - p[i - 1]) * p[i] for i in range(1, length)]
        expected.append(np.mean(pairs) if pairs else 0.0)
    np.testing.assert_allclose(expected_transitions(torch.tensor(PROBABILITY), torch.tensor(MASK)), expected)


def test_certain_choices_have_the_transitions_of_the_fused_lasso():
    choices, mask = torch.tensor(PROBABILITY > 0.5).float(), torch.tensor(MASK)
    torch.testing.assert_close(expected_transitions(choices, mask), fused_lasso(choices, mask))


def test_a_constraint_is_priced_by_its_multiplier_alone():
    values = torch.tensor([0.5, 0.1], requires_grad=True)
    multiplier = torch.tensor(2.0, requires_grad=True)
    found = constraint(values, multiplier, target=0.2)
    torch.testing.assert_close(found, torch.tensor([0.6, -0.2]))
    found.sum().backward()
    assert values.grad.tolist() == [2.0, 2.0]
    assert multiplier.grad is None


@pytest.mark.parametrize(
    ("excess", "expected"), [(0.5, 0.1 * np.exp(0.05)), (-0.5, 0.1 * np.exp(-0.05)), (90.0, 5.0), (-900.0, 1e-12)]
)
def test_a_multiplier_follows_the_excess_within_its_limits(excess, expected):
    found = next_multiplier(torch.tensor(0.1), torch.tensor(excess), rate=0.1, limits=(1e-12, 5.0))
    assert found.item() == pytest.approx(expected)


def test_a_multiplier_holds_a_quantity_at_its_target():
    """Minimise (x - 1)^2 subject to x = 0.3: the multiplier is 1.4 there."""
    place, multiplier = torch.tensor(0.9), torch.tensor(1e-5)
    for _ in range(6000):
        multiplier = next_multiplier(multiplier, place - 0.3, rate=0.05, limits=(1e-12, 5.0))
        place = place - 0.1 * (2 * (place - 1) + multiplier)
    assert place.item() == pytest.approx(0.3, abs=1e-3)
    assert multiplier.item() == pytest.approx(1.4, abs=1e-2)
