"""``infocal demo``."""

from __future__ import annotations

from pathlib import Path

import click

from infocal.cli.options import FILE, examples
from infocal.cli.output import Voice

__all__ = ["demo"]


@click.command(
    short_help="Train on built-in reviews and show the evidence.",
    epilog=examples("infocal demo --out demo-model --report report.html"),
)
@click.option(
    "--out", type=FILE, default="demo-model", show_default=True, metavar="DIR", help="Folder for the model."
)
@click.option("--report", type=FILE, default="report.html", show_default=True, metavar="FILE", help="HTML report.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of everything random."
)
@click.option("--rows", type=click.IntRange(min=100), default=2400, show_default=True, help="Training reviews.")
def demo(out: Path, report: Path, seed: int, rows: int) -> None:
    """Write watch reviews whose evidence is known, train on them, and show what the model read.

    A model of an earlier demo in DIR is replaced. Nothing is downloaded.
    """
    from infocal.demo import run_demo
    from infocal.files import check_writable

    if out.resolve() in (report.resolve(), *report.resolve().parents):
        raise click.UsageError(f"--report {report} lies in the model's folder {out}; name a file elsewhere")
    check_writable(report)
    run_demo(out, report, seed=seed, rows=rows, console=Voice().result)
