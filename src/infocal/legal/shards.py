"""What one process does while cases are prepared: a block of lines to a first shard, a first shard to a final one.

A first shard has ids of its own, with the words they mean in its note: which words and which classes stay is known
only when all cases were seen.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from infocal.data.cail import TASKS, parse_case, penalty_interval, why_dropped
from infocal.data.corpus import CorpusBuilder, flat_positions
from infocal.data.encoded import checksum, damaged, read_shard, write_shard
from infocal.data.records import BadRows
from infocal.errors import DataError
from infocal.files import write_text
from infocal.text.segmentation import segmenter_named
from infocal.text.vocabulary import Vocabulary
from infocal.types import Document

__all__ = ["PAIR", "Block", "Outcome", "encode_block", "finish_shard", "is_whole"]

PAIR = ("article", "charge")
"""The tasks whose rare classes are dropped; every case has one of the intervals of the penalty."""


@dataclass(frozen=True, slots=True)
class Block:
    """Some lines of a file of cases.

    Attributes:
        lines: the lines as they stand in the file.
        first: the number of the first.
        encoding: of the file.
        source: the file's name in messages.
        segmenter: the name of a segmenter.
        max_tokens: longer facts lose their ends.
        skip_bad: whether lines that cannot be used are left out.
        target: the shard to write.
    """

    lines: Sequence[bytes]
    first: int
    encoding: str
    source: str
    segmenter: str
    max_tokens: int
    skip_bad: bool
    target: Path


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a block.

    Attributes:
        rows: lines that were read, blank ones left out.
        error: the arguments of the DataError that ended it; None if it was written.
    """

    rows: int
    error: Mapping[str, Any] | None = None


def encode_block(block: Block) -> Outcome:
    """Read, sift and segment the cases of a block, and write what is left."""
    bad_rows = BadRows(skip=block.skip_bad)
    builder = CorpusBuilder(segmenter_named(block.segmenter), max_tokens=block.max_tokens, source=block.source)
    labels: dict[str, list[str]] = {name: [] for name in TASKS}
    long: list[bool] = []
    dropped: Counter[str] = Counter()
    rows = 0
    for number, raw in enumerate(block.lines, block.first):
        if not raw.strip():
            continue
        rows += 1
        try:
            case = parse_case(raw, number, encoding=block.encoding, source=block.source)
            reason = why_dropped(case)
            if reason is not None:
                dropped[reason] += 1
                continue
            cut = builder.cut
            builder.add(Document(case.fact, line=number))
        except DataError as error:
            if not block.skip_bad:
                return Outcome(rows, _arguments(error))
            bad_rows.report(error)
            continue
        long.append(builder.cut > cut)
        found = (str(case.articles[0]), case.charges[0], penalty_interval(case) or "")
        for name, value in zip(TASKS, found, strict=True):
            labels[name].append(value)
    note = {
        "rows": rows,
        "dropped": dropped,
        "bad": {"count": bad_rows.count, "examples": [str(error) for error in bad_rows.examples]},
        "words": builder.counts(),
        "pairs": [[*pair, n] for pair, n in Counter(zip(*(labels[name] for name in PAIR), strict=True)).items()],
    }
    columns = {"line": builder.lines, "long": np.array(long, dtype=np.bool_), **labels}
    write_shard(block.target, *builder.provisional(), columns, note=note)
    write_text(_beside(block.target), str(checksum(block.target)))
    return Outcome(rows)


def is_whole(first: Path) -> bool:
    """Whether a first shard is there and has the checksum that was noted when it was written."""
    try:
        return checksum(first) == int(_beside(first).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return False


def _beside(first: Path) -> Path:
    """The file of a first shard's checksum, written after it."""
    return first.with_suffix(".crc32")


def _arguments(error: DataError) -> dict[str, Any]:
    return {"found": error.found, "allowed": error.allowed, "source": error.source, "line": error.line}


@lru_cache(maxsize=1)
def _vocabulary(path: Path, written: int) -> Vocabulary:
    """Read once in each process, and again if another was written since."""
    return Vocabulary.from_json(json.loads(path.read_text(encoding="utf-8")))


def finish_shard(
    first: Path, target: Path, vocabulary: Path, classes: Mapping[str, Mapping[str, int]]
) -> dict[str, Any]:
    """Write a final shard: the vocabulary's ids, class numbers, without the cases of classes that do not stay.

    Args:
        first: what `encode_block` wrote.
        target: the shard to write.
        vocabulary: the file of the vocabulary.
        classes: for each task the number of each class that stays.

    Returns:
        ``file``, ``rows``, ``tokens``, ``crc32``, ``rare`` (cases left out for their class) and ``cut``.

    Raises:
        DataError: the first shard is not what was written; another call writes it again.
    """
    if not is_whole(first):
        raise damaged(first, "its checksum is not that of the file as it was written", mend="run it again")
    batch, note = read_shard(first)
    labels = {name: batch.column(name).to_pylist() for name in classes}
    numbers = {
        name: np.array([classes[name].get(value, -1) for value in values], dtype=np.int32)
        for name, values in labels.items()
    }
    kept = np.flatnonzero(np.all([values >= 0 for values in numbers.values()], axis=0))
    offsets = batch.column("ids").offsets.to_numpy().astype(np.int64)
    table = np.array(_vocabulary(vocabulary, vocabulary.stat().st_mtime_ns).ids(note["words"]), dtype=np.int32)
    ids = table[batch.column("ids").values.to_numpy()[flat_positions(offsets, kept)]] if len(kept) else table[:0]
    starts = np.concatenate([[0], np.cumsum(np.diff(offsets)[kept])]).astype(np.int64)
    columns = {"line": batch.column("line").to_numpy()[kept], **{n: v[kept] for n, v in numbers.items()}}
    write_shard(target, ids, starts, columns)
    return {
        "file": target.name,
        "rows": len(kept),
        "tokens": len(ids),
        "crc32": checksum(target),
        "rare": len(offsets) - 1 - len(kept),
        "cut": int(batch.column("long").to_numpy(zero_copy_only=False)[kept].sum()),
    }
