"""Options that several verbs share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from infocal.data.readers import BadRows
    from infocal.joint import JointRationalizer
    from infocal.rationalizer import Rationalizer
    from infocal.types import Document

__all__ = [
    "DECODERS",
    "FILE",
    "KINDS",
    "METHODS",
    "Columns",
    "columns",
    "columns_of_model",
    "columns_to_train",
    "decoding",
    "examples",
    "shares",
    "skip_bad",
    "task_kinds",
]

Verb = Callable[..., Any]

DECODERS = ("average", "equal", "spans", "spans-equal")
"""Those of ``infocal.decoding``, named again because importing that takes time."""

METHODS = ("infocal", "attention", "bernoulli", "hardkuma", "l2x", "invase", "car")
"""Those of ``infocal.methods``, named again for the same reason."""

KINDS = ("auto", "classify", "regress")
"""What a label may be said to be."""

FILE = click.Path(path_type=Path)
"""Whether it exists is for the readers to say, with the exit code for data."""


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Which columns the user named; None where the usual name serves, an empty rationale where none is read.

    Several labels are predicted at once. The human's evidence does not say which of them it is for: beside several
    labels it is not read.
    """

    text: str | None = None
    labels: tuple[str, ...] = ()
    rationale: str | None = None

    @property
    def label(self) -> str | None:
        """The one label."""
        if len(self.labels) > 1:
            raise click.UsageError("this takes one label at a time; name one --label")
        return self.labels[0] if self.labels else None

    def of_model(self, model: Rationalizer | JointRationalizer) -> Columns:
        """The same with the columns that a model was trained on, where the user names none.

        Raises:
            click.UsageError: the user names others than the model has, or several for a model of one.
        """
        from infocal.joint import JointRationalizer

        recorded = model.record.get("data", {}).get("columns", {})
        text = self.text or recorded.get("text")
        if not isinstance(model, JointRationalizer):
            if len(self.labels) > 1:
                raise click.UsageError("the model predicts one label; name one --label")
            return replace(self, text=text, labels=self.labels or (recorded.get("label", "label"),))
        known = tuple(model.task.tasks)
        if self.labels and set(self.labels) != set(known):
            raise click.UsageError(f"the model's labels are {', '.join(known)}; leave --label out")
        return replace(self, text=text, labels=known)

    def mean_cases(self, path: Path) -> bool:
        """Whether these are columns of court cases, and the file has CAIL2018's own layout."""
        from infocal.data.cail import TASKS, is_case_file

        of_a_case = self.text == "fact" and bool(self.labels) and set(self.labels) <= set(TASKS)
        return of_a_case and path.is_file() and is_case_file(path)

    def read(self, path: Path, bad_rows: BadRows, *, require_label: bool = True) -> Iterator[Document]:
        """The documents of a file; a column that the user named must be there."""
        from infocal.data.cail import case_documents
        from infocal.data.readers import read_documents

        if self.mean_cases(path):
            return case_documents(path, self.labels, bad_rows=bad_rows, require_label=require_label)
        several = len(self.labels) > 1
        if several and self.rationale:
            raise click.UsageError("--rationale does not say which of several labels it is for; leave it out")
        rationale = "rationale" if self.rationale is None else self.rationale
        return read_documents(
            path,
            bad_rows=bad_rows,
            text=self.text or "text",
            label=self.labels if several else self.label or "label",
            rationale=None if several else rationale or None,
            require_label=require_label,
            require_rationale=bool(self.rationale),
        )


def examples(*lines: str) -> str:
    """Commands to show at the end of a verb's help, one a line."""
    title = "Example:" if len(lines) == 1 else "Examples:"
    return "\n".join(("\b", title, *(f"  {line}" for line in lines)))


