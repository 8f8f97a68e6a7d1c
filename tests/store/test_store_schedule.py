import math

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from recrawl.model import ChangeKind, Validators, Verdict, Visits
from recrawl.store import open_store
from recrawl.store.store_values import CaptureRecord, LearnedFacts, LinksSeen


@pytest.fixture
def three_hosts(store):
    """Pages 1-3 of host 1, 4-5 of host 2, 6 of host 3; due at 30, 10, 20, 15, 15 and 99."""
    urls = [f"http://{name}.example/{n}" for name, count in (("a", 3), ("b", 2), ("c", 1)) for n in range(count)]
    pages = store.discover(urls, 0.0)
    store.reschedule(pages, np.array([30.0, 10.0, 20.0, 15.0, 15.0, 99.0]))
    return store


def test_pages_come_in_the_order_they_are_due_one_a_host(three_hosts):
    leased = three_hosts.lease("w", 50.0, 10, ttl=60.0)
    assert leased.page.tolist() == [2, 4]
    assert leased.host.tolist() == [1, 2]
    assert leased.due.tolist() == [10.0, 15.0]
    assert leased.url == ["http://a.example/1", "http://b.example/0"]


def test_several_pages_a_host_if_asked_for(three_hosts):
    assert three_hosts.lease("w", 50.0, 10, per_host=2, ttl=60.0).page.tolist() == [2, 4, 5, 3]


def test_no_more_than_the_limit_and_no_host_held_for_nothing(three_hosts):
    assert three_hosts.lease("w", 50.0, 2, per_host=9, ttl=60.0).page.tolist() == [2, 4]
    assert three_hosts.lease("v", 50.0, 2, ttl=60.0).page.tolist() == []
    three_hosts.acknowledge("w", np.array([2]))
    assert three_hosts.lease("v", 50.0, 1, per_host=9, ttl=60.0).page.tolist() == [2]


def test_nothing_is_due_yet(three_hosts):
    assert len(three_hosts.lease("w", 9.0, 10, ttl=60.0)) == 0
    assert three_hosts.next_due() == 10.0


def test_a_host_that_is_not_ready_waits(three_hosts):
    three_hosts.set_host(np.array([1]), ready_at=np.array([51.0]))
    assert three_hosts.lease("w", 50.0, 10, ttl=60.0).page.tolist() == [4]
    assert three_hosts.next_due() == 51.0
    assert three_hosts.lease("w", 51.0, 10, ttl=60.0).page.tolist() == [2]


@pytest.mark.parametrize("other", ["w", "v"])
def test_a_held_host_is_nobodys_until_its_leases_end(three_hosts, other):
    three_hosts.lease("w", 50.0, 10, per_host=2, ttl=60.0)
    assert len(three_hosts.lease(other, 50.0, 10, ttl=60.0)) == 0
    three_hosts.record(Visits.of([2], [51.0]), due=np.array([1e3]), worker="w")
    assert len(three_hosts.lease(other, 52.0, 10, ttl=60.0)) == 0
    three_hosts.record(Visits.of([3], [52.0]), due=np.array([1e3]), worker="w")
    assert three_hosts.lease(other, 52.0, 10, ttl=60.0).page.tolist() == [1]


def test_recording_keeps_everyone_away_from_the_host_for_its_delay(three_hosts):
    leased = three_hosts.lease("w", 50.0, 10, ttl=60.0)
    three_hosts.record(
        Visits.of(leased.page, [50.0, 50.0]),
        due=np.array([1e3, 1e3]),
        worker="w",
        host_ready=np.array([55.0, 57.0]),
    )
    assert three_hosts.next_due() == 55.0
    assert len(three_hosts.lease("w", 54.9, 10, ttl=60.0)) == 0
    assert three_hosts.lease("w", 56.0, 10, ttl=60.0).page.tolist() == [3]
    three_hosts.record(Visits.of([4], [58.0]), host_ready=np.array([52.0]))
    assert three_hosts.hosts().ready_at.tolist() == [55.0, 57.0, 0.0]


