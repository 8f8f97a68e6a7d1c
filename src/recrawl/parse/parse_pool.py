"""The parse pool: parses foreign bytes in subprocesses with limits of time and memory.

Servers send HTML, RDF, JSON, XML and text. A few bytes can keep a parser busy for minutes, fill the memory, or kill its
process. So only content that is certainly cheap is parsed in the crawl process (``detect.version.Effort``). Everything
else is parsed here, and the worst case is the end of one subprocess. The page is then compared by its bytes alone, and
another subprocess replaces it.

    time      CPU seconds of a task, by RLIMIT_CPU; ten times that of wall time, for a task that sleeps
    memory    bytes that a task may take beside what the subprocess needs itself, by RLIMIT_AS (Linux)
    waiting   seconds that a task waits for a subprocess: many hostile hosts at once must not stop the others

The first task starts a fork server, which imports what tasks need and parses nothing itself. Subprocesses are forked
from it in milliseconds, so replacing one is cheap. Each has its own socket to the crawl, and exits when the other end
is closed, which the system does for a killed crawl.

:func:`classify_in_pool` classifies a response within these limits: cheap ones in this process, the rest in the pool.
"""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, ParamSpec, Protocol, Self, TypeVar, cast

from recrawl import detect
from recrawl.detect import ChangeResult, PageState, classify_change
from recrawl.detect.change_criteria import ChangeCriteria
from recrawl.detect.detector import PARTS, Detector
from recrawl.detect.html.embedded_resources import read_embeds
from recrawl.detect.version import CostlyError, Effort
from recrawl.model import Capture, Outcome, Verdict
from recrawl.model.captures import EmbeddedResources

P = ParamSpec("P")
R = TypeVar("R")

MIB = 1 << 20
_LENGTH = 8
"""Bytes of the length before each message."""
_NUMBER = 8
"""Bytes of a process id or of a status."""
_AT_ONCE = 1 << 20
_LONG = 20 * MIB
"""Bytes from which on one task is done at a time: a compressed response may have any length. What is parsed is
shorter."""
_PATIENCE = 10
"""Maximum wall time of a task, as a multiple of its CPU seconds: other processes use the CPUs, too."""
_START = 300.0
"""Seconds that the fork server may take to start; it may have to compile kernels first."""
_RETIRES = 4
"""A subprocess that keeps more than this part of a task's memory after the task is replaced."""


@dataclass(frozen=True, slots=True)
class ParseLimits:
    """The limits of one task."""

    cpu: float = 10.0
    """CPU seconds, rounded up to whole ones."""
    memory: int = 160 * MIB
    """Bytes beside what the subprocess needs itself. Two subprocesses and the crawl stay below 1 GB together."""
    waiting: float = 60.0
    """Seconds until a subprocess is free."""
    workers: int = 2
    """Number of subprocesses."""


class OverBudgetError(Exception):
    """A task exceeded its limits or killed its subprocess; the message says which. Not an error of our code."""


class NoWorkerError(OverBudgetError):
    """No subprocess was free for the task. That says nothing about the bytes, which were not parsed."""


