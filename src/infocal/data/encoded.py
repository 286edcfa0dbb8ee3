"""Encoded documents in a folder of Arrow files, read through memory mapping: a corpus as large as the disk.

A folder holds for each part (train, valid, test) shards with the columns ``ids`` (lists of token ids), ``line``
and one column of class numbers per label; ``vocabulary.json``; and ``manifest.json``, written last, which says
what all of it means.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from infocal.data.corpus import Corpus, Pieces
from infocal.errors import DataError, MissingExtraError
from infocal.files import writing
from infocal.text.sources import shown, shown_list
from infocal.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    import pyarrow

__all__ = ["FORMAT", "MANIFEST", "VOCABULARY", "EncodedFolder", "is_encoded", "read_shard", "write_shard"]

FORMAT = 1
MANIFEST, VOCABULARY = "manifest.json", "vocabulary.json"


def _arrow() -> Any:
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
    pa = _arrow()
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
    pa = _arrow()
    try:
        reader = pa.ipc.open_file(pa.memory_map(str(path)))
        if reader.num_record_batches != 1:
            raise DataError(f"{reader.num_record_batches} blocks", allowed="one block", source=str(path))
        return reader.get_batch(0), json.loads(reader.schema.metadata[b"note"])
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
        found = f"the file is missing or damaged ({error})"
        raise DataError(found, allowed="prepare the data again", source=str(path)) from None


def is_encoded(path: Path) -> bool:
    """Whether a path is a folder of encoded documents."""
    return (path / MANIFEST).is_file()


@dataclass(frozen=True)
class EncodedFolder:
    """A folder of encoded documents.

    Attributes:
        path: the folder.
        manifest: ``format``, ``segmenter``, ``max_tokens``, ``labels`` (name -> class names in the order of their
            numbers), ``parts`` (name -> ``shards``, each with ``file``, ``rows`` and ``tokens``), ``cut``.
        vocabulary: what the ids mean.
    """

    path: Path
    manifest: Mapping[str, Any]
    vocabulary: Vocabulary

    @classmethod
    def open(cls, path: str | Path) -> EncodedFolder:
        """Read what stands in the folder.

        Raises:
            DataError: it is not such a folder, or of another format.
        """
        path = Path(path)
        try:
            manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
            record = json.loads((path / VOCABULARY).read_text(encoding="utf-8"))
            version = manifest["format"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            found = f"the folder is not an encoded corpus, or damaged ({error})"
            raise DataError(found, allowed="a folder that `infocal prepare` wrote", source=str(path)) from None
        if version != FORMAT:
            found = f"the encoded corpus has format {version}"
            raise DataError(found, allowed=f"format {FORMAT}; prepare the data again", source=str(path))
        return cls(path, manifest, Vocabulary.from_json(record))

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
        batches = [read_shard(self.path / shard["file"])[0] for shard in parts[name]["shards"]]
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


def _joined(columns: Sequence[Any], kind: type) -> NDArray[Any]:
    return np.concatenate([np.empty(0, dtype=kind), *(column.to_numpy() for column in columns)]).astype(kind)
