"""Freshness and age of a collection over time, exact, from what was so and what was visited.

Rules of this file (Cho & Garcia-Molina's measures, for pages that come and go):
 1. A visit that was answered with a body (``Outcome.FETCHED``) leaves a copy of the version of that instant.
    A 304 leaves none: if the server lied, the old copy is kept and is stale.
 2. A page counts from its birth to its death. It is fresh while the last copy shows the current version.
 3. A page that has no copy yet is not fresh; its age counts from its birth.
 4. The age of a fresh page is 0; of a stale one, the time since its copy ceased to be current.
 5. A page that is gone no longer counts, noticed or not: :func:`deletions` tells how long we did not notice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.assess.scores.page_lifetimes import PageLifetimes
from recrawl.model import FloatArray, IntArray, Outcome, Visits
from recrawl.model.arrays import order_by, starts_of_runs


@dataclass(frozen=True, slots=True)
class FreshnessSeries:
    """Time averages over bins ``[edges[j], edges[j+1])`` and over all of them. NaN where no page existed."""

    edges: FloatArray
    fresh: FloatArray
    """Weighted share of pages whose copy is current, averaged over the bin."""
    age: FloatArray
    """Weighted mean age, averaged over the bin, seconds."""
    mean_fresh: float
    mean_age: float
    """Seconds."""


def freshness(
    truth: PageLifetimes, visits: Visits, edges: FloatArray, weight: FloatArray | None = None
) -> FreshnessSeries:
    """Freshness and age in each bin, as exact integrals, not samples.

    ``weight`` has one value a row of ``truth``. Visits to pages the truth does not know are ignored.
    O((m + v) log(m + v)) for m changes and v visits, whatever the number of bins.

    >>> truth = PageLifetimes.of([1], [0, 1], [6.0], birth=0.0)
    >>> freshness(truth, Visits.of([1], [2.0]), np.array([0.0, 4.0, 8.0])).fresh.tolist()
    [0.5, 0.5]
    """
    if len(edges) < 2 or not bool((np.diff(edges) > 0).all()):  # noqa: PLR2004 - a bin has two ends
        msg = "edges must be at least two ascending times"
        raise ValueError(msg)
    w = np.ones(len(truth)) if weight is None else weight
    row, start, stale, end = _spans(truth, visits)
    current = np.minimum(stale, end)
    alive = _bin_integrals(truth.birth, truth.death, edges, level=w)
    fresh = _bin_integrals(start, current, edges, level=w[row])
    # Age t − stale, as a line in t; where the span never goes stale it is empty.
    origin = np.where(stale < end, stale - edges[0], 0.0)
    aged = _bin_integrals(current, end, edges, level=-w[row] * origin, slope=w[row])
    with np.errstate(invalid="ignore"):
        return FreshnessSeries(
            edges, fresh / alive, aged / alive, float(fresh.sum() / alive.sum()), float(aged.sum() / alive.sum())
        )


@dataclass(frozen=True, slots=True)
class Deletions:
    """Pages that went away after we had a copy of them."""

    total: int
    noticed: int
    """Those of which a visit said ``Outcome.GONE`` before the page came back, if it did."""
    mean_delay: float
    """Seconds from the death to that visit, over the noticed ones; NaN if there are none."""


def deletions(truth: PageLifetimes, visits: Visits, end: float) -> Deletions:
    """Which deaths up to ``end`` were noticed by a visit up to ``end``, and how late.

    >>> truth = PageLifetimes.of([1, 2], [0, 0, 0], [], birth=0.0, death=5.0)
    >>> deletions(truth, Visits.of([1, 2, 2], [1.0, 1.0, 7.0], outcome=[0, 0, 3]), end=9.0)
    Deletions(total=2, noticed=1, mean_delay=2.0)
    """
    row = truth.row_of_visit(visits.page, visits.time)
    alive = truth.alive(row, visits.time)
    known = np.zeros(len(truth), dtype=np.bool_)
    known[row[alive & (visits.outcome == Outcome.FETCHED)]] = True
    died = known & (truth.death <= end)
    noticed_at = np.full(len(truth), np.inf)
    tells = (row >= 0) & ~alive & (visits.outcome == Outcome.GONE) & (visits.time <= end)
    np.minimum.at(noticed_at, row[tells], visits.time[tells])
    noticed = died & np.isfinite(noticed_at)
    delay = noticed_at[noticed] - truth.death[noticed]
    return Deletions(int(died.sum()), int(noticed.sum()), float(delay.mean()) if len(delay) else float("nan"))


def _spans(truth: PageLifetimes, visits: Visits) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """The lives cut at every copy: (row, start, when the copy of the span is stale, end).

    One more span a life comes before its first copy and is stale from its start.
    """
    row = truth.row_of_visit(visits.page, visits.time)
    copied = truth.alive(row, visits.time) & (visits.outcome == Outcome.FETCHED)
    row, time = row[copied], visits.time[copied]
    order = order_by(row, time) if len(row) else None
    if order is not None:
        row, time = row[order], time[order]
    opens = starts_of_runs(row)
    until = truth.death[row]
    until[:-1] = np.where(opens[1:], until[:-1], time[1:])
    first_copy = truth.death.copy()
    first_copy[row[opens]] = time[opens]
    return (
        np.concatenate([np.arange(len(truth)), row]),
        np.concatenate([truth.birth, time]),
        np.concatenate([truth.birth, truth.next_change(row, time)]),
        np.concatenate([first_copy, until]),
    )


def _bin_integrals(
    start: FloatArray, end: FloatArray, edges: FloatArray, level: FloatArray, slope: FloatArray | None = None
) -> FloatArray:
    """∫ over each bin of Σ_i (level_i + slope_i·(t − edges[0])) over the spans [start_i, end_i) that hold t.

    The integral up to x of one span is a quadratic in x from its start on, and the same one less from its end
    on: so three running sums over the sorted ends give it at every edge. O(n log n + bins·log n).
    """
    origin, last = edges[0], edges[-1] - edges[0]
    begin, stop = (np.clip(side - origin, 0.0, last) for side in (start, end))
    kept = begin < stop
    lift = np.zeros(len(level)) if slope is None else slope
    point = np.concatenate([begin[kept], stop[kept]])
    constant = np.concatenate([level[kept], -level[kept]])
    linear = np.concatenate([lift[kept], -lift[kept]])
    order = np.argsort(point)
    point, constant, linear = point[order], constant[order], linear[order]
    sums = np.zeros((3, len(point) + 1))
    np.cumsum(constant, out=sums[0, 1:])
    np.cumsum(linear, out=sums[1, 1:])
    np.cumsum(-point * (constant + linear * point / 2.0), out=sums[2, 1:])
    x = edges - origin
    first, second, offset = sums[:, np.searchsorted(point, x, side="right")]
    return np.diff(first * x + second * x * x / 2.0 + offset)
