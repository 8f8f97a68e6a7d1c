"""A setback of our own: the disk is full, or the store is out of reach. The crawl waits and tries again.

What waits meanwhile is not lost: visits that were made stay in hand until they are acknowledged, and no new request
starts. A setback that cannot pass by itself, such as a damaged store, ends the run. A fault of our own code that is
not that of one page is waited for in the same way: to go on at once could fail a thousand times a second.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from recrawl.crawl.faults import Faults, waits_for
from recrawl.crawl.log import JsonLinesLog
from recrawl.errors import DiskFullError, StoreError
from recrawl.schedule.retry import Backoff

PATIENCE = Backoff(first=1.0, factor=2.0, longest=60.0)
"""Seconds until the next try."""


class Setback:
    """Counts the tries that failed, and says when to try again."""

    def __init__(self, log: JsonLinesLog, faults: Faults) -> None:
        self._log = log
        self._faults = faults
        self.is_our_fault = False
        """Whether our own code failed, not the disk or the store."""
        self._tries = 0
        self._since = 0.0
        self.reason = ""
        """Why the last try failed; empty if it did not."""

    @property
    def is_on(self) -> bool:
        """Whether the last try failed."""
        return self._tries > 0

    def met(self, error: Exception, now: float) -> float:
        """Take note of a try that failed; when to try again, seconds since the epoch.

        Raises:
            StoreError: waiting does not help.
        """
        fault = waits_for(error)
        if fault is not None and not fault.passing:
            raise fault
        self.is_our_fault = fault is None
        self._since = now if self._tries == 0 else self._since
        self._tries += 1
        self.reason = str(fault or repr(error))
        wait = float(PATIENCE.wait(np.array([self._tries]))[0])
        if fault is None:
            self._faults.beside_pages(error)
            return now + wait
        details = {"reason": str(fault), "tries": self._tries, "wait": wait}
        with suppress(StoreError), self._faults.contained():  # the log keeps the line until there is room
            if isinstance(fault, DiskFullError):
                self._log.event("store", "waiting for room on the disk", level="warn", details=details)
            else:
                self._log.event("store", "waiting for the store", level="warn", details=details)
        return now + wait

    def over(self, now: float) -> None:
        """It works again."""
        if self._tries:
            details = {"tries": self._tries, "after": now - self._since}
            with suppress(StoreError), self._faults.contained():  # as above
                self._log.event("store", "going on", level="warn", details=details)
            self._tries, self.reason = 0, ""
