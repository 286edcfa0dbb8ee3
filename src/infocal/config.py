"""Recipes: YAML files of settings that extend one another, and changes to single settings by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import yaml

from infocal.errors import SettingsError
from infocal.settings import Settings, unknown_setting

__all__ = ["load_settings", "recipe_names"]

RECIPES = Path(__file__).parent / "recipes"


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
            whole = ".".join(groups[: depth + 1])
            if group in place:
                raise SettingsError(f"{whole} is a setting, not a group of settings; give all of it: {whole}=...")
            raise SettingsError(unknown_setting(whole, group, place))
        place = inner
    if last not in place:
        raise SettingsError(unknown_setting(name, last, place))
    if isinstance(place[last], dict):
        raise SettingsError(f"{name} is a group of settings; set one of {', '.join(place[last])}")
    place[last] = value
