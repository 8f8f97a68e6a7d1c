"""How fast policies can be simulated: contests of all pages at once, beside a replay of one event at a time.

    uv run python benchmarks/simulate.py                          20,000 pages, 100 days, a policy of each kind
    uv run python benchmarks/simulate.py --pages 100000 --days 20 --policy uniform --policy hacs

Two budgets: nine in ten pages visited at every tick, where what counts is visits per second (made, evaluated by the
truth, scored and told to the policy; first visits count too), and one in thirty, where nearly all time goes into asking
how urgent each page is: urgencies a second. The replay runs the same policy on a small web of the same kind through
scheduler and frontier, which also keep hosts' pauses and single due times: the baseline of the ratio. Seconds are CPU
seconds; what numba has to load or compile is done before they count.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from figures import note, options_of

from recrawl.schedule.frontier.host_frontier import Frontier
from recrawl.schedule.frontier.revisit_scheduler import RevisitScheduler
from recrawl.schedule.politeness.host_politeness import Politeness, PolitenessRules
from recrawl.simulate.benchmark_field import BenchmarkField
from recrawl.simulate.policy_benchmark import BenchmarkRules, compete, entry
from recrawl.simulate.sampling import PageTruth
from recrawl.simulate.sites import synthetic_web
from recrawl.simulate.virtual_web import PoissonProcess
from recrawl.time import DAY
from recrawl_testweb.policy_replay import Replay

MANY, FEW = 0.9, 1 / 30
REPLAYED_DAYS = 20
KINDS = ("uniform", "proportional", "hacs", "nutch", "window", "historic-classes", "aduana", "valued-archive")


def main() -> None:
    """Print one line a policy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--days", type=int, default=100)
    parser.add_argument("--policy", action="append", help="name; may be repeated")
    parser.add_argument(
        "--replayed", type=int, default=100, help="pages of the web that is replayed one event at a time"
    )
    options = options_of(parser)
    field = population(options.pages, options.days)
    print(f"{options.pages:,} pages, {options.days} days; replay: {options.replayed:,} pages")
    print(f"{'policy':<20}{'visits/s':>14}{'urgencies/s':>14}{'replay visits/s':>17}{'ratio':>8}")
    for name in options.policy or KINDS:
        _contest(population(200, 20), name, MANY)
        visits = _contest(field, name, MANY)[0]
        urgencies = _contest(field, name, FEW)[1]
        replayed = _replay(name, options.replayed, min(options.days, REPLAYED_DAYS))
        print(f"{name:<20}{visits:>14,.0f}{urgencies:>14,.0f}{replayed:>17,.0f}{visits / replayed:>8,.0f}", flush=True)
        sizes = f"{options.pages:,} pages, {options.days} days"
        note(name, visits, "visits/s", sizes, baseline=replayed, beside="replay of one event at a time")


def population(pages: int, days: int) -> BenchmarkField:
    """Pages on hosts of a hundred, there from the start; log-normal rates around one change in 30 days."""
    rng = np.random.default_rng(1)
    rate = np.exp(rng.normal(np.log(1 / 30), 2.0, pages)) / DAY
    changes = PoissonProcess().times(np.minimum(rate, 5 / DAY), 0.0, days * DAY, rng)
    host = np.arange(pages) // 100
    truth = PageTruth(np.zeros(pages), np.full(pages, np.inf), changes, 0.0, days * DAY)
    return BenchmarkField.of("log-normal", truth, host=host, cluster=host)


def _contest(field: BenchmarkField, name: str, budget: float) -> tuple[float, float]:
    """Visits and urgencies a second."""
    policy = entry(name, field)
    began = time.process_time()
    result = compete(field, policy, BenchmarkRules(budget), np.random.default_rng(1))
    seconds = time.process_time() - began
    return result.made / seconds, result.evaluations / seconds


def _replay(name: str, pages: int, days: int) -> float:
    """Visits a second, one event at a time."""
    web = synthetic_web(pages=pages, start=1.79e9, days=days, seed=1)
    field = BenchmarkField.of("web", PageTruth.of_web(web), host=web.host)
    scheduler = RevisitScheduler(entry(name, field), budget=pages * MANY / DAY)
    frontier = Frontier(Politeness(PolitenessRules(shortest=1.0, longest=1.0)))
    began = time.process_time()
    visits = Replay(web, scheduler, frontier).run(web.start, web.end)
    return len(visits) / (time.process_time() - began)


if __name__ == "__main__":
    main()
