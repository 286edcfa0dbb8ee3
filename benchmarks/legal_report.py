"""docs/results-legal.md from what benchmarks/legal.py kept."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from legal_rare import table
from many_classes import made_up_table

from infocal.data.cail import TASKS
from infocal.markup import markdown_table
from infocal.reproduce.judgement_rows import ROWS
from infocal.reproduce.judgement_tables import markdown_report
from infocal.reproduce.judgements import NO_LAW, RESULT, Result

Record = tuple[str, str, int, dict[str, Any]]
"""Variant, row, seed and what was kept."""

BOTH = ("article", "charge")
PRICE, LEAD = 0.02, 0.03


def write_page(
    records: Sequence[Record],
    cases: Mapping[str, Any],
    remarks: str,
    *,
    planned: int,
    rare: Mapping[str, Any] | None = None,
    made_up: Sequence[Mapping[str, Any]] = (),
) -> str:
    """The page as Markdown; ``planned`` is how many runs there are to do in all.

    ``rare`` is of legal_rare.py, ``made_up`` of many_classes.py.
    """
    results, cold = results_of(records, "plain"), results_of(records, "unread", "unread-printed")
    facts = cases["plain"]
    data = {f"{part} cases": int(counts["cases"]) for part, counts in facts["summary"].items()}
    data |= {f"classes of {task}": count for task, count in facts["labels"].items()}
    plain = [record for variant, *_, record in records if variant == "plain"]
    notes = dict.fromkeys(note for record in plain for note in record[RESULT].get("notes", ()))
    if any(result.row == "fla" for result in results):
        notes[NO_LAW.format(known=0, all=facts["labels"]["article"])] = None
    body = markdown_report(results, TASKS, official=None, data=data, filters=facts["summary"], notes=list(notes))
    title, rest = body.split("\n", 1)
    parts = [
        title,
        "Written by `python benchmarks/legal.py report` from runs of `python benchmarks/legal.py run` on "
        f"{when([record for *_, record in records])}; one thread per run, several at a time). "
        "Test figures, mean ± standard deviation over the seeds; seconds are by the clock.",
        *([unfinished(len(records), planned)] if len(records) < planned else ()),
        remarks.strip(),
        "## Against what was asked",
        verdicts(results),
        rest.strip(),
        *(
            (
                "## What reading first gives the rivals",
                "Accuracy of Bernoulli and HardKuma that have read all words for a while before they choose, as "
                "above, and of the same that choose from the first step, as in their papers "
                "(`--set training.warm_up_rounds=0`; HardKuma with its paper's multipliers, from 1e-5 up to 5 at "
                "a rate of .05; the recipe's price of .2 closes all gates of a network that cannot read yet).",
                unread(results, cold),
            )
            if cold
            else ()
        ),
        "## Rare classes: `--set loss.balance=0.5`",
        "Charges of three cases or more in training and validation, most of which are rare. Mean over the seeds, "
        "without the option and with it, as often as both were run.",
        balance(
            results_of(records, "many"), results_of(records, "many-balanced"), cases["many"]["labels"]["charge"]
        ),
        *(
            (
                "Of these charges, the share of cases that is found, by how many training cases a charge has:",
                table(rare),
            )
            if rare
            else ()
        ),
        *(
            (
                "Two hundred made-up classes, 600 rows of the most frequent, three of the rarest "
                f"(`python benchmarks/many_classes.py run` on {when(made_up)}; one thread per run)). Every class "
                "has a word of its own, so that the rare ones can be known:",
                made_up_table(made_up),
            )
            if made_up
            else ()
        ),
    ]
    return "\n\n".join(parts) + "\n"


def when(records: Sequence[Mapping[str, Any]]) -> str:
    """The days and, behind an open bracket, the machines of some runs."""
    dates = sorted({record["date"] for record in records})
    machines = sorted({f"{record['machine']}, torch {record['torch']}" for record in records})
    return f"{' and '.join(dates)} ({'; '.join(machines)}"


def unfinished(done: int, planned: int) -> str:
    """What to say of a page that does not have all runs yet."""
    return (
        f"{done} of the {planned} runs of the plan are done so far: the columns `seeds` say how many stand behind "
        "a figure, and one seed proves little. `python benchmarks/legal.py run --out DIR` does the rest."
    )


def results_of(records: Sequence[Record], *variants: str) -> list[Result]:
    """The runs of some variants; several that answer one task each are several results."""
    return [
        Result(row, seed, record[RESULT]["tasks"], float(record[RESULT]["seconds"]))
        for own, row, seed, record in records
        if own in variants
    ]


def figures(
    results: Sequence[Result], row: str, task: str, get: Callable[[Mapping[str, Any]], Any]
) -> dict[int, float]:
    """Seed -> one figure of a row's run for a task, where it has it."""
    runs = {r.seed: r.tasks[task] for r in results if r.row == row and task in r.tasks}
    return {seed: float(value) for seed, run in runs.items() if (value := get(run)) is not None}


