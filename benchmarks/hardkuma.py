"""How fast HardKuma trains here, against the same model with recurrences that step from token to token.

    python benchmarks/hardkuma.py [--threads 2] [--documents 1024]

Both train on the same texts of mixed length, 256 to a batch, and count real tokens only. The step-by-step model
takes batches in random order, padded to their longest text, as published code of the method does; ours takes those
of the package. Everything else, the gates and the constraints, is the same code.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
import torch
from stepwise_rcnn import StepwiseRCNN

from infocal.config import load_settings
from infocal.data.batches import fill, plan_batches
from infocal.methods import build_method
from infocal.methods.base import Conditions, Method
from infocal.nn.embedding import TokenEmbedding
from infocal.settings import Settings
from infocal.tasks import Regression
from infocal.types import Batch

WORDS, BATCH = 20_000, 256


def corpus(documents: int) -> list[np.ndarray]:
    """Texts of mixed length, about 120 tokens in the middle, as beer reviews have."""
    rng = np.random.default_rng(0)
    lengths = rng.lognormal(np.log(120), 0.6, documents).astype(int).clip(10, 500)
    return [rng.integers(1, WORDS, length) for length in lengths]


def collate(texts: list[np.ndarray], rows: np.ndarray) -> Batch:
    """A padded batch with random targets."""
    longest = max(len(texts[row]) for row in rows)
    ids = np.zeros((len(rows), longest), dtype=np.int64)
    for place, row in enumerate(rows):
        ids[place, : len(texts[row])] = texts[row]
    given = torch.from_numpy(ids)
    return Batch(ids=given, mask=given > 0, rows=torch.from_numpy(rows), targets=torch.rand(len(rows)))


def model(settings: Settings, *, stepwise: bool) -> Method:
    """HardKuma; with ``stepwise`` its two recurrences call modules for each token."""
    torch.manual_seed(0)
    fixed = torch.arange(WORDS) > 0
    embedding = TokenEmbedding(size=WORDS, width=settings.text.width, frozen=fixed)
    embedding.frozen.normal_()
    method = build_method(settings, embedding=embedding, task=Regression(0.0, 1.0, 0.1))
    if stepwise:
        for part in (method.selector, method.predictor):
            cells = StepwiseRCNN(input_width=settings.text.width, hidden_width=settings.encoder.hidden_width)
            part.encoder.layers[0] = cells
    return method.train()


def one_pass(method: Method, texts: list[np.ndarray], plan: list[np.ndarray]) -> float:
    """Real tokens per second over all batches, optimizer included."""
    parameters = [p for p in method.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(parameters, lr=1e-4)
    conditions = Conditions("joint", 0.0, torch.Generator().manual_seed(0))
    batches = [collate(texts, rows) for rows in plan]
    began = time.perf_counter()
    for batch in batches:
        optimizer.zero_grad(set_to_none=True)
        sum(value.mean() for value in method.step(batch, conditions).objectives.values()).backward()
        optimizer.step()
    return sum(len(text) for text in texts) / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--documents", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    texts = corpus(options.documents)
    lengths = np.array([len(text) for text in texts])
    settings = load_settings(method="hardkuma", changes={"encoder.hidden_width": 200, "text.width": 200})
    order = np.random.default_rng(1).permutation(len(texts))
    plans = {
        "step by step": [order[start : start + BATCH] for start in range(0, len(order), BATCH)],
        "here": plan_batches(lengths, tokens=10**9, documents=BATCH, rng=np.random.default_rng(1)),
    }
    methods = {name: model(settings, stepwise=name != "here") for name in plans}
    rates: dict[str, list[float]] = {name: [] for name in plans}
    for _ in range(options.repeats):
        for name, plan in plans.items():
            rates[name].append(one_pass(methods[name], texts, plan))
    found = {name: statistics.median(values) for name, values in rates.items()}
    print(f"HardKuma, RCNN 200, {len(texts):,} texts of {lengths.min()} to {lengths.max()} tokens, batch {BATCH}")
    for name, rate in found.items():
        filled = fill(plans[name], lengths)
        print(f"  {name:14}{rate:9.0f} real tokens/s   {filled:.3f} real tokens per padded position")
    print(f"  {found['here'] / found['step by step']:.2f}x (>= 3x wanted)")


if __name__ == "__main__":
    main()
