"""Chance that repeats itself: numbers that depend on a key and nothing else.

A served page must look the same whenever it is asked for in the same version, whatever was asked in
between; so every choice is drawn from a key (seed, page, version, ...), not from a shared generator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def mix(*key: int) -> int:
    """64 well-mixed bits of a key of integers (the finaliser of SplitMix64, Steele et al. 2014).

    >>> mix(1, 2) == mix(1, 2), mix(1, 2) == mix(2, 1)
    (True, False)
    """
    state = 0
    for part in key:
        state = (state ^ (part & _MASK)) + _GOLDEN & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        state ^= state >> 31
    return state


class SeededRng:
    """A stream of choices that starts over with each key."""

    __slots__ = ("_state",)

    def __init__(self, *key: int) -> None:
        self._state = mix(*key)

    def below(self, bound: int) -> int:
        """A whole number from 0 to ``bound - 1``."""
        self._state = mix(self._state)
        return (self._state >> 11) % bound

    def share(self) -> float:
        """A number in [0, 1)."""
        return self.below(1 << 53) / (1 << 53)

    def pick(self, choices: Sequence[T]) -> T:
        """One of the choices, all equally likely."""
        return choices[self.below(len(choices))]
