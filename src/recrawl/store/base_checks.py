"""What a store promises to those who check it, copy it and bring it back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from recrawl.store.values import CaptureRecord, Captures

Tell = Callable[[str, int, int], None]
"""Told how far a long piece of work is: its name, what is done, and the whole."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Rows of a store that contradict each other, by kind."""

    kind: str
    """A key of ``recrawl.crawl.verify.KINDS``, which says what it means and how bad it is."""
    count: int
    examples: tuple[str, ...]
    """A few of them, in words."""
    repaired: int = 0
    """How many of them are right now."""


class Horizon(NamedTuple):
    """How far ahead of now a time may lie, in seconds, before it is taken for the trace of a wrong clock."""

    lease: float = 7_200.0
    """The end of a lease, and of a hold on a host. Leases last minutes."""
    ready: float = 31 * 86_400.0
    """When a host may be asked again. Retry-After counts for 30 days at most."""
    due: float = 20 * 365 * 86_400.0
    """When a page is due, if it is ever."""
    visit: float = 60.0
    """When a visit was made."""


class LeaseRow(NamedTuple):
    """One lease."""

    page: int
    worker: str
    until: float
    """Seconds since the epoch."""


class Checks(Protocol):
    """Part of :class:`recrawl.store.base.Store`, and under its rules."""

    def engine_faults(self, *, thorough: bool) -> list[str]:
        """What the database engine finds wrong with its own file; ``thorough`` compares indexes with tables, too.

        Nothing is asked of PostgreSQL, which checks its pages when it reads them.
        """
        ...

    def rebuild_indexes(self) -> None:
        """Make all indexes of an SQLite file anew from the tables."""
        ...

    def check_derived(self, now: float, horizon: Horizon, tell: Tell, *, repair: bool) -> list[Fault]:
        """Compare every derived table with its source, and repair it if asked to.

        Visits, captures and pages are never changed. Runs in short transactions, so a crawl may go on beside it; memory
        does not grow with the store.
        """
        ...

    def captures_after(self, page: int, time: float, limit: int) -> Captures:
        """The first ``limit`` captures behind a page and time, by page and time: to read all of them piece by piece."""
        ...

    def restore_captures(self, captures: Sequence[CaptureRecord]) -> int:
        """Note again where captures of our own lie, if the store does not know; return how many it did not know."""
        ...

    def last_offsets(self) -> dict[str, int]:
        """Where the last capture of our own in each archive file begins. Looks at every capture once."""
        ...

    def leases(self) -> list[LeaseRow]:
        """Every lease, by page."""
        ...

    def drop_leases(self, now: float, pause: float) -> int:
        """End all leases and holds, whoever has them, and forget all workers; return how many leases there were.

        For a copy of a store, whose workers are not at work there. Held hosts rest for ``pause`` seconds, or as long as
        they ask for: nobody knows whether they had just been asked.
        """
        ...
