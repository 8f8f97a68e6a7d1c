"""Recorded sites as virtual sites: pages that existed at a given time, and all their later changes.

Changes count as in :mod:`recrawl.simulate.sampling`; disappearing and reappearing are changes, too. Pages born later
are not part of a capture. A record has the links that authors wrote, without menus and lists: much of a site is not
reachable by them. Therefore every page is also linked from the nearest page above it in the tree of paths; pages with
none above them are seeds.

Strategies use true rates, rates learned from visits, or rates stated by a sitemap. A capture either takes the whole
second half of the record, as in the thesis, or a given duration, from many starts; rates are learned before it starts.
Expected quality uses the true rates, actual quality the recorded changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from recrawl.capture import REVISITING, CaptureTerms
from recrawl.capture.believed_rates import disappearance_hazard, steady_rates
from recrawl.capture.sharc_optimal import optimal
from recrawl.capture.strategy import LinkGraph
from recrawl.estimate import site_signals
from recrawl.estimate.estimator import RateEvidence
from recrawl.estimate.posterior.posterior_estimators import Posterior
from recrawl.model import FloatArray, GridBelief, Histories, IntArray
from recrawl.model.arrays import offsets_of, starts_of_runs
from recrawl.predict.related_pages import UrlClusters
from recrawl.simulate.sampling import Collection, PageTruth, RegularVisits, sample
from recrawl.simulate.virtual_web import EventTimes, WebLinks
from recrawl.time import DAY, HOUR, WEEK
from recrawl_lab.trials.simulated_capture import SimulatedQuality, VirtualSite, capture_named, slots


@dataclass(frozen=True, slots=True)
class RecordedSite:
    """A site whose every change and link is on record."""

    collection: Collection
    links: WebLinks
    """Between pages by their place in the collection."""

    @property
    def name(self) -> str:
        """What the record calls it."""
        return self.collection.name

    @property
    def middle(self) -> float:
        """The moment that cuts the record in halves: rates are learned before it, captures are taken after it."""
        return (self.collection.start + self.collection.end) / 2.0

    def pages_at(self, moment: float) -> IntArray:
        """The pages that were there, by their place in the collection."""
        lifetimes = self.collection.truth
        there = (lifetimes.birth <= moment) & (moment < lifetimes.death)
        return np.unique(lifetimes.page[there])

    def events(self) -> EventTimes:
        """All changes of each page of the collection, comings and goings included, but not the first coming."""
        lifetimes = self.collection.truth
        again = ~starts_of_runs(lifetimes.page)
        gone = np.isfinite(lifetimes.death)
        row = np.concatenate([lifetimes.page[lifetimes.row_of_change()], lifetimes.page[again], lifetimes.page[gone]])
        time = np.concatenate([lifetimes.times, lifetimes.birth[again], lifetimes.death[gone]])
        return EventTimes.of(row, time, len(self.collection))

    def site_at(self, page: IntArray, start: float, end: float) -> VirtualSite:
        """These pages (from :meth:`pages_at`) as a site that changes from ``start`` to ``end``; page i is ``page[i]``.

        The rate of a page is its number of changes in the span over the span: what an oracle knows (reading 003.37).
        O(pages · depth + links + changes).
        """
        changes = self.events().take(page)
        changes = changes.where((changes.times > start) & (changes.times <= end))
        parent = nearest_above([self.collection.urls[one] for one in page.tolist()])
        return VirtualSite(
            self._graph(page, parent, start),
            np.flatnonzero(parent < 0),
            site_signals.rate(changes.counts(), end - start),
            changes,
        )

    def _graph(self, page: IntArray, parent: IntArray, moment: float) -> LinkGraph:
        """Links that authors wrote, oldest first, and then those to the pages below."""
        links = self.links
        place = np.full(len(self.collection), -1, dtype=np.int64)
        place[page] = np.arange(len(page))
        on = (links.added <= moment) & (moment < links.removed)
        source, target, added = place[links.source[on]], place[links.target[on]], links.added[on]
        kept = (source >= 0) & (target >= 0) & (source != target)
        below = np.flatnonzero(parent >= 0)
        source = np.concatenate([source[kept], parent[below]])
        target = np.concatenate([target[kept], below])
        added = np.concatenate([added[kept], np.full(len(below), np.inf)])
        order = np.lexsort((target, added, source))
        return LinkGraph(offsets_of(source[order], len(page)), target[order])


def nearest_above(urls: Sequence[str]) -> IntArray:
    """Of each page the one with the longest path that its own continues; −1 where there is none. O(pages · depth).

    >>> nearest_above(["http://a.test/", "http://a.test/x/", "http://a.test/x/y/z", "http://b.test/q"]).tolist()
    [-1, 0, 1, -1]
    """
    place = {url.rstrip("/"): number for number, url in reversed(list(enumerate(urls)))}
    return np.fromiter((_above(url.rstrip("/"), place) for url in urls), np.int64, len(urls))


def _above(path: str, place: dict[str, int]) -> int:
    while "/" in path:
        path = path.rpartition("/")[0]
        if path in place:
            return place[path]
    return -1


def learned_belief(
    site: RecordedSite, page: IntArray, now: float, rng: np.random.Generator, *, interval: float = WEEK
) -> GridBelief:
    """What visits every ``interval`` seconds before ``now`` taught of these pages.

    The grid posterior with a prior for each directory. Pages too young to have been visited twice get that of their
    directory. O(visits · rates of the grid).
    """
    whole = site.collection.watched()
    seen = PageTruth(whole.born, whole.died, whole.changes, whole.start, now).take(page)
    histories = Histories.from_visits(sample(seen, RegularVisits(interval), rng)).align(np.arange(len(page)))
    clusters = UrlClusters().add([site.collection.urls[one] for one in page.tolist()])
    return Posterior()(RateEvidence(histories, (clusters,)))


def hazard_before(site: RecordedSite, now: float) -> float:
    """Disappearances of pages a second, as far as they were seen before ``now``."""
    lifetimes = site.collection.truth
    born = np.maximum(lifetimes.birth, site.collection.start)
    past = born < now
    lost = lifetimes.death[past] <= now
    watched = np.minimum(lifetimes.death[past], now) - born[past]
    return float(disappearance_hazard(np.array([lost.sum()]), np.array([watched.sum()]))[0])


def past_rates(site: RecordedSite, page: IntArray, now: float) -> FloatArray:
    """True changes per second of these pages before ``now``, over the time since they first came."""
    born = site.collection.watched().born[page]
    lived = now - np.maximum(born, site.collection.start)
    return np.asarray(site.events().take(page).until(np.arange(len(page)), now) / np.maximum(lived, 1.0))


def claimed_categories(rate: FloatArray) -> IntArray:
    """The changefreq that an honest owner of pages of these rates writes: the most frequent one that is not too often.

    A page that changes every three days on average is ``weekly``; one that takes more than a year is ``never``.

    >>> day = 1 / 86400.0
    >>> claimed_categories(np.array([day, day / 3, day / 400, 0.0])).tolist()
    [3, 4, 7, 7]
    """
    with np.errstate(divide="ignore"):
        between = np.where(rate > 0, 1.0 / rate, np.inf)
    # A little more than the interval is still within it: a rate and its inverse are rounded.
    return np.searchsorted(np.array(site_signals.INTERVALS) * (1.0 + 1e-9), between) + 1


def hinted_rates(rate: FloatArray, reading: site_signals.Reading) -> FloatArray:
    """The rates, per second, that readers of a sitemap make of such claims (SHARC Definition 6.1)."""
    return site_signals.rates(claimed_categories(rate), reading)


Source = Literal["oracle", "learned", "change-only", "median", "sitemap", "sitemap-corrected", "none"]
"""Where rates come from: the future, visits in the past, or Definition 6.1 as printed or corrected. Of visits also
without the hazard of disappearance, or as the median of the belief. ``none``: the strategy uses no rates."""
SOURCES: tuple[Source, ...] = ("oracle", "learned", "sitemap", "sitemap-corrected")
SINGLE_VISIT = ("sharc-offline", "sharc-online", "hottest-first", "hottest-last", "bfs", "dfs", "olston-pandey")
"""Strategies for low blur."""
BASELINES = tuple(
    f"{name}-{order}" for name in ("hottest-first", "hottest-last", "bfs", "dfs") for order in ("fifo", "lifo")
)
"""What people do without SHARC, each page seen twice."""
VISIT_REVISIT = (
    "sharc-optimal",
    "sharc-selective",
    "sharc-selective-online",
    "sharc-threshold",
    "sharc-intervals",
    "sharc-intervals-online",
    "sharc-revisits",
    *BASELINES,
)
"""Strategies for high coherence."""
TIMED: Mapping[str, Sequence[Source]] = {
    "bfs-lifo": ("none",),
    "bfs-fifo": ("none",),
    "dfs-lifo": ("none",),
    "hottest-first-lifo": ("learned",),
    "hottest-last-lifo": ("learned",),
    "sharc-threshold": ("learned",),
    "sharc-selective": ("learned", "change-only", "median", "oracle"),
    "sharc-selective-online": ("learned",),
    "bfs": ("none",),
    "dfs": ("none",),
    "hottest-last": ("learned",),
    "sharc-offline": ("learned", "oracle"),
    "sharc-online": ("learned",),
}
"""Strategies of captures of given durations, and the rates that each is given."""
DURATIONS = (6 * HOUR, DAY, WEEK, 30 * DAY, 180 * DAY, 540 * DAY)
"""Seconds from the first request of a capture to the last."""


@dataclass(frozen=True, slots=True)
class RecordedTrial:
    """What came of one strategy on one site, in a capture slowed down to fill the second half of the record."""

    site: str
    source: Source
    strategy: str
    pages: float
    expected_blur: float
    actual_blur: float
    expected_incoherence: float
    incoherence: float


@dataclass(frozen=True, slots=True)
class RateBelief:
    """The rates given to a strategy, per second; ``None`` for the true rates."""

    once: FloatArray | None
    """For single visits: mean rates, since blur is linear in the rate."""
    twice: FloatArray | None
    """For visit and revisit: rates that give the believed chance to stay unchanged."""

    def of(self, strategy: str) -> FloatArray | None:
        """The rates for the strategy of that name."""
        return self.twice if strategy in REVISITING else self.once


def believed(  # noqa: PLR0913 - whose rates, when, by whom, and for what
    site: RecordedSite, page: IntArray, now: float, source: Source, *, horizon: float, seed: int
) -> RateBelief:
    """Rates of the pages by what could be known at ``now``; ``horizon`` is how long a page typically has to stay."""
    match source:
        case "oracle":
            return RateBelief(None, None)
        case "learned":
            belief = learned_belief(site, page, now, np.random.default_rng(seed))
            hazard = hazard_before(site, now)
            return RateBelief(belief.mean() + hazard, steady_rates(belief, horizon) + hazard)
        case "sitemap":
            hinted = hinted_rates(past_rates(site, page, now), "literal")
        case "sitemap-corrected":
            hinted = hinted_rates(past_rates(site, page, now), "corrected")
        case _:
            msg = f"no rates of the kind {source}"
            raise ValueError(msg)
    return RateBelief(hinted, hinted)


def slowed_down(site: RecordedSite, source: Source, strategies: Iterable[str], *, seed: int) -> list[RecordedTrial]:
    """One capture that takes the whole second half of the record (SHARC 4.5.3): delay = span/(slots − 1)."""
    start, end = site.middle, site.collection.end
    page = site.pages_at(start)
    if not len(page):
        return []
    whole = site.site_at(page, start, end)
    rates = believed(site, page, start, source, horizon=(end - start) / 2.0, seed=seed)
    trials = []
    for name in strategies:
        terms = CaptureTerms(delay=(end - start) / max(slots(name, len(page)) - 1, 1), expected=len(page))
        quality = capture_named(whole, name, terms, start=start, believed=rates.of(name)).quality()
        trials.append(_trial(site.name, source, name, quality))
    return trials


def least_incoherence(site: RecordedSite) -> float:
    """What no schedule of the slowed-down capture goes below, with true rates: proved by duality; 0 without pages."""
    start, end = site.middle, site.collection.end
    page = site.pages_at(start)
    if not len(page):
        return 0.0
    rate = site.site_at(page, start, end).rate
    return len(page) - optimal(rate, (end - start) / (2 * len(page) - 1)).bound


@dataclass(frozen=True, slots=True)
class TimedTrial:
    """What came of captures of one duration by one strategy on one site; all starts that the record has room for."""

    site: str
    duration: float
    """Seconds."""
    source: Source
    strategy: str
    captures: int
    pages: float
    """Mean pages of a capture."""
    incoherence: float
    """Mean pages that changed or disappeared between visit and revisit; 0 of single visits."""
    believed: float
    """The same as the strategy expected it, by the rates it was given."""
    blur: float
    """Mean actual blur a page."""
    better: int
    """Captures with less incoherence (of single visits: less blur) than breadth-first, LIFO (breadth-first)."""
    worse: int
    """Captures with more."""


_Result = tuple[int, int, float, float]
"""Pages, incoherent pages, the same as expected by the rates given, and blur a page."""


def of_durations(
    site: RecordedSite, durations: Sequence[float], *, starts: int, seed: int, fewest: int = 5
) -> list[TimedTrial]:
    """Captures that take ``durations`` seconds, each from moments spread evenly over the last two thirds of the record.

    All strategies and durations share the starts, and what visits before each taught. A start belongs to a duration if
    the record lasts until the end of the capture and at least ``fewest`` pages are there.
    """
    record = site.collection
    first = record.start + (record.end - record.start) / 3.0
    found: dict[tuple[float, str, Source], list[_Result]] = {}
    for number in range(starts):
        start = first + (record.end - first) * number / starts
        fitting = [duration for duration in durations if start + duration <= record.end]
        page = site.pages_at(start)
        if len(page) < fewest or not fitting:
            continue
        belief = learned_belief(site, page, start, np.random.default_rng((seed, number)))
        later, hazard = site.site_at(page, start, record.end), hazard_before(site, start)
        for duration in fitting:
            known = _rates_for(belief, hazard, later.rate, duration)
            for name, sources in TIMED.items():
                twice = name in REVISITING
                terms = CaptureTerms(delay=duration / max(slots(name, len(page)) - 1, 1), expected=len(page))
                for source in sources:
                    rate = known[source][twice]
                    taken = capture_named(later, name, terms, start=start, believed=rate)
                    stays = np.exp(-rate[taken.page] * (taken.revisit - taken.visit))
                    blur = 0.0 if twice else taken.actual_blur()
                    result = len(taken.page), taken.incoherence(), float((1.0 - stays).sum()), blur
                    found.setdefault((duration, name, source), []).append(result)
    return [
        _timed(site.name, duration, name, source, taken, found[duration, _beside(name), "none"])
        for (duration, name, source), taken in found.items()
    ]


def _beside(strategy: str) -> str:
    """The baseline that a strategy is compared with."""
    return "bfs-lifo" if strategy in REVISITING else "bfs"


def _rates_for(
    belief: GridBelief, hazard: float, true: FloatArray, duration: float
) -> dict[Source, tuple[FloatArray, FloatArray]]:
    """For each source the rates given to strategies that visit once, and to those that revisit."""
    mean, steady, median = belief.mean(), steady_rates(belief, duration / 2.0), belief.quantile(0.5)
    return {
        "none": (true, true),
        "oracle": (true, true),
        "learned": (mean + hazard, steady + hazard),
        "change-only": (mean, steady),
        "median": (median, median),
    }


def _timed(  # noqa: PLR0913, PLR0917 - a row
    site: str,
    duration: float,
    strategy: str,
    source: Source,
    taken: Sequence[_Result],
    beside: Sequence[_Result],
) -> TimedTrial:
    pages, lost, believed, blur = (np.array(column, np.float64) for column in zip(*taken, strict=True))
    _, other_lost, _, other_blur = (np.array(column, np.float64) for column in zip(*beside, strict=True))
    mine, other = (lost, other_lost) if strategy in REVISITING else (blur, other_blur)
    return TimedTrial(
        site,
        duration,
        source,
        strategy,
        len(taken),
        float(pages.mean()),
        float(lost.mean()),
        float(believed.mean()),
        float(blur.mean()),
        better=int((mine < other).sum()),
        worse=int((mine > other).sum()),
    )


def _trial(site: str, source: Source, strategy: str, quality: SimulatedQuality) -> RecordedTrial:
    names = ("pages", "expected_blur", "actual_blur", "expected_incoherence", "incoherence")
    return RecordedTrial(site, source, strategy, *(float(getattr(quality, name)) for name in names))
