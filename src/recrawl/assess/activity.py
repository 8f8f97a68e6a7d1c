"""How much was done over time: visits, changes found and failures in equal spans."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.model import ANSWERED, FloatArray, IntArray, Verdict, Visits


@dataclass(frozen=True, slots=True)
class Activity:
    """Visits counted by span of time."""

    edges: FloatArray
    """Where spans begin and end, seconds since the epoch; one more than there are spans."""
    visits: IntArray
    changed: IntArray
    """Those that found a change."""
    failed: IntArray
    """Those that told nothing."""


def activity(visits: Visits, spans: int = 48) -> Activity:
    """Visits in so many equal spans from the first to the last; the last one belongs to the last span. O(visits).

    >>> seen = activity(Visits.of(page=np.array([1, 1, 2]), time=np.array([0.0, 50.0, 100.0])), spans=2)
    >>> seen.edges.tolist(), seen.visits.tolist()
    ([0.0, 50.0, 100.0], [1, 2])
    """
    if not len(visits):
        nothing = np.empty(0, np.int64)
        return Activity(np.empty(0), nothing, nothing, nothing)
    first, last = float(visits.time.min()), float(visits.time.max())
    edges = np.linspace(first, max(last, first + spans), spans + 1)
    changed, failed = visits.verdict == Verdict.CHANGED, visits.outcome > ANSWERED
    counts = (np.histogram(visits.time[which], edges)[0] for which in (slice(None), changed, failed))
    return Activity(edges, *(np.asarray(count, np.int64) for count in counts))
