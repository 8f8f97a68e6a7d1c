"""Changes over time: pages and links from crawl to crawl, and visits and observations per time bin.

The counts from crawl to crawl are the area plots of SHARC 8.3. Their rules follow the thesis (Listing B.1), extended to
archives that do not consist of complete crawls:
 1. A page is *unchanged* or *changed* in a crawl if an earlier crawl found it, and *unknown* if no detector could
    compare. It is *new* if no earlier crawl found it, or if the last observation found it gone.
 2. A page is *deleted* in the crawl that finds it gone, or in the first complete crawl without it, if no later crawl
    has it. A crawl is complete if it has at least half as many pages as the one before it.
 3. A page that is not in a crawl but in a later one was *left out*, and is not counted otherwise.
 4. A link exists from the first observation that saw it to the last, and on until its page is found gone or with other
    links, because unchanged links are not stored again. A link is new, unchanged or deleted; it cannot change. Links of
    a deleted or left-out page are deleted or left out, too.
 5. The first crawl of a site is not counted: there is nothing to compare it with.

A continuous crawler makes no separate crawls. Its sites are compared in time steps of equal length.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from recrawl.assess.crawl_segmentation import CrawlSegments, known_segments, usual_period
from recrawl.assess.observations import Observations
from recrawl.model import ANSWERED, AnyArray, BoolArray, ByteArray, ChangeKind, FloatArray, IntArray, Verdict, Visits
from recrawl.model.arrays import ends_of_runs, offsets_of, ragged_search, starts_of_runs
from recrawl.time import DAY, HOUR, MINUTE, WEEK

_LENGTHS = (
    *(1.0, 10.0, MINUTE, 10 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, WEEK, 2 * WEEK),
    *(30 * DAY, 91.3125 * DAY, 365.25 * DAY),
)


class ObservationResult(enum.IntEnum):
    """The result of an observation."""

    FIRST = 0
    """The page as it was when we came."""
    CHANGED = 1
    """Something new, and be it that the page is not there any more."""
    UNCHANGED = 2
    """Nothing new: in hindsight the visit was wasted."""
    UNJUDGED = 3
    """There was an answer, and nothing to compare it with."""
    GONE = 4
    """The page is not there, and was not before, as far as we know."""


def observation_results(observations: Observations) -> ByteArray:
    """The :class:`ObservationResult` of each observation. O(m).

    >>> from recrawl.model import Visits
    >>> observations = Observations.from_visits(Visits.of([7, 7, 7], [0.0, 4.0, 9.0], verdict=[0, 1, 2]))
    >>> [ObservationResult(one).name for one in observation_results(observations)]
    ['FIRST', 'UNCHANGED', 'CHANGED']
    """
    changed = observations.says == Verdict.CHANGED
    says = np.select(
        [
            observations.gone & ~changed,
            observations.opens(),
            changed,
            observations.says == Verdict.UNCHANGED,
        ],
        [ObservationResult.GONE, ObservationResult.FIRST, ObservationResult.CHANGED, ObservationResult.UNCHANGED],
        ObservationResult.UNJUDGED,
    )
    return says.astype(np.uint8)


def bins(start: float, end: float, most: int = 60) -> FloatArray:
    """Edges of at most ``most`` bins of equal, natural length that hold everything from ``start`` to ``end``.

    Bins of a day start at midnight UTC; longer ones where the first of them starts.

    >>> (bins(90_000.0, 300_000.0, 5) / 86_400).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    span = end - start
    length = next((one for one in _LENGTHS if span / one <= most - 1), max(_LENGTHS[-1], span / max(most - 1, 1)))
    unit = min(length, DAY)
    first = np.floor(start / unit) * unit
    count = int(np.floor((end - first) / length)) + 1
    return np.asarray(first + length * np.arange(count + 1), np.float64)


def counts_over_time(time: FloatArray, label: AnyArray, labels: int, edges: FloatArray) -> IntArray:
    """How many of each label fall into each bin ``[edges[j], edges[j+1])``. Shape (labels, bins). O(m log bins).

    >>> counts_over_time(np.array([0.0, 1.0, 1.5]), np.array([1, 0, 0]), 2, np.array([0.0, 1.0, 2.0])).tolist()
    [[0, 2], [1, 0]]
    """
    count = len(edges) - 1
    place = np.searchsorted(edges, time, side="right") - 1
    inside = (place >= 0) & (place < count)
    key = label[inside].astype(np.int64) * count + place[inside]
    return np.bincount(key, minlength=labels * count).reshape(labels, count).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Activity:
    """Visits counted by span of time."""

    edges: FloatArray
    """Where spans start and end, seconds since the epoch; one more than there are spans."""
    visits: IntArray
    changed: IntArray
    """Those that found a change."""
    failed: IntArray
    """Failed visits."""


