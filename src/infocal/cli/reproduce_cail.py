"""``infocal reproduce cail``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from infocal.cli.options import DECODERS, FILE, examples, shares, skip_bad
from infocal.cli.output import Voice
from infocal.cli.prepare import Bar, by_name, least_cases, max_tokens
from infocal.cli.reproduce import names, progress_bars

if TYPE_CHECKING:
    from infocal.reproduce.judgement_cases import FactCase
    from infocal.reproduce.judgement_rows import Plan
    from infocal.reproduce.judgements import Outcome

__all__ = ["ROWS", "TASKS", "cail"]

TASKS = ("article", "charge", "term")
"""Those of ``infocal.data.cail``, named again because importing that takes time."""

ROWS = (
    "full-text",
    "bernoulli",
    "hardkuma",
    "infocal",
    "infocal-full",
    "infocal-no-guider",
    "infocal-no-adv",
    "infocal-no-lm",
    "infocal-no-adv-no-ib",
    "infocal-paper",
    "fla",
    "topjudge",
    "mpbfn",
    "infocal-joint",
)
"""Those of ``infocal.reproduce.judgement_rows``, named again for the same reason."""
USUAL = ("full-text", "bernoulli", "hardkuma", "infocal", "fla", "topjudge", "mpbfn", "infocal-joint")
PREPARED, TABLES, CASES = "cases", ("table.md", "table.csv", "table.tex"), "cases.html"


@dataclass(frozen=True, kw_only=True)
class _Request:
    """The options of ``infocal reproduce cail``."""

    data: Path
    out: Path
    tasks: tuple[str, ...]
    methods: tuple[str, ...]
    seeds: int
    epochs: int | None
    select: float | dict[str, float] | None
    least_cases: int
    max_tokens: int
    vectors: Path | None
    articles: Path | None
    official: str | None
    decoder: str
    changes: tuple[str, ...]
    cases: int
    skip_bad: bool
    threads: int | None
    quiet: bool


@click.command(
    short_help="Court cases: article, charge and penalty term with their evidence.",
    epilog=examples(
        "infocal reproduce cail --data CAIL2018 --out legal --seeds 3",
        "infocal reproduce cail --data CAIL2018 --out legal --methods infocal,infocal-joint --tasks charge,term",
    ),
)
@click.option(
    "--data", type=FILE, required=True, metavar="DIR", help="Files with train, valid, test in their names."
)
@click.option("--out", type=FILE, required=True, metavar="DIR", help="Folder for cases, models, tables and pages.")
@click.option("--tasks", callback=names(TASKS), default=",".join(TASKS), show_default=True, metavar="NAMES")
@click.option(
    "--methods",
    callback=names(ROWS),
    default=",".join(USUAL),
    show_default=True,
    metavar="NAMES",
    help=f"Of {', '.join(ROWS)}.",
)
@click.option("--seeds", type=click.IntRange(min=1), default=1, show_default=True, help="Runs of each method.")
@click.option(
    "--epochs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Passes over the training cases, each a round  [default: each method's own schedule].",
)
@click.option(
    "--select",
    multiple=True,
    callback=shares,
    metavar="SHARE|TASK=SHARE",
    help="Share of words of all tasks, or TASK=SHARE, repeatable  [default: the paper's].",
)
@least_cases
@max_tokens
@click.option("--vectors", type=FILE, metavar="FILE", help="Word vectors  [default: learned from the cases].")
@click.option("--articles", type=FILE, metavar="FILE", help="Texts of the law articles for fla (JSON lines).")
@click.option(
    "--official",
    type=click.Choice(("small", "big", "no")),
    help="Which of the paper's data this is; published figures stand beside ours  [default: by its size].",
)
@click.option(
    "--decoder", type=click.Choice(DECODERS), default=DECODERS[0], show_default=True, help="How words are chosen."
)
@click.option("--set", "changes", multiple=True, metavar="NAME=VALUE", help="Change a setting of all runs.")
@click.option("--cases", type=click.IntRange(min=0), default=20, show_default=True, help="Facts on the case page.")
@skip_bad
@click.option("--threads", type=click.IntRange(min=1), help="Processor threads to use.")
@click.option("--quiet", is_flag=True, help="Print nothing but the result and errors.")
def cail(**options: Any) -> None:
    """Predict law article, charge and penalty term of court cases, and show the words that each is made from.

    What is prepared or trained already in the folder of --out is not done again, so the same command goes on after
    a stop. DIR holds cases in the layout of CAIL2018.
    """
    request = _Request(**options)
    voice = Voice(quiet=request.quiet)
    if request.threads is not None:
        import torch

        torch.set_num_threads(request.threads)
    from infocal.files import one_at_a_time
    from infocal.reproduce.judgement_rows import Plan
    from infocal.reproduce.judgements import check_plan

    plan = Plan(
        rows=request.methods,
        tasks=request.tasks,
        seeds=tuple(range(request.seeds)),
        epochs=request.epochs,
        select=request.select,
        changes=request.changes,
        vectors=request.vectors,
        articles=request.articles,
        decoder=request.decoder,
    )
    check_plan(plan)  # before the cases are prepared, which takes long
    parts = _parts(request.data, voice)
    with one_at_a_time(request.out):
        _check_folder(request.out)
        _reproduce(request, plan, parts, voice)


def _reproduce(request: _Request, plan: Plan, parts: Mapping[str, tuple[Path, ...]], voice: Voice) -> None:
    """Prepare, train, score, and write what came out."""
    from infocal.fitting import forget_warm_ups
    from infocal.reproduce.judgements import reproduce_cail

    manifest = _prepare(request, parts, voice)
    left_out = [f"Left out: {example}" for example in manifest["not readable"]]
    for note in left_out:
        voice.tell(note)
    plan = replace(plan, official=_official(request.official, manifest["summary"])[0] or plan.official)
    schedule = plan.schedule_note(int(manifest["summary"]["train"]["tokens"]))
    if schedule:
        voice.tell(schedule)
    outcome = reproduce_cail(
        request.out / PREPARED,
        plan,
        request.out,
        trackers=progress_bars(voice),
        say=lambda line: voice.aside.print(line, soft_wrap=True),
    )
    forget_warm_ups(request.out)
    for note in outcome.notes:
        voice.tell(note)
    facts = _facts(request, plan, outcome, manifest, parts)
    outcome = replace(outcome, notes=[*outcome.notes, *left_out, *([schedule] if schedule else ())])
    _deliver(request, plan, outcome, manifest, facts, voice)


def _parts(folder: Path, voice: Voice) -> dict[str, tuple[Path, ...]]:
    from infocal.errors import DataError

    parts = by_name(folder, tell=voice.tell)
    if not parts["test"]:
        raise DataError("there are no test cases", allowed="a file with test in its name", source=str(folder))
    return parts


def _prepare(request: _Request, parts: Mapping[str, tuple[Path, ...]], voice: Voice) -> dict[str, Any]:
    import os

    from infocal.legal.prepare import Request, prepare_cases

    what = Request(
        parts=parts,
        out=request.out / PREPARED,
        least_cases=request.least_cases,
        max_tokens=request.max_tokens,
        processes=request.threads or os.cpu_count() or 1,
        skip_bad=request.skip_bad,
    )
    with Bar(voice) as bar:
        return prepare_cases(what, progress=bar.move)


def _check_folder(out: Path) -> None:
    """Refuse a folder with files of others that would be replaced."""
    from infocal.data.encoded import MANIFEST
    from infocal.errors import OtherFolderError
    from infocal.fitting import WARM_UPS
    from infocal.legal.folder import PLAN, WORK, is_manifest
    from infocal.storage import CHECKPOINT, METRICS

    written = ((out / name) for name in (*TABLES, CASES, "runs", WARM_UPS))
    foreign = [path.name for path in written if path.is_file() or any(map(Path.is_file, path.rglob("*")))]
    prepared = out / PREPARED
    ours = is_manifest(prepared / MANIFEST) or (prepared / WORK / PLAN).is_file()
    begun = (CHECKPOINT, METRICS, "trained.json")
    if foreign and not (ours or any(item.name in begun for item in out.glob("runs/*/*/seed*/**/*"))):
        raise OtherFolderError(
            f"{out / foreign[0]} is not of this experiment, which would replace it; use another --out"
        )


def _facts(
    request: _Request,
    plan: Plan,
    outcome: Outcome,
    manifest: Mapping[str, Any],
    parts: Mapping[str, tuple[Path, ...]],
) -> list[FactCase]:
    """Some test cases with what the first model of each row that shows words reads in them; none without one."""
    from infocal.reproduce.judgement_cases import choose_facts
    from infocal.reproduce.judgement_rows import ROWS
    from infocal.reproduce.judgements import model_of

    trained = {(result.row, task) for result in outcome.results if result.seed == 0 for task in result.tasks}
    if not any(ROWS[name].selects for name, _ in trained):
        return []
    classes = {task: manifest["labels"][task] for task in plan.tasks}
    facts = choose_facts(parts["test"], classes, count=request.cases)
    for name in plan.rows:
        row = ROWS[name]
        for task in [task for task in plan.tasks if row.selects and (name, task) in trained]:
            model = model_of(request.out, plan, name, task)
            documents = [fact.document(task) for fact in facts]
            for fact, found in zip(facts, model.explain_documents(documents, decoder=plan.decoder), strict=True):
                fact.add(task, row.title, found)
    return facts


def _official(said: str | None, summary: Mapping[str, Any]) -> tuple[str | None, str]:
    """The name of the paper's data that this is, if it is, and a few words on how that is known."""
    from infocal.reproduce.published_cail import which_official

    if said is not None:
        return (None, "no, by --official") if said == "no" else (said, f"CAIL-{said}, by --official")
    found = which_official(summary)
    if found is None:
        return None, "no, by its size (--official says otherwise)"
    return found[0], f"CAIL-{found[0]}, by {found[1]}"


