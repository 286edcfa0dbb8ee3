"""What a warm-up leaves, in a file of its own, so that runs that differ in what follows it need only one.

Only what the warm-up changed is in the file: a network keeps its own first values of all else (a language model,
gates that open at the share that was asked for). Random numbers go on where the warm-up left them, so a run that
takes the file gives the same weights, to the bit, as one that warms up itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from infocal.errors import TrainingError
from infocal.training.checkpoint import read_checkpoint, take, write_checkpoint
from infocal.training.progress import Progress

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn
    from torch.optim import Optimizer

    from infocal.settings import Settings

__all__ = ["Parts", "keep_warm_up", "take_warm_up", "warm_up_settings"]

LATER_GROUPS = ("select", "gate", "controller", "language_model")
LATER = {
    "loss": (
        "selection_information",
        "selection_prior",
        "selection_reduction",
        "imitation",
        "imitation_reach",
        "discrimination",
        "discrimination_form",
        "fluency",
        "fluency_form",
        "fluency_reduction",
        "fused_lasso",
        "token_calibration",
        "calibration_window",
        "calibration_attribution",
        "rationale_supervision",
    ),
    "training": (
        "discriminator_learning_rate",
        "joint_rounds",
        "joint_patience",
        "joint_decay",
        "settle_steps",
        "settle_rate",
        "stopping",
        "precision_floor",
        "checkpoint_seconds",
    ),
}
"""Settings that first matter when the warm-up is over."""


def warm_up_settings(settings: Settings) -> dict[str, Any]:
    """The settings that a warm-up depends on."""
    values = settings.model_dump(mode="json", exclude=set(LATER_GROUPS))
    for group, names in LATER.items():
        values[group] = {name: value for name, value in values[group].items() if name not in names}
    return values


@dataclass(frozen=True)
class Parts:
    """What of a run a warm-up changes, besides where it stands and the global random numbers.

    Attributes:
        tensors: name -> weight or buffer.
        parameters: name -> parameter.
        optimizers: of the players.
        generator: the source of a step's random numbers.
    """

    tensors: Mapping[str, Tensor]
    parameters: Mapping[str, nn.Parameter]
    optimizers: Mapping[str, Optimizer]
    generator: Generator


def keep_warm_up(path: Path, untrained: Mapping[str, Tensor], parts: Parts, progress: Progress) -> None:
    """Write the file.

    Args:
        path: where.
        untrained: the tensors before the first step.
        parts: the run behind its warm-up, with the best weights found.
        progress: where it stands.
    """
    changed = {n: value for n, value in parts.tensors.items() if not torch.equal(value, untrained[n])}
    names: dict[Tensor, str] = {parameter: name for name, parameter in parts.parameters.items()}
    moments = {
        f"{names[parameter]}.{key}": value
        for optimizer in parts.optimizers.values()
        for parameter, entries in optimizer.state.items()
        for key, value in entries.items()
    }
    tensors = {f"weight.{name}": value for name, value in changed.items()}
    tensors |= {f"adam.{name}": value for name, value in moments.items()}
    tensors |= {"random.global": torch.get_rng_state(), "random.own": parts.generator.get_state()}
    write_checkpoint(path, tensors, {"threads": torch.get_num_threads(), "progress": progress.to_json()})


def take_warm_up(path: Path, parts: Parts) -> Progress | None:
    """Put a run behind the warm-up of a file, and say where it stands.

    None, and nothing is changed, if there is no file, it cannot be read, or it was made by another number of
    threads, which may round sums differently.
    """
    if not path.exists():
        return None
    try:
        tensors, values = read_checkpoint(path)
    except TrainingError:
        return None
    if values["threads"] != torch.get_num_threads():
        return None
    with torch.no_grad():
        for name, value in take(tensors, "weight").items():
            parts.tensors[name].copy_(value)
    owners = {
        parameter: optimizer
        for optimizer in parts.optimizers.values()
        for group in optimizer.param_groups
        for parameter in group["params"]
    }
    for name, value in take(tensors, "adam").items():
        owner, _, key = name.rpartition(".")
        parameter = parts.parameters[owner]
        owners[parameter].state[parameter][key] = value
    torch.set_rng_state(tensors["random.global"])
    parts.generator.set_state(tensors["random.own"])
    return Progress.from_json(values["progress"])
