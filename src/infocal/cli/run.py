"""What ``infocal train`` does, step by step; heavy imports stay inside."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from infocal.cli.failures import INTERRUPTED
from infocal.cli.options import Columns
from infocal.cli.output import Voice, check_apart, human_size
from infocal.errors import SettingsError
from infocal.markup import show

if TYPE_CHECKING:
    from infocal.joint import JointRationalizer
    from infocal.rationalizer import Rationalizer
    from infocal.settings import Settings
    from infocal.training.preparation import Prepared
    from infocal.training.tracking import Tracker
    from infocal.types import Document

__all__ = ["Request", "run"]

Model: TypeAlias = "Rationalizer | JointRationalizer"

EXAMPLES = 3
LONGEST_EXAMPLE = 1200


@dataclass(frozen=True, kw_only=True)
class Request:
    """The options of ``infocal train``."""

    data: Path
    out: Path
    dev: Path | None
    columns: Columns
    task: str | dict[str, str] | None
    select: float | dict[str, float] | None
    vectors: Path | None
    method: str | None
    recipe: str | None
    changes: tuple[str, ...]
    seed: int | None
    supervise: bool
    skip_bad: bool
    resume: bool
    overwrite: bool
    tensorboard: bool
    threads: int | None
    quiet: bool


def run(request: Request) -> None:
    """Train, save, and show what came out."""
    from infocal.files import one_at_a_time

    voice = Voice(quiet=request.quiet)
    settings = _settings(request)
    check_apart({"DATA": request.data, "--dev": request.dev})
    if request.threads is not None:
        import torch

        torch.set_num_threads(request.threads)
    with one_at_a_time(request.out):
        if _nothing_to_do(request, settings, voice):
            return
        prepared = _prepare(request, settings, voice)
        model = _train(request, settings, prepared, voice)
        interrupted = bool(model.record["training"]["interrupted"])
        _save(model, request.out, keep_checkpoint=interrupted)
    _report(request, model, prepared, voice)
    if interrupted:
        click.get_current_context().exit(INTERRUPTED)


def _settings(request: Request) -> Settings:
    from infocal.config import load_settings

    changes = list(request.changes)
    if request.supervise:
        changes.insert(0, "loss.rationale_supervision=1.0")  # first, so that --set may give another weight
    if request.vectors is not None:
        changes.append(f"text.vectors={json.dumps(str(request.vectors))}")
    return load_settings(
        request.recipe,
        changes,
        method=request.method,
        task=request.task,
        select=request.select,
        seed=request.seed,
    )


def _nothing_to_do(request: Request, settings: Settings, voice: Voice) -> bool:
    """Whether the run is already finished; SettingsError where training would destroy something."""
    from infocal.files import check_writable, clear_leftovers
    from infocal.storage import CHECKPOINT, HEADER, check_replaceable

    out = request.out
    check_replaceable(out)
    check_writable(out / HEADER)
    clear_leftovers(out)
    if request.resume:
        if (out / CHECKPOINT).is_file():
            return False
        if (out / HEADER).is_file() and not request.overwrite:
            _check_finished(request, settings)
            voice.say(f"The run in {out} is finished; there is nothing to resume. --overwrite trains anew.")
            return True
        voice.tell(f"There is no checkpoint in {out}; training starts anew.")
    elif out.is_dir() and any(out.iterdir()) and not request.overwrite:
        model = "a model" if (out / HEADER).is_file() else "the beginnings of a run"
        what = "the state of an interrupted run" if (out / CHECKPOINT).is_file() else model
        raise SettingsError(
            f"{out} already holds {what}; use --resume to go on with an interrupted run, --overwrite to "
            "replace it, or name another folder with --out"
        )
    return False


def _check_finished(request: Request, settings: Settings) -> None:
    """Refuse to call a run finished that was another one."""
    from infocal.data.encoded import is_encoded
    from infocal.errors import OtherRunError
    from infocal.storage import other_settings, read_header
    from infocal.training.preparation import check_text_settings

    header = read_header(request.out)
    text, encoded = header["settings"]["text"], is_encoded(request.data)
    other = _other_data(request, header["record"].get("data", {}), encoded=encoded)
    if (text["vectors"] is None) != (settings.text.vectors is None):
        other.append("--vectors")
    if encoded:  # how its texts were cut is not the run's choice
        cut = {name: text[name] for name in ("max_tokens", "segmenter")}
        check_text_settings(settings, **cut)
        settings = settings.model_copy(update={"text": settings.text.model_copy(update=cut)})
    if other := other + other_settings(header, settings):
        raise OtherRunError(
            f"the run in {request.out} is finished, with another {', '.join(other[:5])}; --overwrite trains anew, "
            "or name another folder with --out"
        )


def _other_data(request: Request, known: Mapping[str, Any], *, encoded: bool) -> list[str]:
    """What of the data is named otherwise than in the record of a finished run."""
    columns = known.get("columns", {})
    labels, asked = columns.get("label", "label"), list(request.columns.labels) or ["label"]
    labels = [labels] if isinstance(labels, str) else list(labels)
    what = "label" if sorted(labels) != sorted(asked) else "order of labels"
    same = {"DATA": known.get("source") == request.data.name, what: labels == asked}
    if not encoded:
        part = "a part of the same" if request.dev is None else request.dev.name
        same["--dev"] = known.get("held_out_source") == part
        same["--text"] = columns.get("text", "text") == (request.columns.text or "text")
    return [name for name, holds in same.items() if not holds]


def _prepare(request: Request, settings: Settings, voice: Voice) -> Prepared:
    from infocal.data.encoded import is_encoded
    from infocal.data.readers import BadRows
    from infocal.data.records import format_of
    from infocal.fitting import check_trainable
    from infocal.training.preparation import prepare

    if is_encoded(request.data):
        prepared = _open_encoded(request, settings)
    else:
        bad_rows = BadRows(skip=request.skip_bad)
        prepared = prepare(
            request.columns.read(request.data, bad_rows),
            None if request.dev is None else request.columns.read(request.dev, bad_rows),
            settings,
            bad_rows=bad_rows,
            source=str(request.data),
            dev_source=str(request.dev),
            from_text=format_of(request.data) in (".csv", ".tsv"),
        )
    labels = request.columns.labels
    prepared.summary.setdefault(
        "columns",
        {
            "text": request.columns.text or "text",
            "label": list(labels) if len(labels) > 1 else request.columns.label or "label",
        },
    )
    annotated = prepared.summary["annotated_rows"]
    if settings.loss.rationale_supervision and len(labels) > 1:
        raise SettingsError("--supervise is for one label: the human's evidence does not say which one it is for")
    if settings.loss.rationale_supervision and not annotated:
        raise SettingsError(
            f"--supervise learns from human evidence, but no training row of {request.data} has any; "
            "name its column with --rationale NAME, or leave --supervise out"
        )
    for note in prepared.notes:
        voice.tell(note)
    if annotated and not settings.loss.rationale_supervision:
        voice.tell(
            f"{annotated:,} training rows have human evidence; it is not learned from (--supervise does that), "
            "it only serves to score models."
        )
    check_trainable(settings, prepared)
    return prepared


def _open_encoded(request: Request, settings: Settings) -> Prepared:
    from infocal.training.description import note_of_repeats
    from infocal.training.preparation import open_encoded

    for option, given in (
        ("--dev", request.dev),
        ("--text", request.columns.text),
        ("--rationale", request.columns.rationale),
        ("--task", settings.task != "auto"),
        ("--supervise", request.supervise),
        ("--skip-bad", request.skip_bad),
    ):
        if given:
            raise SettingsError(f"{request.data} is an encoded corpus; {option} cannot be used with it")
    labels = request.columns.labels
    label = list(labels) if len(labels) > 1 else request.columns.label or "label"
    prepared = open_encoded(request.data, label, settings)
    prepared.notes.extend(note_of_repeats(prepared.train, prepared.dev))
    return prepared


def _train(request: Request, settings: Settings, prepared: Prepared, voice: Voice) -> Model:
    from infocal.files import write_text
    from infocal.fitting import resolve_settings, train_prepared
    from infocal.storage import CHECKPOINT, SETTINGS

    write_text(request.out / SETTINGS, resolve_settings(settings, prepared).to_yaml())
    if not request.resume:
        (request.out / CHECKPOINT).unlink(missing_ok=True)
    return train_prepared(
        prepared,
        settings,
        trackers=_trackers(request, voice),
        checkpoint=request.out / CHECKPOINT,
        resume=request.resume,
        tell=voice.tell,
    )


def _trackers(request: Request, voice: Voice) -> list[Tracker]:
    from infocal.storage import CURVES, METRICS
    from infocal.training.tracking import MetricsFile, ProgressBar, TensorBoard

    trackers: list[Tracker] = [MetricsFile(request.out / METRICS)]
    if voice.aside.is_terminal and not request.quiet:
        trackers.append(ProgressBar(voice.aside))
    if request.tensorboard:
        trackers.append(TensorBoard(request.out / CURVES))
    return trackers


def _save(model: Model, out: Path, *, keep_checkpoint: bool) -> None:
    from infocal.storage import CHECKPOINT, RUN, save_model

    save_model(model, out, keep=[name for name in RUN if keep_checkpoint or name != CHECKPOINT])


def _report(request: Request, model: Model, prepared: Prepared, voice: Voice) -> None:
    from infocal.tasks import Joint

    size = sum(path.stat().st_size for path in request.out.iterdir() if path.is_file())
    seconds = model.record["training"]["seconds"]
    voice.say(f"Model saved in {request.out} ({human_size(size)}, {seconds:.0f} s of training).", "bold")
    results = model.record["results"]
    parts = results if isinstance(prepared.task, Joint) else {"": results}
    for name, figures in parts.items():
        if figures:
            _held_out_figures(name, figures, len(prepared.dev), voice)
    examples = list(islice(_examples(request, prepared), EXAMPLES))
    if examples:
        voice.say("\nSome held-out rows, with the words each prediction was made from:\n")
        for explanation in model.explain_documents(examples):
            show(voice.result, explanation)
    folder = shlex.quote(str(request.out))
    voice.say("Next:")
    voice.say(f"infocal evaluate {folder} TEST_FILE")
    voice.say(f"infocal explain {folder} 'a text of yours'")


def _held_out_figures(name: str, results: dict[str, Any], rows: int, voice: Voice) -> None:
    from infocal.cli.evaluate import both_sides
    from infocal.markup import percent

    title = f"{f'{name}: ' if name else ''}{rows:,} held-out rows"
    voice.result.print(both_sides(title, results["selection"], results["guide"]))
    voice.say(f"Words selected: {percent(results['selected'])}")


def _examples(request: Request, prepared: Prepared) -> Iterator[Document]:
    """Held-out rows that fit a screen, read again from their file, which keeps no text in memory before."""
    from infocal.data.encoded import is_encoded
    from infocal.data.readers import BadRows

    if is_encoded(request.data):
        return  # it has no texts
    held = set(prepared.dev.lines.tolist())
    for document in request.columns.read(request.dev or request.data, BadRows(skip=True)):
        if document.line in held and len(document.text) <= LONGEST_EXAMPLE:
            yield document
