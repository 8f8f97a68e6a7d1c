"""A capture of the test web: what its statement says is what was so, and it keeps the order of its strategy."""

import asyncio
import json
from dataclasses import replace

import numpy as np
import pytest

from recrawl.capture import OFFLINE, STRATEGIES
from recrawl.capture.strategy import LinkGraph, walk
from recrawl.crawl.site_capture.capture_order import CaptureOrder
from recrawl.crawl.visit.scope import ScopeKind, ScopeRules
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.model import Outcome
from recrawl.simulate.sites import PageMixture, SiteGrowth, lognormal_rates, tree_site
from recrawl.simulate.virtual_web import join
from recrawl.time import DAY, HOUR, VirtualClock
from recrawl_testweb.fault_injection import FaultProfile
from recrawl_testweb.virtual_web_server import VirtualWebServer

START = 1.79e9
SLOT = 10.0


def living_site(pages=40, *, median, seed=0, **more):
    rng = np.random.default_rng(seed)
    rate = lognormal_rates(pages, median=median, sigma=1.5, rng=rng)
    return tree_site("site", rate, rng=rng, start=START - HOUR, end=START + DAY, **{"outdegree": 4, **more})


def oracle(web, living):
    """The true rates, asked for by page id: pages are found under the URLs of the test web."""
    rate_of = dict(zip(living.urls(), web.rate.tolist(), strict=True))

    def rates(stage):
        return lambda page: np.array([rate_of.get(url, 0.0) for url in stage.urls(page)])

    return rates


def order(living, strategy, **more):
    return CaptureOrder(site=living.seeds()[0], strategy=strategy, **more)


async def captured(scene, living, clock, web, wanted):
    """A capture with true rates: its report, its log and the number of each page on the web."""
    async with scene(clock=clock, hosts=living.hosts()) as stage:
        stage.driver._recorder.rates = oracle(web, living)(stage)
        report = await stage.capture(wanted)
        log = stage.store.site_log(report.capture.id)
        urls = stage.urls(log.found.page)
        return report, log, urls, dict(zip(log.found.page.tolist(), urls, strict=True))


@pytest.mark.parametrize(
    ("strategy", "seed"), [("bfs-lifo", 1), ("dfs-fifo", 2), ("hottest-first-lifo", 1), ("sharc-selective-online", 2)]
)
def test_the_statement_is_the_truth(scene, strategy, seed):
    web = living_site(
        median=1 / 1000.0, pages=30, seed=seed, growth=SiteGrowth(appearing=0.1, vanishing=0.2, cross_links=0.3)
    )
    clock = VirtualClock(START)
    with VirtualWebServer(web, clock, fault_profile=FaultProfile(noise=0.3, no_validators=0.3), seed=seed) as living:
        report, log, _, url_of = asyncio.run(captured(scene, living, clock, web, order(living, strategy)))
        number = {url: place for place, url in enumerate(living.urls())}
    observations = {}
    for step in log.steps:
        observations.setdefault(int(log.found.page[step.number]), []).append(step)
    quality = report.quality
    assert len(quality.coherent) > 3
    assert len(quality.changed) > 3
    for page in quality.coherent.tolist():
        first, last = (step.time for step in (observations[page][0], observations[page][-1]))
        here = number[url_of[page]]
        assert web.version(here, first) == web.version(here, last)
        assert web.alive(here, last)
    for page in quality.changed.tolist():
        first, last = (step.time for step in observations[page])
        assert web.version(number[url_of[page]], first) < web.version(number[url_of[page]], last)
    for page in quality.missing.tolist():
        assert web.alive(number[url_of[page]], observations[page][0].time)
        assert not web.alive(number[url_of[page]], observations[page][1].time)
    together = quality.joint.instant
    for page in quality.coherent[quality.joint.inside].tolist():
        assert observations[page][0].time <= together <= observations[page][-1].time
    assert max(map(len, observations.values())) == 2


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_live_and_simulated_captures_take_the_same_order(scene, strategy):
    web = living_site(median=1e-12, pages=12, outdegree=3)
    clock = VirtualClock(START)
    with VirtualWebServer(web, clock) as living:
        wanted = order(living, strategy, from_sitemap=strategy in OFFLINE, expected=12)
        report, log, urls, _ = asyncio.run(captured(scene, living, clock, web, wanted))
        number = {url: place for place, url in enumerate(living.urls())}
    targets = [web.links_at(page, START) for page in range(len(web))]
    graph = LinkGraph(np.append(0, np.cumsum([len(row) for row in targets])), np.concatenate(targets))
    known = np.arange(len(web)) if strategy in OFFLINE else np.array([0])
    expected = walk(wanted.new_strategy(report.capture.delay), graph, known, web.rate, np.ones(len(web)))
    made = [(number[urls[step.number]], step.revisit) for step in log.steps]
    assert [page for page, again in made if not again] == expected.visited.tolist()
    assert [page for page, again in made if again] == expected.revisited.tolist()
    assert len(report.quality.coherent) == (len(web) if len(expected.revisited) else 0)


