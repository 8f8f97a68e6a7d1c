"""What the looks at each page tell at a glance: when it last changed, when it was last there, and how often."""

from __future__ import annotations

import numpy as np

from recrawl.assess.looks import Looks
from recrawl.model import BoolArray, FloatArray, IntArray, Verdict


def last_change(looks: Looks) -> FloatArray:
    """When each page was last found changed, seconds since the epoch; NaN if never. O(m).

    >>> from recrawl.model import Visits
    >>> looks = Looks.from_visits(Visits.of([1, 1, 1, 2], [0.0, 4.0, 9.0, 9.0], verdict=[0, 2, 1, 0]))
    >>> last_change(looks).tolist(), last_there(looks).tolist(), times_there(looks).tolist()
    ([4.0, nan], [9.0, 9.0], [3, 1])
    """
    return _last(looks, looks.says == Verdict.CHANGED)


def last_there(looks: Looks) -> FloatArray:
    """When a look last found each page, not that it is gone; NaN if never. O(m)."""
    return _last(looks, ~looks.gone)


def times_there(looks: Looks) -> IntArray:
    """How many looks found each page. O(m)."""
    return np.bincount(looks.row_of_look()[~looks.gone], minlength=len(looks)).astype(np.int64)


def _last(looks: Looks, which: BoolArray) -> FloatArray:
    found = np.full(len(looks), np.nan)
    found[looks.row_of_look()[which]] = looks.time[which]  # by time in a row: the last stands
    return found
