"""A field from what visits found: histories without exact times, taken as if the truth were one of those they allow.

Visits tell that a page changed between two looks, not when, nor how often. So each gap in which a change was found
gets one change, at a time drawn at random within it; whoever wants to know how much that matters draws several times.
Logs of changes (``ChangeKind.EXACT``) know every time: nothing is drawn of these, if the histories are made of what
somebody who watched would have seen (``estimate.watched``). Changes that no visit found are not there, which favours
whoever visited as the histories did. A page comes with its first look. It goes when it was found gone for good, or with
its last look, with two exceptions. Pages of which there are logs stay to the end of the record. Pages to which whoever
made the visits chose not to return stay until the last look at any page: without these, others would be spared the
visits that choosing saved, and would do as well as if they had chosen.
"""

from __future__ import annotations

import numpy as np

from recrawl.estimate.watched import MOMENT
from recrawl.model import BoolArray, FloatArray, Histories, IntArray
from recrawl.simulate.contest_field import Field
from recrawl.simulate.sampling import Truth
from recrawl.simulate.web_events import EventTimes


def field_from_histories(  # noqa: PLR0913 - the columns of a field
    name: str,
    histories: Histories,
    rng: np.random.Generator,
    *,
    exact: BoolArray,
    stays: BoolArray,
    host: IntArray,
    cluster: IntArray,
    importance: FloatArray,
    gone_since: FloatArray | None = None,
) -> Field:
    """One of the fields that these histories allow; all columns have a row a page. O(gaps log gaps).

    ``histories`` are those of somebody who watched, where there are logs. ``exact`` are pages all of whose changes were
    logged. ``stays`` are pages that are there as long as somebody looks at any, whenever they were last looked at
    themselves. ``gone_since`` says when pages were found gone that were never found again, NaN for others. Other pages
    seen only once, of which nothing can be told, are left out.

    Raises:
        ValueError: no page was seen twice.
    """
    if not bool((_until(histories, exact, np.zeros_like(stays)) > histories.first_visit).any()):
        msg = "no page was seen twice"
        raise ValueError(msg)
    last = _until(histories, exact, stays)
    if gone_since is not None:
        last = np.fmin(last, gone_since)
    lived = np.flatnonzero(last > histories.first_visit)
    kept = histories.take(lived)
    drawn, until = _drawn(kept, rng), last[lived]
    changes = drawn if gone_since is None else drawn.where(~(drawn.times >= gone_since[lived][drawn.row_of_event()]))
    truth = Truth(kept.first_visit, until, changes, *_span(kept.first_visit, until))
    return Field.of(name, truth, host=host[lived], cluster=cluster[lived], importance=importance[lived])


def visits_per_page(histories: Histories, *, exact: BoolArray, stays: BoolArray) -> float:
    """How many looks a second were spent on each page while it was there, first ones not counted; 0 without any.

    A page is there as long as in the field of the same histories. Pages with a log were not looked at.

    >>> from recrawl.model import Visits
    >>> told = Histories.from_visits(Visits.of([1, 1, 2, 2], [0.0, 10.0, 0.0, 30.0], verdict=[0, 1, 0, 1]))
    >>> none = np.array([False, False])
    >>> visits_per_page(told, exact=none, stays=none), visits_per_page(told, exact=none, stays=np.array([True, False]))
    (0.05, 0.03333333333333333)
    """
    there = float((_until(histories, exact, stays) - histories.first_visit)[~exact].sum())
    return int(histories.counts()[~exact].sum()) / there if there > 0 else 0.0


def _until(histories: Histories, exact: BoolArray, stays: BoolArray) -> FloatArray:
    """When each page goes: with its last look, with the last look at any page, or at the end of the record."""
    last = histories.last_visit
    looked = np.where(stays, np.nanmax(last[~exact], initial=-np.inf), last)
    return np.where(exact, np.nanmax(last, initial=-np.inf), looked)


def _span(first: FloatArray, last: FloatArray) -> tuple[float, float]:
    return float(first.min()), float(last.max())


def known_times(histories: Histories) -> BoolArray:
    """Of which gaps it is known when the change in them happened: those no longer than the moment of a logged one."""
    return np.asarray(histories.changed & (histories.gaps <= MOMENT))


def _drawn(histories: Histories, rng: np.random.Generator) -> EventTimes:
    """A time for every change that was found: the known one, or one drawn from its gap."""
    row = histories.row_of_gap()[histories.changed]
    end, gap = histories.look_times()[histories.changed], histories.gaps[histories.changed]
    back = np.where(known_times(histories)[histories.changed], 0.0, rng.random(len(row)) * gap)
    return EventTimes.of(row, end - back, len(histories))
