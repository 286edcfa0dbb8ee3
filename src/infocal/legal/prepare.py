"""Cases of CAIL2018 to an encoded corpus, once: read, sifted, segmented, encoded; in several processes, resumable.

Lines go to processes in blocks; each writes a first shard. When all cases were seen, the words and classes that
stay are known, and the first shards become final ones. Whatever was written before a kill is not done again. What
stood in the corpus's folder goes only when the new corpus is complete.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field
from itertools import count, islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from infocal.config import load_settings
from infocal.data.cail import INTERVALS, REASONS, case_files, encoding_of
from infocal.data.encoded import FORMAT, MANIFEST, VOCABULARY, EncodedFolder, checksum, damaged, read_shard
from infocal.errors import DataError, InfocalError, SettingsError
from infocal.files import clear_leftovers, write_text
from infocal.legal.shards import PAIR, Block, Outcome, encode_block, finish_shard
from infocal.text.segmentation import segmenter_named
from infocal.text.sources import open_bytes, shown_list
from infocal.text.vocabulary import Vocabulary

__all__ = ["LEAST_CASES", "PARTS", "Request", "prepare_cases"]

PARTS = ("train", "valid", "test")
KIND = "cail"
RULES = 2
"""Raised when cases are sifted in another way, so that what older rules made is not taken for the same."""
LEAST_CASES = 100
BLOCK_LINES = 4000
WORK, PLAN, FINAL = "work", "plan.json", "final"
_PART = f"({'|'.join(PARTS)})"
_OURS = re.compile(rf"\.?({MANIFEST}|{VOCABULARY}|{_PART}-[0-9]+\.arrow)(\.[0-9]+\.partial)?|{WORK}")
_OURS_AT_WORK = re.compile(rf"\.?({PLAN}|{_PART}-[0-9]+-[0-9]+\.arrow)(\.[0-9]+\.partial)?|{FINAL}")

Progress = Callable[[str, int, float], None]
Result = TypeVar("Result")


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


def prepare_cases(request: Request, *, progress: Progress = lambda stage, rows, seconds: None) -> dict[str, Any]:
    """Write the encoded corpus, or go on where an earlier call with the same request was stopped.

    Args:
        request: what to prepare.
        progress: called with the stage ("encode" or "finish"), cases done so far, and seconds since it began.

    Returns:
        The manifest, as it stands in the folder.

    Raises:
        DataError: a file or a line cannot be used, or no class is left.
        SettingsError: the folder holds something else.
    """
    files = {part: [file for path in request.parts.get(part, ()) for file in case_files(path)] for part in PARTS}
    if not files["train"]:
        raise SettingsError("there is nothing to train on; name files of cases for the part train")
    for file in (file for some in files.values() for file in some):
        if not file.stat().st_size:
            raise DataError("the file is empty", allowed="cases, one JSON object a line", source=str(file))
    segmenter_named(request.segmenter)  # before any work, where its package is missing
    plan = _plan(request, files)
    if (done := _finished(request, plan)) is not None:
        return done
    work = _start(request, plan)
    with _Processes(request.processes) as processes:
        shards = _encode(request, files, work, processes, progress)
        manifest = _finish(request, files, shards, work / FINAL, processes, progress)
    write_text(work / FINAL / MANIFEST, json.dumps({**manifest, "plan": plan}, ensure_ascii=False, indent=1))
    _publish(request.out)
    return manifest


def _plan(request: Request, files: Mapping[str, Sequence[Path]]) -> dict[str, Any]:
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


_NOT_PLANNED = ("parts", "out", "processes", "overwrite")


def _finished(request: Request, plan: Mapping[str, Any]) -> dict[str, Any] | None:
    """The manifest of a corpus that is what was asked for; None if there is none, or a damaged one to replace."""
    path = request.out / MANIFEST
    if not _is_manifest(path):
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
    return manifest


def _start(request: Request, plan: Mapping[str, Any]) -> Path:
    """The folder for first shards, with those of an earlier call of the same plan."""
    out, work = request.out, request.out / WORK
    _check_ours(out)
    serves = _serves(_known_plan(request), plan) if work.is_dir() and any(work.iterdir()) else True
    if not request.overwrite and (not serves or (out / MANIFEST).is_file()):
        raise SettingsError(
            f"{out} holds another preparation (other files or settings); use --overwrite to replace it, or name "
            "another folder with --out"
        )
    if not serves:
        shutil.rmtree(work)
    work.mkdir(parents=True, exist_ok=True)
    write_text(work / PLAN, json.dumps(plan, ensure_ascii=False))
    for folder in (out, work):
        clear_leftovers(folder)
    return work


def _known_plan(request: Request) -> Any:
    """What was being prepared; None if that is not known and may be thrown away."""
    path = request.out / WORK / PLAN
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        if request.overwrite:
            return None
        found = f"what an earlier call was preparing cannot be read ({error})"
        raise DataError(found, allowed="--overwrite, which begins anew", source=str(path)) from None


def _check_ours(out: Path) -> None:
    """Refuse a folder with anything in it that this module did not write: it is never thrown away."""
    work = out / WORK
    if out.exists() and not out.is_dir():
        raise SettingsError(f"{out} is a file; name a new or empty folder")
    names = [item.name for item in out.iterdir()] if out.is_dir() else []
    foreign = [name for name in names if not _OURS.fullmatch(name)]
    if work.is_dir():
        foreign += [f"{WORK}/{item.name}" for item in work.iterdir() if not _OURS_AT_WORK.fullmatch(item.name)]
    elif names and not foreign and not _is_manifest(out / MANIFEST):
        foreign = names
    if (out / MANIFEST).exists() and not _is_manifest(out / MANIFEST):
        foreign.append(MANIFEST)
    if foreign:
        which = shown_list(sorted(set(foreign)))
        raise SettingsError(
            f"{out} holds what `infocal prepare` did not write, or what is damaged ({which}); "
            "name a new or empty folder"
        )


def _is_manifest(path: Path) -> bool:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(record, dict) and record.get("kind") == KIND and type(record.get("format")) is int


def _publish(out: Path) -> None:
    """Put the finished corpus in the place of the old one; a manifest stands only beside a whole corpus."""
    (out / MANIFEST).unlink(missing_ok=True)
    for item in out.iterdir():
        if item.name != WORK and _OURS.fullmatch(item.name):
            item.unlink()
    for item in sorted((out / WORK / FINAL).iterdir(), key=lambda item: item.name == MANIFEST):
        item.replace(out / item.name)
    shutil.rmtree(out / WORK)


class _Processes:
    """Runs functions in other processes, or in this one if there is only one; results come in order."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._pool: ProcessPoolExecutor | None = None
        if count > 1:
            self._pool = ProcessPoolExecutor(
                count,
                mp_context=get_context("spawn"),
                initializer=signal.signal,  # an interrupt is this process's affair
                initargs=(signal.SIGINT, signal.SIG_IGN),
            )

    def __enter__(self) -> _Processes:
        return self

    def __exit__(self, *problem: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def map(self, work: Callable[..., Result], jobs: Iterable[tuple[Any, ...]]) -> Iterator[Result]:
        """``work(*job)`` for each job; no more jobs are made than can be worked on soon.

        Raises:
            InfocalError: a process was ended from outside.
        """
        if self._pool is None:
            yield from (work(*job) for job in jobs)
            return
        waiting: deque[Future[Result]] = deque()
        try:
            for job in jobs:
                waiting.append(self._pool.submit(work, *job))
                if len(waiting) > 2 * self._count:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise InfocalError(
                f"one of {self._count} processes was ended from outside, perhaps because memory ran out; the same "
                "command goes on where this one stopped, and fewer --processes need less memory"
            ) from None


def _encode(
    request: Request,
    files: Mapping[str, Sequence[Path]],
    work: Path,
    processes: _Processes,
    progress: Progress,
) -> dict[str, list[Path]]:
    """First shards of all cases; for each part their files, in order."""
    shards: dict[str, list[Path]] = {part: [] for part in PARTS}

    def jobs() -> Iterator[tuple[Block]]:
        for part, some in files.items():
            for number, file in enumerate(some):
                for block in _blocks(request, file, work / f"{part}-{number:03d}"):
                    shards[part].append(block.target)
                    yield (block,)

    began, rows = time.monotonic(), 0
    for outcome in processes.map(_encode_once, jobs()):
        if outcome.error is not None:
            raise DataError(**{**outcome.error, "allowed": f"{outcome.error['allowed']}; or --skip-bad"})
        rows += outcome.rows
        progress("encode", rows, time.monotonic() - began)
    return shards


def _blocks(request: Request, file: Path, stem: Path) -> Iterator[Block]:
    encoding = encoding_of(file)
    with open_bytes(file) as stream:
        for number in count():
            lines = tuple(islice(stream, BLOCK_LINES))
            if not lines:
                return
            target = stem.with_name(f"{stem.name}-{number:06d}.arrow")
            yield Block(
                lines=() if target.is_file() else lines,
                first=1 + number * BLOCK_LINES,
                encoding=encoding,
                source=str(file),
                segmenter=request.segmenter,
                max_tokens=request.max_tokens,
                skip_bad=request.skip_bad,
                target=target,
            )


def _encode_once(block: Block) -> Outcome:
    if not block.lines:  # done before
        return Outcome(int(read_shard(block.target)[1]["rows"]))
    return encode_block(block)


def _finish(
    request: Request,
    files: Mapping[str, Sequence[Path]],
    shards: Mapping[str, Sequence[Path]],
    final: Path,
    processes: _Processes,
    progress: Progress,
) -> dict[str, Any]:
    """Final shards, the vocabulary, and all that the manifest says."""
    shutil.rmtree(final, ignore_errors=True)
    totals = _Totals.of(shards)
    totals.check_left(files)
    classes = totals.kept(request.least_cases)
    short = [name for name in PAIR if len(classes[name]) < 2]
    if short:
        raise DataError(
            f"fewer than two classes of {' and '.join(short)} have {request.least_cases} cases or more",
            allowed="more cases, or a smaller --least-cases",
        )
    totals.check_left(files, classes)
    text = load_settings().text
    vocabulary = Vocabulary.build(
        totals.words,
        min_count=text.min_count,
        max_words=text.max_words,
        unknown_buckets=text.unknown_buckets,
    )
    write_text(final / VOCABULARY, json.dumps(vocabulary.to_json(), ensure_ascii=False))
    numbers = {name: {value: place for place, value in enumerate(values)} for name, values in classes.items()}
    parts = _final_shards(final, shards, numbers, processes, progress)
    return {
        "format": FORMAT,
        "kind": KIND,
        "segmenter": request.segmenter,
        "max_tokens": request.max_tokens,
        "least_cases": request.least_cases,
        "labels": classes,
        "vocabulary_crc32": checksum(final / VOCABULARY),
        "parts": parts,
        "summary": totals.summary(parts),
        "not readable": totals.examples,
    }


def _final_shards(
    final: Path,
    shards: Mapping[str, Sequence[Path]],
    numbers: Mapping[str, Mapping[str, int]],
    processes: _Processes,
    progress: Progress,
) -> dict[str, Any]:
    order = [(part, place, first) for part, some in shards.items() for place, first in enumerate(some)]
    jobs = (
        (first, final / f"{part}-{place:05d}.arrow", final / VOCABULARY, numbers) for part, place, first in order
    )
    parts: dict[str, Any] = {part: {"shards": [], "cut": 0, "rare": 0} for part, some in shards.items() if some}
    began, rows = time.monotonic(), 0
    for (part, _, _), found in zip(order, processes.map(finish_shard, jobs), strict=True):
        parts[part]["cut"] += found.pop("cut")
        parts[part]["rare"] += found.pop("rare")
        parts[part]["shards"].append(found)
        rows += found["rows"]
        progress("finish", rows, time.monotonic() - began)
    return parts


@dataclass
class _Totals:
    """What the notes of all first shards add up to."""

    words: Counter[str] = field(default_factory=Counter)
    pairs: dict[str, Counter[tuple[str, str]]] = field(default_factory=dict)
    read: Counter[str] = field(default_factory=Counter)
    dropped: dict[str, Counter[str]] = field(default_factory=dict)
    bad: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, shards: Mapping[str, Sequence[Path]]) -> _Totals:
        """Words of train alone; pairs of an article and a charge of each part."""
        totals = cls()
        for part, some in shards.items():
            totals.dropped[part], totals.pairs[part] = Counter(), Counter()
            for shard in some:
                totals._add(part, read_shard(shard)[1])
        return totals

    def _add(self, part: str, note: Mapping[str, Any]) -> None:
        self.read[part] += note["rows"]
        self.dropped[part].update(note["dropped"])
        self.bad[part] += note["bad"]["count"]
        self.examples = [*self.examples, *note["bad"]["examples"]][:5]
        if part == "train":
            self.words.update(note["words"])
        self.pairs[part].update({(article, charge): cases for article, charge, cases in note["pairs"]})

    def kept(self, least: int) -> dict[str, list[str]]:
        """The classes that stay: articles by number, charges by how often they occur, all intervals.

        Cases that go with a rare charge can make their article rare, and so on: it is asked until all have enough.
        """
        pairs = self.pairs["train"] + self.pairs["valid"]
        while True:
            articles, charges = Counter[str](), Counter[str]()
            for (article, charge), cases in pairs.items():
                articles[article] += cases
                charges[charge] += cases
            rare = [pair for pair in pairs if min(articles[pair[0]], charges[pair[1]]) < least]
            if not rare:
                names = [name for name, _ in charges.most_common()]
                return {"article": sorted(articles, key=int), "charge": names, "term": list(INTERVALS)}
            for pair in rare:
                del pairs[pair]

    def check_left(
        self, files: Mapping[str, Sequence[Path]], classes: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        """Refuse a part whose files leave no case, of these classes if they are known already.

        Raises:
            DataError: it names the files, and how many cases each filter removed.
        """
        for part in (part for part in PARTS if files[part]):
            found = self.pairs[part]
            if any(classes is None or _within(pair, classes) for pair in found):
                continue
            gone = Counter({"not readable": self.bad[part], **self.dropped[part], "rare class": found.total()})
            why = "; ".join(f"{cases:,} {reason}" for reason, cases in gone.items() if cases)
            raise DataError(
                f"no case is left for the part {part}: {self.read[part]:,} read{': ' * bool(why)}{why}",
                allowed="cases of first instance with one charge, one article and a term"
                + (", of classes that are not rare (--least-cases)" if found else "")
                + ("" if part == "train" else f"; or no files for {part}"),
                source=", ".join(map(str, files[part][:3])) + ", ..." * (len(files[part]) > 3),
            )

    def summary(self, parts: Mapping[str, Any]) -> dict[str, Any]:
        """For each part how many cases were read, left out for each reason, and stayed."""
        return {
            part: {
                "read": self.read[part],
                "not readable": self.bad[part],
                **{reason: self.dropped[part][reason] for reason in REASONS},
                "rare class": record["rare"],
                "cases": sum(shard["rows"] for shard in record["shards"]),
                "tokens": sum(shard["tokens"] for shard in record["shards"]),
                "cut": record["cut"],
            }
            for part, record in parts.items()
        }


def _within(pair: tuple[str, str], classes: Mapping[str, Sequence[str]]) -> bool:
    return all(value in classes[name] for name, value in zip(PAIR, pair, strict=True))
