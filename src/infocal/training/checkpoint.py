"""A run's whole state in one file: safetensors, with the plain values as JSON in its header.

One file, replaced in one step, cannot be half old and half new, whenever the process dies.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infocal.errors import TrainingError
from infocal.files import write_bytes

if TYPE_CHECKING:
    from torch import Tensor
    from torch.optim import Optimizer

__all__ = ["load_optimizer", "optimizer_tensors", "read_checkpoint", "take", "write_checkpoint"]

FORMAT = 1


def write_checkpoint(path: Path, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
    """Write tensors and JSON-able values to ``path`` in one step."""
    from safetensors.torch import save

    header = {"infocal": json.dumps({"format": FORMAT, **values})}
    write_bytes(path, save({name: tensor.contiguous() for name, tensor in tensors.items()}, metadata=header))


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read back what :func:`write_checkpoint` wrote; TrainingError if it is something else."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        content = path.read_bytes()  # once: the file may be replaced while it is being read
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        values = json.loads(header["__metadata__"]["infocal"])
        tensors = load(content)
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
        raise TrainingError(
            f"{path} cannot be read as a checkpoint ({error}); train anew without resuming"
        ) from None
    if values.get("format") != FORMAT:
        raise TrainingError(
            f"{path} has checkpoint format {values.get('format')}, this version reads {FORMAT}; "
            "resume with the version that wrote it"
        )
    return tensors, values


def take(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose name starts with ``prefix.``, without it."""
    start = len(prefix) + 1
    return {name[start:]: tensor for name, tensor in tensors.items() if name.startswith(f"{prefix}.")}


def optimizer_tensors(optimizer: Optimizer) -> dict[str, Tensor]:
    """An Adam optimizer's state as ``<parameter number>.<name>`` tensors."""
    state = optimizer.state_dict()["state"]
    return {f"{index}.{name}": value for index, entries in state.items() for name, value in entries.items()}


def load_optimizer(optimizer: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Put back what :func:`optimizer_tensors` took."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        index, _, name = key.partition(".")
        state.setdefault(int(index), {})[name] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
