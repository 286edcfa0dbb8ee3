"""The trained thing: it predicts, and shows the words each prediction was made from."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from infocal.data.corpus import Corpus, CorpusBuilder
from infocal.data.readers import BadRows, documents_from
from infocal.decoding import SPAN_DECODERS, Choice, Decoding
from infocal.errors import DataError
from infocal.evaluation.calibration import Temperatures, expected_calibration_error
from infocal.evaluation.rationales import rationale_scores
from infocal.settings import Settings
from infocal.tasks import Goal, Task
from infocal.text.segmentation import Segmenter
from infocal.text.vocabulary import Vocabulary
from infocal.training.preparation import encode_labelled
from infocal.types import Document, Explanation, Span, merge_spans

if TYPE_CHECKING:
    from infocal.methods.base import Method

__all__ = ["Rationalizer", "SharedReading"]

FIRST_CHUNK, CHUNK = 32, 4096
"""Documents held at once while explaining a stream: enough to batch by length, little memory."""


@dataclass(frozen=True, eq=False)
class SharedReading:
    """What a network that several models share has found in a corpus for one of them.

    Attributes:
        scores: (total,), of the tokens, as decoders cut them.
        full_text: (n, c), the outputs of the part that reads every word; None if nobody asked for them.
    """

    scores: NDArray[np.float32]
    full_text: NDArray[np.float32] | None


@dataclass(frozen=True)
class Rationalizer:
    """A model that predicts from the words it shows, and only from those.

    Calling it changes nothing in it, so it can be used from several threads.

    Attributes:
        settings: how it was trained.
        segmenter: text to token spans.
        vocabulary: tokens to ids.
        task: what it predicts.
        method: the network.
        decoding: thresholds fitted on texts, held-out ones among them.
        record: what the model card tells: data, results, notes, versions.
        temperatures: what outputs are divided by before probabilities are shown; predictions do not change.
    """

    settings: Settings
    segmenter: Segmenter
    vocabulary: Vocabulary
    task: Task
    method: Method
    decoding: Decoding
    record: dict[str, Any] = field(default_factory=dict)
    temperatures: Temperatures = field(default_factory=Temperatures)

    def predict(self, texts: Iterable[str], **choice: Unpack[Choice]) -> list[str] | list[float]:
        """A class or a score in the user's units for each text, made from its selected words.

        Arguments are those of :meth:`explain`.
        """
        return self.task.decode(self.decision(texts, **choice))

    def predict_proba(self, texts: Iterable[str], **choice: Unpack[Choice]) -> NDArray[np.float64]:
        """(n, c): class probabilities in the order of ``task.classes``; arguments as in :meth:`explain`."""
        probabilities = self.probabilities(self.decision(texts, **choice))
        if probabilities is None:
            raise TypeError("a model of scores has no class probabilities; use predict")
        return probabilities

    def probabilities(self, logits: NDArray[np.float32], *, full_text: bool = False) -> NDArray[np.float64] | None:
        """(n, c) outputs -> (n, c) probabilities at the model's temperature; None for scores.

        Args:
            logits: as :meth:`decision` gives them.
            full_text: whether they were made from the full text.
        """
        temperature = self.temperatures.full_text if full_text else self.temperatures.predictor
        return self.task.probabilities(logits.astype(np.float64) / temperature)

    def decision(self, texts: Iterable[str], **choice: Unpack[Choice]) -> NDArray[np.float32]:
        """(n, c): the outputs before the softmax or sigmoid, made from the selected words."""
        parts = [
            self.answer(corpus, **choice)[2]
            for _, corpus in self.chunks(documents_from(texts), BadRows(skip=False), "texts")
        ]
        return np.concatenate(parts) if parts else np.zeros((0, self.task.outputs), dtype=np.float32)

    def explain(
        self, texts: str | Iterable[str], *, full_text: bool = False, **choice: Unpack[Choice]
    ) -> list[Explanation]:
        """Predictions with their evidence.

        Args:
            texts: one text or several.
            full_text: whether to ask the guider, which reads every word, too.
            choice: how words are chosen: ``decoder`` ("average", "equal", "spans" or "spans-equal"), ``share``
                (another than the model was trained for) and ``span_cost`` (another, for the span decoders).
        """
        documents = documents_from([texts] if isinstance(texts, str) else texts)
        return list(self.explain_documents(documents, full_text=full_text, **choice))

    def explain_documents(
        self,
        documents: Iterable[Document],
        *,
        full_text: bool = False,
        bad_rows: BadRows | None = None,
        source: str = "texts",
        **choice: Unpack[Choice],
    ) -> Iterator[Explanation]:
        """The same for a stream of documents of any length, in order, a chunk in memory at a time."""
        for chunk, corpus in self.chunks(documents, bad_rows or BadRows(skip=False), source):
            yield from self.explain_encoded(chunk, corpus, full_text=full_text, **choice)

    def explain_encoded(
        self,
        chunk: Sequence[tuple[Document, list[Span]]],
        corpus: Corpus,
        *,
        full_text: bool = False,
        reading: SharedReading | None = None,
        **choice: Unpack[Choice],
    ) -> Iterator[Explanation]:
        """The same for documents that :meth:`chunks` has encoded, and that may have been read already."""
        scores, selected, logits = self.answer(corpus, reading=reading, **choice)
        guide = self._full_text(corpus, reading) if full_text else None
        yield from self._explanations(chunk, corpus, scores, selected, logits, guide, choice.get("share"))

    def evaluate(
        self,
        documents: Iterable[Document],
        *,
        bad_rows: BadRows | None = None,
        source: str = "data",
        **choice: Unpack[Choice],
    ) -> dict[str, Any]:
        """Score labelled documents; ``choice`` as in :meth:`explain`.

        Returns:
            ``n``, the task's metrics, ``selected``, ``rationale`` (None without gold spans), ``faithfulness``
            (at temperature 1, as trained), ``full_text`` (the guider's own metrics), ``calibration`` (None for
            scores), ``seconds`` and what was chosen.
        """
        began = time.perf_counter()
        bad_rows = bad_rows or BadRows(skip=False)
        corpus = self.encode(documents, bad_rows=bad_rows, source=source)
        result = self.evaluate_corpus(corpus, **choice)
        return {**result, "skipped": bad_rows.count, "seconds": round(time.perf_counter() - began, 3)}

    def evaluate_corpus(
        self, corpus: Corpus, *, reading: SharedReading | None = None, **choice: Unpack[Choice]
    ) -> dict[str, Any]:
        """The same for documents that are encoded in this model's vocabulary, with targets of its task.

        Args:
            corpus: the documents.
            reading: what is known of them already.
            choice: as in :meth:`explain`.
        """
        began = time.perf_counter()
        scores, selected, logits = self.answer(corpus, reading=reading, **choice)
        share = choice.get("share")
        full = self._full_text(corpus, reading)
        rest = self._outputs(corpus, ~selected)
        targets = np.asarray(corpus.targets)
        result = {
            **self.task.scores(logits, targets),
            "selected": float(selected.mean()),
            "rationale": self._rationale(corpus, scores, selected),
            "faithfulness": self.task.faithfulness(logits, full, rest),
            "full_text": self.task.scores(full, targets),
            "calibration": self._calibration(logits, full, targets),
            "decoder": choice.get("decoder", "average"),
            "requested": self.decoding.share if share is None else share,
            "texts_cut": corpus.cut,
            "skipped": 0,
        }
        return {**result, "seconds": round(time.perf_counter() - began, 3)}

    def save(self, path: str | Path) -> None:
        """Write the model to a folder: safetensors, JSON and a model card, replaced in one step."""
        from infocal.storage import save_model

        save_model(self, Path(path))

    def answer(
        self, corpus: Corpus, *, reading: SharedReading | None = None, **choice: Unpack[Choice]
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.float32]]:
        """Token scores (total,), selected tokens (total,) and outputs (n, c) of an encoded corpus."""
        from infocal.training.inference import token_scores

        scores = token_scores(self.method, corpus) if reading is None else reading.scores
        spans = choice.get("decoder", "average") in SPAN_DECODERS
        breaks = corpus.sentence_starts(self.vocabulary.sentence_ends()) if spans else None
        selected = self.decoding.select(scores, corpus.offsets, breaks=breaks, **choice)
        return scores, selected, self._outputs(corpus, selected)

    def _outputs(self, corpus: Corpus, selected: NDArray[np.bool_]) -> NDArray[np.float32]:
        from infocal.training.inference import outputs

        return outputs(self.method, corpus, selected)

    def _full_text(self, corpus: Corpus, reading: SharedReading | None) -> NDArray[np.float32]:
        from infocal.training.inference import full_text_outputs

        known = None if reading is None else reading.full_text
        return full_text_outputs(self.method, corpus) if known is None else known

    def _rationale(
        self, corpus: Corpus, scores: NDArray[np.float32], selected: NDArray[np.bool_]
    ) -> dict[str, Any] | None:
        if corpus.gold is None or corpus.annotated is None:
            return None
        return rationale_scores(selected, corpus.gold, corpus.offsets, annotated=corpus.annotated, scores=scores)

    def _calibration(
        self, logits: NDArray[np.float32], full: NDArray[np.float32], targets: NDArray[Any]
    ) -> dict[str, float] | None:
        """How far probabilities are from how often they are right, as shown and without the temperatures."""
        found = {}
        for name, values in (("", logits), ("full_text_", full)):
            shown = self.probabilities(values, full_text=bool(name))
            plain = self.task.probabilities(values.astype(np.float64))
            if shown is None or plain is None:
                return None
            found[f"{name}error"] = expected_calibration_error(shown, targets)
            found[f"{name}unscaled_error"] = expected_calibration_error(plain, targets)
        return {
            **found,
            "temperature": self.temperatures.predictor,
            "full_text_temperature": self.temperatures.full_text,
        }

    def encode(
        self, documents: Iterable[Document], *, bad_rows: BadRows, source: str, goal: Goal | None = None
    ) -> Corpus:
        """Labelled documents as this model reads them, with the targets of its task, or of another goal."""
        return encode_labelled(
            documents,
            segmenter=self.segmenter,
            vocabulary=self.vocabulary,
            task=goal or self.task,
            max_tokens=self.settings.text.max_tokens,
            source=source,
            bad_rows=bad_rows,
        )

    def _builder(self, source: str) -> CorpusBuilder:
        return CorpusBuilder(self.segmenter, max_tokens=self.settings.text.max_tokens, source=source)

    def chunks(
        self, documents: Iterable[Document], bad_rows: BadRows, source: str
    ) -> Iterator[tuple[list[tuple[Document, list[Span]]], Corpus]]:
        """Some documents at a time, with the spans of their tokens, and encoded as this model reads them."""
        stream, size = iter(documents), FIRST_CHUNK  # small at first: who pipes lines in wants to see answers
        while chunk := list(islice(stream, size)):
            size = min(2 * size, CHUNK)
            builder = self._builder(source)
            kept: list[tuple[Document, list[Span]]] = []
            for document in chunk:
                try:
                    kept.append((document, builder.add(document)))
                except DataError as error:
                    bad_rows.report(error)
            if kept:
                yield kept, builder.finish(self.vocabulary, None)

    def _explanations(
        self,
        chunk: Sequence[tuple[Document, list[Span]]],
        corpus: Corpus,
        scores: NDArray[np.float32],
        selected: NDArray[np.bool_],
        logits: NDArray[np.float32],
        guide: NDArray[np.float32] | None,
        share: float | None,
    ) -> Iterator[Explanation]:
        predictions = self.task.decode(logits)
        probabilities = self.probabilities(logits)
        guesses = self.task.decode(guide) if guide is not None else [None] * len(chunk)
        odds = np.clip(scores.astype(np.float64) - self.decoding.threshold_for(share), -60, 60)
        token_probabilities = (1 / (1 + np.exp(-odds))).tolist()
        flags = selected.tolist()
        for row, (document, spans) in enumerate(chunk):
            start, end = int(corpus.offsets[row]), int(corpus.offsets[row + 1])
            chosen = flags[start:end]
            yield Explanation(
                text=document.text,
                prediction=predictions[row],
                probabilities=None if probabilities is None else self._named(probabilities[row]),
                spans=merge_spans(spans, chosen),
                tokens=tuple(spans),
                scores=tuple(token_probabilities[start:end]),
                selected=tuple(chosen),
                share=sum(chosen) / len(chosen),
                read_to=spans[-1][1],
                full_text_prediction=guesses[row],
                label=self.task.known(document.label),
                gold=document.rationale,
                line=document.line,
            )

    def _named(self, probabilities: NDArray[np.float64]) -> dict[str, float]:
        names: Sequence[str] = self.task.to_json()["classes"]
        order = np.argsort(-probabilities, kind="stable")
        return {names[index]: float(probabilities[index]) for index in order}
