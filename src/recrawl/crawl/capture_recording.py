"""Keep what one step of a capture brought: links and pages found, bytes archived, the visit with its step.

Order matters for a kill at any moment. Links and new pages come first: those of a visit that was never acknowledged are
passed over. The bytes come next: an archive record without a visit is cut off at the next start. Last, in one
transaction, comes the visit with the step that it was and the pages that it found; once that is written, the step was
made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from recrawl.crawl.archive import Archive
from recrawl.crawl.capture_course import Course, Stop
from recrawl.crawl.capture_map import SiteMap
from recrawl.crawl.judging import Judging
from recrawl.crawl.parse_pool import ParsePool
from recrawl.crawl.recorder import last_modified_claims, newly_stated, recall
from recrawl.crawl.target import Visited
from recrawl.crawl.versions import last_version
from recrawl.detect import Known
from recrawl.detect.digest import digest
from recrawl.detect.version import CostlyError, Effort, body_of, page_version
from recrawl.model import Capture, FloatArray, IntArray, Outcome, Visits
from recrawl.store.base import Store
from recrawl.store.site_values import FoundPages, SiteCapture, SiteProgress, SiteStep

Rates = Callable[[IntArray], FloatArray]
"""Believed change rates of pages, per second, by their ids."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Where a capture stands, before the step is told to the course."""

    course: Course
    stop: Stop
    site: SiteMap


class StepRecorder:
    """Between the driver of a capture and the store."""

    def __init__(self, store: Store, archive: Archive, rates: Rates, judging: Judging) -> None:
        self._store = store
        self._judging = judging
        self._archive = archive
        self.rates = rates
        """What is believed of pages when they are found."""

    def known(self, page: int, *, conditional: bool) -> Known | None:
        """What the judge must know of a page; without what would make the request conditional, if it is not to be."""
        one = np.array([page])
        [known] = recall(self._store, one, self._store.validators(one))
        if known is None or conditional:
            return known
        return replace(known, validators=replace(known.validators, etag="", last_modified=""))

    def record(self, capture: SiteCapture, stage: Stage, visited: Visited, host_ready: float) -> FoundPages:
        """Acknowledge a step; the pages it found. ``host_ready`` is when its host may be asked again.

        If it was looked at twice, the first look is the step, and the second is kept beside it.
        """
        looks = [visited.first, visited] if visited.first else [visited]
        visited, stop = looks[0], stage.stop
        visit = visited.visit
        found = self._nothing_found()
        if not visited.is_our_fault:
            links = links_of(visited, self._judging.pool)
            ids = self._store.discover(links, visit.time, importance=0.0)
            self._note(visited, ids)
        answered = [look for look in looks if look.capture is not None]
        captures = [record for kept in self._archive.keep(answered) for record in kept] if answered else []
        self._archive.settle()
        if not visited.is_our_fault:
            found = self._found(stage.site, stop, links, ids, visit.outcome)
        step = SiteStep(
            stage.course.steps, stop.number, stop.revisit, visit.time, outcome=visit.outcome, verdict=visit.verdict
        )
        lessons = self._judging.lessons(looks)
        self._store.record(
            Visits.from_rows(look.visit for look in looks),
            validators=[None if look.is_our_fault else last_version(look) for look in looks],
            captures=captures,
            host_ready=np.full(len(looks), host_ready),
            site=SiteProgress(capture.id, step, found, known=stage.course.pages),
            lessons=lessons,
        )
        self._judging.learn(lessons)
        self._archive.acknowledged(captures)
        return found

    def rated(self, page: IntArray, via: IntArray) -> FoundPages:
        """Pages with the rates believed and how much they matter: those that are only remembered count as any other."""
        if not len(page):
            return FoundPages(page, via, np.empty(0), np.empty(0))
        pages = self._store.pages(np.sort(page))
        importance = pages.importance[np.searchsorted(pages.id, page)]
        return FoundPages(page, via, self.rates(page), np.where(importance > 0, importance, 1.0))

    def hosts(self, page: IntArray) -> list[int]:
        """The host of each page."""
        pages = self._store.pages(np.unique(page))
        hosts: list[int] = pages.host[np.searchsorted(pages.id, page)].tolist()
        return hosts

    def _note(self, visited: Visited, ids: IntArray) -> None:
        """Note the links of the page, and what it says of its last change."""
        page, time, judgement = visited.target.page, visited.visit.time, visited.judgement
        if judgement.links_read and judgement.links:
            self._store.record_links(np.full(len(ids), page), ids, np.full(len(ids), time))
        [before] = self._store.validators(np.array([page]))
        stated = newly_stated(judgement.validators, before)
        self._store.add_claims(last_modified_claims([] if stated is None else [(page, time, stated)]))

    def _nothing_found(self) -> FoundPages:
        return self.rated(np.empty(0, np.int64), np.empty(0, np.int64))

    def _found(self, site: SiteMap, stop: Stop, links: Sequence[str], ids: IntArray, outcome: Outcome) -> FoundPages:
        """Pages that a visit found, in the order of its links; a revisit finds none."""
        if stop.revisit:
            return self._nothing_found()
        if outcome == Outcome.REDIRECTED and links:
            site.follow(stop.number, links[0])
        new = np.array(site.admit(stop.number, links, ids.tolist()), np.int64)
        site.host += self.hosts(new)
        return self.rated(new, np.full(len(new), stop.number))


def links_of(visited: Visited, pool: ParsePool | None = None) -> list[str]:
    """Absolute URLs that an answer leads to, in their order: its links, or where it redirects to.

    An answer that repeats a known version says nothing new of its links, so they are read once more; by the pool, if
    that is not cheap.
    """
    judgement, capture = visited.judgement, visited.capture
    if judgement.outcome == Outcome.REDIRECTED:
        return [judgement.redirect_to] if judgement.redirect_to else []
    if judgement.links_read or capture is None or judgement.outcome != Outcome.FETCHED:
        return list(judgement.links)
    if pool is not None:
        try:
            return _links_in(capture, Effort.CHEAP)
        except CostlyError:
            pass
        try:
            return pool.call(_links_in, capture)
        except Exception:  # noqa: BLE001 - whatever happened to the worker: the answer was told not to be read before
            return []
    return _links_in(capture)


def _links_in(capture: Capture, effort: Effort = Effort.ALL) -> list[str]:
    body, whole = body_of(capture, effort)
    version = page_version(capture, body, digest(body), whole=whole, effort=effort)
    return [link.url for link in version.links or ()]