def test_one_page_a_slot_by_the_delay_of_the_host(scene):
    web = living_site(median=1e-4)
    clock = VirtualClock(START)
    with VirtualWebServer(web, clock, fault_profile=FaultProfile(crawl_delay=25.0)) as living:
        report, log, *_ = asyncio.run(captured(scene, living, clock, web, order(living, "bfs-fifo")))
        requests = living.requests()
    assert report.capture.delay == 25.0
    assert np.diff([step.time for step in log.steps]).tolist() == [25.0] * (len(log.steps) - 1)
    assert requests.path[0] == "/robots.txt"
    assert (np.diff(requests.time) >= 25.0).all()


def test_a_longer_delay_can_be_asked_for_and_a_shorter_is_not_kept(scene):
    web = living_site(median=1e-4, pages=5)
    for asked, kept in ((40.0, 40.0), (1.0, SLOT)):
        clock = VirtualClock(START)
        with VirtualWebServer(web, clock) as living:
            wanted = order(living, "bfs", delay=asked)
            report, *_ = asyncio.run(captured(scene, living, clock, web, wanted))
        assert report.capture.delay == kept


def test_revisits_carry_the_validators_of_the_visit(scene):
    web = living_site(median=1e-12, pages=12)
    clock = VirtualClock(START)
    with VirtualWebServer(web, clock) as living:
        asyncio.run(captured(scene, living, clock, web, order(living, "bfs-lifo")))
        requests = living.requests()
        asked = requests.take(requests.page >= 0)
    assert asked.conditional.tolist() == [False] * 12 + [True] * 12
    assert asked.status.tolist() == [200] * 12 + [304] * 12


def test_what_robots_txt_forbids_is_not_asked_for_and_said_to_be_refused(scene):
    web = living_site(median=1e-12, pages=30, mixture=PageMixture(private=0.3))
    clock = VirtualClock(START)
    with VirtualWebServer(web, clock) as living:
        report, log, _, url_of = asyncio.run(captured(scene, living, clock, web, order(living, "bfs-lifo")))
        requests = living.requests()
    assert len(report.refused) > 2
    assert all("/private/" in url_of[page] for page in report.refused.tolist())
    assert not any(path.startswith("/private/") for path in requests.path.tolist())
    assert report.quality.pages + len(report.refused) == report.found == len(web)
    assert {step.number for step in log.steps if step.outcome == Outcome.REFUSED and step.revisit} == set()


