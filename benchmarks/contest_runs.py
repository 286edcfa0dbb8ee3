"""Who meets whom on which data, and the results that are kept beside the code.

A run of the contest takes minutes and there are some hundred: what each found is kept in
`benchmarks/contest/runs`, a file per data set, share and seed, so that the contest can go on later and elsewhere,
and its tables can be made anew from there.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infocal.files import write_bytes, write_text

TABLES = Path(__file__).parent / "contest"
FIGURES = Path(__file__).parents[1] / "docs" / "figures"
SEEDS, FEWER = 5, 3
OURS = "infocal"
RIVALS = ("attention", "bernoulli", "hardkuma", "l2x", "invase", "car")
ABLATIONS = (
    "infocal-full",
    "infocal-no-adv",
    "infocal-no-lm",
    "infocal-no-adv-no-ib",
    "infocal-no-ib",
    "infocal-hk",
    "infocal-no-calibration",
    "infocal-adversarial",
    "infocal-no-adv-no-calibration",
    "infocal-no-guider",
    "infocal-no-guider-with-lm",
    "printed",
)
AT_HALF = ("infocal-no-ib",)
"""Ablations at half of the gold share, too: the price of a word should count most where few are asked for."""
CAR_IS_LONG = ("restaurant-0.19", "restaurant-0.095", "toxic-0.33")
"""Where a run of CAR takes more than ten minutes of the processor: 694 to 1,044 s; on toxic posts, 603 to 648."""
GRADIENTS = ("gradient-norm", "gradient-x-input", "integrated-gradients")
SLOW = ("lime", "shap")

Record = dict[str, Any]


@dataclass(frozen=True)
class Field:
    """A data set at a share."""

    name: str
    folder: str
    label: str
    gold_share: float
    half: bool

    @property
    def share(self) -> float:
        """Of words to select."""
        return self.gold_share / 2 if self.half else self.gold_share

    @property
    def key(self) -> str:
        """Its name in files."""
        return f"{self.name}-{self.share:g}"

    @property
    def methods(self) -> tuple[str, ...]:
        """Who is trained there; most ablations at the gold share only."""
        return (OURS, *RIVALS, *(AT_HALF if self.half else ABLATIONS))

    def seeds_of(self, method: str) -> int:
        """With how many seeds it is trained: fewer for ablations, and where a run takes more than ten minutes."""
        return FEWER if method in ABLATIONS or (method == "car" and self.key in CAR_IS_LONG) else SEEDS

    @property
    def planned(self) -> int:
        """How many runs there are to do."""
        return sum(self.seeds_of(method) for method in self.methods)

    @property
    def gold(self) -> Field:
        """The same data at the gold share; its guider is the one that post-hoc methods explain at either share."""
        return Field(self.name, self.folder, self.label, self.gold_share, half=False)


FIELDS = [
    Field(name, folder, label, share, half)
    for half in (False, True)
    for name, folder, label, share in (
        ("restaurant", "restaurant", "label", 0.19),
        ("tweets", "tweets", "label", 0.30),
        ("toxic", "hatexplain", "toxic", 0.33),
    )
]


def kept_file(field: Field, seed: int) -> Path:
    """Where the runs of a seed are kept."""
    return TABLES / "runs" / f"{field.key}-seed{seed}.jsonl.gz"


def keep(field: Field, folder: Path, seed: int) -> None:
    """Keep what the folder of a field has of a seed; files of the same runs are the same bytes.

    A run that is kept and that the folder has no more (it is being done again, for its model) stays.
    """
    path = kept_file(field, seed)
    records = {record["contender"]: record for record in read_kept(path)}
    for file in (folder / "runs").glob(f"*-{seed}.json"):
        record = bare(json.loads(file.read_text(encoding="utf-8")))
        records[record["contender"]] = record
    if records:
        lines = "".join(json.dumps(records[name], ensure_ascii=False) + "\n" for name in sorted(records))
        write_bytes(path, gzip.compress(lines.encode("utf-8"), mtime=0))


def bare(record: Record) -> Record:
    """A record without the places of files."""
    settings = record.get("settings")
    if not settings or not settings["text"].get("vectors"):
        return record
    text = {**settings["text"], "vectors": Path(settings["text"]["vectors"]).name}
    return {**record, "settings": {**settings, "text": text}}


def kept(field: Field) -> list[Record]:
    """The records of all seeds that are kept of a field."""
    found = sorted((TABLES / "runs").glob(f"{field.key}-seed*.jsonl.gz"))
    return [record for path in found for record in read_kept(path)]


def read_kept(path: Path) -> list[Record]:
    """The records of a file; none if it is not there."""
    lines = gzip.decompress(path.read_bytes()).splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def lay_out(field: Field, folder: Path) -> None:
    """Put the kept runs where `infocal compare` would have written them; what is there already stays."""
    for record in kept(field):
        path = folder / "runs" / f"{record['contender']}-{record['seed']}.json"
        if not path.exists():
            write_text(path, json.dumps(record, ensure_ascii=False) + "\n")


def guiders(records: Iterable[Record]) -> dict[int, str]:
    """Seed -> identity of InfoCal's run."""
    return {record["seed"]: record["identity"] for record in records if record["contender"] == OURS}
