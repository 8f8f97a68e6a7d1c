"""The agent of a unit: reports for it, claims and hands over its buckets, and exchanges pages with other units.

Every worker of a unit runs an agent in a thread, and the agent of the worker that started first acts. Nothing breaks if
two act at once: each step is a transaction, or can be repeated.

A step, in this order:

1. Report to the registry, exchange demand (``unit_demand``), and compute the assignment of buckets: the same in every
   unit (:func:`recrawl.schedule.frontier.bucket_assignment.assign_units`).
2. Claim buckets that nobody owns; name the heirs of those that another unit should own.
3. Take pages that other units sent.
4. Write into the unit's own store which buckets are its workers' to own, new ones once all their pages are here. They
   drain the others, as when a worker joins.
5. Send pages in buckets of other units: those that workers found, that were added, and all pages of a bucket that
   moves away, once it is drained.
6. Hand over moving buckets of which every page was sent. Only now may workers of the other unit visit their hosts, so
   no host is visited by two units at once.

Beside that it keeps copies of its important pages for the time when it is silent, and stands in for units that are
(``stand_in``).

If the coordination database is away, the last assignment holds, and pages for other units wait in the store.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from recrawl.crawl.control.bucket_owner import ELSEWHERE
from recrawl.crawl.control.worker_registry import REPORT_EVERY, RegisteredWorker, is_alive, registered_workers
from recrawl.crawl.units import moved_pages
from recrawl.crawl.units.stand_in import Copier, orphaned, stood_in, take_copies
from recrawl.crawl.units.unit_demand import exchange_demand, withdraw_demand
from recrawl.crawl.units.unit_registry import (
    REGISTERED,
    STATE,
    RegisteredUnit,
    UnitState,
    as_control,
    capacities,
    measured_capacity,
    own_buckets,
    packed_buckets,
    registered_units,
    unit_state,
    unpacked_buckets,
)
from recrawl.errors import ConfigError, RecrawlError, StoreError
from recrawl.model import BoolArray, IntArray
from recrawl.schedule.frontier.bucket_assignment import assign_units, numbered_owners
from recrawl.store.base import Store
from recrawl.store.store_values import BucketRows
from recrawl.store.unit_exchange import (
    MOST_WAITING,
    OutgoingPages,
    UnitExchange,
    open_coordination,
    open_unit_store,
)
from recrawl.urls import BUCKETS

DRAIN_TIME = 2 * REPORT_EVERY
"""Seconds after which the workers of a unit have read that a bucket is no longer theirs."""
_AT_ONCE = 500
"""Pages that are sent or taken together."""
_BATCHES = 20
"""Batches of a step in each direction: then the unit reports again."""
_STEP_EVERY = REPORT_EVERY / 2
"""Seconds between two steps."""
_LAST_STEP = 5.0
"""Seconds to wait for the first step at the start, and for a step under way at the end."""


@dataclass(frozen=True, slots=True)
class UnitTerms:
    """A unit, by its settings."""

    name: str
    coordination: str
    """Location of the coordination database."""
    store: str
    """Location of the unit's own store."""
    address: str = ""
    """URL of its server."""
    budget: float = 0.0
    """Visits per second."""
    stand_in_from: float = 0.0
    """Importance of pages that other units visit while this one is silent; 0 for none."""


