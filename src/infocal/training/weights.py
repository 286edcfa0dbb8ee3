"""The weights of a method in training: those being trained, their running average, the best found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

    from infocal.methods.base import Method

__all__ = ["Weights"]

YOUNG = 10.0
"""While it is not many more steps old than this, the average follows faster than it will later."""


class Weights:
    """What training changes of a method: the parameters, and the buffers but those of the word vectors.

    Args:
        method: the network; its weights are changed in place.
        averaging: how much of the average a step leaves; 0 makes no average.

    Attributes:
        average: parameter name -> its running average; empty before the first step.
        best: the weights to keep; empty before any are.
    """

    def __init__(self, method: Method, *, averaging: float) -> None:
        self.method, self.averaging = method, averaging
        self.average: dict[str, Tensor] = {}
        self.best: dict[str, Tensor] = {}

    def tensors(self) -> dict[str, Tensor]:
        """Name -> the tensor itself."""
        tensors: dict[str, Tensor] = dict(self.method.named_parameters())
        tensors |= {n: value for n, value in self.method.named_buffers() if not n.startswith("embedding.")}
        return {name: value.detach() for name, value in tensors.items()}

    def copy(self) -> dict[str, Tensor]:
        """Name -> the value that the tensor has now."""
        return {name: value.clone() for name, value in self.tensors().items()}

    def load(self, values: Mapping[str, Tensor]) -> None:
        """Give every tensor the value of its name."""
        with torch.no_grad():
            for name, tensor in self.tensors().items():
                tensor.copy_(values[name])

    def follow(self, steps: int) -> None:
        """Let the average follow the trained weights, which have moved for the ``steps``-th time."""
        if not self.averaging:
            return
        trained = dict(self.method.named_parameters())
        if not self.average:
            self.average = {name: value.detach().clone() for name, value in trained.items()}
        pace = 1.0 - min(self.averaging, steps / (steps + YOUNG))
        for name, value in self.average.items():
            value.lerp_(trained[name].detach(), pace)

    def begin_anew(self) -> None:
        """Forget the average and the best of the phase that is over."""
        self.average, self.best = {}, {}
