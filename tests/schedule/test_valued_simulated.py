"""The valued policy against what could be reached at best, on populations of which everything is known."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.estimate.point_evidence import PointBelief
from recrawl.model import Pages, Verdict, Visits
from recrawl.schedule.objectives import FreshnessObjective
from recrawl.schedule.policies.fixed_interval import Uniform
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.schedule.price.budget_price import allocate
from recrawl.schedule.price.due_times import VisitDemand
from recrawl.schedule.price.known_rates import LAWS, KnownRates
from recrawl.simulate.benchmark_field import BenchmarkField
from recrawl.simulate.policy_benchmark import BenchmarkRules, compete
from recrawl.simulate.sampling import PageTruth
from recrawl.simulate.virtual_web import EventTimes
from recrawl.time import DAY

DAYS = 365


def population(pages, rng, *, per_host=20):
    """Log-normal rates of median 1/30 d, half of the spread between hosts, and log-normal weights (algorithms §3)."""
    host = np.arange(pages) // per_host
    spread = 1.4 * rng.standard_normal(host[-1] + 1)[host] + 1.4 * rng.standard_normal(pages)
    return host, np.exp(spread) / (30 * DAY), np.exp(rng.standard_normal(pages))


def best_freshness(rate, weight, budget):
    """The relaxed bound: visits may be divided at will."""
    law = LAWS["freshness"]
    return 1.0 - law.reached(rate, weight, allocate(KnownRates(law, rate, weight, np.ones(len(rate))), budget).rate)


def field_of_pages(host, rate, weight, rng):
    row = np.repeat(np.arange(len(rate)), rng.poisson(rate * DAYS * DAY))
    changes = EventTimes.of(row, rng.random(len(row)) * DAYS * DAY, len(rate))
    truth = PageTruth(np.full(len(rate), -DAY), np.full(len(rate), np.inf), changes, 0.0, DAYS * DAY)
    return BenchmarkField.of("log-normal", truth, host=host, cluster=host, importance=weight)


@pytest.mark.parametrize(("pages", "seed"), [(100, 1), (100, 2), (300, 3)])
def test_with_true_rates_the_index_reaches_the_bound(pages, seed):
    """Expected freshness, no luck in it: the best by w·U/c at each tick, against the relaxed bound."""
    _, rate, weight = population(pages, np.random.default_rng(seed))
    per_day = 0.1 * pages
    tick = DAY / per_day
    demand = VisitDemand(FreshnessObjective(), PointBelief(rate), weight, np.ones(pages), tick, np.inf)
    elapsed, fresh, ticks = np.zeros(pages), 0.0, int(600 * per_day)
    for number in range(ticks):
        elapsed[np.argmax(demand.worth(elapsed))] = 0.0
        if number >= ticks // 2:
            fresh += float(weight @ (np.exp(-rate * elapsed) * -np.expm1(-rate * tick) / (rate * tick)))
        elapsed += tick
    reached = fresh / (ticks - ticks // 2) / weight.sum()
    assert reached >= 0.995 * best_freshness(rate, weight, per_day / DAY)


def test_learned_rates_close_four_fifths_of_the_gap_to_the_bound_within_the_budget():
    rng = np.random.default_rng(5)
    host, rate, weight = population(1_200, rng)
    field = field_of_pages(host, rate, weight, rng)
    rules = BenchmarkRules(budget=0.03, scored_from=0.5, fit_every=60 * DAY)
    bound = best_freshness(rate, weight, 0.03 * len(rate) / DAY)
    worst, ours = (
        compete(field, policy, rules, np.random.default_rng(1)).tally.ratio("freshness")
        for policy in (Uniform(), ValuedPolicy())
    )
    assert ours - worst >= 0.8 * (bound - worst)


def test_due_times_alone_keep_about_to_the_budget():
    """Pages visited whenever they are due, fitted monthly: over half a year the visits are those paid for."""
    rng = np.random.default_rng(6)
    host, rate, weight = population(300, rng)
    field = field_of_pages(host, rate, weight, rng)
    policy = ValuedPolicy()
    made = live_by_due_times(policy, field, budget=0.05)
    assert made == pytest.approx(0.05, rel=0.25)


def live_by_due_times(policy, field, *, budget):
    """Visits a page and day in the second half of the year, when every page is visited on the day it is due."""
    pages = len(field)
    ids, seen, made = np.arange(pages), np.zeros(pages, np.int64), 0
    policy.add(Pages.of(ids, host=field.host, importance=field.importance, discovered=0.0))
    policy.tell(Visits.of(ids, np.zeros(pages)))
    for day in range(1, DAYS):
        now = day * DAY
        if day % 30 == 1:
            policy.fit(budget * pages / DAY, now)
        rows = np.flatnonzero(policy.urgency(ids, now) >= 1)
        version = field.truth.changes.until(rows, np.full(len(rows), now))
        verdict = np.where(version > seen[rows], Verdict.CHANGED, Verdict.UNCHANGED)
        policy.tell(Visits.of(rows, np.full(len(rows), now), verdict=verdict))
        seen[rows] = version
        made += len(rows) * (day >= DAYS // 2)
    return made / (DAYS - DAYS // 2) / pages
