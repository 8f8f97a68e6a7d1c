"""What a store promises to those who look captures up by time and by key."""

from __future__ import annotations

from typing import Protocol

from recrawl.model import FloatArray, IntArray
from recrawl.store.values import CaptureEnds, Captures, KeyedCaptures, KeyRange


class LookUps(Protocol):
    """Part of :class:`recrawl.store.base.Store`, and under its rules."""

    def captures_between(
        self, page: int, since: float, until: float, limit: int, *, backwards: bool = False
    ) -> Captures:
        """At most ``limit`` captures of a page with since <= time <= until, by time, or from the last to the first.

        Costs what is returned, however many captures there are.
        """
        ...

    def capture_ends(self, page: int) -> CaptureEnds | None:
        """First, last and number of the captures of a page; ``None`` if it has none. Looks at each of them."""
        ...

    def captures_by_key(self, keys: KeyRange, limit: int, skip: int = 0) -> KeyedCaptures:
        """At most ``limit`` captures of all pages in a range of keys, by key (byte by byte) and time.

        The first ``skip`` are left out. Costs what is skipped and returned, and pages without captures on the way.
        """
        ...

    def count_by_key(self, keys: KeyRange) -> int:
        """How many captures there are in a range of keys and time. Looks at each of them."""
        ...

    def last_page(self) -> int:
        """The largest id of a page; 0 if there is none."""
        ...

    def drop_captures(self, page: IntArray, time: FloatArray) -> int:
        """Forget captures that an archive told of, and take back their visits; return how many there were.

        What a visit of our own brought stays: its bytes are in our own files. The pages wait to be judged anew.
        """
        ...
