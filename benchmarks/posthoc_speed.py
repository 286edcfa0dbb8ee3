"""How many times more texts a second `explain` takes than LIME, SHAP and integrated gradients on its guider.

    pip install -c constraints.txt -e ".[bench]"
    python benchmarks/posthoc_speed.py MODEL DATA --label label --rows 20 --json FILE

Two comparisons, each of like with like, in one run:

from strings   texts go in, explanations come out, as a user calls each package: LIME and SHAP cut the text
               their way, take words out of it and ask a function from strings to probabilities
from numbers   texts are encoded before the clock starts, and the perturbed token vectors go to the network in full
               batches without padding; nothing but the method's own work is left
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray
from posthoc import EVALUATIONS, METHODS, SAMPLES, attribute, check, command_line, guider_of

from infocal.data.corpus import CorpusBuilder
from infocal.data.readers import BadRows, read_documents
from infocal.errors import InfocalError
from infocal.files import write_text
from infocal.loading import load_one
from infocal.rationalizer import Rationalizer
from infocal.training.inference import full_text_outputs, outputs, token_scores
from infocal.types import Document

CORPUS = 2000
WANTED = {"lime": 250.0, "shap": 250.0, "integrated-gradients": 40.0}


def reader_of(model: Rationalizer) -> Callable[[list[str]], NDArray[np.float64]]:
    """The guider as LIME and SHAP see it: strings to outputs, one a class (for scores: the output itself)."""

    def read(texts: list[str]) -> NDArray[np.float64]:
        builder = CorpusBuilder(model.segmenter, max_tokens=model.settings.text.max_tokens, source="texts")
        for text in texts:  # one of which nothing is left still has to be answered
            builder.add(Document(str(text) if str(text).strip() else "."))
        logits = full_text_outputs(model.method, builder.finish(model.vocabulary))
        probabilities = model.task.probabilities(logits)
        return logits.astype(np.float64) if probabilities is None else probabilities

    return read


def lime_from_strings(model: Rationalizer, texts: list[str], seed: int) -> None:
    """LIME as its manual shows it."""
    from lime.lime_text import LimeTextExplainer

    read = reader_of(model)
    explainer = LimeTextExplainer(random_state=seed)
    for text in texts:
        explainer.explain_instance(text, read, labels=(0,), num_samples=SAMPLES)


def shap_from_strings(model: Rationalizer, texts: list[str], seed: int) -> None:
    """SHAP as its manual shows it, with the estimator that uses the evaluations it is given."""
    from shap.explainers import Permutation
    from shap.maskers import Text

    read = reader_of(model)
    explainer = Permutation(lambda rows: read(list(rows)), Text(r"\W+"), seed=seed)
    for text in texts:
        words = len(text.split())
        explainer([text], max_evals=max(EVALUATIONS, 2 * words + 3), batch_size=EVALUATIONS, silent=True)


def rate(work: Callable[[], object], count: int) -> float:
    """Texts a second."""
    began = time.perf_counter()
    work()
    return count / (time.perf_counter() - began)


def compare(model: Rationalizer, documents: list[Document], *, seed: int) -> dict[str, dict[str, float]]:
    """Way -> method -> texts a second."""
    texts = [document.text for document in documents]
    corpus = model.encode(documents, bad_rows=BadRows(skip=False), source="data")
    times = max(1, CORPUS // len(texts))  # explain is made for a corpus; a dozen texts fill no batch
    many = model.encode(documents * times, bad_rows=BadRows(skip=False), source="data")
    guider = guider_of(model)

    def answer() -> None:
        chosen = model.decoding.select(token_scores(model.method, many), many.offsets, decoder="average")
        outputs(model.method, many, chosen)

    def numbers(name: str) -> float:
        attribute(guider, corpus.subset(np.arange(1)), METHODS[name][0], seed=seed)  # pays for what is loaded late
        return rate(lambda: attribute(guider, corpus, METHODS[name][0], seed=seed), len(corpus))

    model.explain(texts[:50])
    strings = {
        "infocal": rate(lambda: model.explain(texts * times), len(many)),
        "lime": rate(lambda: lime_from_strings(model, texts, seed), len(texts)),
        "shap": rate(lambda: shap_from_strings(model, texts, seed), len(texts)),
    }
    answer()
    return {
        "from strings": strings,
        "from numbers": {"infocal": rate(answer, len(many)), **{name: numbers(name) for name in WANTED}},
    }


def run(arguments: argparse.Namespace) -> None:
    """Compare, print, write."""
    check(list(WANTED), arguments.rows)
    torch.set_num_threads(arguments.threads or 1)
    model = load_one(arguments.model)
    stream = read_documents(arguments.data, label=arguments.label, bad_rows=BadRows(skip=True))
    documents = list(islice(stream, arguments.rows))
    found = compare(model, documents, seed=arguments.seed)
    tokens = model.encode(documents, bad_rows=BadRows(skip=False), source="data").lengths.mean()
    print(f"{len(documents):,} texts of {tokens:.0f} tokens on average, {torch.get_num_threads()} thread(s)")
    for way, rates in found.items():
        for name, speed in rates.items():
            wanted = f"  (>= {WANTED[name]:g}x wanted)" if name in WANTED else ""
            print(f"  {way:13} {name:21} {speed:10.2f} texts/s {rates['infocal'] / speed:9.1f}x{wanted}")
    if arguments.json:
        write_text(arguments.json, json.dumps({"texts": len(documents), "tokens": tokens, **found}, indent=1))


def main() -> None:
    """Read the command line."""
    parser = command_line(__doc__)
    parser.add_argument("--rows", type=int, default=20, help="texts that the slow methods explain")
    try:
        run(parser.parse_args())
    except InfocalError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
