"""Encoded documents in a folder of Arrow files, read through memory mapping: a corpus as large as the disk.

A folder holds for each part (train, valid, test) shards with the columns ``ids`` (lists of token ids), ``line``
and one column of class numbers per label; ``vocabulary.json``; and ``manifest.json``, written last, which says
what all of it means, with the checksums of the other files.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, NonNegativeInt, PositiveInt, ValidationError

from infocal.data.corpus import Corpus, Pieces
from infocal.errors import DataError, InfocalError, MissingExtraError
from infocal.files import writing
from infocal.text.sources import shown, shown_list
from infocal.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    import pyarrow

__all__ = [
    "FORMAT",
    "MANIFEST",
    "VOCABULARY",
    "EncodedFolder",
    "arrow",
    "checksum",
    "damaged",
    "is_encoded",
    "read_shard",
    "write_shard",
]

FORMAT = 1
MANIFEST, VOCABULARY = "manifest.json", "vocabulary.json"


_CHUNK = 1 << 20


class _Shard(BaseModel):
    file: Annotated[str, Field(pattern=r"^[\w-]+\.arrow$")]
    rows: NonNegativeInt
    tokens: NonNegativeInt
    crc32: int | None = None


class _Part(BaseModel):
    shards: list[_Shard]
    cut: NonNegativeInt


class _Manifest(BaseModel):
    """What must stand in a manifest; corpora of earlier versions have no checksums."""

    segmenter: str
    max_tokens: PositiveInt
    labels: dict[str, Annotated[list[str], Field(min_length=1)]]
    parts: dict[str, _Part]
    vocabulary_crc32: int | None = None


def damaged(
    path: Path, why: object, *, mend: str = "run it again with --overwrite, or after removing the folder"
) -> DataError:
    """The error for a file of an encoded corpus that is not what was written, with what to do."""
    allowed = f"a file as `infocal prepare` wrote it; {mend}"
    return DataError(f"the file is missing or damaged ({why})", allowed=allowed, source=str(path))


def checksum(path: Path) -> int:
    """The CRC-32 of a file's bytes."""
    found = 0
    with path.open("rb") as stream:
        while block := stream.read(_CHUNK):
            found = zlib.crc32(block, found)
    return found


def _check_bytes(path: Path, expected: int | None) -> None:
    try:
        same = expected is None or checksum(path) == expected
    except OSError as error:
        raise damaged(path, error.strerror) from None
    if not same:
        raise damaged(path, "its checksum is not that of the manifest")


