"""Health of a worker, for service managers and for Prometheus.

A thread probes the store and the disk every few seconds, on its own connection. So it notices a store that does not
answer, a disk that hangs and an event loop that is blocked, independently of each other. A health check only reads the
last result and never waits. A result that is too old counts as unknown.
"""

from __future__ import annotations

import math
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from recrawl.crawl.control.runtime_limits import is_paused
from recrawl.crawl.units.unit_registry import UnitState, unit_state
from recrawl.errors import RecrawlError, StoreAwayError, StoreError
from recrawl.store.base import Store
from recrawl.time import to_iso

PROBE_EVERY = 5.0
"""Seconds between two probes."""
STALE_AFTER = 20.0
"""Seconds after which a result counts as unknown."""
LOOP_LATE, LOOP_DEAD = 10.0, 60.0
"""Seconds of lag of the event loop until the worker is not ready, and until it counts as dead."""
START_DEAD = 600.0
"""The same while a worker starts: loading and reading then block the event loop."""
STALLED = 900.0
"""Seconds without an acknowledged visit, although pages may be visited, after which a crawl counts as stalled: more
than the longest pause of a host plus the longest response."""
LEAST_ROOM = 100_000_000
"""Free bytes on the disk below which the worker is not ready."""
BEAT_EVERY = 1.0
"""Seconds between two beats of the event loop."""
_GRACE = 2.0
"""Seconds to wait at the end for a probe under way."""
_SHARE_OF_TIME = 0.02
"""Share of the time that counting due pages may take."""


@dataclass(frozen=True, slots=True)
class StoreFigures:
    """Figures of the whole store. One worker reports them for all."""

    due: int
    """Pages that are due, those of paused hosts included."""
    held: int
    """Due pages on paused hosts."""
    late: float
    """Seconds since the first of them was due."""
    paused: bool
    """Whether the whole crawl is paused."""
    free: int = 0
    """Due pages on hosts that are neither paused nor backing off for long."""
    unit: UnitState | None = None
    """The unit that the store is; ``None`` if there are no other units."""


@dataclass(frozen=True, slots=True)
class HealthProbe:
    """The result of a probe, and when it was made."""

    at: float
    """Monotonic clock, seconds."""
    store_error: str
    """Why the store is unreachable; empty if it is not."""
    figures: StoreFigures | None
    """``None`` if another worker reports them, or they are unknown."""
    disk_free: int | None
    """Bytes; ``None`` if the disk cannot be queried."""


@dataclass(frozen=True, slots=True)
class HealthAnswer:
    """The answer to a health check."""

    status: int
    """HTTP status: 200 or 503."""
    facts: dict[str, Any]


