"""Crawls found again in an archive that somebody else made, and each page's next capture taken as its revisit.

Archives do not say where one crawl ends and the next begins. Here a crawl of a site is over when the site is left alone
for longer than a *pause*. By default the pause is a quarter of the usual time from one capture of a page to its next:
a crawler that takes less than three quarters of its period is found, however long that is. Pages captured all the time,
without a pause, are one crawl.

A single-visit capture proves nothing by itself, but with the crawl after it, it does: a page that is the same in the
next was the same all the time between (SHARC ch. 8). So the revisit of a page is its last capture in the same crawl,
if it was captured there several times, else its next capture. Who knows more of a crawl can say which looks it is made
of, and which of them needed no revisit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.assess.collapse import ChangeClass
from recrawl.assess.intervals import Intervals
from recrawl.assess.looks import Looks
from recrawl.assess.statement import CapturedPages, Found
from recrawl.model import AnyArray, BoolArray, ChangeKind, FloatArray, IntArray, Verdict
from recrawl.model.arrays import ends_of_runs, starts_of_runs

NO_REVISIT = -1
_SHARE_OF_PERIOD = 0.25


@dataclass(frozen=True, slots=True)
class Rounds:
    """Crawls by time, and the crawl each look belongs to."""

    site: IntArray
    """The site of each crawl."""
    start: FloatArray
    end: FloatArray
    """First and last look of each crawl, seconds since the epoch."""
    of_look: IntArray

    def __len__(self) -> int:
        return len(self.site)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Captures, each with the look taken as its revisit and what that found; by crawl, then page, then time."""

    round: IntArray
    row: IntArray
    """Row of the page among the looks."""
    visit: IntArray
    """Positions of looks; the first of the page in the crawl."""
    revisit: IntArray
    """The look taken as its revisit, or ``NO_REVISIT``."""
    found: AnyArray
    """:class:`~recrawl.assess.statement.Found`."""
    links: BoolArray
    """Whether its links changed in between."""
    new: BoolArray
    """Whether no crawl before had the page, though there was one."""

    def __len__(self) -> int:
        return len(self.round)

    def captured(self, looks: Looks, rate: FloatArray, weight: FloatArray, of: AnyArray | slice) -> CapturedPages:
        """These pairs as a capture to make a statement about; rates and weights are those of all pages."""
        row, visit, revisit = self.row[of], self.visit[of], self.revisit[of]
        again = np.where(revisit == NO_REVISIT, np.nan, looks.time[revisit])
        return CapturedPages(looks.page[row], looks.time[visit], rate[row], weight[row], again, self.found[of])

    def change_classes(self) -> AnyArray:
        """The :class:`ChangeClass` of each page from its crawl to its revisit; whether it was ``new`` is not in it."""
        return np.select(
            [self.found == Found.UNCHANGED, self.found == Found.MISSING, self.found == Found.CHANGED],
            [ChangeClass.UNCHANGED, ChangeClass.MISSING, np.where(self.links, ChangeClass.LINKS, ChangeClass.CONTENT)],
            ChangeClass.UNSEEN,
        )


def usual_period(looks: Looks, site: IntArray) -> FloatArray:
    """The usual time between captures of a page, in seconds, for each site 0 … max(site); infinity if none came again.

    Usual is the median over the pages of a site of the median of each. O(m log m).

    >>> from recrawl.model import Visits
    >>> looks = Looks.from_visits(Visits.of([1, 1, 1, 2], [0.0, 8.0, 16.0, 1.0]))
    >>> usual_period(looks, np.array([0, 0])).tolist()
    [8.0]
    """
    row = looks.row_of_look()
    again = ~looks.opens()
    period = Intervals(row[again], np.diff(looks.time, prepend=0.0)[again]).medians(len(looks))
    known = ~np.isnan(period)
    usual = Intervals(site[known], period[known]).medians(int(site.max()) + 1 if len(site) else 0)
    return np.where(np.isnan(usual), np.inf, usual)


def find_rounds(looks: Looks, site: IntArray, pause: FloatArray | float | None = None) -> Rounds:
    """The crawls of each site; ``site`` numbers the site of each page from 0, ``pause`` is in seconds. O(m log m).

    >>> from recrawl.model import Visits
    >>> looks = Looks.from_visits(Visits.of([1, 2, 1, 2], [0.0, 1.0, 50.0, 51.0]))
    >>> rounds = find_rounds(looks, np.array([0, 0]))
    >>> rounds.of_look.tolist(), rounds.start.tolist(), rounds.end.tolist()
    ([0, 1, 0, 1], [0.0, 50.0], [1.0, 51.0])
    """
    if pause is None:
        pause = usual_period(looks, site) * _SHARE_OF_PERIOD
    pauses = np.broadcast_to(pause, (int(site.max(initial=-1)) + 1,))
    of_site = site[looks.row_of_look()]
    order = np.lexsort((looks.time, of_site))
    by_site, time = of_site[order], looks.time[order]
    cut = starts_of_runs(by_site)
    cut[1:] |= np.diff(time) > pauses[by_site[1:]]
    label = np.empty(len(order), np.int64)
    label[order] = np.cumsum(cut) - 1
    return known_rounds(looks, site, label)


