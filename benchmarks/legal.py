"""Court cases: every row of `infocal reproduce cail` on the cases at hand, three seeds, two runs at a time.

    python benchmarks/legal.py run --data ../shared/data/cail --out DIR
    python benchmarks/legal.py rare --out DIR
    python benchmarks/legal.py report

`run` does what `infocal reproduce cail --least-cases 30 --seeds 3` does, in several processes, then many charges
(`--least-cases 3`) without `--set loss.balance=0.5` and with it, the ablations, and last Bernoulli and HardKuma
that choose words from the first step (`--set training.warm_up_rounds=0`), HardKuma with its paper's multipliers,
since the recipe's price closes all gates of a network that cannot read yet. What a run found is kept in
`benchmarks/legal`, so that a later `run` goes on from there; DIR holds the prepared cases and the models, of which
`rare` counts how often rare charges are found. `report` writes docs/results-legal.md of what is kept, here and by
many_classes.py; remarks-legal.md is put in front. Nothing is chosen on test cases.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from datetime import date
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from legal_rare import recalls
from legal_report import BOTH, write_page
from machine import machine
from many_classes import read

from infocal.cli.prepare import by_name
from infocal.config import load_settings
from infocal.data.cail import TASKS
from infocal.errors import OtherFolderError
from infocal.files import write_text
from infocal.legal.prepare import Request, prepare_cases
from infocal.legal.processes import end_with_parent
from infocal.reproduce.judgement_rows import ALL, DEFAULT_ROWS, ROWS, Plan
from infocal.reproduce.judgements import RESULT, TRAINED, reproduce_cail, run_folder
from infocal.reproduce.runs import MODEL
from infocal.storage import WEIGHTS

SEEDS = 3
KEPT = Path(__file__).parent / "legal"
RARE, MADE_UP = "rare.json", "made-up.json"
PAGE = Path(__file__).parents[1] / "docs" / "results-legal.md"
ABLATIONS = ("infocal-full", "infocal-no-guider", "infocal-no-lm", "infocal-paper")
"""What the paper's table has; the row without L_g alone is measured in docs/results.md."""


@dataclass(frozen=True)
class Variant:
    """What is run on the same cases with the same settings.

    Attributes:
        rows: of the table.
        tasks: for which a model of one task is trained.
        changes: of settings.
        least_cases: classes with fewer are left out.
    """

    rows: tuple[str, ...]
    tasks: tuple[str, ...] = TASKS
    changes: tuple[str, ...] = ()
    least_cases: int = 30


MANY = Variant(rows=("infocal",), tasks=("charge",), least_cases=3)
BALANCED, UNREAD = ("loss.balance=0.5",), ("training.warm_up_rounds=0",)
PRINTED = tuple(
    f"hardkuma.{name}={json.dumps(load_settings('paper-hardkuma').model_dump(mode='json')['hardkuma'][name])}"
    for name in ("start_at_share", "multiplier_start", "multiplier_rate", "multiplier_limits")
)
VARIANTS = {
    "plain": Variant(rows=(*DEFAULT_ROWS, *ABLATIONS)),
    "many": MANY,
    "many-balanced": replace(MANY, changes=BALANCED),
    "unread": Variant(rows=("bernoulli",), tasks=BOTH, changes=UNREAD),
    "unread-printed": Variant(rows=("hardkuma",), tasks=BOTH, changes=(*UNREAD, *PRINTED)),
}
"""The table; many charges without the option and with it; rivals that do not read all words first."""
COLD = ("unread", "unread-printed")


@dataclass(frozen=True)
class Job:
    """One run: a variant of the settings, a row of the table, a task (or all) and a seed."""

    variant: str
    row: str
    task: str
    seed: int

    @property
    def plan(self) -> Plan:
        """The same as a plan of `infocal reproduce cail`."""
        tasks = TASKS if self.task == ALL else (self.task,)
        return Plan(rows=(self.row,), tasks=tasks, seeds=(self.seed,), changes=VARIANTS[self.variant].changes)

    @property
    def kept(self) -> Path:
        """Where what it found is kept."""
        return KEPT / f"{self.variant}-{self.row}-{self.task}-seed{self.seed}.json"

    def cases(self, out: Path) -> Path:
        """The prepared cases that it reads."""
        return cases_folder(out, VARIANTS[self.variant].least_cases)

    def folder(self, out: Path) -> Path:
        """Where it works."""
        return run_folder(out / self.variant, self.plan, self.row, self.task, self.seed)


def jobs(seeds: int) -> list[Job]:
    """Every run: the rows of the table, many charges, the ablations, what does not read first; seed by seed."""

    def turn(job: Job) -> int:
        if job.variant in COLD:
            return 3
        return 2 if job.row in ABLATIONS else int(job.variant != "plain")

    return sorted(_seed_by_seed(seeds), key=turn)


def _seed_by_seed(seeds: int) -> Iterator[Job]:
    for seed in range(seeds):
        for name, variant in VARIANTS.items():
            for row in variant.rows:
                for task in (ALL,) if ROWS[row].joint else variant.tasks:
                    yield Job(name, row, task, seed)


def cases_folder(out: Path, least_cases: int) -> Path:
    """Where the prepared cases are."""
    return out / f"cases-{least_cases}"


