"""Writing so that a reader never sees half a file, whatever happens to the writer."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["atomic_folder", "sha256_of", "write_bytes", "write_text"]


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write ``content`` to ``path`` in one step: the old file or the new one, never a part."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_text(path: str | Path, content: str) -> None:
    """Write UTF-8 text to ``path`` in one step, with the line ends that ``content`` has."""
    write_bytes(path, content.encode("utf-8"))


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Give a new empty folder to fill; on success it takes the place of ``path``, on failure nothing changes."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    old = path.with_name(f".{path.name}.{os.getpid()}.old")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        yield partial
        if path.exists():
            path.rename(old)
        partial.rename(path)
    finally:
        if old.exists() and not path.exists():
            old.rename(path)
        shutil.rmtree(partial, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def sha256_of(path: str | Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
