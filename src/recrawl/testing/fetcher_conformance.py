"""The rules of :class:`recrawl.fetch.request.Fetcher` as tests, against a real server on loopback."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

from recrawl.fetch.http.http_fetcher import FetchTerms, TransferLimits
from recrawl.fetch.request import Fetcher, FetchRequest, PageFetcher
from recrawl.model import Capture
from recrawl.model.visits import TOO_LATE
from recrawl.time import VirtualClock

AGENT = "conformance/1.0 (+https://example.org/)"
_START = 1_750_000_000.0
_LONG = 200_000
_MOST = 100_000


def _answer(status: str, body: bytes = b"", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


_ANSWERS = {
    "/": _answer("200 OK", b"<p>Hello", Content_Type="text/html", ETag='"1"', X_Odd="a"),
    "/gone": _answer("404 Not Found", b"No."),
    "/busy": _answer("503 Service Unavailable", Retry_After="9"),
    "/moved": _answer("301 Moved Permanently", Location="/"),
    "/packed": _answer("200 OK", b"\x1f\x8b\x08 not really", Content_Encoding="gzip"),
    "/long": _answer("200 OK", b"x" * _LONG),
    "/short": b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\ntoo little",
    "/nonsense": b"\x00\xff nothing that HTTP knows\r\n\r\n",
    "/nothing": b"",
}


@dataclass(slots=True)
class LoopbackServer:
    """Answers by path and notes the requests. ``/`` answers 304 to its entity tag."""

    port: int = 0
    requests: list[bytes] = field(default_factory=list)

    def url(self, path: str = "/") -> str:
        """The URL of a path."""
        return f"http://127.0.0.1:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    (int(line[15:]) for line in head.lower().splitlines() if line.startswith(b"content-length:")), 0
                )
                self.requests.append(head + await reader.readexactly(length))
                path = head.split(b" ")[1].decode()
                same = b'if-none-match: "1"' in head.lower()
                answer = _answer("304 Not Modified", ETag='"1"') if same else _ANSWERS.get(path, _ANSWERS["/gone"])
                writer.write(answer)
                await writer.drain()
                if path in ("/short", "/nonsense", "/nothing"):
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def loopback_server() -> AsyncIterator[LoopbackServer]:
    """A server that runs until the context ends."""
    served = LoopbackServer()
    server = await asyncio.start_server(served.serve, "127.0.0.1", 0)
    served.port = server.sockets[0].getsockname()[1]
    try:
        yield served
    finally:
        server.close()


class FetcherConformance:
    """Tests for one fetcher of http URLs. Override :meth:`open`."""

    def open(self, terms: FetchTerms) -> AbstractAsyncContextManager[Fetcher]:
        """Open the fetcher on these terms."""
        raise NotImplementedError

    def _run(self, question: Callable[[Fetcher, LoopbackServer], Awaitable[None]]) -> None:
        async def asked() -> None:
            terms = FetchTerms(VirtualClock(_START), AGENT, limits=TransferLimits(5.0, 20.0, 5.0, _MOST))
            async with loopback_server() as server, self.open(terms) as fetcher:
                await question(fetcher, server)

        asyncio.run(asked())

    def test_it_is_a_fetcher_and_returns_what_came(self) -> None:
        """Status, head, body, URL and the time of the clock."""

        async def question(fetcher: Fetcher, server: LoopbackServer) -> None:
            assert isinstance(fetcher, Fetcher)
            found = await fetcher.fetch(FetchRequest(server.url()))
            assert (found.url, found.status, found.time) == (server.url(), 200, _START)
            assert found.raw_head.startswith(b"HTTP/")
            assert found.raw_body == b"<p>Hello"
            assert (found.header("content-type"), found.header("etag"), found.header("x-odd")) == (
                "text/html",
                '"1"',
                "a",
            )
            assert not found.error
            assert not found.truncated
            assert found.duration >= 0

        self._run(question)

    def test_any_status_is_an_answer_and_redirects_are_not_followed(self) -> None:
        """404, 503 and 301 come back as they are."""

        async def question(fetcher: Fetcher, server: LoopbackServer) -> None:
            for path, status in (("/gone", 404), ("/busy", 503), ("/moved", 301)):
                found = await fetcher.fetch(FetchRequest(server.url(path)))
                assert (found.url, found.status) == (server.url(path), status)
            assert [request.split(b" ")[1] for request in server.requests] == [b"/gone", b"/busy", b"/moved"]

        self._run(question)

    def test_what_a_request_says_is_sent(self) -> None:
        """User agent, validators, further headers, accepted types, and a body by POST."""

        async def question(fetcher: Fetcher, server: LoopbackServer) -> None:
            found = await fetcher.fetch(FetchRequest(server.url(), etag='"1"'))
            assert (found.status, found.raw_body) == (304, b"")
            await fetcher.fetch(FetchRequest(server.url(), headers=(("X-Mine", "yes"),), accept="text/turtle"))
            await fetcher.fetch(FetchRequest(server.url(), body=b"query=ASK"))
            conditional, plain, posted = server.requests
            assert all(f"user-agent: {AGENT}".encode() in request.lower() for request in (plain, conditional, posted))
            assert conditional.startswith(b"GET ")
            assert b"x-mine: yes" in plain.lower()
            assert b"accept: text/turtle" in plain.lower()
            assert posted.startswith(b"POST ")
            assert posted.endswith(b"\r\n\r\nquery=ASK")

        self._run(question)

    def test_a_request_that_comes_too_late_is_not_sent(self) -> None:
        """``not_after`` is in elapsed seconds of the clock; the failure is ``TOO_LATE``."""

        async def question(fetcher: Fetcher, server: LoopbackServer) -> None:
            found = await fetcher.fetch(FetchRequest(server.url(), not_after=_START - 1.0))
            assert (found.status, found.failure, found.raw_request) == (0, TOO_LATE, b"")
            assert found.error
            assert not server.requests
            found = await fetcher.fetch(FetchRequest(server.url(), not_after=_START + 1.0))
            assert (found.status, found.failure) == (200, 0)
            if isinstance(fetcher, PageFetcher):
                page = await fetcher.fetch_page(FetchRequest(server.url(), not_after=_START - 1.0))
                assert page.capture.failure == TOO_LATE

        self._run(question)

    def test_bytes_are_as_received(self) -> None:
        """A content encoding is not undone."""

        async def question(fetcher: Fetcher, server: LoopbackServer) -> None:
            found = await fetcher.fetch(FetchRequest(server.url("/packed")))
            assert found.raw_body == b"\x1f\x8b\x08 not really"

        self._run(question)

    def test_a_long_body_is_cut_at_the_limit(self) -> None:
        """``truncated`` says why."""

        async def question(fetcher: Fetcher, server: LoopbackServer) -> None:
            found = await fetcher.fetch(FetchRequest(server.url("/long")))
            assert (found.status, found.truncated) == (200, "length")
            assert 0 < len(found.raw_body) <= _MOST

        self._run(question)

    def test_failures_are_captures(self) -> None:
        """Nothing is raised: a refused connection, an answer that ends early, nonsense, no answer, an unknown host."""

        async def question(fetcher: Fetcher, server: LoopbackServer) -> None:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                refused = f"http://127.0.0.1:{free.getsockname()[1]}/"
            for url in (refused, server.url("/nonsense"), server.url("/nothing"), "http://no-such-host.invalid/"):
                found = await fetcher.fetch(FetchRequest(url))
                assert (found.url, found.status) == (url, 0)
                assert found.error
            short = await fetcher.fetch(FetchRequest(server.url("/short")))
            assert short.truncated or short.error

        self._run(question)

    def test_many_requests_run_at_once(self) -> None:
        """Answers are not mixed up."""

        async def question(fetcher: Fetcher, server: LoopbackServer) -> None:
            paths = ["/", "/gone", "/busy", "/moved"] * 10
            found: list[Capture] = await asyncio.gather(
                *(fetcher.fetch(FetchRequest(server.url(path))) for path in paths)
            )
            assert [(one.url, one.status) for one in found] == [
                (server.url(path), {"/": 200, "/gone": 404, "/busy": 503, "/moved": 301}[path]) for path in paths
            ]

        self._run(question)

    def test_a_page_comes_first_and_its_requisites_behind_it(self) -> None:
        """:class:`~recrawl.fetch.request.PageFetcher`; a plain fetcher has one capture a page."""

        async def question(fetcher: Fetcher, server: LoopbackServer) -> None:
            if isinstance(fetcher, PageFetcher):
                found = await fetcher.fetch_page(FetchRequest(server.url()))
                assert (found.capture.url, found.capture.status) == (server.url(), 200)
                assert all(isinstance(one, Capture) for one in found.requisites)

        self._run(question)
