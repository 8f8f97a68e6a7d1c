"""The steering of a worker: what it is told while it runs, what the budget allows, and that others hear of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from recrawl.crawl.budget import SharedBudget
from recrawl.crawl.controls import Controls, Orders
from recrawl.crawl.judging import Judging
from recrawl.crawl.log import JsonLinesLog
from recrawl.crawl.rollcall import CALL_EVERY, AtWork, RollCall
from recrawl.schedule.agenda import Agenda
from recrawl.schedule.politeness import Politeness

_A_WHILE = 2 * CALL_EVERY
"""Seconds after which a budget that lets nothing begin counts as spent."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a worker is busy with."""

    underway: int
    """Requests that run."""
    in_hand: int
    """Pages leased and not asked for yet."""
    made: int = 0
    """Visits that are not acknowledged yet: nobody can count them in the store."""

    @property
    def uncounted(self) -> int:
        """Visits that began and are not in the store."""
        return self.underway + self.made


class Steering(Protocol):
    """What the driver asks before it begins anything."""

    @property
    def look_at(self) -> float:
        """When ``heed`` wants to be called again, seconds since the epoch."""
        ...

    @property
    def paused(self) -> bool:
        """Whether nothing may begin at all."""
        ...

    @property
    def resting(self) -> frozenset[int]:
        """Hosts that may not be asked for anything."""
        ...

    @property
    def share(self) -> tuple[int, int]:
        """The place of this worker, from 0, among those at work, and how many they are."""
        ...

    def begin(self, now: float) -> None:
        """A run begins."""
        ...

    def heed(self, now: float, load: Load) -> bool:
        """Take over what was told since; whether what is in hand must be given back for it."""
        ...

    def room(self, now: float, underway: int) -> int:
        """How many visits may begin now, beside those that run."""
        ...

    def next_at(self, now: float) -> float:
        """When there will be room if no request ends before, seconds since the epoch."""
        ...

    def is_held(self, now: float) -> bool:
        """Whether nothing may begin for a while, though nothing runs: the crawl is paused, or the budget spent."""
        ...

    def began(self, now: float, visits: int) -> None:
        """So many visits began."""
        ...

    def spared(self, visits: int) -> None:
        """So many visits that began needed no request, or have to begin again."""
        ...

    def left(self, now: float) -> float | None:
        """Visits that the budget allows now; ``None`` if any number."""
        ...

    def keep_alive(self, now: float) -> None:
        """Let others know that this worker lives, if they have not heard of it for a while: for a thread."""
        ...

    @property
    def was_silent(self) -> bool:
        """Whether others may have taken this worker for dead before it was heard of last."""
        ...

    def end(self, now: float) -> None:
        """The run ends."""
        ...


class Unsteered:
    """Nobody tells it anything: a crawl on virtual time, or a test."""

    look_at = math.inf
    paused = False
    resting: frozenset[int] = frozenset()
    share = (0, 1)
    was_silent = False

    def __init__(self, concurrency: int) -> None:
        self._concurrency = concurrency

    def begin(self, now: float) -> None:
        """Nothing."""

    def heed(self, now: float, load: Load) -> bool:  # noqa: ARG002 - as told
        """Nothing is told."""
        return False

    def room(self, now: float, underway: int) -> int:  # noqa: ARG002 - at any time
        """As many at once as there may be."""
        return max(self._concurrency - underway, 0)

    def next_at(self, now: float) -> float:  # noqa: ARG002 - at any time
        """When a request ends, not before."""
        return math.inf

    def is_held(self, now: float) -> bool:  # noqa: ARG002 - at any time
        """Never."""
        return False

    def began(self, now: float, visits: int) -> None:
        """Nothing is counted."""

    def spared(self, visits: int) -> None:
        """Nothing is counted."""

    def left(self, now: float) -> float | None:  # noqa: ARG002 - at any time
        """Any number."""
        return None

    def keep_alive(self, now: float) -> None:
        """Nobody listens."""

    def end(self, now: float) -> None:
        """Nothing."""


