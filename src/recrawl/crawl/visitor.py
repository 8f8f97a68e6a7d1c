"""One visit: wait for the turn of the address, read the host's rules if they are not known, ask, judge the answer."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from recrawl.crawl.access import Access
from recrawl.crawl.background import in_thread
from recrawl.crawl.faults import Fault, waits_for
from recrawl.crawl.judging import Judging
from recrawl.crawl.parse_pool import ParsePool
from recrawl.crawl.site_files import read_announced
from recrawl.crawl.target import Broken, ErrandDone, Result, RulesRead, Sight, Target, TurnedAway, Underway, Visited
from recrawl.crawl.traps import RedirectChains
from recrawl.crawl.versions import NEVER_SEEN, seen_once, settled
from recrawl.detect import Judgement, judge
from recrawl.detect.comparison import NEAR
from recrawl.fetch.doors import Door, Doors
from recrawl.fetch.request import Fetcher, Request
from recrawl.fetch.robots import RobotsCache, Rules
from recrawl.model import Capture, Outcome, Validators, Visit
from recrawl.model.failures import NOT_ALLOWED
from recrawl.time import Clock

REFUSED_BY_ROBOTS, NO_ROBOTS = -9998, -61
"""Heritrix's statuses: the rules forbid it; the rules cannot be had (conventions L3)."""

_REFUSALS = (401, 403)
"""Answers after which the rules of a host are read again soon: it may not want us any more."""
_NOWHERE = Door("", 0, float("-inf"))


