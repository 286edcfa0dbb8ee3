"""TOPJUDGE (Zhong, Guo, Tu, Xiao, Liu, Sun, EMNLP 2018): tasks in the order in which a judge answers them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from infocal.methods.judges import Judge, topology
from infocal.methods.parts import own_settings
from infocal.nn.convolution import ConvolutionEncoder
from infocal.nn.dropout import Dropout
from infocal.nn.embedding import TokenEmbedding
from infocal.settings import Settings
from infocal.tasks import Goal
from infocal.types import Batch

__all__ = ["Topjudge"]


class Topjudge(Judge):
    """A convolutional encoder of the fact, and one LSTM cell per task along a graph of the tasks.

    With d the fact's features and P(j) the parents of task j::

        [h_j0; c_j0] = sum over i in P(j) of W_ij [h_i; c_i], plus b_j     (zeros where P(j) is empty)
        h_j, c_j     = LSTM_j(d, h_j0, c_j0)
        y_j          = softmax(V_j h_j + v_j)

    Args:
        settings: sizes, and the graph in ``topjudge.parents``.
        embedding: token ids to vectors.
        task: the tasks.
    """

    def __init__(self, settings: Settings, *, embedding: TokenEmbedding, task: Goal) -> None:
        super().__init__(settings, embedding=embedding, task=task)
        own = own_settings(settings.topjudge, method="topjudge")
        self.topology = topology(list(self.task.tasks), own.parents, setting="topjudge.parents")
        self.encoder = ConvolutionEncoder(
            input_width=embedding.width, widths=own.filter_widths, filters=own.filters
        )
        self.dropout = Dropout(settings.encoder.dropout)
        width = own.state_width
        self.cells = nn.ModuleList(nn.LSTMCell(self.encoder.output_width, width) for _ in self.topology.order)
        # Several maps and their sum are one map of what stands side by side.
        self.links = nn.ModuleDict(
            {
                str(place): nn.Linear(2 * width * len(parents), 2 * width)
                for place, parents in enumerate(self.topology.parents)
                if parents
            }
        )
        self.heads = nn.ModuleList(nn.Linear(width, part.outputs) for part in self.task.tasks.values())

    def answer(self, vectors: Tensor, batch: Batch) -> Tensor:
        """(b, c): the fact once, then task after task."""
        fact = self.dropout(self.encoder(vectors, batch.mask))
        states: dict[int, tuple[Tensor, Tensor]] = {}
        for place in self.topology.order:
            states[place] = self.cells[place](fact, self._start(place, states))
        return torch.cat([head(states[place][0]) for place, head in enumerate(self.heads)], dim=1)

    def _start(self, place: int, states: dict[int, tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor] | None:
        """(b, s) twice: a task's first hidden and cell state, from those of its parents; None is zeros."""
        parents = self.topology.parents[place]
        if not parents:
            return None
        told = torch.cat([part for parent in parents for part in states[parent]], dim=1)
        hidden, cell = self.links[str(place)](told).chunk(2, dim=1)
        return hidden, cell
