"""The RCNN of Lei et al. (2016) as its equations are written: modules called for each token.

What `infocal.nn.rcnn` is measured and tested against. Given a mask it keeps its states on padding, as a cell must
that reads batches of texts from both ends; without one it is the bare equations.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

__all__ = ["StepwiseRCNN"]

States = tuple[Tensor, Tensor, Tensor]


class Cell(nn.Module):
    """One direction's cell."""

    def __init__(self, input_width: int, hidden_width: int) -> None:
        super().__init__()
        self.gate = nn.Linear(input_width, hidden_width)
        self.gate_state = nn.Linear(hidden_width, hidden_width, bias=False)
        self.unigram = nn.Linear(input_width, hidden_width, bias=False)
        self.bigram = nn.Linear(input_width, hidden_width, bias=False)
        self.output_bias = nn.Parameter(torch.zeros(hidden_width))

    def forward(self, token: Tensor, states: States) -> States:
        """One step: (b, d) and three (b, h) -> three (b, h)."""
        state, unigram, bigram = states
        gate = torch.sigmoid(self.gate(token) + self.gate_state(state))
        next_unigram = gate * unigram + (1 - gate) * self.unigram(token)
        next_bigram = gate * bigram + (1 - gate) * (unigram + self.bigram(token))
        return torch.tanh(next_bigram + self.output_bias), next_unigram, next_bigram


class StepwiseRCNN(nn.Module):
    """Both directions, one after the other, token by token."""

    def __init__(self, *, input_width: int, hidden_width: int) -> None:
        super().__init__()
        self.hidden_width = hidden_width
        self.cells = nn.ModuleList(Cell(input_width, hidden_width) for _ in range(2))

    def _read(self, cell: nn.Module, tokens: Sequence[Tensor], real: Sequence[Tensor] | None) -> list[Tensor]:
        zero = tokens[0].new_zeros(tokens[0].shape[0], self.hidden_width)
        states, outputs = (zero, zero, zero), []
        for step, token in enumerate(tokens):
            found = cell(token, states)
            if real is None:
                states = found
            else:
                here = real[step]
                states = tuple(here * new + (1 - here) * old for new, old in zip(found, states, strict=True))
            outputs.append(states[0])
        return outputs

    def forward(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        """(b, t, d), maybe with (b, t) bool -> (b, t, 2h), 0 on padding."""
        tokens = inputs.unbind(1)
        real = None if mask is None else mask.unsqueeze(2).to(inputs.dtype).unbind(1)
        onward = self._read(self.cells[0], tokens, real)
        back = self._read(self.cells[1], tokens[::-1], None if real is None else real[::-1])[::-1]
        states = torch.cat((torch.stack(onward, 1), torch.stack(back, 1)), 2)
        return states if mask is None else states * mask.unsqueeze(2)

    def copy_from(self, weight: Tensor, recurrent: Tensor, gate_bias: Tensor, output_bias: Tensor) -> None:
        """Take over the parameters of `infocal.nn.rcnn.BidirectionalRCNN`."""
        with torch.no_grad():
            for direction, cell in enumerate(self.cells):
                gate, unigram, bigram = weight[direction].t().chunk(3)
                cell.gate.weight.copy_(gate)
                cell.gate.bias.copy_(gate_bias[direction])
                cell.gate_state.weight.copy_(recurrent[direction])
                cell.unigram.weight.copy_(unigram)
                cell.bigram.weight.copy_(bigram)
                cell.output_bias.copy_(output_bias[direction])
