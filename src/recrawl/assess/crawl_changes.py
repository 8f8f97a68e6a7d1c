"""What became of the pages and links of a site from each crawl to the next: the area plots of SHARC 8.3.

Rules of this file, which follow the thesis (its Listing B.1) and say more where archives are not made of whole crawls:
 1. A page is *unchanged* or *changed* in a crawl if it was found in one before, or *unknown* if nobody could judge. It
    is *new* if no crawl before found it, or the one that looked last found it gone.
 2. A page is *deleted* in the crawl that finds it gone, or in the first whole crawl that no longer has it, if none ever
    has it again. A crawl is whole if it has at least half as many pages as the one before it.
 3. A page that a crawl does not have, but a later one does, was *left out*: it counts for nothing else.
 4. A link is there from the first look that saw it to the last, and on until its page is found gone or with other
    links: who finds the links of before does not write them down again. It is new, unchanged or deleted, and cannot
    change. Links of a page that is deleted or left out are so too.
 5. The first crawl of a site has nothing before it, and is not counted.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from recrawl.assess.looks import Looks
from recrawl.assess.rounds import Rounds
from recrawl.model import AnyArray, BoolArray, ChangeKind, FloatArray, IntArray, Verdict
from recrawl.model.arrays import ends_of_runs, offsets_of, ragged_search, starts_of_runs

_WHOLE = 0.5
_NOTHING = -1


class Became(enum.IntEnum):
    """What became of a page or link from one crawl to the next."""

    UNCHANGED = 0
    CHANGED = 1
    NEW = 2
    DELETED = 3
    UNKNOWN = 4
    LEFT_OUT = 5


@dataclass(frozen=True, slots=True)
class CrawlChanges:
    """Counts by crawl (in the order of the crawls of one site, the first left out), kind, and :class:`Became`."""

    crawl: IntArray
    """Numbers of the crawls. Shape (c,)."""
    pages: IntArray
    """Shape (c, kinds, 6)."""
    links: IntArray
    """Shape (c, 6)."""


@dataclass(frozen=True, slots=True)
class SeenLinks:
    """Links as columns: on which page (row of the looks) each was seen, from when to when."""

    row: IntArray
    first: FloatArray
    last: FloatArray


def crawl_changes(  # noqa: PLR0913 - looks, how they are cut, what is counted
    looks: Looks, rounds: Rounds, site: int, kind: IntArray, links: SeenLinks, *, by_absence: bool = True
) -> CrawlChanges:
    """Compare each crawl of a site with what was known before it; ``kind`` numbers the kind of each page from 0.

    Without ``by_absence`` no crawl is whole, and only pages that are found gone are deleted. O((m + l) log m) for m
    looks and l links.

    >>> from recrawl.assess.rounds import known_rounds
    >>> from recrawl.model import Visits
    >>> looks = Looks.from_visits(Visits.of([1, 1, 2, 3], [0.0, 9.0, 0.0, 9.0], verdict=[0, 2, 0, 0]))
    >>> rounds = known_rounds(looks, np.zeros(3, np.int64), (looks.time > 0).astype(np.int64))
    >>> none = SeenLinks(np.empty(0, np.int64), np.empty(0), np.empty(0))
    >>> found = crawl_changes(looks, rounds, 0, np.zeros(3, np.int64), none)
    >>> {one.name: int(count) for one, count in zip(Became, found.pages[0, 0], strict=True) if count}
    {'CHANGED': 1, 'NEW': 1, 'DELETED': 1}
    """
    crawls = np.flatnonzero(rounds.site == site)
    kinds = int(kind.max(initial=0)) + 1
    step = np.full(len(rounds), -1)
    step[crawls] = np.arange(len(crawls))
    found = _Found.of(looks, step[rounds.of_look])
    became, until = found.became(len(crawls), by_absence=by_absence)
    shape = (max(len(crawls), 1), kinds, len(Became))
    pages = np.zeros(shape, np.int64)
    counted = became >= 0
    np.add.at(pages, (found.step[counted], kind[found.row[counted]], became[counted]), 1)
    alive = _links_alive(looks, found, links)
    link_counts = np.zeros((shape[0], len(Became)), np.int64)
    for what, count in zip((Became.UNCHANGED, Became.NEW, Became.DELETED), alive[:3], strict=True):
        np.add.at(link_counts[:, what], found.step, count)
    one = np.ones(len(found.row), np.int64)
    for weight, into in ((one, None), (alive[3], link_counts)):
        _absences(found, until, kind, weight, pages if into is None else into)
    return CrawlChanges(crawls[1:], pages[1 : len(crawls)], link_counts[1 : len(crawls)])


@dataclass(frozen=True, slots=True)
class _Found:
    """The first look at each page in each crawl, by page and time."""

    row: IntArray
    step: IntArray
    look: IntArray
    gone: BoolArray
    opens: BoolArray
    """The first of its page."""
    ends: BoolArray
    """The last of its page."""
    verdict: AnyArray
    """On all the time since the one before."""

    @classmethod
    def of(cls, looks: Looks, step: IntArray) -> _Found:
        row = looks.row_of_look()
        look = np.flatnonzero(step >= 0)
        look = look[starts_of_runs(row[look], step[look])]
        # A page may be looked at for other reasons between the crawls on record: what those looks say counts too.
        changed, unknown = (np.append(0, np.cumsum(looks.says == says)) for says in (Verdict.CHANGED, Verdict.UNKNOWN))
        before = np.append(0, look[:-1])[: len(look)]
        any_changed = changed[look + 1] > changed[before + 1]
        any_unknown = unknown[look + 1] > unknown[before + 1]
        verdict = np.where(any_changed, Verdict.CHANGED, np.where(any_unknown, Verdict.UNKNOWN, Verdict.UNCHANGED))
        opens, ends = starts_of_runs(row[look]), ends_of_runs(row[look])
        return cls(row[look], step[look], look, looks.gone[look], opens, ends, verdict)

    def became(self, crawls: int, *, by_absence: bool) -> tuple[AnyArray, IntArray]:
        """What became of each page in each crawl that looked at it, and up to which crawl it is left out after that."""
        was_gone = ~self.opens & np.append(False, self.gone[:-1])[: len(self.gone)]
        judged = np.select(
            [self.verdict == Verdict.CHANGED, self.verdict == Verdict.UNCHANGED],
            [Became.CHANGED, Became.UNCHANGED],
            Became.UNKNOWN,
        )
        became = np.select([self.gone, self.opens | was_gone], [Became.DELETED, Became.NEW], judged)
        # Gone when first heard of, or gone before: nothing was there to delete.
        became = np.where(self.gone & (self.opens | was_gone), _NOTHING, became)
        there = np.bincount(self.step[~self.gone], minlength=crawls)
        whole = np.append(False, by_absence & (there[1:] >= _WHOLE * there[:-1]))[:crawls]
        next_whole = np.minimum.accumulate(np.where(whole, np.arange(crawls), crawls)[::-1])[::-1]
        following = np.append(self.step[1:], 0)[: len(self.step)]
        lost = np.append(next_whole, [crawls, crawls])[self.step + 1]
        until = np.where(self.gone, self.step + 1, np.where(self.ends, lost, following))
        return became, until


def _absences(found: _Found, until: IntArray, kind: IntArray, weight: IntArray, counts: IntArray) -> None:
    """Count pages, or their links, that crawls do not have: left out up to ``until``, and deleted then if for ever."""
    crawls = len(counts)
    by_kind = counts.ndim > 2  # noqa: PLR2004 - crawls and what became of them
    place = kind[found.row] if by_kind else np.zeros(len(found.row), np.int64)
    out = np.zeros((crawls + 1, int(place.max(initial=0)) + 1), np.int64)
    np.add.at(out, (np.minimum(found.step + 1, crawls), place), weight)
    np.add.at(out, (np.minimum(until, crawls), place), -weight)
    left_out = np.cumsum(out, axis=0)[:-1]
    lost = found.ends & ~found.gone & (until < crawls)
    if by_kind:
        counts[:, : left_out.shape[1], Became.LEFT_OUT] += left_out
        np.add.at(counts, (until[lost], place[lost], np.full(int(lost.sum()), Became.DELETED)), weight[lost])
    else:
        counts[:, Became.LEFT_OUT] += left_out[:, 0]
        np.add.at(counts[:, Became.DELETED], until[lost], weight[lost])


def _links_alive(looks: Looks, found: _Found, links: SeenLinks) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Links that each look of a crawl found unchanged, new and deleted, and how many there were then."""
    rows = offsets_of(found.row, len(looks))
    time = looks.time[found.look]
    some = (links.row >= 0) & (rows[links.row + 1] > rows[links.row])
    row, first = links.row[some], links.first[some]
    last = _until_changed(looks, row, first, links.last[some])
    born = ragged_search(rows, time, row, first, after_equal=False)
    died = ragged_search(rows, time, row, last, after_equal=True)
    seen = died > born
    row, born, died = row[seen], born[seen], died[seen]
    size = len(found.row)
    new = np.bincount(born, minlength=size).astype(np.int64)
    deleted = np.bincount(died[died < rows[row + 1]], minlength=size).astype(np.int64)
    steps = np.bincount(born, minlength=size + 1) - np.bincount(died, minlength=size + 1)
    there = np.cumsum(steps)[:size].astype(np.int64)
    return there - new, new, deleted, np.where(found.gone, 0, there)


def _until_changed(looks: Looks, row: IntArray, first: FloatArray, last: FloatArray) -> FloatArray:
    """The last look before the one that found other links on the page, or wrote its links anew, after ``last``."""
    linked = (looks.kinds & np.uint16(ChangeKind.LINKS | ChangeKind.NEW_LINKS)) != 0
    starts = looks.opens() | looks.gone | linked
    for written in (first, last):
        place = ragged_search(looks.offsets, looks.time, row, written, after_equal=False)
        here = np.minimum(place, max(len(looks.time) - 1, 0))
        starts[here[(place < looks.offsets[row + 1]) & (looks.time[here] == written)]] = True
    version = np.cumsum(starts) - 1
    ends = np.flatnonzero(ends_of_runs(version))[version]
    place = ragged_search(looks.offsets, looks.time, row, last, after_equal=True) - 1
    known = place >= looks.offsets[row]
    return np.where(known, np.maximum(last, looks.time[ends[np.maximum(place, 0)]]), last)
