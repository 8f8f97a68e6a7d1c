"""Look back, look around: the few features that carry almost all information about new links (paper 004).

*Back*: the new links of the page in the last periods, and their mean. *Around*: the same of its related pages, and
their link change rate, weighted by similarity.

Time up to a given moment is divided into periods of equal length. A table of counts has a row per page and a column per
period, the oldest first; NaN marks an unknown period. A page that was not known when the period started has no count,
because all its links would be new.

The counts end with the last known period. Paper 004 takes the change rate of related pages over all periods, including
the predicted one (reading 004.2), so pages that appear together leak each other's future. That form exists only for
reproduction, and needs the counts of that period as an argument.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.model import AnyArray, BoolArray, FloatArray, IntArray
from recrawl.predict.page_versions import PageVersions, picked
from recrawl.predict.related_pages import RelatedPages


@dataclass(frozen=True, slots=True)
class LinkPeriods:
    """``count`` periods of ``length`` seconds each, the last of which ends just before ``end``."""

    end: float
    length: float
    count: int

    @property
    def edges(self) -> FloatArray:
        """The start of each period, oldest first, and the end of the last. Shape (count + 1,)."""
        return self.end - self.length * np.arange(self.count, -1, -1.0)


@dataclass(frozen=True, slots=True)
class PeriodCounts:
    """What happened on n pages in each period. All of shape (n, periods); NaN if not known."""

    new_internal: FloatArray
    """New links within the site, summed over the observations of the period."""
    new_external: FloatArray
    changed: FloatArray
    """1 if an observation of the period found other content, else 0."""

    def new_links(self, *, internal: bool) -> FloatArray:
        """The counts of one kind of links."""
        return self.new_internal if internal else self.new_external


def period_counts(versions: PageVersions, page: IntArray, periods: LinkPeriods) -> PeriodCounts:
    r"""What the observations of each period found on each of these ascending page ids. O(rows + pages · periods).

    A count is |N(tᵢ₊₁) \ N(tᵢ)| (paper 004, §5.1) if the period has one observation; the counts of several observations
    are summed, so a link that goes and comes back within the period counts again. Unless the versions are ``complete``,
    a period without an observation is unknown; new links count for the period of the observation that finds them.
    """
    edges = periods.edges
    row = np.searchsorted(page, versions.page)
    period = np.searchsorted(edges, versions.time, side="right") - 1
    inside = (period >= 0) & (period < periods.count)
    cell = (row * periods.count + period)[inside]
    shape = (len(page), periods.count)
    known = _known(versions, page, edges)
    if not versions.complete:
        known &= np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape) > 0

    def total(column: AnyArray) -> FloatArray:
        # An observation that could not count leaves its whole period unknown: NaN spreads through the sum.
        summed = np.bincount(cell, column[inside].astype(np.float64), minlength=shape[0] * shape[1])
        return np.where(known, summed.reshape(shape), np.nan)

    changes = total(versions.changed)
    return PeriodCounts(
        total(versions.new_internal), total(versions.new_external), np.where(known, changes > 0, np.nan)
    )


def _known(versions: PageVersions, page: IntArray, edges: FloatArray) -> BoolArray:
    """Whether a page had been observed before a period started."""
    first = picked(versions.time, _first_row(versions, page))
    return np.asarray(first[:, None] < edges[None, :-1])


def _first_row(versions: PageVersions, page: IntArray) -> IntArray:
    starts = versions.offsets(page)
    return np.where(starts[1:] > starts[:-1], starts[:-1], -1)


@dataclass(frozen=True, slots=True)
class LinkTargets:
    """What is to be predicted of each page for the last period of a table of counts. NaN where that is unknown."""

    number: FloatArray
    """NNL: new links in the last period."""
    presence: FloatArray
    """NL: 1 if there is any, else 0."""
    change_rate: FloatArray
    """LCR: share of the known periods with new links, the last included (reading 004.1)."""


def link_targets(counts: FloatArray) -> LinkTargets:
    """The targets of paper 004 (§5.1) from counts of new links, shape (pages, periods).

    >>> link_targets(np.array([[1.0, 1, 1, 2, 0, 2, 1, 3]])).change_rate.tolist()
    [0.875]
    """
    last = counts[:, -1]
    return LinkTargets(last, np.where(np.isnan(last), np.nan, last > 0), change_rate(counts))


def change_rate(counts: FloatArray) -> FloatArray:
    """The share of the known periods of each page in which the count is not 0; NaN if none is known."""
    return mean_known(np.where(np.isnan(counts), np.nan, counts > 0))


def mean_known(values: FloatArray) -> FloatArray:
    """The mean of the known values of each row; NaN where none is known.

    >>> mean_known(np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan]])).tolist()
    [2.0, nan]
    """
    known = ~np.isnan(values)
    count = known.sum(axis=1)
    total = np.where(known, values, 0.0).sum(axis=1)
    return np.asarray(np.divide(total, count, out=np.full(len(values), np.nan), where=count > 0))


def lags(counts: FloatArray, history: int) -> FloatArray:
    """The last ``history`` columns, the latest first; NaN where there are not N. Shape (pages, history).

    >>> lags(np.array([[1.0, 2.0, 3.0]]), 2).tolist()
    [[3.0, 2.0]]
    """
    found = np.full((len(counts), history), np.nan)
    held = min(history, counts.shape[1])
    found[:, :held] = counts[:, ::-1][:, :held]
    return found


HISTORY = 8
"""Number of past periods in paper 004."""


@dataclass(frozen=True, slots=True)
class LookBackLookAround:
    """The LBLA features of n pages for one kind of links."""

    back: FloatArray
    """New links of the page, the latest period first. Shape (n, history)."""
    back_mean: FloatArray
    around: FloatArray
    """New links of the related pages. Shape (n, history)."""
    around_mean: FloatArray
    around_change_rate: FloatArray


def look_back_look_around(
    past: FloatArray, related: RelatedPages, *, history: int = HISTORY, literal: FloatArray | None = None
) -> LookBackLookAround:
    """The features from counts of the past, shape (n, periods), the oldest first. O(n k history).

    Args:
        past: new links in each past period; NaN where unknown.
        related: the related pages of each page.
        history: number of past periods.
        literal: counts that include the period to be predicted, for the change rate of related pages as the paper
            has it. It leaks the future: for reproduction only.
    """
    back = lags(past, history)
    rates = change_rate(past if literal is None else literal)
    near = related.mean_of(np.column_stack([back, rates]))
    around, around_rate = near[:, :-1], near[:, -1]
    return LookBackLookAround(back, mean_known(back), around, mean_known(around), around_rate)
