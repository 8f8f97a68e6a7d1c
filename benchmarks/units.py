"""One price for several units, beside one process that knows all pages and beside a fixed share of the budget per unit.

    uv run python benchmarks/units.py                         8,000 pages, 4 units, 200 days
    uv run python benchmarks/units.py --pages 40000 --units 8
    uv run python benchmarks/units.py --live                  600 pages, 4 workers, 40 days, crawled on virtual time
    uv run python benchmarks/units.py --live --stores         each of them a unit: a store of its own, and its agent

The units are unequal: importance and change rates of their pages differ. Each policy has the same visits a day in all.
Printed are the shares of current copies, weighted by importance, in points, and their differences from one process.

With ``--live`` real workers crawl a test web over HTTP on virtual time and share a store: each owns the buckets of one
unit and holds its pages only. With ``--stores`` each has a SQLite store of its own, and they exchange their demand
through a coordination database. Fixed shares are crawls that share nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import itertools
import math
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from figures import note, options_of

from recrawl.assess.truth_scores import PageLifetimes, freshness
from recrawl.crawl.control import run_control, runtime_limits, worker_registry
from recrawl.crawl.control.price_exchange import FOREIGN
from recrawl.crawl.control.runtime_limits import RuntimeLimits
from recrawl.crawl.control.worker_registry import RegisteredWorker, WorkerRegistry
from recrawl.crawl.units import unit_registry
from recrawl.crawl.units.unit_agent import UnitAgent, UnitTerms
from recrawl.crawl.visit.scope import HostScope
from recrawl.crawl.worker import lease_pool
from recrawl.crawl.worker.crawl_assembly import WorkerSettings, live_crawl
from recrawl.crawl.worker.crawl_worker import WorkerPace
from recrawl.model import FloatArray, IntArray, Visits
from recrawl.schedule.frontier.bucket_assignment import assign_units
from recrawl.schedule.policies.partitioned import PartitionedPolicy
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.schedule.policy import Policy
from recrawl.schedule.politeness.host_politeness import PolitenessRules
from recrawl.simulate.benchmark_field import BenchmarkField
from recrawl.simulate.policy_benchmark import BenchmarkRules, compete
from recrawl.simulate.sampling import PageTruth
from recrawl.simulate.virtual_web import EventTimes, PoissonProcess, VirtualWeb, WebLinks
from recrawl.store.base import Store
from recrawl.store.open import open_store
from recrawl.store.unit_exchange import open_unit_store
from recrawl.time import DAY, HOUR, MINUTE, VirtualClock
from recrawl.urls import BUCKETS, bucket_of
from recrawl_testweb.virtual_web_server import VirtualWebServer

HOSTS_PER_UNIT = 20
BUDGET = 0.05
"""Visits a page a day."""
LIVE_BUDGET = 0.25
WARM_UP = 0.25
"""Share of a live crawl before its freshness counts."""


def main() -> None:
    """Print one line for each way to share the budget."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--live", action="store_true", help="crawl a test web, on virtual time")
    parser.add_argument("--stores", action="store_true", help="with --live: a store for each unit")
    parser.add_argument("--pages", type=int)
    parser.add_argument("--units", type=int, default=4)
    parser.add_argument("--days", type=int)
    parser.add_argument("--seeds", type=int, default=2)
    options = options_of(parser)
    options.pages = options.pages or (600 if options.live else 8_000)
    options.days = options.days or (40 if options.live else 200)
    if options.live:
        report_hourly()
    found = partial(live_shares, stores=options.stores) if options.live else shares
    rows = [found(options.pages, options.units, options.days, seed) for seed in range(options.seeds)]
    one, merged, fixed = np.mean(rows, axis=0)
    budget = LIVE_BUDGET if options.live else BUDGET
    print(f"{options.pages:,} pages in {options.units} units, {options.days} days, {budget} visits a page a day")
    print(f"{'one process':<28}{100 * one:8.2f}")
    print(f"{'units, one price':<28}{100 * merged:8.2f}{100 * (merged - one):+8.2f} points")
    print(f"{'units, fixed shares':<28}{100 * fixed:8.2f}{100 * (fixed - one):+8.2f} points")
    sizes = f"{options.pages:,} pages, {options.units} units, {options.days} days"
    note(
        "units-price" + "-live" * options.live + "-stores" * options.stores,
        100 * (one - merged),
        "points of freshness lost",
        sizes,
        baseline=100 * (one - fixed),
        beside="fixed shares",
    )


