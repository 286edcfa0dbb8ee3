"""Dropout with cheap random numbers."""

import pytest
import torch
from torch import nn

from infocal.nn.dropout import Dropout


@pytest.mark.parametrize("p", [0.1, 0.4, 0.9])
def test_so_many_values_are_dropped_and_the_others_grow(p):
    torch.manual_seed(0)
    values = torch.ones(700, 301)
    dropped = Dropout(p)(values)
    zero = dropped == 0
    deviation = (p * (1 - p) / values.numel()) ** 0.5
    assert abs(zero.float().mean().item() - p) < 5 * deviation
    torch.testing.assert_close(dropped[~zero], torch.full_like(dropped[~zero], 1 / (1 - p)), rtol=1e-3, atol=0)


def test_every_place_of_a_draw_is_as_random_as_the_others():
    """Four values share 64 bits; neither their places nor their neighbours tell anything."""
    torch.manual_seed(1)
    kept = (Dropout(0.5)(torch.ones(100_000, 4)) != 0).float()
    assert (kept.mean(dim=0) - 0.5).abs().max() < 0.01
    assert (torch.corrcoef(kept.T) - torch.eye(4)).abs().max() < 0.02


def test_gradients_flow_through_the_kept_values_only():
    torch.manual_seed(2)
    values = torch.randn(50, 7, requires_grad=True)
    dropped = Dropout(0.4)(values)
    dropped.sum().backward()
    torch.testing.assert_close(values.grad * values.detach(), dropped.detach())


def test_it_follows_the_seed_and_ends_with_training():
    values, module = torch.randn(3, 5), Dropout(0.4)
    torch.manual_seed(3)
    first = module(values)
    torch.manual_seed(3)
    assert torch.equal(first, module(values))
    assert module.eval()(values) is values
    assert Dropout(0.0)(values) is values
    assert Dropout(0.4)(torch.empty(0, 5)).shape == (0, 5)
    assert "p=0.4" in repr(nn.Sequential(module))


@pytest.mark.parametrize("p", [-0.1, 1.0, float("nan")])
def test_a_share_that_cannot_be_dropped(p):
    with pytest.raises(ValueError, match="from 0 to below 1"):
        Dropout(p)
