"""Hard choices: the stated probabilities, and choices that see those before them."""

import pytest
import torch

from infocal.nn.choices import ChoiceLayer, choose, uniform_draws


@pytest.fixture
def layer():
    torch.manual_seed(0)
    layer = ChoiceLayer(input_width=3, state_width=4)
    with torch.no_grad():
        layer.score.weight.mul_(8)
        layer.choice.weight.mul_(4)
    return layer.double()


def given(documents, tokens):
    generator = torch.Generator().manual_seed(1)
    scores = torch.randn(documents, tokens, generator=generator, dtype=torch.float64)
    states = torch.randn(documents, tokens, 3, generator=generator, dtype=torch.float64)
    return scores, states, torch.rand(documents, tokens, generator=generator, dtype=torch.float64)


def test_choices_have_their_probabilities_and_no_gradient():
    logits = torch.tensor([-2.0, 0.0, 1.5]).expand(60_000, 3).requires_grad_()
    draws = uniform_draws(torch.ones(60_000, 3, dtype=torch.bool), generator=torch.Generator().manual_seed(0))
    chosen = choose(logits, draws)
    assert set(chosen.unique().tolist()) == {0.0, 1.0}
    torch.testing.assert_close(chosen.mean(0), torch.sigmoid(logits[0]), atol=0.01, rtol=0)
    assert not chosen.requires_grad


def test_the_layer_is_the_recurrence_of_its_docstring(layer):
    scores, states, draws = given(1, 6)
    found, chosen = layer(scores, states, draws)
    width = 4
    memory = state = torch.zeros(width, dtype=torch.float64)
    for token in range(6):
        odds = scores[0, token] + layer.score.weight[0] @ state
        torch.testing.assert_close(found[0, token], odds)
        choice = float(draws[0, token] < torch.sigmoid(odds))
        assert chosen[0, token] == choice
        inputs = layer.inputs.weight @ states[0, token] + layer.inputs.bias + choice * layer.choice.weight[:, 0]
        forget = torch.sigmoid(inputs[:width] + layer.recurrent.weight @ state)
        memory = forget * memory + (1 - forget) * inputs[width:]
        state = torch.tanh(memory)


def test_a_choice_changes_the_odds_after_it_and_none_before(layer):
    scores, states, draws = given(1, 6)
    draws[:, 2] = 0.0
    first, _ = layer(scores, states, draws)
    draws[:, 2] = 1.0
    second, _ = layer(scores, states, draws)
    assert torch.equal(first[:, :3], second[:, :3])
    assert (first[:, 3:] != second[:, 3:]).all()


def test_documents_of_a_batch_do_not_see_one_another_nor_their_padding(layer):
    scores, states, draws = given(3, 6)
    together = layer(scores, states, draws)
    alone = layer(scores[1:2, :4], states[1:2, :4], draws[1:2, :4])
    for one, other in zip(together, alone, strict=True):
        torch.testing.assert_close(one[1:2, :4], other)


def test_the_gradient_of_the_odds_with_the_choices_fixed(layer):
    scores, states, draws = given(2, 5)
    scores = scores * 3
    assert torch.autograd.gradcheck(
        lambda s, h: layer(s, h, draws)[0], (scores.requires_grad_(), states.requires_grad_())
    )