def arrow() -> Any:
    """The package pyarrow.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import pyarrow
    except ImportError as error:
        raise MissingExtraError("pyarrow", "legal", "an encoded corpus") from error
    return pyarrow


def write_shard(
    path: Path,
    ids: NDArray[np.int32],
    offsets: NDArray[np.int64],
    columns: Mapping[str, Any],
    *,
    note: Mapping[str, Any] | None = None,
) -> None:
    """Write documents as one Arrow file, in one step.

    Args:
        path: the file.
        ids: (total,), the tokens of all documents.
        offsets: (n + 1,), where each begins.
        columns: name -> (n,) values.
        note: plain data that is kept in the file's metadata.
    """
    pa = arrow()
    lists = pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(ids))
    rows = pa.record_batch({"ids": lists, **{name: pa.array(values) for name, values in columns.items()}})
    rows = rows.replace_schema_metadata({"note": json.dumps(note or {}, ensure_ascii=False)})
    with writing(path) as stream, pa.ipc.new_file(stream, rows.schema) as writer:
        writer.write_batch(rows)  # of a table without rows, no batch would be written


def read_shard(path: Path) -> tuple[pyarrow.RecordBatch, dict[str, Any]]:
    """The rows of an Arrow file, which stay on disk until they are looked at, and its note.

    Raises:
        DataError: the file is missing or damaged.
    """
    pa = arrow()
    try:
        reader = pa.ipc.open_file(pa.memory_map(str(path)))
        if reader.num_record_batches != 1:
            raise damaged(path, f"{reader.num_record_batches} blocks instead of one")
        return reader.get_batch(0), json.loads(reader.schema.metadata[b"note"])
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise damaged(path, error) from None


def is_encoded(path: Path) -> bool:
    """Whether a path is a folder of encoded documents."""
    return (path / MANIFEST).is_file()


@dataclass(frozen=True)
class EncodedFolder:
    """A folder of encoded documents.

    Attributes:
        path: the folder.
        manifest: ``format``, ``segmenter``, ``max_tokens``, ``labels`` (name -> class names in the order of their
            numbers), ``parts`` (name -> ``cut`` and ``shards``, each with ``file``, ``rows``, ``tokens`` and
            ``crc32``), ``vocabulary_crc32``.
        vocabulary: what the ids mean.
    """

    path: Path
    manifest: Mapping[str, Any]
    vocabulary: Vocabulary
    _checked: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

    @classmethod
    def open(cls, path: str | Path) -> EncodedFolder:
        """Read what stands in the folder.

        Raises:
            DataError: it is not such a folder, or of another format, or damaged.
        """
        path = Path(path)
        try:
            manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
            version = manifest["format"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            found = f"the folder is not an encoded corpus, or damaged ({error})"
            raise DataError(found, allowed="a folder that `infocal prepare` wrote", source=str(path)) from None
        if version != FORMAT:
            found = f"the encoded corpus has format {version}"
            raise DataError(found, allowed=f"format {FORMAT}; prepare the data again", source=str(path))
        try:
            expected = _Manifest.model_validate(manifest)
        except ValidationError as error:
            first = error.errors()[0]
            raise damaged(path / MANIFEST, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
        _check_bytes(path / VOCABULARY, expected.vocabulary_crc32)
        try:
            vocabulary = Vocabulary.from_json(json.loads((path / VOCABULARY).read_text(encoding="utf-8")))
        except (OSError, ValueError, InfocalError) as error:
            raise damaged(path / VOCABULARY, error) from None
        return cls(path, manifest, vocabulary)

    def classes(self, label: str) -> tuple[str, ...]:
        """The names of a label's classes, in the order of their numbers."""
        labels: Mapping[str, Sequence[str]] = self.manifest["labels"]
        if label not in labels:
            raise DataError(
                f"there is no label {shown(label)}; there are {shown_list(list(labels))}",
                allowed="one of these, chosen with --label NAME",
                source=str(self.path),
            )
        return tuple(labels[label])

    def part(self, name: str, label: str | Sequence[str]) -> Corpus:
        """The documents of a part with one label as targets (n,), or several (n, k); tokens stay on disk."""
        labels = [label] if isinstance(label, str) else list(label)
        for one in labels:
            self.classes(one)
        parts: Mapping[str, Any] = self.manifest["parts"]
        if name not in parts:
            found = f"there is no part {shown(name)}; there are {shown_list(list(parts))}"
            raise DataError(found, allowed="one of these", source=str(self.path))
        batches = [self._rows(_Shard.model_validate(shard)) for shard in parts[name]["shards"]]
        lengths = [np.diff(batch.column("ids").offsets.to_numpy()) for batch in batches]
        offsets = np.concatenate([[0], *lengths]).astype(np.int64)
        np.cumsum(offsets, out=offsets)
        columns = [_joined([batch.column(one) for batch in batches], np.int64) for one in labels]
        return Corpus(
            ids=Pieces([batch.column("ids").values.to_numpy() for batch in batches]),
            offsets=offsets,
            lines=_joined([batch.column("line") for batch in batches], np.int32),
            targets=columns[0] if isinstance(label, str) else np.stack(columns, axis=1),
            cut=int(parts[name]["cut"]),
        )

    def check(self) -> None:
        """Read every file once.

        Raises:
            DataError: one is not what was written.
        """
        for part in self.manifest["parts"].values():
            for shard in part["shards"]:
                self._rows(_Shard.model_validate(shard))

    def _rows(self, shard: _Shard) -> pyarrow.RecordBatch:
        """The rows of a shard, if they are what the manifest says; its bytes are read for that the first time."""
        path = self.path / shard.file
        if shard.file not in self._checked:
            _check_bytes(path, shard.crc32)
            self._checked.add(shard.file)
        rows = read_shard(path)[0]
        missing = {"ids", "line", *self.manifest["labels"]} - set(rows.schema.names)
        if missing:
            raise damaged(path, f"no column {shown_list(sorted(missing))}")
        tokens = len(rows.column("ids").values)
        if (rows.num_rows, tokens) != (shard.rows, shard.tokens):
            why = f"{rows.num_rows:,} rows with {tokens:,} tokens instead of {shard.rows:,} with {shard.tokens:,}"
            raise damaged(path, why)
        for label, classes in self.manifest["labels"].items():
            numbers = rows.column(label).to_numpy()
            if len(numbers) and not 0 <= numbers.min() <= numbers.max() < len(classes):
                raise damaged(path, f"a class of {label} that is none of the manifest's {len(classes)}")
        return rows


def _joined(columns: Sequence[Any], kind: type) -> NDArray[Any]:
    return np.concatenate([np.empty(0, dtype=kind), *(column.to_numpy() for column in columns)]).astype(kind)