def prepare(arguments: argparse.Namespace, least_cases: int) -> dict[str, Any]:
    """Prepare the cases, unless that is done; how many there are, and of how many classes."""
    request = Request(
        parts=by_name(Path(arguments.data)),
        out=cases_folder(Path(arguments.out), least_cases),
        least_cases=least_cases,
        processes=arguments.processes,
    )
    manifest = prepare_cases(request)
    return {"summary": manifest["summary"], "labels": {task: len(manifest["labels"][task]) for task in TASKS}}


def run(arguments: argparse.Namespace) -> None:
    """Do what is missing."""
    out = Path(arguments.out)
    facts = {name: prepare(arguments, variant.least_cases) for name, variant in VARIANTS.items()}
    write_text(KEPT / "cases.json", json.dumps(facts, indent=1) + "\n")
    wanted = [job for job in jobs(arguments.seeds) if not arguments.rows or job.row in arguments.rows]
    for job in wanted:
        lay_out(job, out)
    with ProcessPoolExecutor(arguments.processes, mp_context=get_context("spawn"), initializer=_begin) as pool:
        work: dict[Future[dict[str, Any]], Job] = {pool.submit(do, job, out): job for job in wanted}
        for one in as_completed(work):
            job = work[one]
            print(f"{job.variant} {job.row} {job.task} {job.seed}: {in_short(one)}", flush=True)


def _begin() -> None:
    """What a process does first: a run that outlives a killed command would be done twice at once."""
    end_with_parent()
    torch.set_num_threads(1)


def in_short(one: Future[dict[str, Any]]) -> str:
    """A finished run in some words; one that failed does not stop the others."""
    if error := one.exception():
        return f"failed: {type(error).__name__}: {error}"
    figures = one.result()
    accuracy = ", ".join(f"{task} {part['accuracy']:.3f}" for task, part in figures["tasks"].items())
    return f"{accuracy}, {figures['seconds']:.0f} s"


def lay_out(job: Job, out: Path) -> None:
    """Put what is kept of a run where `infocal reproduce cail` would have left it, unless the run has begun there.

    What is kept may be of an older recipe, and would then end what was begun by the present one.
    """
    folder = job.folder(out)
    if job.kept.exists() and not folder.exists():
        record = json.loads(job.kept.read_text(encoding="utf-8"))
        for name in (TRAINED, RESULT):
            write_text(folder / name, json.dumps(record[name], ensure_ascii=False) + "\n")


def do(job: Job, out: Path) -> dict[str, Any]:
    """Do one run, unless it is done with the recipe that stands, and keep what it found."""
    try:
        reproduce_cail(job.cases(out), job.plan, out / job.variant)
    except OtherFolderError:
        shutil.rmtree(job.folder(out))
        reproduce_cail(job.cases(out), job.plan, out / job.variant)
    parts = {name: json.loads((job.folder(out) / name).read_text(encoding="utf-8")) for name in (TRAINED, RESULT)}
    if not job.kept.exists() or json.loads(job.kept.read_text(encoding="utf-8"))[RESULT] != parts[RESULT]:
        record = {"date": date.today().isoformat(), "machine": machine(), "torch": torch.__version__, **parts}
        write_text(job.kept, json.dumps(record, ensure_ascii=False, indent=1) + "\n")
    return dict(parts[RESULT])


def rare(out: Path) -> None:
    """Count how often rare charges are found, by all models of many charges that lie in the folder."""
    found: dict[str, list[dict[str, Any]]] = {"plain": [], "balanced": []}
    for side, variant in zip(found.values(), ("many", "many-balanced"), strict=True):
        for job in jobs(SEEDS):
            if job.variant == variant and (job.folder(out) / MODEL / WEIGHTS).exists():
                side.append(recalls(job.folder(out) / MODEL, job.cases(out)))
    write_text(KEPT / RARE, json.dumps(found, indent=1) + "\n")


def report() -> None:
    """Write the page of everything that is kept."""
    found = [(job, json.loads(job.kept.read_text(encoding="utf-8"))) for job in jobs(10) if job.kept.exists()]
    cases = json.loads((KEPT / "cases.json").read_text(encoding="utf-8"))
    remarks = Path(__file__).with_name("remarks-legal.md").read_text(encoding="utf-8")
    records = [(job.variant, job.row, job.seed, record) for job, record in found]
    rare = json.loads((KEPT / RARE).read_text(encoding="utf-8")) if (KEPT / RARE).exists() else None
    made_up = read(KEPT / MADE_UP)
    write_text(PAGE, write_page(records, cases, remarks, planned=len(jobs(SEEDS)), rare=rare, made_up=made_up))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    sub = verbs.add_parser("run", help="train and score what is missing")
    sub.add_argument("--data", default="../shared/data/cail")
    sub.add_argument("--out", required=True, help="folder to work in")
    sub.add_argument("--seeds", type=int, default=SEEDS)
    sub.add_argument("--processes", type=int, default=2)
    sub.add_argument("--rows", nargs="+", default=[], choices=list(ROWS), help="some rows only")
    sub = verbs.add_parser("rare", help="count how often rare charges are found")
    sub.add_argument("--out", required=True, help="the folder of run")
    verbs.add_parser("report", help="write docs/results-legal.md")
    arguments = parser.parse_args()
    if arguments.verb == "run":
        run(arguments)
    elif arguments.verb == "rare":
        rare(Path(arguments.out))
    else:
        report()


if __name__ == "__main__":
    main()
