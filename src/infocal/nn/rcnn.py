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

__all__ = ["BidirectionalRCNN", "ReadingOrder", "reversed_positions"]

ROWS_PER_BLOCK = 1024
"""Tokens projected at once: enough rows for a full-speed matrix product, few enough to stay in the cache."""


def reversed_positions(mask: Tensor) -> Tensor:
    """Where each token stands when its document is read from its last word to its first.

    The table is its own inverse, and padding stays where it is.

    Args:
        mask: (b, t) bool, True on real tokens, which come first.

    Returns:
        (b, t) int64.
    """
    positions = torch.arange(mask.shape[1], device=mask.device).expand(mask.shape)
    return torch.where(mask, mask.sum(1, keepdim=True) - 1 - positions, positions)


@dataclass(frozen=True, slots=True)
class ReadingOrder:
    """Which token is read at which step, in both directions.

    Attributes:
        rows: (2, t, b) int64, the row of ``inputs.view(b * t, d)`` that is read at a step.
        states: (b, t, 2) int64, the row of the states (2, t + 1, b, h) that belongs to a token; row 0, which
            is the zero state, on padding.
        real: (t, b) bool, whether a step reads a real token.
        shortest: the length of the shortest document.
    """

    rows: Tensor
    states: Tensor
    real: Tensor
    shortest: int

    @classmethod
    def from_mask(cls, mask: Tensor) -> ReadingOrder:
        """The order for documents whose real tokens are True in ``mask`` (b, t)."""
        documents, tokens = mask.shape
        device = mask.device
        positions = torch.arange(tokens, device=device).expand(mask.shape)
        document = torch.arange(documents, device=device)
        steps = torch.stack((positions, reversed_positions(mask)), 2)
        blocks = torch.arange(2, device=device) * (tokens + 1) + steps + 1
        states = blocks * documents + document.view(-1, 1, 1)
        rows = steps.permute(2, 1, 0) + document * tokens
        shortest = int(mask.sum(1).min()) if documents else tokens
        return cls(rows, states.masked_fill(~mask.unsqueeze(2), 0), mask.t(), shortest)

    def blocks(self) -> list[tuple[int, int]]:
        """The steps in blocks [start, end) of about ``ROWS_PER_BLOCK`` tokens."""
        steps, documents = self.real.shape
        size = max(1, ROWS_PER_BLOCK // max(1, documents))
        return [(start, min(start + size, steps)) for start in range(0, steps, size)]


def _read_block(
    projected: Tensor, states: Tensor, gates: Tensor, memories: Tensor, recurrent: Tensor
) -> None:
    """Run the recurrence over one block, filling ``gates``, ``memories`` and ``states``.

    Args:
        projected: (2, k, b, 3, h), W_l x + b, W_1 x, W_2 x + b2; overwritten.
        states: (2, k + 1, b, h), the state before the block first.
        gates: (k, 2, b, h), to be filled with l.
        memories: (k + 1, 2 memories, 2, b, h), those before the block first; the second includes b2.
        recurrent: (2, h, h), the transpose of U.
    """
    gate_inputs = projected.select(3, 0).unbind(1)
    bigrams = projected.select(3, 2).unbind(1)
    candidates = projected[:, :, :, 1:].permute(1, 3, 0, 2, 4).unbind(0)
    state, gate, memory = states.unbind(1), gates.unbind(0), memories.unbind(0)
    unigrams, outputs = memories.select(1, 0).unbind(0), memories.select(1, 1).unbind(0)
    for step, now in enumerate(gate):
        torch.sigmoid(gate_inputs[step].baddbmm_(state[step], recurrent), out=now)
        bigrams[step].add_(unigrams[step])
        torch.lerp(candidates[step], memory[step], now, out=memory[step + 1])
        torch.tanh(outputs[step + 1], out=state[step + 1])


def _return_block(
    gradient: Tensor, carried: Tensor, saved: tuple[Tensor, Tensor, Tensor], recurrent: Tensor, out: Tensor
) -> Tensor:
    """Run the recurrence's gradient back over one block, filling ``out``.

    With e_t = l_t * (c_{t-1} - c_t) the gate's derivative needs neither the candidates nor 1 - l_t:
    dL/d(gate input) = dc1 * e1 + dc2 * e2.

    Args:
        gradient: (2, k, b, h), dL/dh from outside; its last step includes what later blocks send back;
            overwritten.
        carried: (2 memories, 2, b, h), dL/dc of the last step's memories from later steps.
        saved: states (2, k, b, h) after each step, gates (k, 2, b, h), memories (k + 1, 2, 2, b, h).
        recurrent: (2, h, h), U.
        out: (2, k, b, 3, h), to be filled with the gradient of ``projected``.

    Returns:
        (2, 2, b, h): ``carried`` for the block before.
    """
    states, gates, memories = saved
    slopes = torch.addcmul(gradient.new_ones(()), states, states, value=-1).unbind(1)
    effects = (memories[:-1] - memories[1:]).mul_(gates.unsqueeze(1))
    sent = memories.new_empty(memories.shape)
    sent[-1] = carried
    unigram, bigram = sent.select(1, 0).unbind(0), sent.select(1, 1).unbind(0)
    first, second = effects.select(1, 0).unbind(0), effects.select(1, 1).unbind(0)
    outside, gate, to_gate = gradient.unbind(1), gates.unbind(0), out.select(3, 0).unbind(1)
    for step in range(len(gate) - 1, -1, -1):
        here, memory = unigram[step + 1], bigram[step + 1]
        memory.addcmul_(outside[step], slopes[step])
        torch.mul(here, first[step], out=to_gate[step])
        to_gate[step].addcmul_(memory, second[step])
        torch.lerp(memory, here, gate[step], out=unigram[step])
        torch.mul(memory, gate[step], out=bigram[step])
        if step:
            outside[step - 1].baddbmm_(to_gate[step], recurrent)
    candidates = out[:, :, :, 1:].permute(1, 3, 0, 2, 4)
    torch.addcmul(sent[1:], sent[1:], gates.unsqueeze(1), value=-1, out=candidates)
    return sent[0]


class _Recurrence(torch.autograd.Function):
    """All steps of both directions, with the gradient written by hand."""

    @staticmethod
    def forward(  # type: ignore[override]
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
        bias = torch.stack((gate_bias, torch.zeros_like(gate_bias), output_bias), 1).view(2, 1, -1)
        transposed = recurrent.transpose(1, 2).contiguous()
        states = inputs.new_empty(2, tokens + 1, documents, hidden)
        states[:, 0] = 0
        # c2 + b2 obeys the recurrence of c2 if b2 is added to its first value and to every candidate.
        last = torch.stack((torch.zeros_like(output_bias), output_bias)).unsqueeze(2)
        saved: list[Tensor] = []
        for start, end in order.blocks():
            read = flat.index_select(0, order.rows[:, start:end].reshape(-1)).view(2, -1, width)
            projected = torch.baddbmm(bias, read, weight).view(2, end - start, documents, 3, hidden)
            gates = inputs.new_empty(end - start, 2, documents, hidden)
            memories = inputs.new_empty(end - start + 1, 2, 2, documents, hidden)
            memories[0] = last
            _read_block(projected, states[:, start : end + 1], gates, memories, transposed)
            last = memories[-1]
            saved += (gates, memories) if keep else ()
        ctx.order = order
        ctx.save_for_backward(inputs, weight, recurrent, states, *saved)
        return (
            states.view(-1, hidden).index_select(0, order.states.view(-1)).view(documents, tokens, 2 * hidden)
        )

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        """Gradients of what `forward` takes, None where nobody asks for one."""
        inputs, weight, recurrent, states, *saved = ctx.saved_tensors
        order: ReadingOrder = ctx.order
        documents, tokens, width = inputs.shape
        hidden = recurrent.shape[1]
        flat, outside = inputs.reshape(-1, width), gradient.reshape(-1, hidden)
        sums = _Gradients.zeros(ctx.needs_input_grad, flat, weight, recurrent)
        carried = inputs.new_zeros(2, 2, documents, hidden)
        later: Tensor | None = None
        for block in range(len(saved) // 2 - 1, -1, -1):
            start, end = order.blocks()[block]
            rows = order.rows[:, start:end]
            here = _gradient_of_states(outside, order, start, end)
            if later is not None:
                here[:, -1].baddbmm_(later, recurrent)
            out = inputs.new_empty(2, end - start, documents, 3, hidden)
            known = (states[:, start + 1 : end + 1], saved[2 * block], saved[2 * block + 1])
            carried = _return_block(here, carried, known, recurrent, out)
            later = out[:, 0, :, 0]
            sums.add(out.view(2, -1, 3 * hidden), rows.reshape(-1), flat, weight, states[:, start:end])
        return (*sums.results(inputs.shape, carried), None, None)
