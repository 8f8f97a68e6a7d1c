"""Known change times told as looks, so that every estimator understands them.

A look says "changed at some time since the look before". Who knows the time of a change knows more: that nothing
changed between it and the look. Both can be told by splitting the gap: a moment that ends in a change, and a quiet
rest. Up to a constant the likelihood of that is λ·e^{−λτ}, the exact one (algorithms §5).
"""

from __future__ import annotations

import numpy as np

from recrawl.model import BoolArray, FloatArray, Histories, IntArray
from recrawl.model.arrays import offsets_of

MOMENT = 1.0
"""Seconds in which a change of known time is taken to have happened."""


def as_watched(histories: Histories, exact: BoolArray) -> Histories:
    """Exact logs as looks: nothing had changed a moment before each change, and then it had.

    ``exact[i]`` tells whether the changes of row i were logged. A log names each change, so a gap that ends in one was
    quiet until then. Taken for an ordinary look, a log would make every page seem to change without end. O(gaps).
    """
    split = np.flatnonzero(exact[histories.row_of_gap()] & histories.changed)
    if not len(split):
        return histories
    moment = np.minimum(MOMENT, histories.gaps[split] / 2.0)
    return _retold(histories, split, (histories.gaps[split] - moment, moment), (False, True))


def as_dated(histories: Histories, gap: IntArray, age: FloatArray) -> Histories:
    """Changed gaps of which the last change is known, as looks: a moment with that change, and a quiet ``age``.

    ``gap`` are the positions of such gaps, each once; ``age`` the seconds from the last change to the look that closed
    it. What was before that change within the gap nobody knows, so it is told of no more. O(gaps).
    """
    if not len(gap):
        return histories
    order = np.argsort(gap)
    moment = np.full(len(gap), MOMENT)
    return _retold(histories, gap[order], (moment, np.maximum(age[order], MOMENT)), (True, False))


def _retold(
    histories: Histories, split: IntArray, lengths: tuple[FloatArray, FloatArray], changed: tuple[bool, bool]
) -> Histories:
    """The histories with each gap at ``split`` (ascending) replaced by two of these lengths and flags."""
    pieces = np.ones(len(histories.gaps), dtype=np.int64)
    pieces[split] = 2
    last = np.cumsum(pieces) - 1
    gaps, flags = np.repeat(histories.gaps, pieces), np.repeat(histories.changed, pieces)
    for place, length, flag in zip((last[split] - 1, last[split]), lengths, changed, strict=True):
        gaps[place], flags[place] = length, flag
    offsets = offsets_of(np.repeat(histories.row_of_gap(), pieces), len(histories))
    times = histories.first_visit, histories.last_visit, histories.last_change
    return Histories(histories.page, offsets, gaps, flags, *times)
