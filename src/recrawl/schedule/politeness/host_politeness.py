"""Politeness: when a host, and an IP address, may receive its next request. Pure state; it reads no clock.

Rules for hosts:
 1. One request at a time to a host; the pause starts when the response has arrived.
 2. The pause is the host's own crawl-delay, up to a cap; without one, a multiple of the time of its last response,
    within bounds: a slow host gets longer pauses.
 3. A host that requests a longer pause (Retry-After) gets it; no later event makes it shorter.
 4. A host that does not answer is paused, longer with every failure: a dead host with a thousand pages gets a few
    requests a day, not a thousand.

A server may answer under thousands of names. One polite visitor per name is a crowd to it, so the address has its own
pause and its own number of connections, besides those of each host.

Rules for addresses:
 1. No request to an address starts within its delay after another one there started or ended, and only a fixed number
    run at once. With one connection this is a pause between the end of one request and the start of the next.
 2. A host that cannot start joins the queue of the address and receives the time to come back: each one in the queue
    another time, by the pace at which the address answers. So each host comes back a few times, however long the queue
    is.
 3. A host that is not in the queue waits behind those that are. A host that does not come back in time leaves the
    queue.
 4. Several processes that know only each other's number lengthen their pauses, so that all together send no more
    requests to an address than one alone would.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.schedule.politeness.retry import TROUBLED_HOST, Backoff


@dataclass(frozen=True, slots=True)
class PolitenessRules:
    """How long to pause between two requests to a host. Seconds; the defaults are Heritrix's (conventions R4)."""

    factor: float = 5.0
    """Times the duration of the last answer."""
    shortest: float = 3.0
    longest: float = 30.0
    """Most seconds of pause that a slow answer causes."""
    crawl_delay_cap: float = 300.0
    """Most seconds of a crawl-delay that are honoured."""
    trouble: Backoff = TROUBLED_HOST
    """The pause after requests in a row that got no answer, whichever pages they were for."""

    def __post_init__(self) -> None:
        if not (self.factor >= 0 and 0 <= self.shortest <= self.longest and self.crawl_delay_cap >= 0):
            raise ConfigError(
                f"These politeness rules contradict each other: {self}.",
                "Nothing may be negative, and the shortest pause not above the longest.",
            )

    def pause(self, duration: float, crawl_delay: float | None) -> float:
        """Seconds to pause after an answer that took ``duration`` seconds.

        >>> PolitenessRules().pause(2.0, None), PolitenessRules().pause(2.0, 1_000.0), PolitenessRules().pause(9.0, 1.0)
        (10.0, 300.0, 3.0)
        """
        if crawl_delay is not None:
            return max(min(crawl_delay, self.crawl_delay_cap), self.shortest)
        return min(max(self.factor * duration, self.shortest), self.longest)


_SMALL, _SPARSE = 1024, 8
"""An id is small below ``_SPARSE`` · (known hosts + ``_SMALL``)."""


