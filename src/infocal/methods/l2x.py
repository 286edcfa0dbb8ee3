"""L2X (Chen, Song, Wainwright, Jordan, ICML 2018): the k words from which a trained model can be imitated."""

from __future__ import annotations

import torch
from torch import Tensor

from infocal.errors import SettingsError
from infocal.losses.imitating import answer_cross_entropy, answer_error
from infocal.methods.base import Conditions, Method, Player, Step
from infocal.methods.parts import build_predictor, build_selector, input_dropout, only, own_settings
from infocal.nn.embedding import TokenEmbedding
from infocal.nn.gates import subset_gumbel, subset_sizes
from infocal.settings import Settings
from infocal.tasks import Regression, Task
from infocal.types import Batch

__all__ = ["L2X"]


class L2X(Method):
    """A selector and an approximator that explain a model of the full text.

    The warm-up trains the model to be explained, P_m(y | x). After it that model and the word vectors stand still,
    and the selector and the approximator Q(y | x_S) are trained to reproduce its answers, not the labels: so the
    words maximise (a bound of) the mutual information between themselves and the model's answer. In training the
    mask is relaxed, as in the paper; at test the best k words are read and nothing else.

    Args:
        settings: the temperature and the share of words; sizes.
        embedding: token ids to vectors, shared by all parts, trained in the warm-up only.
        task: gives the head's width and the loss.
    """

    settles = True

    def __init__(self, settings: Settings, *, embedding: TokenEmbedding, task: Task) -> None:
        super().__init__()
        own = own_settings(settings.l2x, method="l2x")
        if not settings.training.warm_up_rounds:
            raise SettingsError(
                "training.warm_up_rounds is 0, but the method l2x explains the model that the warm-up trains; "
                "set it to 1 or more"
            )
        self.settings, self.temperature = settings, own.temperature
        self.task = task
        self.embedding = embedding
        self.language_model = None
        self.input_dropout = input_dropout(settings)
        self.explained = build_predictor(settings, embedding, task)
        self.selector = build_selector(settings, embedding)
        self.approximator = build_predictor(settings, embedding, task)

    def players(self) -> tuple[Player, ...]:
        """The model to be explained, which moves in the warm-up, and its explainer, which moves after it."""
        loss, learning_rate = self.settings.loss, self.settings.training.learning_rate
        explained, explainer = (self.embedding, self.explained), (self.selector, self.approximator)
        return (
            Player("explained", explained, {"guidance": loss.guidance}, learning_rate),
            Player("explainer", explainer, {"answer_imitation": loss.prediction}, learning_rate),
        )

    def begin_joint(self) -> None:
        """Start the explainer from what it explains, if the settings say so."""
        if self.settings.model.initialise_selector:
            self.selector.encoder.load_state_dict(self.explained.encoder.state_dict())
            self.approximator.load_state_dict(self.explained.state_dict())

    def step(self, batch: Batch, conditions: Conditions) -> Step:
        """The task's loss of the model to be explained in the warm-up, then the imitation of its answers."""
        tokens = int(batch.mask.sum())
        if conditions.phase == "warm_up":
            logits = self.explained(self.input_dropout(self.embedding(batch.ids)), batch.mask)
            return Step({"guidance": self.task_loss(logits, batch)}, None, tokens)
        if conditions.phase == "settle":
            logits = self.approximator(self.settled_vectors(batch, conditions), batch.mask)
            return Step({"answer_imitation": self._imitation(logits, self._answers(batch))}, None, tokens)
        vectors = self.input_dropout(self.embedding(batch.ids).detach())
        sizes = subset_sizes(batch.mask, share=self.settings.share)
        relaxed = subset_gumbel(
            self.selector(vectors, batch.mask),
            batch.mask,
            sizes,
            temperature=self.temperature,
            generator=conditions.generator,
        )
        logits = self.approximator(vectors * relaxed.unsqueeze(-1), batch.mask)
        imitation = self._imitation(logits, self._answers(batch))
        return Step({"answer_imitation": imitation}, float(sizes.sum()), tokens)

    @torch.no_grad()
    def score_tokens(self, batch: Batch) -> Tensor:
        """(b, t): the selector's scores, deterministic; the k best are the explanation."""
        scores: Tensor = self.selector(self.embedding(batch.ids), batch.mask)
        return scores

    @torch.no_grad()
    def predict(self, batch: Batch, selected: Tensor) -> Tensor:
        """(b, c): the approximator's output given only the tokens where ``selected`` (b, t) is True."""
        vectors = only(self.embedding(batch.ids), selected, batch.mask)
        logits: Tensor = self.approximator(vectors, batch.mask)
        return logits

    @torch.no_grad()
    def predict_full(self, batch: Batch) -> Tensor:
        """(b, c): the output of the model that is explained."""
        logits: Tensor = self.explained(self.embedding(batch.ids), batch.mask)
        return logits

    def _answers(self, batch: Batch) -> Tensor:
        """(b, c): what the explained model says, its dropout off also while the explainer trains."""
        training = self.explained.training
        self.explained.eval()
        try:
            return self.predict_full(batch)
        finally:
            self.explained.train(training)

    def _imitation(self, logits: Tensor, answers: Tensor) -> Tensor:
        """The distance to the answers, on the scale of the task's own loss."""
        distance = answer_error if isinstance(self.task, Regression) else answer_cross_entropy
        return distance(logits, answers) / (1.0 if self.settings.loss.scale == "printed" else self.task.unit)
