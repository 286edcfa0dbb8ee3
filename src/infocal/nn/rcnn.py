"""The recurrent convolution of Lei et al. (2016), both directions in one loop.

A bigram cell with an adaptive gate (*Rationalizing Neural Predictions*, EMNLP 2016)::

    l_t  = sigmoid(W_l x_t + U_l h_{t-1} + b)
    c1_t = l_t * c1_{t-1} + (1 - l_t) * (W_1 x_t)
    c2_t = l_t * c2_{t-1} + (1 - l_t) * (c1_{t-1} + W_2 x_t)
    h_t  = tanh(c2_t + b2)

Shapes: b documents, t tokens, d inputs, h hidden units; k steps in a block; the axis of length 2 that comes
first is the direction (reading on, reading back).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from infocal.nn.reading_order import ReadingOrder

__all__ = ["BidirectionalRCNN"]

_tanh_gradient = torch.ops.aten.tanh_backward.grad_input


@dataclass(frozen=True, slots=True)
class _Block:
    """What the steps of one block leave for the gradient.

    Attributes:
        gates: (k, 2, b, h), l.
        unigrams: (k + 1, 2, b, h), c1, the one before the block first.
        bigrams: (k + 1, 2, b, h), c2 + b2, the one before the block first.
    """

    gates: Tensor
    unigrams: Tensor
    bigrams: Tensor

    @classmethod
    def empty(cls, steps: int, unigram: Tensor, bigram: Tensor) -> _Block:
        """A block to fill, with the memories (2, b, h) from which it starts."""
        gates = unigram.new_empty(steps, *unigram.shape)
        block = cls(gates, *(unigram.new_empty(steps + 1, *unigram.shape) for _ in range(2)))
        block.unigrams[0], block.bigrams[0] = unigram, bigram
        return block


def _read_block(
    projected: Tensor, block: _Block, states: Tensor, recurrent: Tensor, biases: tuple[Tensor, Tensor]
) -> None:
    """Run the recurrence over one block, filling ``block`` and ``states``.

    Args:
        projected: (2, k, b, 3, h), W_l x, W_1 x, W_2 x; overwritten.
        block: with the memories before it.
        states: (2, k + 1, b, h), the state before the block first.
        recurrent: (2, h, h), the transpose of U.
        biases: (2, 1, h) each, b and b2.
    """
    gate_bias, output_bias = biases
    to_gate, to_unigram, to_bigram = (part.unbind(1) for part in projected.unbind(3))
    unigram, bigram, state = block.unigrams.unbind(0), block.bigrams.unbind(0), states.unbind(1)
    scratch = torch.empty_like(unigram[0])
    for step, gate in enumerate(block.gates.unbind(0)):
        torch.add(to_gate[step].baddbmm_(state[step], recurrent), gate_bias, out=gate).sigmoid_()
        torch.lerp(to_unigram[step], unigram[step], gate, out=unigram[step + 1])
        torch.add(to_bigram[step], unigram[step], out=scratch).add_(output_bias)
        torch.lerp(scratch, bigram[step], gate, out=bigram[step + 1])
        torch.tanh(bigram[step + 1], out=state[step + 1])


def _return_block(
    gradient: Tensor, carried: tuple[Tensor, Tensor], block: _Block, states: Tensor, recurrent: Tensor, out: Tensor
) -> tuple[Tensor, Tensor]:
    """Run the recurrence's gradient back over one block, filling ``out``.

    Since (1 - l_t) * (c_{t-1} - candidate_t) = c_{t-1} - c_t, the gradient of the gate's input is
    l_t * (c_{t-1} - c_t) * dL/dc_t, summed over both memories: no candidate has to be kept.

    Args:
        gradient: (2, k, b, h), dL/dh from outside; its last step includes what the next block sends back;
            overwritten.
        carried: (2, b, h) each, dL/dc1 and dL/dc2 from the next block; overwritten.
        block: as `_read_block` left it.
        states: (2, k, b, h), after each step.
        recurrent: (2, h, h), U.
        out: (2, k, b, 3, h), to be filled with the gradient of ``projected``.

    Returns:
        ``carried`` for the block before.
    """
    to_gate, to_unigram, to_bigram = (part.unbind(1) for part in out.unbind(3))
    unigram, bigram, gates = block.unigrams.unbind(0), block.bigrams.unbind(0), block.gates.unbind(0)
    outside, state = gradient.unbind(1), states.unbind(1)
    first, second = carried
    first_kept, second_kept, change, scratch = (torch.empty_like(first) for _ in range(4))
    for step in range(len(gates) - 1, -1, -1):
        second.add_(_tanh_gradient(outside[step], state[step], grad_input=scratch))
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
    return first, second


def _gradient_of_states(gradient: Tensor, order: ReadingOrder, start: int, end: int) -> Tensor:
    """The outputs' gradient in reading order.

    Args:
        gradient: (b * t * 2, h), of the outputs as the caller sees them.
        order: the order of reading.
        start: the first step.
        end: the step after the last.

    Returns:
        (2, k, b, h), 0 on padding.
    """
    rows = order.rows[:, start:end]
    direction = torch.arange(2, device=rows.device).view(2, 1, 1)
    found = gradient.index_select(0, (rows * 2 + direction).reshape(-1)).view(*rows.shape, -1)
    if end > order.shortest:
        found.masked_fill_(~order.real[start:end].unsqueeze(2), 0)
    return found


class _Sums:
    """The gradients of the inputs and the parameters, added up block by block; None where nobody asks."""

    def __init__(self, needed: tuple[bool, ...], inputs: Tensor, weight: Tensor, recurrent: Tensor) -> None:
        self._needed, self._weights, self._shape = needed, weight, inputs.shape
        self._flat = inputs.reshape(-1, inputs.shape[2])
        self.inputs = torch.zeros_like(self._flat) if needed[0] else None
        self.weight = torch.zeros_like(weight) if needed[1] else None
        self.recurrent = torch.zeros_like(recurrent) if needed[2] else None
        self.bias = weight.new_zeros(2, weight.shape[2]) if any(needed[3:5]) else None

    def add(self, projected: Tensor, rows: Tensor, before: Tensor) -> None:
        """Add one block's share.

        Args:
            projected: (2, k, b, 3, h), the gradient of the projections.
            rows: (2 * k * b,), the rows of the inputs that were read.
            before: (2, k, b, h), the state before each step.
        """
        width, hidden = self._flat.shape[1], before.shape[3]
        block = projected.view(2, -1, 3 * hidden)
        if self.weight is not None:
            read = self._flat.index_select(0, rows).view(2, -1, width)
            self.weight.baddbmm_(read.transpose(1, 2), block)
        if self.recurrent is not None:
            self.recurrent.baddbmm_(block[:, :, :hidden].transpose(1, 2), before.reshape(2, -1, hidden))
        if self.bias is not None:
            self.bias.add_(block.sum(1))
        if self.inputs is not None:
            share = torch.bmm(block, self._weights.transpose(1, 2))
            self.inputs.index_add_(0, rows, share.view(-1, width))

    def results(self, bigram: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of inputs, weight, recurrent, gate bias and output bias.

        Args:
            bigram: (2, b, h), the gradient of the memory c2 + b2 before the first step.
        """
        inputs = None if self.inputs is None else self.inputs.view(self._shape)
        if self.bias is None:
            return inputs, self.weight, self.recurrent, None, None
        gate, _, output = self.bias.chunk(3, 1)
        return inputs, self.weight, self.recurrent, gate, output + bigram.sum(1)


