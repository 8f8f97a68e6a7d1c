"""The limit per IP address, for hosts that share one. Pure state that receives events; it reads no clock.

A server may answer under thousands of names. One polite visitor per name is a crowd to it, so the address has its own
pause and its own number of connections, besides those of each host.

Rules of this file:
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

from recrawl.errors import ConfigError

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
