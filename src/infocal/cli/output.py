"""Where a verb's words go: results to stdout, everything else to stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

__all__ = ["Voice", "byte_sink", "check_apart", "check_target", "human_size"]


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


def check_apart(files: Mapping[str, Path | None]) -> None:
    """Raise click.UsageError if two of the files, by what the user calls them, are the same."""
    seen: dict[Path, str] = {}
    for name, path in files.items():
        if path is None:
            continue
        other = seen.setdefault(path.resolve(), name)
        if other != name:
            raise click.UsageError(
                f"{other} and {name} are the same file, {path}; rows to judge by must be others"
            )


def check_target(out: Path | None, option: str, *, spare: Sequence[Path | None]) -> None:
    """Look whether a result can be written, before the work begins.

    Args:
        out: the file to write; None for stdout.
        option: which names it.
        spare: files and folders that the command reads, of which nothing may be replaced.

    Raises:
        click.UsageError: it is one of these, or lies in one.
        UnwritableError: there can be no such file.
    """
    if out is None:
        return
    from infocal.files import check_writable

    for path in filter(None, spare):
        inside = path.is_dir() and path.resolve() in out.resolve().parents
        if inside or path.resolve() == out.resolve():
            raise click.UsageError(f"{option} {out} would replace what is read from {path}; name another file")
    check_writable(out)


def human_size(count: int) -> str:
    """A number of bytes for people."""
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"
