"""Embedded resources: what a browser loads to show a page."""

from __future__ import annotations

import enum
from typing import NamedTuple

from recrawl.urls import Address

VIEWPORT = (1024.0, 768.0)
"""Width and height of the window that a page is thought to be shown in, CSS pixels."""


class EmbedKind(enum.IntEnum):
    """What an embedded resource is to the page that embeds it."""

    IMAGE = 0
    STYLESHEET = 1
    SCRIPT = 2
    MULTIMEDIA = 3
    """Sound, video, and what plug-ins show."""
    FRAME = 4
    OTHER = 5
    """Fonts, captions: what changes how a page looks a little."""


class Size(NamedTuple):
    """The size of an element in CSS pixels, as the page states it; NaN where it does not."""

    width: float = float("nan")
    height: float = float("nan")


class Embed(NamedTuple):
    """One embedded resource of a page or of a style sheet."""

    alternatives: tuple[Address, ...]
    """Of which a browser loads one: sizes of a picture, formats of a video or a font. As the page names them."""
    kind: EmbedKind
    sizes: tuple[Size, ...] = (Size(),)
    """Of every element that shows it."""
    applies: float = 1.0
    """Of a style sheet, how much it may do to the page on a screen: ½ for the layout, ½ if the page has classes or ids
    that its rules can name; 0 for one that is not for screens. 1 for all else."""


class EmbedList(NamedTuple):
    """What one page or style sheet embeds, each resource once, in its order."""

    embeds: tuple[Embed, ...] = ()
    words: int = 0
    """Words of text on the page itself; 0 for a style sheet."""
    cut: bool = False
    """Whether there is more than is read of one page."""