def mean(values: Mapping[int, float]) -> float | None:
    """Over the seeds; None of nothing."""
    return statistics.fmean(values.values()) if values else None


def accuracy(results: Sequence[Result], row: str, task: str) -> dict[int, float]:
    """Seed -> accuracy of a row."""
    return figures(results, row, task, lambda run: run["accuracy"])


def guider(results: Sequence[Result], row: str, task: str) -> dict[int, float]:
    """Seed -> accuracy of a row's own reader of all words."""
    return figures(results, row, task, lambda run: run.get("full_text", {}).get("accuracy"))


def verdicts(results: Sequence[Result]) -> str:
    """Each thing that was asked, and whether it is so."""
    rows = []
    for task in BOTH:
        ours, joint = accuracy(results, "infocal", task), accuracy(results, "infocal-joint", task)
        rows.append(
            _compared(task, "within 2 points of its own guider", ours, guider(results, "infocal", task), -PRICE)
        )
        for rival in ("bernoulli", "hardkuma"):
            what = f"3 points above {ROWS[rival].title}"
            rows.append(_compared(task, what, ours, accuracy(results, rival, task), LEAD))
        for rival in ("topjudge", "mpbfn"):
            what = f"all tasks in one at least level with {ROWS[rival].title}"
            rows.append(_compared(task, what, joint, accuracy(results, rival, task), 0.0))
    return markdown_table(["task", "asked of accuracy", "found", "so?"], rows)


def _compared(
    task: str, what: str, ours: Mapping[int, float], other: Mapping[int, float], least: float
) -> list[str]:
    """A row of the table, over the seeds that both have."""
    seeds = ours.keys() & other.keys()
    if not seeds:
        return [task, what, "-", "not run"]
    one, two = (statistics.fmean(side[seed] for seed in seeds) for side in (ours, other))
    so = "yes" if one - two >= least - 1e-9 else "**no**"
    count = f"{len(seeds)} seed{'s' if len(seeds) > 1 else ''}"
    return [task, what, f"{one:.3f} against {two:.3f}, {100 * (one - two):+.1f}, {count}", so]


def unread(results: Sequence[Result], without: Sequence[Result]) -> str:
    """Accuracy and share of the rivals with and without a warm-up on all words, on the seeds that have both."""
    rows = []
    for task in BOTH:
        ours = accuracy(results, "infocal", task)
        for rival in ("bernoulli", "hardkuma"):
            sides = [accuracy(runs, rival, task) for runs in (results, without)]
            seeds = sides[0].keys() & sides[1].keys() & ours.keys()
            if not seeds:
                rows.append([task, ROWS[rival].title, *["not run"] * 4, "0"])
                continue
            read, cold, own = (statistics.fmean(side[seed] for seed in seeds) for side in (*sides, ours))
            shares = figures(without, rival, task, lambda run: run["selected"])
            share = f"{100 * statistics.fmean(shares[seed] for seed in seeds):.1f}"
            lead = f"{100 * (own - cold):+.1f}"
            rows.append([task, ROWS[rival].title, f"{read:.3f}", f"{cold:.3f}", share, lead, str(len(seeds))])
    heads = ["task", "row", "reads first", "does not", "its %S", "InfoCal's lead over the latter", "seeds"]
    return markdown_table(heads, rows)


def balance(plain: Sequence[Result], balanced: Sequence[Result], classes: int, task: str = "charge") -> str:
    """Macro F1, macro recall and accuracy without the option and with it, on the seeds that have both.

    Of the predictor, which reads the chosen words, and of its guider, which reads all.
    """
    names = {"macro_f1": "macro F1", "macro_recall": "macro recall", "accuracy": "accuracy"}
    readers = {"chosen words": lambda run: run, "all words": lambda run: run.get("full_text", {})}
    rows = []
    for reader, part in readers.items():
        cells, seeds = [], set[int]()
        for name in names:
            pick = partial(_of_reader, part, name)
            both = [figures(runs, "infocal", task, pick) for runs in (plain, balanced)]
            seeds = both[0].keys() & both[1].keys()
            two = [mean({seed: side[seed] for seed in seeds}) for side in both]
            cells.append("not run" if None in two else f"{two[0]:.3f} -> {two[1]:.3f}")
        rows.append([task, str(classes), reader, *cells, str(len(seeds))])
    return markdown_table(["InfoCal", "classes", "reads", *names.values(), "seeds"], rows)


def _of_reader(part: Callable[[Mapping[str, Any]], Mapping[str, Any]], name: str, run: Mapping[str, Any]) -> Any:
    return part(run).get(name)
