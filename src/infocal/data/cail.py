"""CAIL2018, the criminal cases of Xiao et al. 2018, in the layout of the challenge: a JSON object a line.

{"fact": "...", "meta": {"accusation": ["盗窃"], "relevant_articles": [264],
"term_of_imprisonment": {"imprisonment": 6, "life_imprisonment": false, "death_penalty": false}}}
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from infocal.data.readers import checked_text
from infocal.data.records import BadRows
from infocal.errors import DataError
from infocal.text.sources import open_bytes, shown, shown_list
from infocal.types import Document, Label

__all__ = [
    "INTERVALS",
    "REASONS",
    "TASKS",
    "Case",
    "answers_of",
    "case_documents",
    "case_files",
    "encoding_of",
    "inner_folders",
    "is_case_file",
    "parse_case",
    "penalty_interval",
    "read_cases",
    "why_dropped",
]

TASKS = ("article", "charge", "term")
"""What is predicted of a case: the law article, the charge, the interval of its penalty."""

_MONTHS = (120, 84, 60, 36, 24, 12, 9, 6, 0)
INTERVALS = ("death or life", *(f"over {months} months" for months in _MONTHS), "none")
"""The eleven penalty intervals, the gravest first; each reaches up to the one before it."""

REASONS = ("no charge", "several charges", "no article", "several articles", "no term", "second instance")
"""Why a case is left out, in the order in which it is asked."""

_SUFFIXES = (".json", ".jsonl", ".ndjson", ".txt")
_SECOND_INSTANCE = re.compile("二审|再审|原审|上诉人")
_NO_BRACKETS = str.maketrans("", "", "[]")
_ENCODINGS = ("utf-8", "gb18030")
_FIRST_LINES = 200
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class Case:
    """One case.

    Attributes:
        fact: what the court found, as it stands in the file.
        charges: names of the charges, each once.
        articles: numbers of the relevant articles of the criminal law, each once.
        months: of imprisonment; None where none is stated.
        gravest: whether the penalty is death or imprisonment for life.
        line: where the case stands in its file.
    """

    fact: str
    charges: tuple[str, ...]
    articles: tuple[int, ...]
    months: int | None
    gravest: bool
    line: int


def penalty_interval(case: Case) -> str | None:
    """The one of ``INTERVALS`` that a case's penalty falls into; None if no penalty is stated."""
    if case.gravest:
        return INTERVALS[0]
    if case.months is None:
        return None
    above = sum(case.months <= months for months in _MONTHS)
    return INTERVALS[1 + above]


def why_dropped(case: Case) -> str | None:
    """The first of ``REASONS`` for which the paper's preparation leaves a case out; None if it stays."""
    found = (
        not case.charges,
        len(case.charges) > 1,
        not case.articles,
        len(case.articles) > 1,
        penalty_interval(case) is None,
        _SECOND_INSTANCE.search(case.fact) is not None,
    )
    return next((reason for reason, holds in zip(REASONS, found, strict=True) if holds), None)


def answers_of(case: Case) -> dict[str, str]:
    """The answers of the court by the names of ``TASKS``, of a case that stays."""
    return {
        "article": str(case.articles[0]),
        "charge": case.charges[0],
        "term": str(penalty_interval(case)),
    }


def case_files(path: str | Path) -> list[Path]:
    """The files of cases that a path means: itself, or all files of a folder that look like cases, by name.

    Files whose names begin with a dot are left alone.

    Raises:
        DataError: there is no such file or folder, or the folder has no file of cases.
    """
    path = Path(path)
    if not path.is_dir():
        if not path.exists():
            raise DataError("there is no such file or folder", allowed="files of cases", source=str(path))
        return [path]
    found = sorted(item for item in path.iterdir() if item.is_file() and _looks_like_cases(item.name.lower()))
    if not found:
        allowed = f"files that end in {', '.join(_SUFFIXES)}, each also with .gz"
        raise DataError(f"the folder has no file of cases{inner_folders(path)}", allowed=allowed, source=str(path))
    return found


def inner_folders(path: Path) -> str:
    """What to add to a message on a folder that lacks files of cases: which folders in it have some, if any."""
    items = (item for depth in ("*/*", "*/*/*") for item in path.glob(depth))
    inner = {item.parent for item in items if _looks_like_cases(item.name.lower()) and item.is_file()}
    names = sorted(str(folder.relative_to(path)) for folder in inner)
    if not names:
        return ""
    return f", but in it {shown_list(names)} {'has' if len(names) == 1 else 'have'} some: name one of the folders"


def _looks_like_cases(name: str) -> bool:
    return not name.startswith(".") and name.removesuffix(".gz").endswith(_SUFFIXES)


def encoding_of(path: str | Path) -> str:
    """Whether a file is UTF-8 or GB18030: what most of its first lines are; a line that is not is a bad line.

    Raises:
        DataError: none of them is either.
    """
    with open_bytes(path) as stream:
        lines = list(islice(stream, _FIRST_LINES))
    if lines and lines[0].startswith(_UTF_16):
        raise DataError("the file looks like UTF-16", allowed="UTF-8 or GB18030", source=str(path), line=1)
    decoded = {encoding: sum(_is(encoding, line) for line in lines) for encoding in _ENCODINGS}
    if lines and not any(decoded.values()):
        raise DataError("the file is neither UTF-8 nor GB18030", allowed="one of these", source=str(path))
    return max(_ENCODINGS, key=lambda encoding: decoded[encoding])  # UTF-8 if both are as good


