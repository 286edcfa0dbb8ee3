"""Where a verb's words go: results to stdout, everything else to stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

__all__ = ["Voice", "byte_sink", "human_size"]


class Voice:
    """What a verb says.

    Args:
        quiet: whether to leave out all but results and errors.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        from rich.console import Console

        self.quiet = quiet
        self.result = Console(highlight=False, markup=False, emoji=False)
        self.aside = Console(stderr=True, highlight=False, markup=False, emoji=False, quiet=quiet)

    def tell(self, note: str) -> None:
        """A sentence that the user should read."""
        from infocal.markup import visible

        self.aside.print(f"note: {visible(note)}", soft_wrap=True)

    def say(self, line: str, style: str = "") -> None:
        """A line of the result; never broken, so that paths and commands can be copied."""
        from infocal.markup import visible

        self.result.print(visible(line), soft_wrap=True, style=style)


@contextmanager
def byte_sink(out: Path | None) -> Iterator[Callable[[str], None]]:
    """A function that writes lines as UTF-8 to a file, which appears when all is written, or to stdout."""
    if out is None:
        yield lambda line: click.echo(line.encode("utf-8"))
        return
    from infocal.files import writing

    with writing(out) as stream:

        def write(line: str) -> None:
            stream.write(line.encode("utf-8") + b"\n")

        yield write


def human_size(count: int) -> str:
    """A number of bytes for people."""
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"
