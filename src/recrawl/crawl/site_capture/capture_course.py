"""The course of a site capture: the next steps, from what was found and fetched so far. No I/O, no clock.

Rules of this file:

1. Each host has a *lane*: a strategy of its own, and one step at a time. Lanes are side by side. ``http`` and
   ``https``, with and without ``www``, are one host.
2. Visits come first, in the order of the strategies. When no lane names more, revisits follow in their order. So all
   visits of all hosts lie before one moment, and all revisits behind it.
3. A request that failed (no answer, 5xx, 429) is repeated once in the same phase, after all others of its host. If that
   finds new pages, they are visited before the phase ends. A page that failed twice has failed.
4. Only pages that were there are revisited: not a page that was refused, gone or failed.
5. A strategy may let its last visit be its own revisit. If other visits came after that one, also on other hosts, the
   page is revisited too, first of all: otherwise it would not have been seen at the same time as the others.
6. Equal calls give equal answers: the next step of a lane is chosen as soon as the last one and what it found are
   known, whatever other lanes do. So a killed capture is resumed by repeating the recorded calls.

:class:`SiteMap` holds the pages of a capture in the order found: their place, how they were reached, and their hosts.

The quality of a capture is computed from its recorded steps alone.
"""

from __future__ import annotations

import enum
import json
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from recrawl.assess.blur_coherence import (
    CapturedPages,
    CaptureStatement,
    Names,
    RevisitResult,
    iso,
    statement,
    statement_json,
)
from recrawl.capture import Strategy
from recrawl.capture.strategy import GivesUpPages, ProvenBound, ProvesBound
from recrawl.crawl.site_capture.capture_order import CaptureOrder
from recrawl.crawl.site_capture.capture_terms import Requisites
from recrawl.crawl.visit.scope import PagePosition, SiteScope, trap
from recrawl.errors import StoreError
from recrawl.model import ANSWERED, AnyArray, FloatArray, IntArray, Outcome, Verdict
from recrawl.store.base import HistoryStore
from recrawl.store.store_values import SiteCapture, SiteLog
from recrawl.urls import Address, address


