"""One turn of a visit: executes what the visit machine says, up to one request and the classification of its response.

:class:`AccessRunner` starts the exchanges of access methods, and reads URLs that are not HTTP.
"""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from recrawl.crawl.visit.change_classifier import ChangeClassifier
from recrawl.crawl.visit.fault_isolation import InternalFault
from recrawl.crawl.visit.scope import RedirectChains
from recrawl.crawl.visit.site_claims import read_announced
from recrawl.crawl.visit.visit_machine import (
    NEVER_SEEN,
    AuxiliaryFetched,
    Deferred,
    ExchangeUnderway,
    FirstFetch,
    InternalFailure,
    NeedsConfirmation,
    Result,
    RobotsFetched,
    VisitAction,
    VisitDone,
    VisitEvent,
    VisitTarget,
    failure_of,
    seen_once,
    unconfirmed_visit,
)
from recrawl.crawl.worker.event_loop import in_thread
from recrawl.detect import ChangeResult, classify_change, decoded
from recrawl.detect.comparison import NEAR
from recrawl.errors import InputError
from recrawl.fetch.access.access_method import AccessRequest, Exchange, in_this_process
from recrawl.fetch.access.access_methods import FEED, AccessMethods
from recrawl.fetch.http.dns import IpAdmission, IpGate
from recrawl.fetch.request import Fetcher, FetchRequest, PageFetcher, TooLateError
from recrawl.fetch.robots_cache import HostRobots, RobotsCache
from recrawl.formats.atomic_files import waits_for
from recrawl.model import Capture, Outcome, Validators, Visit
from recrawl.model.visits import NO_ROBOTS, NOT_ALLOWED, REFUSED_BY_ROBOTS, TOO_LATE
from recrawl.parse.parse_pool import OverBudgetError, ParsePool
from recrawl.time import Clock
from recrawl.urls import host_of

_NOBODY: Mapping[str, Fetcher] = MappingProxyType({})


class AccessRunner:
    """Runs access methods."""

    def __init__(
        self,
        methods: AccessMethods | None = None,
        elsewhere: Mapping[str, Fetcher] = _NOBODY,
        pool: ParsePool | None = None,
    ) -> None:
        """``elsewhere`` reads URLs of other schemes than http and https, by scheme; ``pool`` parses responses."""
        self._methods = methods or AccessMethods()
        self._elsewhere = elsewhere
        self._parse = in_this_process if pool is None else partial(_in_pool, pool)

    def begin(self, target: VisitTarget) -> VisitTarget:
        """The target with a new exchange, if it has an access method; else unchanged.

        Raises:
            ConfigError: the method does not exist any more.
        """
        if target.source is None or target.exchange is not None or target.source[0] == FEED:
            return target
        name, options = target.source
        validators = target.known.validators if target.known else Validators()
        question = AccessRequest(target.url, json.loads(options or "{}"), validators, decoded, self._parse)
        return replace(target, exchange=Exchange(self._methods.get(name), question))

    @staticmethod
    def is_elsewhere(target: VisitTarget) -> bool:
        """Whether the next request of a target is not HTTP.

        Raises:
            ValueError: the method requests another host, whose pauses would not be kept.
        """
        if target.exchange is None:
            return False
        if target.asks.partition(":")[0].lower() not in ("http", "https"):
            return True
        if target.home is None and host_of(target.asks) != host_of(target.url):
            msg = f"the access method of {target.url} asks another host: {target.asks}"
            raise ValueError(msg)
        return False

    async def read_elsewhere(self, target: VisitTarget, now: float) -> Capture:
        """The response to a request that is not HTTP."""
        scheme = target.asks.partition(":")[0].lower()
        if target.exchange is not None and scheme in self._elsewhere:
            return await self._elsewhere[scheme].fetch(target.exchange.request)
        return Capture(target.asks, now, 0, error=f"Nobody here reads {scheme}: URLs.")


