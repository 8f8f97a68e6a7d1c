"""Persistent names that lead to other hosts: real servers, the real engine, virtual time."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack, asynccontextmanager

import numpy as np
import pytest

from recrawl.crawl.clock import RealClock
from recrawl.crawl.visit.scope import HostScope
from recrawl.crawl.worker.crawl_assembly import WorkerSettings, live_crawl
from recrawl.crawl.worker.crawl_worker import WorkerPace
from recrawl.fetch.access.access_methods import AccessMethods
from recrawl.model import Outcome, Verdict
from recrawl.schedule.policies.fixed_interval import FixedInterval
from recrawl.schedule.politeness.host_politeness import PolitenessRules
from recrawl.store.open import open_store
from recrawl.time import HOUR, VirtualClock

SPARQL = AccessMethods().get("sparql")
START, PAUSE = 1.79e9, 5.0
TURTLE = {"Content-Type": "text/turtle"}


class Web:
    """Two hosts: one with persistent names, one with the data they lead to."""

    def __init__(self, names, data, clock):
        self.names, self.data, self.clock = names, data, clock
        self.pins = {}
        for label, site in (("purl.example", names), ("data.example", data)):
            site.host = f"{label}:{site.home.rsplit(':', 1)[1].rstrip('/')}"
            site.times = []
            self.pins[site.host] = "127.0.0.1"
            self.note_times(site)

    def note_times(self, site):
        asked = site.asked
        clock = self.clock

        class Asked(list):
            def append(self, one):
                site.times.append((clock.now(), one[0]))
                super().append(one)

        site.asked = Asked(asked)

    def lead(self, path, to, status=303):
        self.names.answers[path] = (status, {"Location": f"http://{self.data.host}{to}"}, "")

    @asynccontextmanager
    async def crawling(self, folder, every=6 * HOUR, hosts=()):
        settings = WorkerSettings(
            budget=1.0,
            user_agent="redirects/1.0 (+https://example.org/)",
            politeness=PolitenessRules(factor=0.0, shortest=PAUSE, longest=PAUSE),
            pins=self.pins,
            pace=WorkerPace(poll=float("inf")),
            durable=False,
        )
        scope = HostScope(frozenset({self.names.host, *hosts}))
        with open_store(str(folder / "store.db"), create=True, durable=False) as store:
            async with live_crawl(
                "one",
                FixedInterval(every),
                clock=self.clock,
                store=store,
                folder=folder,
                scope=scope,
                settings=settings,
            ) as driver:
                yield driver, store

    def add(self, store, path, access="rdf", **options):
        source = AccessMethods().get(access).source(f"http://{self.names.host}{path}", options)
        pages = store.discover([source.url], START)
        store.set_source(pages, access, json.dumps(source.options))
        return int(pages[0])


@pytest.fixture
def other_site(site):
    opened = type(site)()
    yield opened
    opened.close()


@pytest.fixture
def web(site, other_site):
    return Web(site, other_site, VirtualClock(START))


def visits_of(store, page):
    visits = store.visits(pages=np.array([page]))
    return list(zip(map(Outcome, visits.outcome.tolist()), map(Verdict, visits.verdict.tolist()), strict=True))


def crawl(web, folder, run):
    async def main():
        async with web.crawling(folder) as (driver, store):
            return await run(driver, store)

    return asyncio.run(main())


def test_the_data_behind_a_persistent_name_is_the_version_of_the_name(web, tmp_path):
    web.lead("/id/x", "/hop", 302)
    web.data.answers["/hop"] = (307, {"Location": "/x.ttl"}, "")
    said = ["<a> <b> [ <c> 1 ] .", "_:n <c> 1 . <a> <b> _:n .", "<a> <b> [ <c> 2 ] ."]
    web.data.answers["/x.ttl"] = lambda times: (200, TURTLE, said[min(times, 3) - 1])

    async def run(driver, store):
        page = web.add(store, "/id/x")
        await driver.run(START + 13 * HOUR)
        target = store.find(f"http://{web.data.host}/hop")
        return visits_of(store, page), store.captures(np.array([page])), target

    visits, captures, target = crawl(web, tmp_path, run)
    assert visits == [
        (Outcome.FETCHED, Verdict.UNKNOWN),
        (Outcome.FETCHED, Verdict.UNCHANGED),
        (Outcome.FETCHED, Verdict.CHANGED),
    ]
    assert len(captures) == 3
    assert web.data.paths() == ["/hop", "/x.ttl"] * 3
    assert [path for path, _ in web.data.asked].count("/robots.txt") == 1
    assert target.importance == 0.0  # remembered as a link is; nobody comes back to it for itself


@pytest.mark.parametrize("refused", [False, True])
def test_an_endpoint_that_moved_to_another_host_is_asked_there_by_the_rules_of_that_host(web, tmp_path, refused):
    """Pages of one answer go to and fro between the hosts; each keeps its pauses."""
    rules = "User-agent: *\nDisallow: /new\n" if refused else ""
    web.data.answers["/robots.txt"] = (200, {"Content-Type": "text/plain"}, rules)
    query = "SELECT ?s { ?s ?p ?o } ORDER BY ?s"
    for number in range(3):
        page = SPARQL.source("http://x.example/", {"query": f"{query}\nLIMIT 1 OFFSET {number}"}).url.partition("/?")[2]
        web.lead(f"/sparql?{page}", f"/new?{page}", 308)
        rows = [{"s": {"type": "literal", "value": str(number)}}] if number < 2 else []
        told = json.dumps({"head": {"vars": ["s"]}, "results": {"bindings": rows}})
        web.data.answers[f"/new?{page}"] = (200, {"Content-Type": "application/sparql-results+json"}, told)

    async def run(driver, store):
        page = web.add(store, "/sparql", "sparql", query=query, page_size="1")
        await driver.run(START + HOUR)
        return visits_of(store, page)

    outcome = Outcome.REFUSED if refused else Outcome.FETCHED
    assert crawl(web, tmp_path, run) == [(outcome, Verdict.UNKNOWN)]
    assert len(web.data.paths()) == (0 if refused else 3)
    for site in (web.names, web.data):
        assert min(np.diff([when for when, _ in site.times]), default=PAUSE) >= PAUSE


def test_robots_txt_of_the_host_that_it_leads_to_is_obeyed(web, tmp_path):
    web.lead("/id/x", "/x.ttl")
    web.data.answers["/robots.txt"] = (200, {"Content-Type": "text/plain"}, "User-agent: *\nDisallow: /x\n")

    async def run(driver, store):
        page = web.add(store, "/id/x")
        await driver.run(START + HOUR)
        return visits_of(store, page)

    assert crawl(web, tmp_path, run) == [(Outcome.REFUSED, Verdict.UNKNOWN)]
    assert web.data.paths() == []


def test_a_host_in_trouble_does_not_take_the_names_with_it(web, tmp_path):
    """Retry-After of the host with the data holds for that host, not for the one with the names."""
    web.lead("/id/x", "/x.ttl")
    web.data.answers["/x.ttl"] = (503, {"Retry-After": "36000"}, "")
    web.names.answers["/plain"] = (200, {}, "<p>plain")

    async def run(driver, store):
        page = web.add(store, "/id/x")
        plain = int(store.discover([f"http://{web.names.host}/plain"], START)[0])
        await driver.run(START + 9 * HOUR)
        return visits_of(store, page), visits_of(store, plain)

    moved, plain = crawl(web, tmp_path, run)
    assert moved[0] == (Outcome.SERVER_ERROR, Verdict.UNKNOWN)
    assert web.data.paths() == ["/x.ttl"]
    assert len(plain) == 2


def test_the_pauses_of_the_host_that_names_lead_to_are_kept(web, tmp_path):
    for number in range(4):
        web.lead(f"/id/{number}", f"/{number}.ttl")
        web.data.answers[f"/{number}.ttl"] = (200, TURTLE, f"<a> <b> {number} .")
        web.data.answers[f"/page{number}"] = (200, {}, "<p>page")

    async def run(driver, store):
        for number in range(4):
            web.add(store, f"/id/{number}")
        store.discover([f"http://{web.data.host}/page{number}" for number in range(4)], START)
        await driver.run(START + HOUR)

    crawl(web, tmp_path, run)
    assert sorted(web.data.paths()) == sorted([*(f"/{n}.ttl" for n in range(4)), *(f"/page{n}" for n in range(4))])
    assert min(np.diff([when for when, _ in web.data.times])) >= PAUSE


def test_redirects_between_hosts_come_to_an_end(web, tmp_path):
    web.lead("/id/x", "/a")
    web.data.answers["/a"] = (302, {"Location": f"http://{web.names.host}/b"}, "")
    web.lead("/b", "/a")

    async def run(driver, store):
        page = web.add(store, "/id/x")
        await driver.run(START + HOUR / 4)
        return visits_of(store, page)

    visits = crawl(web, tmp_path, run)
    assert {outcome for outcome, _ in visits} == {Outcome.UNREACHABLE}
    assert len(web.data.paths()) <= 2 * len(visits)


def test_two_workers_keep_the_pauses_and_the_rules_of_the_host_that_both_are_led_to(site, other_site, tmp_path):
    """On the machine's clock, by the log of the host itself: sources of two other hosts, its pages and its sitemap."""
    pause, clock, many = 0.1, RealClock(), 4
    third = type(site)()
    web, names = Web(site, other_site, clock), [site, third]
    third.host = f"doi.example:{third.home.rsplit(':', 1)[1].rstrip('/')}"
    pins = web.pins | {third.host: "127.0.0.1"}
    rules = f"User-agent: *\nDisallow: /secret\nSitemap: http://{web.data.host}/sitemap.xml\n"
    web.data.answers["/robots.txt"] = (200, {"Content-Type": "text/plain"}, rules)
    listed = f"<urlset><url><loc>http://{web.data.host}/page0</loc></url></urlset>"
    web.data.answers["/sitemap.xml"] = (200, {"Content-Type": "text/xml"}, listed)
    paths = [f"/{name}{number}" for name in ("x", "secret") for number in range(many)]
    for path in paths:
        web.data.answers[path] = (200, TURTLE, "<a> <b> 1 .")
        for one in names:
            one.answers[path] = (303, {"Location": f"http://{web.data.host}{path}"}, "")
    settings = WorkerSettings(
        budget=1.0,
        user_agent="redirects/1.0 (+https://example.org/)",
        politeness=PolitenessRules(factor=0.0, shortest=pause, longest=pause),
        pins=pins,
        pace=WorkerPace(poll=0.05),
        durable=False,
    )

    async def run():
        async with AsyncExitStack() as opened:
            stores = [
                opened.enter_context(open_store(str(tmp_path / "store.db"), create=True, durable=False))
                for _ in range(2)
            ]
            pages = [f"http://{web.data.host}/page{number}" for number in range(many)]
            stores[0].discover(pages, clock.now())
            for one in names:
                for path in paths:
                    page = stores[0].discover([f"http://{one.host}{path}"], clock.now())
                    stores[0].set_source(page, "rdf", "{}")
            drivers = []
            for number, store in enumerate(stores):
                drivers.append(
                    await opened.enter_async_context(
                        live_crawl(
                            f"worker{number}",
                            FixedInterval(2.0),
                            clock=clock,
                            store=store,
                            folder=tmp_path / str(number),
                            scope=HostScope(frozenset(pins)),
                            settings=settings,
                        )
                    )
                )

            def enough(_now):
                visits = stores[0].visits()
                seen = np.isin(visits.outcome, (Outcome.FETCHED, Outcome.REFUSED))
                if len(np.unique(visits.page[seen])) >= 2 * len(paths) + many and len(web.data.times) > 8 * many:
                    for driver in drivers:
                        driver.stop()

            end = clock.now() + 120.0  # on a busy machine
            await asyncio.gather(*(driver.run(end, enough) for driver in drivers))
            return [stores[0].urls(store.held(f"worker{number}")) for number, store in enumerate(stores)]

    try:
        held = asyncio.run(run())
    finally:
        third.close()
    assert held == [[], []]
    asked = [path for _, path in web.data.times]
    assert set(asked) == {
        "/robots.txt",
        "/sitemap.xml",
        *(f"/{name}{n}" for name in ("x", "page") for n in range(many)),
    }
    assert np.diff([when for when, _ in web.data.times]).min() >= pause