@dataclass(slots=True)
class SiteMap:
    """Grows as a capture goes on; equal steps give equal maps. O(1) per link beside the scope."""

    scope: SiteScope
    most: int | None = None
    """Maximum pages of the capture."""
    requisites: Requisites = Requisites.NONE
    """Which page requisites belong to the capture."""
    page: list[int] = field(default_factory=list)
    """Page ids, by number."""
    url: list[str] = field(default_factory=list)
    host: list[int] = field(default_factory=list)
    _place: list[PagePosition] = field(default_factory=list)
    _known: set[int] = field(default_factory=set)
    _documents: int = 0
    """Pages that are no requisites."""

    @classmethod
    def of(cls, order: CaptureOrder, log: SiteLog, urls: Sequence[str], hosts: list[int]) -> SiteMap:
        """The map that the recorded steps produce."""
        site = cls(SiteScope(order.scope, (order.seed,)), order.max_pages, order.requisites)
        redirected = {step.number for step in log.steps if step.outcome == Outcome.REDIRECTED and not step.revisit}
        for page, via, url in zip(log.found.page.tolist(), log.found.via.tolist(), urls, strict=True):
            if via in redirected:
                site.follow(via, url)
            found, parent = address(url), embedding_page(via)
            if parent >= 0:
                site._add(page, url, site._embedded(found, parent) or PagePosition(embedded=1))
                continue
            place = site.scope.place(found, site._place[via]) if found and via >= 0 else PagePosition()
            site._add(page, url, place or PagePosition())
        site.host = hosts
        if site.url:
            site.url[0] = order.seed.url
        return site

    def follow(self, number: int, url: str) -> None:
        """Record that a page redirects to this URL. If it is the start page, the site lies at the target."""
        found = address(url)
        if number == 0 and found and not self.scope.covers(found):
            self.scope = self.scope.with_seed(found)

    def admit(self, via: int, urls: Sequence[str], pages: Sequence[int]) -> list[int]:
        """Add the links of page ``via`` that belong to the site; return the ids of the new pages, in order.

        Links of a page requisite outside of the scope are not followed. The caller adds the hosts.
        """
        new: list[int] = []
        if self.is_requisite(via) and not ((here := address(self.url[via])) and self.scope.covers(here)):
            return new
        for url, page in zip(urls, pages, strict=True):
            if page < 0 or page in self._known or (self.most is not None and self._documents >= self.most):
                continue
            found = address(url)
            if found is None or trap(found.url, max_depth=self.scope.rules.max_depth):
                continue
            place = self.scope.place(found, self._place[via])
            if place is not None:
                self._add(page, url, place)
                new.append(page)
        return new

    def embed(self, via: int, urls: Sequence[str], pages: Sequence[int]) -> list[int]:
        """Add the page requisites of page ``via`` that belong to the capture; return the ids of new ones, in order.

        The caller adds their hosts.
        """
        new: list[int] = []
        for url, page in zip(urls, pages, strict=True):
            if page < 0 or page in self._known or len(new) >= MOST_REQUISITES:
                continue
            found = address(url)
            if found is None or trap(found.url, max_depth=self.scope.rules.max_depth):
                continue
            place = self._embedded(found, via)
            if place is not None:
                self._add(page, url, place)
                new.append(page)
        return new

    def is_requisite(self, number: int) -> bool:
        """Whether a page is in the capture because another one embeds it."""
        return self._place[number].embedded > 0

    def _embedded(self, found: Address | None, via: int) -> PagePosition | None:
        if found is None or self.requisites is Requisites.NONE:
            return None
        return self.scope.place_embedded(found, self._place[via], anywhere=self.requisites is Requisites.ANY)

    def back_to(self, pages: int, scope: SiteScope) -> None:
        """Drop all but the first pages: the step that found the others could not be recorded."""
        self._known.difference_update(self.page[pages:])
        self._documents -= sum(not place.embedded for place in self._place[pages:])
        del self.page[pages:], self.url[pages:], self._place[pages:], self.host[pages:]
        self.scope = scope

    def _add(self, page: int, url: str, place: PagePosition) -> None:
        self.page.append(page)
        self.url.append(url)
        self._place.append(place)
        self._known.add(page)
        self._documents += not place.embedded


MOST_REQUISITES = 1_000
"""Maximum new requisites of one page or style sheet."""


def embedded_by(number: int) -> int:
    """The value of ``FoundPages.via`` for a requisite of page ``number``: at most −2, where −1 is "known before".

    >>> embedded_by(0), embedding_page(embedded_by(7)), embedding_page(7)
    (-2, 7, -1)
    """
    return -2 - number


def embedding_page(via: int) -> int:
    """The number of the page that embeds a page found via this; −1 if it is no requisite."""
    return max(-2 - via, -1)


TRIES = 2
"""Maximum requests for a page in one phase."""
_FAILED = (Outcome.SERVER_ERROR, Outcome.UNREACHABLE)
_THERE = (Outcome.FETCHED, Outcome.NOT_MODIFIED, Outcome.REDIRECTED)


class CapturePhase(enum.Enum):
    """The phase of a capture."""

    VISIT = "visits"
    REVISIT = "revisits"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class CaptureStep:
    """One step to make: fetch this page, by the order found."""

    number: int
    revisit: bool


class _Lane:
    """The part of a capture on one host."""

    __slots__ = ("failed", "last_asked", "pages", "seen_again", "strategy", "to_revisit", "visited")

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        self.failed: deque[CaptureStep] = deque()
        self.to_revisit: deque[int] = deque()
        self.last_asked = -1
        self.pages = 0
        self.visited = 0
        self.seen_again = 0