def test_a_domain_is_captured_host_by_host_under_the_rules_of_each(scene):
    rng = np.random.default_rng(8)
    span = {"start": START - HOUR, "end": START + DAY}
    both = join([tree_site(name, np.full(6, 1e-9), rng=rng, **span) for name in ("one", "two")])
    web = replace(both, hosts=("site.test", "news.site.test"))
    clock = VirtualClock(START)
    with VirtualWebServer(web, clock, fault_profile=FaultProfile(crawl_delay=30.0)) as living:
        wanted = order(living, "bfs-lifo", scope=ScopeRules(kind=ScopeKind.DOMAIN))
        report, *_ = asyncio.run(captured(scene, living, clock, web, wanted))
        asked = living.requests()
    assert len(report.quality.coherent) == report.found == 12
    rules = asked.take(asked.path == "/robots.txt")
    assert sorted(rules.host.tolist()) == ["news.site.test", "site.test"]
    for host in ("news.site.test", "site.test"):
        mine = asked.take(asked.host == host)
        assert mine.path[0] == "/robots.txt"
        assert (np.diff(mine.time) >= 30.0).all()


def test_no_page_is_lost_on_a_web_that_misbehaves(scene):
    web = living_site(median=1e-4, pages=30, mixture=PageMixture(private=0.1, csv=0.2, json=0.2))
    clock = VirtualClock(START)
    fault_profile = FaultProfile(
        errors=0.15, busy=0.1, redirects=0.2, noise=0.3, restless_validators=0.2, chunked=0.3, gzip=0.3
    )
    with VirtualWebServer(web, clock, fault_profile=fault_profile, seed=4) as living:
        report, log, urls, url_of = asyncio.run(captured(scene, living, clock, web, order(living, "bfs-lifo")))
        asked = living.requests()
    parts = (report.quality.coherent, report.quality.changed, report.quality.missing, report.quality.unknown)
    parts += (report.gone, report.refused, report.failed)
    assert sorted(page for part in parts for page in part.tolist()) == sorted(url_of)
    assert report.found == len(urls) > len(web)  # old addresses that redirect are pages, too
    tries = {}
    for step in log.steps:
        tries.setdefault((step.number, step.revisit), []).append(step.outcome)
    assert any(len(outcomes) == 2 for outcomes in tries.values())
    assert len(asked) >= len(log.steps) - len(report.refused)
    assert (np.diff(asked.time) >= SLOT).all()


def test_the_sitemap_gives_the_pages_and_how_often_they_change(scene):
    web = living_site(median=1e-4, pages=30)
    clock = VirtualClock(START)

    async def run(living):
        async with scene(clock=clock, hosts=living.hosts()) as stage:
            capture = await stage.driver.begin(order(living, "sharc-offline", from_sitemap=True))
            log = stage.store.site_log(capture.id)
            claims = stage.store.claims(log.found.page)
            report = await stage.driver.run(capture)
            return stage.urls(log.found.page), claims, report

    with VirtualWebServer(web, clock) as living:
        urls, claims, report = asyncio.run(run(living))
        assert set(urls) == set(living.urls())
    assert len(claims) == 30
    assert (claims.changefreq > 0).all()
    assert report.found == report.quality.pages == 30
    assert np.isfinite(report.quality.predicted_blur.total)


def test_the_statement_is_in_the_store_and_in_the_archive(scene, tmp_path):
    from warcio.archiveiterator import ArchiveIterator

    from recrawl.formats.warc.warc_reader import index_warc

    web = living_site(median=1e-4, pages=8)
    clock = VirtualClock(START)
    with VirtualWebServer(web, clock) as living:
        report, *_ = asyncio.run(captured(scene, living, clock, web, order(living, "bfs-lifo")))
        home = living.seeds()[0]
    [file] = (tmp_path / "warc").glob("*.warc.gz")
    with file.open("rb") as stream:
        said = [
            (record.rec_headers.get_header("WARC-Target-URI"), json.loads(record.content_stream().read()))
            for record in ArchiveIterator(stream)
            if record.rec_type == "metadata" and record.rec_headers.get_header("Content-Type") == "application/json"
        ]
    [(name, document)] = said
    assert name.startswith("urn:uuid:")
    assert document == json.loads(report.capture.statement)
    assert document["site"] == home
    assert document["quality"]["coherence"]["coherent"] == len(report.quality.coherent)
    indexed = [url for batch in index_warc(file, ReadReport()) for url in batch.column("url").to_pylist()]
    assert name not in indexed
