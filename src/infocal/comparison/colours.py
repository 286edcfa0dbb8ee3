"""Colours that colour-blind readers can tell apart, and for each a second sign that is no colour.

The palette is that of Okabe and Ito 2008, "Color Universal Design", without its yellow, which is too pale for
lines and underlines on white.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Look", "look"]

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "p", ">")
DASHES = ("-", "--", "-.", ":")
UNDERLINES = ("dashed", "dotted", "double", "wavy")
"""The solid one is the human's."""
TINT = 0.28


@dataclass(frozen=True, slots=True)
class Look:
    """How one contender looks everywhere.

    Attributes:
        colour: of its lines.
        tint: the same colour, pale, to lie behind dark text.
        marker: of its points.
        dash: of its lines.
        underline: of its words.
    """

    colour: str
    tint: str
    marker: str
    dash: str
    underline: str


def look(number: int) -> Look:
    """The look of the contender with this number; up to seven differ in colour, more in the other signs too."""
    colour = PALETTE[number % len(PALETTE)]
    return Look(
        colour,
        _pale(colour),
        MARKERS[number % len(MARKERS)],
        DASHES[(number // len(PALETTE)) % len(DASHES)],
        UNDERLINES[number % len(UNDERLINES)],
    )


def _pale(colour: str) -> str:
    parts = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return "#" + "".join(f"{round(255 - TINT * (255 - part)):02X}" for part in parts)
