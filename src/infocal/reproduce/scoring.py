"""How the literature scores highlighted words of beer reviews, and how a trained model is scored here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from infocal.data.beer import first_tokens
from infocal.types import Document

if TYPE_CHECKING:
    from infocal.rationalizer import Rationalizer

__all__ = ["FIGURES", "SCORINGS", "SHARES", "RunResult", "agreement", "cut_as", "score_model"]

SCORINGS: Mapping[str, str] = {
    "lei": "every review with marked words, whole (Lei et al. 2016, Bastings et al. 2019)",
    "car": "reviews rated at most .4 or at least .6, cut at 256 tokens (Chang et al. 2019 and later)",
}
FIGURES = ("precision", "recall", "f1", "selected_share", "gold_share")
SHARES = (0.03, 0.05, 0.07, 0.1, 0.13, 0.2, 0.3, 0.5)
"""Where the figure of the squared error is measured."""

UNDECIDED = (0.4, 0.6)
CUT = 256


@dataclass(frozen=True)
class RunResult:
    """What one trained model reached on the test reviews.

    Attributes:
        row: the row of the table.
        aspect: the aspect.
        seed: the seed.
        agreement: by scoring the figures of ``FIGURES`` as shares; empty where nobody marked words.
        mse: squared error from the selected words, on all test reviews.
        full_text_mse: the same from the full text.
        selected: share of tokens selected in all test reviews.
        by_share: for each of ``SHARES`` its ``share``, ``selected`` and ``mse``.
        rounds: for each round of training its ``round`` and by scoring the figures.
        seconds: of training.
    """

    row: str
    aspect: str
    seed: int
    agreement: dict[str, dict[str, float]]
    mse: float
    full_text_mse: float
    selected: float
    by_share: list[dict[str, float]] = field(default_factory=list)
    rounds: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0


def cut_as(scoring: str, documents: Iterable[Document]) -> list[Document]:
    """The annotated reviews as a scoring wants them.

    Args:
        scoring: a name of ``SCORINGS``.
        documents: annotated reviews, labelled with their rating.
    """
    marked = [document for document in documents if document.rationale]
    if scoring == "lei":
        return marked
    low, high = UNDECIDED
    return [first_tokens(document, CUT) for document in marked if not low < _rating(document) < high]


def _rating(document: Document) -> float:
    return float(document.label) if isinstance(document.label, int | float) else 0.0


def agreement(scores: Mapping[str, Any] | None) -> dict[str, float] | None:
    """The figures of ``FIGURES`` among those of ``rationale_scores``."""
    return None if scores is None else {name: float(scores[name]) for name in FIGURES}


def score_model(
    model: Rationalizer,
    documents: Sequence[Document],
    *,
    row: str,
    aspect: str,
    seed: int,
    decoder: str,
    rounds: list[dict[str, Any]],
) -> RunResult:
    """Score a model on the test reviews of its aspect.

    Args:
        model: the trained model.
        documents: all test reviews.
        row: the row of the table.
        aspect: the aspect.
        seed: the seed.
        decoder: how words are chosen.
        rounds: the figures after each round of training.
    """
    found: dict[str, dict[str, float]] = {}
    for scoring in SCORINGS:
        if cut := cut_as(scoring, documents):
            figures = agreement(model.evaluate(cut, decoder=decoder)["rationale"])
            found |= {} if figures is None else {scoring: figures}
    whole = model.evaluate(documents, decoder=decoder)
    by_share = []
    for share in SHARES:
        at_share = model.evaluate(documents, decoder=decoder, share=share)
        by_share.append({"share": share, "selected": at_share["selected"], "mse": at_share["mse"]})
    return RunResult(
        row=row,
        aspect=aspect,
        seed=seed,
        agreement=found,
        mse=whole["mse"],
        full_text_mse=whole["full_text"]["mse"],
        selected=whole["selected"],
        by_share=by_share,
        rounds=rounds,
        seconds=float(model.record["training"]["seconds"]),
    )
