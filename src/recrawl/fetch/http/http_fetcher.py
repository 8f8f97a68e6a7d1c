"""The HTTP fetcher on libcurl: many transfers at once, each with the bytes exactly as received (``transfer.py``).

Rules of the fetcher:

1. Every remote failure becomes a capture.
2. No connection is opened to an address that the address policy forbids. Only ``dns.py`` resolves names, and the
   connection goes to the resolved address.
3. HTTP/2 is used with hosts that offer it over TLS, if it is enabled.

:class:`Transfers` runs libcurl's transfers on the event loop, as ``pycurl.AsyncCurlMulti`` does, in a third of the
steps per transfer. Watching sockets for the length of a transfer is expensive in an event loop, so it watches one
epoll, which watches all sockets; where epoll is missing the event loop watches them itself.

Rules of ``Transfers``:

1. libcurl is only called from the event loop, and never from one of its own callbacks.
2. A time-out that comes too early is harmless, one that never comes is not: a running timer is kept, and checks the
   time when it fires.

The entry points of the group ``recrawl.fetchers`` name fetchers of other packages. A fetcher is opened by a callable
that takes :class:`FetchTerms` and returns an asynchronous context manager of a :class:`~recrawl.fetch.request.Fetcher`.
The setting ``fetch.fetcher`` chooses one for the pages of a crawl. Clients of other archives always use HTTP.
"""

from __future__ import annotations

import asyncio
import math
import select
import ssl
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from types import MappingProxyType, TracebackType
from typing import Any, Self, TypeAlias

from recrawl import plugins
from recrawl.errors import require
from recrawl.fetch.http.bytes_in_flight import BytesInFlight
from recrawl.fetch.http.dns import AddressPolicy, HostResolver
from recrawl.fetch.http.transfer import Transfer, TransferLimits
from recrawl.fetch.request import Fetcher, FetchRequest, checked_user_agent
from recrawl.model import Capture
from recrawl.model.visits import NO_CONNECTION, NO_ROUTE
from recrawl.time import Clock

_AT_ONCE = 16
"""Sockets that are handled before other tasks run."""
_IN, _OUT = getattr(select, "EPOLLIN", 0), getattr(select, "EPOLLOUT", 0)