class UnitAgent:
    """Acts for one unit. Not for several threads at once."""

    def __init__(self, terms: UnitTerms, store: Store, outgoing: OutgoingPages, worker: str = "") -> None:
        """``worker`` is the worker that it belongs to; without, it acts whoever else does."""
        self._terms = terms
        self._store = store
        self._outgoing = outgoing
        self._worker = worker
        self._opened: tuple[Store, UnitExchange] | None = None
        self._copier = Copier(store, terms.stand_in_from)
        self.sent = 0
        """Pages sent to other units by this agent."""
        self.taken = 0
        """Pages taken from other units by this agent."""

    def close(self) -> None:
        """Close the connection to the coordination database."""
        if self._opened is not None:
            self._opened[0].close()
            self._opened = None

    def step(self, now: float, *, leaving: bool = False) -> UnitState | None:
        """Make a step; return the state of the unit, or ``None`` if another worker acts for it.

        Raises:
            StoreError: the unit's own store cannot be reached.
            ConfigError: another store has the name of this unit.
        """
        told = self._store.controls()
        workers = [one for one in registered_workers(told) if is_alive(one, now)]
        if not self._acts(workers):
            return None
        before = unit_state(told) or UnitState(
            self._terms.name, secrets.token_hex(8), packed_buckets(np.zeros(BUCKETS, np.bool_)), -1.0
        )
        try:
            opened = self._coordination(create=before.at < 0)
            return self._exchange(*opened, before, workers, now, leaving=leaving)
        except StoreError as error:
            self.close()
            # If it is the own store that is away, this raises.
            state = unit_state(self._store.controls()) or before
            return self._write(replace(state, error=str(error)), state, now)

    def is_done(self, now: float) -> bool:
        """Whether the unit owns no bucket any more, and has sent every page.

        Raises:
            ConfigError: no other unit runs that could own its buckets.
        """
        shared, _ = self._coordination(create=False)
        time, units = shared.time(), registered_units(shared.controls()).values()
        time = now if time is None else time
        if not any(one.is_alive(time) and not one.leaving for one in units if one.unit != self._terms.name):
            raise ConfigError("No other unit runs.", "Start another one first: it takes over the pages of this one.")
        rows = shared.buckets()
        every = np.arange(BUCKETS)
        return self._terms.name not in rows.owner and not int(self._outgoing.count(every).sum())

    def unregister(self, now: float) -> None:
        """Remove the unit from the registry."""
        shared, _ = self._coordination(create=False)
        shared.set_control(REGISTERED + self._terms.name, None, now)
        withdraw_demand(shared, self._terms.name)

    def _acts(self, workers: list[RegisteredWorker]) -> bool:
        """Whether this agent acts for the unit: no other worker started before its own."""
        if not workers or not self._worker:
            return True
        return min((one.since, one.worker) for one in workers)[1] == self._worker

    def _exchange(  # noqa: PLR0913 - what a step needs
        self,
        shared: Store,
        exchange: UnitExchange,
        before: UnitState,
        workers: list[RegisteredWorker],
        now: float,
        *,
        leaving: bool,
    ) -> UnitState:
        name = self._terms.name
        time = shared.time()
        time = now if time is None else time
        units = registered_units(shared.controls())
        mine = self._report(units.get(name), before, workers, time, leaving=leaving)
        shared.set_control(REGISTERED + name, as_control(mine), time)
        units[name] = mine
        exchange_demand(self._store, shared, name, units, time - now)
        rows = _balanced(shared, name, units, time)
        owned = np.array([owner == name for owner in rows.owner], np.bool_)
        moving = owned & np.array([heir is not None for heir in rows.heir], np.bool_)
        stood = unpacked_buckets(before.standing_in)
        elsewhere = stood_in(units, name, time, stood)
        mine_now = owned & ~moving & ~elsewhere
        self._receive(exchange, mine_now)
        # Workers load the history of a bucket when they get it: its pages have to be here by then.
        late = mine_now & ~own_buckets(before) & (exchange.waiting().rows > 0)
        visited = self._stand_in(shared, rows, units, stood, ~elsewhere, time) & ~owned
        stood = (stood | visited) & ~owned
        if _text_of(stood) != mine.standing_in:  # others have to know before a worker visits a host
            mine = replace(mine, standing_in=_text_of(stood))
            shared.set_control(REGISTERED + name, as_control(mine), time)
        buckets = packed_buckets(mine_now & ~late | visited)
        state = replace(before, buckets=buckets, at=now, error="", standing_in=mine.standing_in)
        state = self._write(state, before, now)
        free = self._drained(now)
        others = np.array([owner not in {None, name} for owner in rows.owner], np.bool_) & ~visited
        leaves = moving & (time - rows.since >= (DRAIN_TIME if workers else 0.0))
        self._send(exchange, free & (others | leaves), time)
        left = self._outgoing.count(np.flatnonzero(others | moving))
        exchange.hand_over(name, np.flatnonzero(leaves & free & (left == 0)), time)
        home = stood & ~visited & free & (left == 0)
        if home.any():
            state = self._write(replace(state, standing_in=_text_of(stood & ~home)), state, now)
        self._copier.step(shared, mine_now & ~late, time)
        return self._write(replace(state, outbox=int(left.sum())), state, now)

    def _stand_in(  # noqa: PLR0913, PLR0917 - what decides
        self,
        shared: Store,
        rows: BucketRows,
        units: dict[str, RegisteredUnit],
        stood: BoolArray,
        possible: BoolArray,
        time: float,
    ) -> BoolArray:
        """The buckets of silent units in which this one visits important pages; new ones once their pages are here."""
        wanted = orphaned(rows.owner, units, time) & possible
        if not wanted.any():
            return wanted
        names = sorted(units)
        capacity = capacities(units[one] for one in names)
        alive = np.array([units[one].is_alive(time) for one in names], np.bool_)
        ours = assign_units(names, np.where(alive, capacity, 0.0)) == names.index(self._terms.name)
        wanted &= ours | stood
        for bucket in np.flatnonzero(wanted & ~stood).tolist():
            wanted[bucket] = take_copies(self._store, shared, bucket)
        return wanted

    def _report(
        self,
        known: RegisteredUnit | None,
        state: UnitState,
        workers: list[RegisteredWorker],
        time: float,
        *,
        leaving: bool,
    ) -> RegisteredUnit:
        if known is not None and known.store != state.store:
            if known.is_alive(time):
                raise ConfigError(
                    f"Another store is the unit {known.unit!r} already.", "Give each unit a name of its own: units.name"
                )
            known = None
        measured = measured_capacity(workers, known.capacity if known is not None else 0.0)
        return RegisteredUnit(
            unit=self._terms.name,
            at=time,
            store=state.store,
            address=self._terms.address,
            workers=len(workers),
            capacity=measured.capacity,
            visits_per_second=measured.visits_per_second,
            cpu_per_visit=measured.cpu_per_visit,
            parse_per_visit=measured.parse_per_visit,
            outbox=state.outbox,
            price=next((one.price for one in workers if one.price is not None), None),
            budget=self._terms.budget,
            leaving=leaving,
            standing_in=state.standing_in,
        )

    def _write(self, state: UnitState, before: UnitState, now: float) -> UnitState:
        if state != before:
            self._store.set_control(STATE, as_control(state), now)
        return state

    def _drained(self, now: float) -> BoolArray:
        """Buckets of which no live worker of this unit is the owner, and no worker has a lease."""
        rows = self._store.buckets()
        alive = {one.worker for one in registered_workers(self._store.controls()) if is_alive(one, now)}
        alive |= set(self._store.lease_holders())
        return np.array([owner is None or owner == ELSEWHERE or owner not in alive for owner in rows.owner], np.bool_)

    def _receive(self, exchange: UnitExchange, mine: BoolArray) -> None:
        buckets = np.flatnonzero(mine)
        for _ in range(_BATCHES):
            rows = exchange.waiting_for(buckets, _AT_ONCE)
            if not rows:
                return
            self.taken += moved_pages.take(self._store, [bytes(row.content) for row in rows])
            exchange.drop([row.id for row in rows])

    def _send(self, exchange: UnitExchange, foreign: BoolArray, time: float) -> None:
        buckets = np.flatnonzero(foreign)
        for _ in range(_BATCHES):
            pages, _hosts = self._outgoing.first(buckets, _AT_ONCE)
            if not len(pages) or int(exchange.waiting().rows.sum()) >= MOST_WAITING:
                return
            pages = np.sort(pages)
            exchange.put(self._terms.name, *moved_pages.packed(self._store, pages), time)
            moved_pages.retire(self._store, pages)
            self.sent += len(pages)

    def _coordination(self, *, create: bool) -> tuple[Store, UnitExchange]:
        """The coordination database; it is created when the unit sees it for the first time."""
        if self._opened is None:
            self._opened = open_coordination(self._terms.coordination, create=create)
        return self._opened


