"""Workers that share a store have hosts of their own."""

import numpy as np


def test_alone_it_leases_from_all(store):
    store.discover([f"http://host{number}.example/" for number in range(5)], 0.0)
    assert len(store.lease("one", 1.0, 100, ttl=60.0)) == 5


def test_a_host_is_held_for_a_request_that_is_for_none_of_its_pages(store):
    store.discover(["http://a.example/1", "http://a.example/2", "http://b.example/"], 0.0)
    [host] = np.unique(store.pages(np.array([1])).host).tolist()
    hold = store.hold_host("one", host, 1.0, ttl=60.0)
    assert hold.until == -np.inf
    assert store.held("one").tolist() == [hold.page]
    assert store.hold_host("two", host, 2.0, ttl=60.0).until == 61.0
    assert np.unique(store.lease("two", 2.0, 100, per_host=9, ttl=60.0).host).tolist() != [host]
    assert store.renew("one", 50.0, ttl=60.0, pages=np.array([hold.page])) == 1
    assert store.hold_host("two", host, 62.0, ttl=60.0).until == 110.0
    store.free_host("one", host, hold.page, 70.0)
    assert len(store.held("one")) == 0
    assert store.hold_host("two", host, 65.0, ttl=60.0).until == 70.0
    assert store.hold_host("two", host, 70.0, ttl=60.0).until == -np.inf


def test_a_host_in_our_hands_is_held_until_the_last_of_our_leases_ends(store):
    pages = store.discover(["http://a.example/1", "http://a.example/2"], 0.0)
    [host] = np.unique(store.pages(pages).host).tolist()
    leased = store.lease("one", 1.0, 1, ttl=60.0)
    hold = store.hold_host("one", host, 2.0, ttl=10.0)
    assert {hold.page, *leased.page.tolist()} == set(pages.tolist())
    assert store.hold_host("one", host, 2.0, ttl=10.0).page == -1  # all pages are leased: they keep others away
    store.acknowledge("one", leased.page)
    assert len(store.lease("two", 3.0, 9, ttl=60.0)) == 0
    store.free_host("one", host, hold.page, 4.0)
    assert len(store.lease("two", 3.0, 9, ttl=60.0)) == 0
    assert len(store.lease("two", 4.0, 9, ttl=60.0)) == 1


def test_the_host_of_a_worker_that_died_holding_it_is_free_again(store):
    store.discover(["http://a.example/1"], 0.0)
    [host] = store.hosts().id.tolist()
    store.hold_host("one", host, 1.0, ttl=60.0)
    assert store.release_worker("one", 5.0, pause=2.0) == 1
    assert store.hold_host("two", host, 6.0, ttl=60.0).until == 7.0
    assert store.hold_host("two", host, 7.0, ttl=60.0).until == -np.inf