def shares(pages: int, units: int, days: int, seed: int) -> tuple[float, float, float]:
    """Freshness of one process, of units with one price, and of units with fixed shares of the budget."""
    field = unequal(pages, units, days, np.random.default_rng(seed))

    def unit_of(host: IntArray) -> IntArray:
        return host // HOSTS_PER_UNIT

    def freshness(some: BenchmarkField, policy: Policy) -> tuple[float, float]:
        tally = compete(some, policy, BenchmarkRules(BUDGET, fit_every=30 * DAY), np.random.default_rng(seed)).tally
        weight = tally.importance * tally.watched
        return float((tally.importance * tally.fresh).sum()), float(weight.sum())

    one = freshness(field, ValuedPolicy())
    merged = freshness(field, PartitionedPolicy([ValuedPolicy() for _ in range(units)], unit_of))
    split = [
        freshness(field.take(np.flatnonzero(unit_of(field.host) == unit)), ValuedPolicy()) for unit in range(units)
    ]
    fixed = tuple(np.sum(split, axis=0))
    return one[0] / one[1], merged[0] / merged[1], fixed[0] / fixed[1]


def unequal(pages: int, units: int, days: int, rng: np.random.Generator) -> BenchmarkField:
    """Pages of unequal units: every unit has half the pages of the one before, more important and slower ones."""
    share = 0.5 ** np.arange(units)
    unit = rng.choice(units, pages, p=share / share.sum())
    host = unit * HOSTS_PER_UNIT + rng.integers(0, HOSTS_PER_UNIT, pages)
    rate = 10.0 ** rng.normal(-1.0 - 0.3 * unit, 0.6) / DAY
    start, end = 20_000 * DAY, (20_000 + days) * DAY
    changes = PoissonProcess().times(rate, start, end, rng)
    truth = PageTruth(np.full(pages, start), np.full(pages, np.inf), changes, start, end)
    return BenchmarkField.of("units", truth, host=host, importance=3.0**unit)


# -- live: real workers, HTTP and a store, on virtual time ----------------------------------------


def report_hourly() -> None:
    """Let workers report, read controls and ask for pages now and then, not every second: weeks pass in minutes."""
    vars(run_control)["REPORT_EVERY"] = worker_registry.REPORT_EVERY = runtime_limits.READ_EVERY = HOUR
    worker_registry.SILENCE, worker_registry._LONGEST_GAP = 6 * HOUR, 2 * HOUR  # noqa: SLF001 - as above
    run_control._EXCHANGE_EVERY = HOUR  # noqa: SLF001 - as above
    # The units are tasks of one process: the processor time of each is not known, and no bucket is to move for it.
    vars(unit_registry).update(SILENCE=6 * HOUR, _ENOUGH_VISITS=math.inf)
    lease_pool._POLL = 10 * MINUTE  # noqa: SLF001 - as above


class CommonClock(VirtualClock):
    """A virtual clock of several workers: it moves once all of them sleep, to the first time that one waits for."""

    def __init__(self, start: float, parties: int) -> None:
        super().__init__(start)
        self._parties = parties
        self._asleep: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    async def sleep_until(self, when: float) -> None:
        """Wait until the clock reads ``when``."""
        await asyncio.sleep(0)
        if when <= self.now():
            return
        self._count += 1
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._asleep, (when, self._count, woken))
        self._move()
        await woken

    def leave(self) -> None:
        """Wait for one worker less."""
        self._parties -= 1
        self._move()

    def _move(self) -> None:
        if self._asleep and len(self._asleep) >= self._parties:
            when, _, woken = heapq.heappop(self._asleep)
            self.advance_to(when)
            woken.set_result(None)


