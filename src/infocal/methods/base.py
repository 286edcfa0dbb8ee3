"""What the training loop and the trained model ask of a method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Generator, Tensor, nn

from infocal.losses.reductions import masked_mean
from infocal.methods.parts import only, targets_of
from infocal.nn.embedding import TokenEmbedding
from infocal.nn.language_model import VectorLanguageModel
from infocal.settings import Settings
from infocal.tasks import Goal, Task
from infocal.types import Batch

__all__ = ["Conditions", "Method", "Phase", "Player", "Step"]

Phase = Literal["warm_up", "joint", "settle"]


@dataclass(frozen=True, slots=True)
class Player:
    """One side of the game: what it moves and what it wants.

    Attributes:
        name: for logs and checkpoints.
        modules: the parts whose parameters it moves; no parameter belongs to two players.
        weights: objective name -> weight; objectives not named here are not its own.
        learning_rate: of its optimizer.
    """

    name: str
    modules: tuple[nn.Module, ...]
    weights: Mapping[str, float]
    learning_rate: float

    def parameters(self) -> list[nn.Parameter]:
        """Its trainable parameters, each once, in a fixed order."""
        seen: dict[int, nn.Parameter] = {}
        for module in self.modules:
            for parameter in module.parameters():
                if parameter.requires_grad:
                    seen.setdefault(id(parameter), parameter)
        return list(seen.values())


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a training step depends on besides the batch and the weights.

    Attributes:
        phase: "warm_up" trains what reads the full text, "joint" trains everything, "settle" trains what predicts
            on the words that inference will select.
        offset: the controller's shift of the selector's log-odds; (k, 1, 1) for a method of k views.
        generator: the source of all randomness of the step.
        selected: (b, t) bool, in "settle" the words that are selected; (k, b, t) for a method of k views.
    """

    phase: Phase
    offset: float | Tensor
    generator: Generator
    selected: Tensor | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """What a training step gives the loop.

    Attributes:
        objectives: name -> (b,), unreduced.
        selected: tokens selected, as a number, one for each view; None while nothing is selected.
        tokens: real tokens of the batch.
    """

    objectives: Mapping[str, Tensor]
    selected: float | tuple[float, ...] | None
    tokens: int

    @property
    def counts(self) -> tuple[float, ...]:
        """Tokens selected in each view; none while nothing is selected."""
        if self.selected is None:
            return ()
        return self.selected if isinstance(self.selected, tuple) else (self.selected,)


class Method(nn.Module, ABC):
    """A selector-predictor that the loop can train and the product can use.

    What training changes besides parameters (multipliers, moving averages) is a registered buffer: checkpoints and
    saved models keep those.

    Attributes:
        settings: all settings of the run.
        task: what is predicted.
        tasks: the tasks of a method that can have several.
        embedding: token ids to vectors.
        input_dropout: what is left out of the vectors in training.
        language_model: that of the fluency objective; None for methods without one.
        judged_by_full_text: whether early stopping looks at the output on the full text instead of that on the
            selected words, for methods that never train on selected words.
        controlled_share: whether the loop's controller holds the share of selected tokens, through
            `Conditions.offset`; False for methods that price their own words.
        selects: whether it chooses words at all; one that does not is trained and judged on full texts.
        settles: whether it has a third phase, "settle".
        learns_full_text: whether a part of it is there to read full texts, be it trained to the end or left as the
            warm-up made it; False where only the predictor has read some, before it learned from selected words.
        score_reference: what decoders cut, "own" (the log-odds) or "balanced" (the log-odds relative to their
            document, see :meth:`decoding_scores`).
    """

    settings: Settings
    task: Goal
    tasks: tuple[Task, ...] = ()
    embedding: TokenEmbedding
    input_dropout: nn.Module
    language_model: VectorLanguageModel | None
    judged_by_full_text: bool = False
    controlled_share: bool = True
    selects: bool = True
    settles: bool = False
    learns_full_text: bool = True
    score_reference: Literal["own", "balanced"] = "own"

    @abstractmethod
    def players(self) -> tuple[Player, ...]:
        """Who is trained on what."""

    @abstractmethod
    def step(self, batch: Batch, conditions: Conditions) -> Step:
        """Forward pass and objectives of one training batch."""

    def views(self) -> tuple[Method, ...]:
        """A method for each task, by which that task's words are selected and its answer is found.

        One of several tasks shares a network with the others; it is used like a method of its own, not trained.
        """
        return (self,)

    def begin_joint(self) -> None:
        """Called once between the phases, e.g. to start the selector from the guider."""

    def task_loss(self, logits: Tensor, batch: Batch) -> Tensor:
        """(b,): the task's loss of some outputs, on the scale and with the balance that the settings name."""
        loss = self.settings.loss
        return self.task.loss(logits, targets_of(batch), balance=loss.balance, plain=loss.scale == "printed")

    def settled_vectors(self, batch: Batch, conditions: Conditions) -> Tensor:
        """(b, t, d): the vectors of the words that inference selects, all else 0; they are not trained."""
        if conditions.selected is None:
            raise ValueError("settling needs the selected words")
        kept = only(self.embedding(batch.ids).detach(), conditions.selected, batch.mask)
        vectors: Tensor = self.input_dropout(kept)
        return vectors

    @abstractmethod
    def score_tokens(self, batch: Batch) -> Tensor:
        """(b, t): the selector's log-odds, deterministic."""

    def decoding_scores(self, batch: Batch) -> Tensor:
        """(b, t): what decoders cut, made of :meth:`score_tokens`.

        Relative to the mean of its document, a score gives every document the same share of its words, whatever
        its length. Relative to the logarithm of the sum of all odds, it is the word's part of all that matters: a
        text that is twice as long gets no more words. People are between the two, and "balanced" is their middle.
        """
        scores = self.score_tokens(batch)
        if self.score_reference == "balanced":
            total = torch.logsumexp(scores.masked_fill(~batch.mask, -torch.inf), dim=-1)
            scores = scores - 0.5 * (masked_mean(scores, batch.mask) + total).unsqueeze(-1)
        return scores

    @abstractmethod
    def predict(self, batch: Batch, selected: Tensor) -> Tensor:
        """(b, c): the output given only the tokens where ``selected`` (b, t) is True."""

    @abstractmethod
    def predict_full(self, batch: Batch) -> Tensor:
        """(b, c): the output of the part that reads every word."""
