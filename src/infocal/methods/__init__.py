"""One file per published method: it composes bricks and names its objectives and players."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infocal.errors import SettingsError

if TYPE_CHECKING:
    from infocal.config import Settings
    from infocal.methods.base import Method
    from infocal.nn.embedding import TokenEmbedding
    from infocal.tasks import Task

__all__ = ["build_method"]


def build_method(settings: Settings, *, embedding: TokenEmbedding, task: Task) -> Method:
    """The untrained network of ``settings.method``."""
    from infocal.methods.infocal import InfoCal

    methods = {"infocal": InfoCal}
    if settings.method not in methods:
        raise SettingsError(f"method {settings.method!r} is unknown; choose from {', '.join(methods)}")
    return methods[settings.method](settings, embedding=embedding, task=task)
