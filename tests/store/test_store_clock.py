"""A clock that was wrong leaves state ahead of it behind: it is found, marked and repaired, on real stores."""

from dataclasses import replace

import numpy as np
import pytest

from recrawl.crawl.clock import RealClock
from recrawl.model import Outcome, Validators, Verdict, Visits
from recrawl.model.captures import RobotsCopy
from recrawl.store import open_store
from recrawl.store.store_values import LinksSeen
from recrawl.time import DAY, HOUR

NOW = 1.79e9
JUMPS = [3 * DAY, 400 * DAY]


@pytest.fixture
def pages(store):
    return store.discover([f"http://h{n}.example/{m}" for n in range(3) for m in range(2)], NOW - 9 * DAY)


def visit(store, pages, when, *, due=HOUR, rest=3.0, **what):
    """Lease and visit these pages at a time; what a worker records."""
    store.reschedule(pages, np.full(len(pages), when - 1.0))
    store.set_host(np.unique(store.pages(pages).host), ready_at=np.full(len(np.unique(store.pages(pages).host)), when))
    store.lease("w", when, 99, per_host=9, ttl=60.0)
    store.record(
        Visits.of(pages, when + np.arange(len(pages)), **what),
        due=np.full(len(pages), when + due),
        worker="w",
        host_ready=np.full(len(pages), when + len(pages) + rest),
    )
    store.acknowledge("w")


def test_a_store_that_is_in_time_is_left_as_it_is(store, pages):
    visit(store, pages, NOW - HOUR, verdict=Verdict.UNCHANGED)
    before = store.visits().time.tolist(), store.due(pages).tolist(), store.hosts().ready_at.tolist()
    assert not store.repair_ahead(NOW, lease_time=120.0)
    assert (store.visits().time.tolist(), store.due(pages).tolist(), store.hosts().ready_at.tolist()) == before
    assert (store.misdated().visits, len(store.misdated_visits())) == (0, 0)


@pytest.mark.parametrize("jump", JUMPS)
def test_what_a_clock_ahead_left_behind_is_marked_and_repaired(store, location, pages, jump):
    visit(store, pages, NOW - 2 * HOUR, verdict=Verdict.UNCHANGED)
    visit(store, pages[:4], NOW + jump, due=6 * HOUR, verdict=Verdict.CHANGED, outcome=Outcome.FETCHED)
    store.set_control("worker dead", "said", NOW + jump)
    store.reschedule(pages[4:], np.full(2, NOW - 1.0))
    store.lease("dead", NOW + jump, 9, ttl=120.0)
    assert store.next_due() > NOW + jump - DAY  # a crawl would wait until then, also for the host that is held
    found = store.repair_ahead(NOW, lease_time=120.0)
    assert (found.visits, found.misdated, found.leases) == (4, 4, 1)
    assert found.seconds == pytest.approx(jump, abs=10.0)
    with open_store(location) as again:  # it is so for everybody, and after a restart
        assert again.visits().time.max() < NOW
        assert again.histories().last_visit.max() < NOW
        assert again.counts(NOW).visits == 6
        assert again.misdated().visits == 4
        marked = again.misdated_visits()
        assert marked.page.tolist() == pages[:4].tolist()
        assert marked.time.tolist() == (NOW + jump + np.arange(4)).tolist()
        assert set(marked.outcome.tolist()) == {Outcome.FETCHED}
        assert set(marked.verdict.tolist()) == {Verdict.CHANGED}
        assert len(again.misdated_visits(pages[1:2])) == 1
        assert len(again.latest_visits(100)) == 6
    assert store.due(pages[:4]) == pytest.approx(np.full(4, NOW + 6 * HOUR), abs=10.0)
    hosts = store.hosts()
    assert (hosts.ready_at[:2] <= NOW + 10.0).all()
    assert store.next_due() <= NOW + 130.0
    assert not store.repair_ahead(NOW, lease_time=120.0)  # once


def test_visits_that_go_on_beyond_the_clock_may_be_as_true_as_those_before_it(store, pages):
    """The clock is set back by three days into a crawl that ran all the time: the clock is wrong, not the visits."""
    for hours in range(0, 9 * 24, 6):
        store.record(Visits.of(pages, NOW - 5 * DAY + hours * HOUR, verdict=Verdict.UNCHANGED))
    store.reschedule(pages, np.full(len(pages), NOW + 4 * DAY))
    found = store.repair_ahead(NOW, lease_time=120.0)
    assert found.visits > 50
    assert found.misdated == store.misdated().visits == 0
    assert len(store.visits()) == 36 * len(pages)
    assert (store.due(pages) <= NOW + DAY).all()  # and yet the crawl goes on


