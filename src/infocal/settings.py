"""All settings of a run: frozen, typed, unknown names refused.

The values themselves, each with the reason for it, stand in ``recipes/infocal.yaml``; this module only says what
may be set.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
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
    "unknown_setting",
]


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
    imitation_reach: Literal["selector", "everything"] = "everything"  # as for model.temperature_scaling
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
    start_at_share: bool = False  # a default for models that were saved before there was this setting
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
    attention_weight: NotNegative
    retriever_words: Count
    retriever_documents: Count
    retriever_folds: Count


class Settings(_Frozen):
    """Everything that decides a run, besides the data."""

    method: Literal[
        "infocal", "attention", "bernoulli", "hardkuma", "l2x", "invase", "car", "topjudge", "mpbfn", "fla"
    ]
    task: Literal["auto", "classify", "regress"] | dict[str, Literal["auto", "classify", "regress"]]
    select: Share | dict[str, Share]
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

    @property
    def share(self) -> float:
        """The share of words of a model with one label.

        Raises:
            SettingsError: there is one for each of several labels.
        """
        if isinstance(self.select, dict):
            raise SettingsError(f"select names the labels {', '.join(self.select)}; this needs one share")
        return self.select

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


def unknown_setting(name: str, part: str, known: Mapping[str, Any]) -> str:
    """What to say of a name that is none; ``part`` is its last part, ``known`` has those that there are."""
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
            lines.append(unknown_setting(name, names[-1], _fields_at(names[:-1])))
        elif problem["type"] == "missing":
            lines.append(f"{name} is missing")
        elif names[0] == "select":
            lines.append(f"{name} is {problem['input']!r}; allowed: a share of words between 0 and 1, e.g. 0.15")
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
