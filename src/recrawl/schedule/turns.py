"""Turns: how many hosts share one address. Pure state, told what happens; it reads no clock.

A machine may answer under thousands of names. To it, one polite visitor per name is a crowd, so the address has a pause
and a number of connections of its own, beside those of each host.

Rules of this file:
 1. No request to an address begins within its delay after another one there began or ended, and only so many run at
    once. With one connection this is a pause between the end of one request and the beginning of the next.
 2. Whoever cannot begin joins the line of the address and is told when to come back: each one in the line at
    another time, by the pace at which the address answers. So each host comes back a few times, however long the
    line is.
 3. Whoever is not in the line waits behind those who are. Whoever does not come when called leaves the line.
 4. Several processes that know of each other's number, and of nothing else, each take so much longer pauses that all
    together ask an address no more often than one alone would.
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
class TurnRules:
    """How much one address is asked for by all its hosts together."""

    delay: float = 0.5
    """Seconds. Two requests a second are nothing to a machine that serves many sites, and 170,000 a day to us."""
    connections: int = 4
    """Requests at once: fewer than a browser makes to a single host, more than one, because a site that hangs would
    hold up all others at its address."""

    def __post_init__(self) -> None:
        if not (0 <= self.delay < math.inf and self.connections >= 1):
            raise ConfigError(
                f"These rules for one address make no sense: {self}.",
                "The delay may not be negative, and at least one connection is needed.",
            )


class _Place(NamedTuple):
    """A place in a line."""

    number: int
    called: float
    """When its owner was told to come back."""


@dataclass(slots=True)
class _Line:
    """One address."""

    free_at: float = -math.inf
    duration: float = 0.0
    """Of an answer, on average."""
    joined: int = 0
    """How many ever stood in the line."""
    running: dict[int, float] = field(default_factory=dict)
    """Who is being served, and since when."""
    waiting: dict[int, _Place] = field(default_factory=dict)
    """Who waits, by place."""

    def first(self) -> _Place | None:
        return next(iter(self.waiting.values()), None)


class Turns:
    """The lines of all addresses. Every call is O(1) amortised; an address that nobody asks is forgotten."""

    def __init__(self, rules: TurnRules | None = None) -> None:
        self.rules = rules or TurnRules()
        self.workers = 1
        """How many keep these turns, each for itself."""
        self._lines: dict[str, _Line] = {}
        self._tidy_at = _FEW

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
        """Begin a request, or learn when to come back for it.

        Returns ``now`` if the request has begun, which lasts until ``done``; else a later time, seconds since the
        epoch. Nobody may begin twice at one address.

        >>> turns = Turns(TurnRules(delay=2.0, connections=1))
        >>> [turns.begin("192.0.2.1", who, 100.0) for who in (1, 2, 3)]
        [100.0, 102.0, 104.0]
        """
        line = self._lines.get(address)
        if line is None:
            self._tidy(now)
            line = self._lines[address] = _Line()
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

    def _call(self, line: _Line, who: int, now: float, *, full: bool) -> float:
        """Tell somebody when to come back; whoever has a place in the line keeps it."""
        number = line.waiting[who].number if who in line.waiting else line.joined
        if number == line.joined:
            line.joined += 1
        first = line.first()
        pace = self.delay + line.duration / self.connections
        soonest = max(line.free_at, now + pace if full else now)
        when = soonest + pace * (number - first.number if first is not None else 0)
        when = max(when, math.nextafter(now, math.inf))
        line.waiting[who] = _Place(number, when)
        return when

    @staticmethod
    def _call_off(line: _Line, now: float) -> None:
        """Let those go who did not come when they were called."""
        while line.waiting:
            who = next(iter(line.waiting))
            if line.waiting[who].called + _LATE >= now:
                return
            del line.waiting[who]

    def _tidy(self, now: float) -> None:
        """Forget addresses at rest once there are twice as many as before. O(addresses), after as many new ones."""
        if len(self._lines) < self._tidy_at:
            return
        for address, line in list(self._lines.items()):
            self._call_off(line, now)
            if not (line.running or line.waiting) and line.free_at <= now:
                del self._lines[address]
        self._tidy_at = max(_FEW, 2 * len(self._lines))
