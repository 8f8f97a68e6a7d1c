"""What workers are told and share: controls, the roll, the budget; on a real store, and a real web on virtual time."""

import asyncio
import io
import json
import math
import shutil
import threading
import time
from collections import Counter

import numpy as np
import pytest

from recrawl.crawl.clock import RealClock
from recrawl.crawl.control import runtime_limits
from recrawl.crawl.control.bucket_owner import BucketOwner
from recrawl.crawl.control.json_log import JsonLinesLog
from recrawl.crawl.control.metrics import StatsCollector
from recrawl.crawl.control.price_exchange import PriceExchange
from recrawl.crawl.control.run_control import StoreRunControl, WorkerLoad
from recrawl.crawl.control.runtime_limits import READ_EVERY, LimitsWatcher, RuntimeLimits, SharedBudget
from recrawl.crawl.control.worker_registry import (
    REPORT_EVERY,
    SILENCE,
    RegisteredWorker,
    WorkerRegistry,
    is_alive,
    registered_workers,
)
from recrawl.crawl.visit.change_classifier import ChangeClassifier
from recrawl.crawl.visit.scope import HostScope
from recrawl.crawl.visit.warc_archive import NoArchive
from recrawl.crawl.worker.crawl_assembly import WorkerSettings, live_crawl
from recrawl.crawl.worker.crawl_worker import WorkerPace
from recrawl.detect.change_criteria import ChangeCriteria
from recrawl.errors import ConfigError
from recrawl.model import Outcome, Visits
from recrawl.schedule.frontier.revisit_scheduler import RevisitScheduler
from recrawl.schedule.policies.fixed_interval import FixedInterval
from recrawl.schedule.politeness.host_politeness import Politeness, PolitenessRules
from recrawl.simulate.sites import synthetic_web
from recrawl.store.open import open_store
from recrawl.time import DAY, HOUR, MINUTE, VirtualClock
from recrawl.urls import BUCKETS
from recrawl_testweb.virtual_web_server import VirtualWebServer

START = 1.79e9


@pytest.fixture
def store(tmp_path, empty_store):
    path = shutil.copy(empty_store, tmp_path / "told.db")
    with open_store(path, durable=False) as opened:
        yield opened


def orders(limits) -> RuntimeLimits:
    if limits.get("crawl.concurrency") == "bad":
        raise ConfigError("no number", "write one")
    return RuntimeLimits(
        budget=float(limits.get("schedule.budget", 100)) / HOUR,
        burst=HOUR,
        concurrency=int(limits.get("crawl.concurrency", 4)),
        standards=ChangeCriteria(min_change=float(limits.get("detect.min_change", 0))),
    )


def steered(store, worker="one", log=None, classifier=None, *, exchange=False):
    scheduler = RevisitScheduler(FixedInterval(HOUR), budget=100 / HOUR)
    return StoreRunControl(
        worker,
        orders({}),
        controls=LimitsWatcher(store, orders),
        budget=SharedBudget(store, VirtualClock(START)),
        registry=WorkerRegistry(store, worker),
        buckets=BucketOwner(store, worker),
        hosts=store,
        scheduler=scheduler,
        politeness=Politeness(),
        classifier=classifier or ChangeClassifier(store),
        log=JsonLinesLog(log or io.StringIO(), VirtualClock(START)),
        exchange=PriceExchange(store, worker) if exchange else None,
    )


IDLE = WorkerLoad(0, 0)


def test_what_is_due_is_counted_as_often_as_the_line_about_it_is_renewed(store):
    store.discover(["http://a.example/", "http://a.example/b"], START)
    clock, mine, scheduler = (
        VirtualClock(START),
        steered(store),
        RevisitScheduler(FixedInterval(HOUR), budget=100 / HOUR),
    )
    taker = StatsCollector(
        lambda: IDLE, clock, store, scheduler, Politeness(), mine, JsonLinesLog(io.StringIO(), clock), NoArchive()
    )
    assert taker.take().due == 2
    store.reschedule(np.array([1, 2]), np.full(2, START + HOUR))
    assert taker.take().due == 2  # too soon
    clock.advance_to(START + 0.5)
    assert taker.take().due == 0


