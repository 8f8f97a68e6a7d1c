"""Workers that share a store schedule the pages of their own buckets only, at one price."""

import dataclasses
import math
import shutil

import numpy as np
import pytest

from recrawl.crawl.control.price_exchange import Elsewhere, Partition, PriceExchange
from recrawl.crawl.worker.inline_fit import ScheduleFit
from recrawl.crawl.worker.schedule_snapshot import ScheduleSnapshot
from recrawl.model import GammaBelief, Outcome, Verdict, Visits
from recrawl.schedule.frontier.revisit_scheduler import NewPageQueue, RevisitScheduler
from recrawl.schedule.policies.fixed_interval import FixedInterval
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.store.open import open_store
from recrawl.time import DAY, HOUR, MINUTE
from recrawl.urls import BUCKETS, bucket_of

START, DAYS = 1.79e9, 12
NOW = START + DAYS * DAY
ALL = np.arange(BUCKETS)
HALVES = ALL[: BUCKETS // 2], ALL[BUCKETS // 2 :]
LATE = HOUR
BUDGET = 40 / DAY


@pytest.fixture
def store(tmp_path, empty_store):
    """60 hosts of three pages each. Those in the lower half of the buckets change often, and matter less."""
    with open_store(shutil.copy(empty_store, tmp_path / "parts.db"), durable=False) as opened:
        page = opened.discover([f"http://h{host}.example/{n}" for host in range(60) for n in range(3)], START)
        low = np.array([bucket_of(f"h{host}.example") < BUCKETS // 2 for host in range(60) for n in range(3)])
        assert 60 <= low.sum() <= 120
        opened.set_importance(page, np.where(low, 1.0, 6.0))
        rng = np.random.default_rng(1)
        for day in range(DAYS):
            changed = rng.random(len(page)) < np.where(low, 0.6, 0.1)
            opened.record(
                Visits.of(
                    page,
                    START + day * DAY + page,
                    outcome=Outcome.FETCHED,
                    verdict=np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED),
                ),
                due=np.full(len(page), NOW),
            )
        yield opened


def given_prior(pages):
    return GammaBelief(np.full(len(pages), 0.5), np.full(len(pages), 3 * DAY))


def a_fit(store, policy=None, snapshot=None, budget=BUDGET):
    policy = ValuedPolicy(prior=given_prior, factors=()) if policy is None else policy
    scheduler = RevisitScheduler(policy, budget=budget, new_page_queue=NewPageQueue(0.5, HOUR))
    return ScheduleFit(store, scheduler, LATE, snapshot), scheduler


def part(number, name=None):
    return Partition(name or "ab"[number], HALVES[number])


def rows_written(fit, partition, now=NOW):
    wanted = fit.catch_up(now, partition, adds=True)
    due = fit.fit(wanted, now)
    return sum(len(move.page) for move in fit.moved(due, now, (), 0.005))


def test_two_partitions_write_together_what_one_process_writes_at_its_price(store):
    whole, all_pages = a_fit(store)
    written = rows_written(whole, None)
    assert written > 100
    fits = [a_fit(store) for _ in HALVES]
    for _ in range(2):  # the second time each knows what the other asks for
        counts = [rows_written(fit, part(number)) for number, (fit, _) in enumerate(fits)]
    assert sum(counts) == pytest.approx(written, rel=0.02)
    prices = [scheduler.policy.price for _, scheduler in fits]
    assert prices == pytest.approx([all_pages.policy.price] * 2, rel=1e-4)
    assert [len(scheduler.policy) for _, scheduler in fits] == [len(store.pages_in(half)) for half in HALVES]
    for half, (_, scheduler) in zip(HALVES, fits, strict=True):
        page = store.pages_in(half).id
        np.testing.assert_allclose(scheduler.due(page, NOW), all_pages.due(page, NOW), atol=HOUR / 2)
    spent = [said.asked_for for said in store.demands()]
    assert sum(spent) == pytest.approx(BUDGET, rel=1e-3)
    assert spent[1] > 1.3 * spent[0]  # a fixed split would give both the same


def test_pages_of_lost_buckets_are_dropped_and_those_of_won_ones_are_loaded(store):
    fit, scheduler = a_fit(store)
    for buckets, read in ((HALVES[0], "all"), (ALL[:700], "won"), (HALVES[1], "all")):
        partition = Partition("a", buckets)
        fit.fit(fit.catch_up(NOW, partition, adds=True), NOW)
        again, fresh = a_fit(store)
        again.fit(again.catch_up(NOW, partition, adds=True), NOW)
        page = store.pages_in(buckets).id
        assert len(scheduler.policy) == len(fresh.policy) == len(page)
        for mine, theirs in ((scheduler, fresh),):
            belief, other = mine.policy.belief(page, NOW), theirs.policy.belief(page, NOW)
            np.testing.assert_array_equal(belief.mean(), other.mean())
        won = len(page) if read == "all" else len(page) - len(store.pages_in(HALVES[0]))
        assert fit.visits_read == DAYS * won
        store.withdraw_partition("a")


def test_a_worker_that_is_told_of_pages_of_others_does_not_count_them(store):
    fit, scheduler = a_fit(store)
    fit.catch_up(NOW, part(0))
    own = len(scheduler.policy)
    scheduler.add(store.pages_in(HALVES[1]))  # it found links to them
    fit.catch_up(NOW, part(0))
    assert len(scheduler.policy) == own


def test_a_start_with_the_same_buckets_goes_on_from_their_snapshot(store, tmp_path):
    snapshot = ScheduleSnapshot(tmp_path / "state" / "schedule", "as ever")
    clustered = ValuedPolicy
    for number in (0, 1):
        fit, _ = a_fit(store, clustered(), snapshot)
        fit.fit(fit.catch_up(NOW, part(number), adds=True), NOW)
        assert fit.save()
    assert len(list((tmp_path / "state").iterdir())) == 2
    fit, _ = a_fit(store, clustered(), snapshot)
    fit.catch_up(NOW + MINUTE, part(1), adds=True)
    assert fit.visits_read == 0
    fit, _ = a_fit(store, clustered(), snapshot)
    fit.catch_up(NOW + MINUTE, Partition("a", ALL[100:300]), adds=True)
    assert fit.visits_read == DAYS * len(store.pages_in(ALL[100:300]))


def fitted(store, number, exchange, now=NOW, policy=None):
    fit, scheduler = a_fit(store, policy)
    wanted = fit.catch_up(now, part(number))
    exchange.fit(scheduler, wanted.id, part(number), now)
    return scheduler


def test_while_nothing_is_known_of_the_others_the_last_price_holds(store):
    fit, scheduler = a_fit(store)
    fit.fit(fit.catch_up(NOW, Partition("a", ALL), adds=True), NOW)
    price = scheduler.policy.price
    [alone] = store.demands()
    assert (alone.price, alone.buckets, len(alone.prices)) == (price, BUCKETS, 0)
    fit.fit(fit.catch_up(NOW + 1.0, part(0), adds=True), NOW + 1.0)  # half of the buckets move to another worker
    assert scheduler.policy.price == price
    other = fitted(store, 1, PriceExchange(store), NOW + 2.0)
    assert other.policy.price == pytest.approx(price, rel=1e-3)  # nothing but its own part is new


def test_the_first_of_several_workers_spends_its_part_until_others_publish(store):
    one = fitted(store, 0, PriceExchange(store))
    [said] = store.demands()
    assert said.asked_for == pytest.approx(BUDGET / 2, rel=1e-3)
    assert said.price == one.policy.price


def test_demand_that_nobody_renews_counts_less_and_less(store):
    exchange = PriceExchange(store)
    fitted(store, 1, exchange)
    [other] = store.demands()
    prices = []
    for days in (0, 2, 4, 30):
        store.publish_demand(dataclasses.replace(other, time=NOW - days * DAY))
        prices.append(fitted(store, 0, PriceExchange(store)).policy.price)
    assert prices[0] == prices[1] > prices[2] > prices[3]


def test_a_price_of_others_that_differs_makes_a_fit_due(store):
    one, mine = fitted(store, 0, PriceExchange(store)), PriceExchange(store, "a")
    assert not mine.is_outdated(one)
    fitted(store, 1, PriceExchange(store), NOW + 1.0)
    assert mine.is_outdated(one)
    one = fitted(store, 0, PriceExchange(store), NOW + 2.0)
    assert not mine.is_outdated(one)
    two = fitted(store, 1, PriceExchange(store), NOW + 3.0)
    assert not mine.is_outdated(one)
    assert one.policy.price == pytest.approx(two.policy.price, rel=1e-3)


def test_a_policy_without_a_price_gets_its_share_of_the_budget(store):
    got = []

    class Noted(FixedInterval):
        def fit(self, budget, now):
            got.append(budget)

    fitted(store, 0, PriceExchange(store), policy=Noted(HOUR))
    fitted(store, 1, PriceExchange(store), policy=Noted(HOUR))
    here, there = (len(store.pages_in(half)) for half in HALVES)
    assert got == pytest.approx([BUDGET / 2, BUDGET * there / (here + there)])


def test_new_pages_of_all_partitions_share_one_queue(store):
    store.discover([f"http://h{host}.example/new/{n}" for host in range(60) for n in range(20)], NOW)
    whole, all_pages = a_fit(store)
    whole.fit(whole.catch_up(NOW), NOW)
    schedulers = [a_fit(store) for _ in HALVES]
    for _ in range(2):
        for number, (fit, _) in enumerate(schedulers):
            fit.fit(fit.catch_up(NOW, part(number), adds=True), NOW)
    pages = store.pages()
    new = pages.id[pages.discovered == NOW]

    def due_within(scheduler, page, days):
        return int((scheduler.due(page, NOW) < NOW + days * DAY).sum())

    for days in (1, 10):
        parts = [
            due_within(one, np.intersect1d(new, store.pages_in(half).id), days)
            for half, (_, one) in zip(HALVES, schedulers, strict=True)
        ]
        assert sum(parts) == pytest.approx(due_within(all_pages, new, days), abs=4)
    assert all_pages.policy.price == pytest.approx(schedulers[0][1].policy.price, rel=1e-3)


def test_without_others_and_pages_a_fit_does_nothing():
    policy = ValuedPolicy()
    Elsewhere([], 512, None, NOW).fit(policy, 1.0, NOW)
    assert policy.price is None
    assert math.isinf(RevisitScheduler(policy, budget=1.0).fitted_at)
