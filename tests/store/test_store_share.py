"""Workers that share a store have hosts of their own."""

import numpy as np


def test_each_worker_leases_from_hosts_of_its_own(store):
    store.discover([f"http://host{number}.example/{page}" for number in range(7) for page in range(2)], 0.0)
    taken = [store.lease(f"w{rank}", 1.0, 100, per_host=2, ttl=60.0, share=(rank, 3)) for rank in range(3)]
    assert sorted(host for leased in taken for host in np.unique(leased.host).tolist()) == store.hosts().id.tolist()
    assert all(set((leased.host % 3).tolist()) == {rank} for rank, leased in enumerate(taken))
    assert sum(map(len, taken)) == 14


def test_alone_it_leases_from_all(store):
    store.discover([f"http://host{number}.example/" for number in range(5)], 0.0)
    assert len(store.lease("one", 1.0, 100, ttl=60.0)) == 5
