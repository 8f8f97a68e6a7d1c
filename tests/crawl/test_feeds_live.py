"""Feeds in a crawl: found on pages or named by people, they bring new pages and tell of changes."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import numpy as np
import pytest
from warcio.archiveiterator import ArchiveIterator

from recrawl.crawl.visit.scope import HostScope
from recrawl.crawl.visit.site_claims import announced
from recrawl.crawl.worker.crawl_assembly import WorkerSettings, live_crawl
from recrawl.crawl.worker.crawl_worker import WorkerPace
from recrawl.crawl.worker.sitemap_feed_poller import MOST_FEEDS
from recrawl.errors import InputError
from recrawl.fetch.access.access_methods import FEED
from recrawl.model import Capture
from recrawl.schedule.policies.fixed_interval import FixedInterval
from recrawl.schedule.politeness.host_politeness import PolitenessRules
from recrawl.store.open import open_store
from recrawl.time import DAY, HOUR, VirtualClock, to_http_date
from recrawl.urls import host_of

START = 1.79e9
AGENT = "feeds/1.0 (+https://example.org/)"


def rss(*entries):
    items = "".join(f"<item><link>{url}</link><pubDate>{to_http_date(when)}</pubDate></item>" for url, when in entries)
    return 200, {"Content-Type": "application/rss+xml"}, f"<rss><channel>{items}</channel></rss>"


def page(feed="", text="Hello"):
    link = f'<link rel="alternate" type="application/rss+xml" href="{feed}">' if feed else ""
    return 200, {}, f"<html><head>{link}</head><body><p>{text}</p></body></html>"


@asynccontextmanager
async def crawling(folder, site, clock, every=30 * DAY):
    """``every`` is when pages are visited again: not, unless something is announced."""
    settings = WorkerSettings(
        budget=1.0,
        user_agent=AGENT,
        politeness=PolitenessRules(factor=0.0, shortest=5.0, longest=5.0),
        pace=WorkerPace(feeds_every=HOUR, poll=float("inf")),
        durable=False,
    )
    scope = HostScope(frozenset({host_of(site.home)}))
    location = folder / "store.db"
    with open_store(str(location), create=not location.exists(), durable=False) as store:
        async with live_crawl(
            "one", FixedInterval(every), clock=clock, store=store, folder=folder, scope=scope, settings=settings
        ) as driver:
            yield driver, store


@pytest.fixture
def clock():
    return VirtualClock(START)


def test_a_feed_that_a_page_names_is_polled_for_what_is_new_and_brings_pages(tmp_path, site, clock):
    site.answers["/"] = page("/news.rss")
    site.answers["/new"] = page()

    def feed(_asked):
        last = site.asked[-1][1]
        if clock.now() < START + 5 * HOUR:
            status, headers, body = rss((site.home, START - DAY))
            tag = '"one"'
        else:
            status, headers, body = rss((site.home, START - DAY), (f"{site.home}new", START + 5 * HOUR))
            tag = '"two"'
        if last.get("If-None-Match") == tag:
            return 304, {"ETag": tag}, ""
        return status, {**headers, "ETag": tag}, body

    site.answers["/news.rss"] = feed

    async def run():
        async with crawling(tmp_path, site, clock) as (driver, store):
            store.discover([site.home], START)
            await driver.run(START + 8 * HOUR)
            found = store.find(f"{site.home}new")
            claims = store.claims(np.array([found.id]))
            return claims, store.sources()

    claims, sources = asyncio.run(run())
    polls = [headers for path, headers in site.asked if path == "/news.rss"]
    assert len(polls) in (8, 9)
    assert sum("If-None-Match" in headers for headers in polls) >= 5  # some are unconditional on purpose
    assert site.paths().count("/new") == 1
    assert claims.source == [f"{site.home}news.rss"]
    assert claims.lastmod.tolist() == [START + 5 * HOUR]
    assert list(sources.values()) == [(FEED, "{}")]


def test_a_date_that_moves_on_is_heard_as_a_signal(tmp_path, site, clock):
    site.answers["/"] = page("/news.rss")
    site.answers["/news.rss"] = lambda _asked: rss((site.home, START + (HOUR if clock.now() > START + 3 * HOUR else 0)))
    heard = []

    class Listening(FixedInterval):
        def signal(self, pages, times):
            heard.extend(zip(pages.tolist(), times.tolist(), strict=True))

    async def run():
        settings = WorkerSettings(budget=1.0, user_agent=AGENT, pace=WorkerPace(poll=float("inf")), durable=False)
        with open_store(str(tmp_path / "store.db"), create=True, durable=False) as store:
            [home] = store.discover([site.home], START).tolist()
            scope = HostScope(frozenset({host_of(site.home)}))
            policy = Listening(30 * DAY)
            async with live_crawl(
                "one", policy, clock=clock, store=store, folder=tmp_path, scope=scope, settings=settings
            ) as driver:
                await driver.run(START + 6 * HOUR)
            return home, store.claims(np.array([home]))

    home, claims = asyncio.run(run())
    assert claims.lastmod.tolist() == [START, START + HOUR]
    assert [(one, when > START + 3 * HOUR) for one, when in heard] == [(home, True)]


def test_the_next_run_knows_the_feeds_of_the_last_one_though_no_page_is_due(tmp_path, site, clock):
    site.answers["/"] = page("/news.rss")
    site.answers["/news.rss"] = rss((site.home, START))

    async def run():
        async with crawling(tmp_path, site, clock) as (driver, store):
            store.discover([site.home], START)
            await driver.run(START + HOUR / 2)
        clock.advance_to(START + DAY)
        async with crawling(tmp_path, site, clock) as (driver, store):
            await driver.run(START + DAY + HOUR, until_idle=True)

    asyncio.run(run())
    assert site.paths() == ["/", "/news.rss", "/news.rss"]


@pytest.mark.slow
def test_runs_that_begin_soon_after_each_other_keep_the_interval_of_a_feed_and_what_it_said(tmp_path, site, clock):
    site.answers["/news.rss"] = 200, {"Content-Type": "application/rss+xml", "ETag": '"a"'}, rss()[2]

    async def run():
        for number in range(13):
            clock.advance_to(START + number * HOUR / 4)
            async with crawling(tmp_path, site, clock) as (driver, store):
                store.set_source(store.discover([f"{site.home}news.rss"], START, importance=0.0), FEED)
                await driver.run(clock.now() + 60.0, until_idle=True)

    asyncio.run(run())
    polls = [headers.get("If-None-Match") for path, headers in site.asked if path == "/news.rss"]
    assert len(polls) in (3, 4)
    assert polls[0] is None
    assert '"a"' in polls  # not each of them: some requests are unconditional on purpose


def test_a_run_that_ends_when_nothing_is_due_reads_every_feed_and_what_it_brings(tmp_path, site, clock):
    for name in "ab":
        site.answers[f"/{name}.rss"] = rss((f"{site.home}{name}", START))
        site.answers[f"/{name}"] = page()

    async def run():
        async with crawling(tmp_path, site, clock) as (driver, store):
            feeds = store.discover([f"{site.home}a.rss", f"{site.home}b.rss"], START, importance=0.0)
            store.set_source(feeds, FEED)
            await driver.run(START + DAY, until_idle=True)

    asyncio.run(run())
    assert sorted(site.paths()) == ["/a", "/a.rss", "/b", "/b.rss"]
    assert clock.now() < START + HOUR


def test_a_feed_that_says_the_same_again_is_archived_as_a_revisit(tmp_path, site, clock):
    site.answers["/"] = page("/news.rss")
    site.answers["/news.rss"] = lambda _asked: rss(
        (site.home, START if clock.now() < START + 1.5 * HOUR else START + 1)
    )

    async def run():
        async with crawling(tmp_path, site, clock) as (driver, store):
            store.discover([site.home], START)
            await driver.run(START + 3.5 * HOUR)

    asyncio.run(run())
    kinds = []
    for path in (tmp_path / "warc").glob("*.warc.gz"):
        with path.open("rb") as stream:
            kinds += [
                record.rec_type
                for record in ArchiveIterator(stream)
                if (record.rec_headers["WARC-Target-URI"] or "").endswith("news.rss") and record.rec_type != "request"
            ]
    assert kinds == ["response", "revisit", "response", "revisit"]


def test_feeds_of_other_hosts_of_comments_and_too_many_are_left_alone(tmp_path, site, clock):
    links = [f"/{number}.rss" for number in range(MOST_FEEDS)]
    site.answers["/"] = page(
        'http://elsewhere.example/f.rss"><link rel=alternate type="application/rss+xml" href="/comments.rss'
    )
    site.answers["/many"] = (
        200,
        {},
        "".join(f'<link rel=alternate type="application/atom+xml" href="{url}">' for url in ["/0.rss", *links]),
    )
    site.answers["/more"] = page("/another.rss")

    async def run():
        async with crawling(tmp_path, site, clock) as (driver, store):
            store.discover([site.home, f"{site.home}many", f"{site.home}more"], START)
            await driver.run(START + HOUR / 2)

    asyncio.run(run())
    assert sorted(site.paths()) == sorted(["/", "/many", "/more", *links])


def test_an_endpoint_alone_does_not_bring_the_sitemaps_of_its_host_but_a_page_does(tmp_path, site, clock):
    site.answers["/robots.txt"] = 200, {}, f"Sitemap: {site.home}sitemap.xml\n"
    site.answers["/data"] = 200, {"Content-Type": "text/turtle"}, "<a> <b> 'c' ."
    site.answers["/sitemap.xml"] = (
        200,
        {"Content-Type": "text/xml"},
        f"<urlset><url><loc>{site.home}x</loc></url></urlset>",
    )

    async def run():
        async with crawling(tmp_path, site, clock) as (driver, store):
            store.set_source(store.discover([f"{site.home}data"], START), "rdf")
            await driver.run(START + HOUR)
            assert site.paths() == ["/data"]
            store.discover([site.home], clock.now())
            await driver.run(START + 2 * HOUR)

    asyncio.run(run())
    assert site.paths() == ["/data", "/", "/sitemap.xml", "/x"]


@pytest.mark.parametrize(
    ("body", "urls"),
    [
        (
            '{"version": "https://jsonfeed.org/version/1", "items": [{"url": "http://a.example/1"}]}',
            ["http://a.example/1"],
        ),
        ("<rss><channel><item><link>http://a.example/2</link></item></channel></rss>", ["http://a.example/2"]),
        ("<urlset><url><loc>http://a.example/3</loc></url></urlset>", ["http://a.example/3"]),
    ],
)
def test_all_kinds_of_announcements_are_read(body, urls):
    found = announced(Capture("http://a.example/", 0.0, 200, b"HTTP/1.1 200 OK\r\n\r\n", body.encode()))
    assert [entry.url for entry in found.entries] == urls


@pytest.mark.parametrize("body", [json.dumps({"items": []}), "[]", "{", "<html></html>", ""])
def test_what_announces_nothing_is_refused(body):
    with pytest.raises(InputError):
        announced(Capture("http://a.example/", 0.0, 200, b"HTTP/1.1 200 OK\r\n\r\n", body.encode()))