def _text_of(stood: BoolArray) -> str:
    return packed_buckets(stood) if stood.any() else ""


def _balanced(shared: Store, name: str, units: dict[str, RegisteredUnit], time: float) -> BucketRows:
    """Claim and plan what the assignment demands of a unit; return the buckets after that."""
    rows, names = shared.buckets(), sorted(units)
    planned = _planned(rows, units, names, time)
    ours = planned == names.index(name)
    owned = np.array([owner == name for owner in rows.owner], np.bool_)
    free = np.array([owner not in units for owner in rows.owner], np.bool_)
    wanted = np.flatnonzero(ours & free)
    changed = shared.claim_buckets(name, wanted, time) if len(wanted) else 0
    leaving = np.flatnonzero(owned & ~ours & (planned >= 0))
    kept = np.array([number for number in np.flatnonzero(owned & ours).tolist() if rows.heir[number]], np.int64)
    heirs = [names[number] for number in planned[leaving].tolist()]
    if len(kept) or heirs != [rows.heir[number] for number in leaving.tolist()]:
        changed += shared.plan_moves(name, leaving, heirs, time, kept=kept)
        changed += len(kept)
    return shared.buckets() if changed else rows


def _planned(rows: BucketRows, units: dict[str, RegisteredUnit], names: list[str], time: float) -> IntArray:
    """The unit that should own each bucket, as an index into ``names``.

    A silent unit keeps what it owns and gets nothing more: the others share what else it should own until it is back.
    """
    capacity = capacities(units[one] for one in names)
    planned = assign_units(names, capacity)
    alive = np.array([units[one].is_alive(time) for one in names], np.bool_)
    owned = numbered_owners(rows.owner, names) == planned
    return np.where(alive[planned] | owned, planned, assign_units(names, np.where(alive, capacity, 0.0)))


