"""Fits of the policy in a process of their own, so that requests go on meanwhile.

The process has its own connection to the store and its own agenda. For each request it learns what was recorded since,
fits, hands a replica of its agenda over, and then writes the due times that moved, in small transactions.

A replica goes through a file: its large arrays lie there as they are, and the crawler maps them copy-on-write, so that
to take over millions of pages takes milliseconds. What refers to the store is not pickled: each side has its own.

The process exits with its parent, also if that was killed: its standard input ends then.
"""

from __future__ import annotations

import asyncio
import io
import itertools
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
from typing import IO, Any, TypeAlias

import numpy as np

from recrawl.crawl.fitting import Move, ScheduleFit, parts_of
from recrawl.crawl.garbage import give_back_memory, long_running
from recrawl.errors import RecrawlError, StoreError
from recrawl.schedule.agenda import Agenda
from recrawl.schedule.politeness import PolitenessRules
from recrawl.store.base import Store

_NICE = 10
"""Whoever crawls comes first."""
_TOLERANCE = 0.005
"""A due time is written if it moves by more than this share of the time left."""
_ROWS = 2_000
"""Due times written in one transaction: whoever acknowledges visits waits for no more than that."""
_SMALL = 4_096
"""Bytes of an array that goes through the pipe, not through the file."""
_ALIGNED = 64
_LENGTH = struct.Struct("<Q")
_START = "from recrawl.crawl.fit_process import main; main()"


@dataclass(frozen=True, slots=True)
class FitParts:
    """What a fit process works with."""

    store: Store
    agenda: Agenda
    late: float
    """Seconds after which visits of other workers are recorded at the latest."""
    prepare: Callable[[FitRequest], None] = lambda _request: None
    """Called before each fit: takes over what may have changed since the last one, beside the budget."""


FitRecipe: TypeAlias = Callable[[], AbstractContextManager[FitParts]]
"""Makes the parts, in the fit process. It is pickled, so it holds settings and no connections."""


@dataclass(frozen=True, slots=True)
class FitRequest:
    """What to fit to."""

    now: float
    terms: dict[str, float]
    """The arguments of ``Agenda.set_budget``."""
    politeness: PolitenessRules
    at_once: frozenset[int]
    """Pages that are due now, whatever the policy says."""


@dataclass(frozen=True, slots=True)
class FitProgress:
    """What the process is doing, in words for a person."""

    doing: str


@dataclass(frozen=True, slots=True)
class FittedState:
    """A replica is ready: its pickle, and where its large arrays lie in a file."""

    pickled: bytes
    file: Path
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class FitDone:
    """All due times are written."""

    pages: int
    moved: int
    """Due times that were written."""
    seconds: float
    """From the request to the replica."""


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
    """Be a fit process: requests come by standard input, answers go to standard output, until the input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else is printed is no answer
    requests = os.fdopen(os.dup(0), "rb")
    paths, folder = _receive(requests)
    sys.path[:] = paths
    recipe: FitRecipe = _receive(requests)
    waiting: queue.SimpleQueue[FitRequest] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests, waiting, folder), daemon=True, name="fit-requests").start()

    def answer(message: FitMessage) -> None:
        _send(answers, message)

    try:
        with recipe() as parts, long_running():
            fit = ScheduleFit(parts.store, parts.agenda, parts.late)
            for number in itertools.count():
                _serve(parts, fit, waiting.get(), folder / str(number), answer)
                if not number:  # the crawl waits for the first one, and then goes first
                    _be_humble()
    except RecrawlError as error:
        answer(FitFailed(error.what, error.remedy, passing=getattr(error, "passing", False)))
    except Exception as bug:  # noqa: BLE001 - told to the crawler, which goes on
        answer(FitFailed(repr(bug), trace=traceback.format_exc(), passing=False))
    sys.stdout.flush()
    os._exit(1)


def _serve(
    parts: FitParts, fit: ScheduleFit, request: FitRequest, file: Path, answer: Callable[[FitMessage], None]
) -> None:
    """Make one fit. A store that is away is waited for by the crawler, which asks again."""
    began = time.monotonic()  # noqa: TID251 - how long it took is told to people
    agenda = parts.agenda
    try:
        parts.prepare(request)
        agenda.set_budget(**request.terms)
        answer(FitProgress("reading visits"))
        wanted = fit.catch_up(request.now)
        answer(FitProgress(f"fitting the schedule of {len(wanted):,} pages"))
        due = fit.fit(wanted, request.now)
        answer(write_state(agenda, parts.store, file))
        took = time.monotonic() - began  # noqa: TID251 - likewise
        moved = 0
        for move in fit.moved(due, request.now, request.at_once, _TOLERANCE):
            moved += len(move.page)
            _write(parts.store, move)
        answer(FitDone(len(wanted), moved, took))
    except StoreError as error:
        if not error.passing:
            raise
        answer(FitFailed(error.what, error.remedy))
    give_back_memory()


def _write(store: Store, move: Move) -> None:
    """Write due times, host by host, and leave others as much time to write as that took."""
    by_host = np.lexsort((move.page, move.host))
    for some in parts_of(move.take(by_host), _ROWS):
        began = time.monotonic()  # noqa: TID251 - a pause, which decides nothing
        store.reschedule(some.page, some.due, before=some.before)
        time.sleep(time.monotonic() - began)  # noqa: TID251 - this process has no event loop


def _listen(requests: IO[bytes], waiting: queue.SimpleQueue[FitRequest], folder: Path) -> None:
    """Take requests until the crawler is no more, then exit at once: nothing here is worth waiting for."""
    with suppress(Exception):
        while True:
            waiting.put(_receive(requests))
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def _be_humble() -> None:
    """Let others go first: by priority, and where memory runs out."""
    if hasattr(os, "SCHED_BATCH"):  # one that comes before all others starts us with its own rank
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    os.nice(_NICE)
    with suppress(OSError):  # Linux: the crawl outlives its fits, not the other way round
        Path("/proc/self/oom_score_adj").write_text("500", encoding="ascii")


# -- states -----------------------------------------------------------------------------------


def write_state(agenda: Agenda, store: Store, file: Path) -> FittedState:
    """Write the large arrays of an agenda's replica to a file; the rest is in what is returned. O(bytes)."""
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
        _Pickler(stream, store, keep).dump(agenda.replica())
    return FittedState(stream.getvalue(), file, tuple(spans))


