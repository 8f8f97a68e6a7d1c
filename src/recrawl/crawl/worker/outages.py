"""Outages: of the network, of the disk or the store, and of a worker that died.

**Network.** :class:`OutageDetector` separates hosts that are down from a network outage of our own. One silent host
proves nothing. Many silent hosts in a row, with no response from any other host in between, mean that we are offline.
It would then be wrong to record thousands of failed visits, and useless to continue: unanswered pages are requested
again later, one request at a time until one succeeds. Only silence counts: no DNS server answers, no route to the
address, no connection in time. A host that refuses, sends invalid HTTP or has no DNS name was reached in some way. The
time is an argument. :func:`is_well` returns whether the result of one request means that its host works.

**Disk and store.** :class:`StorageBackoff` waits and retries while the disk is full or the store is unreachable.
Nothing is lost meanwhile: visits stay in memory until they are acknowledged, and no new request starts. A failure that
cannot pass by itself, such as a damaged store, stops the run. An internal fault that does not concern one page is
waited for in the same way, because an immediate retry could fail a thousand times a second.

**Dead workers.** Their files and leases are brought into a clear state before the next worker starts. A visit counts
once the store acknowledges it, and its bytes are on disk before that. So a file that a dead worker left open may hold
records of unacknowledged visits after the last acknowledged record. Their pages are still due and will be fetched
again. The records are cut off: a reader finds both visit and record, or neither.
"""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np

from recrawl.crawl.control.json_log import JsonLinesLog
from recrawl.crawl.control.worker_registry import WorkerRegistry, dead_workers
from recrawl.crawl.visit.fault_isolation import FaultReporter
from recrawl.crawl.visit.visit_machine import AuxiliaryFetched, Deferred, Result, RobotsFetched, VisitDone
from recrawl.errors import DiskFullError, StoreError
from recrawl.formats.atomic_files import waits_for
from recrawl.formats.warc.warc_check import Keeper, Span
from recrawl.formats.warc.warc_records import AUXILIARY
from recrawl.formats.warc.warc_stream import record_at
from recrawl.model.visits import EMPTY, NO_NAME_SERVER, NO_ROUTE, TOO_SLOW
from recrawl.schedule.politeness.retry import Backoff
from recrawl.store.base import CaptureIndex, PageTable, ScheduleStore
from recrawl.time import MINUTE

_OVERLOADED = (429, 502, 503, 504)


def is_well(result: Result) -> bool | None:
    """False if the host did not answer or is overloaded; ``None`` if the result is no evidence on the host.

    A 500 is an answer: it concerns one page.
    """
    if isinstance(result, RobotsFetched):
        return result.rules.available if result.asked else None
    asked_nothing = isinstance(result, Deferred) or (isinstance(result, AuxiliaryFetched) and not result.asked)
    if asked_nothing or result.capture is None:
        return None
    return result.capture.status > 0 and result.capture.status not in _OVERLOADED


ENOUGH = 5.0
"""Hosts that answered before and are silent now, until we count as offline. A host that never answered counts a
quarter."""
_STRANGER = 0.25
DOUBT = MINUTE
"""Maximum seconds for which a silent host is in doubt; after that it counts as down."""
OFFLINE_RETRY = Backoff(first=5.0, factor=2.0, longest=5 * MINUTE)
"""Seconds until the next request while we are offline."""


