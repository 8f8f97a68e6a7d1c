"""A test web: a real HTTP server over a virtual web, with the truth told afterwards.

Keep a test web running for other crawlers to be pointed at.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

from recrawl.model import FloatArray
from recrawl.simulate.virtual_web import VirtualWeb
from recrawl.time import Clock
from recrawl_testweb.fault_injection import FaultProfile, PageFaults
from recrawl_testweb.loopback_server import IP, LoopbackServer
from recrawl_testweb.request_log import LoggedRequest, RequestLog
from recrawl_testweb.responses import MalformedRequest, ReceivedRequest, Responder, WebResponse
from recrawl_testweb.sparql_endpoint import query_of


@dataclass(frozen=True, slots=True)
class TruthByUrl:
    """What was so: the virtual web, and the URL under which each of its pages was served."""

    web: VirtualWeb
    urls: list[str]

    def page(self, url: str) -> int:
        """Index of the page served at a URL. O(n); keep a dictionary of ``urls`` to ask often."""
        return self.urls.index(url)

    def changes(self, url: str) -> FloatArray:
        """Exact times of all changes of the page at a URL."""
        return self.web.changes.row(self.page(url))


class VirtualWebServer:
    """Serves a virtual web on 127.0.0.1, at the time its clock shows.

    One port, many hosts: they are told apart by the Host header, so a client must send the names of
    ``hosts()`` to ``ip`` and ``port`` (curl: ``resolve()``), or use ``ip:port`` as its HTTP proxy. A request
    to any other host gets a page that lists the hosts.

    A body depends on seed, page, version, links and, if the page has any, noise; a failure on seed, page
    and how often the page was asked for. So a run on a virtual clock repeats itself, but for the port in
    links from host to host; name the port to have the same bytes.
    """

    ip = IP

    def __init__(
        self, web: VirtualWeb, clock: Clock, *, fault_profile: FaultProfile | None = None, seed: int = 0, port: int = 0
    ) -> None:
        self._web = web
        self._clock = clock
        self._server = LoopbackServer(port)
        self.port = self._server.port
        self._answers = Responder(web, fault_profile or FaultProfile.none(), seed, self.port)
        self._log: list[LoggedRequest] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def start(self) -> None:
        """Start to serve; returns once requests are taken."""
        self._server.start(self._handle)

    def close(self) -> None:
        """Stop serving. The truth and the log stay."""
        self._server.close()

    def go_on(self, web: VirtualWeb) -> None:
        """Serve a longer story of the same web from now on: its pages first, the same up to now, then new ones.

        To be called while nobody asks.
        """
        self._web, self._answers = web, self._answers.going_on(web)

    # -- where to go --------------------------------------------------------------------------

    def hosts(self) -> list[str]:
        """Names of the hosts, with the port: what URLs contain."""
        return [f"{name}:{self.port}" for name in self._web.hosts]

    def seeds(self) -> list[str]:
        """Where to start on each host: its root, or the first page nearest to it if the root is no page."""
        web = self._web
        pages = sorted(range(len(web)), key=lambda page: (web.path[page].rstrip("/").count("/"), web.born[page]))
        nearest = {int(web.host[page]): page for page in reversed(pages)}
        return [self._answers.urls[page] for _, page in sorted(nearest.items())]

    def urls(self) -> list[str]:
        """The URL of each page, by page index."""
        return list(self._answers.urls)

    def resolve(self) -> list[str]:
        """``host:port:ip`` for each host, as curl's RESOLVE takes it."""
        return [f"{name}:{self.port}:{self.ip}" for name in self._web.hosts]

    # -- what was so --------------------------------------------------------------------------

    def truth(self) -> TruthByUrl:
        """Exact change times, lives, links and rates, by page and by URL."""
        return TruthByUrl(self._web, self.urls())

    def answer_changes(self, url: str, until: float) -> FloatArray | None:
        """Exact times up to ``until`` at which the answer to a SPARQL query became another.

        ``url`` asks the query of the endpoint of a host here; ``None`` if it does not.
        """
        parts = urlsplit(url)
        host = self._web.hosts.index(parts.hostname) if parts.hostname in self._web.hosts else -1
        query, endpoint = query_of(f"{parts.path}?{parts.query}"), self._answers.endpoint(host)
        return None if query is None or endpoint is None else endpoint.changes(query, until)

    @property
    def answered(self) -> int:
        """How many requests there were so far."""
        return len(self._log)

    def requests(self) -> RequestLog:
        """Every request so far, in order of arrival."""
        return RequestLog.of(list(self._log))

    def faults_of(self, page: int) -> PageFaults:
        """The traits of a page: which validators it sends, whether they lie, its noise and charset."""
        return self._answers.dealt.of(page)

    # -- in the server's thread ---------------------------------------------------------------

    def _handle(self, request: ReceivedRequest | MalformedRequest, connection: int) -> WebResponse:
        now = self._clock.now()
        if isinstance(request, MalformedRequest):
            self._log.append(LoggedRequest(now, connection, "", "", -1, "", request.status, False, "", 0))
            return WebResponse(request.status, [("Connection", "close")])
        answer = self._answers.answer(request, now)
        headers = request.headers
        self._log.append(
            LoggedRequest(
                time=now,
                connection=connection,
                host=request.host,
                path=request.path,
                page=answer.page,
                method=request.method,
                status=answer.status,
                conditional="if-none-match" in headers or "if-modified-since" in headers,
                agent=headers.get("user-agent", ""),
                bytes=len(answer.sent()) if request.method != "HEAD" else 0,
            )
        )
        return answer


def serve(  # noqa: PLR0913 - by keyword, all optional
    web: VirtualWeb,
    clock: Clock,
    *,
    port: int = 0,
    fault_profile: FaultProfile | None = None,
    seed: int = 0,
    announce: Callable[[VirtualWebServer], None] = lambda living: None,  # noqa: ARG005 - says nothing
    stop: threading.Event | None = None,
) -> VirtualWebServer:
    """Serve until ``stop`` is set or the user interrupts; returns the web, whose log and truth remain.

    ``announce`` is called once requests are taken. For an accelerated web give an ``AcceleratedClock`` over the
    machine's clock, beginning at ``web.start``.
    """
    living = VirtualWebServer(web, clock, port=port, fault_profile=fault_profile, seed=seed)
    with living:
        announce(living)
        try:
            (stop or threading.Event()).wait()
        except KeyboardInterrupt:
            return living
    return living
