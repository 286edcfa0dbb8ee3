"""The best contender against each other one: is it ahead by luck of the seed, or of the test documents?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infocal.comparison.results import F1, Measure, Results
from infocal.evaluation.significance import Difference, Ratios, paired_bootstrap

__all__ = ["Contest", "contests", "paired_t"]

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Contest:
    """One measure, the contender that is best in it, or that all are held against, and one of the others.

    Attributes:
        measure: what is compared.
        best: the contender that is ahead over all its seeds.
        other: the one that it is held against.
        seeds: how many seeds both have finished; the rest of the contest is about those.
        difference: mean of best - other.
        p_seeds: of a paired Student's t-test over the seeds; None where it cannot be computed.
        documents: of a paired bootstrap over the test documents.
    """

    measure: Measure
    best: str
    other: str
    seeds: int
    difference: float
    p_seeds: float | None
    documents: Difference


def contests(results: Results, *, reference: str | None = None) -> list[Contest]:
    """All contests in F1 and in the quality of predictions.

    Args:
        results: what came out.
        reference: the contender that the others are held against; None takes the best one of each measure.
    """
    return [c for measure in (F1, results.quality) for c in _contests(results, measure, reference)]


def paired_t(first: Sequence[float], second: Sequence[float]) -> float | None:
    """The two-sided p of a paired t-test; None for fewer than two pairs, or gaps that are all the same."""
    from scipy.stats import ttest_rel

    gaps = np.subtract(first, second)
    if len(gaps) < 2 or float(np.ptp(gaps)) <= 1e-12 * max(1.0, float(np.abs(gaps).max())):
        return None
    return float(ttest_rel(first, second).pvalue)


def _contests(results: Results, measure: Measure, reference: str | None) -> Iterator[Contest]:
    best = results.best(measure) if reference is None else reference
    if best is None or best not in results.finished:
        return
    ahead = results.values(best, measure)
    for other in results.finished:
        behind = results.values(other, measure)
        seeds = sorted(ahead.keys() & behind.keys())
        if other == best or not seeds:
            continue
        one, two = [ahead[seed] for seed in seeds], [behind[seed] for seed in seeds]
        pairs = [[results.runs[name][seed] for seed in seeds] for name in (best, other)]
        yield Contest(
            measure,
            best,
            other,
            len(seeds),
            float(np.mean(np.subtract(one, two))),
            paired_t(one, two),
            paired_bootstrap(*_ratios(pairs, measure, results.decoder)),
        )


def _ratios(pairs: Sequence[Sequence[Record]], measure: Measure, decoder: str) -> tuple[Ratios, Ratios]:
    """What the documents that all these runs have scored add to the measure, for either side."""
    every = [_lines(run, measure, decoder) for runs in pairs for run in runs]
    common = reduce(np.intersect1d, every)
    one, two = (_ratio(runs, measure, decoder, common) for runs in pairs)
    return one, two


def _ratio(runs: Sequence[Record], measure: Measure, decoder: str, common: NDArray[np.int64]) -> Ratios:
    def stack(name: str) -> NDArray[np.float64]:
        """(n, s), of the common documents."""
        columns = [
            np.asarray(run["documents"][decoder][name], dtype=np.float64)[
                np.isin(_lines(run, measure, decoder), common)
            ]
            for run in runs
        ]
        return np.stack(columns, axis=1)

    if measure is F1:
        return Ratios.f1(stack("hits"), stack("selected"), stack("gold"))
    return Ratios.mean(stack("outcome"))


def _lines(run: Record, measure: Measure, decoder: str) -> NDArray[np.int64]:
    """The lines of the documents that count for a measure, rising."""
    lines = np.asarray(run["lines"], dtype=np.int64)
    return lines[run["documents"][decoder]["rows"]] if measure is F1 else lines
