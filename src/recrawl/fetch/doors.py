"""The door to an address: whoever wants to ask a host there is let in when it is its turn (``schedule.turns``)."""

from __future__ import annotations

from dataclasses import dataclass

from recrawl.fetch.names import Names
from recrawl.schedule.turns import Turns
from recrawl.time import Clock


@dataclass(frozen=True, slots=True)
class Door:
    """Somebody at an address: inside, or told when to come back."""

    address: str
    """Empty if nobody knows where the host is: then there is nothing to wait for."""
    who: int
    until: float
    """Seconds since the epoch; ``-inf`` inside."""

    @property
    def is_open(self) -> bool:
        """Whether the request may be made now."""
        return self.until == float("-inf")


class Doors:
    """Finds the address of a URL, and lets hosts in there one after the other."""

    def __init__(self, names: Names, turns: Turns, clock: Clock) -> None:
        self._names = names
        self._turns = turns
        self._clock = clock

    def share(self, workers: int) -> None:
        """So many workers ask the same hosts, this one included."""
        self._turns.workers = workers

    async def enter(self, url: str, who: int) -> Door:
        """Go in, or learn when to come back. Whoever is in must ``leave``; ``who`` is a host, which is in once only."""
        found = await self._names.find(url)
        if not found.address:
            return Door("", who, float("-inf"))
        now = self._clock.now()
        until = self._turns.begin(found.address, who, now)
        return Door(found.address, who, float("-inf") if until <= now else until)

    async def wait(self, url: str, who: int) -> Door:
        """Go in as soon as possible."""
        while not (door := await self.enter(url, who)).is_open:
            await self._clock.sleep_until(door.until)
        return door

    def leave(self, door: Door) -> None:
        """The request is over."""
        if door.address and door.is_open:
            self._turns.done(door.address, door.who, self._clock.now())
