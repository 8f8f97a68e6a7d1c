"""A field from what visits found: histories without exact times, taken as if the truth were one of those they allow.

Visits tell that a page changed between two looks, not when, nor how often. So each gap in which a change was found
gets one change, at a time drawn at random within it; whoever wants to know how much that matters draws several times.
Changes that no visit found are not there, which favours whoever visited as the histories did. A page comes with its
first look. It goes with its last one, unless it stays to the end: pages of which there are logs of changes
(``ChangeKind.EXACT``), which know every time; and pages to which whoever made the visits chose not to return. Without
these, others would be spared the visits that choosing saved, and would do as well as if they had chosen.
"""

from __future__ import annotations

import numpy as np

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
) -> Field:
    """One of the fields that these histories allow; all columns have a row a page. O(gaps log gaps).

    ``stays`` are pages that are there to the end of the record, whenever they were last looked at. Other pages seen
    only once, of which nothing can be told, are left out.

    Raises:
        ValueError: no page was seen twice.
    """
    if not bool((_until(histories, exact) > histories.first_visit).any()):
        msg = "no page was seen twice"
        raise ValueError(msg)
    last = _until(histories, exact | stays)
    lived = np.flatnonzero(last > histories.first_visit)
    kept = histories.take(lived)
    truth = Truth(kept.first_visit, last[lived], _drawn(kept, exact[lived], rng), *_span(kept.first_visit, last[lived]))
    return Field.of(name, truth, host=host[lived], cluster=cluster[lived], importance=importance[lived])


def visits_per_page(histories: Histories, stays: BoolArray) -> float:
    """How many looks a second were spent on each page while it was there, first ones not counted; 0 without any.

    >>> from recrawl.model import Visits
    >>> told = Histories.from_visits(Visits.of([1, 1, 2, 2], [0.0, 10.0, 0.0, 30.0], verdict=[0, 1, 0, 1]))
    >>> visits_per_page(told, np.array([False, False])), visits_per_page(told, np.array([True, False]))
    (0.05, 0.03333333333333333)
    """
    there = float((_until(histories, stays) - histories.first_visit).sum())
    return len(histories.gaps) / there if there > 0 else 0.0


def _until(histories: Histories, stays: BoolArray) -> FloatArray:
    """When each page goes: with its last look, or at the end of the record."""
    return np.where(stays, np.nanmax(histories.last_visit, initial=-np.inf), histories.last_visit)


def _span(first: FloatArray, last: FloatArray) -> tuple[float, float]:
    return float(first.min()), float(last.max())


def _drawn(histories: Histories, exact: BoolArray, rng: np.random.Generator) -> EventTimes:
    """A time for every change that was found."""
    row = histories.row_of_gap()[histories.changed]
    end, gap = histories.look_times()[histories.changed], histories.gaps[histories.changed]
    back = np.where(exact[row], 0.0, rng.random(len(row)) * gap)
    return EventTimes.of(row, end - back, len(histories))
