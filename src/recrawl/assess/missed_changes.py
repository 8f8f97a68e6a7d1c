r"""Changes that nobody saw: those that are certain, and those that are to be expected.

*Certainly missed* is a change that a site dated itself (in a sitemap, a feed or a header) and whose version was
replaced by a later one, dated as well, before anybody looked. It happened, and its version is lost, if the site tells
the truth about its own changes. Changes before the first look at a page do not count: nobody was there to miss them.

*Expected* are the changes that hide behind others: a look that finds a page changed after a time G counts once, and at
the rate λ there were λG/(1 − e^{−λG}) changes on average, given that there was one.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from recrawl.assess.looks import Looks
from recrawl.model import FloatArray, IntArray, Verdict
from recrawl.model.arrays import ragged_search, starts_of_runs


def certainly_missed(looks: Looks, page: IntArray, said: FloatArray, dated: FloatArray) -> IntArray:
    """How many changes of each page were dated by its site and replaced before a look. O((m + k) log(m + k)).

    ``page[i]`` was said at ``said[i]`` to have changed at ``dated[i]``. A date later than when it was said is not true
    and does not count; the same date told twice is one change.

    >>> from recrawl.model import Visits
    >>> looks = Looks.from_visits(Visits.of([7, 7], [0.0, 9.0], verdict=[0, 2]))
    >>> certainly_missed(looks, np.array([7, 7]), np.array([4.0, 9.0]), np.array([3.0, 6.0])).tolist()
    [1]
    """
    missed = np.zeros(len(looks), np.int64)
    row, dated = _while_watched(looks, page, said, dated)
    replaced = np.append(row[1:] == row[:-1], np.zeros(min(len(row), 1), np.bool_))
    version = np.flatnonzero(replaced)
    before, after = (
        ragged_search(looks.offsets, looks.time, row[version], dated[end], after_equal=False)
        for end in (version, version + 1)
    )
    np.add.at(missed, row[version[after == before]], 1)
    return missed


def dated_changes(looks: Looks, page: IntArray, said: FloatArray, dated: FloatArray) -> IntArray:
    """How many changes of each page its site dated after the first look at it: those that could be missed.

    Arguments as for :func:`certainly_missed`. O((m + k) log(m + k)).

    >>> from recrawl.model import Visits
    >>> looks = Looks.from_visits(Visits.of([7, 7], [2.0, 9.0], verdict=[0, 2]))
    >>> dated_changes(looks, np.full(4, 7), np.full(4, 8.0), np.array([1.0, 4.0, 4.0, 30.0])).tolist()
    [1]
    """
    row, _ = _while_watched(looks, page, said, dated)
    return np.bincount(row, minlength=len(looks)).astype(np.int64)


def _while_watched(looks: Looks, page: IntArray, said: FloatArray, dated: FloatArray) -> tuple[IntArray, FloatArray]:
    """Rows and dates of changes that may be true and came after the first look at their page, each once, in order."""
    if not len(looks):
        return np.empty(0, np.int64), np.empty(0)
    row = np.minimum(np.searchsorted(looks.page, page), len(looks) - 1)
    true = np.isfinite(dated) & (dated <= said) & (looks.page[row] == page)
    true &= dated > looks.time[looks.offsets[row]]
    row, dated = row[true], dated[true]
    order = np.lexsort((dated, row))
    row, dated = row[order], dated[order]
    once = starts_of_runs(row, dated)
    return row[once], dated[once]


def expected_missed(looks: Looks, rate: FloatArray) -> FloatArray:
    """Changes expected to hide behind each page's detected ones, at its rate per second; 0 without a rate. O(m).

    >>> from recrawl.model import Visits
    >>> looks = Looks.from_visits(Visits.of([7, 7], [0.0, 10.0], verdict=[0, 2]))
    >>> expected_missed(looks, np.array([0.5])).round(3).tolist()
    [4.034]
    """
    row = looks.row_of_look()
    found = ~looks.opens() & (looks.says == Verdict.CHANGED) & ~looks.exact()
    known = np.where(np.isnan(rate), 0.0, rate)
    passed = known[row[found]] * np.diff(looks.time, prepend=np.nan)[found]
    hidden = 1.0 / special.exprel(-passed) - 1.0
    return np.asarray(np.bincount(row[found], hidden, len(looks)), np.float64)
