"""The live capture of a site: asks the course for the next step, fetches in its slot, and records the result.

The driver decides nothing. The strategy decides the order, the course decides on retries and revisits, politeness
decides the pauses, and the visit machine decides the steps of each visit (``visit/visit_machine.py``). Hosts are
captured side by side, each with one request at a time; steps are recorded one after the other. The record of a capture
is complete, so a killed one is resumed by replaying it (see ``capture_course``).

Visits are unconditional: their bytes and links belong to the capture. Revisits carry the validators of the visit. A
revisit whose difference may be noise takes the next slot for a confirmation (see ``change_classifier``): a counter on a
page does not make its capture incoherent.

:class:`StepRecorder` writes one step. The order makes a kill at any moment harmless. Links and new pages come first:
those of an unacknowledged visit are ignored. The bytes come next: an archive record without a visit is cut off at the
next start. Last, in one transaction, come the visit, its step and the pages that it found; then the step is made.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from recrawl.capture.single_visit import first_visit
from recrawl.crawl.control.json_log import JsonLinesLog
from recrawl.crawl.site_capture.capture_course import (
    CaptureCourse,
    CapturePhase,
    CaptureReport,
    CaptureStep,
    SiteMap,
    capture_urn,
    course_of,
    embedded_by,
    lane_of,
    report_json,
    report_of,
)
from recrawl.crawl.site_capture.capture_opening import CaptureSlots, NoRulesError, SitePreparation
from recrawl.crawl.site_capture.capture_order import CaptureOrder
from recrawl.crawl.site_capture.capture_terms import Requisites
from recrawl.crawl.visit.change_classifier import ChangeClassifier, ClassifierRules
from recrawl.crawl.visit.fault_isolation import FaultReporter, InternalFault
from recrawl.crawl.visit.recorder import names_itself, recall
from recrawl.crawl.visit.scope import SiteScope
from recrawl.crawl.visit.visit_machine import (
    Deferred,
    InternalFailure,
    NeedsConfirmation,
    Result,
    RobotsFetched,
    StorageBlocked,
    VisitAction,
    VisitDone,
    VisitEvent,
    VisitOrderError,
    VisitTarget,
    failed_visit,
    last_version,
    unconfirmed_visit,
)
from recrawl.crawl.visit.visitor import Visitor
from recrawl.crawl.visit.warc_archive import ResponseArchive, pack_ahead
from recrawl.crawl.worker.group_commit import log_entry
from recrawl.detect import ChangeResult, PageState
from recrawl.detect.body import media_type
from recrawl.detect.fingerprint import digest
from recrawl.detect.version import CostlyError, Effort, body_of, page_version
from recrawl.errors import RecrawlError
from recrawl.fetch.http.dns import IpGate
from recrawl.fetch.request import Fetcher
from recrawl.fetch.robots_cache import HostRobots, RobotsCache
from recrawl.formats.atomic_files import waits_for
from recrawl.model import Capture, FloatArray, IntArray, Outcome, Visit, Visits
from recrawl.model.captures import EmbedKind
from recrawl.model.visits import BROKEN_OFF
from recrawl.parse.parse_pool import ParsePool, embeds_apart
from recrawl.schedule.politeness.host_politeness import Politeness
from recrawl.store.base import HistoryStore, Store
from recrawl.store.store_values import (
    FoundPages,
    SiteCapture,
    SiteLog,
    SiteProgress,
    SiteStep,
    last_modified_claims,
    newly_stated,
)
from recrawl.time import Clock

Rates = Callable[[IntArray], FloatArray]
"""Believed change rates of pages, per second, by page id."""
Weights = Callable[[IntArray], FloatArray]
"""Weights of pages, by page id."""


@dataclass(frozen=True, slots=True)
class CaptureStage:
    """The state of a capture before a step is given to the course."""

    course: CaptureCourse
    stop: CaptureStep
    site: SiteMap


class StepRecorder:
    """Writes the steps of a capture to the archive and the store."""

    def __init__(  # noqa: PLR0913 - what it writes with
        self,
        store: HistoryStore,
        archive: ResponseArchive,
        rates: Rates,
        classifier: ChangeClassifier,
        faults: FaultReporter,
        *,
        weights: Weights | None = None,
    ) -> None:
        self._store = store
        self._faults = faults
        self._classifier = classifier
        self._archive = archive
        self.rates = rates
        """Believed change rates of pages when they are found."""
        self._weights = weights

    def known(self, page: int, *, conditional: bool) -> PageState | None:
        """The state of a page for the change detector; without validators if the request is not to be conditional."""
        one = np.array([page])
        [known] = recall(self._store, one, self._store.validators(one))
        if known is None or conditional:
            return known
        return replace(known, validators=replace(known.validators, etag="", last_modified=""))

    def record(self, capture: SiteCapture, stage: CaptureStage, visited: VisitDone, host_ready: float) -> FoundPages:
        """Acknowledge a step; return the pages it found. ``host_ready`` is when its host may be requested again.

        If there was a confirmation, the first fetch is the step, and the second is archived beside it. A visit that our
        own code failed on is not parsed, and without bytes it needs nothing but the store. Once the step is written, no
        fault can make it fail.
        """
        observations = [visited.first, visited] if visited.first else [visited]
        visited, stop = observations[0], stage.stop
        visit = visited.visit
        found = self._nothing_found()
        if not visited.is_our_fault:
            links = links_of(visited, self._classifier.pool)
            ids = self._store.discover(links, visit.time, importance=0.0)
            self._note(visited, ids)
            embeds = self._embeds(stage, visited)
            embed_ids = self._store.discover(embeds, visit.time, importance=0.0)
        answered = [observation for observation in observations if observation.capture is not None]
        captures = [record for kept in self._archive.write(answered) for record in kept] if answered else []
        if captures:
            self._archive.sync()
        visited.target.machine.feed(VisitEvent.ARCHIVED)
        if not visited.is_our_fault:
            found = self._found(stage.site, stop, (links, ids), (embeds, embed_ids), visit.outcome)
        step = SiteStep(
            stage.course.steps, stop.number, stop.revisit, visit.time, outcome=visit.outcome, verdict=visit.verdict
        )
        learned_facts = None if visited.is_our_fault else self._classifier.learned_facts(observations)
        self._store.record(
            Visits.from_rows(observation.visit for observation in observations),
            validators=[
                None if observation.is_our_fault else last_version(observation) for observation in observations
            ],
            captures=captures,
            host_ready=np.full(len(observations), host_ready),
            site=SiteProgress(capture.id, step, found, known=stage.course.pages),
            learned_facts=learned_facts,
        )
        visited.target.machine.feed(VisitEvent.COMMITTED)
        with self._faults.contained():
            if learned_facts is not None:
                self._classifier.learn(learned_facts)
        with self._faults.contained():
            self._archive.acknowledged(captures)
        return found

    def rated(self, page: IntArray, via: IntArray) -> FoundPages:
        """Pages with their believed rates and weights; pages known only as link targets count as any other."""
        if not len(page):
            return FoundPages(page, via, np.empty(0), np.empty(0))
        if self._weights is not None:
            return FoundPages(page, via, self.rates(page), self._weights(page))
        pages = self._store.pages(np.sort(page))
        importance = pages.importance[np.searchsorted(pages.id, page)]
        return FoundPages(page, via, self.rates(page), np.where(importance > 0, importance, 1.0))

    def hosts(self, page: IntArray) -> list[int]:
        """The host of each page."""
        pages = self._store.pages(np.unique(page))
        hosts: list[int] = pages.host[np.searchsorted(pages.id, page)].tolist()
        return hosts

    def _note(self, visited: VisitDone, ids: IntArray) -> None:
        """Record the links of the page, and its modification date."""
        page, time, judgement = visited.target.page, visited.visit.time, visited.judgement
        if judgement.links_read and judgement.links:
            self._store.record_links(np.full(len(ids), page), ids, np.full(len(ids), time))
        [before] = self._store.validators(np.array([page]))
        stated = newly_stated(judgement.validators, before)
        self._store.add_claims(last_modified_claims([] if stated is None else [(page, time, stated)]))

    def _nothing_found(self) -> FoundPages:
        return self.rated(np.empty(0, np.int64), np.empty(0, np.int64))

    def _embeds(self, stage: CaptureStage, visited: VisitDone) -> list[str]:
        """URLs of the requisites of a visited page, but for frames that are pages of the site."""
        site, capture = stage.site, visited.capture
        is_read = capture is not None and visited.judgement.outcome == Outcome.FETCHED
        if stage.stop.revisit or not is_read or capture is None or site.requisites is Requisites.NONE:
            return []
        found = embeds_apart(capture, self._classifier.pool, sheet=media_type(capture) == "text/css")
        if found is None:
            return []
        return [
            one.url
            for embed in found.embeds
            for one in embed.alternatives
            if embed.kind is not EmbedKind.FRAME or not site.scope.covers(one)
        ]

    def _found(
        self,
        site: SiteMap,
        stop: CaptureStep,
        links: tuple[Sequence[str], IntArray],
        embeds: tuple[Sequence[str], IntArray],
        outcome: Outcome,
    ) -> FoundPages:
        """Pages that a visit found: its requisites first, then its links in their order; a revisit finds none.

        The redirect target of a requisite is a requisite.
        """
        if stop.revisit:
            return self._nothing_found()
        (urls, ids), number = links, stop.number
        if outcome == Outcome.REDIRECTED and urls:
            site.follow(number, urls[0])
            if site.is_requisite(number):
                links, embeds = ([], ids[:0]), links
        needed = site.embed(number, embeds[0], embeds[1].tolist())
        linked = site.admit(number, links[0], links[1].tolist())
        new = np.array(needed + linked, np.int64)
        site.host += self.hosts(new)
        via = np.repeat([embedded_by(number), number], [len(needed), len(linked)])
        return self.rated(new, via)


def links_of(visited: VisitDone, pool: ParsePool | None = None) -> list[str]:
    """Absolute URLs in a response, in order: its links, or its redirect target.

    A response that repeats a known version was not parsed for links, so it is parsed here; by the pool, if that is
    expensive.
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
        except Exception:  # noqa: BLE001 - whatever happened to the subprocess: the failure was logged before
            return []
    return _links_in(capture)


