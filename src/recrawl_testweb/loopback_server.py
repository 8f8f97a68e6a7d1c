"""HTTP/1.1 on loopback: bytes to requests and answers to bytes, in a thread with its own event loop."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from recrawl.errors import ConfigError, require
from recrawl_testweb.responses import MalformedRequest, ReceivedRequest, WebResponse

if TYPE_CHECKING:
    import h11

IP = "127.0.0.1"
"""The only address ever listened on."""
_PIECE = 1024
"""Bytes of one chunk."""
_DRIPS = 4
"""Pieces in which a slow answer comes."""

Handler = Callable[[ReceivedRequest | MalformedRequest, int], WebResponse]
"""Told of a request and the number of its connection."""


class LoopbackServer:
    """Listens on 127.0.0.1 and asks a handler for every answer. The handler runs in the server's thread."""

    def __init__(self, port: int = 0) -> None:
        self._h11 = require("h11", "living")
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((IP, port))
        except OSError as busy:
            self._socket.close()
            raise ConfigError(f"Port {port} on {IP} cannot be used: {busy.strerror}.", "Choose another or 0.") from busy
        self.port: int = self._socket.getsockname()[1]
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        self._bugs: list[BaseException] = []
        self.closing = False
        self.connections = 0
        self.open: set[_Connection] = set()

    def start(self, handler: Handler) -> None:
        """Serve until ``close``; returns once connections are taken."""
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(handler, ready), name="living-web", daemon=True)
        self._thread.start()
        ready.wait()
        if self._bugs:
            self.close()

    def close(self) -> None:
        """Stop, close all connections, and raise what went wrong in the handler, if anything did."""
        if self._thread is None:
            self._socket.close()
            return
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._thread = None
        if self._bugs:
            raise self._bugs[0]

    def _run(self, handler: Handler, ready: threading.Event) -> None:
        try:
            asyncio.run(self._serve(handler, ready))
        except BaseException as bug:  # noqa: BLE001 - raised again by close(), in the owner's thread
            self._bugs.append(bug)
        finally:
            ready.set()

    async def _serve(self, handler: Handler, ready: threading.Event) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._loop.set_exception_handler(self._keep_bug)
        server = await self._loop.create_server(lambda: _Connection(self, self._h11, handler), sock=self._socket)
        ready.set()
        await self._stop.wait()
        self.closing = True
        server.close()
        for connection in list(self.open):
            connection.drop()
        await server.wait_closed()

    def _keep_bug(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._bugs.append(context.get("exception") or RuntimeError(context["message"]))


class _Connection(asyncio.Protocol):
    """One connection. ``h11`` says what is allowed next; this class only moves bytes."""

    def __init__(self, server: LoopbackServer, h11_module: Any, handler: Handler) -> None:  # noqa: ANN401 - a module
        self._server = server
        self._h11 = h11_module
        self._http: h11.Connection = h11_module.Connection(h11_module.SERVER)
        self._handler = handler
        self._number = server.connections
        server.connections += 1
        self._transport: asyncio.Transport | None = None
        self._answer: WebResponse | None = None
        self._method = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - what a stream server gets, for the type checker
        self._transport = transport
        self._server.open.add(self)
        if self._server.closing:
            transport.abort()  # taken up after the others were dropped

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - a client may leave as it likes
        self._server.open.discard(self)
        self._transport = None

    def drop(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._http.receive_data(data)
        self._advance()

    def eof_received(self) -> bool:
        self._http.receive_data(b"")
        self._advance()
        return True  # the client may still listen: h11 says when the connection is over

    def _advance(self) -> None:
        """Take up everything that has arrived, as far as the protocol lets us."""
        h11 = self._h11
        while self._transport is not None and not self._transport.is_closing():
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as fault:
                self._reject(fault.error_status_hint)
                return
            if event in (h11.NEED_DATA, h11.PAUSED):
                return
            match event:
                case h11.Request():
                    self._method = event.method.decode("ascii")
                    self._answer = self._handler(_understood(event), self._number)
                case h11.EndOfMessage():
                    self._begin_answer()
                case h11.ConnectionClosed():
                    self._transport.close()
                    return

    def _reject(self, status: int) -> None:
        """Say that a request makes no sense, if there is still someone to say it to, and hang up."""
        answer = self._handler(MalformedRequest(status), self._number)
        if self._transport is not None:
            if self._http.our_state in (self._h11.IDLE, self._h11.SEND_RESPONSE):
                self._transport.write(b"".join(self._pieces(answer)))
            self._transport.close()

    def _begin_answer(self) -> None:
        answer, self._answer = self._answer, None
        if answer is None:  # pragma: no cover - h11 gives a request before its end
            return
        pieces = self._pieces(answer)
        if not answer.slow:
            self._finish(b"".join(pieces), answer)
            return
        self._drip(pieces, answer, answer.slow / len(pieces))

    def _drip(self, pieces: list[bytes], answer: WebResponse, pause: float) -> None:
        """Send the pieces one by one, with pauses of real time between them."""
        if self._transport is None:
            return
        if len(pieces) == 1:
            self._finish(pieces[0], answer)
            self._advance()
            return
        self._transport.write(pieces[0])
        asyncio.get_running_loop().call_later(pause, self._drip, pieces[1:], answer, pause)

    def _finish(self, data: bytes, answer: WebResponse) -> None:
        if self._transport is None:
            return
        self._transport.write(data)
        if answer.cut or self._http.our_state is self._h11.MUST_CLOSE:
            self._transport.close()
        else:
            self._http.start_next_cycle()

    def _pieces(self, answer: WebResponse) -> list[bytes]:
        """The wire bytes of an answer, cut where a slow sender would pause."""
        h11, send = self._h11, self._http.send
        headers = list(answer.headers)
        chunked = answer.chunked and answer.status == 200  # noqa: PLR2004 - OK
        if not chunked and answer.status != 304:  # noqa: PLR2004 - Not Modified, which has no body
            headers.append(("Content-Length", str(len(answer.body))))
        pieces = [send(h11.Response(status_code=answer.status, headers=headers)) or b""]
        body = answer.sent() if self._method != "HEAD" else b""
        step = (
            max(1, min(_PIECE, len(body))) if chunked else max(1, -(-len(body) // _DRIPS) if answer.slow else len(body))
        )
        pieces += [send(h11.Data(data=body[first : first + step])) or b"" for first in range(0, len(body), step)]
        if not answer.cut:
            pieces.append(send(h11.EndOfMessage()) or b"")
        return pieces


def _understood(event: h11.Request) -> ReceivedRequest:
    """The parts of a request that the answer depends on. An absolute target names the host itself (RFC 9112 3.2.2)."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in event.headers:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    target, host = event.target.decode("latin-1"), headers.get("host", "")
    if target.lower().startswith("http://"):
        host, _, path = target[len("http://") :].partition("/")
        target = f"/{path}"
    return ReceivedRequest(event.method.decode("ascii"), host.partition(":")[0].lower().rstrip("."), target, headers)