class NetworkOutage:
    """The state of our own connection, by the last requests.

    >>> outage = NetworkOutage()
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
        """By host, how much its silence counts, since the last response from any host."""
        self._tries = 0
        self.try_at = -math.inf
        """When one request may test the connection, seconds since the epoch."""

    @property
    def is_on(self) -> bool:
        """Whether we are offline."""
        return self._tries > 0

    @property
    def hosts(self) -> int:
        """Number of hosts that have been silent since the last response from any host."""
        return len(self._silent)

    def heard(self) -> bool:
        """Record a response from outside; return whether we were offline until now."""
        was_on = self.is_on
        self._silent.clear()
        self._tries, self.try_at = 0, -math.inf
        return was_on

    def silent(self, host: int, now: float, *, trusted: bool) -> None:
        """Record that a host could not be reached; ``trusted`` if it answered before."""
        self._silent[host] = 1.0 if trusted else max(_STRANGER, self._silent.get(host, 0.0))
        if self.is_on or sum(self._silent.values()) >= ENOUGH:
            self._tries += now >= self.try_at
            self.try_at = max(self.try_at, now + float(OFFLINE_RETRY.wait(np.array([self._tries]))[0]))

    def room(self, now: float, running: int, room: int) -> int:
        """How many of ``room`` requests may start while ``running`` run; while offline, one now and then."""
        if not self.is_on:
            return room
        return min(room, 1) if not running and now >= self.try_at else 0


class OutageDetector:
    """Holds results of unreachable hosts until it is clear whether the host is down or we are offline."""

    def __init__(self, log: JsonLinesLog) -> None:
        self._log = log
        self.outage = NetworkOutage()
        self.held: list[Result] = []
        self.ends = math.inf
        """When the held results are believed although nothing became clear, seconds since the epoch."""

    def add_result(self, result: Result, now: float) -> tuple[list[Result], list[Result]]:
        """Add a result; return the results to believe now, and those to request again."""
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
        """Return all held results, and hold none."""
        held, self.held, self.ends = self.held, [], math.inf
        return held


def is_silence(result: Result) -> bool | None:
    """Whether nothing at all came back from outside; ``None`` if nothing was sent."""
    if isinstance(result, RobotsFetched):
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


def may_be_our_fault(result: Result, stalled: float, took: float) -> bool:
    """Whether a request of ``took`` seconds failed because our event loop was blocked for ``stalled`` of them.

    A time-out may have: DNS, connection or response. A host that answers within half of a time-out only misses it if we
    are blocked for the other half, so shorter stalls do not count. A host may also have closed the connection because
    we were silent, but none does that within a few seconds. Invalid HTTP would come again.
    """
    if not stalled or stalled < _SHARE * took or not isinstance(result, VisitDone | RobotsFetched | AuxiliaryFetched):
        return False
    if isinstance(result, RobotsFetched):
        failure, truncated = result.rules.failure, ""
    elif result.capture is None:
        return False
    else:
        failure, truncated = result.capture.failure, result.capture.truncated
    if failure in _TIMED_OUT or truncated == "time":
        return True
    return stalled >= _HOSTS_WAIT and (failure == EMPTY or truncated == "disconnect")


_SHARE = 0.5
"""Share of a request in which our event loop must have been blocked."""
_HOSTS_WAIT = 5.0
"""Seconds for which every host waits for a silent client."""
_TIMED_OUT = frozenset({NO_NAME_SERVER, NO_ROUTE, TOO_SLOW})


STORAGE_RETRY = Backoff(first=1.0, factor=2.0, longest=60.0)
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
        wait = float(STORAGE_RETRY.wait(np.array([self._tries]))[0])
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


_MOST = 10_000
"""Maximum captures after the last acknowledged one that can have been in flight. More belong to another store."""
_CAPTURES = frozenset({"response", "revisit", "resource"})


def release_dead_workers(store: ScheduleStore, folder: Path, now: float, pause: float) -> list[str]:
    """Return the leases of workers that died in a workspace and remove them from the worker registry; their names.

    They may have requested a host just before, so those hosts pause first: as long as they ask for, at least ``pause``
    seconds.
    """
    dead = []
    for worker in dead_workers(folder):
        store.release_worker(worker, now, pause=pause)
        WorkerRegistry(store, worker).leave(now)
        dead.append(worker)
    return dead


def acknowledged_by(store: CaptureIndex) -> Keeper:
    """Keeps a file up to the last record that the store acknowledges, and later records that belong to no page.

    Robots.txt, sitemaps and documents about the archive are not visits, and stay. A file with nothing but its first
    record is deleted. If too many records are unknown, another store must have acknowledged them, and all stay. Reads
    only the records after the last acknowledged one.
    """

    def keep(file: BinaryIO, name: str, whole: list[Span]) -> list[Span]:
        known = set(store.capture_offsets(name).tolist())
        last = next((place for place in reversed(range(len(whole))) if whole[place][0] in known), -1)
        kept, dropped = whole[: last + 1], set[str]()
        for span in whole[last + 1 :]:
            headers = _headers(file, span[0])
            if _is_of_a_page(store, headers):
                dropped.add(headers["WARC-Record-ID"])
            elif headers.get("WARC-Concurrent-To") not in dropped:
                kept.append(span)
        if len(dropped) > _MOST:
            return whole
        return kept if len(kept) > 1 else []

    return keep


def _headers(file: BinaryIO, start: int) -> dict[str, str]:
    """The headers of the record at an offset; empty if it is damaged, then it is no visit of ours."""
    record = record_at(file, start)
    headers: dict[str, str] = {} if record is None else record.headers.to_dict()
    return headers


def _is_of_a_page(store: PageTable, headers: dict[str, str]) -> bool:
    """Whether a record is a capture of a page. An import may know robots.txt and the like as pages, too."""
    if AUXILIARY in headers:
        return False
    return headers.get("WARC-Type") in _CAPTURES and store.find(headers.get("WARC-Target-URI", "")) is not None
