"""How settings become the bricks that several methods use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from infocal.errors import SettingsError
from infocal.nn.dropout import Dropout
from infocal.nn.embedding import TokenEmbedding
from infocal.nn.predictor import Predictor
from infocal.nn.selector import Selector
from infocal.settings import Settings
from infocal.tasks import Task
from infocal.types import Batch

__all__ = [
    "build_predictor",
    "build_selector",
    "encoder_sizes",
    "input_dropout",
    "only",
    "own_settings",
    "standing_still",
    "targets_of",
    "unmoved",
]

Group = TypeVar("Group")


def encoder_sizes(settings: Settings, embedding: TokenEmbedding) -> dict[str, Any]:
    """The arguments that every network with an encoder takes."""
    encoder = settings.encoder
    return {
        "encoder": encoder.kind,
        "input_width": embedding.width,
        "hidden_width": encoder.hidden_width,
        "layers": encoder.layers,
        "dropout": encoder.dropout,
    }


def build_selector(
    settings: Settings, embedding: TokenEmbedding, *, centred: bool = True, outputs: int = 1
) -> Selector:
    """An untrained selector; its scores are relative to their document's mean, or free."""
    return Selector(**encoder_sizes(settings, embedding), centred=centred, outputs=outputs)


def build_predictor(settings: Settings, embedding: TokenEmbedding, task: Task) -> Predictor:
    """An untrained predictor."""
    return Predictor(**encoder_sizes(settings, embedding), outputs=task.outputs)


def own_settings(group: Group | None, *, method: str) -> Group:
    """A method's own group of settings, which its recipe brings."""
    if group is None:
        raise SettingsError(
            f"the method {method} needs the settings {method}.*; start from the recipe {method}, or extend it"
        )
    return group


def input_dropout(settings: Settings) -> nn.Module:
    """Dropout of single values, then of whole words, on the token vectors (b, t, d)."""
    model = settings.model
    return nn.Sequential(Dropout(model.input_dropout), nn.Dropout1d(model.token_dropout))


def only(vectors: Tensor, selected: Tensor, mask: Tensor) -> Tensor:
    """The vectors (b, t, d) where ``selected`` (b, t) is True on a real token, exact zeros elsewhere."""
    return torch.where((selected & mask).unsqueeze(-1), vectors, 0.0)


@contextmanager
def unmoved(*modules: nn.Module) -> Iterator[None]:
    """Parameters want no gradient, so that one of the inputs costs no more than that."""
    wanting = [p for module in modules for p in module.parameters() if p.requires_grad]
    try:
        for parameter in wanting:
            parameter.requires_grad_(False)
        yield
    finally:
        for parameter in wanting:
            parameter.requires_grad_(True)


@contextmanager
def standing_still(*modules: nn.Module) -> Iterator[None]:
    """As in `unmoved`, and dropout is off."""
    training = [module.training for module in modules]
    try:
        for module in modules:
            module.eval()
        with unmoved(*modules):
            yield
    finally:
        for module, mode in zip(modules, training, strict=True):
            module.train(mode)


def targets_of(batch: Batch) -> Tensor:
    """The targets of a training batch."""
    if batch.targets is None:
        raise ValueError("training needs targets")
    return batch.targets
