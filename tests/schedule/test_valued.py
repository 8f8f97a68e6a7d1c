"""The valued policy: what it believes, whom it prefers, what it does at the edges."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from recrawl.model import GammaBelief, Histories, Pages, Verdict, Visits
from recrawl.schedule.learning.observation_columns import GrowingColumns, LastVisits
from recrawl.schedule.objectives import CapturedChanges, FreshnessObjective
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.time import DAY, HOUR

BUDGET = 0.2 / DAY


def daily_visits(pages, changes_every, days=30):
    """Every page once a day; page i has changed at every ``changes_every[i]``-th visit."""
    day = np.tile(np.arange(days), len(pages))
    period = np.repeat(changes_every, days)
    verdict = np.where(day == 0, Verdict.UNKNOWN, np.where(day % period == 0, Verdict.CHANGED, Verdict.UNCHANGED))
    return Visits.of(np.repeat(pages.id, days), day * DAY, verdict=verdict)


def fitted(policy, changes_every=(1, 3, 10, 40), budget=BUDGET * 4):
    pages = Pages.of(np.arange(len(changes_every)))
    policy.add(pages)
    policy.tell(daily_visits(pages, np.array(changes_every)))
    policy.fit(budget, 30 * DAY)
    return policy, pages


def test_beliefs_order_the_pages_by_their_rates():
    policy, pages = fitted(ValuedPolicy())
    rate = policy.belief(pages.id).mean() * DAY
    assert (np.diff(rate) < 0).all()
    assert rate[1] == pytest.approx(1 / 3, rel=0.4)


def test_changes_objective_visits_hot_pages_more_and_freshness_does_not_chase_the_hottest():
    hunter, pages = fitted(ValuedPolicy(CapturedChanges()))
    keeper, _ = fitted(ValuedPolicy(FreshnessObjective()))
    hunting, keeping = (policy.due(pages.id, 0.0) - 29 * DAY for policy in (hunter, keeper))
    assert (np.diff(hunting) >= 0).all()
    assert keeping[0] > keeping[1]


def test_no_page_waits_longer_than_the_longest_interval():
    policy, pages = fitted(ValuedPolicy(FreshnessObjective(), longest_interval=20 * DAY), budget=1e-12)
    assert (policy.due(pages.id, 0.0) == 29 * DAY + 20 * DAY).all()
    assert policy.price == np.inf
    assert not policy.allocation.feasible


def test_abundance_is_bounded_by_the_shortest_interval():
    policy, pages = fitted(ValuedPolicy(shortest_interval=2 * HOUR), budget=1e9)
    assert (policy.due(pages.id, 0.0) == 29 * DAY + 2 * HOUR).all()
    assert policy.price == 0.0


def test_a_given_prior_is_used_for_new_pages_and_in_every_fit():
    def prior(pages):
        return GammaBelief(np.full(len(pages), 3.0), np.where(pages.host == 7, DAY, 100 * DAY))

    for form, tolerance in (("gamma", 1e-12), ("grid", 0.05)):
        policy = ValuedPolicy(prior=prior, belief=form, factors=())
        policy.add(Pages.of([1, 2], host=[7, 8]))
        policy.fit(BUDGET, 0.0)
        np.testing.assert_allclose(policy.belief(np.array([1, 2])).mean() * DAY, [3.0, 0.03], rtol=tolerance)


def test_pages_of_a_known_host_start_with_its_prior():
    policy = ValuedPolicy()
    hot, cold = Pages.of(np.arange(30), host=1), Pages.of(np.arange(30, 60), host=2)
    for pages, period in ((hot, 1), (cold, 25)):
        policy.add(pages)
        policy.tell(daily_visits(pages, np.full(30, period)))
    policy.fit(BUDGET * 60, 30 * DAY)
    policy.add(Pages.of([100, 101], host=[1, 2]))
    new = policy.belief(np.array([100, 101])).quantile(0.5)
    assert new[0] > 5 * new[1]


def test_seen_pages_wait_for_the_longest_interval_until_there_is_a_price():
    policy = ValuedPolicy(longest_interval=9 * DAY)
    policy.add(Pages.of([5]))
    policy.tell(Visits.of([5], [0.0]))
    assert policy.price is None
    assert policy.due(np.array([5]), 0.0).tolist() == [9 * DAY]


# -- the ledger beneath ---------------------------------------------------------------------------


def test_ledger_finds_pages_in_whatever_order_they_came():
    last_visits = LastVisits()
    rng = np.random.default_rng(0)
    ids = rng.permutation(1_000) * 7 - 3_000
    for part in np.array_split(ids, 13):
        last_visits.add(Pages.of(part))
    asked = rng.choice(ids, 200)
    np.testing.assert_array_equal(last_visits.pages.id[last_visits.rows(asked)], asked)
    assert len(last_visits) == 1_000


def test_ledger_keeps_the_first_of_equal_ids():
    last_visits = LastVisits()
    new = last_visits.add(Pages.of([4, 2, 4], importance=[1.0, 2.0, 3.0]))
    assert new.id.tolist() == [4, 2]
    assert last_visits.add(Pages.of([2, 9])).id.tolist() == [9]
    assert last_visits.pages.importance.tolist() == [1.0, 2.0, 1.0]


def test_ledger_gaps_are_those_of_the_histories_whatever_the_batches():
    rng = np.random.default_rng(1)
    page, time = rng.integers(0, 9, 300), np.sort(rng.random(300) * 1e6)
    visits = Visits.of(page, time, verdict=rng.integers(0, 3, 300), outcome=rng.integers(0, 8, 300))
    last_visits = LastVisits()
    last_visits.add(Pages.of(np.arange(9)))
    parts = [last_visits.tell(visits.take(rows)) for rows in np.array_split(np.arange(300), 17)]
    row, seconds, changed, end = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(row, kind="stable")
    whole = Histories.from_visits(visits)
    np.testing.assert_array_equal(row[order], whole.row_of_gap())
    np.testing.assert_array_equal(seconds[order], whole.gaps)
    np.testing.assert_array_equal(changed[order], whole.changed)
    np.testing.assert_allclose(end[order], whole.observation_times(), rtol=1e-14)
    assert np.isin(end, time).all()
    np.testing.assert_array_equal(last_visits.last_observed, whole.last_visit)


def test_a_page_whose_history_was_imported_was_discovered_when_it_was_first_seen():
    """Its age and its cluster count from there: an earlier version knew neither of any imported page."""
    pages = Pages.of(np.arange(4), discovered=100 * DAY)
    policy = ValuedPolicy(clusters=lambda some: some.id % 2)
    policy.add(pages)
    visits = daily_visits(pages, np.array([2, 3, 4, 5]))
    policy.tell(visits.take(visits.time >= 7 * DAY * (visits.page == 3)))
    policy.fit(BUDGET, 101 * DAY)
    assert policy._last_visits.pages.discovered.tolist() == [0.0, 0.0, 0.0, 7 * DAY]
    clocks = policy._learning.clocks
    assert len(np.unique(clocks.cluster)) == 2
    np.testing.assert_array_equal(clocks.time.born, [np.nan, np.nan, np.nan, 7 * DAY])


def test_columns_want_all_of_themselves():
    table = GrowingColumns({"a": np.int64, "b": np.float64})
    with pytest.raises(ValueError, match="needed"):
        table.append(a=np.array([1]))
    with pytest.raises(ValueError, match="equal length"):
        table.append(a=np.array([1]), b=np.array([1.0, 2.0]))
    for k in range(10):
        table.append(a=np.full(k, k), b=np.full(k, 0.5))
    assert len(table) == 45
    assert table["a"].tolist() == [k for k in range(10) for _ in range(k)]


def test_where_floors_ask_for_more_than_the_budget_the_rest_is_still_ordered_by_value():
    """No price pays for the longest interval of all pages: those not due by it are told apart all the same."""
    policy = ValuedPolicy(longest_interval=20 * DAY)
    policy.add(Pages.of(np.arange(40)))
    seen = np.arange(40)
    policy.tell(Visits.of(seen, 0.0))
    for day in (2, 4, 6):
        verdict = np.where(seen < 20, Verdict.CHANGED, Verdict.UNCHANGED)
        policy.tell(Visits.of(seen, day * DAY, verdict=verdict))
    policy.fit(1.0 / (1000 * DAY), 6 * DAY)
    assert policy.price == np.inf
    soon, late = policy.urgency(seen, 8 * DAY), policy.urgency(seen, 14 * DAY)
    assert ((soon > 0) & (soon < late) & (late < 1)).all()
    assert len(np.unique(soon.round(12))) >= 2
    assert (policy.urgency(seen, 27 * DAY) >= 1).all()


def test_a_replica_has_a_constant_size_however_many_visits_it_was_made_of():
    """The crawl process has a replica: 151 bytes a page for beliefs with room to grow, and 106 for the rest."""
    count, rng = 20_000, np.random.default_rng(1)
    policy, sizes, page = ValuedPolicy(), [], np.arange(20_000)
    policy.add(Pages.of(page, host=page // 1_000))
    for day in range(6):
        verdict = np.where(rng.random(count) < 0.3, Verdict.CHANGED, Verdict.UNCHANGED)
        policy.tell(Visits.of(page, (day + rng.random(count)) * DAY, verdict=verdict))
        policy.fit(count / DAY, (day + 1) * DAY)
        sizes.append(len(pickle.dumps(policy.replica(), protocol=5)) / count)
    assert max(sizes[3:]) <= sizes[2]
    assert max(sizes) < 275.0
