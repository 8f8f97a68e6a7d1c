"""HACS and what it is compared with, policies in proportion to rates, and the list of all policies."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import ConfigError
from recrawl.estimate.estimators import PointEstimator
from recrawl.estimate.mle import update_model
from recrawl.estimate.point_estimators import bias_reduced_rates
from recrawl.model import Histories, Pages, Verdict, Visits
from recrawl.schedule.learning.replayable_chance import uniform
from recrawl.schedule.policies.aduana import Aduana
from recrawl.schedule.policies.hacs_policy import (
    RandomOrder,
    change_probability,
    hacs,
    hacs_since_observation,
    hacs_threshold,
    last_observation,
    nth_largest,
)
from recrawl.schedule.policies.policy_registry import EXPLORING, ORACLES, POLICIES, VALUED
from recrawl.schedule.policies.proportional import Proportional, intervals
from recrawl.time import DAY, HOUR, WEEK

START = 1_750_000_000.0


def some_visits(n=30, per_page=12, seed=3):
    rng = np.random.default_rng(seed)
    time = START + np.cumsum(rng.exponential(5 * DAY, (n, per_page)), axis=1)
    changed = rng.random((n, per_page)) < np.linspace(0, 0.9, n)[:, None]
    verdict = np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED)
    return Visits.of(np.repeat(np.arange(n), per_page), time.ravel(), verdict=verdict.ravel())


def taught(policy, visits, *, budget=1.0 / DAY, fit_at=None):
    policy.add(Pages.of(np.unique(visits.page)))
    policy.tell(visits)
    policy.fit(budget, visits.time.max() if fit_at is None else fit_at)
    return policy


@pytest.mark.parametrize("window", [np.inf, 40 * DAY, 8 * DAY])
def test_the_score_is_the_probability_of_the_paper(window):
    visits = some_visits()
    now = float(visits.time.max())
    policy = taught(hacs(window=window, unknown_rate=0.0), visits)
    expected = change_probability(Histories.from_visits(visits), now, window=window)
    np.testing.assert_allclose(-np.expm1(-policy.scores(np.arange(30), now)), expected, rtol=1e-9)


@pytest.mark.parametrize("theta", [0.0, 0.3, 0.7, 0.99])
def test_pages_are_due_when_the_probability_reaches_theta(theta):
    visits = some_visits()
    policy = taught(hacs(theta=theta, unknown_rate=0.0, longest=np.inf), visits)
    histories = Histories.from_visits(visits)
    due = policy.due(np.arange(30), START)
    rested = histories.last_visit + WEEK
    for page in np.flatnonzero(np.isfinite(due) & (due > rested + 1)):
        for shift, side in ((-HOUR, np.less), (HOUR, np.greater_equal)):
            at = float(due[page] + shift)
            model = taught(hacs(theta=theta, unknown_rate=0.0), visits, fit_at=START + 1e9)
            assert side(-np.expm1(-model.scores(np.array([page]), at)[0]), theta)
    assert (due >= rested - 1e-3).all()
    assert np.isinf(due[histories.changes() == 0]).all() == (theta > 0)
    for at in (START + 80 * DAY, START + 500 * DAY):
        clear = np.abs(due - at) > 1
        np.testing.assert_array_equal((policy.urgency(np.arange(30), at) >= 1)[clear], (due <= at)[clear])


def test_the_best_k_are_due_and_most_urgent():
    visits = some_visits()
    now = float(visits.time.max()) + 3 * WEEK
    policy = taught(hacs(), visits, budget=5 / WEEK, fit_at=now)
    page = np.arange(30)
    best = np.argsort(-policy.scores(page, now), kind="stable")[:5]
    due = policy.due(page, now) <= now
    assert set(np.flatnonzero(due).tolist()) == set(best.tolist())
    urgency = policy.urgency(page, now)
    assert urgency[best].min() >= 1 > np.delete(urgency, best).max()


def test_a_budget_for_everybody_is_spent_on_half_of_the_pages_in_shorter_rounds():
    visits = some_visits()
    now = float(visits.time.max()) + 3 * WEEK
    policy = taught(hacs(), visits, budget=2 * 30 / WEEK, fit_at=now)
    pages = np.arange(30)
    assert (policy.urgency(pages, now) >= 1).sum() == 15
    last = Histories.from_visits(visits).last_visit
    soonest = (policy.due(pages, now) - last).min()
    assert soonest == pytest.approx(WEEK / 4)


def test_even_a_tiny_budget_pays_for_the_best_page():
    policy = taught(hacs(), some_visits(), budget=0.1 / WEEK)
    assert np.isfinite(policy.threshold)
    policy.fit(0.0, START + 1e8)
    assert policy.threshold == np.inf


def test_counted_from_the_last_look_pages_are_due_at_one_probability():
    visits = some_visits()
    h = Histories.from_visits(visits)
    policy = taught(hacs_since_observation(), visits)
    wait = policy.due(np.arange(30), START) - h.last_visit
    free = wait < 180 * DAY * 0.999
    p = -np.expm1(-update_model(h).rate * wait)[free]
    assert free.sum() > 10
    np.testing.assert_allclose(p, p[0], rtol=1e-6)


def test_the_last_update_moves_with_every_look_the_rate_at_a_fit():
    visits = some_visits()
    policy = taught(hacs(), visits)
    now = float(visits.time.max())
    later = Visits.of([29], [now + 10 * DAY], verdict=Verdict.CHANGED)
    before = policy.scores(np.array([29]), now + 30 * DAY)[0]
    policy.tell(later)
    told = policy.scores(np.array([29]), now + 30 * DAY)[0]
    assert told < before
    last = float(visits.time[visits.page == 29].max())
    middle = (last + now + 10 * DAY) / 2
    rate = before / (now + 37 * DAY - float(_last_update(visits, 29)))
    assert told == pytest.approx(rate * (now + 37 * DAY - middle), rel=1e-6)


def _last_update(visits, page):
    mine = visits.take(visits.page == page)
    found = int(np.flatnonzero(mine.verdict == Verdict.CHANGED)[-1])
    return (mine.time[found] + mine.time[found - 1]) / 2


def test_a_page_never_seen_to_change_waits_for_the_floor():
    visits = Visits.of([1, 1, 2, 2, 3], START + np.array([0.0, DAY, 0.0, DAY, DAY]), verdict=[0, 1, 0, 2, 0])
    policy = taught(hacs_threshold(), visits)
    due = policy.due(np.array([1, 2, 3]), START) - START - DAY
    assert due[0] == pytest.approx(180 * DAY)
    assert due[1] == pytest.approx(WEEK)
    assert WEEK <= due[2] < 180 * DAY  # the pooled rate: one change in two looks


def test_last_obs_puts_the_longest_unchanged_first():
    visits = some_visits()
    policy = taught(last_observation(), visits, budget=3 / WEEK)
    now = float(visits.time.max()) + 30 * DAY
    h = Histories.from_visits(visits)
    order = np.argsort(policy.urgency(np.arange(30), now))
    update = np.where(np.isnan(h.last_change), h.first_visit, h.last_change)
    assert order[-1] == np.argmin(update)
    np.testing.assert_allclose(policy.scores(np.array([0]), now), now - h.first_visit[0])


@given(st.lists(st.floats(0, 10), max_size=12), st.floats(0, 15))
def test_nth_largest(values, n):
    found = nth_largest(np.array(values), n)
    if int(n) >= len(values):
        assert found == 0
    elif int(n) == 0:
        assert found == np.inf
    else:
        assert found == sorted(values, reverse=True)[int(n) - 1]


@pytest.mark.parametrize(
    "make",
    [
        lambda: hacs(theta=1.0),
        lambda: hacs(theta=-0.1),
        lambda: hacs(window=0.0),
        lambda: hacs(horizon=np.nan),
        lambda: Aduana(scale=0.0),
    ],
)
def test_impossible_settings_are_refused(make):
    with pytest.raises(ConfigError):
        make()


def test_chance_is_even_and_differs_by_seed_and_by_each_column():
    rows = np.arange(20_000)
    time = START + rows % 7
    one = uniform(0, rows, time)
    assert 0 < one.min() < one.max() < 1
    assert (np.abs(np.histogram(one, 10, (0, 1))[0] - 2000) < 250).all()
    for other in (uniform(1, rows, time), uniform(0, rows, time + 1), uniform(0, rows + 1, time)):
        assert abs(np.corrcoef(one, other)[0, 1]) < 0.03


def test_random_spends_the_budget_on_average_and_forgets():
    n = 20_000
    pages = Pages.of(np.arange(n))
    policy = RandomOrder(seed=5)
    policy.add(pages)
    policy.tell(Visits.of(pages.id, np.full(n, START)))
    policy.fit(n / (10 * DAY), START)
    wait = policy.due(pages.id, START) - START
    assert wait.mean() == pytest.approx(10 * DAY, rel=0.03)
    assert wait.std() == pytest.approx(10 * DAY, rel=0.03)
    policy.tell(Visits.of(pages.id, np.full(n, START + DAY), verdict=Verdict.UNCHANGED))
    again = policy.due(pages.id, START) - START - DAY
    assert abs(np.corrcoef(wait, again)[0, 1]) < 0.03


def test_aduana_counts_the_first_fetch_as_a_change():
    visits = Visits.of([1, 1, 1, 2, 2, 3], START + np.array([0, 4, 8, 0, 8, 8]) * DAY, verdict=[0, 2, 1, 0, 1, 0])
    page = np.array([1, 2, 3])
    unscaled = taught(Aduana(scale=1.0), visits)
    assert ((unscaled.due(page, START) - START) / DAY - 8).tolist() == pytest.approx([4.0, 8.0, 10 / DAY], rel=1e-6)
    policy = taught(Aduana(), visits, budget=1 / DAY)
    assert ((policy.due(page, START) - START) / DAY - 8).tolist() == pytest.approx([1.5, 3.0, 10 / DAY], rel=1e-6)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=20), st.floats(1e-3, 1e3), st.floats(0.5, 3.0))
def test_proportional_spends_the_budget_within_the_bounds(rates, budget, cost):
    rate, costs = np.array(rates), np.full(len(rates), cost)
    found = intervals(rate, costs, budget, 0.01, 50.0)
    assert ((found >= 0.01 * (1 - 1e-9)) & (found <= 50 * (1 + 1e-9))).all()
    spent = float((costs / found).sum())
    free = (found > 0.01 * (1 + 1e-9)) & (found < 50 * (1 - 1e-9))
    if free.any():
        assert spent == pytest.approx(budget, rel=1e-6)
        share = found[free] * rate[free]
        np.testing.assert_allclose(share, share[0], rtol=1e-9)


def test_proportional_takes_any_estimator():
    visits = some_visits()
    policy = taught(Proportional(estimator=PointEstimator("eq-4", bias_reduced_rates)), visits)
    h = Histories.from_visits(visits)
    wait = policy.due(np.arange(30), START) - h.last_visit
    free = (wait > HOUR * 1.001) & (wait < 180 * DAY * 0.999)
    product = (wait * bias_reduced_rates(h))[free]
    assert free.sum() > 10
    np.testing.assert_allclose(product, product[0], rtol=1e-6)


def test_every_policy_has_the_name_it_is_listed_by():
    for name, make in (POLICIES | EXPLORING).items():
        assert make().name == name
    assert {name: make(lambda page: page * 0.0).name for name, make in ORACLES.items()} == {"gold": "gold"}
    assert not POLICIES.keys() & (ORACLES.keys() | EXPLORING.keys())


def test_every_policy_is_documented():
    page = Path(__file__).parents[2] / "docs" / "explanation" / "policies.md"
    named = set(re.findall(r"`([\w-]+)`", page.read_text(encoding="utf-8")))
    assert (POLICIES.keys() | ORACLES.keys() | EXPLORING.keys()) - VALUED.keys() <= named
