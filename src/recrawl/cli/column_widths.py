"""Columns of a table where they do not all fit side by side. Widths are in cells of the terminal."""

from __future__ import annotations

from collections.abc import Sequence
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
    [24, 12]
    """
    full = [max(map(cell_len, (heading, *cells))) for heading, cells in columns]
    usual = [sum(map(cell_len, cells)) / max(len(cells), 1) for _, cells in columns]
    widths = list(map(_least, columns))
    everyone, room = range(len(widths)), _room(columns, width)
    while sum(widths) > max(room, len(widths)):
        widths[max(everyone, key=widths.__getitem__)] -= 1
    for _ in range(room - sum(widths)):
        folded = [one for one in everyone if widths[one] < full[one]]
        if folded:  # the one whose cells take the most lines gets more
            widths[max(folded, key=lambda one: usual[one] / widths[one])] += 1
    return widths


def _least(column: Column) -> int:
    """From which width on a column breaks no words but very long ones."""
    heading, cells = column
    words = [word for text in (heading, *cells) for word in text.split()]
    whole = [text for text in cells if cell_len(text) <= _WHOLE]
    return max([1, *(min(cell_len(text), _BROKEN) for text in (*words, *whole))])


def _room(columns: Sequence[Column], width: int) -> int:
    """What is left for the columns where one cell lies beside and between them."""
    return width - len(columns) - 1
