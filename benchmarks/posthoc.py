"""Post-hoc explanations of a trained model's guider, beside the words that the model itself selects.

    pip install -c constraints.txt -e ".[bench]"
    python benchmarks/posthoc.py MODEL DATA --label label --share 0.2 --rows 200 --json FILE [--methods lime shap]

The guider reads the full text; the methods here ask after training which of its words its answer hangs on. All
explain the same number, the log-odds of the guider's own answer (for scores: the output before the sigmoid), and
all take a word away in the same manner, by the zero vector that an unselected word has. Their token scores are cut
at the same share, the same for each text or on average, and scored as the model's own are. "accuracy" (for
scores: "mae") is that of the model's predictor when it reads only those words. Speed is that of scoring encoded
texts; for the model itself it is that of its whole `explain`, from text to spans and prediction.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from infocal.data.batches import collate, plan_batches
from infocal.data.corpus import Corpus, flat_positions
from infocal.data.readers import BadRows, read_documents
from infocal.errors import InfocalError, ModelError, SettingsError
from infocal.evaluation.decoding import fit_threshold, least_share, select_above, select_share
from infocal.evaluation.rationales import rationale_scores
from infocal.files import write_text
from infocal.loading import load_one
from infocal.rationalizer import Rationalizer
from infocal.tasks import Regression, Task
from infocal.training.inference import outputs, token_scores
from infocal.types import Batch, Document

BATCH_TOKENS = 4096
CORPUS = 2000
READ_TOKENS = 16_384
"""Most token vectors that the network reads at once when one text is asked about many times."""
STEPS, SAMPLES, EVALUATIONS = 50, 1000, 500
REMOVED = "removed"


@dataclass(frozen=True)
class FullText:
    """What is explained: a network from the vectors of all words to an output.

    Attributes:
        embed: (b, t) int64 -> (b, t, d).
        read: (b, t, d) and a mask (b, t) -> (b, c).
        task: says what the output means.
    """

    embed: Callable[[Tensor], Tensor]
    read: Callable[[Tensor, Tensor], Tensor]
    task: Task

    @torch.no_grad()
    def answers(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """(b,) int64: the output that the network answers with on the full text."""
        return self.read(vectors, mask).argmax(dim=1)

    def log_odds(self, vectors: Tensor, mask: Tensor, answers: Tensor) -> Tensor:
        """(b,): how strongly the network holds a given answer; for scores the output itself."""
        logits = self.read(vectors, mask)
        if isinstance(self.task, Regression):
            return logits[:, 0]
        places = answers.unsqueeze(1)
        others = torch.logsumexp(logits.scatter(1, places, float("-inf")), dim=1)
        return logits.gather(1, places).squeeze(1) - others

    def evidence(self, signed: Tensor) -> Tensor:
        """What ranks words: those that speak for the answer, or those that move the score either way."""
        return signed.abs() if isinstance(self.task, Regression) else signed

    @torch.no_grad()
    def without(self, vectors: Tensor, answer: Tensor, kept: NDArray[Any]) -> NDArray[np.float64]:
        """The log-odds for one text with some of its words taken away.

        Args:
            vectors: (t, d), of all words.
            answer: () int64.
            kept: (n, t), 0 where a word is taken away.

        Returns:
            (n,).
        """
        flags = torch.from_numpy(np.ascontiguousarray(kept, dtype=np.float32)).to(vectors.dtype)
        parts = []
        for rows in flags.split(max(1, READ_TOKENS // len(vectors))):
            everything = torch.ones(rows.shape, dtype=torch.bool)
            parts.append(self.log_odds(vectors * rows.unsqueeze(-1), everything, answer.expand(len(rows))))
        return torch.cat(parts).double().numpy()


def guider_of(model: Rationalizer) -> FullText:
    """The full-text side of a trained infocal model."""
    from infocal.methods.infocal import InfoCal

    method = model.method
    if not isinstance(method, InfoCal):
        raise ModelError(f"the model's method is {model.settings.method}; only infocal has a guider to explain")
    return FullText(
        embed=lambda ids: method.embedding(ids).detach(),
        read=lambda vectors, mask: method.head(method.guider(vectors, mask).sample),
        task=model.task,
    )


def _gradient(text: FullText, batch: Batch) -> tuple[Tensor, Tensor]:
    """(b, t, d) twice: the word vectors, and the gradient of the log-odds with respect to them."""
    vectors = text.embed(batch.ids).requires_grad_(True)
    held = text.log_odds(vectors, batch.mask, text.answers(vectors, batch.mask))
    (gradient,) = torch.autograd.grad(held.sum(), vectors)
    return vectors.detach(), gradient


def gradient_norm(text: FullText, batch: Batch, seed: int) -> Tensor:
    """(b, t): the norm of each word's gradient (Simonyan et al. 2014; Li et al. 2016)."""
    return _gradient(text, batch)[1].norm(dim=-1)


