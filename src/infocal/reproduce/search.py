"""Ranges in which weights are looked for: recipes of their own, from which settings are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from infocal.config import RECIPES
from infocal.errors import SettingsError

__all__ = ["Range", "Search", "read_search", "search_names"]

FOLDER = "search"


@dataclass(frozen=True, slots=True)
class Range:
    """Evenly spaced values.

    Attributes:
        first: the first of them.
        last: the last, which is among them.
        step: from one to the next.
    """

    first: float
    last: float
    step: float

    def values(self) -> list[float]:
        """All of them, without the dust of floating point."""
        count = round((self.last - self.first) / self.step)
        return [round(self.first + place * self.step, 10) for place in range(count + 1)]


@dataclass(frozen=True)
class Search:
    """Where to look.

    Attributes:
        recipe: what the settings are changed in.
        ranges: setting by dotted name -> its range.
    """

    recipe: str
    ranges: Mapping[str, Range]

    def points(self) -> int:
        """How many different settings there are."""
        found = 1
        for one in self.ranges.values():
            found *= len(one.values())
        return found

    def draw(self, count: int, *, seed: int) -> list[dict[str, float]]:
        """Different settings by chance, all if there are no more; the first are those of a smaller count."""
        generator, found = np.random.default_rng(seed), dict[tuple[float, ...], dict[str, float]]()
        while len(found) < min(count, self.points()):
            drawn = {name: float(generator.choice(one.values())) for name, one in self.ranges.items()}
            found.setdefault(tuple(drawn.values()), drawn)
        return list(found.values())


def search_names() -> list[str]:
    """The searches that come with the package."""
    return sorted(path.stem for path in (RECIPES / FOLDER).glob("*.yaml"))


def read_search(name: str | Path) -> Search:
    """One that comes with the package, by its name, or a YAML file of the same form.

    Raises:
        SettingsError: there is none, or it is not of the form.
    """
    path = RECIPES / FOLDER / f"{name}.yaml" if str(name) in search_names() else Path(name)
    try:
        record = yaml.safe_load(path.read_text(encoding="utf-8"))
        ranges = {str(setting): _range(values) for setting, values in record["ranges"].items()}
        return Search(str(record["recipe"]), ranges)
    except OSError:
        known = ", ".join(search_names())
        raise SettingsError(f"there is no search {str(name)!r}; the package has {known}; or give a file") from None
    except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise SettingsError(
            f"{path} is not a search: {error}; allowed: recipe, and ranges of settings with first, last, step"
        ) from None


def _range(values: Mapping[str, Any]) -> Range:
    found = Range(*(float(values[name]) for name in ("first", "last", "step")))
    if not (found.step > 0 and found.first <= found.last < float("inf")):
        raise ValueError(f"{dict(values)} has no values")
    steps = (found.last - found.first) / found.step
    if abs(steps - round(steps)) > 1e-6:
        raise ValueError(f"{dict(values)} does not reach its last value in whole steps")
    return found
