"""Interpretable Neural Predictions with Differentiable Binary Variables (Bastings, Aziz, Titov, ACL 2019)."""

from __future__ import annotations

import torch
from torch import Tensor

from infocal.losses.constraints import constraint, next_multiplier
from infocal.losses.sparsity import expected_transitions, selected_share
from infocal.methods.base import Conditions, Method, Player, Step
from infocal.methods.parts import build_predictor, encoder_sizes, input_dropout, only, own_settings
from infocal.nn.choices import uniform_draws
from infocal.nn.embedding import TokenEmbedding
from infocal.nn.kumaraswamy import HardKumaraswamy, KumaraswamySelector
from infocal.settings import Settings
from infocal.tasks import Task
from infocal.types import Batch

__all__ = ["HardKuma"]


class HardKuma(Method):
    """A selector gives each word a gate with mass at 0 and at 1; the gradient passes through what is between.

    The expected share of words whose gate is open, and where wanted that of boundaries, are known in closed form.
    A Lagrange multiplier for each, which grows while the quantity is above its target, prices it.

    Args:
        settings: targets, multipliers and sizes.
        embedding: token ids to vectors, shared by both parts.
        task: gives the head's width and the loss.
    """

    multipliers: Tensor
    excesses: Tensor
    controlled_share = False
    settles = True
    learns_full_text = False

    def __init__(self, settings: Settings, *, embedding: TokenEmbedding, task: Task) -> None:
        super().__init__()
        own = own_settings(settings.hardkuma, method="hardkuma")
        self.settings, self.own = settings, own
        self.task = task
        self.embedding = embedding
        self.language_model = None
        self.input_dropout = input_dropout(settings)
        self.selector = KumaraswamySelector(
            **encoder_sizes(settings, embedding),
            stretch=own.stretch,
            open_share=settings.share if own.start_at_share else None,
        )
        self.predictor = build_predictor(settings, embedding, task)
        self.targets = {"selected_share": settings.share}
        if own.fused_lasso is not None:
            self.targets["expected_transitions"] = own.fused_lasso
        self.register_buffer("multipliers", torch.full((len(self.targets),), own.multiplier_start))
        self.register_buffer("excesses", torch.zeros(len(self.targets)))

    def players(self) -> tuple[Player, ...]:
        """One side: everything minimises the same sum, whose prices are in the constraints themselves."""
        return (
            Player(
                "rationalizer",
                (self.embedding, self.selector, self.predictor),
                {"prediction": 1.0, **dict.fromkeys(self.targets, 1.0)},
                self.settings.training.learning_rate,
            ),
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
        gates = self.selector(vectors, batch.mask)
        sampled = gates.sample(uniform_draws(batch.mask, generator=conditions.generator)) * batch.mask
        logits = self.predictor(vectors * sampled.unsqueeze(-1), batch.mask)
        prediction = self.task_loss(logits, batch)
        selected = float((sampled.detach() > 0).sum())
        return Step({"prediction": prediction, **self._constraints(gates, batch.mask)}, selected, tokens)

    @torch.no_grad()
    def score_tokens(self, batch: Batch) -> Tensor:
        """(b, t): the log-odds of each gate being open."""
        gates: HardKumaraswamy = self.selector(self.embedding(batch.ids), batch.mask)
        return gates.log_odds()

    @torch.no_grad()
    def predict(self, batch: Batch, selected: Tensor) -> Tensor:
        """(b, c): the output given only the tokens where ``selected`` (b, t) is True.

        A chosen word counts fully. The paper's gate may be between 0 and 1, but its value is computed from the
        whole text: words that were not chosen would reach the output through it, and changing one of them would
        change the prediction.
        """
        logits: Tensor = self.predictor(only(self.embedding(batch.ids), selected, batch.mask), batch.mask)
        return logits

    @torch.no_grad()
    def predict_full(self, batch: Batch) -> Tensor:
        """(b, c): the predictor's output on all words."""
        return self.predict(batch, batch.mask)

    def _constraints(self, gates: HardKumaraswamy, mask: Tensor) -> dict[str, Tensor]:
        """Each constrained quantity above its target, times its multiplier, (b,)."""
        is_open = torch.exp(gates.log_nonzero())
        found = {"selected_share": selected_share(is_open, mask)}
        if "expected_transitions" in self.targets:
            found["expected_transitions"] = expected_transitions(is_open, mask)
        multipliers = self._update_multipliers(found)
        return {
            name: constraint(values, multiplier, target=self.targets[name])
            for (name, values), multiplier in zip(found.items(), multipliers, strict=True)
        }

    @torch.no_grad()
    def _update_multipliers(self, found: dict[str, Tensor]) -> Tensor:
        """The multipliers after this batch; what they follow is a moving average over batches."""
        own = self.own
        excess = torch.stack([values.mean() - self.targets[name] for name, values in found.items()])
        self.excesses.lerp_(excess, 1 - own.moving_average)
        self.multipliers.copy_(
            next_multiplier(
                self.multipliers, self.excesses, rate=own.multiplier_rate, limits=own.multiplier_limits
            )
        )
        return self.multipliers.clone()