class Steered:
    """Steered by the store: controls, the budget, and the roll of workers."""

    def __init__(  # noqa: PLR0913 - what is steered, and by what
        self,
        worker: str,
        orders: Orders,
        *,
        controls: Controls,
        budget: SharedBudget,
        roll: RollCall,
        agenda: Agenda,
        politeness: Politeness,
        judging: Judging,
        log: JsonLinesLog,
        on_call: Callable[[], object] = lambda: None,
    ) -> None:
        """``orders`` are those it begins with; ``on_call`` is called at each roll call."""
        self._on_call = on_call
        self._worker = worker
        self._orders = orders
        self._controls = controls
        self._budget = budget
        self._roll = roll
        self._agenda = agenda
        self._politeness = politeness
        self._judging = judging
        self._log = log
        self._since = 0.0
        self._visits = 0
        self._call_at = -math.inf
        self._is_known = False
        """Whether the others have had a call to hear of this worker."""

    @property
    def look_at(self) -> float:
        """The next look at the controls, or the next roll call."""
        return min(self._controls.look_at, self._call_at)

    @property
    def paused(self) -> bool:
        """Whether the whole crawl is paused."""
        return self._orders.paused

    @property
    def resting(self) -> frozenset[int]:
        """Hosts that are paused."""
        return self._controls.resting

    @property
    def budget(self) -> float:
        """Visits per second that all workers may make together."""
        return self._orders.budget

    @property
    def workers(self) -> int:
        """Who was at work at the last roll call, this one included."""
        return 1 + len(self._roll.others)

    @property
    def is_first(self) -> bool:
        """Whether this worker began before all others at work: it tells for all what is true of the whole store.

        One that begins later knows of the others before they know of it, so that no two think so.
        """
        mine = (self._since, self._worker)
        return self._is_known and all(mine < (one.since, one.worker) for one in self._roll.others)

    @property
    def share(self) -> tuple[int, int]:
        """By the names on the roll."""
        names = sorted([self._worker, *(one.worker for one in self._roll.others)])
        return names.index(self._worker), len(names)

    def begin(self, now: float) -> None:
        """Count what is left of the budget from the visits in the store; heed what was told before."""
        self._since, self._visits, self._call_at = now, 0, -math.inf
        self._is_known = False
        self._controls.look_at = -math.inf
        self._budget.set(self._orders.budget, self._orders.burst, now)

    def heed(self, now: float, load: Load) -> bool:
        """Look at the controls and answer the roll call, each when it is time.

        If somebody came or left, it is time at once: who comes waits for hosts, and who left had some.
        """
        changed = self._look(now)
        if now >= self._call_at:
            self._call_at = now + CALL_EVERY
            self._on_call()
            self._roll.call(self._at_work(now, load))
            self._free_dead(now)
            self._budget.share(self._roll.others, load.uncounted, now, new=not self._is_known)
            self._is_known = True
        return changed

    def room(self, now: float, underway: int) -> int:
        """What concurrency and budget leave."""
        if self.paused:
            return 0
        return int(min(max(self._orders.concurrency - underway, 0), self._budget.room(now)))

    def next_at(self, now: float) -> float:
        """When the budget allows another visit."""
        return math.inf if self.paused or self._budget.room(now) else self._budget.next_at(now)

    def is_held(self, now: float) -> bool:
        """Whether it is paused, or the budget lets nothing begin within some seconds."""
        return self.paused or self._budget.next_at(now) > now + _A_WHILE

    def began(self, now: float, visits: int) -> None:
        """Take them off the budget."""
        self._budget.take(now, visits)
        self._visits += visits

    def spared(self, visits: int) -> None:
        """Give them back to the budget."""
        self._budget.give_back(visits)
        self._visits -= visits

    def left(self, now: float) -> float | None:
        """What the budget allows."""
        return self._budget.left(now)

    def keep_alive(self, now: float) -> None:
        """Answer the roll call as last time."""
        self._roll.say_again(now)

    @property
    def was_silent(self) -> bool:
        """By the roll."""
        return self._roll.was_silent

    def end(self, now: float) -> None:
        """Strike the worker off the roll."""
        self._roll.leave(now)

    def _look(self, now: float) -> bool:
        looks = now >= self._controls.look_at
        orders = self._controls.look(now)
        if looks and self._roll.is_outdated(self._controls.everything, now):
            self._call_at = now
        if orders is None:
            return False
        if why := self._controls.contradiction:
            self._log.event("control", "limits not taken over", level="error", details={"reason": str(why)})
        if orders != self._orders:
            self._take_over(orders, now)
        return True

    def _free_dead(self, now: float) -> None:
        """Free what dead workers had leased; say so."""
        for worker, leases in self._roll.free_dead(now, self._orders.politeness.shortest).items():
            details = {"worker": worker, "leases": leases}
            self._log.event("control", "leases of a dead worker freed", level="warn", details=details)

    def _take_over(self, orders: Orders, now: float) -> None:
        before, self._orders = self._orders, orders
        if (before.budget, before.burst, before.new_share) != (orders.budget, orders.burst, orders.new_share):
            self._budget.set(orders.budget, orders.burst, now)
            self._agenda.change_budget(orders.budget, new_share=orders.new_share, burst=orders.burst)
            self._call_at = -math.inf
        if before.standards != orders.standards:
            self._judging.set_standards(orders.standards)
        self._politeness.rules = orders.politeness
        details = {
            "budget_per_second": orders.budget,
            "burst_seconds": orders.burst,
            "new_share": orders.new_share,
            "min_delay": orders.politeness.shortest,
            "concurrency": orders.concurrency,
            "paused": orders.paused,
        }
        self._log.event("control", "told otherwise", details=details)

    def _at_work(self, now: float, load: Load) -> AtWork:
        return AtWork(
            self._worker,
            now,
            self._since,
            self._visits,
            load.uncounted,
            load.in_hand,
            _finite(self._agenda.policy.price),
            _finite(self._budget.left(now)),
            self.paused,
        )


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None