class Politeness:
    """The state of all hosts, in columns: pause, Crawl-delay, failures. O(1) per host; an unknown host is free."""

    def __init__(self, rules: PolitenessRules | None = None) -> None:
        self.rules = rules or PolitenessRules()
        self._row: dict[int, int] = {}
        self._host = np.empty(16, np.int64)
        self._crawl_delay = np.full(16, np.nan)
        self._free_at = np.full(16, -np.inf)
        self._busy = np.zeros(16, np.bool_)
        self._failures = np.zeros(16, np.int64)
        """Requests in a row that got no answer."""
        self._row_of_small = np.empty(0, np.int64)
        """The row of hosts whose ids are small numbers, -1 for none: a look-up without Python."""

    def __len__(self) -> int:
        """Number of known hosts."""
        return len(self._row)

    def set_crawl_delay(self, host: int, seconds: float | None) -> None:
        """Set the Crawl-delay of robots.txt, or ``None`` if there is none. Applies from the next answer on."""
        row = self._row_of(host)
        self._crawl_delay[row] = np.nan if seconds is None else seconds

    def block_until(self, host: int, when: float) -> None:
        """Allow no request to the host before ``when``, seconds since the epoch; never shortens a pause."""
        row = self._row_of(host)
        self._free_at[row] = max(when, float(self._free_at[row]))

    def free_at(self, host: int) -> float:
        """When the next request may start, seconds since the epoch; -inf for any time, inf while a request runs."""
        row = self._row.get(host)
        if row is None:
            return -math.inf
        return math.inf if self._busy.item(row) else self._free_at.item(row)

    def begin(self, host: int, now: float) -> None:
        """A request to the host starts. It must be free: anything else is a bug of the caller."""
        row = self._row_of(host)
        if self._busy.item(row) or self._free_at.item(row) > now:
            msg = f"host {host} may not be asked at {now}: free at {self.free_at(host)}"
            raise ValueError(msg)
        self._busy[row] = True

    def done(self, host: int, now: float, duration: float) -> None:
        """The request has ended, with an answer or without, after ``duration`` seconds; the pause starts."""
        row = self._row_of(host)
        if not self._busy.item(row):
            msg = f"no request to host {host} is running"
            raise ValueError(msg)
        self._busy[row] = False
        delay = self._crawl_delay.item(row)
        free_at = now + self.rules.pause(duration, None if math.isnan(delay) else delay)
        if free_at > self._free_at.item(row):
            self._free_at[row] = free_at

    def failed(self, host: int, now: float) -> None:
        """Record that the last request, which is done, got no answer; the pause grows with each failure."""
        row = self._row_of(host)
        self._failures[row] += 1
        self.block_until(host, now + float(self.rules.trouble.wait(self._failures[row])))

    def answered(self, host: int) -> None:
        """Record an answer: the count of failures starts again at 0."""
        row = self._row.get(host)
        if row is not None:
            self._failures[row] = 0

    def shift(self, since: float, seconds: float) -> None:
        """The clock, which read ``since``, is set: pauses that were not over by then last as long as before."""
        self._free_at[self._free_at > since] += seconds

    def resting(self, now: float) -> tuple[IntArray, FloatArray]:
        """The hosts that allow no request now, and until when: as if running requests ended now."""
        known = slice(len(self._row))
        delay = np.minimum(self._crawl_delay[known], self.rules.crawl_delay_cap)
        pause = now + np.fmax(delay, self.rules.shortest)
        until = np.where(self._busy[known], np.maximum(self._free_at[known], pause), self._free_at[known])
        rows = np.flatnonzero(until > now)
        return self._host[rows], until[rows]

    def undone(self, host: int) -> None:
        """Cancel a request that started and sent nothing: the host is as free as before."""
        row = self._row_of(host)
        if not self._busy[row]:
            msg = f"no request to host {host} is running"
            raise ValueError(msg)
        self._busy[row] = False

    # -- many at once, for the frontier ---------------------------------------------------------

    @property
    def columns(self) -> tuple[FloatArray, BoolArray]:
        """Free-at and busy of all hosts by row. Views, outdated once a host is added; the frontier sets ``busy``."""
        return self._free_at, self._busy

    def rows(self, host: IntArray) -> IntArray:
        """The row of each host; new ones get one. O(1) each for ids that are small numbers, else O(n log n)."""
        if len(host) == 1:
            return np.array([self._row_of(int(host[0]))])
        if len(host) and host.min() >= 0 and host.max() < len(self._row_of_small):
            rows = self._row_of_small[host]
            if (rows >= 0).all():
                return rows
        known, place = np.unique(host, return_inverse=True)
        return np.fromiter((self._row_of(one) for one in known.tolist()), np.int64, len(known))[place.reshape(-1)]

    def hosts(self, rows: IntArray) -> IntArray:
        """The host of each row."""
        return self._host[rows]

    def done_many(self, rows: IntArray, now: float, duration: FloatArray) -> None:
        """The requests to these rows have ended; as :meth:`done` for each."""
        rules, delay = self.rules, self._crawl_delay[rows]
        adaptive = np.minimum(np.maximum(rules.factor * duration, rules.shortest), rules.longest)
        asked = np.maximum(np.minimum(delay, rules.crawl_delay_cap), rules.shortest)
        pause = np.where(np.isnan(delay), adaptive, asked)
        self._free_at[rows] = np.maximum(self._free_at[rows], now + pause)
        self._busy[rows] = False

    def _row_of(self, host: int) -> int:
        row = self._row.get(host)
        if row is not None:
            return row
        row = self._row[host] = len(self._row)
        if row >= len(self._host):
            room = len(self._host)
            self._host = np.concatenate([self._host, np.empty(room, np.int64)])
            self._crawl_delay = np.concatenate([self._crawl_delay, np.full(room, np.nan)])
            self._free_at = np.concatenate([self._free_at, np.full(room, -np.inf)])
            self._busy = np.concatenate([self._busy, np.zeros(room, np.bool_)])
            self._failures = np.concatenate([self._failures, np.zeros(room, np.int64)])
        self._host[row] = host
        if len(self._row_of_small) <= host < _SPARSE * (row + _SMALL):
            room = max(host + 1, 2 * len(self._row_of_small)) - len(self._row_of_small)
            self._row_of_small = np.concatenate([self._row_of_small, np.full(room, -1, np.int64)])
            earlier = np.flatnonzero((self._host[:row] >= 0) & (self._host[:row] < len(self._row_of_small)))
            self._row_of_small[self._host[earlier]] = earlier
        if 0 <= host < len(self._row_of_small):
            self._row_of_small[host] = row
        return row


_LATE = 60.0
"""Seconds after its time at which a waiting host loses its place."""
_FORGETTING = 0.2
"""Weight of the last answer in the mean duration of answers."""
_FEW = 1024
"""Addresses up to which unused ones are not removed."""


