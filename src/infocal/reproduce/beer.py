"""The paper's experiment on beer reviews: three aspects, several methods at one share, scored as others score.

Every rating is predicted through a sigmoid with a squared error, selector and predictor are RCNNs of width 200
over fixed vectors, and 13, 7 and 7 % of the words are selected for appearance, smell and palate. When to stop is
decided by the held-out task loss at that share; the words that humans marked decide nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infocal.config import load_settings
from infocal.data.labels import number
from infocal.errors import DataError, SettingsError
from infocal.files import write_text
from infocal.fitting import WARM_UPS
from infocal.loading import load_one
from infocal.methods import changes_for
from infocal.reproduce.cases import Case, Reading, choose_cases
from infocal.reproduce.reviews import Reviews, aligned
from infocal.reproduce.runs import MODEL, held_out_error, is_finished, read_rounds, train_run
from infocal.reproduce.scoring import SCORINGS, RunResult, cut_as, score_model
from infocal.reproduce.search import read_search
from infocal.settings import Settings
from infocal.training.preparation import Prepared, encode_labelled, prepare

if TYPE_CHECKING:
    from infocal.data.corpus import Corpus
    from infocal.training.tracking import Tracker
    from infocal.types import Document

__all__ = ["DEFAULT_ROWS", "ROWS", "SELECT", "Outcome", "Plan", "Row", "reproduce_beer"]

SELECT: Mapping[str, float] = {"appearance": 0.13, "smell": 0.07, "palate": 0.07}
PROTOCOL: Mapping[str, object] = {
    "encoder.kind": "rcnn",
    "encoder.hidden_width": 200,
    "text.train_vectors": False,
    "text.max_tokens": 5000,  # reviews for training are cut when they are read, annotated ones are read whole
}
WHOLE_PASSES: Mapping[str, object] = {"training.least_round_steps": 1, "training.most_round_steps": 10**9}


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of the table.

    Attributes:
        title: what the table calls it.
        method: what is trained.
        recipe: the recipe; ``{aspect}`` stands for the aspect, None means the method's own.
        published: the row of the paper's table that it stands beside; None if there is none.
        changes: settings by dotted name.
        search: ranges in which the weights are looked for, by the held-out error; None if they are known.
    """

    title: str
    method: str
    recipe: str | None = None
    published: str | None = None
    changes: Mapping[str, object] = field(default_factory=dict)
    search: str | None = None


def _as_printed(title: str, published: str, **changes: object) -> Row:
    dotted = {name.replace("__", "."): value for name, value in changes.items()}
    return Row(title=title, method="infocal", recipe="paper-beer-{aspect}", published=published, changes=dotted)


ROWS: Mapping[str, Row] = {
    "attention": Row(title="Attention", method="attention", published="Attention"),
    "bernoulli": Row(title="Bernoulli", method="bernoulli", published="Bernoulli"),
    "hardkuma": Row(title="HardKuma", method="hardkuma", published="HardKuma"),
    "infocal": Row(title="InfoCal", method="infocal", published="InfoCal"),
    "infocal-paper": _as_printed("InfoCal, the paper's weights", "InfoCal"),
    "infocal-search": Row(
        title="InfoCal, weights found in the paper's ranges",
        method="infocal",
        recipe="paper-beer-{aspect}",
        published="InfoCal",
        search="paper-beer",
    ),
    "infocal-paper-hk": _as_printed(
        "InfoCal(HK), the paper's weights", "InfoCal(HK)", loss__fluency=0.0, loss__fused_lasso=0.1
    ),
    "infocal-paper-no-adv": _as_printed(
        "InfoCal-L_adv, the paper's weights",
        "InfoCal-L_adv",
        loss__imitation=0.0,
        loss__guidance=0.0,
        loss__guider_information=0.0,
        loss__discrimination=0.0,
    ),
    "infocal-paper-no-lm": _as_printed("InfoCal-L_lm, the paper's weights", "InfoCal-L_lm", loss__fluency=0.0),
    "bernoulli-paper": Row(
        title="Bernoulli, its paper's weights", method="bernoulli", recipe="paper-bernoulli", published="Bernoulli"
    ),
    "hardkuma-paper": Row(
        title="HardKuma, its paper's weights", method="hardkuma", recipe="paper-hardkuma", published="HardKuma"
    ),
    "l2x": Row(title="L2X", method="l2x"),
    "invase": Row(title="INVASE", method="invase"),
}
"""What can be trained, by its name on the command line. The rows "the paper's weights" use the printed recipe,
which pins the weight of the selection; the others use what this package recommends for the method."""

