"""What numbers of shingles are made by, the same in numpy and in machine code: to change it is to change them all."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

WIDTH = 10
"""Words in a shingle."""

Shingles = npt.NDArray[np.uint32]
"""Numbers of a text's shingles, ascending, each once."""

_U64 = np.uint64
BASE, STEP = _U64(0x9E37_79B9_7F4A_7C15), _U64(0xD6E8_FEB8_6659_FD93)
MIX = (_U64(0xBF58_476D_1CE4_E5B9), _U64(0x94D0_49BB_1331_11EB))
LONGEST = 64
"""Bytes of a word after which the powers of its hash begin anew."""
SPACES = np.zeros(256, dtype=np.bool_)
SPACES[[9, 10, 11, 12, 13, 32]] = True
OLDEST = np.cumprod(np.full(WIDTH - 1, STEP, dtype=np.uint64), dtype=np.uint64)[-1]
"""What the oldest word of a shingle is multiplied by."""
