"""Workers own buckets of hosts: leases only in their own, moves that wait for leases, and tokens that fence commits."""

import numpy as np
import pytest

from recrawl.model import Outcome, Verdict, Visit, Visits
from recrawl.store.open import open_store
from recrawl.urls import BUCKETS, bucket_of

ALL = np.arange(BUCKETS)
SITES = [f"http://host{number}.example/" for number in range(40)]


def join(store, worker, now=0.0):
    store.set_control(f"worker {worker}", "{}", now)


def owned(store, worker):
    return [number for number, owner in enumerate(store.buckets().owner) if owner == worker]


def a_visit(page, time):
    visit = Visit(int(page), time, Outcome.FETCHED, Verdict.CHANGED, status=200)
    return Visits.from_rows([visit])


def test_every_host_has_the_bucket_of_its_registered_domain(store):
    store.discover(["http://www.example.co.uk/", "https://example.co.uk:8443/", "http://127.0.0.1:80/", *SITES], 0.0)
    hosts = store.hosts()
    assert hosts.bucket.tolist() == [bucket_of(name) for name in hosts.name]
    assert len(set(hosts.bucket.tolist())) > 30
    assert hosts.bucket[0] == hosts.bucket[1]


def test_a_worker_leases_from_its_own_buckets_only(store):
    store.discover(SITES, 0.0)
    join(store, "one"), join(store, "two")
    assert store.claim_buckets("one", ALL[::2], 1.0) == BUCKETS // 2
    assert store.claim_buckets("two", ALL, 1.0) == BUCKETS // 2
    hosts = store.hosts()
    for worker, parity in (("one", 0), ("two", 1)):
        leased = store.lease(worker, 2.0, 100, ttl=60.0, owned=True)
        assert leased.host.tolist() == hosts.id[hosts.bucket % 2 == parity].tolist()
        assert set(leased.token.tolist()) == {1}
        assert store.next_due(worker) == 62.0
    assert len(store.lease("three", 2.0, 100, ttl=60.0, owned=True)) == 0
    assert store.next_due("three") == np.inf


def test_buckets_change_hands_once_their_leases_have_ended(store):
    pages = store.discover(SITES, 0.0)
    join(store, "one"), join(store, "two")
    store.claim_buckets("one", ALL, 1.0)
    leased = store.lease("one", 2.0, 100, ttl=60.0, owned=True)
    busy = np.unique(store.hosts(leased.host).bucket)
    assert store.plan_moves("one", ALL, ["two"] * BUCKETS, 3.0) == BUCKETS
    assert store.plan_moves("one", ALL, ["two"] * BUCKETS, 4.0) == 0  # they have that heir
    assert store.hand_over("one", 5.0, patience=60.0) == BUCKETS - len(busy)
    assert owned(store, "one") == busy.tolist()
    store.acknowledge("one", leased.page[1:])
    assert len(store.lease("one", 6.0, 100, ttl=60.0, owned=True)) == 0  # what is about to move is not leased
    assert store.hand_over("one", 6.0, patience=60.0) == len(busy) - 1
    [last] = owned(store, "one")
    store.record(a_visit(leased.page[0], 6.5), due=np.array([99.0]), worker="one", tokens=leased.token[:1])
    assert store.due(leased.page[:1]).tolist() == [99.0]
    assert store.hand_over("one", 7.0, patience=60.0) == 1
    assert len(owned(store, "two")) == BUCKETS
    assert store.buckets().token[last] == 2
    assert len(store.lease("two", 8.0, 100, ttl=60.0, owned=True)) == len(pages) - 1


def test_a_bucket_that_is_not_given_away_after_all_is_kept(store):
    join(store, "one")
    store.claim_buckets("one", ALL, 1.0)
    store.plan_moves("one", ALL[:10], ["two"] * 10, 2.0)
    store.plan_moves("one", ALL[:0], [], 3.0, kept=ALL[:4])
    assert [number for number, heir in enumerate(store.buckets().heir) if heir] == list(range(4, 10))
    assert store.hand_over("one", 4.0, patience=60.0) == 6
    assert store.plan_moves("two", ALL[:3], ["three"] * 3, 5.0) == 0  # these are not its own


