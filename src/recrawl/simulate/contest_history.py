"""A field from what visits found: histories without exact times, taken as if the truth were one of those they allow.

Visits tell that a page changed between two looks, not when, nor how often. So each gap in which a change was found
gets one change, at a time drawn at random within it; whoever wants to know how much that matters draws several times.
Changes that no visit found are not there, which favours whoever visited as the histories did. Before its first and
after its last look nothing is known of a page: it comes with the one and goes with the other. Logs of changes
(``ChangeKind.EXACT``) know every time, and their pages stay to the end.
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
    host: IntArray,
    cluster: IntArray,
    importance: FloatArray,
) -> Field:
    """One of the fields that these histories allow; all columns have a row a page. O(gaps log gaps).

    Pages seen only once, of which nothing can be told, are left out.

    Raises:
        ValueError: no page was seen twice.
    """
    last = np.where(exact, np.nanmax(histories.last_visit, initial=-np.inf), histories.last_visit)
    twice = np.flatnonzero(last > histories.first_visit)
    if not len(twice):
        msg = "no page was seen twice"
        raise ValueError(msg)
    kept = histories.take(twice)
    truth = Truth(kept.first_visit, last[twice], _drawn(kept, exact[twice], rng), *_span(kept.first_visit, last[twice]))
    return Field.of(name, truth, host=host[twice], cluster=cluster[twice], importance=importance[twice])


def visits_per_page(histories: Histories) -> float:
    """How many looks a second were spent on each page while it was watched, first ones not counted; 0 without any.

    >>> from recrawl.model import Visits
    >>> visits_per_page(Histories.from_visits(Visits.of([1, 1, 2, 2], [0.0, 10.0, 0.0, 30.0], verdict=[0, 1, 0, 1])))
    0.05
    """
    watched = float(histories.observed().sum())
    return len(histories.gaps) / watched if watched > 0 else 0.0


def _span(first: FloatArray, last: FloatArray) -> tuple[float, float]:
    return float(first.min()), float(last.max())


def _drawn(histories: Histories, exact: BoolArray, rng: np.random.Generator) -> EventTimes:
    """A time for every change that was found."""
    row = histories.row_of_gap()[histories.changed]
    end, gap = histories.look_times()[histories.changed], histories.gaps[histories.changed]
    back = np.where(exact[row], 0.0, rng.random(len(row)) * gap)
    return EventTimes.of(row, end - back, len(histories))
