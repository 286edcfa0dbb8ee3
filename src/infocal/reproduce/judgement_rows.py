"""What can be trained on court cases, and with which settings.

In the rows of one task selector and predictor are bidirectional LSTMs of width 100 over vectors of width 100,
learned from the cases. Systems that answer all tasks have encoders of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from infocal.config import load_settings
from infocal.data.cail import TASKS
from infocal.methods import changes_for
from infocal.reproduce.beer import WHOLE_PASSES
from infocal.settings import Settings

__all__ = ["ALL", "DEFAULT_ROWS", "ROWS", "Plan", "Row"]

SELECT: Mapping[str, Mapping[str, float]] = {
    "big": {"article": 0.2, "charge": 0.2, "term": 0.3},
    "small": {"article": 0.14, "charge": 0.14, "term": 0.3},
}
"""The paper's shares for its larger data and for its smaller."""
PROTOCOL: Mapping[str, object] = {"encoder.kind": "lstm", "encoder.hidden_width": 100, "text.width": 100}
ALL = "all"


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of the table.

    Attributes:
        title: what the table calls it.
        method: what is trained.
        recipe: its recipe; None means the method's own.
        published: the row of the paper's table that it stands beside; None if there is none.
        also_published: other rows of the paper's table that belong to the same method and that nothing here is
            trained for.
        joint: whether one model answers all tasks.
        selects: whether it shows words; one that does not reads all of them.
        guided: whether a part of it learns to read all words to the end.
        changes: of its recipe, beside those of the protocol.
    """

    title: str
    method: str
    recipe: str | None = None
    published: str | None = None
    also_published: tuple[str, ...] = ()
    joint: bool = False
    selects: bool = True
    guided: bool = True
    changes: Mapping[str, object] = field(default_factory=dict)

    @property
    def judge(self) -> bool:
        """Whether it is one of the systems that answer several tasks from all words."""
        return self.joint and not self.selects


READING_ROUNDS = 16
"""For so many rounds at most the judges read all words, and so may everybody else: with tens of classes the
recipes' 8 end while held-out cases still improve. What never reads all words, and the paper's own schedule, stay
as they are."""
_WARMED_UP: Mapping[str, object] = {"training.warm_up_rounds": READING_ROUNDS}
CHOOSING_ROUNDS = 8
"""For so many rounds at most InfoCal's words are chosen: half of the 16 that Bernoulli and HardKuma have, each at
twice the price, since a guider reads along. The recipe's 4 end while the held-out loss still falls."""
_GUIDED: Mapping[str, object] = {**_WARMED_UP, "training.joint_rounds": CHOOSING_ROUNDS}


def _ours(title: str, recipe: str, published: str | None, **others: Any) -> Row:
    return Row(title=title, method="infocal", recipe=recipe, published=published, **{"changes": _GUIDED, **others})


def _selector(title: str, method: str) -> Row:
    also = (f"{title}, all words",)
    changes = _WARMED_UP
    return Row(title=title, method=method, published=title, also_published=also, guided=False, changes=changes)


def _judge(title: str, method: str) -> Row:
    return Row(title=title, method=method, published=title, joint=True, selects=False)


ROWS: Mapping[str, Row] = {
    "full-text": Row(
        title="All words, the same encoder",
        method="attention",
        published="InfoCal-L_adv-L_ib",
        selects=False,
        changes={"training.joint_rounds": READING_ROUNDS},
    ),
    "bernoulli": _selector("Bernoulli", "bernoulli"),
    "hardkuma": _selector("HardKuma", "hardkuma"),
    "infocal": _ours("InfoCal", "infocal", "InfoCal"),
    "infocal-full": _ours("InfoCal with L_adv and L_lm", "infocal-full", "InfoCal"),
    "infocal-no-guider": _ours(
        "InfoCal-L_adv", "infocal-no-guider-with-lm", "InfoCal-L_adv", guided=False, changes={}
    ),
    "infocal-no-adv": _ours("InfoCal-L_g", "infocal-no-adv", None),
    "infocal-no-lm": _ours("InfoCal-L_lm", "infocal-no-lm", "InfoCal-L_lm"),
    "infocal-no-adv-no-ib": _ours("InfoCal-L_g-L_ib", "infocal-no-adv-no-ib", None),
    "infocal-paper": _ours("InfoCal, the paper's weights", "paper-legal", "InfoCal", changes={}),
    "fla": _judge("FLA", "fla"),
    "topjudge": _judge("TOPJUDGE", "topjudge"),
    "mpbfn": _judge("MPBFN-WCA", "mpbfn"),
    "infocal-joint": Row(
        title="InfoCal, all tasks in one",
        method="infocal",
        joint=True,
        changes={**_GUIDED, "encoder.kind": "rcnn"},  # the package's own encoder, as the judges have their own
    ),
}
"""What can be trained, by its name on the command line.

The paper's L_adv is L_g, L_guide and L_mi (its total loss): without it there is no guider. Its row without L_adv
and L_ib has no price of a word either, and reads all of them.
"""

