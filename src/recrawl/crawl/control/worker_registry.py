"""The worker registry: each worker reports in the store, every few seconds, that it lives and what it does.

So workers that share a store share its budget, ``recrawl status`` lists live workers on any machine, and the leases of
a dead worker are free again within a minute.

A worker is dead if its report has not changed for ``SILENCE`` seconds while another worker kept reading it. The
observer's steady time decides: clocks that differ or are set kill nobody, and neither does an unreachable store, since
only time counts in which the observer could read.

Within a workspace, each worker also locks a file of its name while it lives. The system drops the lock when the process
ends, however it ends. So a file that can be locked belongs to a dead worker, and its leases can be returned at once
instead of when they expire. Where the system has no such locks, leases expire by themselves.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import BinaryIO

from recrawl.errors import InputError
from recrawl.formats.atomic_files import is_at, lock
from recrawl.store.base import ScheduleStore

WORKERS = "workers"
"""The folder of a workspace with a file for each worker."""


@contextmanager
def worker_lock(folder: Path, worker: str) -> Iterator[None]:
    """Hold the lock of a worker in a workspace while the block runs.

    After an error the file stays, as that of a dead worker: its leases may not have been returned.

    Raises:
        InputError: the folder cannot be written to.
    """
    path = folder / WORKERS / worker
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = _locked(path)
    except OSError as error:
        remedy = "Check the folder and its permissions."
        raise InputError(f"it cannot be written to ({error.strerror})", remedy, source=str(folder)) from error
    with file:
        yield
        path.unlink(missing_ok=True)


def _locked(path: Path) -> BinaryIO:
    while True:
        file = path.open("ab")
        lock(file, wait=True)
        if is_at(file, path):
            return file
        file.close()  # another process took it for the file of a dead worker before it was locked


def live_workers(folder: Path) -> list[str]:
    """Names of the live workers in a workspace."""
    return sorted(path.name for path in _files(folder) if not _is_left(path))


def dead_workers(folder: Path) -> Iterator[str]:
    """Names of the dead workers in a workspace. Each file is deleted once the next name is requested."""
    for path in _files(folder):
        with suppress(FileNotFoundError), path.open("rb") as file:
            if lock(file) and is_at(file, path):
                yield path.name
                path.unlink()


def _files(folder: Path) -> list[Path]:
    place = folder / WORKERS
    return sorted(place.iterdir()) if place.is_dir() else []


def _is_left(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return lock(file)
    except FileNotFoundError:
        return True


REPORT_EVERY = 5.0
"""Seconds between two reports; less if a worker joins or leaves."""
SILENCE = 6 * REPORT_EVERY
"""Seconds after which a worker without a new report counts as dead."""
_LONGEST_GAP = 2 * REPORT_EVERY
"""Maximum seconds between two reads that count as watched: in a longer gap the observer slept, or the store was
unreachable."""
_WORKER = "worker "


@dataclass(frozen=True, slots=True)
class RegisteredWorker:
    """One worker, by its last report."""

    worker: str
    at: float
    """When it reported, seconds since the epoch."""
    since: float
    """When it started."""
    visits: int = 0
    """Visits made since then."""
    underway: int = 0
    """Visits that started and are not acknowledged yet."""
    in_hand: int = 0
    """Pages leased and not requested yet."""
    price: float | None = None
    left: float | None = None
    """Visits that the budget allows at this moment; ``None`` if it is only kept on average."""
    paused: bool = False
    buckets: int = 0
    """Buckets of hosts that it owns."""
    cpu: float = 0.0
    """CPU seconds of its process since it started."""
    parse: float = 0.0
    """Seconds that its subprocesses parsed for it."""


@dataclass(slots=True)
class _SeenWorker:
    """The last report of another worker, and for how long it has not changed."""

    said: str
    silent: float = 0.0
    """Seconds, watched by the observer."""


class WorkerRegistry:
    """Reports for one worker, and reads the reports of the others."""

    def __init__(self, store: ScheduleStore, worker: str, elapsed: Callable[[], float] | None = None) -> None:
        """``elapsed`` returns steady seconds; without it the time of each call is used."""
        self._store = store
        self._worker = worker
        self._elapsed = elapsed
        self._watched: dict[str, _SeenWorker] = {}
        self._watched_at = self._said_at = -math.inf
        self._me: RegisteredWorker | None = None
        self._saying = threading.Lock()
        """Held while a report is written: a thread may report for this worker, but not after it left."""
        self.others: list[RegisteredWorker] = []
        """Other live workers at the last report."""
        self._silent_before = False
        """Whether that was so before a thread reported, and the loop does not know yet."""
        self.was_silent = False
        """Whether enough time passed before the last report that others may have considered this worker dead."""

    def report(self, me: RegisteredWorker) -> None:
        """Report for this worker, and read the reports of the others."""
        began = self._passed(me.at)
        with self._saying:
            self._say(me)
            self.was_silent, self._silent_before = self._silent_before or self._is_late(began), False
            self._said_at = began
        self.others = self._others(self._store.controls(), me.at)

    def repeat_report(self, now: float) -> None:
        """Repeat the last report if that is overdue. For a thread beside a busy loop."""
        with self._saying:
            began = self._passed(now)
            if self._me is not None and began - self._said_at > 2 * REPORT_EVERY:
                self._say(replace(self._me, at=now))
                self._silent_before |= self._is_late(began)
                self._said_at = began

    def _is_late(self, passed: float) -> bool:
        """Whether others may consider this worker dead by now; half of the time is reserved for the transmission."""
        return math.isfinite(self._said_at) and passed - self._said_at > SILENCE / 2

    def _say(self, me: RegisteredWorker) -> None:
        self._store.set_control(_WORKER + self._worker, json.dumps(asdict(me), allow_nan=False), me.at)
        self._me = me

    def is_outdated(self, told: Mapping[str, str], now: float) -> bool:
        """Whether a worker joined or left since the last report, by ``store.controls()``."""
        return {one.worker for one in self.others} != {one.worker for one in self._others(told, now)}

    def free_dead(self, now: float, pause: float) -> dict[str, int]:
        """Free the leases of dead workers and remove them from the registry; the number of leases of each.

        Their hosts pause first, at least ``pause`` seconds: nobody knows when they were requested last.
        """
        dead = {name: one.said for name, one in self._watched.items() if one.silent >= SILENCE}
        freed: dict[str, int] = {}
        for worker, said in dead.items():
            leases = self._store.release_worker(worker, now, pause=pause, unless=(_WORKER + worker, said))
            del self._watched[worker]
            if leases >= 0:
                self._store.set_control(_WORKER + worker, None, now)
                keep_costs(self._store, RegisteredWorker(**json.loads(said)))
                freed[worker] = leases
        return freed

    def _others(self, told: Mapping[str, str], now: float) -> list[RegisteredWorker]:
        self._watch(told, now)
        dead = {name for name, one in self._watched.items() if one.silent >= SILENCE}
        others = (one for one in registered_workers(told) if one.worker != self._worker and one.worker not in dead)
        return [one for one in others if is_alive(one, now)]

    def _watch(self, told: Mapping[str, str], now: float) -> None:
        """Note which reports are new, and add to the silence of the other workers."""
        passed = self._passed(now)
        gap = min(max(passed - self._watched_at, 0.0), _LONGEST_GAP)
        self._watched_at = passed
        said = {name.removeprefix(_WORKER): text for name, text in told.items() if name.startswith(_WORKER)}
        said.pop(self._worker, None)
        for gone in self._watched.keys() - said.keys():
            del self._watched[gone]
        for name, text in said.items():
            before = self._watched.get(name)
            if before is not None and before.said == text:
                before.silent += gap
            else:
                self._watched[name] = _SeenWorker(text)

    def _passed(self, now: float) -> float:
        return now if self._elapsed is None else self._elapsed()

    def leave(self, now: float, last: RegisteredWorker | None = None) -> None:
        """Remove this worker; with its ``last`` report, what its visits cost stays in the store."""
        with self._saying:
            self._me = None
            self._store.set_control(_WORKER + self._worker, None, now)
            if last is not None:
                keep_costs(self._store, last)


def registered_workers(told: Mapping[str, str]) -> list[RegisteredWorker]:
    """All workers in ``store.controls()``, dead ones included."""
    return [RegisteredWorker(**json.loads(text)) for name, text in sorted(told.items()) if name.startswith(_WORKER)]


def is_alive(one: RegisteredWorker, now: float) -> bool:
    """Whether a worker reported lately, by the time in its report."""
    return now - one.at < SILENCE


_COSTS = "costs "
_KEPT = 8
"""Workers that have ended and whose costs are kept: the latest, since code and pages change."""
ENOUGH_VISITS = 200
"""Visits from which on the CPU time per visit says something: the first ones load and compile code."""


def keep_costs(store: ScheduleStore, last: RegisteredWorker) -> None:
    """Keep what the visits of a worker cost after it has ended."""
    if not last.visits or last.cpu <= 0:
        return
    kept = {name: json.loads(text)["at"] for name, text in store.controls().items() if name.startswith(_COSTS)}
    for name in sorted(kept, key=lambda one: float(kept[one]))[: max(len(kept) + 1 - _KEPT, 0)]:
        store.set_control(name, None, last.at)
    told = {"at": last.at, "visits": last.visits, "cpu": last.cpu, "parse": last.parse}
    store.set_control(_COSTS + last.worker, json.dumps(told, allow_nan=False), last.at)


@dataclass(frozen=True, slots=True)
class VisitCosts:
    """What visits cost, as measured on this crawl."""

    visits: int
    """How many visits were measured."""
    cpu: float
    """CPU seconds of the process of a worker per visit: everything but parsing and fits."""
    parse: float
    """Seconds per visit that its subprocesses parsed."""

    @property
    def seconds(self) -> float:
        """Processor seconds per visit."""
        return self.cpu + self.parse


def visit_costs(told: Mapping[str, str]) -> VisitCosts | None:
    """What a visit costs by ``store.controls()``: of the workers that run, and of the latest that have ended.

    ``None`` where they made too few visits: then it is not known.
    """
    known = [json.loads(text) for name, text in told.items() if name.startswith(_COSTS)]
    known += [{"visits": one.visits, "cpu": one.cpu, "parse": one.parse} for one in registered_workers(told)]
    visits = sum(int(one["visits"]) for one in known)
    if visits < ENOUGH_VISITS:
        return None
    cpu, parse = (sum(float(one[part]) for one in known) / visits for part in ("cpu", "parse"))
    return VisitCosts(visits, cpu, parse)
