"""Find the crawls in an archive, and pair each capture with the next capture of its page as a revisit.

Archives do not record where one crawl ends and the next starts. Here a crawl of a site ends when the site is not
visited for longer than a *pause*. The default pause is a quarter of the usual time between two captures of a page, so a
crawl is found if it takes less than three quarters of the crawl period. Pages captured continuously are one crawl.

A single-visit capture proves nothing, but two crawls do: a page that is equal in the next crawl was equal all the time
between (SHARC ch. 8). So the revisit of a page is its last capture in the same crawl, if it has several, else its next
capture. Callers that know more can give the observations of each crawl, and which of them need no revisit.

Deduplicated indexes list a capture only if its digest is new. wget writes revisit records into WARC files but not into
its CDX, and CDX servers can collapse equal digests. Such an index seems to say that every page changed at every capture
and none is coherent. Both are false. Rules of :func:`deduplication`:
 1. Only comparisons by digest are suspect. Compared versions and logs of changes are reliable.
 2. An index is suspect if in at least ``FEWEST`` comparisons no capture of a site has the digest of the previous one.
 3. It is deduplicated if, in addition, captures are missing: pages that were listed before are not listed in later
    crawls of their site, at least once per ``PER_ABSENCE`` comparisons. If every crawl lists every page, the pages may
    differ at every download, as pages with a counter or a date do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.assess.blur_coherence import CapturedPages, RevisitResult
from recrawl.assess.observations import Observations
from recrawl.assess.poisson_test import Intervals
from recrawl.assess.site_structure import ChangeClass
from recrawl.model import AnyArray, BoolArray, ChangeKind, FloatArray, IntArray, Verdict
from recrawl.model.arrays import ends_of_runs, starts_of_runs

NO_REVISIT = -1
_SHARE_OF_PERIOD = 0.25


@dataclass(frozen=True, slots=True)
class CrawlSegments:
    """Crawls by time, and the crawl each observation belongs to."""

    site: IntArray
    """The site of each crawl."""
    start: FloatArray
    end: FloatArray
    """First and last observation of each crawl, seconds since the epoch."""
    of_observation: IntArray

    def __len__(self) -> int:
        return len(self.site)


@dataclass(frozen=True, slots=True)
class CapturePairs:
    """Captures, each with the observation taken as its revisit and what that found; by crawl, then page, then time."""

    round: IntArray
    row: IntArray
    """Row of the page among the observations."""
    visit: IntArray
    """Positions of observations; the first of the page in the crawl."""
    revisit: IntArray
    """The observation taken as its revisit, or ``NO_REVISIT``."""
    found: AnyArray
    """:class:`~recrawl.assess.blur_coherence.RevisitResult`."""
    links: BoolArray
    """Whether its links changed in between."""
    new: BoolArray
    """Whether no crawl before had the page, though there was one."""

    def __len__(self) -> int:
        return len(self.round)

    def captured(
        self, observations: Observations, rate: FloatArray, weight: FloatArray, of: AnyArray | slice
    ) -> CapturedPages:
        """These pairs as a capture to make a statement about; rates and weights are those of all pages."""
        row, visit, revisit = self.row[of], self.visit[of], self.revisit[of]
        again = np.where(revisit == NO_REVISIT, np.nan, observations.time[revisit])
        return CapturedPages(
            observations.page[row], observations.time[visit], rate[row], weight[row], again, self.found[of]
        )

    def change_classes(self) -> AnyArray:
        """The :class:`ChangeClass` of each page from its crawl to its revisit; whether it was ``new`` is not in it."""
        return np.select(
            [
                self.found == RevisitResult.UNCHANGED,
                self.found == RevisitResult.MISSING,
                self.found == RevisitResult.CHANGED,
            ],
            [ChangeClass.UNCHANGED, ChangeClass.MISSING, np.where(self.links, ChangeClass.LINKS, ChangeClass.CONTENT)],
            ChangeClass.UNSEEN,
        )


def usual_period(observations: Observations, site: IntArray) -> FloatArray:
    """The usual time between captures of a page, in seconds, for each site 0 … max(site); infinity if none came again.

    Usual is the median over the pages of a site of the median of each. O(m log m).

    >>> from recrawl.model import Visits
    >>> observations = Observations.from_visits(Visits.of([1, 1, 1, 2], [0.0, 8.0, 16.0, 1.0]))
    >>> usual_period(observations, np.array([0, 0])).tolist()
    [8.0]
    """
    row = observations.row_of_observation()
    again = ~observations.opens()
    period = Intervals(row[again], np.diff(observations.time, prepend=0.0)[again]).medians(len(observations))
    known = ~np.isnan(period)
    usual = Intervals(site[known], period[known]).medians(int(site.max()) + 1 if len(site) else 0)
    return np.where(np.isnan(usual), np.inf, usual)


def segment_crawls(
    observations: Observations, site: IntArray, pause: FloatArray | float | None = None
) -> CrawlSegments:
    """The crawls of each site; ``site`` numbers the site of each page from 0, ``pause`` is in seconds. O(m log m).

    >>> from recrawl.model import Visits
    >>> observations = Observations.from_visits(Visits.of([1, 2, 1, 2], [0.0, 1.0, 50.0, 51.0]))
    >>> rounds = segment_crawls(observations, np.array([0, 0]))
    >>> rounds.of_observation.tolist(), rounds.start.tolist(), rounds.end.tolist()
    ([0, 1, 0, 1], [0.0, 50.0], [1.0, 51.0])
    """
    if pause is None:
        pause = usual_period(observations, site) * _SHARE_OF_PERIOD
    pauses = np.broadcast_to(pause, (int(site.max(initial=-1)) + 1,))
    of_site = site[observations.row_of_observation()]
    order = np.lexsort((observations.time, of_site))
    by_site, time = of_site[order], observations.time[order]
    cut = starts_of_runs(by_site)
    cut[1:] |= np.diff(time) > pauses[by_site[1:]]
    label = np.empty(len(order), np.int64)
    label[order] = np.cumsum(cut) - 1
    return known_segments(observations, site, label)


def known_segments(observations: Observations, site: IntArray, label: IntArray) -> CrawlSegments:
    """Known crawls: observations of a site with the same ``label``, such as an archive file, are one crawl.

    O(m log m).

    >>> from recrawl.model import Visits
    >>> observations = Observations.from_visits(Visits.of([1, 1, 2], [0.0, 9.0, 5.0]))
    >>> rounds = known_segments(observations, np.array([0, 0]), np.array([7, 3, 3]))
    >>> rounds.of_observation.tolist(), rounds.start.tolist(), rounds.end.tolist()
    ([0, 1, 1], [0.0, 5.0], [0.0, 9.0])
    """
    _, order = np.unique(label, return_inverse=True)
    stride = int(order.max(initial=0)) + 1
    keys, group = np.unique(site[observations.row_of_observation()] * stride + order, return_inverse=True)
    of_site = keys // stride
    start, end = np.full(len(keys), np.inf), np.full(len(keys), -np.inf)
    np.minimum.at(start, group, observations.time)
    np.maximum.at(end, group, observations.time)
    by_time = np.lexsort((of_site, start))
    number = np.empty(len(by_time), np.int64)
    number[by_time] = np.arange(len(by_time))
    return CrawlSegments(of_site[by_time], start[by_time], end[by_time], number[group])


def pair(
    observations: Observations, rounds: CrawlSegments, site: IntArray, once: BoolArray | None = None
) -> CapturePairs:
    """Every page of every crawl with its revisit. O(m log m).

    A page that is gone at its first observation in a crawl is not in that crawl. The revisit is the last observation in
    the crawl that could be compared, so that a confirmation, which only separates noise from change, does not hide
    the result. ``once`` marks observations that are visit and revisit in one: the innermost page of a capture with
    nested intervals.
    """
    row = observations.row_of_observation()
    first = np.flatnonzero(starts_of_runs(row, rounds.of_observation))
    last = np.flatnonzero(ends_of_runs(row, rounds.of_observation))
    known = observations.gone | (observations.says != Verdict.UNKNOWN)
    compared = np.maximum.accumulate(np.where(known, np.arange(len(row)), NO_REVISIT))[last]
    has_next = np.append(row[1:] == row[:-1], np.zeros(min(len(row), 1), np.bool_))
    following = np.where(has_next[last], first + 1, NO_REVISIT)
    alone = following if once is None else np.where(once[first], first, following)
    revisit = np.where(last > first, np.where(compared > first, compared, last), alone)
    there = ~observations.gone[first]
    first, revisit = first[there], revisit[there]
    opening = np.full(int(site.max(initial=-1)) + 1, len(rounds))
    np.minimum.at(opening, rounds.site, np.arange(len(rounds)))
    new = observations.opens()[first] & (rounds.of_observation[first] > opening[site[row[first]]])
    order = np.lexsort((row[first], rounds.of_observation[first]))
    first, revisit, new = first[order], revisit[order], new[order]
    found, links = _found(observations, first, revisit)
    return CapturePairs(rounds.of_observation[first], row[first], first, revisit, found, links, new)


def consecutive(observations: Observations) -> CapturePairs:
    """Every capture with the next observation of the same page, whatever crawl they are of; all in round 0. O(m)."""
    row, visit = observations.row_of_observation(), np.flatnonzero(~observations.gone)
    following = np.minimum(visit + 1, max(len(row) - 1, 0))
    revisit = np.where((following > visit) & (row[following] == row[visit]), following, NO_REVISIT)
    found, links = _found(observations, visit, revisit)
    nothing = np.zeros(len(visit), np.int64)
    return CapturePairs(nothing, row[visit], visit, revisit, found, links, nothing.astype(np.bool_))


def _found(observations: Observations, visit: IntArray, revisit: IntArray) -> tuple[AnyArray, BoolArray]:
    """What the observations after a visit, up to its revisit, say together."""
    changed = observations.says == Verdict.CHANGED
    linked = changed & ((observations.kinds & np.uint16(ChangeKind.LINKS | ChangeKind.NEW_LINKS)) != 0)
    last = np.where(revisit == NO_REVISIT, visit, revisit)

    def met(what: BoolArray) -> BoolArray:
        total = np.cumsum(what)
        return np.asarray(total[last] > total[visit])

    found = np.select(
        [revisit == NO_REVISIT, observations.gone[last], met(changed), met(observations.says == Verdict.UNKNOWN)],
        [RevisitResult.UNKNOWN, RevisitResult.MISSING, RevisitResult.CHANGED, RevisitResult.UNKNOWN],
        RevisitResult.UNCHANGED,
    )
    return found.astype(np.uint8), met(linked)


FEWEST = 3
"""Comparisons below which nothing is suspected."""
PER_ABSENCE = 4

_BY_DIGEST = np.uint16(ChangeKind.CONTENT | ChangeKind.EXISTENCE)


@dataclass(frozen=True, slots=True)
class Deduplication:
    """What speaks for repeats having been left out, by site. Columns of sites, numbered from 0."""

    comparisons: IntArray
    """Captures that were compared with the one before them."""
    absent: IntArray
    """Cases in which a page was captured before and is not listed in a crawl of its site."""
    suspected: BoolArray
    """Sites without a single repeat, though there were many comparisons."""

    def certain(self) -> BoolArray:
        """Sites whose index is deduplicated, as far as is known: their coherence is not known."""
        return self.suspected & (self.absent * PER_ABSENCE >= self.comparisons)


def deduplication(observations: Observations, rounds: CrawlSegments, site: IntArray) -> Deduplication:
    """Find sites whose repeated captures are not listed. O(m log m) for m observations.

    >>> from recrawl.assess.crawl_segmentation import segment_crawls
    >>> from recrawl.model import Visits
    >>> pages, times, verdicts = [1] * 6 + [2], [0.0, 9.0, 18.0, 27.0, 36.0, 45.0, 1.0], [0, 2, 2, 2, 2, 2, 0]
    >>> observations = Observations.from_visits(Visits.of(pages, times, verdict=verdicts, kinds=[0, 1, 1, 1, 1, 1, 0]))
    >>> site = np.array([0, 0])
    >>> found = deduplication(observations, segment_crawls(observations, site), site)
    >>> found.comparisons.tolist(), found.absent.tolist(), found.certain().tolist()
    ([5], [5], [True])
    """
    sites = int(site.max(initial=-1)) + 1
    row = observations.row_of_observation()
    of_site = site[row]
    judged = ~observations.opens() & (observations.says != Verdict.UNKNOWN)
    read = judged & ((observations.says == Verdict.UNCHANGED) | ((observations.kinds & ~_BY_DIGEST) != 0))

    def count(which: BoolArray) -> IntArray:
        return np.bincount(of_site[which], minlength=sites).astype(np.int64)

    comparisons = count(judged & ~observations.gone)
    suspected = (comparisons >= FEWEST) & (count(read) == 0)
    return Deduplication(comparisons, _absences(observations, rounds, site, sites), suspected)


def _absences(observations: Observations, rounds: CrawlSegments, site: IntArray, sites: int) -> IntArray:
    """Of each site, in how many cases a crawl lists no capture of a page that an earlier one had; gone pages rest."""
    order = np.lexsort((rounds.start, rounds.site))
    opens = np.flatnonzero(starts_of_runs(rounds.site[order]))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(opens, np.diff(np.append(opens, len(order))))
    crawls = np.bincount(rounds.site, minlength=sites)
    row, first, last = observations.row_of_observation(), observations.offsets[:-1], observations.offsets[1:] - 1
    in_crawls = np.bincount(row[starts_of_runs(row, rounds.of_observation)], minlength=len(observations))
    until = np.where(observations.gone[last], rank[rounds.of_observation[last]], crawls[site] - 1)
    absent = until - rank[rounds.of_observation[first]] + 1 - in_crawls
    return np.bincount(site, np.maximum(absent, 0), sites).astype(np.int64)