def _in_pool(pool: ParsePool, parser: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 - what the parser returns
    """Run a parser in the pool, within its limits.

    Raises:
        InputError: the response cannot be parsed, or not within the limits.
    """
    try:
        return pool.call(parser, *arguments)
    except OverBudgetError as error:
        raise InputError(str(error)) from error


_REFUSALS = (401, 403)
"""Statuses after which robots.txt is read again soon: the host may not want us any more."""
_NOWHERE = IpAdmission("", 0, float("-inf"))


class _Turn:
    """What one turn of a visit has found so far."""

    __slots__ = ("answer", "conditional", "door", "not_after", "requisites", "result", "target")

    def __init__(self, target: VisitTarget, not_after: float) -> None:
        self.target = target
        self.not_after = not_after
        self.door = _NOWHERE
        """The address that it holds."""
        self.answer: Capture | None = None
        self.conditional = True
        self.requisites: tuple[Capture, ...] = ()
        self.result: Result | None = None


class Visitor:
    """Makes one request per call, so that the pauses of the frontier apply to robots.txt, too.

    Only a robots.txt that redirects takes more requests: its redirects are followed at once, as RFC 9309 asks, subject
    to the pause of ``RobotsCache`` and the limits per IP address.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what it requests and classifies with
        self,
        fetcher: Fetcher,
        robots: RobotsCache,
        clock: Clock,
        ip_gate: IpGate | None = None,
        access: AccessRunner | None = None,
        classifier: ChangeClassifier | None = None,
        pool: ParsePool | None = None,
    ) -> None:
        """``ip_gate`` limits requests per IP address; without it there is no such limit.

        ``access`` runs access methods. ``classifier`` classifies responses; without it each is compared on its own,
        without confirmation. ``pool`` does expensive parsing.
        """
        self._fetcher = fetcher
        self._page_fetcher = fetcher if isinstance(fetcher, PageFetcher) else None
        self._robots = robots
        self._clock = clock
        self._ip_gate = ip_gate
        self._chains = RedirectChains()
        self._access = access or AccessRunner()
        self._classifier = classifier
        self._pool = pool
        self._steps: Mapping[VisitAction, Callable[[_Turn], Awaitable[VisitEvent]]] = {
            VisitAction.CHECK_ROBOTS: self._check_robots,
            VisitAction.ENTER_GATE: self._enter_gate,
            VisitAction.FETCH_ROBOTS: self._fetch_robots,
            VisitAction.FETCH: self._fetch,
            VisitAction.FETCH_ELSEWHERE: self._fetch_elsewhere,
            VisitAction.CLASSIFY: self._classify,
        }

    async def visit(self, target: VisitTarget, not_after: float = math.inf) -> Result:
        """Make one turn of a visit. Never raises: an exception of our own code becomes a failed visit.

        So one page cannot stop a crawl.
        """
        began = self._clock.now()
        try:
            return await self.go(target, not_after)
        except Exception as error:  # noqa: BLE001 - whatever our own code raises
            return failure_of(target, error, began)

    async def go(self, target: VisitTarget, not_after: float = math.inf) -> Result:
        """Execute the steps of one turn: read robots.txt, or send one request. Never raises for remote failures.

        While its IP address serves another request the target is deferred at once. So it is after ``not_after``
        (``Clock.elapsed``), which the fetcher compares again right before it sends: the lease may have been lost.
        """
        turn, machine = _Turn(target, not_after), target.machine
        action = machine.feed(VisitEvent.TURN)
        try:
            while action is not VisitAction.HAND_OVER:
                action = machine.feed(await self._steps[action](turn))
        finally:
            if turn.door is not _NOWHERE and self._ip_gate is not None:
                self._ip_gate.leave(turn.door)
        assert turn.result is not None  # noqa: S101 - every step that ends a turn sets it
        return turn.result

    # -- the steps of a turn --------------------------------------------------------------------

    async def _check_robots(self, turn: _Turn) -> VisitEvent:
        """Look up the rules of the host, in memory or in the store."""
        if turn.target.source is not None:
            turn.target = self._access.begin(turn.target)
            if self._access.is_elsewhere(turn.target):
                return VisitEvent.ELSEWHERE
        rules = self._robots.known(turn.target.asks)
        if rules is None:
            copied = self._robots.recalled(turn.target.asks)
            if copied is None:
                return VisitEvent.UNKNOWN
            turn.result = RobotsFetched(turn.target, copied, asked=False)
            return VisitEvent.RECALLED
        turn.result = self.result_without_request(turn.target, rules)
        return event_without_request(turn.result)

    async def _enter_gate(self, turn: _Turn) -> VisitEvent:
        """Reserve the IP address, unless it is taken or it is too late to send anything."""
        if self._ip_gate is None:
            if self._clock.elapsed() <= turn.not_after:
                return VisitEvent.OPEN
            turn.result = Deferred(turn.target, self._clock.now())
            return VisitEvent.BUSY
        door = await self._ip_gate.enter(turn.target.asks, turn.target.host)
        if door.is_open and self._clock.elapsed() > turn.not_after:
            self._ip_gate.leave(door)
            door = replace(door, until=self._clock.now())
        if door.is_open:
            turn.door = door
            return VisitEvent.OPEN
        turn.result = Deferred(turn.target, door.until)
        return VisitEvent.BUSY

    async def _fetch_robots(self, turn: _Turn) -> VisitEvent:
        """Read the rules at this IP address, and at those that they redirect to."""

        async def redirected(url: str) -> None:
            if self._ip_gate is not None:
                door, turn.door = turn.door, _NOWHERE  # the wait may be cancelled
                self._ip_gate.leave(door)
                turn.door = await self._ip_gate.wait(url, turn.target.host)

        try:
            rules = await self._robots.rules(turn.target.asks, redirected, turn.not_after)
        except TooLateError as late:
            turn.result = Deferred(turn.target, self._clock.now(), asked=late.asked)
            return VisitEvent.LATE
        turn.result = RobotsFetched(turn.target, rules)
        return VisitEvent.RULES_READ

    async def _fetch_elsewhere(self, turn: _Turn) -> VisitEvent:
        """Send a request that is not HTTP."""
        turn.answer = await self._access.read_elsewhere(turn.target, self._clock.now())
        return VisitEvent.ANSWERED

    async def _fetch(self, turn: _Turn) -> VisitEvent:
        """Send the request: for a page with the validators of its last version, unless they proved unreliable."""
        target = turn.target
        if target.exchange is not None:
            turn.answer = await self._fetcher.fetch(replace(target.exchange.request, not_after=turn.not_after))
            return self._answered(turn, turn.answer)
        sent = self._classifier.validators_to_send(target) if self._classifier else _validators(target)
        request = FetchRequest(target.url, sent.etag, sent.last_modified, not_after=turn.not_after)
        if self._page_fetcher is None or target.seen is not None or target.is_auxiliary:
            turn.answer = await self._fetcher.fetch(request)
        else:
            page = await self._page_fetcher.fetch_page(request)
            turn.answer, turn.requisites = page.capture, page.requisites
        if turn.answer.status in _REFUSALS:
            self._robots.doubt(target.url)
        turn.conditional = bool(sent.etag or sent.last_modified)
        return self._answered(turn, turn.answer)

    def _answered(self, turn: _Turn, answer: Capture) -> VisitEvent:
        """Whether the request was sent."""
        if answer.failure != TOO_LATE:
            return VisitEvent.ANSWERED
        turn.result = Deferred(turn.target, self._clock.now())
        return VisitEvent.LATE

    async def _classify(self, turn: _Turn) -> VisitEvent:
        """Make the result of a response: the visit, or a step of it. Bytes that break our own code are archived."""
        answer = turn.answer
        assert answer is not None  # noqa: S101 - the step before set it
        try:
            result = turn.result = await self._understood(turn.target, answer, turn.conditional, turn.requisites)
        except Exception as error:
            if waits_for(error) is not None:
                raise
            turn.result = InternalFailure(turn.target, answer.time, InternalFault.of(error), answer)
            return VisitEvent.FAULT
        if isinstance(result, VisitDone):
            return VisitEvent.CLASSIFIED
        if isinstance(result, NeedsConfirmation):
            return VisitEvent.DOUBTFUL
        return VisitEvent.POLLED if isinstance(result, AuxiliaryFetched) else VisitEvent.UNFINISHED

    # -- the rules of hosts -----------------------------------------------------------------------

    def share(self, workers: int) -> None:
        """Set the number of workers that visit the same hosts, this one included."""
        if self._ip_gate is not None:
            self._ip_gate.share(workers)

    def keep_rules(self) -> None:
        """Store robots.txt rules for other workers and the next run."""
        self._robots.keep_copies()

    def forget_rules(self, target: VisitTarget) -> None:
        """Read the rules of the target's host again if they were unavailable."""
        self._robots.forget(target.asks)

    def answers_elsewhere(self, target: VisitTarget) -> bool:
        """Whether the same host served its rules under its other scheme: then it is not down as a whole."""
        scheme, _, rest = target.asks.partition(":")
        rules = self._robots.known(f"{'http' if scheme == 'https' else 'https'}:{rest}")
        return rules is not None and rules.available

    def result_without_request(self, target: VisitTarget, rules: HostRobots) -> VisitDone | AuxiliaryFetched | None:
        """The result of a target that may not be requested, or whose confirmation would come too late."""
        refused = None if rules.allowed(target.asks) else self._refused(target, rules)
        if target.seen is None:
            return refused
        late = self._clock.now() - target.seen.capture.time >= NEAR
        return unconfirmed_visit(target) if refused or late else None

    async def _understood(
        self, target: VisitTarget, answer: Capture, conditional: bool, requisites: tuple[Capture, ...]
    ) -> Result:
        if target.is_auxiliary:
            return AuxiliaryFetched(target, answer, announced=await read_announced(answer, self._pool))
        if target.exchange is None:
            capture: Capture | None = answer
        elif self._pool is None:
            capture = target.exchange.feed(answer)
        else:  # in a thread: it may wait for a subprocess of the pool
            capture = await in_thread(partial(target.exchange.feed, answer))
        if capture is None:
            return ExchangeUnderway(target, answer)
        aside = () if capture is answer or answer.made else (answer,)
        if capture.failure == NOT_ALLOWED:
            visit = Visit(target.page, capture.time, Outcome.REFUSED, status=NOT_ALLOWED)
            return VisitDone(target, visit, ChangeResult(Outcome.REFUSED, validators=_validators(target)), capture)
        if self._classifier is None:
            judgement = classify_change(capture, target.known)
            heard: Result = seen_once(target, FirstFetch(capture, judgement, conditional, requisites))
        else:
            heard = await self._classifier.classify(target, capture, conditional=conditional, requisites=requisites)
        return self._found(heard, aside) if isinstance(heard, VisitDone) else heard

    def _found(self, visited: VisitDone, aside: tuple[Capture, ...]) -> VisitDone:
        """Add how the page was found to the visit, and remember where it redirects to."""
        url, to = visited.target.url, visited.judgement.redirect_to
        via, hops = self._chains.way(url)
        if to:
            self._chains.lead(url, to)
        return replace(visited, aside=visited.aside + aside, via=via, hops=hops) if aside or via else visited

    def _refused(self, target: VisitTarget, rules: HostRobots) -> VisitDone | AuxiliaryFetched:
        """The refused visit, with its reason. If robots.txt is unavailable, the cause of that is the reason."""
        now = self._clock.now()
        why = REFUSED_BY_ROBOTS if rules.available else rules.failure or NO_ROBOTS
        if target.is_auxiliary:
            return AuxiliaryFetched(target, Capture(target.url, now, 0, error=rules.reason, failure=why), asked=False)
        outcome = Outcome.REFUSED if rules.available or why == NOT_ALLOWED else Outcome.UNREACHABLE
        visit = Visit(target.page, now, outcome, status=why)
        return VisitDone(target, visit, ChangeResult(outcome, validators=_validators(target)), reason=rules.reason)


def event_without_request(result: VisitDone | AuxiliaryFetched | None) -> VisitEvent:
    """What known rules mean for a visit, by what :meth:`Visitor.result_without_request` made of it."""
    if result is None:
        return VisitEvent.ALLOWED
    if isinstance(result, AuxiliaryFetched):
        return VisitEvent.POLLED
    return VisitEvent.FORBIDDEN if result.capture is None else VisitEvent.EXPIRED


def _validators(target: VisitTarget) -> Validators:
    return target.known.validators if target.known else NEVER_SEEN
