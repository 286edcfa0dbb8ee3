"""Every method on the same data at the same share, with several seeds, post-hoc explanations included.

    pip install -c constraints.txt -e ".[bench]"
    python benchmarks/contest.py run --data ../shared/data --vectors ../shared/vectors/glove-100d.txt.gz --runs DIR
    python benchmarks/contest.py report
    python benchmarks/quality.py report

`run` goes seed by seed (five; three of ablations, and of CAR where a run takes more than ten minutes: restaurant
reviews, and toxic posts at the gold share), so that everything has some runs early, and on where it was stopped:
what a run found is kept in `benchmarks/contest/runs` as soon as it is done; DIR holds the guiders' models and may
be lost. `report` makes the tables in `benchmarks/contest` of what is kept; `quality.py report` puts them into
docs/results.md.
Everybody has the defaults of its recipe; no run chooses anything on test or by rationale labels. (The default
recipe, parts of which all methods share, was settled for InfoCal with dev figures in view, rationale F1 among
them: benchmarks/remarks.md.) Post-hoc methods read the guider of InfoCal's run of the same seed at the gold share
and are cut at either share; their scores are made relative to their text as those of learned methods are, and
their thresholds fitted without labels on the same texts, for LIME and SHAP on 100 of them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from contest_report import report
from contest_runs import FIELDS, GRADIENTS, OURS, SEEDS, SLOW, Field, Record, keep, lay_out
from numpy.typing import NDArray
from posthoc import METHODS as POSTHOC
from posthoc import attribute, guider_of, relative

from infocal.comparison.ngram import BigramModel
from infocal.comparison.plan import Request, Run, Sources, plan_runs
from infocal.comparison.runner import do_jobs, read_result
from infocal.comparison.scoring import Trial
from infocal.comparison.worker import Job
from infocal.data.corpus import Corpus
from infocal.data.readers import BadRows
from infocal.decoding import fit_decoding
from infocal.files import write_text
from infocal.fitting import WARM_UPS
from infocal.loading import load_one
from infocal.rationalizer import Rationalizer
from infocal.training.held_out import ThresholdTexts, threshold_texts

SLOW_TEXTS, SLOW_FITTED, SLOW_SEEDS = 200, 100, 3
"""LIME and SHAP read each text hundreds of times: so many to score, to fit on, and seeds."""


def sources_of(field: Field, data: Path) -> Sources:
    """The three files."""
    paths = {part: data / field.folder / f"{part}.jsonl" for part in ("train", "dev", "test")}
    return Sources(**paths, label=field.label, skip_bad=True)


def request_of(field: Field, arguments: argparse.Namespace, **more: Any) -> Request:
    """What `infocal compare` would be asked."""
    return Request(
        sources=sources_of(field, Path(arguments.data)),
        out=Path(arguments.runs) / field.key,
        methods=field.methods,
        select=field.share,
        seeds=arguments.seeds,
        vectors=Path(arguments.vectors),
        **more,
    )


def run(arguments: argparse.Namespace) -> None:
    """Do what is missing, seed by seed."""
    fields = [field for field in FIELDS if not arguments.only or field.key in arguments.only]
    requests = {field: request_of(field, arguments) for field in fields}
    for field, request in requests.items():
        lay_out(field, request.out)
    plans = {field: plan_runs(request) for field, request in requests.items()}
    for seed in range(arguments.seeds):
        of = {
            one: field
            for field, plan in plans.items()
            for one in plan
            if one.seed == seed < field.seeds_of(one.contender)
            and (not arguments.methods or one.contender in arguments.methods)
        }
        train(of, requests, arguments)
        if arguments.posthoc:
            explain_all(fields, arguments, seed)
        for field, request in requests.items():
            keep(field, request.out, seed)


def train(of: dict[Run, Field], requests: dict[Field, Request], arguments: argparse.Namespace) -> None:
    """Do the runs that have no result, some at a time, and keep each as it comes."""
    jobs = []
    for one, field in of.items():
        guides = one.contender == OURS and not field.half and arguments.posthoc
        if not is_done(one, [other for other in requests if guides and other.gold == field]):
            request = requests[field]
            jobs.append(
                Job(
                    run=one,
                    sources=request.sources,
                    shares=request.shares,
                    cases=(),
                    threads=1,
                    keep_model=guides,
                    warm_ups=Path(arguments.runs) / WARM_UPS,
                )
            )

    def done(job: Job, record: Record) -> None:
        field = of[job.run]
        keep(field, requests[field].out, job.run.seed)
        say(f"{field.key} {job.run.contender} {job.run.seed}: {in_short(record)}")

    say(f"{len(jobs)} of {len(of)} runs to do")
    do_jobs(jobs, processes=arguments.processes, done=done)


def is_done(one: Run, fields: Sequence[Field]) -> bool:
    """Whether nothing is left to do of a run.

    Args:
        one: the run.
        fields: those in which its guider is explained; the model must be there until it has been.
    """
    record = read_result(one)
    if record is None or record["state"] != "done":
        return False
    runs = one.path.parents[2]
    needed = any(missing(runs / field.key, record, one.seed) for field in fields)
    return one.model.is_dir() or not needed


def in_short(record: Record) -> str:
    """A finished run in some words."""
    if record["state"] != "done":
        return f"failed: {record['message']}"
    scores, seconds = record["scores"]["average"], record["seconds"]
    f1 = f"F1 {scores['rationale']['f1']:.3f}, accuracy {scores['accuracy']:.3f}"
    return f"{f1}, share {scores['selected']:.3f}, {seconds['processor']:.0f} s"


def say(note: str) -> None:
    """Print at once, also into a file."""
    print(note, flush=True)


def explain_all(fields: Sequence[Field], arguments: argparse.Namespace, seed: int) -> None:
    """Post-hoc methods on the guiders of a seed, some data sets at a time."""
    by_data = [[field for field in fields if field.gold == gold] for gold in dict.fromkeys(f.gold for f in fields)]
    with ProcessPoolExecutor(
        arguments.processes, mp_context=get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,)
    ) as pool:
        work = [pool.submit(explain_guider, same, arguments, seed) for same in by_data]
        for notes in work:
            for note in notes.result():
                say(note)


def missing(folder: Path, guider: Record, seed: int) -> list[str]:
    """The post-hoc methods without a result for the guider of an InfoCal run."""
    names = (*GRADIENTS, *(SLOW if seed < SLOW_SEEDS else ()))
    return [name for name in names if read(folder, name, seed).get("of") != guider["identity"]]


def explain_guider(fields: Sequence[Field], arguments: argparse.Namespace, seed: int) -> list[str]:
    """Post-hoc methods on the guider of one seed, cut for each field of its data set; what to say.

    Each leaves a file in the form of a run of `infocal compare`.
    """
    gold, runs = fields[0].gold, Path(arguments.runs)
    record = read(runs / gold.key, OURS, seed)
    if record.get("state") != "done":
        return [f"{gold.key}: no guider to explain: {OURS}, seed {seed}, is not done"]
    wanted = {field: missing(runs / field.key, record, seed) for field in fields}
    if not any(wanted.values()):
        return []
    path = runs / gold.key / "models" / f"{OURS}-{seed}"
    if not path.is_dir():
        return [f"{gold.key}: the model of {OURS}, seed {seed}, is not here to be explained"]
    model = load_one(path)
    sources, bad_rows = sources_of(gold, Path(arguments.data)), BadRows(skip=True)
    train_rows = model.encode(sources.read("train", bad_rows), bad_rows=bad_rows, source="train")
    bigrams = BigramModel.fit(train_rows.ids, train_rows.offsets, size=len(model.vocabulary))
    rows = list(sources.read("test", bad_rows))
    trial = Trial.of(model, rows, language_model=bigrams, bad_rows=bad_rows, source="test")
    dev = model.encode(sources.read("dev", bad_rows), bad_rows=bad_rows, source="dev")
    texts, first = threshold_texts(dev, train_rows), np.arange(min(SLOW_FITTED, len(dev)))
    some = ThresholdTexts(dev.subset(first), first)
    own = {key: record[key] for key in ("format", "task", "data", "training")}
    own |= {"state": "done", "seed": seed, "of": record["identity"], "seconds": {}, "rounds": []}
    notes = []
    for name in dict.fromkeys(name for names in wanted.values() for name in names):
        part, fitted = (few(trial), some) if name in SLOW else (trial, texts)
        scores, others = attributions(model, name, (part.corpus, fitted.corpus), seed)
        for field in (field for field in fields if name in wanted[field]):
            found = cut(replace(part, scores=scores), fitted, others, share=field.share).report(())
            result = json.dumps({**own, "contender": name, "method": name, **found})
            write_text(runs / field.key / "runs" / f"{name}-{seed}.json", result + "\n")
            notes.append(f"{field.key} {name} {seed}: F1 {found['scores']['average']['rationale']['f1']:.3f}")
    return notes


def read(folder: Path, name: str, seed: int) -> Record:
    """What is on file of a run; empty if nothing is."""
    path = folder / "runs" / f"{name}-{seed}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def few(trial: Trial) -> Trial:
    """The same before the first annotated documents only."""
    rows = np.flatnonzero(np.asarray(trial.corpus.annotated))[:SLOW_TEXTS]
    corpus = trial.corpus.subset(rows)
    breaks = corpus.sentence_starts(trial.model.vocabulary.sentence_ends())
    return replace(trial, corpus=corpus, full=trial.full[rows], breaks=breaks)


def attributions(
    model: Rationalizer, name: str, corpora: Sequence[Corpus], seed: int
) -> list[NDArray[np.float32]]:
    """What a post-hoc method says of each word, relative to its text."""
    guider, method = guider_of(model), POSTHOC[name][0]
    return [relative(attribute(guider, c, method, seed=seed), c).astype(np.float32) for c in corpora]


def cut(trial: Trial, texts: ThresholdTexts, scores: NDArray[np.float32], *, share: float) -> Trial:
    """The same with thresholds for a share, fitted on ``texts``, whose words have these scores."""
    drawn = texts.drawn()
    breaks = drawn.sentence_starts(trial.model.vocabulary.sentence_ends())
    decoding = fit_decoding(texts.of_drawn(scores), drawn.offsets, share=share, breaks=breaks)
    return replace(trial, model=replace(trial.model, decoding=decoding))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    sub = verbs.add_parser("run", help="train and score what is missing")
    sub.add_argument("--runs", required=True, help="folder to work in")
    sub.add_argument("--data", default="../shared/data")
    sub.add_argument("--vectors", default="../shared/vectors/glove-100d.txt.gz")
    sub.add_argument("--seeds", type=int, default=SEEDS)
    sub.add_argument("--processes", type=int, default=2)
    sub.add_argument("--only", nargs="+", default=[], choices=[field.key for field in FIELDS])
    sub.add_argument("--methods", nargs="+", default=[], help="some of the trained methods only")
    sub.add_argument("--no-posthoc", dest="posthoc", action="store_false")
    verbs.add_parser("report", help="write the tables")
    arguments = parser.parse_args()
    if arguments.verb == "run":
        run(arguments)
    else:
        report()


if __name__ == "__main__":
    main()
