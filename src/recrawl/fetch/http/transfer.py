"""One HTTP exchange: a libcurl handle and the bytes that pass through it.

Rules of this file:

1. Nothing is decoded: chunked framing, content encoding, header case and order stay as received. One exception: libcurl
   joins a header folded over several lines (obsolete since RFC 7230).
2. Nothing is followed or remembered: no redirects, no cookies, no proxy or password from the environment.
3. Once the header is complete there is a response. A body truncated by our limits or by the server keeps its bytes and
   the reason.
4. HTTP/2 has no header text. libcurl writes one, which is stored as that of HTTP/1.1, the only one that archive readers
   know.

:func:`failure_of` maps errors of libcurl to failure numbers. :func:`retry_after` and :func:`links` parse the response
headers Retry-After (RFC 9110, 10.2.3; conventions R4) and Link (RFC 8288), which Memento uses.
"""

from __future__ import annotations

import asyncio
import errno
import io
import math
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from recrawl.fetch.http.bytes_in_flight import COUNTED, FREE, BytesInFlight, Charge
from recrawl.fetch.http.dns import AddressPolicy, out_of_reach
from recrawl.fetch.request import FetchRequest
from recrawl.model import Capture
from recrawl.model.visits import (
    BROKEN_OFF,
    EMPTY,
    NO_CONNECTION,
    NO_NAME,
    NO_ROUTE,
    NO_TRUST,
    NO_URL,
    NOT_ALLOWED,
    TOO_LATE,
    TOO_SLOW,
)
from recrawl.time import DAY, Clock, from_http_date

_LINK = re.compile(r"<([^<>\s]*)>([^<>]*)")
_PARAMETER = re.compile(r';\s*([\w*!.-]+)\s*=\s*(?:"([^"]*)"|([^",;\s]+))')


@dataclass(frozen=True, slots=True)
class HeaderLink:
    """A link of a Link header or of a map in link-format."""

    uri: str
    parameters: Mapping[str, str]

    @property
    def relations(self) -> frozenset[str]:
        """The relations of the target to the page."""
        return frozenset(self.parameters.get("rel", "").lower().split())


def links(text: str) -> Iterator[HeaderLink]:
    """The links of a Link header or of a map in link-format (RFC 8288, RFC 6690). O(n).

    >>> [(link.uri, sorted(link.relations)) for link in links('<http://a/,b>; rel="first memento", <c>; rel=self')]
    [('http://a/,b', ['first', 'memento']), ('c', ['self'])]
    """
    for uri, rest in _LINK.findall(text):
        yield HeaderLink(uri, {name.lower(): quoted or bare for name, quoted, bare in _PARAMETER.findall(rest)})


_ASKING = (429, 503)
_SECONDS = re.compile(r"[0-9]{1,12}")
LONGEST = 30 * DAY
"""Maximum seconds granted at once; a host that wants more can ask again."""


def retry_after(capture: Capture) -> float | None:
    r"""Seconds that a 429 or 503 asks us to wait, given as seconds or as a date; ``None`` if it does not ask.

    >>> retry_after(Capture("http://x/", 0.0, 503, b"HTTP/1.1 503 Busy\r\nRetry-After: 120\r\n\r\n"))
    120.0
    """
    text = capture.header("retry-after").strip() if capture.status in _ASKING else ""
    if not text:
        return None
    if _SECONDS.fullmatch(text):
        wait = float(text)
    else:
        until = from_http_date(text)
        if until is None:
            return None
        wait = until - capture.time
    return min(max(wait, 0.0), LONGEST)


_BY_NAME = {
    "E_COULDNT_RESOLVE_HOST": NO_NAME,
    "E_COULDNT_CONNECT": NO_CONNECTION,
    "E_OPERATION_TIMEDOUT": TOO_SLOW,
    "E_GOT_NOTHING": EMPTY,
    "E_URL_MALFORMAT": NO_URL,
    "E_UNSUPPORTED_PROTOCOL": NO_URL,
    "E_SSL_CONNECT_ERROR": NO_TRUST,
    "E_PEER_FAILED_VERIFICATION": NO_TRUST,
    "E_SSL_CIPHER": NO_TRUST,
    "E_SSL_ISSUER_ERROR": NO_TRUST,
    "E_SSL_INVALIDCERTSTATUS": NO_TRUST,
}


