"""What is measured of one trained model: for each decoder the usual figures, fluency, and each document's part.

The figures are those of ``Rationalizer.evaluate``; here the words are scored once for all decoders and shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infocal.comparison.ngram import BigramModel, selection_score
from infocal.data.corpus import Corpus
from infocal.data.readers import BadRows
from infocal.decoding import DECODERS
from infocal.evaluation.decoding import run_statistics
from infocal.evaluation.ragged import sums
from infocal.evaluation.rationales import rationale_scores
from infocal.rationalizer import Rationalizer
from infocal.tasks import Regression
from infocal.training.inference import full_text_outputs, outputs, token_scores
from infocal.types import Document

__all__ = ["Trial"]


@dataclass(frozen=True, eq=False)
class Trial:
    """A trained model before labelled documents.

    Attributes:
        model: the model.
        corpus: the documents, encoded.
        scores: (total,), what decoders cut.
        full: (n, c), the outputs from the full texts.
        breaks: (total,), tokens that begin a sentence.
        language_model: of the training texts.
    """

    model: Rationalizer
    corpus: Corpus
    scores: NDArray[np.float32]
    full: NDArray[np.float32]
    breaks: NDArray[np.bool_]
    language_model: BigramModel

    @classmethod
    def of(
        cls,
        model: Rationalizer,
        documents: Iterable[Document],
        *,
        language_model: BigramModel,
        bad_rows: BadRows,
        source: str,
    ) -> Trial:
        """Encode the documents and let the model read them."""
        corpus = model.encode(documents, bad_rows=bad_rows, source=source)
        return cls(
            model,
            corpus,
            token_scores(model.method, corpus),
            full_text_outputs(model.method, corpus),
            corpus.sentence_starts(model.vocabulary.sentence_ends()),
            language_model,
        )

    def report(self, shares: Sequence[float]) -> dict[str, Any]:
        """Everything that is kept of the trial, as plain data."""
        found: dict[str, Any] = {"scores": {}, "documents": {}, "sweep": {}}
        for decoder in DECODERS:
            selected = self.select(decoder)
            logits = outputs(self.model.method, self.corpus, selected)
            found["scores"][decoder] = self.figures(selected, logits) | {
                "faithfulness": self._faithfulness(selected, logits),
                "fluency": self._fluency(selected),
            }
            found["documents"][decoder] = self.documents(selected, logits)
            found["sweep"][decoder] = [self._at(decoder, share) for share in shares]
        return {**found, "lines": self.corpus.lines.tolist(), "human": self._human()}

    def select(self, decoder: str, share: float | None = None) -> NDArray[np.bool_]:
        """(total,): the words that an explanation shows."""
        return self.model.decoding.select(
            self.scores, self.corpus.offsets, decoder=decoder, share=share, breaks=self.breaks
        )

    def figures(self, selected: NDArray[np.bool_], logits: NDArray[np.float32]) -> dict[str, Any]:
        """The task's metrics, agreement with the human, and what the full text gives."""
        corpus, targets = self.corpus, np.asarray(self.corpus.targets)
        agreement = None
        if corpus.gold is not None and corpus.annotated is not None:
            agreement = rationale_scores(
                selected, corpus.gold, corpus.offsets, annotated=corpus.annotated, scores=self.scores
            )
        return {
            **self.model.task.scores(logits, targets),
            "selected": float(selected.mean()),
            "rationale": agreement,
            "full_text": self.model.task.scores(self.full, targets),
        }

    def documents(self, selected: NDArray[np.bool_], logits: NDArray[np.float32]) -> dict[str, list[Any]]:
        """What each document adds to the figures; ``rows`` are those of the annotated ones, which have counts."""
        corpus = self.corpus
        found: dict[str, list[Any]] = {"outcome": self._outcomes(logits).tolist()}
        if corpus.gold is None or corpus.annotated is None:
            return found
        rows = np.flatnonzero(corpus.annotated)
        flags = {"hits": selected & corpus.gold, "selected": selected, "gold": corpus.gold}
        counts = {name: sums(values, corpus.offsets)[rows] for name, values in flags.items()}
        return found | {"rows": rows.tolist()} | {name: v.astype(int).tolist() for name, v in counts.items()}

    def _at(self, decoder: str, share: float) -> dict[str, Any]:
        selected = self.select(decoder, share)
        return {"share": share, **self.figures(selected, outputs(self.model.method, self.corpus, selected))}

    def _outcomes(self, logits: NDArray[np.float32]) -> NDArray[Any]:
        """1 or 0 for a right or wrong class, the squared error of a score."""
        task, targets = self.model.task, np.asarray(self.corpus.targets)
        if isinstance(task, Regression):
            truth = task.low + targets.astype(np.float64) * (task.high - task.low)
            return np.asarray(np.square(task.values(logits) - truth))
        return np.asarray(logits.argmax(axis=1) == targets).astype(np.int64)

    def _faithfulness(self, selected: NDArray[np.bool_], logits: NDArray[np.float32]) -> dict[str, float]:
        rest = outputs(self.model.method, self.corpus, ~selected)
        return self.model.task.faithfulness(logits, self.full, rest)

    def _fluency(self, selected: NDArray[np.bool_], corpus: Corpus | None = None) -> dict[str, float | None]:
        corpus = corpus or self.corpus
        return {
            "mean_run": run_statistics(selected, corpus.offsets).mean_run,
            "language_model": selection_score(
                self.language_model, np.asarray(corpus.ids), corpus.offsets, selected
            ),
        }

    def _human(self) -> dict[str, Any] | None:
        """How the human's words lie and read, in the annotated documents."""
        if self.corpus.annotated is None:
            return None
        annotated = self.corpus.subset(np.flatnonzero(self.corpus.annotated))
        marked = np.asarray(annotated.gold)
        return {"selected": float(marked.mean()), "fluency": self._fluency(marked, annotated)}
