"""What status and lists say of workers and their buckets."""

import json
from dataclasses import asdict

import numpy as np

from recrawl.app.status import bucket_facts, worker_columns
from recrawl.crawl.control.worker_registry import RegisteredWorker, WorkerRegistry
from recrawl.store.coordination import PartitionDemand
from recrawl.store.open import open_store
from recrawl.time import DAY

NOW = 1_790_000_000.0


def test_who_owns_what_is_counted(tmp_path):
    with open_store(tmp_path / "store.db", create=True, durable=False) as store:
        for name, at in (("one", NOW), ("two", NOW - 60)):
            WorkerRegistry(store, name).report(RegisteredWorker(name, at, NOW - 90, visits=5, underway=2, in_hand=3))
        store.claim_buckets("one", np.arange(600), NOW)
        store.claim_buckets("two", np.arange(600, 1_000), NOW)
        store.plan_moves("one", np.arange(88), ["two"] * 88, NOW)
        facts = bucket_facts(store)
        assert json.loads(json.dumps(asdict(facts))) == {
            "owned": {"one": 600, "two": 400},
            "free": 24,
            "moving": 88,
            "moves": 1_000,
        }
        columns, more = worker_columns(store, 1, NOW)
        assert more == "of 2"
        curve = np.array([0.5, 1.0]), np.array([0.2, 0.1])
        store.publish_demand(PartitionDemand("one", NOW - 5.0, 600, 70, 3, 0.5, 20 / DAY, 0.0, 1.0, *curve))
        columns, more = worker_columns(store, 9, NOW)
    assert more == ""
    assert columns["worker"] == ["one", "two"]
    assert columns["state"] == ["running", "silent"]
    assert columns["buckets"] == [600, 400]
    assert columns["visits"] == [5, 5]
    assert columns["pages"] == [70, 0]
    assert columns["price"] == [0.5, None]
    assert columns["demand"] == [20.0, None]
    assert columns["fitted"] == [NOW - 5.0, None]
