"""The pages of a policy benchmark and their true histories.

Rows are pages in the order of birth; the row is the page id.

A field can be made from visits (:func:`field_from_histories`). They tell that a page changed between two observations,
not when or how often. So each gap with a change gets one change at a random time; several draws show how much that
matters. Logs of changes (``ChangeKind.EXACT``) have exact times, of which nothing is drawn. Changes that no visit found
are missing, which favours policies that visit as the histories did.

A page exists from its first observation until it is found gone for good, or until its last observation, with two
exceptions. Pages with a log exist to the end of the record. Pages that the recorded crawl chose not to revisit exist
until the last observation of any page: otherwise the other policies would be spared the visits that this choice saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from recrawl.estimate.site_signals import MOMENT
from recrawl.model import BoolArray, FloatArray, Histories, IntArray, Pages
from recrawl.predict.related_pages import UrlClusters
from recrawl.simulate.sampling import Collection, PageTruth
from recrawl.simulate.virtual_web import EventTimes


@dataclass(frozen=True, slots=True)
class BenchmarkField:
    """Pages and what really happened to them."""

    name: str
    truth: PageTruth
    """Births ascending."""
    host: IntArray
    """Host of each page, 0 … hosts − 1."""
    cluster: IntArray
    """Related pages by their URLs: whole clusters are resampled, and policies may use them."""
    importance: FloatArray
    urls: tuple[str, ...] = ()
    """Of each page; empty where pages have none."""
    links: FloatArray = field(default_factory=lambda: np.empty(0))
    """New links of each change, as the changes of the truth lie; empty if not known."""

    def __post_init__(self) -> None:
        n = len(self.truth)
        if not len(self.host) == len(self.cluster) == len(self.importance) == n:
            msg = "truth, host, cluster and importance differ in length"
            raise ValueError(msg)
        if self.urls and len(self.urls) != n:
            msg = f"{len(self.urls)} URLs for {n} pages"
            raise ValueError(msg)
        if len(self.links) not in {0, len(self.truth.changes.times)}:
            msg = f"{len(self.links)} counts of links for {len(self.truth.changes.times)} changes"
            raise ValueError(msg)
        if not bool(np.isfinite(self.truth.born).all()) or bool((np.diff(self.truth.born) < 0).any()):
            msg = "pages are not in the order of their births"
            raise ValueError(msg)

    def __len__(self) -> int:
        return len(self.truth)

    @classmethod
    def of(
        cls,
        name: str,
        truth: PageTruth,
        *,
        host: npt.ArrayLike = 0,
        cluster: npt.ArrayLike | None = None,
        importance: npt.ArrayLike = 1.0,
    ) -> BenchmarkField:
        """A field from a truth in any order of births. Without clusters every page is one of its own."""
        n = len(truth)
        there = np.flatnonzero(np.isfinite(truth.born))
        rows = there[np.argsort(truth.born[there], kind="stable")]
        columns = [
            np.broadcast_to(np.asarray(host, dtype=np.int64), n),
            np.arange(n) if cluster is None else np.broadcast_to(np.asarray(cluster, dtype=np.int64), n),
        ]
        weight = np.broadcast_to(np.asarray(importance, dtype=np.float64), n)
        return cls(name, truth.take(rows), columns[0][rows], columns[1][rows], weight[rows].copy())

    def clusters(self, pages: Pages) -> IntArray:
        """Which of these pages, given in order of discovery, belong together: by their URLs, and by no others.

        What a policy may know of clusters. O(pages · depth) of Python where pages have URLs.
        """
        if not self.urls:
            return self.cluster[pages.id]
        return UrlClusters().add([self.urls[row] for row in pages.id.tolist()])

    def rates(self, page: IntArray) -> FloatArray:
        """True changes per second of these pages, over the part of their lives that is recorded: for oracles only."""
        truth = self.truth
        lived = np.minimum(truth.died, truth.end) - np.maximum(truth.born, truth.start)
        return np.asarray((truth.changes.counts() / np.maximum(lived, 1.0))[page])

    def at_most(self, pages: int) -> BenchmarkField:
        """About N pages: whole clusters, evenly spread over them. All if there are no more.

        Where clusters are so large that not one of them is due, N pages of the largest, evenly spread.
        """
        if len(self) <= pages:
            return self
        number, place = np.unique(self.cluster, return_inverse=True)
        step = np.floor(np.arange(len(number) + 1) * (pages / len(self)))
        chosen = np.asarray(np.diff(step)[place] > 0)
        if chosen.any():
            return self.take(chosen)
        largest = np.flatnonzero(place == np.bincount(place).argmax())
        return self.take(largest[np.linspace(0, len(largest) - 1, min(pages, len(largest))).astype(np.int64)])

    def take(self, rows: IntArray | BoolArray) -> BenchmarkField:
        """Some of the pages, by ascending position or mask."""
        places = np.arange(len(self))[rows]
        urls = tuple(self.urls[place] for place in places.tolist()) if self.urls else ()
        return replace(
            self,
            truth=self.truth.take(places),
            host=self.host[places],
            cluster=self.cluster[places],
            importance=self.importance[places],
            urls=urls,
            links=_links_of(self.truth, self.links, places),
        )


def field_of(collection: Collection, *, most_pages: int | None = None) -> BenchmarkField:
    """The field of one collection; with ``most_pages``, about N in whole clusters, evenly spread over them."""
    return field_of_all(collection.name, [collection], most_pages=most_pages)


def field_of_all(name: str, collections: Sequence[Collection], *, most_pages: int | None = None) -> BenchmarkField:
    """Several collections as one field, from the first start to the last end."""
    lifetimes = [collection.watched() for collection in collections]
    whole = PageTruth(
        np.concatenate([life.born for life in lifetimes]),
        np.concatenate([life.died for life in lifetimes]),
        EventTimes.concatenate([life.changes for life in lifetimes]),
        min(life.start for life in lifetimes),
        max(life.end for life in lifetimes),
    )
    urls = [url for collection in collections for url in collection.urls]
    there = np.flatnonzero(np.isfinite(whole.born))
    rows = there[np.argsort(whole.born[there], kind="stable")]
    named = tuple(urls[row] for row in rows.tolist())
    clusters = UrlClusters()
    cluster = clusters.add(named)
    links = np.concatenate([collection.links for collection in collections])
    links = _links_of(whole, links if len(links) == len(whole.changes.times) else np.empty(0), rows)
    ground = BenchmarkField(name, whole.take(rows), clusters.host[cluster], cluster, np.ones(len(rows)), named, links)
    return ground if most_pages is None else ground.at_most(most_pages)


def _links_of(truth: PageTruth, links: FloatArray, rows: IntArray) -> FloatArray:
    """The counts of the changes of some pages: they go where the times of the changes go."""
    counts = EventTimes(truth.changes.offsets, links)
    return replace(truth, changes=counts).take(rows).changes.times if len(links) else links


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
) -> BenchmarkField:
    """One of the fields that these histories allow; all columns have a row per page. O(gaps log gaps).

    ``histories`` have logged changes as exact observations. ``exact`` are pages all of whose changes were
    logged. ``stays`` are pages that exist as long as any page is observed, whenever they were last observed
    themselves. ``gone_since`` says when pages were found gone that were never found again, NaN for others. Other pages
    observed only once are left out.

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
    truth = PageTruth(kept.first_visit, until, changes, *_span(kept.first_visit, until))
    return BenchmarkField.of(name, truth, host=host[lived], cluster=cluster[lived], importance=importance[lived])


