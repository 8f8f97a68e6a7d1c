"""What happened when: looks and visits counted in bins of a natural length, and what each look told."""

from __future__ import annotations

import enum

import numpy as np

from recrawl.assess.looks import Looks
from recrawl.model import AnyArray, ByteArray, FloatArray, IntArray, Verdict
from recrawl.time import DAY, HOUR, MINUTE, WEEK

_LENGTHS = (
    *(1.0, 10.0, MINUTE, 10 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, WEEK, 2 * WEEK),
    *(30 * DAY, 91.3125 * DAY, 365.25 * DAY),
)


class Told(enum.IntEnum):
    """What a look told."""

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


def told(looks: Looks) -> ByteArray:
    """The :class:`Told` of each look. O(m).

    >>> from recrawl.model import Visits
    >>> looks = Looks.from_visits(Visits.of([7, 7, 7], [0.0, 4.0, 9.0], verdict=[0, 1, 2]))
    >>> [Told(one).name for one in told(looks)]
    ['FIRST', 'UNCHANGED', 'CHANGED']
    """
    changed = looks.says == Verdict.CHANGED
    says = np.select(
        [
            looks.gone & ~changed,
            looks.opens(),
            changed,
            looks.says == Verdict.UNCHANGED,
        ],
        [Told.GONE, Told.FIRST, Told.CHANGED, Told.UNCHANGED],
        Told.UNJUDGED,
    )
    return says.astype(np.uint8)


def bins(start: float, end: float, most: int = 60) -> FloatArray:
    """Edges of at most ``most`` bins of equal, natural length that hold everything from ``start`` to ``end``.

    Bins of a day begin at midnight UTC; longer ones where the first of them begins.

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
