"""Every method on the same data at the same share, with several seeds, post-hoc explanations included.

    pip install -c constraints.txt -e ".[bench]"
    python benchmarks/contest.py run --data ../shared/data --vectors ../shared/vectors/glove-100d.txt.gz --runs DIR
    python benchmarks/contest.py report --runs DIR
    python benchmarks/quality.py report

`run` goes on where it was stopped. It goes seed by seed, so that everything has some runs early; DIR gets a folder
per data set and share, each as `infocal compare` writes it. `report` writes the tables to `benchmarks/contest`;
`quality.py report` puts them into docs/results.md. Everybody has the defaults of its recipe; no run chooses
anything on test or by rationale labels. (The default recipe, parts of which all methods share, was settled for
InfoCal with dev figures in view, rationale F1 among them: benchmarks/remarks.md.) Post-hoc methods read the guider
of InfoCal's run of the same seed; their scores are made relative to their text as those of learned methods are,
and their thresholds fitted without labels on the same texts, for LIME and SHAP on 200 of them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from posthoc import METHODS as POSTHOC
from posthoc import attribute, guider_of, relative

from infocal.comparison.compare import compare
from infocal.comparison.contests import contests
from infocal.comparison.ngram import BigramModel
from infocal.comparison.plan import Request, Sources
from infocal.comparison.results import Results
from infocal.comparison.scoring import Trial
from infocal.comparison.tables import as_csv, as_markdown
from infocal.data.readers import BadRows
from infocal.decoding import fit_decoding
from infocal.evaluation.significance import Ratios, paired_bootstrap
from infocal.files import write_text
from infocal.loading import load_one
from infocal.training.held_out import ThresholdTexts, threshold_texts

TABLES = Path(__file__).parent / "contest"
OURS = "infocal"
RIVALS = ("attention", "bernoulli", "hardkuma", "l2x", "invase", "car")
ABLATIONS = (
    "infocal-full",
    "infocal-no-adv",
    "infocal-no-lm",
    "infocal-no-adv-no-ib",
    "infocal-hk",
    "infocal-no-calibration",
    "infocal-no-guider",
    "printed",
)
GRADIENTS = ("gradient-norm", "gradient-x-input", "integrated-gradients")
SLOW = ("lime", "shap")
DECODERS = {"average": "one threshold for all texts", "equal": "the same share of each", "spans": "spans"}
SLOW_TEXTS, SLOW_SEEDS = 200, 3
"""LIME and SHAP read each text hundreds of times: so many test texts, of so many seeds."""


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
        """Who is compared there; ablations at the gold share only."""
        return (OURS, *RIVALS) if self.half else (OURS, *RIVALS, *ABLATIONS)


FIELDS = [
    Field(name, folder, label, share, half)
    for half in (False, True)
    for name, folder, label, share in (
        ("restaurant", "restaurant", "label", 0.19),
        ("tweets", "tweets", "label", 0.30),
        ("toxic", "hatexplain", "toxic", 0.33),
    )
]


def sources_of(field: Field, data: Path) -> Sources:
    """The three files."""
    paths = {part: data / field.folder / f"{part}.jsonl" for part in ("train", "dev", "test")}
    return Sources(**paths, label=field.label, skip_bad=True)


def request_of(field: Field, arguments: argparse.Namespace, methods: Sequence[str], **more: Any) -> Request:
    """What `infocal compare` is asked."""
    return Request(
        sources=sources_of(field, Path(arguments.data)),
        out=Path(arguments.runs) / field.key,
        methods=tuple(methods),
        select=field.share,
        vectors=Path(arguments.vectors),
        processes=arguments.processes,
        threads=1,
        **more,
    )


def run(arguments: argparse.Namespace) -> None:
    """Do what is missing, seed by seed."""
    fields = [field for field in FIELDS if not arguments.only or field.key in arguments.only]
    for seeds in range(1, arguments.seeds + 1):
        for field in fields:
            print(f"{field.key}, {seeds} of {arguments.seeds} seeds", flush=True)
            methods = [name for name in field.methods if not arguments.methods or name in arguments.methods]
            compare(request_of(field, arguments, [OURS], seeds=seeds, keep_models=True), tell=say)
            if len(methods) > 1:
                compare(request_of(field, arguments, methods, seeds=seeds), tell=say)
            if arguments.posthoc:
                slow = SLOW if seeds <= SLOW_SEEDS else ()
                explain_afterwards(field, arguments, (*GRADIENTS, *slow), seeds - 1)


def say(note: str) -> None:
    """Print at once, also into a file."""
    print(" ", note, flush=True)


def explain_afterwards(field: Field, arguments: argparse.Namespace, names: Sequence[str], seed: int) -> None:
    """Post-hoc methods on the guider of one seed, each in the form of a run of `infocal compare`."""
    folder = Path(arguments.runs) / field.key
    record = read(folder, OURS, seed)
    if record.get("state") != "done":
        say(f"no guider to explain: {OURS}, seed {seed}, is not done")
        return
    missing = [name for name in names if read(folder, name, seed).get("of") != record["identity"]]
    if not missing:
        return
    model = load_one(folder / "models" / f"{OURS}-{seed}")
    sources, bad_rows = sources_of(field, Path(arguments.data)), BadRows(skip=True)
    train = model.encode(sources.read("train", bad_rows), bad_rows=bad_rows, source="train")
    bigrams = BigramModel.fit(train.ids, train.offsets, size=len(model.vocabulary))
    rows = list(sources.read("test", bad_rows))
    trial = Trial.of(model, rows, language_model=bigrams, bad_rows=bad_rows, source="test")
    dev = model.encode(sources.read("dev", bad_rows), bad_rows=bad_rows, source="dev")
    texts, first = threshold_texts(dev, train), np.arange(min(SLOW_TEXTS, len(dev)))
    some = ThresholdTexts(dev.subset(first), first)
    kept = {key: record[key] for key in ("format", "task", "data", "training")}
    kept |= {"state": "done", "seed": seed, "of": record["identity"], "seconds": {}, "rounds": []}
    for name in missing:
        part = (few(trial), some) if name in SLOW else (trial, texts)
        found = attributed(*part, name, share=field.share, seed=seed).report(())
        path = folder / "runs" / f"{name}-{seed}.json"
        write_text(path, json.dumps({**kept, "contender": name, "method": name, **found}) + "\n")
        say(f"{name}, seed {seed}: F1 {found['scores']['average']['rationale']['f1']:.3f}")


def read(folder: Path, name: str, seed: int) -> dict[str, Any]:
    """What is on file of a run; empty if nothing is."""
    path = folder / "runs" / f"{name}-{seed}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def few(trial: Trial) -> Trial:
    """The same before the first annotated documents only."""
    rows = np.flatnonzero(np.asarray(trial.corpus.annotated))[:SLOW_TEXTS]
    corpus = trial.corpus.subset(rows)
    breaks = corpus.sentence_starts(trial.model.vocabulary.sentence_ends())
    return replace(trial, corpus=corpus, full=trial.full[rows], breaks=breaks)


def attributed(trial: Trial, texts: ThresholdTexts, name: str, *, share: float, seed: int) -> Trial:
    """The same with the scores of a post-hoc method; its thresholds are fitted on ``texts``."""
    guider, method = guider_of(trial.model), POSTHOC[name][0]
    scores, others = (
        relative(attribute(guider, c, method, seed=seed), c).astype(np.float32)
        for c in (trial.corpus, texts.corpus)
    )
    drawn = texts.drawn()
    breaks = drawn.sentence_starts(trial.model.vocabulary.sentence_ends())
    decoding = fit_decoding(texts.of_drawn(others), drawn.offsets, share=share, breaks=breaks)
    return replace(trial, model=replace(trial.model, decoding=decoding), scores=scores)


def collect(folder: Path, methods: Sequence[str], decoder: str, share: float) -> Results:
    """The runs of a folder, failed ones named; post-hoc runs count if they explain the model that is there."""
    found: dict[str, dict[int, dict[str, Any]]] = {name: {} for name in methods}
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((folder / "runs").glob("*.json"))]
    guiders = {record["seed"]: record.get("identity") for record in records if record["contender"] == OURS}
    failures = []
    for record in records:
        name, seed = record["contender"], record["seed"]
        if name not in found or record.get("of", guiders.get(seed)) != guiders.get(seed):
            continue
        if record["state"] == "done":
            found[name][seed] = record
        else:
            failures.append((name, seed, str(record.get("message", record["state"]))))
    names = tuple(name for name in methods if found[name])
    return Results(names, found, tuple(failures), decoder, dict.fromkeys(names, share))


def slow_table(folder: Path, decoder: str) -> str:
    """InfoCal against LIME and SHAP on the texts that those have read."""
    lines = [
        "| method | F1 | InfoCal's F1 there | difference, 95 % interval | p, documents | seeds |",
        "|" + "---|" * 6,
    ]
    ours = collect(folder, (OURS,), decoder, 0.0).runs.get(OURS, {})
    for name in SLOW:
        theirs = collect(folder, (name,), decoder, 0.0).runs.get(name, {})
        seeds = sorted(set(ours) & set(theirs))
        if not seeds:
            continue
        sides = [[counts(side[seed], decoder) for seed in seeds] for side in (theirs, ours)]
        common = sorted(set.intersection(*(set(one) for side in sides for one in side)))
        ratios = [
            Ratios.f1(*(np.array([[one[line][i] for one in side] for line in common]) for i in range(3)))
            for side in sides
        ]
        every = np.ones((1, len(common)))
        figures = [float(ratio.score(every)[0]) for ratio in ratios]
        difference = paired_bootstrap(ratios[1], ratios[0])
        lines.append(
            f"| {name} | {100 * figures[0]:.1f} | {100 * figures[1]:.1f} "
            f"| {100 * difference.value:+.1f} "
            f"({100 * difference.low:+.1f} to {100 * difference.high:+.1f}) "
            f"| {difference.p:.3f} | {len(seeds)}, {len(common)} texts |"
        )
    return "\n".join(lines) if len(lines) > 2 else ""


def counts(run: dict[str, Any], decoder: str) -> dict[int, tuple[int, int, int]]:
    """Line -> hits, selected, gold, of the annotated documents."""
    part = run["documents"][decoder]
    lines = [run["lines"][row] for row in part["rows"]]
    return dict(zip(lines, zip(part["hits"], part["selected"], part["gold"], strict=True), strict=True))


def report(arguments: argparse.Namespace) -> None:
    """Tables to `benchmarks/contest`, and the section of the results page."""
    parts = []
    for field in FIELDS:
        folder = Path(arguments.runs) / field.key
        if not folder.exists():
            continue
        for decoder in DECODERS:
            results = collect(folder, (*field.methods, *GRADIENTS), decoder, field.share)
            won = contests(results, reference=OURS)
            write_text(TABLES / f"{field.key}-{decoder}.csv", as_csv(results, won))
            title = f"### {field.name}, {100 * field.share:g} %, {DECODERS[decoder]}\n"
            body = as_markdown(results, won).replace("# Comparison\n", title, 1)
            parts += [body.replace("\n## ", "\n#### "), slow_table(folder, decoder)]
    write_text(TABLES / "section.md", "\n\n".join(part.strip() for part in parts if part) + "\n")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("run", "report"):
        sub = verbs.add_parser(verb)
        sub.add_argument("--runs", required=True, help="folder for the runs")
        if verb == "run":
            sub.add_argument("--data", default="../shared/data")
            sub.add_argument("--vectors", default="../shared/vectors/glove-100d.txt.gz")
            sub.add_argument("--seeds", type=int, default=5)
            sub.add_argument("--processes", type=int, default=2)
            sub.add_argument("--only", nargs="+", default=[], choices=[field.key for field in FIELDS])
            sub.add_argument("--methods", nargs="+", default=[], help="some of the methods only")
            sub.add_argument("--no-posthoc", dest="posthoc", action="store_false")
    arguments = parser.parse_args()
    {"run": run, "report": report}[arguments.verb](arguments)


if __name__ == "__main__":
    main()
