"""All settings of a run: frozen, typed, unknown names refused; recipes are YAML files that extend one another.

The values themselves, each with the reason for it, stand in ``recipes/infocal.yaml``; this module only says
what may be set.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from infocal.errors import SettingsError

__all__ = [
    "BernoulliSettings",
    "CarSettings",
    "ControllerSettings",
    "EncoderSettings",
    "FlaSettings",
    "GateSettings",
    "HardKumaSettings",
    "InvaseSettings",
    "L2XSettings",
    "LanguageModelSettings",
    "LossSettings",
    "ModelSettings",
    "MpbfnSettings",
    "Settings",
    "TextSettings",
    "TopjudgeSettings",
    "TrainingSettings",
    "load_settings",
    "recipe_names",
]

RECIPES = Path(__file__).parent / "recipes"


def _odd(value: int) -> int:
    if value % 2 == 0:
        raise ValueError("allowed: an odd number, or auto")
    return value


Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(gt=0, lt=1)]
Count = Annotated[int, Field(ge=1)]
Parents = dict[str, tuple[str, ...]] | None


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class TextSettings(_Frozen):
    """From text to token vectors."""

    segmenter: str
    max_tokens: Count
    min_count: Count
    max_words: Count
    unknown_buckets: Count
    width: Count
    vectors: str | None
    train_vectors: bool
    learn_vectors: bool
    extra_words: Annotated[int, Field(ge=0)]


class EncoderSettings(_Frozen):
    """The recurrent network that selector, predictor and guider each are."""

    kind: Literal["rcnn", "lstm", "gru"]
    hidden_width: Count
    layers: Count
    dropout: Annotated[float, Field(ge=0, lt=1)]


class ModelSettings(_Frozen):
    """How the parts are put together."""

    sharing: Literal["all", "head"]
    initialise_selector: bool
    score_reference: Literal["own", "balanced"]
    feature_width: Count
    discriminator_width: Count
    input_dropout: Annotated[float, Field(ge=0, lt=1)]
    token_dropout: Annotated[float, Field(ge=0, lt=1)]
    temperature_scaling: bool = False  # a default for models that were saved before there was this setting


class GateSettings(_Frozen):
    """How masks are drawn in training."""

    relaxation: Literal["binary", "positional"]
    temperature: Positive
    noise: NotNegative


class LossSettings(_Frozen):
    """The weight of each objective, by name; 0 leaves it out."""

    scale: Literal["task", "printed"]
    balance: Annotated[float, Field(ge=0, le=1)] = 0.0  # as for model.temperature_scaling
    prediction: NotNegative
    guidance: NotNegative
    selection_information: NotNegative | None
    selection_prior: Share | None
    selection_reduction: Literal["mean", "sum"]
    guider_information: NotNegative
    guider_reduction: Literal["mean", "sum"]
    imitation: NotNegative
    discrimination: NotNegative
    discrimination_form: Literal["bounded", "printed"]
    fluency: NotNegative
    fluency_form: Literal["centred", "printed"]
    fluency_reduction: Literal["mean", "sum"]
    fused_lasso: NotNegative
    token_calibration: NotNegative
    calibration_window: Annotated[int, Field(ge=1), AfterValidator(_odd)] | Literal["auto"]
    calibration_attribution: Literal["norm", "effect"]
    rationale_supervision: NotNegative


class ControllerSettings(_Frozen):
    """Holds the measured selection rate at the request while no weight is pinned."""

    gain: Positive
    information_weight: NotNegative


class LanguageModelSettings(_Frozen):
    """The vector language model and its pre-training."""

    hidden_width: Count
    negatives: Count
    passes: Count
    learning_rate: Positive
    form: Literal["bounded", "printed"]


class TrainingSettings(_Frozen):
    """The schedule."""

    learning_rate: Positive
    discriminator_learning_rate: Positive
    weight_decay: NotNegative
    clip: Positive
    batch_tokens: Count
    batch_documents: Count
    least_round_steps: Count
    most_round_steps: Count
    warm_up_rounds: Annotated[int, Field(ge=0)]
    warm_up_patience: Count
    joint_rounds: Count
    joint_patience: Count
    joint_decay: Annotated[float, Field(ge=0, le=1)]
    averaging: Annotated[float, Field(ge=0, lt=1)]
    settle_steps: Annotated[int, Field(ge=0)]
    settle_rate: Positive
    dev_share: Share
    stopping: Literal["task_loss", "rationale_recall"] = "task_loss"
    precision_floor: Annotated[float, Field(ge=0, le=1)] = 0.0
    checkpoint_seconds: NotNegative


class BernoulliSettings(_Frozen):
    """Lei et al. 2016."""

    dependent: bool
    state_width: Count
    baseline: Literal["none", "moving"]
    sparsity: NotNegative | None
    continuity: NotNegative
    transitions: NotNegative


class HardKumaSettings(_Frozen):
    """Bastings et al. 2019."""

    stretch: Positive
    fused_lasso: Annotated[float, Field(ge=0, le=1)] | None
    multiplier_start: Positive
    multiplier_limits: tuple[Positive, Positive]
    multiplier_rate: Positive
    moving_average: Annotated[float, Field(ge=0, lt=1)]


class L2XSettings(_Frozen):
    """Chen et al. 2018."""

    temperature: Positive


class InvaseSettings(_Frozen):
    """Yoon et al. 2019."""

    selection_penalty: NotNegative


class CarSettings(_Frozen):
    """Chang et al. 2019."""

    sparsity: NotNegative
    continuity: NotNegative


class TopjudgeSettings(_Frozen):
    """Zhong et al. 2018."""

    filter_widths: Annotated[tuple[Count, ...], Field(min_length=1)]
    filters: Count
    state_width: Count
    parents: Parents


class MpbfnSettings(_Frozen):
    """Yang et al. 2019."""

    filter_widths: Annotated[tuple[Count, ...], Field(min_length=1)]
    filters: Count
    label_width: Count
    collocation_width: Count
    collocation_distance: Count
    parents: Parents


class FlaSettings(_Frozen):
    """Luo et al. 2017."""

    article_task: str
    articles: Count
    article_tokens: Count
    sentence_tokens: Count
    hidden_width: Count
    output_width: Count
    retriever_words: Count
    retriever_documents: Count


class Settings(_Frozen):
    """Everything that decides a run, besides the data."""

    method: Literal[
        "infocal", "attention", "bernoulli", "hardkuma", "l2x", "invase", "car", "topjudge", "mpbfn", "fla"
    ]
    task: Literal["auto", "classify", "regress"]
    select: Share
    seed: Annotated[int, Field(ge=0, lt=2**63)]
    text: TextSettings
    encoder: EncoderSettings
    model: ModelSettings
    gate: GateSettings
    loss: LossSettings
    controller: ControllerSettings
    language_model: LanguageModelSettings
    training: TrainingSettings
    bernoulli: BernoulliSettings | None = None
    hardkuma: HardKumaSettings | None = None
    l2x: L2XSettings | None = None
    invase: InvaseSettings | None = None
    car: CarSettings | None = None
    topjudge: TopjudgeSettings | None = None
    mpbfn: MpbfnSettings | None = None
    fla: FlaSettings | None = None

    def to_yaml(self) -> str:
        """The settings as YAML that :func:`load_settings` reads back to an equal object."""
        values = self.model_dump(mode="json")
        return yaml.safe_dump(
            {name: value for name, value in values.items() if value is not None},
            sort_keys=False,
            allow_unicode=True,
        )

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Settings:
        """Check plain values; a wrong one raises SettingsError that names it and what is allowed."""
        try:
            settings = cls.model_validate(dict(values))
        except ValidationError as error:
            raise SettingsError(_explain(error)) from None
        if settings.loss.rationale_supervision and settings.method != "infocal":
            raise SettingsError(
                f"loss.rationale_supervision (--supervise) is set, but the method {settings.method} does not "
                "learn from human evidence; infocal does"
            )
        return settings


def recipe_names() -> list[str]:
    """The recipes that come with the package."""
    return sorted(path.stem for path in RECIPES.glob("*.yaml"))


def load_settings(
    recipe: str | Path | None = None,
    changes: Sequence[str] | Mapping[str, Any] = (),
    *,
    method: str | None = None,
    **top: Any,
) -> Settings:
    """Read a recipe, apply changes, check everything.

    Args:
        recipe: the name of a recipe of the package, or the path of a YAML file; None takes the method's own.
        method: the method, which must be the recipe's if both are named; None means the recipe's, or infocal.
        changes: ``"loss.imitation=0.2"`` strings as on the command line, or dotted names to values.
        top: values of top-level settings; None means "as in the recipe".
    """
    values = _read_recipe(recipe or _recipe_of(method or "infocal"), seen=())
    if method is not None and values["method"] != method:
        raise SettingsError(
            f"the recipe {recipe} is of the method {values['method']}, not of {method}; leave one of the two out"
        )
    pairs = changes.items() if isinstance(changes, Mapping) else [_parse_change(item) for item in changes]
    for name, value in pairs:
        _assign(values, name, value)
    values.update({name: value for name, value in top.items() if value is not None})
    return Settings.parse(values)


def _recipe_of(method: str) -> str:
    """The recipe of a method has its name."""
    methods = get_args(Settings.model_fields["method"].annotation)
    if method not in methods:
        raise SettingsError(f"method {method!r} is unknown; choose from {', '.join(methods)}")
    return method


def _read_recipe(recipe: str | Path, *, seen: tuple[Path, ...]) -> dict[str, Any]:
    path = _find_recipe(recipe, beside=seen[-1].parent if seen else None)
    if path in seen:
        raise SettingsError(f"recipe {path.name} extends itself: {' -> '.join(p.name for p in (*seen, path))}")
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not a YAML file: {error}") from None
    if not isinstance(values, dict):
        raise SettingsError(f"{path} holds {type(values).__name__}, a recipe is a mapping of names to values")
    parent = values.pop("extends", None if path == RECIPES / "infocal.yaml" else "infocal")
    base = _read_recipe(parent, seen=(*seen, path)) if parent else {}
    return _merge(base, values)


def _find_recipe(recipe: str | Path, *, beside: Path | None) -> Path:
    name = str(recipe)
    candidates = [Path(name), *([beside / name, beside / f"{name}.yaml"] if beside else [])]
    if name in recipe_names():
        candidates.insert(0, RECIPES / f"{name}.yaml")
    for path in candidates:
        if path.is_file():
            return path
    raise SettingsError(
        f"there is no recipe {name!r}; the package has {', '.join(recipe_names())}; "
        "or give the path of a YAML file"
    )


def _merge(base: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for name, value in values.items():
        old = merged.get(name)
        merged[name] = _merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _parse_change(item: str) -> tuple[str, Any]:
    name, sign, value = item.partition("=")
    if not sign or not name.strip():
        raise SettingsError(f"{item!r} is not of the form name=value, e.g. loss.imitation=0.2")
    try:
        return name.strip(), yaml.safe_load(value)
    except yaml.YAMLError:
        return name.strip(), value


def _assign(values: dict[str, Any], name: str, value: Any) -> None:
    *groups, last = name.split(".")
    place = values
    for depth, group in enumerate(groups):
        inner = place.get(group)
        if not isinstance(inner, dict):
            raise SettingsError(_unknown(".".join(groups[: depth + 1]), group, place))
        place = inner
    if last not in place:
        raise SettingsError(_unknown(name, last, place))
    if isinstance(place[last], dict):
        raise SettingsError(f"{name} is a group of settings; set one of {', '.join(place[last])}")
    place[last] = value


def _unknown(name: str, part: str, known: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(part, list(known), n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"there is no setting {name!r}{hint}; choose from {', '.join(known)}"


def _explain(error: ValidationError) -> str:
    lines = []
    for problem in error.errors(include_url=False):
        # Alternatives of a type, as "int" or "function-after[...]", are no names of settings.
        names = [str(part) for part in problem["loc"] if re.fullmatch(r"(?!(float|int)$)\w+", str(part))]
        name = ".".join(names)
        if problem["type"] == "extra_forbidden":
            lines.append(_unknown(name, names[-1], _fields_at(names[:-1])))
        elif problem["type"] == "missing":
            lines.append(f"{name} is missing")
        elif name == "select":
            lines.append(f"select is {problem['input']!r}; allowed: a share of words between 0 and 1, e.g. 0.15")
        else:
            lines.append(f"{name} is {problem['input']!r}: {problem['msg'].removeprefix('Value error, ')}")
    return "; ".join(dict.fromkeys(lines))


def _fields_at(names: Sequence[str]) -> Mapping[str, Any]:
    model: Any = Settings
    for name in names:
        annotation = model.model_fields[name].annotation
        model = next((part for part in get_args(annotation) if part is not type(None)), annotation)
    fields: Mapping[str, Any] = model.model_fields
    return fields
