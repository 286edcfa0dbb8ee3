"""A model of several labels: one network, and for each label a prediction with words of its own."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from infocal.data.readers import BadRows, documents_from
from infocal.rationalizer import Rationalizer, SharedReading
from infocal.tasks import Joint

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from infocal.data.corpus import Corpus
    from infocal.decoding import Choice
    from infocal.methods.base import Method
    from infocal.settings import Settings
    from infocal.text.segmentation import Segmenter
    from infocal.text.vocabulary import Vocabulary
    from infocal.types import Document, Explanation, Span

__all__ = ["JointRationalizer"]


@dataclass(frozen=True)
class JointRationalizer:
    """A model that predicts several labels of a text, each from the words that it shows for it.

    Attributes:
        parts: label -> a model of that label alone; all of them share one network.
        task: what is predicted.
        method: the whole network.
        record: what the model card tells.
    """

    parts: Mapping[str, Rationalizer]
    task: Joint
    method: Method
    record: dict[str, Any] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        """How it was trained."""
        return self._any.settings

    @property
    def segmenter(self) -> Segmenter:
        """Text to token spans."""
        return self._any.segmenter

    @property
    def vocabulary(self) -> Vocabulary:
        """Tokens to ids."""
        return self._any.vocabulary

    @property
    def _any(self) -> Rationalizer:
        return next(iter(self.parts.values()))

    def predict(self, texts: Iterable[str], **choice: Unpack[Choice]) -> dict[str, list[str] | list[float]]:
        """Label -> predictions for each text; further arguments as those of `Rationalizer.predict`."""
        found: dict[str, Any] = {name: [] for name in self.parts}
        for _, corpus in self._any.chunks(documents_from(texts), BadRows(skip=False), "texts"):
            for name, part, reading in self._read(corpus, full_text=False):
                found[name] += part.task.decode(part.answer(corpus, reading=reading, **choice)[2])
        return found

    def explain(
        self, texts: str | Iterable[str], *, full_text: bool = False, **choice: Unpack[Choice]
    ) -> list[dict[str, Explanation]]:
        """For each text, label -> prediction with its evidence; arguments as those of `Rationalizer.explain`."""
        documents = documents_from([texts] if isinstance(texts, str) else texts)
        found = self.explain_documents(documents, full_text=full_text, **choice)
        return [dict(zip(self.parts, group, strict=True)) for group in _groups(found, len(self.parts))]

    def explain_documents(
        self,
        documents: Iterable[Document],
        *,
        bad_rows: BadRows | None = None,
        source: str = "texts",
        full_text: bool = False,
        **choice: Unpack[Choice],
    ) -> Iterator[Explanation]:
        """The explanations of a stream of documents, text after text, each with its label's name."""
        for chunk, corpus in self._any.chunks(documents, bad_rows or BadRows(skip=False), source):
            by_task = [
                part.explain_encoded(
                    _with_label(chunk, name), corpus, full_text=full_text, reading=reading, **choice
                )
                for name, part, reading in self._read(corpus, full_text=full_text)
            ]
            for group in zip(*by_task, strict=True):
                for name, explanation in zip(self.parts, group, strict=True):
                    yield replace(explanation, task=name)

    def evaluate(
        self,
        documents: Iterable[Document],
        *,
        bad_rows: BadRows | None = None,
        source: str = "data",
        **choice: Unpack[Choice],
    ) -> dict[str, Any]:
        """Score documents that have a label of each kind: ``tasks``, label -> as `Rationalizer.evaluate`.

        The human's evidence does not say which label it is for, and is not looked at.
        """
        began = time.perf_counter()
        bad_rows = bad_rows or BadRows(skip=False)
        rows = (replace(document, rationale=None) for document in documents)
        corpus = self._any.encode(rows, bad_rows=bad_rows, source=source, goal=self.task)
        result = self.evaluate_corpus(corpus, **choice)
        tasks = {name: {**part, "skipped": bad_rows.count} for name, part in result["tasks"].items()}
        seconds = round(time.perf_counter() - began, 3)
        return {**result, "tasks": tasks, "skipped": bad_rows.count, "seconds": seconds}

    def evaluate_corpus(self, corpus: Corpus, **choice: Unpack[Choice]) -> dict[str, Any]:
        """Score encoded documents with targets (n, k): ``tasks``, label -> as `Rationalizer.evaluate_corpus`."""
        began = time.perf_counter()
        columns = {} if corpus.targets is None else dict(zip(self.parts, corpus.targets.T, strict=True))
        tasks = {
            name: part.evaluate_corpus(
                replace(corpus, targets=part.task.target_array(columns[name])), reading=reading, **choice
            )
            for name, part, reading in self._read(corpus, full_text=True)
        }
        return {"n": len(corpus), "tasks": tasks, "seconds": round(time.perf_counter() - began, 3)}

    def _read(self, corpus: Corpus, *, full_text: bool) -> Iterator[tuple[str, Rationalizer, SharedReading]]:
        """Label, its model, and what it needs of the whole network, which reads the corpus once for all labels."""
        from infocal.training.inference import full_text_outputs, view_scores

        scores = view_scores(self.method, corpus)
        whole: list[NDArray[np.float32] | None] = [None] * len(self.parts)
        if full_text:
            ends = np.cumsum([part.task.outputs for part in self.parts.values()])
            whole = [*np.split(full_text_outputs(self.method, corpus), ends[:-1], axis=1)]
        for (name, part), own, full in zip(self.parts.items(), scores, whole, strict=True):
            yield name, part, SharedReading(own, full)

    def save(self, path: str | Path) -> None:
        """Write the model to a folder, as `Rationalizer.save` does."""
        from infocal.storage import save_model

        save_model(self, Path(path))


def _with_label(chunk: Sequence[tuple[Document, list[Span]]], name: str) -> list[tuple[Document, list[Span]]]:
    """The same documents with one of their labels, where they have it by name."""
    return [
        (replace(document, label=document.label.get(name) if isinstance(document.label, Mapping) else None), spans)
        for document, spans in chunk
    ]


def _groups(explanations: Iterator[Explanation], size: int) -> Iterator[list[Explanation]]:
    while group := list(islice(explanations, size)):
        yield group
