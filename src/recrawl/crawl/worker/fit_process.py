"""Fits the policy in a subprocess, so that requests go on meanwhile.

The subprocess has its own connection to the store and its own scheduler. For each fit request it loads the visits
recorded since the last one, fits, sends a replica of its scheduler, then writes the changed due times in small
transactions.

A replica travels through a file. Its large arrays lie there unchanged, and the crawler maps them copy-on-write, so that
adopting millions of pages takes milliseconds. The store is not pickled: each side has its own.

The subprocess exits with its parent, also if that was killed, because its standard input ends then.

:class:`BackgroundFit` is the crawler's side: it requests fits in time and adopts the results. The crawl goes on with
the state it has. If a fit fails or the subprocess dies, that state stays in force, and another fit is requested after a
delay.
"""

from __future__ import annotations

import asyncio
import io
import itertools
import math
import mmap
import os
import pickle
import queue
import shutil
import struct
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol, TypeAlias

import numpy as np

from recrawl.crawl.control.json_log import JsonLinesLog
from recrawl.crawl.control.price_exchange import Partition
from recrawl.crawl.worker.gc_tuning import give_back_memory, long_running
from recrawl.crawl.worker.inline_fit import DueMove, ScheduleFit, fitted, parts_of
from recrawl.crawl.worker.schedule_snapshot import ScheduleSnapshot
from recrawl.errors import RecrawlError, StoreError
from recrawl.model import IntArray, Visits
from recrawl.schedule.frontier.revisit_scheduler import RevisitScheduler
from recrawl.schedule.politeness.host_politeness import Politeness, PolitenessRules
from recrawl.schedule.politeness.retry import Backoff
from recrawl.store.base import ScheduleStore, Store
from recrawl.store.coordination import Coordination
from recrawl.store.store_values import FITTED
from recrawl.time import MINUTE

_NICE = 10
"""The crawler has priority."""
_TOLERANCE = 0.005
"""A due time is written if it moves by more than this share of the time left."""
_ROWS = 2_000
"""Due times per transaction; a group commit waits for no more than that."""
_SMALL = 4_096
"""Bytes up to which an array goes through the pipe, not through the file."""
_ALIGNED = 64
_LENGTH = struct.Struct("<Q")
_START = "from recrawl.crawl.worker.fit_process import main; main()"


@dataclass(frozen=True, slots=True)
class FitParts:
    """The parts that a fit subprocess uses."""

    store: Store
    scheduler: RevisitScheduler
    late: float
    """Maximum seconds after which other workers record their visits."""
    prepare: Callable[[FitRequest], None] = lambda _request: None
    """Called before each fit: applies what may have changed since the last one, beside the budget."""
    snapshot: ScheduleSnapshot | None = None
    """Where the state outlives the process; without it every start loads all visits."""
    coordination: Coordination | None = None
    """Where partitions publish their demand; without it, in the store."""
    outdated: Callable[[], bool] = lambda: False
    """Called before each fit: whether the parts must be made again, and all visits loaded into a new policy."""


FitRecipe: TypeAlias = Callable[[], AbstractContextManager[FitParts]]
"""Makes the parts, in the subprocess. It is pickled, so it holds settings and no connections."""


@dataclass(frozen=True, slots=True)
class FitRequest:
    """The request for a fit."""

    now: float
    terms: dict[str, float]
    """The arguments of ``RevisitScheduler.set_budget``."""
    politeness: PolitenessRules
    at_once: frozenset[int]
    """Pages that are due now, whatever the policy says."""
    partition: Partition | None = None
    """What the worker schedules; ``None`` for all pages."""


@dataclass(frozen=True, slots=True)
class FitProgress:
    """What the subprocess is doing, as text for people."""

    doing: str