class Transfers:
    """Runs transfers. Close it; it is bound to the event loop of the first transfer."""

    def __init__(self, pycurl: Any, idle_connections: int) -> None:  # noqa: ANN401 - the module
        self._error = pycurl.error
        self._timeout = pycurl.SOCKET_TIMEOUT
        self._read, self._write = pycurl.POLL_IN, pycurl.POLL_OUT
        self._can_read, self._can_write = pycurl.CSELECT_IN, pycurl.CSELECT_OUT
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, idle_connections)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: dict[Any, asyncio.Future[tuple[int, str]]] = {}
        """The result of each transfer, by its handle."""
        self._watched: dict[int, int] = {}
        """Watched sockets, and for which events."""
        self._events = {pycurl.POLL_IN: _IN, pycurl.POLL_OUT: _OUT, pycurl.POLL_INOUT: _IN | _OUT}
        self._epoll = select.epoll() if hasattr(select, "epoll") else None
        self._soon: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._rings = self._due = math.inf
        """When the timer fires, and when libcurl wants to be called; in the event loop's time."""

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        if self._epoll is not None:
            loop.add_reader(self._epoll.fileno(), self._on_events)

    async def perform(self, curl: Any) -> tuple[int, str]:  # noqa: ANN401 - a handle of libcurl
        """Run the transfer of a handle; return libcurl's error number and message, 0 if there is no error.

        If the task is cancelled, the transfer ends.
        """
        if self._loop is None:
            self._begin(asyncio.get_running_loop())
        over: asyncio.Future[tuple[int, str]] = asyncio.get_running_loop().create_future()
        self._multi.add_handle(curl)
        self._running[curl] = over
        try:
            return await over
        finally:
            if self._running.pop(curl, None) is not None:
                self._multi.remove_handle(curl)

    def close(self) -> None:
        """Close all connections. Running transfers are cancelled."""
        for handle in (self._soon, self._timer):
            if handle is not None:
                handle.cancel()
        try:
            for curl, over in [*self._running.items()]:
                del self._running[curl]
                over.cancel()
                self._multi.remove_handle(curl)
            for socket in [*self._watched]:
                self._on_socket(0, socket)
            self._multi.close()
        finally:
            if self._epoll is not None and not self._epoll.closed:
                if self._loop is not None:
                    self._loop.remove_reader(self._epoll.fileno())
                self._epoll.close()

    # -- what libcurl asks for ------------------------------------------------------------------

    def _on_socket(self, wanted: int, socket: int, _multi: object = None, _data: object = None) -> None:
        """Watch whether this socket can be read or written, or stop watching it."""
        wanted &= self._read | self._write
        before = self._watched.get(socket, 0)
        if wanted == before or self._loop is None:
            return
        if wanted:
            self._watched[socket] = wanted
        else:
            del self._watched[socket]
        if self._epoll is None:
            self._watch_by_loop(self._loop, socket, before, wanted)
        elif not wanted:
            with suppress(OSError):  # it is closed, and so no longer watched
                self._epoll.unregister(socket)
        elif before:
            self._epoll.modify(socket, self._events[wanted])
        else:
            self._epoll.register(socket, self._events[wanted])

    def _watch_by_loop(self, loop: asyncio.AbstractEventLoop, socket: int, before: int, wanted: int) -> None:
        if (wanted ^ before) & self._read:
            if wanted & self._read:
                loop.add_reader(socket, self._go_on, socket, self._can_read)
            else:
                loop.remove_reader(socket)
        if (wanted ^ before) & self._write:
            if wanted & self._write:
                loop.add_writer(socket, self._go_on, socket, self._can_write)
            else:
                loop.remove_writer(socket)

    def _on_timer(self, milliseconds: int) -> None:
        """Call libcurl in this many milliseconds, instead of the last time given; never if negative."""
        if self._loop is None:
            return
        if milliseconds == 0:
            if self._soon is None:
                self._soon = self._loop.call_soon(self._time_is_up)
            return
        self._due = self._loop.time() + milliseconds / 1000 if milliseconds > 0 else math.inf
        if self._due < self._rings:
            self._set_timer(self._loop)

    def _set_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._rings = self._due
        self._timer = loop.call_at(self._due, self._ring)

    def _ring(self) -> None:
        """The timer fired: call libcurl, unless it changed the time since."""
        self._timer, self._rings = None, math.inf
        if self._loop is not None and self._loop.time() < self._due < math.inf:
            self._set_timer(self._loop)
        elif self._due < math.inf:
            self._time_is_up()

    # -- what we tell libcurl -------------------------------------------------------------------

    def _on_events(self) -> None:
        """Handle events of watched sockets."""
        if self._epoll is not None:
            for socket, events in self._epoll.poll(0, _AT_ONCE):
                # An error shows at the next read or write.
                can = self._can_read if events & ~_OUT else 0
                self._go_on(socket, can | self._can_write if events & ~_IN else can)

    def _time_is_up(self) -> None:
        self._soon = None
        self._go_on(self._timeout, 0)

    def _go_on(self, socket: int, can: int) -> None:
        """Let libcurl work after an event or a time-out, and finish the transfers that ended."""
        if can and socket not in self._watched:
            return
        try:
            _, running = self._multi.socket_action(socket, can)
        except self._error as fault:
            for curl in [*self._running]:
                self._end(curl, *fault.args)
            return
        if running < len(self._running):
            _, well, failed = self._multi.info_read()
            for curl in well:
                self._end(curl, 0, "")
            for curl, code, words in failed:
                self._end(curl, code, words)

    def _end(self, curl: Any, code: int, words: str) -> None:  # noqa: ANN401 - a handle of libcurl
        over = self._running.pop(curl, None)
        if over is None:
            return
        self._multi.remove_handle(curl)
        if not over.done():  # it may be cancelled in this same turn
            over.set_result((code, words))


_SHARE = 4
"""One in this many open files may be an idle connection; the others are busy, or files and stores."""


