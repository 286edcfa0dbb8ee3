"""The folder of a preparation: what was asked for, whether it is done or begun, and when the old corpus goes."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from infocal.config import load_settings
from infocal.data.encoded import FORMAT, MANIFEST, VOCABULARY, EncodedFolder, damaged
from infocal.errors import DataError, OtherFolderError, SettingsError
from infocal.files import clear_leftovers, write_text
from infocal.text.sources import shown_list

__all__ = [
    "FINAL",
    "KIND",
    "LEAST_CASES",
    "PARTS",
    "Request",
    "finished",
    "is_manifest",
    "plan_of",
    "publish",
    "start",
    "stem_of",
]

PARTS = ("train", "valid", "test")
KIND = "cail"
RULES = 4
"""Raised when cases are sifted in another way, so that what older rules made is not taken for the same."""
LEAST_CASES = 100
WORK, PLAN, FINAL = "work", "plan.json", "final"
_OPTIONS = {"least_cases": "--least-cases", "max_tokens": "--max-tokens", "segmenter": "segmenter"}
_PART = f"({'|'.join(PARTS)})"
_OURS = re.compile(rf"\.?({MANIFEST}|{VOCABULARY}|{_PART}-[0-9]+\.arrow)(\.[0-9]+\.partial)?|{WORK}")
_OURS_AT_WORK = re.compile(rf"\.?({PLAN}|{_PART}-[0-9]+-[0-9]+\.(arrow|crc32))(\.[0-9]+\.partial)?|{FINAL}")


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to prepare.

    Attributes:
        parts: for each of ``PARTS`` the files and folders of its cases; only train must be there.
        out: the folder to write.
        least_cases: a class with fewer cases in train and valid together is dropped with its cases, until each
            that stays has so many.
        max_tokens: longer facts lose their ends.
        segmenter: the name of a segmenter.
        processes: that work at the same time.
        skip_bad: whether lines that cannot be used are left out and counted.
        overwrite: whether another preparation in ``out`` is replaced, once this one is complete.
    """

    parts: Mapping[str, Sequence[Path]]
    out: Path
    least_cases: int = LEAST_CASES
    max_tokens: int = field(default_factory=lambda: load_settings().text.max_tokens)
    segmenter: str = "chinese"
    processes: int = 1
    skip_bad: bool = False
    overwrite: bool = False


def stem_of(part: str, number: int) -> str:
    """What the names of a file's first shards begin with."""
    return f"{part}-{number:03d}"


def plan_of(request: Request, files: Mapping[str, Sequence[Path]]) -> dict[str, Any]:
    """What must be the same for a preparation to be gone on with; of files their name, size and time."""
    chosen = {name: value for name, value in asdict(request).items() if name not in _NOT_PLANNED}
    sources = {
        part: [[file.resolve().name, file.stat().st_size, file.stat().st_mtime_ns] for file in some]
        for part, some in files.items()
    }
    plan: dict[str, Any] = json.loads(json.dumps({"format": FORMAT, "rules": RULES, **chosen, "sources": sources}))
    return plan


def _serves(known: Any, plan: Mapping[str, Any]) -> bool:
    """Whether what was made under a plan serves another: what was read strictly serves with --skip-bad too."""
    return bool(known == plan or known == {**plan, "skip_bad": False})


def _serves_begun(known: Any, plan: Mapping[str, Any]) -> bool:
    """The same of what is not finished: first shards have all classes, however many cases each must have.

    Files may have changed since, as those that were mended; their names are the same.
    """
    return _serves(_as_far_as_begun(known, plan), plan)


def _as_far_as_begun(known: Any, plan: Mapping[str, Any]) -> Any:
    """A plan without what makes no difference to another one as long as it is not finished."""
    if not isinstance(known, dict) or _names(known) != _names(plan):
        return known
    return {**known, **{name: plan[name] for name in ("least_cases", "sources")}}


def _names(plan: Mapping[str, Any]) -> dict[str, list[str]]:
    """Part -> names of its files."""
    sources = plan.get("sources")
    known = sources.items() if isinstance(sources, dict) else ()
    return {part: [file[0] for file in files] for part, files in known}


