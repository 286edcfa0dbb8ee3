"""What can go wrong through a user's input, each with the exit code the command line ends with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = [
    "BusyFolderError",
    "DataError",
    "InfocalError",
    "MissingExtraError",
    "ModelError",
    "OtherFolderError",
    "OtherRunError",
    "SettingsError",
    "TrainingError",
    "UnwritableError",
    "naming",
]


class InfocalError(Exception):
    """A problem that the user can mend; its message says what was found, what is allowed, what to do."""

    exit_code = 1


class SettingsError(InfocalError):
    """A setting, recipe or combination of options that cannot be used."""

    exit_code = 2


class OtherFolderError(SettingsError):
    """A folder that was begun with other data or settings than those of this call."""


class DataError(InfocalError):
    """A file, column or row that cannot be used, with the place where it stands.

    Args:
        found: what is there, e.g. ``"the label is NaN"``.
        allowed: what would be right, e.g. ``"a finite number"``.
        source: the file's name, or a name for data that came through Python.
        line: the 1-based line of a file (or the 0-based row of a sequence), where one can be named.
    """

    exit_code = 3

    def __init__(
        self, found: str, *, allowed: str = "", source: str | None = None, line: int | None = None
    ) -> None:
        self.found, self.allowed, self.source, self.line = found, allowed, source, line
        place = ", ".join(part for part in (source or "", f"line {line}" if line is not None else "") if part)
        message = f"{place}: {found}" if place else found
        super().__init__(f"{message}; allowed: {allowed}" if allowed else message)


@contextmanager
def naming(label: str) -> Iterator[None]:
    """Data errors about one of several labels say which; an empty name changes nothing."""
    try:
        yield
    except DataError as error:
        if not label:
            raise
        raise DataError(
            f"label {label!r}: {error.found}", allowed=error.allowed, source=error.source, line=error.line
        ) from None


class ModelError(InfocalError):
    """A model folder that is damaged, of a newer format, or not a model at all."""

    exit_code = 4


class TrainingError(InfocalError):
    """A training run that cannot start, go on or be resumed as asked."""

    exit_code = 5


class OtherRunError(TrainingError):
    """There is a checkpoint, but it is of another run."""


class UnwritableError(InfocalError, OSError):
    """A file or folder that cannot be written.

    Args:
        path: what was to be written.
        reason: what the system says.
    """

    exit_code = 7

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"cannot write {path}: {reason}")
        self._parts = (path, reason)

    def __reduce__(self) -> tuple[type[UnwritableError], tuple[str, str]]:
        """How it crosses from one process to another."""
        return type(self), self._parts


class BusyFolderError(InfocalError):
    """A folder that another process is writing.

    Args:
        path: the folder.
    """

    exit_code = 7

    def __init__(self, path: str) -> None:
        super().__init__(
            f"another infocal process is at work in {path}; wait for its end, or name another folder with --out"
        )
        self._path = path

    def __reduce__(self) -> tuple[type[BusyFolderError], tuple[str]]:
        """How it crosses from one process to another."""
        return type(self), (self._path,)


class MissingExtraError(InfocalError):
    """An optional dependency that this call needs and that is not installed."""

    exit_code = 6

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed; "
            f"install it with: pip install 'infocal[{extra}]'"
        )
        self._parts = (package, extra, purpose)

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str, str]]:
        """How it crosses from one process to another; by itself an exception is made again of its message."""
        return type(self), self._parts
