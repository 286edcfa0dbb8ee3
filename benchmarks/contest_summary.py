"""What a reader of the contest wants first: who is ahead, whether it is as asked, what each part is worth."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from contest_runs import ABLATIONS, AT_HALF, GRADIENTS, OURS, RIVALS, Field

from infocal.comparison.contests import contests, paired_t
from infocal.comparison.results import ACCURACY, F1, FULL_ACCURACY, THE_REST, Cell, Measure, Results
from infocal.comparison.tables import p_text
from infocal.markup import markdown_table, markdown_text

MEAN_RUN = next(measure for measure in THE_REST if measure.key == "mean_run")
MEANING = {
    "infocal": "the default: guider and token calibration, no L_g, no L_lm",
    "infocal-full": "all terms of the paper",
    "infocal-no-adv": "full - L_g",
    "infocal-no-lm": "full - L_lm",
    "infocal-no-adv-no-ib": "full - L_g - L_ib, the controller holds the share",
    "infocal-no-ib": "the default - L_ib: no price of a word at all",
    "infocal-hk": "full with fused lasso for L_lm (HK)",
    "infocal-no-calibration": "full - token calibration",
    "infocal-adversarial": "L_g, moving the selector alone, in the place of the token calibration",
    "infocal-no-adv-no-calibration": "the same - L_g",
    "infocal-no-guider": "the default without guider; as the paper counts, full - L_adv - L_lm",
    "infocal-no-guider-with-lm": "the same with L_lm; as the paper counts, full - L_adv",
    "printed": "every loss as printed",
}
PAIRS = {
    "L_adv as the paper counts it": ("infocal-full", "infocal-no-guider-with-lm"),
    "L_g beside the token calibration": ("infocal-full", "infocal-no-adv"),
    "L_g, moving the selector alone, instead of it": ("infocal-adversarial", "infocal-no-adv-no-calibration"),
    "L_lm": ("infocal-full", "infocal-no-lm"),
    "L_lm without a guider": ("infocal-no-guider-with-lm", "infocal-no-guider"),
    "L_ib and the controller": ("infocal", "infocal-no-ib"),
    "the token calibration": ("infocal-full", "infocal-no-calibration"),
}
"""What a part is worth is what the first has more than the second."""
CLEAR_MARGIN, CLEAR_P, PRICE = 0.10, 0.01, 0.015
MUST_LEAD_CLEARLY = ("restaurant",)


@dataclass(frozen=True)
class Outcome:
    """What came out in a field, by decoder.

    Attributes:
        field: which.
        results: decoder -> runs.
        slow: post-hoc method that has read some texts only -> how far InfoCal is ahead in F1 on those.
    """

    field: Field
    results: dict[str, Results]
    slow: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def shown(self) -> Results:
        """With one threshold for all texts."""
        return self.results["average"]


def overview(outcomes: Sequence[Outcome], methods: Sequence[str], decoder: str = "average") -> str:
    """F1 of everybody in every field by one decoder; the best of a column in bold."""
    results = [one.results[decoder] for one in outcomes]
    means = [{name: one.cell(name, F1).mean or 0.0 for name in methods} for one in results]
    best = [max(found, key=lambda name: found[name]) for found in means]
    rows = []
    for name in methods:
        cells = [one.cell(name, F1) for one in results]
        if any(cell.count for cell in cells):
            texts = [in_points(cell) for cell in cells]
            bold = [f"**{text}**" if name == first else text for text, first in zip(texts, best, strict=True)]
            rows.append([name, *bold, seeds_of(cells)])
    header = [f"{one.field.name} {100 * one.field.share:g} %" for one in outcomes]
    return markdown_table(["method", *header, "seeds"], rows)


def in_points(cell: Cell, digits: int = 1) -> str:
    """Mean and deviation in points."""
    if cell.mean is None:
        return "-"
    deviation = "" if cell.deviation is None else f" ± {100 * cell.deviation:.{digits}f}"
    return f"{100 * cell.mean:.{digits}f}{deviation}"


def seeds_of(cells: Sequence[Cell]) -> str:
    """How many there were."""
    counts = sorted({cell.count for cell in cells if cell.count})
    return " to ".join(str(count) for count in (counts if len(counts) < 2 else (counts[0], counts[-1])))


def verdicts(outcomes: Sequence[Outcome]) -> str:
    """Each thing that was asked of InfoCal, and whether it is so."""
    rows = []
    for one in outcomes:
        if OURS in one.shown.finished:
            rows += [[f"{one.field.name} {100 * one.field.share:g} %", *row] for row in _verdicts(one)]
    return markdown_table(["data", "asked", "found", "so?"], rows)


def _verdicts(one: Outcome) -> list[list[str]]:
    results = one.shown
    rivals = [name for name in (*RIVALS, *GRADIENTS) if name in results.finished]
    rows = []
    if one.field.name in MUST_LEAD_CLEARLY:
        for name in (name for name in RIVALS if name in results.finished):
            gap, p = gap_of(results, name)
            found = f"{100 * gap:+.1f}, p {'-' if p is None else f'{p:.4f}'}"
            if results.reads_full_text(name):
                rows.append([f"F1 over {name}, a part of which reads the full text too", found, said(gap > 0)])
            else:
                clear = said(gap >= CLEAR_MARGIN and p is not None and p < CLEAR_P)
                open_yet = gap >= CLEAR_MARGIN and p is None
                rows.append(
                    [f"F1 10 points over {name}, p < .01", found, "too few seeds for p" if open_yet else clear]
                )
    if rivals:
        ahead = max(rivals, key=lambda name: results.cell(name, F1).mean or -math.inf)
        gap, _ = gap_of(results, ahead)
        allowed = error_of(results, ahead)
        error = "standard error unknown" if allowed is None else f"standard error {100 * allowed:.1f}"
        rows.append(
            [
                "F1 first, or within a standard error of the first",
                f"{100 * gap:+.1f} to {ahead}, {error}",
                "too few seeds" if allowed is None and gap < 0 else said(gap >= -(allowed or 0.0)),
            ]
        )
    rows += [
        [f"F1 over {name}, on the texts that it has read", f"{100 * gap:+.1f}", said(gap > 0)]
        for name, gap in one.slow.items()
    ]
    price = price_of(results)
    rows.append(["accuracy within 1.5 points of its guider's", f"{100 * price:+.1f}", said(price >= -PRICE)])
    runs = {name: results.cell(name, MEAN_RUN).mean or 0.0 for name in (OURS, *RIVALS) if name in results.finished}
    level = {
        name: run
        for name, run in runs.items()
        if gap_of(results, name)[0] <= (error_of(results, name) or 0.0) or name == OURS
    }
    longest = max(level, key=lambda name: level[name])
    others = ", ".join(f"{name} {run:.2f}" for name, run in runs.items() if name != OURS)
    rows.append(
        [
            "longest mean run among learned methods of its F1 or more",
            f"{runs[OURS]:.2f} words ({others})",
            said(longest == OURS),
        ]
    )
    return rows


def gap_of(results: Results, other: str) -> tuple[float, float | None]:
    """How far InfoCal is ahead in F1 on the seeds that both have, and p over the seeds."""
    gaps = gaps_of(results, other)
    return (statistics.fmean(gaps), paired_t(gaps, [0.0] * len(gaps))) if gaps else (-math.inf, None)


def gaps_of(results: Results, other: str, measure: Measure = F1, base: str = OURS) -> list[float]:
    """How far the base is ahead in a measure, for each seed that both have."""
    ours, theirs = results.values(base, measure), results.values(other, measure)
    return [ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]


def error_of(results: Results, other: str) -> float | None:
    """The standard error of the mean of that difference over the seeds; None of fewer than two."""
    gaps = gaps_of(results, other)
    return statistics.stdev(gaps) / math.sqrt(len(gaps)) if len(gaps) > 1 else None


def price_of(results: Results) -> float:
    """InfoCal's accuracy less that of its own guider."""
    ours, guider = results.values(OURS, ACCURACY), results.values(OURS, FULL_ACCURACY)
    return statistics.fmean(ours[seed] - guider[seed] for seed in ours)