DEFAULT_ROWS = ("attention", "bernoulli", "hardkuma", "infocal")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to run.

    Attributes:
        aspects: of ``infocal.data.beer.ASPECTS``.
        rows: names of ``ROWS``.
        seeds: how many; 0, 1, and so on.
        changes: ``"name=value"`` settings for every run, which win over all others; those of a method's own group
            go to its runs only.
        epochs: passes over the training reviews, each a round; None takes each method's own schedule.
        decoder: how words are chosen from a model's scores.
        cases: texts on the page of cases.
        trials: settings that a row with a search tries for each aspect.
    """

    aspects: tuple[str, ...]
    rows: tuple[str, ...] = DEFAULT_ROWS
    seeds: int = 1
    changes: tuple[str, ...] = ()
    epochs: int | None = None
    decoder: str = "average"
    cases: int = 3
    trials: int = 10

    def weights(self, name: str, seed: int) -> list[dict[str, float]]:
        """What each trial of a run changes; a run without a search is one trial that changes nothing."""
        search = ROWS[name].search
        return [{}] if search is None else read_search(search).draw(self.trials, seed=seed)

    def settings(
        self, name: str, aspect: str, seed: int, reviews: Reviews, weights: Mapping[str, float] | None = None
    ) -> Settings:
        """The settings of one trial of a run."""
        row = ROWS[name]
        changes: dict[str, object] = {**PROTOCOL, "text.segmenter": reviews.segmenter}
        changes["text.vectors"] = None if reviews.vectors is None else str(reviews.vectors)
        if self.epochs is not None:
            changes |= {
                **WHOLE_PASSES,
                "training.joint_rounds": self.epochs,
                "training.joint_patience": self.epochs,
            }
        changes |= {**row.changes, **(weights or {})}
        asked = changes_for(row.method, self.changes, among={ROWS[name].method for name in self.rows})
        return load_settings(
            None if row.recipe is None else row.recipe.format(aspect=aspect),
            [*(f"{setting}={json.dumps(value)}" for setting, value in changes.items()), *asked],
            method=row.method,
            task="regress",
            select=SELECT[aspect],
            seed=seed,
        )


@dataclass(frozen=True)
class Outcome:
    """What a reproduction found.

    Attributes:
        results: one per aspect, row and seed.
        cases: texts with what each row's first model selected in them.
        notes: sentences that the user should read.
    """

    results: list[RunResult]
    cases: list[Case]
    notes: list[str]


def reproduce_beer(
    reviews: Reviews,
    plan: Plan,
    out: Path,
    *,
    trackers: Callable[[], Sequence[Tracker]] = tuple,
    say: Callable[[str], None] = lambda line: None,
) -> Outcome:
    """Train what is not trained yet, and score everything on the test reviews.

    Args:
        reviews: the data.
        plan: what to run.
        out: the folder that keeps the trained models; the same call goes on where an earlier one stopped.
        trackers: makes those who are told of a run's progress.
        say: called with a line for each step.
    """
    reviews.check(plan.aspects)
    all_settings = {
        (aspect, row, seed): [
            plan.settings(row, aspect, seed, reviews, drawn) for drawn in plan.weights(row, seed)
        ]
        for aspect, row, seed in _runs(plan)
    }
    tests = {aspect: list(_rated(reviews, aspect)) for aspect in plan.aspects}
    cases = choose_cases(aligned(tests), plan.cases)
    _claim(out, reviews, plan)
    results, notes = [], list[str]()
    data: _AspectData | None = None
    for place, ((aspect, row, seed), trials) in enumerate(all_settings.items(), 1):
        whole = out / "runs" / aspect / row / f"seed{seed}"
        folders = [whole] if ROWS[row].search is None else [whole / f"trial{n}" for n in range(len(trials))]
        if data is None or data.aspect != aspect:
            data = _AspectData(reviews, aspect, tests[aspect])
        for turn, (folder, settings) in enumerate(zip(folders, trials, strict=True), 1):
            done = is_finished(folder, settings)
            trial = f", trial {turn} of {len(trials)}" if len(trials) > 1 else ""
            already = ", trained already" if done else ""
            say(f"{place} of {len(all_settings)}: {aspect}, {row}, seed {seed}{trial}{already}")
            if not done:
                prepared = data.prepared(settings)
                notes += [note for note in (f"{aspect}: {note}" for note in prepared.notes) if note not in notes]
                train_run(
                    folder,
                    prepared,
                    settings,
                    corpora=data.corpora(settings),
                    warm_ups=out / WARM_UPS,
                    trackers=trackers(),
                )
        folder = min(folders, key=held_out_error)
        if len(trials) > 1:
            drawn = plan.weights(row, seed)[folders.index(folder)]
            found = ", ".join(f"{setting} {value:g}" for setting, value in drawn.items())
            say(f"{aspect}, {row}, seed {seed}: the held-out error is least with {found}")
        model = load_one(folder / MODEL)
        results.append(
            score_model(
                model,
                data.test,
                row=row,
                aspect=aspect,
                seed=seed,
                decoder=plan.decoder,
                rounds=read_rounds(folder),
            )
        )
        if seed == 0:
            explanations = model.explain_documents(
                [case.documents[aspect] for case in cases], decoder=plan.decoder
            )
            for case, explanation in zip(cases, explanations, strict=True):
                case.add(ROWS[row].title, aspect, Reading.of(explanation))
    write_text(out / "results.json", json.dumps([asdict(result) for result in results], indent=1) + "\n")
    return Outcome(results, cases, notes)


def _runs(plan: Plan) -> Iterator[tuple[str, str, int]]:
    for aspect in plan.aspects:
        for row in plan.rows:
            for seed in range(plan.seeds):
                yield aspect, row, seed


class _AspectData:
    """The reviews of one aspect, read when they are first needed.

    Args:
        reviews: the data.
        aspect: the aspect.
        test: its test reviews.
    """

    def __init__(self, reviews: Reviews, aspect: str, test: Sequence[Document]) -> None:
        self.reviews, self.aspect, self.test = reviews.counting_anew(), aspect, test
        if not self.test:
            raise DataError("no review is left for the test", allowed="at least some dozens", source=str(reviews))
        self._prepared: Prepared | None = None
        self._made_with: object = None

    def prepared(self, settings: Settings) -> Prepared:
        """The encoded reviews; those of the run before if it read the same way."""
        if self._prepared is None or self._made_with != settings.text:
            self._prepared = prepare(
                self.reviews.read("train", self.aspect),
                self.reviews.read("dev", self.aspect),
                settings,
                bad_rows=self.reviews.bad_rows,
                source=str(self.reviews),
                dev_source=f"{self.reviews}, held-out reviews",
            )
            self._made_with = settings.text
        return self._prepared

    def corpora(self, settings: Settings) -> dict[str, Corpus]:
        """The annotated reviews by scoring, encoded; empty where nobody marked words."""
        prepared = self.prepared(settings)
        cuts = {scoring: cut_as(scoring, self.test) for scoring in SCORINGS}
        return {
            scoring: encode_labelled(
                documents,
                segmenter=prepared.segmenter,
                vocabulary=prepared.vocabulary,
                task=prepared.task,
                max_tokens=settings.text.max_tokens,
                source=str(self.reviews),
                bad_rows=self.reviews.bad_rows,
            )
            for scoring, documents in cuts.items()
            if documents
        }


def _rated(reviews: Reviews, aspect: str) -> Iterator[Document]:
    """The test reviews whose rating is a number; others are bad rows, found before anything is trained."""
    for document in reviews.read("test", aspect):
        try:
            number(document.label, source=str(reviews), line=document.line)
        except DataError as error:
            reviews.bad_rows.report(error)
        else:
            yield document


def _claim(out: Path, reviews: Reviews, plan: Plan) -> None:
    """Write down what ``out`` is made from; SettingsError if it was begun with other data."""
    path = out / "data.json"
    facts: dict[str, Any] = {"read": reviews.facts(), "files": reviews.fingerprints(plan.aspects)}
    if path.is_file() and (out / "runs").is_dir():
        try:
            known = json.loads(path.read_text(encoding="utf-8"))
            other = [name for name, digest in facts["files"].items() if known["files"].get(name, digest) != digest]
            other += [name for name, value in facts["read"].items() if known["read"].get(name) != value]
        except (ValueError, KeyError, AttributeError, TypeError):
            raise SettingsError(f"{path} is damaged; remove the folder or name another with --out") from None
        if other:
            raise SettingsError(
                f"{out} was begun with other data ({', '.join(other)}); name another folder with --out"
            )
        facts["files"] = {**known["files"], **facts["files"]}
    elif not path.is_file() and out.is_dir() and any(out.iterdir()):
        raise SettingsError(f"{out} holds something else; name a new or empty folder with --out")
    write_text(path, json.dumps(facts, indent=1) + "\n")
