"""How alike two texts are: the share of ten-word shingles they have in common (SHARC 8.2, reading 003.40).

A shingle is ten words in a row. Each becomes a number that depends on nothing but its words, so shingles can be stored
and compared years later. A long page would need a number a word; kept are the smallest of them, which are a fair
sample: pages up to that many words are compared exactly, longer ones with a standard error of √(J(1 − J)/n), at most
±.016 for n = 1024 and ±.031 for n = 256, and ±.009 and ±.019 where nine tenths are in common.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recrawl.model.arrays import starts_of_runs
from recrawl.model.compiled import can_compile, compiled

WIDTH = 10
"""Words in a shingle."""
MOST = 1024
"""Shingles that are compared where both texts are at hand."""
SAMPLE = 256
"""Shingles that are stored of a text, 1 KiB."""

Shingles = npt.NDArray[np.uint32]
"""Numbers of a text's shingles, ascending, each once."""

_U64 = np.uint64
_BASE, _STEP = _U64(0x9E37_79B9_7F4A_7C15), _U64(0xD6E8_FEB8_6659_FD93)
_MIX = (_U64(0xBF58_476D_1CE4_E5B9), _U64(0x94D0_49BB_1331_11EB))
_LONGEST = 64
"""Bytes of a word after which the powers of its hash begin anew."""
_POWERS = np.cumprod(np.full(_LONGEST, _BASE, dtype=np.uint64), dtype=np.uint64)
_SPACES = np.zeros(256, dtype=np.bool_)
_SPACES[[9, 10, 11, 12, 13, 32]] = True
_SPACE = np.uint8(32)
_OLDEST = np.cumprod(np.full(WIDTH - 1, _STEP, dtype=np.uint64), dtype=np.uint64)[-1]
"""What the oldest word of a shingle is multiplied by."""


def shingles(text: str, most: int = MOST, *, in_machine_code: bool = False) -> Shingles:
    """The numbers of the text's shingles, the smallest ``most`` of them. O(length).

    A text of fewer than ten words is one shingle; a text without words has none. ``in_machine_code`` takes a third of
    the time where numba is installed, and seconds at the first call: for those who have thousands of texts.

    >>> len(shingles("one two three")), len(shingles(" ".join(map(str, range(30))))), len(shingles(" "))
    (1, 21, 0)
    """
    return shingles_of(text.encode("utf-8", "surrogatepass"), most, in_machine_code=in_machine_code)