def _links_in(capture: Capture, effort: Effort = Effort.ALL) -> list[str]:
    body, whole = body_of(capture, effort)
    version = page_version(capture, body, digest(body), whole=whole, effort=effort)
    return [link.url for link in version.links or ()]


_AT_ONE_LOOK = ClassifierRules(confirm_changes=False)


def _left_alone(target: VisitTarget, now: float) -> VisitDone:
    """A visit without a request: its host has not responded for long."""
    target.machine.feed(VisitEvent.UNREACHABLE)
    visit = Visit(target.page, now, Outcome.UNREACHABLE, status=BROKEN_OFF)
    reason = f"{MOST_SILENT} requests to its host in a row had no response"
    known = target.known or PageState()
    judgement = ChangeResult(Outcome.UNREACHABLE, validators=known.validators, mime=known.mime)
    return VisitDone(target, visit, judgement, reason=reason)


MOST_SILENT = 5
"""Requests in a row without a response after which a host of requisites is left alone: each may take a timeout."""
_MOST_HOPS = 5
"""Maximum redirects between spellings of a page's URL in one visit."""
_MOST_RULE_READS = 3
"""How often an unavailable robots.txt is requested again before the capture is put off."""


@dataclass(frozen=True, slots=True)
class CaptureProgress:
    """The progress of a capture."""

    phase: CapturePhase
    pages: int
    """Pages found so far."""
    visited: int
    seen_again: int
    to_see_again: int
    """Revisits left; while visits go on, an estimate."""
    seconds_left: float
    """Known seconds left of the longest host, at one request per slot. Pages not found yet are not included."""