def test_controls_are_looked_at_now_and_then_and_only_news_is_told(store):
    mine = LimitsWatcher(store, orders)
    assert not mine.changed_limits(START).paused
    runtime_limits.set_paused(store, START, paused=True)
    assert mine.changed_limits(START + READ_EVERY / 2) is None  # too soon
    assert mine.changed_limits(START + READ_EVERY).paused
    assert mine.changed_limits(START + 2 * READ_EVERY) is None  # nothing new
    WorkerRegistry(store, "other").report(RegisteredWorker("other", START, START))
    assert mine.changed_limits(START + 3 * READ_EVERY) is None  # that is not for us
    runtime_limits.set_paused(store, START, paused=False)
    assert not mine.changed_limits(START + 4 * READ_EVERY).paused


def test_hosts_that_rest_are_known_by_their_ids(store):
    store.discover(["http://a.example/", "http://b.example/"], START)
    mine = LimitsWatcher(store, orders)
    mine.changed_limits(START)
    runtime_limits.set_hosts_paused(store, np.array([2]), START, paused=True)
    assert mine.changed_limits(START + READ_EVERY) is not None
    assert mine.resting == {2}
    runtime_limits.set_hosts_paused(store, np.array([2]), START + 1, paused=False)
    mine.changed_limits(START + 2 * READ_EVERY)
    assert mine.resting == frozenset()


def test_the_roll_knows_who_is_at_work_and_forgets_the_dead(store):
    one, two = WorkerRegistry(store, "one"), WorkerRegistry(store, "two")
    two.report(RegisteredWorker("two", START, START, visits=7, underway=3))
    one.report(RegisteredWorker("one", START + 1, START + 1))
    assert [(other.worker, other.visits, other.underway) for other in one.others] == [("two", 7, 3)]
    one.report(RegisteredWorker("one", START + 20 * REPORT_EVERY, START))
    assert one.others == []
    assert [(who.worker, is_alive(who, START + 20 * REPORT_EVERY)) for who in registered_workers(store.controls())] == [
        ("one", True),
        ("two", False),
    ]
    assert one.free_dead(START + 20 * REPORT_EVERY, 1.0) == {}  # it was not watched for so long
    for call in range(21, 30):
        one.report(RegisteredWorker("one", START + call * REPORT_EVERY, START))
    assert one.free_dead(START + 30 * REPORT_EVERY, 1.0) == {"two": 0}
    one.leave(START + 2 * DAY)
    assert registered_workers(store.controls()) == []


class Passing:
    """A steady time of its own."""

    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds


@pytest.mark.parametrize("ahead", [-400 * DAY, -HOUR, 0.0, HOUR, 400 * DAY])
def test_a_living_worker_is_alive_whatever_its_clock_says_and_a_dead_one_dead(store, ahead):
    """Judged by whether what it says changes, on the steady time of the one who looks."""
    store.discover(["http://a.example/"], START)
    passing = Passing()
    mine, other = WorkerRegistry(store, "mine", passing), WorkerRegistry(store, "other", passing)
    store.lease("other", START + max(ahead, 0.0), 1, ttl=1e9)
    for _ in range(30):
        passing.seconds += REPORT_EVERY
        now = START + passing.seconds
        other.report(RegisteredWorker("other", now + ahead, START))
        mine.report(RegisteredWorker("mine", now, START))
        assert mine.free_dead(now, 1.0) == {}
    silent = 0.0
    while not (freed := mine.free_dead(START + passing.seconds, 1.0)):
        passing.seconds += REPORT_EVERY
        silent += REPORT_EVERY
        mine.report(RegisteredWorker("mine", START + passing.seconds, START))
    assert freed == {"other": 1}
    assert silent == SILENCE
    assert store.lease_holders() == {}