@dataclass(frozen=True, slots=True)
class FittedState:
    """A replica is ready: its pickle, and the positions of its large arrays in a file."""

    pickled: bytes
    file: Path
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class FitDone:
    """All due times are written."""

    pages: int
    moved: int
    """Number of due times written."""
    seconds: float
    """Seconds from the request to the replica."""
    visits: int = 0
    """Number of visits read from the store."""


@dataclass(frozen=True, slots=True)
class FitFailed:
    """A fit was not made, or its due times were not written."""

    what: str
    remedy: str = ""
    trace: str = ""
    passing: bool = True
    """Whether it may work the next time."""


FitMessage: TypeAlias = FitProgress | FittedState | FitDone | FitFailed


# -- in the fit process -----------------------------------------------------------------------


def main() -> None:
    """Run as a fit subprocess: read requests from standard input, write messages to standard output, until EOF."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # other output must not mix with the messages
    requests = os.fdopen(os.dup(0), "rb")
    paths, folder = _receive(requests)
    sys.path[:] = paths
    recipe: FitRecipe = _receive(requests)
    waiting: queue.SimpleQueue[FitRequest] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests, waiting, folder), daemon=True, name="fit-requests").start()

    def answer(message: FitMessage) -> None:
        _send(answers, message)

    try:
        numbers = itertools.count()
        request = waiting.get()
        while True:
            with recipe() as parts, long_running():
                fit = ScheduleFit(parts.store, parts.scheduler, parts.late, parts.snapshot, parts.coordination)
                while True:
                    _serve(parts, fit, request, folder / str(number := next(numbers)), answer)
                    if not number:  # the crawl waits for the first fit, and has priority afterwards
                        _lower_priority()
                    request = waiting.get()
                    if parts.outdated():
                        break
    except RecrawlError as error:
        answer(FitFailed(error.what, error.remedy, passing=getattr(error, "passing", False)))
    except Exception as bug:  # noqa: BLE001 - reported to the crawler, which goes on
        answer(FitFailed(repr(bug), trace=traceback.format_exc(), passing=False))
    sys.stdout.flush()
    os._exit(1)


def _serve(
    parts: FitParts, fit: ScheduleFit, request: FitRequest, file: Path, answer: Callable[[FitMessage], None]
) -> None:
    """Make one fit. If the store is unreachable, the crawler waits and requests it again."""
    began = time.monotonic()  # noqa: TID251 - the duration is only reported
    scheduler = parts.scheduler
    try:
        parts.prepare(request)
        scheduler.set_budget(**request.terms)
        answer(FitProgress("reading visits"))
        wanted = fit.catch_up(request.now, request.partition, adds=True)
        answer(FitProgress(f"fitting the schedule of {len(wanted):,} pages"))
        due = fit.fit(wanted, request.now)
        answer(write_state(scheduler, parts.store, file))
        took = time.monotonic() - began  # noqa: TID251 - likewise
        moved = 0
        for move in fit.moved(due, request.now, request.at_once, _TOLERANCE):
            moved += len(move.page)
            _write(parts.store, move)
        answer(FitDone(len(wanted), moved, took, fit.visits_read))
        fit.save()
    except StoreError as error:
        if not error.passing:
            raise
        answer(FitFailed(error.what, error.remedy))
    give_back_memory()


def _write(store: ScheduleStore, move: DueMove) -> None:
    """Write due times, host by host, and pause after each write for as long as it took."""
    by_host = np.lexsort((move.page, move.host))
    for some in parts_of(move.take(by_host), _ROWS):
        began = time.monotonic()  # noqa: TID251 - a pause, which decides nothing
        store.reschedule(some.page, some.due, before=some.before)
        time.sleep(time.monotonic() - began)  # noqa: TID251 - this process has no event loop


def _listen(requests: IO[bytes], waiting: queue.SimpleQueue[FitRequest], folder: Path) -> None:
    """Queue requests until the crawler is gone, then exit at once: nothing here is worth finishing."""
    with suppress(Exception):
        while True:
            waiting.put(_receive(requests))
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def _lower_priority() -> None:
    """Lower the priority of this process, for the CPU and for the out-of-memory killer."""
    if hasattr(os, "SCHED_BATCH"):  # a crawler with real-time priority would pass it on
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    os.nice(_NICE)
    with suppress(OSError):  # Linux: kill the fit before the crawl
        Path("/proc/self/oom_score_adj").write_text("500", encoding="ascii")


# -- states -----------------------------------------------------------------------------------


def write_state(scheduler: RevisitScheduler, store: Store, file: Path) -> FittedState:
    """Write the large arrays of a scheduler's replica to a file; the rest is in the result. O(bytes)."""
    spans: list[tuple[int, int]] = []
    with file.open("wb") as out:

        def keep(buffer: pickle.PickleBuffer) -> bool:
            raw = buffer.raw()
            if raw.nbytes < _SMALL:
                return True
            out.write(bytes(-out.tell() % _ALIGNED))
            spans.append((out.tell(), raw.nbytes))
            out.write(raw)
            return False

        stream = io.BytesIO()
        _Pickler(stream, store, keep).dump(scheduler.replica())
    return FittedState(stream.getvalue(), file, tuple(spans))