def failure_of(code: int, library: object, *, sent: bool, heard: bool) -> int:
    """The failure number for an error of libcurl; ``library`` is the module ``pycurl``, which defines its numbers.

    ``sent``: whether a request went out. ``heard``: whether the other side sent anything, if only a refusal.
    """
    known = {getattr(library, name, None): number for name, number in _BY_NAME.items()}
    number = known.get(code, BROKEN_OFF)
    if sent:
        return number if number in _AFTER_SENDING else BROKEN_OFF
    return NO_ROUTE if number in (TOO_SLOW, NO_CONNECTION) and not heard else number


_AFTER_SENDING = (TOO_SLOW, EMPTY)
"""Possible errors after sending; libcurl calls a response that is not HTTP an unsupported protocol."""


ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
_ENCODING = b"Accept-Encoding: gzip"
_USUAL = (f"Accept: {ACCEPT}".encode(), _ENCODING)
_BUFFER = 64 * 1024
"""Bytes that are read at once: most pages."""
_AT_ONCE = 2_048
"""Bytes of a header that every system sends at once."""
_STATUS_LINE = re.compile(rb"HTTP/\d(?:\.\d)? +([1-9]\d{2})(?!\d)", re.IGNORECASE)
_HEADER_VALUE = re.compile(r"[\x20-\x7e\x80-\xff]+")
_INTERIM = range(100, 200)
_HTTP2, _HTTP1 = b"HTTP/2", b"HTTP/1.1"
_TOO_LARGE = 100
"""libcurl's error for a header line that is longer than its limit."""
_LONGEST_LINE = 100 * 1024
"""Bytes of such a line, its end included."""
_HUGE_LENGTH = re.compile(rb"\ncontent-length:[ \t]*0*[1-9]\d{18}", re.IGNORECASE)
"""Of a body that nobody sends completely. From 2^63 on libcurl ignores the length, and accepts any body as complete."""
_WITHOUT_BODY = (204, 304)
_CUT_BY_SERVER = ("E_PARTIAL_FILE", "E_RECV_ERROR", "E_SEND_ERROR", "E_GOT_NOTHING", "E_HTTP2")
_HTTP2_STREAM = 92
"""libcurl's error for a reset HTTP/2 stream; pycurl has no name for it."""
_REFUSED = (errno.ECONNREFUSED, errno.ECONNRESET)
_MOST_SPELLED = 100_000
"""Maximum addresses in the cache."""
_LONGEST_WAIT = 600.0
"""Maximum seconds for which a response waits for memory."""
_MOST_INTERIM = 20
"""Maximum interim responses (below 200) before the final one."""


@dataclass(frozen=True, slots=True)
class TransferLimits:
    """Limits of time and size for one request."""

    connect: float = 15.0
    """Seconds until the connection is established."""
    total: float = 120.0
    """Seconds until the last byte."""
    idle: float = 20.0
    """Seconds without a byte, rounded up to whole ones. libcurl averages, and so acts up to 5 s late."""
    body: int = 64 * 1024 * 1024
    """Bytes of body that are read; the rest is dropped."""
    head: int = 256 * 1024
    """Bytes of header, interim responses included; a response with more is a failure. Browsers stop there, too.
    libcurl has its own limits below that: 100 KB for a line, and 5,000 lines."""
    connections: int = 2_048
    """Maximum idle connections over all hosts, as far as the system allows. A host that is requested every few
    seconds should not need a new connection each time."""


