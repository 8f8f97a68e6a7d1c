"""The entry point of the estimators that learn observation by observation: observations as columns, checked.

Gaps must be lengths of time. Histories guarantee it; columns from elsewhere may not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from recrawl.model import BoolArray, FloatArray, Histories, IntArray

CHANGES_PER_GAP = 4.5
"""Changes per gap. A page with this rate is found unchanged once in 90 gaps: higher rates cannot be distinguished."""


class PageGaps(NamedTuple):
    """Observations at some pages, in the order of time for each page; page i has ``gaps[first[i]:last[i]]``."""

    row: IntArray
    """The row each page has in a belief; no row twice, if not made by :meth:`each`. Shape (m,)."""
    first: IntArray
    """Where the observations of each page start. Shape (m,)."""
    last: IntArray
    """Where they end. Shape (m,)."""
    gaps: FloatArray
    """Seconds, > 0."""
    changed: BoolArray
    """Whether the observation that closes the gap found a change."""

    @classmethod
    def each(cls, row: IntArray, gap: FloatArray, changed: BoolArray) -> PageGaps:
        """Each observation by itself, for kernels that take them in the order given: rows may come again.

        O(n), no sorting.
        """
        place = np.arange(len(row) + 1)
        # views with gaps in memory would be compiled for again
        solid = np.ascontiguousarray
        return cls(solid(row), place[:-1], place[1:], solid(gap), solid(changed))

    @classmethod
    def of(cls, row: IntArray, gap: FloatArray, changed: BoolArray) -> PageGaps:
        """Observations with the pages in any order; those of one page in the order of time.

        O(n), if unordered O(n log n).
        """
        if len(row) > 1 and not bool((row[1:] >= row[:-1]).all()):
            order = np.argsort(row, kind="stable")
            row, gap, changed = row[order], gap[order], changed[order]
        heads = np.flatnonzero(np.diff(row, prepend=-1))
        return cls(row[heads], heads, np.append(heads[1:], len(row)), gap, changed)


def refuse_bad_gaps(histories: Histories) -> None:
    """Check that every gap is positive and finite. O(gaps), a small part of any fit.

    Raises:
        ValueError: a gap is not; the message names its page.
    """
    bad = _first_bad(histories.gaps)
    if bad is not None:
        row = int(np.searchsorted(histories.offsets, bad, side="right")) - 1
        raise ValueError(_complaint(f"page {int(histories.page[row])}", float(histories.gaps[bad])))


def refuse_bad_observations(rows: IntArray, gap: FloatArray, changed: BoolArray, pages: int) -> None:
    """The same for single observations; the message names the row of the page. O(observations).

    Raises:
        ValueError: a gap is not positive and finite, a row is not one of the ``pages``, or a column is shorter.
    """
    if not len(rows) == len(gap) == len(changed):
        raise ValueError(f"{len(rows)} rows, {len(gap)} gaps and {len(changed)} flags do not make observations")
    if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < pages:
        raise ValueError(f"observations of rows {int(rows.min())} to {int(rows.max())} of a belief of {pages} pages")
    bad = _first_bad(gap)
    if bad is not None:
        raise ValueError(_complaint(f"row {int(rows[bad])}", float(gap[bad])))


def _first_bad(gaps: FloatArray) -> int | None:
    if not len(gaps) or (float(gaps.min()) > 0.0 and float(gaps.max()) < np.inf):  # NaN fails both
        return None
    return int(np.argmin((gaps > 0.0) & (gaps < np.inf)))


def _complaint(where: str, gap: float) -> str:
    return f"{where} has a gap of {gap} seconds between two observations; gaps must be positive and finite"


def highest_identifiable_rate(histories: Histories) -> FloatArray:
    """The rate of each page, per second, above which its observations are all the same; infinity without any. O(gaps).

    If a page changed at every observation, the data give only a lower bound of its rate. Beyond ``CHANGES_PER_GAP``
    changes in its shortest gap, the belief is the prior and no finding.

    >>> from recrawl.model import Visits
    >>> visits = Visits.of([1, 1, 1], [0.0, 9.0, 12.0], verdict=[0, 2, 2])
    >>> highest_identifiable_rate(Histories.from_visits(visits)).tolist()
    [1.5]
    """
    out = np.full(len(histories), np.inf)
    rows = np.flatnonzero(histories.counts())
    if len(rows):
        out[rows] = CHANGES_PER_GAP / np.minimum.reduceat(histories.gaps, histories.offsets[rows])
    return out
