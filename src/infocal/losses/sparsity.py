"""What a selection costs by its size, and by its pieces when only probabilities are known."""

from __future__ import annotations

from torch import Tensor

from infocal.losses.reductions import masked_mean, masked_sum

__all__ = ["boundaries", "expected_transitions", "selected_share", "selected_words"]


def selected_words(selection: Tensor, mask: Tensor) -> Tensor:
    """sum_i z_i: the number of selected words (Lei et al. 2016, the first term of Omega).

    Args:
        selection: (b, t), 0 or 1.
        mask: (b, t), True on real tokens.

    Returns:
        (b,).
    """
    return masked_sum(selection, mask)


def boundaries(selection: Tensor, mask: Tensor) -> Tensor:
    """sum_i |z_i - z_{i-1}|: how often a run of selected words begins or ends (the second term of Omega).

    Args:
        selection: (b, t), 0 or 1.
        mask: (b, t), True on real tokens.

    Returns:
        (b,).
    """
    return masked_sum((selection[:, 1:] - selection[:, :-1]).abs(), mask[:, 1:])


def selected_share(probability: Tensor, mask: Tensor) -> Tensor:
    """Mean probability of being selected: the expected L0 norm, per word (Bastings et al. 2019; Yoon et al. 2019).

    Args:
        probability: (b, t), of each token not being zero.
        mask: (b, t), True on real tokens.

    Returns:
        (b,), between 0 and 1.
    """
    return masked_mean(probability, mask)


def expected_transitions(probability: Tensor, mask: Tensor) -> Tensor:
    """Expected share of neighbours of which exactly one is selected (the fused lasso of Bastings et al. 2019).

    It is exact, not a sample, for choices that are independent given the text:
    P(z_{i-1} = 0) P(z_i != 0) + P(z_{i-1} != 0) P(z_i = 0), averaged over the pairs of a document.

    Args:
        probability: (b, t), of each token not being zero.
        mask: (b, t), True on real tokens.

    Returns:
        (b,), between 0 and 1; 0 for a document of one word.
    """
    before, here = probability[:, :-1], probability[:, 1:]
    return masked_mean((1 - before) * here + before * (1 - here), mask[:, 1:])
