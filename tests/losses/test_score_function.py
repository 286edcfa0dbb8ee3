"""The score function's expectation is the exact gradient, over all choices there are."""

import itertools

import pytest
import torch

from infocal.losses.score_function import log_probability, score_function

TOKENS = 4
MASKS = torch.tensor(list(itertools.product((0.0, 1.0), repeat=TOKENS)), dtype=torch.float64)
EVERY = torch.ones(len(MASKS), TOKENS, dtype=torch.bool)


def costs():
    weights = torch.tensor([0.3, -1.0, 0.7, 2.0], dtype=torch.float64)
    return (MASKS @ weights) ** 2 + MASKS[:, 0] * MASKS[:, 2]


@pytest.mark.parametrize("baseline", [0.0, 1.7])
def test_its_expected_gradient_is_that_of_the_expected_cost(baseline):
    logits = torch.tensor([0.4, -0.8, 1.1, -0.2], dtype=torch.float64, requires_grad=True)
    likelihood = log_probability(logits.expand(len(MASKS), -1), MASKS, EVERY)
    probability = likelihood.exp()
    assert probability.sum().item() == pytest.approx(1.0)
    (exact,) = torch.autograd.grad((probability * costs()).sum(), logits, retain_graph=True)
    scores = score_function(costs(), likelihood, baseline=baseline)
    (found,) = torch.autograd.grad((probability.detach() * scores).sum(), logits)
    torch.testing.assert_close(found, exact)


def test_a_good_baseline_lowers_the_variance():
    logits = torch.tensor([0.4, -0.8, 1.1, -0.2], dtype=torch.float64, requires_grad=True)
    cost = costs() + 50.0

    def spread(baseline):
        slopes = []
        for row in range(len(MASKS)):
            likelihood = log_probability(logits[None], MASKS[row : row + 1], EVERY[:1])
            score = score_function(cost[row], likelihood, baseline=baseline)
            slopes.append(torch.autograd.grad(score.sum(), logits)[0])
        return torch.stack(slopes).var(0).sum()

    assert spread(cost.mean()) < 0.1 * spread(0.0)


def test_no_gradient_flows_into_cost_or_baseline():
    cost, baseline, likelihood = (torch.randn(3, requires_grad=True) for _ in range(3))
    score_function(cost, likelihood, baseline=baseline).sum().backward()
    assert cost.grad is None and baseline.grad is None
    torch.testing.assert_close(likelihood.grad, (cost - baseline).detach())


def test_log_probability_counts_real_tokens_only():
    logits = torch.tensor([[0.0, 2.0, 9.0], [-1.0, 5.0, 5.0]])
    choices = torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    mask = torch.tensor([[True, True, False], [True, False, False]])
    on, off = torch.sigmoid(logits).log(), torch.sigmoid(-logits).log()
    expected = torch.stack((on[0, 0] + off[0, 1], on[1, 0]))
    torch.testing.assert_close(log_probability(logits, choices, mask), expected)
