"""One exchange over HTTP: a handle of libcurl and the bytes that pass through it.

Rules of this file:
 1. Nothing is decoded: chunk framing, content-encoding, header case and order stay as received. One thing is out
    of our hands: a header folded over several lines (obsolete since RFC 7230) reaches us from libcurl as one line.
 2. Nothing is followed and nothing is remembered: no redirects, no cookies, no proxy or password from the environment.
 3. Once the head is complete there is an answer; a body cut short by our limits or by the server keeps its bytes and
    says why it ends.
 4. HTTP/2 has no head in text; libcurl writes one, which is kept as that of HTTP/1.1, the only one that readers of
    archives know.
"""

from __future__ import annotations

import errno
import re
import socket
from dataclasses import dataclass
from typing import Any

from recrawl.fetch.failures import failure_of
from recrawl.fetch.names import out_of_reach
from recrawl.fetch.reach import Reach
from recrawl.fetch.request import Request
from recrawl.model import Capture
from recrawl.model.failures import NOT_ALLOWED

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
_ENCODING = b"Accept-Encoding: gzip"
_USUAL = (f"Accept: {ACCEPT}".encode(), _ENCODING)
_BUFFER = 64 * 1024
"""Bytes that are read at once: most pages."""
_AT_ONCE = 2_048
"""Bytes of a head that any system takes at once."""
_STATUS_LINE = re.compile(rb"HTTP/\d(?:\.\d)? +([1-9]\d{2})(?!\d)", re.IGNORECASE)
_HEADER_VALUE = re.compile(r"[\x20-\x7e\x80-\xff]+")
_INTERIM = range(100, 200)
_HTTP2, _HTTP1 = b"HTTP/2", b"HTTP/1.1"
_TOO_LARGE = 100
"""libcurl's number for a head beyond its own limits."""
_CUT_BY_SERVER = ("E_PARTIAL_FILE", "E_RECV_ERROR", "E_SEND_ERROR", "E_GOT_NOTHING", "E_HTTP2")
_HTTP2_STREAM = 92
"""libcurl's number for a stream of HTTP/2 that was reset; pycurl has no name for it."""
_REFUSED = (errno.ECONNREFUSED, errno.ECONNRESET)
_MOST_SPELLED = 100_000
"""Addresses that are remembered."""
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
    connections: int = 2_048
    """Idle connections kept open over all hosts, as far as the system lets us. A host that is asked every few seconds
    should not have to greet us each time, and neither should we."""


