"""One of several tasks of a network, used as if it were the only one."""

from __future__ import annotations

from torch import Tensor

from infocal.methods.base import Conditions, Method, Player, Step
from infocal.tasks import Task
from infocal.types import Batch

__all__ = ["TaskView"]


class TaskView(Method):
    """What a method of several tasks selects and answers for one of them.

    Its own parameters are none: they are the whole method's, which is trained, saved and loaded as a whole.

    Args:
        whole: gives scores (k, b, t), or (b, t) for one task, and outputs (b, c) of all tasks side by side.
        place: which of its tasks.
        task: that task.
    """

    task: Task

    def __init__(self, whole: Method, place: int, task: Task) -> None:
        super().__init__()
        self.whole, self.place, self.task = whole, place, task
        self.settings, self.embedding, self.input_dropout = whole.settings, whole.embedding, whole.input_dropout
        self.language_model = whole.language_model
        self.learns_full_text, self.score_reference = whole.learns_full_text, whole.score_reference
        start = sum(part.outputs for part in whole.tasks[:place])
        self.own = slice(start, start + task.outputs)
        self.train(whole.training)

    def players(self) -> tuple[Player, ...]:
        """None: the whole is trained."""
        return ()

    def step(self, batch: Batch, conditions: Conditions) -> Step:
        """The whole is trained, not one of its tasks."""
        raise TypeError("a view of one task is not trained; train the whole method")

    def score_tokens(self, batch: Batch) -> Tensor:
        """(b, t): the log-odds of this task's selection."""
        scores = self.whole.score_tokens(batch)
        return scores if scores.ndim == 2 else scores[self.place]

    def predict(self, batch: Batch, selected: Tensor) -> Tensor:
        """(b, c): this task's outputs given only the selected tokens."""
        return self.whole.predict(batch, selected)[:, self.own]

    def predict_full(self, batch: Batch) -> Tensor:
        """(b, c): this task's outputs given every word."""
        return self.whole.predict_full(batch)[:, self.own]
