"""What the vector language model knows, and so what L_lm can teach a selector.

    python benchmarks/language_model.py --data ../shared/data --vectors ../shared/vectors/glove-100d.txt.gz

The language model is trained as `infocal train --recipe infocal-full` trains it, then asked about the held-out
texts of each data set in which a human marked words:

- does it tell the next word from a random one (area under the curve; .5 knows nothing)?
- what does L_lm say of the human's words, of the same runs of words put elsewhere in the same text, and of as many
  words scattered at random: if the first two do not differ, it knows that words belong together, not which;
- how often do the human's words cost less than their runs put elsewhere?

`--texts FILE ...` gives it more to learn from: other texts, read before those of the data set.

Costs are those of the printed form, per selected word. The first word of a run costs nothing, each further one
what the language model makes of it, the end of a run ln 2 = 0.69.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from contest_runs import FIELDS, Field
from numpy.typing import NDArray

from infocal.comparison.plan import Sources
from infocal.config import load_settings
from infocal.data.batches import collate, plan_batches
from infocal.data.corpus import Corpus, CorpusBuilder
from infocal.data.readers import BadRows, read_documents
from infocal.evaluation.ragged import runs, sums
from infocal.losses.fluency import language_model_cost
from infocal.markup import markdown_table
from infocal.nn.embedding import TokenEmbedding
from infocal.nn.language_model import VectorLanguageModel
from infocal.settings import Settings
from infocal.training.preparation import Prepared, build_embedding, prepare
from infocal.training.pretrain import pretrain_language_model

Flags = NDArray[np.bool_]


def trained(field: Field, arguments: argparse.Namespace) -> tuple[Prepared, TokenEmbedding, VectorLanguageModel]:
    """The data, the word vectors and the language model of a run."""
    parts = {part: Path(arguments.data) / field.folder / f"{part}.jsonl" for part in ("train", "dev", "test")}
    sources, bad_rows = Sources(**parts, label=field.label, skip_bad=True), BadRows(skip=True)
    changes = {
        "text.vectors": arguments.vectors,
        "seed": arguments.seed,
        "language_model.passes": arguments.passes,
    }
    settings = load_settings("infocal-full", changes)
    prepared = prepare(sources.read("train", bad_rows), sources.read("dev", bad_rows), settings, bad_rows=bad_rows)
    torch.manual_seed(arguments.seed)
    embedding = build_embedding(prepared, settings)
    model = VectorLanguageModel(width=embedding.width, hidden_width=settings.language_model.hidden_width)
    if arguments.texts:
        pretrain_language_model(model, embedding, other_texts(arguments.texts, prepared, settings), settings)
    pretrain_language_model(model, embedding, prepared.train, settings)
    return prepared, embedding, model


def other_texts(paths: Sequence[str], prepared: Prepared, settings: Settings) -> Corpus:
    """The texts of some files, in the words of the data set."""
    builder = CorpusBuilder(prepared.segmenter, max_tokens=settings.text.max_tokens, source=", ".join(paths))
    for path in paths:
        for document in read_documents(path, bad_rows=BadRows(skip=True), label=None, rationale=None):
            builder.add(document)
    return builder.finish(prepared.vocabulary)


@torch.no_grad()
def discrimination(
    model: VectorLanguageModel, embedding: TokenEmbedding, corpus: Corpus, *, generator: torch.Generator
) -> float:
    """How often the word that follows has a higher score than one drawn from the words' frequencies."""
    counts = torch.from_numpy(corpus.word_counts(len(embedding.places)).astype(np.float32))
    won, total = 0.0, 0
    for batch in (collate(corpus, rows) for rows in batches(corpus)):
        drawn = torch.multinomial(counts, 64, replacement=True, generator=generator)
        following, random = model.contrast(embedding(batch.ids), embedding(drawn))
        real = batch.mask[:, 1:]
        wins = (following.unsqueeze(-1) > random).float().mean(dim=-1)[:, 1:]
        won, total = won + float(wins[real].sum()), total + int(real.sum())
    return won / total


