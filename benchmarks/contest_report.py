"""The tables of the contest, made of the runs that are kept beside the code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import contest_runs
import numpy as np
from contest_runs import FEWER, FIELDS, GRADIENTS, OURS, RIVALS, SEEDS, SLOW, Record, guiders, kept
from contest_summary import Outcome, ablations, overview, parts_tested, verdicts

from infocal.comparison.contests import contests
from infocal.comparison.figures import write_figures
from infocal.comparison.results import Results
from infocal.comparison.tables import as_csv, as_markdown, p_text
from infocal.evaluation.significance import Difference, Ratios, paired_bootstrap
from infocal.files import write_text
from infocal.markup import markdown_table, markdown_text

DECODERS = {"average": "one threshold for all texts", "equal": "the same share of each", "spans": "spans"}


def report() -> None:
    """Write the tables, and the section of the results page."""
    outcomes, details, pictures = [], [], []
    for field in FIELDS:
        records, explained = kept(field), guiders(kept(field.gold))
        if not records:
            continue
        found = {
            decoder: collect(records, explained, (*field.methods, *GRADIENTS), decoder, field.share)
            for decoder in DECODERS
        }
        slow = against_slow(records, explained, "average")
        outcomes.append(Outcome(field, found, {one.name: one.difference.value for one in slow}))
        if not field.half:
            learned = collect(records, explained, (OURS, *RIVALS), "average", field.share)
            names = write_figures(contest_runs.FIGURES / field.name, learned)
            pictures += [f"![{field.name}, {name}](figures/{field.name}/{name}.png)" for name in names]
        for decoder, results in found.items():
            won = contests(results, reference=OURS)
            write_text(contest_runs.TABLES / f"{field.key}-{decoder}.csv", as_csv(results, won))
            if decoder == "average":
                title = f"### {field.name}, {100 * field.share:g} %\n"
                body = as_markdown(results, won).replace("# Comparison\n", title, 1)
                details += [body.replace("\n## ", "\n#### "), slow_table(slow)]
    parts = [*summary(outcomes), *illustrated(pictures), *details] if outcomes else ["No run has finished."]
    write_text(contest_runs.TABLES / "section.md", "\n\n".join(part.strip() for part in parts if part) + "\n")


def summary(outcomes: Sequence[Outcome]) -> list[str]:
    """What comes before the tables of each field."""
    everybody = (OURS, *RIVALS, *GRADIENTS)
    return [
        progress(outcomes),
        "### Token F1 of everybody",
        "Test rows, one threshold for all texts, points, mean ± standard deviation over the seeds. Tables of the "
        "other decoders are in `benchmarks/contest/*.csv`.",
        overview(outcomes, everybody),
        "One threshold keeps the share on average, and not to the word: what each method selected of the test "
        "texts stands in the tables below. With the same share of every text (`equal`) all have as many words:",
        overview(outcomes, everybody, "equal"),
        "### Against what was asked",
        verdicts(outcomes),
        "### What each part is worth",
        "At the gold share. F1 and accuracy in points, in brackets the difference to the default on the seeds "
        "that both have; run: mean number of words that a selected run has; spans: F1 of the span decoder.",
        ablations(outcomes),
        *(["At half of it:", ablations(outcomes, half=True)] if any(one.field.half for one in outcomes) else []),
        "With a part less without it, on the seeds that both have; p of a paired t-test over the seeds and of a "
        "paired bootstrap over the test documents, not corrected for how many there are:",
        parts_tested(outcomes),
    ]


def progress(outcomes: Sequence[Outcome]) -> str:
    """How much of the plan has been done."""
    planned = sum(field.planned for field in FIELDS)
    done = sum(
        min(len(one.shown.runs[name]), one.field.seeds_of(name))
        for one in outcomes
        for name in one.field.methods
        if name in one.shown.finished
    )
    plan = (
        f"{SEEDS} seeds each; {FEWER} of ablations, most of which are run at the gold share only, and of CAR on "
        "restaurant reviews and on toxic posts at the gold share, where a run takes more than ten minutes"
    )
    if done >= planned:
        return f"All {planned} runs of the plan are done ({plan})."
    return (
        f"{done} of the {planned} runs of the plan ({plan}) are done so far: the columns `seeds` and "
        "`runs` say how many stand behind a figure. `python benchmarks/contest.py run --runs DIR` does the rest."
    )


def illustrated(pictures: Sequence[str]) -> list[str]:
    """The figures of `infocal compare` for each data set."""
    return [
        "### Pictures",
        "At the gold share: accuracy when the trained models are shown fewer or more words than they were trained "
        "for, and agreement with the human on the held-out rows, round by round (no run was chosen by it; methods "
        "have as many rounds as their recipes give them).",
        *pictures,
    ]


def collect(
    records: Sequence[Record], explained: Mapping[int, str], methods: Sequence[str], decoder: str, share: float
) -> Results:
    """The runs of some methods, failed ones named.

    Args:
        records: of all runs.
        explained: seed -> the InfoCal run whose guider post-hoc methods explain; those of another are left out.
        methods: whom to take.
        decoder: the one to show.
        share: that was asked for.
    """
    found: dict[str, dict[int, dict[str, Any]]] = {name: {} for name in methods}
    failures = []
    for record in records:
        name, seed = record["contender"], record["seed"]
        if name not in found or record.get("of", explained.get(seed)) != explained.get(seed):
            continue
        if record["state"] == "done":
            found[name][seed] = record
        else:
            failures.append((name, seed, str(record.get("message", record["state"]))))
    names = tuple(name for name in methods if found[name])
    return Results(names, found, tuple(failures), decoder, dict.fromkeys(names, share))


@dataclass(frozen=True)
class Slow:
    """InfoCal against a method that has read some texts only.

    Attributes:
        name: of the method.
        f1: its F1 there.
        ours: InfoCal's F1 there.
        difference: ours less theirs, over the documents.
        seeds: how many.
        texts: how many.
    """

    name: str
    f1: float
    ours: float
    difference: Difference
    seeds: int
    texts: int


def against_slow(records: Sequence[Record], explained: Mapping[int, str], decoder: str) -> list[Slow]:
    """InfoCal against LIME and SHAP on the texts that those have read."""
    runs, found = collect(records, explained, (OURS, *SLOW), decoder, 0.0).runs, []
    for name in SLOW:
        seeds = sorted(set(runs[OURS]) & set(runs[name]))
        if not seeds:
            continue
        sides = [[counts(runs[side][seed], decoder) for seed in seeds] for side in (name, OURS)]
        common = sorted(set.intersection(*(set(one) for side in sides for one in side)))
        ratios = [
            Ratios.f1(*(np.array([[one[line][i] for one in side] for line in common]) for i in range(3)))
            for side in sides
        ]
        every = np.ones((1, len(common)))
        theirs, ours = (float(ratio.score(every)[0]) for ratio in ratios)
        found.append(Slow(name, theirs, ours, paired_bootstrap(ratios[1], ratios[0]), len(seeds), len(common)))
    return found


def slow_table(found: Sequence[Slow]) -> str:
    """The same as a table; empty if there is nothing."""
    header = ["method", "F1", "InfoCal's F1 there", "difference, 95 % interval", "p, documents", "seeds"]
    rows = []
    for one in found:
        low, high = (f"{100 * value:+.1f}" for value in (one.difference.low, one.difference.high))
        rows.append(
            [
                one.name,
                f"{100 * one.f1:.1f}",
                f"{100 * one.ours:.1f}",
                f"{100 * one.difference.value:+.1f} ({low} to {high})",
                markdown_text(p_text(one.difference.p)),
                f"{one.seeds}, {one.texts} texts",
            ]
        )
    return markdown_table(header, rows) if rows else ""


def counts(run: Record, decoder: str) -> dict[int, tuple[int, int, int]]:
    """Line -> hits, selected, gold, of the annotated documents."""
    part = run["documents"][decoder]
    lines = [run["lines"][row] for row in part["rows"]]
    return dict(zip(lines, zip(part["hits"], part["selected"], part["gold"], strict=True), strict=True))
