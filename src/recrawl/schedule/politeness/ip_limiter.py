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
"""Seconds after which somebody who was called is no longer waited for."""
_FORGETTING = 0.2
"""Weight of the last answer in the mean duration of answers."""
_FEW = 1024
"""Addresses that are not worth tidying."""


@dataclass(frozen=True, slots=True)
class IpLimits:
    """How much one address is asked for by all its hosts together."""

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


class _AddressState(NamedTuple):
    """A place in a line."""

    number: int
    called: float
    """When its owner was told to come back."""


@dataclass(slots=True)
class _HostQueue:
    """One address."""

    free_at: float = -math.inf
    duration: float = 0.0
    """Of an answer, on average."""
    joined: int = 0
    """How many ever stood in the line."""
    running: dict[int, float] = field(default_factory=dict)
    """Who is being served, and since when."""
    waiting: dict[int, _AddressState] = field(default_factory=dict)
    """Who waits, by place."""

    def first(self) -> _AddressState | None:
        return next(iter(self.waiting.values()), None)


class IpLimiter:
    """The lines of all addresses. Every call is O(1) amortised; an address that nobody asks is forgotten."""

    def __init__(self, rules: IpLimits | None = None) -> None:
        self.rules = rules or IpLimits()
        self.workers = 1
        """How many keep these turns, each for itself."""
        self._lines: dict[str, _HostQueue] = {}
        self._cleanup_at = _FEW

    def __len__(self) -> int:
        """Addresses in use."""
        return len(self._lines)

    @property
    def delay(self) -> float:
        """Seconds that each of the workers leaves between two requests."""
        return self.rules.delay * self.workers

    @property
    def connections(self) -> int:
        """Requests at once that each of the workers makes: one at least."""
        return max(1, self.rules.connections // self.workers)

    def begin(self, address: str, who: int, now: float) -> float:
        """Start a request, or learn when to come back for it.

        Returns ``now`` if the request has started, which lasts until ``done``; else a later time, seconds since the
        epoch. Nobody may start twice at one address.

        >>> turns = IpLimiter(IpLimits(delay=2.0, connections=1))
        >>> [turns.begin("192.0.2.1", who, 100.0) for who in (1, 2, 3)]
        [100.0, 102.0, 104.0]
        """
        line = self._lines.get(address)
        if line is None:
            self._tidy(now)
            line = self._lines[address] = _HostQueue()
        if who in line.running:
            msg = f"{who} is being served at {address} already"
            raise ValueError(msg)
        self._call_off(line, now)
        full = len(line.running) >= self.connections
        if not full and now >= line.free_at and (who in line.waiting or not line.waiting):
            line.waiting.pop(who, None)
            line.running[who] = now
            line.free_at = max(line.free_at, now + self.delay)
            return now
        return self._call(line, who, now, full=full)

    def done(self, address: str, who: int, now: float) -> None:
        """The request has ended, with an answer or without."""
        line = self._lines.get(address)
        began = line.running.pop(who, None) if line is not None else None
        if line is None or began is None:
            msg = f"{who} is not being served at {address}"
            raise ValueError(msg)
        line.duration += _FORGETTING * (max(now - began, 0.0) - line.duration)
        line.free_at = max(line.free_at, now + self.delay)

    def _call(self, line: _HostQueue, who: int, now: float, *, full: bool) -> float:
        """Return when the page is due; a page already in the queue keeps its place."""
        number = line.waiting[who].number if who in line.waiting else line.joined
        if number == line.joined:
            line.joined += 1
        first = line.first()
        pace = self.delay + line.duration / self.connections
        soonest = max(line.free_at, now + pace if full else now)
        when = soonest + pace * (number - first.number if first is not None else 0)
        when = max(when, math.nextafter(now, math.inf))
        line.waiting[who] = _AddressState(number, when)
        return when

    @staticmethod
    def _call_off(line: _HostQueue, now: float) -> None:
        """Let those go who did not come when they were called."""
        while line.waiting:
            who = next(iter(line.waiting))
            if line.waiting[who].called + _LATE >= now:
                return
            del line.waiting[who]

    def _tidy(self, now: float) -> None:
        """Forget addresses at rest once there are twice as many as before. O(addresses), after as many new ones."""
        if len(self._lines) < self._cleanup_at:
            return
        for address, line in list(self._lines.items()):
            self._call_off(line, now)
            if not (line.running or line.waiting) and line.free_at <= now:
                del self._lines[address]
        self._cleanup_at = max(_FEW, 2 * len(self._lines))