def _changed(known: Mapping[str, Any], plan: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Part and number of each file that has changed, of two plans whose files have the same names."""
    return [
        (part, number)
        for part, files in plan["sources"].items()
        for number, file in enumerate(files)
        if file != known["sources"][part][number]
    ]


def _difference(known: Any, plan: Mapping[str, Any]) -> str:
    """In what two plans differ, for a message."""
    if not isinstance(known, dict) or any(known.get(name) != plan[name] for name in ("format", "rules")):
        return "of another version of infocal"
    found = [
        f"{option} {known.get(name)} there, {plan[name]} here"
        for name, option in _OPTIONS.items()
        if known.get(name) != plan[name]
    ]
    if known.get("skip_bad") and not plan["skip_bad"]:
        found.append("with --skip-bad there")
    if _names(known) != _names(plan):
        found += [
            f"for {part} it read {shown_list(_names(known).get(part, []))}, and {shown_list(names)} are named here"
            for part, names in _names(plan).items()
            if names != _names(known).get(part, [])
        ]
    else:
        changed = [_names(plan)[part][number] for part, number in _changed(known, plan)]
        found += [f"changed since: {shown_list(changed)}"] * bool(changed)
    return "; ".join(found) or "other settings"


_NOT_PLANNED = ("parts", "out", "processes", "overwrite")


def finished(request: Request, plan: Mapping[str, Any]) -> dict[str, Any] | None:
    """The manifest of a corpus that is what was asked for; None if there is none, or a damaged one to replace."""
    path = request.out / MANIFEST
    if not is_manifest(path):
        return None
    manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if not _serves(manifest.pop("plan", None), plan):
        return None
    try:
        EncodedFolder.open(request.out).check()
        if not {"summary", "not readable"} <= manifest.keys():
            raise damaged(path, "no summary")
    except DataError:
        if request.overwrite:
            return None
        raise
    _clear_work(request.out / WORK, plan)
    return manifest


def _clear_work(work: Path, plan: Mapping[str, Any]) -> None:
    """Remove what a call that was killed at its very end has left; another preparation that is begun stays."""
    ours = work.is_dir() and all(_OURS_AT_WORK.fullmatch(item.name) for item in work.iterdir())
    try:
        begun = json.loads((work / PLAN).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        begun = plan  # the plan is the first file of a preparation, so this is the rest of one that was finished
    if ours and _serves(begun, plan):
        shutil.rmtree(work, ignore_errors=True)


def start(request: Request, plan: Mapping[str, Any]) -> Path:
    """The folder for first shards, with those of an earlier call of the same plan."""
    out, work = request.out, request.out / WORK
    _check_ours(out)
    left = {item.name for item in work.iterdir()} if work.is_dir() else set[str]()
    begun = _known_plan(request) if left else plan
    if left == {PLAN}:  # a plan alone is no work
        begun = plan
    serves = _serves_begun(begun, plan)
    if not request.overwrite and (out / MANIFEST).is_file():
        manifest = json.loads((out / MANIFEST).read_text(encoding="utf-8"))
        raise _other(out, manifest.get("plan"), plan)
    if not serves and not request.overwrite:
        raise _other(out, _as_far_as_begun(begun, plan), plan)
    if not serves:
        shutil.rmtree(work)
    work.mkdir(parents=True, exist_ok=True)
    for part, number in _changed(begun, plan) if serves else ():
        for shard in work.glob(f"{stem_of(part, number)}-*"):
            shard.unlink()
    write_text(work / PLAN, json.dumps(plan, ensure_ascii=False))
    for folder in (out, work):
        clear_leftovers(folder)
    return work


def _other(out: Path, known: Any, plan: Mapping[str, Any]) -> OtherFolderError:
    return OtherFolderError(
        f"{out} holds another preparation ({_difference(known, plan)}); `infocal prepare cail --overwrite` "
        "replaces it; or remove it, or name another folder with --out"
    )


def _known_plan(request: Request) -> Any:
    """What was being prepared; None if that is not known and may be thrown away."""
    path = request.out / WORK / PLAN
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        if request.overwrite:
            return None
        found = f"what an earlier call was preparing cannot be read ({error})"
        raise DataError(
            found, allowed="`infocal prepare cail --overwrite`, which begins anew", source=str(path)
        ) from None


def _check_ours(out: Path) -> None:
    """Refuse a folder with anything in it that this module did not write: it is never thrown away."""
    work = out / WORK
    names = [item.name for item in out.iterdir()] if out.is_dir() else []
    foreign = [name for name in names if not _OURS.fullmatch(name)]
    if work.is_dir():
        foreign += [f"{WORK}/{item.name}" for item in work.iterdir() if not _OURS_AT_WORK.fullmatch(item.name)]
    elif names and not foreign and not is_manifest(out / MANIFEST):
        foreign = names
    if (out / MANIFEST).exists() and not is_manifest(out / MANIFEST):
        foreign.append(MANIFEST)
    if foreign:
        which = shown_list(sorted(set(foreign)))
        raise SettingsError(
            f"{out} holds what `infocal prepare` did not write, or what is damaged ({which}); "
            "name a new or empty folder"
        )


def is_manifest(path: Path) -> bool:
    """Whether a file is the manifest of prepared cases."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(record, dict) and record.get("kind") == KIND and type(record.get("format")) is int


def publish(out: Path) -> None:
    """Put the finished corpus in the place of the old one; a manifest stands only beside a whole corpus."""
    (out / MANIFEST).unlink(missing_ok=True)
    for item in out.iterdir():
        if item.name != WORK and _OURS.fullmatch(item.name):
            item.unlink()
    for item in sorted((out / WORK / FINAL).iterdir(), key=lambda item: item.name == MANIFEST):
        item.replace(out / item.name)
    shutil.rmtree(out / WORK)