class ParsePool:
    """Subprocesses that parse foreign bytes, started when they are needed. Safe for several threads."""

    def __init__(
        self, limits: ParseLimits | None = None, prepare: Callable[..., object] | None = None, *arguments: object
    ) -> None:
        """``prepare`` is called once before the first fork, without limits: it imports what all tasks need."""
        self.limits = limits or ParseLimits()
        self._prepare = pickle.dumps((self.limits, prepare, arguments))
        self._free = threading.Semaphore(self.limits.workers)
        self._one_long = threading.Lock()
        """Held during a long task."""
        self._lock = threading.Lock()
        """Guards the following fields."""
        self._server: _ForkServer | None = None
        self._idle: list[_Worker] = []
        self._busy: set[_Worker] = set()
        self._threads: ThreadPoolExecutor | None = None
        self._closed = False
        self.seconds = 0.0
        """Seconds that tasks took in subprocesses, over all tasks."""

    def __enter__(self) -> Self:
        """Return the pool."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a function in a subprocess and return its result. Function, arguments and result are pickled. Blocks.

        Raises:
            OverBudgetError: it exceeded its limits, or killed its subprocess.
            NoWorkerError: no subprocess was free in time.
            Exception: what the function raised.
        """
        if not self._free.acquire(timeout=self.limits.waiting):
            raise NoWorkerError(f"no worker was free within {self.limits.waiting:g} s")
        try:
            # Pickled only now: copies of all waiting responses would take more memory than everything else.
            task = pickle.dumps((function, args, kwargs), pickle.HIGHEST_PROTOCOL)
            if len(task) <= _LONG:
                kind, value = self._asked(task)
            else:
                del task
                with self._one_long:
                    kind, value = self._asked(pickle.dumps((function, args, kwargs), pickle.HIGHEST_PROTOCOL))
        finally:
            self._free.release()
        if kind == "memory":
            raise OverBudgetError(f"it needs more than {self.limits.memory // MIB} MiB of memory")
        if kind == "error":
            raise value
        return cast("R", value)

    async def run(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """The same without blocking the event loop."""
        if self._threads is None:
            # More threads than subprocesses: a waiting task must be able to give up in time.
            self._threads = ThreadPoolExecutor(_WAITING, "recrawl-parse")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: self.call(function, *args, **kwargs))

    def close(self) -> None:
        """End all subprocesses; running tasks fail with :class:`OverBudgetError`."""
        self._closed = True
        if (server := self._server) is not None:
            server.kill()  # it may be starting, which takes long, and the waiting thread holds the lock
        with self._lock:
            for worker in self._busy:
                worker.cut()
            for worker in self._idle:
                worker.close()
            self._idle.clear()
            if self._server is not None:
                self._server.end()
                self._server = None
        if self._threads is not None:
            self._threads.shutdown(wait=True, cancel_futures=True)
            self._threads = None

    # -- inside -------------------------------------------------------------------------------

    def _asked(self, task: bytes) -> tuple[str, Any]:
        """How a task ended, and its result."""
        worker = self._worker()
        kept, began = False, _in(0.0)
        try:
            kind, value, retires = worker.ask(task, _in(_PATIENCE * self.limits.cpu))
            kept = not retires
        except TimeoutError as error:
            raise OverBudgetError(f"it was not read within {_PATIENCE * self.limits.cpu:g} s") from error
        except OSError as error:
            raise OverBudgetError(self._cause(worker)) from error
        finally:
            with self._lock:
                self.seconds += _in(0.0) - began
                self._busy.discard(worker)
                if kept and not self._closed:
                    self._idle.append(worker)
                else:
                    self._dismiss(worker)
        return kind, value

    def _worker(self) -> _Worker:
        """An idle subprocess, or a new one; it counts as busy.

        Raises:
            NoWorkerError: the pool is closed.
        """
        with self._lock:
            if self._closed:
                raise NoWorkerError("the workers are closed")
            if self._idle:
                worker = self._idle.pop()
            else:
                try:
                    worker = self._forked()
                except OSError as error:  # the system may have killed the fork server for its memory
                    if self._closed:
                        raise NoWorkerError("the workers are closed") from error
                    if self._server is not None:
                        self._server.end()
                        self._server = None
                    worker = self._forked()
            self._busy.add(worker)
        return worker

    def _forked(self) -> _Worker:
        if self._server is None:
            self._server = _ForkServer()
            if self._closed:  # the closing thread may not have seen this one
                self._server.kill()
            self._server.prepare(self._prepare)
        return self._server.fork()

    def _cause(self, worker: _Worker) -> str:
        """Why a subprocess ended."""
        with self._lock:
            code = self._dismiss(worker)
        if code == -signal.SIGXCPU:
            return f"it takes more than {self.limits.cpu:g} s of CPU time"
        ended = "unknown" if code is None else signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return f"it ended the process that read it ({ended})"

    def _dismiss(self, worker: _Worker) -> int | None:
        """End a subprocess; return its exit status as ``subprocess`` does, if it is known. Can be repeated."""
        if worker.ended:
            return None
        worker.close()
        with suppress(OSError):
            return self._server.reap(worker.pid) if self._server is not None else None
        return None


