"""Hashes of shingles in a compiled kernel: the same as in ``shingles.py``, in a fifth of the time.

Import it late: it loads numba.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recrawl.detect.text.shingles import BASE, LONGEST, MIX, OLDEST, SPACES, STEP, WIDTH, Shingles
from recrawl.model.compiled import inlined_kernel

Bytes = npt.NDArray[np.uint8]
Wide = npt.NDArray[np.uint64]

_U64 = np.uint64
_MIX, _MORE = MIX
_LEAVES = _U64(int(OLDEST) * int(STEP) & 0xFFFF_FFFF_FFFF_FFFF)
"""What the oldest word of a shingle is multiplied by when the next one comes on."""
_MANY = 4
"""Shingles for each that is kept, from which on only the smallest are sorted."""


def smallest_shingles(letters: Bytes, most: int) -> Shingles:
    """The smallest ``most`` numbers of the shingles of a text in UTF-8, ascending, each once. O(length)."""
    words = np.empty(len(letters) // 2 + 1, np.uint64)
    return shingles_of_words(words[: number_words(letters, words)], most)


def shingles_of_words(words: Wide, most: int) -> Shingles:
    """The same of a text whose words have these numbers, not mixed and with one power of the base less."""
    numbers, small = np.empty(len(words) + 1, np.uint32), np.empty(len(words), np.uint32)
    count, cut = number_shingles(words, np.empty_like(words), numbers, small, most)
    for some in (small[:cut], numbers[:count]) if cut else (numbers[:count],):
        some.sort()
        different = keep_first(some)
        if different >= most:
            break  # else they repeat too often
    return some[: min(different, most)].copy()


@inlined_kernel
def mixed(number: np.uint64) -> np.uint64:
    """Spread every bit over all others, as ``shingles.py`` does."""
    number = (number ^ (number >> _U64(30))) * _MIX
    number = (number ^ (number >> _U64(27))) * _MORE
    return number ^ (number >> _U64(31))


@inlined_kernel
def number_words(letters: Bytes, words: Wide) -> int:
    """Write the number of each word, the polynomial of its bytes; how many there are."""
    count = length = 0
    number, power = _U64(0), _U64(1)
    for code in letters:
        if code <= 32 and SPACES[code]:  # noqa: PLR2004 - space, or one of those before
            words[count] = number
            count += length > 0
            number, power, length = _U64(0), _U64(1), 0
        else:
            number += _U64(code) * power
            length += 1
            power = power * BASE if length & (LONGEST - 1) else _U64(1)
    if length:
        words[count] = number
        count += 1
    return count


@inlined_kernel
def number_shingles(raw: Wide, words: Wide, numbers: Shingles, small: Shingles, most: int) -> tuple[int, int]:
    """Write the number of each shingle to ``numbers``, given those of all words; how many there are. O(n).

    The oldest of the last ten words is taken off the polynomial when the next comes on. If there are very many, those
    that may be among the smallest ``most`` are written to ``small``, and their count is given back, too. ``words`` is
    room for as many numbers as there are words.
    """
    many, total = len(raw), _U64(0)
    for row in range(many):
        words[row] = mixed(raw[row] * BASE)
        total = total * STEP + words[row]
        if row >= WIDTH:
            total -= words[row - WIDTH] * _LEAVES
        if row >= WIDTH - 1:
            numbers[row - WIDTH + 1] = mixed(total) >> _U64(32)
    if 0 < many < WIDTH:
        numbers[0] = mixed(total) >> _U64(32)
    count = max(many - WIDTH + 1, min(many, 1))
    if count <= _MANY * most:
        return count, 0
    bound, cut = (2 * most << 32) // count, 0
    for row in range(count):
        small[cut] = numbers[row]
        cut += numbers[row] < bound
    return count, cut


@inlined_kernel
def keep_first(ordered: Shingles) -> int:
    """Move the first of all that are alike to the front, in order; how many there are. O(n)."""
    count = 0
    for number in ordered:
        if not count or number != ordered[count - 1]:
            ordered[count] = number
            count += 1
    return count