def gradient_times_input(text: FullText, batch: Batch, seed: int) -> Tensor:
    """(b, t): each word's gradient times its vector (Shrikumar et al. 2017): its removal, to first order."""
    vectors, gradient = _gradient(text, batch)
    return text.evidence((vectors * gradient).sum(dim=-1))


def integrated_gradients(text: FullText, batch: Batch, seed: int) -> Tensor:
    """(b, t): the gradient along the way from no words to all, times the words (Sundararajan et al. 2017)."""
    from captum.attr import IntegratedGradients

    vectors = text.embed(batch.ids)
    found = IntegratedGradients(text.log_odds).attribute(
        vectors,
        baselines=torch.zeros_like(vectors),
        additional_forward_args=(batch.mask, text.answers(vectors, batch.mask)),
        n_steps=STEPS,
        internal_batch_size=max(len(vectors), READ_TOKENS // vectors.shape[1]),
    )
    return text.evidence(found.sum(dim=-1))


def lime_weights(text: FullText, batch: Batch, seed: int) -> Tensor:
    """(b, t): the weights of a linear model of the log-odds near the text (Ribeiro et al. 2016).

    The package perturbs strings. It is given the numbers of the words in place of the words, so that what it takes
    away is a word of the model's own segmentation at its own place.
    """
    from lime.lime_text import LimeTextExplainer

    def weights(vectors: Tensor, answer: Tensor, number: int) -> NDArray[np.float64]:
        def read(texts: list[str]) -> NDArray[np.float64]:
            kept = np.array([[word != REMOVED for word in one.split(" ")] for one in texts])
            return text.without(vectors, answer, kept)[:, None]

        explainer = LimeTextExplainer(
            bow=False, mask_string=REMOVED, feature_selection="none", random_state=seed + number
        )
        numbers = " ".join(map(str, range(len(vectors))))
        found = explainer.explain_instance(
            numbers, read, labels=(0,), num_features=len(vectors), num_samples=SAMPLES
        )
        values = np.zeros(len(vectors))
        for place, weight in found.as_map()[0]:
            values[place] = weight
        return values

    return _text_by_text(text, batch, weights)


def shapley_values(text: FullText, batch: Batch, seed: int) -> Tensor:
    """(b, t): Shapley values by permutations of the words (Lundberg and Lee 2017).

    One permutation, forth and back, takes 2 t + 1 evaluations: texts too long for the budget get one.
    """
    from shap.explainers import Permutation

    def weights(vectors: Tensor, answer: Tensor, number: int) -> NDArray[np.float64]:
        tokens = len(vectors)
        explainer = Permutation(
            lambda kept: text.without(vectors, answer, kept), _token_masker(tokens), seed=seed + number
        )
        budget = max(EVALUATIONS, 2 * tokens + 1)
        found = explainer(np.ones((1, tokens)), max_evals=budget, batch_size=budget, silent=True)
        return np.asarray(found.values, dtype=np.float64)[0]

    return _text_by_text(text, batch, weights)


def _token_masker(tokens: int) -> Any:
    """What tells shap how a word is taken away: the mask itself is the network's input."""
    from shap.maskers import Masker

    class TokenMasker(Masker):  # type: ignore[misc]
        shape = (1, tokens)

        def __call__(self, mask: NDArray[np.bool_], row: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.asarray(mask, dtype=np.float64)[None, :]

    return TokenMasker()


def _text_by_text(
    text: FullText, batch: Batch, weights: Callable[[Tensor, Tensor, int], NDArray[np.float64]]
) -> Tensor:
    vectors = text.embed(batch.ids)
    answers = text.answers(vectors, batch.mask)
    found = torch.zeros(batch.mask.shape, dtype=torch.float64)
    for row, length in enumerate(batch.mask.sum(dim=1).tolist()):
        values = weights(vectors[row, :length], answers[row], int(batch.rows[row]))
        found[row, :length] = torch.from_numpy(values)
    return text.evidence(found)


Attribution = Callable[[FullText, Batch, int], Tensor]
METHODS: dict[str, tuple[Attribution, str | None]] = {
    "gradient-norm": (gradient_norm, None),
    "gradient-x-input": (gradient_times_input, None),
    "integrated-gradients": (integrated_gradients, "captum"),
    "lime": (lime_weights, "lime"),
    "shap": (shapley_values, "shap"),
}
"""Name -> function and the package that it needs."""


def attribute(text: FullText, corpus: Corpus, attribution: Attribution, *, seed: int = 0) -> NDArray[np.float64]:
    """The scores of every token of a corpus, (total,); a token's place in a batch does not matter."""
    scores = np.empty(len(corpus.ids))
    for rows in plan_batches(corpus.lengths, tokens=BATCH_TOKENS, documents=256, rng=None):
        batch = collate(corpus, rows)
        values = attribution(text, batch, seed).detach()
        scores[flat_positions(corpus.offsets, rows)] = values[batch.mask].numpy()
    return scores


def relative(scores: NDArray[Any], corpus: Corpus) -> NDArray[np.float64]:
    """Scores that one threshold can cut in all texts, as those of learned methods are (`model.score_reference`).

    How large attributions are differs from text to text with how sure the network is; which words of a text they
    name does not depend on it. Sizes are taken as logarithms, relative to the middle of their text's mean and its
    total; scores with a sign are divided by what that is without logarithms, mean |score| times the root of the
    text's length.
    """
    lengths, offsets = corpus.lengths, corpus.offsets[:-1]
    values = np.asarray(scores, dtype=np.float64)
    if (values >= 0).all():
        logs = np.log(values + np.finfo(np.float32).tiny)
        mean = np.add.reduceat(logs, offsets) / lengths
        total = np.logaddexp.reduceat(logs, offsets)
        return logs - np.repeat((mean + total) / 2, lengths)
    size = np.add.reduceat(np.abs(values), offsets) / lengths
    return values / np.repeat(np.maximum(size, 1e-30) * np.sqrt(lengths), lengths)


def cuts(scores: NDArray[Any], corpus: Corpus, share: float) -> dict[str, NDArray[np.bool_]]:
    """The tokens chosen at a share of each text ("equal"), and at that share on average ("average")."""
    least = least_share(share)
    scores = relative(scores, corpus)
    threshold = fit_threshold(scores, corpus.offsets, share=share, least=least)
    return {
        "equal": select_share(scores, corpus.offsets, share=share),
        "average": select_above(scores, corpus.offsets, threshold=threshold, least=least),
    }


def judge(model: Rationalizer, corpus: Corpus, scores: NDArray[Any], share: float) -> dict[str, Any]:
    """What the tokens that the scores choose are worth, by decoder."""
    found: dict[str, Any] = {}
    for name, selected in cuts(scores, corpus, share).items():
        answers = outputs(model.method, corpus, selected)
        rationale = None
        if corpus.gold is not None and corpus.annotated is not None:
            rationale = rationale_scores(
                selected, corpus.gold, corpus.offsets, annotated=corpus.annotated, scores=scores
            )
        found[name] = {
            "selected": float(selected.mean()),
            "prediction": model.task.scores(answers, np.asarray(corpus.targets)),
            "rationale": rationale,
        }
    return found


def compare(
    model: Rationalizer, documents: list[Document], *, share: float, methods: list[str], seed: int = 0
) -> dict[str, Any]:
    """Name -> figures of the model's own selection ("infocal") and of each method, on the same documents."""
    corpus = model.encode(documents, bad_rows=BadRows(skip=False), source="data")
    guider = guider_of(model)
    texts = [document.text for document in documents]
    model.explain(texts[:50], share=share)  # the first call pays for what is loaded late
    many = texts * max(1, CORPUS // len(texts))  # explain is made for a corpus; a dozen texts fill no batch
    began = time.perf_counter()
    model.explain(many, share=share)
    own = len(many) / (time.perf_counter() - began)
    results = {
        "infocal": {
            **judge(model, corpus, token_scores(model.method, corpus), share),
            "documents_per_second": own,
            "slower": 1.0,
        }
    }
    for name in methods:
        attribution = METHODS[name][0]
        attribute(guider, corpus.subset(np.arange(1)), attribution, seed=seed)
        began = time.perf_counter()
        scores = attribute(guider, corpus, attribution, seed=seed)
        speed = len(corpus) / (time.perf_counter() - began)
        results[name] = {
            **judge(model, corpus, scores, share),
            "documents_per_second": speed,
            "slower": own / speed,
        }
    return results


def table(results: dict[str, Any], metric: str) -> str:
    """The figures as text, a line per method."""
    lines = [
        f"{'':21} {'share of each text':^24} {'share on average':^24}",
        f"{'method':21} {'F1':>7} {'AUPRC':>7} {metric:>8} {'F1':>8} {'words':>7} {metric:>8}"
        f" {'texts/s':>9} {'slower':>8}",
    ]
    for name, result in results.items():
        equal, average = result["equal"], result["average"]
        lines.append(
            f"{name:21} {_figure(equal, 'f1'):>7} {_figure(equal, 'auprc'):>7} {equal['prediction'][metric]:8.3f}"
            f" {_figure(average, 'f1'):>8} {average['selected']:7.3f} {average['prediction'][metric]:8.3f}"
            f" {result['documents_per_second']:9.1f} {result['slower']:7.1f}x"
        )
    return "\n".join(lines)


def _figure(result: dict[str, Any], name: str) -> str:
    value = (result["rationale"] or {}).get(name)
    return "-" if value is None else f"{value:.3f}"


def check(methods: list[str], rows: int | None) -> None:
    """Raise SettingsError for a method without its package, and for a number of rows that is none."""
    if rows is not None and rows < 1:
        raise SettingsError(f"--rows is {rows}; allowed: a number from 1 upwards")
    for name in methods:
        package = METHODS[name][1]
        if package is not None and find_spec(package) is None:
            raise SettingsError(
                f"the method {name} needs the package {package}; install it with "
                f"`pip install -c constraints.txt {package}`, or leave the method out"
            )


def run(arguments: argparse.Namespace) -> None:
    """Compare, print, write."""
    check(arguments.methods, arguments.rows)
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    model = load_one(arguments.model)
    share = model.settings.select if arguments.share is None else arguments.share
    stream = read_documents(arguments.data, label=arguments.label, bad_rows=BadRows(skip=True))
    documents = list(islice(stream, arguments.rows))
    results = compare(model, documents, share=share, methods=arguments.methods, seed=arguments.seed)
    print(f"{len(documents):,} texts of {arguments.data}, share {share:g}")
    print(table(results, "mae" if isinstance(model.task, Regression) else "accuracy"))
    packages = ["torch", *(METHODS[name][1] for name in arguments.methods if METHODS[name][1])]
    record = {
        "model": str(arguments.model),
        "data": str(arguments.data),
        "label": arguments.label,
        "share": share,
        "documents": len(documents),
        "seed": arguments.seed,
        "threads": torch.get_num_threads(),
        "versions": {str(name): version(str(name)) for name in packages},
        "results": results,
    }
    if arguments.json:
        write_text(arguments.json, json.dumps(record, ensure_ascii=False, indent=1))


def command_line(description: str | None) -> argparse.ArgumentParser:
    """What is asked of a model's guider on some rows."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="the folder of a trained infocal model")
    parser.add_argument("data", type=Path, help="labelled rows, with human rationales where there are any")
    parser.add_argument("--label", default="label", help="the column of the label")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, help="of torch")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    return parser


def main() -> None:
    """Read the command line."""
    parser = command_line(__doc__)
    parser.add_argument("--share", type=float, help="share of words; by default the model's own")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--rows", type=int, help="read so many rows only; lime and shap are slow")
    try:
        run(parser.parse_args())
    except InfocalError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
