"""The budget as a cap on what is done, shared by all workers of a store.

What may begin follows from the visits in the store (:mod:`recrawl.schedule.allowance`), so that a restart earns
nothing. A worker that is alone counts its own visits from there on, and keeps the cap exactly. Several read the visits
again at every roll call, take off what all of them have under way, and each spends at most an equal part of what is
left until the next call. One that comes new leaves to the others what they said they have left, until they heard of it.
So together they exceed the cap by no more than what the budget earns between two calls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from recrawl.crawl.background import submit
from recrawl.crawl.clock import RealClock
from recrawl.crawl.rollcall import AtWork
from recrawl.errors import StoreError
from recrawl.model import Outcome
from recrawl.schedule.allowance import Allowance, memory, replayed
from recrawl.store.base import Store
from recrawl.time import Clock

_SHARE_OF_TIME = 0.02
"""That counting visits may take."""


@dataclass(slots=True)
class _Count:
    """Visits that are being counted."""

    allowance: Future[Allowance]
    """What they leave."""
    begun: int
    """Visits that had begun when the count did, and may not be among them."""
    taken: int = 0
    """Visits that began since."""


class SharedBudget:
    """What this worker may begin. One that is kept on average only (``burst`` infinite) lets everything begin."""

    def __init__(self, store: Store, clock: Clock, misdated: int = 0) -> None:
        """``misdated`` visits were made lately, nobody knows when: they are taken off what there is at first."""
        self._misdated = misdated
        self._store = store
        self._clock = clock
        self._allowance: Allowance | None = None
        self._budget, self._burst = math.inf, math.inf
        self._workers = 1
        self._share_at = -math.inf
        self._in_thread = isinstance(clock, RealClock)
        """Whether visits are counted in a thread. On virtual time a run is to repeat itself."""
        self._counting: _Count | None = None

    def set(self, budget: float, burst: float, now: float) -> None:
        """A budget (visits per second), and the seconds of it that can be saved up.

        While a crawl runs, what was left is left at first; what the new budget would have left is known once the visits
        are counted, which takes seconds where there are millions.
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

    def share(self, others: Sequence[AtWork], underway: int, now: float, *, new: bool = False) -> None:
        """Count anew what is left, beside these others and with so many visits of our own under way.

        ``new`` says that the others have not heard of this worker yet. Where counting takes long it is done less often;
        meanwhile each earns an equal part of the budget.
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
        self._allowance = Allowance(self._budget / workers, allowance.capacity, level, now)
        if not self._in_thread:
            self._share_at = now + (self._clock.now() - now) / _SHARE_OF_TIME
        elif not new:
            self._count(begun, now)

    def _count(self, begun: int, now: float) -> None:
        """Count the visits in a thread, of which so many have begun and are not recorded."""
        self._counting = _Count(submit(partial(self._from_visits, now)), begun)

    def _take_count(self, now: float) -> None:
        """What is left by the visits that were counted, if that is done: as it was then, less what began since."""
        counting = self._counting
        if counting is None or not counting.allowance.done() or self._allowance is None:
            return
        self._counting = None
        with suppress(StoreError):  # then what is left stays as it is, and is counted again at the next call
            counted = counting.allowance.result()
            self._share_at = now + (now - counted.at) / _SHARE_OF_TIME
            level = max(counted.level - counting.begun, 0.0) / self._workers
            then = Allowance(self._budget / self._workers, counted.capacity, level, counted.at)
            self._allowance = replace(then, level=max(then.left(now) - counting.taken, 0.0), at=now)

    def room(self, now: float) -> float:
        """How many visits may begin now: a whole number, or infinity."""
        if self._counting is not None:
            self._take_count(now)
        return math.inf if self._allowance is None else self._allowance.whole(now)

    def take(self, now: float, visits: int) -> None:
        """So many visits begin, for which there was room."""
        if self._allowance is not None:
            self._allowance.take(now, visits)
        if self._counting is not None:
            self._counting.taken += visits

    def give_back(self, visits: int) -> None:
        """Visits that began needed no request."""
        if self._allowance is not None:
            self._allowance.give_back(visits)
        if self._counting is not None:
            self._counting.taken -= visits

    def next_at(self, now: float) -> float:
        """When the next visit may begin, seconds since the epoch."""
        return now if self._allowance is None else self._allowance.next_at(now)

    def left(self, now: float) -> float | None:
        """Visits that may begin now; ``None`` if any number may."""
        return None if self._allowance is None else self._allowance.left(now)

    def _from_visits(self, now: float) -> Allowance:
        visits = self._store.looks(since=now - memory(self._budget, self._burst))
        return replayed(self._budget, self._burst, visits.time[visits.outcome != Outcome.REFUSED], now)
