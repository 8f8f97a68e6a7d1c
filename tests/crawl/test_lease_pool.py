"""What a worker leases, and when it asks for more. A real store, and times as told."""

import numpy as np
import pytest

from recrawl.crawl.worker.lease_pool import LeasePool
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
