"""From documents to a trained model: the way that the command line, the estimators and the demo share."""

from __future__ import annotations

import datetime
import hashlib
import json
import platform
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from infocal.data.corpus import Corpus
from infocal.data.readers import BadRows
from infocal.decoding import Decoding, fit_decoding
from infocal.errors import SettingsError, TrainingError
from infocal.evaluation.calibration import Temperatures, fit_temperatures
from infocal.joint import JointRationalizer
from infocal.rationalizer import Rationalizer
from infocal.settings import Settings
from infocal.tasks import Classification, Joint, Task, shares_of
from infocal.training.preparation import Prepared, build_embedding, prepare
from infocal.types import Document, Span

if TYPE_CHECKING:
    from infocal.methods.base import Method
    from infocal.nn.retrieval import Articles
    from infocal.training.progress import Result
    from infocal.training.tracking import Tracker

__all__ = [
    "WARM_UPS",
    "StoppedEarlyError",
    "check_trainable",
    "fit",
    "forget_warm_ups",
    "one_label",
    "resolve_settings",
    "run_identity",
    "train_method",
    "train_prepared",
    "warm_up_identity",
]


WARM_UPS = "warm-ups"
"""The folder, among what several runs leave, in which they share warm-ups."""


RULES_OF_SEVERAL = 3
"""Raised when the same settings give other weights of several labels than before: runs of both are not mixed."""


class StoppedEarlyError(TrainingError):
    """The user stopped a run before there was a model to save."""

    exit_code = 130


def fit(
    documents: Iterable[Document],
    settings: Settings,
    *,
    dev: Iterable[Document] | None = None,
    bad_rows: BadRows | None = None,
    source: str = "data",
    dev_source: str = "dev data",
    from_text: bool = False,
    segmenter: Callable[[str], Iterable[Span]] | None = None,
    trackers: Sequence[Tracker] = (),
    checkpoint: Path | None = None,
    resume: bool = False,
    tell: Callable[[str], None] = lambda note: None,
) -> Rationalizer | JointRationalizer:
    """Train a model on documents; of several labels, if theirs are mappings from name to label.

    Args:
        documents: the training rows, read once.
        settings: of the run, from :func:`infocal.config.load_settings`.
        dev: rows that decide when to stop; None holds a part of the training rows out.
        bad_rows: what to do with rows that cannot be used; by default the first one raises.
        source: a name for the training rows in messages.
        dev_source: the same for the held-out rows.
        from_text: whether labels come from a file in which everything is text (CSV, TSV).
        segmenter: the user's own, in place of ``settings.text.segmenter``.
        trackers: who is told of the progress.
        checkpoint: file for the state of the run.
        resume: go on from ``checkpoint`` if it is there.
        tell: called with each sentence that the user should read.
    """
    prepared = prepare(
        documents,
        dev,
        settings,
        bad_rows=bad_rows or BadRows(skip=False),
        source=source,
        dev_source=dev_source,
        from_text=from_text,
        segmenter=segmenter,
    )
    for note in prepared.notes:
        tell(note)
    return train_prepared(prepared, settings, trackers=trackers, checkpoint=checkpoint, resume=resume, tell=tell)


def one_label(model: Rationalizer | JointRationalizer) -> Rationalizer:
    """A model of one label as such."""
    if isinstance(model, Rationalizer):
        return model
    raise SettingsError(f"this needs a model of one label; this one has {', '.join(model.parts)}")


def train_prepared(
    prepared: Prepared,
    settings: Settings,
    *,
    trackers: Sequence[Tracker] = (),
    checkpoint: Path | None = None,
    resume: bool = False,
    warm_ups: Path | None = None,
    tell: Callable[[str], None] = lambda note: None,
) -> Rationalizer | JointRationalizer:
    """Train a model on data that is already encoded; arguments as in :func:`fit` and :func:`train_method`."""
    check_trainable(settings, prepared)
    settings = resolve_settings(settings, prepared)
    method, result = train_method(
        prepared, settings, trackers=trackers, checkpoint=checkpoint, resume=resume, warm_ups=warm_ups
    )
    if not result.trained:
        raise StoppedEarlyError(
            "stopped before the selector was trained, so there is no model yet; "
            "the same command with --resume goes on from here"
        )
    if result.interrupted:
        tell("Stopped by the user: this is the best model so far; --resume goes on with the run.")
    return _finish(method, prepared, settings, result)


