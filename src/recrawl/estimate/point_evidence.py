"""What every point estimator asks of its evidence first: sound gaps, and a rate for pages that have none."""

from __future__ import annotations

import numpy as np

from recrawl.estimate.empirical_bayes import UNKNOWN_RATE
from recrawl.model import FloatArray, Histories
from recrawl.model.arrays import offsets_of


def sound(histories: Histories) -> Histories:
    """The histories, if every gap is a number > 0 and finite; gaps of length 0 are dropped (reading 000.3).

    Two looks at the same instant can tell nothing about a rate. A gap that is negative, infinite or no number is a
    mistake of whoever made the histories: ValueError, with the id of the page. O(gaps).

    >>> zero_and_five = Histories(np.array([7]), np.array([0, 2]), np.array([0.0, 5.0]), np.array([True, False]),
    ...                           np.zeros(1), np.full(1, 5.0), np.full(1, np.nan))
    >>> sound(zero_and_five).gaps.tolist()
    [5.0]
    """
    gaps = histories.gaps
    if not len(gaps) or (float(gaps.min()) > 0.0 and float(gaps.max()) < np.inf):  # NaN fails both
        return histories
    bad = np.flatnonzero(~((gaps >= 0.0) & (gaps < np.inf)))
    if len(bad):
        page = int(histories.page[histories.row_of_gap()[bad[0]]])
        msg = f"page {page} has a gap of {gaps[bad[0]]} seconds; gaps are finite and not negative"
        raise ValueError(msg)
    keep = gaps > 0.0
    offsets = offsets_of(histories.row_of_gap()[keep], len(histories))
    times = histories.first_visit, histories.last_visit, histories.last_change
    return Histories(histories.page, offsets, gaps[keep], histories.changed[keep], *times)


def pooled_rate(histories: Histories) -> float:
    """One rate for all pages together, per second: what a point estimator says of a page it knows nothing of.

    Eq. 4 over all looks at all pages, with half a change added, so that it is neither 0 nor infinite:
    −ln((n − X + ½)/(n + 1))·n/T. Without a single look it is one change in 30 days. O(gaps).
    """
    looks = len(histories.gaps)
    if not looks:
        return UNKNOWN_RATE
    changes, observed = int(histories.changed.sum()), float(histories.gaps.sum())
    return float(-np.log((looks - changes + 0.5) / (looks + 1.0)) * looks / observed)


def filled(rates: FloatArray, histories: Histories) -> FloatArray:
    """The rates, with the pooled rate of the histories where they are NaN."""
    unknown = np.isnan(rates)
    return np.where(unknown, pooled_rate(histories), rates) if bool(unknown.any()) else rates
