"""``infocal reproduce``: the protocols of published papers, on files that the user brings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from infocal.cli.options import DECODERS, FILE, examples, skip_bad
from infocal.cli.output import Voice

if TYPE_CHECKING:
    from infocal.reproduce.beer import Outcome, Plan
    from infocal.reproduce.reviews import Reviews
    from infocal.training.tracking import Tracker

__all__ = ["ASPECTS", "ROWS", "names", "progress_bars", "reproduce"]

ASPECTS = ("appearance", "smell", "palate")
"""Those of ``infocal.data.beer``, named again because importing that takes time."""

ROWS = (
    "attention",
    "bernoulli",
    "hardkuma",
    "infocal",
    "infocal-paper",
    "infocal-search",
    "infocal-paper-hk",
    "infocal-paper-no-adv",
    "infocal-paper-no-lm",
    "bernoulli-paper",
    "hardkuma-paper",
    "l2x",
    "invase",
)
"""Those of ``infocal.reproduce.beer``, named again for the same reason."""


def names(choices: Sequence[str]) -> Callable[[click.Context, click.Parameter, str], tuple[str, ...]]:
    """Reads names separated by commas, each once, all of them known."""

    def read(ctx: click.Context, option: click.Parameter, value: str) -> tuple[str, ...]:
        found = tuple(dict.fromkeys(name.strip() for name in value.split(",")))
        unknown = [name for name in found if name not in choices]
        if unknown:
            raise click.BadParameter(f"{unknown[0]!r} is none of {', '.join(choices)}", ctx, option)
        return found

    return read


@click.group(short_help="Run a paper's experiment on files of yours.")
def reproduce() -> None:
    """Run a published experiment, and set the figures beside the printed ones."""


@dataclass(frozen=True, kw_only=True)
class _Request:
    """The options of ``infocal reproduce beer``."""

    data: Path | None
    reviews: Path | None
    text: str
    vectors: Path | None
    out: Path
    aspects: tuple[str, ...]
    methods: tuple[str, ...]
    seeds: int
    scoring: str
    decoder: str
    epochs: int | None
    changes: tuple[str, ...]
    cases: int
    trials: int
    limit: int | None
    skip_bad: bool
    threads: int | None
    quiet: bool


@reproduce.command(
    short_help="Beer reviews: agreement with marked words for three aspects.",
    epilog=examples(
        "infocal reproduce beer --data beer-files --out beer",
        "infocal reproduce beer --data beer-files --out beer --methods infocal,infocal-paper --epochs 50",
        "infocal reproduce beer --reviews rated.jsonl --out cases --methods infocal",
    ),
)
@click.option("--data", type=FILE, metavar="DIR", help="Folder with the files of Lei et al. (2016).")
@click.option(
    "--reviews", type=FILE, metavar="FILE", help="Instead: texts with the ratings as columns; no scores."
)
@click.option("--text", default="text", show_default=True, metavar="NAME", help="Column of the text in --reviews.")
@click.option("--vectors", type=FILE, metavar="FILE", help="Word vectors  [default: Lei's, in --data].")
@click.option("--out", type=FILE, required=True, metavar="DIR", help="Folder for models, tables and figures.")
@click.option(
    "--aspects",
    callback=names(ASPECTS),
    default=",".join(ASPECTS),
    show_default=True,
    metavar="NAMES",
    help="Of these.",
)
@click.option(
    "--methods",
    callback=names(ROWS),
    default=",".join(ROWS[:4]),
    show_default=True,
    metavar="NAMES",
    help=f"Of {', '.join(ROWS)}.",
)
@click.option("--seeds", type=click.IntRange(min=1), default=1, show_default=True, help="Runs of each method.")
@click.option(
    "--scoring",
    type=click.Choice(["lei", "car"]),
    default="lei",
    show_default=True,
    help="Which scoring to print and draw; the files have both.",
)
@click.option(
    "--decoder", type=click.Choice(DECODERS), default=DECODERS[0], show_default=True, help="How words are chosen."
)
@click.option(
    "--epochs", type=click.IntRange(min=1), help="Whole passes to train  [default: each method's recipe]."
)
@click.option("--set", "changes", multiple=True, metavar="NAME=VALUE", help="Change a setting of all runs.")
@click.option("--cases", type=click.IntRange(min=0), default=3, show_default=True, help="Texts on the case page.")
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="That infocal-search makes.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Read only N reviews of each file.")
@skip_bad
@click.option("--threads", type=click.IntRange(min=1), help="Processor threads to use.")
@click.option("--quiet", is_flag=True, help="Print nothing but the result and errors.")
def beer(**options: object) -> None:
    """Predict the ratings of beer reviews from 13, 7 and 7 % of their words, and score these words.

    The files are not public any more: bring your own copy (--data), or other rated reviews (--reviews). What is
    trained already in the folder of --out is not trained again, so the same command goes on after a stop.
    """
    request = _Request(**options)  # type: ignore[arg-type]
    voice = Voice(quiet=request.quiet)
    reviews = _reviews(request, voice)
    if request.threads is not None:
        import torch

        torch.set_num_threads(request.threads)
    from infocal.files import one_at_a_time
    from infocal.fitting import forget_warm_ups
    from infocal.reproduce.beer import Plan, reproduce_beer

    plan = Plan(
        aspects=request.aspects,
        rows=request.methods,
        seeds=request.seeds,
        changes=request.changes,
        epochs=request.epochs,
        decoder=request.decoder,
        cases=request.cases,
        trials=request.trials,
    )
    with one_at_a_time(request.out):
        outcome = reproduce_beer(
            reviews,
            plan,
            request.out,
            trackers=progress_bars(voice),
            say=lambda line: voice.aside.print(line, soft_wrap=True),
        )
        forget_warm_ups(request.out)
        _deliver(request, plan, outcome, voice)


def _reviews(request: _Request, voice: Voice) -> Reviews:
    """Where the reviews come from; DataError, and what to bring, if something is not there."""
    from infocal.data.beer import VECTORS
    from infocal.data.readers import BadRows
    from infocal.errors import DataError
    from infocal.reproduce.reviews import WHAT_TO_BRING, LeiReviews, RatedReviews

    if request.data is not None and request.reviews is not None:
        raise click.UsageError("give --data DIR or --reviews FILE, not both")
    bad_rows = BadRows(skip=request.skip_bad)
    try:
        if request.reviews is not None:
            rated = RatedReviews(request.reviews, request.text, request.vectors, request.limit, bad_rows)
            rated.check(request.aspects)
            return rated
        if request.data is None:
            raise DataError("no reviews were named", allowed="--data DIR or --reviews FILE")
        lei = LeiReviews(request.data, request.vectors or request.data / VECTORS, request.limit, bad_rows)
        lei.check(request.aspects)
        return lei
    except DataError:
        for line in WHAT_TO_BRING if request.reviews is None else ():
            voice.aside.print(line, soft_wrap=True)
        raise


def progress_bars(voice: Voice) -> Callable[[], Sequence[Tracker]]:
    """Makes a bar for each run, where somebody looks."""
    from infocal.training.tracking import ProgressBar

    return lambda: [ProgressBar(voice.aside)] if voice.aside.is_terminal and not voice.quiet else []


def _deliver(request: _Request, plan: Plan, outcome: Outcome, voice: Voice) -> None:
    from infocal.reproduce.outputs import result_tables, write_outputs

    rounds_are = "round" if request.epochs is None else "epoch"
    written, notes = write_outputs(outcome, plan, request.out, scoring=request.scoring, rounds_are=rounds_are)
    for note in (*outcome.notes, *notes):
        voice.tell(note)
    for table in result_tables(outcome.results, plan.aspects, request.scoring):
        voice.result.print(table)
    voice.say("Written:")
    for path in written:
        voice.say(f"  {path}")
