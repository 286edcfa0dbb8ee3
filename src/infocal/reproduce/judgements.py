"""The paper's experiment on court cases: article, charge and penalty term, by one model each and by all in one.

Selector and predictor are bidirectional LSTMs of width 100 over vectors of width 100, learned from the cases.
When to stop is decided by the held-out task loss at the share of words that was asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infocal.config import Settings, load_settings
from infocal.data.cail import TASKS
from infocal.data.encoded import EncodedFolder
from infocal.errors import DataError, SettingsError
from infocal.files import write_text
from infocal.fitting import run_identity
from infocal.legal.articles import build_articles, read_articles
from infocal.loading import load
from infocal.reproduce.runs import MODEL, train_model, train_network
from infocal.tasks import Joint
from infocal.training.preparation import Prepared, open_encoded

if TYPE_CHECKING:
    from infocal.nn.retrieval import Articles
    from infocal.training.tracking import Tracker

__all__ = ["DEFAULT_ROWS", "ROWS", "Plan", "Result", "Row", "model_of", "reproduce_cail"]

SELECT: Mapping[str, float] = {"article": 0.2, "charge": 0.2, "term": 0.3}
"""The paper's shares for its larger data; for the smaller it has .14, .14 and .3."""
PROTOCOL: Mapping[str, object] = {"encoder.kind": "lstm", "encoder.hidden_width": 100, "text.width": 100}
ALL = "all"
RESULT = "result.json"


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of the table.

    Attributes:
        title: what the table calls it.
        method: what is trained.
        recipe: its recipe; None means the method's own.
        published: the row of the paper's table that it stands beside; None if there is none.
        joint: whether one model answers all tasks.
        selects: whether it shows words; one that does not reads all of them.
    """

    title: str
    method: str
    recipe: str | None = None
    published: str | None = None
    joint: bool = False
    selects: bool = True


def _ours(title: str, recipe: str, published: str | None) -> Row:
    return Row(title=title, method="infocal", recipe=recipe, published=published)


def _judge(title: str, method: str) -> Row:
    return Row(title=title, method=method, published=title, joint=True, selects=False)


ROWS: Mapping[str, Row] = {
    "full-text": Row(title="All words, the same encoder", method="attention", selects=False),
    "bernoulli": Row(title="Bernoulli", method="bernoulli", published="Bernoulli"),
    "hardkuma": Row(title="HardKuma", method="hardkuma", published="HardKuma"),
    "infocal": _ours("InfoCal", "infocal", "InfoCal"),
    "infocal-full": _ours("InfoCal with L_adv and L_lm", "infocal-full", "InfoCal"),
    "infocal-no-adv": _ours("InfoCal-L_adv", "infocal-no-adv", "InfoCal-L_adv"),
    "infocal-no-lm": _ours("InfoCal-L_lm", "infocal-no-lm", "InfoCal-L_lm"),
    "infocal-no-adv-no-ib": _ours("InfoCal-L_adv-L_ib", "infocal-no-adv-no-ib", "InfoCal-L_adv-L_ib"),
    "infocal-paper": _ours("InfoCal, the paper's weights", "paper-legal", "InfoCal"),
    "fla": _judge("FLA", "fla"),
    "topjudge": _judge("TOPJUDGE", "topjudge"),
    "mpbfn": _judge("MPBFN-WCA", "mpbfn"),
    "infocal-joint": Row(title="InfoCal, all tasks in one", method="infocal", joint=True),
}
"""What can be trained, by its name on the command line."""

DEFAULT_ROWS = ("full-text", "bernoulli", "hardkuma", "infocal", "fla", "topjudge", "mpbfn", "infocal-joint")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to run.

    Attributes:
        rows: names of ``ROWS``.
        tasks: of ``infocal.data.cail.TASKS``.
        seeds: how many; 0, 1, and so on.
        select: the share of words for every task; None takes the paper's.
        changes: ``"name=value"`` settings for every run, which win over all others.
        vectors: a file of word vectors; None learns them from the cases.
        articles: a file of the articles' texts, for FLA; None goes by their names.
        decoder: how words are chosen from a model's scores.
    """

    rows: tuple[str, ...] = DEFAULT_ROWS
    tasks: tuple[str, ...] = TASKS
    seeds: int = 1
    select: float | None = None
    changes: tuple[str, ...] = ()
    vectors: Path | None = None
    articles: Path | None = None
    decoder: str = "average"

    def settings(self, name: str, task: str, seed: int) -> Settings:
        """The settings of one run; a model of all tasks takes the share of the first."""
        row = ROWS[name]
        fixed = dict(PROTOCOL)
        if row.joint and not row.selects:
            fixed = {}  # these systems have sizes of their own
        if self.vectors is not None:
            fixed["text.vectors"] = str(self.vectors)
        return load_settings(
            row.recipe,
            [*(f"{setting}={json.dumps(value)}" for setting, value in fixed.items()), *self.changes],
            method=row.method,
            select=self.select or SELECT[self.tasks[0] if task == ALL else task],
            seed=seed,
        )

    def runs(self) -> Iterator[tuple[str, str, int]]:
        """Row, task (or all) and seed of every run."""
        for name in self.rows:
            for task in (ALL,) if ROWS[name].joint else self.tasks:
                for seed in range(self.seeds):
                    yield name, task, seed


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
class _Data:
    """The encoded cases, opened for one task after the other."""

    folder: EncodedFolder
    plan: Plan
    law: Mapping[str, str]

    def labels(self, task: str) -> str | list[str]:
        return list(self.plan.tasks) if task == ALL else task

    def prepared(self, task: str, settings: Settings) -> Prepared:
        return open_encoded(self.folder.path, self.labels(task), settings)

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
        )


