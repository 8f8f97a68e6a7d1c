"""The course of a site capture: the next step, from what was found and fetched so far. No I/O, no clock.

Rules of this file:

1. Visits come first, in the order of the strategy. When it names no more, revisits follow in its order.
2. A request that failed (no answer, 5xx, 429) is repeated once in the same phase, after all others. If that finds new
   pages, they are visited before the phase ends. A page that failed twice has failed.
3. Only pages that were there are revisited: not a page that was refused, gone or failed.
4. A strategy may let the last visit be its own revisit. If retries came after that visit, the page is revisited too,
   first of all: otherwise it would not have been seen at the same time as the others.
5. Equal calls give equal answers. So a killed capture is resumed by repeating the recorded calls.

:class:`SiteMap` holds the pages of a capture in the order found: their place, how they were reached, and their hosts.

The quality of a capture is computed from its recorded steps alone.
"""

from __future__ import annotations

import enum
import json
import uuid
from collections import deque
from collections.abc import Sequence
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
from recrawl.crawl.visit.scope import PagePosition, SiteScope, trap
from recrawl.errors import StoreError
from recrawl.model import ANSWERED, AnyArray, FloatArray, IntArray, Outcome, Verdict
from recrawl.store.base import HistoryStore
from recrawl.store.store_values import SiteCapture, SiteLog
from recrawl.urls import address