class UnitThread:
    """Context manager: runs the agent of a worker in a thread until the block ends."""

    def __init__(self, terms: UnitTerms, worker: str, now: Callable[[], float], report: Callable[[str], None]) -> None:
        """``report`` receives an error, or an empty text once it is over; it is called in the thread."""
        self._terms, self._worker, self._now, self._report = terms, worker, now, report
        self._stop, self._acted = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="recrawl-unit")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join(_LAST_STEP)

    def wait(self) -> None:
        """Wait for the first step, a few seconds at most: by then others may have visited hosts of the unit."""
        self._acted.wait(_LAST_STEP)

    def _run(self) -> None:
        said = ""
        while not self._stop.is_set():
            try:
                store, outgoing = open_unit_store(self._terms.store)
                with store:
                    agent = UnitAgent(self._terms, store, outgoing, self._worker)
                    try:
                        while not self._stop.is_set():
                            state = agent.step(self._now())
                            self._acted.set()
                            error = state.error if state is not None else ""
                            if error != said:
                                said = error
                                self._report(error)
                            self._stop.wait(_STEP_EVERY)
                    finally:
                        agent.close()
            except RecrawlError as error:
                if str(error) != said:
                    said = str(error)
                    self._report(said)
                self._stop.wait(_STEP_EVERY)


def leave_units(terms: UnitTerms, now: Callable[[], float], wait: Callable[[float], object]) -> int:
    """Send all pages of a unit to the others, and remove it from the registry; return how many pages were sent.

    Raises:
        ConfigError: there is no other unit, or a crawl of the unit runs.
        StoreError: a store cannot be reached.
    """
    store, outgoing = open_unit_store(terms.store)
    with store:
        agent = UnitAgent(terms, store, outgoing)
        try:
            while True:
                if any(is_alive(one, now()) for one in registered_workers(store.controls())):
                    raise ConfigError("A crawl of this unit runs.", "Stop it, then leave again.")
                state = agent.step(now(), leaving=True)
                assert state is not None  # noqa: S101 - an agent without a worker always acts
                if state.error:
                    raise StoreError(state.error, "Leave again when the coordination database can be reached.")
                if agent.is_done(now()):
                    agent.unregister(now())
                    return agent.sent
                wait(1.0)
        finally:
            agent.close()


def remove_unit(coordination: str, unit: str, now: float) -> None:
    """Remove a unit that is gone for good. Others claim its buckets; pages that only it knew are lost.

    Raises:
        ConfigError: there is no such unit, or it is alive.
    """
    shared, _ = open_coordination(coordination)
    with shared:
        time = shared.time()
        known = registered_units(shared.controls()).get(unit)
        if known is None:
            raise ConfigError(f"There is no unit {unit!r}.", "recrawl list units shows all of them.")
        if known.is_alive(now if time is None else time):
            raise ConfigError(f"The unit {unit!r} is alive.", "Stop it, and run recrawl leave in its workspace.")
        shared.set_control(REGISTERED + unit, None, now)
        withdraw_demand(shared, unit)
