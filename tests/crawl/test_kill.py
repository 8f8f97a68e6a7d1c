"""A crawl that is killed loses no visit it recorded, and the next worker goes on where it stopped."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from recrawl.crawl.clock import RealClock
from recrawl.living.quirks import Quirks
from recrawl.living.web import LivingWeb
from recrawl.model import Visits
from recrawl.simulate.sites import synthetic_web
from recrawl.store.base import Store
from recrawl.store.open import open_store

SCRIPT = Path(__file__).with_name("crawl_process.py")
ROUNDS, MORE = 4, 25


def rows(visits: Visits) -> dict[tuple[int, float], tuple[object, ...]]:
    columns = [column.tolist() for column in visits.columns().values()]
    return {(row[0], row[1]): row[2:] for row in zip(*columns, strict=True)}


def until_more_visits(store: Store, process: subprocess.Popen, wanted: int) -> None:
    for _ in range(3_000):
        if len(store.visits()) >= wanted:
            return
        assert process.poll() is None, process.stderr.read().decode()
        time.sleep(0.02)
    raise AssertionError("the crawl makes no progress")


def test_killed_crawls_lose_nothing_and_go_on(tmp_path):
    location = str(tmp_path / "store.db")
    clock = RealClock()
    web = synthetic_web(pages=12, start=clock.now() - 60.0, days=1.0, seed=4, hot=20_000.0, sigma=0.5)
    quirks = Quirks(crawl_delay=0.0)
    with LivingWeb(web, clock, quirks=quirks) as living, open_store(location, create=True) as store:
        store.discover(living.seeds(), clock.now())
        known: dict[tuple[int, float], tuple[object, ...]] = {}
        for turn in range(ROUNDS):
            process = subprocess.Popen(
                [sys.executable, SCRIPT, location, f"worker-{turn}", *living.hosts()],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
            try:
                until_more_visits(store, process, len(known) + MORE)
            finally:
                process.send_signal(signal.SIGKILL)
                process.wait()
                process.stderr.close()
            now_known = rows(store.visits())
            assert now_known.items() >= known.items()
            known = now_known
        log = living.requests()
        answered = set(log.time.tolist())
    # Recorded visits are visits that the server saw: on one machine and clock, within the time of a request.
    assert len(known) <= len(answered)
    assert len({page for page, _ in known}) >= 10
