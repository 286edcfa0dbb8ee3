"""``infocal evaluate``."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from infocal.cli.options import FILE, Columns, columns_of_model, decoding, examples, skip_bad
from infocal.cli.output import Voice, check_target

if TYPE_CHECKING:
    from infocal.joint import JointRationalizer
    from infocal.rationalizer import Rationalizer
    from infocal.report import Table

__all__ = ["both_sides", "evaluate", "finite"]

BOTH_SIDES = ("", "selected words", "full text")
NAMES = {
    "accuracy": "accuracy",
    "macro_precision": "macro precision",
    "macro_recall": "macro recall",
    "macro_f1": "macro F1",
    "mse": "mean squared error",
    "mae": "mean absolute error",
    "r2": "R²",
}
RATIONALE_NAMES = {
    "precision": "token precision",
    "recall": "token recall",
    "f1": "token F1",
    "macro_f1": "token F1, mean over texts",
    "iou_f1": "span F1 (overlap of at least half)",
    "auprc": "average precision of the token scores",
    "gold_share": "share of words in the human's evidence",
    "selected_share": "share of words selected",
}


@click.command(
    short_help="Score a model on a file of labelled texts.",
    epilog=examples("infocal evaluate model test.csv --text body --label stars --json figures.json"),
)
@click.argument("model", type=FILE)
@click.argument("data", type=FILE)
@columns_of_model
@decoding
@click.option("--part", metavar="NAME", help="Part of an encoded corpus  [default: test].")
@click.option("--json", "json_out", metavar="FILE|-", help="Write all figures as JSON; - for stdout, no tables.")
@skip_bad
def evaluate(
    model: Path,
    data: Path,
    columns: Columns,
    choice: dict[str, Any],
    part: str | None,
    json_out: str | None,
    skip_bad: bool,
) -> None:
    """Score MODEL on the labelled rows of DATA, a file or a folder of `infocal prepare`.

    Rows that also have the human's evidence (--rationale) show how well the selected words agree with it.
    """
    from infocal.data.encoded import is_encoded
    from infocal.data.readers import BadRows
    from infocal.loading import load

    check_target(None if json_out in (None, "-") else Path(json_out), "--json", spare=(model, data))
    bad_rows = BadRows(skip=skip_bad)
    trained = load(model)
    columns = columns.of_model(trained)
    if is_encoded(data):
        _deliver(_encoded_figures(trained, data, columns, part or "test", choice), json_out, None)
        return
    if part is not None:
        raise click.UsageError("--part is for encoded corpora; DATA is a file")
    figures = trained.evaluate(columns.read(data, bad_rows), bad_rows=bad_rows, source=str(data), **choice)
    _deliver(figures, json_out, bad_rows.summary())


def _encoded_figures(
    trained: Rationalizer | JointRationalizer,
    data: Path,
    columns: Columns,
    part: str,
    choice: Mapping[str, Any],
) -> dict[str, Any]:
    from infocal.data.encoded import EncodedFolder
    from infocal.errors import DataError
    from infocal.tasks import Joint

    folder = EncodedFolder.open(data)
    task = trained.task
    if isinstance(task, Joint):
        label: str | list[str] = list(task.tasks)
        labels = dict(task.tasks)
    else:
        label = columns.label or "label"
        labels = {str(label): task}
    same = all(list(folder.classes(name)) == one.to_json().get("classes") for name, one in labels.items())
    if folder.vocabulary != trained.vocabulary or not same:
        found = "the encoded corpus has another vocabulary, or other classes, than the model"
        raise DataError(found, allowed="the folder it was trained on, or a file of texts", source=str(data))
    return trained.evaluate_corpus(folder.part(part, label), **choice)


def _deliver(figures: Mapping[str, Any], json_out: str | None, note: str | None) -> None:
    from infocal.files import write_text

    voice = Voice()
    if note:
        voice.tell(note)
    source = json.dumps(finite(figures), ensure_ascii=False, indent=2, allow_nan=False)
    if json_out == "-":
        click.echo(source.encode("utf-8"))
        return
    for name, part in figures.get("tasks", {"": figures}).items():
        for table in _tables(part, f"{name}: " if name else ""):
            voice.result.print(table)
        voice.say(_closing(part))
    if json_out is not None:
        write_text(json_out, source + "\n")


def finite(value: Any) -> Any:
    """Plain data with None for numbers that JSON does not have."""
    if isinstance(value, Mapping):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _tables(figures: Mapping[str, Any], prefix: str) -> Iterator[Table]:
    from infocal.report import Table

    yield both_sides(f"{prefix}Predictions on {figures['n']:,} rows", figures, figures["full_text"])
    if figures["calibration"] is not None:
        yield _probabilities(figures["calibration"])
    if figures["rationale"] is not None:
        scores = figures["rationale"]
        rows = [(title, scores[name]) for name, title in RATIONALE_NAMES.items() if name in scores]
        yield Table(f"Agreement with the human's evidence in {scores['n']:,} rows", ("", "value"), rows)
    faithfulness = figures["faithfulness"]
    rows = [
        ("change with the selected words only (sufficiency, small is good)", faithfulness["sufficiency"]),
        ("change without them (comprehensiveness, large is good)", faithfulness["comprehensiveness"]),
    ]
    yield Table("Does the prediction hang on the selected words?", ("", "value"), rows)


def _probabilities(calibration: Mapping[str, float]) -> Table:
    from infocal.report import Table

    rows = [
        ("calibration error (small is good)", calibration["error"], calibration["full_text_error"]),
        ("without temperatures", calibration["unscaled_error"], calibration["full_text_unscaled_error"]),
        ("temperature", calibration["temperature"], calibration["full_text_temperature"]),
    ]
    return Table("Do the probabilities say how often they are right?", BOTH_SIDES, rows)


def _closing(figures: Mapping[str, Any]) -> str:
    parts = [
        f"{100 * figures['selected']:.1f} % of the words selected ({100 * figures['requested']:.1f} % asked for)",
        f"decoder {figures['decoder']}",
        f"{figures['seconds']:.1f} s",
    ]
    if figures["texts_cut"]:
        parts.append(f"{figures['texts_cut']:,} texts cut at the model's longest")
    return ", ".join(parts)


def both_sides(title: str, selection: Mapping[str, Any], full: Mapping[str, Any]) -> Table:
    """The task's metrics from the selected words beside those from the full text."""
    from infocal.report import Table

    rows = [(shown, selection[name], full[name]) for name, shown in NAMES.items() if name in full]
    return Table(title, BOTH_SIDES, rows)
