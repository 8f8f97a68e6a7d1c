"""The same policy through the simulator and through the live driver gives the same log. This test is permanent."""

from __future__ import annotations

import asyncio
import io
import math

import numpy as np
import pytest

from recrawl.crawl.control.json_log import JsonLinesLog
from recrawl.crawl.visit.recorder import Recorder
from recrawl.crawl.visit.scope import HostScope
from recrawl.crawl.visit.visitor import Visitor
from recrawl.crawl.visit.warc_archive import NoArchive
from recrawl.crawl.worker.crawl_worker import CrawlWorker, WorkerPace
from recrawl.detect import decoded
from recrawl.fetch.http.http_fetcher import HttpFetcher
from recrawl.fetch.robots_cache import RobotsCache
from recrawl.schedule.frontier.host_frontier import Frontier
from recrawl.schedule.frontier.revisit_scheduler import RevisitScheduler
from recrawl.schedule.policies.fixed_interval import FixedInterval, Uniform
from recrawl.schedule.policies.historic_classes import ChangeClasses, historic_classes
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.schedule.politeness.host_politeness import Politeness, PolitenessRules
from recrawl.simulate.sites import lognormal_rates, tree_site
from recrawl.simulate.virtual_web import VirtualWeb, join
from recrawl.store.open import open_store
from recrawl.time import HOUR, VirtualClock
from recrawl_testweb.policy_replay import Replay
from recrawl_testweb.virtual_web_server import VirtualWebServer

AGENT = "parity/1.0 (+https://example.org/)"
START, HOURS = 1_790_000_000.0, 20
CLASSES = ChangeClasses.of(np.array([1.0, 2.0, 6.0]) * HOUR, window=[3, 2, 1])


class PredictedClass:
    """What a static classifier says of pages: the middle class, since ids of the store are not those of the web."""

    def __call__(self, pages):
        return np.ones(len(pages), np.int64)


POLICIES = {
    "valued": ValuedPolicy,
    "uniform": Uniform,
    "fixed": lambda: FixedInterval(2 * HOUR),
    "classes": lambda: historic_classes(classes=CLASSES, first_class=PredictedClass()),
}


def busy_web(seed: int) -> VirtualWeb:
    """Three hosts of unequal size whose pages change several times in the hours of the test."""
    rng = np.random.default_rng(seed)
    span = {"start": START, "end": START + HOURS * HOUR}
    return join(
        [
            tree_site(name, lognormal_rates(size, median=0.2 / HOUR, sigma=1.0, rng=rng), rng=rng, **span)
            for name, size in (("one", 12), ("two", 5), ("three", 1))
        ]
    )


def agenda_of(policy: str) -> RevisitScheduler:
    return RevisitScheduler(POLICIES[policy](), budget=30 / HOUR, fit_every=3 * HOUR)


def politeness() -> Politeness:
    return Politeness(PolitenessRules(shortest=40.0, longest=40.0))


def simulated(web: VirtualWeb, policy: str) -> list[tuple[float, int, int, int]]:
    visits = Replay(web, agenda_of(policy), Frontier(politeness())).run(web.start, web.end)
    return list(
        zip(visits.time.tolist(), visits.page.tolist(), visits.outcome.tolist(), visits.verdict.tolist(), strict=True)
    )


async def lived(web: VirtualWeb, policy: str, store_file: str) -> list[tuple[float, int, int, int]]:
    clock, scheduler, polite = VirtualClock(web.start), agenda_of(policy), politeness()
    with VirtualWebServer(web, clock) as living, open_store(store_file, create=True) as store:
        async with HttpFetcher(clock, AGENT, resolve=dict.fromkeys(living.hosts(), living.ip)) as fetcher:
            robots = RobotsCache(fetcher, clock, AGENT, body_of=decoded)
            for url in living.seeds():  # rules last a day, longer than the test: no request but for pages
                await robots.rules(url)
            recorder = Recorder("w", store, scheduler, HostScope(frozenset(living.hosts())), NoArchive())
            driver = CrawlWorker(
                "w",
                clock=clock,
                store=store,
                scheduler=scheduler,
                politeness=polite,
                visitor=Visitor(fetcher, robots, clock),
                recorder=recorder,
                pace=WorkerPace(poll=math.inf),
                log=JsonLinesLog(io.StringIO(), clock),
            )
            ids = store.discover(living.urls(), clock.now())
            await driver.run(web.end)
        number = {page: number for number, page in enumerate(ids.tolist())}
        visits = store.visits()
    rows = zip(
        visits.time.tolist(), visits.page.tolist(), visits.outcome.tolist(), visits.verdict.tolist(), strict=True
    )
    return [(time, number[page], outcome, verdict) for time, page, outcome, verdict in rows]


def as_fetched(log: list[tuple[float, int, int, int]]) -> list[tuple[float, int, int]]:
    """A 304 and a body that is the same say the same: compare when, which page, and what was found."""
    return sorted((time, page, verdict) for time, page, _, verdict in log)


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", [0, 1])
def test_simulator_and_live_driver_keep_the_same_log(policy, seed, tmp_path):
    web = busy_web(seed)
    expected = simulated(web, policy)
    assert len(expected) > 150
    assert as_fetched(asyncio.run(lived(web, policy, str(tmp_path / "store.db")))) == as_fetched(expected)