@dataclass(slots=True)
class _OpenVisit:
    """A visit that has begun."""

    step: CaptureStep
    is_requisite: bool
    steps: Generator[VisitTarget, Result | None, VisitDone | None] | None = None
    """Yields the target of each turn and is given its result; ``None`` for a visit that could not begin."""
    wants: VisitTarget | None = None
    """The target of the next turn, or of the running one."""
    turn: asyncio.Task[Result] | None = None
    made: VisitDone | None = None


@dataclass(slots=True)
class _CaptureRun:
    """A capture under way: its course, and the visit that each host is at."""

    course: CaptureCourse
    site: SiteMap
    is_planned: bool
    """Whether all pages were known beforehand."""
    is_timed: bool = False
    """Whether each host starts at a time of its own."""
    visits: dict[str, _OpenVisit] = field(default_factory=dict)
    """By lane."""
    silent: Counter[str] = field(default_factory=Counter)
    """The last visits of each lane without a response, in a row."""

    def resting(self) -> set[str]:
        """Lanes that start no request yet, because they will be done with their visits before the longest one.

        So the visits of small hosts lie near the middle of the capture: at the end of its visits if there are revisits,
        else around the middle of those of the longest lane. Only requisites wait, and pages that were known beforehand:
        what other pages lead to should be found early.
        """
        may = {
            lane
            for lane, visit in self.visits.items()
            if not visit.step.revisit and (self.is_planned or visit.is_requisite) and not self.is_timed
        }
        if not may:
            return may
        lanes = self.course.lanes()
        longest = max(lanes.values(), key=lambda one: one.waiting)
        if self.course.revisits:
            return {lane for lane in may if lanes[lane].waiting < longest.waiting}
        left = longest.waiting - longest.visited
        return {lane for lane in may if lanes[lane].visited == 0 and lanes[lane].waiting < left}

    async def drop(self) -> None:
        """Cancel what runs."""
        running = [visit.turn for visit in self.visits.values() if visit.turn is not None]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for visit in self.visits.values():
            if visit.steps is not None:
                visit.steps.close()