def task_kinds(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> str | dict[str, str] | None:
    """What ``--task`` says: one kind for all labels, or by label; None where it is not given."""
    named = {name: kind for name, sign, kind in (value.rpartition("=") for value in values) if sign}
    for value in values:
        if value.rpartition("=")[2] not in KINDS:
            raise click.BadParameter(f"{value!r}; allowed: {', '.join(KINDS)}, or one of these as LABEL=KIND")
    if len(named) == len(values):
        return named or None
    if len(values) > 1:
        raise click.BadParameter("several are for labels by name: --task LABEL=KIND, each once")
    return values[0]


def shares(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> float | dict[str, float] | None:
    """What ``--select`` says: one share for all labels, or by label; None where it is not given."""
    found: dict[str, float] = {}
    for value in values:
        name, sign, share = value.rpartition("=")
        try:
            found[name] = float(share)
        except ValueError:
            raise click.BadParameter(f"{value!r}; allowed: a share such as 0.15, or LABEL=0.15") from None
        if not 0 < found[name] < 1:
            raise click.BadParameter(f"{value!r}; allowed: a share of words between 0 and 1, e.g. 0.15")
        if sign and not name:
            raise click.BadParameter(f"{value!r} names no label")
    if len(found) != len(values) or ("" in found and len(values) > 1):
        raise click.BadParameter("several are for labels by name: --select LABEL=SHARE, each once")
    return found.get("", found or None)


def columns(verb: Verb, *, label: str = "Column of the label  [default: label]", text: str = "text") -> Verb:
    """Add --text, --label and --rationale, which the verb gets as ``columns``.

    Args:
        verb: to add them to.
        label: the help of --label.
        text: the default of --text, for its help.
    """
    text_help = f"Column of the text; a.b reaches into nested JSON  [default: {text}]"

    @wraps(verb)
    def wrapped(*, text: str | None, labels: tuple[str, ...], rationale: str | None, **rest: Any) -> Any:
        return verb(columns=Columns(text=text, labels=tuple(dict.fromkeys(labels)), rationale=rationale), **rest)

    what = "Column of the human's evidence, lists of [start, end]; '' reads none  [default: rationale, if there]"
    wrapped = click.option("--rationale", metavar="NAME", help=what)(wrapped)
    wrapped = click.option("--label", "labels", multiple=True, metavar="NAME", help=label)(wrapped)
    return click.option("--text", metavar="NAME", help=text_help)(wrapped)


def columns_to_train(verb: Verb) -> Verb:
    """The same of a verb that can learn several labels."""
    what = "Column of the label; several are predicted together, each from words of its own  [default: label]"
    return columns(verb, label=what)


def columns_of_model(verb: Verb) -> Verb:
    """The same of a verb that knows the model's columns."""
    return columns(verb, label="Column of the label  [default: the model's]", text="the model's")


def skip_bad(verb: Verb) -> Verb:
    """Add --skip-bad."""
    what = "Leave out rows that cannot be used, and count them."
    return click.option("--skip-bad", is_flag=True, help=what)(verb)


def decoding(verb: Verb) -> Verb:
    """Add --decoder, --share and --span-cost, which the verb gets as ``choice``."""

    @wraps(verb)
    def wrapped(*, decoder: str, share: float | None, span_cost: float | None, **rest: Any) -> Any:
        if span_cost is not None and not decoder.startswith("spans"):
            raise click.UsageError("--span-cost needs --decoder spans or --decoder spans-equal")
        return verb(choice={"decoder": decoder, "share": share, "span_cost": span_cost}, **rest)

    what = "Cost of a span for the span decoders; more: fewer, longer spans  [default: fitted]"
    at_least_zero = click.FloatRange(min=0)
    wrapped = click.option("--span-cost", type=at_least_zero, callback=_finite, help=what)(wrapped)
    what = "Share of words to select  [default: what the model was trained for]"
    between = click.FloatRange(0, 1, min_open=True, max_open=True)
    wrapped = click.option("--share", type=between, callback=_finite, help=what)(wrapped)
    what = "Words: the share on average, or equal in each text; or whole spans."
    return click.option(
        "--decoder", type=click.Choice(DECODERS), default=DECODERS[0], show_default=True, help=what
    )(wrapped)


def _finite(ctx: click.Context, option: click.Parameter, value: float | None) -> float | None:
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is not a finite number", ctx, option)
    return value
