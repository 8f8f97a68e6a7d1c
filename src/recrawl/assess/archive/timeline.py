"""What happened when: observations and visits counted in bins of a natural length, and what each observation told.

How much was done over time: visits, changes found and failures in equal spans.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from recrawl.assess.archive.observations import Observations
from recrawl.model import ANSWERED, AnyArray, ByteArray, FloatArray, IntArray, Verdict, Visits
from recrawl.time import DAY, HOUR, MINUTE, WEEK

_LENGTHS = (
    *(1.0, 10.0, MINUTE, 10 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, WEEK, 2 * WEEK),
    *(30 * DAY, 91.3125 * DAY, 365.25 * DAY),
)


class ObservationResult(enum.IntEnum):
    """What an observation told."""

    FIRST = 0
    """The page as it was when we came."""
    CHANGED = 1
    """Something new, and be it that the page is not there any more."""
    UNCHANGED = 2
    """Nothing new: in hindsight the visit was wasted."""
    UNJUDGED = 3
    """There was an answer, and nothing to compare it with."""
    GONE = 4
    """The page is not there, and was not before, as far as we know."""


def told(observations: Observations) -> ByteArray:
    """The :class:`Told` of each observation. O(m).

    >>> from recrawl.model import Visits
    >>> observations = Observations.from_visits(Visits.of([7, 7, 7], [0.0, 4.0, 9.0], verdict=[0, 1, 2]))
    >>> [ObservationResult(one).name for one in told(observations)]
    ['FIRST', 'UNCHANGED', 'CHANGED']
    """
    changed = observations.says == Verdict.CHANGED
    says = np.select(
        [
            observations.gone & ~changed,
            observations.opens(),
            changed,
            observations.says == Verdict.UNCHANGED,
        ],
        [ObservationResult.GONE, ObservationResult.FIRST, ObservationResult.CHANGED, ObservationResult.UNCHANGED],
        ObservationResult.UNJUDGED,
    )
    return says.astype(np.uint8)


def bins(start: float, end: float, most: int = 60) -> FloatArray:
    """Edges of at most ``most`` bins of equal, natural length that hold everything from ``start`` to ``end``.

    Bins of a day start at midnight UTC; longer ones where the first of them starts.

    >>> (bins(90_000.0, 300_000.0, 5) / 86_400).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    span = end - start
    length = next((one for one in _LENGTHS if span / one <= most - 1), max(_LENGTHS[-1], span / max(most - 1, 1)))
    unit = min(length, DAY)
    first = np.floor(start / unit) * unit
    count = int(np.floor((end - first) / length)) + 1
    return np.asarray(first + length * np.arange(count + 1), np.float64)


def counts_over_time(time: FloatArray, label: AnyArray, labels: int, edges: FloatArray) -> IntArray:
    """How many of each label fall into each bin ``[edges[j], edges[j+1])``. Shape (labels, bins). O(m log bins).

    >>> counts_over_time(np.array([0.0, 1.0, 1.5]), np.array([1, 0, 0]), 2, np.array([0.0, 1.0, 2.0])).tolist()
    [[0, 2], [1, 0]]
    """
    count = len(edges) - 1
    place = np.searchsorted(edges, time, side="right") - 1
    inside = (place >= 0) & (place < count)
    key = label[inside].astype(np.int64) * count + place[inside]
    return np.bincount(key, minlength=labels * count).reshape(labels, count).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Activity:
    """Visits counted by span of time."""

    edges: FloatArray
    """Where spans start and end, seconds since the epoch; one more than there are spans."""
    visits: IntArray
    changed: IntArray
    """Those that found a change."""
    failed: IntArray
    """Those that told nothing."""


def activity(visits: Visits, spans: int = 48) -> Activity:
    """Visits in equal spans from the first to the last; the last one belongs to the last span. O(visits).

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
