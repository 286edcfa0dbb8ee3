"""Reading saved models."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from infocal.errors import ModelError
from infocal.joint import JointRationalizer
from infocal.rationalizer import Rationalizer
from infocal.tasks import Joint
from infocal.types import Span

__all__ = ["load", "load_one"]


def load(
    path: str | Path, *, segmenter: Callable[[str], Iterable[Span]] | None = None
) -> Rationalizer | JointRationalizer:
    """Load a saved model, of one label or of several; nothing in the folder is executed.

    Args:
        path: the folder that a model's ``save`` or ``infocal train`` wrote.
        segmenter: the callable of a model that was trained with one of the user's own.
    """
    from infocal.storage import load_model

    found = load_model(Path(path), segmenter=segmenter)
    task, method, parts, record = (found.pop(name) for name in ("task", "method", "parts", "record"))
    if not isinstance(task, Joint):
        return Rationalizer(**found, task=task, method=method, record=record, **parts[""])
    results = record.get("results", {})
    models = {
        name: Rationalizer(
            **found,
            task=part,
            method=view,
            record={**record, "results": results.get(name, {})},
            **parts[name],
        )
        for (name, part), view in zip(task.tasks.items(), method.views(), strict=True)
    }
    return JointRationalizer(models, task, method, record)


def load_one(path: str | Path, *, segmenter: Callable[[str], Iterable[Span]] | None = None) -> Rationalizer:
    """The same for a model of one label.

    Raises:
        ModelError: the model has several.
    """
    model = load(path, segmenter=segmenter)
    if isinstance(model, JointRationalizer):
        raise ModelError(f"{path} is a model of several labels ({', '.join(model.parts)}); this needs one of one")
    return model
