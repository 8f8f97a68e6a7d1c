r"""Ranking: which pages are worth most now, of all there are.

The index of a page is w·U(t)/c, t after its last look: the highest price at which it would be visited. Taking the best
of all pages at each tick spends any budget where it is worth most, without a price (algorithms §3). For known rates one
pass in machine code values ten million pages in a fraction of a second; beliefs are valued by ``due.Demand.worth``.
"""

from __future__ import annotations

import math

import numpy as np

from recrawl.model import FloatArray, IntArray
from recrawl.model.compiled import can_compile, compiled
from recrawl.schedule.objectives import Objective, basics_of

_SAMPLE = 4_096
"""Pages that say about how high the best are."""
_MARGIN = 4.0
"""Standard deviations by which their word is doubted."""
_SMALL = 0.02


def index(
    objective: Objective, rate: FloatArray, importance: FloatArray, cost: FloatArray, elapsed: FloatArray
) -> FloatArray:
    """The index of pages with known rates, ``elapsed`` seconds after their last looks. O(pages).

    >>> from recrawl.schedule.objectives import Freshness
    >>> one = np.ones(1)
    >>> index(Freshness(), 0.1 * one, 2 * one, one, 10 * one).round(12).tolist()
    [5.284822353142]
    """
    basics = basics_of(objective)
    if can_compile() and basics is not None:
        out = np.empty(len(rate))
        _index_compiled(rate, importance, cost, elapsed, np.array(basics), out)
        return out
    from recrawl.estimate.point import PointBelief

    return importance * objective.value(PointBelief(rate), elapsed) / cost


def best(values: FloatArray, most: int) -> IntArray:
    """The places of the ``most`` highest values, highest first; of equal ones the first places. O(n + most log most).

    A sample says about how high they are; only what is above that is looked at closely.

    >>> best(np.array([0.5, 2.0, 1.0, 2.0]), 3).tolist()
    [1, 3, 2]
    """
    n, most = len(values), min(max(most, 0), len(values))
    rows = None
    if most and n > 16 * _SAMPLE:
        share = most / n
        keep = share + _MARGIN * math.sqrt(share / _SAMPLE) + _MARGIN / _SAMPLE
        if keep < 0.5:  # noqa: PLR2004 - else hardly anything is left out
            sample = np.sort(values[:: n // _SAMPLE])
            rows = np.flatnonzero(values >= sample[int((1.0 - keep) * len(sample))])
    if rows is None or len(rows) < most:
        rows = np.arange(n)
    found = values[rows]
    if most < len(rows):
        edge = np.partition(found, len(rows) - most)[len(rows) - most] if most else math.inf
        above, equal = np.flatnonzero(found > edge), np.flatnonzero(found == edge)
        chosen = np.concatenate([above, equal[: most - len(above)]])
        rows, found = rows[chosen], found[chosen]
    return np.asarray(rows[np.lexsort((rows, -found))])


@compiled
def _index_compiled(  # noqa: PLR0913, PLR0917 - a kernel takes plain arrays
    rate: FloatArray,
    importance: FloatArray,
    cost: FloatArray,
    elapsed: FloatArray,
    basics: FloatArray,
    out: FloatArray,
) -> None:
    for i in range(len(rate)):
        x = rate[i] * elapsed[i]
        if not x > 0:
            out[i] = 0.0
            continue
        rest = math.exp(-x)
        if x < _SMALL:
            g = x * x * (0.5 - x * (1 / 3 - x * (0.125 - x * (1 / 30 - x * (1 / 144 - x / 840)))))
            h = x * x * (0.5 - x * (1 / 6 - x * (1 / 24 - x * (1 / 120 - x * (1 / 720 - x / 5040)))))
            aged = x * x * x * (1 / 3 - x * (0.125 - x * (1 / 30 - x * (1 / 144 - x / 840))))
        else:
            h = x - 1.0 + rest
            g = x * (1.0 - rest) - h
            aged = 0.5 * x * x - g
        per_rate = (basics[0] * g + basics[2] * h + basics[3] * aged / rate[i] + basics[4] * 0.5 * x * x) / rate[i]
        out[i] = importance[i] / cost[i] * (per_rate + basics[1] * g)