class HealthMonitor:
    """Watches one process from inside, between ``begin`` and ``end``. Any thread may call its methods."""

    def __init__(  # noqa: PLR0913 - what is watched, and by which clocks
        self,
        worker: str,
        folder: Path,
        open_store: Callable[[], Store],
        now: Callable[[], float],
        *,
        ask: Callable[[Store], None] = lambda _store: None,
        monotonic: Callable[[], float] = time.monotonic,  # noqa: TID251 - measures this process, and decides no visit
    ) -> None:
        """``folder`` is the workspace; ``now`` is seconds since the epoch; ``ask`` is called with each store probed."""
        self.worker = worker
        self._folder = folder
        self._open_store = open_store
        self._now = now
        self._ask = ask
        self._monotonic = monotonic
        self._probe: HealthProbe | None = None
        self._began = self._beat = monotonic()
        self._is_ready = False
        self._counted: StoreFigures | None = None
        self._count_at = -math.inf
        self._latest = -math.inf
        """When any worker last acknowledged a visit, as of the last query, seconds since the epoch."""
        self._progress: tuple[float | None, float] = None, -math.inf
        """The last visits that were known at the last progress."""
        self._progress_at = self._began
        """When a visit was last acknowledged, or none was to be made (monotonic clock)."""
        self.may_begin = False
        """Whether controls and budget allow a visit."""
        self.is_busy = False
        """Whether requests are under way, or visits wait to be acknowledged."""
        self._waits_for: Callable[[], str] = lambda: ""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="recrawl-health")
        self.reports_for_all = False
        """Whether this worker reports the figures of the whole store: see ``StoreRunControl.is_first``."""
        self.last_visit: float | None = None
        """When a visit was last acknowledged, seconds since the epoch."""

    def begin(self) -> None:
        """Start probing."""
        self._thread.start()

    def end(self) -> None:
        """Stop probing."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(_GRACE)  # a probe that hangs is left to the end of the process

    # -- told by the worker -------------------------------------------------------------------

    def beat(self) -> None:
        """Record that the event loop runs. Call it there every ``BEAT_EVERY`` seconds."""
        self._beat = self._monotonic()

    def starting(self) -> None:
        """Record that the worker starts, or restarts."""
        self._is_ready = self.reports_for_all = self.may_begin = self.is_busy = False
        self._began = self._monotonic()
        self._waits_for = lambda: ""

    def ready(self, waits_for: Callable[[], str] = lambda: "") -> None:
        """Record that the start is over. ``waits_for`` returns the failure that the worker waits for; empty if none."""
        self._waits_for = waits_for
        self._is_ready = True

    def acknowledged(self, at: float | None = None) -> None:
        """Record that visits were acknowledged, now or at ``at``."""
        self.last_visit = self._now() if at is None else at

    # -- asked by others ----------------------------------------------------------------------

    def loop_lag(self) -> float:
        """Seconds by which the event loop is late at this moment."""
        return max(self._monotonic() - self._beat - BEAT_EVERY, 0.0)

    def is_stale(self, at: float) -> bool:
        """Whether a result is too old (monotonic clock)."""
        return self._monotonic() - at > STALE_AFTER

    def time(self) -> float:
        """The monotonic clock, for :meth:`is_stale`."""
        return self._monotonic()

    @property
    def found(self) -> HealthProbe | None:
        """The result of the last probe; ``None`` if it is too old, or there was none yet."""
        probe = self._probe
        return None if probe is None or self.is_stale(probe.at) else probe

    def store_error(self) -> str:
        """Why the store is unreachable; empty if it is not."""
        found = self.found
        if found is not None:
            return found.store_error
        since = self._began if self._probe is None else self._probe.at
        if self._probe is None and not self.is_stale(since):
            return "It was not asked yet."
        return f"It has not answered for {self._monotonic() - since:.0f} s."

    def liveness(self) -> HealthAnswer:
        """Liveness: the event loop runs, so the process should not be restarted."""
        lag = self.loop_lag()
        alive = lag <= (LOOP_DEAD if self._is_ready else START_DEAD)
        facts = {
            "status": "ok" if alive else "failing",
            "reasons": [] if alive else [_late(lag)],
            "worker": self.worker,
            "loop_lag_seconds": round(lag, 3),
        }
        return HealthAnswer(200 if alive else 503, facts)

    def stalled(self) -> float:
        """Seconds without an acknowledged visit although pages may be visited, or requests are under way."""
        return self._monotonic() - self._progress_at if self._is_ready else 0.0

    def readiness(self, *, of_crawl: bool = True) -> HealthAnswer:
        """Readiness: whether it can work, with details; a stalled crawl counts if ``of_crawl``."""
        lag, found, error = self.loop_lag(), self.found, self.store_error()
        free = None if found is None else found.disk_free
        reasons = [] if self._is_ready else [f"The worker is starting, for {self._monotonic() - self._began:.0f} s."]
        if error:
            reasons.append(f"The store is out of reach: {error}")
        if lag > LOOP_LATE:
            reasons.append(_late(lag))
        if of_crawl and (stalled := self.stalled()) > STALLED:
            reasons.append(f"Pages may be visited, and no visit was acknowledged for {stalled:.0f} s.")
        if found is not None and free is None:
            reasons.append("The disk cannot be asked for its room.")
        if free is not None and free < LEAST_ROOM:
            reasons.append(f"The disk has {free:,} bytes of room.")
        if waits_for := self._waits_for():
            reasons.append(f"The crawl waits: {waits_for}")
        visited = self.last_visit
        return HealthAnswer(
            503 if reasons else 200,
            {
                "status": "ok" if not reasons else "failing" if self._is_ready else "starting",
                "reasons": reasons,
                "worker": self.worker,
                "store_up": not error,
                "loop_lag_seconds": round(lag, 3),
                "last_visit": None if visited is None else to_iso(visited),
                "seconds_since_last_visit": None if visited is None else round(max(self._now() - visited, 0.0), 1),
                "disk_free_bytes": free,
            },
        )

    # -- probing ------------------------------------------------------------------------------

    def _watch(self) -> None:
        while not self._over.is_set():
            self.probe()
            self._over.wait(PROBE_EVERY)

    def probe(self) -> None:
        """Probe once. Waits for store and disk as long as they take."""
        try:
            free: int | None = shutil.disk_usage(self._folder).free
        except OSError:
            free = None
        error, figures = "", None
        try:
            with self._open_store() as store:  # opened again: an open one still sees a file that was moved away
                figures = self._figures(store)
                self._ask(store)
        except RecrawlError as fault:
            error = str(fault)
        except Exception as bug:  # noqa: BLE001 - whatever a driver raises, the worker has no store; the thread goes on
            error = repr(bug)
        self._follow_progress(figures)
        self._probe = HealthProbe(self._monotonic(), error, figures, free)

    def _follow_progress(self, figures: StoreFigures | None) -> None:
        """Check whether there was a visit since the last probe, or none to be made."""
        progress = self.last_visit, self._latest
        free = figures is not None and figures.free > 0 and not figures.paused
        if progress != self._progress or not (self.may_begin and (free or self.is_busy)):
            self._progress, self._progress_at = progress, self._monotonic()

    def _figures(self, store: Store) -> StoreFigures | None:
        """The figures of the whole store, if this worker reports them; raises if the store is unreachable."""
        told, now = store.controls(), self._now()
        if not self.reports_for_all:
            self._count_at = -math.inf
            return None
        with suppress(StoreError):  # it answered just now; if this takes too long, the rest may still be known
            latest = store.latest_visits(1)
            self._latest = float(latest.time[0]) if len(latest) else self._latest
        if self._monotonic() >= self._count_at:
            began = self._monotonic()
            try:
                backlog = store.backlog(now)
                late = max(now - backlog.earliest, 0.0) if backlog.due else 0.0
                free = backlog.due - backlog.paused - backlog.resting
                self._counted = StoreFigures(backlog.due, backlog.paused, late, is_paused(told), free)
            except StoreAwayError:
                raise
            except StoreError:  # it answers, but cannot count in time
                self._counted = None
            self._count_at = began + (self._monotonic() - began) / _SHARE_OF_TIME
        return None if self._counted is None else replace(self._counted, unit=unit_state(told))


def _late(lag: float) -> str:
    return f"The event loop has stood still for {lag:.0f} s."
