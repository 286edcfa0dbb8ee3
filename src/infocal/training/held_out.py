"""What held-out documents say of a method while it is trained; their rationales are not looked at."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from infocal.data.corpus import Corpus, flat_positions
from infocal.errors import SettingsError
from infocal.evaluation.decoding import fit_threshold, least_share, select_above, select_average
from infocal.evaluation.rationales import rationale_scores
from infocal.training.inference import full_text_outputs, outputs, token_scores, view_scores

if TYPE_CHECKING:
    from infocal.methods.base import Method, Phase
    from infocal.types import Batch

__all__ = ["HeldOut", "ThresholdTexts", "agreement", "threshold_texts"]

THRESHOLD_TEXTS = 2000
"""So many held-out and so many training texts: the share is then known to a fiftieth of itself."""
MOST_JUDGED = 5000
"""More documents would tell rounds apart no better, and take longer to read than a round to train."""
LENGTH_CLASSES, TEXTS_PER_CLASS = 20, 25
"""Enough classes to follow how lengths are distributed; fewer where there are few held-out texts."""


@dataclass(frozen=True, eq=False)
class ThresholdTexts:
    """The texts on which thresholds are fitted, some of them more than once.

    Attributes:
        corpus: each text once, words alone; of equal ones only the first.
        rows: (n,) which of them, and how often.
    """

    corpus: Corpus
    rows: NDArray[np.int64]

    def drawn(self) -> Corpus:
        """The texts as often as they count."""
        return self.corpus.subset(self.rows)

    def scores(self, method: Method) -> NDArray[np.float32]:
        """(k, total): the scores of the drawn texts for each of a method's views.

        Equal texts are read once: read again among others, one would get scores that differ in their last digit,
        and a threshold could come to lie between the two.
        """
        return self.of_drawn(view_scores(method, self.corpus))

    def of_drawn(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """(..., tokens of the corpus) -> (..., tokens of the drawn texts)."""
        found: NDArray[np.float32] = values[..., flat_positions(self.corpus.offsets, self.rows)]
        return found


def threshold_texts(dev: Corpus, train: Corpus, *, most: int = THRESHOLD_TEXTS) -> ThresholdTexts:
    """The texts on which thresholds are fitted: at most ``most`` held-out ones and as many training texts.

    Words alone, without targets and rationales. How much of a text is selected depends on its length, so held-out
    texts are drawn, some of them more than once, so that their lengths are distributed as those of the training
    texts. Both kinds are needed: held-out texts may be few or of few kinds, and a selector knows training texts by
    heart and scores their words unlike those of new ones.
    """
    count = min(most, len(train))
    known = train.subset(np.unique(np.linspace(0, len(train) - 1, num=count).astype(np.int64)))
    new = dev.subset(_of_lengths(dev.lengths, train.lengths, count))
    ids = np.concatenate([new.ids, known.ids])
    offsets = np.concatenate([new.offsets, new.offsets[-1] + known.offsets[1:]])
    both = Corpus(ids, offsets, np.concatenate([new.lines, known.lines]))
    numbers: dict[bytes, int] = {}
    texts = [ids[start:end].tobytes() for start, end in itertools.pairwise(offsets)]
    rows = np.array([numbers.setdefault(text, len(numbers)) for text in texts], dtype=np.int64)
    return ThresholdTexts(both.subset(np.unique(rows, return_index=True)[1]), rows)


def _of_lengths(lengths: NDArray[np.int64], wanted: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """About ``count`` places in ``lengths``, some more than once, at which these are distributed as ``wanted``."""
    parts = min(LENGTH_CLASSES, max(1, len(lengths) // TEXTS_PER_CLASS))
    quantiles = np.quantile(lengths, np.arange(1, parts) / parts, method="higher")
    bounds = np.setdiff1d(quantiles, lengths.min())
    classes, others = (np.searchsorted(bounds, values, side="right") for values in (lengths, wanted))
    shares = np.bincount(others, minlength=len(bounds) + 1) / len(wanted)
    found = []
    for number, draws in enumerate(np.ceil(shares * count).astype(np.int64)):
        places = np.flatnonzero(classes == number)
        found.append(places[np.arange(draws) * len(places) // max(1, draws)])
    return np.concatenate(found)


def agreement(method: Method, corpus: Corpus, share: float) -> dict[str, Any] | None:
    """How the words that a method selects at a share agree with the human's; None where nobody marked any.

    For curves alone: nothing in training looks at it.
    """
    if corpus.gold is None or corpus.annotated is None:
        return None
    scores = token_scores(method, corpus)
    selected = select_average(scores, corpus.offsets, share=share)
    return rationale_scores(selected, corpus.gold, corpus.offsets, annotated=corpus.annotated, scores=scores)


class HeldOut:
    """Judges a method by documents that it is not trained on.

    Args:
        method: what is trained; always judged with the weights that it has.
        corpus: the documents, with their targets; of more than ``MOST_JUDGED``, so many at even distances.
        shares: of words to select, one for each view of the method.
        texts: those of `threshold_texts`.
    """

    def __init__(self, method: Method, corpus: Corpus, *, shares: Sequence[float], texts: ThresholdTexts) -> None:
        if len(corpus) > MOST_JUDGED:
            corpus = corpus.subset(np.linspace(0, len(corpus) - 1, num=MOST_JUDGED).astype(np.int64))
        self.method, self.corpus, self.shares, self.texts = method, corpus, tuple(shares), texts
        self._thresholds: list[float] = []
        marked = corpus.gold is not None and corpus.annotated is not None and corpus.annotated.any()
        if method.settings.training.stopping == "rationale_recall" and not marked:
            raise SettingsError(
                "training.stopping=rationale_recall goes by the human's evidence, but no held-out row has any; "
                "name its column with --rationale NAME, or leave the setting out"
            )

    def judge(self, phase: Phase) -> tuple[Tensor, dict[str, Any]]:
        """The losses (n,) or (n, k), at the requested share once there is a selection, and the figures."""
        corpus, task = self.corpus, self.method.task
        if corpus.targets is None:
            raise ValueError("the held-out corpus has no targets")
        guide = full_text_outputs(self.method, corpus)
        figures: dict[str, Any] = {"guide": task.scores(guide, corpus.targets)}
        judged = guide
        if phase != "warm_up" and self.method.selects:
            views = self.method.views()
            scores = view_scores(self.method, corpus)
            masks = [
                select_average(values, corpus.offsets, share=share)
                for values, share in zip(scores, self.shares, strict=True)
            ]
            chosen = np.hstack([outputs(view, corpus, mask) for view, mask in zip(views, masks, strict=True)])
            figures |= {"selection": task.scores(chosen, corpus.targets), "selected": float(np.mean(masks))}
            judged = guide if self.method.judged_by_full_text else chosen
        if phase != "warm_up" and self.method.settings.training.stopping == "rationale_recall":
            return torch.tensor([self._lack_of_recall()], dtype=torch.float64), figures
        balance = self.method.settings.loss.balance
        return torch.from_numpy(task.held_out_losses(judged, corpus.targets, balance=balance)), figures

    def _lack_of_recall(self) -> float:
        """1 - recall of the human's words; beyond 1, the more so the further precision is below its floor."""
        found = agreement(self.method, self.corpus, self.shares[0])
        if found is None:
            raise ValueError("no held-out row has a human's evidence")
        lacking = self.method.settings.training.precision_floor - float(found["precision"])
        return 1.0 + lacking if lacking > 0 else 1.0 - float(found["recall"])

    def selected(self, batch: Batch) -> Tensor:
        """(b, t): the words that inference will select, once the selector does not change any more.

        (k, b, t) for a method of k views.
        """
        if not self._thresholds:
            places = self.texts.drawn().offsets
            self._thresholds = [
                fit_threshold(scores, places, share=share, least=least_share(share))
                for scores, share in zip(self.texts.scores(self.method), self.shares, strict=True)
            ]
        offsets = np.concatenate(([0], np.cumsum(batch.mask.sum(dim=1).numpy())))
        training = self.method.training
        values = self.method.eval().decoding_scores(batch).reshape(-1, *batch.mask.shape)[:, batch.mask]
        self.method.train(training)
        masks = torch.zeros(len(values), *batch.mask.shape, dtype=torch.bool)
        masks[:, batch.mask] = torch.from_numpy(
            np.stack(
                [
                    select_above(scores, offsets, threshold=threshold, least=least_share(share))
                    for scores, threshold, share in zip(values.numpy(), self._thresholds, self.shares, strict=True)
                ]
            )
        )
        return masks[0] if len(masks) == 1 else masks
