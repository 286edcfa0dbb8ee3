"""docs/results.md from the JSON files that quality.py wrote."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from infocal.markup import markdown_table

Run = dict[str, Any]

BARS = {
    ("restaurant", "label"): {"f1": 0.55, "worst": 0.52, "spans": 0.60, "accuracy": 0.72, "seconds": 240},
    ("tweets", "label"): {"f1": 0.41, "worst": 0.39, "accuracy": 0.84, "seconds": 180},
    ("hatexplain", "toxic"): {"f1": 0.45, "worst": 0.43, "accuracy": 0.72, "seconds": 300},
    ("hatexplain", "label"): {"accuracy": 0.60, "seconds": 300},
    ("hotel", "cleanliness"): {"seconds": 900},
}
GOLD_SHARE = {"restaurant": 0.19, "tweets": 0.30, "hatexplain": 0.33, "hotel": 0.10}


def load(folder: Path) -> list[Run]:
    """All runs, in a fixed order."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]


def groups(runs: Iterable[Run], *names: str) -> dict[tuple[Any, ...], list[Run]]:
    """Runs that differ in the seed only, by the named fields of their jobs."""
    found: dict[tuple[Any, ...], list[Run]] = {}
    for run in runs:
        found.setdefault(tuple(run["job"][name] for name in names), []).append(run)
    return found


def values(runs: list[Run], get: Callable[[Run], float | None]) -> list[float]:
    """One figure of each run, where it has it."""
    return [value for run in runs if (value := get(run)) is not None]


def spread(numbers: list[float], digits: int = 3) -> str:
    """Mean and each seed."""
    if not numbers:
        return "-"
    return f"{statistics.mean(numbers):.{digits}f} ({' / '.join(f'{n:.{digits}f}' for n in numbers)})"


def f1(decoder: str) -> Callable[[Run], float | None]:
    """Micro token F1 on test of one decoder."""

    def get(run: Run) -> float | None:
        rationale = run["test"].get(decoder, {}).get("rationale")
        return None if rationale is None else float(rationale["f1"])

    return get


def task_figure(run: Run, *, full_text: bool = False) -> float:
    """Accuracy, or MSE of a score, on test."""
    figures = run["test"]["average"]["full_text"] if full_text else run["test"]["average"]
    return float(figures["accuracy"] if "accuracy" in figures else figures["mse"])


def seconds(run: Run) -> float:
    """Training time: of the processor for runs that shared the machine, by the clock for those that had it."""
    return float(run["train_cpu_seconds"] if run["threads"] == 1 else run["train_seconds"])


def quality_table(runs: list[Run]) -> str:
    """One row per data set."""
    rows = []
    for (data, label), group in groups(runs, "data", "label").items():
        rows.append(
            [
                f"{data}, {label}",
                f"{group[0]['job']['select']:g}",
                spread(values(group, f1("average"))),
                spread(values(group, f1("equal"))),
                spread(values(group, f1("spans"))),
                spread(values(group, f1("spans-equal"))),
                spread([task_figure(run) for run in group]),
                spread([task_figure(run, full_text=True) for run in group]),
                spread([run["test"]["average"]["selected"] for run in group]),
                spread([seconds(run) for run in group], 0),
            ]
        )
    header = ["data, label", "asked", "F1", "F1, equal share", "F1, spans", "F1, spans, equal share"]
    header += ["accuracy / MSE", "guider's own", "measured share", "training s"]
    return markdown_table(header, rows)


def verdicts(runs: list[Run]) -> str:
    """Each bar, and whether it was reached."""
    lines = []
    for (data, label), group in groups(runs, "data", "label").items():
        bar, name = BARS.get((data, label), {}), f"{data}, {label}"
        figures = values(group, f1("average"))
        checks = {
            "f1": ("mean F1", statistics.mean(figures) if figures else None, True),
            "worst": ("worst seed", min(figures) if figures else None, True),
            "spans": ("mean F1, spans", statistics.mean(values(group, f1("spans")) or [0]), True),
            "accuracy": ("mean accuracy", statistics.mean(task_figure(run) for run in group), True),
            "seconds": ("longest training, s", max(seconds(run) for run in group), False),
        }
        for key, (title, found, upwards) in checks.items():
            if key in bar and found is not None:
                reached = found >= bar[key] if upwards else found <= bar[key]
                sign = ">=" if upwards else "<="
                lines.append([name, title, f"{found:.3f}", f"{sign} {bar[key]:g}", "yes" if reached else "**no**"])
        if data == "hotel":
            ratio = statistics.mean(task_figure(run) / task_figure(run, full_text=True) for run in group)
            lines.append(
                [name, "MSE / guider's MSE", f"{ratio:.3f}", "<= 1.15", "yes" if ratio <= 1.15 else "**no**"]
            )
    return markdown_table(["data", "what", "found", "bar", "reached"], lines)


