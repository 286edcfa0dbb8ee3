"""What FLA, TOPJUDGE and MPBFN-WCA have in common: several tasks, the full text, no words to show."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter

import torch
from torch import Tensor

from infocal.errors import SettingsError
from infocal.methods.base import Conditions, Method, Player, Step
from infocal.methods.parts import input_dropout, only
from infocal.nn.embedding import TokenEmbedding
from infocal.settings import Settings
from infocal.tasks import Goal, Joint
from infocal.types import Batch

__all__ = ["Judge", "Topology", "topology"]

JUDGEMENT: Mapping[str, tuple[str, ...]] = {"article": (), "charge": ("article",), "term": ("article", "charge")}
"""What each task of a criminal judgement rests on, in the papers."""


class Judge(Method):
    """A network that reads full texts and answers several tasks at once.

    Args:
        settings: sizes and schedule.
        embedding: token ids to vectors.
        task: the tasks; SettingsError where it is one task instead.
    """

    task: Joint
    judged_by_full_text = True
    controlled_share = False
    selects = False

    def __init__(self, settings: Settings, *, embedding: TokenEmbedding, task: Goal) -> None:
        super().__init__()
        if not isinstance(task, Joint):
            raise SettingsError(
                f"the method {settings.method} answers several named tasks at once, and this is one of kind "
                f"{task.kind!r}; name the labels of several tasks, or use another method"
            )
        self.settings = settings
        self.task = task
        self.embedding = embedding
        self.language_model = None
        self.input_dropout = input_dropout(settings)

    @abstractmethod
    def answer(self, vectors: Tensor, batch: Batch) -> Tensor:
        """(b, c): all tasks' outputs side by side, from token vectors (b, t, d); a token of id 0 is unread."""

    def players(self) -> tuple[Player, ...]:
        """One, who moves everything."""
        weights = {"prediction": self.settings.loss.prediction}
        return (Player("judge", (self,), weights, self.settings.training.learning_rate),)

    def step(self, batch: Batch, conditions: Conditions) -> Step:
        """The tasks' loss on the full text, in every phase."""
        logits = self.answer(self.input_dropout(self.embedding(batch.ids)), batch)
        return Step({"prediction": self.task_loss(logits, batch)}, None, int(batch.mask.sum()))

    def score_tokens(self, batch: Batch) -> Tensor:
        """There is nothing to score: always SettingsError."""
        raise SettingsError(
            f"the method {self.settings.method} reads the full text and shows no evidence for its answers; "
            "use infocal, or another method that selects words"
        )

    @torch.no_grad()
    def predict(self, batch: Batch, selected: Tensor) -> Tensor:
        """(b, c): the output given only the tokens where ``selected`` (b, t) is True; all others are unread."""
        read = replace(batch, ids=batch.ids.masked_fill(~selected, 0))
        return self.answer(only(self.embedding(batch.ids), selected, batch.mask), read)

    @torch.no_grad()
    def predict_full(self, batch: Batch) -> Tensor:
        """(b, c): the method's own prediction."""
        return self.answer(self.embedding(batch.ids), batch)


@dataclass(frozen=True, slots=True)
class Topology:
    """Which task is told of which, by their places.

    Attributes:
        order: all tasks, each after its parents.
        parents: for each task those it is told of.
        children: for each task those that are told of it.
    """

    order: tuple[int, ...]
    parents: tuple[tuple[int, ...], ...]
    children: tuple[tuple[int, ...], ...]


def topology(names: Sequence[str], parents: Mapping[str, Sequence[str]] | None, *, setting: str) -> Topology:
    """The graph of the tasks.

    A task of which ``parents`` says nothing has those of `JUDGEMENT`, as far as they are there; one of another
    name is told of all tasks before it.

    Args:
        names: of the tasks, in order.
        parents: name of a task -> names of its parents; None for the defaults alone.
        setting: where ``parents`` stands, for messages.

    Raises:
        SettingsError: a name is no task's, or a task depends on itself.
    """
    chosen = {name: tuple(dict.fromkeys(given)) for name, given in (parents or {}).items()}
    _check_names([*chosen, *(name for given in chosen.values() for name in given)], names, setting)
    graph = {name: chosen.get(name, _usual_parents(name, names)) for name in names}
    try:
        order = tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        circle = " <- ".join(reversed(error.args[1]))
        raise SettingsError(f"{setting} leads in a circle: {circle}; leave one of these parents out") from None
    place = {name: number for number, name in enumerate(names)}
    return Topology(
        tuple(place[name] for name in order),
        tuple(tuple(place[parent] for parent in graph[name]) for name in names),
        tuple(tuple(place[child] for child in names if name in graph[child]) for name in names),
    )


def _usual_parents(name: str, names: Sequence[str]) -> tuple[str, ...]:
    if name in JUDGEMENT:
        return tuple(parent for parent in JUDGEMENT[name] if parent in names)
    return tuple(names[: names.index(name)])


def _check_names(given: Sequence[str], names: Sequence[str], setting: str) -> None:
    unknown = [name for name in given if name not in names]
    if unknown:
        raise SettingsError(f"{setting} names the task {unknown[0]!r}; the tasks are {', '.join(names)}")
