"""Transfers of libcurl that run at once, on the event loop: it tells us what to wait for, and we tell it what came.

The same as ``pycurl.AsyncCurlMulti`` does, in a third of the steps a transfer: a page costs little beside.

Sockets are watched for the length of a transfer. An event loop makes much of that, so it watches one thing only: an
epoll that watches them all. Where there is none the event loop does it.

Rules of this file:
 1. libcurl is only called from the event loop, and never out of one of its own callbacks.
 2. A time-out that comes too early is harmless, one that never comes is not: a timer that stands is left standing, and
    looks at the time when it rings.
"""

from __future__ import annotations

import asyncio
import math
import select
from contextlib import suppress
from typing import Any

_AT_ONCE = 16
"""Sockets that are looked after before others have their turn."""
_IN, _OUT = getattr(select, "EPOLLIN", 0), getattr(select, "EPOLLOUT", 0)


class Transfers:
    """Carries out transfers. To be closed; bound to the event loop in which the first one begins."""

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
        """What is told when a transfer is over, by its handle."""
        self._watched: dict[int, int] = {}
        """Sockets that we look at, and what for."""
        self._events = {pycurl.POLL_IN: _IN, pycurl.POLL_OUT: _OUT, pycurl.POLL_INOUT: _IN | _OUT}
        self._epoll = select.epoll() if hasattr(select, "epoll") else None
        self._soon: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._rings = self._due = math.inf
        """When the timer rings, and when libcurl wants to be called; in the event loop's time."""

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        if self._epoll is not None:
            loop.add_reader(self._epoll.fileno(), self._look)

    async def perform(self, curl: Any) -> tuple[int, str]:  # noqa: ANN401 - a handle of libcurl
        """Carry out what the handle is prepared for; libcurl's number and words for what went wrong, 0 if nothing did.

        If it is cancelled, the transfer ends.
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
        """Close all connections. Transfers that still run are cancelled."""
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
        """Look whether this socket can be read or written, or neither any more."""
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
            with suppress(OSError):  # it is closed, and so forgotten already
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
        """Be called in so many milliseconds, and not when we said before; not at all if negative."""
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
        """The time has come, unless libcurl changed its mind since."""
        self._timer, self._rings = None, math.inf
        if self._loop is not None and self._loop.time() < self._due < math.inf:
            self._set_timer(self._loop)
        elif self._due < math.inf:
            self._time_is_up()

    # -- what we tell libcurl -------------------------------------------------------------------

    def _look(self) -> None:
        """Something came at some sockets."""
        if self._epoll is not None:
            for socket, events in self._epoll.poll(0, _AT_ONCE):
                # An error shows when one reads, or writes.
                can = self._can_read if events & ~_OUT else 0
                self._go_on(socket, can | self._can_write if events & ~_IN else can)

    def _time_is_up(self) -> None:
        self._soon = None
        self._go_on(self._timeout, 0)

    def _go_on(self, socket: int, can: int) -> None:
        """Something came, or the time did: let libcurl work, and tell whose transfers are over by that."""
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
        if not over.done():  # it may be cancelled in this very turn
            over.set_result((code, words))