@dataclass(frozen=True, slots=True)
class IpLimits:
    """The limits of one address, over all its hosts together."""

    delay: float = 0.5
    """Seconds. Two requests per second are nothing to a machine that serves many sites, and 170,000 a day to us."""
    connections: int = 4
    """Requests at once: fewer than a browser makes to a single host, more than one, because a site that hangs would
    hold up all others at its address."""

    def __post_init__(self) -> None:
        if not (0 <= self.delay < math.inf and self.connections >= 1):
            raise ConfigError(
                f"These rules for one address make no sense: {self}.",
                "The delay may not be negative, and at least one connection is needed.",
            )


class _QueueSlot(NamedTuple):
    """The place of a waiting host in the queue of an address."""

    number: int
    called: float
    """The time at which the host should try again."""


@dataclass(slots=True)
class _AddressState:
    """One address: its running requests and the hosts that wait."""

    free_at: float = -math.inf
    duration: float = 0.0
    """Mean duration of an answer, seconds."""
    joined: int = 0
    """How many hosts ever joined the queue."""
    running: dict[int, float] = field(default_factory=dict)
    """Hosts with a running request, and its start."""
    waiting: dict[int, _QueueSlot] = field(default_factory=dict)
    """Waiting hosts, in the order of their places."""

    def first(self) -> _QueueSlot | None:
        return next(iter(self.waiting.values()), None)


class IpLimiter:
    """The state of all addresses. Every call is O(1) amortised; unused addresses are removed."""

    def __init__(self, rules: IpLimits | None = None) -> None:
        self.rules = rules or IpLimits()
        self.workers = 1
        """Number of workers that share the limits, each with its own limiter."""
        self._addresses: dict[str, _AddressState] = {}
        self._cleanup_at = _FEW

    def __len__(self) -> int:
        """Addresses in use."""
        return len(self._addresses)

    @property
    def delay(self) -> float:
        """Seconds that each of the workers leaves between two requests."""
        return self.rules.delay * self.workers

    @property
    def connections(self) -> int:
        """Requests at once that each of the workers makes: one at least."""
        return max(1, self.rules.connections // self.workers)

    def begin(self, address: str, who: int, now: float) -> float:
        """Start a request, or return when to try again.

        Returns ``now`` if the request has started, which lasts until ``done``; else a later time, seconds since the
        epoch. ``who`` is the host; it may have only one request at an address.

        >>> limiter = IpLimiter(IpLimits(delay=2.0, connections=1))
        >>> [limiter.begin("192.0.2.1", who, 100.0) for who in (1, 2, 3)]
        [100.0, 102.0, 104.0]
        """
        state = self._addresses.get(address)
        if state is None:
            self._tidy(now)
            state = self._addresses[address] = _AddressState()
        if who in state.running:
            msg = f"{who} is being served at {address} already"
            raise ValueError(msg)
        self._drop_late(state, now)
        full = len(state.running) >= self.connections
        if not full and now >= state.free_at and (who in state.waiting or not state.waiting):
            state.waiting.pop(who, None)
            state.running[who] = now
            state.free_at = max(state.free_at, now + self.delay)
            return now
        return self._enqueue(state, who, now, full=full)

    def done(self, address: str, who: int, now: float) -> None:
        """The request has ended, with an answer or without."""
        state = self._addresses.get(address)
        began = state.running.pop(who, None) if state is not None else None
        if state is None or began is None:
            msg = f"{who} is not being served at {address}"
            raise ValueError(msg)
        state.duration += _FORGETTING * (max(now - began, 0.0) - state.duration)
        state.free_at = max(state.free_at, now + self.delay)

    def _enqueue(self, state: _AddressState, who: int, now: float, *, full: bool) -> float:
        """Queue a host and return when it should try again; a host already in the queue keeps its place."""
        number = state.waiting[who].number if who in state.waiting else state.joined
        if number == state.joined:
            state.joined += 1
        first = state.first()
        pace = self.delay + state.duration / self.connections
        soonest = max(state.free_at, now + pace if full else now)
        when = soonest + pace * (number - first.number if first is not None else 0)
        when = max(when, math.nextafter(now, math.inf))
        state.waiting[who] = _QueueSlot(number, when)
        return when

    @staticmethod
    def _drop_late(state: _AddressState, now: float) -> None:
        """Remove waiting hosts that did not try again in time."""
        while state.waiting:
            who = next(iter(state.waiting))
            if state.waiting[who].called + _LATE >= now:
                return
            del state.waiting[who]

    def _tidy(self, now: float) -> None:
        """Remove unused addresses once there are twice as many as before. O(addresses), after as many new ones."""
        if len(self._addresses) < self._cleanup_at:
            return
        for address, state in list(self._addresses.items()):
            self._drop_late(state, now)
            if not (state.running or state.waiting) and state.free_at <= now:
                del self._addresses[address]
        self._cleanup_at = max(_FEW, 2 * len(self._addresses))
