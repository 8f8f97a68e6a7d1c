"""A crawl that is interrupted and goes on equals one that was not, up to times.

The same web is crawled twice on virtual time: once through, once stopped or dropped at random moments and begun anew,
with nothing but what is in the store and in the archive files.
"""

from __future__ import annotations

import asyncio
import functools
import math
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from recrawl.crawl.visit.change_classifier import ClassifierRules
from recrawl.crawl.visit.scope import HostScope
from recrawl.crawl.worker.crawl_assembly import WorkerSettings, live_crawl
from recrawl.crawl.worker.crawl_worker import WorkerPace
from recrawl.model import Verdict, Visits
from recrawl.schedule.policies.fixed_interval import FixedInterval
from recrawl.schedule.politeness.host_politeness import PolitenessRules
from recrawl.simulate.sites import synthetic_web
from recrawl.store.open import open_store
from recrawl.time import DAY, HOUR, VirtualClock
from recrawl_testweb.virtual_web_server import VirtualWebServer

AGENT = "resume/1.0 (+https://example.org/)"
START, DAYS, INTERVAL = 1.79e9, 2.0, 6 * HOUR
WEB = synthetic_web(pages=18, start=START, days=DAYS, seed=6)


@dataclass
class Crawled:
    urls: list[str]
    visits: Visits
    asked: int
    kept: int

    def of(self, url):
        return self.visits.take(self.visits.page == 1 + self.urls.index(url))


async def crawl(folder, breaks):
    """Crawl to the end, with breaks: after so many seconds, and whether what is under way is dropped."""
    clock = VirtualClock(START)
    with VirtualWebServer(WEB, clock) as living, open_store(folder / "store.db", create=True, durable=False) as store:
        store.discover(living.seeds(), START)
        for after, drop in [*breaks, (math.inf, False)]:
            await part(folder, clock, living, store, after, drop=drop)
        urls = [url.replace(f":{living.port}", "") for url in store.urls(store.pages().id)]
        pages = living.requests().page
        return Crawled(urls, store.visits(), int((pages >= 0).sum()), responses(folder / "warc"))


async def part(folder, clock, living, store, after, *, drop):  # noqa: PLR0913 - what a start begins with
    names = living.hosts()
    rules = PolitenessRules(factor=0.0, shortest=5.0, longest=5.0)
    how = WorkerSettings(
        1.0,
        AGENT,
        politeness=rules,
        pace=WorkerPace(poll=math.inf),
        pins=dict.fromkeys(names, living.ip),
        classifier=ClassifierRules(confirm_changes=False),  # they depend on when the host was last asked
        durable=False,
    )
    scope = HostScope(frozenset(names))
    end = START + DAYS * DAY
    async with live_crawl(
        "one", FixedInterval(INTERVAL), clock=clock, store=store, folder=folder, scope=scope, settings=how
    ) as driver:

        def interrupt(now):
            if now >= START + after:
                running.cancel() if drop else driver.stop()

        running = asyncio.ensure_future(driver.run(end, interrupt))
        await asyncio.wait([running])
        if not running.cancelled():
            running.result()


def responses(folder):
    count = 0
    for path in folder.glob("*.warc.gz"):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream, check_digests="raise"):
                url = record.rec_headers.get_header("WARC-Target-URI", "")
                count += record.rec_type in {"response", "revisit"} and "robots.txt" not in url and "sitemap" not in url
                record.content_stream().read()
    return count


def crawled(breaks):
    with tempfile.TemporaryDirectory(prefix="recrawl-resume-") as folder:
        return asyncio.run(crawl(Path(folder), breaks))


@functools.cache
def undisturbed():
    return crawled([])


moments = st.lists(st.tuples(st.floats(0.0, DAYS * DAY), st.booleans()), max_size=4).map(sorted)


@pytest.mark.slow
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(breaks=moments)
def test_a_crawl_with_breaks_equals_one_without(breaks):
    whole, broken = undisturbed(), crawled(breaks)
    assert set(broken.urls) == set(whole.urls)
    assert len(broken.visits) == broken.kept
    assert broken.asked - len(broken.visits) <= 64 * sum(drop for _, drop in breaks)
    for url in whole.urls:
        one, other = whole.of(url), broken.of(url)
        assert abs(len(one) - len(other)) <= 1  # a break near the end may cost the last visit, or move one over it
        assert (np.diff(other.time) >= INTERVAL - 1e-6).all()
        both = min(len(one), len(other))
        same = one.verdict[:both] == other.verdict[:both]
        assert all(one_may_differ(url, one, other, row) for row in np.flatnonzero(~same))


def one_may_differ(url, one, other, row):
    """Two crawls see different verdicts only where a change lies between the times at which they looked."""
    page = [f"http://{WEB.hosts[host]}{path}" for host, path in zip(WEB.host, WEB.path, strict=True)].index(url)
    changes = np.concatenate([WEB.changes.row(page), WEB.lifetimes.row(page)])
    spans = [sorted((one.time[place], other.time[place])) for place in (row - 1, row) if place >= 0]
    return any(((changes >= low) & (changes <= high)).any() for low, high in spans)


def test_what_is_compared_has_changes_in_it():
    whole = undisturbed()
    assert (whole.visits.verdict == Verdict.CHANGED).sum() > 10
    assert (whole.visits.verdict == Verdict.UNCHANGED).sum() > 10
    assert len(whole.visits) == whole.kept
