"""Work in several processes, in order, with no more of it waiting than is needed."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from typing import Any, TypeVar

from infocal.errors import InfocalError

__all__ = ["Processes", "end_with_parent"]

Result = TypeVar("Result")


class Processes:
    """Runs functions in other processes, or in this one if there is only one; results come in order."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._pool: ProcessPoolExecutor | None = None
        if count > 1:
            self._pool = ProcessPoolExecutor(
                count,
                mp_context=get_context("spawn"),
                initializer=_begin,
            )

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *problem: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def map(self, work: Callable[..., Result], jobs: Iterable[tuple[Any, ...]]) -> Iterator[Result]:
        """``work(*job)`` for each job; no more jobs are made than can be worked on soon.

        Raises:
            InfocalError: a process was ended from outside.
        """
        if self._pool is None:
            yield from (work(*job) for job in jobs)
            return
        waiting: deque[Future[Result]] = deque()
        try:
            for job in jobs:
                waiting.append(self._pool.submit(work, *job))
                if len(waiting) > 2 * self._count:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise InfocalError(
                f"one of {self._count} processes was ended from outside, perhaps because memory ran out; the same "
                "command goes on where this one stopped, and fewer --processes need less memory"
            ) from None


def _begin() -> None:
    """What a process does first: leave interrupts to the one that started it, and end when that one is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


def end_with_parent() -> None:
    """Have this process end with the one that started it.

    A parent that was killed cannot say that there is no more work; its processes would go on, then wait for ever.
    """
    threading.Thread(target=_wait_for_parents_end, daemon=True).start()


def _wait_for_parents_end() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
