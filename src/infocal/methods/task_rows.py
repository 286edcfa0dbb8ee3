"""The rows and columns of several tasks that one network reads and answers at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from infocal.tasks import Task
from infocal.types import Features

__all__ = ["TaskRows"]


@dataclass(frozen=True, slots=True)
class TaskRows:
    """What belongs to which of k tasks.

    Shapes: b documents, c outputs of all tasks side by side. Rows k * b are the documents as the first task has
    them, then as the second has them, and so on. Of one task nothing has to be told apart, and everything stays as
    it is.

    Attributes:
        tasks: in the order of rows and outputs.
    """

    tasks: tuple[Task, ...]

    def copies(self, values: Tensor) -> Tensor:
        """(b, ...) -> (k * b, ...), the same for every task."""
        count = len(self.tasks)
        return values if count == 1 else values.repeat(count, *(1 for _ in values.shape[1:]))

    def mean(self, values: Tensor) -> Tensor:
        """(k * b,) -> (b,), the mean over tasks."""
        count = len(self.tasks)
        return values if count == 1 else values.view(count, -1).mean(dim=0)

    def counts(self, selected: Tensor) -> float | tuple[float, ...]:
        """How many words of (k * b, t) each task selects."""
        counts = tuple(float(part.sum()) for part in selected.chunk(len(self.tasks)))
        return counts[0] if len(counts) == 1 else counts

    def outputs(self, logits: Tensor) -> list[tuple[Task, Tensor]]:
        """Each task with its own of the outputs (b, c)."""
        widths = [task.outputs for task in self.tasks]
        return list(zip(self.tasks, torch.split(logits, widths, dim=1), strict=True))

    def joined(self, logits: Sequence[Tensor]) -> Tensor:
        """Outputs (b, c), k times -> (b, c): those of the first task from the first, and so on."""
        return torch.cat([self.outputs(part)[place][1] for place, part in enumerate(logits)], dim=1)

    def by_task(self, values: Tensor) -> Tensor:
        """(b, k, f) -> (k * b, f)."""
        return values if len(self.tasks) == 1 else values.transpose(0, 1).flatten(0, 1)

    def own(self, features: Features) -> Features:
        """(k * b, k, f) -> (k * b, f): of a task's rows, that task's features."""
        count = len(self.tasks)
        if count == 1:
            return features
        whose = torch.arange(count).repeat_interleave(len(features.mean) // count)
        rows = torch.arange(len(whose))
        return Features(*(part[rows, whose] for part in (features.mean, features.deviation, features.sample)))