class Visitor:
    """Goes to one target at a time, with one request: so the frontier's pauses hold for rules, too.

    Only a robots.txt that redirects takes more: its redirects are followed at once, as RFC 9309 asks, but for the pause
    of ``RobotsCache`` and the turns of addresses.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what it asks with, and who judges
        self,
        fetcher: Fetcher,
        robots: RobotsCache,
        clock: Clock,
        doors: Doors | None = None,
        access: Access | None = None,
        judging: Judging | None = None,
        pool: ParsePool | None = None,
    ) -> None:
        """``doors`` keeps hosts at one address out of each other's way; without it they do not mind.

        ``access`` knows how pages are asked for that have a method of their own. ``judging`` says what to make of
        answers; without it they are judged each by itself, at one look. ``pool`` reads what is not cheap to read.
        """
        self._fetcher = fetcher
        self._robots = robots
        self._clock = clock
        self._doors = doors
        self._chains = RedirectChains()
        self._access = access or Access()
        self._judging = judging
        self._pool = pool

    async def go(self, target: Target, not_after: float = math.inf) -> Result:
        """Visit the target, or read the rules that say whether we may. Never raises for the remote side.

        While others are served at its address the target is turned away at once. So it is after ``not_after``, by the
        seconds that passed (``Clock.elapsed``): whoever sent us may not have the page any more.
        """
        if target.source is not None:
            target = self._access.begin(target)
            found = await self._access.read_elsewhere(target, self._clock.now())
            if found is not None:
                return await self._heard(target, found)
        rules = self._robots.known(target.asks)
        over = self._without_request(target, rules)
        if over is not None:
            return over
        if self._doors is None:
            late = self._clock.elapsed() > not_after
            return TurnedAway(target, self._clock.now()) if late else await self._ask(target, rules)
        door = await self._doors.enter(target.asks, target.host)
        if door.is_open and self._clock.elapsed() > not_after:
            self._doors.leave(door)
            door = replace(door, until=self._clock.now())
        if not door.is_open:
            return TurnedAway(target, door.until)
        if rules is None:
            return await self._read_rules(target, self._doors, door)
        try:
            return await self._ask(target, rules)
        finally:
            self._doors.leave(door)

    def share(self, workers: int) -> None:
        """So many workers visit the same hosts, this one included."""
        if self._doors is not None:
            self._doors.share(workers)

    def keep_rules(self) -> None:
        """Share the rules that were read with other workers and the next run."""
        self._robots.keep_copies()

    def forget_rules(self, target: Target) -> None:
        """Ask for the rules of the target's host again if it could not tell them."""
        self._robots.forget(target.asks)

    def answers_otherwise(self, target: Target) -> bool:
        """Whether the same host told its rules under its other scheme: then it is not gone as a whole."""
        scheme, _, rest = target.asks.partition(":")
        rules = self._robots.known(f"{'http' if scheme == 'https' else 'https'}:{rest}")
        return rules is not None and rules.available

    async def _read_rules(self, target: Target, doors: Doors, door: Door) -> RulesRead:
        """Read the rules behind this door, and behind those that they redirect to."""

        async def redirected(url: str) -> None:
            nonlocal door
            doors.leave(door)
            door = _NOWHERE  # the wait may be cancelled
            door = await doors.wait(url, target.host)

        try:
            return RulesRead(target, await self._robots.rules(target.asks, redirected))
        finally:
            doors.leave(door)

    async def _ask(self, target: Target, rules: Rules | None) -> Result:
        if rules is None:
            return RulesRead(target, await self._robots.rules(target.asks))
        if target.talk is not None:
            return await self._heard(target, await self._fetcher.fetch(target.talk.request))
        sent = self._judging.sends(target) if self._judging else _validators(target)
        answer = await self._fetcher.fetch(Request(target.url, sent.etag, sent.last_modified))
        if answer.status in _REFUSALS:
            self._robots.doubt(target.url)
        return await self._heard(target, answer, conditional=bool(sent.etag or sent.last_modified))

    def _without_request(self, target: Target, rules: Rules | None) -> Visited | ErrandDone | RulesRead | None:
        """What to make of a target by what is known, or kept in the store, of the rules; ``None`` if it takes more."""
        if rules is not None:
            return self.without_asking(target, rules)
        copied = self._robots.recalled(target.asks)
        return None if copied is None else RulesRead(target, copied, asked=False)

    def without_asking(self, target: Target, rules: Rules) -> Visited | ErrandDone | None:
        """What to make of a target that may not be asked for, or whose second look would come too late to tell."""
        refused = None if rules.allowed(target.asks) else self._refused(target, rules)
        if target.seen is None:
            return refused
        late = self._clock.now() - target.seen.capture.time >= NEAR
        return settled(target) if refused or late else None

    async def _heard(self, target: Target, answer: Capture, *, conditional: bool = True) -> Result:
        """What an answer makes of the visit: the end of it, or a part. Bytes that break our own code are kept."""
        try:
            return await self._understood(target, answer, conditional=conditional)
        except Exception as error:
            if waits_for(error) is not None:
                raise
            return Broken(target, answer.time, Fault.of(error), answer)

    async def _understood(self, target: Target, answer: Capture, *, conditional: bool) -> Result:
        if target.is_errand:
            return ErrandDone(target, answer, announced=await read_announced(answer, self._pool))
        if target.talk is None:
            capture: Capture | None = answer
        elif self._pool is None:
            capture = target.talk.hear(answer)
        else:  # in a thread: it may wait for a worker of the pool
            capture = await in_thread(partial(target.talk.hear, answer))
        if capture is None:
            return Underway(target, answer)
        aside = () if capture is answer or answer.made else (answer,)
        if capture.failure == NOT_ALLOWED:
            visit = Visit(target.page, capture.time, Outcome.REFUSED, status=NOT_ALLOWED)
            return Visited(target, visit, Judgement(Outcome.REFUSED, validators=_validators(target)), capture)
        if self._judging is None:
            heard: Result = seen_once(target, Sight(capture, judge(capture, target.known), conditional))
        else:
            heard = await self._judging.heard(target, capture, conditional=conditional)
        return self._found(heard, aside) if isinstance(heard, Visited) else heard

    def _found(self, visited: Visited, aside: tuple[Capture, ...]) -> Visited:
        """The visit with how we came there; where it leads is remembered."""
        url, to = visited.target.url, visited.judgement.redirect_to
        via, hops = self._chains.way(url)
        if to:
            self._chains.lead(url, to)
        return replace(visited, aside=aside, via=via, hops=hops) if aside or via else visited

    def _refused(self, target: Target, rules: Rules) -> Visited | ErrandDone:
        """Why it may not be asked for. Where a host cannot tell its rules, what keeps it from that is why."""
        now = self._clock.now()
        why = REFUSED_BY_ROBOTS if rules.available else rules.failure or NO_ROBOTS
        if target.is_errand:
            return ErrandDone(target, Capture(target.url, now, 0, error=rules.reason, failure=why), asked=False)
        outcome = Outcome.REFUSED if rules.available or why == NOT_ALLOWED else Outcome.UNREACHABLE
        visit = Visit(target.page, now, outcome, status=why)
        return Visited(target, visit, Judgement(outcome, validators=_validators(target)), reason=rules.reason)


def _validators(target: Target) -> Validators:
    return target.known.validators if target.known else NEVER_SEEN
