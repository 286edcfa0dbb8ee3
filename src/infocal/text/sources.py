"""Opening users' files, and showing in a message what stands in them."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from infocal.errors import DataError

__all__ = ["open_bytes", "shown", "shown_list"]

_GZIP_MAGIC = b"\x1f\x8b"


@contextmanager
def open_bytes(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for reading bytes, unpacked if it is gzip by its first bytes, whatever its name.

    Raises:
        DataError: the file is missing, cannot be read, or ends within its gzip stream.
    """
    try:
        with Path(path).open("rb") as raw:
            packed = raw.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC)
            yield cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if packed else raw
    except FileNotFoundError as error:
        raise DataError("there is no such file", allowed="an existing file", source=str(path)) from error
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"the file cannot be read: {error}", source=str(path)) from error


def shown(value: object, *, width: int = 60) -> str:
    """A value as it goes into a message: its repr, shortened in the middle of a long one."""
    if isinstance(value, str | bytes) and len(value) > width:
        return f"{value[:width]!r}... ({len(value):,} characters)"
    text = repr(value)
    return text if len(text) <= width else f"{text[:width]}..."


def shown_list(values: list[str] | tuple[str, ...], *, most: int = 20) -> str:
    """Names for a message, the first ``most`` of them."""
    more = f" and {len(values) - most} more" if len(values) > most else ""
    return (", ".join(shown(value) for value in values[:most]) or "none") + more
