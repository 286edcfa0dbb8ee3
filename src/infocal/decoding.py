"""Which tokens an explanation shows: choices at explain time, all fitted on texts without labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, TypedDict, get_args

import numpy as np
from numpy.typing import NDArray

from infocal.data.corpus import flat_positions
from infocal.errors import ModelError, SettingsError
from infocal.evaluation.decoding import (
    fit_span_threshold,
    fit_threshold,
    least_share,
    select_above,
    select_share,
    select_spans,
    select_spans_exact,
)

__all__ = [
    "DECODERS",
    "SPAN_DECODERS",
    "Choice",
    "Decoder",
    "Decoding",
    "ScoredTexts",
    "fit_decoding",
    "suggest_span_cost",
]

Decoder = Literal["average", "equal", "spans", "spans-equal"]
DECODERS: tuple[str, ...] = get_args(Decoder)
SPAN_DECODERS = ("spans", "spans-equal")
"""Those that know of sentences."""

MANY_SENTENCES, SENTENCE_COST, PHRASE_COST = 4.0, 4.0, 0.5
SAMPLE_TOKENS = 100_000
"""Of so many tokens, in whole documents, a model keeps the scores: other shares and costs are fitted on them."""

PIECE_TOKENS = 1_000_000
"""Of documents in which words are chosen at a time."""


class Choice(TypedDict, total=False):
    """How words are chosen, each as `Decoding.select` takes it."""

    decoder: str
    share: float | None
    span_cost: float | None


@dataclass(frozen=True, eq=False)
class ScoredTexts:
    """The scores of some texts, without the texts.

    Attributes:
        scores: (total,).
        offsets: (n + 1,), where documents begin.
        breaks: (total,), tokens that begin a sentence.
    """

    scores: NDArray[np.float32]
    offsets: NDArray[np.int64]
    breaks: NDArray[np.bool_]

    @classmethod
    def some(
        cls, scores: NDArray[np.float32], offsets: NDArray[np.int64], breaks: NDArray[np.bool_] | None
    ) -> ScoredTexts:
        """Evenly spaced documents, about ``SAMPLE_TOKENS`` tokens in all."""
        step = max(1, -(-len(scores) // SAMPLE_TOKENS))
        rows = np.arange(0, len(offsets) - 1, step)
        places = flat_positions(offsets, rows)
        starts = np.concatenate([[0], np.cumsum(np.diff(offsets)[rows])]).astype(np.int64)
        whole = np.zeros(len(scores), dtype=np.bool_) if breaks is None else breaks
        return cls(scores[places], starts, whole[places])


@dataclass(frozen=True)
class Decoding:
    """What was fitted on texts.

    Attributes:
        share: the share that was asked for in training.
        threshold: the score above which that share of all tokens lies.
        span_cost: what a span costs, as a multiple of ``spread``.
        spread: standard deviation of the token scores.
        span_threshold: the threshold of the span decoder for ``share`` at ``span_cost``.
        texts: the scores of some of the texts, on which other shares and costs are fitted.
    """

    share: float
    threshold: float
    span_cost: float
    spread: float
    span_threshold: float
    texts: ScoredTexts

    def threshold_for(self, share: float | None = None) -> float:
        """The global threshold for a share."""
        wanted = self._share(share)
        return self.threshold if wanted == self.share else _threshold(self.texts, wanted)

    def select(
        self,
        scores: NDArray[np.float32],
        offsets: NDArray[np.int64],
        *,
        decoder: str = "average",
        share: float | None = None,
        span_cost: float | None = None,
        breaks: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.bool_]:
        """Choose tokens; every document keeps at least one, and at least half of the share.

        Args:
            scores: (total,), as `infocal.training.inference.token_scores` gives them.
            offsets: (n + 1,), where documents begin.
            decoder: "average" (one threshold for all documents), "equal" (the same share of each), "spans"
                (best spans, the average share), "spans-equal" (best spans, the same share of each).
            share: another share than the model was trained for.
            span_cost: another cost per span, as a multiple of the scores' standard deviation; for the span
                decoders only.
            breaks: (total,), tokens that begin a sentence; the span decoders keep spans to sentences.
        """
        parts = [
            self._select(
                scores[offsets[start] : offsets[end]],
                offsets[start : end + 1] - offsets[start],
                decoder,
                self._share(share),
                span_cost,
                None if breaks is None else breaks[offsets[start] : offsets[end]],
            )
            for start, end in _pieces(offsets)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _select(
        self,
        scores: NDArray[np.float32],
        offsets: NDArray[np.int64],
        decoder: str,
        wanted: float,
        span_cost: float | None,
        breaks: NDArray[np.bool_] | None,
    ) -> NDArray[np.bool_]:
        if decoder == "average":
            return select_above(scores, offsets, threshold=self.threshold_for(wanted), least=least_share(wanted))
        if decoder == "equal":
            return select_share(scores, offsets, share=wanted)
        cost = (self.span_cost if span_cost is None else span_cost) * self.spread
        if decoder == "spans-equal":
            return select_spans_exact(scores, offsets, share=wanted, span_cost=cost, breaks=breaks)
        if decoder == "spans":
            least = least_share(wanted)
            usual = span_cost is None and wanted == self.share
            threshold = (
                self.span_threshold if usual else _span_threshold(self.texts, wanted, cost, breaks is not None)
            )
            return select_spans(scores, offsets, threshold=threshold, span_cost=cost, breaks=breaks, least=least)
        raise SettingsError(f"decoder {decoder!r} is unknown; choose from {', '.join(DECODERS)}")

    def _share(self, share: float | None) -> float:
        if share is None:
            return self.share
        if not 0 < share < 1:
            raise SettingsError(f"the share of words to select lies between 0 and 1, got {share}")
        return share

    def to_json(self) -> dict[str, Any]:
        """Plain data, all but ``texts``."""
        return {part.name: getattr(self, part.name) for part in fields(self) if part.name != "texts"}

    @classmethod
    def from_json(cls, record: Mapping[str, Any], texts: ScoredTexts) -> Decoding:
        """Read back what :meth:`to_json` gave."""
        try:
            return cls(**{name: float(value) for name, value in record.items()}, texts=texts)
        except (TypeError, ValueError, AttributeError) as error:
            raise ModelError(f"the model's decoding record is damaged: {error}") from None


def _pieces(offsets: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Documents [start, end) of about ``PIECE_TOKENS`` tokens: choosing takes many times the scores' memory."""
    marks = np.arange(PIECE_TOKENS, int(offsets[-1]), PIECE_TOKENS)
    bounds = np.unique([0, *np.searchsorted(offsets, marks).tolist(), len(offsets) - 1])
    return list(pairwise(bounds.tolist())) or [(0, len(offsets) - 1)]


