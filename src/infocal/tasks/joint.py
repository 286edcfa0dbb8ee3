"""Several tasks on one text: each has its own part of the outputs, and its own column of targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from infocal.errors import DataError, naming
from infocal.tasks.base import Array, Goal, Task

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Joint"]


@dataclass(frozen=True)
class Joint(Goal):
    """Named tasks, all of them of every text.

    A label is a mapping from name to label. Targets are (n, k), a column per task; outputs (n, c) are those of
    the tasks side by side.

    Args:
        tasks: name -> task, in the order of columns and outputs.
    """

    tasks: Mapping[str, Task]
    kind = "joint"

    @property
    def outputs(self) -> int:
        """c, all tasks' outputs together."""
        return sum(task.outputs for task in self.tasks.values())

    @property
    def unit(self) -> float:
        """The mean of the tasks' units."""
        return float(np.mean([task.unit for task in self.tasks.values()]))

    def slices(self) -> list[slice]:
        """Which outputs are whose."""
        ends = np.cumsum([0, *(task.outputs for task in self.tasks.values())]).tolist()
        return [slice(start, end) for start, end in pairwise(ends)]

    def parts(self, logits: Array, targets: Array) -> Iterator[tuple[str, Task, Array, Array]]:
        """Name, task, outputs (n, own c) and targets (n,) of each task."""
        for place, ((name, task), own) in enumerate(zip(self.tasks.items(), self.slices(), strict=True)):
            yield name, task, logits[:, own], task.target_array(targets[:, place])

    def encode(self, label: object, *, source: str | None = None, line: int | None = None) -> list[float]:
        """A mapping of labels as the numbers of its columns."""
        if not isinstance(label, Mapping) or (missing := [name for name in self.tasks if name not in label]):
            found = f"there is no label {missing[0]!r}" if isinstance(label, Mapping) else "there are no labels"
            raise DataError(found, allowed=f"one of each: {', '.join(self.tasks)}", source=source, line=line)
        numbers = []
        for name, task in self.tasks.items():
            with naming(name):
                numbers.append(task.encode(label[name], source=source, line=line))
        return numbers

    def with_priors(self, targets: Array) -> Self:
        """Each task knows those of its own column."""
        columns = [task.target_array(targets[:, place]) for place, task in enumerate(self.tasks.values())]
        named = zip(self.tasks.items(), columns, strict=True)
        return replace(self, tasks={name: task.with_priors(column) for (name, task), column in named})

    def loss(self, logits: Tensor, targets: Tensor, *, balance: float = 0.0, plain: bool = False) -> Tensor:
        """The mean of the tasks' losses, each balanced and measured by itself."""
        import torch

        losses = [
            task.loss(
                logits[:, own],
                torch.from_numpy(task.target_array(targets[:, place].numpy())),
                balance=balance,
                plain=plain,
            )
            for place, (task, own) in enumerate(zip(self.tasks.values(), self.slices(), strict=True))
        ]
        return torch.stack(losses).mean(dim=0)

    def held_out_losses(self, logits: Array, targets: Array, *, balance: float = 0.0) -> Array:
        """(n, k): each task's held-out losses."""
        parts = self.parts(logits, targets)
        losses = [task.held_out_losses(part, gold, balance=balance) for _, task, part, gold in parts]
        return np.stack(losses, axis=1)

    def scores(self, logits: Array, targets: Array) -> dict[str, Any]:
        """The metrics of each task by its name."""
        return {name: task.scores(part, gold) for name, task, part, gold in self.parts(logits, targets)}

    def target_array(self, targets: Sequence[Any] | Array) -> Array:
        """(n, k): int64 where all tasks have classes, float32 otherwise."""
        kinds = {task.target_array([]).dtype for task in self.tasks.values()}
        kind = kinds.pop() if len(kinds) == 1 else np.dtype(np.float32)
        return np.asarray(targets, dtype=kind).reshape(-1, len(self.tasks))

    def to_json(self) -> dict[str, Any]:
        """Kind and the tasks."""
        return {"kind": self.kind, "tasks": {name: task.to_json() for name, task in self.tasks.items()}}