@dataclass(frozen=True, slots=True)
class LaneProgress:
    """How far a lane is."""

    visited: int
    waiting: int
    """Pages found and not visited."""


class CaptureCourse:
    """The strategies of a capture and its full history. O(1) per step beside the strategies."""

    def __init__(self, new_strategy: Callable[[bool], Strategy], *, revisit: bool) -> None:
        """``new_strategy`` makes the strategy of a lane, told whether it is the first one.

        With ``revisit`` pages are fetched again, if the strategy wants that.
        """
        self._new_strategy = new_strategy
        self._revisit = revisit
        self._lanes: dict[str, _Lane] = {}
        self._lane_of: list[str] = []
        self._ready: dict[str, CaptureStep] = {}
        """The next step of each lane that has one."""
        self._touched: dict[str, None] = {}
        """Lanes that may have a next step, but none was chosen yet."""
        self._outcome: dict[int, Outcome] = {}
        self._absent = 0
        self._tries: dict[CaptureStep, int] = {}
        self._last_made = -1
        self.steps = 0
        """Steps made."""
        self.phase = CapturePhase.VISIT

    def found(self, rate: FloatArray, weight: FloatArray, lanes: Sequence[str] | None = None) -> None:
        """Add found pages; they continue the numbering. ``lanes`` names the lane of each; all are in one without."""
        if not len(rate):
            return
        first = len(self._lane_of)
        names = lanes or [""] * len(rate)
        self._lane_of += names
        for name in dict.fromkeys(names):
            lane = self._lanes.get(name)
            if lane is None:
                lane = self._lanes[name] = _Lane(self._new_strategy(not self._lanes))
            rows = np.array([row for row, its in enumerate(names) if its == name], np.int64)
            lane.strategy.discover(first + rows, rate[rows], weight[rows])
            lane.pages += len(rows)
            self._touched[name] = None

    def ready(self) -> list[CaptureStep]:
        """The steps to make, one of each lane at most; the same until they are done. None when all is complete."""
        self._choose()
        return list(self._ready.values())

    def is_ready(self, step: CaptureStep) -> bool:
        """Whether a step is one of them. O(1) beside the strategies, however many lanes there are."""
        self._choose()
        return step.number < len(self._lane_of) and self._ready.get(self._lane_of[step.number]) == step

    def _choose(self) -> None:
        """Choose the next steps of the lanes that have none, and begin the next phase if no lane has any."""
        if self.phase is CapturePhase.VISIT:
            self._choose_in(self._next_visit)
            if self._ready:
                return
            for name, lane in self._lanes.items():
                lane.to_revisit.extend(self._revisits(lane))
                self._touched[name] = None
            self.phase = CapturePhase.REVISIT
        self._choose_in(_next_revisit)
        if not self._ready:
            self.phase = CapturePhase.DONE

    def _choose_in(self, choose: Callable[[_Lane], CaptureStep | None]) -> None:
        for name in self._touched:
            step = self._ready.get(name) or choose(self._lanes[name])
            if step is not None:
                self._ready[name] = step
        self._touched.clear()

    def next(self) -> CaptureStep | None:
        """The first of the steps to make; ``None`` when the capture is complete."""
        return next(iter(self.ready()), None)

    def done(self, outcome: Outcome, step: CaptureStep | None = None) -> None:
        """Record the outcome of a step, by default the first. Add the pages it found before other calls."""
        chosen = step or next(iter(self._ready.values()), None)
        name = "" if chosen is None else self._lane_of[chosen.number]
        if chosen is None or self._ready.get(name) != chosen:
            msg = "no step was asked for"
            raise ValueError(msg)
        lane = self._lanes[name]
        del self._ready[name]
        self._touched[name] = None
        self.steps += 1
        self._tries[chosen] = tries = self._tries.get(chosen, 0) + 1
        if outcome in _FAILED and tries < TRIES:
            lane.failed.append(chosen)
        elif chosen.revisit:
            lane.seen_again += 1
        else:
            lane.visited += 1
            self._outcome[chosen.number] = outcome
            self._absent += outcome not in _THERE
        self._last_made = chosen.number

    @property
    def revisits(self) -> bool:
        """Whether pages are revisited."""
        return self._revisit

    @property
    def pages(self) -> int:
        """Pages found."""
        return len(self._lane_of)

    @property
    def visited(self) -> int:
        """Pages whose visit is final: fetched, or failed for good."""
        return len(self._outcome)

    @property
    def seen_again(self) -> int:
        """Pages whose revisit is final."""
        return sum(lane.seen_again for lane in self._lanes.values())

    @property
    def to_see_again(self) -> int:
        """Pages to revisit: those left, or, while visits go on, an estimate from the pages found."""
        if self.phase is CapturePhase.VISIT:
            return self.pages - self._absent if self._revisit else 0
        return sum(_left(lane) for lane in self._lanes.values()) + len(self._ready)

    @property
    def steps_left(self) -> int:
        """Steps left in the longest lane, as far as its pages are known."""
        if self.phase is not CapturePhase.VISIT:
            return max((_left(lane) + (name in self._ready) for name, lane in self._lanes.items()), default=0)
        again = int(self._revisit)
        return max((lane.pages * (1 + again) - lane.visited for lane in self._lanes.values()), default=0)

    def lane(self, number: int) -> str:
        """The name of the lane of a page."""
        return self._lane_of[number]

    def lanes(self) -> dict[str, LaneProgress]:
        """How far each lane is with its visits."""
        return {name: LaneProgress(lane.visited, lane.pages - lane.visited) for name, lane in self._lanes.items()}

    def given_up(self) -> IntArray | None:
        """Numbers of the pages that the strategy gave up; ``None`` if it names none, or no page is revisited."""
        told = [
            found
            for lane in self._lanes.values()
            if self._revisit and isinstance(lane.strategy, GivesUpPages)
            if (found := lane.strategy.given_up()) is not None
        ]
        return np.concatenate(told) if told else None

    def proven(self) -> ProvenBound | None:
        """What the strategies can prove of their plans; ``None`` for nothing, or if no page is revisited.

        Hosts are side by side, so no schedule of all of them is worth more than the sum of their bounds.
        """
        told = [
            found
            for lane in self._lanes.values()
            if self._revisit and isinstance(lane.strategy, ProvesBound)
            if (found := lane.strategy.proven()) is not None
        ]
        if not told:
            return None
        columns = zip(*((one.pages, one.expected_coherence, one.bound) for one in told), strict=True)
        pages, expected, bound = (sum(column) for column in columns)
        return ProvenBound(int(pages), expected, bound)

    def _next_visit(self, lane: _Lane) -> CaptureStep | None:
        page = lane.strategy.next_page()
        if page is not None:
            lane.last_asked = page
            return CaptureStep(page, revisit=False)
        return lane.failed.popleft() if lane.failed else None

    def _revisits(self, lane: _Lane) -> list[int]:
        if not self._revisit:
            return []
        order: list[int] = lane.strategy.revisits().tolist()
        if order and self._last_made != lane.last_asked and lane.last_asked not in order:
            order.insert(0, lane.last_asked)
        return [page for page in order if self._outcome[page] in _THERE]


