"""``infocal compare``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from infocal.cli.options import DECODERS, FILE, KINDS, Columns, columns, examples, skip_bad
from infocal.cli.output import Voice, check_apart

if TYPE_CHECKING:
    from infocal.comparison.results import Results

__all__ = ["compare"]

LEFT_TO_FILES = frozenset(
    {
        "iou_f1",
        "sufficiency",
        "comprehensiveness",
        "mean_run",
        "language_model",
        "training_seconds",
        "processor_seconds",
    }
)
"""Measures for which a terminal is too narrow."""


def _names(ctx: click.Context, option: click.Parameter, value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _shares(ctx: click.Context, option: click.Parameter, value: str) -> tuple[float, ...]:
    try:
        shares = tuple(float(part) for part in value.split(",") if part.strip())
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a list of numbers such as .1,.2,.3", ctx, option) from None
    if not all(0 < share < 1 for share in shares):
        raise click.BadParameter(f"{value!r} holds a share that is not between 0 and 1", ctx, option)
    return tuple(sorted(set(shares)))


@click.command(
    short_help="Compare methods on the same data: tables, figures, cases.",
    epilog=examples(
        "infocal compare train.jsonl --dev dev.jsonl --test test.jsonl --methods infocal,hardkuma "
        "--select 0.15 --out comparison"
    ),
)
@click.argument("data", type=FILE)
@click.option("--dev", type=FILE, required=True, metavar="FILE", help="Rows that decide when to stop.")
@click.option("--test", type=FILE, required=True, metavar="FILE", help="Rows to score on.")
@click.option(
    "--methods",
    required=True,
    callback=_names,
    metavar="NAME,...",
    help="Methods, recipes or YAML files, with commas between.",
)
@click.option("--out", type=FILE, required=True, metavar="DIR", help="Folder for everything that comes out.")
@click.option("--select", type=float, metavar="SHARE", help="Share of words to select  [default: 0.2].")
@click.option(
    "--seeds", type=click.IntRange(min=1), default=5, show_default=True, metavar="N", help="Runs of each method."
)
@columns
@click.option("--task", type=click.Choice(KINDS), help="What the labels are.")
@click.option("--vectors", type=FILE, metavar="FILE", help="Pretrained word vectors (text or .gz).")
@click.option("--set", "changes", multiple=True, metavar="NAME=VALUE", help="Change one setting; repeatable.")
@click.option(
    "--decoder",
    type=click.Choice(DECODERS),
    default=DECODERS[0],
    show_default=True,
    help="The decoder that tables, figures and cases show.",
)
@click.option(
    "--shares",
    default=".1,.2,.3",
    show_default=True,
    callback=_shares,
    metavar="F,...",
    help="Other shares to score the trained models at.",
)
@click.option("--processes", type=click.IntRange(min=1), default=1, show_default=True, help="Runs at a time.")
@click.option("--threads", type=click.IntRange(min=1), help="Processor threads of each  [default: all, shared].")
@click.option("--keep-models", is_flag=True, help="Save the trained models in DIR/models.")
@skip_bad
@click.option("--quiet", is_flag=True, help="Print nothing but the result and errors.")
def compare(
    data: Path, dev: Path, test: Path, columns: Columns, skip_bad: bool, quiet: bool, **options: Any
) -> None:
    """Train methods on DATA with several seeds, score them on the test rows, and write what came out to DIR.

    DIR gets tables (CSV, Markdown, LaTeX) with tests of significance, figures, a page of the same texts as each
    method saw them, and a file per run. The same command goes on where it was stopped and tries failed runs again.
    """
    from infocal.comparison.compare import compare as run
    from infocal.comparison.plan import Request, Sources
    from infocal.data.records import format_of

    for path in (data, dev, test):
        format_of(path)  # a folder is no file
    check_apart({"DATA": data, "--dev": dev, "--test": test})
    voice = Voice(quiet=quiet)
    sources = Sources(
        train=data,
        dev=dev,
        test=test,
        text=columns.text,
        label=columns.label,
        rationale=columns.rationale,
        skip_bad=skip_bad,
    )
    request = Request(sources=sources, **options)
    results = run(request, tell=voice.tell)
    _report(results, request.out, voice)
    if results.failures:
        _complain(results)


def _report(results: Results, out: Path, voice: Voice) -> None:
    from infocal.report import Table

    measures = [measure for measure in results.measures() if measure.key not in LEFT_TO_FILES]
    rows = [
        (name, *(measure.text(results.cell(name, measure).mean) for measure in measures), len(results.runs[name]))
        for name in results.contenders
    ]
    title = f"Test rows, decoder {results.decoder}, means over the seeds"
    table = Table(title, ("", *(measure.title for measure in measures), "runs"), rows)
    voice.result.print(table)
    voice.say(f"Tables:  {out / 'table.md'} (also .csv and .tex)")
    voice.say(f"Figures: {out / 'figures'}")
    voice.say(f"Cases:   {out / 'cases.html'}")


def _complain(results: Results) -> None:
    from infocal.cli.failures import complain
    from infocal.errors import TrainingError

    name, seed, message = results.failures[0]
    total = len(results.failures) + sum(len(runs) for runs in results.runs.values())
    complain(
        f"{len(results.failures)} of {total} runs failed, the first is {name}, seed {seed}: {message}; "
        "the tables show the others, and the same command tries the failed ones again"
    )
    click.get_current_context().exit(TrainingError.exit_code)
