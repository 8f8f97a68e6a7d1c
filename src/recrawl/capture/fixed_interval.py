"""Capture and observation both fixed: the hottest page next to the middle of the observation (SHARC 4.3.3)."""

from __future__ import annotations

import numpy as np

from recrawl.capture.pyramid import heat
from recrawl.model import CapturePlan, FloatArray


def around_middle(
    rate: FloatArray, visit_time: FloatArray, start: float, end: float, weight: FloatArray | None = None
) -> CapturePlan:
    """Which page to visit in which slot, for slots at given times and an observation from ``start`` to ``end``.

    The penalty of a visit grows with its distance from the middle of the observation, on either side alike, so the
    hottest page goes to the nearest slot (reading 003.7); of two equally near, to the later one. No order has less
    blur. O(n log n), times in seconds. With slots centred on the observation these are organ pipes.

    >>> around_middle(np.array([0.1, 0.2, 0.3]), np.array([0.0, 1.0, 2.0]), 0.0, 10.0).visit.tolist()
    [0, 1, 2]
    """
    nearest = np.lexsort((-visit_time, np.abs(visit_time - (start + end) / 2.0)))
    hottest = np.argsort(heat(rate, weight), kind="stable")[::-1]
    visit = np.empty(len(rate), dtype=np.int64)
    visit[hottest] = nearest
    return CapturePlan(visit)
