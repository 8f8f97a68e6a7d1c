"""What the dashboard lets others do: captures and comparisons in other processes, and orders to crawls that run."""

import json
import threading
from dataclasses import replace

import numpy as np
import pytest

from recrawl.app.site_capture import report_lines
from recrawl.app.workspace.workspace import open_workspace
from recrawl.crawl.clock import RealClock
from recrawl.crawl.control import runtime_limits
from recrawl.crawl.site_capture.capture_course import report_json, report_of
from recrawl.crawl.site_capture.capture_order import CaptureOrder
from recrawl.errors import ConfigError, InputError
from recrawl.model import Outcome, Verdict, Visits
from recrawl.simulate.sites import tree_site
from recrawl.store.store_values import FoundPages, SiteProgress, SiteStep
from recrawl.time import DAY, HOUR
from recrawl.web.dashboard.capture_views import CaptureRequest, captures_views, course
from recrawl.web.dashboard.child_processes import CaptureProcesses, CompareProcess, panels
from recrawl.web.dashboard.routes import CheckedParameters
from recrawl.web.dashboard.settings_view import WorkspaceControls
from recrawl.web.dashboard.stale_cache import StorePool
from recrawl_testweb.fault_injection import FaultProfile
from recrawl_testweb.virtual_web_server import VirtualWebServer

FLAGS = {"fetch.contact": "me@example.org", "fetch.allow_networks": "127.0.0.0/8 ::1", "politeness.factor": "0"}
PATIENCE = 120.0


def wait_until(is_so):
    """Look again and again: how long it takes is up to the machine."""
    pause, waited = threading.Event(), 0.0
    while not is_so():
        assert waited < PATIENCE
        pause.wait(0.05)
        waited += 0.05


@pytest.fixture(scope="module")
def home():
    now, rng = RealClock().now(), np.random.default_rng(2)
    web = tree_site("site", np.full(12, 1e-9), start=now - HOUR, end=now + HOUR, rng=rng, outdegree=4)
    with VirtualWebServer(
        replace(web, hosts=("site.localhost",)), RealClock(), fault_profile=FaultProfile.none()
    ) as living:
        yield living.seeds()[0]


@pytest.fixture
def place(workspace):
    return open_workspace(workspace, FLAGS)


@pytest.fixture
def captures(place):
    made = CaptureProcesses(place, RealClock().now)
    yield made
    made.close()


def state(captures):
    return captures.works()[0].state


def test_a_capture_is_begun_and_stopped(place, captures, home):
    with place.open_store() as store:
        site = captures.begin(CaptureRequest(home, "bfs-lifo", "1h"))
        wait_until(store.site_captures)
        with pytest.raises(ConfigError, match="runs already"):
            captures.begin(CaptureRequest(home, "bfs", "5ms"))
        assert captures.stop(site)
        wait_until(lambda: state(captures) != "running" and state(captures) != "stopping")
        assert state(captures) == "stopped"
        assert "recrawl capture --resume" in captures.works()[0].said
        assert not captures.stop(site)
        [capture] = store.site_captures()
        assert not capture.is_finished


def test_a_capture_that_ends_by_itself_says_how_good_it_is(place, captures, home):
    captures.begin(CaptureRequest(home, "bfs-lifo", "0.005"))
    wait_until(lambda: state(captures) != "running")
    assert state(captures) == "done", captures.works()[0].said
    with place.open_store() as store:
        [capture] = store.site_captures()
        words = captures.stated(capture)
        counts = store.site_counts(capture.id)
    assert "12 pages found" in words[0]
    assert (counts.pages, counts.visited, counts.seen_again) == (12, 12, 12)


def test_a_capture_that_cannot_be_says_why(captures):
    captures.begin(CaptureRequest("http://127.0.0.1:9/", "sharc-offline", ""))
    wait_until(lambda: state(captures) != "running")
    assert state(captures) == "failed"
    assert captures.works()[0].said


@pytest.mark.parametrize(
    ("site", "strategy", "delay", "error"),
    [
        ("--list", "bfs", "", InputError),
        ("file:///etc/passwd", "bfs", "", InputError),
        ("http://a.example/", "bfs", "nan", ConfigError),
        ("http://a.example/", "bfs", "-1", ConfigError),
        ("http://a.example/", "bfs", "soon", ConfigError),
        ("http://a.example/", "--restart", "", ConfigError),
    ],
)
def test_orders_that_make_no_sense_begin_nothing(captures, site, strategy, delay, error):
    with pytest.raises(error):
        captures.begin(CaptureRequest(site, strategy, delay))
    assert captures.works() == []


def test_the_dashboard_takes_its_captures_with_it(place, captures, home):
    captures.begin(CaptureRequest(home, "bfs", "1h"))
    with place.open_store() as store:
        wait_until(store.site_captures)
    child = captures._children[home]
    captures.close()
    assert child.code is not None
    assert captures.works() == []


def test_policies_are_compared_and_kept(place):
    with place.open_store() as store:
        ids = store.discover([f"http://a.example/{number}" for number in range(12)], 0.0)
        times = np.arange(1, 31) * DAY
        for number, page in enumerate(ids.tolist()):
            changed = np.arange(30) % (2 + number % 5) == 0
            verdict = np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED)
            store.record(Visits.of(np.full(30, page), times, verdict=verdict))
    comparing = CompareProcess(place, lambda: 50.0, ["--repeats=1", "--policy=uniform", "--tick=1d"])
    assert comparing.standing().found is None
    assert not comparing.stop()
    comparing.begin(6.0)
    with pytest.raises(ConfigError, match="runs already"):
        comparing.begin(None)
    assert comparing.standing().running_since == 50.0
    wait_until(lambda: comparing.standing().running_since is None)
    standing = comparing.standing()
    assert standing.error == ""
    found = standing.found
    assert found["visits_a_day"] == pytest.approx(6.0)
    assert found["made"] == 50.0
    assert found["in_use"] in found["headline"]
    again = CompareProcess(place, lambda: 99.0)
    assert again.standing().found == found
    caught, current = panels(found["budgets"])
    assert {series["name"] for series in caught["data"]["series"]} == {row["policy"] for row in found["policies"]}
    assert all(len(series["x"]) == 5 for series in current["data"]["series"])


