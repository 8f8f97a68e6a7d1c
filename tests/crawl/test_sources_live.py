"""Open data end to end: an endpoint, linked data, JSON, CSV and a file, crawled by the real engine.

Only the time is virtual. The server says nothing twice in the same way: rows come in another order and blank nodes
under other names with every request. It knows when its data really changed, and that is what must be reported: no more,
no less.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from bisect import bisect_right
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pyoxigraph as ox
import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

from recrawl.crawl.visit.scope import HostScope
from recrawl.crawl.visit.warc_archive import REVISIT
from recrawl.crawl.worker.crawl_assembly import WorkerSettings, live_crawl
from recrawl.crawl.worker.crawl_worker import WorkerPace
from recrawl.fetch import FetchRequest
from recrawl.fetch.access.access_methods import AccessMethods, Negotiation
from recrawl.formats.warc.warc_reader import read_capture
from recrawl.model import ANSWERED, Outcome, Verdict
from recrawl.schedule.policies.fixed_interval import FixedInterval
from recrawl.schedule.politeness.host_politeness import PolitenessRules
from recrawl.store.open import open_store
from recrawl.time import DAY, HOUR, VirtualClock

START, PAUSE = 1.79e9, 5.0
AGENT = "sources/1.0 (+https://example.org/)"
EX = "http://vocabulary.example/"
PAGED = f"SELECT DISTINCT ?s ?o {{ ?s <{EX}value> ?o }} ORDER BY ?s ?o"
ROWS = f"SELECT ?place ?value {{ ?s <{EX}at> ?place ; <{EX}value> ?value }}"
GRAPH = f"CONSTRUCT {{ ?s <{EX}at> ?p . ?p <{EX}name> ?n }} WHERE {{ ?s <{EX}at> ?p . ?p <{EX}name> ?n }}"
LONG = ROWS + " # " + "long " * 500


class Portal:
    """An open-data portal whose data changes at known times."""

    def __init__(self, clock, changes):
        self.clock, self.changes = clock, changes
        self.robots = ""
        self.outages: list[tuple[float, float, str]] = []
        self.requests: list[tuple[float, str, str, str]] = []
        self._chance = np.random.default_rng(1)
        portal = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # head and body in one segment

            def do_GET(self):
                portal.answer(self, parse_qs(urlsplit(self.path).query))

            def do_POST(self):
                portal.answer(self, parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode()))

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.host = f"data.example:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def version(self, what, when):
        return bisect_right(self.changes.get(what, []), when)

    def answer(self, handler, form):
        path, query = urlsplit(handler.path).path, form.get("query", [""])[0]
        self.requests.append((self.clock.now(), handler.command, path, query))
        broken = next((how for begin, end, how in self.outages if begin <= self.clock.now() < end), "")
        status, mime, body, more = self.content(path, query, handler.headers["Accept"])
        if path == "/sparql" and broken == "cut":
            body = body[: len(body) // 2]
        elif path == "/sparql" and broken == "text":
            mime, body = "text/plain", "Error 42000: the query took too long"
        elif path != "/robots.txt" and broken == "busy":
            status, more, body = 503, {"Retry-After": "3600"}, "busy"
        data = body.encode()
        handler.send_response(status)
        for name, value in {"Content-Type": mime, "Content-Length": str(len(data)), **more}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(data)

    def content(self, path, query, accept):  # noqa: PLR0911 - an answer a path
        """Status, media type, body and more headers."""
        now = self.clock.now()
        match path:
            case "/robots.txt" if self.robots:
                return 200, "text/plain", self.robots, {}
            case "/sparql":
                return 200, *self.results(query), {}
            case "/thing":
                return 303, "text/plain", "", {"Location": "/thing.ttl" if "turtle" in accept else "/thing.html"}
            case "/thing.ttl":
                return 200, "text/turtle", self.turtle(), {}
            case "/list.json":
                made = f"2026-01-01T00:00:{self._chance.integers(60):02}Z"
                members = [("version", self.version("json", now)), ("name", "list"), ("generated", made)]
                self._chance.shuffle(members)
                return 200, "application/json", json.dumps(dict(members)), {}
            case "/table.csv":
                body = f"a,b\r\n1,{self.version('csv', now)}\r\ngenerated 2026-01-01T10:00,\r\n"
                return 200, "text/csv", body, {}
        return 404, "text/plain", "", {}

    def data(self):
        """Ten things with values, at places that have no names of their own."""
        version, store = self.version("sparql", self.clock.now()), ox.Store()
        for number in range(10):
            thing, place = ox.NamedNode(f"{EX}{number}"), ox.BlankNode(f"x{self._chance.integers(1 << 40)}")
            value = ox.Literal(number + 100 * (version if number == 3 else 0))
            store.add(ox.Quad(thing, ox.NamedNode(f"{EX}value"), value))
            store.add(ox.Quad(thing, ox.NamedNode(f"{EX}at"), place))
            name = ox.Literal(f"place {number % 4} {version if number == 5 else ''}")
            store.add(ox.Quad(place, ox.NamedNode(f"{EX}name"), name))
        return store

    def results(self, query):
        found = self.data().query(query)
        if isinstance(found, ox.QueryTriples):
            lines = [f"{triple.subject} {triple.predicate} {triple.object} ." for triple in found]
            self._chance.shuffle(lines)
            return "application/n-triples", "\n".join(lines) + "\n"
        answer = json.loads(found.serialize(format=ox.QueryResultsFormat.JSON))
        if "ORDER BY" not in query:
            self._chance.shuffle(answer["results"]["bindings"])
        return "application/sparql-results+json", json.dumps(answer)

    def turtle(self):
        version, name = self.version("thing", self.clock.now()), f"b{self._chance.integers(1 << 40)}"
        lines = [f"<thing> <{EX}part> _:{name} .", f'_:{name} <{EX}name> "{version}" .', f"<thing> <{EX}n> 1 ."]
        self._chance.shuffle(lines)
        return "\n".join(lines)


@pytest.fixture
def clock():
    return VirtualClock(START)


@pytest.fixture
def portal(clock):
    chance = np.random.default_rng(7)
    names = ("sparql", "thing", "json", "csv", "file")
    opened = Portal(clock, {name: sorted(START + chance.uniform(0, 5 * DAY) for _ in range(6)) for name in names})
    yield opened
    opened.close()


def add(store, method, url, **options):
    """Add a source as ``recrawl add`` does; its page."""
    source = AccessMethods().get(method).source(url, options)
    pages = store.discover([source.url], START)
    store.set_source(pages, method, json.dumps(source.options))
    return int(pages[0])


@asynccontextmanager
async def crawling(folder, clock, portal, every=6 * HOUR, folders=()):
    rules = PolitenessRules(factor=0.0, shortest=PAUSE, longest=PAUSE)
    settings = WorkerSettings(
        budget=1.0,
        user_agent=AGENT,
        politeness=rules,
        pins={portal.host: "127.0.0.1"},
        pace=WorkerPace(poll=float("inf")),
        folders=folders,
        durable=False,
    )
    scope = HostScope(frozenset({portal.host}))
    with open_store(str(folder / "store.db"), create=True, durable=False) as store:
        async with live_crawl(
            "one", FixedInterval(every), clock=clock, store=store, folder=folder, scope=scope, settings=settings
        ) as driver:
            yield driver, store


def visits_of(store, page):
    visits = store.visits(pages=np.array([page]))
    return list(zip(visits.time.tolist(), visits.outcome.tolist(), visits.verdict.tolist(), strict=True))


def due_verdicts(portal, what, visits):
    """What each visit must say: the first and the failed ones nothing, all others whether the data is another."""
    last = None
    for time, outcome, _ in visits:
        if outcome > ANSWERED:
            yield Verdict.UNKNOWN
            continue
        now = portal.version(what, time)
        yield Verdict.UNKNOWN if last is None else Verdict.CHANGED if now != last else Verdict.UNCHANGED
        last = now


def records(folder):
    for path in sorted((folder / "warc").glob("*.warc.gz")):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream):
                yield record, record.content_stream().read()


def is_sound(folder):
    class Terms:
        verbose = False
        inputs = [str(path) for path in sorted((folder / "warc").glob("*.warc.gz"))]  # noqa: RUF012 - as warcio has it

    checker = Checker(Terms)
    checker.process_all()
    return checker.exit_value == 0


@pytest.mark.slow
def test_every_change_reported_is_one_that_happened_and_none_is_missed(tmp_path, clock, portal):
    home, data = f"http://{portal.host}", tmp_path / "data"
    data.mkdir()
    portal.outages = [
        (START + 1 * DAY, START + 1.4 * DAY, "busy"),
        (START + 2 * DAY, START + 2.4 * DAY, "cut"),
        (START + 3 * DAY, START + 3.4 * DAY, "text"),
    ]

    written = []

    def write_file(now):
        version = portal.version("file", now)
        if version not in written:
            written.append(version)
            (data / "own.csv").write_text(f"a\n{version}\n" + "x\n" * version)

    async def run():
        async with crawling(tmp_path, clock, portal, folders=(data,)) as (driver, store):
            pages = {
                "rows": add(store, "sparql", f"{home}/sparql", query=ROWS),
                "paged": add(store, "sparql", f"{home}/sparql", query=PAGED, page_size="4"),
                "graph": add(store, "sparql", f"{home}/sparql", query=GRAPH, page_size="4"),
                "long": add(store, "sparql", f"{home}/sparql", query=LONG),
                "thing": add(store, "rdf", f"{home}/thing"),
                "file": add(store, "file", f"file://{data}/own.csv"),
            }
            pages["json"], pages["csv"] = store.discover([f"{home}/list.json", f"{home}/table.csv"], START).tolist()
            write_file(START)
            await driver.run(START + 6 * DAY, write_file)
            return pages, {name: visits_of(store, page) for name, page in pages.items()}

    pages, visits = asyncio.run(run())
    truth = {"rows": "sparql", "paged": "sparql", "graph": "sparql", "long": "sparql"}
    assert len(set(pages.values())) == len(pages)
    for name, seen in visits.items():
        assert len(seen) >= 20, name
        expected = list(due_verdicts(portal, truth.get(name, name), seen))
        assert [verdict for *_, verdict in seen] == expected, name
        assert expected.count(Verdict.CHANGED) >= 3, name
    for name in ("rows", "paged", "graph", "long"):
        failed = [(time, outcome) for time, outcome, _ in visits[name] if outcome > ANSWERED]
        assert {Outcome(outcome) for _, outcome in failed} == {Outcome.SERVER_ERROR, Outcome.UNREACHABLE}, name
        assert all(any(begin <= time < end for begin, end, _ in portal.outages) for time, _ in failed), name
    log = [json.loads(line)["details"] for line in (tmp_path / "recrawl.log").read_text().splitlines()]
    reasons = " ".join(details["reason"] for details in log if details.get("outcome") == "unreachable")
    assert "cannot be read to their end" in reasons
    assert "it begins with 'Error 42000: the query took too long'" in reasons
    times = sorted(time for time, *_ in portal.requests)
    assert np.diff(times).min() >= PAUSE
    assert is_sound(tmp_path)


def test_data_that_is_another_at_every_visit_is_no_noise(tmp_path, clock, portal):
    portal.changes = {
        name: list(np.arange(START, START + 5 * DAY, HOUR)) for name in ("sparql", "thing", "json", "csv")
    }

    async def run():
        async with crawling(tmp_path, clock, portal) as (driver, store):
            home = f"http://{portal.host}"
            pages = [add(store, "sparql", f"{home}/sparql", query=ROWS), add(store, "rdf", f"{home}/thing")]
            pages += store.discover([f"{home}/list.json", f"{home}/table.csv"], START).tolist()
            await driver.run(START + 5 * DAY)
            return [visits_of(store, page) for page in pages]

    for visits in asyncio.run(run()):
        assert len(visits) == 20
        assert [verdict for *_, verdict in visits] == [Verdict.UNKNOWN] + [Verdict.CHANGED] * 19


def test_each_page_of_an_answer_is_asked_in_turn_and_kept_and_the_whole_is_a_resource(tmp_path, clock, portal):
    async def run():
        async with crawling(tmp_path, clock, portal) as (driver, store):
            page = add(store, "sparql", f"http://{portal.host}/sparql", query=PAGED, page_size="4")
            await driver.run(START + 7 * HOUR)
            return page, store.captures(np.array([page])), store.urls(np.array([page]))[0]

    _, captures, url = asyncio.run(run())
    asked = [(time, query) for time, _, path, query in portal.requests if path == "/sparql"]
    offsets = [re.search(r"LIMIT 4 OFFSET (\d+)$", query)[1] for _, query in asked]
    assert offsets == ["0", "4", "8", "0", "4", "8"]
    assert np.diff([time for time, _ in asked]).min() >= PAUSE
    kept = list(records(tmp_path))
    kinds = [record.rec_type for record, _ in kept if "/sparql" in (record.rec_headers["WARC-Target-URI"] or "")]
    changed = portal.version("sparql", START + 7 * HOUR) > portal.version("sparql", START + HOUR)
    assert kinds.count("response") + kinds.count("revisit") == kinds.count("request") == 6
    assert kinds.count("resource") == len(captures) == 1 + changed
    [(resource, body)] = [one for one in kept if one[0].rec_type == "resource"][:1]
    assert resource.rec_headers["WARC-Target-URI"] == url
    assert resource.rec_headers["Content-Type"] == "application/sparql-results+json"
    assert len(json.loads(body)["results"]["bindings"]) == 10
    place = captures[0]
    [file] = (tmp_path / "warc").glob(f"{place.warc_file}*")
    again = read_capture(file, place.warc_offset)
    assert again.status == 200
    assert (again.raw_body, again.header("content-type"), again.made) == (body, "application/sparql-results+json", True)


def test_a_posted_query_is_kept_with_its_form(tmp_path, clock, portal):
    async def run():
        async with crawling(tmp_path, clock, portal) as (driver, store):
            page = add(store, "sparql", f"http://{portal.host}/sparql", query=LONG)
            await driver.run(START + HOUR)
            return store.urls(np.array([page]))[0]

    url = asyncio.run(run())
    assert [method for _, method, path, _ in portal.requests if path == "/sparql"] == ["POST"]
    assert len(url) < 200
    posted = [body for record, body in records(tmp_path) if record.rec_type == "request" and b"long" in body]
    assert [parse_qs(body.decode())["query"] for body in posted] == [[LONG.strip()]]


def test_linked_data_is_followed_from_the_thing_to_its_description(tmp_path, clock, portal):
    async def run():
        async with crawling(tmp_path, clock, portal) as (driver, store):
            page = add(store, "rdf", f"http://{portal.host}/thing")
            await driver.run(START + DAY)
            return visits_of(store, page), store.captures(np.array([page]))

    visits, captures = asyncio.run(run())
    paths = [path for _, _, path, _ in portal.requests if path != "/robots.txt"]
    assert paths == ["/thing", "/thing.ttl"] * len(visits)
    assert all(outcome == Outcome.FETCHED for _, outcome, _ in visits)
    assert {capture.mime for capture in captures} - {REVISIT} == {"text/turtle"}
    said = [
        (record.rec_type, record.http_headers.get_statuscode())
        for record, _ in records(tmp_path)
        if record.rec_type == "response" and "/thing" in record.rec_headers["WARC-Target-URI"]
    ]
    assert said == [("response", "303"), ("response", "200")] * len(visits)


def test_an_answer_that_was_half_asked_for_when_the_run_ended_is_asked_for_anew(tmp_path, clock, portal):
    async def run():
        async with crawling(tmp_path, clock, portal) as (driver, store):
            page = add(store, "sparql", f"http://{portal.host}/sparql", query=PAGED, page_size="4")
            await driver.run(START + 2.5 * PAUSE)
            assert len(store.visits()) == 0
            assert store.counts(clock.now()).leased == 0
        async with crawling(tmp_path, clock, portal) as (driver, store):
            await driver.run(START + HOUR)
            return visits_of(store, page)

    [(_, outcome, _)] = asyncio.run(run())
    assert outcome == Outcome.FETCHED
    offsets = [query.rpartition(" ")[2] for _, _, path, query in portal.requests if path == "/sparql"]
    assert offsets == ["0", "4", "0", "4", "8"]
    assert is_sound(tmp_path)


@pytest.mark.parametrize(("forbidden", "asked"), [("/sparql", []), ("/thing.ttl", ["/thing"])])
def test_what_robots_txt_forbids_is_not_asked_for_in_any_turn(tmp_path, clock, portal, forbidden, asked):
    portal.robots = f"User-agent: *\nDisallow: {forbidden}\n"

    async def run():
        async with crawling(tmp_path, clock, portal) as (driver, store):
            home = f"http://{portal.host}"
            page = (
                add(store, "rdf", f"{home}/thing")
                if asked
                else add(store, "sparql", f"{home}/sparql", query=PAGED, page_size="4")
            )
            await driver.run(START + HOUR)
            return visits_of(store, page)

    [(_, outcome, verdict)] = asyncio.run(run())
    assert (outcome, verdict) == (Outcome.REFUSED, Verdict.UNKNOWN)
    assert [path for _, _, path, _ in portal.requests if path != "/robots.txt"] == asked


def test_a_method_that_asks_another_host_is_stopped_before_it_does(tmp_path, clock, portal, site, monkeypatch):
    monkeypatch.setattr(Negotiation, "exchange", lambda _self, _question: iter([FetchRequest(site.home)]))

    async def run():
        async with crawling(tmp_path, clock, portal) as (driver, store):
            page = add(store, "rdf", f"http://{portal.host}/thing")
            await driver.run(START + HOUR / 6)
            return visits_of(store, page)

    assert [Outcome(outcome) for _, outcome, _ in asyncio.run(run())] == [Outcome.UNREACHABLE]
    assert site.asked == []
    assert "asks another host" in (tmp_path / "recrawl.log").read_text()
