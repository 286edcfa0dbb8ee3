import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch

from infocal.nn import rcnn
from infocal.nn.rcnn import BidirectionalRCNN
from infocal.nn.reading_order import reversed_positions

STEPWISE = Path(__file__).parents[2] / "benchmarks" / "stepwise_rcnn.py"


def mask_of(*lengths, tokens=None):
    return torch.arange(tokens or max(lengths)) < torch.tensor(lengths).unsqueeze(1)


@pytest.fixture
def layer():
    torch.manual_seed(3)
    layer = BidirectionalRCNN(input_width=4, hidden_width=3).double()
    for parameter in (layer.gate_bias, layer.output_bias):
        torch.nn.init.normal_(parameter)
    return layer


@pytest.fixture(params=[1, 6, 1024])
def block_rows(request, monkeypatch):
    """Blocks of one step, of two steps, and one block for everything."""
    monkeypatch.setattr(rcnn, "ROWS_PER_BLOCK", request.param)


@pytest.fixture(scope="module")
def stepwise():
    if not STEPWISE.exists():
        pytest.skip("benchmarks/ is not here")
    spec = importlib.util.spec_from_file_location("stepwise_rcnn", STEPWISE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.StepwiseRCNN


def by_hand(layer, document, direction):
    """The equations of Lei et al. for one document (t, d) in numpy."""
    weights = layer.weight.detach().numpy()[direction].T
    gate_weight, unigram_weight, bigram_weight = np.split(weights, 3)
    recurrent, gate_bias, output_bias = (
        value.detach().numpy()[direction] for value in (layer.recurrent, layer.gate_bias, layer.output_bias)
    )
    state = unigram = bigram = np.zeros(len(gate_bias))
    states = []
    for token in document if direction == 0 else document[::-1]:
        gate = 1 / (1 + np.exp(-(gate_weight @ token + recurrent @ state + gate_bias)))
        bigram = gate * bigram + (1 - gate) * (unigram + bigram_weight @ token)
        unigram = gate * unigram + (1 - gate) * (unigram_weight @ token)
        state = np.tanh(bigram + output_bias)
        states.append(state)
    return np.array(states if direction == 0 else states[::-1])


def test_states_follow_the_equations_in_both_directions(layer, block_rows):
    lengths = (5, 3, 1)
    inputs = torch.randn(3, 5, 4, dtype=torch.float64)
    states = layer(inputs, mask_of(*lengths)).detach().numpy()
    for number, length in enumerate(lengths):
        document = inputs[number, :length].numpy()
        expected = np.concatenate([by_hand(layer, document, direction) for direction in range(2)], 1)
        np.testing.assert_allclose(states[number, :length], expected, rtol=1e-12)
        assert (states[number, length:] == 0).all()


@pytest.mark.parametrize("lengths", [(7, 7, 7), (7, 3, 1)])
def test_gradients_equal_those_of_the_step_by_step_cell(layer, stepwise, block_rows, lengths):
    reference = stepwise(input_width=4, hidden_width=3).double()
    reference.copy_from(layer.weight, layer.recurrent, layer.gate_bias, layer.output_bias)
    inputs = torch.randn(3, 7, 4, dtype=torch.float64, requires_grad=True)
    outside = torch.randn(3, 7, 6, dtype=torch.float64)
    mask = mask_of(*lengths)
    states, expected = layer(inputs, mask), reference(inputs, None if mask.all() else mask)
    torch.testing.assert_close(states, expected)
    (expected_inputs,) = torch.autograd.grad((expected * outside).sum(), inputs, retain_graph=True)
    (expected * outside).sum().backward(inputs=list(reference.parameters()))
    (states * outside).sum().backward()
    torch.testing.assert_close(inputs.grad, expected_inputs)
    for direction, cell in enumerate(reference.cells):
        parts = [cell.gate.weight.grad, cell.unigram.weight.grad, cell.bigram.weight.grad]
        torch.testing.assert_close(layer.weight.grad[direction], torch.cat(parts).t())
        torch.testing.assert_close(layer.recurrent.grad[direction], cell.gate_state.weight.grad)
        torch.testing.assert_close(layer.gate_bias.grad[direction], cell.gate.bias.grad)
        torch.testing.assert_close(layer.output_bias.grad[direction], cell.output_bias.grad)


def test_gradients_pass_finite_differences_with_padding(layer, block_rows):
    mask = mask_of(4, 2, 0, 1)
    inputs = torch.randn(4, 4, 4, dtype=torch.float64, requires_grad=True)
    names = [name for name, _ in layer.named_parameters()]

    def states(given, *parameters):
        named = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(layer, named, (given, mask))

    assert torch.autograd.gradcheck(states, (inputs, *layer.parameters()))


def test_nothing_flows_to_or_from_padding(layer, block_rows):
    mask = mask_of(2, 5)
    inputs = torch.randn(2, 5, 4, dtype=torch.float64, requires_grad=True)
    changed = inputs.detach().masked_fill(~mask.unsqueeze(2), 7.0)
    assert torch.equal(layer(inputs, mask), layer(changed, mask))
    (gradient,) = torch.autograd.grad(layer(inputs, mask).sum(), inputs)
    assert (gradient[~mask] == 0).all()
    assert (gradient[mask] != 0).all()


@pytest.mark.parametrize("wanted", ["inputs", "weight", "recurrent", "gate_bias", "output_bias"])
def test_one_gradient_alone_equals_it_among_all(layer, wanted):
    mask = mask_of(3, 5)
    inputs = torch.randn(2, 5, 4, dtype=torch.float64)
    leaves = {"inputs": inputs, **dict(layer.named_parameters())}
    outside = torch.randn(2, 5, 6, dtype=torch.float64)

    def gradients(names):
        for name, leaf in leaves.items():
            leaf.requires_grad_(name in names)
        found = torch.autograd.grad(layer(inputs, mask), [leaves[name] for name in names], outside)
        return dict(zip(names, found, strict=True))

    assert torch.equal(gradients([wanted])[wanted], gradients(list(leaves))[wanted])


def test_a_graph_can_be_used_twice(layer):
    inputs = torch.randn(2, 5, 4, dtype=torch.float64, requires_grad=True)
    states = layer(inputs, mask_of(3, 5))
    outside = torch.randn_like(states)
    (first,) = torch.autograd.grad(states, inputs, outside, retain_graph=True)
    (second,) = torch.autograd.grad(states, inputs, outside)
    assert torch.equal(first, second)


def test_the_outside_gradient_is_left_as_it_was(layer):
    inputs = torch.randn(1, 4, 4, dtype=torch.float64, requires_grad=True)
    outside = torch.ones(1, 4, 6, dtype=torch.float64)
    torch.autograd.grad(layer(inputs, mask_of(4)), inputs, outside)
    assert (outside == 1).all()


def test_without_gradients_the_states_are_the_same(layer):
    inputs = torch.randn(2, 5, 4, dtype=torch.float64)
    with torch.no_grad():
        plain = layer(inputs, mask_of(3, 5))
    assert not plain.requires_grad
    assert torch.equal(plain, layer(inputs, mask_of(3, 5)))


def test_single_precision_stays_single_and_close(layer):
    inputs = torch.randn(2, 5, 4, dtype=torch.float64)
    expected = layer(inputs, mask_of(3, 5))
    states = layer.float()(inputs.float(), mask_of(3, 5))
    assert states.dtype == torch.float32
    torch.testing.assert_close(states.double(), expected, atol=1e-5, rtol=1e-4)


def test_recurrent_weights_start_orthogonal():
    layer = BidirectionalRCNN(input_width=4, hidden_width=8)
    for block in layer.recurrent.detach():
        torch.testing.assert_close(block @ block.t(), torch.eye(8))


def test_reversed_positions_turn_words_and_leave_padding():
    table = reversed_positions(mask_of(4, 2, 0))
    assert table.tolist() == [[3, 2, 1, 0], [1, 0, 2, 3], [0, 1, 2, 3]]
    assert torch.equal(table.gather(1, table), torch.arange(4).expand(3, 4))


def test_blocks_cover_every_step_once(block_rows):
    blocks = rcnn._blocks(7, 3)
    assert [step for start, end in blocks for step in range(start, end)] == list(range(7))