def read_state(state: FittedState, store: Store) -> RevisitScheduler:
    """Read the replica and delete its file. Arrays are mapped copy-on-write: nothing is read before it is used."""
    buffers: list[memoryview] = []
    if state.spans:
        with state.file.open("rb") as kept:
            whole = memoryview(mmap.mmap(kept.fileno(), 0, access=mmap.ACCESS_COPY))
        buffers = [whole[start : start + size] for start, size in state.spans]
    state.file.unlink()
    scheduler: RevisitScheduler = _Unpickler(state.pickled, store, buffers).load()
    return scheduler


class _Pickler(pickle.Pickler):
    """Leaves the store out."""

    def __init__(self, stream: IO[bytes], store: Store, keep: Callable[[pickle.PickleBuffer], Any]) -> None:
        super().__init__(stream, protocol=5, buffer_callback=keep)
        self._store = store

    def persistent_id(self, obj: object) -> str | None:
        """A name for objects of which each side has its own."""
        return "store" if obj is self._store else None


class _Unpickler(pickle.Unpickler):
    """Inserts our own store."""

    def __init__(self, pickled: bytes, store: Store, buffers: list[memoryview]) -> None:
        super().__init__(io.BytesIO(pickled), buffers=buffers)
        self._store = store

    def persistent_load(self, pid: object) -> Store:  # noqa: ARG002 - there is only one
        """The store."""
        return self._store


# -- in the crawler ---------------------------------------------------------------------------