def test_time_in_which_nobody_could_look_makes_nobody_dead(store):
    """The store was away for ten minutes, or the observer was stopped: the others have to be given time to speak."""
    passing = Passing()
    mine, other = WorkerRegistry(store, "mine", passing), WorkerRegistry(store, "other", passing)
    other.report(RegisteredWorker("other", START, START))
    mine.report(RegisteredWorker("mine", START, START))
    passing.seconds += 10 * MINUTE
    mine.report(RegisteredWorker("mine", START + 10 * MINUTE, START))
    assert mine.was_silent  # it may have been taken for dead itself
    assert mine.free_dead(START + 10 * MINUTE, 1.0) == {}
    other.report(RegisteredWorker("other", START + 10 * MINUTE, START))
    mine.report(RegisteredWorker("mine", START + 10 * MINUTE, START))
    assert not mine.was_silent
    assert [one.worker for one in mine.others] == ["other"]


def test_a_thread_speaks_for_a_worker_whose_loop_is_busy_and_not_after_it_left(store):
    passing = Passing()
    mine = WorkerRegistry(store, "mine", passing)
    mine.repeat_report(START)
    assert registered_workers(store.controls()) == []  # it has not begun
    mine.report(RegisteredWorker("mine", START, START, visits=7))
    passing.seconds += 3 * REPORT_EVERY
    mine.repeat_report(START + 3 * REPORT_EVERY)
    assert registered_workers(store.controls()) == [RegisteredWorker("mine", START + 3 * REPORT_EVERY, START, visits=7)]
    mine.report(RegisteredWorker("mine", START + 3 * REPORT_EVERY, START))
    assert not mine.was_silent
    passing.seconds += SILENCE  # all of it was stopped, and the thread speaks first
    mine.repeat_report(START + SILENCE)
    mine.report(RegisteredWorker("mine", START + SILENCE, START))
    assert mine.was_silent
    mine.leave(START)
    passing.seconds += 3 * REPORT_EVERY
    mine.repeat_report(START + 6 * REPORT_EVERY)
    assert registered_workers(store.controls()) == []


def test_who_comes_or_leaves_is_heard_of_before_the_next_call(store):
    mine, other = steered(store), WorkerRegistry(store, "other")
    mine.begin(START)
    mine.update(START, IDLE)
    assert mine.workers == 1
    other.report(RegisteredWorker("other", START + 0.1, START))
    mine.update(START + READ_EVERY / 2, IDLE)
    assert mine.workers == 1  # nothing was due
    mine.update(START + READ_EVERY, IDLE)
    assert mine.workers == 2
    assert mine.update_at == mine.buckets.check_at < START + 2 * READ_EVERY  # half of the buckets move
    other.leave(START + READ_EVERY)
    mine.update(START + 2 * READ_EVERY, IDLE)
    assert mine.workers == 1
    assert READ_EVERY * 2 < REPORT_EVERY


def owners(store):
    return Counter(store.buckets().owner)


def test_one_worker_owns_all_buckets_and_gives_half_to_one_that_joins(store):
    one, two = steered(store), steered(store, "two")
    one.begin(START)
    one.update(START, IDLE)
    assert not one.update(START + 1, IDLE)
    assert owners(store) == {"one": 1024}
    two.begin(START + 1)
    two.update(START + 1, IDLE)
    assert owners(store) == {"one": 1024}
    assert one.update(START + 2 + READ_EVERY, IDLE)  # its queued pages have to be returned
    assert Counter(store.buckets().heir) == {None: 512, "two": 512}
    assert not one.update(one.update_at, IDLE)
    assert owners(store) == {"one": 512, "two": 512}
    two.update(START + 8, IDLE)
    assert (one.buckets.owned, two.buckets.owned, one.buckets.handed_over) == (512, 512, 512)
    two.end(START + 9)
    assert owners(store) == {"one": 512, None: 512}
    one.update(START + 10, IDLE)
    assert owners(store) == {"one": 1024}
    one.end(START + 11)
    assert owners(store) == {None: 1024}


def test_pauses_are_stored_before_buckets_move(store):
    store.discover(["http://a.example/"], START)
    one, two = steered(store), steered(store, "two")
    one.begin(START)
    one.update(START, IDLE)
    one._politeness.begin(1, START)
    one._politeness.done(1, START + 1, 0.5)
    two.begin(START + 1)
    two.update(START + 1, IDLE)
    one.update(START + 2, IDLE)
    assert store.hosts().ready_at.tolist() == [one._politeness.free_at(1)]
    assert one._politeness.free_at(1) > START + 2


