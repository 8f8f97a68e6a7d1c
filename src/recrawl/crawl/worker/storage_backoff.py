"""Storage backoff: the disk is full or the store is unreachable, so the crawl waits and retries.

Nothing is lost meanwhile: visits stay in memory until they are acknowledged, and no new request starts. A failure that
cannot pass by itself, such as a damaged store, stops the run. An internal fault that does not concern one page is
waited for in the same way, because an immediate retry could fail a thousand times a second.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from recrawl.crawl.control.json_log import JsonLinesLog
from recrawl.crawl.visit.fault_isolation import FaultReporter
from recrawl.errors import DiskFullError, StoreError
from recrawl.formats.atomic_files import waits_for
from recrawl.schedule.politeness.retry import Backoff

RETRY_BACKOFF = Backoff(first=1.0, factor=2.0, longest=60.0)
"""Seconds until the next try."""


class StorageBackoff:
    """Counts failed tries, and computes the time of the next one."""

    def __init__(self, log: JsonLinesLog, faults: FaultReporter) -> None:
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
        """Record a failed try; return the time of the next one, seconds since the epoch.

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
        wait = float(RETRY_BACKOFF.wait(np.array([self._tries]))[0])
        if fault is None:
            self._faults.beside_pages(error)
            return now + wait
        details = {"reason": str(fault), "tries": self._tries, "wait": wait}
        with suppress(StoreError), self._faults.contained():  # the log buffers the event until the disk has room
            if isinstance(fault, DiskFullError):
                self._log.event("store", "waiting for disk space", level="warn", details=details)
            else:
                self._log.event("store", "waiting for the store", level="warn", details=details)
        return now + wait

    def over(self, now: float) -> None:
        """End the backoff: the last try succeeded."""
        if self._tries:
            details = {"tries": self._tries, "after": now - self._since}
            with suppress(StoreError), self._faults.contained():  # as above
                self._log.event("store", "storage works again", level="warn", details=details)
            self._tries, self.reason = 0, ""
