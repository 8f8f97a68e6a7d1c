"""Servers: run them on their sockets until interrupted, and prefetch what their first requests need.

Idle connections are closed before they keep others out. A server takes some hundred connections at once, since a
process may have only a limited number of files open. A client that opens connections and sends half a request on each,
or nothing, would hold them for ever. So they are closed after a while, and the oldest at once if there are too many.
Connections with a running response stay open.

First requests are slow: libraries are loaded, templates read, store files not yet in memory. So a server requests its
own pages once when it starts, and gives up slow ones. It also reads the store file once, which fills the page cache of
the system: a TimeGate reads the file in a dozen places, and each would wait for the disk.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from recrawl.crawl.worker import event_loop
from recrawl.crawl.worker.gc_tuning import long_running
from recrawl.errors import ConfigError, InputError

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp, Message


HEAD_WITHIN = 20.0
"""Seconds in which a client must send its request; checked after this time, and closed after twice this time."""
MOST = 256
"""Connections at once, of a server."""


class PatientProtocol(H11Protocol):
    """HTTP/1.1 for one server: :func:`protocol` makes a class for each."""

    open_now: OrderedDict[PatientProtocol, None]
    """Connections of the server, the oldest first."""
    _was_silent = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, in place of the oldest that says nothing if there are too many."""
        super().connection_made(transport)
        self.open_now[self] = None
        if len(self.open_now) > MOST:
            silent = next((one for one in self.open_now if one.is_silent), self)
            silent.transport.close()
            self.open_now.pop(silent, None)
        self._check_later()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        self.open_now.pop(self, None)
        super().connection_lost(exc)

    @property
    def is_silent(self) -> bool:
        """Whether no whole head of a request is there that is not answered yet."""
        return self.conn.their_state is h11.IDLE

    def _check_later(self) -> None:
        asyncio.get_running_loop().call_later(HEAD_WITHIN, self._close_if_silent)

    def _close_if_silent(self) -> None:
        if self.transport.is_closing():
            return
        if self.is_silent and self._was_silent:
            self.transport.close()
            return
        self._was_silent = self.is_silent
        self._check_later()


def protocol() -> type[PatientProtocol]:
    """The protocol of one server."""
    return type("PatientProtocol", (PatientProtocol,), {"open_now": OrderedDict()})


_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - a user may request it
LAST_PORT = 65_535
GRACE = 3
"""Seconds that answers under way get when the server ends."""


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens at this address; port 0 takes any that is free.

    Raises:
        InputError: the address is in use.
        ConfigError: it is not this machine's, or there is no such port.
    """
    if port > LAST_PORT:
        raise ConfigError(f"Port {port} for archived pages does not exist.", "Give a lower one with --port.")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise ConfigError(f"{host} is not an address of this machine.", "Give another with --host.") from error
    found = socket.socket(family, kind, protocol)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(128)
    except OSError as error:
        found.close()
        raise InputError(
            f"Nothing can be served at {host} port {port}: {error.strerror}.", "Give another with --port; 0 takes any."
        ) from error
    return found


def address_of(listening: socket.socket, host: str) -> str:
    """The address that a browser opens."""
    return address_at(host, listening.getsockname()[1])


def address_at(host: str, port: int) -> str:
    """The address that a browser opens; of a server that listens everywhere, by the name of the machine.

    >>> address_at("127.0.0.1", 8080), address_at("::1", 8080)
    ('http://127.0.0.1:8080', 'http://[::1]:8080')
    >>> address_at("0.0.0.0", 8080) == address_at(socket.gethostname(), 8080)
    True
    """
    if host in _EVERYWHERE:
        host = socket.gethostname()
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}"


def serve_all(
    apps: Sequence[tuple[ASGIApp, socket.socket]],
    ready: Callable[[], None],
    first: Sequence[PrefetchPaths] = (),
    *,
    over: Callable[[], bool] = lambda: False,
) -> None:
    """Serve each application on its socket until a signal arrives; not at all if it is ``over`` before the start.

    ``ready`` is called when all accept requests. Then ``first`` is prefetched.
    """
    with long_running():
        event_loop.run(_serve_all(apps, ready, first, over))


async def _serve_all(
    apps: Sequence[tuple[ASGIApp, socket.socket]],
    ready: Callable[[], None],
    first: Sequence[PrefetchPaths],
    over: Callable[[], bool],
) -> None:
    servers = [_server(app) for app, _ in apps]
    with _ended_by_signals(servers):
        if over():
            return
        tasks = [
            asyncio.create_task(server.serve(sockets=[listening]))
            for server, (_, listening) in zip(servers, apps, strict=True)
        ]
        # uvicorn has no notification that it is ready.
        while not all(server.started or task.done() for server, task in zip(servers, tasks, strict=True)):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        ready()
        looking = asyncio.create_task(_settle(first))
        await asyncio.gather(*tasks)
        looking.cancel()


@contextmanager
def heard_before() -> Iterator[Callable[[], bool]]:
    """Within the block Ctrl-C and SIGTERM are recorded; the yielded function returns whether one arrived.

    For the time between printing the address and the signal handlers of the server: exiting during imports would leave
    a half-started process. A second interrupt exits at once.
    """
    heard: list[int] = []

    def note(number: int, frame: object) -> None:  # noqa: ARG001 - as handlers of signals are called
        heard.append(number)
        if len(heard) > 1:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(heard)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def _settle(first: Sequence[PrefetchPaths]) -> None:
    """Prefetch. Objects loaded for it stay alive, so the garbage collector ignores them from now on."""
    await look_first(first)
    gc.collect()
    gc.freeze()


def _server(app: ASGIApp) -> uvicorn.Server:
    import uvicorn

    class Quiet(uvicorn.Server):
        """Leaves signals to us: one interrupt ends all servers of the process."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    return Quiet(
        uvicorn.Config(
            app,
            http=protocol(),
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            ws="none",
            timeout_graceful_shutdown=GRACE,
        )
    )