@lru_cache(maxsize=16)
def _threshold(texts: ScoredTexts, share: float) -> float:
    return fit_threshold(texts.scores, texts.offsets, share=share, least=least_share(share))


@lru_cache(maxsize=16)
def _span_threshold(texts: ScoredTexts, share: float, cost: float, sentences: bool) -> float:
    breaks = texts.breaks if sentences else None
    return fit_span_threshold(
        texts.scores, texts.offsets, share=share, span_cost=cost, breaks=breaks, least=least_share(share)
    )


def fit_decoding(
    scores: NDArray[np.float32],
    offsets: NDArray[np.int64],
    *,
    share: float,
    breaks: NDArray[np.bool_] | None = None,
) -> Decoding:
    """Fit every threshold on token scores; neither labels nor rationales are looked at."""
    cost = suggest_span_cost(offsets, breaks)
    spread = float(np.std(scores)) or 1.0
    least = least_share(share)
    return Decoding(
        share=share,
        threshold=fit_threshold(scores, offsets, share=share, least=least),
        span_cost=cost,
        spread=spread,
        span_threshold=fit_span_threshold(
            scores, offsets, share=share, span_cost=cost * spread, breaks=breaks, least=least
        ),
        texts=ScoredTexts.some(scores, offsets, breaks),
    )


def suggest_span_cost(offsets: NDArray[np.int64], breaks: NDArray[np.bool_] | None) -> float:
    """What a span should cost, as a multiple of the scores' standard deviation, judged by the texts alone.

    In texts of many sentences evidence comes as whole sentences, and a high cost gathers it; in short ones it
    comes as words and phrases, and a high cost only drags words along.
    """
    sentences = 1.0 if breaks is None else float(breaks.sum()) / max(1, len(offsets) - 1)
    return SENTENCE_COST if sentences >= MANY_SENTENCES else PHRASE_COST
