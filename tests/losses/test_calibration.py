"""Attributions by gradient: what a word's removal changes, and the most that it could change."""

import torch

from infocal.losses.calibration import effect

MASK = torch.tensor([[True, True, True], [True, True, False]])


def test_effect_by_hand():
    gradient = torch.tensor([[[3.0, 4.0], [0.0, 1.0], [2.0, 0.0]], [[1.0, 0.0], [1.0, 0.0], [9.0, 9.0]]])
    vectors = torch.tensor([[[1.0, 0.0], [0.0, 2.0], [0.0, 3.0]], [[1.0, 0.0], [0.0, 1.0], [9.0, 9.0]]])
    bounds = [[5.0, 2.0, 6.0], [1.0, 1.0]]
    changes = [[3.0, 2.0, 0.0], [1.0, 0.0]]
    found = effect(gradient, vectors, MASK)
    for row, (bound, change) in enumerate(zip(bounds, changes, strict=True)):
        n = len(bound)
        expected = [b / (sum(bound) / n) + 0.5 * c / (sum(change) / n) for b, c in zip(bound, change, strict=True)]
        torch.testing.assert_close(found[row, :n], torch.tensor(expected))
    assert found[1, 2] == 0


def test_the_scale_of_gradient_and_vectors_does_not_matter():
    generator = torch.Generator().manual_seed(0)
    gradient, vectors = torch.randn(2, 3, 4, generator=generator), torch.randn(2, 3, 4, generator=generator)
    torch.testing.assert_close(effect(gradient, vectors, MASK), effect(7 * gradient, 0.1 * vectors, MASK))


def test_a_document_without_any_gradient_has_no_effect():
    assert effect(torch.zeros(2, 3, 4), torch.ones(2, 3, 4), MASK).abs().sum() == 0
