"""``infocal info`` and ``infocal recipes``: looking without running anything."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import click

from infocal.cli.options import FILE, examples
from infocal.cli.output import Voice, human_size

__all__ = ["info", "recipes"]

TOLD = ("format", "segmenter", "task", "settings", "record")


@click.command(short_help="Show a model's card, size and format.", epilog=examples("infocal info model"))
@click.argument("model", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="Print the facts as JSON.")
def info(model: Path, as_json: bool) -> None:
    """Show what MODEL was made from, how it did and where not to trust it."""
    from infocal.storage import read_header

    header = read_header(model)
    facts = {"path": str(model), **_sizes(model), **{name: header.get(name) for name in TOLD}}
    if as_json:
        click.echo(json.dumps(facts, ensure_ascii=False, indent=2).encode("utf-8"))
        return
    from rich.markdown import Markdown

    from infocal.markup import visible

    voice = Voice()
    voice.result.print(Markdown(visible(_card(model))))
    voice.say(
        f"\n{model}: {human_size(facts['bytes'])}, {facts['parameters']:,} parameters, "
        f"model format {facts['format']}"
    )


def _sizes(model: Path) -> dict[str, Any]:
    from infocal.storage import count_parameters

    size = sum(path.stat().st_size for path in model.rglob("*") if path.is_file())
    return {"bytes": size, "parameters": count_parameters(model)}


def _card(model: Path) -> str:
    from infocal.storage import CARD

    try:
        return (model / CARD).read_text(encoding="utf-8")
    except FileNotFoundError:
        from infocal.card import model_card
        from infocal.loading import load

        return model_card(load(model))


@click.command(
    short_help="List the recipes, or print one in full.",
    epilog=examples("infocal recipes", "infocal recipes infocal > mine.yaml"),
)
@click.argument("name", required=False)
def recipes(name: str | None) -> None:
    """List the recipes that come with infocal; with NAME (or a file) print all its values."""
    from infocal.config import RECIPES, load_settings, recipe_names

    if name is not None:
        settings = load_settings(name)  # says what is wrong with it
        own = RECIPES / f"{name}.yaml"
        whole = own.is_file() and settings == load_settings()  # its file has every value, with its reason
        click.echo(own.read_text(encoding="utf-8") if whole else settings.to_yaml(), nl=False)
        return
    width = max(map(len, recipe_names()))
    for known in recipe_names():
        click.echo(f"{known:<{width}} {_about((RECIPES / f'{known}.yaml').read_text(encoding='utf-8'))}")


def _about(recipe: str) -> str:
    """The first sentence of the comment that a recipe begins with."""
    lines = itertools.takewhile(lambda line: line.startswith("#"), recipe.splitlines())
    comment = " ".join(line.removeprefix("#").strip() for line in lines)
    return re.split(r"(?<! al)[.] ", comment, maxsplit=1)[0].removesuffix(".") + "."
