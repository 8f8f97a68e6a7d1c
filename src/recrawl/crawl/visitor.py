"""One visit: read the host's rules if they are not known, ask conditionally, judge the answer."""

from __future__ import annotations

from recrawl.crawl.target import ErrandDone, Result, RulesRead, Target, Visited
from recrawl.detect import Judgement, judge
from recrawl.fetch.request import Fetcher, Request
from recrawl.fetch.robots import RobotsCache, Rules
from recrawl.model import Capture, Outcome, Validators, Visit
from recrawl.time import Clock

REFUSED_BY_ROBOTS, NO_ROBOTS = -9998, -61
"""Heritrix's statuses: the rules forbid it; the rules cannot be had (conventions L3)."""


class Visitor:
    """Goes to one target at a time, with one request: so the frontier's pauses hold for rules, too.

    Only a robots.txt that redirects takes more: its redirects are followed at once, as RFC 9309 asks.
    """

    def __init__(self, fetcher: Fetcher, robots: RobotsCache, clock: Clock) -> None:
        self._fetcher = fetcher
        self._robots = robots
        self._clock = clock

    async def go(self, target: Target) -> Result:
        """Visit the target, or read the rules that say whether we may. Never raises for the remote side."""
        rules = self._robots.known(target.url)
        if rules is None:
            return RulesRead(target, await self._robots.rules(target.url))
        if not rules.allowed(target.url):
            return self._refused(target, rules)
        validators = _validators(target)
        capture = await self._fetcher.fetch(Request(target.url, validators.etag, validators.last_modified))
        if target.is_errand:
            return ErrandDone(target, capture)
        judgement = judge(capture, target.known)
        return Visited(target, _visit(target.page, capture, judgement), judgement, capture)

    def _refused(self, target: Target, rules: Rules) -> Visited | ErrandDone:
        now = self._clock.now()
        if target.is_errand:
            return ErrandDone(target, Capture(target.url, now, 0, error=rules.reason))
        outcome = Outcome.REFUSED if rules.available else Outcome.UNREACHABLE
        visit = Visit(target.page, now, outcome, status=REFUSED_BY_ROBOTS if rules.available else NO_ROBOTS)
        return Visited(target, visit, Judgement(outcome, validators=_validators(target)))


def _validators(target: Target) -> Validators:
    return target.known.validators if target.known else Validators()


def _visit(page: int, capture: Capture, judgement: Judgement) -> Visit:
    return Visit(
        page,
        capture.time,
        judgement.outcome,
        judgement.verdict,
        judgement.kinds,
        capture.status,
        judgement.size,
        capture.duration,
        judgement.new_internal,
        judgement.new_external,
        judgement.added_internal,
        judgement.added_external,
    )
