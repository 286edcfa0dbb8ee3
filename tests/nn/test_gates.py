"""Gates: hard values, soft gradients, the stated probabilities."""

import pytest
import torch

from infocal.nn.gates import binary_gumbel, positional_gumbel, sample_gate


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_a_binary_gate_is_on_with_its_probability():
    logits = torch.tensor([-2.0, -0.5, 0.0, 1.0, 3.0]).expand(40_000, 5)
    gates = binary_gumbel(logits, temperature=1.0, noise=1.0, generator=generator())
    assert set(gates.unique().tolist()) == {0.0, 1.0}
    torch.testing.assert_close(gates.mean(0), torch.sigmoid(logits[0]), atol=0.01, rtol=0)


def test_without_noise_the_gate_is_the_sign_of_the_log_odds():
    logits = torch.tensor([[-0.1, 0.1, 5.0]])
    gates = binary_gumbel(logits, temperature=1.0, noise=0.0, generator=generator())
    assert gates.tolist() == [[0.0, 1.0, 1.0]]


def test_the_gradient_is_that_of_the_relaxation():
    logits = torch.tensor([[0.3, -1.2]], requires_grad=True)
    gates = binary_gumbel(logits, temperature=0.7, noise=0.0, generator=generator())
    (found,) = torch.autograd.grad(gates.sum(), logits)
    soft = torch.sigmoid(logits.detach() / 0.7)
    torch.testing.assert_close(found, soft * (1 - soft) / 0.7)


def test_the_printed_gate_sums_to_one_over_the_real_tokens():
    logits = torch.randn(4, 6, generator=generator(1))
    mask = torch.arange(6) < torch.tensor([[6], [4], [1], [2]])
    gates = positional_gumbel(logits, mask, temperature=0.5, generator=generator())
    torch.testing.assert_close(gates.sum(1), torch.ones(4))
    assert not gates[~mask].any()


def test_sampling_is_reproducible_and_zero_on_padding():
    logits, mask = torch.full((2, 5), 9.0), torch.tensor([[True] * 5, [True, False, False, False, False]])

    def draw(relaxation="binary", seed=0):
        return sample_gate(
            logits, mask, relaxation=relaxation, temperature=1.0, noise=1.0, generator=generator(seed)
        )

    assert torch.equal(draw(), draw())
    assert not draw()[~mask].any()
    with pytest.raises(ValueError, match="positional"):
        draw("other")
