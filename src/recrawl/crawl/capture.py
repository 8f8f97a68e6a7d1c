"""The capture of a site, live: asks the course what comes next, goes there in its slot, and records what came of it.

It decides nothing itself. The order is the strategy's word, the rules of retries and revisits are the course's, the
pauses politeness'. What is recorded is all there is to know of a capture, so one that was killed is resumed by
replaying it (see ``capture_course`` and, for the order of what is written, ``capture_recording``).

Visits are unconditional: their bytes and links belong to the capture. Revisits carry the validators of the visit. One
that finds a difference which may be noise takes the next slot for a second look (see ``judging``): a counter on a page
does not make its capture incoherent.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from recrawl.crawl.archive import Archive
from recrawl.crawl.capture_course import Course, Phase, Stop, course_of
from recrawl.crawl.capture_map import SiteMap
from recrawl.crawl.capture_opening import NoRulesError, Opener
from recrawl.crawl.capture_order import CaptureOrder
from recrawl.crawl.capture_quality import CaptureReport, capture_urn, report_json, report_of
from recrawl.crawl.capture_recording import Rates, Stage, StepRecorder
from recrawl.crawl.capture_slots import Slots
from recrawl.crawl.faults import Fault, Faults, waits_for
from recrawl.crawl.judging import Judging, JudgingRules
from recrawl.crawl.log import JsonLinesLog
from recrawl.crawl.parse_pool import ParsePool
from recrawl.crawl.scope import SiteScope
from recrawl.crawl.target import Broken, Result, RulesRead, SeenOnce, Target, TurnedAway, Visited, failed_visit
from recrawl.crawl.versions import settled
from recrawl.crawl.visitor import Visitor
from recrawl.errors import RecrawlError
from recrawl.fetch.doors import Doors
from recrawl.fetch.request import Fetcher
from recrawl.fetch.robots import RobotsCache
from recrawl.model import ANSWERED, Capture
from recrawl.schedule.politeness import Politeness
from recrawl.store.base import Store
from recrawl.store.site_values import FoundPages, SiteCapture
from recrawl.time import Clock
from recrawl.urls import surt

_AT_ONE_LOOK = JudgingRules(second_looks=False)
_MOST_HOPS = 5
"""Redirects from one way to write a page's URL to another that are followed in one visit."""
_MOST_RULE_READS = 3
"""How often a host that cannot tell its rules is asked again before the capture is put off."""


@dataclass(frozen=True, slots=True)
class CaptureProgress:
    """How far a capture is."""

    phase: Phase
    pages: int
    """Pages found so far."""
    visited: int
    seen_again: int
    to_see_again: int
    """Revisits left; while visits go on, an estimate."""
    seconds_left: float
    """What is known to be left, at one request a slot. Pages not found yet are not in it."""


