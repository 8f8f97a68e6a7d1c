"""Limits of hosts inside the valued policy: nobody is asked for more than it takes, and nothing is left unspent."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.model import Pages, Verdict, Visits
from recrawl.schedule.objectives import ARCHIVE, FreshnessObjective
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.schedule.price.budget_price import spend
from recrawl.time import DAY

PAGES = 60
SLOW = 7
"""The host that is asked for more than it takes; the others have other numbers."""
NOW = 90 * DAY
BUDGET = 0.2 * PAGES / DAY


def taught(seed=3, **options):
    """Pages of three hosts, the slow one with half of them, seen every third day."""
    rng = np.random.default_rng(seed)
    host = np.where(np.arange(PAGES) % 2 == 0, SLOW, 2 + np.arange(PAGES) % 3)
    pages = Pages.of(np.arange(PAGES), host=host, importance=np.exp(rng.normal(0, 0.5, PAGES)), discovered=0.0)
    policy = ValuedPolicy(options.pop("objective", FreshnessObjective()), factors=(), **options)
    policy.add(pages)
    days = np.exp(rng.normal(2.0, 1.0, PAGES))
    for day in np.arange(0.0, NOW / DAY, 3.0):
        changed = rng.random(PAGES) < -np.expm1(-3.0 / days)
        verdict = np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED) if day else Verdict.UNKNOWN
        policy.tell(Visits.of(pages.id, np.full(PAGES, day * DAY), verdict=verdict))
    return policy, pages


def demand_of(policy, pages):
    """What the policy asks for, taken from what it believes."""
    from recrawl.schedule.price.due_times import VisitDemand

    belief = policy.belief(pages.id, NOW)
    return VisitDemand(FreshnessObjective(), belief, pages.importance, pages.cost, 3600.0, 180 * DAY)


def freshness(demand, rate):
    return float((demand.importance * demand.belief.unchanged_time(1 / rate) * rate).sum())


def limits(slow):
    return lambda host: np.where(host == SLOW, slow, np.inf)


def test_what_a_slow_host_cannot_take_is_spent_elsewhere():
    policy, pages = taught()
    policy.fit(BUDGET, NOW)
    free = policy.allocation.rate
    asked = free[pages.host == SLOW].sum()
    polite, _ = taught(host_limits=limits(asked / 3))
    polite.fit(BUDGET, NOW)
    rate = polite.allocation.rate
    assert rate[pages.host == SLOW].sum() == pytest.approx(asked / 3, rel=1e-6)
    assert rate.sum() == pytest.approx(BUDGET, rel=1e-3)
    clipped = np.where(pages.host == SLOW, free / 3, free)
    demand = demand_of(policy, pages)
    assert freshness(demand, rate) > freshness(demand, clipped)


def test_prices_are_marginal_values_on_every_host():
    polite, pages = taught(host_limits=limits(0.02 * PAGES / DAY))
    polite.fit(BUDGET, NOW)
    demand, rate = demand_of(polite, pages), polite.allocation.rate
    price = polite.prices.of(pages.host)
    assert (price[pages.host == SLOW] > polite.price).all()
    assert (price[pages.host != SLOW] == polite.price).all()
    inside = (rate > 1 / (180 * DAY) * 1.001) & (rate < 1 / 3600 * 0.999)
    assert inside.sum() > PAGES / 2
    np.testing.assert_allclose(demand.worth(1 / rate)[inside], price[inside], rtol=1e-3)


def test_due_times_and_urgency_follow_the_price_of_the_host():
    polite, pages = taught(host_limits=limits(0.02 * PAGES / DAY), objective=ARCHIVE)
    plain, _ = taught(objective=ARCHIVE)
    for policy in (polite, plain):
        policy.fit(BUDGET, NOW)
    slow = pages.host == SLOW
    assert (polite.due(pages.id, NOW)[slow] >= plain.due(pages.id, NOW)[slow]).all()
    assert (polite.due(pages.id, NOW)[~slow] <= plain.due(pages.id, NOW)[~slow]).all()
    due = polite.due(pages.id, NOW)
    for at in (NOW, NOW + 10 * DAY, NOW + 40 * DAY):
        clear = np.abs(due - at) > 1.0
        np.testing.assert_array_equal((polite.urgency(pages.id, at) >= 1)[clear], (due <= at)[clear])


def test_limits_that_do_not_bind_change_nothing():
    plain, pages = taught()
    polite, _ = taught(host_limits=limits(1.0))
    for policy in (plain, polite):
        policy.fit(BUDGET, NOW)
    np.testing.assert_array_equal(plain.due(pages.id, NOW), polite.due(pages.id, NOW))
    assert len(polite.prices.host) == 0


def test_a_host_that_takes_nothing_waits_for_the_floor_and_the_allocation_is_not_feasible():
    polite, pages = taught(host_limits=limits(0.0))
    polite.fit(BUDGET, NOW)
    assert not polite.allocation.feasible
    assert polite.allocation.rate[pages.host == SLOW].sum() == 0
    last = NOW - 3 * DAY
    np.testing.assert_allclose(polite.due(pages.id, NOW)[pages.host == SLOW], last + 180 * DAY)


def test_a_rest_longer_than_the_longest_interval_leaves_the_budget_to_the_others():
    policy, pages = taught(host_limits=limits(1 / (1_000 * DAY)))
    policy.fit(BUDGET, NOW)
    rate, slow = policy.allocation.rate, pages.host == SLOW
    assert rate[slow].sum() <= 1 / (1_000 * DAY) * (1 + 1e-9)
    assert rate[~slow].sum() == pytest.approx(BUDGET - rate[slow].sum(), rel=1e-3)
    assert not policy.allocation.feasible


def test_pages_of_hosts_found_later_have_the_price_of_all():
    policy, pages = taught(host_limits=limits(0.02 * PAGES / DAY))
    policy.fit(BUDGET, NOW)
    assert policy.prices.of(np.array([999])).tolist() == [policy.price]
    found, prices = spend(demand_of(policy, pages), BUDGET, pages.host, None)
    assert prices.of(np.array([SLOW])).tolist() == [found.price]
