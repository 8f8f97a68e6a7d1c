"""What a worker leases, and when it asks for more. A real store, and times as told."""

import numpy as np
import pytest

from recrawl.crawl.visit.visit_machine import VisitState
from recrawl.crawl.worker.lease_pool import LeasePool, ReadyQueue
from recrawl.schedule.frontier.host_frontier import Frontier
from recrawl.schedule.politeness.host_politeness import Politeness, PolitenessRules
from recrawl.store.open import open_store
from recrawl.urls import bucket_of

NOW = 1e9


@pytest.fixture
def store(tmp_path, empty_store):
    path = tmp_path / "store.db"
    path.write_bytes(empty_store.read_bytes())
    with open_store(path, durable=False) as opened:
        opened.discover(["http://a.example/", "http://b.example/"], NOW)
        yield opened


def hands_of(store, worker="one"):
    return LeasePool(worker, store, size=4, per_host=1, lease_time=900.0, poll=60.0)


def test_a_host_is_leased_when_it_is_ready_not_when_others_are(store):
    """Else hosts that became ready one after the other would be asked together from then on."""
    store.set_host(np.array([1, 2]), ready_at=np.array([NOW + 0.1, NOW + 0.5]))
    lease_pool = hands_of(store)
    assert lease_pool.lease(NOW) is None
    for host, ready_at in ((1, NOW + 0.1), (2, NOW + 0.5)):
        assert lease_pool.lease_at == pytest.approx(ready_at)
        assert lease_pool.lease(lease_pool.lease_at).host.tolist() == [host]


def test_hosts_that_are_ready_right_after_each_other_are_leased_together(store):
    store.set_host(np.array([1, 2]), ready_at=np.array([NOW + 0.001, NOW + 0.002]))
    lease_pool = hands_of(store)
    assert lease_pool.lease(NOW) is None
    assert lease_pool.lease_at == pytest.approx(NOW + 0.02)
    assert len(lease_pool.lease(NOW + 0.02)) == 2


def test_the_store_is_asked_seldom_for_what_is_left_to_others(store):
    for worker, host in (("one", "b.example"), ("two", "a.example")):
        store.set_control(f"worker {worker}", "{}", NOW)
        store.claim_buckets(worker, np.array([bucket_of(host)]), NOW)
    lease_pool = hands_of(store)
    leased = lease_pool.lease(NOW, 2, owned=True)
    assert leased.host.tolist() == [2]
    lease_pool.hold(leased, [None])
    assert lease_pool.take(int(leased.page[0])).token == 1
    assert lease_pool.lease_at == pytest.approx(NOW + 1.0)


def test_a_page_that_is_put_back_after_its_lease_was_lost_is_not_requested(store):
    """It was under way when another worker took its lease, and its turn ended only after that was found."""
    lease_pool = hands_of(store)
    ready_queue = ReadyQueue(Frontier(Politeness(PolitenessRules(factor=0.0, shortest=1.0))), lease_pool, None)
    leased = lease_pool.lease(NOW)
    ready_queue.hold(leased, [None, None], {})
    first, second = (ready_queue.take(page) for page in ready_queue.next_many(NOW, 2).page.tolist())
    ready_queue.defer(first, NOW)  # nothing was sent, before the check
    store.release_worker("one", NOW + 1.0, pause=1.0)
    assert len(store.lease("other", NOW + 5.0, 9, per_host=1, ttl=900.0)) == 2
    lease_pool.check_soon()
    assert ready_queue.renew(NOW + 5.0, [second.page]) == 1
    ready_queue.defer(second, NOW + 5.0)  # and of the other page after it
    ready_queue.drop_lost()
    assert not len(ready_queue.next_many(NOW + 9.0, 9).page)
    assert len(lease_pool) == 0
    assert {first.machine.state, second.machine.state} == {VisitState.RETURNED}
    store.acknowledge("other")
    again = lease_pool.lease(NOW + 9.0)
    ready_queue.hold(again, [None] * len(again), {})
    ready_queue.drop_lost()
    assert len(ready_queue.next_many(NOW + 9.0, 9).page) == 2, "leased again, they are pages like any other"