def shingles_of(written: bytes, most: int = MOST, *, in_machine_code: bool = False) -> Shingles:
    """The same of a text in UTF-8."""
    letters = np.frombuffer(written, dtype=np.uint8)
    if in_machine_code and can_compile():
        room = np.empty((2, len(letters) // 2 + 1), dtype=np.uint32)
        count = number_shingles(letters, room[0], np.zeros(WIDTH, np.uint64))
        if count > 4 * most:
            some = room[1, : keep_below(room[0, :count], (2 * most << 32) // count, room[1])]
            some.sort()
            different = keep_first(some)
            if different >= most:
                return some[:most].copy()
        return smallest(room[0, :count], most)
    total = _added_up(_word_numbers(letters))
    return smallest((_mixed(total) >> _U64(32)).astype(np.uint32), most)


def _added_up(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The polynomial of each shingle."""
    width = min(WIDTH, len(words))
    total = np.zeros(len(words) - width + 1 if width else 0, dtype=np.uint64)
    for place in range(width):
        total = total * _STEP + words[place : place + len(total)]
    return total


def smallest(numbers: npt.NDArray[np.uint32], most: int) -> npt.NDArray[np.uint32]:
    """The smallest ``most`` of the numbers, ascending, each once. O(n) where they are spread evenly."""
    if len(numbers) > 4 * most:
        some = _ascending(numbers[numbers < np.uint32((2 * most << 32) // len(numbers))])
        if len(some) >= most:  # else they repeat too often
            return some[:most]
    return _ascending(numbers)[:most]


def _ascending(numbers: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """The numbers sorted, each once; ten times as fast as ``np.unique`` for a few thousand."""
    ordered = np.sort(numbers)
    return ordered[starts_of_runs(ordered)]


def similarity(one: Shingles, other: Shingles, most: int = MOST) -> float:
    """Share of the shingles of either text that are in both (Jaccard): 1 if they are alike, 0 if nothing is shared.

    Exact while both have fewer than ``most``; else taken from the smallest ``most`` of their union, which both lists
    know in full. Two texts without words are alike. O(most).

    >>> before, after = (" ".join(map(str, numbers)) for numbers in (range(100), [*range(50), 7, *range(51, 100)]))
    >>> round(similarity(shingles(before), shingles(after)), 3)
    0.802
    """
    if not len(one) and not len(other):
        return 1.0
    _, often = np.unique(np.concatenate([one, other]), return_counts=True)
    if len(one) >= most or len(other) >= most:
        often = often[:most]
    return float((often == 2).mean())  # noqa: PLR2004 - in both


def _word_numbers(letters: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """A number for each word, by its bytes alone: their polynomial, mixed."""
    inside = ~_SPACES[letters]
    begins = inside & ~np.concatenate([[False], inside[:-1]])
    starts = np.flatnonzero(begins)
    if not len(starts):
        return np.empty(0, dtype=np.uint64)
    place = np.arange(len(letters))
    within = place - np.maximum.accumulate(np.where(begins, place, 0))
    powers = np.where(inside, _POWERS[within % _LONGEST], _U64(0))
    return _mixed(np.add.reduceat(letters * powers, starts))


def _mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Spread every bit over all others (the last steps of SplitMix64), so that the smallest are a fair sample."""
    numbers = (numbers ^ (numbers >> _U64(30))) * _MIX[0]
    numbers = (numbers ^ (numbers >> _U64(27))) * _MIX[1]
    return numbers ^ (numbers >> _U64(31))


@compiled
def number_shingles(letters: npt.NDArray[np.uint8], found: npt.NDArray[np.uint32], ring: npt.NDArray[np.uint64]) -> int:
    """Write the number of each shingle of a text in UTF-8 to ``found``; how many there are. O(length).

    One pass over the letters. The oldest of the last ten words is taken off the polynomial before the next comes on.
    The numbers are those of the steps above. ``ring`` has room for ten words and is 0.
    """
    words = count = slot = place = 0
    size, total = len(letters), _U64(0)
    while place < size:
        if letters[place] <= _SPACE and _SPACES[letters[place]]:
            place += 1
            continue
        number, begin = _U64(0), place
        while place < size and (letters[place] > _SPACE or not _SPACES[letters[place]]):
            number += _U64(letters[place]) * _POWERS[(place - begin) & (_LONGEST - 1)]
            place += 1
        place += 1  # behind it is a space, or nothing
        number = (number ^ (number >> _U64(30))) * _MIX[0]
        number = (number ^ (number >> _U64(27))) * _MIX[1]
        number ^= number >> _U64(31)
        total = (total - ring[slot] * _OLDEST) * _STEP + number
        ring[slot] = number
        slot = slot + 1 if slot < WIDTH - 1 else 0
        words += 1
        if words >= WIDTH:
            mixed = (total ^ (total >> _U64(30))) * _MIX[0]
            mixed = (mixed ^ (mixed >> _U64(27))) * _MIX[1]
            found[count] = (mixed ^ (mixed >> _U64(31))) >> _U64(32)
            count += 1
    if 0 < words < WIDTH:
        total = (total ^ (total >> _U64(30))) * _MIX[0]
        total = (total ^ (total >> _U64(27))) * _MIX[1]
        found[0] = (total ^ (total >> _U64(31))) >> _U64(32)
        count = 1
    return count


@compiled
def keep_below(numbers: npt.NDArray[np.uint32], bound: int, kept: npt.NDArray[np.uint32]) -> int:
    """Write the numbers below a bound to ``kept``, in their order; how many there are. O(n)."""
    count = 0
    for number in numbers:
        kept[count] = number
        count += number < bound
    return count


@compiled
def keep_first(ordered: npt.NDArray[np.uint32]) -> int:
    """Move the first of all that are alike to the front, in order; how many there are. O(n)."""
    count = 0
    for number in ordered:
        if not count or number != ordered[count - 1]:
            ordered[count] = number
            count += 1
    return count
