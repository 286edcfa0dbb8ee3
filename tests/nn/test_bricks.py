"""Embedding, reader, selector, language model."""

import pytest
import torch

from infocal.nn.embedding import TokenEmbedding
from infocal.nn.language_model import VectorLanguageModel
from infocal.nn.reader import DEVIATION_FLOOR, Reader, attend
from infocal.nn.selector import Selector


def test_frozen_ids_keep_their_vectors_and_free_ones_learn():
    frozen = torch.tensor([False, False, True, False, True])
    embedding = TokenEmbedding(size=5, width=3, frozen=frozen)
    embedding.fill(torch.tensor([2, 4, 3]), torch.tensor([[1.0, 1, 1], [2, 2, 2], [3, 3, 3]]))
    ids = torch.tensor([[1, 2, 3, 4, 0]])
    vectors = embedding(ids)
    assert vectors[0, 1:4].tolist() == [[1, 1, 1], [3, 3, 3], [2, 2, 2]]
    assert vectors[0, 4].tolist() == [0, 0, 0]
    vectors.sum().backward()
    assert [name for name, _ in embedding.named_parameters()] == ["free"]
    assert embedding.free.grad.sum(1).tolist() == [0.0, 3.0, 3.0]  # padding, id 1, id 3


def test_all_ids_learn_without_vectors():
    embedding = TokenEmbedding(size=4, width=2)
    assert embedding(torch.tensor([[0, 3]]))[0, 0].tolist() == [0, 0]
    assert embedding.free.shape == (4, 2)


def test_attention_weighs_the_real_tokens_only():
    states = torch.tensor([[[1.0], [5.0], [100.0]], [[-3.0], [7.0], [7.0]]])
    scores = torch.tensor([[0.0, 3.0, 50.0], [2.0, 9.0, 9.0]])
    mask = torch.tensor([[True, True, False], [True, False, False]])
    weight = 1 / (1 + torch.e**3)
    torch.testing.assert_close(attend(states, scores, mask), torch.tensor([[weight + 5 * (1 - weight)], [-3.0]]))


def reader(**more):
    torch.manual_seed(0)
    sizes = {"input_width": 4, "hidden_width": 3, "feature_width": 5, "layers": 1, "dropout": 0.0}
    return Reader(encoder="gru", **sizes, **more)


def test_each_of_several_tasks_has_its_own_attention():
    brick, mask = reader(tasks=3), torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    inputs = torch.randn(2, 6, 4)
    found, states = brick(inputs, mask), brick.encoder(inputs, mask)
    assert found.mean.shape == found.deviation.shape == found.sample.shape == (2, 3, 5)
    for task in range(3):
        scores = states @ brick.attention.weight[task] + brick.attention.bias[task]
        torch.testing.assert_close(found.mean[:, task], brick.mean(attend(states, scores, mask)))


def test_features_are_the_mean_without_a_generator_and_a_draw_with_one():
    brick, inputs, mask = reader(), torch.randn(2, 6, 4), torch.ones(2, 6, dtype=torch.bool)
    still = brick(inputs, mask)
    assert torch.equal(still.sample, still.mean)
    assert (still.deviation >= DEVIATION_FLOOR).all()
    drawn = brick(inputs, mask, generator=torch.Generator().manual_seed(1))
    noise = torch.randn(2, 5, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(drawn.sample, drawn.mean + drawn.deviation * noise)


def test_the_language_model_reads_only_what_is_left_of_a_word():
    torch.manual_seed(0)
    model = VectorLanguageModel(width=4, hidden_width=3)
    vectors = torch.randn(1, 6, 4)
    scores = model(vectors)
    assert scores[0, 0] == 0
    later = vectors.clone()
    later[0, 4:] += 1
    torch.testing.assert_close(model(later)[0, :4], scores[0, :4])
    assert not torch.equal(model(later)[0, 4:], scores[0, 4:])
    expected = model.bilinear(model.recurrence(vectors[:, :2])[0][:, 1])
    torch.testing.assert_close(scores[0, 2], (expected[0] * vectors[0, 2]).sum())


def test_contrast_scores_all_negatives_at_every_position():
    torch.manual_seed(0)
    model = VectorLanguageModel(width=4, hidden_width=3)
    vectors, negatives = torch.randn(2, 5, 4), torch.randn(7, 4)
    positive, negative = model.contrast(vectors, negatives)
    torch.testing.assert_close(positive, model(vectors))
    assert negative.shape == (2, 5, 7)
    swapped = vectors.clone()
    swapped[0, 3] = negatives[2]
    torch.testing.assert_close(model(swapped)[0, 3], negative[0, 3, 2])


@pytest.mark.parametrize("centred", [True, False])
def test_scores_are_relative_to_those_of_their_document(centred):
    torch.manual_seed(0)
    sizes = {"input_width": 4, "hidden_width": 3, "layers": 1, "dropout": 0.0}
    selector = Selector(encoder="gru", **sizes, centred=centred)
    inputs, mask = torch.randn(2, 5, 4), torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    scores, states = selector.read(inputs, mask)
    free = selector.score(states).squeeze(-1)
    for row, length in enumerate((5, 3)):
        own, raw = scores[row, :length], free[row, :length]
        torch.testing.assert_close(own, raw - raw.mean() if centred else raw)