class Transfer:
    """A libcurl handle and the bytes of the exchange it carries."""

    def __init__(
        self,
        pycurl: Any,  # noqa: ANN401 - the module
        limits: Limits,
        reach: Reach | None,
        spelled: dict[str, str],
    ) -> None:
        """``spelled`` is how libcurl writes the addresses that it connected to; all handles share it."""
        self._pycurl = pycurl
        self._spelled = spelled
        self._header_out: int = pycurl.INFOTYPE_HEADER_OUT
        self._body_limit, self._head_limit = limits.body, limits.head
        self._reach = reach
        self.curl = curl = pycurl.Curl()
        self._headers: list[bytes] = []
        self._address, self._posted = "", b""
        """What the handle is set to."""
        self._in_pieces = False
        """Whether a head may be sent, and told of, in pieces."""
        self._lines: list[bytes] = []
        """Heads as they come, those of interim answers and trailers included."""
        self._said: dict[int, bytes] = {}
        """The last that libcurl said of each kind."""
        self._clear()
        curl.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        curl.setopt(pycurl.HTTP_TRANSFER_DECODING, 0)
        curl.setopt(pycurl.FOLLOWLOCATION, 0)
        curl.setopt(pycurl.PATH_AS_IS, 1)
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.BUFFERSIZE, _BUFFER)
        curl.setopt(pycurl.PROXY, "")  # an empty name keeps libcurl from looking for http_proxy
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, max(1, round(limits.connect * 1000)))
        curl.setopt(pycurl.TIMEOUT_MS, max(1, round(limits.total * 1000)))
        curl.setopt(pycurl.LOW_SPEED_LIMIT, 1)
        curl.setopt(pycurl.LOW_SPEED_TIME, max(1, -int(-limits.idle // 1)))
        if reach is not None:
            curl.setopt(pycurl.OPENSOCKETFUNCTION, self._on_connect)
        curl.setopt(pycurl.HEADERFUNCTION, self._lines.append)
        curl.setopt(pycurl.WRITEFUNCTION, self._on_body)
        # The only way libcurl tells what it really sent. It says nine things a page: none of them runs our own code.
        curl.setopt(pycurl.VERBOSE, 1)
        curl.setopt(pycurl.DEBUGFUNCTION, self._said.__setitem__)

    def _clear(self) -> None:
        self._lines.clear()
        self._said.clear()
        self._head: list[bytes] = []
        self._head_done = self._absurd = False
        self._status = 0
        """Of the answer, once its head is complete; 0 if it has none."""
        self._body: list[bytes] = []
        self._size = 0
        self._full = False
        self._out_of_reach = ""
        self._opened: list[socket.socket] = []
        """Sockets made for libcurl, which works on copies of them."""

    def prepare(self, request: Request, address: str) -> None:
        """Make ready for a new exchange with whoever is at this address: the handle is told what differs."""
        self._clear()
        curl, pycurl = self.curl, self._pycurl
        url, posts = request.url.encode(), bool(request.body)
        headers = [*_USUAL] if not request.accept else [f"Accept: {request.accept}".encode(), _ENCODING]
        if posts:
            headers += [b"Content-Type: application/x-www-form-urlencoded", b"Expect:"]  # no asking before the body
        validators = (("If-None-Match", request.etag), ("If-Modified-Since", request.last_modified))
        for name, value in (*validators, *request.headers):
            # A stored validator is the server's text: one that could break out of its line is not sent back.
            if value and _HEADER_VALUE.fullmatch(value):
                headers.append(f"{name}: {value}".encode("latin-1"))
        if posts or self._posted:
            curl.setopt(pycurl.POST if posts else pycurl.HTTPGET, 1)
        if posts:
            curl.setopt(pycurl.POSTFIELDS, request.body)
        self._posted = request.body
        # Whatever libcurl reads out of the URL, it connects to this address, and keeps connections apart by it.
        if address != self._address:
            curl.setopt(pycurl.CONNECT_TO, [f"::[{address}]:" if ":" in address else f"::{address}:"])
            self._address = address
        if headers != self._headers:
            curl.setopt(pycurl.HTTPHEADER, headers)
            self._headers = headers
        in_pieces = posts or len(url) + sum(map(len, headers)) > _AT_ONCE
        if in_pieces != self._in_pieces:
            curl.setopt(pycurl.DEBUGFUNCTION, self._on_event if in_pieces else self._said.__setitem__)
            self._in_pieces = in_pieces
        curl.setopt(pycurl.URL, url)

    def _on_connect(self, _purpose: int, place: Any) -> Any:  # noqa: ANN401 - libcurl's address; a socket or a refusal
        address = str(place.addr[0])
        if self._reach is not None and not self._reach.covers(address):
            self._out_of_reach = address
            return self._pycurl.SOCKET_BAD
        opened = socket.socket(place.family, place.socktype, place.protocol)
        self._opened.append(opened)
        return opened

    def _on_event(self, kind: int, data: bytes) -> None:
        if kind == self._header_out:
            # On a connection that died while idle libcurl sends the request again: the last one counts.
            before = self._said.get(kind, b"")
            self._said[kind] = data if before.endswith(b"\r\n\r\n") else before + data

    def _read_head(self) -> None:
        """Find the head of the answer in what came: behind interim answers, and before trailers.

        Those are part of the body's framing already.
        """
        began = size = interim = 0
        for place, line in enumerate(self._lines):
            size += len(line)
            if not line.strip(b"\r\n"):
                self._status = _status_of(self._lines[began])
                if self._status not in _INTERIM:
                    self._head, self._head_done = self._lines[began : place + 1], True
                    break
                began, interim = place + 1, interim + 1
        self._absurd = size > self._head_limit or interim > _MOST_INTERIM
        if self._absurd:
            self._head_done = False

    def _on_body(self, data: bytes) -> int:
        if not self._body:
            self._read_head()
            if self._absurd:
                return 0  # not what we were given: libcurl ends the transfer
        room = self._body_limit - self._size
        kept = data if len(data) <= room else data[:room]
        self._body.append(kept)
        self._size += len(kept)
        self._full = len(kept) < len(data)
        return len(data) if not self._full else 0

    def let_go(self) -> None:
        """Close our copies of the sockets that were opened."""
        while self._opened:
            self._opened.pop().close()

    def capture(self, url: str, began: float, code: int, words: str) -> Capture:
        """What the exchange brought; ``code`` and ``words`` are libcurl's, 0 if it was content."""
        if not self._body:
            self._read_head()
        answered = self._head_done and self._status > 0
        head, sent = b"".join(self._head) if answered else b"", self._said.get(self._header_out, b"")
        end = sent.find(b"\r\n") % (len(sent) + 1)  # of the line that asks: all of it, if it has no end
        over_http2 = sent.endswith(_HTTP2, 0, end)
        if over_http2:
            sent = sent[: end - len(_HTTP2)] + _HTTP1 + sent[end:]
            head = _HTTP1 + head.removeprefix(_HTTP2) if answered else b""
        return Capture(
            url=url,
            time=began,
            status=self._status if answered else 0,
            raw_head=head,
            raw_body=b"".join(self._body) if answered else b"",
            raw_request=sent + self._posted if sent else b"",
            ip=self._ip() if answered else self.curl.getinfo(self._pycurl.PRIMARY_IP) or "",
            duration=float(self.curl.getinfo(self._pycurl.TOTAL_TIME)),
            truncated=self._why_cut(code) if answered and code else "",
            error="" if answered else self._why_none(code, words),
            failure=0 if answered else NOT_ALLOWED if self._out_of_reach else self._number(code),
            protocol="h2" if over_http2 else "",
        )

    def _ip(self) -> str:
        """Who answered. libcurl connects to the address that we name, so it is asked once about each."""
        ip = self._spelled.get(self._address)
        if ip is None:
            if len(self._spelled) >= _MOST_SPELLED:
                self._spelled.clear()
            ip = self._spelled[self._address] = self.curl.getinfo(self._pycurl.PRIMARY_IP) or ""
        return ip

    def _number(self, code: int) -> int:
        """Why there is no answer, as a number."""
        refused = int(self.curl.getinfo(self._pycurl.OS_ERRNO)) in _REFUSED
        heard = refused or float(self.curl.getinfo(self._pycurl.CONNECT_TIME)) > 0
        return failure_of(code, self._pycurl, sent=self._header_out in self._said, heard=heard)

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


def _status_of(line: bytes) -> int:
    found = _STATUS_LINE.match(line)
    return int(found[1]) if found else 0