def test_patience_ends_and_the_late_visit_does_not_count(store):
    [page] = store.discover(["http://a.example/"], 0.0).tolist()
    join(store, "one"), join(store, "two")
    store.claim_buckets("one", ALL, 1.0)
    leased = store.lease("one", 2.0, 100, ttl=600.0, owned=True)
    store.plan_moves("one", ALL, ["two"] * BUCKETS, 3.0)
    store.hand_over("one", 62.9, patience=60.0)
    assert len(owned(store, "one")) == 1
    store.hand_over("one", 63.0, patience=60.0)
    assert len(owned(store, "one")) == 0
    assert len(store.lease("two", 64.0, 100, ttl=60.0, owned=True)) == 0  # its host is still being requested
    lost = []
    store.record(a_visit(page, 65.0), due=np.array([99.0]), worker="one", tokens=leased.token, on_lost=lost.append)
    assert [pages.tolist() for pages in lost] == [[page]]
    assert store.due(np.array([page])).tolist() == [0.0]
    assert store.visits().verdict.tolist() == [Verdict.UNKNOWN]
    assert store.lease("two", 66.0, 100, ttl=60.0, owned=True).page.tolist() == [page]


def test_the_buckets_of_a_dead_worker_are_free(store):
    [page] = store.discover(["http://a.example/"], 0.0).tolist()
    join(store, "one"), join(store, "two")
    store.claim_buckets("one", ALL, 1.0)
    leased = store.lease("one", 2.0, 100, ttl=600.0, owned=True)
    assert store.claim_buckets("two", ALL, 3.0) == 0
    assert store.release_worker("one", 30.0, pause=1.0) == 1
    assert store.claim_buckets("two", ALL, 30.0) == BUCKETS
    assert set(store.buckets().token.tolist()) == {3}
    again = store.lease("two", 31.0, 100, ttl=600.0, owned=True)
    assert again.page.tolist() == [page]
    store.record(a_visit(page, 20.0), due=np.array([99.0]), worker="one", tokens=leased.token)
    assert store.due(np.array([page])).tolist() == [0.0]
    store.record(a_visit(page, 32.0), due=np.array([77.0]), worker="two", tokens=again.token)
    assert store.due(np.array([page])).tolist() == [77.0]
    assert store.visits().verdict.tolist() == [Verdict.UNKNOWN, Verdict.CHANGED]


def test_an_old_visit_does_not_count_although_the_page_is_leased_again(store):
    [page] = store.discover(["http://a.example/"], 0.0).tolist()
    join(store, "one"), join(store, "two")
    store.claim_buckets("one", ALL, 1.0)
    old = store.lease("one", 2.0, 100, ttl=600.0, owned=True)
    store.release_worker("one", 30.0, pause=1.0)
    store.claim_buckets("two", ALL, 30.0)
    store.release_buckets("two", 31.0)
    store.claim_buckets("one", ALL, 32.0)
    new = store.lease("one", 33.0, 100, ttl=600.0, owned=True)
    assert (old.token.tolist(), new.token.tolist()) == ([1], [5])
    store.record(a_visit(page, 20.0), due=np.array([99.0]), worker="one", tokens=old.token)
    assert store.visits().verdict.tolist() == [Verdict.UNKNOWN]
    assert store.due(np.array([page])).tolist() == [0.0]


def test_an_owner_that_does_not_report_owns_nothing(store):
    join(store, "one")
    store.claim_buckets("one", ALL, 1.0)
    store.set_control("worker one", None, 2.0)
    join(store, "two")
    assert store.claim_buckets("two", ALL, 3.0) == BUCKETS


def test_a_worker_that_leaves_gives_all_away_and_inherits_nothing(store):
    join(store, "one"), join(store, "two")
    store.claim_buckets("one", ALL[:100], 1.0)
    store.claim_buckets("two", ALL[100:], 1.0)
    store.plan_moves("one", ALL[:10], ["two"] * 10, 2.0)
    store.plan_moves("two", ALL[100:110], ["one"] * 10, 2.0)
    assert store.release_buckets("one", 3.0) == 100
    rows = store.buckets()
    assert rows.owner[:10] == ["two"] * 10
    assert rows.owner[10:100] == [None] * 90
    assert rows.heir == [None] * BUCKETS


def test_the_copy_of_a_store_has_no_owners(store):
    join(store, "one")
    store.claim_buckets("one", ALL, 1.0)
    store.drop_leases(2.0, 1.0)
    assert store.buckets().owner == [None] * BUCKETS


def test_two_workers_claim_at_once_and_each_bucket_has_one_owner(location):
    with open_store(location) as one, open_store(location) as two:
        join(one, "one"), join(two, "two")
        taken = one.claim_buckets("one", ALL[:600], 1.0), two.claim_buckets("two", ALL[400:], 1.0)
        assert taken == (600, 424)
        assert two.buckets().owner == ["one"] * 600 + ["two"] * 424


@pytest.mark.parametrize("wrong", ["due", "tokens"])
def test_columns_of_another_length_are_refused(store, wrong):
    store.discover(SITES, 0.0)
    with pytest.raises(ValueError, match=wrong):
        store.record(a_visit(1, 1.0), **{wrong: np.zeros(3, np.int64)})
