"""Two versions of a text side by side, line by line, with the differing words marked. For people."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

Piece: TypeAlias = tuple[str, bool]
"""A stretch of a line, and whether it differs from the other side."""
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_LONG = 1_000
"""Characters of a line beyond which words are not compared: it is marked as a whole."""
_ALIKE = 0.3
"""Share of words in common below which two lines are not one line that was edited."""
MOST_LINES = 1_500
"""Lines of a version beyond which it is not compared: the time would grow with their square."""
MOST_PAIRS = 1_000_000
"""Pairs of words that are compared at most, of all lines together: further lines are marked as a whole."""


class LineSide(Enum):
    """What became of a line."""

    SAME = "same"
    EDITED = "edited"
    WENT = "went"
    CAME = "came"
    SKIPPED = "skipped"
    """Lines left out because they and their neighbours are the same."""


@dataclass(frozen=True, slots=True)
class SideRow:
    """A line of the earlier version and the one of the later version beside it."""

    side: LineSide
    before: tuple[Piece, ...] = ()
    after: tuple[Piece, ...] = ()
    skipped: int = 0
    """How many lines this row stands for, where they are left out."""


def side_by_side(before: Sequence[str], after: Sequence[str], context: int = 3) -> list[SideRow] | None:
    """Rows of both versions with N equal lines around each difference; ``None`` if they are too long.

    O(lines²) at worst, also for hostile pages: lines that many others equal, as a page of one line a thousand times,
    are no places to meet at, and words are compared up to ``MOST_PAIRS``.

    >>> for row in side_by_side(["Open daily", "Fee: 3 EUR"], ["Open daily", "Fee: 4 EUR"]):
    ...     print(row.side.value, row.before, row.after)
    same (('Open daily', False),) (('Open daily', False),)
    edited (('Fee: ', False), ('3', True), (' EUR', False)) (('Fee: ', False), ('4', True), (' EUR', False))
    """
    if max(len(before), len(after)) > MOST_LINES:
        return None
    rows: list[SideRow] = []
    words = _Words(MOST_PAIRS)
    # Without "autojunk" equal lines would cost the third power of their number.
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=True)
    for tag, low, high, other_low, other_high in matcher.get_opcodes():
        if tag == "equal":
            rows += (SideRow(LineSide.SAME, *(((line, False),),) * 2) for line in before[low:high])
        else:
            rows += _replaced(before[low:high], after[other_low:other_high], words)
    return list(_shortened(rows, context))


class _Words:
    """Compares lines word by word, until it has compared enough."""

    def __init__(self, most: int) -> None:
        self._left = most

    def edited(self, old: str, new: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]] | None:
        """The pieces of two lines by words; ``None`` if they have too little in common."""
        if max(len(old), len(new)) > _LONG:
            return ((old, True),), ((new, True),)
        one, other = _WORDS.findall(old), _WORDS.findall(new)
        self._left -= len(one) * len(other)
        if self._left < 0:
            return ((old, True),), ((new, True),)
        matcher = difflib.SequenceMatcher(None, one, other, autojunk=True)
        if matcher.quick_ratio() < _ALIKE or matcher.ratio() < _ALIKE:
            return None
        left: list[Piece] = []
        right: list[Piece] = []
        for tag, low, high, other_low, other_high in matcher.get_opcodes():
            differs = tag != "equal"
            left.append(("".join(one[low:high]), differs))
            right.append(("".join(other[other_low:other_high]), differs))
        return tuple(piece for piece in left if piece[0]), tuple(piece for piece in right if piece[0])


def _replaced(went: Sequence[str], came: Sequence[str], words: _Words) -> Iterator[SideRow]:
    """Lines that became others: beside each other where they have words in common, else one below the other."""
    paired = min(len(went), len(came))
    for old, new in zip(went[:paired], came[:paired], strict=True):
        pieces = words.edited(old, new)
        if pieces is None:
            yield SideRow(LineSide.WENT, ((old, True),))
            yield SideRow(LineSide.CAME, (), ((new, True),))
        else:
            yield SideRow(LineSide.EDITED, *pieces)
    for old in went[paired:]:
        yield SideRow(LineSide.WENT, ((old, True),))
    for new in came[paired:]:
        yield SideRow(LineSide.CAME, (), ((new, True),))


def _shortened(rows: list[SideRow], context: int) -> Iterator[SideRow]:
    """The rows without equal ones that are further than ``context`` from every difference."""
    near = [False] * len(rows)
    for at, row in enumerate(rows):
        if row.side is not LineSide.SAME:
            for close in range(max(0, at - context), min(len(rows), at + context + 1)):
                near[close] = True
    left_out = 0
    for row, shown in zip(rows, near, strict=True):
        if shown:
            if left_out:
                yield SideRow(LineSide.SKIPPED, skipped=left_out)
            left_out = 0
            yield row
        else:
            left_out += 1
    if left_out:
        yield SideRow(LineSide.SKIPPED, skipped=left_out)
