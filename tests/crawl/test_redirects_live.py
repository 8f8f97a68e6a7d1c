"""Persistent names that lead to other hosts: real servers, the real engine, virtual time."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import numpy as np
import pytest

from recrawl.crawl.driver import Pace
from recrawl.crawl.live import CrawlSettings, live_crawl
from recrawl.crawl.scope import HostScope
from recrawl.fetch.access_methods import AccessMethods
from recrawl.model import Outcome, Verdict
from recrawl.schedule.fixed_interval import FixedInterval
from recrawl.schedule.politeness import PolitenessRules
from recrawl.store.open import open_store
from recrawl.time import HOUR, VirtualClock

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
        settings = CrawlSettings(
            budget=1.0,
            user_agent="redirects/1.0 (+https://example.org/)",
            politeness=PolitenessRules(factor=0.0, shortest=PAUSE, longest=PAUSE),
            pins=self.pins,
            pace=Pace(poll=float("inf")),
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

    def add(self, store, path, **options):
        source = AccessMethods().get("rdf").source(f"http://{self.names.host}{path}", options)
        pages = store.discover([source.url], START)
        store.set_source(pages, "rdf", json.dumps(source.options))
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