def raise_limit() -> None:
    """Raise the limit of open files to the hard limit: many systems start with 1,024, for old programs."""
    try:
        import resource
    except ImportError:  # not on Windows, where no limit is known
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # a system without a limit may refuse a value
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def idle_connections(wanted: int) -> int:
    """How many of the wanted idle connections may stay open; at least one."""
    try:
        import resource
    except ImportError:
        return wanted
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if soft == resource.RLIM_INFINITY else max(1, min(wanted, soft // _SHARE))


__all__ = ["HttpFetcher", "TransferLimits"]


class HttpFetcher:
    """Fetches over HTTP with many transfers at once on the running event loop.

    Use it as an async context manager and await all fetches before it ends. ``resolve`` pins ``"host:port"`` to an IP
    address instead of DNS. ``reach`` limits the addresses to connect to; without it all are allowed. ``names`` resolves
    hosts and may be shared; without it the fetcher has its own. The capture's time is the clock's; its duration is
    measured by libcurl. Handles and connections are reused; the caller chooses the number of concurrent requests.
    ``in_flight`` bounds the bytes of all responses together; without it each may be as long as ``limits`` allow.
    """

    def __init__(  # noqa: PLR0913 - identity and limits; all but two optional
        self,
        clock: Clock,
        user_agent: str,
        *,
        resolve: Mapping[str, str] | None = None,
        limits: TransferLimits | None = None,
        ca_file: str = "",
        reach: AddressPolicy | None = None,
        names: HostResolver | None = None,
        http2: bool = True,
        in_flight: BytesInFlight | None = None,
    ) -> None:
        self._in_flight = in_flight
        self._pycurl: Any = require("pycurl", "crawl")
        self._clock = clock
        self._user_agent = checked_user_agent(user_agent)
        self._limits = limits or TransferLimits()
        self._names = names or HostResolver(clock, reach=reach, pins=resolve, patience=self._limits.connect)
        self._names_are_ours = names is None
        self._reach = reach
        self._http2 = http2
        self._ca_file = ca_file or ssl.get_default_verify_paths().cafile
        self._transfers = Transfers(self._pycurl, idle_connections(self._limits.connections))
        self._idle: list[Transfer] = []
        self._spelled: dict[str, str] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections. Running fetches are cancelled."""
        if self._names_are_ours:
            await self._names.close()
        self._transfers.close()
        while self._idle:
            self._idle.pop().curl.close()

    async def fetch(self, request: FetchRequest) -> Capture:
        """Make one request and return its capture, whatever the result."""
        found = await self._names.find(request.url)
        began = self._clock.now()
        if not found.address:
            return Capture(request.url, began, 0, error=found.error, failure=found.failure)
        transfer = self._idle.pop() if self._idle else self._new_transfer()
        # A cancelled handle is not reused: it may be in any state.
        try:
            transfer.prepare(request, found.address)
            code, words = await self._transfers.perform(transfer.curl)
        except self._pycurl.error as failure:
            code, words = failure.args
        except BaseException:
            transfer.forget()
            raise
        finally:
            transfer.close_sockets()
        capture = transfer.capture(request.url, began, code, words)
        self._idle.append(transfer)
        if capture.failure in (NO_CONNECTION, NO_ROUTE):
            self._names.use_next(request.url)
        return capture

    def _new_transfer(self) -> Transfer:
        transfer = Transfer(self._pycurl, self._limits, self._reach, self._spelled, self._in_flight, self._clock)
        options, curl = self._pycurl, transfer.curl
        curl.setopt(options.USERAGENT, self._user_agent)
        version = options.CURL_HTTP_VERSION_2TLS if self._http2 else options.CURL_HTTP_VERSION_1_1
        curl.setopt(options.HTTP_VERSION, version)
        if self._ca_file:
            curl.setopt(options.CAINFO, self._ca_file)
        return transfer


@dataclass(frozen=True, slots=True)
class FetchTerms:
    """What a fetcher works with, and the limits it must keep."""

    clock: Clock
    """Captures have its time."""
    user_agent: str
    """Sent with every request."""
    limits: TransferLimits = field(default_factory=TransferLimits)
    """How long and how much one request may take."""
    reach: AddressPolicy | None = None
    """Addresses that may be connected to; ``None`` for all."""
    names: HostResolver | None = None
    """Finds addresses by these rules, and is shared with the IP limits; ``None``: the fetcher has its own."""
    http2: bool = True
    """Whether HTTP/2 may be spoken."""
    in_flight: BytesInFlight | None = None
    """Bounds the bytes of all answers together, if given."""


OpenFetcher: TypeAlias = Callable[[FetchTerms], AbstractAsyncContextManager[Fetcher]]
"""Opens a fetcher, which is closed when its context ends."""


def http_fetcher(terms: FetchTerms) -> AbstractAsyncContextManager[Fetcher]:
    """The built-in fetcher for http and https."""
    return HttpFetcher(
        terms.clock,
        terms.user_agent,
        limits=terms.limits,
        reach=terms.reach,
        names=terms.names,
        http2=terms.http2,
        in_flight=terms.in_flight,
    )


FETCHERS: Mapping[str, OpenFetcher] = MappingProxyType({"http": http_fetcher})
"""The built-in fetchers by name."""


def fetcher_named(name: str) -> OpenFetcher:
    """How to open a fetcher: a built-in one, one of an entry point, or ``package.module:Name``.

    Raises:
        ConfigError: there is none, or it cannot be loaded.
    """
    opener: OpenFetcher = plugins.find("fetcher", name, FETCHERS)
    return opener
