"""One run in a process of its own: ``python -m infocal.comparison.worker``, the job as a line of JSON on stdin.

The result is a file. A run that fails says why in its file, so that the others go on.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from infocal.comparison.plan import FORMAT, Run, Sources
from infocal.data.readers import BadRows
from infocal.errors import InfocalError
from infocal.files import write_text
from infocal.settings import Settings
from infocal.training.tracking import Tracker

if TYPE_CHECKING:
    from infocal.data.corpus import Corpus
    from infocal.methods.base import Method
    from infocal.rationalizer import Rationalizer
    from infocal.types import Document

__all__ = ["Job", "Rounds", "main", "run_job", "write_failure"]

KEPT_OF_CASES = ("prediction", "probabilities", "spans", "share", "read_to", "label")


@dataclass(frozen=True, kw_only=True)
class Job:
    """A run with all that its process needs to know.

    Attributes:
        run: what to train and where its result goes.
        sources: the data.
        shares: other shares to score at.
        cases: lines of the test documents whose words are kept for the page.
        threads: processor threads.
        keep_model: whether to save the model.
        warm_ups: folder in which runs share their warm-ups.
    """

    run: Run
    sources: Sources
    shares: tuple[float, ...]
    cases: tuple[int, ...]
    threads: int
    keep_model: bool = False
    warm_ups: Path | None = None

    def to_json(self) -> str:
        """One line."""
        record = {
            "contender": self.run.contender,
            "settings": self.run.settings.model_dump(mode="json"),
            "identity": self.run.identity,
            "path": str(self.run.path.resolve()),
            "sources": self.sources.to_json(),
            "shares": self.shares,
            "cases": self.cases,
            "threads": self.threads,
            "keep_model": self.keep_model,
            "warm_ups": None if self.warm_ups is None else str(self.warm_ups.resolve()),
        }
        return json.dumps(record)

    @classmethod
    def from_json(cls, line: str) -> Job:
        """Read back what :meth:`to_json` gave."""
        record = json.loads(line)
        run = Run(
            contender=record["contender"],
            settings=Settings.parse(record["settings"]),
            identity=record["identity"],
            path=Path(record["path"]),
        )
        return cls(
            run=run,
            sources=Sources.from_json(record["sources"]),
            shares=tuple(record["shares"]),
            cases=tuple(record["cases"]),
            threads=record["threads"],
            keep_model=record["keep_model"],
            warm_ups=None if record["warm_ups"] is None else Path(record["warm_ups"]),
        )


class Rounds(Tracker):
    """Keeps the rounds of a run, each with the agreement of its words with the human's in the held-out rows.

    Args:
        dev: the held-out rows.
        share: of words to select.

    Attributes:
        records: one per round.
        seconds: by the clock, what measuring took, less what rounds took that an earlier run has done.
        processor: the same in seconds of the processor.
    """

    def __init__(self, dev: Corpus, share: float) -> None:
        self.dev, self.share = dev, share
        self.records: list[dict[str, Any]] = []
        self.seconds = self.processor = 0.0

    def start(self, *, total_steps: int, step: int, history: Sequence[Mapping[str, Any]]) -> None:
        """Take over the rounds that are behind the run, and the time that they took."""
        self.records = [dict(record) for record in history]
        self.seconds -= sum(record["seconds"] for record in history)
        self.processor -= sum(record["processor"] for record in history)

    def measure(self, method: Method, phase: str) -> Mapping[str, Any]:
        """Precision, recall and F1 of the selection while it changes, where a human's is there to compare."""
        if phase != "joint" or self.dev.gold is None:
            return {}
        from infocal.training.held_out import agreement

        began, processor = time.perf_counter(), time.process_time()
        found = agreement(method, self.dev, self.share) or {}
        self.seconds += time.perf_counter() - began
        self.processor += time.process_time() - processor
        return {"rationale": {name: found.get(name) for name in ("precision", "recall", "f1")}}

    def round(self, record: Mapping[str, Any]) -> None:
        """Keep it."""
        self.records.append(dict(record))


def main() -> None:
    """Read the job, do it, write its file."""
    job = Job.from_json(sys.stdin.readline())
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    try:
        record = run_job(job)
    except InfocalError as error:
        write_failure(job.run, str(error))
    except Exception as error:
        write_failure(job.run, f"{type(error).__name__}: {error}", trace=traceback.format_exc())
    else:
        write_text(job.run.path, json.dumps(record, ensure_ascii=False) + "\n")


def write_failure(run: Run, message: str, *, trace: str = "") -> None:
    """Write the file of a run that came to nothing."""
    record = {**_header(run), "state": "failed", "message": message, "traceback": trace}
    write_text(run.path, json.dumps(record, ensure_ascii=False) + "\n")


def run_job(job: Job) -> dict[str, Any]:
    """Train as ``infocal train`` does, then score on the test rows."""
    import torch

    from infocal.comparison.ngram import BigramModel
    from infocal.comparison.scoring import Trial
    from infocal.fitting import one_label, train_prepared

    torch.set_num_threads(job.threads)
    settings, sources, bad_rows = job.run.settings, job.sources, BadRows(skip=job.sources.skip_bad)
    prepared = sources.prepare(settings, bad_rows)
    rounds = Rounds(prepared.dev, settings.share)
    began, processor = time.perf_counter(), time.process_time()
    model = one_label(train_prepared(prepared, settings, trackers=[rounds], warm_ups=job.warm_ups))
    seconds = {
        "training": round(time.perf_counter() - began - rounds.seconds, 2),
        "processor": round(time.process_time() - processor - rounds.processor, 2),
    }
    if job.keep_model:
        model.save(job.run.model)
    documents = list(sources.read("test", bad_rows))
    train = prepared.train
    trial = Trial.of(
        model,
        documents,
        language_model=BigramModel.fit(np.asarray(train.ids), train.offsets, size=len(prepared.vocabulary)),
        bad_rows=bad_rows,
        source=str(sources.test),
    )
    return {
        **_header(job.run),
        "state": "done",
        "settings": model.settings.model_dump(mode="json"),
        "task": model.task.to_json(),
        "data": {**model.record["data"], "test_rows": len(trial.corpus)},
        "training": model.record["training"],
        "seconds": seconds,
        "threads": job.threads,
        "rounds": rounds.records,
        "learns_full_text": model.method.learns_full_text,
        **trial.report(job.shares),
        "cases": _cases(model, documents, job.cases),
    }


def _header(run: Run) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "identity": run.identity,
        "contender": run.contender,
        "method": run.settings.method,
        "seed": run.seed,
    }


def _cases(model: Rationalizer, documents: Sequence[Document], lines: Sequence[int]) -> dict[str, Any]:
    """By decoder and line, what the model says of the drawn documents; their texts stay in the test file."""
    from infocal.decoding import DECODERS

    drawn = [document for document in documents if document.line in lines]
    return {
        decoder: {
            str(document.line): {name: explanation.get(name) for name in KEPT_OF_CASES}
            for document in drawn
            for explanation in _explained(model, document, decoder)
        }
        for decoder in DECODERS
    }


def _explained(model: Rationalizer, document: Document, decoder: str) -> list[dict[str, Any]]:
    """One explanation as plain data, or none of a text without words."""
    found = model.explain_documents([document], decoder=decoder, bad_rows=BadRows(skip=True))
    return [explanation.to_dict() for explanation in found]


def _leave_with_parent() -> None:
    """End this process once nobody holds the other end of stdin: the comparison was stopped or killed."""
    while os.read(0, 1024):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
