"""A robots.txt as it was read: what workers and restarts share of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from recrawl.model.values import plain_value


@plain_value
class RobotsCopy:
    """What a host said when its robots.txt was last read. It is kept as sent, whoever it will be read for."""

    origin: str
    """``scheme://host:port``, the port only if it is not the usual one."""
    fetched_at: float
    """When it was read, seconds since the epoch."""
    expires: float
    """When it must be read again, seconds since the epoch."""
    status: int
    """Of the last answer on the way to it; 0 if it was only asked to be read again."""
    reason: str
    """What came of reading it, in words."""
    available: bool
    """False if the host could not tell its rules, so that nothing is allowed."""
    url: str
    """Where it was found, after redirects."""
    body: bytes
    """Its text, decoded, at most 500 KiB; empty if there are no rules."""
    changed: float = 0.0
    """When it was last found to differ from the copy before, or asked to be read again; 0 if never."""


class RobotsCopies(Protocol):
    """Keeps one copy for each origin. Bounded: a copy that expired a month ago is dropped."""

    def robots_copy(self, origin: str) -> RobotsCopy | None:
        """The copy of an origin, if there is one; it may have expired."""
        ...

    def keep_robots_copies(self, copies: Sequence[RobotsCopy]) -> None:
        """Keep copies in place of those before, and drop those that expired a month ago."""
        ...

    def expire_robots_copies(self, origins: Sequence[str], now: float) -> None:
        """Have these origins' robots.txt read again before anything else of theirs, by every worker."""
        ...

    def changed_robots_copies(self, since: float) -> list[RobotsCopy]:
        """Copies (without their text) that changed, or were asked to be read again, since a time."""
        ...