def live_shares(pages: int, units: int, days: int, seed: int, *, stores: bool) -> tuple[float, float, float]:
    """As :func:`shares`, crawled by real workers: one, several that share their price, and several that share nothing.

    Those that share their price share a store, or (``stores``) each is a unit.
    """
    rng = np.random.default_rng(seed)
    owner = np.arange(BUCKETS) * units // BUCKETS
    if stores:
        owner = assign_units([f"u{number}" for number in range(units)], np.ones(units))
    hosts = [name for unit in range(units) for name in _names(owner, unit)]
    field = unequal(pages, units, days, rng)
    web = _web(field, hosts)
    of_unit = field.host // HOSTS_PER_UNIT
    everything = np.arange(pages)
    budget = LIVE_BUDGET * pages / DAY
    one = _crawled(web, everything, field.importance, 1, budget)
    own = [np.flatnonzero(of_unit == unit) for unit in range(units)]
    if stores:
        merged = _crawled_by_units(web, own, field.importance, budget)
    else:
        merged = _crawled(web, everything, field.importance, units, budget)
    split = [_crawled(web, some, field.importance, 1, LIVE_BUDGET * len(some) / DAY) for some in own]
    weight = [float(field.importance[some].sum()) for some in own]
    return one, merged, float(np.average(split, weights=weight))


def _names(owner: IntArray, unit: int) -> list[str]:
    """Hosts whose buckets are those of this worker, by the owner of each bucket."""
    names = (f"h{number}.example" for number in itertools.count())
    return list(itertools.islice((one for one in names if owner[bucket_of(one)] == unit), HOSTS_PER_UNIT))


def _web(field: BenchmarkField, hosts: list[str]) -> VirtualWeb:
    """The pages of a field on a test web; no links: they are all known."""
    n, truth = len(field.host), field.truth
    return VirtualWeb(
        hosts=tuple(hosts),
        host=field.host,
        path=[f"/{number}.html" for number in range(n)],
        title=[f"Page {number}" for number in range(n)],
        kind=np.zeros(n, np.uint8),
        rate=np.full(n, np.nan),
        lifetimes=EventTimes.of(np.arange(n), np.full(n, truth.start), n),
        changes=truth.changes,
        links=WebLinks.of([], [], [], [], pages=n),
        start=truth.start,
        end=truth.end,
    )