def _is(encoding: str, line: bytes) -> bool:
    try:
        line.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def read_cases(path: str | Path, *, bad_rows: BadRows) -> Iterator[Case]:
    """Read the cases of one file, as a stream; nothing is left out.

    Args:
        path: a file of the challenge's layout, UTF-8 or GB18030, plain or gzip.
        bad_rows: raises the error of a line that cannot be used, or counts it.
    """
    encoding = encoding_of(path)
    with open_bytes(path) as stream:
        for number, raw in enumerate(stream, 1):
            if not raw.strip():
                continue
            try:
                yield parse_case(raw, number, encoding=encoding, source=str(path))
            except DataError as error:
                bad_rows.report(error)


def is_case_file(path: str | Path) -> bool:
    """Whether some of a file's first lines are of the challenge's layout, so that `case_documents` can read it."""
    with open_bytes(path) as stream:
        return any(_is_case(line) for line in islice(stream, _FIRST_LINES))


def _is_case(line: bytes) -> bool:
    for encoding in _ENCODINGS:
        try:
            record = _json(line, encoding)
        except (ValueError, RecursionError):
            continue
        return isinstance(record, dict) and "fact" in record and isinstance(record.get("meta"), dict)
    return False


def case_documents(
    path: str | Path, labels: Sequence[str], *, bad_rows: BadRows, require_label: bool = True
) -> Iterator[Document]:
    """The cases of one file as documents.

    Args:
        path: as for `read_cases`.
        labels: of ``TASKS``; of several, each document has all by name.
        bad_rows: told of lines that cannot be used.
        require_label: whether cases that the paper's preparation leaves out are such; else they have no label.
    """
    for case in read_cases(path, bad_rows=bad_rows):
        reason = why_dropped(case)
        if reason is not None and require_label:
            allowed = "cases of first instance with one charge, one article and a term; or --skip-bad"
            problem = DataError(
                f"the case is left out: {reason}", allowed=allowed, source=str(path), line=case.line
            )
            bad_rows.report(problem)
            continue
        answers = {} if reason is not None else answers_of(case)
        own: dict[str, Label | None] = {name: answers.get(name) for name in labels}
        yield Document(case.fact, own if len(labels) > 1 else own[labels[0]], line=case.line)


def parse_case(raw: bytes, line: int, *, encoding: str, source: str) -> Case:
    """One line as a case.

    Raises:
        DataError: it is not of the layout; the message says what is wrong.
    """
    problem = partial(DataError, source=source, line=line)
    try:
        record = _json(raw, encoding)
    except UnicodeDecodeError as error:
        found = f"byte 0x{error.object[error.start]:02x} at position {error.start} is not {encoding.upper()}"
        raise problem(found, allowed="one encoding in the whole file") from None
    except (ValueError, RecursionError) as error:
        why = "a number has too many digits" if "int_max_str_digits" in str(error) else error
        raise problem(f"the line is not JSON ({why})", allowed="one JSON object a line") from None
    fact, meta = _entry(record, "fact", problem), _entry(record, "meta", problem)
    if not isinstance(fact, str) or not fact.strip():
        raise problem(f"the fact is {shown(fact)}", allowed="a text with words")
    checked_text(fact, problem)
    term = _entry(meta, "term_of_imprisonment", problem)
    return Case(
        fact=fact,
        charges=_charges(meta, problem),
        articles=_numbers(meta, "relevant_articles", problem),
        months=_months(_entry(term, "imprisonment", problem), problem),
        gravest=_flag(term, "death_penalty", problem) | _flag(term, "life_imprisonment", problem),
        line=line,
    )


def _json(line: bytes, encoding: str) -> Any:
    """What a line says, without the mark that some programs put in front of a file in either encoding."""
    return json.loads(line.decode(encoding).removeprefix("\ufeff"))


def _entry(record: Any, name: str, problem: Any) -> Any:
    if not isinstance(record, dict):
        raise problem(f"{shown(record)} stands where an object with {name!r} should", allowed="CAIL2018's layout")
    if name not in record:
        raise problem(f"there is no {name!r}, only {shown_list(list(record))}", allowed="CAIL2018's layout")
    return record[name]


def _charges(meta: Any, problem: Any) -> tuple[str, ...]:
    """Names, each once, in their order.

    Without the square brackets around several acts, as in [走私、贩卖、运输、制造]毒品: files have such a charge
    with and without them.
    """
    values = _entry(meta, "accusation", problem)
    if isinstance(values, list) and all(isinstance(value, str) for value in values):
        names = [value.translate(_NO_BRACKETS).strip() for value in values]
        if all(names):
            return tuple(dict.fromkeys(checked_text(name, problem) for name in names))
    raise problem(f"accusation is {shown(values)}", allowed="a list of names")


def _numbers(meta: Any, name: str, problem: Any) -> tuple[int, ...]:
    """Whole numbers, also those that are written as text, each once, in their order."""
    values = _entry(meta, name, problem)
    if isinstance(values, list) and all(re.fullmatch(r"[0-9]{1,9}", str(value).strip()) for value in values):
        return tuple(dict.fromkeys(int(value) for value in values))
    raise problem(f"{name} is {shown(values)}", allowed="a list of whole numbers of up to nine digits")


def _months(value: Any, problem: Any) -> int | None:
    if value is None or (type(value) is int and value >= 0):
        return value
    raise problem(f"imprisonment is {shown(value)}", allowed="months, 0 or more; null where none is stated")


def _flag(term: dict[str, Any], name: str, problem: Any) -> bool:
    value = term.get(name)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise problem(f"{name} is {shown(value)}", allowed="true, false, null or absent")