def _next_revisit(lane: _Lane) -> CaptureStep | None:
    if lane.to_revisit:
        return CaptureStep(lane.to_revisit.popleft(), revisit=True)
    return lane.failed.popleft() if lane.failed else None


def _left(lane: _Lane) -> int:
    """Revisits left beside the next one."""
    return len(lane.to_revisit) + len(lane.failed)


def lane_of(url: str) -> str:
    """The lane of a URL: its host and port; scheme and ``www`` make no difference.

    >>> lane_of("https://www.example.org/a"), lane_of("http://example.org/b")
    ('org,example', 'org,example')
    """
    found = address(url)
    return found.key.partition(")")[0] if found else ""


def course_of(capture: SiteCapture, log: SiteLog, urls: Sequence[str]) -> CaptureCourse:
    """The course of a capture after its recorded steps; ``urls`` are those of its pages.

    Cost and errors are those of :func:`replay`.
    """
    order = CaptureOrder.from_json(capture.terms)
    course = CaptureCourse(
        lambda is_first: order.new_strategy(capture.delay, is_first=is_first, started=capture.started),
        revisit=order.revisits,
    )
    replay(course, log, [lane_of(url) for url in urls])
    return course


def replay(course: CaptureCourse, log: SiteLog, lanes: Sequence[str] | None = None) -> None:
    """Apply the recorded steps to a new course. O(pages + steps) beside the strategy.

    Raises:
        StoreError: the strategy chooses other steps, so it is not the one that made the recorded ones.
    """
    bounds = np.searchsorted(log.after, np.arange(len(log.steps) + 2))
    _tell(course, log, bounds, 0, lanes)
    for step in log.steps:
        stop = CaptureStep(step.number, step.revisit)
        if not course.is_ready(stop):
            raise StoreError(
                f"Step {step.step} of this capture cannot be repeated: its strategy goes another way now.",
                "It was begun by another version of recrawl. Finish it with that one, or start over with --restart.",
            )
        course.done(Outcome(step.outcome), stop)
        _tell(course, log, bounds, step.step + 1, lanes)


