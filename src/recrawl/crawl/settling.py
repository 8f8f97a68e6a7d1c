"""Settling: what follows from the end of a request, for its host, for its target and for the crawl.

First the host: its pause begins at once. Then it is weighed whether a host that is silent is gone, or we are. Only what
is believed is taken in: a visit waits to be acknowledged, what was found joins the line. A store or a disk that fails
on the way loses nothing: what is not taken in yet stays, and ``take_in`` can be called again.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from recrawl.crawl.acknowledging import Acknowledging
from recrawl.crawl.announcements import Announcements
from recrawl.crawl.faults import Fault, Faults, waits_for
from recrawl.crawl.line import Line
from recrawl.crawl.log import JsonLinesLog
from recrawl.crawl.outage import DOUBT, Doubts, Outage, is_silence, is_unanswered
from recrawl.crawl.recorder import Recorder
from recrawl.crawl.steering import Steering
from recrawl.crawl.target import (
    Broken,
    ErrandDone,
    Hindered,
    Result,
    RulesRead,
    SeenOnce,
    Target,
    TurnedAway,
    Underway,
    Visited,
)
from recrawl.crawl.trouble import is_well
from recrawl.crawl.versions import settled
from recrawl.crawl.visitor import Visitor
from recrawl.detect import Judgement
from recrawl.fetch.access import redirect_of
from recrawl.fetch.patience import asked_patience
from recrawl.model import Capture, Outcome, Validators, Visit
from recrawl.model.failures import BROKEN_OFF, NOT_ALLOWED
from recrawl.schedule.politeness import Politeness
from recrawl.store.base import Store
from recrawl.time import MINUTE
from recrawl.urls import host_of

_LONG_REST = MINUTE
"""Seconds of rest from which on pages of a host are better off in the store."""


class Ended(NamedTuple):
    """A request that is over."""

    result: Result
    time: float
    """When it ended, seconds since the epoch."""
    stalled: float = 0.0
    """Seconds of it in which our own event loop stood still."""


class Settling:
    """Takes the results of requests, one after the other."""

    def __init__(  # noqa: PLR0913 - who is told
        self,
        *,
        store: Store,
        politeness: Politeness,
        line: Line,
        visitor: Visitor,
        recorder: Recorder,
        acknowledging: Acknowledging,
        announcements: Announcements,
        steering: Steering,
        log: JsonLinesLog,
        faults: Faults,
    ) -> None:
        self._store = store
        self._politeness = politeness
        self._line = line
        self._visitor = visitor
        self._recorder = recorder
        self._acknowledging = acknowledging
        self._announcements = announcements
        self._steering = steering
        self._log = log
        self._faults = faults
        self._doubts = Doubts(log)
        self._believed: deque[Result] = deque()
        """What is not taken in yet."""
        self._delays: dict[int, float] = {}
        """Pauses that hosts ask for, in seconds, as far as the store does not know them."""

    @property
    def outage(self) -> Outage:
        """What is known of our own connection."""
        return self._doubts.outage

    @property
    def doubts_end(self) -> float:
        """When silence is to be believed although nothing became clear, seconds since the epoch."""
        return self._doubts.ends

    def held(self) -> Iterator[Target]:
        """Targets of results that are in doubt or not taken in yet."""
        return (result.target for result in (*self._doubts.held, *self._believed))

    def take(self, ended: Ended, now: float) -> None:
        """A request is over: free its host, weigh what came of it. If our own code fails at that, so did the visit."""
        try:
            self._take(ended, now)
        except Exception as error:  # noqa: BLE001 - what is no fault is raised again
            result, trouble = ended.result, waits_for(error)
            self._line.let_go(result.target, ended.time)
            if not any(result is one for one in (*self._believed, *self._doubts.held)):
                self._believed.append(result if trouble else _broken(result, error, ended.time))
            if trouble is not None:
                raise trouble from (None if trouble is error else error)

    def _take(self, ended: Ended, now: float) -> None:
        result = ended.result
        if not result.target.is_errand and not _cost_a_visit(result):
            self._steering.spared(1)
        if isinstance(result, TurnedAway):
            self.turn_away(result, now)
            return
        if ended.stalled and is_unanswered(result):
            self._ask_again_after_stall(ended)
            return
        self._release(ended, now)
        believed, unheard = self._doubts.weigh(result, now)
        self._ask_again(unheard)
        self._believe(believed, now)

    def turn_away(self, away: TurnedAway, now: float) -> None:
        """Let the target wait for the turn of its address."""
        self._line.turned_away(away.target, away.until)
        self._let_rest(away.target.host, now)

    def end_doubts(self, now: float) -> None:
        """Believe what is in doubt: nothing will make it clearer."""
        self._believe(self._doubts.take(), now)

    def take_in(self, now: float) -> None:
        """Do what follows from all that is believed."""
        while self._believed:
            result = self._believed[0]
            try:
                if isinstance(result, Broken):
                    self._broken(result, now)
                else:
                    self._follow(result, now)
            except Exception as error:  # noqa: BLE001 - what is no fault is raised again
                if (trouble := waits_for(error)) is not None:
                    raise trouble from (None if trouble is error else error)
                self._believed.popleft()
                if isinstance(result, Broken):
                    self._forget(result, error, now)
                else:
                    self._believed.appendleft(_broken(result, error, now))
            else:
                self._believed.popleft()
        if self._delays:  # of all hosts at once: each transaction waits for the disk, and a crawl begins with many
            self._store.set_host(np.array(list(self._delays)), delay=np.array(list(self._delays.values())))
            self._delays.clear()
        self._visitor.keep_rules()

    def ask_again(self) -> None:
        """Put back what is in doubt, as if it had not been asked for."""
        self._ask_again(self._doubts.take())

    def give_up(self) -> None:
        """Forget what is in doubt or not taken in."""
        self._doubts.take()
        self._believed.clear()

    # -- the host -----------------------------------------------------------------------------

    def _release(self, ended: Ended, now: float) -> None:
        """The pause of the host begins, a longer one if it asks for that."""
        target, capture = ended.result.target, ended.result.capture
        if isinstance(ended.result, RulesRead):  # the pause that they ask for begins with them
            self._politeness.set_crawl_delay(target.host, ended.result.rules.crawl_delay)
        if _sent_nothing(ended.result):
            self._line.spared(target)
            return
        if isinstance(ended.result, RulesRead) and is_silence(ended.result):
            # Nothing else of it is tried before it is clear who is silent, the host or we.
            self._politeness.block_until(target.host, now + DOUBT)
        # From its own end on: hosts whose pauses began together would be asked together ever after.
        self._line.done(target, ended.time, max(capture.duration - ended.stalled, 0.0) if capture else 0.0)
        wait = asked_patience(capture) if capture else None
        if wait is not None:
            self._politeness.block_until(target.host, now + wait)

    def _mind(self, result: Result, now: float) -> None:
        """Leave a host alone that does not answer, whichever page is asked for."""
        target, well = result.target, is_well(result)
        if well:
            self._politeness.answered(target.host)
        elif well is False:
            if result.capture is None or asked_patience(result.capture) is None:  # it did not say when it will be well
                self._politeness.failed(target.host, now)
            self._let_rest(target.host, now)

    def _let_rest(self, host: int, now: float) -> None:
        """Give back the pages of a host that rests for long: in our hands they would take the place of others."""
        ready = self._politeness.free_at(host)
        if ready >= now + _LONG_REST:
            self._line.give_back(host)
            for target in self._line.take_moved(host):
                self._acknowledging.add(_led_nowhere(target, now), now)
            self._store.set_host(np.array([host]), ready_at=np.array([ready]))

    # -- the doubt ----------------------------------------------------------------------------

    def _believe(self, results: Sequence[Result], now: float) -> None:
        """Take results for what they are; those of hosts that could not be reached may have been in doubt."""
        self._believed.extend(results)
        for result in results:
            with self._faults.contained():
                self._mind(result, now)

    def _ask_again(self, results: Sequence[Result]) -> None:
        """Put back what we could not reach: its hosts have their turn after others."""
        for result in results:
            target = result.target
            try:
                self._politeness.block_until(target.host, self.outage.try_at + 1.0)
                self._visitor.forget_rules(target)
                self._line.put_back(target)
                if not target.is_errand and _cost_a_visit(result):
                    self._steering.spared(1)
            except Exception as error:
                if waits_for(error) is not None:
                    raise
                self._believed.append(_broken(result, error, result.capture.time if result.capture else target.due))

    def _ask_again_after_stall(self, ended: Ended) -> None:
        """Put back what failed while our own event loop stood still: that says nothing of its host."""
        result, target = ended.result, ended.result.target
        self._line.done(target, ended.time, 0.0)
        if isinstance(result, RulesRead):
            self._visitor.forget_rules(target)
        self._line.put_back(target)
        if not target.is_errand and _cost_a_visit(result):
            self._steering.spared(1)
        details: dict[str, object] = {"url": target.url, "seconds": round(ended.stalled, 3)}
        self._log.event("fetch", "asked again, since our own event loop was late", level="warn", details=details)

    # -- the target ---------------------------------------------------------------------------

    def _follow(self, result: Result, now: float) -> None:
        """Do what follows from a result. It can be done again if the store or the disk failed on the way."""
        match result:
            case Visited(target):
                self._acknowledging.add(
                    result if target.home is None else replace(result, target=target.at_home()), now
                )
            case Underway(target, capture):
                self._recorder.keep_aside(capture)
                moved = self._moved(target, capture, now)
                if moved.home is not None and now + _LONG_REST <= self._politeness.free_at(moved.host) < math.inf:
                    self._acknowledging.add(_led_nowhere(moved, now), now)
                else:
                    self._line.put_back(moved)
            case SeenOnce(target):
                self._line.put_back(target)
            case RulesRead():
                self._apply(result, now)
            case ErrandDone():
                self._line.join(self._announcements.done(result, now))
            case Hindered(target, fault):
                self._line.put_back(target)
                self._believed.popleft()
                raise fault

    def _moved(self, target: Target, answer: Capture, now: float) -> Target:
        """The target at the host that it has to be asked for at next: a redirect may lead to another one.

        From then on the pauses, the rules and the trouble of that host count, not those of the page's own.
        """
        asks, redirect = host_of(target.asks), redirect_of(answer)
        if asks == host_of(answer.url):
            return target
        if asks == host_of(target.url) or not redirect or asks != host_of(redirect):
            return target.at_home()  # where a method that asks for what nobody led it to is stopped
        [page] = self._recorder.discover([redirect], now)
        return target.at_host(int(self._store.pages(np.array([page])).host[0]))

    def _apply(self, read: RulesRead, now: float) -> None:
        """Keep the pause a host asks for, send for its sitemaps, and put the page that waited back, or refuse it."""
        target, rules = read.target, read.rules
        self._delays[target.host] = self._politeness.rules.pause(0.0, rules.crawl_delay)
        if not rules.available and rules.failure != NOT_ALLOWED and not self._visitor.answers_otherwise(target):
            self._politeness.block_until(target.host, rules.expires)  # until then nothing may be asked for
            self._let_rest(target.host, now)
        self._line.join(self._announcements.rules_read(read, now))
        details: dict[str, object] = {"url": target.url, "reason": rules.reason}
        if rules.asked_delay != rules.crawl_delay:
            details |= {"crawl_delay": rules.crawl_delay, "asked_for": rules.asked_delay}
        if read.asked:
            self._log.event("fetch", "robots.txt read", details=details)
        over = self._visitor.without_asking(target, rules)
        if over is None:
            self._line.put_back(target)
        else:
            self._follow(over, now)

    def broken(self, target: Target, error: Exception, now: float) -> None:
        """Our own code failed on a page before it was asked for."""
        self._believed.append(Broken(target, now, Fault.of(error)))

    def _broken(self, broken: Broken, now: float) -> None:
        """Keep what our own code could not handle in the log, as a failed visit, and try again later."""
        target = broken.target
        if target.is_errand:
            if broken.capture is not None:
                with self._faults.contained():
                    self._recorder.keep_aside(broken.capture, "M")
            self._line.join([self._announcements.errands.again(target, now)])
        else:
            for visited in _visits_of(broken, self._faults):
                self._acknowledging.add(visited, now)
        self._faults.broke_visit(target.url, broken.fault)

    def _forget(self, broken: Broken, error: Exception, now: float) -> None:
        """Not even a failed visit can be made of it: report it, and let the page be tried again later."""
        self._faults.beside_pages(error, broken.target.url)
        self._faults.broke_visit(broken.target.url, broken.fault)
        if not broken.target.is_errand:
            self._recorder.give_back(broken.target.page, now)


def _broken(result: Result, error: Exception, now: float) -> Broken:
    """A result that our own code failed on, with the bytes that came."""
    return Broken(result.target, now, Fault.of(error), result.capture)


def _visits_of(broken: Broken, faults: Faults) -> Iterator[Visited]:
    """The failed visit, and before it the first look, if it waited for its second."""
    seen = broken.target.seen
    if seen is not None:
        with faults.contained():
            yield settled(broken.target)
            if broken.capture is seen.capture:
                return
    yield replace(broken, target=broken.target.at_home()).as_visit()


def _led_nowhere(target: Target, now: float) -> Visited:
    """The visit of a page that redirects to a host which is left alone for long: meanwhile others are to be visited.

    The host of the page is held as long as one of its pages is in hand, so that page does not wait.
    """
    home = replace(target.at_home(), talk=None)
    validators = home.known.validators if home.known else Validators()
    visit = Visit(home.page, now, Outcome.UNREACHABLE, status=BROKEN_OFF)
    reason = f"it redirects to {host_of(target.asks)}, which is left alone for now"
    return Visited(home, visit, Judgement(Outcome.UNREACHABLE, validators=validators), reason=reason)


def _sent_nothing(result: Result) -> bool:
    """Whether the rules of the host, which were known, forbade to ask, or had to be looked up in the store."""
    return (isinstance(result, Visited) and result.capture is None) or (
        isinstance(result, ErrandDone | RulesRead) and not result.asked
    )


def _cost_a_visit(result: Result) -> bool:
    """Whether a page was asked for, and need not be asked for again."""
    return isinstance(result, Broken | SeenOnce) or (isinstance(result, Visited) and result.capture is not None)
