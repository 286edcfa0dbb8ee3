"""The HardKuma gate against numerical integration, empirical frequencies and finite differences."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad

from infocal.losses.sparsity import expected_transitions, selected_share
from infocal.nn.kumaraswamy import GREATEST, LEAST, HardKumaraswamy, KumaraswamySelector

STRETCH = 0.1
GRID = [(a, b) for a in (0.2, 0.7, 1.0, 2.5, 9.0) for b in (0.2, 0.7, 1.0, 2.5, 9.0)]
EXTREMES = [(a, b) for a in (LEAST, 1e-3, 1.0, GREATEST) for b in (LEAST, 1e-3, 1.0, GREATEST)]


def gate(a, b, dtype=torch.float64):
    return HardKumaraswamy(torch.tensor(a, dtype=dtype), torch.tensor(b, dtype=dtype), STRETCH)


def inner_density(k, a, b):
    return a * b * k ** (a - 1) * (1 - k**a) ** (b - 1)


def stretched_density(s, a, b):
    return inner_density((s + STRETCH) / (1 + 2 * STRETCH), a, b) / (1 + 2 * STRETCH)


def integral(function, low, high, a, b):
    return quad(function, low, high, args=(a, b), epsabs=1e-11, limit=200)[0]


@pytest.mark.parametrize(("a", "b"), GRID)
def test_density_between_zero_and_one(a, b):
    places = np.linspace(0.01, 0.99, 9)
    with np.errstate(all="raise"):
        expected = stretched_density(places, a, b)
    found = gate(a, b).log_density(torch.tensor(places)).exp().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize(("a", "b"), GRID)
def test_mass_at_zero_and_one_is_what_the_density_leaves(a, b):
    one_gate = gate(a, b)
    low, high = STRETCH / (1 + 2 * STRETCH), (1 + STRETCH) / (1 + 2 * STRETCH)
    zero = integral(inner_density, 0, low, a, b)
    between = integral(stretched_density, 0, 1, a, b)
    assert one_gate.log_zero().exp().item() == pytest.approx(zero, rel=1e-6)
    assert one_gate.log_nonzero().exp().item() == pytest.approx(1 - zero, rel=1e-6, abs=1e-8)
    assert one_gate.log_one().exp().item() == pytest.approx(1 - zero - between, rel=1e-6, abs=1e-9)
    assert one_gate.log_one().exp().item() == pytest.approx((1 - high**a) ** b, rel=1e-9)
    odds = math.log((1 - zero) / zero)
    assert one_gate.log_odds().item() == pytest.approx(odds, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(("a", "b"), GRID)
def test_mean_of_the_rectified_variable(a, b):
    one_gate = gate(a, b)
    between = integral(lambda s, *shape: s * stretched_density(s, *shape), 0, 1, a, b)
    assert one_gate.mean().item() == pytest.approx(one_gate.log_one().exp().item() + between, rel=1e-7)


@pytest.mark.parametrize(("a", "b"), EXTREMES)
def test_mean_at_the_limits_of_the_shapes(a, b):
    edges = np.linspace(0, 1, 200_001)
    inner = (edges + STRETCH) / (1 + 2 * STRETCH)
    above = np.exp(b * np.log(-np.expm1(a * np.log(inner))))
    assert gate(a, b).mean().item() == pytest.approx(np.trapezoid(above, edges), abs=1e-5)


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (1.0, 3.0), (2.0, 0.4), (4.0, 4.0)])
def test_samples_have_the_stated_frequencies(a, b):
    count = 200_000
    one_gate = gate(a, b, torch.float32)
    draws = torch.rand(count, generator=torch.Generator().manual_seed(0))
    sampled = one_gate.sample(draws)
    assert sampled.min() >= 0 and sampled.max() <= 1
    assert (sampled == 0).float().mean().item() == pytest.approx(one_gate.log_zero().exp().item(), abs=0.005)
    assert (sampled == 1).float().mean().item() == pytest.approx(one_gate.log_one().exp().item(), abs=0.005)
    assert sampled.mean().item() == pytest.approx(one_gate.mean().item(), abs=0.005)
    middle = integral(stretched_density, 0.25, 0.5, a, b)
    inside = ((sampled > 0.25) & (sampled < 0.5)).float().mean().item()
    assert inside == pytest.approx(middle, abs=0.005)


def test_a_sample_inverts_the_distribution_function_and_follows_its_gradient():
    shapes = torch.tensor([[0.8, 1.5, 2.0], [1.2, 0.6, 1.0]], dtype=torch.float64, requires_grad=True)
    draws = torch.tensor([0.5, 0.6, 0.4], dtype=torch.float64)

    def sample(values):
        return HardKumaraswamy(values[0], values[1], STRETCH).sample(draws)

    found = sample(shapes)
    assert ((found > 0) & (found < 1)).all()
    inner = (found + STRETCH) / (1 + 2 * STRETCH)
    survival = (1 - inner ** shapes[0]) ** shapes[1]
    torch.testing.assert_close(survival, draws)
    assert torch.autograd.gradcheck(sample, (shapes,))


def test_the_deterministic_value_is_the_likeliest_kind():
    zero, one, between = gate(0.1, 5.0), gate(5.0, 0.1), gate(4.0, 10.0)
    assert zero.deterministic().item() == 0
    assert one.deterministic().item() == 1
    assert between.deterministic().item() == between.mean().item()
    assert 0 < between.mean().item() < 1


@pytest.mark.parametrize("loss", [selected_share, expected_transitions])
def test_gradients_of_the_constraints(loss):
    shapes = torch.rand(2, 3, 6, generator=torch.Generator().manual_seed(2), dtype=torch.float64) * 3 + 0.1
    mask = torch.arange(6) < torch.tensor([[6], [3], [1]])

    def constrained(values):
        gates = HardKumaraswamy(values[0], values[1], STRETCH)
        return loss(gates.log_nonzero().exp(), mask)

    assert torch.autograd.gradcheck(constrained, (shapes.requires_grad_(),))


def test_the_expected_fused_lasso_is_the_share_of_sampled_transitions():
    shapes = torch.rand(2, 7, generator=torch.Generator().manual_seed(4)) * 2 + 0.2
    gates = HardKumaraswamy(shapes[0], shapes[1], STRETCH)
    draws = torch.rand(100_000, 7, generator=torch.Generator().manual_seed(5))
    is_open = gates.sample(draws) > 0
    sampled = (is_open[:, 1:] != is_open[:, :-1]).float().mean()
    exact = expected_transitions(gates.log_nonzero().exp()[None], torch.ones(1, 7, dtype=torch.bool))
    assert exact.item() == pytest.approx(sampled.item(), abs=0.004)


@pytest.mark.parametrize(("a", "b"), EXTREMES)
def test_single_precision_stays_finite_at_the_limits(a, b):
    shapes = torch.tensor([a, b], requires_grad=True)
    one_gate = HardKumaraswamy(shapes[0], shapes[1], STRETCH)
    draws = torch.tensor([0.0, 1e-6, 0.3, 0.7, 1 - 1e-7])
    between = torch.tensor([0.001, 0.5, 0.999])
    parts = [
        one_gate.sample(draws),
        one_gate.log_density(between),
        one_gate.log_zero(),
        one_gate.log_one(),
        one_gate.log_odds(),
        one_gate.mean(),
    ]
    for part in parts:
        (slope,) = torch.autograd.grad(part.sum(), shapes, retain_graph=True)
        assert torch.isfinite(part).all() and torch.isfinite(slope).all()


@pytest.mark.parametrize(("a", "b"), EXTREMES)
def test_single_precision_agrees_with_double_at_the_limits(a, b):
    single, double = gate(a, b, torch.float32), gate(a, b)
    assert single.log_odds().item() == pytest.approx(double.log_odds().item(), rel=1e-4, abs=1e-5)
    assert single.log_one().item() == pytest.approx(double.log_one().item(), rel=1e-4, abs=1e-5)


def test_the_selectors_shapes_stay_within_their_limits_and_padding_has_no_influence():
    torch.manual_seed(0)
    sizes = {"encoder": "gru", "input_width": 4, "hidden_width": 3, "layers": 1, "dropout": 0.0}
    selector = KumaraswamySelector(**sizes, stretch=STRETCH)
    with torch.no_grad():
        selector.shape.bias.copy_(torch.tensor([-1000.0, 1000.0]))
    inputs, mask = torch.randn(2, 5, 4), torch.arange(5) < torch.tensor([[5], [3]])
    gates = selector(inputs, mask)
    assert gates.a.shape == gates.b.shape == (2, 5)
    assert gates.a.min().item() == pytest.approx(LEAST) and gates.b.max().item() == GREATEST
    with torch.no_grad():
        selector.shape.bias.zero_()
    whole, alone = selector(inputs, mask), selector(inputs[1:, :3], mask[1:, :3])
    torch.testing.assert_close(whole.a[1:, :3], alone.a)


@pytest.mark.parametrize("share", [0.05, 0.19, 0.5])
def test_a_selector_can_start_with_about_the_share_of_gates_open(share):
    torch.manual_seed(0)
    sizes = {"encoder": "gru", "input_width": 16, "hidden_width": 20, "layers": 1, "dropout": 0.0}
    inputs, mask = torch.randn(20, 30, 16), torch.ones(20, 30, dtype=torch.bool)
    started = KumaraswamySelector(**sizes, stretch=STRETCH, open_share=share)
    found = torch.exp(started(inputs, mask).log_nonzero()).mean().item()
    assert found == pytest.approx(share, rel=0.25)
    with torch.no_grad():
        started.shape.weight.zero_()
    assert torch.exp(started(inputs, mask).log_nonzero()).mean().item() == pytest.approx(share, rel=1e-3)
    by_chance = KumaraswamySelector(**sizes, stretch=STRETCH)
    assert torch.exp(by_chance(inputs, mask).log_nonzero()).mean().item() > 0.7
