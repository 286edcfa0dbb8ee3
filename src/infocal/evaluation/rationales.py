"""How well selected words agree with the words that humans marked.

The measures are those of DeYoung et al. 2020, "ERASER: A Benchmark to Evaluate Rationalized NLP Models".
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike

from infocal.errors import DataError
from infocal.evaluation.ragged import (
    Flags,
    Floats,
    Integers,
    as_flags,
    as_offsets,
    as_scores,
    owners,
    runs,
    sums,
)

__all__ = ["RationaleCounts", "average_precisions", "count_rationales", "rationale_scores"]

MATCH = 0.5


@dataclass(frozen=True, slots=True)
class RationaleCounts:
    """All that the scores are made of; the counts of two parts of a corpus add up.

    Attributes:
        documents: annotated documents.
        tokens: their tokens.
        selected: selected tokens.
        gold: tokens that humans marked.
        hits: tokens both selected and marked.
        precision_sum: sum over documents of the precision; likewise ``recall_sum`` and ``f1_sum``.
        selected_spans: maximal runs of selected tokens; ``gold_spans`` likewise.
        selected_span_hits: those whose best intersection over union with a run of the other kind is at
            least a half; ``gold_span_hits`` likewise.
        ranked: documents in which humans marked something.
        average_precision_sum: sum over those of the average precision.
    """

    documents: int
    tokens: int
    selected: int
    gold: int
    hits: int
    precision_sum: float
    recall_sum: float
    f1_sum: float
    selected_spans: int
    gold_spans: int
    selected_span_hits: int
    gold_span_hits: int
    ranked: int
    average_precision_sum: float

    def __add__(self, other: RationaleCounts) -> RationaleCounts:
        return RationaleCounts(*(getattr(self, item.name) + getattr(other, item.name) for item in fields(self)))

    def scores(self) -> dict[str, float | int | None] | None:
        """The scores by name; None if no document is annotated."""
        if self.documents == 0:
            return None
        span_precision = _divide(self.selected_span_hits, self.selected_spans)
        span_recall = _divide(self.gold_span_hits, self.gold_spans)
        return {
            "n": self.documents,
            "precision": _divide(self.hits, self.selected),
            "recall": _divide(self.hits, self.gold),
            "f1": _divide(2 * self.hits, self.selected + self.gold),
            "macro_precision": self.precision_sum / self.documents,
            "macro_recall": self.recall_sum / self.documents,
            "macro_f1": self.f1_sum / self.documents,
            "iou_f1": _divide(2 * span_precision * span_recall, span_precision + span_recall),
            "auprc": self.average_precision_sum / self.ranked if self.ranked else None,
            "gold_share": _divide(self.gold, self.tokens),
            "selected_share": _divide(self.selected, self.tokens),
        }


def rationale_scores(
    selected: ArrayLike, gold: ArrayLike, offsets: ArrayLike, *, annotated: ArrayLike, scores: ArrayLike
) -> dict[str, float | int | None] | None:
    """Agreement with the human's words, over the annotated documents only.

    Args:
        selected: (total,) bool.
        gold: (total,) bool.
        offsets: (n + 1,) int64.
        annotated: (n,) bool.
        scores: (total,) by which tokens are ranked for ``auprc``.

    Returns:
        n (annotated documents), precision, recall, f1 (over all tokens), macro_precision, macro_recall,
        macro_f1 (means over documents), iou_f1, auprc, gold_share and selected_share; None if n is 0.
        ``auprc`` is the average precision (the area under the steps of the precision-recall curve) in
        each document with human words, averaged; None if there is no such document.
    """
    return count_rationales(selected, gold, offsets, annotated=annotated, scores=scores).scores()


def count_rationales(
    selected: ArrayLike, gold: ArrayLike, offsets: ArrayLike, *, annotated: ArrayLike, scores: ArrayLike
) -> RationaleCounts:
    """What `rationale_scores` is made of, for adding up; the arguments are the same."""
    places = as_offsets(offsets)
    chosen = np.asarray(annotated, dtype=np.bool_)
    if chosen.shape != (places.size - 1,):
        raise DataError(f"annotated of shape {chosen.shape}", allowed=f"({places.size - 1},), one per document")
    keep = chosen[owners(places)]
    flags, truth = as_flags(selected, places)[keep], as_flags(gold, places)[keep]
    values = as_scores(scores, places)[keep]
    return _count(flags, truth, values, np.concatenate(([0], np.cumsum(np.diff(places)[chosen]))))


def _count(selected: Flags, gold: Flags, scores: Floats, offsets: Integers) -> RationaleCounts:
    chosen, marked, hits = (sums(flags, offsets) for flags in (selected, gold, selected & gold))
    agree_on_none = (chosen == 0) & (marked == 0)
    selected_matched, gold_matched = _matches(runs(selected, offsets), runs(gold, offsets))
    precisions = average_precisions(gold, scores, offsets)
    return RationaleCounts(
        documents=offsets.size - 1,
        tokens=int(offsets[-1]),
        selected=int(chosen.sum()),
        gold=int(marked.sum()),
        hits=int(hits.sum()),
        precision_sum=float(np.where(agree_on_none, 1.0, hits / np.maximum(chosen, 1)).sum()),
        recall_sum=float(np.where(agree_on_none, 1.0, hits / np.maximum(marked, 1)).sum()),
        f1_sum=float(np.where(agree_on_none, 1.0, 2 * hits / np.maximum(chosen + marked, 1)).sum()),
        selected_spans=selected_matched.size,
        gold_spans=gold_matched.size,
        selected_span_hits=int(selected_matched.sum()),
        gold_span_hits=int(gold_matched.sum()),
        ranked=int((marked > 0).sum()),
        average_precision_sum=float(precisions[marked > 0].sum()),
    )


def _matches(first: tuple[Integers, Integers], second: tuple[Integers, Integers]) -> tuple[Flags, Flags]:
    """Which runs of either side have intersection / union >= MATCH with a run of the other."""
    (starts, ends), (other_starts, other_ends) = first, second
    begin = np.searchsorted(other_ends, starts, side="right")
    overlapping = np.maximum(np.searchsorted(other_starts, ends, side="left") - begin, 0)
    # Runs of one side are disjoint, so all overlapping pairs together are fewer than the runs.
    left = np.repeat(np.arange(starts.size), overlapping)
    within = np.arange(left.size) - np.repeat(np.cumsum(overlapping) - overlapping, overlapping)
    right = np.repeat(begin, overlapping) + within
    common = np.minimum(ends[left], other_ends[right]) - np.maximum(starts[left], other_starts[right])
    union = ends[left] - starts[left] + other_ends[right] - other_starts[right] - common
    good = common >= MATCH * union
    matched, other_matched = np.zeros(starts.size, np.bool_), np.zeros(other_starts.size, np.bool_)
    matched[left[good]] = True
    other_matched[right[good]] = True
    return matched, other_matched


def average_precisions(gold: Flags, scores: Floats, offsets: Integers) -> Floats:
    """The average precision of the scores in every document: (n,), 0 where nothing is marked.

    The mean over the marked tokens of the precision among the tokens that score at least as high.
    """
    owner = owners(offsets)
    order = np.lexsort((-scores, owner))
    truth, values = gold[order], scores[order]
    if truth.size == 0:
        return np.zeros(offsets.size - 1)
    changes = (np.diff(values) != 0) | (np.diff(owner) > 0)
    last_places = np.flatnonzero(np.concatenate((changes, [True])))
    last = np.repeat(last_places, np.diff(last_places, prepend=-1))  # the end of each token's tie
    found = np.concatenate(([0], np.cumsum(truth)))
    precision = (found[last + 1] - found[offsets[owner]]) / (last + 1 - offsets[owner])
    return sums(precision * truth, offsets) / np.maximum(sums(truth, offsets), 1)


def _divide(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
