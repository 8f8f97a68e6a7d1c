"""What the frontier needs of its queues, however they are built."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from recrawl.model import FloatArray, IntArray


class Fetches(NamedTuple):
    """Pages to fetch now, in this order; their hosts are taken until they are done."""

    page: IntArray
    host: IntArray
    until: float
    """Nothing more may be fetched before this time, seconds since the epoch; the time asked for if not known."""


class Queues(Protocol):
    """Pages on offer, by host and due time. ``Frontier`` says what each call means."""

    def __len__(self) -> int: ...

    def offer(self, page: IntArray, host: IntArray, due: FloatArray) -> None:
        """Add pages, or give them a new due time and host; of equal ids the last counts."""
        ...

    def withdraw(self, page: IntArray) -> None:
        """Take pages off."""
        ...

    def next_many(self, now: float, most: int) -> Fetches:
        """What may be fetched at ``now``."""
        ...

    def done(self, page: int, host: int, now: float, duration: float) -> None:
        """A fetch has ended."""
        ...

    def done_many(self, page: IntArray, host: IntArray, now: float, duration: FloatArray) -> None:
        """Fetches have ended."""
        ...

    def undone(self, page: int, host: int, until: float) -> None:
        """A fetch did not take place; its host is left alone until then."""
        ...