class _Recurrence(torch.autograd.Function):
    """All steps of both directions, with the gradient written by hand."""

    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        weight: Tensor,
        recurrent: Tensor,
        gate_bias: Tensor,
        output_bias: Tensor,
        order: ReadingOrder,
        keep: bool,
    ) -> Tensor:
        """(b, t, d) -> (b, t, 2h); see `BidirectionalRCNN` for the shapes of the parameters."""
        documents, tokens, width = inputs.shape
        hidden = recurrent.shape[1]
        flat = inputs.reshape(-1, width)
        biases = gate_bias.unsqueeze(1), output_bias.unsqueeze(1)
        transposed = recurrent.transpose(1, 2).contiguous()
        states = inputs.new_empty(2, tokens + 1, documents, hidden)
        states[:, 0] = 0
        # c2 + b2 obeys the recurrence of c2 if b2 is added to its first value and to every candidate.
        bigram = biases[1].expand(2, documents, hidden)
        unigram = torch.zeros_like(bigram)
        saved: list[Tensor] = []
        for start, end in order.blocks():
            read = flat.index_select(0, order.rows[:, start:end].reshape(-1)).view(2, -1, width)
            projected = torch.bmm(read, weight).view(2, end - start, documents, 3, hidden)
            block = _Block.empty(end - start, unigram, bigram)
            _read_block(projected, block, states[:, start : end + 1], transposed, biases)
            unigram, bigram = block.unigrams[-1], block.bigrams[-1]
            if keep:
                saved += block.gates, block.unigrams, block.bigrams
        ctx.order = order
        ctx.save_for_backward(inputs, weight, recurrent, states, *saved)
        found = states.view(-1, hidden).index_select(0, order.states.view(-1))
        return found.view(documents, tokens, 2 * hidden)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of what `forward` takes, None where nobody asks for one."""
        inputs, weight, recurrent, states, *saved = ctx.saved_tensors
        order: ReadingOrder = ctx.order
        documents, hidden = inputs.shape[0], recurrent.shape[1]
        sums = _Sums(ctx.needs_input_grad, inputs, weight, recurrent)
        outside = gradient.reshape(-1, hidden)
        first, second, later = (inputs.new_zeros(2, documents, hidden) for _ in range(3))
        for number, (start, end) in reversed(list(enumerate(order.blocks()))):
            here = _gradient_of_states(outside, order, start, end)
            here[:, -1].baddbmm_(later, recurrent)
            out = inputs.new_empty(2, end - start, documents, 3, hidden)
            block = _Block(*saved[3 * number : 3 * number + 3])
            after = states[:, start + 1 : end + 1]
            first, second = _return_block(here, (first, second), block, after, recurrent, out)
            later = out[:, 0, :, 0]
            sums.add(out, order.rows[:, start:end].reshape(-1), states[:, start:end])
        return (*sums.results(second), None, None)


class BidirectionalRCNN(nn.Module):
    """One layer that reads documents in both directions.

    Args:
        input_width: d.
        hidden_width: h, per direction.

    Attributes:
        weight: (2, d, 3h), W_l, W_1 and W_2 side by side.
        recurrent: (2, h, h), U_l.
        gate_bias: (2, h), b.
        output_bias: (2, h), b2.
    """

    def __init__(self, *, input_width: int, hidden_width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(2, input_width, 3 * hidden_width))
        self.recurrent = nn.Parameter(torch.empty(2, hidden_width, hidden_width))
        self.gate_bias = nn.Parameter(torch.zeros(2, hidden_width))
        self.output_bias = nn.Parameter(torch.zeros(2, hidden_width))
        self.output_width = 2 * hidden_width
        for direction in range(2):
            for part in self.weight[direction].chunk(3, 1):
                nn.init.xavier_uniform_(part)
            nn.init.orthogonal_(self.recurrent[direction])

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """Encode.

        Args:
            inputs: (b, t, d).
            mask: (b, t) bool, True on real tokens, which come first.

        Returns:
            (b, t, 2h): the states reading on and the states reading back; 0 on padding.
        """
        parameters = (self.weight, self.recurrent, self.gate_bias, self.output_bias)
        order = ReadingOrder.from_mask(mask)
        result: Tensor = _Recurrence.apply(inputs, *parameters, order, torch.is_grad_enabled())  # type: ignore[no-untyped-call]
        return result