def test_visits_made_by_a_clock_behind_what_is_recorded_are_marked(store, location, pages):
    """The clock is set back by three days into a crawl that ran all the time: until it has come that far again."""
    for hours in range(0, 9 * 24, 6):
        store.record(Visits.of(pages, NOW - 5 * DAY + hours * HOUR, verdict=Verdict.UNCHANGED))
    before = store.visits()
    found = store.repair_ahead(NOW, lease_time=120.0)
    assert found.behind_until == before.time.max()
    made = Visits.of(pages, NOW + HOUR + np.arange(6), outcome=Outcome.FETCHED, verdict=Verdict.CHANGED)
    for _ in range(2):  # a call whose answer was lost is repeated
        store.record(made, due=np.full(6, NOW + DAY), behind_until=found.behind_until)
    late = Visits.of(pages, found.behind_until + np.array([-2.0, -1.0, -0.5, 1.0, 2.0, 3.0]), verdict=Verdict.CHANGED)
    store.record(late, behind_until=found.behind_until)
    with open_store(location) as again:
        marked = again.misdated_visits()
        assert len(marked) == again.misdated().visits == 6 + 3
        assert set(marked.time.tolist()) == {*made.time.tolist(), *late.time[:3].tolist()}
        assert set(marked.outcome.tolist()) == {Outcome.FETCHED}
        stand = again.visits()
        assert len(stand) == len(before) + 3
        assert stand.time[stand.verdict == Verdict.CHANGED].tolist() == late.time[3:].tolist()
        assert (again.due(pages) == NOW + DAY).all()  # and yet the crawl goes on
    assert store.repair_ahead(NOW + 9 * DAY, lease_time=120.0).behind_until == 0.0


def test_visits_made_behind_are_marked_when_the_clock_leaps_over_those_it_took_for_wrong(store, pages):
    visit(store, pages, NOW - 2 * HOUR)
    assert store.repair_ahead(NOW - 400 * DAY, lease_time=120.0).misdated == 6  # they stand apart, a year from now
    visit(store, pages[:4], NOW - 400 * DAY + HOUR)
    found = store.repair_ahead(NOW, lease_time=120.0)
    assert (found.restored, found.misdated) == (6, 4)
    assert store.visits().time.min() == NOW - 2 * HOUR
    assert store.misdated_visits().time.max() < NOW - 399 * DAY
    assert store.misdated().visits == len(store.misdated_visits()) == 4
    assert not store.repair_ahead(NOW, lease_time=120.0)


def test_a_pause_that_was_asked_for_lasts_as_long(store, pages):
    """Retry-After of ten days, given while the clock was three days ahead; and one given by the right clock."""
    visit(store, pages[:2], NOW + 3 * DAY, rest=10 * DAY)
    store.set_host(np.array([2, 3]), ready_at=np.array([NOW + 20 * DAY, NOW + 400 * DAY]))
    store.repair_ahead(NOW, lease_time=120.0)
    ready = store.hosts().ready_at
    assert ready[0] == pytest.approx(NOW + 10 * DAY, abs=10.0)
    assert ready[1] == NOW + 20 * DAY
    assert ready[2] == NOW  # no host can have asked for that


def test_pages_found_ahead_of_the_clock_are_due_now(store):
    pages = store.discover(["http://a.example/1", "http://a.example/2"], NOW + 400 * DAY)
    store.discover(["http://a.example/out"], NOW + 400 * DAY, importance=0.0)
    assert store.repair_ahead(NOW, lease_time=120.0).pages == 3
    assert store.pages().discovered.tolist() == [NOW] * 3
    assert len(store.lease("w", NOW, 9, per_host=9, ttl=60.0)) == 2
    assert store.due(pages).tolist() == [NOW] * 2


def test_what_was_read_ahead_of_the_clock_stays_consistent(store, pages):
    """Links that a page had at its last reading still count as its links, and failures can be noted again."""
    visit(store, pages[:1], NOW + 3 * DAY)
    seen = LinksSeen(pages[:1], pages[1:2], np.array([NOW + 3 * DAY]))
    store.reschedule(pages[:1], np.array([NOW]))
    store.set_host(np.array([1]), ready_at=np.array([NOW]))
    store.lease("w", NOW + 3 * DAY, 9, per_host=9, ttl=60.0)
    store.record(
        Visits.of(pages[:1], NOW + 3 * DAY, outcome=Outcome.UNREACHABLE),
        links=seen,
        validators=[Validators(links_read_at=NOW + 3 * DAY)],
        worker="w",
    )
    store.repair_ahead(NOW, lease_time=120.0)
    [links], [known] = [store.outlinks(pages[:1])], store.validators(pages[:1])
    assert links.first_seen.tolist() == links.last_seen.tolist() == [known.links_read_at] == [NOW]
    assert store.failing(9).time.tolist() == [NOW]


def test_the_time_of_the_server_is_told_where_there_is_one(store, engine):
    told = store.time()
    assert told is None if engine == "sqlite" else abs(told - RealClock().now()) < 60.0


def test_rules_read_ahead_of_the_clock_are_read_again(store):
    copy = RobotsCopy(
        "http://a.example", NOW + 3 * DAY, NOW + 4 * DAY, 200, "read", True, "http://a.example/", b"", NOW
    )
    store.keep_robots_copies([copy, replace(copy, origin="http://b.example", fetched_at=NOW, expires=NOW + DAY)])
    store.repair_ahead(NOW, lease_time=120.0)
    assert [store.robots_copy(f"http://{name}.example").expires for name in "ab"] == [NOW, NOW + DAY]


def test_a_pause_that_was_set_right_already_is_left_as_it_is(store, pages):
    """A worker that saw the clock step back has written how long its hosts still rest, by the new time."""
    visit(store, pages[:2], NOW + 3 * DAY)
    store.set_host(np.array([1]), ready_at=np.array([NOW + 8.0]))
    store.repair_ahead(NOW, lease_time=120.0)
    assert store.hosts().ready_at[0] == NOW + 8.0


def test_visits_of_several_wrong_clocks_are_marked_together(store, pages):
    for ahead in (DAY, 400 * DAY, 403 * DAY):
        visit(store, pages, NOW + ahead)
    assert store.repair_ahead(NOW, lease_time=120.0).misdated == 3 * len(pages)
    assert len(store.visits()) == 0
