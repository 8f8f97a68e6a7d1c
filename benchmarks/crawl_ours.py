"""What the crawl benchmark measures: the live crawl as ``recrawl run`` does it, with all its parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from recrawl.crawl.clock import RealClock
from recrawl.crawl.control.runtime_limits import RuntimeLimits
from recrawl.crawl.visit.change_classifier import ClassifierRules
from recrawl.crawl.visit.scope import HostScope
from recrawl.crawl.visit.visit_machine import VisitDone
from recrawl.crawl.worker.crawl_assembly import WorkerSettings, live_crawl
from recrawl.crawl.worker.crawl_worker import WorkerPace
from recrawl.detect.change_criteria import ChangeCriteria
from recrawl.parse.parse_pool import ParseLimits
from recrawl.schedule.objectives import OBJECTIVES
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.schedule.politeness.host_politeness import PolitenessRules
from recrawl.store import open_store
from recrawl.urls import host_of

BUDGET = 1e6
"""Visits per second: no limit."""


@dataclass(frozen=True, slots=True)
class Job:
    """What to crawl, and for how long. Pages are worth another visit a second after the last one."""

    fetches: float = math.inf
    seconds: float = math.inf
    delay: float = 0.0
    """Seconds between two requests to a host."""
    concurrency: int = 64
    budget: float = BUDGET
    """Visits per second."""


def seed(folder: Path, urls: Sequence[str], location: str = "") -> None:
    """A store with these pages in it."""
    with open_store(location or str(folder / "recrawl.db"), create=True) as store:
        store.discover(urls, RealClock().now())


def crawl(folder: Path, worker: str, job: Job, on_page: Callable[[], None], location: str = "") -> None:
    """Crawl the pages in the store again and again until the job is done; the store is in the folder or elsewhere."""
    import uvloop

    uvloop.run(_crawl(folder, worker, job, on_page, location or str(folder / "recrawl.db")))


async def _crawl(folder: Path, worker: str, job: Job, on_page: Callable[[], None], location: str) -> None:
    clock, left = RealClock(), job.fetches

    def told(visited: Sequence[VisitDone]) -> None:
        nonlocal left
        for one in visited:
            assert one.capture is not None
            assert one.capture.raw_body
            on_page()
        left -= len(visited)
        if left <= 0:
            driver.stop()

    with open_store(location) as store:
        rules, standards = PolitenessRules(0.0, job.delay, job.delay, job.delay), ChangeCriteria(use_kernels=True)
        settings = WorkerSettings(
            budget=job.budget,
            user_agent="benchmark/1.0 (+https://example.org/)",
            politeness=rules,
            pace=WorkerPace(concurrency=job.concurrency),
            classifier=ClassifierRules(standards),
            parsing=ParseLimits(),
        )
        orders = RuntimeLimits(job.budget, politeness=rules, concurrency=job.concurrency, standards=standards)
        hosts = frozenset(host for url in store.urls(store.pages().id) if (host := host_of(url)))
        policy = ValuedPolicy(OBJECTIVES["archive"], shortest_interval=1.0)
        async with live_crawl(
            worker,
            policy,
            clock=clock,
            store=store,
            folder=folder,
            scope=HostScope(hosts),
            settings=settings,
            orders=lambda _limits: orders,
            on_visits=told,
        ) as driver:
            await driver.run(clock.now() + job.seconds)