def check_trainable(settings: Settings, prepared: Prepared) -> None:
    """Raise SettingsError if the method cannot make a model of this data; nothing is written before."""
    from infocal.methods import JOINT, WITHOUT_EVIDENCE, check_goal

    if settings.method in WITHOUT_EVIDENCE:
        raise SettingsError(
            f"the method {settings.method} shows no evidence; `infocal reproduce cail` compares with it"
        )
    check_goal(settings.method, prepared.task, instead=JOINT - WITHOUT_EVIDENCE)
    shares_of(prepared.task, settings.select)


def train_method(
    prepared: Prepared,
    settings: Settings,
    *,
    articles: Articles | None = None,
    trackers: Sequence[Tracker] = (),
    checkpoint: Path | None = None,
    resume: bool = False,
    warm_ups: Path | None = None,
) -> tuple[Method, Result]:
    """Train a network and leave it at that.

    Args:
        prepared: the encoded data.
        settings: of the run.
        articles: the law, for the method fla.
        trackers: who is told of the progress.
        checkpoint: file for the state of the run.
        resume: go on from ``checkpoint`` if it is there.
        warm_ups: folder in which runs that differ only in what follows the warm-up share it; the weights are the
            same as without it.
    """
    import torch

    from infocal.methods import build_method
    from infocal.training.loop import Trainer

    settings = resolve_settings(settings, prepared)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        embedding = build_embedding(prepared, settings)
        method = build_method(settings, embedding=embedding, task=prepared.task, articles=articles)
    _pretrain(method, prepared, settings)
    trainer = Trainer(
        method,
        settings,
        train=prepared.train,
        dev=prepared.dev,
        trackers=trackers,
        checkpoint=checkpoint,
        identity=run_identity(prepared, settings, articles),
        warm_up=None if warm_ups is None else warm_ups / f"{warm_up_identity(prepared, settings)}.safetensors",
    )
    return method, trainer.run(resume=resume)


def resolve_settings(settings: Settings, prepared: Prepared) -> Settings:
    """Settle what depends on the data, so that the saved settings say what was done."""
    if prepared.max_tokens is not None:
        known = {"max_tokens": prepared.max_tokens, "segmenter": prepared.segmenter.name}
        text = settings.text.model_copy(update=known)
        settings = settings.model_copy(update={"text": text})
    if settings.loss.calibration_window != "auto":
        return settings
    window = calibration_window(float(prepared.summary["tokens_per_text"]["median"]))
    return settings.model_copy(update={"loss": settings.loss.model_copy(update={"calibration_window": window})})


def calibration_window(median_tokens: float) -> int:
    """The odd number of words over which attributions are averaged: evidence grows with the text, from 3 to 9."""
    return max(3, min(9, 2 * round((median_tokens / 7 - 1) / 2) + 1))


def _pretrain(method: Method, prepared: Prepared, settings: Settings) -> None:
    """Learn what the texts alone can teach: word vectors where none were given, the language model."""
    if prepared.vectors is None and settings.text.learn_vectors:
        from infocal.training.pretrain import start_word_vectors

        start_word_vectors(method.embedding, prepared.train, settings)
    if settings.loss.fluency and method.language_model is not None:
        from infocal.training.pretrain import pretrain_language_model

        pretrain_language_model(method.language_model, method.embedding, prepared.train, settings)


def run_identity(prepared: Prepared, settings: Settings, articles: Articles | None = None) -> str:
    """Changes whenever a checkpoint of another run would give other weights."""
    schedule = settings.training.model_copy(update={"checkpoint_seconds": 0.0})
    choices = settings.model_copy(update={"training": schedule}).to_yaml()
    if articles is not None:
        law = articles.ids.numpy().tobytes() + articles.offsets.numpy().tobytes()
        choices += hashlib.sha256(law).hexdigest()
    return _digest(prepared, choices)