class SiteDriver:
    """Captures sites, one at a time. A context of parts; everything it learns is in the store."""

    def __init__(  # noqa: PLR0913 - the parts it drives, each replaceable
        self,
        *,
        clock: Clock,
        store: Store,
        fetcher: Fetcher,
        robots: RobotsCache,
        politeness: Politeness,
        archive: Archive,
        rates: Rates,
        log: JsonLinesLog,
        doors: Doors | None = None,
        judging: JudgingRules = _AT_ONE_LOOK,
        pool: ParsePool | None = None,
        on_visit: Callable[[Visited], None] = lambda _visited: None,
    ) -> None:
        """``pool`` reads what is not cheap to read; ``on_visit`` is told of each visit once it is recorded."""
        self._clock = clock
        self._store = store
        self._robots = robots
        self._archive = archive
        self._judging = Judging(store, judging, log, pool)
        self._recorder = StepRecorder(store, archive, rates, self._judging)
        self._log = log
        self._faults = Faults(log)
        self._on_visit = on_visit
        self._visitor = Visitor(fetcher, robots, clock, doors, judging=self._judging, pool=pool)
        self._slots = Slots(clock, politeness, store, doors)
        self._opener = Opener(
            store=store, slots=self._slots, fetcher=fetcher, robots=robots, archive=archive, log=log, pool=pool
        )

    def stop(self) -> None:
        """Begin no further request; the capture stays unfinished. To be called in the event loop."""
        self._slots.stop()

    def drop(self) -> None:
        """Note that hosts rest whose requests were dropped, so that the next start leaves them alone."""
        self._slots.drop()

    async def begin(self, order: CaptureOrder) -> SiteCapture | None:
        """Read the rules of the host and what else is known beforehand, and note the capture; ``None`` if stopped."""
        scope = SiteScope(order.scope, (order.seed,))
        opening = await self._opener.open(order, scope, self._clock.now())
        if opening is None:
            return None
        delay = max(self._slots.pause(opening.rules), order.delay or 0.0)
        known = self._recorder.rated(opening.pages, np.full(len(opening.pages), -1))
        now = self._clock.now()
        number = self._store.begin_site_capture(order.seed.url, order.as_json(), delay=delay, now=now, known=known)
        return next(capture for capture in self._store.site_captures() if capture.id == number)

    async def run(
        self, capture: SiteCapture, progress: Callable[[CaptureProgress], None] = lambda _progress: None
    ) -> CaptureReport | None:
        """Go on with a capture until it is complete, and say how good it is; ``None`` if it was stopped before.

        Raises:
            NoRulesError: a host cannot tell its rules any more. The capture can be resumed.
        """
        order = CaptureOrder.from_json(capture.terms)
        log = self._store.site_log(capture.id)
        course = course_of(capture, log)
        site = SiteMap.of(order, log, self._store.urls(log.found.page), self._recorder.hosts(log.found.page))
        self._slots.delay = capture.delay
        self._slots.after(log.steps[-1].time + capture.delay if log.steps else -math.inf)
        progress(self._progress(course, capture.delay))
        while (stop := course.next()) is not None:
            visited = await self._see(stop, site)
            if visited is None:
                return None
            visited, found = self._record(capture, Stage(course, stop, site), visited)
            course.done((visited.first or visited).visit.outcome)
            course.found(found.rate, found.weight)
            for look in (visited.first, visited) if visited.first else (visited,):
                with self._faults.contained():
                    self._told(look)
            with self._faults.contained():
                progress(self._progress(course, capture.delay))
        return self._finish(capture, course)

    # -- one step -------------------------------------------------------------------------------

    def _record(self, capture: SiteCapture, stage: Stage, visited: Visited) -> tuple[Visited, FoundPages]:
        """Acknowledge a step; it as it was recorded, and the pages it found.

        If our own code fails at that, the visit failed: it is recorded with its bytes as they came, or without them.
        """
        site = stage.site
        while True:
            pages, scope = len(site.page), site.scope
            try:
                host_ready = self._slots.free_at(visited.target.host)
                return visited, self._recorder.record(capture, stage, visited, host_ready)
            except Exception as error:
                if waits_for(error) is not None or (visited.is_our_fault and visited.capture is None):
                    raise
                fault, first = Fault.of(error), visited.first or visited
                self._faults.broke_visit(first.target.url, fault)
                site.back_to(pages, scope)
                self._archive.give_up()  # what was archived of it does not count
                kept = None if visited.is_our_fault else first.capture
                visited = failed_visit(first.target, first.visit.time, fault.words, kept)

    async def _see(self, stop: Stop, site: SiteMap) -> Visited | None:
        """Go to a page in its slot; ``None`` if no slot begins. A fault of our own code becomes a failed visit."""
        try:
            return await self._seen(stop, site)
        except RecrawlError:
            raise
        except Exception as error:
            if (trouble := waits_for(error)) is not None:
                raise trouble from error
            page, host, url = site.page[stop.number], site.host[stop.number], site.url[stop.number]
            self._slots.let_go(host)
            return self._broken(Broken(Target(page, host, url, 0.0), self._clock.now(), Fault.of(error)))

    async def _seen(self, stop: Stop, site: SiteMap) -> Visited | None:
        """Go to a page in its slot, and once more in the next if a revisit is in doubt; ``None`` if no slot begins."""
        page, host, url = site.page[stop.number], site.host[stop.number], site.url[stop.number]
        known = self._recorder.known(page, conditional=stop.revisit)
        self._judging.prepare(np.array([host]), self._clock.now())
        result = await self._look(Target(page, host, url, self._clock.now(), known))
        if not isinstance(result, SeenOnce):
            return result
        again = await self._look(result.target) if stop.revisit else None
        return again if isinstance(again, Visited) else settled(result.target)

    async def _look(self, target: Target) -> Visited | SeenOnce | None:
        """Go to a target in its slot; ``None`` if no slot begins any more.

        A redirect to another way to write the same page (https, www, a slash at the end) is followed as part of the
        visit; where else a page redirects to is another page.
        """
        host, url = target.host, target.url
        hops = rule_reads = 0
        while True:
            rules = self._robots.known(url)
            asks = rules is None or not rules.available or rules.allowed(url)
            if asks and not await self._slots.begin(host):
                return None
            result = await self._go(replace(target, url=url, due=self._clock.now()))
            if isinstance(result, TurnedAway):
                self._slots.give_back(host, result.until)
                continue
            if asks:
                self._slots.end(host, result.capture)
            match result:
                case RulesRead(rules=read):
                    rule_reads += 1
                    self._visitor.keep_rules()
                    self._slots.obey(host, read)
                    self._log.event("fetch", "robots.txt read", details={"url": url, "reason": read.reason})
                    if not read.available and rule_reads == _MOST_RULE_READS:
                        raise NoRulesError(f"{read.reason}.", "Resume the capture later with --resume.")
                case Visited(judgement=judgement, capture=Capture() as capture) if (
                    hops < _MOST_HOPS and judgement.redirect_to != url and surt(judgement.redirect_to) == surt(url)
                ):
                    hops += 1
                    self._archive.keep_aside(capture)
                    url = judgement.redirect_to
                case Visited() | SeenOnce():
                    return result
                case Broken():
                    return self._broken(result)

    async def _go(self, target: Target) -> Result:
        """Visit; a bug of ours becomes a failed visit, so that one poisonous page does not end the capture."""
        began = self._clock.now()
        try:
            return await self._visitor.go(target)
        except Exception as error:
            if waits_for(error) is not None:
                raise
            return Broken(target, began, Fault.of(error))

    def _broken(self, broken: Broken) -> Visited:
        self._faults.broke_visit(broken.target.url, broken.fault)
        visited = broken.as_visit()
        return replace(visited, first=settled(broken.target)) if broken.target.seen else visited

    def _told(self, visited: Visited) -> None:
        visit = visited.visit
        details = {
            "url": visited.target.url,
            "outcome": visit.outcome.name.lower(),
            "verdict": visit.verdict.name.lower(),
            "magnitude": round(visit.magnitude, 3),
            "status": visit.status,
            "size": visit.size,
        }
        self._log.event("fetch", "visited", level="info" if visit.outcome <= ANSWERED else "warn", details=details)
        self._on_visit(visited)

    def _finish(self, capture: SiteCapture, course: Course) -> CaptureReport:
        """Say how good the capture is: in the archive first, then in the store, which makes it complete."""
        now = self._clock.now()
        report = report_of(self._store, replace(capture, finished=now), course)
        text = json.dumps(report_json(report, self._store.urls), allow_nan=False)
        self._archive.keep_document(capture_urn(capture), now, text.encode())
        self._store.finish_site_capture(capture.id, text, now)
        return replace(report, capture=replace(report.capture, statement=text))

    @staticmethod
    def _progress(course: Course, delay: float) -> CaptureProgress:
        left = course.pages - course.visited + course.to_see_again
        return CaptureProgress(
            course.phase, course.pages, course.visited, course.seen_again, course.to_see_again, left * delay
        )
