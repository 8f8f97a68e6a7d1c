"""Processes that work on a store until they are done or killed, for test_store_processes.py.

The parent loads everything once and then forks, so that a new process costs milliseconds. Children open the store
themselves and print what they did, a line at a time.
"""

import json
import os
import sys
import time

import numpy as np

import recrawl.store.engine.postgres
import recrawl.store.engine.sqlite  # noqa: F401 - loaded before the fork
from recrawl.model import Validators, Verdict, Visits
from recrawl.store import history, open_store

BATCH = 600


def tell(**what):
    os.write(1, json.dumps(what).encode() + b"\n")


def write(location, first):
    """Record batch after batch, and say so after each."""
    history.SEGMENT_VISITS = 2_000
    store = open_store(location)
    pages = np.arange(1, BATCH + 1)
    for batch in range(first, first + 1_000):
        store.record(
            Visits.of(pages, batch * 1e4 + np.arange(BATCH), verdict=Verdict.UNCHANGED),
            due=np.full(BATCH, float(batch)),
            validators=[Validators(etag=str(batch))] * BATCH,
        )
        tell(acknowledged=batch)


def lease(location, worker):
    """Lease and record until nothing is due any more; tell from when to when each host was ours."""
    store = open_store(location)
    rng = np.random.default_rng(worker)
    name = f"worker {worker}"
    while store.next_due() < np.inf:
        leased = store.lease(name, 100.0, 12, per_host=2, ttl=1e6)
        since = time.perf_counter()
        if not len(leased):
            time.sleep(0.001)  # the rest is in other hands
            continue
        kept = rng.random(len(leased)) < 0.8
        time.sleep(rng.uniform(0.0, 0.005))
        until = time.perf_counter()
        tell(pages=leased.page[kept].tolist(), hosts=sorted(set(leased.host.tolist())), since=since, until=until)
        store.acknowledge(name, leased.page[~kept])
        store.record(Visits.of(leased.page[kept], 100.0), due=np.full(np.count_nonzero(kept), np.inf), worker=name)
    tell(done=worker)


def main():
    """For each list of numbers on the input, start a child for each number and wait for them all."""
    work = {"write": write, "lease": lease}[sys.argv[1]]
    for line in sys.stdin:
        children = []
        for number in json.loads(line):
            child = os.fork()
            if not child:
                work(sys.argv[2], number)
                os._exit(0)
            children.append(child)
        tell(started=children)
        for child in children:
            os.waitpid(child, 0)
        tell(ended=children)


if __name__ == "__main__":
    main()