def warm_up_identity(prepared: Prepared, settings: Settings) -> str:
    """Changes whenever the warm-up of another run would give other weights."""
    from infocal import __version__
    from infocal.training.warm_up import warm_up_settings

    return _digest(prepared, json.dumps([__version__, warm_up_settings(settings)], sort_keys=True))


def forget_warm_ups(out: Path) -> None:
    """Remove the warm-ups that runs have shared in a folder, once all of them are done."""
    shutil.rmtree(out / WARM_UPS, ignore_errors=True)


def _digest(prepared: Prepared, choices: str) -> str:
    parts = [prepared.train.fingerprint(), prepared.dev.fingerprint(), choices]
    if isinstance(prepared.task, Joint):
        parts.append(f"several labels, rules {RULES_OF_SEVERAL}")
    digest = hashlib.sha256("\n".join(parts).encode())
    if prepared.vectors is not None:
        digest.update(prepared.vectors.matrix.tobytes())
    return digest.hexdigest()


def _finish(
    method: Method, prepared: Prepared, settings: Settings, result: Result
) -> Rationalizer | JointRationalizer:
    """The trained model, of one label or of several."""
    from infocal.training.held_out import threshold_texts

    drawn = threshold_texts(prepared.dev, prepared.train)
    texts = drawn.drawn()
    breaks = texts.sentence_starts(prepared.vocabulary.sentence_ends())
    method.eval()

    def model(view: Method, task: Task, share: float, scores: NDArray[np.float32], dev: Corpus) -> Rationalizer:
        decoding = fit_decoding(scores, texts.offsets, share=share, breaks=breaks)
        results, temperatures = _held_out(view, dev, decoding)
        record = {**facts, "results": results}
        return Rationalizer(
            settings, prepared.segmenter, prepared.vocabulary, task, view, decoding, record, temperatures
        )

    facts = {"data": prepared.summary, "training": _training(result), "notes": prepared.notes}
    task, dev, scores = prepared.task, prepared.dev, drawn.scores(method)
    shares = shares_of(task, settings.select)
    if isinstance(task, Task):
        return model(method, task, shares[0], scores[0], dev)
    if not isinstance(task, Joint) or dev.targets is None:
        raise TypeError(f"{task!r} is neither one task nor several with targets")
    columns = zip(method.views(), task.tasks.items(), shares, scores, dev.targets.T, strict=True)
    parts = {
        name: model(view, part, share, own, replace(dev, targets=part.target_array(column)))
        for view, (name, part), share, own, column in columns
    }
    results = {name: part.record["results"] for name, part in parts.items()}
    return JointRationalizer(parts, task, method, {**facts, "results": results})


def _held_out(method: Method, dev: Corpus, decoding: Decoding) -> tuple[dict[str, Any], Temperatures]:
    """What the finished model makes of the held-out rows, with the threshold that it will have."""
    from infocal.training.inference import full_text_outputs, outputs, token_scores

    if dev.targets is None:
        raise ValueError("the held-out corpus has no targets")
    selected = decoding.select(token_scores(method, dev), dev.offsets)
    task, full, chosen = method.task, full_text_outputs(method, dev), outputs(method, dev, selected)
    results = {
        "guide": task.scores(full, dev.targets),
        "selection": task.scores(chosen, dev.targets),
        "selected": float(selected.mean()),
    }
    if not method.settings.model.temperature_scaling or not isinstance(task, Classification):
        return results, Temperatures()
    return results, fit_temperatures(chosen, full, dev.targets)


def _training(result: Result) -> dict[str, Any]:
    import torch

    from infocal import __version__

    phases = dict.fromkeys(("warm_up", "joint", *(record["phase"] for record in result.history)))
    return {
        "rounds": {phase: sum(r["phase"] == phase for r in result.history) for phase in phases},
        "seconds": round(result.seconds, 1),
        "interrupted": result.interrupted,
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "infocal": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
