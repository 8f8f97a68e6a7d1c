"""The pages of a site as its graph and its scatter plot show them: what became of each, and below which it hangs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.assess.archive_quality import ArchiveQuality, last_change_classes
from recrawl.assess.crawl_segmentation import known_segments, pair
from recrawl.assess.observations import NOWHERE, Observations, last_change, last_there, times_there
from recrawl.assess.site_structure import ROOT, ChangeClass, spanning_tree
from recrawl.model import ANSWERED, AnyArray, FloatArray, IntArray, Outcome
from recrawl.store.base import CaptureIndex, HistoryStore, Store
from recrawl.store.store_values import REVISIT, SiteLog
from recrawl.urls import surt

_PAGES_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class SitePages:
    """Pages as columns, by URL, so that neighbours are neighbours of the site too."""

    page: IntArray
    """Ids."""
    urls: list[str]
    change: AnyArray
    """:class:`~recrawl.assess.site_structure.ChangeClass`."""
    rate: FloatArray
    """Changes per second; NaN where not known."""
    changed_at: FloatArray
    """When it was last found changed, seconds since the epoch; NaN if never."""
    seen_at: FloatArray
    """When it was last found, NaN if never."""
    captures: IntArray
    """How often it was found."""
    mime: list[str]
    """Media types, empty where unknown."""
    parent: IntArray
    """Position of the page each hangs below, or ``ROOT``."""

    def __len__(self) -> int:
        return len(self.page)

    def by_url(self) -> SitePages:
        """The same in the order of URLs. O(n log n)."""
        order = np.array(sorted(range(len(self)), key=self.urls.__getitem__), np.int64)
        place = np.empty(len(order) + 1, np.int64)
        place[order], place[-1] = np.arange(len(order)), ROOT
        rows = order.tolist()
        return SitePages(
            self.page[order],
            [self.urls[row] for row in rows],
            self.change[order],
            self.rate[order],
            self.changed_at[order],
            self.seen_at[order],
            self.captures[order],
            [self.mime[row] for row in rows],
            place[self.parent[order]],
        )


def pages_of_archive(
    store: Store, quality: ArchiveQuality, urls: list[str], via: IntArray, mime: list[str] | None = None
) -> SitePages:
    """All pages of an archive with their last results.

    ``urls``, ``via`` (the page each was found on, or ``ROOT``) and ``mime`` (else it is looked up) are in the order of
    ``quality.observations``.
    """
    observations = quality.observations
    first = observations.time[observations.offsets[:-1]]
    keys = [surt(url) or url for url in urls]
    return SitePages(
        observations.page,
        urls,
        last_change_classes(quality),
        quality.rate,
        last_change(observations),
        last_there(observations),
        times_there(observations),
        media_types(store, observations.page) if mime is None else mime,
        spanning_tree(keys, first, *links_among(store, observations.page), via),
    ).by_url()


def pages_of_capture(store: Store, capture: int) -> SitePages:
    """The pages of one site capture with the results of their revisits, or of their next observations.

    Discovered pages without a visit are included, as not observed again.
    """
    log = store.site_log(capture)
    page, number = np.unique(log.found.page, return_index=True)
    started = min((step.time for step in log.steps), default=np.inf)
    observations = Observations.from_visits(store.visits(pages=page, since=started))
    row = np.searchsorted(page, observations.page)
    change = np.full(len(page), ChangeClass.UNSEEN)
    change[row] = _classes(log, observations)
    first, changed, seen = np.full(len(page), np.inf), np.full(len(page), np.nan), np.full(len(page), np.nan)
    first[row], changed[row], seen[row] = (
        observations.time[observations.offsets[:-1]],
        last_change(observations),
        last_there(observations),
    )
    captures = np.zeros(len(page), np.int64)
    captures[row] = times_there(observations)
    place = np.empty(len(log.found) + 1, np.int64)
    place[:-1], place[-1] = np.searchsorted(page, log.found.page), ROOT
    urls = store.urls(page)
    keys = [surt(url) or url for url in urls]
    via = place[log.found.via[number]]
    parent = spanning_tree(keys, first, *links_among(store, page), via)
    return SitePages(
        page, urls, change, log.found.rate[number], changed, seen, captures, media_types(store, page), parent
    ).by_url()


def _classes(log: SiteLog, observations: Observations) -> AnyArray:
    """The result for each visited page, from its visit in the capture on."""
    step_page = log.found.page[[step.number for step in log.steps]] if log.steps else np.empty(0, np.int64)
    place = observations.find(step_page, np.array([step.time for step in log.steps], np.float64))
    ours = np.ones(len(observations.time), np.int64)
    ours[place[place != NOWHERE]] = 0
    revisited = np.array([step.revisit for step in log.steps], np.bool_)
    there = np.array([step.outcome <= ANSWERED and step.outcome != Outcome.GONE for step in log.steps], np.bool_)
    once = np.zeros(len(observations.time), np.bool_)
    if revisited.any():  # the innermost page is visit and revisit in one, if all others were revisited
        alone = there & ~revisited & ~np.isin(step_page, step_page[revisited]) & (place != NOWHERE)
        if int(alone.sum()) == 1:
            once[place[alone]] = True
    site = np.zeros(len(observations), np.int64)
    rounds = known_segments(observations, site, ours)
    pairs = pair(observations, rounds, site, once)
    captured = ours[pairs.visit] == 0
    classes = np.full(len(observations), ChangeClass.UNSEEN)
    classes[pairs.row[captured]] = pairs.change_classes()[captured]
    return classes


def links_among(store: HistoryStore, page: IntArray) -> tuple[IntArray, IntArray]:
    """Links among pages (ids, ascending), as positions: from where, and to where."""
    sources, targets = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for start in range(0, len(page), _PAGES_AT_ONCE):
        links = store.outlinks(page[start : start + _PAGES_AT_ONCE])
        inside = np.isin(links.target, page)
        sources.append(np.searchsorted(page, links.source[inside]))
        targets.append(np.searchsorted(page, links.target[inside]))
    return np.concatenate(sources), np.concatenate(targets)


def media_types(store: CaptureIndex, page: IntArray) -> list[str]:
    """The media type of each page as its last capture that names one has it, without parameters; empty if none does."""
    known: dict[int, str] = {}
    for start in range(0, len(page), _PAGES_AT_ONCE):
        captures = store.capture_columns(page[start : start + _PAGES_AT_ONCE])
        named = zip(captures.page.tolist(), captures.mime, strict=True)
        known.update((one, mime) for one, mime in named if mime and mime != REVISIT)
    return [known.get(one, "").partition(";")[0].strip().lower() for one in page.tolist()]