def reproduce_cail(
    cases: Path,
    plan: Plan,
    out: Path,
    *,
    trackers: Callable[[], Sequence[Tracker]] = tuple,
    say: Callable[[str], None] = lambda line: None,
) -> list[Result]:
    """Train what is not trained yet, and score everything on the test cases.

    Args:
        cases: a folder of `infocal prepare cail`.
        plan: what to run.
        out: the folder that keeps what was trained; the same call goes on where an earlier one stopped.
        trackers: makes those who are told of a run's progress.
        say: called with a line for each step.
    """
    folder = EncodedFolder.open(cases)
    if "test" not in folder.manifest["parts"]:
        raise DataError("there are no test cases", allowed="a part test", source=str(cases))
    runs = list(plan.runs())
    settings_of = {run: plan.settings(*run) for run in runs}  # what is wrong with them is said before any work
    for settings in settings_of.values():
        if settings.fla is not None and settings.fla.article_task not in plan.tasks:
            raise SettingsError(f"fla needs the task {settings.fla.article_task}; add it to --tasks")
    data = _Data(folder, plan, {} if plan.articles is None else read_articles(plan.articles))
    results = []
    for place, (run, settings) in enumerate(settings_of.items(), 1):
        name, task, seed = run
        prepared = data.prepared(task, settings)
        path, identity = run_folder(out, *run) / RESULT, run_identity(prepared, settings)
        record = _finished(path, identity, plan)
        done = ", done already" if record else ""
        say(f"{place} of {len(runs)}: {name}, {task}, seed {seed}{done}")
        if not record:
            record = _run(data, run, prepared, settings, out, trackers())
            record |= {"identity": identity, "decoder": plan.decoder}
            write_text(path, json.dumps(record, ensure_ascii=False, indent=1) + "\n")
        results.append(Result(name, seed, record["tasks"], float(record["seconds"])))
    return results


def run_folder(out: Path, name: str, task: str, seed: int) -> Path:
    """Where a run keeps what it made."""
    return out / "runs" / name / task / f"seed{seed}"


def model_of(out: Path, name: str, task: str, seed: int = 0) -> Any:
    """The model of a run that shows words, for the task or for all."""
    return load(run_folder(out, name, ALL if ROWS[name].joint else task, seed) / MODEL)


def _finished(path: Path, identity: str, plan: Plan) -> dict[str, Any]:
    """What a run found before; nothing if it has not run, or would now be another."""
    if not path.is_file():
        return {}
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return {}
    if record.get("identity") != identity:
        raise SettingsError(
            f"{path} is of other data or settings; name another folder with --out, or remove that one"
        )
    return record if record.get("decoder") == plan.decoder else {}


def _run(
    data: _Data,
    run: tuple[str, str, int],
    prepared: Prepared,
    settings: Settings,
    out: Path,
    trackers: Sequence[Tracker],
) -> dict[str, Any]:
    name, task, _ = run
    test = data.folder.part("test", data.labels(task))
    folder = run_folder(out, *run)
    if not ROWS[name].joint:
        model = train_model(folder, prepared, settings, trackers=trackers)
        figures = model.evaluate_corpus(test, decoder=data.plan.decoder)
        if not ROWS[name].selects:
            figures = {**figures["full_text"], "selected": 1.0}
        return {"tasks": {task: figures}, "seconds": model.record["training"]["seconds"]}
    if ROWS[name].selects:
        model = train_model(folder, prepared, settings, trackers=trackers)
        found = model.evaluate_corpus(test, decoder=data.plan.decoder)["tasks"]
        return {"tasks": found, "seconds": model.record["training"]["seconds"]}
    from infocal.training.inference import full_text_outputs

    articles = data.articles(prepared, settings)
    network, seconds = train_network(folder, prepared, settings, articles=articles, trackers=trackers)
    goal = prepared.task
    if not isinstance(goal, Joint) or test.targets is None:
        raise TypeError("a judge has several tasks")
    scores = goal.scores(full_text_outputs(network, test), test.targets)
    return {"tasks": {one: {**scores[one], "selected": 1.0} for one in scores}, "seconds": seconds}