class FitProcess:
    """The crawler's handle of a fit subprocess. Close it; the next request restarts a subprocess that died."""

    def __init__(self, recipe: FitRecipe) -> None:
        """``recipe`` makes the parts, in the subprocess."""
        self._recipe = recipe
        self._folder: Path | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._messages: asyncio.Queue[FitMessage] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def pid(self) -> int | None:
        """The process id, if it runs."""
        return None if self._process is None else self._process.pid

    def request(self, request: FitRequest) -> None:
        """Request a fit; the results arrive as messages."""
        self._begin(self._ask(request))

    async def message(self) -> FitMessage:
        """The next message; a failure if the subprocess could not be started, or died."""
        return await self._messages.get()

    async def close(self) -> None:
        """End the subprocess, whatever it is doing."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        self._clear()

    async def _ask(self, request: FitRequest) -> None:
        try:
            if self._process is None:
                await self._start()
            self._say(request)
        except OSError as error:
            self._messages.put_nowait(FitFailed(f"No fit process can be started: {error}."))

    async def _start(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="recrawl-fit-"))
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            _START,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in our terminal is not for the subprocess
        )
        self._say((sys.path, self._folder))
        self._say(self._recipe)
        self._begin(self._read(self._process))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _clear(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _say(self, message: object) -> None:
        assert self._process is not None  # noqa: S101 - it was started
        assert self._process.stdin is not None  # noqa: S101 - a pipe
        pickled = pickle.dumps(message, protocol=5)
        self._process.stdin.write(_LENGTH.pack(len(pickled)) + pickled)

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        """Queue messages until the subprocess ends; its end is a message, too."""
        answers = process.stdout
        assert answers is not None  # noqa: S101 - a pipe
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                (length,) = _LENGTH.unpack(await answers.readexactly(_LENGTH.size))
                self._messages.put_nowait(pickle.loads(await answers.readexactly(length)))  # noqa: S301 - from our own process
        code = await process.wait()
        self._process = None
        self._clear()
        self._messages.put_nowait(FitFailed(f"The fit process ended with {code}."))


def _receive(stream: IO[bytes]) -> Any:  # noqa: ANN401 - any message
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(head)
    return pickle.loads(stream.read(length))  # noqa: S301 - from our own parent


def _send(stream: IO[bytes], message: object) -> None:
    pickled = pickle.dumps(message, protocol=5)
    stream.write(_LENGTH.pack(len(pickled)) + pickled)
    stream.flush()


_AT_ONCE = 500
"""Pages that are valued after the first fit in one turn of the event loop: some milliseconds."""


def note_fit(store: Store, policy: str, now: float) -> None:
    """Note that the due times in the store are those of a policy."""
    if store.controls().get(FITTED) != policy:
        store.set_control(FITTED, policy, now)


def has_due_times_of(store: Store, policy: str) -> bool:
    """Whether the store has due times of this policy, from an earlier fit, so that a crawl can start with them."""
    return store.controls().get(FITTED) == policy


_RETRY = Backoff(first=5.0, factor=2.0, longest=5 * MINUTE)
"""Seconds until a failed fit is tried again."""
_ENOUGH = 3
"""Permanent failures in a row after which a crawl without any fit is given up."""


class UrgentPages(Protocol):
    """Knows which pages wait to be visited at once, whatever the policy says: the recorder of a worker."""

    @property
    def at_once(self) -> frozenset[int]:
        """Their ids."""
        ...


class BackgroundFit:
    """The fits of one crawl, made in a subprocess. Called from the worker's loop; no call waits."""

    def __init__(  # noqa: PLR0913 - the parts that a fit concerns
        self,
        recipe: FitRecipe,
        *,
        store: Store,
        scheduler: RevisitScheduler,
        recorder: UrgentPages,
        politeness: Politeness,
        log: JsonLinesLog,
        underway: Callable[[], Visits],
        held: Callable[[], IntArray],
        partition: Callable[[float], Partition | None] = lambda _now: None,
    ) -> None:
        """``underway``: visits that the scheduler has and the store may not. ``held``: pages we hold leases on.

        ``partition`` returns what this worker schedules at a time.
        """
        self._process = FitProcess(recipe)
        self._store = store
        self._scheduler = scheduler
        self._recorder = recorder
        self._politeness = politeness
        self._log = log
        self._underway = underway
        self._held = held
        self._partition = partition
        self._next: asyncio.Task[FitMessage] | None = None
        self.is_pending = False
        """Whether a fit was requested and is not complete yet."""
        self._failures = 0
        self._ask_at = -math.inf
        self._moved = False
        self.doing = "starting"
        """What the subprocess is doing, as text for people."""
        self.is_ready = False
        """Whether a fit was adopted."""
        self._unvalued = np.empty(0, np.int64)
        """Pages that were visited before there was a fit: their due times in the store are provisional."""

    @property
    def pid(self) -> int | None:
        """The process id, if it runs."""
        return self._process.pid

    @property
    def news(self) -> asyncio.Task[FitMessage]:
        """A task that ends when there is a message for :meth:`turn`."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._process.message())
        return self._next

    @property
    def wake_at(self) -> float:
        """When :meth:`turn` has something to do: the next request for a fit, infinity while one is made."""
        if self.is_ready and len(self._unvalued):
            return -math.inf
        return math.inf if self.is_pending else max(self._scheduler.fit_at, self._ask_at)

    def turn(self, now: float) -> None:
        """Handle messages of the subprocess, and request a fit if it is time.

        Raises:
            StoreError: a result could not be adopted, or there never was a fit and will be none.
        """
        while self.news.done():
            message, self._next = self._next.result() if self._next else self.news.result(), None
            self._take(message, now)
        if self.is_ready and len(self._unvalued):
            self._value_some(now)
        if not self.is_pending and now >= max(self._scheduler.fit_at, self._ask_at):
            self._ask(now)

    def take_moved(self) -> bool:
        """Whether due times were written since the last call: queued pages may be due at other times."""
        moved, self._moved = self._moved, False
        return moved

    async def close(self) -> None:
        """End the subprocess."""
        self._scheduler.end_journal()
        if self._next is not None:
            self._next.cancel()
            await asyncio.gather(self._next, return_exceptions=True)
            self._next = None
        await self._process.close()

    def _ask(self, now: float) -> None:
        self._scheduler.begin_journal(self._underway())
        self.is_pending = True
        self._process.request(
            FitRequest(
                now, self._scheduler.terms, self._politeness.rules, self._recorder.at_once, self._partition(now)
            ),
        )
        self._log.event("schedule", "fit started")

    def _take(self, message: FitMessage, now: float) -> None:
        match message:
            case FitProgress(doing):
                self.doing = doing
            case FittedState():
                self._take_over(message)
            case FitDone(pages, moved, seconds, visits):
                self.is_pending, self._failures, self._moved = False, 0, moved > 0
                details = fitted(pages, self._scheduler, visits=visits, moved=moved, seconds=round(seconds, 3))
                self._log.event("schedule", "policy fitted", details=details)
                note_fit(self._store, self._scheduler.policy.name, now)
            case FitFailed():
                self._failed(message, now)

    def _take_over(self, state: FittedState) -> None:
        try:
            replica = read_state(state, self._store)
        except OSError:  # the subprocess died since, and its folder is gone: a message will report that
            return
        self._keep_unvalued()
        concerned = np.unique(np.concatenate([self._held(), self._scheduler.journal_pages()]))
        self._scheduler.take_over(replica, self._store.pages(concerned))
        self.is_ready = True

    def _keep_unvalued(self) -> None:
        """Before the first fit: remember which pages were visited or found."""
        if not self.is_ready:
            self._unvalued = np.union1d(self._unvalued, self._scheduler.journal_pages())

    def _value_some(self, now: float) -> None:
        """Write the due times of some of the pages that were visited before the first fit.

        Leased pages get theirs with their visit.
        """
        some, self._unvalued = self._unvalued[:_AT_ONCE], self._unvalued[_AT_ONCE:]
        some = np.setdiff1d(some, self._held())
        if len(some):
            self._scheduler.add(self._store.pages(some))
            self._store.reschedule(some, self._scheduler.due(some, now))

    def _failed(self, failed: FitFailed, now: float) -> None:
        if not self.is_pending:  # it died between two fits; the next request restarts it
            return
        self._keep_unvalued()
        self._scheduler.end_journal()
        self._scheduler.fit_again()
        self.is_pending = False
        self._failures += 1
        wait = float(_RETRY.wait(np.array([self._failures]))[0])
        self._ask_at = now + wait
        details: dict[str, object] = {"reason": failed.what, "again_in": wait}
        if failed.trace:
            details["traceback"] = failed.trace
        self._log.event("schedule", "fit failed", level="error", details=details)
        if not self.is_ready and not failed.passing and self._failures >= _ENOUGH:
            raise StoreError(f"The schedule cannot be fitted: {failed.what}", failed.remedy or failed.trace)
