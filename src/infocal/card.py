"""The model card: what a model was made from, how it did, and where not to trust it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from infocal.evaluation.calibration import LEAST_ROWS, Temperatures
from infocal.markup import markdown_table, markdown_text

if TYPE_CHECKING:
    from infocal.joint import JointRationalizer
    from infocal.rationalizer import Rationalizer

__all__ = ["model_card"]

OWN = ("classes", "labels")
"""Under these stand names of the user's own, which stay as they are."""

TITLES = {
    "guide": "full text",
    "selection": "selected words",
    "selected": "share of words selected",
    "variance": "variance, on a scale from 0 (low) to 1 (high)",
}
"""What the card calls what records call otherwise."""

LIMITS = (
    "The highlighted words are the only words of the text that the prediction was computed from: with them "
    "and their places fixed, changing any other word changes nothing.",
    "Which words are highlighted does depend on the whole text: the selector reads all of it. A highlight "
    "says what was used, not that a person would call it sufficient.",
    "Where words stand, and how long the text is, remain visible to the predictor.",
    "The share of highlighted words is right on average over texts like those of training; single texts may "
    "have more or fewer.",
)


def model_card(model: Rationalizer | JointRationalizer) -> str:
    """The card as Markdown, from the model's own record."""
    record = model.record
    parts = [
        "# InfoCal model card",
        _predicts(model.task.to_json()),
        "## Data",
        _table(record.get("data", {})),
        "## Settings",
        _table(
            {
                "method": model.settings.method,
                "share of words to select": _shares(model.settings.select),
                "encoder": f"{model.settings.encoder.kind} {model.settings.encoder.hidden_width}",
                "pretrained vectors": "yes" if model.settings.text.vectors else "no",
                "seed": model.settings.seed,
                "pinned selection weight": model.settings.loss.selection_information,
                "trained on human rationales": "yes" if model.settings.loss.rationale_supervision else "no",
            }
        ),
        "All settings stand in `model.json`.",
        "## Results on the held-out rows",
        "These rows also decided when training stopped; score a test set with `infocal evaluate`.",
        _table(record.get("results", {}), own=hasattr(model, "parts")),
        "## Training",
        _table(record.get("training", {})),
        "## Limits",
        "\n".join(f"- {limit}" for limit in (*LIMITS, *_probabilities(model))),
    ]
    if notes := record.get("notes"):
        parts += ["## Notes from training", "\n".join(f"- {markdown_text(note)}" for note in notes)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _shares(select: float | Mapping[str, float]) -> float | str:
    if isinstance(select, Mapping):
        return ", ".join(f"{share} for {name}" for name, share in select.items())
    return select


def _predicts(record: Mapping[str, Any]) -> str:
    if record["kind"] != "joint":
        return f"Predicts {_what(record)} and shows the words it was made from."
    parts = [f"- `{_code(name)}`: {_what(part)}" for name, part in record["tasks"].items()]
    return "\n".join(["Predicts several labels, and shows for each the words it was made from:\n", *parts])


def _probabilities(model: Rationalizer | JointRationalizer) -> Iterator[str]:
    """What the probabilities of each label with classes are worth."""
    parts: Mapping[str, Rationalizer] = getattr(model, "parts", {"": model})
    classifying = {name: part for name, part in parts.items() if part.task.kind == "classify"}
    for name, part in classifying.items():
        yield (f"`{_code(name)}`: " if name else "") + _calibrated(part.temperatures)
    if classifying and (balance := model.settings.loss.balance):
        yield (
            f"Rows of rare classes counted more in training (loss.balance {balance:g}), so probabilities follow "
            "the classes' frequencies less than they would."
        )


def _calibrated(temperatures: Temperatures) -> str:
    if not temperatures.rows:
        return (
            "Probabilities are not calibrated: no temperature was fitted, which takes at least "
            f"{LEAST_ROWS} held-out rows and the setting model.temperature_scaling."
        )
    if temperatures.at_limit:
        return (
            "Probabilities are not calibrated: no temperature suits the held-out rows, as where answers are no "
            "better than chance."
        )
    return (
        f"Probabilities are calibrated by one number, a temperature of {temperatures.predictor:.3g} "
        f"({temperatures.full_text:.3g} for the full text), fitted on {temperatures.rows:,} held-out rows: on "
        "texts like those, and with this share of words, they are about as often right as they say on average; "
        "single classes may be off."
    )


def _what(record: Mapping[str, Any]) -> str:
    if record["kind"] == "classify":
        names = [f"`{_code(name)}`" for name in record["classes"][:20]]
        more = f" and {len(record['classes']) - 20} more" if len(record["classes"]) > 20 else ""
        return "one of the classes " + ", ".join(names) + more
    return f"a score between {record['low']:g} and {record['high']:g}"


def _table(values: Mapping[str, Any], *, own: bool = False) -> str:
    if not values:
        return "not recorded"
    rows = [(markdown_text(name), markdown_text(value)) for name, value in _flat(values, own=own)]
    return markdown_table(("what", "value"), rows)


def _flat(values: Mapping[str, Any], prefix: str = "", *, own: bool = False) -> list[tuple[str, str]]:
    """Rows of a table; ``own``: the names are the user's."""
    rows: list[tuple[str, str]] = []
    for name, value in values.items():
        title = prefix + (str(name) if own else TITLES.get(name, str(name).replace("_", " ")))
        if isinstance(value, Mapping):
            rows += _flat(value, f"{title}: ", own=not own and name in OWN)
        else:
            rows.append((title, _shown(value)))
    return rows


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _code(text: object) -> str:
    """A user's own words inside backticks, where only those and the bars of tables act."""
    return " ".join(str(text).split()).replace("|", "\\|").replace("`", "'")
