"""``infocal train``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from infocal.cli.options import FILE, METHODS, columns_to_train, examples, shares, skip_bad, task_kinds

__all__ = ["train"]


@click.command(
    short_help="Train a model on a file of labelled texts.",
    epilog=examples("infocal train reviews.csv --text body --label stars --out model"),
)
@click.argument("data", type=FILE)
@click.option("--out", type=FILE, required=True, metavar="MODEL", help="Folder for the model.")
@click.option("--dev", type=FILE, metavar="FILE", help="Rows that decide when to stop  [default: a part of DATA].")
@columns_to_train
@click.option(
    "--task",
    multiple=True,
    callback=task_kinds,
    metavar="KIND|LABEL=KIND",
    help="What labels are: auto, classify or regress; of several, LABEL=KIND, repeatable.",
)
@click.option(
    "--select",
    multiple=True,
    callback=shares,
    metavar="SHARE|LABEL=SHARE",
    help="Share of words to predict from; of several labels, LABEL=SHARE, repeatable  [default: 0.2].",
)
@click.option("--vectors", type=FILE, metavar="FILE", help="Pretrained word vectors (text or .gz).")
@click.option("--method", type=click.Choice(METHODS), help="What to train  [default: the recipe's, or infocal].")
@click.option("--recipe", metavar="NAME|FILE", help="Settings to start from  [default: the method's own].")
@click.option("--set", "changes", multiple=True, metavar="NAME=VALUE", help="Change one setting; repeatable.")
@click.option("--seed", type=int, help="Seed of everything random  [default: 0].")
@click.option("--supervise", is_flag=True, help="Also learn from the human's evidence where rows have it.")
@skip_bad
@click.option("--resume", is_flag=True, help="Go on with the interrupted run in MODEL.")
@click.option("--overwrite", is_flag=True, help="Replace the model in MODEL.")
@click.option("--tensorboard", is_flag=True, help="Write curves to MODEL/tensorboard.")
@click.option("--threads", type=click.IntRange(min=1), help="Processor threads to use.")
@click.option("--quiet", is_flag=True, help="Print nothing but the result and errors.")
def train(data: Path, out: Path, **options: Any) -> None:
    """Train a model on DATA and save it in the folder MODEL.

    DATA is a .csv, .tsv, .jsonl (each also .gz) or .parquet file with a column of texts and one of labels (or
    several: --label a --label b), or a folder of `infocal prepare`.
    Ctrl-C saves the best model so far; the same command with --resume goes on.
    """
    from infocal.cli.run import Request, run

    run(Request(data=data, out=out, **options))
