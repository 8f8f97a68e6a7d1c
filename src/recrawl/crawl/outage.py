"""Is the host gone, or are we? When nothing comes back from anywhere, it is our own network that is down.

Told how requests ended, by host. A host that cannot be reached says nothing by itself; many in a row, with no word
from any other between them, say that we are cut off. Then it would be wrong to note thousands of failed visits, and
useless to go on asking: what was not heard of is asked again later, one request at a time until one gets through.

Only silence counts: no name server answers, no way to the address, no connection in time. A host that refuses us, sends
nonsense or has no name is heard of: whoever said so is out there. Pure: the time is an argument.
"""

from __future__ import annotations

import math

import numpy as np

from recrawl.crawl.log import JsonLinesLog
from recrawl.crawl.target import Result, RulesRead
from recrawl.model.failures import (
    BROKEN_OFF,
    EMPTY,
    NO_CONNECTION,
    NO_NAME_SERVER,
    NO_ROUTE,
    NO_TRUST,
    TOO_SLOW,
)
from recrawl.schedule.retry import Backoff
from recrawl.time import MINUTE

ENOUGH = 5.0
"""Hosts that answered before and are silent now, until we are cut off. One that never answered counts a quarter."""
_STRANGER = 0.25
DOUBT = MINUTE
"""Seconds for which silence is doubtful at most; then it is the host's."""
PATIENCE = Backoff(first=5.0, factor=2.0, longest=5 * MINUTE)
"""Seconds until the next request while we are cut off."""


class Outage:
    """What the last requests say about our own connection.

    >>> outage = Outage()
    >>> for host in range(5):
    ...     outage.silent(host, now=0.0, trusted=True)
    >>> outage.is_on, outage.try_at
    (True, 5.0)
    >>> outage.heard()
    True
    >>> outage.is_on
    False
    """

    def __init__(self) -> None:
        self._silent: dict[int, float] = {}
        """How much the silence of each host counts, since there was last a word from anybody."""
        self._tries = 0
        self.try_at = -math.inf
        """When one request may be made although we are cut off, seconds since the epoch."""

    @property
    def is_on(self) -> bool:
        """Whether we are cut off."""
        return self._tries > 0

    @property
    def hosts(self) -> int:
        """How many hosts have been silent since there was last a word from anybody."""
        return len(self._silent)

    def heard(self) -> bool:
        """There was a word from outside; whether we were cut off until now."""
        was_on = self.is_on
        self._silent.clear()
        self._tries, self.try_at = 0, -math.inf
        return was_on

    def silent(self, host: int, now: float, *, trusted: bool) -> None:
        """A host could not be reached; ``trusted`` if it answered before."""
        self._silent[host] = 1.0 if trusted else max(_STRANGER, self._silent.get(host, 0.0))
        if self.is_on or sum(self._silent.values()) >= ENOUGH:
            self._tries += now >= self.try_at
            self.try_at = max(self.try_at, now + float(PATIENCE.wait(np.array([self._tries]))[0]))

    def room(self, now: float, running: int, room: int) -> int:
        """How many of ``room`` requests may begin while so many run: all of them, or one now and then."""
        if not self.is_on:
            return room
        return min(room, 1) if not running and now >= self.try_at else 0


class Doubts:
    """Results of hosts that could not be reached, held until it is clear whether that is because of them or of us."""

    def __init__(self, log: JsonLinesLog) -> None:
        self._log = log
        self.outage = Outage()
        self.held: list[Result] = []
        self.ends = math.inf
        """When what is held is to be believed although nothing became clear, seconds since the epoch."""

    def weigh(self, result: Result, now: float) -> tuple[list[Result], list[Result]]:
        """Take a result; what can be believed now, and what has to be asked for again."""
        silence, target = is_silence(result), result.target
        if silence is None:
            return [result], []
        if not silence:
            if self.outage.heard():
                self._log.event("fetch", "hosts can be reached again", level="warn")
            return [*self.take(), result], []
        was_on = self.outage.is_on
        self.outage.silent(target.host, now, trusted=bool(target.known and target.known.validators.digest))
        self.held.append(result)
        self.ends = min(self.ends, now + DOUBT)
        if not self.outage.is_on:
            return [], []
        if not was_on:
            details = {"hosts": self.outage.hosts, "tryAt": self.outage.try_at}
            self._log.event("fetch", "no host can be reached", level="error", details=details)
        return [], self.take()

    def take(self) -> list[Result]:
        """All that is held, which then is not any more."""
        held, self.held, self.ends = self.held, [], math.inf
        return held


def is_silence(result: Result) -> bool | None:
    """Whether nothing at all came back from outside; ``None`` if nothing was asked."""
    if isinstance(result, RulesRead):
        if not result.asked:
            return None
        failure = result.rules.failure
    elif result.capture is None:
        return None
    else:
        failure = result.capture.failure
        if not failure and not result.capture.status:
            return None
    return failure in {NO_NAME_SERVER, NO_ROUTE}


def is_unanswered(result: Result) -> bool:
    """Whether a request failed in a way that may be our own fault, if our event loop stood still meanwhile.

    No name server, no connection in time, no answer in time, or a connection that was closed since we did not read.
    """
    if isinstance(result, RulesRead):
        return result.rules.failure in _OUR_FAULT
    capture = result.capture
    return capture is not None and (capture.failure in _OUR_FAULT or capture.truncated in _CUT_SHORT)


_OUR_FAULT = frozenset({NO_NAME_SERVER, NO_ROUTE, TOO_SLOW, BROKEN_OFF, EMPTY, NO_CONNECTION, NO_TRUST})
_CUT_SHORT = frozenset({"time", "disconnect"})
"""Why an answer may have ended before its time (conventions W8)."""
