"""Quality on real data: trains with the package's defaults, scores the test split, writes docs/results.md.

    python benchmarks/quality.py run --data ../shared/data --vectors ../shared/vectors/glove-100d.txt.gz
    python benchmarks/quality.py report

Every run is one JSON file in ``benchmarks/results``; runs that are there already are skipped, so the command can
be stopped and started again. Nothing is chosen on test or on rationale labels: the settings are the package's
defaults, the share is the one stated here.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[1] / "docs" / "results.md"


@dataclass(frozen=True)
class Job:
    """One training run."""

    data: str
    label: str
    select: float
    seed: int
    vectors: bool
    rows: int | None = None
    task: str = "auto"

    @property
    def name(self) -> str:
        """The name of its result file."""
        vectors = "glove" if self.vectors else "none"
        rows = f"-rows{self.rows}" if self.rows else ""
        return f"{self.data}-{self.label}-{self.select:g}-{vectors}{rows}-seed{self.seed}"


DATA = {
    "restaurant": ("restaurant", "label", 0.19, "auto"),
    "tweets": ("tweets", "label", 0.30, "auto"),
    "toxic": ("hatexplain", "toxic", 0.33, "auto"),
    "classes": ("hatexplain", "label", 0.33, "auto"),
    "hotel": ("hotel", "cleanliness", 0.10, "regress"),
}


def jobs(suites: list[str], seeds: list[int]) -> list[Job]:
    """The runs of the named suites, the most telling first."""
    found: list[Job] = []
    for suite in suites:
        for seed in seeds:
            for data, label, share, task in DATA.values():
                if suite in ("main", "no-vectors"):
                    found.append(Job(data, label, share, seed, suite == "main", task=task))
                elif suite == "shares":
                    found += [Job(data, label, s, seed, True, task=task) for s in (0.1, 0.2, 0.3) if s != share]
            if suite == "small":
                found.append(Job("tweets", "label", 0.30, seed, True, rows=500))
    return list(dict.fromkeys(found))


def decorrelated(source: Path, target: Path, *, count: int, seed: int = 0) -> None:
    """Hotel reviews whose cleanliness is told apart from the other ratings, without their first 12 words.

    As Lei et al. did for beer: reviews are drawn so that cleanliness says little of the other aspects. Here the
    rows of each (cleanliness, rounded mean of the other ratings) cell are drawn in equal numbers.
    """
    aspects = ("overall", "value", "rooms", "location", "service")
    cells: dict[tuple[int, int], list[dict[str, object]]] = {}
    with gzip.open(source, "rt", encoding="utf-8") as stream:
        for line in stream:
            row = json.loads(line)
            others = [row[a] for a in aspects if row.get(a) is not None and row[a] > 0]
            score = row.get("cleanliness")
            words = row["text"].split(" ")[12:]
            if score is None or not 1 <= score <= 5 or not others or len(words) < 20:
                continue
            item = {"text": " ".join(words), "cleanliness": score}
            cells.setdefault((score, round(statistics.mean(others))), []).append(item)
    generator = random.Random(seed)
    for rows in cells.values():
        generator.shuffle(rows)
    order = sorted(cells)
    drawn: list[dict[str, object]] = []
    while len(drawn) < count and any(cells.values()):
        for cell in order:
            if cells[cell] and len(drawn) < count:
                drawn.append(cells[cell].pop())
    generator.shuffle(drawn)
    with gzip.open(target, "wt", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in drawn)


def files(job: Job, data: Path, scratch: Path) -> dict[str, Path]:
    """Train, dev and test file of a job, made where the protocol changes the data."""
    if job.data == "hotel":
        counts = {"train": 20_000, "dev": 2_000, "test": 2_500}
        made = {part: scratch / f"hotel-{part}.jsonl.gz" for part in counts}
        for part, count in counts.items():
            if not made[part].exists():
                partial = scratch / f"{os.getpid()}-{part}.jsonl.gz"
                decorrelated(data / "hotel" / f"{part}.jsonl.gz", partial, count=count)
                partial.replace(made[part])
        return made
    found = {part: data / job.data / f"{part}.jsonl" for part in ("train", "dev", "test")}
    if job.rows:
        small = scratch / f"{job.data}-{job.rows}.jsonl"
        lines = found["train"].read_text(encoding="utf-8").splitlines(keepends=True)[: job.rows]
        small.write_text("".join(lines), encoding="utf-8")
        found["train"] = small
    return found


def run_one(job: Job, data: Path, vectors: Path, threads: int, changes: list[str]) -> dict[str, object]:
    """Train and score one job in this process, as the command line would."""
    import torch
    from machine import machine

    from infocal.config import load_settings
    from infocal.data.readers import BadRows, read_documents
    from infocal.fitting import fit

    torch.set_num_threads(threads)
    scratch = Path(tempfile.gettempdir()) / "infocal-quality"
    scratch.mkdir(exist_ok=True)
    paths = files(job, data, scratch)
    fixed = [f"text.vectors={vectors}"] if job.vectors else []
    settings = load_settings("infocal", [*fixed, *changes], select=job.select, seed=job.seed, task=job.task)

    def read(part: str):  # noqa: ANN202
        return read_documents(paths[part], label=job.label, bad_rows=BadRows(skip=True))

    told: list[str] = []
    began, cpu = time.perf_counter(), time.process_time()
    model = fit(
        read("train"),
        settings,
        dev=None if job.rows else read("dev"),
        source=job.data,
        tell=told.append,
        bad_rows=BadRows(skip=True),
    )
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    read_rationales = job.data != "hotel" and job.select == next(d[2] for d in DATA.values() if d[0] == job.data)
    scores = {
        decoder: model.evaluate(read("test"), decoder=decoder, source=job.data, bad_rows=BadRows(skip=True))
        for decoder in (("average", "equal", "spans", "spans-equal") if read_rationales else ("average", "spans"))
    }
    examples = []
    if job.data == "hotel":
        import itertools

        rows = list(itertools.islice(read("test"), 20))
        kept = ("label", "prediction", "rationale", "share")  # the texts themselves stay where they are
        examples = [
            {name: value for name, value in explanation.to_dict().items() if name in kept}
            for explanation in model.explain_documents(rows, decoder="spans")
        ]
    return {
        "job": asdict(job),
        "changes": changes,
        "train_seconds": round(seconds, 1),
        "train_cpu_seconds": round(cpu, 1),
        "threads": threads,
        "told": told,
        "rounds": model.record["training"]["rounds"],
        "span_cost": model.decoding.span_cost,
        "window": model.settings.loss.calibration_window,
        "test": scores,
        "examples": examples,
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine(),
    }


def run(arguments: argparse.Namespace) -> None:
    """Run what is missing, some jobs at a time, each in its own process."""
    out = Path(arguments.results)
    out.mkdir(parents=True, exist_ok=True)
    chosen = [
        job
        for job in jobs(arguments.suites, arguments.seeds)
        if (not arguments.only or job.data in arguments.only or job.label in arguments.only)
        and not (out / f"{job.name}.json").exists()
    ]
    running: list[tuple[subprocess.Popen[bytes], Job]] = []
    while chosen or running:
        while chosen and len(running) < arguments.processes:
            job = chosen.pop(0)
            if (out / f"{job.name}.json").exists():
                continue
            command = [sys.executable, __file__, "one", json.dumps(asdict(job)), "--data", arguments.data]
            command += ["--vectors", arguments.vectors, "--results", str(out), "--threads", str(arguments.threads)]
            for change in arguments.changes:
                command += ["--set", change]
            running.append((subprocess.Popen(command), job))
        time.sleep(0.5)
        for process, job in list(running):
            if process.poll() is not None:
                running.remove((process, job))
                print(
                    job.name, "done" if process.returncode == 0 else f"FAILED ({process.returncode})", flush=True
                )


def one(arguments: argparse.Namespace) -> None:
    """One job, its result written in one step."""
    from infocal.files import write_text

    job = Job(**json.loads(arguments.job))
    result = run_one(job, Path(arguments.data), Path(arguments.vectors), arguments.threads, arguments.changes)
    write_text(Path(arguments.results) / f"{job.name}.json", json.dumps(result, ensure_ascii=False, indent=1))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("run", "one"):
        sub = verbs.add_parser(verb)
        if verb == "one":
            sub.add_argument("job")
        sub.add_argument("--data", default="../shared/data")
        sub.add_argument("--vectors", default="../shared/vectors/glove-100d.txt.gz")
        sub.add_argument("--results", default=str(RESULTS))
        sub.add_argument("--threads", type=int, default=1)
        sub.add_argument("--set", dest="changes", action="append", default=[])
        if verb == "run":
            sub.add_argument("--processes", type=int, default=2)
            sub.add_argument("--suites", nargs="+", default=["main", "no-vectors", "shares", "small"])
            sub.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
            sub.add_argument("--only", nargs="+", default=[])
    report = verbs.add_parser("report")
    report.add_argument("--results", default=str(RESULTS))
    report.add_argument("--data", default="../shared/data")
    arguments = parser.parse_args()
    if arguments.verb == "report":
        from quality_report import write_page

        write_page(Path(arguments.results), PAGE, Path(arguments.data))
    else:
        {"run": run, "one": one}[arguments.verb](arguments)


if __name__ == "__main__":
    main()