def test_a_lease_ends_by_itself(three_hosts):
    three_hosts.lease("w", 50.0, 10, ttl=60.0)
    assert three_hosts.next_due() == 99.0
    assert three_hosts.expire(109.9) == 0
    assert three_hosts.lease("v", 110.0, 10, ttl=60.0).page.tolist() == [2, 4, 6]
    assert three_hosts.counts(110.0).leased == 3


def test_a_late_worker_tells_what_it_saw_and_frees_nothing_of_others(three_hosts):
    three_hosts.lease("late", 50.0, 1, ttl=10.0)
    assert three_hosts.lease("other", 60.0, 1, ttl=60.0).page.tolist() == [2]
    three_hosts.record(Visits.of([2], [55.0]), due=np.array([70.0]), worker="late")
    assert three_hosts.visits().time.tolist() == [55.0]
    assert 1 not in three_hosts.lease("third", 80.0, 10, ttl=60.0).host
    assert three_hosts.renew("late", 61.0, ttl=60.0) == 0
    assert three_hosts.acknowledge("late", np.array([2])) == 0
    assert three_hosts.acknowledge("other", np.array([2])) == 1


def test_who_lost_a_lease_changes_nothing_that_another_worker_found(three_hosts):
    """The other one visited the page meanwhile: its version, links and due time stand, and its change counts once."""
    three_hosts.lease("late", 50.0, 1, ttl=10.0)
    three_hosts.lease("other", 60.0, 1, ttl=60.0)
    change = {"verdict": Verdict.CHANGED, "kinds": ChangeKind.TEXT, "magnitude": 0.5}
    new, old = Validators(etag='"new"'), Validators(etag='"old"')
    three_hosts.record(
        Visits.of([2], [65.0], **change), due=np.array([500.0]), validators=[new], worker="other", host_ready=[70.0]
    )
    links = LinksSeen(np.array([2]), np.array([1]), np.array([55.0]))
    where = CaptureRecord(2, 55.0, 200, "text/html", b"x" * 20, 9, "a.warc.gz", 0, 99)
    lost = []
    for _ in range(2):  # a call whose answer was lost is repeated: that changes nothing more
        three_hosts.record(
            Visits.of([2], [55.0], **change),
            due=np.array([70.0]),
            validators=[old],
            links=links,
            captures=[where],
            worker="late",
            host_ready=np.array([90.0]),
            learned_facts=LearnedFacts(fingerprints=[b"print"]),
            on_lost=lambda pages: lost.append(pages.tolist()),
        )
    assert lost == [[2]]
    visits = three_hosts.visits()
    assert visits.time.tolist() == [55.0, 65.0]
    assert visits.verdict.tolist() == [Verdict.UNKNOWN, Verdict.CHANGED]
    assert three_hosts.validators(np.array([2]))[0].etag == '"new"'
    assert three_hosts.due(np.array([2])).tolist() == [500.0]
    assert len(three_hosts.outlinks(np.array([2])).source) == 0
    assert three_hosts.fingerprints(np.array([2])) == [b""]
    assert [one.warc_file for one in three_hosts.captures(np.array([2]))] == ["a.warc.gz"]  # its bytes are there
    assert three_hosts.hosts().ready_at[0] == 90.0  # and the host was asked


def test_a_batch_repeated_because_its_answer_was_lost_is_no_lost_lease(three_hosts):
    three_hosts.lease("w", 50.0, 1, ttl=60.0)
    lost = []
    for _ in range(2):
        three_hosts.record(
            Visits.of([2], [55.0], verdict=Verdict.CHANGED), worker="w", due=np.array([99.0]), on_lost=lost.append
        )
    assert lost == []
    assert three_hosts.visits().verdict.tolist() == [Verdict.CHANGED]
    assert three_hosts.due(np.array([2])).tolist() == [99.0]


def test_what_a_dead_worker_held_is_free_after_its_hosts_rested(three_hosts):
    three_hosts.set_host(np.array([2]), delay=np.array([30.0]))
    assert len(three_hosts.lease("dead", 50.0, 10, per_host=2, ttl=900.0)) == 4
    assert three_hosts.lease_holders() == {"dead": 4}
    three_hosts.set_control("worker dead", "I live", 51.0)
    assert three_hosts.release_worker("dead", 52.0, pause=5.0, unless=("worker dead", "I lived")) == -1
    assert three_hosts.lease_holders() == {"dead": 4}
    assert three_hosts.release_worker("dead", 52.0, pause=5.0, unless=("worker dead", "I live")) == 4
    assert three_hosts.lease_holders() == {}
    assert len(three_hosts.lease("w", 56.9, 10, ttl=60.0)) == 0
    assert three_hosts.lease("w", 57.0, 10, ttl=60.0).host.tolist() == [1]
    assert three_hosts.lease("w", 82.0, 10, ttl=60.0).host.tolist() == [2]


