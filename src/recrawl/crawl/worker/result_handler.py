"""The result handler: the consequences of a finished turn for its host, its target and the crawl.

The pause of the host starts first. Then the outage detector decides whether a silent host is down or we are offline.
Only believed results are handled, as the visit machine says: a visit goes to the group commit, a target that needs
another turn joins the ready queue. If the store or the disk fails on the way nothing is lost: unhandled results stay,
and ``handle_believed`` can be called again.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from recrawl.crawl.control.json_log import JsonLinesLog
from recrawl.crawl.control.run_control import RunControl
from recrawl.crawl.visit.fault_isolation import FaultReporter, InternalFault
from recrawl.crawl.visit.recorder import Recorder
from recrawl.crawl.visit.visit_machine import (
    AuxiliaryFetched,
    Deferred,
    ExchangeUnderway,
    InternalFailure,
    NeedsConfirmation,
    Result,
    RobotsFetched,
    StorageBlocked,
    VisitAction,
    VisitDone,
    VisitEvent,
    VisitOrderError,
    VisitState,
    VisitTarget,
    unconfirmed_visit,
)
from recrawl.crawl.visit.visitor import Visitor, event_without_request
from recrawl.crawl.worker.group_commit import GroupCommit
from recrawl.crawl.worker.lease_pool import ReadyQueue
from recrawl.crawl.worker.outages import (
    DOUBT,
    NetworkOutage,
    OutageDetector,
    is_silence,
    is_well,
    may_be_our_fault,
)
from recrawl.crawl.worker.sitemap_feed_poller import SitemapFeedPoller
from recrawl.detect import ChangeResult
from recrawl.fetch.access.access_method import redirect_of
from recrawl.fetch.http.transfer import retry_after
from recrawl.formats.atomic_files import waits_for
from recrawl.model import Capture, Outcome, Validators, Visit
from recrawl.model.visits import BROKEN_OFF, NOT_ALLOWED
from recrawl.schedule.politeness.host_politeness import Politeness
from recrawl.store.base import ScheduleStore
from recrawl.time import MINUTE
from recrawl.urls import host_of

_MOST_REPEATS = 1
"""How often a target is requested again within one lease because our own event loop was late. While the loop is late
again and again, a silent host cannot be told from our own stall."""
_LONG_REST = MINUTE
"""Seconds of pause from which on pages of a host are returned to the store."""


_AFTER_FAULT = 5.0
"""Seconds until a host is tried again that could not be reserved, because the store or our own code failed."""


class FinishedRequest(NamedTuple):
    """A finished request."""

    result: Result
    time: float
    """When it ended, seconds since the epoch."""
    stalled: float = 0.0
    """Seconds of it in which our own event loop was blocked."""
    took: float = 0.0
    """Seconds from start to end, in the time of the event loop."""


class ResultHandler:
    """Handles the results of requests, one after the other."""

    def __init__(  # noqa: PLR0913 - the parts it notifies
        self,
        *,
        store: ScheduleStore,
        politeness: Politeness,
        ready_queue: ReadyQueue,
        visitor: Visitor,
        recorder: Recorder,
        group_commit: GroupCommit,
        sitemap_feed_poller: SitemapFeedPoller,
        run_control: RunControl,
        log: JsonLinesLog,
        faults: FaultReporter,
    ) -> None:
        self._store = store
        self._politeness = politeness
        self._ready_queue = ready_queue
        self._visitor = visitor
        self._recorder = recorder
        self._group_commit = group_commit
        self._sitemap_feed_poller = sitemap_feed_poller
        self._run_control = run_control
        self._log = log
        self._faults = faults
        self._outage_detector = OutageDetector(log)
        self._believed: deque[Result] = deque()
        """Results that are not handled yet."""
        self._delays: dict[int, float] = {}
        """By host, crawl delays in seconds that the store does not have yet."""

    @property
    def outage(self) -> NetworkOutage:
        """The state of our own connection."""
        return self._outage_detector.outage

    @property
    def doubt_ends(self) -> float:
        """When a silent host counts as down although nothing became clear, seconds since the epoch."""
        return self._outage_detector.ends

    def held(self) -> Iterator[VisitTarget]:
        """Targets of results that are in doubt or not handled yet."""
        return (result.target for result in (*self._outage_detector.held, *self._believed))

    def take(self, ended: FinishedRequest, now: float) -> None:
        """Accept a finished request: free its host and check for an outage. If our own code fails, so did the visit."""
        try:
            self._take(ended, now)
        except Exception as error:  # noqa: BLE001 - what is no internal fault is raised again
            result, trouble = ended.result, waits_for(error)
            self._ready_queue.let_go(result.target, ended.time)
            if result.target.machine.state is VisitState.WAITING:  # it is queued again
                if trouble is None:
                    self._faults.beside_pages(error, result.target.url)
            elif not any(result is one for one in (*self._believed, *self._outage_detector.held)):
                self._believed.append(result if trouble else _broken(result, error, ended.time))
            if trouble is not None:
                raise trouble from (None if trouble is error else error)
        finally:
            self._leave(ended.result.target, now)

    def _take(self, ended: FinishedRequest, now: float) -> None:
        result = ended.result
        if not result.target.is_auxiliary and not _cost_a_visit(result):
            self._run_control.refund(1)
        if isinstance(result, Deferred) and result.asked:
            self._ready_queue.done(result.target, ended.time, 0.0)
            self._ready_queue.put_back(result.target)
            result.target.machine.feed(VisitEvent.AGAIN)
            return
        if isinstance(result, Deferred):
            self._defer(result.target, result.until, now, VisitEvent.BELIEVED)
            return
        if result.target.repeats < _MOST_REPEATS and may_be_our_fault(result, ended.stalled, ended.took):
            self._requeue_after_stall(ended)
            return
        self._release(ended, now)
        believed, unheard = self._outage_detector.add_result(result, now)
        self._requeue(unheard)
        self._believe(believed, now)

    def _defer(self, target: VisitTarget, until: float, now: float, event: VisitEvent) -> None:
        """Queue the target until its IP address or its host is free."""
        self._ready_queue.defer(target, until)
        target.machine.feed(event)
        with self._faults.contained():
            self._let_rest(target.host, now)

    def may_start(self, target: VisitTarget, now: float) -> bool:
        """Whether a target may be requested now; if not, it waits, or its visit has failed.

        Auxiliary fetches and redirected pages are not leased pages of the host they go to, so that host is reserved
        first. Other workers may hold it for long. A redirected page waits for a minute at most, because it blocks its
        own host; two pages that lead to each other's hosts would wait for ever.
        """
        if not target.is_auxiliary and target.home is None:
            return True
        resting = target.host in self._run_control.resting
        until = now + MINUTE if resting else self._enter(target, now)
        if until <= now:
            return True
        if not target.is_auxiliary:
            self._run_control.refund(1)
        if not resting and not target.is_auxiliary and self._ready_queue.waited(target, now) >= _LONG_REST:
            self._ready_queue.spared(target)
            self._group_commit.add(_unreachable_redirect(target, now), now)
        else:
            self._defer(target, until, now, VisitEvent.HELD)
        return False

    def _enter(self, target: VisitTarget, now: float) -> float:
        """Reserve the host of a target that is no page of it; return when to try again.

        If that fails, the target waits.
        """
        try:
            return self._ready_queue.enter(target, now)
        except Exception as error:  # noqa: BLE001 - if the store is unreachable, the next turn meets that, too
            if waits_for(error) is None:
                self._faults.beside_pages(error, target.url)
            return now + _AFTER_FAULT

    def _leave(self, target: VisitTarget, now: float) -> None:
        """Return the reserved host of a target that is no page of it, after its pause."""
        if target.is_auxiliary or target.home is not None:
            ready = self._politeness.free_at(target.host)
            self._ready_queue.leave(target, ready if math.isfinite(ready) else now)

    def believe_doubtful(self, now: float) -> None:
        """Believe the results in doubt: nothing will make them clearer."""
        self._believe(self._outage_detector.take(), now)

    def handle_believed(self, now: float) -> None:
        """Handle all believed results."""
        while self._believed:
            result = self._believed[0]
            try:
                if isinstance(result, InternalFailure):
                    self._broken(result, now)
                else:
                    self._follow(result, now)
            except Exception as error:  # noqa: BLE001 - what is no fault is raised again
                if (trouble := waits_for(error)) is not None:
                    raise trouble from (None if trouble is error else error)
                self._believed.popleft()
                if isinstance(result, InternalFailure):
                    self._forget(result, error, now)
                else:
                    self._believed.appendleft(_broken(result, error, now))
            else:
                self._believed.popleft()
        if self._delays:  # of all hosts at once: each transaction waits for the disk, and a crawl starts with many
            self._store.set_host(np.array(list(self._delays)), delay=np.array(list(self._delays.values())))
            self._delays.clear()
        with self._faults.contained():
            self._ready_queue.free_hosts()
        self._visitor.keep_rules()

    def requeue_doubtful(self) -> None:
        """Queue the targets in doubt, as if they had not been requested."""
        self._requeue(self._outage_detector.take())

    def give_up(self) -> None:
        """Drop results that are in doubt or not handled."""
        for target in self.held():
            target.machine.feed(VisitEvent.DROP)
        self._outage_detector.take()
        self._believed.clear()

    # -- the host -----------------------------------------------------------------------------

    def _release(self, ended: FinishedRequest, now: float) -> None:
        """Start the pause of the host; a longer one if the host asks for that."""
        target, capture = ended.result.target, ended.result.capture
        if isinstance(ended.result, RobotsFetched):  # the crawl delay applies from now on
            self._politeness.set_crawl_delay(target.host, ended.result.rules.crawl_delay)
        if _sent_nothing(ended.result):
            self._ready_queue.spared(target)
            return
        if isinstance(ended.result, RobotsFetched) and is_silence(ended.result):
            # Request nothing else of it before it is clear whether the host is down or we are offline.
            self._politeness.block_until(target.host, now + DOUBT)
        # From its own end on: hosts whose pauses start together would be requested together ever after.
        self._ready_queue.done(target, ended.time, max(capture.duration - ended.stalled, 0.0) if capture else 0.0)
        wait = retry_after(capture) if capture else None
        if wait is not None:
            self._politeness.block_until(target.host, now + wait)

    def _update_health(self, result: Result, now: float) -> None:
        """Update the health of the host: back off from one that does not answer, whichever page was requested."""
        target, well = result.target, is_well(result)
        if well:
            self._politeness.answered(target.host)
        elif well is False:
            if result.capture is None or retry_after(result.capture) is None:  # it did not say when to return
                self._politeness.failed(target.host, now)
            self._let_rest(target.host, now)

    def _let_rest(self, host: int, now: float) -> None:
        """Return the pages of a host that pauses for long: they would block the lease pool."""
        ready = self._politeness.free_at(host)
        if ready >= now + _LONG_REST:
            self._ready_queue.give_back(host)
            for target in self._ready_queue.take_moved(host):
                self._group_commit.add(_unreachable_redirect(target, now), now)
            self._store.set_host(np.array([host]), ready_at=np.array([ready]))

    # -- the doubt ----------------------------------------------------------------------------

    def _believe(self, results: Sequence[Result], now: float) -> None:
        """Accept results as they are, including those of unreachable hosts that were in doubt."""
        self._believed.extend(results)
        for result in results:
            with self._faults.contained():
                self._update_health(result, now)

    def _requeue(self, results: Sequence[Result]) -> None:
        """Queue targets that we could not reach; their hosts have their turn after others."""
        for result in results:
            target = result.target
            try:
                self._politeness.block_until(target.host, self.outage.try_at + 1.0)
                self._visitor.forget_rules(target)
                target.machine.feed(VisitEvent.AGAIN)
                self._ready_queue.put_back(target)
                if not target.is_auxiliary and _cost_a_visit(result):
                    self._run_control.refund(1)
            except Exception as error:
                if waits_for(error) is not None:
                    raise
                self._believed.append(_broken(result, error, result.capture.time if result.capture else target.due))

    def _requeue_after_stall(self, ended: FinishedRequest) -> None:
        """Queue a target whose request failed while our own event loop was blocked: that says nothing about its host.

        The host received a request all the same: it pauses twice as long as it would otherwise, and the budget is not
        refunded.
        """
        result, target = ended.result, ended.result.target
        seconds = max(ended.took - ended.stalled, 0.0)
        self._ready_queue.done(target, ended.time, seconds)
        pause = self._politeness.rules.pause(seconds, None) * 2.0 ** (target.repeats + 1)
        self._politeness.block_until(target.host, ended.time + pause)
        target.machine.feed(VisitEvent.AGAIN)
        if isinstance(result, RobotsFetched):
            self._visitor.forget_rules(target)
            self._ready_queue.put_back(replace(target, repeats=target.repeats + 1))
        else:
            self._ready_queue.put_back(target.repeated())
        details: dict[str, object] = {"url": target.url, "seconds": round(ended.stalled, 3)}
        self._log.event("fetch", "requested again after an event loop stall", level="warn", details=details)

    # -- the target ---------------------------------------------------------------------------

    def _follow(self, result: Result, now: float) -> None:
        """Do what the visit machine says. It can be repeated if the store or the disk failed on the way."""
        match result.target.machine.feed(VisitEvent.BELIEVED), result:
            case VisitAction.ARCHIVE, VisitDone() as visited:
                self._record(visited, now)
            case VisitAction.ARCHIVE_STEP, ExchangeUnderway(target, capture):
                self._recorder.archive_auxiliary(capture)
                moved = self._moved(target, capture, now)
                target.machine.feed(VisitEvent.ARCHIVED)
                if moved.home is not None and now + _LONG_REST <= self._politeness.free_at(moved.host) < math.inf:
                    self._group_commit.add(_unreachable_redirect(moved, now), now)
                else:
                    self._ready_queue.put_back(moved)
            case VisitAction.WAIT, NeedsConfirmation(target):
                self._ready_queue.put_back(target)
            case VisitAction.APPLY_ROBOTS, RobotsFetched() as read:
                self._apply(read, now)
            case VisitAction.RECORD_CLAIMS, AuxiliaryFetched() as polled:
                self._record_claims(polled, now)
                polled.target.machine.feed(VisitEvent.COMMITTED)
            case VisitAction.WAIT_FOR_STORAGE, StorageBlocked(target, fault):
                self._ready_queue.put_back(target)
                self._believed.popleft()
                raise fault
            case action, _:
                msg = f"{action.value}: not possible after {type(result).__name__}"
                raise VisitOrderError(msg)

    def _record(self, visited: VisitDone, now: float) -> None:
        """Queue a visit to be archived and committed, at the host of its page."""
        target = visited.target
        self._group_commit.add(visited if target.home is None else replace(visited, target=target.at_home()), now)

    def _record_claims(self, polled: AuxiliaryFetched, now: float) -> None:
        """Record what a sitemap or feed says; its next poll is a new visit."""
        self._ready_queue.join(self._sitemap_feed_poller.done(polled, now))

    def _moved(self, target: VisitTarget, answer: Capture, now: float) -> VisitTarget:
        """The target at the host of its next request: a redirect may lead to another host.

        From then on the pauses, rules and health of that host apply, not those of the page's own host.
        """
        asks, redirect = host_of(target.asks), redirect_of(answer)
        if asks == host_of(answer.url):
            return target
        if asks == host_of(target.url) or not redirect or asks != host_of(redirect):
            return target.at_home()  # which refuses an access method that requests a host no redirect led to
        [page] = self._recorder.discover([redirect], now)
        return target.at_host(int(self._store.pages(np.array([page])).host[0]))

    def _apply(self, read: RobotsFetched, now: float) -> None:
        """Store the crawl delay of a host, queue its sitemaps, and queue the waiting page or refuse it."""
        target, rules = read.target, read.rules
        self._delays[target.host] = self._politeness.rules.pause(0.0, rules.crawl_delay)
        if not rules.available and rules.failure != NOT_ALLOWED and not self._visitor.answers_elsewhere(target):
            self._politeness.block_until(target.host, rules.expires)  # until then nothing may be requested
            self._let_rest(target.host, now)
        self._ready_queue.join(self._sitemap_feed_poller.rules_read(read, now))
        details: dict[str, object] = {"url": target.url, "reason": rules.reason}
        if rules.asked_delay != rules.crawl_delay:
            details |= {"crawl_delay": rules.crawl_delay, "asked_for": rules.asked_delay}
        if read.asked:
            self._log.event("fetch", "robots.txt read", details=details)
        over = self._visitor.result_without_request(target, rules)
        if over is None:
            self._ready_queue.put_back(target)
        elif isinstance(over, VisitDone):
            self._record(over, now)
        else:
            self._record_claims(over, now)
        if target.machine.feed(event_without_request(over)) is VisitAction.RECORD_CLAIMS:
            target.machine.feed(VisitEvent.COMMITTED)  # they are recorded

    def broken(self, target: VisitTarget, error: Exception, now: float) -> None:
        """Record that our own code failed on a page before it was requested."""
        target.machine.feed(VisitEvent.FAULT)
        self._believed.append(InternalFailure(target, now, InternalFault.of(error)))

    def _broken(self, broken: InternalFailure, now: float) -> None:
        """Make a failed visit of what our own code could not handle, log it, and retry later."""
        target = broken.target
        if target.is_auxiliary:
            if broken.capture is not None:
                with self._faults.contained():
                    self._recorder.archive_auxiliary(broken.capture, "M")
            self._ready_queue.join([self._sitemap_feed_poller.auxiliary_fetches.again(target, now)])
            target.machine.feed(VisitEvent.COMMITTED)
        else:
            target.machine.feed(VisitEvent.BELIEVED)
            for visited in _visits_of(broken, self._faults):
                self._group_commit.add(visited, now)
        self._faults.broke_visit(target.url, broken.fault)

    def _forget(self, broken: InternalFailure, error: Exception, now: float) -> None:
        """Report a result that cannot even become a failed visit, and let the page be retried later."""
        self._faults.beside_pages(error, broken.target.url)
        self._faults.broke_visit(broken.target.url, broken.fault)
        broken.target.machine.feed(VisitEvent.DROP)
        if not broken.target.is_auxiliary:
            self._recorder.give_back(broken.target.page, now)


def _broken(result: Result, error: Exception, now: float) -> InternalFailure:
    """The failure of our own code on a result, with the bytes received."""
    result.target.machine.feed(VisitEvent.FAULT)
    return InternalFailure(result.target, now, InternalFault.of(error), result.capture)


def _visits_of(broken: InternalFailure, faults: FaultReporter) -> Iterator[VisitDone]:
    """The failed visit, preceded by the first visit if the target waited for its confirmation."""
    seen = broken.target.seen
    if seen is not None:
        with faults.contained():
            first, is_all = unconfirmed_visit(broken.target), broken.capture is seen.capture
            yield first if is_all else replace(first, is_first=True)
            if is_all:
                return
    yield replace(broken, target=broken.target.at_home()).as_visit()


def _unreachable_redirect(target: VisitTarget, now: float) -> VisitDone:
    """The failed visit of a page that redirects to a host which pauses for long.

    Such a page does not wait: its own host is reserved as long as one of its pages is leased.
    """
    target.machine.feed(VisitEvent.UNREACHABLE)
    home = replace(target.at_home(), exchange=None)
    validators = home.known.validators if home.known else Validators()
    visit = Visit(home.page, now, Outcome.UNREACHABLE, status=BROKEN_OFF)
    reason = f"it redirects to {host_of(target.asks)}, which is left alone for now"
    return VisitDone(home, visit, ChangeResult(Outcome.UNREACHABLE, validators=validators), reason=reason)


def _sent_nothing(result: Result) -> bool:
    """Whether no request was sent: known rules forbade it, or the rules came from the store."""
    return (isinstance(result, VisitDone) and result.capture is None) or (
        isinstance(result, AuxiliaryFetched | RobotsFetched) and not result.asked
    )


def _cost_a_visit(result: Result) -> bool:
    """Whether a page was requested, and need not be requested again."""
    return isinstance(result, InternalFailure | NeedsConfirmation) or (
        isinstance(result, VisitDone) and result.capture is not None
    )
