"""The pulse of a crawl: how it goes at a moment, for displays and metrics."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from recrawl.crawl.archive import Archive
from recrawl.crawl.log import JsonLinesLog
from recrawl.crawl.steering import Load, Steered
from recrawl.errors import StoreError
from recrawl.schedule.agenda import Agenda
from recrawl.schedule.politeness import Politeness
from recrawl.store.base import Store
from recrawl.store.values import Backlog
from recrawl.time import Clock

_LOOK_EVERY, _SHARE_OF_TIME = 0.5, 0.02
"""Seconds between two counts of what is due at least; share of the time that counting may take."""


@dataclass(frozen=True, slots=True)
class Pulse:
    """How it goes."""

    now: float
    underway: int
    """Requests for pages that run."""
    in_hand: int
    """Pages leased and not asked for yet."""
    due: int
    """Pages of the whole store that are due, paused hosts included."""
    held: int
    """Those of them on paused hosts."""
    late: float
    """Seconds since the first of them was due."""
    next_due: float
    """When the next page can be visited, seconds since the epoch; infinity for never."""
    hosts_resting: int
    """Hosts that may not be asked at this moment."""
    workers: int
    """That share the store, this one included."""
    first: bool
    """Whether this one began before all others."""
    budget: float
    """Visits per second."""
    left: float | None
    """Visits that the budget allows now; ``None`` if any number."""
    price: float | None
    paused: bool
    fits: int
    """Of the policy to the budget, since the run began."""
    archived: int
    """Bytes written to archive files since the run began."""
    events: Mapping[str, int]
    """Logged since the run began, by level."""
    resting: int = 0
    """Pages that are due on hosts that may not be asked yet."""
    masked: int = 0
    """Parts of pages that are masked as noise, on the hosts that this worker has at hand."""


@dataclass(slots=True)
class PulseTaker:
    """Takes the pulse of a worker. What is due is counted now and then, the rest is read at once."""

    load: Callable[[], Load]
    clock: Clock
    store: Store
    agenda: Agenda
    politeness: Politeness
    steering: Steered
    log: JsonLinesLog
    archive: Archive
    masked: Callable[[], int] = lambda: 0
    _backlog: Backlog = field(default_factory=lambda: Backlog(0, 0, math.inf))
    _next_due: float = math.inf
    _count_at: float = -math.inf

    def take(self, *, anew: bool = False, count: bool = True) -> Pulse:
        """How it goes now; with ``anew`` what is due is counted once more, however long that takes.

        Without ``count`` the store is not asked at all, and what is due is told as it was.
        """
        now, steering = self.clock.now(), self.steering
        if anew or (count and now >= self._count_at):
            with suppress(StoreError):  # the driver knows, and waits; what was counted before stands
                self._backlog, self._next_due = self.store.backlog(now), self.store.next_due()
            took = self.clock.now() - now
            self._count_at = now + max(_LOOK_EVERY, took / _SHARE_OF_TIME)
        load, backlog = self.load(), self._backlog
        free_at, _ = self.politeness.columns
        return Pulse(
            now=now,
            underway=load.underway,
            in_hand=load.in_hand,
            due=backlog.due,
            held=backlog.paused,
            resting=backlog.resting,
            late=max(now - backlog.earliest, 0.0) if backlog.due else 0.0,
            next_due=self._next_due,
            hosts_resting=int((free_at > now).sum()),
            workers=steering.workers,
            first=steering.is_first,
            budget=steering.budget,
            left=steering.left(now),
            price=self.agenda.policy.price,
            paused=steering.paused,
            fits=self.agenda.fits,
            archived=self.archive.written,
            masked=self.masked(),
            events={str(level): count for level, count in self.log.counts.items()},
        )