def visits_per_page(histories: Histories, *, exact: BoolArray, stays: BoolArray) -> float:
    """How many observations per second were spent on each page while it was there, first ones not counted.

    0 without any.

    A page is there as long as in the field of the same histories. Pages with a log were not observed.

    >>> from recrawl.model import Visits
    >>> told = Histories.from_visits(Visits.of([1, 1, 2, 2], [0.0, 10.0, 0.0, 30.0], verdict=[0, 1, 0, 1]))
    >>> none = np.array([False, False])
    >>> visits_per_page(told, exact=none, stays=none), visits_per_page(told, exact=none, stays=np.array([True, False]))
    (0.05, 0.03333333333333333)
    """
    there = float((_until(histories, exact, stays) - histories.first_visit)[~exact].sum())
    return int(histories.counts()[~exact].sum()) / there if there > 0 else 0.0


def _until(histories: Histories, exact: BoolArray, stays: BoolArray) -> FloatArray:
    """When each page goes.

    With its last observation, with the last observation of any page, or at the end of the record.
    """
    last = histories.last_visit
    seen = np.where(stays, np.nanmax(last[~exact], initial=-np.inf), last)
    return np.where(exact, np.nanmax(last, initial=-np.inf), seen)


def _span(first: FloatArray, last: FloatArray) -> tuple[float, float]:
    return float(first.min()), float(last.max())


def known_times(histories: Histories) -> BoolArray:
    """Of which gaps it is known when the change in them happened: those no longer than the moment of a logged one."""
    return np.asarray(histories.changed & (histories.gaps <= MOMENT))


def _drawn(histories: Histories, rng: np.random.Generator) -> EventTimes:
    """A time for every change that was found: the known one, or one drawn from its gap."""
    row = histories.row_of_gap()[histories.changed]
    end, gap = histories.observation_times()[histories.changed], histories.gaps[histories.changed]
    back = np.where(known_times(histories)[histories.changed], 0.0, rng.random(len(row)) * gap)
    return EventTimes.of(row, end - back, len(histories))
