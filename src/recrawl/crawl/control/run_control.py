"""Run control: the limits of a running worker, its share of the budget, and its entry in the worker registry."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from recrawl.crawl.control.bucket_owner import BucketOwner
from recrawl.crawl.control.json_log import JsonLinesLog
from recrawl.crawl.control.price_exchange import Partition, PriceExchange
from recrawl.crawl.control.runtime_limits import LimitsWatcher, RuntimeLimits, SharedBudget
from recrawl.crawl.control.worker_registry import (
    REPORT_EVERY,
    RegisteredWorker,
    WorkerRegistry,
    is_alive,
    registered_workers,
)
from recrawl.crawl.units.unit_registry import unit_buckets
from recrawl.crawl.visit.change_classifier import ChangeClassifier
from recrawl.model import BoolArray, IntArray
from recrawl.schedule.frontier.revisit_scheduler import RevisitScheduler
from recrawl.schedule.politeness.host_politeness import Politeness
from recrawl.store.base import ScheduleStore
from recrawl.time import MINUTE
from recrawl.urls import bucket_of

_FIT_AFTER_MOVE = 2 * REPORT_EVERY
"""Least seconds between two fits of which the second is made because buckets moved."""
_EXCHANGE_EVERY = MINUTE
"""Least seconds between two fits of which the second is made because others found another price."""
_SHARE_APART = 0.05
"""Relative change of the share of a unit from which on its part of the budget is computed again."""
_A_WHILE = 2 * REPORT_EVERY
"""Seconds after which a budget that allows no visit counts as spent."""


@dataclass(frozen=True, slots=True)
class WorkerLoad:
    """The load of a worker."""

    underway: int
    """Running requests."""
    in_hand: int
    """Pages leased and not requested yet."""
    made: int = 0
    """Visits not acknowledged yet; the store cannot count them."""

    @property
    def uncounted(self) -> int:
        """Visits that started and are not in the store."""
        return self.underway + self.made


class RunControl(Protocol):
    """What the worker queries before it starts requests."""

    @property
    def update_at(self) -> float:
        """When to call ``update`` again, seconds since the epoch."""
        ...

    @property
    def paused(self) -> bool:
        """Whether no visit may start at all."""
        ...

    @property
    def resting(self) -> frozenset[int]:
        """Hosts that are paused."""
        ...

    @property
    def workers(self) -> int:
        """The number of live workers, this one included."""
        ...

    @property
    def owns_buckets(self) -> bool:
        """Whether this worker visits only the hosts of its own buckets."""
        ...

    def partition(self, now: float) -> Partition | None:
        """What this worker schedules, for the fit that is made now; ``None`` for all pages."""
        ...

    def begin(self, now: float) -> None:
        """Start a run."""
        ...

    def update(self, now: float, load: WorkerLoad) -> bool:
        """Apply changed controls; return whether leased pages must be returned for it."""
        ...

    def room(self, now: float, underway: int) -> int:
        """How many visits may start now, beside the running ones."""
        ...

    def next_at(self, now: float) -> float:
        """When a visit may start if no request ends before, seconds since the epoch."""
        ...

    def is_held(self, now: float) -> bool:
        """Whether no visit may start for a while although none runs: the crawl is paused, or the budget is spent."""
        ...

    def began(self, now: float, visits: int) -> None:
        """Record that visits started."""
        ...

    def refund(self, visits: int) -> None:
        """Record that started visits needed no request, or have to start again."""
        ...

    def left(self, now: float) -> float | None:
        """Visits that the budget allows now; ``None`` if any number."""
        ...

    def keep_alive(self, now: float) -> None:
        """Report that this worker lives, if that is overdue. For a thread."""
        ...

    @property
    def was_silent(self) -> bool:
        """Whether other workers may have considered this one dead before its last report."""
        ...

    def end(self, now: float) -> None:
        """End the run."""
        ...


class NoRunControl:
    """No controls: a crawl on virtual time, or a test."""

    update_at = math.inf
    paused = False
    resting: frozenset[int] = frozenset()
    workers = 1
    owns_buckets = False
    was_silent = False

    def __init__(self, concurrency: int) -> None:
        self._concurrency = concurrency

    def partition(self, now: float) -> Partition | None:  # noqa: ARG002 - part of the protocol
        """All pages."""
        return None

    def begin(self, now: float) -> None:
        """Do nothing."""

    def update(self, now: float, load: WorkerLoad) -> bool:  # noqa: ARG002 - part of the protocol
        """Nothing changes."""
        return False

    def room(self, now: float, underway: int) -> int:  # noqa: ARG002 - part of the protocol
        """As many as the concurrency allows."""
        return max(self._concurrency - underway, 0)

    def next_at(self, now: float) -> float:  # noqa: ARG002 - part of the protocol
        """Never, before a request ends."""
        return math.inf

    def is_held(self, now: float) -> bool:  # noqa: ARG002 - part of the protocol
        """Never."""
        return False

    def began(self, now: float, visits: int) -> None:
        """Nothing is counted."""

    def refund(self, visits: int) -> None:
        """Nothing is counted."""

    def left(self, now: float) -> float | None:  # noqa: ARG002 - part of the protocol
        """Any number."""
        return None

    def keep_alive(self, now: float) -> None:
        """There is no registry."""

    def end(self, now: float) -> None:
        """Do nothing."""


class StoreRunControl:
    """Controlled by the store: limits, the shared budget, the worker registry and the buckets of this worker."""

    owns_buckets = True

    def __init__(  # noqa: PLR0913 - the parts it controls, and those it reads
        self,
        worker: str,
        orders: RuntimeLimits,
        *,
        controls: LimitsWatcher,
        budget: SharedBudget,
        registry: WorkerRegistry,
        buckets: BucketOwner,
        hosts: ScheduleStore,
        scheduler: RevisitScheduler,
        politeness: Politeness,
        classifier: ChangeClassifier,
        log: JsonLinesLog,
        on_report: Callable[[], object] = lambda: None,
        exchange: PriceExchange | None = None,
        parsed: Callable[[], float] = lambda: 0.0,
        in_unit: bool = False,
    ) -> None:
        """``orders`` are the initial limits; ``on_report`` is called at each report to the worker registry.

        With ``exchange``, a fit is due when buckets moved or other workers found another price.

        ``parsed`` returns the seconds that subprocesses parsed so far. With ``in_unit`` there are several units, and
        only the buckets of this one may be owned, as its agent wrote into the store (``crawl.units``).

        ``hosts`` is where pauses of hosts are stored before others may request them.
        """
        self._on_call = on_report
        self._worker = worker
        self._orders = orders
        self._controls = controls
        self._budget = budget
        self._registry = registry
        self.buckets = buckets
        self._hosts = hosts
        self._scheduler = scheduler
        self._politeness = politeness
        self._classifier = classifier
        self._log = log
        self._since = 0.0
        self._visits = 0
        self._report_at = -math.inf
        self._parsed = parsed
        self._began_with = (0.0, 0.0)
        """CPU seconds of this process and seconds of parsing when the run started."""
        self._unit_buckets: BoolArray | None = unit_buckets({}) if in_unit else None
        """The buckets of this unit, if there are several units."""
        self._share = 1.0
        """The share of this unit of the budget of all units."""
        self._is_known = False
        """Whether the other workers can know of this one."""
        self._exchange = exchange
        self._fitted: IntArray | None = None
        """The buckets of the last fit."""
        self._seen: IntArray | None = None
        """The buckets at the last report."""

    @property
    def update_at(self) -> float:
        """The next read of the controls, report to the worker registry, or check of moving buckets."""
        return min(self._controls.read_at, self._report_at, self.buckets.check_at)

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
        """Live workers at the last report, this one included."""
        return 1 + len(self._registry.others)

    @property
    def is_first(self) -> bool:
        """Whether this worker started before all other live ones: it reports the figures of the whole store.

        A worker that starts later knows of the others before they know of it, so no two are first.
        """
        mine = (self._since, self._worker)
        return self._is_known and all(mine < (one.since, one.worker) for one in self._registry.others)

    def begin(self, now: float) -> None:
        """Compute what is left of the budget from the visits in the store; apply the controls in force."""
        self._since, self._visits, self._report_at = now, 0, -math.inf
        self._is_known = False
        self._began_with = (time.process_time(), self._parsed())
        self._controls.read_at = -math.inf
        if self._unit_buckets is not None:
            self._share = self._share_of_unit(unit_buckets(self._hosts.controls()), now)
        self._budget.set(self._orders.budget * self._share, self._orders.burst, now)

    def partition(self, now: float) -> Partition:
        """The pages of the buckets of this worker; before it has joined, of those that it will have."""
        numbers = self.buckets.numbers
        if numbers is None:
            told = self._hosts.controls()
            known = registered_workers(told)
            within = None if self._unit_buckets is None else unit_buckets(told)
            numbers = self.buckets.foresee([one.worker for one in known if is_alive(one, now)], within)
        self._fitted = numbers
        return Partition(self._worker, numbers)

    def update(self, now: float, load: WorkerLoad) -> bool:
        """Read the controls and report to the registry, each when it is time.

        If a worker joined or left, it is time at once: one that joins waits for buckets, and one that left had some.
        """
        changed = self._read_controls(now)
        if now >= self._report_at:
            self._report_at = now + REPORT_EVERY
            self._on_call()
            self._registry.report(self._at_work(now, load))
            self._free_dead(now)
            self._budget.share(self._registry.others, load.uncounted, now, new=not self._is_known)
            self._is_known = True
            self._share_between_units(now)
            changed |= self._balance(now)
            self._fit_if_moved(now)
        self.buckets.hand_over(now)
        return changed

    def _share_between_units(self, now: float) -> None:
        """Follow the share of this unit of the budget of all units."""
        if self._unit_buckets is None:
            return
        share = self._share_of_unit(self._unit_buckets, now)
        if abs(share - self._share) > _SHARE_APART * self._share:
            self._share = share
            self._budget.set(self._orders.budget * share, self._orders.burst, now)

    def _share_of_unit(self, buckets: BoolArray, now: float) -> float:
        if self._exchange is None:
            return 1.0
        new_pages = self._orders.discovery_share * self._orders.budget
        return self._exchange.share_of_unit(int(buckets.sum()), new_pages, now)

    def _fit_if_moved(self, now: float) -> None:
        """Make a fit due if our buckets moved and have come to rest, or if others found another price."""
        before, self._seen = self._seen, self.buckets.numbers
        if self._exchange is None or self._fitted is None or self._seen is None or before is None:
            return
        since = now - self._scheduler.fitted_at
        if not np.array_equal(self._seen, self._fitted):
            outdated = since >= _FIT_AFTER_MOVE and np.array_equal(before, self._seen)
        else:
            shared = self.workers > 1 or self._unit_buckets is not None
            outdated = since >= _EXCHANGE_EVERY and shared and self._exchange.is_outdated(self._scheduler)
        if outdated:
            self._scheduler.fit_again()

    def _balance(self, now: float) -> bool:
        """Take or give buckets; return whether some begin to move away, so that leased pages must be returned."""
        before = self.buckets.owned
        is_moving = self.buckets.balance([one.worker for one in self._registry.others], now, self._unit_buckets)
        if is_moving:
            self._store_pauses(now)
        if self.buckets.owned != before and self.workers > 1:
            details = {"owned": self.buckets.owned, "before": before, "workers": self.workers}
            self._log.event("control", "buckets taken or given", details=details)
        return is_moving

    def _store_pauses(self, now: float) -> None:
        """Store the pauses of hosts that were requested without a visit, such as for robots.txt: others must know."""
        hosts, ready = self._politeness.resting(now)
        if len(hosts):
            order = np.argsort(hosts)
            known = self._hosts.hosts(hosts[order])
            self._hosts.set_host(known.id, ready_at=np.maximum(known.ready_at, ready[order]))

    def room(self, now: float, underway: int) -> int:
        """What concurrency and budget allow."""
        if self.paused:
            return 0
        return int(min(max(self._orders.concurrency - underway, 0), self._budget.room(now)))

    def next_at(self, now: float) -> float:
        """When the budget allows another visit."""
        return math.inf if self.paused or self._budget.room(now) else self._budget.next_at(now)

    def is_held(self, now: float) -> bool:
        """Whether the crawl is paused, or the budget allows no visit within some seconds."""
        return self.paused or self._budget.next_at(now) > now + _A_WHILE

    def began(self, now: float, visits: int) -> None:
        """Take them off the budget."""
        self._budget.take(now, visits)
        self._visits += visits

    def refund(self, visits: int) -> None:
        """Return them to the budget."""
        self._budget.give_back(visits)
        self._visits -= visits

    def left(self, now: float) -> float | None:
        """What the budget allows."""
        return self._budget.left(now)

    def keep_alive(self, now: float) -> None:
        """Repeat the last report to the registry."""
        self._registry.repeat_report(now)

    @property
    def was_silent(self) -> bool:
        """By the registry."""
        return self._registry.was_silent

    def end(self, now: float) -> None:
        """Give up the buckets, and remove the worker from the registry: others take them at once."""
        if self._registry.others:
            self._store_pauses(now)
        self.buckets.leave(now)
        self._registry.leave(now, self._at_work(now, WorkerLoad(0, 0)) if self._visits else None)

    def _read_controls(self, now: float) -> bool:
        is_time = now >= self._controls.read_at
        orders = self._controls.changed_limits(now)
        if is_time and (self._registry.is_outdated(self._controls.everything, now) or self._has_other_buckets()):
            self._report_at = now
        if orders is None:
            return False
        if why := self._controls.contradiction:
            self._log.event("control", "limits not applied", level="error", details={"reason": str(why)})
        if orders != self._orders:
            self._take_over(orders, now)
        return True

    def owns_host(self, name: str) -> bool:
        """Whether this unit visits a host of this name; always, if there are not several units."""
        return self._unit_buckets is None or bool(self._unit_buckets[bucket_of(name)])

    def _has_other_buckets(self) -> bool:
        """Read which buckets are those of this unit; return whether they changed."""
        if self._unit_buckets is None:
            return False
        before, self._unit_buckets = self._unit_buckets, unit_buckets(self._controls.everything)
        return not np.array_equal(before, self._unit_buckets)

    def _free_dead(self, now: float) -> None:
        """Free the leases of dead workers, and log it."""
        for worker, leases in self._registry.free_dead(now, self._orders.politeness.shortest).items():
            details = {"worker": worker, "leases": leases}
            self._log.event("control", "leases of a dead worker freed", level="warn", details=details)

    def _take_over(self, orders: RuntimeLimits, now: float) -> None:
        before, self._orders = self._orders, orders
        if (before.budget, before.burst, before.discovery_share) != (
            orders.budget,
            orders.burst,
            orders.discovery_share,
        ):
            self._budget.set(orders.budget * self._share, orders.burst, now)
            self._scheduler.change_budget(orders.budget, discovery_share=orders.discovery_share, burst=orders.burst)
            self._report_at = -math.inf
        if before.standards != orders.standards:
            self._classifier.set_criteria(orders.standards)
        self._politeness.rules = orders.politeness
        details = {
            "budget_per_second": orders.budget,
            "burst_seconds": orders.burst,
            "discovery_share": orders.discovery_share,
            "min_delay": orders.politeness.shortest,
            "concurrency": orders.concurrency,
            "paused": orders.paused,
        }
        self._log.event("control", "controls applied", details=details)

    def _at_work(self, now: float, load: WorkerLoad) -> RegisteredWorker:
        return RegisteredWorker(
            self._worker,
            now,
            self._since,
            self._visits,
            load.uncounted,
            load.in_hand,
            _finite(self._scheduler.policy.price),
            _finite(self._budget.left(now)),
            self.paused,
            self.buckets.owned,
            time.process_time() - self._began_with[0],
            self._parsed() - self._began_with[1],
        )


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None
