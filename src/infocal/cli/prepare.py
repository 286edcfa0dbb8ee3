"""``infocal prepare``: data sets that are read, sifted and encoded once, however large."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from infocal.cli.options import FILE, examples, skip_bad
from infocal.cli.output import Voice

__all__ = ["Bar", "by_name", "least_cases", "max_tokens", "prepare"]

NAMES = {"train": ("train", "training"), "valid": ("valid", "validation", "dev"), "test": ("test", "testing")}
"""Words of which one stands in the names of the files of each part."""


least_cases = click.option(
    "--least-cases",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Charges and articles with fewer cases in train and valid are dropped.",
)

max_tokens = click.option(
    "--max-tokens", type=click.IntRange(min=1), default=1000, show_default=True, help="Longer facts are cut."
)


@click.group(short_help="Read and encode a large data set once.")
def prepare() -> None:
    """Read a published data set once and write it encoded, so that training can start at once and on any size."""


@prepare.command(
    short_help="Criminal cases of CAIL2018.",
    epilog=examples(
        "infocal prepare cail --data CAIL2018 --out cases",
        "infocal prepare cail --train first_stage/train.json --valid valid.json --test test.json --out cases",
        "infocal train cases --label charge --out model",
    ),
)
@click.option(
    "--data",
    type=FILE,
    metavar="DIR",
    help="Folder whose files have the word train, valid or dev, or test in their names.",
)
@click.option(
    "--train", type=FILE, multiple=True, metavar="PATH", help="File or folder of training cases; repeatable."
)
@click.option("--valid", type=FILE, multiple=True, metavar="PATH", help="The same, of cases to hold out.")
@click.option("--test", type=FILE, multiple=True, metavar="PATH", help="The same, of cases to test with.")
@click.option("--out", type=FILE, required=True, metavar="DIR", help="Folder for the encoded corpus.")
@least_cases
@max_tokens
@click.option("--processes", type=click.IntRange(min=1), help="That work at once  [default: one per core].")
@skip_bad
@click.option("--overwrite", is_flag=True, help="Replace another preparation in DIR.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def cail(
    data: Path | None,
    train: tuple[Path, ...],
    valid: tuple[Path, ...],
    test: tuple[Path, ...],
    processes: int | None,
    quiet: bool,
    **options: Any,
) -> None:
    """Cases with one charge and one article, of first instance, their penalty in eleven intervals, words by jieba.

    The labels to train for are article, charge and term. The same command goes on where it was stopped.
    """
    import os

    from infocal.legal.prepare import Request, prepare_cases

    parts = {"train": train, "valid": valid, "test": test}
    voice = Voice(quiet=quiet)
    if data is not None:
        if any(parts.values()):
            raise click.UsageError("give --data, or --train, --valid and --test, not both")
        parts = by_name(data, otherwise=", or --train PATH instead of --data", tell=voice.tell)
    if not parts["train"]:
        raise click.UsageError("there is nothing to prepare: give --data DIR or --train PATH")
    with Bar(voice) as bar:
        manifest = prepare_cases(
            Request(parts=parts, processes=processes or os.cpu_count() or 1, **options), progress=bar.move
        )
    if not quiet:
        _report(manifest, voice)


def by_name(
    folder: Path, *, otherwise: str = "", tell: Callable[[str], None] = lambda note: None
) -> dict[str, tuple[Path, ...]]:
    """The files of each part, by the words of their names.

    Args:
        folder: where they are.
        otherwise: what else is allowed, for messages.
        tell: called with a sentence if files are left unread because their names fit no part.

    Raises:
        DataError: a name fits two parts, or none fits train.
    """
    from infocal.data.cail import case_files, inner_folders
    from infocal.data.encoded import MANIFEST
    from infocal.errors import DataError
    from infocal.legal.folder import is_manifest
    from infocal.text.sources import shown_list

    files = case_files(folder)
    fitting = {file: _parts_of(file.name) for file in files}
    for file, several in fitting.items():
        if len(several) > 1:
            found = f"the file's name fits several parts: {', '.join(several)}"
            raise DataError(found, allowed=f"one of these words{otherwise}", source=str(file))
    parts = {part: tuple(file for file in files if part in fitting[file]) for part in NAMES}
    if not parts["train"]:
        names = shown_list([file.name for file in files])
        found = f"no file has train in its name; there are {names}{inner_folders(folder)}"
        if is_manifest(folder / MANIFEST):
            found = "this is what `infocal prepare` wrote, not what it reads"
        raise DataError(found, allowed=f"such a file{otherwise}", source=str(folder))
    if unread := [file.name for file, fits in fitting.items() if not fits]:
        words = ", ".join(word for known in NAMES.values() for word in known)
        tell(f"Not read, because no word of the name is one of {words}: {shown_list(unread)}")
    return parts


def _parts_of(name: str) -> list[str]:
    """The parts that a file's name speaks of, by its whole words: those between other characters than letters."""
    words = set(re.findall("[a-z]+", name.lower()))
    return [part for part, known in NAMES.items() if words.intersection(known)]


class Bar:
    """How many cases were read, and how many a second."""

    def __init__(self, voice: Voice) -> None:
        from rich.progress import Progress, TextColumn, TimeElapsedColumn

        self._progress = Progress(
            TextColumn("{task.description}"),
            TextColumn("{task.completed:,.0f} cases"),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            console=voice.aside,
            transient=True,
            disable=not voice.aside.is_terminal or voice.quiet,
        )
        self._tasks: dict[str, Any] = {}

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._progress.stop()

    def move(self, stage: str, rows: int, seconds: float) -> None:
        """Show where a stage is."""
        if stage not in self._tasks:
            self._tasks[stage] = self._progress.add_task(stage, total=None, rate="")
        self._progress.update(
            self._tasks[stage], completed=rows, rate=f"{rows / max(seconds, 1e-9):,.0f} a second"
        )


def _report(manifest: Mapping[str, Any], voice: Voice) -> None:
    from infocal.report import Table

    summary = manifest["summary"]
    names = list(next(iter(summary.values())))
    rows = [(name, *(f"{part[name]:,}" for part in summary.values())) for name in names]
    voice.result.print(Table("Cases", ("", *summary), rows))
    for name, classes in manifest["labels"].items():
        voice.say(f"{name}: {len(classes)} classes")
    for example in manifest["not readable"]:
        voice.tell(example)
