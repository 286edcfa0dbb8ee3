"""Cases of CAIL2018 to an encoded corpus, once: read, sifted, segmented, encoded; in several processes, resumable.

Lines go to processes in blocks; each writes a first shard. When all cases were seen, the words and classes that
stay are known, and the first shards become final ones. Whatever was written before a kill is not done again. What
stood in the corpus's folder goes only when the new corpus is complete.
"""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from typing import Any

from infocal.config import load_settings
from infocal.data.cail import INTERVALS, REASONS, case_files, encoding_of
from infocal.data.encoded import FORMAT, MANIFEST, VOCABULARY, arrow, checksum, read_shard
from infocal.errors import DataError, SettingsError
from infocal.files import one_at_a_time, write_text
from infocal.legal.folder import (
    FINAL,
    KIND,
    LEAST_CASES,
    PARTS,
    Request,
    finished,
    plan_of,
    publish,
    start,
    stem_of,
)
from infocal.legal.processes import Processes
from infocal.legal.shards import PAIR, Block, Outcome, encode_block, finish_shard, is_whole
from infocal.text.segmentation import segmenter_named
from infocal.text.sources import open_bytes
from infocal.text.vocabulary import Vocabulary

__all__ = ["LEAST_CASES", "PARTS", "Request", "prepare_cases"]

BLOCK_LINES = 4000

Progress = Callable[[str, int, float], None]


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
        BusyFolderError: another process is preparing cases in it.
        UnwritableError: there can be no such folder.
    """
    files = {part: [file for path in request.parts.get(part, ()) for file in case_files(path)] for part in PARTS}
    if not files["train"]:
        raise SettingsError("there is nothing to train on; name files of cases for the part train")
    _check_files(files)
    arrow()  # before any work, where a package is missing
    segmenter_named(request.segmenter)
    plan = plan_of(request, files)
    with one_at_a_time(request.out):
        if (done := finished(request, plan)) is not None:
            return done
        work = start(request, plan)
        with Processes(request.processes) as processes:
            shards = _encode(request, files, work, processes, progress)
            manifest = _finish(request, files, shards, work / FINAL, processes, progress)
        _check_unchanged(request, files, plan)
        write_text(work / FINAL / MANIFEST, json.dumps({**manifest, "plan": plan}, ensure_ascii=False, indent=1))
        publish(request.out)
    return manifest


def _check_unchanged(request: Request, files: Mapping[str, Sequence[Path]], plan: Mapping[str, Any]) -> None:
    """Raise DataError where a file was written while it was read; the next call reads it again."""
    now = plan_of(request, files)["sources"]
    for part, some in files.items():
        for file, before, after in zip(some, plan["sources"][part], now[part], strict=True):
            if before != after:
                allowed = "files that nobody writes meanwhile; run the same command again"
                raise DataError("the file changed while it was read", allowed=allowed, source=str(file))


def _check_files(files: Mapping[str, Sequence[Path]]) -> None:
    """Raise DataError where a file is empty, or its cases would count twice."""
    seen: dict[str, Path] = {}
    for file in (file for some in files.values() for file in some):
        if not file.stat().st_size:
            raise DataError("the file is empty", allowed="cases, one JSON object a line", source=str(file))
        other = seen.setdefault(str(file.resolve()).lower().removesuffix(".gz"), file)
        if other is not file:
            same = "is named twice" if other.resolve() == file.resolve() else f"stands beside {other}"
            raise DataError(
                f"the file {same}; its cases would count twice",
                allowed="each file once, in one part, packed or not",
                source=str(file),
            )


def _encode(
    request: Request,
    files: Mapping[str, Sequence[Path]],
    work: Path,
    processes: Processes,
    progress: Progress,
) -> dict[str, list[Path]]:
    """First shards of all cases; for each part their files, in order."""
    shards: dict[str, list[Path]] = {part: [] for part in PARTS}

    def jobs() -> Iterator[tuple[Block]]:
        for part, some in files.items():
            for number, file in enumerate(some):
                for block in _blocks(request, file, work / stem_of(part, number)):
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
                lines=() if is_whole(target) else lines,
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
    processes: Processes,
    progress: Progress,
) -> dict[str, Any]:
    """Final shards, the vocabulary, and all that the manifest says."""
    shutil.rmtree(final, ignore_errors=True)
    totals = _Totals.of(shards)
    totals.check_left(files)
    classes = totals.kept(request.least_cases)
    totals.check_classes(files, classes, request.least_cases)
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
    processes: Processes,
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

    def check_classes(
        self, files: Mapping[str, Sequence[Path]], classes: Mapping[str, Sequence[str]], least: int
    ) -> None:
        """Refuse cases of fewer than two articles, or charges, that are frequent enough.

        Raises:
            DataError: it names the files, and the most frequent classes.
        """
        for place, name in enumerate(PAIR):
            if len(classes[name]) >= 2:
                continue
            found = Counter[str]()
            for pair, cases in (self.pairs["train"] + self.pairs["valid"]).items():
                found[pair[place]] += cases
            most = ", ".join(f"{value} with {cases:,}" for value, cases in found.most_common(3))
            enough = f"at least two that have {least:,} case{'s' * (least > 1)} each"
            raise DataError(
                f"there are too few classes of {name}: {len(found):,} in all, of which {most}",
                allowed=enough + (" (--least-cases)" if len(found) > 1 else ""),
                source=", ".join(str(file) for part in ("train", "valid") for file in files[part][:2]),
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