def test_the_buckets_of_a_silent_worker_are_taken_over(store):
    passing = Passing()
    dead = steered(store, "dead")
    dead.begin(START)
    dead.update(START, IDLE)
    mine = steered(store, "mine")
    mine._registry = WorkerRegistry(store, "mine", passing)
    mine.begin(START)
    now = START
    while now < START + SILENCE:
        mine.update(now, IDLE)
        assert owners(store)["mine"] == 0
        now += REPORT_EVERY
        passing.seconds += REPORT_EVERY
    mine.update(now, IDLE)
    assert owners(store) == {"mine": 1024}


def test_workers_that_share_a_store_share_what_is_left(store):
    """Whatever each of three begins and records: together no more than saved up and earned, but for a call's lag."""
    page = store.discover([f"http://a.example/{number}" for number in range(400)], START - DAY)
    now, made = START, 0
    workers = [(SharedBudget(store, VirtualClock(START)), WorkerRegistry(store, name)) for name in ("a", "b", "c")]
    for budget, _ in workers:
        budget.set(60 / HOUR, HOUR, now)
    for step in range(60):
        now = START + step * REPORT_EVERY
        for number, (_, called) in enumerate(workers):
            called.report(RegisteredWorker("abc"[number], now, START))
        for budget, called in workers:
            budget.share(called.others, 0, now)
        for budget, _ in workers:
            begun = min(int(budget.room(now)), 5)
            budget.take(now, begun)
            times = now + np.arange(begun) * 1e-3 + made * 1e-6
            store.record(Visits.of(page[made : made + begun], times))
            made += begun
        if step:  # all have heard of each other
            assert made <= 60 + 60 / HOUR * (now - START) + len(workers)
    assert made >= 60


def test_what_is_under_way_elsewhere_is_taken_off(store):
    budget = SharedBudget(store, VirtualClock(START))
    budget.set(60 / HOUR, HOUR, START)
    assert budget.room(START) == 60
    budget.share([RegisteredWorker("other", START, START, underway=40)], 10, START)
    assert budget.room(START) == 5
    budget.share([], 0, START)  # alone again
    assert budget.room(START) == 60
    budget.share([RegisteredWorker("other", START, START, underway=5, left=50.0)], 0, START, new=True)
    assert budget.room(START) == 5  # the other does not know of us yet, and may spend what it has


def test_visits_that_nobody_can_count_yet_are_taken_off_and_told(store):
    mine = steered(store)
    mine.begin(START)
    WorkerRegistry(store, "other").report(RegisteredWorker("other", START, START))
    mine.update(START, IDLE)
    mine.update(START + REPORT_EVERY, WorkerLoad(underway=10, in_hand=0, made=30))
    assert mine.left(START + REPORT_EVERY) == pytest.approx((100 - 40) / 2)
    assert {one.worker: one.underway for one in registered_workers(store.controls())} == {"one": 40, "other": 0}


def test_refusals_cost_nothing_and_a_budget_on_average_lets_everything_begin(store):
    page = store.discover(["http://a.example/1", "http://a.example/2"], START - DAY)
    outcome = [Outcome.FETCHED, Outcome.REFUSED]
    store.record(Visits.of(page, np.array([START - 1.0, START - 2.0]), outcome=outcome))
    budget = SharedBudget(store, VirtualClock(START))
    budget.set(10 / HOUR, HOUR, START)
    assert budget.room(START) == 9
    budget.take(START, 9)
    assert budget.next_at(START) > START
    budget.give_back(1)
    assert budget.room(START) == 1
    budget.set(10 / HOUR, math.inf, START)
    assert (budget.room(START), budget.left(START), budget.next_at(START)) == (math.inf, None, START)