def test_a_host_whose_hold_ends_by_itself_rests_as_long_as_it_asks_for(three_hosts):
    three_hosts.set_host(np.array([1]), delay=np.array([30.0]))
    three_hosts.lease("dead", 50.0, 10, ttl=10.0)
    assert three_hosts.lease("w", 61.0, 10, ttl=900.0).host.tolist() == [2]
    assert three_hosts.lease("w", 90.0, 10, ttl=900.0).host.tolist() == [1]


def test_expired_leases_can_be_dropped_and_counted(three_hosts):
    three_hosts.lease("w", 50.0, 10, ttl=60.0)
    assert three_hosts.expire(110.0) == 2
    assert three_hosts.next_due() == 10.0


def test_a_lease_can_be_kept_longer(three_hosts):
    three_hosts.lease("w", 50.0, 10, ttl=60.0)
    assert three_hosts.renew("w", 100.0, ttl=60.0, pages=np.array([2])) == 1
    assert three_hosts.renew("v", 100.0, ttl=60.0) == 0
    assert three_hosts.lease("v", 120.0, 10, ttl=60.0).page.tolist() == [4, 6]
    assert three_hosts.renew("w", 159.0, ttl=60.0) == 1
    assert three_hosts.renew("w", 219.0, ttl=60.0) == 0
    assert three_hosts.lease("v", 219.0, 10, ttl=60.0).page.tolist() == [2, 4, 6]


def test_a_lease_can_be_given_back(three_hosts):
    three_hosts.lease("w", 50.0, 10, ttl=60.0)
    assert three_hosts.acknowledge("v", np.array([2, 4])) == 0
    assert three_hosts.acknowledge("w", np.array([4, 6])) == 1
    assert three_hosts.acknowledge("w", np.empty(0, np.int64)) == 0
    assert three_hosts.lease("v", 50.0, 10, ttl=60.0).page.tolist() == [4]


def test_a_page_may_be_due_never(three_hosts):
    three_hosts.reschedule(np.arange(1, 7), np.full(6, np.inf))
    assert three_hosts.next_due() == math.inf
    assert len(three_hosts.lease("w", 1e12, 10, ttl=60.0)) == 0
    three_hosts.reschedule(np.array([3, 3]), np.array([5.0, 7.0]))
    assert three_hosts.next_due() == 7.0
    three_hosts.reschedule(np.empty(0, np.int64), np.empty(0))


def test_an_empty_store_has_nothing_to_do(store):
    assert store.next_due() == math.inf
    assert len(store.lease("w", 1e12, 10, ttl=60.0)) == 0
    assert store.renew("w", 0.0, ttl=1.0) == 0
    assert store.expire(0.0) == 0


def test_counts(three_hosts):
    three_hosts.lease("w", 50.0, 10, ttl=60.0)
    counts = three_hosts.counts(20.0)
    assert (counts.pages, counts.hosts, counts.due, counts.leased) == (6, 3, 4, 2)


