"""Two hundred classes, few rows of most of them: which are still found, and what `loss.balance` does for them.

    python benchmarks/many_classes.py run --seeds 3
    python benchmarks/many_classes.py show

The rows are made up, since the court cases at hand have 100 charges of three cases or more: class k has 600 / k
rows, three at least, so that 100 of the 200 have five or fewer. A text is 24 words: a word of its class (nine
texts of ten), a word of its family, which a frequent class shares with three rarer ones, now and then the word of
another class, and words that mean nothing. Test rows are as many and as unequal. Trained with the package's
defaults; what a run found is kept in `benchmarks/legal/made-up.json`, and runs that are there are not done again.
`python benchmarks/legal.py report` puts the table on its page.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import date
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from legal_rare import READERS, SIZES, by_size
from machine import machine

from infocal import Document, fit
from infocal.config import load_settings
from infocal.evaluation.predictions import classification_scores
from infocal.files import write_text
from infocal.legal.processes import end_with_parent
from infocal.markup import markdown_table
from infocal.rationalizer import Rationalizer

KEPT = Path(__file__).parent / "legal" / "made-up.json"
CLASSES, FAMILIES, LENGTH, FILLERS = 200, 50, 24, 2000
BALANCES = (0.0, 0.5, 1.0)
OWN_WORD, OTHER_WORD = 0.9, 0.3


def rows_of_classes() -> np.ndarray:
    """How many rows each class has, (CLASSES,)."""
    return np.maximum(600 // np.arange(1, CLASSES + 1), 3)


def made_up(seed: int) -> list[Document]:
    """A corpus of all classes."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(CLASSES), rows_of_classes())
    common = 1 / np.arange(1, FILLERS + 1)
    common /= common.sum()
    documents = []
    for label in rng.permutation(labels).tolist():
        words = [f"filler{word}" for word in rng.choice(FILLERS, size=LENGTH, p=common)]
        told = [f"family{label % FAMILIES}"]
        told += [f"own{label}"] * (rng.random() < OWN_WORD)
        told += [f"own{rng.choice(labels)}"] * (rng.random() < OTHER_WORD)
        for place, word in zip(rng.choice(LENGTH, size=len(told), replace=False), told, strict=True):
            words[place] = word
        documents.append(Document(" ".join(words), f"class {label}"))
    return documents


def once(balance: float, seed: int) -> dict[str, Any]:
    """Train and score one model."""
    torch.set_num_threads(1)
    began = time.perf_counter()
    settings = load_settings(changes={"loss.balance": balance}, select=0.1, seed=seed)
    model = fit(made_up(2 * seed), settings)
    if not isinstance(model, Rationalizer):
        raise TypeError("one label was asked for")
    seconds = time.perf_counter() - began
    test = made_up(2 * seed + 1)
    explained = model.explain([row.text for row in test], full_text=True)
    numbers = {name: int(name.split()[1]) for name in (str(row.label) for row in test)}
    truth = np.array([numbers[str(row.label)] for row in test])
    readers: dict[str, Any] = {}
    for reader, answers in zip(
        READERS,
        ([one.prediction for one in explained], [one.full_text_prediction for one in explained]),
        strict=True,
    ):
        found = np.array([numbers[str(answer)] for answer in answers])
        scores = classification_scores(found, truth, classes=CLASSES)
        readers[reader] = {**scores, "found": by_size(found, truth, rows_of_classes())}
    print(f"balance {balance:g}, seed {seed}: {seconds:.0f} s", flush=True)
    return {"balance": balance, "seed": seed, "seconds": round(seconds), "readers": readers}


def run(seeds: int, processes: int) -> None:
    """Do what is missing."""
    kept = read(KEPT)
    done = {(record["balance"], record["seed"]) for record in kept}
    missing = [(balance, seed) for seed in range(seeds) for balance in BALANCES if (balance, seed) not in done]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=end_with_parent) as pool:
        work = {pool.submit(once, balance, seed): (balance, seed) for balance, seed in missing}
        for one in as_completed(work):
            if error := one.exception():  # the others are worth having
                print("balance {:g}, seed {}: failed: {}".format(*work[one], error), flush=True)
                continue
            about = {"date": date.today().isoformat(), "machine": machine(), "torch": torch.__version__}
            kept = sorted([*kept, about | one.result()], key=lambda record: (record["seed"], record["balance"]))
            write_text(KEPT, json.dumps(kept, indent=1) + "\n")
    print(made_up_table(kept))


def read(path: Path) -> list[dict[str, Any]]:
    """What is kept."""
    records: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return records


def made_up_table(kept: Sequence[Mapping[str, Any]]) -> str:
    """Means over the seeds, a line for each reader and balance."""
    rows = []
    for reader in READERS:
        for balance in BALANCES:
            runs = [record["readers"][reader] for record in kept if record["balance"] == balance]
            if not runs:
                continue
            figures = [[run[name] for run in runs] for name in ("macro_f1", "accuracy")]
            figures += [[run["found"][size] for run in runs if size in run["found"]] for size in SIZES]
            means = [f"{np.mean(values):.3f}" if values else "-" for values in figures]
            rows.append([reader, f"{balance:g}", *means, str(len(runs))])
    return markdown_table(["reads", "`loss.balance`", "macro F1", "accuracy", *SIZES, "seeds"], rows)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    sub = verbs.add_parser("run", help="train what is missing")
    sub.add_argument("--seeds", type=int, default=3)
    sub.add_argument("--processes", type=int, default=2)
    verbs.add_parser("show", help="print what is kept")
    arguments = parser.parse_args()
    if arguments.verb == "run":
        run(arguments.seeds, arguments.processes)
    else:
        print(made_up_table(read(KEPT)))


if __name__ == "__main__":
    main()
