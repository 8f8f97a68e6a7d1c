"""Whether a worker is well, for service managers and for whoever scrapes its metrics.

A thread of its own probes the store and the disk every few seconds, on a connection of its own. So a store that does
not answer, a disk that hangs and an event loop that stands still are noticed, each without the help of the others.
Whoever asks only reads what was found last, and never waits. What was found too long ago counts as unknown: no value
is told as if it were of now.
"""

from __future__ import annotations

import math
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recrawl.crawl.controls import is_paused
from recrawl.errors import RecrawlError, StoreAwayError, StoreError
from recrawl.store.base import Store
from recrawl.time import to_iso

PROBE_EVERY = 5.0
"""Seconds between two probes."""
STALE_AFTER = 20.0
"""Seconds after which what was found counts as unknown."""
LOOP_LATE, LOOP_DEAD = 10.0, 60.0
"""Seconds by which the event loop may be late until the worker is not ready, and until it counts as dead."""
LEAST_ROOM = 100_000_000
"""Bytes on the disk below which the worker is not ready."""
BEAT_EVERY = 1.0
"""Seconds between two beats of the event loop."""
_GRACE = 2.0
"""Seconds for which, in the end, a probe that is under way is waited for."""
_SHARE_OF_TIME = 0.02
"""Of the time that counting what is due may take."""


@dataclass(frozen=True, slots=True)
class StoreFigures:
    """What is true of the whole store, whoever works on it. One worker tells it for all."""

    due: int
    """Pages that are due, those of paused hosts included."""
    held: int
    """Those of them on paused hosts."""
    late: float
    """Seconds since the first of them was due."""
    paused: bool
    """Whether the whole crawl is paused."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What was found, and when."""

    at: float
    """Of the monotonic clock, seconds."""
    store_error: str
    """Why the store is out of reach; empty if it is not."""
    figures: StoreFigures | None
    """``None`` if it is for another worker to tell them, or nobody can."""
    disk_free: int | None
    """Bytes; ``None`` if the disk cannot be asked."""


@dataclass(frozen=True, slots=True)
class HealthAnswer:
    """What a health check is told."""

    status: int
    """Of HTTP: 200 or 503."""
    facts: dict[str, Any]


class Health:
    """Watches one process from within, between ``begin`` and ``end``. Methods may be called by any thread."""

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
        self._probe: Probe | None = None
        self._began = self._beat = monotonic()
        self._is_ready = False
        self._counted: StoreFigures | None = None
        self._count_at = -math.inf
        self._waits_for: Callable[[], str] = lambda: ""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="recrawl-health")
        self.tells_for_all = False
        """Whether this worker tells what is true of the whole store: see ``Steered.is_first``."""
        self.last_visit: float | None = None
        """When a visit was last acknowledged, seconds since the epoch."""

    def begin(self) -> None:
        """Probe from now on."""
        self._thread.start()

    def end(self) -> None:
        """Probe no more."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(_GRACE)  # a probe that hangs is left to the end of the process

    # -- told by the worker -------------------------------------------------------------------

    def beat(self) -> None:
        """The event loop turns. To be called there every ``BEAT_EVERY`` seconds."""
        self._beat = self._monotonic()

    def starting(self) -> None:
        """The worker starts, or starts again."""
        self._is_ready = self.tells_for_all = False
        self._waits_for = lambda: ""

    def ready(self, waits_for: Callable[[], str] = lambda: "") -> None:
        """The start is over. ``waits_for`` says which trouble of ours the worker waits out; empty if there is none."""
        self._waits_for = waits_for
        self._is_ready = True

    def acknowledged(self, at: float | None = None) -> None:
        """Visits were acknowledged, now or then."""
        self.last_visit = self._now() if at is None else at

    # -- asked by others ----------------------------------------------------------------------

    def loop_lag(self) -> float:
        """Seconds by which the event loop is late at this moment."""
        return max(self._monotonic() - self._beat - BEAT_EVERY, 0.0)

    def is_stale(self, at: float) -> bool:
        """Whether something was found too long ago, by the monotonic clock."""
        return self._monotonic() - at > STALE_AFTER

    def time(self) -> float:
        """Of the monotonic clock, for :meth:`is_stale`."""
        return self._monotonic()

    @property
    def found(self) -> Probe | None:
        """What the last probe found; ``None`` if it is too old, or there was none yet."""
        probe = self._probe
        return None if probe is None or self.is_stale(probe.at) else probe

    def store_error(self) -> str:
        """Why the store is out of reach; empty if it is not."""
        found = self.found
        if found is not None:
            return found.store_error
        since = self._began if self._probe is None else self._probe.at
        if self._probe is None and not self.is_stale(since):
            return "It was not asked yet."
        return f"It has not answered for {self._monotonic() - since:.0f} s."

    def liveness(self) -> HealthAnswer:
        """Whether this process should be left alone: its event loop turns, or it still starts."""
        lag = self.loop_lag()
        alive = lag <= LOOP_DEAD or not self._is_ready
        facts = {
            "status": "ok" if alive else "failing",
            "reasons": [] if alive else [_late(lag)],
            "worker": self.worker,
            "loop_lag_seconds": round(lag, 3),
        }
        return HealthAnswer(200 if alive else 503, facts)

    def readiness(self) -> HealthAnswer:
        """Whether it can do its work, and what it is about."""
        lag, found, error = self.loop_lag(), self.found, self.store_error()
        free = None if found is None else found.disk_free
        reasons = [] if self._is_ready else ["The worker is starting."]
        if error:
            reasons.append(f"The store is out of reach: {error}")
        if lag > LOOP_LATE:
            reasons.append(_late(lag))
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
        """Look once. Waits for store and disk as long as they take."""
        try:
            free: int | None = shutil.disk_usage(self._folder).free
        except OSError:
            free = None
        error, figures = "", None
        try:
            with self._open_store() as store:  # opened anew: one that is open sees a file that has been moved away
                figures = self._figures(store)
                self._ask(store)
        except RecrawlError as fault:
            error = str(fault)
        except Exception as bug:  # noqa: BLE001 - whatever a driver raises, the worker has no store; the thread goes on
            error = repr(bug)
        self._probe = Probe(self._monotonic(), error, figures, free)

    def _figures(self, store: Store) -> StoreFigures | None:
        """What is true of the whole store, if it is for this worker to tell; raises if the store is out of reach."""
        told, now = store.controls(), self._now()
        if not self.tells_for_all:
            self._count_at = -math.inf
            return None
        if self._monotonic() >= self._count_at:
            began = self._monotonic()
            try:
                backlog = store.backlog(now)
                late = max(now - backlog.earliest, 0.0) if backlog.due else 0.0
                self._counted = StoreFigures(backlog.due, backlog.paused, late, is_paused(told))
            except StoreAwayError:
                raise
            except StoreError:  # it answers, and cannot count in time
                self._counted = None
            self._count_at = began + (self._monotonic() - began) / _SHARE_OF_TIME
        return self._counted


def _late(lag: float) -> str:
    return f"The event loop has stood still for {lag:.0f} s."
