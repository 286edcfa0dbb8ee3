"""One training run of a reproduction: skipped if it is finished, resumed if it was killed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infocal.errors import OtherFolderError, OtherRunError
from infocal.fitting import StoppedEarlyError, train_method, train_prepared
from infocal.reproduce.scoring import agreement
from infocal.settings import Settings
from infocal.storage import (
    CHECKPOINT,
    HEADER,
    METRICS,
    RUN,
    WEIGHTS,
    other_settings,
    read_header,
    save_model,
    save_weights,
)
from infocal.training.tracking import MetricsFile, Tracker

if TYPE_CHECKING:
    from infocal.data.corpus import Corpus
    from infocal.joint import JointRationalizer
    from infocal.methods.base import Method
    from infocal.nn.retrieval import Articles
    from infocal.rationalizer import Rationalizer
    from infocal.training.preparation import Prepared

__all__ = [
    "MODEL",
    "AgreementByRound",
    "held_out_error",
    "is_finished",
    "read_rounds",
    "train_model",
    "train_network",
    "train_run",
]

MODEL, AGREEMENT = "model", "agreement"
STOPPED = "stopped by the user; the same command goes on from here"
BEGUN = "holds the beginnings of a run with other data or settings; remove it, or name another folder with --out"


def is_finished(folder: Path, settings: Settings) -> bool:
    """Whether the run's model is there already.

    Raises:
        OtherFolderError: a model is there, but it was trained with other settings.
    """
    if not (folder / MODEL / HEADER).is_file():
        return False
    if other := other_settings(read_header(folder / MODEL), settings):
        raise OtherFolderError(
            f"{folder} holds a model that was trained with another {', '.join(other[:5])}; "
            "name another folder with --out, or remove that one"
        )
    return True


def train_run(
    folder: Path,
    prepared: Prepared,
    settings: Settings,
    *,
    corpora: Mapping[str, Corpus],
    warm_ups: Path | None = None,
    trackers: Sequence[Tracker] = (),
) -> None:
    """Train a model and save it in the run's folder; goes on from a checkpoint if one is there.

    Args:
        folder: of the run.
        prepared: the encoded reviews.
        settings: of the run.
        corpora: annotated reviews by scoring, on which every round is measured; nothing is decided by them.
        warm_ups: folder in which runs that differ only in what follows the warm-up share it.
        trackers: who is told of the progress.

    Raises:
        StoppedEarlyError: the user stopped it; the checkpoint stays.
    """
    measured = AgreementByRound(corpora, settings.share)
    train_model(folder, prepared, settings, warm_ups=warm_ups, trackers=[measured, *trackers])


def train_model(
    folder: Path,
    prepared: Prepared,
    settings: Settings,
    *,
    warm_ups: Path | None = None,
    trackers: Sequence[Tracker] = (),
    saved: Callable[[float], None] = lambda seconds: None,
) -> Rationalizer | JointRationalizer:
    """The same without marked words; returns the model that was saved.

    ``saved`` is called with the seconds of training when the model is saved, before the checkpoint goes, so that
    a run that is killed in between need not be trained again.
    """
    model_folder = folder / MODEL
    try:
        model = train_prepared(
            prepared,
            settings,
            trackers=[MetricsFile(model_folder / METRICS), *trackers],
            checkpoint=model_folder / CHECKPOINT,
            resume=True,
            warm_ups=warm_ups,
        )
    except StoppedEarlyError:
        raise StoppedEarlyError(STOPPED) from None
    except OtherRunError:
        raise OtherFolderError(f"{model_folder} {BEGUN}") from None
    if model.record["training"]["interrupted"]:
        raise StoppedEarlyError(STOPPED)
    save_model(model, model_folder, keep=RUN)
    saved(float(model.record["training"]["seconds"]))
    (model_folder / CHECKPOINT).unlink(missing_ok=True)
    return model


def train_network(
    folder: Path,
    prepared: Prepared,
    settings: Settings,
    *,
    articles: Articles | None = None,
    trackers: Sequence[Tracker] = (),
    saved: Callable[[float], None] = lambda seconds: None,
) -> tuple[Method, float]:
    """Train a method that selects nothing; goes on from a checkpoint if one is there.

    Its weights are kept in the run's folder; there is no model to save, since it shows no words. ``saved`` as for
    `train_model`.

    Returns:
        the network with its best weights, and the seconds of training.
    """
    path = folder / CHECKPOINT
    try:
        method, result = train_method(
            prepared,
            settings,
            articles=articles,
            trackers=[MetricsFile(folder / METRICS), *trackers],
            checkpoint=path,
            resume=True,
        )
    except OtherRunError:
        raise OtherFolderError(f"{folder} {BEGUN}") from None
    if result.interrupted or not result.trained:
        raise StoppedEarlyError(STOPPED)
    save_weights(method, folder / WEIGHTS)
    saved(result.seconds)
    path.unlink(missing_ok=True)
    return method.eval(), result.seconds


def held_out_error(folder: Path) -> float:
    """The squared error on the held-out reviews, from the words that the run's finished model selects."""
    return float(read_header(folder / MODEL)["record"]["results"]["selection"]["mse"])


def read_rounds(folder: Path) -> list[dict[str, Any]]:
    """What was measured of each round with a selection."""
    path = folder / MODEL / METRICS
    if not path.is_file():
        return []
    records = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [
        {"round": record["round"], **record["dev"][AGREEMENT]} for record in records if AGREEMENT in record["dev"]
    ]


class AgreementByRound(Tracker):
    """Measures how the words that a round selects at the share agree with those that humans marked.

    Args:
        corpora: annotated reviews by scoring.
        share: of tokens to select.
    """

    def __init__(self, corpora: Mapping[str, Corpus], share: float) -> None:
        self.corpora, self.share = corpora, share

    def measure(self, method: Method, phase: str) -> Mapping[str, Any]:
        """Figures by scoring, while there is a selection that changes."""
        if phase != "joint":
            return {}
        from infocal.training import held_out

        found = {name: held_out.agreement(method, corpus, self.share) for name, corpus in self.corpora.items()}
        return {AGREEMENT: {name: agreement(figures) for name, figures in found.items()}}