def activity(visits: Visits, spans: int = 48) -> Activity:
    """Visits in equal spans from the first to the last; the last one belongs to the last span. O(visits).

    >>> seen = activity(Visits.of(page=np.array([1, 1, 2]), time=np.array([0.0, 50.0, 100.0])), spans=2)
    >>> seen.edges.tolist(), seen.visits.tolist()
    ([0.0, 50.0, 100.0], [1, 2])
    """
    if not len(visits):
        nothing = np.empty(0, np.int64)
        return Activity(np.empty(0), nothing, nothing, nothing)
    first, last = float(visits.time.min()), float(visits.time.max())
    edges = np.linspace(first, max(last, first + spans), spans + 1)
    changed, failed = visits.verdict == Verdict.CHANGED, visits.outcome > ANSWERED
    counts = (np.histogram(visits.time[which], edges)[0] for which in (slice(None), changed, failed))
    return Activity(edges, *(np.asarray(count, np.int64) for count in counts))


_ALWAYS = 3.0
"""Observations of a page in a crawl, on average, from which it is none: a visit and a revisit are two."""
_FEWEST, _MOST = 4, 24


@dataclass(frozen=True, slots=True)
class CrawlSteps:
    """Crawls, or stretches of time, of one site or several."""

    rounds: CrawlSegments
    site: int
    """Whose rounds they are."""
    rows: BoolArray
    """The pages they are about."""
    length: float
    """Seconds of a stretch of time; NaN if they are crawls."""


def observed_always(observations: Observations, rounds: CrawlSegments, site: IntArray) -> BoolArray:
    """Which sites are observed all the time, so that what pauses cut out of their observations are no crawls. O(m)."""
    row = observations.row_of_observation()
    sites = int(site.max(initial=-1)) + 1
    seen = np.bincount(site[row], minlength=sites)
    pages_of_crawls = np.bincount(site[row[starts_of_runs(row, rounds.of_observation)]], minlength=sites)
    return np.asarray(seen > _ALWAYS * pages_of_crawls)


def crawl_steps(observations: Observations, rounds: CrawlSegments, site: IntArray, most: int = 12) -> list[CrawlSteps]:
    """The steps of the ``most`` sites that were observed most; before them, of several, stretches of time of them all.

    A site with one crawl has none, so there may be no steps at all. Stretches are about as long as pages usually wait
    for the next observation, so that most of them are there. O(m log m) for each site.

    >>> from recrawl.model import Visits
    >>> observations = Observations.from_visits(Visits.of(np.repeat([1, 2], 12), [*range(12), *(0.5 + np.arange(12))]))
    >>> rounds = known_segments(observations, np.zeros(2, np.int64), np.zeros(24, np.int64))
    >>> [(len(steps.rounds), steps.length) for steps in crawl_steps(observations, rounds, np.zeros(2, int))]
    [(12, 1.0)]
    """
    sites = int(site.max(initial=-1)) + 1
    seen = np.bincount(site[observations.row_of_observation()], minlength=sites)
    always = observed_always(observations, rounds, site)
    crawls = np.bincount(rounds.site, minlength=sites)
    weight = seen * ((crawls > 1) | always)
    chosen = [one for one in np.argsort(-weight, kind="stable")[:most].tolist() if weight[one]]
    steps = [
        stretches(observations, site == one) if always[one] else CrawlSteps(rounds, one, site == one, float("nan"))
        for one in chosen
    ]
    return [stretches(observations, np.ones(len(observations), np.bool_)), *steps] if steps and sites > 1 else steps