def known_rounds(looks: Looks, site: IntArray, label: IntArray) -> Rounds:
    """Crawls that somebody knows: looks at a site with the same ``label`` (their archive file, say) are one.

    O(m log m).

    >>> from recrawl.model import Visits
    >>> looks = Looks.from_visits(Visits.of([1, 1, 2], [0.0, 9.0, 5.0]))
    >>> rounds = known_rounds(looks, np.array([0, 0]), np.array([7, 3, 3]))
    >>> rounds.of_look.tolist(), rounds.start.tolist(), rounds.end.tolist()
    ([0, 1, 1], [0.0, 5.0], [0.0, 9.0])
    """
    _, order = np.unique(label, return_inverse=True)
    stride = int(order.max(initial=0)) + 1
    keys, group = np.unique(site[looks.row_of_look()] * stride + order, return_inverse=True)
    of_site = keys // stride
    start, end = np.full(len(keys), np.inf), np.full(len(keys), -np.inf)
    np.minimum.at(start, group, looks.time)
    np.maximum.at(end, group, looks.time)
    by_time = np.lexsort((of_site, start))
    number = np.empty(len(by_time), np.int64)
    number[by_time] = np.arange(len(by_time))
    return Rounds(of_site[by_time], start[by_time], end[by_time], number[group])


def pair(looks: Looks, rounds: Rounds, site: IntArray, once: BoolArray | None = None) -> Pairs:
    """Every page of every crawl with its revisit. O(m log m).

    A page that is gone at its first look in a crawl is not in that crawl. The revisit is the last look in the crawl
    that could be compared, so that a second look, which only told noise from change, does not hide what it judged.
    ``once`` tells looks that are visit and revisit in one: the innermost page of a capture with nested intervals.
    """
    row = looks.row_of_look()
    first = np.flatnonzero(starts_of_runs(row, rounds.of_look))
    last = np.flatnonzero(ends_of_runs(row, rounds.of_look))
    told = looks.gone | (looks.says != Verdict.UNKNOWN)
    compared = np.maximum.accumulate(np.where(told, np.arange(len(row)), NO_REVISIT))[last]
    has_next = np.append(row[1:] == row[:-1], np.zeros(min(len(row), 1), np.bool_))
    following = np.where(has_next[last], first + 1, NO_REVISIT)
    alone = following if once is None else np.where(once[first], first, following)
    revisit = np.where(last > first, np.where(compared > first, compared, last), alone)
    there = ~looks.gone[first]
    first, revisit = first[there], revisit[there]
    opening = np.full(int(site.max(initial=-1)) + 1, len(rounds))
    np.minimum.at(opening, rounds.site, np.arange(len(rounds)))
    new = looks.opens()[first] & (rounds.of_look[first] > opening[site[row[first]]])
    order = np.lexsort((row[first], rounds.of_look[first]))
    first, revisit, new = first[order], revisit[order], new[order]
    found, links = _found(looks, first, revisit)
    return Pairs(rounds.of_look[first], row[first], first, revisit, found, links, new)


def consecutive(looks: Looks) -> Pairs:
    """Every capture with the next look at the same page, whatever crawl they are of; all in round 0. O(m)."""
    row, visit = looks.row_of_look(), np.flatnonzero(~looks.gone)
    following = np.minimum(visit + 1, max(len(row) - 1, 0))
    revisit = np.where((following > visit) & (row[following] == row[visit]), following, NO_REVISIT)
    found, links = _found(looks, visit, revisit)
    nothing = np.zeros(len(visit), np.int64)
    return Pairs(nothing, row[visit], visit, revisit, found, links, nothing.astype(np.bool_))


def _found(looks: Looks, visit: IntArray, revisit: IntArray) -> tuple[AnyArray, BoolArray]:
    """What the looks after a visit, up to its revisit, say together."""
    changed = looks.says == Verdict.CHANGED
    linked = changed & ((looks.kinds & np.uint16(ChangeKind.LINKS | ChangeKind.NEW_LINKS)) != 0)
    last = np.where(revisit == NO_REVISIT, visit, revisit)

    def met(what: BoolArray) -> BoolArray:
        total = np.cumsum(what)
        return np.asarray(total[last] > total[visit])

    found = np.select(
        [revisit == NO_REVISIT, looks.gone[last], met(changed), met(looks.says == Verdict.UNKNOWN)],
        [Found.UNKNOWN, Found.MISSING, Found.CHANGED, Found.UNKNOWN],
        Found.UNCHANGED,
    )
    return found.astype(np.uint8), met(linked)
