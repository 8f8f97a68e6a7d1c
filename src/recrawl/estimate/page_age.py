"""The age of a page: young pages are edited, old ones rest. The strongest regularity of real histories (algorithms §7).

The rate falls by steps with the age of the page; the steps are learned from all pages together, beginning with what
the histories of 25 sites said. A page that was there when the collection began, or that came with an import, has an
age that nobody knows: such pages are a step of their own, which begins as that of the oldest.
"""

from __future__ import annotations

import numpy as np

from recrawl.estimate.operational_learning import StepCounts
from recrawl.model import FloatArray
from recrawl.time import DAY

EDGES = np.array([7.0, 30.0, 90.0, 365.0, 3 * 365.0]) * DAY
"""Up to a week, a month, three months, a year, three years, and older."""
PRIOR = np.array([32.0, 4.3, 2.1, 1.0, 0.58, 0.36, 0.36])
"""Rates relative to that of a page in the rest of its first year; at last that of pages of unknown age."""
STRENGTH = 10.0
"""Changes on a step that outweigh the prior."""
_MANY = 20
_SHARE = 0.05


def nothing_seen() -> StepCounts:
    """The prior, before any look."""
    return StepCounts.of(EDGES, PRIOR, STRENGTH, usual=3)


def known_births(discovered: FloatArray, start: float) -> FloatArray:
    """When each page appeared, NaN where that says nothing about its age. O(n log n).

    Pages found up to a day after ``start`` were there before; those of a day on which at least 20 pages and 5 % of all
    pages known by its end appear came with an import. A day is judged by what was known when it ended: pages found
    later change nothing.

    >>> known_births(np.array([0.0, 40 * DAY]), start=0.0).tolist()
    [nan, 3456000.0]
    """
    out = np.where(np.isfinite(discovered) & (discovered >= start + DAY), discovered, np.nan)
    found = np.flatnonzero(np.isfinite(discovered))
    day = np.floor(discovered[found] / DAY)
    _, which, pages = np.unique(day, return_inverse=True, return_counts=True)
    imported = pages >= np.maximum(_MANY, _SHARE * np.cumsum(pages))
    out[found[imported[which]]] = np.nan
    return np.asarray(out)
