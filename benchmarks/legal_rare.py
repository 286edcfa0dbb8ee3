"""How often rare charges are found, by how many training cases they have, of the models of legal.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infocal.data.encoded import EncodedFolder
from infocal.loading import load
from infocal.markup import markdown_table
from infocal.rationalizer import Rationalizer
from infocal.training.inference import full_text_outputs, outputs, token_scores

SIZES = {"up to 5": (0, 5), "6 to 30": (6, 30), "more than 30": (31, 10**9)}
"""Training cases of a class."""
READERS = ("chosen words", "all words")


def recalls(model: Path, cases: Path) -> dict[str, dict[str, dict[str, float]]]:
    """Part -> reader -> size of the class -> share of its cases that are found, of a model of the charge."""
    trained, folder = load(model), EncodedFolder.open(cases)
    if not isinstance(trained, Rationalizer):
        raise TypeError(f"{model} is of several labels")
    sizes = np.bincount(np.asarray(folder.part("train", "charge").targets), minlength=trained.task.outputs)
    found = {}
    for part in ("valid", "test"):
        corpus = folder.part(part, "charge")
        selected = trained.decoding.select(token_scores(trained.method, corpus), corpus.offsets)
        answers = (outputs(trained.method, corpus, selected), full_text_outputs(trained.method, corpus))
        targets = np.asarray(corpus.targets)
        found[part] = {
            reader: by_size(logits.argmax(axis=1), targets, sizes)
            for reader, logits in zip(READERS, answers, strict=True)
        }
    return found


def by_size(answers: NDArray[np.int64], targets: NDArray[np.int64], sizes: NDArray[np.int64]) -> dict[str, float]:
    """Size -> share of the cases of such classes that are found; a size without cases is left out."""
    right = answers == targets
    groups = {name: (sizes[targets] >= low) & (sizes[targets] <= high) for name, (low, high) in SIZES.items()}
    return {name: float(right[group].mean()) for name, group in groups.items() if group.any()}


def table(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """The means over the runs of ``recalls`` without the option ("plain") and with it ("balanced")."""
    rows = []
    for part in ("valid", "test"):
        for reader in READERS:
            sides = [[run[part][reader] for run in runs] for runs in found.values()]
            cells = [" -> ".join(_mean(size, side) for side in sides) for size in SIZES]
            rows.append([{"valid": "held out"}.get(part, part), reader, *cells, str(len(found["plain"]))])
    return markdown_table(["cases", "reads", *SIZES, "seeds"], rows)


def _mean(size: str, runs: Sequence[Mapping[str, float]]) -> str:
    values = [run[size] for run in runs if size in run]
    return f"{np.mean(values):.3f}" if values else "-"
