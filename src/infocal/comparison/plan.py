"""Which runs a comparison consists of: every contender with every seed, each with all its settings."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from infocal import __version__
from infocal.comparison.results import HUMAN
from infocal.config import load_settings, recipe_names
from infocal.data.readers import BadRows, read_documents
from infocal.data.records import format_of
from infocal.errors import SettingsError
from infocal.files import sha256_of
from infocal.methods import METHODS, WITHOUT_EVIDENCE, changes_for
from infocal.settings import Settings
from infocal.training.preparation import Prepared, prepare
from infocal.types import Document

__all__ = ["FORMAT", "RUNS", "Part", "Request", "Run", "Sources", "plan_runs"]

FORMAT = 1
"""Of a run's file; another number makes all runs anew."""

RUNS = "runs"
"""The folder of the runs' files."""

Part = Literal["train", "dev", "test"]


@dataclass(frozen=True, kw_only=True)
class Sources:
    """The three files and what to read of them; None where a column has the usual name."""

    train: Path
    dev: Path
    test: Path
    text: str | None = None
    label: str | None = None
    rationale: str | None = None
    skip_bad: bool = False

    @property
    def from_text(self) -> bool:
        """Whether labels come from a file in which everything is text."""
        return format_of(self.train) in (".csv", ".tsv")

    def path(self, part: Part) -> Path:
        """The file of one part."""
        return {"train": self.train, "dev": self.dev, "test": self.test}[part]

    def read(self, part: Part, bad_rows: BadRows) -> Iterator[Document]:
        """The labelled documents of one part; a column that was named must be there, '' names none."""
        return read_documents(
            self.path(part),
            bad_rows=bad_rows,
            text=self.text or "text",
            label=self.label or "label",
            rationale="rationale" if self.rationale is None else self.rationale or None,
            require_rationale=bool(self.rationale),
        )

    def prepare(self, settings: Settings, bad_rows: BadRows) -> Prepared:
        """Training and held-out rows as ``infocal train`` prepares them."""
        return prepare(
            self.read("train", bad_rows),
            self.read("dev", bad_rows),
            settings,
            bad_rows=bad_rows,
            source=str(self.train),
            dev_source=str(self.dev),
            from_text=self.from_text,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data that ``Sources.from_json`` reads back, paths in full."""
        files = {part: str(Path(path).resolve()) for part, path in self._files().items()}
        return {**asdict(self), **files}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Sources:
        """Read back what :meth:`to_json` gave."""
        return cls(**{**record, **{part: Path(record[part]) for part in ("train", "dev", "test")}})

    def contents(self) -> dict[str, Any]:
        """What changes whenever other rows would be read, wherever the files lie."""
        return {**asdict(self), **{part: _digest(path) for part, path in self._files().items()}}

    def _files(self) -> dict[str, Path]:
        return {"train": self.train, "dev": self.dev, "test": self.test}


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to compare.

    Attributes:
        sources: the data.
        out: folder for everything that comes out.
        methods: names of methods or recipes, or paths of YAML files.
        seeds: how many runs of each, with the seeds 0, 1, ...
        select: share of words to select; None takes each recipe's own.
        task: what the labels are; None lets them tell.
        vectors: pretrained word vectors.
        changes: ``name=value`` settings for all; those of a method's own group go to its contenders only.
        decoder: the one that tables, figures and cases show.
        shares: other shares at which the trained models are scored.
        processes: runs at a time.
        threads: processor threads of each; None shares the cores among the processes.
        keep_models: whether to save the trained models, each in a folder of ``models``.
    """

    sources: Sources
    out: Path
    methods: tuple[str, ...]
    seeds: int = 5
    select: float | None = None
    task: str | None = None
    vectors: Path | None = None
    changes: tuple[str, ...] = ()
    decoder: str = "average"
    shares: tuple[float, ...] = (0.1, 0.2, 0.3)
    processes: int = 1
    threads: int | None = None
    keep_models: bool = False


@dataclass(frozen=True, kw_only=True)
class Run:
    """One contender with one seed.

    Attributes:
        contender: its name in tables.
        settings: everything that decides the run, besides the data.
        identity: changes whenever its result would.
        path: the file of its result.
    """

    contender: str
    settings: Settings
    identity: str
    path: Path

    @property
    def seed(self) -> int:
        """The seed of everything random in it."""
        return self.settings.seed

    @property
    def model(self) -> Path:
        """The folder of its model, if models are kept."""
        return self.path.parents[1] / "models" / self.path.stem


def plan_runs(request: Request) -> list[Run]:
    """All runs, seed by seed, so that every contender has some early.

    Raises:
        SettingsError: a contender is unknown or named twice, or a setting cannot be used.
    """
    contenders = _contenders(request.methods)
    methods = {name: load_settings(recipe).method for name, recipe in contenders.items()}
    for name, method in methods.items():
        if method in WITHOUT_EVIDENCE:
            raise SettingsError(f"{name} is the method {method}, which shows no evidence to compare; leave it out")
    contents = request.sources.contents()
    runs = []
    for seed in range(request.seeds):
        for name, recipe in contenders.items():
            changes = changes_for(methods[name], request.changes, among=set(methods.values()))
            if request.vectors is not None:
                changes.append(f"text.vectors={json.dumps(str(request.vectors.resolve()))}")
            settings = load_settings(recipe, changes, task=request.task, select=request.select, seed=seed)
            identity = _identity(settings, contents, request.shares)
            path = request.out / RUNS / f"{_file_name(name)}-{seed}.json"
            runs.append(Run(contender=name, settings=settings, identity=identity, path=path))
    return runs


def _contenders(words: Sequence[str]) -> dict[str, str]:
    """Name in tables -> recipe."""
    found: dict[str, str] = {}
    for word in words:
        if word in WITHOUT_EVIDENCE or (word not in recipe_names() and not Path(word).is_file()):
            methods = [name for name in METHODS if name not in WITHOUT_EVIDENCE]
            raise SettingsError(
                f"there is no method or recipe {word!r} to compare; methods: {', '.join(methods)}; recipes: "
                f"{', '.join(name for name in recipe_names() if name not in METHODS)}; or the path of a YAML file"
            )
        name = word if word in recipe_names() else Path(word).stem
        if name == HUMAN:
            raise SettingsError(
                f"{word}: {HUMAN!r} is the row of the human's own words; give the file another name"
            )
        if _file_name(name) in map(_file_name, found):
            raise SettingsError(f"two of the methods are called {name!r}; leave one out, or rename its file")
        found[name] = word
    if not found:
        raise SettingsError("there is nothing to compare; name methods, recipes or YAML files")
    return found


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]", "_", name)


def _identity(settings: Settings, contents: dict[str, Any], shares: Sequence[float]) -> str:
    values = settings.model_dump(mode="json")
    if settings.text.vectors is not None:
        values["text"]["vectors"] = _digest(Path(settings.text.vectors))
    parts = {"format": FORMAT, "version": __version__, "settings": values, "data": contents, "shares": shares}
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


@cache
def _digest_of(path: Path, size: int, changed: int) -> str:
    return sha256_of(path)


def _digest(path: Path) -> str:
    """The hash of a file, computed once while it stays as it is."""
    status = path.stat()
    return _digest_of(path.resolve(), status.st_size, status.st_mtime_ns)
