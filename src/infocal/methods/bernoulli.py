"""Rationalizing Neural Predictions (Lei, Barzilay, Jaakkola, EMNLP 2016): words chosen by REINFORCE."""

from __future__ import annotations

import torch
from torch import Tensor

from infocal.losses.fluency import fused_lasso
from infocal.losses.score_function import log_probability, score_function
from infocal.losses.sparsity import boundaries, selected_words
from infocal.methods.base import Conditions, Method, Player, Step
from infocal.methods.parts import build_predictor, build_selector, input_dropout, only, own_settings
from infocal.nn.choices import ChoiceLayer, choose, uniform_draws
from infocal.nn.embedding import TokenEmbedding
from infocal.settings import Settings
from infocal.tasks import Task
from infocal.types import Batch

__all__ = ["Bernoulli"]

BASELINE_DECAY = 0.9
"""What a batch leaves of the moving average of the cost."""


class Bernoulli(Method):
    """A selector (gen) draws hard choices, a predictor (enc) of its own encoder reads what was chosen.

    The predictor learns by the plain gradient. The selector cannot: its objective is the score function of

        cost = task loss + sparsity * selected words + continuity * share of boundaries + transitions * boundaries

    With ``bernoulli.sparsity`` null the first price is not charged, and the loop's controller holds the share. The
    word vectors belong to the predictor; the selector's gradient, which is mostly noise, does not move them.

    Args:
        settings: costs, forms and sizes.
        embedding: token ids to vectors, shared by both parts.
        task: gives the head's width and the loss.
    """

    average_cost: Tensor
    offset: Tensor
    settles = True
    learns_full_text = False

    def __init__(self, settings: Settings, *, embedding: TokenEmbedding, task: Task) -> None:
        super().__init__()
        own = own_settings(settings.bernoulli, method="bernoulli")
        self.settings, self.own = settings, own
        self.task = task
        self.embedding = embedding
        self.language_model = None
        self.controlled_share = own.sparsity is None
        self.input_dropout = input_dropout(settings)
        self.selector = build_selector(settings, embedding, centred=self.controlled_share)
        self.choices = (
            ChoiceLayer(input_width=self.selector.encoder.output_width, state_width=own.state_width)
            if own.dependent
            else None
        )
        self.predictor = build_predictor(settings, embedding, task)
        self.register_buffer("average_cost", torch.ones(()))  # a task's loss is about 1 before anything is learned
        self.register_buffer("offset", torch.zeros(()))

    def players(self) -> tuple[Player, ...]:
        """The selector, and the predictor with the word vectors."""
        rate = self.settings.training.learning_rate
        selecting = (self.selector,) if self.choices is None else (self.selector, self.choices)
        return (
            Player("selector", selecting, {"score_function": 1.0}, rate),
            Player("predictor", (self.embedding, self.predictor), {"prediction": 1.0}, rate),
        )

    def step(self, batch: Batch, conditions: Conditions) -> Step:
        """The objectives of one batch; in a warm-up, the predictor's on the full text."""
        tokens = int(batch.mask.sum())
        vectors = self.input_dropout(self.embedding(batch.ids))
        if conditions.phase == "warm_up":
            logits = self.predictor(vectors, batch.mask)
            return Step({"prediction": self.task_loss(logits, batch)}, None, tokens)
        if conditions.phase == "settle":
            logits = self.predictor(self.settled_vectors(batch, conditions), batch.mask)
            return Step({"prediction": self.task_loss(logits, batch)}, None, tokens)
        self.offset.fill_(conditions.offset)
        draws = uniform_draws(batch.mask, generator=conditions.generator)
        log_odds, chosen = self._select(vectors.detach(), batch.mask, draws)
        logits = self.predictor(vectors * chosen.unsqueeze(-1), batch.mask)
        prediction = self.task_loss(logits, batch)
        likelihood = log_probability(log_odds, chosen, batch.mask)
        score = self._score(self._cost(prediction, chosen, batch.mask), likelihood)
        return Step({"prediction": prediction, "score_function": score}, float(chosen.sum()), tokens)

    @torch.no_grad()
    def score_tokens(self, batch: Batch) -> Tensor:
        """(b, t): the selector's log-odds, deterministic; dependent choices are the likelier ones, in order.

        The offset of the last training step, which dependent choices were learned with, is in them.
        """
        draws = torch.full(batch.mask.shape, 0.5, device=batch.mask.device)
        return self._select(self.embedding(batch.ids), batch.mask, draws)[0]

    @torch.no_grad()
    def predict(self, batch: Batch, selected: Tensor) -> Tensor:
        """(b, c): the output given only the tokens where ``selected`` (b, t) is True."""
        logits: Tensor = self.predictor(only(self.embedding(batch.ids), selected, batch.mask), batch.mask)
        return logits

    @torch.no_grad()
    def predict_full(self, batch: Batch) -> Tensor:
        """(b, c): the predictor's output on all words."""
        return self.predict(batch, batch.mask)

    def _select(self, vectors: Tensor, mask: Tensor, draws: Tensor) -> tuple[Tensor, Tensor]:
        """The log-odds (b, t) and the choices (b, t), 0 on padding."""
        scores, states = self.selector.read(vectors, mask)
        log_odds = scores - self.offset
        if self.choices is None:
            return log_odds, choose(log_odds, draws) * mask
        log_odds, chosen = self.choices(log_odds, states, draws)
        return log_odds, chosen * mask

    @torch.no_grad()
    def _cost(self, prediction: Tensor, chosen: Tensor, mask: Tensor) -> Tensor:
        """(b,): what the selector pays for its choices."""
        cost = prediction + self.own.continuity * fused_lasso(chosen, mask)
        cost = cost + self.own.transitions * boundaries(chosen, mask)
        if self.own.sparsity is not None:
            cost = cost + self.own.sparsity * selected_words(chosen, mask)
        return cost

    def _score(self, cost: Tensor, likelihood: Tensor) -> Tensor:
        """The score function; the baseline is of the batches before, so that it knows nothing of these choices."""
        if self.own.baseline == "none":
            return score_function(cost, likelihood)
        score = score_function(cost, likelihood, baseline=self.average_cost)
        self.average_cost.lerp_(cost.mean(), 1 - BASELINE_DECAY)
        return score
