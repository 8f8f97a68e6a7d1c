"""Politeness: when a host may be asked again. Pure state, told what happens; it reads no clock.

Rules of this file:
 1. One request at a time to a host; the pause begins when the answer has arrived.
 2. The pause is the host's own crawl-delay, up to a cap; without one, a multiple of the time its last answer took,
    within bounds: a slow host is left alone longer.
 3. A host that asks for a longer pause (Retry-After) gets it; no later event makes it shorter.
"""

from __future__ import annotations

from dataclasses import dataclass

from recrawl.errors import ConfigError


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


class Politeness:
    """The state of all hosts. Every call is O(1); a host never heard of is free."""

    def __init__(self, rules: PolitenessRules | None = None) -> None:
        self.rules = rules or PolitenessRules()
        self._crawl_delay: dict[int, float] = {}
        self._free_at: dict[int, float] = {}
        self._busy: set[int] = set()

    def set_crawl_delay(self, host: int, seconds: float | None) -> None:
        """What robots.txt of this host asks for; ``None`` if it asks for nothing. Holds from the next answer on."""
        if seconds is None:
            self._crawl_delay.pop(host, None)
        else:
            self._crawl_delay[host] = seconds

    def block_until(self, host: int, when: float) -> None:
        """Leave the host alone until ``when``, seconds since the epoch; never shortens a pause."""
        self._free_at[host] = max(when, self._free_at.get(host, when))

    def free_at(self, host: int) -> float:
        """When the host may next be asked, seconds since the epoch; -inf for any time, inf while a request runs."""
        return float("inf") if host in self._busy else self._free_at.get(host, float("-inf"))

    def begin(self, host: int, now: float) -> None:
        """A request to the host starts. It must be free: anything else is a bug of the caller."""
        if self.free_at(host) > now:
            msg = f"host {host} may not be asked at {now}: free at {self.free_at(host)}"
            raise ValueError(msg)
        self._busy.add(host)

    def done(self, host: int, now: float, duration: float) -> None:
        """The request has ended, with an answer or without, after ``duration`` seconds; the pause begins."""
        if host not in self._busy:
            msg = f"no request to host {host} is running"
            raise ValueError(msg)
        self._busy.remove(host)
        self.block_until(host, now + self.rules.pause(duration, self._crawl_delay.get(host)))