def test_a_comparison_without_a_past_says_so(place):
    comparing = CompareProcess(place, lambda: 50.0)
    comparing.begin(None)
    wait_until(lambda: comparing.standing().running_since is None)
    standing = comparing.standing()
    assert standing.found is None
    assert "observed twice" in standing.error


def test_limits_and_pauses_reach_the_store(place):
    stores = StorePool(place.open_store)
    told = WorkspaceControls(place, stores, lambda: 7.0)
    with stores.one() as store:
        store.discover(["http://a.example/"], 1.0)
    told.limit("schedule.budget", "500/h")
    held = {one.key: one for one in told.held()}
    assert held["schedule.budget"].limited
    assert held["schedule.budget"].live
    assert held["schedule.budget"].origin.startswith("limit")
    assert not held["store.location"].live
    with stores.one() as store:
        assert runtime_limits.limits(store.controls()) == {"schedule.budget": "500/h"}
    with pytest.raises(ConfigError, match="there is no such setting"):
        told.limit("a.b", "1")
    with pytest.raises(ConfigError, match="read when a run starts"):
        told.reset("store.location")
    with pytest.raises(ConfigError):
        told.limit("schedule.budget", "many")
    told.reset("schedule.budget")
    told.pause("", paused=True)
    told.pause("a.example", paused=True)
    assert (told.pauses().paused, told.pauses().hosts) == (True, ["a.example"])
    told.pause("", paused=False)
    told.pause("a.example", paused=False)
    assert (told.pauses().paused, told.pauses().hosts) == (False, [])
    with pytest.raises(InputError):
        told.pause("nobody.example", paused=True)
    with stores.one() as store:
        assert runtime_limits.limits(store.controls()) == {}
    stores.close()


def test_passwords_of_the_store_are_not_shown(workspace):
    place = open_workspace(workspace, FLAGS)
    stores = StorePool(place.open_store)
    secret = replace(place, flags={**FLAGS, "store.location": "postgresql://me:secret@db.example/x"})
    shown = WorkspaceControls(secret, stores, lambda: 7.0).held()
    assert not any("secret" in one.value for one in shown)
    assert any("db.example" in one.value for one in shown)
    stores.close()


def test_a_long_course_is_thinned_out():
    steps = [SiteStep(step, step % 5, step >= 5_000, 10.0 + step, 0, 1) for step in range(0, 10_000, 3)]
    drawn = course(steps, 10.0, 3)
    points = sum(len(series["x"]) for series in drawn["data"]["series"])
    assert points == len(steps)
    assert "of 3 steps" in drawn["words"]


class Told:
    """A store that has told how a capture is; whoever asks for all of its steps is turned away."""

    def __init__(self, store):
        self._store, self.steps, self.counted = store, 0, 0

    def latest_site_captures(self, before, limit):
        return self._store.latest_site_captures(before, limit)

    def site_captures(self, **which):
        return self._store.site_captures(**which)

    def site_counts(self, capture):
        self.counted += 1
        return self._store.site_counts(capture)

    def site_steps(self, capture, every):
        found = self._store.site_steps(capture, every)
        self.steps += len(found)
        return found

    def close(self):
        self._store.close()


def test_a_long_capture_is_shown_from_what_is_stored_of_it(place, captures):
    """As ``recrawl capture`` says it, from a few of its steps, which are counted once."""
    pages = 9_000
    order = CaptureOrder(site="http://a.example/", strategy="bfs-lifo", delay=0.5, max_pages=None)
    with place.open_store() as store:
        ids = store.discover([f"http://a.example/{number}" for number in range(pages)], 1.0)
        known = FoundPages(ids, np.full(pages, -1), np.full(pages, 1e-6), np.ones(pages))
        number = store.begin_site_capture(order.site, order.as_json(), delay=0.5, now=1.0, known=known)
        [capture] = store.site_captures()
        seen = SiteStep(0, 0, revisit=False, time=2.0, outcome=Outcome.FETCHED, verdict=Verdict.UNKNOWN)
        none = FoundPages(ids[:0], ids[:0], known.rate[:0], known.weight[:0])
        store.record(Visits.of(ids[:1], [2.0]), site=SiteProgress(number, seen, none, known=pages))
        report = report_of(store, replace(capture, finished=99.0))
        stored = {**report_json(report, store.urls), "observations": 2 * pages}
        store.finish_site_capture(number, json.dumps(stored), 99.0)
        [capture] = store.site_captures()
        words = report_lines(store, report_of(store, capture))
    told = Told(place.open_store())
    stores = StorePool(lambda: told)
    every_capture, one_capture, _ = captures_views(stores, captures, lambda: 100.0)
    shown = one_capture.answer(CheckedParameters({"capture": number}, 100.0))
    assert shown["words"] == words
    assert "9,000 pages found" in words[0]
    assert told.steps == 1
    assert "of 5 steps" in shown["figures"][1]["words"]
    assert every_capture.answer(CheckedParameters({"before": None, "limit": 50}, 100.0))["captures"] == [
        shown["capture"]
    ]
    assert told.counted == 1
    stores.close()