class _Worker:
    """The crawl's handle of one subprocess."""

    def __init__(self, pid: int, link: socket.socket) -> None:
        self.pid = pid
        self._link = link
        self.ended = False

    def ask(self, task: bytes, until: float) -> tuple[str, Any, bool]:
        """How the task ended, its result, and whether the subprocess is to be replaced.

        Raises:
            TimeoutError: nothing came by the monotonic time ``until``.
            OSError: the subprocess ended.
        """
        _write(self._link.fileno(), task)
        kind, value, retires = pickle.loads(_read(self._link.fileno(), until))  # noqa: S301 - from our own worker
        return kind, value, retires

    def cut(self) -> None:
        """Make the waiting thread see its end."""
        with suppress(OSError):
            self._link.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.ended = True
        self._link.close()


class _ForkServer:
    """The crawl's handle of the fork server."""

    def __init__(self) -> None:
        self._link, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - our own code
                [sys.executable, "-P", "-c", _MAIN, str(theirs.fileno()), *sys.path],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # messages of a dying parser do not belong on the terminal of a crawl
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for the crawl, which ends its subprocesses itself
            )

    def prepare(self, prepare: bytes) -> None:
        """Let it import what subprocesses need, and wait for that.

        Raises:
            OSError: it ended meanwhile, or takes too long.
        """
        _write(self._link.fileno(), prepare)
        _read(self._link.fileno(), _in(_START))

    def fork(self) -> _Worker:
        """Fork a subprocess.

        Raises:
            OSError: the server is gone, or the system refuses new processes.
        """
        self._link.sendall(_FORK + bytes(_NUMBER))
        message, files, _, _ = socket.recv_fds(self._link, _NUMBER, 1)
        if len(message) != _NUMBER or not files:
            raise _GoneError
        return _Worker(int.from_bytes(message, "big"), socket.socket(fileno=files[0]))

    def reap(self, pid: int) -> int:
        """End a subprocess, if it still runs; return its exit status, negative for a signal.

        Raises:
            OSError: the server is gone.
        """
        self._link.sendall(_REAP + pid.to_bytes(_NUMBER, "big"))
        return int.from_bytes(_some(self._link.fileno(), _NUMBER, None), "big", signed=True)

    def kill(self) -> None:
        """Make the waiting thread see its end. For any thread."""
        self._process.kill()

    def end(self) -> None:
        """End the server. Subprocesses exit by themselves: their sockets are closed."""
        self._link.close()
        self._process.kill()
        self._process.wait()


_MAIN = """
import os, sys
link, sys.path = int(sys.argv[1]), [place for place in sys.argv[2:] if place]
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"  # a process with threads is not to be forked: nobody knows what they hold
from recrawl.parse.parse_pool import serve
serve(link)
"""
_FORK, _REAP = b"f", b"r"
_WAITING = 64
"""Threads that wait for subprocesses."""


def _in(seconds: float) -> float:
    """A monotonic time from now on. It bounds our own processes, which the clock of a crawl does not affect."""
    return time.monotonic() + seconds  # noqa: TID251


def _write(to: int, message: bytes) -> None:
    for part in (len(message).to_bytes(_LENGTH, "big"), message):  # not in one: it may be long
        data = memoryview(part)
        while data:
            data = data[os.write(to, data[:_AT_ONCE]) :]


def _read(source: int, until: float | None = None) -> bytearray:
    """The next message, by the monotonic time ``until`` at the latest.

    Raises:
        TimeoutError: it did not come.
        OSError: the other end is closed.
    """
    size = int.from_bytes(_some(source, _LENGTH, until), "big")
    return _some(source, size, until)


class _GoneError(OSError):
    """The other end is closed."""


def _some(source: int, size: int, until: float | None) -> bytearray:
    got = bytearray()
    poll = select.poll()  # not select: a crawl has more than 1,024 open files
    poll.register(source, select.POLLIN)
    while len(got) < size:
        if until is not None and not poll.poll(max(0.0, until - _in(0.0)) * 1000):
            raise TimeoutError
        piece = os.read(source, min(size - len(got), _AT_ONCE))
        if not piece:
            raise _GoneError
        got += piece
    return got


# -- in the fork server, and in the workers ---------------------------------------------------


