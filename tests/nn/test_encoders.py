import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from infocal.nn import encoders
from infocal.nn.encoders import ENCODERS, build_encoder


def encoder_of(kind, **options):
    torch.manual_seed(5)
    return build_encoder(kind, input_width=6, hidden_width=4, **options).double()


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("kind", ENCODERS)
@settings(deadline=None, max_examples=10)
@given(lengths=st.lists(st.integers(1, 7), min_size=1, max_size=4), extra=st.integers(0, 3))
def test_a_document_has_the_same_states_alone_and_padded_in_a_batch(kind, layers, lengths, extra):
    encoder = encoder_of(kind, layers=layers)
    tokens = max(lengths) + extra
    mask = torch.arange(tokens) < torch.tensor(lengths).unsqueeze(1)
    inputs = torch.randn(len(lengths), tokens, 6, dtype=torch.float64)
    states = encoder(inputs, mask)
    assert states.shape == (len(lengths), tokens, encoder.output_width)
    assert (states[~mask] == 0).all()
    for number, length in enumerate(lengths):
        alone = encoder(inputs[number : number + 1, :length], torch.ones(1, length, dtype=torch.bool))
        torch.testing.assert_close(states[number, :length], alone[0])


@pytest.mark.parametrize("kind", ENCODERS)
def test_input_gradients_pass_finite_differences(kind):
    encoder = encoder_of(kind, layers=2)
    mask = torch.tensor([[True, True, True], [True, False, False]])
    inputs = torch.randn(2, 3, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda given: encoder(given, mask), inputs)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_gated_kinds_equal_torch_bidirectional(kind):
    encoder = encoder_of(kind)
    reference = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[kind](
        6, 4, batch_first=True, bidirectional=True
    ).double()
    layer = encoder.layers[0]
    with torch.no_grad():
        for suffix, source in (("", layer.onward), ("_reverse", layer.backward_reader)):
            for name, parameter in source.named_parameters():
                getattr(reference, name + suffix).copy_(parameter)
    inputs = torch.randn(3, 5, 6, dtype=torch.float64)
    lengths = torch.tensor([5, 3, 1])
    packed = torch.nn.utils.rnn.pack_padded_sequence(inputs, lengths, batch_first=True)
    expected, _ = torch.nn.utils.rnn.pad_packed_sequence(reference(packed)[0], batch_first=True)
    torch.testing.assert_close(encoder(inputs, torch.arange(5) < lengths.unsqueeze(1)), expected)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_long_documents_come_to_gated_kinds_in_few_lengths_and_with_the_same_states(kind, monkeypatch):
    encoder, met = encoder_of(kind), set()
    encoder.layers[0].onward.register_forward_hook(lambda _, given, __: met.add(given[0].shape[1]))
    batches = []
    for tokens in (*range(62, 80), 399):
        mask = torch.arange(tokens) < torch.tensor([tokens, tokens - 9]).unsqueeze(1)
        batches.append((torch.randn(2, tokens, 6, dtype=torch.float64), mask))
    states = [encoder(*batch) for batch in batches]
    assert met == {62, 63, 64, 72, 80, 400}
    monkeypatch.setattr(encoders, "LONG", 1000)
    for batch, found in zip(batches, states, strict=True):
        torch.testing.assert_close(found, encoder(*batch))


@pytest.mark.parametrize("kind", ENCODERS)
def test_every_state_sees_words_on_both_sides(kind):
    encoder = encoder_of(kind)
    inputs = torch.randn(1, 5, 6, dtype=torch.float64, requires_grad=True)
    states = encoder(inputs, torch.ones(1, 5, dtype=torch.bool))
    (gradient,) = torch.autograd.grad(states[0, 2].square().sum(), inputs)
    assert (gradient[0].norm(dim=1) > 0).all()


@pytest.mark.parametrize("kind", ENCODERS)
def test_dropout_acts_between_layers_in_training_only(kind):
    inputs, mask = torch.randn(2, 4, 6, dtype=torch.float64), torch.ones(2, 4, dtype=torch.bool)
    one, two = encoder_of(kind, dropout=0.5), encoder_of(kind, layers=2, dropout=0.5)
    assert torch.equal(one(inputs, mask), one(inputs, mask))
    assert not torch.equal(two(inputs, mask), two(inputs, mask))
    assert torch.equal(two.eval()(inputs, mask), two(inputs, mask))


def test_an_lstm_starts_out_remembering():
    layer = encoder_of("lstm").layers[0]
    assert layer.onward.bias_ih_l0.tolist() == [0.0] * 4 + [1.0] * 4 + [0.0] * 8
    assert (layer.onward.bias_hh_l0 == 0).all()


def test_an_unknown_kind_is_told_the_choices():
    with pytest.raises(ValueError, match="'transformer'; choose one of rcnn, lstm, gru"):
        build_encoder("transformer", input_width=2, hidden_width=2)


@pytest.mark.parametrize("options", [{"hidden_width": 0}, {"input_width": -1}, {"layers": 0}])
def test_widths_and_layers_must_be_positive(options):
    with pytest.raises(ValueError, match="at least 1"):
        build_encoder("gru", **{"input_width": 2, "hidden_width": 2, **options})
