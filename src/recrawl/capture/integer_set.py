"""A set of small integers that finds its neighbours: bits in three levels of words of 1,024 bits."""

from __future__ import annotations

_BITS = 10
_LOW = (1 << _BITS) - 1
LARGEST = (1 << 3 * _BITS) - 1
"""The largest integer a set can hold."""


class IntegerSet:
    """Integers from 0 to :data:`LARGEST`. Three steps a call, however many there are."""

    def __init__(self) -> None:
        self._levels: tuple[dict[int, int], dict[int, int], dict[int, int]] = ({}, {}, {})

    def __bool__(self) -> bool:
        return bool(self._levels[2])

    def add(self, number: int) -> None:
        """Put it in, if it is not."""
        for words in self._levels:
            number, bit = number >> _BITS, number & _LOW
            words[number] = words.get(number, 0) | 1 << bit

    def remove(self, number: int) -> None:
        """Take out one that is in."""
        for words in self._levels:
            number, bit = number >> _BITS, number & _LOW
            words[number] ^= 1 << bit
            if words[number]:
                return
            del words[number]

    def smallest(self) -> int:
        """The smallest one; the set must not be empty."""
        number = 0
        for words in reversed(self._levels):
            word = words[number]
            number = number << _BITS | ((word & -word).bit_length() - 1)
        return number

    def at_most(self, number: int) -> int:
        """The largest one that is not above ``number``, or −1.

        >>> numbers = IntegerSet()
        >>> for number in (5, 7000, 2_000_000):
        ...     numbers.add(number)
        >>> numbers.at_most(1_999_999), numbers.at_most(7000), numbers.at_most(4)
        (7000, 7000, -1)
        """
        number = min(number, LARGEST)
        reach = 2  # the number itself counts, but not the words that hold it
        for level, words in enumerate(self._levels):
            number, bit = number >> _BITS, number & _LOW
            below = words.get(number, 0) & ((reach << bit) - 1)
            if below:
                found = number << _BITS | (below.bit_length() - 1)
                for lower in reversed(self._levels[:level]):
                    found = found << _BITS | (lower[found].bit_length() - 1)
                return found
            reach = 1
        return -1