class SiteCaptureDriver:
    """Captures sites, one at a time. All its state is in the store."""

    def __init__(  # noqa: PLR0913 - the parts it drives, each replaceable
        self,
        *,
        clock: Clock,
        store: Store,
        fetcher: Fetcher,
        robots: RobotsCache,
        politeness: Politeness,
        archive: ResponseArchive,
        rates: Rates,
        log: JsonLinesLog,
        ip_gate: IpGate | None = None,
        classifier: ClassifierRules = _AT_ONE_LOOK,
        pool: ParsePool | None = None,
        on_visit: Callable[[VisitDone], None] = lambda _visited: None,
        weights: Weights | None = None,
    ) -> None:
        """``weights`` are by default the importances of pages.

        ``pool`` does expensive parsing; ``on_visit`` receives each visit once it is recorded.
        """
        self._clock = clock
        self._store = store
        self._robots = robots
        self._archive = archive
        self._classifier = ChangeClassifier(store, classifier, log, pool)
        self._log = log
        self._faults = FaultReporter(log)
        self._recorder = StepRecorder(store, archive, rates, self._classifier, self._faults, weights=weights)
        self._on_visit = on_visit
        self._visitor = Visitor(fetcher, robots, clock, ip_gate, classifier=self._classifier, pool=pool)
        self._slots = CaptureSlots(clock, politeness, store, ip_gate)
        self._opener = SitePreparation(
            store=store,
            slots=self._slots,
            fetcher=fetcher,
            robots=robots,
            archive=archive,
            log=log,
            pool=pool,
            pack_ahead=self._pack_ahead,
        )

    def stop(self) -> None:
        """Start no further request; the capture stays unfinished. Call it in the event loop."""
        self._slots.stop()

    def drop(self) -> None:
        """Store the pauses of hosts whose requests were dropped, so that the next start keeps them."""
        self._slots.drop()

    async def begin(self, order: CaptureOrder) -> SiteCapture | None:
        """Read robots.txt and what else is known beforehand, and record the capture; ``None`` if stopped."""
        scope = SiteScope(order.scope, (order.seed,))
        opening = await self._opener.open(order, scope, self._clock.now())
        if opening is None:
            return None
        delay = max(self._slots.pause(opening.rules), order.delay or 0.0)
        pages = np.concatenate([opening.pages, opening.requisites])
        via = np.repeat([-1, embedded_by(0)], [len(opening.pages), len(opening.requisites)])
        known = self._recorder.rated(pages, via)
        now = self._clock.now()
        number = self._store.begin_site_capture(order.seed.url, order.as_json(), delay=delay, now=now, known=known)
        return next(capture for capture in self._store.site_captures() if capture.id == number)

    async def run(
        self, capture: SiteCapture, progress: Callable[[CaptureProgress], None] = lambda _progress: None
    ) -> CaptureReport | None:
        """Continue a capture until it is complete, and return its report; ``None`` if it was stopped before.

        Raises:
            NoRulesError: robots.txt of a host became unavailable. The capture can be resumed.
        """
        order = CaptureOrder.from_json(capture.terms)
        log = self._store.site_log(capture.id)
        urls = self._store.urls(log.found.page)
        course = course_of(capture, log, urls)
        site = SiteMap.of(order, log, urls, self._recorder.hosts(log.found.page))
        self._slots.delay, self._slots.home = capture.delay, lane_of(order.seed.url)
        self._wait_for_start(capture, order, log, urls)
        progress(self._progress(course, capture.delay))
        run = _CaptureRun(course, site, is_planned=order.needs_all_pages, is_timed=order.observe is not None)
        try:
            while (made := await self._next_made(run)) is not None:
                step, visited = made
                visited, found = self._record(capture, CaptureStage(course, step, site), visited)
                first = len(site.url) - len(found)
                outcome = (visited.first or visited).visit.outcome
                lane = course.lane(step.number)
                run.silent[lane] = run.silent[lane] + 1 if outcome == Outcome.UNREACHABLE else 0
                course.done(outcome, step)
                course.found(found.rate, found.weight, [lane_of(url) for url in site.url[first:]])
                for observation in (visited.first, visited) if visited.first else (visited,):
                    with self._faults.contained():
                        self._told(observation)
                with self._faults.contained():
                    progress(self._progress(course, capture.delay))
        finally:
            await run.drop()
        return None if course.ready() else self._finish(capture, course)

    def _wait_for_start(self, capture: SiteCapture, order: CaptureOrder, log: SiteLog, urls: Sequence[str]) -> None:
        """Keep the pause after the last step, and wait for a given observation interval (SHARC Theorem 4.4)."""
        self._slots.after(self._slots.home, log.steps[-1].time + capture.delay if log.steps else -math.inf)
        if not order.reads_observe:
            return
        terms = order.terms(capture.delay, started=capture.started)
        known = Counter(lane_of(url) for url, after in zip(urls, log.after.tolist(), strict=True) if not after)
        for lane, pages in known.items():
            self._slots.after(lane, capture.started + first_visit(terms, pages))

    # -- many hosts ------------------------------------------------------------------------------

    async def _next_made(self, run: _CaptureRun) -> tuple[CaptureStep, VisitDone] | None:
        """The next visit that is made, whatever the host; ``None`` if all are, or no slot starts any more.

        Each host makes one request at a time, in its slots. After a stop, running requests finish.
        """
        while True:
            for step in run.course.ready():
                lane = run.course.lane(step.number)
                if lane not in run.visits and not self._slots.stopping:
                    run.visits[lane] = self._open_visit(run, lane, step)
            for lane, visit in list(run.visits.items()):
                if self._slots.stopping and visit.turn is None and visit.made is None:
                    self._advance(visit, None)
                if visit.made is not None:
                    del run.visits[lane]
                    return visit.step, visit.made
                if visit.wants is None:
                    del run.visits[lane]
            if not run.visits:
                return None
            wake = math.inf if self._slots.stopping else self._start_turns(run)
            turns = {visit.turn: visit for visit in run.visits.values() if visit.turn is not None}
            for task in await self._slots.wait(list(turns), wake):
                turns[task].turn = None
                self._advance(turns[task], task)

    def _start_turns(self, run: _CaptureRun) -> float:
        """Start the requests whose slots have come; return when the next slot starts, seconds since the epoch."""
        wake, resting = math.inf, run.resting()
        for lane, visit in run.visits.items():
            target = visit.wants
            if target is None or visit.turn is not None or lane in resting:
                continue
            rules = self._robots.known(target.url)
            asks = rules is None or rules.allowed(target.url) or not (rules.available or visit.is_requisite)
            if asks:
                when = self._slots.when(lane, target.host)
                if when > self._clock.now():
                    wake = min(wake, when)
                    continue
                self._slots.take(lane, target.host)
            visit.turn = asyncio.create_task(self._turn(target, lane, asks=asks))
        return wake

    def _advance(self, visit: _OpenVisit, task: asyncio.Task[Result] | None) -> None:
        """Give a visit the result of its turn; ``None`` if it gets no further turn."""
        target, steps = visit.wants, visit.steps
        assert target is not None and steps is not None  # noqa: S101, PT018 - else it has no turn
        visit.wants = None
        try:
            visit.wants = steps.send(task.result() if task else None)
        except StopIteration as end:
            visit.made = end.value
        except Exception as error:  # noqa: BLE001 - a fault of our own code becomes a failed visit
            visit.made = self._failed(target, error)

    # -- one step -------------------------------------------------------------------------------

    def _record(self, capture: SiteCapture, stage: CaptureStage, visited: VisitDone) -> tuple[VisitDone, FoundPages]:
        """Acknowledge a step; return it as recorded, and the pages it found.

        If our own code fails at that, the visit failed: it is recorded with its bytes as received, or without them.
        """
        site = stage.site
        while True:
            pages, scope = len(site.page), site.scope
            try:
                host_ready = self._slots.free_at(visited.target.host)
                return visited, self._recorder.record(capture, stage, visited, host_ready)
            except Exception as error:
                if waits_for(error) is not None or (visited.is_our_fault and visited.capture is None):
                    visited.target.machine.feed(VisitEvent.DROP)
                    raise
                fault, first = InternalFault.of(error), visited.first or visited
                visited.target.machine.feed(VisitEvent.UNRECORDED)
                self._faults.broke_visit(first.target.url, fault)
                site.back_to(pages, scope)
                self._archive.give_up()  # what was archived of it does not count
                kept = None if visited.is_our_fault else first.capture
                visited = failed_visit(first.target, first.visit.time, fault.words, kept)

    def _open_visit(self, run: _CaptureRun, lane: str, step: CaptureStep) -> _OpenVisit:
        """Begin a visit; it wants its first turn. A fault of our own code becomes a failed visit.

        A requisite on a host that does not respond any more fails without a request.
        """
        site = run.site
        page, host, url = site.page[step.number], site.host[step.number], site.url[step.number]
        target, is_requisite = VisitTarget(page, host, url, self._clock.now()), site.is_requisite(step.number)
        try:
            known = self._recorder.known(page, conditional=step.revisit)
            self._classifier.prepare(np.array([host]), self._clock.now())
            target = replace(target, known=known)
            if is_requisite and run.silent[lane] >= MOST_SILENT:
                return _OpenVisit(step, is_requisite, made=_left_alone(target, self._clock.now()))
            steps = self._visit(target, confirm=step.revisit, is_requisite=is_requisite)
            return _OpenVisit(step, is_requisite, steps, next(steps))
        except Exception as error:  # noqa: BLE001 - as above
            return _OpenVisit(step, is_requisite, made=self._failed(target, error))

    def _failed(self, target: VisitTarget, error: Exception) -> VisitDone:
        """The failed visit after a fault of our own code.

        Raises:
            RecrawlError: the fault is not our own: the store or the disk failed, or rules are unavailable.
        """
        trouble = error if isinstance(error, RecrawlError) else waits_for(error)
        if trouble is not None:
            target.machine.feed(VisitEvent.DROP)
            raise trouble from None if trouble is error else error
        self._slots.let_go(target.host)
        target.machine.feed(VisitEvent.FAULT)
        target.machine.feed(VisitEvent.BELIEVED)
        return self._broken(InternalFailure(target, self._clock.now(), InternalFault.of(error)))

    def _visit(
        self, target: VisitTarget, *, confirm: bool, is_requisite: bool
    ) -> Generator[VisitTarget, Result | None, VisitDone | None]:
        """The turns of a visit, each in its slot, until it is made; ``None`` if it got no further turn.

        With ``confirm``, a difference that may be noise takes another slot. A redirect to another spelling of the same
        page (https, www, a trailing slash) is followed as part of the visit; any other redirect target is another page.
        """
        machine, hops, rule_reads = target.machine, 0, 0
        while (result := (yield target)) is not None:
            if isinstance(result, NeedsConfirmation) and not confirm:
                machine.feed(VisitEvent.EXPIRED)
                return unconfirmed_visit(result.target)
            if hops < _MOST_HOPS and isinstance(result, VisitDone) and result.capture and names_itself(result):
                hops += 1
                self._archive.write_auxiliary(result.capture)
                machine.feed(VisitEvent.AGAIN)
                target = replace(target, url=result.judgement.redirect_to)
                continue
            match machine.feed(VisitEvent.BELIEVED), result:
                case VisitAction.ARCHIVE, VisitDone() | InternalFailure() as made:
                    return made if isinstance(made, VisitDone) else self._broken(made)
                case VisitAction.APPLY_ROBOTS, RobotsFetched(rules=read):
                    rule_reads += 1
                    is_last = rule_reads == _MOST_RULE_READS and not is_requisite
                    self._apply(target, read, is_last=is_last, waits=not is_requisite)
                    machine.feed(VisitEvent.ALLOWED)  # if not, the next turn ends the visit
                case VisitAction.WAIT, NeedsConfirmation(target=target):
                    hops = rule_reads = 0
                case VisitAction.DEFER, Deferred():
                    pass
                case action, _:
                    msg = f"{action.value}: not possible after {type(result).__name__}"
                    raise VisitOrderError(msg)
        machine.feed(VisitEvent.RETURN if target.seen is None else VisitEvent.EXPIRED)
        return None if target.seen is None else unconfirmed_visit(target)

    async def _turn(self, target: VisitTarget, lane: str, *, asks: bool) -> Result:
        """Make one turn of a visit in its slot.

        Raises:
            StoreError: the disk is full, or the store is unreachable.
        """
        result = await self._visitor.visit(replace(target, due=self._clock.now()))
        if isinstance(result, StorageBlocked):
            raise result.fault
        await self._pack_ahead(result)
        if isinstance(result, Deferred):
            self._slots.give_back(lane, target.host, result.until)
        elif asks:
            self._slots.end(target.host, result.capture)
        return result

    def _apply(self, target: VisitTarget, rules: HostRobots, *, is_last: bool, waits: bool) -> None:
        """Apply rules that were just read.

        Raises:
            NoRulesError: they are unavailable, and this was the last try.
        """
        self._visitor.keep_rules()
        self._slots.obey(target.host, rules, waits=waits)
        self._log.event("fetch", "robots.txt read", details={"url": target.url, "reason": rules.reason})
        if is_last and not rules.available:
            raise NoRulesError(f"{rules.reason}.", "Resume the capture later with --resume.")

    async def _pack_ahead(self, result: Result | Capture) -> None:
        await pack_ahead(self._archive, result, self._clock, self._faults)

    def _broken(self, broken: InternalFailure) -> VisitDone:
        self._faults.broke_visit(broken.target.url, broken.fault)
        visited = broken.as_visit()
        return replace(visited, first=unconfirmed_visit(broken.target)) if broken.target.seen else visited

    def _told(self, visited: VisitDone) -> None:
        level, details = log_entry(visited)
        self._log.event("fetch", "visited", level=level, details=details)
        self._on_visit(visited)

    def _finish(self, capture: SiteCapture, course: CaptureCourse) -> CaptureReport:
        """Write the quality of the capture: to the archive first, then to the store, which makes it complete."""
        now = self._clock.now()
        report = report_of(self._store, replace(capture, finished=now), course)
        text = json.dumps(report_json(report, self._store.urls), allow_nan=False)
        self._archive.write_document(capture_urn(capture), now, text.encode())
        self._store.finish_site_capture(capture.id, text, now)
        return replace(report, capture=replace(report.capture, statement=text))

    @staticmethod
    def _progress(course: CaptureCourse, delay: float) -> CaptureProgress:
        left = course.steps_left * delay
        return CaptureProgress(course.phase, course.pages, course.visited, course.seen_again, course.to_see_again, left)
