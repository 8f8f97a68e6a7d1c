"""Columns of a table where they do not all fit side by side. Widths are in cells of the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TypeAlias

from rich.cells import cell_len

Column: TypeAlias = tuple[str, Sequence[str]]
"""Heading and cells."""
_WHOLE = 10
"""What is no wider stays on one line: ``4.62 d``, ``in vain``."""
_BROKEN = 20
"""Words that are wider, URLs above all, are broken if need be."""


def without_spare(columns: Sequence[Column], spare: Sequence[str], width: int) -> list[Column]:
    """The columns without those of the spare ones, in their order, that leave the words of the others no room.

    >>> [heading for heading, _ in without_spare([("url", ["/a"]), ("since", ["2026-11-14 00:30"])], ["since"], 12)]
    ['url']
    """
    kept = list(columns)
    for name in spare:
        if sum(map(_least, kept)) > _room(kept, width):
            kept = [column for column in kept if column[0] != name]
    return kept


def shared_widths(columns: Sequence[Column], width: int) -> list[int]:
    """Widths of the columns in a table of this width: words stay whole where they can, and cells take few lines.

    >>> shared_widths([("url", ["http://data.example/library/2"]), ("why", ["worth its price"])], 39)
    [27, 9]
    """
    widths, room = list(map(_least, columns)), _room(columns, width)
    while sum(widths) > max(room, len(columns)):
        widths[widths.index(max(widths))] -= 1
    full = [max(map(cell_len, (heading, *cells))) for heading, cells in columns]
    grown = _grown(columns, widths, full, room)
    # What a column has more than its lines take is of use to the others.
    taken = list(map(_taken, columns, grown))
    most = [used if used < had else wanted for used, had, wanted in zip(taken, grown, full, strict=True)]
    return _grown(columns, taken, most, room)


def _grown(columns: Sequence[Column], widths: Sequence[int], most: Sequence[int], room: int) -> list[int]:
    """The widths and what room there is, given to those whose cells take the most lines; none gets more than most."""
    usual = [sum(map(cell_len, cells)) / max(len(cells), 1) for _, cells in columns]
    grown = list(widths)
    for _ in range(room - sum(widths)):
        folded = [one for one, width in enumerate(grown) if width < most[one]]
        if folded:
            grown[max(folded, key=lambda one: usual[one] / grown[one])] += 1
    return grown


def _taken(column: Column, width: int) -> int:
    """How much of its width a column takes."""
    heading, cells = column
    lines = (line for text in (heading, *cells) for line in wrap(text, width, break_on_hyphens=False))
    return max([1, *(min(cell_len(line), width) for line in lines)])


def _least(column: Column) -> int:
    """From which width on a column breaks no words but very long ones."""
    heading, cells = column
    words = [word for text in (heading, *cells) for word in text.split()]
    whole = [text for text in cells if cell_len(text) <= _WHOLE]
    return max([1, *(min(cell_len(text), _BROKEN) for text in (*words, *whole))])


def _room(columns: Sequence[Column], width: int) -> int:
    """What is left for the columns where one cell lies beside and between them."""
    return width - len(columns) - 1
