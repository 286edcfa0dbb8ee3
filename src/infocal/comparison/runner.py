"""Doing the runs, some at a time, each in its own process; whatever happens to one, the others go on."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

from infocal.comparison.plan import Run
from infocal.comparison.worker import Job, write_failure

__all__ = ["do_jobs", "read_result"]

PAUSE = 0.1
LAST_WORDS = 400


def read_result(run: Run) -> dict[str, Any] | None:
    """What is on file of this very run, done or failed; None if nothing is, or it is of other settings or data."""
    try:
        record = json.loads(run.path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return record if isinstance(record, dict) and record.get("identity") == run.identity else None


def do_jobs(jobs: Sequence[Job], *, processes: int, done: Callable[[Job, dict[str, Any]], None]) -> None:
    """Do all jobs; a failed one leaves a file that says so.

    Args:
        jobs: in the order in which to start them.
        processes: how many at a time.
        done: called with each finished job and what is on file of it.
    """
    waiting, running = list(jobs), list[_Worker]()
    try:
        while waiting or running:
            while waiting and len(running) < processes:
                running.append(_Worker.start(waiting.pop(0)))
            for worker in [worker for worker in running if worker.process.poll() is not None]:
                running.remove(worker)
                done(worker.job, worker.finish())
            if running:
                time.sleep(PAUSE)
    finally:
        for worker in running:
            worker.stop()


@dataclass(frozen=True)
class _Worker:
    """A running process.

    Attributes:
        job: what it does.
        process: the process; it ends itself when its stdin is closed, so also when this process is killed.
        words: what it says on stderr.
    """

    job: Job
    process: subprocess.Popen[bytes]
    words: IO[bytes]

    @classmethod
    def start(cls, job: Job) -> _Worker:
        words = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
        job.run.path.unlink(missing_ok=True)  # what is there is of a failed run, or of other settings or data
        if job.keep_model:
            shutil.rmtree(job.run.model, ignore_errors=True)
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "infocal.comparison.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=words,
            start_new_session=True,  # Ctrl-C is for this process, which then ends them all
        )
        worker = cls(job, process, words)
        worker._send(job.to_json())
        return worker

    def finish(self) -> dict[str, Any]:
        """What is on file of the job; a process that died without a word gets a file that says how."""
        record = read_result(self.job.run)
        if record is None:
            write_failure(self.job.run, self._end())
            record = read_result(self.job.run)
        self._close()
        return record or {}

    def stop(self) -> None:
        """End the process now."""
        self.process.kill()
        self.process.wait()
        self._close()

    def _send(self, line: str) -> None:
        if self.process.stdin is None:
            return
        with suppress(BrokenPipeError):  # it is dead already, and ``finish`` will say so
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()

    def _end(self) -> str:
        code = self.process.returncode
        self.words.seek(0)
        said = self.words.read().decode("utf-8", errors="replace").strip()[-LAST_WORDS:]
        end = f"signal {_signal_name(-code)}" if code < 0 else f"exit code {code}"
        return f"its process ended with {end} before there was a result" + (f": {said}" if said else "")

    def _close(self) -> None:
        if self.process.stdin is not None:
            with suppress(BrokenPipeError):
                self.process.stdin.close()
        self.words.close()


def _signal_name(number: int) -> str:
    try:
        return f"{number} ({signal.Signals(number).name})"
    except ValueError:
        return str(number)
