"""How fast prices, host prices, rankings and the frontier are, each beside a plain way in the same run.

    uv run python benchmarks/schedule.py                   200,000 pages
    uv run python benchmarks/schedule.py --full            10 million pages, 1 million for host prices; needs 6 GB
    uv run python benchmarks/schedule.py --only frontier   one part

The population is that of algorithms §3: log-normal rates around one change in 30 days, half of their variance between
hosts of 100 pages, log-normal importance, 0.03 visits per page and day. Plain ways run on fewer pages where they would
take minutes; their time is then scaled up. Times are seconds of one processor and, in brackets, of the clock on the
wall.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar
from unittest import mock

import numpy as np
from figures import note, options_of

from recrawl.estimate.point_evidence import PointBelief
from recrawl.model import FloatArray, IntArray
from recrawl.model.belief import GridBelief, half_octaves
from recrawl.schedule.frontier.host_frontier import Frontier
from recrawl.schedule.objectives import ARCHIVE, FreshnessObjective
from recrawl.schedule.politeness.host_politeness import Politeness, PolitenessRules
from recrawl.schedule.price import due_times, known_rates
from recrawl.schedule.price.budget_price import allocate, allocate_by_host
from recrawl.schedule.price.due_times import VisitDemand
from recrawl.schedule.price.known_rates import LAWS, KnownRates, freshness_rates
from recrawl.time import DAY, HOUR
from recrawl_lab.trials.ranking import best, index

T = TypeVar("T")
BUDGET = 0.03 / DAY
"""Visits a page and second."""
PLAIN = 100_000
"""Pages at most for the plain ways."""
FRESH = LAWS["freshness"]


class Timed(NamedTuple):
    """Seconds of one processor, and on the wall."""

    cpu: float
    wall: float

    def __str__(self) -> str:
        return f"{self.cpu:8.3f} ({self.wall:.3f})"


@dataclass(frozen=True)
class Population:
    """Pages with known rates, and their hosts."""

    rate: FloatArray
    importance: FloatArray
    host: IntArray

    @classmethod
    def of(cls, n: int) -> Population:
        """The population of algorithms §3."""
        rng = np.random.default_rng(0)
        hosts = max(1, n // 100)
        host = rng.integers(0, hosts, n)
        rate = np.exp(1.4 * rng.normal(size=n) + 1.4 * rng.normal(size=hosts)[host]) / (30 * DAY)
        return cls(rate, np.exp(rng.normal(0, 1, n)), host)

    def __len__(self) -> int:
        return len(self.rate)

    def first(self, n: int) -> Population:
        """Some of the pages."""
        return Population(self.rate[:n], self.importance[:n], self.host[:n])

    def known(self, law: str = "freshness", least: float = 0.0, most: float = np.inf) -> KnownRates:
        """What they ask for under a law, within a floor and a ceiling."""
        return KnownRates(LAWS[law], self.rate, self.importance, np.ones(len(self)), least, most)

    def fresh(self, visits: FloatArray) -> float:
        """Weighted mean freshness at these rates."""
        return 1.0 - FRESH.reached(self.rate, self.importance, visits)


def timed(work: Callable[[], T], repeats: int = 2) -> tuple[T, Timed]:
    """What it gives, and the shortest time it took."""
    times = []
    for _ in range(repeats):
        cpu, wall = time.process_time(), time.perf_counter()
        found = work()
        times.append(Timed(time.process_time() - cpu, time.perf_counter() - wall))
    return found, min(times)


def line(what: str, ours: Timed, plain: Timed, scale: float = 1.0, note: str = "") -> None:
    """One figure beside its baseline."""
    ratio = plain.cpu * scale / ours.cpu
    print(
        f"{what:<42}{ours!s:>20}{Timed(plain.cpu * scale, plain.wall * scale)!s:>22}{ratio:>8.1f} ×  {note}", flush=True
    )


def prices(pages: Population) -> None:
    """Known rates: bins against bisection over all pages."""
    some = pages.first(PLAIN)
    n, budget = len(some), BUDGET * len(some)
    (exact, _), plain = timed(lambda: freshness_rates(some.rate, some.importance, np.ones(n), budget), 1)
    gap = some.fresh(exact) - some.fresh(allocate(some.known(), budget).rate)
    scale, budget = len(pages) / n, BUDGET * len(pages)
    for law in ("freshness", "harmonic", "archive", "poisson"):
        known = pages.known(law)
        _, ours = timed(partial(allocate, known, budget))
        line(f"price, {law}", ours, plain, scale, f"objective below the full solve by {gap:.0e}" * (law == "freshness"))
        sizes, beside = f"{len(pages):,} pages", f"full solve, scaled up from {n:,} pages"
        note(f"price, {law}", ours.wall, "s", sizes, baseline=plain.wall * scale, beside=beside)
    full = some.fresh(exact)
    note("price, gap", max(gap, 0.0) / full, "of the objective", f"{n:,} pages", baseline=0.0, beside="full solve")
    _, ours = timed(lambda: allocate(pages.known(least=1 / (180 * DAY), most=1 / HOUR), budget))
    line("price, freshness within 1 h and 180 d", ours, plain, scale)
    with mock.patch.object(known_rates, "can_compile", return_value=False):
        _, ours = timed(lambda: allocate(pages.known(), budget))
    line("price, freshness, numpy alone", ours, plain, scale)


def beliefs(pages: Population) -> None:
    """Grid beliefs: compiled code and a sample against the plain search."""
    rates, n = half_octaves(), len(pages)
    weights = np.empty((n, len(rates)), np.float32)
    for start in range(0, n, PLAIN):
        block = slice(start, start + PLAIN)
        weights[block] = np.exp(-0.5 * ((np.log(rates) - np.log(pages.rate[block, None])) / 0.8) ** 2) + 1e-7
    demand = VisitDemand(ARCHIVE, GridBelief(rates, weights), pages.importance, np.ones(n), HOUR, 180 * DAY)
    some = demand.take(slice(0, PLAIN // 5))
    with mock.patch.object(due_times, "can_compile", return_value=False):
        _, plain = timed(lambda: allocate(some, BUDGET * len(some)), 1)
    found, ours = timed(lambda: allocate(demand, BUDGET * n), 1)
    off = float(demand.rates(found.price).sum()) / (BUDGET * n) - 1.0
    line(
        "price, archive over grid beliefs", ours, plain, n / len(some), f"the price spends the budget within {off:.0e}"
    )
    elapsed = np.full(n, 20 * DAY)
    _, plain = timed(lambda: some.worth(elapsed[: len(some)]), 1)
    _, ours = timed(lambda: best(demand.worth(elapsed), n // 100), 1)
    line("ranking, archive over grid beliefs", ours, plain, n / len(some))


def hosts(pages: Population) -> None:
    """Host prices against solving first and clipping then."""
    n, count = len(pages), int(pages.host.max()) + 1
    limit = np.exp(np.random.default_rng(1).normal(np.log(3.0 / DAY), 1.0, count))
    known, budget = pages.known(), BUDGET * n

    def clipped() -> FloatArray:
        free = allocate(known, budget).rate
        asked = np.bincount(pages.host, free, count)
        return np.asarray(free * np.minimum(1.0, limit / np.maximum(asked, 1e-300))[pages.host])

    cut, plain = timed(clipped)
    found, ours = timed(lambda: allocate_by_host(known, pages.host, limit, budget), 1)
    fresh = f"freshness {pages.fresh(found.rate):.4f}, clipped {pages.fresh(cut):.4f}"
    words = f"{found.saturated.mean():.0%} saturated; {fresh}"
    line(f"{n:,} pages on {count:,} hosts, against clipping", ours, plain, note=words)
    sizes, beside = f"{n:,} pages, {count:,} hosts", "solve, then clip"
    note("hosts", ours.wall, "s", sizes, baseline=plain.wall, beside=beside)
    note("hosts, freshness", pages.fresh(found.rate), "", sizes, baseline=pages.fresh(cut), beside=beside)


def rankings(pages: Population) -> None:
    """Index and best hundredth, against numpy and argpartition."""
    n = len(pages)
    elapsed, one = np.random.default_rng(2).exponential(20 * DAY, n), np.ones(n)
    demand = VisitDemand(FreshnessObjective(), PointBelief(pages.rate), pages.importance, one, HOUR, 180 * DAY)
    index(FreshnessObjective(), one[:2], one[:2], one[:2], one[:2])
    _, plain = timed(lambda: np.argpartition(-demand.worth(elapsed), n // 100)[: n // 100], 1)
    _, ours = timed(lambda: best(index(FreshnessObjective(), pages.rate, pages.importance, one, elapsed), n // 100))
    line("ranking, known rates", ours, plain)
    note("ranking", ours.wall, "s", f"{n:,} pages", baseline=plain.wall, beside="numpy's argpartition")


def frontier(pages: Population) -> None:
    """Cycles of next, done and offer, a thousand at a time, against Python's heaps and one by one."""
    cycle(pages.first(3_000), 1, 100, 1_000)
    count = 500_000
    few = pages.first(10 * PLAIN // 5)
    _, plain, _ = cycle(few, 10**9, 1, count // 10)
    _, ours, memory = cycle(pages, 1, 1_000, count)
    rate = f"{count / ours.cpu:,.0f} a second; Python's heaps {count / 10 / plain.cpu:,.0f}; {memory:.0f} bytes a page"
    line(f"frontier, {count:,} decisions of {len(pages):,} pages", ours, plain, 10.0, rate)
    sizes = f"{len(pages):,} pages, {int(pages.host.max()) + 1:,} hosts"
    beside = f"Python's heaps at {len(few):,} pages"
    note("frontier", count / ours.wall, "decisions/s", sizes, baseline=count / 10 / plain.wall, beside=beside)
    note("frontier, memory", memory, "bytes a page", sizes)
    _, single, _ = cycle(few, 1, 1, count // 10)
    line(f"frontier one by one, {len(few):,} pages", single, plain)


def cycle(pages: Population, large: int, batch: int, count: int) -> tuple[Frontier, Timed, float]:
    """Fetch ``count`` pages; each is offered again a period later."""
    n, period = len(pages), 30 * DAY
    queue = Frontier(Politeness(PolitenessRules(shortest=0.01, longest=1.0)), large=large)
    queue.offer(np.arange(n), pages.host, np.random.default_rng(3).uniform(0, period, n))
    done, now, step = 0, 0.0, 1.2 * period * batch / n
    cpu, wall = time.process_time(), time.perf_counter()
    while done < count:
        page, host, _ = queue.next_many(now, batch)
        if len(page):
            queue.done_many(page, host, now, np.full(len(page), 0.1))
            queue.offer(page, host, np.asarray(now + period + page % 997, np.float64))
        done += len(page)
        now += step
    spent = Timed(time.process_time() - cpu, time.perf_counter() - wall)
    return queue, spent, getattr(queue._queues, "nbytes", 0) / n  # noqa: SLF001 - memory is not for users


PARTS = {"prices": prices, "beliefs": beliefs, "hosts": hosts, "rankings": rankings, "frontier": frontier}


def main() -> None:
    """Print a line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=200_000)
    parser.add_argument("--full", action="store_true", help="10 million pages")
    parser.add_argument("--only", default="", help=", ".join(PARTS))
    options = options_of(parser)
    pages = Population.of(10_000_000 if options.full else options.pages)
    print(f"{f'{len(pages):,} pages':<42}{'seconds cpu (wall)':>20}{'plain way':>22}{'faster':>9}")
    for part in filter(None, options.only.split(",")) if options.only else PARTS:
        PARTS[part](Population.of(min(len(pages), 1_000_000)) if part == "hosts" else pages)


if __name__ == "__main__":
    main()