def stretches(observations: Observations, rows: BoolArray) -> CrawlSteps:
    """Stretches of time of equal length as the steps of these pages, of which there is at least one. O(m log m)."""
    row = observations.row_of_observation()
    other = np.where(rows, 0, 1)
    time = observations.time[rows[row]]
    start, end = float(time.min()), float(time.max())
    period = max(float(usual_period(observations, other)[0]), (end - start) / _MOST)
    wanted = np.clip((end - start) / period, _FEWEST, _MOST) if period > 0 else _FEWEST
    edges = bins(start, end, int(np.ceil(wanted)) + 1)
    stretch = np.searchsorted(edges, observations.time, side="right")
    return CrawlSteps(known_segments(observations, other, stretch), 0, rows, float(edges[1] - edges[0]))


_WHOLE = 0.5
_NOTHING = -1


class PageOutcome(enum.IntEnum):
    """What became of a page or link from one crawl to the next."""

    UNCHANGED = 0
    CHANGED = 1
    NEW = 2
    DELETED = 3
    UNKNOWN = 4
    LEFT_OUT = 5


@dataclass(frozen=True, slots=True)
class CrawlChanges:
    """Counts by crawl (in the order of the crawls of one site, the first left out), kind, and :class:`PageOutcome`."""

    crawl: IntArray
    """Numbers of the crawls. Shape (c,)."""
    pages: IntArray
    """Shape (c, kinds, 6)."""
    links: IntArray
    """Shape (c, 6)."""


@dataclass(frozen=True, slots=True)
class SeenLinks:
    """Links as columns: on which page (row of the observations) each was seen, from when to when."""

    row: IntArray
    first: FloatArray
    last: FloatArray


def crawl_changes(  # noqa: PLR0913 - observations, steps, and what is counted
    observations: Observations,
    rounds: CrawlSegments,
    site: int,
    kind: IntArray,
    links: SeenLinks,
    *,
    by_absence: bool = True,
) -> CrawlChanges:
    """Compare each crawl of a site with what was known before it; ``kind`` numbers the kind of each page from 0.

    Without ``by_absence`` no crawl is whole, and only pages that are found gone are deleted. O((m + l) log m) for m
    observations and l links.

    >>> from recrawl.assess.crawl_segmentation import known_segments
    >>> from recrawl.model import Visits
    >>> observations = Observations.from_visits(Visits.of([1, 1, 2, 3], [0.0, 9.0, 0.0, 9.0], verdict=[0, 2, 0, 0]))
    >>> rounds = known_segments(observations, np.zeros(3, np.int64), (observations.time > 0).astype(np.int64))
    >>> none = SeenLinks(np.empty(0, np.int64), np.empty(0), np.empty(0))
    >>> found = crawl_changes(observations, rounds, 0, np.zeros(3, np.int64), none)
    >>> {one.name: int(count) for one, count in zip(PageOutcome, found.pages[0, 0], strict=True) if count}
    {'CHANGED': 1, 'NEW': 1, 'DELETED': 1}
    """
    crawls = np.flatnonzero(rounds.site == site)
    kinds = int(kind.max(initial=0)) + 1
    step = np.full(len(rounds), -1)
    step[crawls] = np.arange(len(crawls))
    found = _CrawlObservations.of(observations, step[rounds.of_observation])
    became, until = found.became(len(crawls), by_absence=by_absence)
    shape = (max(len(crawls), 1), kinds, len(PageOutcome))
    pages = np.zeros(shape, np.int64)
    counted = became >= 0
    np.add.at(pages, (found.step[counted], kind[found.row[counted]], became[counted]), 1)
    alive = _links_alive(observations, found, links)
    link_counts = np.zeros((shape[0], len(PageOutcome)), np.int64)
    for what, count in zip((PageOutcome.UNCHANGED, PageOutcome.NEW, PageOutcome.DELETED), alive[:3], strict=True):
        np.add.at(link_counts[:, what], found.step, count)
    one = np.ones(len(found.row), np.int64)
    for weight, into in ((one, None), (alive[3], link_counts)):
        _absences(found, until, kind, weight, pages if into is None else into)
    return CrawlChanges(crawls[1:], pages[1 : len(crawls)], link_counts[1 : len(crawls)])