def test_a_worker_does_what_it_is_told_and_says_so(store):
    log, classifier = io.StringIO(), ChangeClassifier(store)
    mine = steered(store, log=log, classifier=classifier)
    mine.begin(START)
    assert mine.update(START, IDLE)
    assert (mine.room(START, 1), mine.paused) == (3, False)
    runtime_limits.set_limit(store, "crawl.concurrency", "2", START)
    runtime_limits.set_limit(store, "schedule.budget", "1", START)
    runtime_limits.set_limit(store, "detect.min_change", "0.25", START)
    assert mine.update(START + READ_EVERY, IDLE)
    assert classifier.rules.standards.min_change == 0.25
    assert (mine.room(START + READ_EVERY, 0), mine.budget) == (1, 1 / HOUR)
    mine.began(START + READ_EVERY, 1)
    assert mine.room(START + READ_EVERY, 0) == 0
    assert mine.next_at(START + READ_EVERY) == pytest.approx(START + READ_EVERY + HOUR)
    assert mine.is_held(START + READ_EVERY)
    mine.refund(1)
    assert mine.room(START + READ_EVERY, 0) == 1
    assert not mine.is_held(START + READ_EVERY)
    runtime_limits.set_paused(store, START, paused=True)
    mine.update(START + 3 * READ_EVERY, IDLE)
    assert (mine.room(START + 3 * READ_EVERY, 0), mine.next_at(START + 3 * READ_EVERY)) == (0, math.inf)
    assert [json.loads(line)["message"] for line in log.getvalue().splitlines()] == ["controls applied"] * 2
    mine.end(START + 100)
    assert registered_workers(store.controls()) == []


def test_limits_that_contradict_each_other_are_logged_and_the_old_ones_kept(store):
    log = io.StringIO()
    mine = steered(store, log=log)
    mine.begin(START)
    mine.update(START, IDLE)
    runtime_limits.set_limit(store, "crawl.concurrency", "bad", START)
    mine.update(START + READ_EVERY, IDLE)
    assert mine.room(START + READ_EVERY, 0) == 4
    assert json.loads(log.getvalue().splitlines()[-1])["message"] == "limits not applied"


def test_limits_that_make_no_sense_keep_nobody_from_pausing_the_crawl_or_a_host(store):
    store.discover(["http://a/", "http://b/"], START)
    mine = steered(store)
    mine.begin(START)
    mine.update(START, IDLE)
    runtime_limits.set_limit(store, "crawl.concurrency", "bad", START)
    runtime_limits.set_hosts_paused(store, np.array([2]), START, paused=True)
    assert mine.update(START + READ_EVERY, IDLE)  # what is in hand is given back
    assert (mine.resting, mine.paused) == (frozenset({2}), False)
    runtime_limits.set_paused(store, START, paused=True)
    assert mine.update(START + 2 * READ_EVERY, IDLE)
    assert (mine.paused, mine.room(START + 2 * READ_EVERY, 0)) == (True, 0)
    runtime_limits.set_paused(store, START, paused=False)
    mine.update(START + 3 * READ_EVERY, IDLE)
    assert mine.room(START + 3 * READ_EVERY, 0) == 4


def crawl_for(tmp_path, store, hours, told, before=lambda: None, **changes):
    """A steered crawl of a test web on virtual time; ``told(now)`` may change controls. What the server saw."""
    web = synthetic_web(pages=60, start=START, days=hours / 24, seed=3)
    clock = VirtualClock(START)
    with VirtualWebServer(web, clock) as living:
        hosts = living.hosts()
        settings = WorkerSettings(
            budget=60 / HOUR,
            user_agent="steered/1.0 (+https://example.org/)",
            politeness=PolitenessRules(factor=0.0, shortest=1.0, longest=1.0),
            pace=WorkerPace(poll=math.inf),
            pins=dict.fromkeys(hosts, living.ip),
            durable=False,
        )

        def asked_for(limits):
            budget = float(limits.get("schedule.budget", 60)) / HOUR
            return RuntimeLimits(budget=budget, burst=10 * MINUTE, politeness=settings.politeness, **changes)

        async def run():
            store.discover(living.seeds(), START)
            before()
            async with live_crawl(
                "one",
                FixedInterval(5 * MINUTE),
                clock=clock,
                store=store,
                folder=tmp_path,
                scope=HostScope(frozenset(hosts)),
                settings=settings,
                orders=asked_for,
            ) as driver:
                await driver.run(web.end, told)

        asyncio.run(run())
        return living.requests()


