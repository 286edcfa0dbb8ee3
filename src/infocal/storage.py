"""A saved model is a folder: weights in safetensors, the rest in JSON, a card to read; no code, no pickle."""

from __future__ import annotations

import contextlib
import json
import math
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infocal.card import model_card
from infocal.decoding import Decoding, ScoredTexts
from infocal.errors import InfocalError, ModelError, SettingsError
from infocal.evaluation.calibration import Temperatures
from infocal.files import atomic_folder, left_over_from, recover, sha256_of, write_bytes, write_text
from infocal.settings import Settings
from infocal.tasks import Joint, goal_from_json
from infocal.text.segmentation import resolve_segmenter, segmenter_named
from infocal.text.vocabulary import Vocabulary
from infocal.types import Span

if TYPE_CHECKING:
    from torch import Tensor

    from infocal.joint import JointRationalizer
    from infocal.methods.base import Method
    from infocal.rationalizer import Rationalizer
    from infocal.tasks import Goal

__all__ = [
    "FORMAT",
    "check_replaceable",
    "count_parameters",
    "load_method",
    "load_model",
    "other_settings",
    "read_header",
    "save_model",
    "save_weights",
]

FORMAT = 4
"""Raised whenever models saved before cannot be read as they were meant."""
HEADER, WEIGHTS, VOCABULARY, CARD = "model.json", "weights.safetensors", "vocabulary.json", "README.md"
SCORED, ARRAYS = "scored.safetensors", ("scores", "offsets", "breaks")
METRICS, SETTINGS, CHECKPOINT, CURVES = "metrics.jsonl", "settings.yaml", "checkpoint.safetensors", "tensorboard"
RUN = (METRICS, SETTINGS, CHECKPOINT, CURVES)
"""What a training run leaves in the folder."""
OWN = frozenset({HEADER, WEIGHTS, VOCABULARY, SCORED, CARD, *RUN})
"""All that a model's folder may hold."""


def save_model(model: Rationalizer | JointRationalizer, path: Path, *, keep: Collection[str] = ()) -> None:
    """Write the folder in one step.

    Args:
        model: what to save.
        path: the folder; a model in it is replaced.
        keep: names of what the training run left in the folder (``RUN``) that are this model's and stay.
    """
    from infocal.methods.views import TaskView

    if isinstance(model.method, TaskView):
        raise SettingsError("this is a part of a model of several labels; save the whole model")
    check_replaceable(path)
    path = path.resolve()
    parts: Mapping[str, Rationalizer] = getattr(model, "parts", {"": model})
    with atomic_folder(path) as folder:
        save_weights(model.method, folder / WEIGHTS)
        write_bytes(folder / SCORED, _scored(parts))
        write_text(folder / VOCABULARY, json.dumps(model.vocabulary.to_json(), ensure_ascii=False))
        write_text(folder / CARD, model_card(model))
        for name in keep:
            _carry(path / name, folder / name)
        header = {
            "format": FORMAT,
            "segmenter": model.segmenter.name,
            "settings": model.settings.model_dump(),
            "task": model.task.to_json(),
            "parts": {name: _part_header(part) for name, part in parts.items()},
            "record": model.record,
            "files": {name: sha256_of(folder / name) for name in (WEIGHTS, VOCABULARY, SCORED)},
        }
        write_text(folder / HEADER, json.dumps(header, ensure_ascii=False, indent=1))


def save_weights(method: Method, path: Path) -> None:
    """Write a network's tensors to a file, in one step."""
    from safetensors.torch import save

    write_bytes(path, save(_tensors(method)))


def check_replaceable(path: Path) -> None:
    """Raise SettingsError where saving a model to ``path`` would destroy something that is not a model's."""
    if path.exists() and not path.is_dir():
        raise SettingsError(f"{path} is a file; a model is saved to a folder")
    if path.resolve() in (Path.cwd(), *Path.cwd().parents):
        raise SettingsError(f"{path} is the current folder or above it; name a folder for the model alone")
    if path.is_dir():
        found = {left_over_from(item.name) or item.name for item in path.iterdir()}
        foreign = sorted(found - OWN) or ([] if found & {HEADER, *RUN} else sorted(found))
        if foreign:
            raise SettingsError(
                f"{path} holds what is not a model's, e.g. {foreign[0]!r}, and saving replaces the whole folder; "
                "name a new or empty one"
            )


def _carry(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target)
    elif source.is_file():
        shutil.copyfile(source, target)


