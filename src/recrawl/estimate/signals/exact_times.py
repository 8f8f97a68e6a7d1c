"""Known change times as observations, so that every estimator can use them.

An observation means "changed at some time since the observation before". A known time of change adds that nothing
changed between it and the observation. Both are expressed by splitting the gap: a moment that ends in a change,
and a quiet rest. Up to a constant the likelihood of that is λ·e^{−λτ}, the exact one (algorithms §5).

Exact change times: the rate is N changes over the time T (SHARC 6.2; git histories, feeds and other complete logs).

The thesis counts changes in slots of Δ and divides by their number; divided by Δ it is N/T (reading 003.37).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recrawl.model import ANSWERED, BoolArray, ChangeKind, FloatArray, Histories, IntArray, Outcome, Verdict, Visits
from recrawl.model.arrays import offsets_of, starts_of_runs

MOMENT = 1.0
"""Seconds in which a change of known time is taken to have happened."""


def is_exact(visits: Visits) -> BoolArray:
    """Which visits are changes of known time: somebody logged them (``ChangeKind.EXACT``)."""
    return np.asarray((visits.verdict == Verdict.CHANGED) & ((visits.kinds & np.uint16(ChangeKind.EXACT)) != 0))


def exact_times_as_observations(visits: Visits) -> Visits:
    """Exact changes as observations: a moment before each of them one that found the page as it had been.

    A log names each change, so nothing changed between an exact change and the visit before it. Taken for ordinary
    observations, visits made only at changes would make any page seem to change without end. Anyone who learns from
    visits (estimators and policies alike) receives them in this form, so that all have the same beliefs.

    The visit that opens the history of a page says nothing about change, so nothing is put before it. Visits that are
    not exact stay as they are. The answer is sorted by page and time where anything is added. O(n log n), O(n) if
    sorted; ``visits`` itself where nothing is exact.
    """
    if not bool(is_exact(visits).any()):
        return visits
    told = visits.sorted()
    before = np.diff(told.time, prepend=-np.inf)
    at = np.flatnonzero(is_exact(told) & ~starts_of_runs(told.page) & (before > 0))
    was = told.outcome[at - 1]
    silent = Visits.of(
        told.page[at],
        told.time[at] - np.minimum(MOMENT, before[at] / 2.0),
        outcome=np.where(was <= ANSWERED, was, Outcome.FETCHED),  # the page was there, or gone
        verdict=Verdict.UNCHANGED,
    )
    return Visits.concatenate([told, silent]).sorted()


def as_dated(histories: Histories, gap: IntArray, age: FloatArray) -> Histories:
    """Changed gaps of which the last change is known, as observations: a moment with that change, and a quiet ``age``.

    ``gap`` are the positions of such gaps, each once; ``age`` the seconds from the last change to the observation that
    closed it. What was before that change within the gap nobody knows, so it is told of no more. O(gaps).
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


def rate(changes: npt.ArrayLike, observed: npt.ArrayLike) -> FloatArray:
    """N/T per unit of ``observed``; NaN where nothing was observed.

    >>> rate(11, 40.0).tolist()
    0.275
    """
    n, t = np.asarray(changes, dtype=np.float64), np.asarray(observed, dtype=np.float64)
    return np.asarray(np.divide(n, t, out=np.full(np.broadcast(n, t).shape, np.nan), where=t > 0))
