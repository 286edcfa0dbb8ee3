"""From a request to a folder of tables and pictures: check everything, do what is missing, write what came out."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from infocal.comparison.cases import draw_cases, write_cases
from infocal.comparison.contests import contests
from infocal.comparison.figures import write_figures
from infocal.comparison.plan import RUNS, Request, Run, Sources, plan_runs
from infocal.comparison.results import Results
from infocal.comparison.runner import do_jobs, read_result
from infocal.comparison.tables import write_tables
from infocal.comparison.worker import Job
from infocal.data.readers import BadRows
from infocal.errors import MissingExtraError, OtherFolderError
from infocal.files import check_writable, one_at_a_time
from infocal.fitting import WARM_UPS, check_trainable, forget_warm_ups
from infocal.settings import Settings
from infocal.storage import HEADER
from infocal.training.description import note_of_repeats
from infocal.training.preparation import encode_labelled

__all__ = ["compare"]

NEEDED = ("matplotlib", "scipy")
WRITTEN = ("table.csv", "table.md", "table.tex", "cases.html", "figures", "models", WARM_UPS)
"""What it writes besides the runs."""

Tell = Callable[[str], None]


def compare(request: Request, *, tell: Tell = lambda note: None) -> Results:
    """Train and score every contender with every seed, then write tables, figures and cases.

    Runs that are on file already are not done again, unless their settings or the data changed; failed ones are.

    Args:
        request: what to compare.
        tell: called with each sentence that the user should read.

    Raises:
        InfocalError: something is wrong with the request or the data, before anything was trained. A run that
            fails later raises nothing; it is among the failures of the results.
    """
    _check_extra()
    with one_at_a_time(request.out):
        return _compare(request, tell)


def _compare(request: Request, tell: Tell) -> Results:
    _check_folder(request.out)
    runs = plan_runs(request)
    cases = draw_cases(request.sources)
    missing = [run for run in runs if not _is_done(run, request.keep_models)]
    if missing:
        for note in _check_data(request.sources, [run.settings for run in missing]):
            tell(note)
    if kept := len(runs) - len(missing):
        tell(f"{kept} of {len(runs)} runs are there already")
    threads = request.threads or max(1, (os.cpu_count() or 1) // request.processes)
    lines = tuple(document.line for document in cases if document.line is not None)
    jobs = [
        Job(
            run=run,
            sources=request.sources,
            shares=request.shares,
            cases=lines,
            threads=threads,
            keep_model=request.keep_models,
            warm_ups=request.out / WARM_UPS,
        )
        for run in missing
    ]
    do_jobs(jobs, processes=request.processes, done=_progress(tell, len(jobs), request.decoder))
    forget_warm_ups(request.out)
    results = _collect(request, runs)
    write_tables(request.out, results, contests(results))
    write_figures(request.out / "figures", results)
    write_cases(request.out / "cases.html", results, cases)
    return results


def _check_extra() -> None:
    for package in NEEDED:
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(package, "compare", "infocal compare")


def _check_folder(out: Path) -> None:
    """Refuse a folder that cannot be written, a model's, and one with files of others that would be replaced."""
    check_writable(out / WRITTEN[0])
    if (out / HEADER).exists():
        raise OtherFolderError(f"{out} holds a model; use another --out")
    foreign = [name for name in WRITTEN if (out / name).exists()]
    if foreign and not (out / RUNS).is_dir():
        raise OtherFolderError(
            f"{out / foreign[0]} is not of a comparison, which would replace it; use another --out"
        )


def _check_data(sources: Sources, planned: Sequence[Settings]) -> Sequence[str]:
    """Read everything once, so that bad data are found before the first run and not by each; what to tell."""
    bad_rows, settings = BadRows(skip=sources.skip_bad), planned[0]
    settings = settings.model_copy(update={"text": settings.text.model_copy(update={"vectors": None})})
    prepared = sources.prepare(settings, bad_rows)
    for one in planned:
        check_trainable(one, prepared)
    of_test = BadRows(skip=sources.skip_bad)
    test = encode_labelled(
        sources.read("test", of_test),
        segmenter=prepared.segmenter,
        vocabulary=prepared.vocabulary,
        task=prepared.task,
        max_tokens=settings.text.max_tokens,
        source=str(sources.test),
        bad_rows=of_test,
    )
    repeats = note_of_repeats(prepared.train, test, what="test")
    return [*prepared.notes, *filter(None, [of_test.summary()]), *repeats]


def _is_done(run: Run, with_model: bool) -> bool:
    record = read_result(run)
    return record is not None and record["state"] == "done" and (run.model.is_dir() or not with_model)


def _progress(tell: Tell, total: int, decoder: str) -> Callable[[Job, dict[str, Any]], None]:
    """Tells of each finished run how it went."""
    finished = 0

    def done(job: Job, record: dict[str, Any]) -> None:
        nonlocal finished
        finished += 1
        what = f"{job.run.contender}, seed {job.run.seed} ({finished} of {total})"
        if record["state"] == "failed":
            tell(f"{what}: failed: {record['message']}")
        else:
            tell(f"{what}: {_in_short(record['scores'][decoder])}, {record['seconds']['training']:.0f} s")

    return done


def _in_short(scores: dict[str, Any]) -> str:
    task = f"accuracy {scores['accuracy']:.3f}" if "accuracy" in scores else f"MSE {scores['mse']:.3f}"
    return task if scores["rationale"] is None else f"F1 {scores['rationale']['f1']:.3f}, {task}"


def _collect(request: Request, runs: Sequence[Run]) -> Results:
    names = tuple(dict.fromkeys(run.contender for run in runs))
    found: dict[str, dict[int, dict[str, Any]]] = {name: {} for name in names}
    failures = []
    for run in runs:
        record = read_result(run)
        if record is not None and record["state"] == "done":
            found[run.contender][run.seed] = record
        else:
            failures.append((run.contender, run.seed, "" if record is None else str(record["message"])))
    asked = {run.contender: run.settings.share for run in runs}
    return Results(names, found, tuple(failures), request.decoder, asked)
