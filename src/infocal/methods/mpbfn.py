"""MPBFN-WCA (Yang, Jia, Zhou, Luo, IJCAI 2019): answers go forward along the tasks, and back to verify them."""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor, nn

from infocal.methods.judges import Judge, topology
from infocal.methods.parts import own_settings
from infocal.nn.collocation import Collocations, attend_pairs
from infocal.nn.convolution import ConvolutionEncoder
from infocal.nn.dropout import Dropout
from infocal.nn.embedding import TokenEmbedding
from infocal.settings import Settings
from infocal.tasks import Goal
from infocal.types import Batch

__all__ = ["Mpbfn"]


class Mpbfn(Judge):
    """Forward prediction, backward verification, and word collocation attention for every task.

    The equations are our reading of the paper. With f the fact's features (convolutions, as in TOPJUDGE), C the
    vectors of all pairs of near words, P(j) the parents and K(j) the children of task j, E_j its label vectors,
    and * elementwise::

        g_j = attention over C with the query Q_j f                     (word collocation attention)
        u_j = ReLU(A_j [f; g_j] + a_j)
        r_j = u_j * product over i in P(j) of (F_ij E_i' p_i + f_ij)    (forward: what the parents answered)
        s_j = V_j r_j + v_j,  p_j = softmax(s_j)
        q_j = r_j * product over k in K(j) of sigmoid(B_jk E_k' t_k + b_jk)    (backward: what the children did)
        o_j = s_j + W_j q_j                                             (o_j = s_j where K(j) is empty)

    E' p is the expected label vector, t_k = softmax(o_k) the final answer of a child, and o_j are the outputs.
    Tasks are answered in the graph's order and verified in the opposite one. Biases f_ij start at 1, so that an
    untrained parent changes little. A task with one output (a score) has sigmoid in place of softmax.

    The authors bring collocations in to tell penalties apart; here every task may look at them, as any may need
    numbers and manner.

    Args:
        settings: sizes, and the graph in ``mpbfn.parents``.
        embedding: token ids to vectors.
        task: the tasks.
    """

    def __init__(self, settings: Settings, *, embedding: TokenEmbedding, task: Goal) -> None:
        super().__init__(settings, embedding=embedding, task=task)
        own = own_settings(settings.mpbfn, method="mpbfn")
        self.topology = topology(list(self.task.tasks), own.parents, setting="mpbfn.parents")
        self.encoder = ConvolutionEncoder(
            input_width=embedding.width, widths=own.filter_widths, filters=own.filters
        )
        self.collocations = Collocations(
            input_width=embedding.width, output_width=own.collocation_width, distance=own.collocation_distance
        )
        self.dropout = Dropout(settings.encoder.dropout)
        width, parts = self.encoder.output_width, self.task.tasks.values()
        self.queries = nn.ModuleList(nn.Linear(width, own.collocation_width) for _ in parts)
        self.joins = nn.ModuleList(nn.Linear(width + own.collocation_width, width) for _ in parts)
        self.labels = nn.ModuleList(nn.Linear(part.outputs, own.label_width, bias=False) for part in parts)
        self.heads = nn.ModuleList(nn.Linear(width, part.outputs) for part in parts)
        self.forward_links, self.backward_links, self.verifiers = self._links(own.label_width)

    def answer(self, vectors: Tensor, batch: Batch) -> Tensor:
        """(b, c): forward along the tasks, then back."""
        fact = self.dropout(self.encoder(vectors, batch.mask))
        pairs = self.collocations(vectors, batch.mask)
        features: dict[int, Tensor] = {}
        outputs: dict[int, Tensor] = {}
        for place in self.topology.order:
            features[place] = self._features(place, fact, pairs) * self._told(place, outputs)
            outputs[place] = self.heads[place](features[place])
        for place in reversed(self.topology.order):
            if self.topology.children[place]:
                verified = features[place] * self._gate(place, outputs)
                outputs[place] = outputs[place] + self.verifiers[str(place)](verified)
        return torch.cat([outputs[place] for place in range(len(outputs))], dim=1)

    def _links(self, label_width: int) -> tuple[nn.ModuleDict, nn.ModuleDict, nn.ModuleDict]:
        """F and B of every edge, named "parent-child", and W of every task that has children."""
        width, graph = self.encoder.output_width, self.topology
        edges = [f"{i}-{j}" for j, parents in enumerate(graph.parents) for i in parents]
        onward, back = (nn.ModuleDict({edge: nn.Linear(label_width, width) for edge in edges}) for _ in range(2))
        for edge in edges:
            nn.init.ones_(onward.get_parameter(f"{edge}.bias"))
        parts = enumerate(self.task.tasks.values())
        again = {str(j): nn.Linear(width, part.outputs, bias=False) for j, part in parts if graph.children[j]}
        return onward, back, nn.ModuleDict(again)

    def _features(self, place: int, fact: Tensor, pairs: tuple[Tensor, Tensor]) -> Tensor:
        """u_j, (b, f)."""
        manner = attend_pairs(*pairs, self.queries[place](fact))
        return torch.relu(self.joins[place](torch.cat((fact, manner), dim=1)))

    def _told(self, place: int, outputs: dict[int, Tensor]) -> Tensor | float:
        """What the parents' answers multiply a task's features with, (b, f)."""
        parents = self.topology.parents[place]
        return prod((self.forward_links[f"{i}-{place}"](self._expected(i, outputs)) for i in parents), start=1.0)

    def _gate(self, place: int, outputs: dict[int, Tensor]) -> Tensor | float:
        """What the children's answers leave of a task's features, (b, f)."""
        children = self.topology.children[place]
        links = (self.backward_links[f"{place}-{k}"](self._expected(k, outputs)) for k in children)
        return prod((torch.sigmoid(link) for link in links), start=1.0)

    def _expected(self, place: int, outputs: dict[int, Tensor]) -> Tensor:
        """(b, l): a task's expected label vector."""
        logits = outputs[place]
        answer = torch.softmax(logits, dim=1) if logits.shape[1] > 1 else torch.sigmoid(logits)
        expected: Tensor = self.labels[place](answer)
        return expected