def serve(link: int) -> None:
    """Run as a fork server: fork and reap subprocesses on request of the socket ``link``, until it is closed."""
    limits, prepare, arguments = pickle.loads(_read(link))  # noqa: S301 - from our own parent
    if prepare is not None:
        prepare(*arguments)
    gc.freeze()  # otherwise the first collection in each subprocess would copy all that is loaded
    _write(link, b"")
    control = socket.socket(fileno=link)
    while message := control.recv(1 + _NUMBER, socket.MSG_WAITALL):
        if message[:1] == _FORK:
            ours, theirs = socket.socketpair()
            pid = os.fork()
            if not pid:
                control.close()
                ours.close()
                try:
                    _work(theirs.fileno(), limits)
                finally:
                    os._exit(0)
            socket.send_fds(control, [pid.to_bytes(_NUMBER, "big")], [ours.fileno()])
            ours.close()
            theirs.close()
        else:
            pid = int.from_bytes(message[1:], "big")
            ended, status = os.waitpid(pid, os.WNOHANG)
            if not ended:
                # Its socket is closed: it may be about to exit by itself, with a status worth knowing.
                time.sleep(_MOMENT)
                ended, status = os.waitpid(pid, os.WNOHANG)
            if not ended:
                os.kill(pid, signal.SIGKILL)
                _, status = os.waitpid(pid, 0)
            control.sendall(os.waitstatus_to_exitcode(status).to_bytes(_NUMBER, "big", signed=True))


_MOMENT = 0.05


def _work(link: int, limits: ParseLimits) -> None:
    """Run as a subprocess: do tasks from the socket, one after the other, until it is closed."""
    base = _limit_memory(limits.memory)
    with suppress(_GoneError, BrokenPipeError, ConnectionError):
        while True:
            task = _read(link)
            _limit_time(limits.cpu)
            answer, retires = _done(task, base, limits.memory)
            del task
            _write(link, answer)
            if retires:
                return


def _done(task: bytearray, base: int, memory: int) -> tuple[bytes, bool]:
    """The pickled result of a task, and whether the subprocess is to end; ``base`` is its memory before, or 0."""
    try:
        function, args, kwargs = pickle.loads(task)  # noqa: S301 - from our own parent
        kind, value = "value", function(*args, **kwargs)
    except MemoryError:
        return pickle.dumps(("memory", None, True)), True
    except Exception as error:  # noqa: BLE001 - the parent receives and raises it
        if base and _peak() > base + memory // 2:  # a library that gets no memory fails in various ways
            return pickle.dumps(("memory", None, True)), True
        kind, value = "error", error
    retires = bool(base) and _memory() > base + memory // _RETIRES
    try:
        answer = pickle.dumps((kind, value, retires), pickle.HIGHEST_PROTOCOL)
        if kind == "error":
            pickle.loads(answer)  # noqa: S301 - some errors can be written but not read
    except MemoryError:
        return pickle.dumps(("memory", None, True)), True
    except Exception:  # noqa: BLE001 - what cannot be pickled is sent as text
        answer = pickle.dumps(("error", RuntimeError(f"{type(value).__name__}: {value!r}"), retires))
    return answer, retires