def test_a_budget_that_binds_is_never_exceeded_and_new_pages_do_not_starve_the_others(tmp_path, store):
    """60 pages that ask for twelve visits an hour each, at a budget of 60; half of it for pages never seen."""
    crawl_for(tmp_path, store, 1.0, lambda _now: None, discovery_share=0.5)
    visits = store.visits()
    times = np.sort(visits.time[visits.outcome != Outcome.REFUSED])
    for first in range(len(times)):
        spans = times[first:] - times[first]
        assert (np.arange(1, len(spans) + 1) <= 10 + 60 / HOUR * spans + 1e-3).all()
    assert len(times) == pytest.approx(70, abs=3)
    assert 20 <= len(np.unique(visits.page)) <= 40  # at least half of the visits came back to a page


def test_the_hosts_of_a_dead_worker_are_visited_again_within_45_seconds(tmp_path, store):
    """It was killed on another machine, a moment after it had said that it lives, and holds every host there is."""

    def dies():
        assert len(store.lease("dead", START, 100, per_host=16, ttl=900.0))
        assert store.next_due() > START + 800.0
        WorkerRegistry(store, "dead").report(RegisteredWorker("dead", START, START))

    requests = crawl_for(tmp_path, store, 0.02, lambda _now: None, before=dies)
    assert SILENCE <= requests.time.min() - START <= 45.0
    assert registered_workers(store.controls()) == []
    events = map(json.loads, (tmp_path / "recrawl.log").read_text(encoding="utf-8").splitlines())
    [freed] = [event for event in events if event["message"] == "leases of a dead worker freed"]
    assert freed["details"]["worker"] == "dead"


def test_a_crawl_that_is_paused_makes_no_visit_until_it_goes_on(tmp_path, store):
    def told(now):
        runtime_limits.set_paused(store, now, paused=START + 10 * MINUTE <= now < START + 20 * MINUTE)

    crawl_for(tmp_path, store, 0.5, told, discovery_share=1.0)
    minutes = (store.visits().time - START) / MINUTE
    assert (minutes < 10).any()
    assert (minutes > 20).any()
    assert not ((minutes > 10.1) & (minutes < 20)).any()


def test_a_running_crawl_does_not_wait_for_visits_to_be_counted_when_its_budget_is_changed(tmp_path, monkeypatch):
    """The loop would stand still for seconds where there are millions of visits."""
    clock, counted = RealClock(), threading.Event()
    with open_store(tmp_path / "store.db", create=True, durable=False) as store:
        budget = SharedBudget(store, clock)
        now = clock.now()
        budget.set(1e-6, 1e7, now)
        assert budget.room(now) == 10
        real = SharedBudget._from_visits

        def slowly(self, now):
            assert counted.wait(120)
            return real(self, now)

        monkeypatch.setattr(SharedBudget, "_from_visits", slowly)
        budget.take(now, 10)
        budget.set(2e-6, 1e7, now)  # while this is counted, what was left is left
        assert budget.room(now) == 0
        counted.set()
        for _ in range(12_000):
            if budget.room(now):
                break
            time.sleep(0.01)
        assert budget.room(now) == 20  # the visits that were taken were never made, so the count knows none of them


def test_a_fit_is_due_when_buckets_have_moved(store):
    one, two = steered(store, "one", exchange=True), steered(store, "two", exchange=True)
    one.begin(START)
    assert one.partition(START).is_whole  # before it has joined: what it will have
    one._scheduler.fit(START)
    one.update(START, IDLE)
    two.begin(START + 1.0)
    foreseen = two.partition(START + 1.0).buckets
    assert len(foreseen) == BUCKETS // 2
    now = START + 1.0
    for _ in range(30):
        now += 1.0
        two.update(now, IDLE)
        one.update(now, IDLE)
        if one._scheduler.fit_at <= now:
            break
    assert one._scheduler.fit_at <= now
    kept = one.partition(now).buckets
    one._scheduler.fit(now)
    assert sorted([*kept.tolist(), *foreseen.tolist()]) == list(range(BUCKETS))
    for _ in range(30):
        now += 1.0
        one.update(now, IDLE)
        two.update(now, IDLE)
    assert two.partition(now).buckets.tolist() == foreseen.tolist()
    assert one._scheduler.fit_at > now  # nothing moves any more
