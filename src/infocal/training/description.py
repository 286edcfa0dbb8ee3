"""What prepared data looks like: a summary for the model card, and sentences that the user should read."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infocal.data.corpus import Corpus
from infocal.data.records import BadRows
from infocal.tasks import Classification, Goal, Joint
from infocal.text.segmentation import Segmenter
from infocal.text.vectors import Vectors
from infocal.text.vocabulary import Vocabulary

__all__ = ["note_of_repeats", "notes_of", "stratified_by", "summary_of"]

LITTLE_DATA = 1000
LITTLE_COVERED = 0.5
MANY_REPEATED = 0.05
BLOCK_TEXTS = 10_000
COVERED = "tokens_with_a_pretrained_vector"


def notes_of(
    summary: Mapping[str, Any],
    train: Corpus,
    dev: Corpus,
    task: Goal,
    *,
    max_tokens: int,
    changed_by: str,
    vectors: str | None,
    segmenter: Segmenter,
    split: bool,
    bad_rows: BadRows,
) -> list[str]:
    """The sentences that the user should read.

    Args:
        summary: as `summary_of` gives it.
        train: the training rows.
        dev: the held-out rows.
        task: what is predicted.
        max_tokens: where texts were cut.
        changed_by: what has them cut elsewhere.
        vectors: the file of pretrained vectors, if there is one.
        segmenter: what cut the texts.
        split: whether the held-out rows are a part of the training data.
        bad_rows: what was left out.
    """
    notes = [note for note in (segmenter.note, bad_rows.summary()) if note]
    if split:
        name = stratified_by(task) if isinstance(task, Joint) else ""
        part = task.tasks[name] if isinstance(task, Joint) else task
        how = "keeping the classes' shares" if isinstance(part, Classification) else "spread over the scores"
        how += f" of the label {name!r}" if name else ""
        notes.append(
            f"No held-out rows were given: {len(dev):,} of {len(train) + len(dev):,} rows are held out to decide "
            f"when to stop, {how}."
        )
    notes += _classes_alike(task)
    if len(train) < LITTLE_DATA:
        notes.append(
            f"{len(train):,} training rows are little data: expect figures that change with the seed, and "
            "look at several explanations before you trust one."
        )
    if cut := train.cut + (0 if split else dev.cut):  # parts of one corpus both count the whole's
        notes.append(
            f"{cut:,} texts are longer than {max_tokens:,} tokens; the model reads their "
            f"beginning only ({changed_by} changes that)."
        )
    covered = summary.get(COVERED)
    if covered is not None and covered < LITTLE_COVERED:
        notes.append(
            f"Only {covered:.0%} of the words have a vector in {vectors}: is it made for this "
            "language, and are its words cut and cased as these are?"
        )
    return notes


def _classes_alike(task: Goal) -> list[str]:
    """What to say of classes that differ in capitals or spaces only."""
    notes = []
    for name, part in task.tasks.items() if isinstance(task, Joint) else [("", task)]:
        groups: dict[str, list[str]] = {}
        for label in part.classes if isinstance(part, Classification) else ():
            groups.setdefault(" ".join(label.casefold().split()), []).append(label)
        alike = [repr(label) for group in groups.values() if len(group) > 1 for label in group]
        if alike:
            of = f" of the label {name!r}" if name else ""
            notes.append(
                f"Some classes{of} differ in capitals or spaces only: {', '.join(alike[:6])}. Each is a class of "
                "its own; write them alike if they are meant as one."
            )
    return notes


def note_of_repeats(train: Corpus, others: Corpus, *, what: str = "held-out") -> list[str]:
    """What to say where many held-out texts, or others, are training texts too; reads all words."""
    asked = Counter(_documents(others))
    found = {document for document in _documents(train) if document in asked}
    repeated = sum(asked[document] for document in found)
    if not repeated or repeated < MANY_REPEATED * len(others):
        return []
    return [
        f"{repeated:,} of the {len(others):,} {what} texts have the words of a training text: figures on them say "
        "little about new texts."
    ]


def _documents(corpus: Corpus) -> Iterator[bytes]:
    """What tells the texts apart, 16 bytes each; of a corpus on disk, some are read at a time."""
    for first in range(0, len(corpus), BLOCK_TEXTS):
        block = corpus.subset(np.arange(first, min(first + BLOCK_TEXTS, len(corpus))))
        ids = np.asarray(block.ids)
        for start, end in itertools.pairwise(block.offsets.tolist()):
            yield hashlib.blake2b(ids[start:end].tobytes(), digest_size=16).digest()


def stratified_by(goal: Joint) -> str:
    """The label whose shares a held-out part keeps: that with the most classes, or the first of scores alone."""
    classes = {name: len(task.classes) for name, task in goal.tasks.items() if isinstance(task, Classification)}
    return max(classes, key=lambda name: classes[name]) if classes else next(iter(goal.tasks))


def summary_of(
    train: Corpus,
    dev: Corpus,
    task: Goal,
    vocabulary: Vocabulary,
    vectors: Vectors | None,
    segmenter: Segmenter,
) -> dict[str, Any]:
    """What the data looks like, by name."""
    if train.targets is None:
        raise ValueError("a training corpus has targets")
    counts = train.word_counts(len(vocabulary))
    summary: dict[str, Any] = {
        "training_rows": len(train),
        "held_out_rows": len(dev),
        "tokens_per_text": {
            "median": float(np.median(train.lengths)),
            "longest": int(train.lengths.max()),
        },
        "texts_cut": train.cut,
        "segmentation": segmenter.name,
        "vocabulary": len(vocabulary.words),
        "unknown_tokens": float(counts[1 : 1 + vocabulary.unknown_buckets].sum() / counts.sum()),
        "annotated_rows": 0 if train.annotated is None else int(train.annotated.sum()),
    }
    if isinstance(task, Joint):
        columns = zip(task.tasks.items(), train.targets.T, strict=True)
        summary["labels"] = {name: _labels_of(part, column) for (name, part), column in columns}
    else:
        summary |= _labels_of(task, train.targets)
    if vectors is not None:
        summary[COVERED] = float(counts[vocabulary.ids(vectors.words)].sum() / counts.sum())
    return summary


def _labels_of(task: Goal, targets: NDArray[Any]) -> dict[str, Any]:
    if isinstance(task, Classification):
        found = Counter(targets.tolist())
        return {"classes": {name: found[index] for index, name in enumerate(task.classes)}}
    return {"scores": task.to_json()}