@dataclass(slots=True)
class SiteMap:
    """Grows as a capture goes on; equal steps give equal maps. O(1) per link beside the scope."""

    scope: SiteScope
    most: int | None = None
    """Maximum pages of the capture."""
    page: list[int] = field(default_factory=list)
    """Page ids, by number."""
    url: list[str] = field(default_factory=list)
    host: list[int] = field(default_factory=list)
    _place: list[PagePosition] = field(default_factory=list)
    _known: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, order: CaptureOrder, log: SiteLog, urls: Sequence[str], hosts: list[int]) -> SiteMap:
        """The map that the recorded steps produce."""
        site = cls(SiteScope(order.scope, (order.seed,)), order.max_pages)
        redirected = {step.number for step in log.steps if step.outcome == Outcome.REDIRECTED and not step.revisit}
        for page, via, url in zip(log.found.page.tolist(), log.found.via.tolist(), urls, strict=True):
            if via in redirected:
                site.follow(via, url)
            found = address(url)
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

        The caller adds their hosts.
        """
        new = []
        for url, page in zip(urls, pages, strict=True):
            if page < 0 or page in self._known or (self.most is not None and len(self.page) >= self.most):
                continue
            found = address(url)
            if found is None or trap(found.url, max_depth=self.scope.rules.max_depth):
                continue
            place = self.scope.place(found, self._place[via])
            if place is not None:
                self._add(page, url, place)
                new.append(page)
        return new

    def back_to(self, pages: int, scope: SiteScope) -> None:
        """Drop all but the first pages: the step that found the others could not be recorded."""
        self._known.difference_update(self.page[pages:])
        del self.page[pages:], self.url[pages:], self._place[pages:], self.host[pages:]
        self.scope = scope

    def _add(self, page: int, url: str, place: PagePosition) -> None:
        self.page.append(page)
        self.url.append(url)
        self._place.append(place)
        self._known.add(page)


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


class CaptureCourse:
    """The strategy of a capture and its full history. O(1) per step beside the strategy."""

    def __init__(self, strategy: Strategy, *, revisit: bool) -> None:
        """With ``revisit`` pages are fetched again, if the strategy wants that."""
        self._strategy = strategy
        self._revisit = revisit
        self._told = 0
        self._outcome: dict[int, Outcome] = {}
        self._absent = 0
        self._tries: dict[CaptureStep, int] = {}
        self._failed: deque[CaptureStep] = deque()
        self._to_revisit: deque[int] = deque()
        self._last_asked = -1
        self._last_made = -1
        self._next: CaptureStep | None = None
        self._seen_again = 0
        self.steps = 0
        """Steps made."""
        self.phase = CapturePhase.VISIT

    def found(self, rate: FloatArray, weight: FloatArray) -> None:
        """Add found pages; they continue the numbering."""
        if len(rate):
            self._strategy.discover(np.arange(self._told, self._told + len(rate)), rate, weight)
            self._told += len(rate)

    def next(self) -> CaptureStep | None:
        """The step to make; the same until it is done. ``None`` when the capture is complete."""
        if self._next is None:
            self._next = self._choose()
        return self._next

    def done(self, outcome: Outcome) -> None:
        """Record the outcome of the step. Add the pages it found before the next call of ``next``."""
        stop = self._next
        if stop is None:
            msg = "no step was asked for"
            raise ValueError(msg)
        self._next = None
        self.steps += 1
        self._tries[stop] = tries = self._tries.get(stop, 0) + 1
        if outcome in _FAILED and tries < TRIES:
            self._failed.append(stop)
        elif stop.revisit:
            self._seen_again += 1
        else:
            self._outcome[stop.number] = outcome
            self._absent += outcome not in _THERE
        self._last_made = stop.number

    @property
    def pages(self) -> int:
        """Pages found."""
        return self._told

    @property
    def visited(self) -> int:
        """Pages whose visit is final: fetched, or failed for good."""
        return len(self._outcome)

    @property
    def seen_again(self) -> int:
        """Pages whose revisit is final."""
        return self._seen_again

    @property
    def to_see_again(self) -> int:
        """Pages to revisit: those left, or, while visits go on, an estimate from the pages found."""
        if self.phase is CapturePhase.VISIT:
            return self._told - self._absent if self._revisit else 0
        return len(self._to_revisit) + len(self._failed)

    def given_up(self) -> IntArray | None:
        """Numbers of the pages that the strategy gave up; ``None`` if it names none, or no page is revisited."""
        if self._revisit and isinstance(self._strategy, GivesUpPages):
            return self._strategy.given_up()
        return None

    def proven(self) -> ProvenBound | None:
        """What the strategy can prove of its plan; ``None`` for nothing, or if no page is revisited."""
        if self._revisit and isinstance(self._strategy, ProvesBound):
            return self._strategy.proven()
        return None

    def _choose(self) -> CaptureStep | None:
        if self.phase is CapturePhase.VISIT:
            page = self._strategy.next_page()
            if page is not None:
                self._last_asked = page
                return CaptureStep(page, revisit=False)
            if self._failed:
                return self._failed.popleft()
            self._to_revisit.extend(self._revisits())
            self.phase = CapturePhase.REVISIT
        if self._to_revisit:
            return CaptureStep(self._to_revisit.popleft(), revisit=True)
        if self._failed:
            return self._failed.popleft()
        self.phase = CapturePhase.DONE
        return None

    def _revisits(self) -> list[int]:
        if not self._revisit:
            return []
        order: list[int] = self._strategy.revisits().tolist()
        if order and self._last_made != self._last_asked and self._last_asked not in order:
            order.insert(0, self._last_asked)
        return [page for page in order if self._outcome[page] in _THERE]


def course_of(capture: SiteCapture, log: SiteLog) -> CaptureCourse:
    """The course of a capture after its recorded steps. Cost and errors are those of :func:`replay`."""
    order = CaptureOrder.from_json(capture.terms)
    course = CaptureCourse(order.new_strategy(capture.delay), revisit=order.revisits)
    replay(course, log)
    return course


def replay(course: CaptureCourse, log: SiteLog) -> None:
    """Apply the recorded steps to a new course. O(pages + steps) beside the strategy.

    Raises:
        StoreError: the strategy chooses other steps, so it is not the one that made the recorded ones.
    """
    bounds = np.searchsorted(log.after, np.arange(len(log.steps) + 2))
    _tell(course, log, bounds, 0)
    for step in log.steps:
        stop = course.next()
        if stop != CaptureStep(step.number, step.revisit):
            raise StoreError(
                f"Step {step.step} of this capture cannot be repeated: its strategy goes another way now.",
                "It was begun by another version of recrawl. Finish it with that one, or begin anew with --restart.",
            )
        course.done(Outcome(step.outcome))
        _tell(course, log, bounds, step.step + 1)


def _tell(course: CaptureCourse, log: SiteLog, bounds: IntArray, after: int) -> None:
    some = slice(int(bounds[after]), int(bounds[after + 1]))
    course.found(log.found.rate[some], log.found.weight[some])


SCHEMA = "recrawl-site-capture/1"
MOST_NAMED = 1_000
"""Maximum pages named in each list of a stored statement; the counts cover all."""


@dataclass(frozen=True, slots=True)
class CaptureReport:
    """The result of a capture. Pages by id."""

    capture: SiteCapture
    found: int
    """Pages of the capture, whatever their outcome."""
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
    once = there & ~again.made & CaptureOrder.from_json(capture.terms).revisits
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
        observations=len(log.steps),
        quality=statement(pages),
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
