"""One file per published method: it composes bricks and names its objectives and players."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from infocal.errors import SettingsError

if TYPE_CHECKING:
    from infocal.methods.base import Method
    from infocal.nn.embedding import TokenEmbedding
    from infocal.nn.retrieval import Articles
    from infocal.settings import Settings
    from infocal.tasks import Goal

__all__ = ["JOINT", "METHODS", "WITHOUT_EVIDENCE", "build_method", "changes_for", "check_goal"]

METHODS = {
    "infocal": "InfoCal",
    "attention": "Attention",
    "bernoulli": "Bernoulli",
    "hardkuma": "HardKuma",
    "l2x": "L2X",
    "invase": "Invase",
    "car": "Car",
    "topjudge": "Topjudge",
    "mpbfn": "Mpbfn",
    "fla": "Fla",
}
"""Name, which is also the name of the module and of the recipe, and class."""

JOINT = frozenset({"infocal", "topjudge", "mpbfn", "fla"})
"""Those that answer several tasks at once."""

WITHOUT_EVIDENCE = frozenset({"topjudge", "mpbfn", "fla"})
"""Those that read all words and show none; they are there to be compared with."""

NEED_CLASSES = frozenset({"car"})
"""Those that cannot answer with a score."""


def check_goal(method: str, task: Goal, *, instead: Collection[str] = JOINT) -> None:
    """Raise SettingsError, which names what to use ``instead``, if a method cannot answer what is asked."""
    if task.kind == "joint" and method not in JOINT:
        raise SettingsError(
            f"the method {method} answers one task, and several were named; "
            f"name one label, or use one of {', '.join(sorted(instead))}"
        )
    if task.kind == "regress" and method in NEED_CLASSES:
        raise SettingsError(
            f"the method {method} finds words for each class, and scores have no classes; "
            "use another method, or make classes of the scores and set task=classify"
        )


def changes_for(method: str, changes: Sequence[str], *, among: Collection[str]) -> list[str]:
    """Those of some changes of settings that are for a method: all but those of other methods' own settings.

    Args:
        method: whose settings are changed.
        changes: ``"name=value"``.
        among: all methods that the changes are meant for.

    Raises:
        SettingsError: a change is of a method's own settings, and the method is not among them.
    """
    found = []
    for change in changes:
        group = change.partition(".")[0].strip()
        if group in METHODS and group not in among:
            raise SettingsError(f"{change!r} is a setting of the method {group}; add {group} to --methods")
        if group not in METHODS or group == method:
            found.append(change)
    return found


def build_method(
    settings: Settings, *, embedding: TokenEmbedding, task: Goal, articles: Articles | None = None
) -> Method:
    """The untrained network of ``settings.method``.

    Args:
        settings: of the run.
        embedding: token ids to vectors.
        task: what is predicted.
        articles: the law that the method fla reads; no other method looks at it.
    """
    if settings.method not in METHODS:
        raise SettingsError(f"method {settings.method!r} is unknown; choose from {', '.join(METHODS)}")
    check_goal(settings.method, task)
    kind = getattr(import_module(f"infocal.methods.{settings.method}"), METHODS[settings.method])
    more = {"articles": articles} if settings.method == "fla" else {}
    method: Method = kind(settings, embedding=embedding, task=task, **more)
    method.score_reference = settings.model.score_reference
    return method
