"""The steps of the recurrent convolution, a block at a time, on and back; shapes as in `infocal.nn.rcnn`."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Block", "from_both_ends", "read_block", "return_block"]

_tanh_gradient = torch.ops.aten.tanh_backward.grad_input


def from_both_ends(tensor: Tensor) -> list[Tensor]:
    """(2, n, b, ...) -> n views (2, b, ...): the i-th of one with the i-th from the end of the other."""
    _, count, *rest = tensor.shape
    _, step, *strides = tensor.stride()
    start = tensor.storage_offset()
    return [
        tensor.as_strided((2, *rest), ((2 * (count - place) - 1) * step, *strides), start + place * step)
        for place in range(count)
    ]


@dataclass(frozen=True, slots=True)
class Block:
    """What the steps of one block leave for the gradient; the last three have the value before the block too.

    Attributes:
        gates: (k, 2, b, h), l.
        unigrams: (k + 1, 2, b, h), c1.
        bigrams: (k + 1, 2, b, h), c2 + b2.
        states: (2, k + 1, b, h), h; of the second direction the value before the block is the last.
    """

    gates: Tensor
    unigrams: Tensor
    bigrams: Tensor
    states: Tensor

    @classmethod
    def empty(cls, steps: int, memories: tuple[Tensor, Tensor, Tensor]) -> Block:
        """A block to fill, with c1, c2 + b2 and h (2, b, h) before it."""
        like = memories[0]
        _, *rest = like.shape
        gates, unigrams, bigrams = (like.new_empty(steps + extra, *like.shape) for extra in (0, 1, 1))
        states = like.new_empty(2, steps + 1, *rest)
        unigrams[0], bigrams[0], states[0, 0], states[1, -1] = *memories[:2], *memories[2]
        return cls(gates, unigrams, bigrams, states)

    def last(self) -> tuple[Tensor, Tensor, Tensor]:
        """c1, c2 + b2 and h after the block."""
        return self.unigrams[-1], self.bigrams[-1], torch.stack((self.states[0, -1], self.states[1, 0]))


def read_block(
    projected: Tensor, block: Block, recurrent: Tensor, output_bias: Tensor, absent: list[Tensor | None]
) -> None:
    """Run the recurrence over one block, filling it.

    Args:
        projected: (2, k, b, 3, h), W_l x + b, W_1 x, W_2 x + b2.
        block: with the memories before it.
        recurrent: (2, h, h), the transpose of U.
        output_bias: (1, h), b2 reading back.
        absent: k times (b, 1) bool, where reading back is still in the padding; None where nowhere.
    """
    to_gate, to_unigram, to_bigram = (from_both_ends(part) for part in projected.unbind(3))
    unigram, bigram, state = block.unigrams.unbind(0), block.bigrams.unbind(0), from_both_ends(block.states)
    candidate = torch.empty_like(unigram[0])
    for step, gate in enumerate(block.gates.unbind(0)):
        torch.baddbmm(to_gate[step], state[step], recurrent, out=gate).sigmoid_()
        torch.lerp(to_unigram[step], unigram[step], gate, out=unigram[step + 1])
        torch.add(to_bigram[step], unigram[step], out=candidate)
        torch.lerp(candidate, bigram[step], gate, out=bigram[step + 1])
        gone = absent[step]
        if gone is not None:
            unigram[step + 1][1].masked_fill_(gone, 0)
            torch.where(gone, output_bias, bigram[step + 1][1], out=bigram[step + 1][1])
        torch.tanh(bigram[step + 1], out=state[step + 1])
        if gone is not None:
            state[step + 1][1].masked_fill_(gone, 0)


def return_block(
    gradient: Tensor,
    carried: tuple[Tensor, Tensor],
    block: Block,
    recurrent: Tensor,
    absent: list[Tensor | None],
    out: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Run the recurrence's gradient back over one block, filling ``out``.

    Since (1 - l_t) * (c_{t-1} - candidate_t) = c_{t-1} - c_t, the gradient of the gate's input is
    l_t * (c_{t-1} - c_t) * dL/dc_t, summed over both memories: no candidate has to be kept.

    Args:
        gradient: (2, k, b, h), dL/dh from outside; its last step includes what the next block sends back;
            overwritten.
        carried: (2, b, h) each, dL/dc1 and dL/dc2 from the next block; overwritten.
        block: as `read_block` left it.
        recurrent: (2, h, h), U.
        absent: as `read_block` takes it.
        out: (2, k, b, 3, h), to be filled with the gradient of ``projected``.

    Returns:
        ``carried`` for the block before, and (h,), the gradient of b2 as the first value of reading back.
    """
    to_gate, to_unigram, to_bigram = (from_both_ends(part) for part in out.unbind(3))
    unigram, bigram, gates = block.unigrams.unbind(0), block.bigrams.unbind(0), block.gates.unbind(0)
    outside, state = from_both_ends(gradient), from_both_ends(block.states)
    first, second = carried
    first_kept, second_kept, change, scratch = (torch.empty_like(first) for _ in range(4))
    begun = first.new_zeros(first.shape[2])
    for step in range(len(gates) - 1, -1, -1):
        gone = absent[step]
        if gone is not None:
            begun += (second[1] * gone).sum(0)
            outside[step][1].masked_fill_(gone, 0)
            first[1].masked_fill_(gone, 0)
            second[1].masked_fill_(gone, 0)
        second.add_(_tanh_gradient(outside[step], state[step + 1], grad_input=scratch))
        torch.mul(second, gates[step], out=second_kept)
        torch.sub(second, second_kept, out=to_bigram[step])
        torch.sub(bigram[step], bigram[step + 1], out=change)
        torch.mul(change, second_kept, out=scratch)
        torch.mul(first, gates[step], out=first_kept)
        torch.sub(first, first_kept, out=to_unigram[step])
        torch.sub(unigram[step], unigram[step + 1], out=change)
        torch.addcmul(scratch, change, first_kept, out=to_gate[step])
        first_kept.add_(to_bigram[step])
        first, first_kept, second, second_kept = first_kept, first, second_kept, second
        if step:
            outside[step - 1].baddbmm_(to_gate[step], recurrent)
    return first, second, begun
