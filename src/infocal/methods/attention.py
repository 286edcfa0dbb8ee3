"""Attention (the baseline of Lei, Barzilay, Jaakkola, EMNLP 2016): a reader of the full text names its words."""

from __future__ import annotations

import torch
from torch import Tensor

from infocal.methods.base import Conditions, Method, Player, Step
from infocal.methods.parts import build_predictor, input_dropout, only
from infocal.nn.embedding import TokenEmbedding
from infocal.settings import Settings
from infocal.tasks import Task
from infocal.types import Batch

__all__ = ["Attention"]


class Attention(Method):
    """One predictor of the full text, trained on the task alone; the words it attends to most are the rationale.

    Nothing here is told to read less: attention itself reads everything, so its own prediction is
    :meth:`predict_full`, and :meth:`predict` shows what the chosen words alone give the same network.

    Args:
        settings: weights and sizes.
        embedding: token ids to vectors.
        task: gives the head's width and the loss.
    """

    judged_by_full_text = True

    def __init__(self, settings: Settings, *, embedding: TokenEmbedding, task: Task) -> None:
        super().__init__()
        self.settings = settings
        self.task = task
        self.embedding = embedding
        self.language_model = None
        self.input_dropout = input_dropout(settings)
        self.predictor = build_predictor(settings, embedding, task)

    def players(self) -> tuple[Player, ...]:
        """The predictor, alone."""
        weights = {"prediction": self.settings.loss.prediction}
        learning_rate = self.settings.training.learning_rate
        return (Player("predictor", (self.embedding, self.predictor), weights, learning_rate),)

    def step(self, batch: Batch, conditions: Conditions) -> Step:
        """The task's loss on the full text, in either phase; nothing is selected in training."""
        vectors = self.input_dropout(self.embedding(batch.ids))
        loss = self.task_loss(self.predictor(vectors, batch.mask), batch)
        return Step({"prediction": loss}, None, int(batch.mask.sum()))

    @torch.no_grad()
    def score_tokens(self, batch: Batch) -> Tensor:
        """(b, t): the logarithm of the attention's weights, 0 on padding."""
        _, scores = self.predictor.read(self.embedding(batch.ids), batch.mask)
        weights = torch.log_softmax(scores.masked_fill(~batch.mask, float("-inf")), dim=-1)
        return weights.masked_fill(~batch.mask, 0.0)

    @torch.no_grad()
    def predict(self, batch: Batch, selected: Tensor) -> Tensor:
        """(b, c): what the network says when it sees only the tokens where ``selected`` (b, t) is True."""
        vectors = only(self.embedding(batch.ids), selected, batch.mask)
        logits: Tensor = self.predictor(vectors, batch.mask)
        return logits

    @torch.no_grad()
    def predict_full(self, batch: Batch) -> Tensor:
        """(b, c): attention's own prediction."""
        logits: Tensor = self.predictor(self.embedding(batch.ids), batch.mask)
        return logits