def against_default(results: Results, name: str, measure: Measure) -> str:
    """In brackets, how far a recipe is ahead of the default in points."""
    gaps = gaps_of(results, OURS, measure, base=name) if name != OURS else []
    return f" ({100 * statistics.fmean(gaps):+.1f})" if gaps else ""


def parts_tested(outcomes: Sequence[Outcome]) -> str:
    """For each part, F1 with it less F1 without it, and whether seeds or texts explain that by chance."""
    rows = []
    for what, (with_it, without) in PAIRS.items():
        for one in outcomes:
            results = dataclasses.replace(one.shown, contenders=(with_it, without))
            for found in contests(results, reference=with_it):
                if found.measure is F1:
                    low, high = (f"{100 * value:+.1f}" for value in (found.documents.low, found.documents.high))
                    ps = [markdown_text(p_text(p)) for p in (found.p_seeds, found.documents.p)]
                    place = f"{one.field.name} {100 * one.field.share:g} %"
                    gap = f"{100 * found.difference:+.1f} ({low} to {high})"
                    rows.append([what, place, gap, *ps, str(found.seeds)])
    return markdown_table(["part", "data", "F1, 95 % interval", "p, seeds", "p, documents", "seeds"], rows)


def said(true: bool) -> str:
    """For a table."""
    return "yes" if true else "**no**"


def ablations(outcomes: Sequence[Outcome], *, half: bool = False) -> str:
    """What each part is worth: F1, F1 of spans, mean run and accuracy, at the gold share or at half of it.

    In brackets the difference to the default on the seeds that both have: means of different seeds may mislead.
    """
    chosen = [one for one in outcomes if one.field.half is half]
    rows = []
    for name in (OURS, *(AT_HALF if half else ABLATIONS)):
        cells = [name, MEANING[name]]
        for one in chosen:
            average, spans = one.results["average"], one.results["spans"]
            run = average.cell(name, MEAN_RUN).mean
            cells += [
                in_points(average.cell(name, F1)) + against_default(average, name, F1),
                in_points(Cell(spans.cell(name, F1).mean, None, 0)),
                "-" if run is None else f"{run:.2f}",
                in_points(Cell(average.cell(name, ACCURACY).mean, None, 0))
                + against_default(average, name, ACCURACY),
            ]
        counts = [one.shown.cell(name, F1) for one in chosen]
        if any(cell.count for cell in counts):
            rows.append([*cells, seeds_of(counts)])
    columns = [f"{one.field.name} {what}" for one in chosen for what in ("F1", "spans", "run", "acc.")]
    return markdown_table(["recipe", "what it is", *columns, "seeds"], rows)