@torch.no_grad()
def costs(
    model: VectorLanguageModel, embedding: TokenEmbedding, corpus: Corpus, selected: Flags
) -> NDArray[np.float64]:
    """(n,): L_lm, printed form, summed over a document, of a selection (total,)."""
    found = np.empty(len(corpus))
    for rows in batches(corpus):
        batch = collate(corpus, rows)
        places = corpus.offsets[rows][:, None] + np.arange(batch.mask.shape[1])
        flags = torch.zeros(batch.mask.shape)
        flags[batch.mask] = torch.from_numpy(selected[places[batch.mask.numpy()]].astype(np.float32))
        scores = model(embedding(batch.ids))
        found[rows] = language_model_cost(flags, scores, batch.mask, form="printed", reduction="sum").numpy()
    return found


def batches(corpus: Corpus) -> list[NDArray[np.int64]]:
    """The documents, some at a time."""
    return plan_batches(corpus.lengths, tokens=8192, documents=512, rng=None)


def elsewhere(marked: Flags, offsets: NDArray[np.int64], rng: np.random.Generator) -> Flags:
    """The runs of each document in another order and with other gaps between them, all places equally likely."""

    def put(lengths: NDArray[np.int64], size: int) -> Flags:
        free = size - int(lengths.sum()) - (len(lengths) - 1)
        gaps = np.sort(rng.integers(0, free + 1, size=len(lengths)))
        mixed = rng.permutation(lengths)
        starts = gaps + np.concatenate([[0], np.cumsum(mixed + 1)[:-1]])
        flags = np.zeros(size, dtype=np.bool_)
        for start, length in zip(starts, mixed, strict=True):
            flags[start : start + length] = True
        return flags

    return each(marked, offsets, put)


def scattered(marked: Flags, offsets: NDArray[np.int64], rng: np.random.Generator) -> Flags:
    """As many words of each document, anywhere."""

    def put(lengths: NDArray[np.int64], size: int) -> Flags:
        flags = np.zeros(size, dtype=np.bool_)
        flags[rng.choice(size, size=int(lengths.sum()), replace=False)] = True
        return flags

    return each(marked, offsets, put)


def each(marked: Flags, offsets: NDArray[np.int64], put: Callable[[NDArray[np.int64], int], Flags]) -> Flags:
    """Another selection for every document, given the lengths of its runs and its own."""
    found = np.zeros_like(marked)
    starts, ends = runs(marked, offsets)
    lengths = ends - starts
    first = np.searchsorted(starts, offsets)
    for number, (start, end) in enumerate(itertools.pairwise(offsets)):
        own = lengths[first[number] : first[number + 1]]
        if own.size:
            found[start:end] = put(own, int(end - start))
    return found


def row(field: Field, arguments: argparse.Namespace) -> list[str]:
    """What is found on one data set."""
    prepared, embedding, model = trained(field, arguments)
    dev = prepared.dev.subset(np.flatnonzero(np.asarray(prepared.dev.annotated)))
    rng, generator = np.random.default_rng(0), torch.Generator().manual_seed(0)
    marked, offsets = np.asarray(dev.gold), dev.offsets
    kinds = {
        "human": marked,
        "elsewhere": elsewhere(marked, offsets, rng),
        "scattered": scattered(marked, offsets, rng),
    }
    found = {name: costs(model, embedding, dev, flags) for name, flags in kinds.items()}
    words = sums(marked, offsets)
    per_word = [f"{float(values.sum() / words.sum()):.3f}" for values in found.values()]
    differ = found["human"] != found["elsewhere"]
    wins = float((found["human"] < found["elsewhere"])[differ].mean())
    known = discrimination(model, embedding, dev, generator=generator)
    return [field.name, f"{len(dev):,}", f"{known:.2f}", *per_word, f"{wins:.2f}"]


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="../shared/data")
    parser.add_argument("--vectors", default="../shared/vectors/glove-100d.txt.gz")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--passes", type=int, default=1, help="of the language model over the training texts")
    parser.add_argument("--texts", nargs="+", default=[], help="files of other texts to learn from first")
    fields = {field.name: field for field in FIELDS if not field.half}
    parser.add_argument("--only", nargs="+", default=list(fields), choices=list(fields), help="some data sets")
    arguments = parser.parse_args()
    rows = [row(fields[name], arguments) for name in arguments.only]
    titles = [
        "data",
        "texts",
        "next word over a random one",
        "human",
        "elsewhere",
        "scattered",
        "human costs less",
    ]
    print(markdown_table(titles, rows))


if __name__ == "__main__":
    main()
