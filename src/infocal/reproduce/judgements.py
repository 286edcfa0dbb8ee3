"""The paper's experiment on court cases: article, charge and penalty term, by one model each and by all in one.

When to stop is decided by the held-out task loss at the share of words that was asked for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infocal.config import load_settings
from infocal.data.encoded import EncodedFolder
from infocal.errors import DataError, MissingExtraError, OtherFolderError, SettingsError, TrainingError
from infocal.files import write_text
from infocal.fitting import WARM_UPS, StoppedEarlyError, resolve_settings, run_identity
from infocal.joint import JointRationalizer
from infocal.legal.articles import build_articles, check_names, read_articles
from infocal.loading import load
from infocal.methods.judges import topology
from infocal.reproduce.judgement_rows import ALL, ROWS, Plan, Row
from infocal.reproduce.runs import MODEL, train_model, train_network
from infocal.settings import Settings
from infocal.storage import WEIGHTS, load_method
from infocal.tasks import Joint
from infocal.text.vectors import read_vectors
from infocal.training.description import note_of_repeats
from infocal.training.preparation import Prepared, check_text_settings, open_encoded

if TYPE_CHECKING:
    from infocal.data.corpus import Corpus
    from infocal.nn.retrieval import Articles
    from infocal.rationalizer import Rationalizer
    from infocal.training.tracking import Tracker

__all__ = ["Outcome", "Result", "check_plan", "model_of", "reproduce_cail"]

NO_LAW = (
    "FLA was given the texts of {known} of the {all} law articles (--articles); the others it knows by their "
    "numbers only."
)
UNREAD_LAW = "The texts of the law articles (--articles) were not read: only fla uses them."
RESULT, TRAINED = "result.json", "trained.json"


@dataclass(frozen=True)
class Result:
    """What a run found on the test cases.

    Attributes:
        row: its name.
        seed: its seed.
        tasks: task -> figures: ``accuracy``, ``macro_precision``, ``macro_recall``, ``macro_f1``, ``selected``
            (1 for a method that reads all words), and those of the ``full_text`` where there are any.
        seconds: of training.
    """

    row: str
    seed: int
    tasks: Mapping[str, Mapping[str, Any]]
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """What a reproduction found.

    Attributes:
        results: one per run.
        notes: sentences that the user should read.
    """

    results: list[Result]
    notes: list[str]


@dataclass(frozen=True)
class _Data:
    """The encoded cases, opened for one task after the other."""

    folder: EncodedFolder
    plan: Plan
    law: Mapping[str, str]

    def labels(self, task: str) -> str | list[str]:
        return list(self.plan.tasks) if task == ALL else task

    def prepared(self, task: str, settings: Settings) -> Prepared:
        return open_encoded(self.folder, self.labels(task), settings)

    def articles(self, prepared: Prepared, settings: Settings) -> Articles | None:
        """What FLA knows of the law; None for others."""
        own = settings.fla
        if settings.method != "fla" or own is None or prepared.train.targets is None:
            return None
        return build_articles(
            self.law,
            names=self.folder.classes(own.article_task),
            train=prepared.train,
            labels=prepared.train.targets[:, self.plan.tasks.index(own.article_task)],
            segmenter=prepared.segmenter,
            vocabulary=prepared.vocabulary,
            article_tokens=own.article_tokens,
            retriever_words=own.retriever_words,
            retriever_documents=own.retriever_documents,
            retriever_folds=own.retriever_folds,
        )


def check_plan(plan: Plan) -> tuple[dict[tuple[str, str, int], Settings], dict[str, str]]:
    """The settings of all runs and the texts of the law articles; what can be wrong with either is said here.

    It needs no cases, so it can come before they are prepared; whether the articles are theirs is said later.

    Raises:
        SettingsError: a setting cannot be used, a task's parents are none of the tasks or lead in a circle, or FLA
            lacks its task.
        DataError: the file of articles or of vectors cannot be read.
        MissingExtraError: FLA is asked for and scikit-learn is not installed.
    """
    if isinstance(plan.select, Mapping) and (unknown := sorted(set(plan.select) - set(plan.tasks))):
        raise SettingsError(
            f"there are shares of words for {', '.join(unknown)}; allowed: for {', '.join(plan.tasks)} (--tasks)"
        )
    settings_of = {run: plan.settings(*run) for run in plan.runs()}
    for settings in settings_of.values():
        check_text_settings(settings, segmenter="chinese", max_tokens=load_settings().text.max_tokens)
        for name, own in (("topjudge", settings.topjudge), ("mpbfn", settings.mpbfn)):
            if own is not None:
                topology(plan.tasks, own.parents, setting=f"{name}.parents")
        if settings.fla is None:
            continue
        if settings.fla.article_task not in plan.tasks:
            raise SettingsError(
                f"fla needs the task {settings.fla.article_task}; add it to --tasks, or leave fla out of --methods"
            )
        if find_spec("sklearn") is None:
            raise MissingExtraError("scikit-learn", "legal", "the method fla")
    for path in {settings.text.vectors for settings in settings_of.values()} - {None}:
        read_vectors(str(path), limit=1)
    return settings_of, {} if plan.articles is None else read_articles(plan.articles)


def reproduce_cail(
    cases: Path,
    plan: Plan,
    out: Path,
    *,
    trackers: Callable[[], Sequence[Tracker]] = tuple,
    say: Callable[[str], None] = lambda line: None,
) -> Outcome:
    """Train what is not trained yet, and score everything on the test cases.

    Args:
        cases: a folder of `infocal prepare cail`.
        plan: what to run.
        out: the folder that keeps what was trained; the same call goes on where an earlier one stopped.
        trackers: makes those who are told of a run's progress.
        say: called with a line for each step.

    Raises:
        DataError: there are no test cases, or none of their articles is among those of the file of articles.
        TrainingError: no run could be trained; where only some could not, the notes say which.
    """
    folder = EncodedFolder.open(cases)
    if "test" not in folder.manifest["parts"]:
        raise DataError("there are no test cases", allowed="a file with test in its name", source=str(cases))
    settings_of, law = check_plan(plan)
    data = _Data(folder, plan, law)
    jobs = [
        _Job(data, run, settings, run_folder(out, plan, *run), out / WARM_UPS)
        for run, settings in settings_of.items()
    ]
    found = {job.run: job.finished() for job in jobs}  # what does not go together is said before any work
    results, notes, failure = [], dict[str, None](), None
    if note := _law_note(folder, law, settings_of.values(), source=str(plan.articles)):
        notes[note] = None
    train, test = (folder.part(part, plan.tasks[0]) for part in ("train", "test"))
    notes |= dict.fromkeys(note_of_repeats(train, test, what="test"))
    for place, job in enumerate(jobs, 1):
        name, task, seed = job.run
        record = found[job.run]
        done = ", done already" if record else ""
        say(f"{place} of {len(jobs)}: {name}, {task}, seed {seed}{done}")
        try:
            record = record or job.do(trackers())
        except StoppedEarlyError:
            raise
        except TrainingError as error:  # the others are worth having
            failure = error
            notes[f"{name}, {task}, seed {seed} failed and is not in the table: {error}"] = None
            continue
        notes |= dict.fromkeys(record["notes"])
        results.append(Result(name, seed, record["tasks"], float(record["seconds"])))
    if failure is not None and not results:
        raise failure
    return Outcome(results, list(notes))


def _law_note(
    folder: EncodedFolder, law: Mapping[str, str], runs: Iterable[Settings], *, source: str
) -> str | None:
    """What FLA was told of the law; None if of all articles, or if there is no FLA and no law.

    Raises:
        DataError: there are texts, but of none of the cases' articles.
    """
    task = next((settings.fla.article_task for settings in runs if settings.fla is not None), None)
    if task is None:
        return UNREAD_LAW if law else None
    names = folder.classes(task)
    check_names(law, names, source=source)
    known = sum(bool(law.get(name)) for name in names)
    return None if known == len(names) else NO_LAW.format(known=known, all=len(names))


def run_folder(out: Path, plan: Plan, name: str, task: str, seed: int) -> Path:
    """Where a run keeps what it made."""
    return out / "runs" / name / ("+".join(plan.tasks) if task == ALL else task) / f"seed{seed}"


def model_of(out: Path, plan: Plan, name: str, task: str, seed: int = 0) -> Rationalizer:
    """The model of a run that shows words, for one task."""
    model = load(run_folder(out, plan, name, ALL if ROWS[name].joint else task, seed) / MODEL)
    return model.parts[task] if isinstance(model, JointRationalizer) else model


@dataclass(frozen=True)
class _Job:
    """One run: what it found before, or what it does."""

    data: _Data
    run: tuple[str, str, int]
    settings: Settings
    folder: Path
    warm_ups: Path

    @property
    def row(self) -> Row:
        return ROWS[self.run[0]]

    @property
    def prepared(self) -> Prepared:
        return self.data.prepared(self.run[1], self.settings)

    @property
    def test(self) -> Corpus:
        return self.data.folder.part("test", self.data.labels(self.run[1]))

    @cached_property
    def asked(self) -> dict[str, Any]:
        """What the figures depend on besides the trained network."""
        decoder = self.data.plan.decoder if self.row.selects else None
        return {"test": self.test.fingerprint(), "decoder": decoder}

    @cached_property
    def trained_from(self) -> str:
        """What the trained network depends on."""
        law = self.data.law if self.settings.method == "fla" else {}
        parts = [run_identity(self.prepared, self.settings), json.dumps(law, sort_keys=True)]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def finished(self) -> dict[str, Any]:
        """What the run found before; nothing if it has not been scored, or other words are asked for.

        Raises:
            OtherFolderError: it was trained on other data or with other settings.
        """
        trained, path = _read(self.folder / TRAINED), self.folder / RESULT
        if trained and trained.get("from") != self.trained_from:
            raise OtherFolderError(
                f"{self.folder} is of other data or settings; remove it, or name another folder with --out"
            )
        record = _read(path) if trained else {}
        return record if record.get("asked") == self.asked else {}

    def do(self, trackers: Sequence[Tracker]) -> dict[str, Any]:
        """Train, unless that is done, and score."""
        prepared = self.prepared
        scored = self._judged if self.row.judge else self._modelled
        tasks, seconds = scored(prepared, trackers)
        record = {"asked": self.asked, "tasks": tasks, "seconds": seconds, "notes": prepared.notes}
        write_text(self.folder / RESULT, json.dumps(record, ensure_ascii=False, indent=1) + "\n")
        return record

    def _modelled(self, prepared: Prepared, trackers: Sequence[Tracker]) -> tuple[dict[str, Any], float]:
        if _read(self.folder / TRAINED):
            model = load(self.folder / MODEL)
        else:
            model = train_model(
                self.folder,
                prepared,
                self.settings,
                warm_ups=self.warm_ups,
                trackers=trackers,
                saved=self._note_trained,
            )
        figures = model.evaluate_corpus(self.test, decoder=self.data.plan.decoder)
        tasks = figures.get("tasks", {self.run[1]: figures})
        if not self.row.selects:
            tasks = {name: {**part["full_text"], "selected": 1.0} for name, part in tasks.items()}
        return tasks, float(model.record["training"]["seconds"])

    def _judged(self, prepared: Prepared, trackers: Sequence[Tracker]) -> tuple[dict[str, Any], float]:
        from infocal.training.inference import full_text_outputs

        goal, test = prepared.task, self.test
        if not isinstance(goal, Joint) or test.targets is None:
            raise TypeError("a judge has several tasks, and test cases have targets")
        if trained := _read(self.folder / TRAINED):
            settings = resolve_settings(self.settings, prepared)
            network, seconds = load_method(self.folder / WEIGHTS, settings, goal), float(trained["seconds"])
        else:
            articles = self.data.articles(prepared, self.settings)
            network, seconds = train_network(
                self.folder,
                prepared,
                self.settings,
                articles=articles,
                trackers=trackers,
                saved=self._note_trained,
            )
        scores = goal.scores(full_text_outputs(network, test), test.targets)
        return {name: {**scores[name], "selected": 1.0} for name in scores}, seconds

    def _note_trained(self, seconds: float) -> None:
        record = {"from": self.trained_from, "seconds": seconds}
        write_text(self.folder / TRAINED, json.dumps(record) + "\n")


def _read(path: Path) -> dict[str, Any]:
    """A record on file; empty if there is none, or half of one."""
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}
