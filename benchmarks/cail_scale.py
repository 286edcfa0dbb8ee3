"""Preparing and training at the size of CAIL-big, on cases made of the sentences of real ones.

    python benchmarks/cail_scale.py make --data ../shared/data/cail --rows 1600000 --out big.json
    python benchmarks/cail_scale.py prepare --cases big.json --data ../shared/data/cail --out DIR
    python benchmarks/cail_scale.py train --prepared DIR --rows 100000

`make` writes cases whose facts are sentences of real cases of the same charge, drawn anew, and an amount drawn at
random, so that the number of different words grows with the cases, as in real ones. `prepare` runs the command,
kills it with -9 after half a million cases (`--kill-at`), starts it again, and prints the rate of each hundred
thousand cases that were not done yet, and the peak memory of all its processes together (what they share counts
once for each). `train` makes one pass over a slice, as the package does, and prints the rate and the memory of
each tenth of it: memory of its own (RssAnon), and with the pages of the file that the system keeps for it (VmRSS,
VmHWM).
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STEP = 100_000
SENTENCE = re.compile(r"[^。；]+[。；]?")


def make(arguments: argparse.Namespace) -> None:
    """Cases as many as wanted, of real sentences."""
    from infocal.data.cail import case_files, read_cases, why_dropped
    from infocal.data.records import BadRows

    cases = [
        case
        for file in case_files(arguments.data)
        for case in read_cases(file, bad_rows=BadRows())
        if why_dropped(case) is None
    ]
    sentences: dict[str, list[str]] = defaultdict(list)
    for case in cases:
        sentences[case.charges[0]] += SENTENCE.findall(case.fact)
    generator = random.Random(0)
    with Path(arguments.out).open("w", encoding="utf-8") as stream:
        for _ in range(arguments.rows):
            case = generator.choice(cases)
            pool = sentences[case.charges[0]]
            fact, length = [], 0
            while length < 600 and len(fact) < 40:  # about 400 words
                fact.append(generator.choice(pool))
                length += len(fact[-1])
            fact.append(f"共计价值人民币{generator.randrange(10**5, 10**9) / 100:.2f}元。")
            term = {"imprisonment": case.months, "life_imprisonment": case.gravest, "death_penalty": False}
            meta = {
                "accusation": case.charges,
                "relevant_articles": case.articles,
                "term_of_imprisonment": term,
            }
            stream.write(json.dumps({"fact": "".join(fact), "meta": meta}, ensure_ascii=False) + "\n")


CHILD = """
import json, sys, time
from pathlib import Path
from infocal.legal.prepare import Request, prepare_cases

if __name__ == "__main__":
    cases, valid, out, log = map(Path, sys.argv[1:5])
    began = time.time()
    with log.open("a") as stream:
        def progress(stage, rows, seconds):
            record = {"stage": stage, "rows": rows, "seconds": time.time() - began}
            print(json.dumps(record), file=stream, flush=True)
        parts = {"train": [cases], "valid": [valid]}
        prepare_cases(Request(parts=parts, out=out, processes=int(sys.argv[5])), progress=progress)