def _deliver(
    request: _Request,
    plan: Plan,
    outcome: Outcome,
    manifest: Mapping[str, Any],
    facts: Sequence[FactCase],
    voice: Voice,
) -> None:
    from infocal.files import write_text
    from infocal.report import Table
    from infocal.reproduce.judgement_cases import cases_page
    from infocal.reproduce.judgement_tables import (
        COLUMNS,
        csv_table,
        filter_rows,
        latex_table,
        lines_of,
        markdown_report,
        shown_cells,
    )

    results, summary = outcome.results, manifest["summary"]
    official, known_by = _official(request.official, summary)
    data: dict[str, object] = {f"{part} cases": int(summary[part]["cases"]) for part in summary}
    data["the paper's data"] = known_by
    data |= {f"classes of {task}": len(manifest["labels"][task]) for task in plan.tasks}
    title = "Court cases, and the words that each model goes by"
    texts = {
        "table.md": markdown_report(
            results, plan.tasks, official=official, data=data, filters=summary, notes=outcome.notes
        ),
        "table.csv": csv_table(results, plan.tasks, official),
        "table.tex": latex_table(results, plan.tasks, official),
        **({CASES: cases_page(facts, title=title)} if facts else {}),
    }
    page = request.out / CASES
    if not facts and page.exists():
        page.unlink()
        voice.tell(f"{page} of an earlier call is removed: it could be of other runs than the table.")
    for name, content in texts.items():
        write_text(request.out / name, content)
    voice.result.print(Table("Cases read, left out, and kept", ("", *summary), filter_rows(summary)))
    for task in plan.tasks:
        rows = [(line.title, *shown_cells(line, task)) for line in lines_of(results, plan.tasks, official)]
        voice.result.print(Table(task, ("", *COLUMNS.values()), rows))
    voice.say("Written:")
    for name in texts:
        voice.say(f"  {request.out / name}")
