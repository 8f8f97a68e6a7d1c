"""Health checks and metrics of a worker: what is told of now, what is left out, and clients that mean harm."""

import http.client
import json
import shutil
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from recrawl.crawl.control.health import (
    BEAT_EVERY,
    LEAST_ROOM,
    LOOP_DEAD,
    LOOP_LATE,
    STALE_AFTER,
    STALLED,
    START_DEAD,
    HealthMonitor,
)
from recrawl.crawl.control.metrics import (
    HEALTH_GAUGES,
    STORE_GAUGES,
    WORKER_GAUGES,
    CrawlStats,
    Metrics,
    MetricsServer,
    served,
)
from recrawl.errors import StoreAwayError, StoreError
from recrawl.model import Outcome, Visit, Visits
from recrawl.model.visits import REFUSED_BY_ROBOTS
from recrawl.store.store_values import DueBacklog

NOW = 1.79e9


class Steady:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def __call__(self) -> float:
        return self.seconds


class FakeStore:
    """As much of a store as a probe asks."""

    def __init__(self) -> None:
        self.fault: Exception | None = None
        self.counting: Exception | None = None
        self.told: Mapping[str, str] = {}
        self.resting = 0
        self.visited: list[float] = []

    def __call__(self):
        if self.fault is not None:
            raise self.fault
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        return None

    def controls(self):
        return self.told

    def backlog(self, now):
        if self.counting is not None:
            raise self.counting
        return DueBacklog(7, 2, now - 60.0, self.resting)

    def latest_visits(self, limit):
        return Visits.of(np.ones(len(self.visited[:limit]), np.int64), np.array(self.visited[:limit]))


@pytest.fixture
def steady():
    return Steady()


@pytest.fixture
def store():
    return FakeStore()


@pytest.fixture
def health(tmp_path, steady, store):
    return HealthMonitor("w", tmp_path, store, lambda: NOW, monotonic=steady)


def stats(**changes):
    calm = {
        **dict.fromkeys(("underway", "in_hand", "due", "held", "hosts_resting", "fits", "archived"), 0),
        **dict.fromkeys(("now", "next_due"), NOW),
        **dict.fromkeys(("late", "budget", "left"), 5.0),
        "workers": 3,
        "first": True,
        "price": None,
        "paused": False,
        "events": {"info": 4},
    }
    return CrawlStats(**(calm | changes))


def told(metrics):
    return {family.name: family.samples[0].value for family in metrics.collect()}


def test_a_worker_that_starts_is_alive_and_not_ready(health):
    assert health.liveness().status == 200
    assert (health.readiness().status, health.readiness().facts["status"]) == (503, "starting")


def test_a_worker_at_work_is_ready(health):
    health.probe()
    health.beat()
    health.ready()
    health.acknowledged()
    answer = health.readiness()
    assert (answer.status, answer.facts["reasons"]) == (200, [])
    assert (answer.facts["last_visit"], answer.facts["seconds_since_last_visit"]) == ("2026-09-21T14:13:20Z", 0.0)
    assert answer.facts["disk_free_bytes"] > 0


def test_a_loop_that_stands_still_is_not_ready_and_then_not_alive(health, steady, store):
    health.ready()
    for lag, ready, alive in ((LOOP_LATE - 1, 200, 200), (LOOP_LATE + 1, 503, 200), (LOOP_DEAD + 1, 503, 503)):
        health.beat()
        steady.seconds += BEAT_EVERY + lag
        health.probe()
        assert health.loop_lag() == pytest.approx(lag)
        assert (health.readiness().status, health.liveness().status) == (ready, alive)
    assert "stood still for 61 s" in health.liveness().facts["reasons"][0]


def test_a_start_that_never_ends_is_not_ready_and_not_alive_for_ever(health, steady):
    steady.seconds += 400.0
    health.beat()
    health.probe()
    assert "The worker is starting, for 400 s." in health.readiness().facts["reasons"]
    assert health.liveness().status == 200  # its loop turns: it waits for something
    steady.seconds += LOOP_DEAD + 10.0
    assert health.liveness().status == 200  # loading may take so long
    steady.seconds += START_DEAD
    assert health.liveness().status == 503


