"""How near the default policy comes to the best that visits could do, on pages of which everything is known.

    uv run python benchmarks/optimum.py                       1,200 pages, a minute or two
    uv run python benchmarks/optimum.py --pages 10000 --seeds 1 2

The population is that of algorithms §3: log-normal rates around one change in 30 days, half of their variance between
hosts of 20 pages, log-normal importance; a year, scored in its second half. The bound lets visits be divided at will.
Printed are the freshness of even visits, of the default policy, which learns the rates from its visits alone, and of
visits by the same value with the true rates; and what share of the way from even visits to the bound each has gone.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from figures import note, options_of

from recrawl.model import FloatArray, IntArray, Pages, Visits
from recrawl.schedule.learning.observation_columns import LastVisits
from recrawl.schedule.objectives import FreshnessObjective
from recrawl.schedule.policies.fixed_interval import Uniform
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.schedule.policy import Policy
from recrawl.schedule.price.budget_price import allocate
from recrawl.schedule.price.known_rates import LAWS, KnownRates
from recrawl.simulate.benchmark_field import BenchmarkField
from recrawl.simulate.policy_benchmark import BenchmarkRules, compete
from recrawl.simulate.sampling import PageTruth
from recrawl.simulate.virtual_web import EventTimes
from recrawl.time import DAY
from recrawl_lab.trials.ranking import index

DAYS = 365
FRESH = LAWS["freshness"]


def main() -> None:
    """Print a row for each population and budget."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=1_200)
    parser.add_argument("--seeds", type=int, nargs="+", default=[5])
    parser.add_argument("--budgets", type=float, nargs="+", default=[0.03], help="visits a page and day")
    asked = options_of(parser)
    print("seed  budget    even  learned   truth   bound   learned of gap   truth / bound")
    for budget in asked.budgets:
        found = []
        for seed in asked.seeds:
            field, rate = population(asked.pages, np.random.default_rng(seed))
            found.append(reached(field, rate, budget))
            print(f"{seed:4}  {budget:6}  {row(found[-1])}", flush=True)
        means = Reached(*np.mean(found, axis=0))
        sizes = f"{asked.pages:,} pages, seeds {', '.join(map(str, asked.seeds))}, {budget:g} visits a page a day"
        note(f"true rates, {budget:g}", means.truth / means.bound, "of the bound", sizes, baseline=1.0, beside="bound")
        note(f"learned, {budget:g}", means.share, "of the gap", sizes, beside="even visits")


class Reached(NamedTuple):
    """Freshness of each, and of the bound."""

    even: float
    learned: float
    truth: float
    bound: float

    @property
    def share(self) -> float:
        """How much of the way from even visits to the bound learned rates go."""
        return (self.learned - self.even) / (self.bound - self.even)


def row(found: Reached) -> str:
    """A line of the table."""
    even, learned, truth, bound = found
    return f"{even:.4f}   {learned:.4f}  {truth:.4f}  {bound:.4f}   {found.share:14.1%}   {truth / bound:13.4f}"


def reached(field: BenchmarkField, rate: FloatArray, budget: float) -> Reached:
    """What each reaches on one population."""
    law = KnownRates(FRESH, rate, field.importance, np.ones(len(rate)))
    bound = 1.0 - FRESH.reached(rate, field.importance, allocate(law, budget * len(rate) / DAY).rate)
    rules = BenchmarkRules(budget=budget, scored_from=0.5, fit_every=60 * DAY)
    even, learned, truth = (
        compete(field, policy, rules, np.random.default_rng(1)).tally.ratio("freshness") for policy in predictors(rate)
    )
    return Reached(even, learned, truth, bound)


def predictors(rate: FloatArray) -> Sequence[Policy]:
    """Even visits, the default policy, and one that knows the truth."""
    return Uniform(), ValuedPolicy(), TrueIndex(rate)


class TrueIndex:
    """Visits the pages whose freshness is worth most, by their true rates."""

    name, price = "true index", None

    def __init__(self, rate: FloatArray) -> None:
        self._rate = rate
        self._last_visits = LastVisits()

    def __len__(self) -> int:
        return len(self._last_visits)

    def add(self, pages: Pages) -> None:
        """Learn of pages."""
        self._last_visits.add(pages)

    def tell(self, visits: Visits) -> None:
        """Note when pages were seen."""
        self._last_visits.tell(visits)

    def fit(self, budget: float, now: float) -> None:
        """There is nothing to fit."""

    def due(self, page: IntArray, now: float) -> FloatArray:  # noqa: ARG002 - contests ask for urgencies
        """At once."""
        return self._last_visits.due_after(page, np.zeros(len(page)))

    def urgency(self, page: IntArray, now: float) -> FloatArray:
        """The value of a visit."""
        rows = self._last_visits.rows(page)
        weight, one = self._last_visits.pages.importance[rows], np.ones(len(rows))
        return index(FreshnessObjective(), self._rate[page], weight, one, now - self._last_visits.last_observed[rows])


def population(pages: int, rng: np.random.Generator) -> tuple[BenchmarkField, FloatArray]:
    """A field, and the true rates of its pages, changes per second."""
    host = np.arange(pages) // 20
    spread = 1.4 * rng.standard_normal(host[-1] + 1)[host] + 1.4 * rng.standard_normal(pages)
    rate, weight = np.exp(spread) / (30 * DAY), np.exp(rng.standard_normal(pages))
    row_of = np.repeat(np.arange(pages), rng.poisson(rate * DAYS * DAY))
    changes = EventTimes.of(row_of, rng.random(len(row_of)) * DAYS * DAY, pages)
    truth = PageTruth(np.full(pages, -DAY), np.full(pages, np.inf), changes, 0.0, DAYS * DAY)
    return BenchmarkField.of("log-normal", truth, host=host, cluster=host, importance=weight), rate


if __name__ == "__main__":
    main()
