"""Writing so that a reader never sees half a file, whatever happens to the writer."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from infocal.errors import BusyFolderError, UnwritableError

__all__ = [
    "atomic_folder",
    "check_writable",
    "clear_leftovers",
    "left_over_from",
    "one_at_a_time",
    "recover",
    "sha256_of",
    "write_bytes",
    "write_text",
    "writing",
]

_TRIES = 100
_ASIDE = re.compile(r"\.(?P<name>.+)\.(?P<process>[0-9]+)\.(?P<state>partial|old)")


@contextmanager
def writing(path: str | Path) -> Iterator[BinaryIO]:
    """A stream whose content becomes ``path`` when all is written; on failure nothing changes.

    Raises:
        UnwritableError: there can be no such file.
    """
    path = Path(path)
    partial = _aside(path, "partial")
    with _naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = partial.open("wb")
    try:
        with stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        with _naming(path):
            partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def check_writable(path: str | Path) -> None:
    """Raise UnwritableError if there can be no such file, before the work whose result it is to hold."""
    path = Path(path)
    if path.is_dir():
        raise UnwritableError(str(path), "it is a folder")
    there = next(folder for folder in path.absolute().parents if folder.exists())  # the others can be made
    partial = _aside(there / path.name, "partial")
    with _naming(path):
        partial.touch()
    partial.unlink()


@contextmanager
def one_at_a_time(folder: str | Path) -> Iterator[None]:
    """Keep other processes from working in the same folder meanwhile; what decides about it belongs inside, too.

    The folder is made if it is not there, and goes again if nothing was put into it. What a process left that was
    killed while it replaced the folder is mended (`recover`). The folder itself is locked, so nothing is written,
    and the system forgets the lock with the process that holds it, however that ends. The lock stays with the old
    folder when that is replaced (`atomic_folder`), so this should be the last that is done to it. On systems and
    disks where folders cannot be locked nobody is kept away.

    Raises:
        BusyFolderError: another process is at work in it.
        UnwritableError: there can be no such folder.
    """
    folder = Path(folder)
    if folder.is_file():
        raise UnwritableError(str(folder), "it is a file, and a folder is to be written")
    with _naming(folder):
        _give_back(folder)
        made = [path for path in (folder, *folder.parents) if not path.exists()]
        held = _made_and_locked(folder)
    try:
        recover(folder)  # before, it could be the work of a process that cannot be seen from here
        yield
    finally:
        with suppress(OSError):  # something is in it
            for path in made:
                path.rmdir()
        if held is not None:
            os.close(held)


def _made_and_locked(folder: Path) -> int | None:
    """An open and locked folder, made if it is not there; None where there are no such locks."""
    for more in reversed(range(_TRIES)):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            held = _lock(folder)
        except FileNotFoundError:  # another process has removed it, or it can never be
            if more:
                continue
            raise
        if held is None or _is_at(folder, held):
            return held
        os.close(held)  # another process has replaced or removed it since it was opened
    raise BusyFolderError(str(folder))


def _is_at(path: Path, opened: int) -> bool:
    """Whether a path leads to what was opened."""
    try:
        return os.path.samestat(path.stat(), os.fstat(opened))
    except FileNotFoundError:
        return False


def _lock(folder: Path) -> int | None:
    """An open and locked folder; None where there are no such locks."""
    if os.name != "posix":
        return None
    import fcntl

    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(held)
        raise BusyFolderError(str(folder)) from None
    except OSError:  # some network disks
        os.close(held)
        return None
    return held


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """What the system says of a file aside, or of its folder, is said of the file that is meant."""
    try:
        yield
    except OSError as error:
        raise UnwritableError(str(path), error.strerror or str(error)) from None


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write ``content`` to ``path`` in one step: the old file or the new one, never a part."""
    with writing(path) as stream:
        stream.write(content)


def write_text(path: str | Path, content: str) -> None:
    """Write UTF-8 text to ``path`` in one step, with the line ends that ``content`` has."""
    write_bytes(path, content.encode("utf-8"))


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Give a new empty folder to fill; on success it takes the place of ``path``, on failure nothing changes."""
    path = Path(path)
    partial, old = _aside(path, "partial"), _aside(path, "old")
    with _naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        recover(path)
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


def recover(path: Path) -> None:
    """Mend what a process left that was killed while it replaced the folder ``path``.

    Between its two renames the folder has another name for a moment: it gets its own back.
    """
    _give_back(path)
    for item in _left_beside(path):
        shutil.rmtree(item, ignore_errors=True)


def _give_back(path: Path) -> None:
    """Give a folder its name back, if there is none of that name."""
    for item in _left_beside(path):
        if item.name.endswith(".old") and not path.exists():
            item.rename(path)


def _left_beside(path: Path) -> list[Path]:
    """The folders that a dead process has left in place of ``path``; none where nobody may look for them."""
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        beside = list(path.parent.iterdir())
        return [item for item in beside if left_over_from(item.name) == path.name and item.is_dir()]
    return []


def clear_leftovers(folder: Path) -> None:
    """Remove the half-written files of killed processes from a folder."""
    for item in list(folder.iterdir()) if folder.is_dir() else []:
        if left_over_from(item.name) is not None and item.is_file():
            item.unlink(missing_ok=True)


def left_over_from(name: str) -> str | None:
    """The name of what a process wrote that lives no more; None if this is not the name of such a thing."""
    found = _ASIDE.fullmatch(name)
    return None if found is None or _alive(int(found["process"])) else found["name"]


def _aside(path: Path, state: str) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.{state}")


def _alive(process: int) -> bool:
    if os.name != "posix":  # elsewhere there is no harmless way to ask
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def sha256_of(path: str | Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
