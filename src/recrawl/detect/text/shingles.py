"""Similarity of two texts: the share of ten-word shingles they have in common (SHARC 8.2, reading 003.40).

A shingle is ten words in a row. Its hash depends on its words alone, so shingles can be stored and compared years
later. A long page would need one hash per word. Only the smallest hashes are stored, which are a fair sample: pages up
to that many words are compared exactly, longer ones with a standard error of √(J(1 − J)/n), at most ±.016 for n = 1024
and ±.031 for n = 256, and ±.009 and ±.019 where nine tenths are in common.

numpy and the compiled kernel share the constants of the hash: a change of them changes every stored hash.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt

from recrawl.model.arrays import starts_of_runs
from recrawl.model.compiled import can_compile

WIDTH = 10
"""Words in a shingle."""

Shingles = npt.NDArray[np.uint32]
"""Numbers of a text's shingles, ascending, each once."""

_U64 = np.uint64
BASE, STEP = _U64(0x9E37_79B9_7F4A_7C15), _U64(0xD6E8_FEB8_6659_FD93)
MIX = (_U64(0xBF58_476D_1CE4_E5B9), _U64(0x94D0_49BB_1331_11EB))
LONGEST = 64
"""Bytes of a word after which the powers of its hash start over."""
SPACES = np.zeros(256, dtype=np.bool_)
SPACES[[9, 10, 11, 12, 13, 32]] = True
OLDEST = np.cumprod(np.full(WIDTH - 1, STEP, dtype=np.uint64), dtype=np.uint64)[-1]
"""What the oldest word of a shingle is multiplied by."""


MOST = 1024
"""Shingles that are compared where both texts are available."""
SAMPLE = 256
"""Shingles that are stored of a text, 1 KiB."""

_POWERS = np.cumprod(np.full(LONGEST, BASE, dtype=np.uint64), dtype=np.uint64)


def shingles(text: str, most: int = MOST, *, use_kernels: bool = False) -> Shingles:
    """The numbers of the text's shingles, the smallest ``most`` of them. O(length).

    A text of fewer than ten words is one shingle; a text without words has none. ``use_kernels`` takes a third of
    the time where numba is installed, and seconds at the first call: for those who have thousands of texts.

    >>> len(shingles("one two three")), len(shingles(" ".join(map(str, range(30))))), len(shingles(" "))
    (1, 21, 0)
    """
    return shingles_of(text.encode("utf-8", "surrogatepass"), most, use_kernels=use_kernels)


def shingles_of(written: bytes, most: int = MOST, *, use_kernels: bool = False) -> Shingles:
    """The same of a text in UTF-8."""
    letters = np.frombuffer(written, dtype=np.uint8)
    if use_kernels and can_compile():
        return _shingle_kernel()(letters, most)
    total = _added_up(_word_numbers(letters))
    return smallest((_mixed(total) >> _U64(32)).astype(np.uint32), most)


@cache
def _shingle_kernel() -> Callable[[npt.NDArray[np.uint8], int], Shingles]:
    from recrawl.detect.text.shingle_scan import smallest_shingles  # numba is slow to import

    return smallest_shingles


def _added_up(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The polynomial of each shingle."""
    width = min(WIDTH, len(words))
    total = np.zeros(len(words) - width + 1 if width else 0, dtype=np.uint64)
    for place in range(width):
        total = total * STEP + words[place : place + len(total)]
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
    inside = ~SPACES[letters]
    begins = inside & ~np.concatenate([[False], inside[:-1]])
    starts = np.flatnonzero(begins)
    if not len(starts):
        return np.empty(0, dtype=np.uint64)
    place = np.arange(len(letters))
    within = place - np.maximum.accumulate(np.where(begins, place, 0))
    powers = np.where(inside, _POWERS[within % LONGEST], _U64(0))
    return _mixed(np.add.reduceat(letters * powers, starts))


def _mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Spread every bit over all others (the last steps of SplitMix64), so that the smallest are a fair sample."""
    numbers = (numbers ^ (numbers >> _U64(30))) * MIX[0]
    numbers = (numbers ^ (numbers >> _U64(27))) * MIX[1]
    return numbers ^ (numbers >> _U64(31))