"""


def prepare(arguments: argparse.Namespace) -> None:
    """Prepare with a kill on the way, and say how it went."""
    out, log = Path(arguments.out), Path(arguments.out).with_suffix(".progress.jsonl")
    log.unlink(missing_ok=True)
    command = [sys.executable, "-c", CHILD, arguments.cases, str(Path(arguments.data) / "dev.json"), str(out)]
    command += [str(log), str(arguments.processes)]
    before = watch(command, until=lambda: rows_done_of(read(log)) >= arguments.kill_at)
    first = read(log)
    log.unlink()
    how = f"killed with -9 after {rows_done_of(first):,} cases"
    print(how if before.killed else "it ended before it could be killed")
    began = time.time()
    after = watch(command)
    second = read(log)
    print(f"the same command again: {time.time() - began:.0f} s")
    for title, records, done in (("before the kill", first, 0), ("after it", second, rows_done_of(first))):
        for stage in ("encode", "finish"):
            print_rates(
                f"{stage}, {title}",
                [r for r in records if r["stage"] == stage],
                done=done if stage == "encode" else 0,
            )
    print(
        f"peak memory of all processes together: {before.peak:.0f} MB before the kill, {after.peak:.0f} MB after"
    )
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    print(json.dumps(manifest["summary"], ensure_ascii=False, indent=1))


def read(log: Path) -> list[dict[str, Any]]:
    """What was logged; a line that was being written is left out."""
    lines = log.read_text().splitlines() if log.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


@dataclass(frozen=True)
class Watched:
    """How a command went: whether it was killed, and the most megabytes that its processes had together."""

    killed: bool
    peak: float


def watch(command: list[str], until: Callable[[], bool] = lambda: False) -> Watched:
    """Run a command to its end, or kill it and its processes with -9; SystemExit if it fails."""
    process, peak = subprocess.Popen(command, start_new_session=True), 0.0
    while process.poll() is None:
        peak = max(peak, group_memory(process.pid))
        if until():
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return Watched(killed=True, peak=peak)
        time.sleep(0.5)
    if process.returncode:
        raise SystemExit(process.returncode)
    return Watched(killed=False, peak=peak)


def group_memory(group: int) -> float:
    """Megabytes that the processes of a group have in memory."""
    total = 0.0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if os.getpgid(int(folder.name)) == group:
                total += status("VmRSS", folder / "status")
        except (OSError, StopIteration):  # it has ended
            continue
    return total


def rows_done_of(records: list[dict[str, Any]]) -> int:
    """How many cases the records speak of."""
    return max((record["rows"] for record in records if record["stage"] == "encode"), default=0)


def print_rates(title: str, records: list[dict[str, Any]], *, done: int = 0) -> None:
    """The rate of each hundred thousand behind those that were done before, and behind the first that was told.

    Some more may have been done than were told before a kill; the first hundred thousand behind it are left out.
    """
    known = [record for record in records if record["rows"] <= (done and done + STEP)] or records[:1]
    marks = [(record["rows"], record["seconds"]) for record in known[-1:]]
    for record in records:
        if record["rows"] >= marks[-1][0] + STEP:
            marks.append((record["rows"], record["seconds"]))
    rates = [(b[0] - a[0]) / (b[1] - a[1]) for a, b in itertools.pairwise(marks) if b[1] > a[1]]
    if rates:
        shown = " ".join(f"{rate:.0f}" for rate in rates)
        print(f"{title}: cases a second, each hundred thousand: {shown}; last / first {rates[-1] / rates[0]:.2f}")


def train(arguments: argparse.Namespace) -> None:
    """One pass over a slice, as `infocal train` makes it: word vectors, checkpoints, held-out cases and all."""
    import tempfile
    from dataclasses import replace

    import numpy as np

    from infocal.config import load_settings
    from infocal.fitting import train_prepared
    from infocal.training.preparation import open_encoded
    from infocal.training.tracking import Tracker

    class Meter(Tracker):
        """Prints the rate and the memory of each tenth of the pass."""

        def __init__(self, total: int) -> None:
            self.total, self.tenth, self.tokens, self.told = total, 1, 0, 0
            self.began = self.now = (0.0, 0.0)

        def start(self, **_: Any) -> None:
            self.began = time.perf_counter(), time.process_time()

        def advance(self, *, step: int, phase: str, tokens: int) -> None:
            self.tokens, self.now = self.tokens + tokens, (time.perf_counter(), time.process_time())
            if phase == "joint" and 10 * self.tokens >= self.tenth * self.total:
                self._tell()

        def round(self, record: dict[str, Any]) -> None:
            if self.tenth <= 10:  # a round has as many batches as a pass, not always the same words
                self._tell()

        def _tell(self) -> None:
            clock, own = ((self.tokens - self.told) / (self.now[k] - self.began[k]) for k in range(2))
            rates = f"{clock:7.0f} tokens a second, {own:7.0f} a second of the processor"
            print(f"  tenth {self.tenth:2}: {rates}, {memory()}", flush=True)
            self.began, self.told, self.tenth = self.now, self.tokens, self.tenth + 1

    once = {
        "encoder.kind": arguments.encoder,
        "training.warm_up_rounds": 0,
        "training.joint_rounds": 1,
        "training.least_round_steps": 1,
        "training.most_round_steps": 10**9,
        "training.settle_steps": 0,
    }
    settings = load_settings("infocal", once, select=0.2)
    prepared = open_encoded(arguments.prepared, "charge", settings)
    rows = min(arguments.rows, len(prepared.train))
    prepared = replace(prepared, train=prepared.train.view(np.arange(rows)))
    tokens = int(prepared.train.lengths.sum())
    print(f"{rows:,} cases, {tokens:,} tokens, {len(prepared.dev):,} held out; {memory()}", flush=True)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        model = train_prepared(
            prepared, settings, trackers=[Meter(tokens)], checkpoint=Path(folder) / "checkpoint.safetensors"
        )
    print(f"in all {time.perf_counter() - began:.0f} s; {memory()}; held out: {model.record['results']}")


def memory() -> str:
    """What this process has in memory now, and at most until now."""
    own, seen, most = status("RssAnon"), status("VmRSS"), status("VmHWM")
    return f"{own:.0f} MB of its own, {seen:.0f} MB with the file's pages, {most:.0f} MB at most"


def status(name: str, path: Path = Path("/proc/self/status")) -> float:
    """A figure of a process, in megabytes."""
    text = path.read_text()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith(f"{name}:"))) / 1e3


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    sub = verbs.add_parser("make")
    sub.add_argument("--data", default="../shared/data/cail")
    sub.add_argument("--rows", type=int, default=1_600_000)
    sub.add_argument("--out", required=True)
    sub = verbs.add_parser("prepare")
    sub.add_argument("--cases", required=True)
    sub.add_argument("--data", default="../shared/data/cail")
    sub.add_argument("--out", required=True)
    sub.add_argument("--processes", type=int, default=2)
    sub.add_argument("--kill-at", type=int, default=500_000)
    sub = verbs.add_parser("train")
    sub.add_argument("--prepared", required=True)
    sub.add_argument("--rows", type=int, default=100_000)
    sub.add_argument("--encoder", default="lstm")
    arguments = parser.parse_args()
    {"make": make, "prepare": prepare, "train": train}[arguments.verb](arguments)


if __name__ == "__main__":
    main()
