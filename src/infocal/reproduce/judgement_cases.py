"""The page of cases: the fact of a court case with the words that each model goes by, for each task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from infocal.data.cail import answers_of, case_files, read_cases, why_dropped
from infocal.data.records import BadRows
from infocal.markup import escape, explanation_html, page
from infocal.types import Document, Explanation

__all__ = ["FactCase", "cases_page", "choose_facts"]

GOOD_LENGTH = range(80, 500)
"""Characters of a fact that is read at a glance and still says what was done."""

FONTS = (
    '"Noto Sans CJK SC","Noto Sans SC","Source Han Sans SC","PingFang SC","Microsoft YaHei",'
    '"WenQuanYi Zen Hei","Hiragino Sans GB",SimHei,sans-serif'
)
STYLE = f"""
section{{margin:2.5rem 0}} .facts{{color:var(--soft)}}
.row{{margin:.8rem 0;padding-left:.8rem;border-left:3px solid var(--line)}}
.row .name{{font-size:.85rem;color:var(--soft)}} [lang=zh]{{font-family:{FONTS};line-height:1.9}}
"""


@dataclass(frozen=True)
class FactCase:
    """A fact, its true answers, and what was read in it.

    Attributes:
        fact: the text.
        answers: task -> the court's answer.
        readings: task -> method's title -> explanation.
    """

    fact: str
    answers: Mapping[str, str]
    readings: dict[str, dict[str, Explanation]] = field(default_factory=dict)

    def add(self, task: str, reader: str, explanation: Explanation) -> None:
        """Add what a model read for a task."""
        self.readings.setdefault(task, {})[reader] = explanation

    def document(self, task: str) -> Document:
        """The fact with the answer of one task."""
        return Document(self.fact, label=self.answers[task])


def choose_facts(
    paths: Sequence[Path], classes: Mapping[str, Sequence[str]], *, count: int, seed: int = 0
) -> list[FactCase]:
    """Some test cases, of a good length if there are any, drawn by chance among those of known classes.

    Args:
        paths: files or folders of cases.
        classes: task -> known classes.
        count: how many.
        seed: of the draw.
    """
    files = [file for path in paths for file in case_files(path)]

    def pool(lengths: range | None) -> Iterator[FactCase]:
        usable = (found for file in files for found in _usable(file, classes))
        return (case for case in usable if lengths is None or len(case.fact) in lengths)

    # Read twice, once to count and once to take: there may be hundreds of thousands.
    lengths: range | None = GOOD_LENGTH
    total = sum(1 for _ in pool(lengths))
    if not total:
        lengths = None
        total = sum(1 for _ in pool(lengths))
    rows = set(np.random.default_rng(seed).choice(total, size=min(count, total), replace=False).tolist())
    return [case for row, case in enumerate(pool(lengths)) if row in rows]


def _usable(file: Path, classes: Mapping[str, Sequence[str]]) -> Iterator[FactCase]:
    for case in read_cases(file, bad_rows=BadRows(skip=True)):
        if why_dropped(case) is None:
            answers = answers_of(case)
            if all(answers[task] in known for task, known in classes.items()):
                yield FactCase(case.fact, {task: answers[task] for task in classes})


def cases_page(cases: Sequence[FactCase], *, title: str) -> str:
    """A self-contained page in which everything from the cases is escaped."""
    body = [f"<h1>{escape(title)}</h1>", *(_case(number, case) for number, case in enumerate(cases, 1))]
    if not cases:
        body.append("<p>There is no test case of known classes.</p>")
    return page(title, "\n".join(body), style=STYLE)


def _case(number: int, case: FactCase) -> str:
    answers = "; ".join(f"{escape(task)} <b>{escape(answer)}</b>" for task, answer in case.answers.items())
    rows = []
    for task, readings in case.readings.items():
        rows.append(f"<h3>{escape(task)}</h3>")
        rows += [
            f'<div class="row"><div class="name">{escape(reader)}</div>'
            f"{explanation_html(explanation, language='zh')}</div>"
            for reader, explanation in readings.items()
        ]
    head = f'<h2>Case {number}</h2><p class="facts">The court: {answers}</p>'
    return f'<section lang="zh">{head}{"".join(rows)}</section>'