@contextmanager
def _ended_by_signals(servers: Sequence[uvicorn.Server]) -> Iterator[None]:
    loop = asyncio.get_running_loop()

    def end() -> None:
        for server in servers:
            server.force_exit = server.should_exit
            server.should_exit = True

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


_PIECE = 1 << 20
SHARE = 4
"""This part of the machine's memory is taken at most: others need theirs."""


def read_ahead(location: str | Path, over: Callable[[], bool], most: int | None = None) -> int:
    """Read the file of an SQLite store once from its beginning; return how many bytes, 0 for any other store.

    It ends early when it is ``over``, or after ``most`` bytes: a quarter of the machine's memory if not given. The
    interpreter is free meanwhile, so this is for a thread behind the scenes.
    """
    scheme, separator, rest = str(location).partition("://")
    if separator and scheme != "sqlite":
        return 0
    return _read(rest.removeprefix("/") if separator else str(location), over, _share() if most is None else most)


def _read(path: str, over: Callable[[], bool], most: int) -> int:
    import apsw

    # SQLite's own way to the file: to close it in any other way would undo the locks that this process has on it.
    try:
        file = apsw.VFSFile("", path, [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0])
    except apsw.Error:  # the request itself will report why it cannot be read
        return 0
    try:
        end, done = min(file.xFileSize(), most), 0
        while done < end and not over():
            read = len(file.xRead(min(_PIECE, end - done), done))
            if not read:  # it was cut short meanwhile
                break
            done += read
        return done
    finally:
        file.xClose()


def _share() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // SHARE


PATIENCE = 10.0
"""Seconds after which prefetching is given up: by then users send requests."""


@contextmanager
def read_ahead_meanwhile(location: str) -> Iterator[None]:
    """Bring the file of a store into memory, as far as there is some, behind the scenes of what is done here."""
    over = threading.Event()
    reading = threading.Thread(target=read_ahead, args=(location, over.is_set), daemon=True, name="recrawl-ahead")
    reading.start()
    try:
        yield
    finally:
        over.set()
        reading.join()


class PrefetchPaths(NamedTuple):
    """Paths of one application to prefetch, and its token."""

    app: ASGIApp
    paths: Sequence[str]
    token: str = ""


async def look_first(observations: Sequence[PrefetchPaths], patience: float = PATIENCE) -> int:
    """Request every path, applications in parallel, one path after the other; returns how many responded in time."""
    answered: list[str] = []
    tasks = [asyncio.create_task(_all_of(one, answered)) for one in observations]
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=patience)
        for task in late:
            task.cancel()
    return len(answered)


async def _all_of(observations: PrefetchPaths, answered: list[str]) -> None:
    shown = {"authorization": f"Bearer {observations.token}"} if observations.token else {}
    for path in observations.paths:
        if await _status(observations.app, path, shown) < 500:  # noqa: PLR2004 - HTTP
            answered.append(path)  # noqa: PERF401 - a caller that gives up counts what is there


async def _status(app: ASGIApp, path: str, headers: Mapping[str, str]) -> int:
    """The status of a discarded response."""
    found, over = [500], asyncio.Event()
    way, _, query = path.partition("?")
    given = {"host": "127.0.0.1", "accept": "text/html", **headers}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "root_path": "",
        "path": way,
        "raw_path": way.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
    }
    asked = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> Message:
        if (message := next(asked, None)) is not None:
            return message
        await over.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            found.append(message["status"])

    try:
        await app(scope, receive, send)
    except Exception:  # noqa: BLE001 - a request for that page reports it; the other pages still work
        return 500
    finally:
        over.set()
    return found[-1]
