"""A site that answers at once and keeps a log, and ``recrawl`` in processes that are killed: for tests and the soak."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

from recrawl.model import Visits

STARTER = Path(__file__).with_name("crawl_process.py")
HOSTS, PAGES = 5, 12
ALL = HOSTS * (PAGES + 1)
"""Pages there are: numbered ones, and the home of each host."""
PATIENCE = 120
"""Seconds that something may take on a machine that does much else."""


def until(so: Callable[[], bool], said: Callable[[], object]) -> None:
    """Wait until it is so; else tell what is ``said``."""
    for _ in range(PATIENCE * 200):
        if so():
            return
        time.sleep(0.005)
    raise AssertionError(f"no progress: {said()}")


class Request(NamedTuple):
    """One request, as the server saw it."""

    time: float
    """When it was read, by the clock of the machine, seconds since the epoch."""
    url: str
    answered: float
    """Just before the answer was written."""

    @property
    def is_of_page(self) -> bool:
        """Whether it was for a page, and not for the rules of its host."""
        return not self.url.endswith("/robots.txt")

    @property
    def host(self) -> str:
        """Host and port."""
        return self.url.split("/")[2]


class _Connection(asyncio.Protocol):
    """One connection to a few hosts that answer at once, and whose pages change now and then."""

    def __init__(self, site: Site) -> None:
        self._site, self._data = site, b""

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - a transport that also writes
        self._site.open.add(transport)
        self._transport = transport
        self._host = transport.get_extra_info("sockname")

    def connection_lost(self, _error: Exception | None) -> None:
        self._site.open.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        now = time.time()  # noqa: TID251 - a server of its own, beside the crawler
        self._data += data
        while b"\r\n\r\n" in self._data:
            head, _, self._data = self._data.partition(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode()
            said = answer(path, head, now)
            url = f"http://{self._host[0]}:{self._host[1]}{path}"
            if path != PROBE:
                self._site.all.append(Request(now, url, time.time()))  # noqa: TID251 - likewise
                if path != "/robots.txt":
                    self._site.log.append(self._site.all[-1])
            self._transport.write(said)


PROBE = "/is-all-read"


def answer(path: str, head: bytes, now: float) -> bytes:
    """What the site answers."""
    if path in {"/robots.txt", PROBE}:
        return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
    number = int(path.strip("/") or 0)
    version = int(now / (1.0 + number % 4))
    tag = b'"%d"' % version
    if b"If-None-Match: " + tag in head:
        return b"HTTP/1.1 304 Not Modified\r\nETag: " + tag + b"\r\n\r\n"
    links = "".join(f'<a href="/{(number * 3 + n) % PAGES}">{n}</a> ' for n in range(3))
    prose = " ".join(f"word{(number * 7919 + version * 104_729 + n * n) % 9973}" for n in range(200))
    body = f"<html><body><p>{prose}</p>{links}</body></html>".encode()
    fields = b"Content-Type: text/html\r\nETag: " + tag
    return b"HTTP/1.1 200 OK\r\n%s\r\nContent-Length: %d\r\n\r\n%s" % (fields, len(body), body)


@dataclass
class Site:
    """A few hosts, each an address of loopback."""

    port: int = 0
    hosts: int = HOSTS
    log: list[Request] = field(default_factory=list)
    """Requests for pages."""
    all: list[Request] = field(default_factory=list)
    """Those for rules, too."""
    open: set[asyncio.BaseTransport] = field(default_factory=set)
    """Connections that the server has not seen the end of."""

    @property
    def seed_scope(self) -> list[str]:
        """The first page of each host."""
        return [f"http://{address_of(number)}:{self.port}/" for number in range(self.hosts)]

    def until_all_is_read(self) -> None:
        """Return when the server has read what dead crawlers sent: it may not have come to that yet."""
        for number in range(self.hosts):  # earlier connections are accepted earlier
            with socket.create_connection((address_of(number), self.port), PATIENCE) as connection:
                connection.sendall(f"GET {PROBE} HTTP/1.1\r\n\r\n".encode())
                if not connection.recv(1):
                    raise AssertionError("the site does not answer")
        until(lambda: not self.open, lambda: f"connections that do not end: {self.open}")

    def is_quiet(self) -> bool:
        """Whether nobody asked for anything in the last second."""
        return time.time() - self.log[-1].time > 1.0  # noqa: TID251 - its own log


def address_of(number: int) -> str:
    """The address of a host, counted from 0."""
    return f"127.0.{number // 250}.{number % 250 + 1}"


@contextmanager
def a_site(port: int = 0, hosts: int = HOSTS) -> Iterator[Site]:
    """A site that runs until the block ends. An OSError where loopback has but one address, or the port is taken."""
    socket.create_server((address_of(hosts - 1), 0)).close()
    ready, stop, failed = threading.Event(), list[Callable[[], object]](), list[OSError]()
    place = Site(hosts=hosts)

    async def serve() -> None:
        loop = asyncio.get_running_loop()

        def made() -> _Connection:
            return _Connection(place)

        over = asyncio.Event()
        try:
            servers = [await loop.create_server(made, "127.0.0.1", port)]
            place.port = servers[0].sockets[0].getsockname()[1]
            servers += [await loop.create_server(made, address_of(n), place.port) for n in range(1, hosts)]
        except OSError as error:
            failed.append(error)
            ready.set()
            return
        stop.append(lambda: loop.call_soon_threadsafe(over.set))
        ready.set()
        await over.wait()
        for server in servers:
            server.close()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    if not ready.wait(PATIENCE):
        raise AssertionError("the site does not start")
    if failed:
        raise failed[0]
    yield place
    stop[0]()
    thread.join(PATIENCE)


class Starter:
    """Runs ``recrawl`` in processes of its own, quickly."""

    def __init__(self, process: subprocess.Popen[str], said: Path) -> None:
        self._process, self._said = process, said
        self._running: set[int] = set()

    def _ask(self, order: dict[str, object]) -> int:
        stdin, stdout = _pipe(self._process.stdin), _pipe(self._process.stdout)
        stdin.write(json.dumps(order) + "\n")
        stdin.flush()
        return int(stdout.readline())

    def start(self, *arguments: object) -> int:
        """Start ``recrawl`` with these arguments; the number of the process."""
        process = self._ask({"run": [str(argument) for argument in arguments], "said": str(self._said)})
        self._running.add(process)
        return process

    def end(self, process: int, number: int | None = None) -> int:
        """Send it a signal and wait for its end; its exit code."""
        if number is not None:
            with suppress(ProcessLookupError):
                os.kill(process, number)
        self._running.discard(process)
        return self._ask({"wait": process})

    def kill_rest(self) -> None:
        """Kill what still runs: a test that fails leaves nothing behind."""
        for process in self._running:
            for child in (*children_of(process), process):
                kill(child)

    def run(self, *arguments: object) -> int:
        """Run ``recrawl`` to its end; its exit code."""
        return self.end(self.start(*arguments))

    def said(self) -> str:
        """All that was said so far, by all of them."""
        return self._said.read_text(encoding="utf-8") if self._said.exists() else ""


def _pipe(pipe: IO[str] | None) -> IO[str]:
    if pipe is None:
        raise AssertionError("the starter has no pipes")
    return pipe


@contextmanager
def a_starter(folder: Path) -> Iterator[Starter]:
    """A process that has all modules loaded, and forks."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("RECRAWL_")}  # noqa: TID251 - a child's
    inherited["OPENBLAS_NUM_THREADS"] = "1"
    command = [sys.executable, str(STARTER)]
    with subprocess.Popen(command, text=True, env=inherited, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        if _pipe(process.stdout).readline() != "ready\n":
            raise AssertionError("the starter does not start")
        starter = Starter(process, folder / "said.txt")
        try:
            yield starter
        finally:
            starter.kill_rest()
            _pipe(process.stdin).close()


def children_of(process: int) -> list[int]:
    """Processes that a process started and that run, and theirs; nothing where the system does not tell."""
    found: list[int] = []
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, path.read_text().split())
    return found + [other for child in found for other in children_of(child)]


def is_alive(process: int) -> bool:
    """Whether a process runs: one that ended and that nobody waited for does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in {"Z", "X"}


def kill(process: int) -> None:
    """Kill a process that may be gone."""
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def rows(visits: Visits) -> dict[tuple[int, float], list[Any]]:
    """All columns of visits by page and time."""
    columns = [column.tolist() for column in visits.columns().values()]
    return {(row[0], row[1]): list(row[2:]) for row in zip(*columns, strict=True)}