def _crawled(web: VirtualWeb, pages: IntArray, importance: FloatArray, workers: int, budget: float) -> float:
    """Freshness of these pages, weighted by importance, after a warm-up."""
    clock = CommonClock(web.start, workers)
    with (
        VirtualWebServer(web, clock) as living,
        tempfile.TemporaryDirectory() as folder,
        open_store(Path(folder) / "store.db", create=True, durable=False) as store,
    ):
        urls = living.urls()
        page = store.discover([urls[number] for number in pages.tolist()], web.start)
        store.set_importance(page, importance[pages])
        settings = _settings(living, budget)

        names = [f"w{number}" for number in range(workers)]
        for number, name in enumerate(names):  # so that each has its buckets from the start
            WorkerRegistry(store, name).report(RegisteredWorker(name, web.start, web.start))
            own = np.arange(BUCKETS)[np.arange(BUCKETS) * workers // BUCKETS == number]
            store.claim_buckets(name, own, web.start)

        found: dict[str, float | None] = {}

        def note_prices() -> None:  # before the workers leave, and their demand with them
            if web.end - DAY < clock.now() < web.end - DAY / 4:
                found.update({said.partition: said.price for said in store.demands()})

        async def work(name: str, here: Path) -> None:
            try:
                async with live_crawl(
                    name,
                    ValuedPolicy(shortest_interval=HOUR),
                    clock=clock,
                    store=store,
                    folder=here,
                    scope=HostScope(frozenset(living.hosts())),
                    settings=settings,
                    orders=_orders(settings),
                ) as driver:
                    await driver.run(web.end, lambda _now: note_prices())
            finally:
                clock.leave()

        for name in names:
            (Path(folder) / name).mkdir()

        async def run() -> None:
            await asyncio.gather(*(work(name, Path(folder) / name) for name in names))

        asyncio.run(run())
        visits = store.visits()
        place = np.full(int(page.max()) + 1, -1)
        place[page] = pages
        print(
            f"  {workers} workers, {len(pages):,} pages: {len(visits):,} visits, prices {list(found.values())}",
            flush=True,
        )
        return _fresh(web, replace(visits, page=place[visits.page]), pages, importance)


def _crawled_by_units(web: VirtualWeb, own: list[IntArray], importance: FloatArray, budget: float) -> float:
    """As :func:`_crawled`, by units with a store and a worker each, through a coordination database."""
    clock = CommonClock(web.start, len(own))
    with ExitStack() as stack:
        living = stack.enter_context(VirtualWebServer(web, clock))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        settings, urls = _settings(living, budget), living.urls()
        agents, stores = list[UnitAgent](), list[Store]()
        for unit, pages in enumerate(own):
            here = folder / f"u{unit}"
            here.mkdir()
            location = str(here / "store.db")
            open_store(location, create=True).close()
            store, outgoing = open_unit_store(location)
            stack.enter_context(store)
            page = store.discover([urls[number] for number in pages.tolist()], web.start)
            store.set_importance(page, importance[pages])
            terms = UnitTerms(f"u{unit}", str(folder / "shared.db"), location, budget=budget)
            agents.append(UnitAgent(terms, store, outgoing))
            stack.callback(agents[-1].close)
            stores.append(store)
        for moment in range(12):  # so that each has its buckets from the start
            for agent in agents:
                agent.step(web.start - HOUR + moment * MINUTE)
        prices: dict[int, float | None] = {}

        async def work(unit: int) -> None:
            def report() -> None:
                agents[unit].step(clock.now())
                if web.end - DAY < clock.now() < web.end - DAY / 4:
                    [prices[unit]] = [said.price for said in stores[unit].demands() if FOREIGN not in said.partition]

            try:
                async with live_crawl(
                    f"w{unit}",
                    ValuedPolicy(shortest_interval=HOUR),
                    clock=clock,
                    store=stores[unit],
                    folder=folder / f"u{unit}",
                    scope=HostScope(frozenset(living.hosts())),
                    settings=settings,
                    orders=_orders(settings),
                    on_report=report,
                    in_unit=True,
                ) as driver:
                    await driver.run(web.end)
            finally:
                clock.leave()

        async def run() -> None:
            await asyncio.gather(*(work(unit) for unit in range(len(own))))

        asyncio.run(run())
        number_of = {url: number for number, url in enumerate(urls)}
        seen = []
        for store in stores:
            visits = store.visits()
            at = np.unique(visits.page)
            place = np.full(int(at.max()) + 1, -1)
            place[at] = [number_of[url] for url in store.urls(at)]
            seen.append(replace(visits, page=place[visits.page]))
        every = Visits.concatenate(seen).sorted()
        moved = sum(agent.sent for agent in agents)
        print(
            f"  {len(own)} units: {len(every):,} visits, prices {list(prices.values())}, {moved} pages moved",
            flush=True,
        )
        return _fresh(web, every, np.concatenate(own), importance)


def _settings(living: VirtualWebServer, budget: float) -> WorkerSettings:
    return WorkerSettings(
        budget=budget,
        user_agent="units/1.0 (+https://example.org/)",
        politeness=PolitenessRules(factor=0.0, shortest=1.0, longest=1.0),
        pace=WorkerPace(poll=math.inf),
        pins=dict.fromkeys(living.hosts(), living.ip),
        durable=False,
    )


def _orders(settings: WorkerSettings) -> Callable[[Mapping[str, str]], RuntimeLimits]:
    return lambda _limits: RuntimeLimits(budget=settings.budget, burst=2 * DAY, politeness=settings.politeness)


def _fresh(web: VirtualWeb, seen: Visits, pages: IntArray, importance: FloatArray) -> float:
    """Freshness of these pages, weighted by importance, after the warm-up; the pages of visits are those of the web."""
    truth = PageLifetimes.from_lifetimes(
        np.arange(len(web)), web.lifetimes.times, web.lifetimes.offsets, web.changes.times, web.changes.offsets
    )
    weight = np.zeros(len(web))
    weight[pages] = importance[pages]
    edges = np.linspace(web.start + WARM_UP * (web.end - web.start), web.end, 2)
    return freshness(truth, seen, edges, weight).mean_fresh


if __name__ == "__main__":
    main()
