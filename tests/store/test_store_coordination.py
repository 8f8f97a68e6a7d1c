"""What partitions publish to each other through the store: demand and samples."""

import dataclasses
import math

import numpy as np
import pytest

from recrawl.store.coordination import PartitionDemand
from recrawl.store.open import open_store
from recrawl.urls import BUCKETS, bucket_of

ALL = np.arange(BUCKETS)
SITES = [f"http://host{number}.example/" for number in range(40)]


def demand(partition="one", **differs):
    said = PartitionDemand(
        partition, 5.0, 512, 20, 3, 0.25, 1.5, 0.5, math.inf, np.array([0.1, 0.2, 0.4]), np.array([3.0, 2.0, 1.0])
    )
    return dataclasses.replace(said, **differs)


def same(one, other):
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in PartitionDemand.__slots__)


def test_the_last_demand_of_each_partition_is_read_as_it_was_published(store):
    assert store.demands() == []
    store.publish_demand(demand(price=7.0))
    nothing = np.empty(0)
    without_price = demand("two", price=None, prices=nothing, asked=nothing)
    store.publish_demand(without_price)
    store.publish_demand(demand())
    one, two = store.demands()
    assert same(one, demand())
    assert same(two, without_price)
    store.withdraw_partition("one")
    assert [said.partition for said in store.demands()] == ["two"]


def test_samples_are_read_since_a_time(store):
    store.publish_sample("one", b"old", 1.0)
    store.publish_sample("one", b"\x00new", 2.0)
    store.publish_sample("two", b"other", 3.0)
    assert store.samples() == {"one": b"\x00new", "two": b"other"}
    assert store.samples(since=2.0) == {"two": b"other"}
    store.withdraw_partition("two")
    assert store.samples() == {"one": b"\x00new"}


@pytest.mark.parametrize("ends", ["leaves", "dies"])
def test_a_worker_that_gives_up_its_buckets_asks_for_nothing_any_more(store, ends):
    store.set_control("worker one", "{}", 0.0)
    store.claim_buckets("one", ALL, 1.0)
    for partition in ("one", "two"):
        store.publish_demand(demand(partition))
        store.publish_sample(partition, b"some", 1.0)
    if ends == "leaves":
        store.release_buckets("one", 2.0)
    else:
        store.release_worker("one", 2.0, pause=1.0)
    assert [said.partition for said in store.demands()] == ["two"]
    assert list(store.samples()) == ["two"]


def test_a_copy_without_workers_has_no_demand(store):
    store.publish_demand(demand())
    store.drop_leases(1.0, 1.0)
    assert store.demands() == []


def test_pages_of_some_buckets(store):
    store.discover([url + path for url in SITES for path in ("", "a", "b")], 0.0)
    pages, hosts = store.pages(), store.hosts()
    wanted = np.unique([bucket_of(name) for name in hosts.name[:10]])
    own = np.isin(hosts.bucket[np.searchsorted(hosts.id, pages.host)], wanted)
    found = store.pages_in(wanted)
    assert found.id.tolist() == pages.id[own].tolist()
    assert found.host.tolist() == pages.host[own].tolist()
    assert len(found) >= 30
    assert len(store.pages_in(wanted[:0])) == 0
    assert store.pages_in(ALL).id.tolist() == pages.id.tolist()


def test_a_partition_is_visible_to_other_processes(location):
    with open_store(location) as one, open_store(location) as two:
        one.publish_demand(demand())
        assert [said.partition for said in two.demands()] == ["one"]