def read_state(state: FittedState, store: Store) -> Agenda:
    """The replica, whose file is gone then. Arrays are mapped copy-on-write: nothing is read before it is used."""
    buffers: list[memoryview] = []
    if state.spans:
        with state.file.open("rb") as kept:
            whole = memoryview(mmap.mmap(kept.fileno(), 0, access=mmap.ACCESS_COPY))
        buffers = [whole[start : start + size] for start, size in state.spans]
    state.file.unlink()
    agenda: Agenda = _Unpickler(state.pickled, store, buffers).load()
    return agenda


class _Pickler(pickle.Pickler):
    """Leaves the store out."""

    def __init__(self, stream: IO[bytes], store: Store, keep: Callable[[pickle.PickleBuffer], Any]) -> None:
        super().__init__(stream, protocol=5, buffer_callback=keep)
        self._store = store

    def persistent_id(self, obj: object) -> str | None:
        """A name for what each side has its own of."""
        return "store" if obj is self._store else None


class _Unpickler(pickle.Unpickler):
    """Puts our own store in."""

    def __init__(self, pickled: bytes, store: Store, buffers: list[memoryview]) -> None:
        super().__init__(io.BytesIO(pickled), buffers=buffers)
        self._store = store

    def persistent_load(self, pid: object) -> Store:  # noqa: ARG002 - there is only one
        """The store."""
        return self._store


# -- in the crawler ---------------------------------------------------------------------------


class FitProcess:
    """A fit process as the crawler sees it. To be closed; the next request starts it again if it died."""

    def __init__(self, recipe: FitRecipe) -> None:
        """``recipe`` makes what it works with, there."""
        self._recipe = recipe
        self._folder: Path | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._messages: asyncio.Queue[FitMessage] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def pid(self) -> int | None:
        """Its number, if it runs."""
        return None if self._process is None else self._process.pid

    def request(self, request: FitRequest) -> None:
        """Ask for a fit; what comes of it are messages."""
        self._begin(self._ask(request))

    async def message(self) -> FitMessage:
        """The next answer; a failure if the process could not be started, or died."""
        return await self._messages.get()

    async def close(self) -> None:
        """End the process, whatever it is doing."""
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
            start_new_session=True,  # Ctrl-C in our terminal is for us
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
        """Take answers until the process ends, which is an answer, too."""
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


def _receive(stream: IO[bytes]) -> Any:  # noqa: ANN401 - whatever was sent
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(head)
    return pickle.loads(stream.read(length))  # noqa: S301 - from our own parent


def _send(stream: IO[bytes], message: object) -> None:
    pickled = pickle.dumps(message, protocol=5)
    stream.write(_LENGTH.pack(len(pickled)) + pickled)
    stream.flush()
