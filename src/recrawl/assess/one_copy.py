"""How sharp one copy of one page is: what :mod:`recrawl.assess.sharpness` says, without arrays.

A server answers for one copy at a time, and most pages have a few looks. To make arrays of ten looks takes longer than
to go through them one by one, so that is done here: the rules are those of :mod:`recrawl.assess.looks`, the expected
changes those of :mod:`recrawl.assess.expected_changes`, and tests hold both ways against each other.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import NamedTuple

import numpy as np

from recrawl.assess.sharpness import Sharpness
from recrawl.model import ANSWERED, ChangeKind, Outcome, Verdict, Visits

_EXACT, _GONE = int(ChangeKind.EXACT), int(Outcome.GONE)
_UNKNOWN, _UNCHANGED, _CHANGED = int(Verdict.UNKNOWN), int(Verdict.UNCHANGED), int(Verdict.CHANGED)

FEW_LOOKS = 200
"""Up to so many looks at a page it takes less time to go through them one by one."""


class PageLooks(NamedTuple):
    """The looks at one page, by time."""

    time: list[float]
    """Seconds since the epoch."""
    says: list[int]
    """:class:`~recrawl.model.Verdict` on the time since the look before."""
    exact: list[bool]
    """Whether the change happened at that very time."""
    gone: bool
    """Whether there was no such page at the last look."""


def looks_of_one(visits: Visits) -> PageLooks:
    """The looks among the visits of one page, which come by time, each once. O(v)."""
    times: list[float] = []
    says: list[int] = []
    exact: list[bool] = []
    gone = False
    columns = (visits.time, visits.outcome, visits.verdict, visits.kinds)
    for time, outcome, verdict, kinds in zip(*(column.tolist() for column in columns), strict=True):
        if outcome > ANSWERED and verdict == _UNKNOWN:
            continue
        away = outcome == _GONE
        said = verdict if away == gone else _CHANGED
        times.append(time)
        says.append(said if len(times) > 1 else _UNKNOWN)
        exact.append(says[-1] == _CHANGED and kinds & _EXACT != 0)
        gone = away
    return PageLooks(times, says, exact, gone)


def sharpness_of_one(looks: PageLooks, rate: float, time: float, at: float, *, readable: bool) -> Sharpness:
    """What is known of the copy that was made at a time, for the moment asked for. O(m).

    ``rate`` is that of the page, per second, NaN if unknown; ``readable`` whether the bytes of the copy can be read.

    >>> looks = looks_of_one(Visits.of([7, 7, 7], [0.0, 8.0, 16.0], verdict=[0, 1, 2]))
    >>> found = sharpness_of_one(looks, 0.5, 16.0, 18.0, readable=True)
    >>> found.proved().tolist(), found.expected.tolist(), found.away().tolist()
    ([False], [1.0], [-2.0])
    """
    first, last = _validity(looks, time)
    if first <= at <= last:
        expected = 0.0
    elif math.isnan(rate) or not looks.time:
        expected = math.nan
    else:
        expected = abs(_expected(looks, rate, at) - _expected(looks, rate, time))
    columns = [np.array([value]) for value in (at, time, first, last, expected)]
    return Sharpness(columns[0], columns[1], columns[2], columns[3], columns[4], np.array([readable]))


def _validity(looks: PageLooks, time: float) -> tuple[float, float]:
    """From when to when the version of the copy is known to have been valid; its own instant if it is no look."""
    first = last = bisect_left(looks.time, time)
    if first == len(looks.time) or looks.time[first] != time:
        return time, time
    while looks.says[first] == _UNCHANGED:
        first -= 1
    while last + 1 < len(looks.time) and looks.says[last + 1] == _UNCHANGED:
        last += 1
    if last + 1 < len(looks.time) and looks.exact[last + 1]:
        return looks.time[first], math.nextafter(looks.time[last + 1], -math.inf)
    return looks.time[first], looks.time[last]


def _expected(looks: PageLooks, rate: float, until: float) -> float:
    """N at a time: the changes expected since the first look; negative before it."""
    before, level = looks.time[0], 0.0
    if until < before:
        return rate * (until - before)
    for time, said, exact in zip(looks.time[1:], looks.says[1:], looks.exact[1:], strict=True):
        gap = time - before
        if said == _UNCHANGED or exact:
            pace = 0.0
        elif said == _CHANGED:
            share = -math.expm1(-rate * gap)  # 1 − e^{−λG}
            pace = rate / share if share > 0.0 else 1.0 / gap
        else:
            pace = rate
        if until < time:
            return level + pace * (until - before)
        level += pace * gap + exact
        before = time
    return level + (0.0 if looks.gone else rate) * (until - before)
