"""How often pages change, as time travel is told it, and what the server does when it begins."""

import asyncio
import gc
import signal
import threading

import numpy as np

from recrawl.app.workspace.workspace import make_workspace
from recrawl.crawl.worker.gc_tuning import SELDOM
from recrawl.model import Verdict, Visits
from recrawl.time import DAY, HOUR, VirtualClock
from recrawl.web.dashboard.plan_survey import PageBeliefs
from recrawl.web.dashboard.stale_cache import StorePool
from recrawl.web.replay.workspace_archive import archive_of
from recrawl.web.servers import PrefetchPaths, bound, look_first, serve_all

NOW = 1_790_000_000.0
PATIENCE = 120.0


def test_what_is_known_is_learned_anew_while_a_crawl_goes_on(tmp_path):
    place, clock = make_workspace(tmp_path / "w", {}), VirtualClock(NOW)
    beliefs = PageBeliefs(place, clock.now)
    with place.open_store() as store:
        pages = store.discover([f"http://a.example/{number}" for number in range(41)], NOW)
        verdict = [Verdict.UNKNOWN, Verdict.UNCHANGED]
        once = Visits.of(pages[:1].repeat(2), [NOW - DAY, NOW], verdict=verdict, status=200)
        [before] = beliefs.rates(store, once).tolist()  # nothing was recorded: by what is likely of any page
        times = np.tile(NOW + HOUR * np.arange(30), 40)
        changed = np.full(40 * 30, Verdict.CHANGED)
        store.record(Visits.of(np.repeat(pages[1:], 30), times, verdict=changed, status=200))
        assert beliefs.rates(store, once).tolist() == [before]
        clock.advance_to(NOW + 2 * HOUR)
        pause = threading.Event()
        for _ in range(int(PATIENCE / 0.02)):
            if beliefs.rates(store, once)[0] != before:
                break
            pause.wait(0.02)
        else:
            raise AssertionError("never learned anew")
        told = beliefs.rates(store, store.visits(pages=pages[1:2]))
        assert 1 < told[0] * HOUR < 5  # it changed at each of 30 hourly observations
        assert np.isnan(beliefs.rates(store, once.take([0]))).all()  # one observation says nothing about rates


def test_a_server_looks_at_its_own_pages_and_waits_for_none_without_end():
    asked, never = [], asyncio.Event()

    async def app(scope, receive, send):
        asked.append((scope["path"], scope["query_string"], dict(scope["headers"]).get(b"authorization")))
        assert (await receive())["type"] == "http.request"
        if scope["path"] == "/slow":
            await never.wait()
        if scope["path"] == "/broken":
            raise ValueError
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x"})

    observations = [PrefetchPaths(app, ["/broken", "/a?b=c"], "secret"), PrefetchPaths(app, ["/slow", "/after"])]
    assert asyncio.run(look_first(observations, patience=0.2)) == 1
    assert asked[0] == ("/broken", b"", b"Bearer secret")
    assert ("/a", b"b=c", b"Bearer secret") in asked
    assert ("/slow", b"", None) in asked
    assert "/after" not in {path for path, _, _ in asked}
    assert asyncio.run(look_first([])) == 0


def test_whoever_starts_a_server_is_told_when_it_takes_requests_and_not_after_its_own_looks():
    told, seen, thresholds, usual = asyncio.Event(), [], [], gc.get_threshold()

    async def app(scope, receive, send):
        """Answers only when somebody was told of it; then it is interrupted."""
        await told.wait()
        seen.append(scope["path"])
        thresholds.append(gc.get_threshold()[0])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x"})
        signal.raise_signal(signal.SIGINT)

    with bound("127.0.0.1", 0) as listening:
        serve_all([(app, listening)], told.set, [PrefetchPaths(app, ["/first"])])
    assert seen == ["/first"]
    assert thresholds == [SELDOM]  # to look through all that is loaded would keep everybody waiting
    assert gc.get_threshold() == usual


def test_whether_a_file_was_imported_is_asked_of_the_store_in_use(tmp_path, monkeypatch):
    place = make_workspace(tmp_path / "w", {})
    stores = StorePool(place.open_store, most=1)
    archive = archive_of(place, stores.one, VirtualClock(NOW))
    outside = tmp_path / "outside.warc"
    outside.write_bytes(b"secret")
    with stores.one(), monkeypatch.context() as patch:
        patch.setattr(type(place), "open_store", None)
        assert archive.bytes_.read(str(outside), 0) is None
    stores.close()