DEFAULT_ROWS = ("full-text", "bernoulli", "hardkuma", "infocal", "fla", "topjudge", "mpbfn", "infocal-joint")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to run.

    Attributes:
        rows: names of ``ROWS``.
        tasks: of ``infocal.data.cail.TASKS``.
        seeds: of the runs of each.
        select: the share of words for every task, or for some by name.
        official: whose shares the other tasks take, those of the paper's "big" data or of its "small".
        changes: ``"name=value"`` settings for every run, which win over all others; those of a method's own group
            go to its runs only.
        vectors: a file of word vectors; None learns them from the cases.
        epochs: passes over the training cases, each a round; None takes each method's own schedule.
        articles: a file of the articles' texts, for FLA; None goes by their names.
        decoder: how words are chosen from a model's scores.
    """

    rows: tuple[str, ...] = DEFAULT_ROWS
    tasks: tuple[str, ...] = TASKS
    seeds: tuple[int, ...] = (0,)
    select: float | Mapping[str, float] | None = None
    official: str = "big"
    changes: tuple[str, ...] = ()
    vectors: Path | None = None
    articles: Path | None = None
    epochs: int | None = None
    decoder: str = "average"

    def settings(self, name: str, task: str, seed: int) -> Settings:
        """The settings of one run; a model of all tasks has the share of each.

        Rows that read all words have always the same share, so that asking for another leaves them as they are.
        """
        row = ROWS[name]
        fixed = {**({} if row.judge else PROTOCOL), **row.changes}  # the judges have sizes of their own
        if self.vectors is not None:
            fixed["text.vectors"] = str(self.vectors)
        if self.epochs is not None:
            rounds = {"training.joint_rounds": self.epochs, "training.joint_patience": self.epochs}
            fixed |= {**WHOLE_PASSES, **rounds}
        changes = changes_for(row.method, self.changes, among={ROWS[name].method for name in self.rows})
        return load_settings(
            row.recipe,
            [*(f"{setting}={json.dumps(value)}" for setting, value in fixed.items()), *changes],
            method=row.method,
            select=self.share_of(task) if row.selects else SELECT["big"][self.tasks[0] if row.judge else task],
            seed=seed,
        )

    def share_of(self, task: str) -> float | dict[str, float]:
        """The share of words of a task; of all of them together, a share each, or one if they are the same."""
        asked = {} if self.select is None else self.select
        if isinstance(asked, float):
            asked = dict.fromkeys(TASKS, asked)
        usual = SELECT[self.official]
        shares = {name: asked.get(name, usual[name]) for name in self.tasks}
        if task != ALL:
            return shares[task]
        return shares if len(set(shares.values())) > 1 else shares[self.tasks[0]]

    def schedule_note(self, tokens: int) -> str | None:
        """What to say of the time that training takes on so many words.

        That is where the methods' own schedules see less than whole passes, and where some make more passes than
        were asked for.
        """
        schedules = [self.settings(*run).training for run in self.runs()]
        reading = max(schedule.warm_up_rounds for schedule in schedules)
        if self.epochs is not None:
            said = (
                f"Before the {self.epochs} passes of --epochs some methods read all words for up to {reading} "
                "passes, until held-out cases stop improving; --set training.warm_up_rounds=N allows fewer."
            )
            return said if reading else None
        least = min(schedules, key=lambda schedule: schedule.most_round_steps * schedule.batch_tokens)
        part = least.most_round_steps * least.batch_tokens / max(1, tokens)
        if part >= 1:
            return None
        rounds = sorted({schedule.warm_up_rounds + schedule.joint_rounds for schedule in schedules})
        few = f"{rounds[0]} to {rounds[-1]}" if len(rounds) > 1 else f"{rounds[0]}"
        return (
            f"A round of training is {least.most_round_steps} steps, about {100 * part:.2g} % of these training "
            f"cases, and methods have {few} rounds at most; --epochs N trains for whole passes."
        )

    def runs(self) -> Iterator[tuple[str, str, int]]:
        """Row, task (or all) and seed of every run."""
        for name in self.rows:
            for task in (ALL,) if ROWS[name].joint else self.tasks:
                for seed in self.seeds:
                    yield name, task, seed