class Schedule(RuleBasedStateMachine):
    """The store beside the plainest possible account of who holds what."""

    workers = st.sampled_from(["w", "v"])
    some_pages = st.lists(st.integers(1, 8), min_size=1, max_size=4, unique=True)

    def __init__(self, location):
        super().__init__()
        self.store = open_store(location(), durable=False)
        self.now = 0.0
        self.due = {}
        self.ready = dict.fromkeys((1, 2, 3), 0.0)
        self.leases = {}  # page -> worker, until

    @initialize()
    def discover(self):
        pages = self.store.discover([f"http://h{n % 3}.example/{n}" for n in range(8)], 0.0)
        self.due = dict.fromkeys(pages.tolist(), 0.0)

    def host(self, page):
        return (page - 1) % 3 + 1

    def holder(self, host):
        return {worker for page, (worker, _) in self.leases.items() if self.host(page) == host}

    def drop(self, pages):
        for page in pages:
            self.leases.pop(page, None)

    @rule(seconds=st.integers(0, 20))
    def wait(self, seconds):
        self.now += seconds

    @rule(worker=workers, limit=st.integers(1, 4), per_host=st.integers(1, 2), ttl=st.integers(1, 30))
    def lease(self, worker, limit, per_host, ttl):
        self.drop([page for page, (_, until) in self.leases.items() if until <= self.now])
        free = [host for host in self.ready if self.ready[host] <= self.now and not self.holder(host)]
        queues = {
            host: sorted((due, page) for page, due in self.due.items() if self.host(page) == host) for host in free
        }
        # Hosts that are equally early are taken in the order of their ids, pages in the order of theirs.
        first = sorted(free, key=lambda host: (queues[host][0][0], host))
        early = [host for host in first if queues[host][0][0] <= self.now][:limit]
        due = [(due, page) for host in early for due, page in queues[host][:per_host] if due <= self.now]
        expected = [page for _, page in sorted(due)][:limit]
        leased = self.store.lease(worker, self.now, limit, per_host=per_host, ttl=float(ttl))
        assert leased.page.tolist() == expected
        assert leased.due.tolist() == [self.due[page] for page in expected]
        for page in leased.page.tolist():
            self.leases[page] = (worker, self.now + ttl)

    @rule(worker=workers, pages=some_pages, later=st.integers(0, 40), rest=st.integers(0, 10))
    def record(self, worker, pages, later, rest):
        array = np.array(pages)
        self.store.record(
            Visits.of(array, self.now),
            due=np.full(len(pages), self.now + later),
            worker=worker,
            host_ready=np.full(len(pages), self.now + rest),
        )
        mine = [page for page in pages if self.leases.get(page, ("", 0))[0] == worker]
        self.drop(mine)
        self.due.update(dict.fromkeys(mine, self.now + later))
        for page in pages:
            self.ready[self.host(page)] = max(self.ready[self.host(page)], self.now + rest)

    @rule(worker=workers, pages=some_pages)
    def acknowledge(self, worker, pages):
        mine = [page for page in pages if self.leases.get(page, ("", 0))[0] == worker]
        assert self.store.acknowledge(worker, np.array(pages)) == len(mine)
        self.drop(mine)

    @rule(pages=some_pages, later=st.integers(0, 40))
    def reschedule(self, pages, later):
        self.store.reschedule(np.array(pages), np.full(len(pages), self.now + later))
        self.due.update(dict.fromkeys(pages, self.now + later))

    @invariant()
    def the_next_due_time_is_right(self):
        if not self.due:
            return
        times = []
        for host, ready in self.ready.items():
            earliest = min(due for page, due in self.due.items() if self.host(page) == host)
            held = max([until for page, (_, until) in self.leases.items() if self.host(page) == host], default=0.0)
            times.append(max(earliest, ready, held))
        assert self.store.next_due() == min(times)

    def teardown(self):
        self.store.close()


def test_leasing_agrees_with_a_plain_account_of_it(new_location):
    run_state_machine_as_test(
        lambda: Schedule(new_location),
        settings=settings(
            max_examples=25,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_a_worker_can_give_back_all_it_holds(store):
    pages = store.discover(["http://a.example/", "http://b.example/", "http://c.example/"], 0.0)
    store.lease("one", 1.0, 2, ttl=1e9)
    store.lease("two", 1.0, 1, ttl=1e9)
    assert store.acknowledge("one") == 2
    assert store.acknowledge("one") == 0
    assert store.lease("three", 2.0, 9, ttl=5.0).page.tolist() == pages[:2].tolist()


def test_due_times_are_told_page_by_page(store):
    pages = store.discover(["http://a.example/", "http://b.example/"], 5.0)
    store.reschedule(pages[:1], np.array([77.0]))
    assert store.due(pages[[1, 0, 1]]).tolist() == [5.0, 77.0, 5.0]
    assert store.due(pages[:0]).tolist() == []
    with pytest.raises(KeyError):
        store.due(np.array([999]))
