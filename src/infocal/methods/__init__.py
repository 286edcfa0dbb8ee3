"""One file per published method: it composes bricks and names its objectives and players."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from infocal.errors import SettingsError

if TYPE_CHECKING:
    from infocal.config import Settings
    from infocal.methods.base import Method
    from infocal.nn.embedding import TokenEmbedding
    from infocal.tasks import Task

__all__ = ["METHODS", "build_method"]

METHODS = {
    "infocal": "InfoCal",
    "attention": "Attention",
    "bernoulli": "Bernoulli",
    "hardkuma": "HardKuma",
    "l2x": "L2X",
    "invase": "Invase",
    "car": "Car",
}
"""Name, which is also the name of the module and of the recipe, and class."""


def build_method(settings: Settings, *, embedding: TokenEmbedding, task: Task) -> Method:
    """The untrained network of ``settings.method``."""
    if settings.method not in METHODS:
        raise SettingsError(f"method {settings.method!r} is unknown; choose from {', '.join(METHODS)}")
    kind = getattr(import_module(f"infocal.methods.{settings.method}"), METHODS[settings.method])
    method: Method = kind(settings, embedding=embedding, task=task)
    method.score_reference = settings.model.score_reference
    return method
