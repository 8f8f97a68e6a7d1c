"""Controls of running crawls: pause, limits, and the budget that all workers of a store share.

Controls are stored in the table ``control``, so they reach every worker on every machine within seconds and survive a
restart. A limit overrides the settings of a run until it is removed.

The budget is a cap. The visits in the store determine how many may start
(:mod:`recrawl.schedule.frontier.token_bucket`), so a restart gains nothing. A single worker counts its own visits from
there on, and keeps the cap exactly. Several workers count the visits again at every report to the registry, subtract
what all of them have under way, and each spends at most an equal part of the rest until the next report. A new worker
leaves the others what they reported to have left, until they know of it. So together they exceed the cap by at most
what the budget earns between two reports.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from recrawl.crawl.clock import RealClock
from recrawl.crawl.control.worker_registry import RegisteredWorker
from recrawl.crawl.worker.event_loop import submit
from recrawl.detect.change_criteria import ChangeCriteria
from recrawl.errors import ConfigError, StoreError
from recrawl.model import IntArray, Outcome
from recrawl.schedule.frontier.token_bucket import VisitTokenBucket, memory, replayed
from recrawl.schedule.politeness.host_politeness import PolitenessRules
from recrawl.store.base import HistoryStore, ScheduleStore
from recrawl.time import Clock

READ_EVERY = 2.0
"""Seconds between two reads of the controls."""
_PAUSED, _HOSTS, _LIMIT = "paused", "hosts", "limit "
"""Names of controls; that of a limit continues with the key of the setting."""


@dataclass(frozen=True, slots=True)
class RuntimeLimits:
    """The limits that can change while a crawl runs."""

    budget: float
    """Visits per second, of all workers together."""
    burst: float = math.inf
    """Seconds whose budget can be saved up; infinity for a budget that is only kept on average."""
    discovery_share: float = 1.0
    """Share of the budget for pages never visited."""
    politeness: PolitenessRules = field(default_factory=PolitenessRules)
    concurrency: int = 64
    """Maximum concurrent requests."""
    standards: ChangeCriteria = field(default_factory=ChangeCriteria)
    """What counts as a change."""
    paused: bool = False


class LimitsWatcher:
    """Reads the controls now and then, and returns what changed."""

    def __init__(self, store: ScheduleStore, orders: Callable[[Mapping[str, str]], RuntimeLimits]) -> None:
        """``orders`` makes limits from values by settings key."""
        self._store = store
        self._orders = orders
        self._within = orders({})
        """From the last consistent limits."""
        self._told: dict[str, str] | None = None
        self.everything: Mapping[str, str] = {}
        """All controls at the last read, also those for others: the worker registry is one."""
        self.read_at = -math.inf
        """When to read next, seconds since the epoch."""
        self.resting: frozenset[int] = frozenset()
        """Hosts that are paused."""
        self.contradiction: ConfigError | None = None
        """Why the last limits were not applied, if they contradict each other or the settings."""

    def changed_limits(self, now: float) -> RuntimeLimits | None:
        """The limits if any control changed since the last read, hosts paused or resumed included; else ``None``.

        Contradictory limits change nothing (:attr:`contradiction`), and never prevent a pause.
        """
        if now < self.read_at:
            return None
        self.read_at = now + READ_EVERY
        self.everything = self._store.controls()
        told = {name: text for name, text in self.everything.items() if _is_ours(name)}
        if told == self._told:
            return None
        if _HOSTS in told and (self._told is None or self._told.get(_HOSTS) != told[_HOSTS]):
            self.resting = frozenset(self._store.paused_hosts().id.tolist())
        self._told, self.contradiction = told, None
        try:
            self._within = self._orders(limits(told))
        except ConfigError as error:
            self.contradiction = error
        return replace(self._within, paused=is_paused(told))


def is_paused(told: Mapping[str, str]) -> bool:
    """Whether the whole crawl is paused, by ``store.controls()``."""
    return _PAUSED in told


def limits(told: Mapping[str, str]) -> dict[str, str]:
    """The limits in ``store.controls()``: values as written, by settings key.

    >>> limits({"limit crawl.concurrency": "8", "paused": "1"})
    {'crawl.concurrency': '8'}
    """
    return {name.removeprefix(_LIMIT): text for name, text in told.items() if name.startswith(_LIMIT)}


def set_limit(store: ScheduleStore, key: str, text: str | None, now: float) -> None:
    """Set a limit for all workers, or remove it (``None``)."""
    store.set_control(_LIMIT + key, text, now)


def set_paused(store: ScheduleStore, now: float, *, paused: bool) -> None:
    """Pause or resume the whole crawl."""
    store.set_control(_PAUSED, "1" if paused else None, now)


def set_hosts_paused(store: ScheduleStore, hosts: IntArray, now: float, *, paused: bool) -> None:
    """Pause or resume hosts. Workers return the pages of paused hosts at their next read."""
    (store.pause if paused else store.resume)(np.unique(hosts))
    store.set_control(_HOSTS, repr(now), now)


def _is_ours(name: str) -> bool:
    return name in {_PAUSED, _HOSTS} or name.startswith(_LIMIT)


_SHARE_OF_TIME = 0.02
"""Share of the time that counting visits may take."""


@dataclass(slots=True)
class _Count:
    """A count of visits under way."""

    allowance: Future[VisitTokenBucket]
    """The bucket that the count leaves."""
    begun: int
    """Visits under way when the count started, which may be missing in it."""
    taken: int = 0
    """Visits started since."""


class SharedBudget:
    """How many visits this worker may start. A budget kept on average (``burst`` infinite) allows any number."""

    def __init__(self, store: HistoryStore, clock: Clock, misdated: int = 0) -> None:
        """``misdated`` visits were made lately at an unknown time: they are subtracted at first."""
        self._misdated = misdated
        self._store = store
        self._clock = clock
        self._allowance: VisitTokenBucket | None = None
        self._budget, self._burst = math.inf, math.inf
        self._workers = 1
        self._share_at = -math.inf
        self._in_thread = isinstance(clock, RealClock)
        """Whether visits are counted in a thread. Not on virtual time, where a run must be repeatable."""
        self._counting: _Count | None = None

    def set(self, budget: float, burst: float, now: float) -> None:
        """Set a budget (visits per second), and the seconds of it that can be saved up.

        While a crawl runs, the remainder stays at first. The remainder of the new budget is known once the visits are
        counted, which takes seconds for millions of visits.
        """
        self._budget, self._burst, self._counting = budget, burst, None
        if math.isinf(burst):
            self._allowance = None
        elif self._allowance is None or not self._in_thread:
            self._allowance = allowance = self._from_visits(now)
            allowance.level = max(allowance.level - self._misdated, 0.0)
            self._misdated, self._workers = 0, 1
        else:
            self._allowance.change(budget, max(budget * burst, 1.0), now)
            self._allowance.budget /= self._workers
            self._count(0, now)

    def share(self, others: Sequence[RegisteredWorker], underway: int, now: float, *, new: bool = False) -> None:
        """Compute again what is left, given the other workers and our own visits under way.

        ``new``: the others do not know of this worker yet. If counting takes long it is done less often; meanwhile each
        worker earns an equal part of the budget.
        """
        workers = 1 + len(others)
        if self._allowance is None or workers == self._workers == 1:
            return
        if workers == self._workers and (now < self._share_at or self._counting is not None):
            return
        before, self._workers = self._workers, workers
        begun = underway + sum(one.underway for one in others)
        allowance = self._allowance if self._in_thread else self._from_visits(now)
        if new:
            level = max(allowance.left(now) - begun - sum(one.left or 0.0 for one in others), 0.0)
        elif self._in_thread:
            level = allowance.left(now) * min(before / workers, 1.0)
        else:
            level = max(allowance.level - begun, 0.0) / workers
        self._allowance = VisitTokenBucket(self._budget / workers, allowance.capacity, level, now)
        if not self._in_thread:
            self._share_at = now + (self._clock.now() - now) / _SHARE_OF_TIME
        elif not new:
            self._count(begun, now)

    def _count(self, begun: int, now: float) -> None:
        """Count the visits in a thread; ``begun`` of them have started and are not recorded."""
        self._counting = _Count(submit(partial(self._from_visits, now)), begun)

    def _take_count(self, now: float) -> None:
        """Apply a finished count: the remainder then, less what started since."""
        counting = self._counting
        if counting is None or not counting.allowance.done() or self._allowance is None:
            return
        self._counting = None
        with suppress(StoreError):  # what is left stays, and is counted again at the next report
            counted = counting.allowance.result()
            self._share_at = now + (now - counted.at) / _SHARE_OF_TIME
            level = max(counted.level - counting.begun, 0.0) / self._workers
            then = VisitTokenBucket(self._budget / self._workers, counted.capacity, level, counted.at)
            self._allowance = replace(then, level=max(then.left(now) - counting.taken, 0.0), at=now)

    def room(self, now: float) -> float:
        """How many visits may start now: a whole number, or infinity."""
        if self._counting is not None:
            self._take_count(now)
        return math.inf if self._allowance is None else self._allowance.whole(now)

    def take(self, now: float, visits: int) -> None:
        """Record that visits start, which the budget allowed."""
        if self._allowance is not None:
            self._allowance.take(now, visits)
        if self._counting is not None:
            self._counting.taken += visits

    def give_back(self, visits: int) -> None:
        """Return visits that needed no request."""
        if self._allowance is not None:
            self._allowance.give_back(visits)
        if self._counting is not None:
            self._counting.taken -= visits

    def next_at(self, now: float) -> float:
        """When the next visit may start, seconds since the epoch."""
        return now if self._allowance is None else self._allowance.next_at(now)

    def left(self, now: float) -> float | None:
        """Visits that may start now; ``None`` if any number may."""
        return None if self._allowance is None else self._allowance.left(now)

    def _from_visits(self, now: float) -> VisitTokenBucket:
        visits = self._store.observations(since=now - memory(self._budget, self._burst), beside=self._in_thread)
        return replayed(self._budget, self._burst, visits.time[visits.outcome != Outcome.REFUSED], now)
