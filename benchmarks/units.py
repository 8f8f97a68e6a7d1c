"""One price for several units, beside one process that knows all pages and beside a fixed share of the budget per unit.

    uv run python benchmarks/units.py                         8,000 pages, 4 units, 200 days
    uv run python benchmarks/units.py --pages 40000 --units 8

The units are unequal: importance and change rates of their pages differ. Each policy has the same visits a day in all.
Printed are the shares of current copies, weighted by importance, in points, and their differences from one process.
"""

from __future__ import annotations

import argparse

import numpy as np
from figures import note, options_of

from recrawl.model import IntArray
from recrawl.schedule.policies.partitioned import PartitionedPolicy
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.schedule.policy import Policy
from recrawl.simulate.benchmark_field import BenchmarkField
from recrawl.simulate.policy_benchmark import BenchmarkRules, compete
from recrawl.simulate.sampling import PageTruth
from recrawl.simulate.virtual_web import PoissonProcess
from recrawl.time import DAY

HOSTS_PER_UNIT = 20
BUDGET = 0.05
"""Visits a page a day."""


def main() -> None:
    """Print one line for each way to share the budget."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=8_000)
    parser.add_argument("--units", type=int, default=4)
    parser.add_argument("--days", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=2)
    options = options_of(parser)
    rows = [shares(options.pages, options.units, options.days, seed) for seed in range(options.seeds)]
    one, merged, fixed = np.mean(rows, axis=0)
    print(f"{options.pages:,} pages in {options.units} units, {options.days} days, {BUDGET} visits a page a day")
    print(f"{'one process':<28}{100 * one:8.2f}")
    print(f"{'units, one price':<28}{100 * merged:8.2f}{100 * (merged - one):+8.2f} points")
    print(f"{'units, fixed shares':<28}{100 * fixed:8.2f}{100 * (fixed - one):+8.2f} points")
    sizes = f"{options.pages:,} pages, {options.units} units, {options.days} days"
    note(
        "units-price",
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


if __name__ == "__main__":
    main()
