"""The command line: thin verbs, each of which imports what it needs when it runs."""

from __future__ import annotations

import click

from infocal import __version__
from infocal.cli import compare, demo, evaluate, explain, inspect, prepare, reproduce, reproduce_cail, train
from infocal.cli.failures import EXIT_CODES, Verbs

__all__ = ["main"]

EPILOG = "\b\nExit codes:\n" + "\n".join(f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES.items())


@click.group(cls=Verbs, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="infocal", message="%(prog)s %(version)s")
def main() -> None:
    """Text models that predict, and show the words each prediction was made from.

    New here? `infocal demo` trains on built-in reviews and shows the evidence.
    """


for _verb in (
    train.train,
    evaluate.evaluate,
    explain.explain,
    compare.compare,
    reproduce.reproduce,
    prepare.prepare,
    demo.demo,
    inspect.info,
    inspect.recipes,
):
    main.add_command(_verb)
reproduce.reproduce.add_command(reproduce_cail.cail)
