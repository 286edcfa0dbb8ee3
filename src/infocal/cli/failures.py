"""What a failing command says and the code it ends with; nobody should see a traceback for a bad file."""

from __future__ import annotations

import os
import re
import sys
import traceback
from contextlib import suppress
from typing import Any, NoReturn

import click

from infocal.errors import InfocalError
from infocal.markup import visible

__all__ = ["EXIT_CODES", "INTERRUPTED", "Verbs", "complain"]

DATA, FILES, BUG, INTERRUPTED = 3, 7, 70, 130
EXIT_CODES = {
    0: "ok",
    2: "an option or a setting cannot be used",
    DATA: "the data cannot be used, or a file is not there",
    4: "the model folder cannot be used",
    5: "training cannot start, go on or be resumed",
    6: "an optional package is missing",
    FILES: "a file cannot be read or written, or another infocal process is writing the same `--out`",
    BUG: "a bug in infocal",
    INTERRUPTED: "interrupted",
}


class Verbs(click.Group):
    """A group of commands that ends every failure with one line and its exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs in the order in which a newcomer needs them."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb."""
        _survive_narrow_encodings()
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            complain("interrupted")
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:
            _leave_pipe(ctx)
        except Exception as error:
            complain(_message(error))
            ctx.exit(_exit_code(error))


def complain(message: str) -> None:
    """One red line on stderr, without control characters that a user's data may hold."""
    line = re.sub(r"\s*\n\s*", " ", message.strip())
    click.secho(f"error: {visible(line)}", fg="red", err=True)


def _message(error: Exception) -> str:
    if isinstance(error, InfocalError):
        return str(error)
    if isinstance(error, FileNotFoundError):
        return f"there is no file or folder {error.filename}"
    if isinstance(error, OSError):
        place = f" {error.filename}" if error.filename else ""
        return f"cannot read or write{place}: {error.strerror or error}"
    if os.environ.get("INFOCAL_DEBUG"):
        click.echo(traceback.format_exc(), err=True, nl=False)
    return (
        f"this is a bug in infocal ({type(error).__name__}: {error}); "
        "please report it with the traceback that INFOCAL_DEBUG=1 shows"
    )


def _exit_code(error: Exception) -> int:
    if isinstance(error, InfocalError):
        return error.exit_code
    if isinstance(error, FileNotFoundError):
        return DATA
    return FILES if isinstance(error, OSError) else BUG


def _leave_pipe(ctx: click.Context) -> NoReturn:
    """The reader, such as ``head``, has seen enough: that is no failure."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains when it exits
    ctx.exit(0)


def _survive_narrow_encodings() -> None:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
