"""HTTP by libcurl: the bytes exactly as they came over the wire.

Rules of this file:
 1. Nothing is decoded: chunk framing, content-encoding, header case and order stay as received. One thing is out
    of our hands: a header folded over several lines (obsolete since RFC 7230) reaches us from libcurl as one line.
 2. Nothing is followed and nothing is remembered: no redirects, no cookies, no proxy or password from the environment.
 3. Whatever happens on the remote side becomes a capture. Once the head is complete there is an answer; a body
    cut short by our limits or by the server keeps its bytes and says why it ends.
 4. No connection is opened to an address that is out of reach (``reach.py``), whoever named it. Names are looked up
    by ``names.py`` alone, and the connection goes to the very address that was found.
 5. HTTP/2 is spoken to whoever offers it over TLS, if we are told to. It has no head in text; libcurl writes one, which
    is kept as that of HTTP/1.1, the only one that readers of archives know.
"""

from __future__ import annotations

import errno
import re
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from recrawl.errors import require
from recrawl.fetch.failures import failure_of
from recrawl.fetch.names import Names, out_of_reach
from recrawl.fetch.reach import Reach
from recrawl.fetch.request import Request, checked_user_agent
from recrawl.model import Capture
from recrawl.model.failures import NO_CONNECTION, NO_ROUTE, NOT_ALLOWED
from recrawl.time import Clock

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
_STATUS_LINE = re.compile(rb"HTTP/\d(?:\.\d)? +([1-9]\d{2})(?!\d)", re.IGNORECASE)
_HEADER_VALUE = re.compile(r"[\x20-\x7e\x80-\xff]+")
_INTERIM = range(100, 200)
_HTTP2, _HTTP1 = b"HTTP/2", b"HTTP/1.1"
_HTTP2_HEAD = b"HTTP/2 "
_TOO_LARGE = 100
"""libcurl's number for a head beyond its own limits."""
_CUT_BY_SERVER = ("E_PARTIAL_FILE", "E_RECV_ERROR", "E_SEND_ERROR", "E_GOT_NOTHING", "E_HTTP2")
_HTTP2_STREAM = 92
"""libcurl's number for a stream of HTTP/2 that was reset; pycurl has no name for it."""
_REFUSED = (errno.ECONNREFUSED, errno.ECONNRESET)
_MOST_INTERIM = 20
"""Answers below 200 before the real one."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long and how much one request may take."""

    connect: float = 15.0
    """Seconds until the connection stands."""
    total: float = 120.0
    """Seconds until the last byte."""
    idle: float = 20.0
    """Seconds without a byte, rounded up to whole ones. libcurl averages, and so acts up to 5 s late."""
    body: int = 64 * 1024 * 1024
    """Bytes of body kept; the rest is not read."""
    head: int = 256 * 1024
    """Bytes of head, those of interim answers included; an answer that has more is none. Browsers stop there, too."""
    connections: int = 256
    """Idle connections kept open over all hosts."""


