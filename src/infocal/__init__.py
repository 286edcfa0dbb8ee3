"""InfoCal: text models that predict, and show the words each prediction was made from.

The public names are loaded when first used, so that importing the package is quick and needs no torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from infocal.estimators import RationaleClassifier, RationaleRegressor
    from infocal.fitting import fit
    from infocal.joint import JointRationalizer
    from infocal.loading import load
    from infocal.rationalizer import Rationalizer
    from infocal.types import Document, Explanation

__version__ = "0.1.0"

__all__ = [
    "Document",
    "Explanation",
    "JointRationalizer",
    "RationaleClassifier",
    "RationaleRegressor",
    "Rationalizer",
    "__version__",
    "fit",
    "load",
]

_HOMES = {
    "Document": "types",
    "Explanation": "types",
    "JointRationalizer": "joint",
    "RationaleClassifier": "estimators",
    "RationaleRegressor": "estimators",
    "Rationalizer": "rationalizer",
    "fit": "fitting",
    "load": "loading",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'infocal' has no attribute {name!r}")
    return getattr(import_module(f"infocal.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