@pytest.fixture
def crawl(health, steady):
    """Lets time pass in a crawl whose loop turns and whose store is probed; gives readiness at the end of it."""
    metrics = Metrics(health)
    health.ready()

    def passes(seconds, **changes):
        for _ in range(int(seconds // 5)):
            steady.seconds += 5.0
            metrics.show(stats(**changes))
            health.beat()
            health.probe()
        return health.readiness()

    passes.metrics = metrics
    return passes


def test_a_crawl_that_has_pages_to_visit_and_makes_no_visit_is_not_ready(crawl, health, store):
    assert crawl(STALLED - 10.0).status == 200
    answer = crawl(30.0)
    assert answer.status == 503
    assert "Pages may be visited, and no visit was acknowledged for 9" in answer.facts["reasons"][0]
    assert health.readiness(of_crawl=False).status == 200
    assert health.liveness().status == 200
    crawl.metrics.add([])  # a visit was acknowledged
    assert crawl(5.0).status == 200
    assert crawl(STALLED + 10.0).status == 503
    store.visited = [NOW]  # by another worker
    assert crawl(5.0).status == 200


@pytest.mark.parametrize(
    ("changes", "resting"), [({"paused": True}, 0), ({"left": 0.2}, 0), ({}, 5), ({"first": False}, 0)]
)
def test_a_crawl_that_may_not_visit_anything_is_ready_though_no_visit_is_made(crawl, store, changes, resting):
    store.resting = resting
    assert crawl(3 * STALLED, **changes).status == 200
    if "first" in changes:  # what is due may be for others, but not the requests that it has under way
        assert crawl(2 * STALLED, underway=1, **changes).status == 503


def test_a_store_that_answers_no_more_is_away_after_a_while_although_the_probe_still_waits(health, steady):
    health.ready()
    health.probe()
    assert health.store_error() == ""
    steady.seconds += STALE_AFTER + 5.0
    health.beat()
    assert health.found is None
    assert health.store_error() == "It has not answered for 25 s."
    assert health.readiness().status == 503


@pytest.mark.parametrize("fault", [StoreAwayError("It is gone."), StoreError("Damaged."), RuntimeError("a driver's")])
def test_whatever_is_wrong_with_the_store_the_probe_says_so_and_goes_on(health, store, fault):
    health.ready()
    store.fault = fault
    health.probe()
    assert "out of reach" in health.readiness().facts["reasons"][0]
    store.fault = None
    health.probe()
    assert health.readiness().status == 200


def test_a_disk_that_is_full_or_gone_is_told(health, monkeypatch):
    health.ready()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=LEAST_ROOM - 1))
    health.probe()
    assert health.readiness().facts["reasons"] == ["The disk has 99,999,999 bytes of room."]

    def gone(_folder):
        raise OSError(5, "no such device")

    monkeypatch.setattr(shutil, "disk_usage", gone)
    health.probe()
    assert health.readiness().facts["reasons"] == ["The disk cannot be asked for its room."]


def test_a_crawl_that_waits_says_what_for(health):
    health.probe()
    health.ready(lambda: "The disk is full.")
    assert health.readiness().facts["reasons"] == ["The crawl waits: The disk is full."]


def test_gauges_are_of_now_or_not_there(health, steady, store):
    metrics = Metrics(health)
    health.ready()
    assert told(metrics)["recrawl_store_up"] == 0.0  # nobody has asked it yet
    metrics.show(stats())
    health.probe()
    health.beat()
    assert set(told(metrics)) >= {f"recrawl_{name}" for name in (*WORKER_GAUGES, *STORE_GAUGES) if name != "price"}
    assert (told(metrics)["recrawl_due_pages"], told(metrics)["recrawl_late_seconds"]) == (7.0, 60.0)
    assert told(metrics)["recrawl_workers"] == 3.0

    store.fault = StoreAwayError("It is gone.")
    health.probe()
    assert told(metrics)["recrawl_store_up"] == 0.0
    assert not {f"recrawl_{name}" for name in STORE_GAUGES} & set(told(metrics))
    assert "recrawl_requests_underway" in told(metrics)  # that is known without the store

    steady.seconds += STALE_AFTER + 1.0  # the event loop stands still, and the probe with it
    left = set(told(metrics)) & {f"recrawl_{name}" for name in (*WORKER_GAUGES, *STORE_GAUGES, *HEALTH_GAUGES)}
    assert left == {"recrawl_store_up", "recrawl_loop_lag_seconds"}
    assert told(metrics)["recrawl_loop_lag_seconds"] > STALE_AFTER - BEAT_EVERY
    assert told(metrics)["recrawl_events"] == 4.0  # a counter is right as long as it does not fall


def test_one_worker_tells_of_the_store_and_only_while_it_is_the_first(health, store):
    metrics = Metrics(health)
    metrics.show(stats(first=False))
    health.probe()
    assert told(metrics)["recrawl_store_up"] == 1.0
    assert "recrawl_due_pages" not in told(metrics)
    metrics.show(stats(first=True))
    health.probe()
    assert "recrawl_due_pages" in told(metrics)
    metrics.show(stats(first=False))  # at once, not after the next probe
    assert "recrawl_due_pages" not in told(metrics)