def other_settings(header: Mapping[str, Any], settings: Settings) -> list[str]:
    """Dotted names of the settings that a saved model was trained with another value of.

    Where the vectors lie and how often checkpoints are written makes no difference; what training settles itself
    is as it was asked for.
    """
    trained = Settings.parse(header["settings"])
    if settings.loss.calibration_window == "auto":
        loss = trained.loss.model_copy(update={"calibration_window": "auto"})
        trained = trained.model_copy(update={"loss": loss})
    one, other = _flat(trained), _flat(settings)
    differ = (name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
    return sorted(differ, key=lambda name: (name.count("."), name))


def _flat(settings: Settings) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in settings.model_dump(mode="json").items():
        flat |= (
            {f"{name}.{key}": item for key, item in value.items()} if isinstance(value, dict) else {name: value}
        )
    for name in ("text.vectors", "training.checkpoint_seconds"):
        flat.pop(name)
    return flat


def count_parameters(path: Path) -> int:
    """How many numbers the saved weights are, without loading them."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path / WEIGHTS, framework="numpy") as stream:
            names = list(stream.keys())
            return sum(math.prod(stream.get_slice(name).get_shape()) for name in names)
    except SafetensorError as error:
        raise ModelError(f"{path / WEIGHTS} is damaged ({error}); copy the whole folder again") from None


def read_header(path: Path) -> dict[str, Any]:
    """The model's plain values, with the folder checked for damage."""
    if not path.exists():
        with contextlib.suppress(OSError):
            recover(path)
    if not path.is_dir():
        raise ModelError(f"{path} is not a folder; a model is the folder that `infocal train --out` wrote")
    try:
        header = json.loads((path / HEADER).read_text(encoding="utf-8"))
        version, files = header["format"], header["files"]
    except FileNotFoundError:
        raise ModelError(f"{path} has no {HEADER}; it is not a saved model") from None
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path / HEADER} is damaged ({error!r}); save the model again") from None
    if not isinstance(version, int) or version > FORMAT:
        raise ModelError(
            f"{path} has model format {version}, this version of infocal reads up to {FORMAT}; upgrade infocal"
        )
    if version < FORMAT:
        raise ModelError(
            f"{path} was saved by an older infocal (model format {version}, this version reads {FORMAT}); "
            "train it again"
        )
    for name, expected in files.items():
        if not (path / name).is_file():
            raise ModelError(f"{path} lacks {name}; copy the whole folder again")
        if sha256_of(path / name) != expected:
            raise ModelError(f"{path / name} is damaged: its checksum is not the one it was saved with")
    return dict(header)


def load_model(path: Path, *, segmenter: Callable[[str], Iterable[Span]] | None = None) -> dict[str, Any]:
    """Read a folder: the fields that all parts of a model share, and ``parts``, each part's own.

    A model of one label has one part without a name. ModelError says what is wrong with the folder.
    """
    header = read_header(path)
    try:
        settings = Settings.parse(header["settings"])
        task = goal_from_json(header["task"])
        vocabulary = Vocabulary.from_json(json.loads((path / VOCABULARY).read_text(encoding="utf-8")))
        parts = _read_parts(header["parts"], task, path / SCORED)
        method = load_method(path / WEIGHTS, settings, task)
    except ModelError:
        raise
    except (InfocalError, KeyError, ValueError, TypeError, RuntimeError) as error:
        raise ModelError(f"{path} cannot be read as a model: {error}") from None
    cut = resolve_segmenter(segmenter, ()) if segmenter is not None else segmenter_named(header["segmenter"])
    return {
        "settings": settings,
        "segmenter": cut,
        "vocabulary": vocabulary,
        "task": task,
        "method": method,
        "parts": parts,
        "record": header.get("record", {}),
    }


def _tensors(method: Method) -> dict[str, Tensor]:
    """Each tensor once: parts that share weights would otherwise be written twice."""
    named = {**dict(method.named_parameters()), **dict(method.named_buffers())}
    return {name: tensor.detach().contiguous() for name, tensor in named.items()}


def _part_header(part: Rationalizer) -> dict[str, Any]:
    """What is a label's own in plain values."""
    return {"decoding": part.decoding.to_json(), "temperatures": asdict(part.temperatures)}


def _scored(parts: Mapping[str, Rationalizer]) -> bytes:
    from safetensors.numpy import save

    texts = [part.decoding.texts for part in parts.values()]
    return save({f"{place}.{name}": getattr(one, name) for place, one in enumerate(texts) for name in ARRAYS})


def _read_parts(headers: Mapping[str, Any], task: Goal, path: Path) -> dict[str, dict[str, Any]]:
    """Part -> the fields that are its own."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    if list(headers) != (list(task.tasks) if isinstance(task, Joint) else [""]):
        raise ModelError(f"the model's parts are {list(headers)}, which its task does not have")
    try:
        arrays = load_file(path)
        texts = [ScoredTexts(*(arrays[f"{place}.{name}"] for name in ARRAYS)) for place in range(len(headers))]
    except (SafetensorError, KeyError) as error:
        raise ModelError(f"{path} is damaged ({error}); copy the whole folder again") from None
    return {
        name: {
            "decoding": Decoding.from_json(header["decoding"], scored),
            "temperatures": Temperatures(**header.get("temperatures", {})),
        }
        for (name, header), scored in zip(headers.items(), texts, strict=True)
    }


def load_method(path: Path, settings: Settings, task: Goal) -> Method:
    """A network with the weights of a file, ready to answer."""
    import torch
    from safetensors.torch import load_file

    from infocal.methods import build_method
    from infocal.methods.fla import stored_articles
    from infocal.nn.embedding import TokenEmbedding

    tensors = load_file(path)
    frozen = tensors["embedding.is_frozen"]
    with torch.random.fork_rng(devices=[]):  # initial weights are drawn, only to be replaced
        embedding = TokenEmbedding(size=len(frozen), width=tensors["embedding.free"].shape[1], frozen=frozen)
        articles = stored_articles(tensors) if settings.method == "fla" else None
        method = build_method(settings, embedding=embedding, task=task, articles=articles)
    own = _tensors(method)
    if own.keys() != tensors.keys():
        raise ModelError(
            f"{path} has other weights than its settings describe: {sorted(own.keys() ^ tensors)[:5]}"
        )
    with torch.no_grad():
        for name, tensor in own.items():
            if tensor.shape != tensors[name].shape:
                raise ModelError(
                    f"{path}: {name} has shape {tuple(tensors[name].shape)}, not {tuple(tensor.shape)}; the model "
                    "is damaged, or of another version of infocal: train it again"
                )
            tensor.copy_(tensors[name])
    return method.eval()
