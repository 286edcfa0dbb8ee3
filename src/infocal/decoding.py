"""Which tokens an explanation shows: choices at explain time, all fitted on texts without labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from infocal.errors import ModelError, SettingsError
from infocal.evaluation.decoding import (
    fit_span_threshold,
    fit_span_thresholds,
    fit_thresholds,
    least_share,
    select_above,
    select_share,
    select_spans,
    select_spans_exact,
)

__all__ = ["DECODERS", "Decoder", "Decoding", "fit_decoding", "suggest_span_cost"]

Decoder = Literal["average", "equal", "spans", "spans-equal"]
DECODERS: tuple[str, ...] = get_args(Decoder)

SHARES = tuple(round(0.01 * step, 2) for step in range(1, 100))
MANY_SENTENCES, SENTENCE_COST, PHRASE_COST = 4.0, 4.0, 0.5
SPAN_SHARES = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.8)


@dataclass(frozen=True)
class Decoding:
    """What was fitted on texts.

    Attributes:
        share: the share that was asked for in training.
        shares: the shares of ``thresholds``.
        thresholds: for each share the score above which that share of all tokens lies.
        span_cost: what a span costs, as a multiple of ``spread``.
        spread: standard deviation of the token scores.
        span_thresholds: for each of ``span_shares`` the threshold of the span decoder at ``span_cost``.
        span_shares: the shares of ``span_thresholds``.
    """

    share: float
    shares: tuple[float, ...]
    thresholds: tuple[float, ...]
    span_cost: float
    spread: float
    span_shares: tuple[float, ...]
    span_thresholds: tuple[float, ...]

    def threshold(self, share: float | None = None) -> float:
        """The global threshold for a share, between the fitted ones by straight lines."""
        wanted = self._share(share)
        return float(np.interp(wanted, self.shares, self.thresholds))

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
                decoders only. With "spans" the threshold is then fitted on the documents given.
            breaks: (total,), tokens that begin a sentence; the span decoders keep spans to sentences.
        """
        wanted = self._share(share)
        if decoder == "average":
            return select_above(scores, offsets, threshold=self.threshold(wanted), least=least_share(wanted))
        if decoder == "equal":
            return select_share(scores, offsets, share=wanted)
        cost = (self.span_cost if span_cost is None else span_cost) * self.spread
        if decoder == "spans-equal":
            return select_spans_exact(scores, offsets, share=wanted, span_cost=cost, breaks=breaks)
        if decoder == "spans":
            least = least_share(wanted)
            threshold = (
                float(np.interp(wanted, self.span_shares, self.span_thresholds))
                if span_cost is None
                else fit_span_threshold(scores, offsets, share=wanted, span_cost=cost, breaks=breaks, least=least)
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
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Decoding:
        """Read back what :meth:`to_json` gave."""
        try:
            fields: dict[str, Any] = {
                name: tuple(float(item) for item in value) if isinstance(value, list) else float(value)
                for name, value in record.items()
            }
            return cls(**fields)
        except (TypeError, ValueError, AttributeError) as error:
            raise ModelError(f"the model's decoding record is damaged: {error}") from None


def fit_decoding(
    scores: NDArray[np.float32],
    offsets: NDArray[np.int64],
    *,
    share: float,
    breaks: NDArray[np.bool_] | None = None,
) -> Decoding:
    """Fit every threshold on token scores; neither labels nor rationales are looked at."""
    alpha = suggest_span_cost(offsets, breaks)
    spread = float(np.std(scores)) or 1.0
    shares, span_shares = tuple(sorted({*SHARES, share})), tuple(sorted({*SPAN_SHARES, share}))
    plain, spans = ([(value, least_share(value)) for value in values] for values in (shares, span_shares))
    return Decoding(
        share=share,
        shares=shares,
        thresholds=tuple(fit_thresholds(scores, offsets, wanted=plain)),
        span_cost=alpha,
        spread=spread,
        span_shares=span_shares,
        span_thresholds=tuple(
            fit_span_thresholds(scores, offsets, wanted=spans, span_cost=alpha * spread, breaks=breaks)
        ),
    )


def suggest_span_cost(offsets: NDArray[np.int64], breaks: NDArray[np.bool_] | None) -> float:
    """What a span should cost, as a multiple of the scores' standard deviation, judged by the texts alone.

    In texts of many sentences evidence comes as whole sentences, and a high cost gathers it; in short ones it
    comes as words and phrases, and a high cost only drags words along.
    """
    sentences = 1.0 if breaks is None else float(breaks.sum()) / max(1, len(offsets) - 1)
    return SENTENCE_COST if sentences >= MANY_SENTENCES else PHRASE_COST