def test_a_store_that_cannot_count_in_time_is_up_all_the_same(health, store):
    metrics = Metrics(health)
    metrics.show(stats())
    store.counting = StoreError("It did not answer within 10 s.")
    health.probe()
    assert told(metrics)["recrawl_store_up"] == 1.0
    assert "recrawl_due_pages" not in told(metrics)
    store.counting = StoreAwayError("It is gone.")
    health.reports_for_all = True
    health._count_at = 0.0  # as if a while had passed
    health.probe()
    assert told(metrics)["recrawl_store_up"] == 0.0


def test_visits_are_counted_by_class_of_status_and_what_robots_forbids_apart(health):
    metrics = Metrics(health)
    statuses = [200, 204, 301, 404, 503, 99, 600, 0, -2, REFUSED_BY_ROBOTS, REFUSED_BY_ROBOTS]
    visits = [Visit(1, NOW, Outcome.FETCHED, status=status) for status in statuses]
    metrics.add([SimpleNamespace(visit=visit) for visit in visits])
    families = {family.name: family for family in metrics.registry.collect()}
    responses = {
        sample.labels["class"]: sample.value
        for sample in families["recrawl_responses"].samples
        if sample.name.endswith("_total")
    }
    assert responses == {"1xx": 0.0, "2xx": 2.0, "3xx": 1.0, "4xx": 1.0, "5xx": 1.0}
    assert families["recrawl_robots_refusals"].samples[0].value == 2.0
    assert health.last_visit == NOW


# -- over the wire ---------------------------------------------------------------------------------


@pytest.fixture
def port(health):
    with served(Metrics(health), "127.0.0.1:0") as url:
        yield int(url.rpartition(":")[2].partition("/")[0])


def get(port, path, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    found = answer.status, answer.getheader("content-type"), answer.read().decode()
    connection.close()
    return found


def test_what_is_served_and_nothing_else(port):
    status, kind, text = get(port, "/metrics")
    names = {family.name for family in text_string_to_metric_families(text)}
    assert (status, kind.partition(";")[0]) == (200, "text/plain")
    assert {"recrawl_build_info", "process_cpu_seconds", "process_open_fds", "recrawl_store_up"} <= names
    assert get(port, "/metrics", accept="application/openmetrics-text")[1].startswith("application/openmetrics-text")
    assert json.loads(get(port, "/healthz")[2])["status"] == "ok"
    assert get(port, "/readyz")[0] == 503
    for path in ("/", "/nothing", "/metrics/..", "/../../etc/passwd", "/healthzz"):
        assert get(port, path)[0] == 404
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", "/metrics", "x")
    assert connection.getresponse().status == 501
    connection.close()


def test_clients_that_never_finish_do_not_keep_others_from_an_answer(port):
    """Hundreds of them: half a request line, half a header, nothing at all."""
    slow = []
    for number in range(10 * MetricsServer.most_at_once):
        one = socket.create_connection(("127.0.0.1", port), timeout=60)
        one.sendall((b"GET /metrics HT", b"GET /metrics HTTP/1.1\r\nX-Slow: ", b"")[number % 3])
        slow.append(one)
    for _ in range(3):
        assert get(port, "/metrics")[0] == 200
    many = [thread for thread in threading.enumerate() if "process_request" in thread.name]
    end = time.monotonic() + 60.0  # noqa: TID251 - threads that were told to end do so in real time
    while len(many) > MetricsServer.most_at_once + 3 and time.monotonic() < end:  # noqa: TID251 - likewise
        time.sleep(0.05)
        many = [thread for thread in threading.enumerate() if "process_request" in thread.name]
    assert len(many) <= MetricsServer.most_at_once + 3
    for one in slow:
        one.close()


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % number for number in range(2_000)) + b"\r\n",
        b"GET /metrics HTTP/1.1\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
        b"\x00\xff\xfe\r\n\r\n",
        b"GET /metrics HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n",
        b"GET\r\n\r\n",
    ],
    ids=["long path", "many headers", "long header", "bytes", "version", "TLS", "no path"],
)
def test_requests_that_make_no_sense_are_refused(port, request_):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as one:
        with suppress(OSError):  # it may be refused before all of it is sent
            one.sendall(request_)
            one.shutdown(socket.SHUT_WR)
        said = b""
        try:
            while piece := one.recv(65_536):
                said += piece
        except ConnectionResetError:
            pass  # it was closed before all of it was read
    assert b" 200 " not in said.partition(b"\r\n")[0]
    assert get(port, "/healthz")[0] == 200