class HttpFetcher:
    """Fetches over HTTP with many transfers at once on the running event loop.

    Use it as an async context manager and await all fetches before it ends. ``resolve`` pins
    ``"host:port"`` to an IP address instead of asking DNS. ``reach`` says which addresses may be connected to; without
    it all may. ``names`` finds addresses, and is shared with whoever else needs them; without it the fetcher
    has its own. The capture's time is the clock's; its duration is what libcurl measured. Handles and connections are
    reused; how many requests run at once is the caller's choice.
    """

    def __init__(  # noqa: PLR0913 - who asks, and within which bounds; all but two optional
        self,
        clock: Clock,
        user_agent: str,
        *,
        resolve: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        ca_file: str = "",
        reach: Reach | None = None,
        names: Names | None = None,
        http2: bool = True,
    ) -> None:
        self._pycurl: Any = require("pycurl", "crawl")
        self._clock = clock
        self._user_agent = checked_user_agent(user_agent)
        self._limits = limits or Limits()
        self._names = names or Names(clock, reach=reach, pins=resolve, patience=self._limits.connect)
        self._names_are_ours = names is None
        self._reach = reach
        self._http2 = http2
        self._ca_file = ca_file or ssl.get_default_verify_paths().cafile
        self._multi = self._pycurl.AsyncCurlMulti()
        self._multi.setopt(self._pycurl.M_MAXCONNECTS, self._limits.connections)
        self._idle: list[_Transfer] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections. Fetches still running are cancelled."""
        if self._names_are_ours:
            await self._names.close()
        await self._multi.aclose()
        while self._idle:
            self._idle.pop().curl.close()

    async def fetch(self, request: Request) -> Capture:
        """Ask once and return what came, whatever it was."""
        found = await self._names.find(request.url)
        began = self._clock.now()
        if not found.address:
            return Capture(request.url, began, 0, error=found.error, failure=found.failure)
        transfer = self._idle.pop() if self._idle else self._new_transfer()
        code, words = 0, ""
        # A transfer that is cancelled here is still known to libcurl, so it does not return to the idle ones.
        try:
            transfer.prepare(request, found.address)
            await self._multi.perform(transfer.curl)
        except self._pycurl.error as failure:
            code, words = failure.args
        finally:
            transfer.let_go()
        capture = transfer.capture(request.url, began, code, words)
        self._idle.append(transfer)
        if capture.failure in (NO_CONNECTION, NO_ROUTE):
            self._names.use_next(request.url)
        return capture

    def _new_transfer(self) -> _Transfer:
        transfer = _Transfer(self._pycurl, self._limits, self._reach)
        options, curl = self._pycurl, transfer.curl
        curl.setopt(options.USERAGENT, self._user_agent)
        version = options.CURL_HTTP_VERSION_2TLS if self._http2 else options.CURL_HTTP_VERSION_1_1
        curl.setopt(options.HTTP_VERSION, version)
        if self._ca_file:
            curl.setopt(options.CAINFO, self._ca_file)
        return transfer


class _Transfer:
    """A libcurl handle and the bytes of the exchange it carries."""

    def __init__(self, pycurl: Any, limits: Limits, reach: Reach | None) -> None:  # noqa: ANN401 - the module
        self._pycurl = pycurl
        self._body_limit, self._head_limit = limits.body, limits.head
        self._reach = reach
        self.curl = curl = pycurl.Curl()
        self._clear()
        curl.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        curl.setopt(pycurl.HTTP_TRANSFER_DECODING, 0)
        curl.setopt(pycurl.FOLLOWLOCATION, 0)
        curl.setopt(pycurl.PATH_AS_IS, 1)
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.PROXY, "")  # an empty name keeps libcurl from looking for http_proxy
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, max(1, round(limits.connect * 1000)))
        curl.setopt(pycurl.TIMEOUT_MS, max(1, round(limits.total * 1000)))
        curl.setopt(pycurl.LOW_SPEED_LIMIT, 1)
        curl.setopt(pycurl.LOW_SPEED_TIME, max(1, -int(-limits.idle // 1)))
        if reach is not None:
            curl.setopt(pycurl.OPENSOCKETFUNCTION, self._on_connect)
        curl.setopt(pycurl.HEADERFUNCTION, self._on_head)
        curl.setopt(pycurl.WRITEFUNCTION, self._on_body)
        # The only way libcurl tells what it really sent.
        curl.setopt(pycurl.VERBOSE, 1)
        curl.setopt(pycurl.DEBUGFUNCTION, self._on_event)

    def _clear(self) -> None:
        self._sent = b""
        self._posted = b""
        self._head: list[bytes] = []
        self._head_size = self._interim = 0
        self._head_done = self._absurd = False
        self._body: list[bytes] = []
        self._size = 0
        self._full = False
        self._out_of_reach = ""
        self._opened: list[socket.socket] = []
        """Sockets made for libcurl, which works on copies of them."""

    def prepare(self, request: Request, address: str) -> None:
        """Make ready for a new exchange with whoever is at this address."""
        self._clear()
        headers = [f"Accept: {request.accept or ACCEPT}".encode(), b"Accept-Encoding: gzip"]
        self._posted = request.body
        if request.body:
            headers += [b"Content-Type: application/x-www-form-urlencoded", b"Expect:"]  # no asking before the body
            self.curl.setopt(self._pycurl.POST, 1)
            self.curl.setopt(self._pycurl.POSTFIELDS, request.body)
        else:
            self.curl.setopt(self._pycurl.HTTPGET, 1)
        validators = (("If-None-Match", request.etag), ("If-Modified-Since", request.last_modified))
        for name, value in (*validators, *request.headers):
            # A stored validator is the server's text: one that could break out of its line is not sent back.
            if _HEADER_VALUE.fullmatch(value):
                headers.append(f"{name}: {value}".encode("latin-1"))
        # Whatever libcurl reads out of the URL, it connects to this address, and keeps connections apart by it.
        self.curl.setopt(self._pycurl.CONNECT_TO, [f"::[{address}]:" if ":" in address else f"::{address}:"])
        self.curl.setopt(self._pycurl.URL, request.url.encode())
        self.curl.setopt(self._pycurl.HTTPHEADER, headers)

    def _on_connect(self, _purpose: int, place: Any) -> Any:  # noqa: ANN401 - libcurl's address; a socket or a refusal
        address = str(place.addr[0])
        if self._reach is not None and not self._reach.covers(address):
            self._out_of_reach = address
            return self._pycurl.SOCKET_BAD
        opened = socket.socket(place.family, place.socktype, place.protocol)
        self._opened.append(opened)
        return opened

    def _on_event(self, kind: int, data: bytes) -> None:
        if kind == self._pycurl.INFOTYPE_HEADER_OUT:
            # On a connection that died while idle libcurl sends the request again: the last one counts.
            self._sent = data if self._sent.endswith(b"\r\n\r\n") else self._sent + data

    def _on_head(self, line: bytes) -> int | None:
        if self._head_done:
            return None  # trailers: they are part of the body's framing already
        self._head.append(line)
        self._head_size += len(line)
        if not line.rstrip(b"\r\n"):
            self._head_done = self._status() not in _INTERIM
            if not self._head_done:
                self._head.clear()
                self._interim += 1
        self._absurd = self._head_size > self._head_limit or self._interim > _MOST_INTERIM
        if self._absurd:
            self._head_done = False
            return 0  # not what we were given: libcurl ends the transfer
        return None

    def _on_body(self, data: bytes) -> int:
        room = self._body_limit - self._size
        kept = data if len(data) <= room else data[:room]
        self._body.append(kept)
        self._size += len(kept)
        self._full = len(kept) < len(data)
        return len(data) if not self._full else 0

    def _status(self) -> int:
        found = _STATUS_LINE.match(self._head[0]) if self._head else None
        return int(found[1]) if found else 0

    def let_go(self) -> None:
        """Close our copies of the sockets that were opened."""
        while self._opened:
            self._opened.pop().close()

    def capture(self, url: str, began: float, code: int, words: str) -> Capture:
        """What the exchange brought; ``code`` and ``words`` are libcurl's, 0 if it was content."""
        answered = self._head_done and self._status() > 0
        head, sent = b"".join(self._head) if answered else b"", self._sent
        over_http2 = head.startswith(_HTTP2_HEAD)
        if over_http2:
            head, sent = head.replace(_HTTP2, _HTTP1, 1), sent.replace(_HTTP2, _HTTP1, 1)
        return Capture(
            url=url,
            time=began,
            status=self._status() if answered else 0,
            raw_head=head,
            raw_body=b"".join(self._body) if answered else b"",
            raw_request=sent + self._posted if sent else b"",
            ip=self.curl.getinfo(self._pycurl.PRIMARY_IP) or "",
            duration=float(self.curl.getinfo(self._pycurl.TOTAL_TIME)),
            truncated=self._why_cut(code) if answered and code else "",
            error="" if answered else self._why_none(code, words),
            failure=0 if answered else NOT_ALLOWED if self._out_of_reach else self._number(code),
            protocol="h2" if over_http2 else "",
        )

    def _number(self, code: int) -> int:
        """Why there is no answer, as a number."""
        refused = int(self.curl.getinfo(self._pycurl.OS_ERRNO)) in _REFUSED
        heard = refused or float(self.curl.getinfo(self._pycurl.CONNECT_TIME)) > 0
        return failure_of(code, self._pycurl, sent=bool(self._sent), heard=heard)

    def _why_none(self, code: int, words: str) -> str:
        """Why there is no answer."""
        if self._out_of_reach:
            return out_of_reach(self._out_of_reach)
        if self._head_done:
            return f"The answer begins with {self._head[0][:80]!r}, which is no status line."
        if self._absurd or (code == _TOO_LARGE and not words):
            return f"The head of the answer is longer than {self._head_limit} bytes, or it never comes."
        return words or f"The server sent no complete answer (libcurl error {code})."

    def _why_cut(self, code: int) -> str:
        """The reason of WARC-Truncated for a body that libcurl did not see the end of."""
        if self._full:
            return "length"
        if code == self._pycurl.E_OPERATION_TIMEDOUT:
            return "time"
        cut_by_server = {_HTTP2_STREAM, *(getattr(self._pycurl, name) for name in _CUT_BY_SERVER)}
        return "disconnect" if code in cut_by_server else "unspecified"