class Transfer:
    """A libcurl handle and the bytes of its exchange."""

    def __init__(  # noqa: PLR0913, PLR0917 - what all handles share
        self,
        pycurl: Any,  # noqa: ANN401 - the module
        limits: TransferLimits,
        reach: AddressPolicy | None,
        spelled: dict[str, str],
        in_flight: BytesInFlight | None = None,
        clock: Clock | None = None,
    ) -> None:
        """``spelled`` caches how libcurl writes the addresses that it connected to; all handles share it.

        ``clock`` tells whether it is too late to send a request. ``in_flight`` makes large bodies wait for memory;
        without it nothing waits.
        """
        self._pycurl = pycurl
        self._clock = clock
        self._in_flight = in_flight
        self._spelled = spelled
        self._header_out: int = pycurl.INFOTYPE_HEADER_OUT
        self._most_body = self._body_limit = limits.body
        self._head_limit = limits.head
        self._timeout, self._extended = limits.total, False
        self._reach = reach
        self.curl = curl = pycurl.Curl()
        self._headers: list[bytes] = []
        self._address, self._posted = "", b""
        """The current settings of the handle."""
        self._in_pieces = False
        """Whether a header may be sent, and reported, in pieces."""
        self._lines: list[bytes] = []
        """Headers as received, those of interim responses and trailers included."""
        self._said: dict[int, bytes] = {}
        """The last debug message of each kind."""
        self._clear()
        curl.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        curl.setopt(pycurl.HTTP_TRANSFER_DECODING, 0)
        curl.setopt(pycurl.FOLLOWLOCATION, 0)
        curl.setopt(pycurl.PATH_AS_IS, 1)
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.BUFFERSIZE, _BUFFER)
        curl.setopt(pycurl.PROXY, "")  # an empty name keeps libcurl from reading http_proxy
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, max(1, round(limits.connect * 1000)))
        self._allow(limits.total)
        curl.setopt(pycurl.LOW_SPEED_LIMIT, 1)
        curl.setopt(pycurl.LOW_SPEED_TIME, max(1, -int(-limits.idle // 1)))
        if reach is not None:
            curl.setopt(pycurl.OPENSOCKETFUNCTION, self._on_connect)
        curl.setopt(pycurl.PREREQFUNCTION, self._on_connected)
        curl.setopt(pycurl.HEADERFUNCTION, self._lines.append)
        curl.setopt(pycurl.WRITEFUNCTION, self._on_body)
        # The only way to learn what libcurl really sent. It reports nine messages per page: none of them runs our own
        # code.
        curl.setopt(pycurl.VERBOSE, 1)
        curl.setopt(pycurl.DEBUGFUNCTION, self._said.__setitem__)

    def _clear(self) -> None:
        self._lines.clear()
        self._said.clear()
        self._head: list[bytes] = []
        self._head_done = False
        self._absurd = ""
        """Why what came is no valid header."""
        self._status = 0
        """The status of the response, once its header is complete; 0 if it has none."""
        self._body: list[bytes] = []
        self._large: io.BytesIO | None = None
        """A large body, in one piece: otherwise it would be copied at the end."""
        self._size = 0
        self._allowed = FREE if self._in_flight is not None else self._most_body
        """Bytes up to which the body may grow before it has to request memory."""
        self._charge: Charge | None = None
        self._full = False
        self._not_after = math.inf
        self._is_late = False
        """Whether it was too late to send the request."""
        self._out_of_reach = ""
        self._opened: list[socket.socket] = []
        """Sockets made for libcurl, which works on copies of them."""

    def prepare(self, request: FetchRequest, address: str) -> None:
        """Prepare a new exchange with this address; only settings that differ are changed."""
        self._clear()
        if self._extended:
            self._allow(self._timeout)
            self._extended = False
        self._body_limit = min(request.most or self._most_body, self._most_body)
        self._not_after = request.not_after
        curl, pycurl = self.curl, self._pycurl
        url, posts = request.url.encode(), bool(request.body)
        headers = [*_USUAL] if not request.accept else [f"Accept: {request.accept}".encode(), _ENCODING]
        if posts:
            headers += [b"Content-Type: application/x-www-form-urlencoded", b"Expect:"]  # no 100-continue
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
        # Whatever libcurl reads in the URL, it connects to this address, and separates connections by it.
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

    def _on_connected(self, *_addresses: object) -> int:
        """Refuse to send the request if it is too late. libcurl asks when there is a connection, right before it."""
        self._is_late = self._clock is not None and self._not_after < self._clock.elapsed()
        return int(self._pycurl.PREREQFUNC_ABORT if self._is_late else self._pycurl.PREREQFUNC_OK)

    def _on_event(self, kind: int, data: bytes) -> None:
        if kind == self._header_out:
            # On a connection that died while idle libcurl sends the request again: the last one counts.
            before = self._said.get(kind, b"")
            self._said[kind] = data if before.endswith(b"\r\n\r\n") else before + data

    def _read_head(self) -> None:
        """Find the header of the response: after interim responses, and before trailers.

        Trailers are part of the body's framing.
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
        if size > self._head_limit:
            self._absurd = f"The head of the answer is longer than {self._head_limit} bytes."
        elif interim > _MOST_INTERIM:
            self._absurd = f"The head of the answer does not come: more than {_MOST_INTERIM} interim answers did."
        if self._absurd:
            self._head_done = False

    def _on_body(self, data: bytes) -> int:
        if not self._body:
            self._read_head()
            if self._absurd:
                return 0  # not the length given: libcurl ends the transfer
        room = self._body_limit - self._size
        kept = data if len(data) <= room else data[:room]
        size = self._size + len(kept)
        if size > self._allowed and not self._may_grow(size):
            return int(self._pycurl.WRITEFUNC_PAUSE)  # the same bytes come again
        if self._large is None:
            self._body.append(kept)
        else:
            self._large.write(kept)
        self._size = size
        self._full = len(kept) < len(data)
        return len(data) if not self._full else 0

    def _may_grow(self, size: int) -> bool:
        """Whether there is memory for ``size`` bytes; if not, the transfer resumes when there is."""
        assert self._in_flight is not None  # noqa: S101 - else nothing is too large
        if self._charge is None:
            self._charge, self._large = self._in_flight.charge(self._size), io.BytesIO()
            self._large.write(b"".join(self._body))
            self._body = [b""]
        allowed = self._in_flight.grow(self._charge, size, self._resume)
        if not allowed:
            asyncio.get_running_loop().call_soon(self._wait, self._charge)  # not from libcurl's own callback
            return False
        self._allowed = allowed
        return True

    def _wait(self, charge: Charge) -> None:
        """Extend the time limit: our own lack of memory is not the host's fault."""
        if charge is self._charge and not self._extended:
            self._extended = True
            self._allow(self._timeout + _LONGEST_WAIT)

    def _resume(self) -> None:
        """Resume reading. The wait does not count."""
        with suppress(self._pycurl.error):  # it ended meanwhile
            self._extended = True
            self._allow(self._timeout + (self._charge.waited if self._charge is not None else 0.0))
            self.curl.pause(self._pycurl.PAUSE_CONT)

    def _allow(self, seconds: float) -> None:
        self.curl.setopt(self._pycurl.TIMEOUT_MS, max(1, round(seconds * 1000)))

    def close_sockets(self) -> None:
        """Close our copies of the opened sockets."""
        while self._opened:
            self._opened.pop().close()

    def _counted(self, capture: Capture) -> Capture:
        """The capture, which counts among the bytes in flight while anything refers to it."""
        size = len(capture.raw_body)
        if self._in_flight is not None and size > COUNTED:
            if self._charge is not None:
                self._in_flight.leave(self._charge)  # it may have waited until its time was over
            if self._charge is None:
                self._charge = self._in_flight.charge(size)
            else:
                self._in_flight.resize(self._charge, size)
            capture._charge = self._charge  # type: ignore[misc]  # noqa: SLF001 - made for this
        return capture

    def capture(self, url: str, began: float, code: int, words: str) -> Capture:
        """The capture of the exchange; ``code`` and ``words`` are libcurl's error, 0 for none.

        The handle keeps no bytes while it waits for its next exchange.
        """
        try:
            return self._counted(self._capture(url, began, code, words))
        finally:
            self.forget()

    def forget(self) -> None:
        """Drop the bytes of a response, and stop waiting for memory."""
        if self._in_flight is not None and self._charge is not None:
            self._in_flight.leave(self._charge)
        self._body, self._large, self._charge = [], None, None

    def _capture(self, url: str, began: float, code: int, words: str) -> Capture:
        if not self._body:
            self._read_head()
        answered = self._head_done and self._status > 0
        head, sent = b"".join(self._head) if answered else b"", self._said.get(self._header_out, b"")
        end = sent.find(b"\r\n") % (len(sent) + 1)  # of the request line: all of it, if it has no end
        over_http2 = sent.endswith(_HTTP2, 0, end)
        if over_http2:
            sent = sent[: end - len(_HTTP2)] + _HTTP1 + sent[end:]
            head = _HTTP1 + head.removeprefix(_HTTP2) if answered else b""
        return Capture(
            url=url,
            time=began,
            status=self._status if answered else 0,
            raw_head=head,
            raw_body=self._whole_body() if answered else b"",
            raw_request=sent + self._posted if sent else b"",
            ip=self._ip() if answered else self.curl.getinfo(self._pycurl.PRIMARY_IP) or "",
            duration=float(self.curl.getinfo(self._pycurl.TOTAL_TIME)),
            truncated=self._why_cut(code, head) if answered else "",
            error="" if answered else self._why_none(code, words),
            failure=0 if answered else NOT_ALLOWED if self._out_of_reach else self._number(code),
            protocol="h2" if over_http2 else "",
        )

    def _whole_body(self) -> bytes:
        return b"".join(self._body) if self._large is None else self._large.getvalue()

    def _ip(self) -> str:
        """The address that answered. libcurl connects to the address we name, so it is queried once per address."""
        ip = self._spelled.get(self._address)
        if ip is None:
            if len(self._spelled) >= _MOST_SPELLED:
                self._spelled.clear()
            ip = self._spelled[self._address] = self.curl.getinfo(self._pycurl.PRIMARY_IP) or ""
        return ip

    def _number(self, code: int) -> int:
        """The failure number if there is no response."""
        if self._is_late and self._header_out not in self._said:
            return TOO_LATE
        refused = int(self.curl.getinfo(self._pycurl.OS_ERRNO)) in _REFUSED
        heard = refused or float(self.curl.getinfo(self._pycurl.CONNECT_TIME)) > 0
        return failure_of(code, self._pycurl, sent=self._header_out in self._said, heard=heard)

    def _why_none(self, code: int, words: str) -> str:
        """Why there is no response."""
        if self._out_of_reach:
            return out_of_reach(self._out_of_reach)
        if self._is_late:
            return "It was too late to send the request."
        if self._head_done:
            return f"The answer begins with {self._head[0][:80]!r}, which is no status line."
        if self._absurd:
            return self._absurd
        if code == _TOO_LARGE and not words:
            return f"A line of the head of the answer has {_LONGEST_LINE} bytes or more."
        return words or f"The server sent no complete answer (libcurl error {code})."

    def _why_cut(self, code: int, head: bytes) -> str:
        """The WARC-Truncated reason of an incomplete body; empty if it is complete."""
        if not code:
            cut = self._status not in _WITHOUT_BODY and _HUGE_LENGTH.search(head)
            return "disconnect" if cut and b"\ntransfer-encoding:" not in head.lower() else ""
        if self._full:
            return "length"
        if code == self._pycurl.E_OPERATION_TIMEDOUT:
            return "time"
        cut_by_server = {_HTTP2_STREAM, *(getattr(self._pycurl, name) for name in _CUT_BY_SERVER)}
        return "disconnect" if code in cut_by_server else "unspecified"


def _status_of(line: bytes) -> int:
    found = _STATUS_LINE.match(line)
    return int(found[1]) if found else 0