def _tell(course: CaptureCourse, log: SiteLog, bounds: IntArray, after: int, lanes: Sequence[str] | None) -> None:
    some = slice(int(bounds[after]), int(bounds[after + 1]))
    course.found(log.found.rate[some], log.found.weight[some], None if lanes is None else lanes[some])


SCHEMA = "recrawl-site-capture/1"
MOST_NAMED = 1_000
"""Maximum pages named in each list of a stored statement; the counts cover all."""


@dataclass(frozen=True, slots=True)
class CaptureReport:
    """The result of a capture. Pages by id."""

    capture: SiteCapture
    found: int
    """Pages of the capture, whatever their outcome."""
    requisites: int
    """Those of them that are in the capture because another page embeds them."""
    hosts: int
    """Hosts of the pages."""
    observations: int
    """Visits and revisits, including failed ones that were repeated."""
    quality: CaptureStatement
    """Of the pages that are in the archive."""
    gone: IntArray
    """Pages that were gone at their visit."""
    refused: IntArray
    """Pages that robots.txt forbids."""
    failed: IntArray
    """Pages that could not be fetched: no answer, or one that says nothing about the page."""
    proven: ProvenBound | None = None
    """What the strategy can prove of its plan, made before the first visit."""


def report_of(store: HistoryStore, capture: SiteCapture, course: CaptureCourse | None = None) -> CaptureReport:
    """The report of a capture from its recorded steps. O(pages + steps).

    ``course`` is the one that made these steps; without it the pages that the strategy gave up are unknown.
    """
    log = store.site_log(capture.id)
    page = log.found.page
    seen = _last_observations(log, revisit=False)
    there = (seen.outcome <= ANSWERED) & (seen.outcome != Outcome.GONE) & seen.made
    again = _last_observations(log, revisit=True)
    order = CaptureOrder.from_json(capture.terms)
    once = there & ~again.made & order.revisits
    found = _found(store, page, seen.time, again)
    hopeless = None if course is None else course.given_up()
    pages = CapturedPages.of(
        page[there],
        seen.time[there],
        rate=log.found.rate[there],
        weight=log.found.weight[there],
        revisit=np.where(once, seen.time, again.time)[there],
        found=np.where(once, RevisitResult.UNCHANGED, found)[there],
        hopeless=None if hopeless is None else np.isin(np.arange(len(page)), hopeless)[there],
    )
    return CaptureReport(
        capture,
        found=len(page),
        requisites=int((log.found.via < -1).sum()),
        hosts=len({lane_of(url) for url in store.urls(page)}),
        observations=len(log.steps),
        quality=statement(pages, *(order.observe or (None, None))),
        gone=page[seen.made & (seen.outcome == Outcome.GONE)],
        refused=page[seen.made & (seen.outcome == Outcome.REFUSED)],
        failed=page[seen.made & (seen.outcome > Outcome.REFUSED)],
        proven=None if course is None else course.proven(),
    )