def majorities(data: Path) -> dict[tuple[str, str], float]:
    """The accuracy of always naming the most frequent class of the test rows, per data set and label."""
    found = {}
    for name, label in BARS:
        path = data / name / "test.jsonl"
        if path.exists():
            labels = [str(json.loads(line)[label]) for line in path.read_text(encoding="utf-8").splitlines()]
            found[name, label] = Counter(labels).most_common(1)[0][1] / len(labels)
    return found


def lost_without_vectors(main: list[Run], bare: list[Run]) -> str:
    """What the vectors are worth, in points of F1, on the seeds that both have."""
    rows = []
    for key, group in groups(bare, "data", "label").items():
        seeds = {run["job"]["seed"] for run in group}
        others = [run for run in groups(main, "data", "label").get(key, []) if run["job"]["seed"] in seeds]
        with_vectors, without = (values(runs, f1("average")) for runs in (others, group))
        if with_vectors and without:
            loss = statistics.mean(with_vectors) - statistics.mean(without)
            rows.append(
                [", ".join(key), str(len(without)), f"{100 * loss:.1f}", "yes" if loss <= 0.04 else "**no**"]
            )
    return markdown_table(["data, label", "seeds", "points of F1 less", "at most 4"], rows)


def share_table(runs: list[Run], majority: dict[tuple[str, str], float]) -> str:
    """Measured against requested shares, and accuracy against the majority class."""
    rows = []
    for (data, label, share, vectors), group in sorted(groups(runs, "data", "label", "select", "vectors").items()):
        measured = [run["test"]["average"]["selected"] for run in group]
        worst = max(abs(value / share - 1) for value in measured)
        rows.append(
            [
                f"{data}, {label}",
                f"{share:g}",
                "GloVe" if vectors else "none",
                str(len(group)),
                spread(measured),
                f"{worst:.1%}",
                "yes" if worst <= 0.15 else "**no**",
                spread([task_figure(run) for run in group]),
                f"{majority[data, label]:.3f}" if (data, label) in majority else "-",
            ]
        )
    header = ["data, label", "asked", "vectors", "seeds", "measured share", "worst deviation", "within 15 %"]
    return markdown_table([*header, "accuracy / MSE", "majority class"], rows)


def examples(runs: list[Run]) -> str:
    """Twenty hotel reviews with their highlights."""
    found = next((run for run in runs if run["examples"]), None)
    if found is None:
        return "Not run."
    lines = []
    for number, item in enumerate(found["examples"], 1):
        phrases = " … ".join(phrase.replace("|", " ").replace("\n", " ") for phrase in item["rationale"])
        lines.append(f"{number}. rated {item['label']:g}, predicted {item['prediction']:.1f}: {phrases}")
    return "\n".join(lines)


def write_page(results: Path, page: Path, data: Path) -> None:
    """Write docs/results.md; the hand-written remarks are in benchmarks/remarks.md."""
    runs = load(results)
    main = [r for r in runs if r["job"]["vectors"] and not r["job"]["rows"]]
    main = [r for r in main if r["job"]["select"] == GOLD_SHARE[r["job"]["data"]]]
    bare = [r for r in runs if not r["job"]["vectors"]]
    small = [r for r in runs if r["job"]["rows"]]
    large = [r for r in runs if not r["job"]["rows"]]
    remarks = Path(__file__).with_name("remarks.md").read_text(encoding="utf-8")
    dates = sorted({run["date"] for run in runs})
    machines = sorted({run.get("machine", "Intel Xeon, 2 cores") for run in runs})
    parts = [
        "# Results on real data",
        "Written by `python benchmarks/quality.py report` from the runs in `benchmarks/results`, each made by "
        f"`python benchmarks/quality.py run` on {' and '.join(dates)} ({'; '.join(machines)}; one thread "
        "per run and two runs at a time, torch 2.13.0). Defaults of the package, the share as stated; figures are "
        "test figures, mean and each seed. F1 is micro token F1 as `infocal evaluate` prints it. Training seconds "
        "are processor seconds of the one thread, reading and encoding included; of runs with two threads "
        "(`--threads 2 --processes 1`) they are seconds by the clock.",
        remarks,
        "## Quality, with GloVe vectors",
        quality_table(main),
        "## Against the bars",
        verdicts(main),
        "## Without any vectors",
        quality_table(bare) if bare else "Not run.",
        lost_without_vectors(main, bare) if bare else "",
        "## 500 rows of tweets",
        quality_table(small) if small else "Not run.",
        "## Is the requested share kept?",
        share_table(large, majorities(data)),
        "## Hotel reviews, cleanliness: what is highlighted",
        "The first twenty reviews of the de-correlated test part, span decoder, seed 0.",
        examples(main),
    ]
    section = Path(__file__).parent / "contest" / "section.md"
    if section.exists():
        parts += [
            "## Methods side by side",
            "Written by `python benchmarks/contest.py report` from runs of `python benchmarks/contest.py run` on "
            "2026-11-16 and later (Intel Xeon and AMD EPYC, 2 cores; one thread per run and two runs at a time, "
            "torch 2.13.0). Seconds of different rows are of different machines, now and then shared with other "
            "work.",
            section.read_text(encoding="utf-8").strip(),
        ]
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
