import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import psycopg

from recrawl.model import Validators
from recrawl.store import open_store

KILLS = 20
WORKERS = 4
BATCH = 600  # as in store_process.py


class Nursery:
    """Starts processes that work on a store (see store_process.py) and hears what they say."""

    def __init__(self, parent):
        self._parent = parent

    def start(self, *numbers):
        self._parent.stdin.write(json.dumps(numbers) + "\n")
        self._parent.stdin.flush()
        heard = []
        while "started" not in (message := self.hear()):
            heard.append(message)
        return message["started"], heard

    def hear(self):
        return json.loads(self._parent.stdout.readline())

    def until_the_end(self):
        while "ended" not in (message := self.hear()):
            yield message


@contextmanager
def nursery(work, location):
    command = [sys.executable, str(Path(__file__).with_name("store_process.py")), work, location]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        try:
            yield Nursery(parent)
        finally:
            parent.stdin.close()
            parent.wait(60)


def test_what_was_acknowledged_survives_a_kill_and_nothing_is_half_there(location):
    seed = np.random.SeedSequence().entropy
    rng = np.random.default_rng(seed)
    with open_store(location) as store:
        store.discover([f"http://h{n % 30}.example/{n}" for n in range(BATCH)], 0.0)
    acknowledged, last = set(), 0
    with nursery("write", location) as processes:
        for _ in range(KILLS):
            [pid], heard = processes.start(last + 1)
            for _ in range(rng.integers(0, 5) - len(heard)):  # however slow the machine, some batches get through
                heard.append(processes.hear())
            time.sleep(rng.uniform(0.0, 0.05))
            os.kill(pid, signal.SIGKILL)
            heard += processes.until_the_end()
            acknowledged |= {message["acknowledged"] for message in heard}
            wait_for_the_server(location)
            last = last_batch(location, acknowledged, f"seed {seed}")
    assert acknowledged


def wait_for_the_server(location):
    """A PostgreSQL server may still be busy with the last thing the dead process asked for, a commit perhaps."""
    if not location.startswith("postgresql"):
        return
    others = (
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() "
        "AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )
    with psycopg.connect(location, autocommit=True) as connection:
        while connection.execute(others).fetchone():
            time.sleep(0.002)


def last_batch(location, acknowledged, hint):
    """Check that every batch is there entirely or not at all; return the number of the last."""
    with open_store(location) as store:
        visits = store.visits()
        batch, count = np.unique(visits.time // 1e4, return_counts=True)
        assert set(count.tolist()) <= {BATCH}, hint
        assert acknowledged <= set(batch.astype(int).tolist()), hint
        assert len(store.histories(pages=np.array([1])).gaps) == max(len(batch) - 1, 0), hint
        assert store.counts(0.0).visits == len(visits), hint
        last = int(batch.max(initial=0))
        pages = np.arange(1, BATCH + 1)
        assert store.validators(pages) == [Validators(etag=str(last) if last else "")] * BATCH, hint
        assert store.next_due() == float(last), hint
        assert set(store.hosts().next_due.tolist()) == {float(last)}, hint
    return last


def test_four_workers_never_have_the_same_page_or_host_at_once(location):
    with open_store(location) as store:
        pages = store.discover([f"http://h{n % 40}.example/{n}" for n in range(600)], 0.0)
    with nursery("lease", location) as processes:
        _, heard = processes.start(*range(WORKERS))
        heard += processes.until_the_end()
    assert sorted(message["done"] for message in heard if "done" in message) == list(range(WORKERS))
    turns = [message for message in heard if "pages" in message]
    assert Counter(page for turn in turns for page in turn["pages"]) == Counter(pages.tolist())
    by_host = defaultdict(list)
    for turn in turns:
        for host in turn["hosts"]:
            by_host[host].append((turn["since"], turn["until"]))
    for spans in by_host.values():
        for (_, ended), (began, _) in pairwise(sorted(spans)):
            assert ended <= began
    with open_store(location) as store:
        assert store.counts(100.0).leased == 0
        assert len(store.visits()) == len(pages)
