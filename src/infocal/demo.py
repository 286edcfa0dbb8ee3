"""The demo: reviews whose evidence is known to the character, a model trained on them, and what it read."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infocal.config import load_settings
from infocal.data.readers import BadRows
from infocal.data.toy import toy_reviews
from infocal.errors import SettingsError
from infocal.fitting import one_label, train_prepared
from infocal.markup import show
from infocal.report import Table, write_report
from infocal.storage import HEADER, check_replaceable, read_header
from infocal.training.preparation import prepare
from infocal.training.tracking import ProgressBar

if TYPE_CHECKING:
    from rich.console import Console

    from infocal.rationalizer import Rationalizer
    from infocal.types import Document, Explanation

__all__ = ["run_demo"]

SOURCE = "generated watch reviews"
DEV_ROWS, TEST_ROWS = 300, 400
DECODERS = {"average": "single words", "spans": "whole spans"}
SHOWN_IN_TERMINAL, SHOWN_IN_REPORT = 5, 20
NOTES = (
    "Each review judges several parts of a watch; its label is the opinion on the battery alone. The model is "
    "never told so: it sees texts and labels, and finds the clause by itself.",
    "The reviews are put together from phrases, so they are easier than what people write. The figures "
    "show that everything works on your machine, not how a model of your own texts will do.",
    "Agreement is measured on reviews that were neither trained on nor looked at to decide when to stop.",
)


def run_demo(out: Path, report: Path, *, seed: int, rows: int, console: Console) -> dict[str, Any]:
    """Train on generated reviews, show and save what came out.

    Args:
        out: folder for the model.
        report: the HTML file.
        seed: of the reviews and of training.
        rows: reviews to train on.
        console: where to draw.

    Returns:
        ``select`` (the share asked for), ``seconds``, and by decoder what ``Rationalizer.evaluate`` gives.
    """
    began = time.perf_counter()
    _check_out(out)
    train, dev, test = _reviews(seed, rows)
    console.print(f"{rows:,} watch reviews to learn from; the label is the opinion on the battery.\n")
    model = _train(train, dev, seed, console)
    model.save(out)
    results = {name: model.evaluate(test, decoder=name) for name in DECODERS}
    shown = list(model.explain_documents(test[:SHOWN_IN_REPORT], decoder="spans", full_text=True))
    seconds = time.perf_counter() - began
    _show(console, shown[:SHOWN_IN_TERMINAL], results, seconds)
    _write(report, model, shown, results, seconds)
    console.print(f"Report: {report}\nModel:  {out}", soft_wrap=True)
    console.print(f"Next:   infocal explain {out} 'The battery died at noon.'", soft_wrap=True)
    return {"select": model.settings.share, "seconds": seconds, **results}


def _check_out(out: Path) -> None:
    """Raise SettingsError where the demo's model would take the place of another one."""
    check_replaceable(out)
    if (out / HEADER).is_file() and read_header(out)["record"]["data"].get("source") != SOURCE:
        raise SettingsError(f"{out} holds a model that is not the demo's; name another folder with --out")


def _reviews(seed: int, rows: int) -> tuple[list[Document], list[Document], list[Document]]:
    """Training, held-out and test reviews, each from a seed of its own."""
    counts = (rows, DEV_ROWS, TEST_ROWS)
    train, dev, test = (toy_reviews(count, seed=3 * seed + part) for part, count in enumerate(counts))
    return train, dev, test


def _train(train: Sequence[Document], dev: Sequence[Document], seed: int, console: Console) -> Rationalizer:
    settings = load_settings("demo", seed=seed)
    prepared = prepare(train, dev, settings, bad_rows=BadRows(), source=SOURCE, dev_source=f"held-out {SOURCE}")
    if prepared.train.gold is not None:
        share = round(float(prepared.train.gold.mean()), 3)
        settings = settings.model_copy(update={"select": share})
    trackers = [ProgressBar(console, lines=console.is_terminal)]
    return one_label(train_prepared(prepared, settings, trackers=trackers))


def _show(
    console: Console, shown: Sequence[Explanation], results: Mapping[str, Mapping[str, Any]], seconds: float
) -> None:
    console.print("Test reviews, with the words each prediction was made from:\n")
    for explanation in shown:
        show(console, explanation)
    for table in _tables(results):
        console.print(table)
    console.print(f"All in {seconds:.0f} s.\n")


def _tables(results: Mapping[str, Mapping[str, Any]]) -> list[Table]:
    header = ("on test reviews", *(f"{title} ({name})" for name, title in DECODERS.items()))
    figures = [results[name] for name in DECODERS]
    predictions = [
        ("accuracy from the selected words", *(result["accuracy"] for result in figures)),
        ("accuracy from the full text", *(result["full_text"]["accuracy"] for result in figures)),
        ("share of words selected", *(result["selected"] for result in figures)),
    ]
    agreement = [
        (f"token {name}", *(result["rationale"][key] for result in figures))
        for name, key in (("precision", "precision"), ("recall", "recall"), ("F1", "f1"))
    ]
    faithfulness = [
        (f"{name} ({good} is good)", *(result["faithfulness"][name] for result in figures))
        for name, good in (("sufficiency", "small"), ("comprehensiveness", "large"))
    ]
    return [
        Table("Predictions", header, predictions),
        Table("Agreement with the words that decide the label", header, agreement),
        Table("Does the prediction hang on the selected words?", header, faithfulness),
    ]


def _write(
    report: Path,
    model: Rationalizer,
    shown: Sequence[Explanation],
    results: Mapping[str, Mapping[str, Any]],
    seconds: float,
) -> None:
    best = results["spans"]
    summary = {
        "accuracy from the selected words": best["accuracy"],
        "accuracy from the full text": best["full_text"]["accuracy"],
        "token F1 with the deciding words": best["rationale"]["f1"],
        "share of words selected": best["selected"],
        "training reviews": model.record["data"]["training_rows"],
        "seconds, all in all": round(seconds),
    }
    write_report(
        report,
        title="What a model read to judge 400 watch reviews",
        summary=summary,
        tables=_tables(results),
        explanations=shown,
        notes=NOTES,
    )
