"""The IP gate: admits requests to an IP address, in turn for the hosts that share it.

``schedule.politeness.ip_limiter`` holds the rules.
"""

from __future__ import annotations

from dataclasses import dataclass

from recrawl.fetch.http.dns import HostResolver
from recrawl.schedule.politeness.ip_limiter import IpLimiter
from recrawl.time import Clock


@dataclass(frozen=True, slots=True)
class IpAdmission:
    """A request at an address: admitted, or deferred until a time."""

    address: str
    """Empty if the address of the host is unknown: then there is nothing to wait for."""
    who: int
    until: float
    """Seconds since the epoch; ``-inf`` if admitted."""

    @property
    def is_open(self) -> bool:
        """Whether the request may be made now."""
        return self.until == float("-inf")


class IpGate:
    """Resolves the address of a URL, and admits hosts there one after the other."""

    def __init__(self, names: HostResolver, turns: IpLimiter, clock: Clock) -> None:
        self._names = names
        self._turns = turns
        self._clock = clock

    def share(self, workers: int) -> None:
        """Set the number of workers that request the same hosts, this one included."""
        self._turns.workers = workers

    async def enter(self, url: str, who: int) -> IpAdmission:
        """Enter, or get the time to retry.

        Call ``leave`` after an admission; ``who`` is a host, which is admitted once only.
        """
        found = await self._names.find(url)
        if not found.address:
            return IpAdmission("", who, float("-inf"))
        now = self._clock.now()
        until = self._turns.begin(found.address, who, now)
        return IpAdmission(found.address, who, float("-inf") if until <= now else until)

    async def wait(self, url: str, who: int) -> IpAdmission:
        """Enter as soon as possible."""
        while not (door := await self.enter(url, who)).is_open:
            await self._clock.sleep_until(door.until)
        return door

    def leave(self, door: IpAdmission) -> None:
        """End the request."""
        if door.address and door.is_open:
            self._turns.done(door.address, door.who, self._clock.now())