@dataclass(frozen=True, slots=True)
class _CrawlObservations:
    """The first observation of each page in each crawl, by page and time."""

    row: IntArray
    step: IntArray
    observation: IntArray
    gone: BoolArray
    opens: BoolArray
    """The first of its page."""
    ends: BoolArray
    """The last of its page."""
    verdict: AnyArray
    """On all the time since the one before."""

    @classmethod
    def of(cls, observations: Observations, step: IntArray) -> _CrawlObservations:
        row = observations.row_of_observation()
        observation = np.flatnonzero(step >= 0)
        observation = observation[starts_of_runs(row[observation], step[observation])]
        # A page may be observed for other reasons between the crawls on record: what those observations say counts too.
        changed, unknown = (
            np.append(0, np.cumsum(observations.says == says)) for says in (Verdict.CHANGED, Verdict.UNKNOWN)
        )
        before = np.append(0, observation[:-1])[: len(observation)]
        any_changed = changed[observation + 1] > changed[before + 1]
        any_unknown = unknown[observation + 1] > unknown[before + 1]
        verdict = np.where(any_changed, Verdict.CHANGED, np.where(any_unknown, Verdict.UNKNOWN, Verdict.UNCHANGED))
        opens, ends = starts_of_runs(row[observation]), ends_of_runs(row[observation])
        return cls(
            row[observation], step[observation], observation, observations.gone[observation], opens, ends, verdict
        )

    def became(self, crawls: int, *, by_absence: bool) -> tuple[AnyArray, IntArray]:
        """What became of each page in each crawl that observed it, and up to which crawl it is left out after that."""
        was_gone = ~self.opens & np.append(False, self.gone[:-1])[: len(self.gone)]
        judged = np.select(
            [self.verdict == Verdict.CHANGED, self.verdict == Verdict.UNCHANGED],
            [PageOutcome.CHANGED, PageOutcome.UNCHANGED],
            PageOutcome.UNKNOWN,
        )
        became = np.select([self.gone, self.opens | was_gone], [PageOutcome.DELETED, PageOutcome.NEW], judged)
        # Gone when first heard of, or gone before: nothing was there to delete.
        became = np.where(self.gone & (self.opens | was_gone), _NOTHING, became)
        there = np.bincount(self.step[~self.gone], minlength=crawls)
        whole = np.append(False, by_absence & (there[1:] >= _WHOLE * there[:-1]))[:crawls]
        next_whole = np.minimum.accumulate(np.where(whole, np.arange(crawls), crawls)[::-1])[::-1]
        following = np.append(self.step[1:], 0)[: len(self.step)]
        lost = np.append(next_whole, [crawls, crawls])[self.step + 1]
        until = np.where(self.gone, self.step + 1, np.where(self.ends, lost, following))
        return became, until


def _absences(found: _CrawlObservations, until: IntArray, kind: IntArray, weight: IntArray, counts: IntArray) -> None:
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
        counts[:, : left_out.shape[1], PageOutcome.LEFT_OUT] += left_out
        np.add.at(counts, (until[lost], place[lost], np.full(int(lost.sum()), PageOutcome.DELETED)), weight[lost])
    else:
        counts[:, PageOutcome.LEFT_OUT] += left_out[:, 0]
        np.add.at(counts[:, PageOutcome.DELETED], until[lost], weight[lost])


def _links_alive(
    observations: Observations, found: _CrawlObservations, links: SeenLinks
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Links that each observation of a crawl found unchanged, new and deleted, and how many there were then."""
    rows = offsets_of(found.row, len(observations))
    time = observations.time[found.observation]
    some = (links.row >= 0) & (rows[links.row + 1] > rows[links.row])
    row, first = links.row[some], links.first[some]
    last = _until_changed(observations, row, first, links.last[some])
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


def _until_changed(observations: Observations, row: IntArray, first: FloatArray, last: FloatArray) -> FloatArray:
    """The last observation before the one that found other links on the page.

    Also one that read its links again. Only observations after ``last`` count.
    """
    linked = (observations.kinds & np.uint16(ChangeKind.LINKS | ChangeKind.NEW_LINKS)) != 0
    starts = observations.opens() | observations.gone | linked
    for written in (first, last):
        place = ragged_search(observations.offsets, observations.time, row, written, after_equal=False)
        here = np.minimum(place, max(len(observations.time) - 1, 0))
        starts[here[(place < observations.offsets[row + 1]) & (observations.time[here] == written)]] = True
    version = np.cumsum(starts) - 1
    ends = np.flatnonzero(ends_of_runs(version))[version]
    place = ragged_search(observations.offsets, observations.time, row, last, after_equal=True) - 1
    known = place >= observations.offsets[row]
    return np.where(known, np.maximum(last, observations.time[ends[np.maximum(place, 0)]]), last)
