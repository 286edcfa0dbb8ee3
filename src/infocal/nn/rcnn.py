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

__all__ = ["BidirectionalRCNN"]

ROWS_PER_BLOCK = 2048
"""Tokens projected at once: enough rows for a full-speed matrix product, few enough to stay in the cache."""

_tanh_gradient = torch.ops.aten.tanh_backward.grad_input


def _blocks(tokens: int, documents: int) -> list[tuple[int, int]]:
    """The steps in blocks [start, end) of about ``ROWS_PER_BLOCK`` tokens."""
    size = max(1, ROWS_PER_BLOCK // max(1, documents))
    return [(start, min(start + size, tokens)) for start in range(0, tokens, size)]


def _from_both_ends(tensor: Tensor) -> list[Tensor]:
    """(2, n, b, ...) -> n views (2, b, ...): the i-th of one with the i-th from the end of the other."""
    _, count, *rest = tensor.shape
    _, step, *strides = tensor.stride()
    start = tensor.storage_offset()
    return [
        tensor.as_strided((2, *rest), ((2 * (count - place) - 1) * step, *strides), start + place * step)
        for place in range(count)
    ]


@dataclass(frozen=True, slots=True)
class _Block:
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
    def empty(cls, steps: int, memories: tuple[Tensor, Tensor, Tensor]) -> _Block:
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


def _read_block(
    projected: Tensor, block: _Block, recurrent: Tensor, output_bias: Tensor, absent: list[Tensor | None]
) -> None:
    """Run the recurrence over one block, filling it.

    Args:
        projected: (2, k, b, 3, h), W_l x + b, W_1 x, W_2 x + b2.
        block: with the memories before it.
        recurrent: (2, h, h), the transpose of U.
        output_bias: (1, h), b2 reading back.
        absent: k times (b, 1) bool, where reading back is still in the padding; None where nowhere.
    """
    to_gate, to_unigram, to_bigram = (_from_both_ends(part) for part in projected.unbind(3))
    unigram, bigram, state = block.unigrams.unbind(0), block.bigrams.unbind(0), _from_both_ends(block.states)
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


def _return_block(
    gradient: Tensor,
    carried: tuple[Tensor, Tensor],
    block: _Block,
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
        block: as `_read_block` left it.
        recurrent: (2, h, h), U.
        absent: as `_read_block` takes it.
        out: (2, k, b, 3, h), to be filled with the gradient of ``projected``.

    Returns:
        ``carried`` for the block before, and (h,), the gradient of b2 as the first value of reading back.
    """
    to_gate, to_unigram, to_bigram = (_from_both_ends(part) for part in out.unbind(3))
    unigram, bigram, gates = block.unigrams.unbind(0), block.bigrams.unbind(0), block.gates.unbind(0)
    outside, state = _from_both_ends(gradient), _from_both_ends(block.states)
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
        """What `_read_block` is told of the steps [start, end)."""
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
            states: (2, k + 1, b, h), as in `_Block`.
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
            block = _Block.empty(end - start, memories)
            _read_block(buffer, block, transposed, output_bias[1:], padding.read_back(start, end))
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
            _from_both_ends(here)[-1].baddbmm_(later, recurrent)
            if out is None or end - start != out.shape[1]:
                out = turned.new_empty(2, end - start, documents, 3, hidden)
            block = _Block(*saved[4 * number : 4 * number + 4])
            absent = padding.read_back(start, end)
            first, second, extra = _return_block(here, (first, second), block, recurrent, absent, out)
            begun[1] += extra
            later = _from_both_ends(out)[0][:, :, 0]
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
