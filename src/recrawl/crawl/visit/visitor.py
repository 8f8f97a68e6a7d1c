"""One request of a visit: wait for the IP address, read robots.txt if it is unknown, fetch, classify.

:class:`AccessRunner` starts the exchanges of access methods, and reads URLs that are not HTTP.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from recrawl.crawl.visit.change_classifier import ChangeClassifier
from recrawl.crawl.visit.fault_isolation import InternalFault
from recrawl.crawl.visit.scope import RedirectChains
from recrawl.crawl.visit.site_claims import read_announced
from recrawl.crawl.visit.visit_target import (
    NEVER_SEEN,
    AuxiliaryFetched,
    Deferred,
    ExchangeUnderway,
    FirstFetch,
    InternalFailure,
    Result,
    RobotsFetched,
    VisitDone,
    VisitTarget,
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
from recrawl.fetch.request import Fetcher, FetchRequest, PageFetcher
from recrawl.fetch.robots_cache import HostRobots, RobotsCache
from recrawl.formats.atomic_files import waits_for
from recrawl.model import Capture, Outcome, Validators, Visit
from recrawl.model.visits import NOT_ALLOWED
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

    async def read_elsewhere(self, target: VisitTarget, now: float) -> Capture | None:
        """The response to a request that is not HTTP; ``None`` if it is.

        Raises:
            ValueError: the method requests another host, whose pauses would not be kept.
        """
        if target.exchange is None:
            return None
        request = target.exchange.request
        scheme = request.url.partition(":")[0].lower()
        if scheme in ("http", "https"):
            if target.home is None and host_of(request.url) != host_of(target.url):
                msg = f"the access method of {target.url} asks another host: {request.url}"
                raise ValueError(msg)
            return None
        if scheme in self._elsewhere:
            return await self._elsewhere[scheme].fetch(request)
        return Capture(request.url, now, 0, error=f"Nobody here reads {scheme}: URLs.")


def _in_pool(pool: ParsePool, parser: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 - what the parser returns
    """Run a parser in the pool, within its limits.

    Raises:
        InputError: the response cannot be parsed, or not within the limits.
    """
    try:
        return pool.call(parser, *arguments)
    except OverBudgetError as error:
        raise InputError(str(error)) from error


REFUSED_BY_ROBOTS, NO_ROBOTS = -9998, -61
"""Heritrix's statuses: robots.txt forbids it; robots.txt is unavailable (conventions L3)."""

_REFUSALS = (401, 403)
"""Statuses after which robots.txt is read again soon: the host may not want us any more."""
_NOWHERE = IpAdmission("", 0, float("-inf"))


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

    async def go(self, target: VisitTarget, not_after: float = math.inf) -> Result:
        """Visit the target, or read the robots.txt of its host first. Never raises for remote failures.

        While its IP address serves another request the target is deferred at once. So it is after ``not_after``
        (``Clock.elapsed``): the lease may have been lost.
        """
        if target.source is not None:
            target = self._access.begin(target)
            found = await self._access.read_elsewhere(target, self._clock.now())
            if found is not None:
                return await self._result_of(target, found)
        rules = self._robots.known(target.asks)
        over = self._without_request(target, rules)
        if over is not None:
            return over
        if self._ip_gate is None:
            late = self._clock.elapsed() > not_after
            return Deferred(target, self._clock.now()) if late else await self._ask(target, rules)
        door = await self._ip_gate.enter(target.asks, target.host)
        if door.is_open and self._clock.elapsed() > not_after:
            self._ip_gate.leave(door)
            door = replace(door, until=self._clock.now())
        if not door.is_open:
            return Deferred(target, door.until)
        if rules is None:
            return await self._read_rules(target, self._ip_gate, door)
        try:
            return await self._ask(target, rules)
        finally:
            self._ip_gate.leave(door)

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

    async def _read_rules(self, target: VisitTarget, ip_gate: IpGate, door: IpAdmission) -> RobotsFetched:
        """Read the rules at this IP address, and at those that they redirect to."""

        async def redirected(url: str) -> None:
            nonlocal door
            ip_gate.leave(door)
            door = _NOWHERE  # the wait may be cancelled
            door = await ip_gate.wait(url, target.host)

        try:
            return RobotsFetched(target, await self._robots.rules(target.asks, redirected))
        finally:
            ip_gate.leave(door)

    async def _ask(self, target: VisitTarget, rules: HostRobots | None) -> Result:
        if rules is None:
            return RobotsFetched(target, await self._robots.rules(target.asks))
        if target.exchange is not None:
            return await self._result_of(target, await self._fetcher.fetch(target.exchange.request))
        sent = self._classifier.validators_to_send(target) if self._classifier else _validators(target)
        request = FetchRequest(target.url, sent.etag, sent.last_modified)
        requisites: tuple[Capture, ...] = ()
        if self._page_fetcher is None or target.seen is not None or target.is_auxiliary:
            answer = await self._fetcher.fetch(request)
        else:
            page = await self._page_fetcher.fetch_page(request)
            answer, requisites = page.capture, page.requisites
        if answer.status in _REFUSALS:
            self._robots.doubt(target.url)
        conditional = bool(sent.etag or sent.last_modified)
        return await self._result_of(target, answer, conditional=conditional, requisites=requisites)

    def _without_request(
        self, target: VisitTarget, rules: HostRobots | None
    ) -> VisitDone | AuxiliaryFetched | RobotsFetched | None:
        """The result by rules that are known or stored; ``None`` if it takes a request."""
        if rules is not None:
            return self.result_without_request(target, rules)
        copied = self._robots.recalled(target.asks)
        return None if copied is None else RobotsFetched(target, copied, asked=False)

    def result_without_request(self, target: VisitTarget, rules: HostRobots) -> VisitDone | AuxiliaryFetched | None:
        """The result of a target that may not be requested, or whose confirmation would come too late."""
        refused = None if rules.allowed(target.asks) else self._refused(target, rules)
        if target.seen is None:
            return refused
        late = self._clock.now() - target.seen.capture.time >= NEAR
        return unconfirmed_visit(target) if refused or late else None

    async def _result_of(
        self, target: VisitTarget, answer: Capture, *, conditional: bool = True, requisites: tuple[Capture, ...] = ()
    ) -> Result:
        """The result of a response: the visit, or a step of it. Bytes that break our own code are archived."""
        try:
            return await self._understood(target, answer, conditional, requisites)
        except Exception as error:
            if waits_for(error) is not None:
                raise
            return InternalFailure(target, answer.time, InternalFault.of(error), answer)

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


def _validators(target: VisitTarget) -> Validators:
    return target.known.validators if target.known else NEVER_SEEN
