"""A trial: the whole job on a test web in virtual time, and then the truth beside what was believed.

Everything is real but the hours: a real server, real HTTP, a real store and archive files. The clock of server and
crawler jumps from one event to the next, so weeks pass in seconds and a trial with the same seed repeats itself.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from recrawl.assess.truth_scores import (
    ChangeReport,
    FreshnessSeries,
    PageLifetimes,
    assess_changes,
    freshness,
    noticed_at,
)
from recrawl.crawl.visit.scope import HostScope
from recrawl.crawl.worker.crawl_assembly import WorkerSettings, live_crawl
from recrawl.crawl.worker.crawl_worker import WorkerPace
from recrawl.model import FloatArray, IntArray, Visits
from recrawl.schedule.policy import Policy
from recrawl.simulate.virtual_web import VirtualWeb
from recrawl.store.base import Store
from recrawl.time import VirtualClock
from recrawl.urls import surt
from recrawl_testweb.fault_injection import FaultProfile
from recrawl_testweb.request_log import RequestLog
from recrawl_testweb.virtual_web_server import VirtualWebServer


@dataclass(frozen=True, slots=True)
class TrialSettings:
    """How the crawler goes about it, and how the server behaves."""

    crawl: WorkerSettings
    fault_profile: FaultProfile = field(default_factory=FaultProfile.none)
    seed: int = 0
    """Of the server's prose and quirks."""


@dataclass(frozen=True, slots=True)
class TrialAftermath:
    """What is available when a trial is over and its web is still there."""

    living: VirtualWebServer
    clock: VirtualClock
    crawl: WorkerSettings
    """Those of the trial, by which the test web can be reached."""


async def _leave(_aftermath: TrialAftermath) -> None:
    """Nothing more is done."""


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What was done and what was so. Pages are those of the virtual web that recrawl found."""

    start: float
    end: float
    visits: Visits
    """Of all pages in the store, by its ids."""
    pages_there: int
    """Pages that existed at some time of the trial, those that robots.txt forbids included."""
    requests: RequestLog
    """What the server saw, robots.txt and sitemaps included."""
    page: IntArray
    """Store ids of the pages found, ascending."""
    rate: FloatArray
    """True changes per second of these pages."""
    changes: ChangeReport
    fresh: FreshnessSeries
    edges: FloatArray
    """Times at which changes are counted."""
    happened: IntArray
    """Changes up to each edge."""
    noticed: IntArray
    """Changes noticed up to each edge, alone or together with others."""


async def run_trial(  # noqa: PLR0913 - what takes part, and who wants to know
    web: VirtualWeb,
    policy: Policy,
    *,
    store: Store,
    folder: Path,
    settings: TrialSettings,
    progress: Callable[[float, int], None] = lambda _share, _requests: None,
    afterwards: Callable[[TrialAftermath], Awaitable[None]] = _leave,
) -> TrialResult:
    """Crawl the web from its start to its end with this policy and compare with the truth.

    ``folder`` takes the archive files (``warc/``) and the log (``recrawl.log``). ``progress`` is told the share of
    virtual time that has passed and the number of requests so far. ``afterwards`` may go on with store and web; the
    result says nothing of that.
    """
    clock = VirtualClock(web.start)
    span = web.end - web.start
    with VirtualWebServer(web, clock, fault_profile=settings.fault_profile, seed=settings.seed) as living:
        hosts = living.hosts()
        crawl = replace(
            settings.crawl,
            pace=WorkerPace(poll=math.inf),
            durable=False,
            reach=None,
            turns=None,
            pins=dict.fromkeys(hosts, living.ip),
        )
        scope = HostScope(frozenset(hosts))
        async with live_crawl(
            "trial", policy, clock=clock, store=store, folder=folder, scope=scope, settings=crawl
        ) as driver:
            store.discover(living.seeds(), clock.now())
            await driver.run(web.end, lambda now: progress((now - web.start) / span, living.answered))
        result = _compare(web, living, store)
        await afterwards(TrialAftermath(living, clock, crawl))
        return result


def _compare(web: VirtualWeb, living: VirtualWebServer, store: Store) -> TrialResult:
    """The truth beside what is in the store."""
    numbers = {surt(url): number for number, url in enumerate(living.urls())}
    ids = store.pages().id
    web_of_page = np.array([numbers.get(surt(url), -1) for url in store.urls(ids)], dtype=np.int64)
    page, web_page = ids[web_of_page >= 0], web_of_page[web_of_page >= 0]
    visits = store.visits()
    on_web = _renumbered(visits, page, web_page)
    truth = PageLifetimes.from_lifetimes(
        np.arange(len(web)), web.lifetimes.times, web.lifetimes.offsets, web.changes.times, web.changes.offsets
    )
    edges = np.linspace(web.start, web.end, _EDGES)
    return TrialResult(
        start=web.start,
        end=web.end,
        visits=visits,
        pages_there=int((web.born < web.end).sum()),
        requests=living.requests(),
        page=page,
        rate=web.rate[web_page],
        changes=assess_changes(truth, on_web, web.start, web.end),
        fresh=freshness(truth, on_web, edges),
        edges=edges,
        happened=np.searchsorted(np.sort(truth.times), edges, side="right"),
        noticed=np.searchsorted(np.sort(noticed_at(truth, on_web)), edges, side="right"),
    )


_EDGES = 57
"""Half a day apart in four weeks."""


def _renumbered(visits: Visits, page: IntArray, web_page: IntArray) -> Visits:
    """The visits of these pages (ascending ids), with the page numbers of the virtual web."""
    place = np.minimum(np.searchsorted(page, visits.page), max(len(page) - 1, 0))
    known = page[place] == visits.page if len(page) else np.zeros(len(visits), np.bool_)
    return replace(visits.take(known), page=web_page[place[known]])