def _memory() -> int:
    """Bytes of address space of this process; 0 where the system does not report it."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - in a worker short of memory
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _peak() -> int:
    """Peak bytes of address space of this process; 0 where the system does not report it."""
    try:
        with open("/proc/self/status", "rb") as file:  # noqa: PTH123 - as above
            return next(int(line.split()[1]) << 10 for line in file if line.startswith(b"VmPeak:"))
    except (OSError, StopIteration):
        return 0


def _limit_memory(memory: int) -> int:
    """Allow ``memory`` bytes beside those in use; return those in use."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    base = _memory()
    if base:
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = base + memory if hard == resource.RLIM_INFINITY else min(base + memory, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    return base


def _limit_time(cpu: float) -> None:
    """Allow ``cpu`` CPU seconds from now on."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    most = int(time.process_time() + cpu) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


_HTML = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"


_MANY_WORDS = 2_000
"""The words of a page from which on not all shingles are stored."""


class EventLog(Protocol):
    """The part of a log that is needed here."""

    def event(self, context: str, message: str, *, level: Literal["warn", "error"], details: dict[str, object]) -> None:
        """Write one event."""
        ...


def classify_in_pool(  # noqa: PLR0913 - where, what, and how
    pool: ParsePool,
    capture: Capture,
    known: PageState | None,
    standards: ChangeCriteria,
    log: EventLog | None = None,
    *,
    detector: Detector = PARTS,
) -> ChangeResult:
    """Classify a response in the pool unless it is cheap; by its bytes alone if that fails. Blocks."""
    try:
        return detector.classify(capture, known, standards, Effort.CHEAP)
    except CostlyError:
        pass
    try:
        return pool.call(detector.classify, capture, known, standards)
    except Exception as error:  # noqa: BLE001 - whatever happened to the subprocess, only this page is concerned
        log_unread(log, capture.url, error)
        return classified_unread(capture, known, standards, error, detector)


def classified_unread(
    capture: Capture,
    known: PageState | None,
    standards: ChangeCriteria,
    error: Exception,
    detector: Detector = PARTS,
) -> ChangeResult:
    """Classify a response that was not parsed, by its bytes.

    If the bytes differ and no subprocess was free to parse them, there is no verdict: a busy machine must not turn
    noise into a change. The next visit compares with the same version.
    """
    judged = detector.classify(capture, known, standards, Effort.BYTES)
    if isinstance(error, NoWorkerError) and judged.verdict == Verdict.CHANGED and judged.outcome == Outcome.FETCHED:
        return undecided(judged, known)
    return judged


def log_unread(log: EventLog | None, url: str, error: Exception) -> None:
    """Log that a response could not be parsed within its limits; an error of our own code is logged with its name."""
    expected = isinstance(error, OverBudgetError)
    reason = str(error) if expected else f"{error!r}"
    if log is not None:
        details: dict[str, object] = {"url": url, "reason": reason}
        log.event("fetch", "response not parsed", level="warn" if expected else "error", details=details)


def new_parse_pool(limits: ParseLimits, standards: ChangeCriteria) -> ParsePool:
    """A pool that is ready to classify responses by these criteria."""
    return ParsePool(limits, load_readers, standards)


def load_readers(standards: ChangeCriteria) -> None:
    """Parse something of each kind, so that a fork server has imported what its subprocesses need."""
    warm_up(standards)
    for mime, body in (("text/html", b"<p>One"), ("text/turtle", b"<a> <b> <c> ."), ("application/json", b"[1]")):
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\n\r\n".encode()
        classify_change(Capture("http://warm-up.invalid/", 0.0, 200, raw_head=head, raw_body=body), None, standards)


def warm_up(standards: ChangeCriteria) -> None:
    """Classify small pages, so that compiled kernels are loaded or made before a response waits for them.

    Text with noise takes another code path than text without; so do text beyond ASCII, a page with wrongly nested tags,
    and one that only a full parser can read.
    """
    known: PageState | None = None
    words = b" ".join(b"%d" % word for word in range(_MANY_WORDS))
    pages = [
        form % text + words
        for form in (b"<p>%s of 2<p>", b"<b><p><i>%s of 2</b></i></p></q>", b"<p>%s of 2<xmp>")
        for text in (b"One", b"At 12:30:00 two", b"\xc3\x9cber 12:30:00", b"\xe6\x97\xa5")
    ]
    for body in pages if standards.use_kernels else ():
        capture = Capture("http://warm-up.invalid/", 0.0, 200, raw_head=_HTML, raw_body=body)
        known = detect.known_after(classify_change(capture, known, standards), known)


def undecided(judged: ChangeResult, known: PageState | None) -> ChangeResult:
    """The classification of a doubtful fetch that stays so: it has no verdict, and the next visit finds it again."""
    before = known or PageState()
    return ChangeResult(judged.outcome, validators=before.validators, mime=before.mime, size=judged.size)


def embeds_apart(capture: Capture, pool: ParsePool | None, *, sheet: bool = False) -> EmbeddedResources | None:
    """The requisites of an archived response, parsed in the pool unless that is cheap. Blocks.

    ``None`` if it is no page (or no style sheet), or could not be parsed within its limits.
    """
    try:
        return read_embeds(capture, stylesheet=sheet, effort=Effort.CHEAP)
    except CostlyError:
        pass
    try:
        return pool.call(read_embeds, capture, stylesheet=sheet) if pool else read_embeds(capture, stylesheet=sheet)
    except Exception:  # noqa: BLE001 - whatever happened to the subprocess, only this page is concerned
        return None
