"""Connections of clients that never say what they want: they are closed before they keep others out.

A server takes some hundred connections at once, since a process may have so many files open. A client that opens
connections and sends half a request on each, or nothing, would hold them for ever. So they are closed after a while,
and the oldest at once if there are too many. One that is being answered is left alone.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_WITHIN = 20.0
"""Seconds in which a client has to say what it wants; it is looked at after so long, and closed after twice as long."""
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
        self._look_again()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        self.open_now.pop(self, None)
        super().connection_lost(exc)

    @property
    def is_silent(self) -> bool:
        """Whether no whole head of a request is there that is not answered yet."""
        return self.conn.their_state is h11.IDLE

    def _look_again(self) -> None:
        asyncio.get_running_loop().call_later(HEAD_WITHIN, self._look)

    def _look(self) -> None:
        if self.transport.is_closing():
            return
        if self.is_silent and self._was_silent:
            self.transport.close()
            return
        self._was_silent = self.is_silent
        self._look_again()


def protocol() -> type[PatientProtocol]:
    """The protocol of one server."""
    return type("PatientProtocol", (PatientProtocol,), {"open_now": OrderedDict()})