def report_json(report: CaptureReport, names: Names) -> dict[str, Any]:
    """The report of a finished capture as plain values, for JSON; ``names`` gives the URLs of page ids."""
    capture = report.capture
    return {
        "schema": SCHEMA,
        "capture": capture_urn(capture),
        "site": capture.site,
        "terms": json.loads(capture.terms),
        "delay": capture.delay,
        "started": iso(capture.started),
        "finished": iso(capture.finished),
        "observations": report.observations,
        "pagesFound": report.found,
        "pageRequisites": report.requisites,
        "hosts": report.hosts,
        "gone": _named(report.gone, names),
        "refused": _named(report.refused, names),
        "failed": _named(report.failed, names),
        "plan": _proven(report.proven),
        "quality": statement_json(report.quality, names, MOST_NAMED),
    }


def capture_urn(capture: SiteCapture) -> str:
    """A unique and stable name for a capture.

    >>> capture_urn(SiteCapture(1, "https://example.org/", "{}", 1.0, 0.0, 9.0, ""))
    'urn:uuid:e8bb9f89-33f6-57fc-b022-df4ba1a0acf5'
    """
    return uuid.uuid5(uuid.NAMESPACE_URL, f"{capture.started!r} {capture.site}").urn


def _proven(proven: ProvenBound | None) -> dict[str, float] | None:
    if proven is None:
        return None
    return {
        "pages": proven.pages,
        "expectedCoherence": proven.expected_coherence,
        "bound": proven.bound,
        "gap": proven.gap,
    }


def _named(pages: IntArray, names: Names) -> dict[str, Any]:
    return {"count": len(pages), "pages": list(names(pages[:MOST_NAMED]))}


@dataclass(frozen=True, slots=True)
class _PhaseObservations:
    """The last observation of each page in one phase, by number."""

    made: AnyArray
    time: FloatArray
    outcome: IntArray
    verdict: IntArray


def _last_observations(log: SiteLog, *, revisit: bool) -> _PhaseObservations:
    pages = len(log.found)
    observations = _PhaseObservations(
        np.zeros(pages, np.bool_), np.full(pages, np.nan), np.zeros(pages, int), np.zeros(pages, int)
    )
    for step in log.steps:
        if step.revisit == revisit:
            observations.made[step.number] = True
            observations.time[step.number] = step.time
            observations.outcome[step.number] = step.outcome
            observations.verdict[step.number] = step.verdict
    return observations


def _found(store: HistoryStore, page: IntArray, visit: FloatArray, again: _PhaseObservations) -> IntArray:
    """The outcomes of the revisits. A change that another visit saw between visit and revisit counts, too."""
    found = np.where(again.outcome == Outcome.GONE, RevisitResult.MISSING, again.verdict)
    found[~again.made | (again.outcome > ANSWERED)] = RevisitResult.UNKNOWN
    judged = np.flatnonzero(found == RevisitResult.UNCHANGED)
    if len(judged):
        observations = store.observations(page[judged])
        changed = observations.take(observations.verdict == Verdict.CHANGED)
        by_page = judged[np.argsort(page[judged])]
        row = by_page[np.searchsorted(page[by_page], changed.page)]
        between = (changed.time > visit[row]) & (changed.time < again.time[row])
        found[row[between]] = RevisitResult.CHANGED
    return found
