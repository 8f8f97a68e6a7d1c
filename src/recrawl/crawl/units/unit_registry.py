"""The registry of units, in the coordination database, and what a unit keeps of it in its own store.

A unit is a store with its workers. Each reports every few seconds that it lives, what it can do and what it waits for.
Capacity is measured: visits a second of CPU time, which includes parsing, summed over the workers of the unit. A unit
without enough visits counts as the mean of the others.

A silent unit stays registered and keeps its buckets: its pages are in its store, which is restarted or taken over from
its replica. Only ``recrawl leave`` removes a unit.

The workers of a unit read from their own store which buckets are theirs. So they go on with the last assignment while
the coordination database is away.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

import numpy as np

from recrawl.crawl.control.worker_registry import ENOUGH_VISITS, SILENCE, RegisteredWorker
from recrawl.model import BoolArray, FloatArray
from recrawl.schedule.frontier.bucket_assignment import settled_capacity
from recrawl.urls import BUCKETS

REGISTERED = "worker "
"""Controls of a coordination database are named as those of workers in a store: owners of buckets are units there."""
STATE = "unit"
"""The control of a unit's own store with the state of the unit."""


@dataclass(frozen=True, slots=True)
class RegisteredUnit:
    """One unit, by its last report."""

    unit: str
    at: float
    """When it reported, seconds since the epoch, by the clock of the coordination database."""
    store: str
    """A random id of its store: two stores cannot be one unit."""
    address: str = ""
    """URL of its server, where its archived bytes can be read."""
    workers: int = 0
    """Live workers."""
    capacity: float = 0.0
    """Visits per CPU second of all workers, as used for the assignment of buckets; 0 if not measured."""
    visits_per_second: float = 0.0
    """Visits that its workers made, by the time since each started."""
    cpu_per_visit: float = 0.0
    """CPU seconds of a visit, parsing included; 0 if not measured."""
    parse_per_visit: float = 0.0
    """Seconds of parsing in subprocesses of a visit, part of the former."""
    outbox: int = 0
    """Pages in its store that wait to be sent to other units."""
    price: float | None = None
    """The price that its workers use."""
    budget: float = 0.0
    """Visits per second of its settings."""
    leaving: bool = False
    """Whether it hands over all buckets."""
    standing_in: str = ""
    """Buckets of silent units in which it visits important pages, as :func:`packed_buckets`; empty for none."""

    def is_alive(self, now: float) -> bool:
        """Whether it reported lately."""
        return now - self.at < SILENCE

    def stands_in_for(self) -> BoolArray:
        """Buckets of silent units in which it visits important pages."""
        return unpacked_buckets(self.standing_in)


@dataclass(frozen=True, slots=True)
class UnitState:
    """What a unit knows, in its own store."""

    unit: str
    store: str
    """A random id."""
    buckets: str
    """Which buckets its workers may own: a bit for each, in hexadecimal."""
    at: float
    """When the coordination database was last reached, seconds since the epoch."""
    outbox: int = 0
    """Pages that wait to be sent."""
    error: str = ""
    """Why the coordination database cannot be reached; empty if it can."""
    standing_in: str = ""
    """Buckets of other units in which this one visits important pages, or did so and has not sent them home yet."""


def registered_units(told: Mapping[str, str]) -> dict[str, RegisteredUnit]:
    """All units in the controls of a coordination database, silent ones included, by name."""
    texts = (text for name, text in sorted(told.items()) if name.startswith(REGISTERED))
    return {one.unit: one for one in (RegisteredUnit(**json.loads(text)) for text in texts)}


def unit_state(told: Mapping[str, str]) -> UnitState | None:
    """The state of a unit in the controls of its store; ``None`` if it never reached the coordination database."""
    return UnitState(**json.loads(told[STATE])) if STATE in told else None


def as_control(value: RegisteredUnit | UnitState) -> str:
    """The text of a control."""
    return json.dumps(asdict(value), allow_nan=False)


def unit_buckets(told: Mapping[str, str]) -> BoolArray:
    """Which buckets the workers of a unit may own, by the controls of its store."""
    state = unit_state(told)
    return np.zeros(BUCKETS, np.bool_) if state is None else own_buckets(state)


def own_buckets(state: UnitState) -> BoolArray:
    """Which buckets the workers of a unit may own."""
    return unpacked_buckets(state.buckets)


def packed_buckets(mine: BoolArray) -> str:
    """Buckets as a control holds them."""
    return np.packbits(mine).tobytes().hex()


def unpacked_buckets(packed: str) -> BoolArray:
    """The reverse; an empty text means none.

    >>> int(unpacked_buckets("").sum()), int(unpacked_buckets(packed_buckets(np.ones(BUCKETS, np.bool_))).sum())
    (0, 1024)
    """
    if not packed:
        return np.zeros(BUCKETS, np.bool_)
    return np.unpackbits(np.frombuffer(bytes.fromhex(packed), np.uint8)).astype(np.bool_)


def capacities(units: Iterable[RegisteredUnit]) -> FloatArray:
    """The capacity of each unit for the assignment: an unmeasured one has the mean of the others, a leaving one none.

    >>> capacities([RegisteredUnit("a", 0.0, "1", capacity=30.0), RegisteredUnit("b", 0.0, "2")]).tolist()
    [30.0, 30.0]
    """
    every = list(units)
    measured = [one.capacity for one in every if one.capacity > 0]
    usual = float(np.mean(measured)) if measured else 1.0
    return np.array([0.0 if one.leaving else one.capacity or usual for one in every])


@dataclass(frozen=True, slots=True)
class MeasuredCapacity:
    """What the workers of a unit did, and what it took."""

    capacity: float = 0.0
    visits_per_second: float = 0.0
    cpu_per_visit: float = 0.0
    parse_per_visit: float = 0.0


def measured_capacity(workers: Iterable[RegisteredWorker], before: float) -> MeasuredCapacity:
    """Measure a unit by the reports of its workers; ``before`` is the capacity in force.

    >>> one = RegisteredWorker("w", 100.0, 0.0, visits=1000, cpu=4.0, parse=1.0)
    >>> measured_capacity([one, one], 0.0)
    MeasuredCapacity(capacity=400.0, visits_per_second=20.0, cpu_per_visit=0.005, parse_per_visit=0.001)
    """
    told = [one for one in workers if one.visits >= ENOUGH_VISITS and one.cpu > 0]
    if not told:
        return MeasuredCapacity(before)
    visits = sum(one.visits for one in told)
    return MeasuredCapacity(
        settled_capacity(before, sum(one.visits / (one.cpu + one.parse) for one in told)),
        sum(one.visits / max(one.at - one.since, 1.0) for one in told),
        sum(one.cpu + one.parse for one in told) / visits,
        sum(one.parse for one in told) / visits,
    )
