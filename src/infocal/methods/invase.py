"""INVASE (Yoon, Jordon, van der Schaar, ICLR 2019): an actor selects, two critics say what the selection lost."""

from __future__ import annotations

import torch
from torch import Tensor

from infocal.losses.score_function import log_probability, score_function
from infocal.losses.sparsity import selected_share
from infocal.methods.base import Conditions, Method, Player, Step
from infocal.methods.parts import build_predictor, build_selector, input_dropout, only, own_settings
from infocal.nn.choices import choose, uniform_draws
from infocal.nn.embedding import TokenEmbedding
from infocal.settings import Settings
from infocal.tasks import Task
from infocal.types import Batch

__all__ = ["Invase"]


class Invase(Method):
    """An actor draws hard choices, a critic reads what was chosen, a baseline reads everything.

    The actor's reward for a document is the baseline's loss minus the critic's: how little the words left out were
    missed. It pays ``invase.selection_penalty`` times its mean probability besides. The loop's controller, holding
    the share, takes back what that does to all words alike; what is left pushes down the undecided ones most.
    The word vectors belong to the critics.

    Args:
        settings: the penalty and sizes.
        embedding: token ids to vectors, shared by all parts.
        task: gives the heads' width and the loss.
    """

    settles = True

    def __init__(self, settings: Settings, *, embedding: TokenEmbedding, task: Task) -> None:
        super().__init__()
        self.settings, self.own = settings, own_settings(settings.invase, method="invase")
        self.task = task
        self.embedding = embedding
        self.language_model = None
        self.input_dropout = input_dropout(settings)
        self.actor = build_selector(settings, embedding)
        self.critic = build_predictor(settings, embedding, task)
        self.baseline = build_predictor(settings, embedding, task)

    def players(self) -> tuple[Player, ...]:
        """The actor, and the two critics with the word vectors."""
        rate = self.settings.training.learning_rate
        penalty = self.own.selection_penalty
        return (
            Player("actor", (self.actor,), {"score_function": 1.0, "selected_share": penalty}, rate),
            Player(
                "critics",
                (self.embedding, self.critic, self.baseline),
                {"prediction": 1.0, "baseline": 1.0},
                rate,
            ),
        )

    def begin_joint(self) -> None:
        """Start the critic from a warmed-up baseline; the paper has no warm-up, and both start untrained."""
        if self.settings.training.warm_up_rounds:
            self.critic.load_state_dict(self.baseline.state_dict())

    def step(self, batch: Batch, conditions: Conditions) -> Step:
        """The objectives of one batch; in a warm-up, the baseline's."""
        mask, tokens = batch.mask, int(batch.mask.sum())
        if conditions.phase == "settle":
            logits = self.critic(self.settled_vectors(batch, conditions), mask)
            return Step({"prediction": self.task_loss(logits, batch)}, None, tokens)
        vectors = self.input_dropout(self.embedding(batch.ids))
        full = self.task_loss(self.baseline(vectors, mask), batch)
        if conditions.phase == "warm_up":
            return Step({"baseline": full}, None, tokens)
        log_odds = self.actor(vectors.detach(), mask) - conditions.offset
        chosen = choose(log_odds, uniform_draws(mask, generator=conditions.generator)) * mask
        prediction = self.task_loss(self.critic(vectors * chosen.unsqueeze(-1), mask), batch)
        likelihood = log_probability(log_odds, chosen, mask)
        objectives = {
            "prediction": prediction,
            "baseline": full,
            "score_function": score_function(prediction, likelihood, baseline=full),
            "selected_share": selected_share(torch.sigmoid(log_odds), mask),
        }
        return Step(objectives, float(chosen.sum()), tokens)

    @torch.no_grad()
    def score_tokens(self, batch: Batch) -> Tensor:
        """(b, t): the actor's log-odds, deterministic."""
        scores: Tensor = self.actor(self.embedding(batch.ids), batch.mask)
        return scores

    @torch.no_grad()
    def predict(self, batch: Batch, selected: Tensor) -> Tensor:
        """(b, c): the critic's output given only the tokens where ``selected`` (b, t) is True."""
        logits: Tensor = self.critic(only(self.embedding(batch.ids), selected, batch.mask), batch.mask)
        return logits

    @torch.no_grad()
    def predict_full(self, batch: Batch) -> Tensor:
        """(b, c): the baseline's output."""
        logits: Tensor = self.baseline(self.embedding(batch.ids), batch.mask)
        return logits
