"""Runs that were never trained, for whatever only looks at their records."""

import numpy as np
import pytest

from infocal.comparison.results import Results
from infocal.decoding import DECODERS


def figures(share, f1, quality, *, scores):
    task = {"mse": quality} if scores else {"accuracy": quality}
    agreement = None
    if f1 is not None:
        agreement = {"precision": f1, "recall": f1 + 0.1, "f1": f1, "iou_f1": f1 / 2, "selected_share": share / 2}
    full = {"mse": 0.5} if scores else {"accuracy": 0.9}
    return {**task, "selected": share, "rationale": agreement, "full_text": full}


def record(name="a", seed=0, *, f1=0.5, quality=0.8, scores=False, documents=40, cases=None):
    """The record of one run; ``f1`` None means that nobody annotated anything."""
    rng = np.random.default_rng([seed, documents])
    counts = {"outcome": (rng.random(documents) < quality).astype(int).tolist()}
    if f1 is not None:
        gold = rng.integers(1, 5, documents)
        hits = rng.binomial(gold, min(1.0, f1))
        counts |= {"rows": list(range(documents)), "hits": hits.tolist()}
        counts |= {"selected": gold.tolist(), "gold": gold.tolist()}
    scored = figures(0.2, f1, quality, scores=scores) | {
        "faithfulness": {"sufficiency": 0.05, "comprehensiveness": 0.3},
        "fluency": {"mean_run": 2.5, "language_model": -4.5},
    }
    rounds = [
        {"phase": "warm_up", "round": 1, "dev": {}},
        *(
            {
                "phase": "joint",
                "round": n,
                "dev": {} if f1 is None else {"rationale": {"precision": f1, "recall": f1}},
            }
            for n in (1, 2)
        ),
    ]
    sweep = [
        {"share": share, **figures(share, f1, quality - 0.1 + share / 2, scores=scores)} for share in (0.1, 0.3)
    ]
    return {
        "identity": "x",
        "contender": name,
        "seed": seed,
        "state": "done",
        "settings": {"select": 0.2},
        "task": {"kind": "regress" if scores else "classify"},
        "data": {"test_rows": documents},
        "seconds": {"training": 10.0 + seed, "processor": 9.0},
        "rounds": rounds,
        "scores": dict.fromkeys(DECODERS, scored),
        "documents": dict.fromkeys(DECODERS, counts),
        "sweep": dict.fromkeys(DECODERS, sweep),
        "lines": list(range(1, documents + 1)),
        "human": None if f1 is None else {"selected": 0.14, "fluency": {"mean_run": 9.0, "language_model": -3.0}},
        "cases": dict.fromkeys(DECODERS, cases or {}),
    }


@pytest.fixture
def make_record():
    return record


@pytest.fixture
def make_results():
    """Results of contenders given as name -> list of (f1, quality), one per seed."""

    def make(given, *, scores=False, failures=(), **options):
        runs = {
            name: {
                seed: record(name, seed, f1=f1, quality=quality, scores=scores, **options)
                for seed, (f1, quality) in enumerate(pairs)
            }
            for name, pairs in given.items()
        }
        return Results(tuple(given), runs, tuple(failures), "average", dict.fromkeys(given, 0.2))

    return make
