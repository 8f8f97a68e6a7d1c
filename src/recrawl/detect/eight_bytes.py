"""Eight bytes in one step: steps of kernels that read text.

Whoever changes this file has to remove the compiled code of those who use it: that is made anew only when their own
file changes. To be imported late: numba is loaded with it.
"""

from __future__ import annotations

import numpy as np

from recrawl.detect.tag_kinds import Bytes
from recrawl.model.compiled import bare_code

_U64 = np.uint64
ONES, LOW, HIGH = _U64(0x0101_0101_0101_0101), _U64(0x7F7F_7F7F_7F7F_7F7F), _U64(0x8080_8080_8080_8080)
"""The lowest bit of each byte, all but the highest, and the highest."""


@bare_code
def eight(data: Bytes, place: int) -> np.uint64:
    """Eight bytes as one number, the first the lowest. Written out, this is one step of the processor."""
    at = _U64(place)
    low = _U64(data[at]) | _U64(data[at + _U64(1)]) << _U64(8) | _U64(data[at + _U64(2)]) << _U64(16)
    middle = _U64(data[at + _U64(3)]) << _U64(24) | _U64(data[at + _U64(4)]) << _U64(32)
    high = _U64(data[at + _U64(5)]) << _U64(40) | _U64(data[at + _U64(6)]) << _U64(48)
    return low | middle | high | _U64(data[at + _U64(7)]) << _U64(56)


@bare_code
def put_eight(out: Bytes, place: int, number: np.uint64) -> None:
    """Write such a number, which is one step, too."""
    at = _U64(place)
    out[at] = np.uint8(number)
    out[at + _U64(1)] = np.uint8(number >> _U64(8))
    out[at + _U64(2)] = np.uint8(number >> _U64(16))
    out[at + _U64(3)] = np.uint8(number >> _U64(24))
    out[at + _U64(4)] = np.uint8(number >> _U64(32))
    out[at + _U64(5)] = np.uint8(number >> _U64(40))
    out[at + _U64(6)] = np.uint8(number >> _U64(48))
    out[at + _U64(7)] = np.uint8(number >> _U64(56))


@bare_code
def from_on(low: np.uint64, code: int) -> np.uint64:
    """The highest bit of each of eight bytes below 128 that is ``code`` or more."""
    return (low + ONES * _U64(128 - code)) & HIGH


@bare_code
def is_byte(low: np.uint64, code: int) -> np.uint64:
    """The highest bit of each of eight bytes below 128 that is ``code``."""
    return ~((low ^ (ONES * _U64(code))) + LOW) & HIGH
