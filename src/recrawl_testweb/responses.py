"""A request and a time in, an answer out: everything the test web says, without a socket.

The order of an answer: host, method, robots and maps, old addresses, the page itself; for a page first
whether this request fails, then whether the page is there, then whether it is new to the client, then
its form (media type, charset, compression).
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from recrawl.simulate.virtual_web import PageKind, VirtualPage, VirtualWeb
from recrawl.time import to_http_date
from recrawl_testweb import page_render
from recrawl_testweb.conditional_requests import accepts_gzip, best_type, not_modified
from recrawl_testweb.fault_injection import (
    AssignedFaults,
    FaultProfile,
    PageFaults,
    RequestFailure,
    ValidatorLie,
    ValidatorOffer,
)
from recrawl_testweb.seeded_rng import SeededRng, mix
from recrawl_testweb.site_maps import Sitemaps, hosts_page, robots_txt
from recrawl_testweb.sparql_endpoint import PATH, SparqlEndpoint, query_of

MOVED = "/moved"
"""Before the path of a page: its old address, if it has one."""
CACHED = 5_000
"""Rendered versions kept."""


class ReceivedRequest(NamedTuple):
    """What matters of an HTTP request."""

    method: str
    host: str
    """Lower-cased, without port."""
    path: str
    headers: dict[str, str]
    """By lower-cased name; repeated ones joined with a comma."""


class MalformedRequest(NamedTuple):
    """A request that makes no sense, and the status that says so."""

    status: int


@dataclass(frozen=True, slots=True)
class WebResponse:
    """What to send, and how badly."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes = b""
    page: int = -1
    chunked: bool = False
    cut: bool = False
    """Close the connection in the middle of the body."""
    slow: float = 0.0
    """Seconds of real time that sending takes."""

    def sent(self) -> bytes:
        """The part of the body that reaches the client."""
        return self.body[: len(self.body) // 2] if self.cut else self.body


class _Representation(NamedTuple):
    """One way to write a page."""

    media_type: str
    write: Callable[[page_render.PageSubject], str]
    fixed_charset: str
    """Where the format leaves no choice."""
    number: int
    """Keeps the entity tags of a page's forms apart."""


_HTML = _Representation("text/html", page_render.html, "", 5)
_FORMS: dict[PageKind, tuple[_Representation, ...]] = {
    PageKind.HTML: (_HTML,),
    PageKind.RDF: (
        _HTML,
        _Representation("text/turtle", page_render.turtle, "utf-8", 6),
        _Representation("application/n-triples", page_render.n_triples, "utf-8", 7),
    ),
    PageKind.JSON: (_Representation("application/json", page_render.json_text, "utf-8", 8),),
    PageKind.CSV: (_Representation("text/csv", page_render.csv_text, "", 9),),
}


class _Written(NamedTuple):
    """A version of a page in one form."""

    text: str
    body: bytes
    """Without noise; empty if the page has noise, which differs each time."""
    packed: bytes


class Responder:
    """Answers requests for all hosts of a web. Deterministic: chance comes from seed, page and count."""

    def __init__(
        self, web: VirtualWeb, fault_profile: FaultProfile, seed: int, port: int, dealt: AssignedFaults | None = None
    ) -> None:
        """``dealt``: the traits of the pages, where seed and quirks are not to choose them."""
        self._web = web
        self._fault_profile = fault_profile
        self._seed = seed
        self._port = port
        self.dealt = dealt or AssignedFaults.deal(fault_profile, len(web), seed)
        self.urls = [web.url(page, port) for page in range(len(web))]
        self._host_of = {name: index for index, name in enumerate(web.hosts)}
        self._page_of = {place: page for page, place in enumerate(zip(web.host.tolist(), web.path, strict=True))}
        self._maps = Sitemaps(web, fault_profile, self.dealt, self.urls)
        self._counts: dict[int, int] = {}
        self._traits: dict[int, PageFaults] = {}
        self._written: dict[tuple[int, int, bytes, str], _Written] = {}
        self._endpoints: dict[int, SparqlEndpoint] = {}

    def going_on(self, web: VirtualWeb) -> Responder:
        """Answers for a web that starts as this one: pages keep their traits, those behind them get their own."""
        more = AssignedFaults.deal(self._fault_profile, len(web) - len(self._web), self._seed + 1)
        answers = Responder(web, self._fault_profile, self._seed, self._port, self.dealt.followed_by(more))
        answers._counts = self._counts
        return answers

    def home(self, host: int) -> str:
        """The root URL of a host."""
        return f"http://{self._web.hosts[host]}:{self._port}/"

    def faults_of(self, page: int) -> PageFaults:
        """The traits dealt to a page."""
        traits = self._traits.get(page)
        if traits is None:
            traits = self._traits[page] = self.dealt.of(page)
        return traits

    def answer(self, request: ReceivedRequest, now: float) -> WebResponse:
        """The answer to a request that arrives at ``now``; counts the request if it is for a page."""
        if request.method not in {"GET", "HEAD"}:
            return _plain(405, "Only GET and HEAD are served here.\n", now, [("Allow", "GET, HEAD")])
        host = self._host_of.get(request.host)
        if host is None:
            return self._list_hosts(request, now)
        plain_path = request.path.partition("?")[0]
        page = self._page_of.get((host, request.path), self._page_of.get((host, plain_path)))
        if page is not None:
            return self._page(page, request, now)
        if plain_path == PATH and (endpoint := self.endpoint(host)):
            return _asked(endpoint, request, now)
        return self._about_host(host, plain_path, now)

    def endpoint(self, host: int) -> SparqlEndpoint | None:
        """Where the things of a host can be asked about; ``None`` if it has none."""
        if host not in self._endpoints:
            things = np.flatnonzero((self._web.host == host) & (self._web.kind == PageKind.RDF))
            if not len(things):
                return None
            self._endpoints[host] = SparqlEndpoint(self._web, things, self._statements)
        return self._endpoints[host]

    # -- beside the pages ---------------------------------------------------------------------

    def _list_hosts(self, request: ReceivedRequest, now: float) -> WebResponse:
        if request.path != "/":
            return _plain(404, "Not found. Ask for a host by its name.\n", now)
        seed_scope = {name: self.home(index) for index, name in enumerate(self._web.hosts)}
        return _text(200, hosts_page(seed_scope), "text/html; charset=utf-8", now)

    def _about_host(self, host: int, path: str, now: float) -> WebResponse:
        home = self.home(host)
        if path == "/robots.txt":
            if self._fault_profile.robots_failure(self._seed, host, self._count(-1 - host)):
                return _plain(503, "Please come back later.\n", now)
            return _plain(200, robots_txt(self._fault_profile, f"{home}sitemap.xml"), now)
        if path == "/sitemap.xml":
            return _text(200, self._maps.index(host, home, now), "application/xml", now)
        if path.startswith("/sitemap-") and path.endswith(".xml"):
            number = path.removeprefix("/sitemap-").removesuffix(".xml")
            xml = self._maps.sitemap(host, int(number), now) if number.isdecimal() else None
            return _text(200, xml, "application/xml", now) if xml else _plain(404, "No such sitemap.\n", now)
        if path.startswith(f"{MOVED}/"):
            page = self._page_of.get((host, path.removeprefix(MOVED)))
            status = self.faults_of(page).redirect if page is not None else 0
            if page is not None and status:
                where = self.urls[page] if page % 2 else self._web.path[page]
                return _plain(status, f"Moved to {where}\n", now, [("Location", where)])
        return _plain(404, "Not found.\n", now)

    # -- pages --------------------------------------------------------------------------------

    def _page(self, page: int, request: ReceivedRequest, now: float) -> WebResponse:
        count = self._count(page)
        failure = self._fault_profile.failure(self._seed, page, count)
        if failure in {RequestFailure.ERROR, RequestFailure.BUSY}:
            return self._refuse(failure, page, count, now)
        state = self._web.state(page, now)
        if not state.alive:
            status, words = (410, "This page is gone.\n") if state.born else (404, "Not found.\n")
            return _plain(status, words, now, page=page)
        form = best_type(_FORMS[PageKind(self._web.kind[page])], request.headers.get("accept", ""))
        traits = self.faults_of(page)
        written = self._write(page, state, form, now)
        headers = self._validators(page, state, form, traits, now)
        if not_modified(request.headers, dict(headers)):
            return WebResponse(304, [("Date", to_http_date(now)), *headers], page=page)
        body, packed = written.body, written.packed
        if traits.noise:
            key = mix(self._seed, page, count, 3)
            body = _encode(page_render.with_noise(written.text, now=now, key=key), self._charset(form, traits))
        headers = [("Date", to_http_date(now)), ("Content-Type", self._content_type(form, traits)), *headers]
        if PageKind(self._web.kind[page]) is PageKind.RDF or traits.gzip:
            headers.append(("Vary", "Accept, Accept-Encoding"))
        if traits.gzip and accepts_gzip(request.headers.get("accept-encoding", "")):
            body = packed or gzip.compress(body, mtime=0)
            headers.append(("Content-Encoding", "gzip"))
        slow = self._fault_profile.slowness if failure is RequestFailure.SLOW else 0.0
        return WebResponse(200, headers, body, page, traits.chunked, failure is RequestFailure.TRUNCATED, slow)

    def _statements(self, page: int, now: float) -> str:
        """What an RDF page says, as N-Triples without the comment that is its noise."""
        form = next(form for form in _FORMS[PageKind.RDF] if form.write is page_render.n_triples)
        written = self._write(page, self._web.state(page, now), form, now)
        text = written.text or written.body.decode(form.fixed_charset)
        return "\n".join(line for line in text.splitlines() if not line.startswith("#"))

    def _count(self, key: int) -> int:
        """How many requests there were before this one to a page or, with a negative key, to a host's robots.txt."""
        count = self._counts.get(key, 0)
        self._counts[key] = count + 1
        return count

    def _refuse(self, failure: RequestFailure, page: int, count: int, now: float) -> WebResponse:
        seeded = SeededRng(self._seed, page, count, 4)
        if failure is RequestFailure.ERROR:
            return _plain(seeded.pick((500, 502)), "Something went wrong.\n", now, page=page)
        wait = self._fault_profile.retry_after
        until = seeded.pick((f"{wait:.0f}", to_http_date(now + wait)))
        return _plain(seeded.pick((503, 429)), "Please come back later.\n", now, [("Retry-After", until)], page=page)

    def _write(self, page: int, state: VirtualPage, form: _Representation, now: float) -> _Written:
        targets = self._web.links_at(page, now)
        key = (page, state.version, targets.tobytes(), form.media_type)
        found = self._written.get(key)
        if found is None:
            if len(self._written) >= CACHED:
                self._written.clear()
            found = self._written[key] = self._rewrite(page, state, form, targets.tolist())
        return found

    def _rewrite(self, page: int, state: VirtualPage, form: _Representation, targets: list[int]) -> _Written:
        web, traits = self._web, self.faults_of(page)
        absolute = form.media_type not in {"text/html", "application/json"}
        links = [
            page_render.PageLink(self._href(page, target, absolute=absolute), web.title[target]) for target in targets
        ]
        changes = web.changes.row(page)[: state.version]
        text = form.write(
            page_render.PageSubject(
                self._seed,
                page,
                state.version,
                self.urls[page],
                web.title[page],
                changes,
                state.modified,
                links,
                traits,
            )
        )
        if traits.noise:
            return _Written(text, b"", b"")
        body = _encode(text, self._charset(form, traits))
        return _Written("", body, gzip.compress(body, mtime=0) if traits.gzip else b"")

    def _href(self, page: int, target: int, *, absolute: bool) -> str:
        """A link to a page, by its old address if it has one; short inside a host unless the format needs all."""
        old = MOVED if self.faults_of(target).redirect else ""
        path = old + self._web.path[target]
        if self._web.host[page] == self._web.host[target] and not absolute:
            return path
        return self.home(int(self._web.host[target])) + path[1:]

    def _validators(
        self, page: int, state: VirtualPage, form: _Representation, traits: PageFaults, now: float
    ) -> list[tuple[str, str]]:
        if traits.lie is ValidatorLie.RESTLESS:
            return [("Last-Modified", to_http_date(now))]
        version, modified = (
            (0, float(self._web.born[page])) if traits.lie is ValidatorLie.STUCK else (state.version, state.modified)
        )
        headers = []
        if traits.offer in {ValidatorOffer.BOTH, ValidatorOffer.ETAG}:
            weak = "W/" if traits.noise else ""
            tag = mix(self._seed, page, version, form.number)
            headers.append(("ETag", f'{weak}"{tag:016x}"'))
        if traits.offer in {ValidatorOffer.BOTH, ValidatorOffer.LAST_MODIFIED}:
            headers.append(("Last-Modified", to_http_date(modified)))
        return headers

    @staticmethod
    def _charset(form: _Representation, traits: PageFaults) -> str:
        return form.fixed_charset or traits.charset

    def _content_type(self, form: _Representation, traits: PageFaults) -> str:
        silent = (form is _HTML and not traits.in_header) or form.media_type in {
            "application/json",
            "application/n-triples",
        }
        return form.media_type if silent else f"{form.media_type}; charset={self._charset(form, traits)}"


def _asked(endpoint: SparqlEndpoint, request: ReceivedRequest, now: float) -> WebResponse:
    query = query_of(request.path)
    if query is None:
        return _plain(400, f"Ask with {PATH}?query=...\n", now)
    result = endpoint.answer(query, request.headers.get("accept", ""), now)
    return _text(result.status, result.text, f"{result.media_type}; charset=utf-8", now)


def _encode(text: str, charset: str) -> bytes:
    return text.encode(charset, "xmlcharrefreplace")


def _plain(
    status: int, text: str, now: float, headers: list[tuple[str, str]] | None = None, page: int = -1
) -> WebResponse:
    answer = _text(status, text, "text/plain; charset=utf-8", now, page)
    answer.headers.extend(headers or [])
    return answer


def _text(status: int, text: str, media_type: str, now: float, page: int = -1) -> WebResponse:
    return WebResponse(status, [("Date", to_http_date(now)), ("Content-Type", media_type)], text.encode(), page)
