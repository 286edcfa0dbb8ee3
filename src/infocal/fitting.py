"""From documents to a trained model: the way that the command line, the estimators and the demo share."""

from __future__ import annotations

import datetime
import hashlib
import platform
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infocal.config import Settings
from infocal.data.corpus import Corpus
from infocal.data.readers import BadRows
from infocal.decoding import Decoding, fit_decoding
from infocal.errors import TrainingError
from infocal.rationalizer import Rationalizer
from infocal.training.preparation import Prepared, build_embedding, prepare
from infocal.types import Document, Span

if TYPE_CHECKING:
    from infocal.methods.base import Method
    from infocal.training.loop import Result
    from infocal.training.tracking import Tracker

__all__ = ["StoppedEarlyError", "fit", "resolve_settings", "train_prepared"]


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
) -> Rationalizer:
    """Train a model on documents.

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


def train_prepared(
    prepared: Prepared,
    settings: Settings,
    *,
    trackers: Sequence[Tracker] = (),
    checkpoint: Path | None = None,
    resume: bool = False,
    tell: Callable[[str], None] = lambda note: None,
) -> Rationalizer:
    """Train a model on data that is already encoded; arguments as in :func:`fit`."""
    import torch

    from infocal.methods import build_method
    from infocal.training.loop import Trainer

    settings = resolve_settings(settings, prepared)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        embedding = build_embedding(prepared, settings)
        method = build_method(settings, embedding=embedding, task=prepared.task)
    _pretrain(method, prepared, settings)
    trainer = Trainer(
        method,
        settings,
        train=prepared.train,
        dev=prepared.dev,
        trackers=trackers,
        checkpoint=checkpoint,
        identity=_identity(prepared, settings),
    )
    result = trainer.run(resume=resume)
    if not result.trained:
        raise StoppedEarlyError(
            "stopped before the selector was trained, so there is no model yet; "
            "the same command with --resume goes on from here"
        )
    if result.interrupted:
        tell("Stopped by the user: this is the best model so far; --resume goes on with the run.")
    return _finish(method, prepared, settings, result)


def resolve_settings(settings: Settings, prepared: Prepared) -> Settings:
    """Settle what depends on the data, so that the saved settings say what was done."""
    if prepared.max_tokens is not None:
        text = settings.text.model_copy(update={"max_tokens": prepared.max_tokens})
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


def _identity(prepared: Prepared, settings: Settings) -> str:
    """Changes whenever a checkpoint of another run would give other weights."""
    schedule = settings.training.model_copy(update={"checkpoint_seconds": 0.0})
    parts = [
        prepared.train.fingerprint(),
        prepared.dev.fingerprint(),
        settings.model_copy(update={"training": schedule}).to_yaml(),
    ]
    digest = hashlib.sha256("\n".join(parts).encode())
    if prepared.vectors is not None:
        digest.update(prepared.vectors.matrix.tobytes())
    return digest.hexdigest()


def _finish(method: Method, prepared: Prepared, settings: Settings, result: Result) -> Rationalizer:
    from infocal.training.held_out import threshold_texts
    from infocal.training.inference import token_scores

    texts = threshold_texts(prepared.dev, prepared.train)
    decoding = fit_decoding(
        token_scores(method, texts),
        texts.offsets,
        share=settings.select,
        breaks=texts.sentence_starts(prepared.vocabulary.sentence_ends()),
    )
    record: dict[str, Any] = {
        "data": prepared.summary,
        "results": _results(method, prepared.dev, decoding),
        "training": _training(result),
        "notes": prepared.notes,
    }
    return Rationalizer(
        settings,
        prepared.segmenter,
        prepared.vocabulary,
        prepared.task,
        method.eval(),
        decoding,
        record,
    )


def _results(method: Method, dev: Corpus, decoding: Decoding) -> dict[str, Any]:
    """What the finished model makes of the held-out rows, with the threshold that it will have."""
    from infocal.training.inference import full_text_outputs, outputs, token_scores

    if dev.targets is None:
        raise ValueError("the held-out corpus has no targets")
    selected = decoding.select(token_scores(method, dev), dev.offsets)
    task = method.task
    return {
        "guide": task.scores(full_text_outputs(method, dev), dev.targets),
        "selection": task.scores(outputs(method, dev, selected), dev.targets),
        "selected": float(selected.mean()),
    }


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
