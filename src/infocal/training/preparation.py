"""From documents to what training needs: corpora, vocabulary, vectors, task; and what to tell the user."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from infocal.config import load_settings
from infocal.data.corpus import Corpus, CorpusBuilder
from infocal.data.encoded import EncodedFolder
from infocal.data.readers import BadRows
from infocal.data.records import no_row
from infocal.data.split import split_rows
from infocal.errors import DataError, SettingsError
from infocal.tasks import Classification, Goal, Joint
from infocal.text.segmentation import Segmenter, resolve_segmenter, segmenter_named
from infocal.text.vectors import Vectors, read_vectors
from infocal.text.vocabulary import Vocabulary
from infocal.training.description import note_of_repeats, notes_of, stratified_by, summary_of
from infocal.training.labelling import check_label, settle_labels
from infocal.types import Document, Span

if TYPE_CHECKING:
    from infocal.nn.embedding import TokenEmbedding
    from infocal.settings import Settings

__all__ = ["Prepared", "build_embedding", "check_text_settings", "encode_labelled", "open_encoded", "prepare"]

SAMPLE = 200
MOST_HELD_OUT = 10_000
"""Of rows that are split off: more would be lost to training and tell no more."""
A_ROW = "rows with a text and a label"

TEXT_COLUMNS = {"cail": "fact"}
"""Where the files that an encoded corpus of some kind is made from have their texts."""


@dataclass(frozen=True)
class Prepared:
    """Everything a run reads.

    Attributes:
        segmenter: text to token spans.
        vocabulary: tokens to ids.
        vectors: pretrained vectors of vocabulary words; None without a file.
        task: what is predicted.
        train: the encoded training rows.
        dev: the encoded held-out rows.
        summary: what the data looks like, for the model card.
        notes: sentences that the user should read.
        max_tokens: where texts were cut, if that was settled before this run.
    """

    segmenter: Segmenter
    vocabulary: Vocabulary
    vectors: Vectors | None
    task: Goal
    train: Corpus
    dev: Corpus
    summary: dict[str, Any]
    notes: list[str] = field(default_factory=list)
    max_tokens: int | None = None


def prepare(
    documents: Iterable[Document],
    dev_documents: Iterable[Document] | None,
    settings: Settings,
    *,
    bad_rows: BadRows,
    source: str = "data",
    dev_source: str = "dev data",
    from_text: bool = False,
    segmenter: Callable[[str], Iterable[Span]] | None = None,
) -> Prepared:
    """Read all documents once, encode them, and settle vocabulary, task and the held-out part.

    Args:
        documents: the training rows.
        dev_documents: rows to hold out; None splits them off the training rows.
        settings: of the run.
        bad_rows: what to do with rows that cannot be used.
        source: a name for the training rows in messages.
        dev_source: the same for the held-out rows.
        from_text: whether labels come from a file in which everything is text (CSV, TSV).
        segmenter: the user's own, in place of ``settings.text.segmenter``.
    """
    stream = iter(documents)
    sample = list(itertools.islice(stream, SAMPLE))
    cut = resolve_segmenter(segmenter or settings.text.segmenter, (document.text for document in sample))
    builder = _read(itertools.chain(sample, stream), cut, settings, source, bad_rows)
    found = settle_labels(
        builder.labels, builder.lines, settings.task, source=source, bad_rows=bad_rows, from_text=from_text
    )
    task, targets = found.goal, found.targets
    vocabulary, vectors = _vocabulary(builder.counts(), settings)
    corpus = replace(builder.finish(vocabulary).shrink(found.rows), targets=targets)
    del builder
    if dev_documents is None:
        rows, held = _hold_out(task, targets, share=settings.training.dev_share, seed=settings.seed)
        dev = corpus.subset(held)
        train = corpus.shrink(rows)
    else:
        train = corpus
        dev = encode_labelled(
            dev_documents,
            segmenter=cut,
            vocabulary=vocabulary,
            task=task,
            max_tokens=settings.text.max_tokens,
            source=dev_source,
            bad_rows=bad_rows,
        )
    task = task.with_priors(np.asarray(train.targets))
    split = dev_documents is None
    sources = {
        "source": Path(source).name,
        "held_out_source": "a part of the same" if split else Path(dev_source).name,
    }
    summary = sources | summary_of(train, dev, task, vocabulary, vectors, cut)
    notes = notes_of(
        summary,
        train,
        dev,
        task,
        max_tokens=settings.text.max_tokens,
        changed_by="the setting text.max_tokens",
        vectors=settings.text.vectors,
        segmenter=cut,
        split=split,
        bad_rows=bad_rows,
    )
    notes += note_of_repeats(train, dev)
    return Prepared(cut, vocabulary, vectors, task, train, dev, summary, notes)


def open_encoded(encoded: str | Path | EncodedFolder, label: str | Sequence[str], settings: Settings) -> Prepared:
    """What a run reads, from a folder that `infocal prepare` wrote.

    Its part valid is held out; if there is none, a share of its part train. Tokens stay on disk. Held-out texts
    that are training texts too are not looked for, which would read all of them (see `note_of_repeats`).

    Args:
        encoded: the folder, or its path.
        label: which of its labels to predict, one or several at once.
        settings: of the run; its segmenter and vocabulary are the folder's.

    Raises:
        DataError: the folder is damaged, or lacks the label.
        SettingsError: the settings ask for other words than the folder has.
    """
    folder = encoded if isinstance(encoded, EncodedFolder) else EncodedFolder.open(encoded)
    max_tokens = int(folder.manifest["max_tokens"])
    check_text_settings(settings, segmenter=folder.manifest["segmenter"], max_tokens=max_tokens)
    task, train = _encoded_goal(folder, label), folder.part("train", label)
    split = "valid" not in folder.manifest["parts"]
    if split:
        targets = np.asarray(train.targets)
        rows, held = _hold_out(task, targets, share=settings.training.dev_share, seed=settings.seed)
        train, dev = train.view(rows), train.view(held)
    else:
        dev = folder.part("valid", label)
    task = task.with_priors(np.asarray(train.targets))
    cut = segmenter_named(folder.manifest["segmenter"])
    vectors = None
    if settings.text.vectors is not None:
        vectors = read_vectors(settings.text.vectors, wanted=lambda word: word in folder.vocabulary)
    sources = {"source": folder.path.name, "held_out_source": "a part of the same"}
    if not split:
        sources["held_out_source"] = f"{folder.path.name}, valid"
    summary = sources | summary_of(train, dev, task, folder.vocabulary, vectors, cut)
    text = TEXT_COLUMNS.get(str(folder.manifest.get("kind")), "text")
    summary["columns"] = {"text": text, "label": label if isinstance(label, str) else list(label)}
    notes = notes_of(
        summary,
        train,
        dev,
        task,
        max_tokens=max_tokens,
        changed_by="--max-tokens when they are prepared",
        vectors=settings.text.vectors,
        segmenter=cut,
        split=split,
        bad_rows=BadRows(),
    )
    return Prepared(cut, folder.vocabulary, vectors, task, train, dev, summary, notes, max_tokens)


def check_text_settings(settings: Settings, *, segmenter: str, max_tokens: int) -> None:
    """Raise SettingsError if a run on encoded texts asks for other words than were chosen when they were encoded.

    Args:
        settings: of the run; the default recipe's values ask for nothing.
        segmenter: that cut the texts.
        max_tokens: where longer ones were cut.
    """
    usual = load_settings().text
    true = {
        "segmenter": segmenter,
        "max_tokens": max_tokens,
        "min_count": usual.min_count,
        "max_words": usual.max_words,
        "unknown_buckets": usual.unknown_buckets,
    }
    for name, value in true.items():
        asked = getattr(settings.text, name)
        if asked not in (value, getattr(usual, name)):
            raise SettingsError(
                f"text.{name} is {asked!r}, but the texts are encoded already, with {value!r}; leave it out"
                + (", or prepare them anew with --max-tokens" if name == "max_tokens" else "")
            )


def _encoded_goal(folder: EncodedFolder, label: str | Sequence[str]) -> Goal:
    if isinstance(label, str):
        return Classification(folder.classes(label))
    return Joint({name: Classification(folder.classes(name)) for name in label})


def encode_labelled(
    documents: Iterable[Document],
    *,
    segmenter: Segmenter,
    vocabulary: Vocabulary,
    task: Goal,
    max_tokens: int,
    source: str,
    bad_rows: BadRows,
) -> Corpus:
    """Encode rows whose vocabulary and task are known already: held-out rows, rows to score.

    Raises:
        DataError: no row can be used, or one cannot and ``bad_rows`` does not skip it.
    """
    builder = CorpusBuilder(segmenter, max_tokens=max_tokens, source=source)
    targets: list[float | list[float]] = []
    for document in documents:
        try:
            target = task.encode(document.label, source=source, line=document.line)
            builder.add(document)
        except DataError as error:
            bad_rows.report(error)
        else:
            targets.append(target)
    if not targets:
        raise no_row(A_ROW, source, bad_rows)
    return builder.finish(vocabulary, task.target_array(targets))


def build_embedding(prepared: Prepared, settings: Settings) -> TokenEmbedding:
    """The table of token vectors, filled with the pretrained ones where there are any.

    Pretrained vectors are trained, if at all, where the training texts have a word often enough to be learned; all
    others stay as they are.
    """
    import torch

    from infocal.nn.embedding import TokenEmbedding

    size, vectors = len(prepared.vocabulary), prepared.vectors
    if vectors is None:
        return TokenEmbedding(size=size, width=settings.text.width)
    places = torch.tensor(prepared.vocabulary.ids(vectors.words))
    frozen = torch.zeros(size, dtype=torch.bool)
    frozen[places] = True
    if settings.text.train_vectors:
        seen = prepared.train.word_counts(size)
        frozen &= torch.from_numpy(seen < settings.text.min_count)
    embedding = TokenEmbedding(size=size, width=vectors.matrix.shape[1], frozen=frozen)
    embedding.fill(places, torch.from_numpy(vectors.matrix))
    return embedding


def _read(
    documents: Iterable[Document], segmenter: Segmenter, settings: Settings, source: str, bad_rows: BadRows
) -> CorpusBuilder:
    builder = CorpusBuilder(segmenter, max_tokens=settings.text.max_tokens, source=source)
    for document in documents:
        try:
            check_label(document, builder.labels[0] if builder.labels else None, source=source)
            builder.add(document)
        except DataError as error:
            bad_rows.report(error)
    if not len(builder):
        raise no_row(A_ROW, source, bad_rows)
    return builder


def _hold_out(
    goal: Goal, targets: NDArray[Any], *, share: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows to train on and the rows set aside, of several labels as `stratified_by` says.

    Args:
        goal: what is predicted.
        targets: (n,), or (n, k) of several labels.
        share: of the rows to set aside, ``MOST_HELD_OUT`` at most.
        seed: of the draw.
    """
    share = min(share, MOST_HELD_OUT / max(1, len(targets)))
    if not isinstance(goal, Joint):
        return split_rows(targets, share=share, seed=seed, stratify=True)
    columns = {name: part.target_array(targets[:, k]) for k, (name, part) in enumerate(goal.tasks.items())}
    rows, held = split_rows(columns[stratified_by(goal)], share=share, seed=seed, stratify=True)
    for column in (columns[name] for name, part in goal.tasks.items() if isinstance(part, Classification)):
        lost = np.setdiff1d(column[held], column[rows])
        back = held[[int(np.argmax(column[held] == one)) for one in lost]] if len(lost) else held[:0]
        if len(back) < len(held):  # every class is learned from at least one row
            rows, held = np.union1d(rows, back), np.setdiff1d(held, back)
    return rows, held


def _vocabulary(counts: dict[str, int], settings: Settings) -> tuple[Vocabulary, Vectors | None]:
    choices = settings.text
    vectors = None
    if choices.vectors is not None:
        seen = itertools.count()
        vectors = read_vectors(
            choices.vectors, wanted=lambda word: next(seen) < choices.extra_words or word in counts
        )
    words = vectors.words if vectors is not None else []
    vocabulary = Vocabulary.build(
        counts,
        min_count=choices.min_count,
        max_words=choices.max_words,
        unknown_buckets=choices.unknown_buckets,
        keep=set(words),
        extra=words,
    )
    return vocabulary, vectors
