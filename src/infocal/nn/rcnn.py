"""The recurrent convolution of Lei et al. (2016), both directions in one loop.

A bigram cell with an adaptive gate (*Rationalizing Neural Predictions*, EMNLP 2016)::

    l_t  = sigmoid(W_l x_t + U_l h_{t-1} + b)
    c1_t = l_t * c1_{t-1} + (1 - l_t) * (W_1 x_t)
    c2_t = l_t * c2_{t-1} + (1 - l_t) * (c1_{t-1} + W_2 x_t)
    h_t  = tanh(c2_t + b2)

Shapes: b documents, t tokens, d inputs, h hidden units; k steps in a block; an axis of length 2 is the
direction (reading on, reading back). At step s the first direction reads token s, the second token t - 1 - s:
tensors with the tokens of both directions in their order in the text are walked from both ends, so that nothing
has to be gathered or turned round. Reading back, a padded document begins with its padding; its memories stay at
their first value until its last word comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from infocal.nn.rcnn_steps import Block, from_both_ends, read_block, return_block

__all__ = ["BidirectionalRCNN"]

ROWS_PER_BLOCK = 2048
"""Tokens projected at once: enough rows for a full-speed matrix product, few enough to stay in the cache."""


def _blocks(tokens: int, documents: int) -> list[tuple[int, int]]:
    """The steps in blocks [start, end) of about ``ROWS_PER_BLOCK`` tokens."""
    size = max(1, ROWS_PER_BLOCK // max(1, documents))
    return [(start, min(start + size, tokens)) for start in range(0, tokens, size)]


@dataclass(frozen=True, slots=True)
class _Padding:
    """Which tokens are no words.

    Attributes:
        gone: (t, b, 1) bool, True on padding.
        shortest: the length of the shortest document.
    """

    gone: Tensor
    shortest: int

    @classmethod
    def from_mask(cls, mask: Tensor) -> _Padding:
        """Of documents whose real tokens are True in ``mask`` (b, t)."""
        shortest = int(mask.sum(1).min()) if mask.numel() else mask.shape[1]
        return cls(~mask.t().unsqueeze(2), shortest)

    def read_back(self, start: int, end: int) -> list[Tensor | None]:
        """What `read_block` is told of the steps [start, end)."""
        last = self.gone.shape[0] - 1
        return [self.gone[last - step] if last - step >= self.shortest else None for step in range(start, end)]

    def clear(self, part: Tensor, start: int) -> None:
        """Set a part (k, b, ...) that begins with token ``start`` to 0 on padding."""
        end = start + part.shape[0]
        if end > self.shortest:
            part.masked_fill_(self.gone[start:end], 0)


class _Sums:
    """The gradients of the inputs and the parameters, added up block by block; None where nobody asks."""

    def __init__(self, needed: tuple[bool, ...], inputs: Tensor, weight: Tensor, recurrent: Tensor) -> None:
        self._inputs, self._weights = inputs, weight
        self.inputs = torch.zeros_like(inputs) if needed[0] else None
        self.weight = torch.zeros_like(weight) if needed[1] else None
        self.recurrent = torch.zeros_like(recurrent) if needed[2] else None
        self.bias = weight.new_zeros(2, weight.shape[2]) if any(needed[3:5]) else None

    def add(self, projected: Tensor, read: tuple[slice, slice], states: Tensor) -> None:
        """Add one block's share.

        Args:
            projected: (2, k, b, 3, h), the gradient of the projections.
            read: the tokens that either direction has read.
            states: (2, k + 1, b, h), as in `Block`.
        """
        width, hidden = self._inputs.shape[2], states.shape[3]
        block = projected.flatten(3).flatten(1, 2)
        before = states[0, :-1].flatten(0, 1), states[1, 1:].flatten(0, 1)
        for direction, tokens in enumerate(read):
            part = block[direction]
            if self.weight is not None:
                self.weight[direction].addmm_(self._inputs[tokens].view(-1, width).t(), part)
            if self.recurrent is not None:
                self.recurrent[direction].addmm_(part[:, :hidden].t(), before[direction])
            if self.inputs is not None:
                self.inputs[tokens].view(-1, width).addmm_(part, self._weights[direction].t())
        if self.bias is not None:
            self.bias.add_(block.sum(1))

    def results(self, begun: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of inputs, weight, recurrent, gate bias and output bias.

        Args:
            begun: (2, h), the gradient of b2 as the first value of c2 + b2.
        """
        inputs = None if self.inputs is None else self.inputs.transpose(0, 1)
        if self.bias is None:
            return inputs, self.weight, self.recurrent, None, None
        gate, _, output = self.bias.chunk(3, 1)
        return inputs, self.weight, self.recurrent, gate, output + begun


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
        mask: Tensor,
        keep: bool,
    ) -> Tensor:
        """(b, t, d) -> (b, t, 2h); see `BidirectionalRCNN` for the shapes of the parameters."""
        documents, tokens, width = inputs.shape
        hidden = recurrent.shape[1]
        padding = _Padding.from_mask(mask)
        turned = inputs.transpose(0, 1).contiguous()
        transposed = recurrent.transpose(1, 2).contiguous()
        # c2 + b2 obeys the recurrence of c2 if b2 is added to its first value and to every candidate.
        biases = torch.cat((gate_bias, torch.zeros_like(gate_bias), output_bias), 1)
        zero = inputs.new_zeros(2, documents, hidden)
        memories = zero, output_bias.unsqueeze(1).expand_as(zero), zero
        found = inputs.new_empty(documents, tokens, 2, hidden)
        saved: list[Tensor] = []
        buffer = None
        for start, end, read in _walk(tokens, documents):
            if buffer is None or end - start != buffer.shape[1]:
                buffer = inputs.new_empty(2, end - start, documents, 3, hidden)
            for direction, place in enumerate(read):
                part = buffer[direction].view(-1, 3 * hidden)
                torch.addmm(biases[direction], turned[place].view(-1, width), weight[direction], out=part)
            block = Block.empty(end - start, memories)
            read_block(buffer, block, transposed, output_bias[1:], padding.read_back(start, end))
            memories = block.last()
            found[:, read[0], 0] = block.states[0, 1:].transpose(0, 1)
            found[:, read[1], 1] = block.states[1, :-1].transpose(0, 1)
            if keep:
                saved += block.gates, block.unigrams, block.bigrams, block.states
        if padding.shortest < tokens:
            found[:, padding.shortest :, 0].masked_fill_(padding.gone[padding.shortest :].transpose(0, 1), 0)
        ctx.padding = padding
        ctx.save_for_backward(turned, weight, recurrent, *saved)
        return found.view(documents, tokens, 2 * hidden)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of what `forward` takes, None where nobody asks for one."""
        turned, weight, recurrent, *saved = ctx.saved_tensors
        padding: _Padding = ctx.padding
        (tokens, documents, _), hidden = turned.shape, recurrent.shape[1]
        sums = _Sums(ctx.needs_input_grad, turned, weight, recurrent)
        outside = gradient.reshape(documents, tokens, 2, hidden).permute(2, 1, 0, 3)
        first, second, later = (turned.new_zeros(2, documents, hidden) for _ in range(3))
        begun = turned.new_zeros(2, hidden)
        out = None
        for number, (start, end, read) in reversed(list(enumerate(_walk(tokens, documents)))):
            here = turned.new_empty(2, end - start, documents, hidden)
            for direction, place in enumerate(read):
                here[direction] = outside[direction, place]
                padding.clear(here[direction], place.start)
            from_both_ends(here)[-1].baddbmm_(later, recurrent)
            if out is None or end - start != out.shape[1]:
                out = turned.new_empty(2, end - start, documents, 3, hidden)
            block = Block(*saved[4 * number : 4 * number + 4])
            absent = padding.read_back(start, end)
            first, second, extra = return_block(here, (first, second), block, recurrent, absent, out)
            begun[1] += extra
            later = from_both_ends(out)[0][:, :, 0]
            sums.add(out, read, block.states)
        return (*sums.results(begun + second.sum(1)), None, None)


def _walk(tokens: int, documents: int) -> Iterator[tuple[int, int, tuple[slice, slice]]]:
    """Blocks of steps [start, end) and the tokens that either direction reads in them."""
    for start, end in _blocks(tokens, documents):
        yield start, end, (slice(start, end), slice(tokens - end, tokens - start))


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
        result: Tensor = _Recurrence.apply(inputs, *parameters, mask, torch.is_grad_enabled())  # type: ignore[no-untyped-call]
        return result
