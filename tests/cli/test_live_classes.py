"""The static classifier in a live crawl: classes, model and parameters of policies."""

import io
import json
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from recrawl.app.predict.class_models import FirstClasses, StoredClasses, classes_bytes, labels_of, read_classes, trees
from recrawl.app.predict.model_training import renewed
from recrawl.app.predict.model_use import first_classes
from recrawl.app.workspace.policy_parameters import PARAMETERS, ignored_settings
from recrawl.app.workspace.settings import ScheduleSettings
from recrawl.app.workspace.workspace import open_workspace
from recrawl.app.workspace.workspace_wiring import WorkspaceFits, policy_of
from recrawl.crawl.control.worker_registry import registered_workers
from recrawl.errors import ConfigError, InputError
from recrawl.model import Pages, Verdict, Visits
from recrawl.predict.feature_extraction import first_sight
from recrawl.schedule.policies.by_interval import ByInterval
from recrawl.schedule.policies.historic_classes import CLASS
from recrawl.time import DAY, HOUR

NOW = 1_700_000_000.0


def urls_of(count):
    """Pages of news, which change daily, and of an archive, which change monthly."""
    return [f"http://a.example/{('news', 'archive')[number % 2]}/page-{number}" for number in range(count)]


@pytest.fixture
def observed(workspace):
    """A workspace with 120 pages that were visited for 60 days."""
    place = open_workspace(workspace, {"schedule.policy": "historic-classes", "predict.train_from": 100})
    rng = np.random.default_rng(1)
    with place.open_store() as store:
        pages = store.discover(urls_of(120), NOW)
        visits = []
        for number, page in enumerate(pages.tolist()):
            at = NOW + np.arange(0.0, 60.0, 2.0) * DAY + number
            changed = rng.random(len(at)) < -np.expm1(-2.0 * (1.0, 1 / 30)[number % 2])
            verdict = np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED)
            verdict[0] = Verdict.UNKNOWN
            visits.append(Visits.of(np.full(len(at), page), at, verdict=verdict))
        store.record(Visits.concatenate(visits))
    return place


# -- parameters of policies -------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", sorted(PARAMETERS))
def test_every_parameter_reaches_its_policy(policy):
    said = {"theta": "0.6", "window": "90d", "horizon": "2d", "start": "3d", "shortest": "2d", "longest": "5d"}
    given = {key: said[key] for key in PARAMETERS[policy]}
    made = policy_of(ScheduleSettings(policy=policy, **given))
    usual = policy_of(ScheduleSettings(policy=policy))
    for one in (made, usual):
        one.add(Pages.of(np.arange(3)))
        one.tell(Visits.of([0, 0, 0], NOW + np.array([0.0, 8.0, 16.0]) * DAY, verdict=[0, 2, 2]))
        one.fit(0.1 / DAY, NOW + 16 * DAY)
    assert made.name == usual.name == policy
    assert not np.array_equal(made.due(np.arange(1), NOW), usual.due(np.arange(1), NOW))


def test_intervals_stay_within_the_bounds_that_are_set():
    policy = policy_of(ScheduleSettings(policy="fix", shortest="10s", start="40s", longest="50s"))
    policy.add(Pages.of([1]))
    policy.tell(Visits.of([1] * 9, NOW + np.arange(9.0), verdict=[0] + [1] * 8))
    assert policy.intervals(np.array([1])) == [50.0]
    policy.tell(Visits.of([1] * 20, NOW + np.arange(10.0, 30.0), verdict=[2] * 20))
    assert policy.intervals(np.array([1])) == [10.0]


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("theta", "1", "no probability"),
        ("window", "0", "not above 0"),
        ("start", "fast", "duration"),
        ("classes", "3d 1d", "no classes"),
        ("classes", "1d", "no classes"),
        ("windows", "3 0", "no numbers of visits"),
        ("shortest", "10x", "duration"),
    ],
)
def test_values_that_make_no_sense_are_refused(workspace, key, value, reason):
    with pytest.raises(ConfigError, match=reason):
        open_workspace(workspace, {f"schedule.{key}": value})


def test_bounds_that_leave_nothing_between_them_are_refused(workspace):
    with pytest.raises(ConfigError, match=r"schedule\.start .* is longer than schedule\.longest"):
        open_workspace(workspace, {"schedule.start": "9d", "schedule.longest": "8d"})


def test_a_key_that_the_policy_ignores_is_warned_of(run, workspace):
    def ignored(**flags):
        flags = {f"schedule.{key}": value for key, value in flags.items()}
        return re.findall(r"schedule\.(\w+) is set", " ".join(
            ignored_settings(open_workspace(workspace, flags).configuration)))  # fmt: skip

    assert ignored(policy="fix", theta="0.5", start="2d") == ["theta"]
    assert ignored(policy="hacs", theta="0.5", horizon="2d") == ["theta"]
    assert ignored(policy="bayes-classes", classes="1d 2d", windows="3") == ["windows"]
    assert ignored(shortest="1h", objective="links", links="internal", min_interval="2h") == ["shortest"]
    assert ignored(policy="nutch", min_interval="2h", max_interval="9d") == ["max_interval", "min_interval"]
    assert ignored(policy="fix", theta="default") == []
    run("add", "-w", workspace, "http://a.org/")
    said = run("plan", "-w", workspace, "--set", "schedule.policy=fix", "--set", "schedule.theta=0.5")
    assert "schedule.theta is set (flag) and has no effect: the policy fix does not read it." in said.stderr
    assert run("plan", "-w", workspace, "--set", "schedule.policy=fix").stderr == ""


# -- classes ------------------------------------------------------------------------------------------------------


def test_classes_are_those_of_the_pages_and_pages_start_in_the_predicted_one(observed):
    with observed.open_store() as store:
        assert first_classes(observed, store) is None
        assert renewed(observed, store) == "The first model of changes was trained, from 120 pages."
        assert renewed(observed, store) == ""
        first = first_classes(observed, store)
        assert first.interval[0] < 2 * DAY < 10 * DAY < first.interval[-1]
        policy = policy_of(observed.configuration.settings.schedule, first_classes=first)
        new = store.pages(store.discover([f"http://a.example/{one}/page-777" for one in ("news", "archive")], NOW))
        policy.add(new)
        news, archive = policy.intervals(new.id).tolist()
        assert news < 3 * DAY < archive
        assert first_classes(observed, store, NOW) is None  # as of a time before the training


def test_classes_of_the_settings_are_what_the_trees_learn(observed):
    place = open_workspace(observed.folder, {**observed.flags, "schedule.classes": "2d 40d", "schedule.windows": "4"})
    with place.open_store() as store:
        renewed(place, store)
        first = first_classes(place, store)
        assert first.interval.tolist() == [2 * DAY, 40 * DAY]
        policy = policy_of(place.configuration.settings.schedule, first_classes=first)
        pages = store.pages()
        policy.add(pages)
        assert set(policy.intervals(pages.id)) == {2 * DAY, 40 * DAY}
        fast = np.array(["news" in url for url in store.urls(pages.id)])
        assert (policy.state(pages.id, CLASS)[fast] == 0).mean() > 0.9
        other = ScheduleSettings(policy="historic-classes", classes="1h 2h 3h")
        policy = policy_of(other, first_classes=first)  # trained for other classes: by chance
        policy.add(pages)
        assert set(policy.intervals(pages.id)) == {HOUR, 2 * HOUR, 3 * HOUR}


def test_a_fit_process_takes_the_first_model_and_a_restart_gives_the_same_schedule(observed):
    flags = {**observed.flags, "fetch.contact": "me@example.org"}
    with WorkspaceFits(observed.folder, flags)() as parts:
        assert not parts.outdated()
        with observed.open_store() as store:
            renewed(observed, store)
        assert parts.outdated()
    due = []
    for _ in range(2):  # another worker, or the same after a restart
        with WorkspaceFits(observed.folder, flags)() as parts:
            pages, visits = parts.store.pages(), parts.store.visits().sorted()
            parts.scheduler.add(pages)
            parts.scheduler.tell(visits)
            due.append(parts.scheduler.due(pages.id, NOW + 60 * DAY))
            assert not parts.outdated()
            assert isinstance(parts.scheduler.policy, ByInterval)
    assert np.array_equal(*due)


def test_predict_status_says_what_is_in_use_and_how_good_it_is(run, observed):
    flags = ("-w", observed.folder, "--set", "schedule.policy=historic-classes", "--set", "predict.train_from=150")
    said = run("predict", "status", *flags).stdout
    assert "none yet" in said
    assert "120 pages with two or more observations; a run trains the first model from 150 on." in " ".join(
        said.split()
    )
    assert run("predict", "train", *flags).returncode == 0
    said = " ".join(run("predict", "status", *flags).stdout.split())
    assert "default, in use" in said
    assert "historic-classes: pages start in the class that it predicts" in said
    assert "Classes of change: " in said
    found = json.loads(run("predict", "status", *flags, "--json").stdout)
    score = found["model"]["classes"]
    assert found["starts_pages"]
    assert score["wrong"] < score["commonest"] < 1
    assert sum(score["pages"]) == 120
    other = run("predict", "status", "-w", observed.folder, "--set", "predict.model=other").stdout
    assert "none yet" in other


def test_a_stored_tree_says_what_the_trained_one_does_and_a_damaged_one_is_refused():
    urls = urls_of(200)
    table = first_sight(np.arange(200), urls)
    label = np.array([number % 2 for number in range(200)])
    model = trees(table, label, np.array([DAY, 30 * DAY]))
    content = classes_bytes(StoredClasses(model, label))
    again = read_classes(content)
    assert np.array_equal(again.model.classes(table), model.classes(table))
    assert np.array_equal(again.model.classes(table), label)
    first = FirstClasses(again, np.arange(200), lambda ids: [f"http://a.example/news/{one}" for one in ids])
    assert first(Pages.of([199, 500, 3])).tolist() == [1, 0, 1]
    rng = np.random.default_rng(1)
    for _ in range(40):
        broken = bytearray(content)
        broken[int(rng.integers(len(broken)))] ^= 0xFF
        try:
            found = read_classes(bytes(broken))
        except InputError:
            continue
        assert set(found.model.classes(table)) <= {0, 1}
    arrays = dict(np.load(io.BytesIO(content)))
    arrays["found/tree/left"] = np.zeros_like(arrays["found/tree/left"])  # a tree without end
    file = io.BytesIO()
    np.savez(file, **arrays)
    with pytest.raises(InputError, match="damaged"):
        read_classes(file.getvalue())


def test_classes_are_the_best_clusters_of_logarithms():
    every, label = labels_of(np.array([1.0, 1.01, 0.001, 0.0011, 10.0, 1e-6]), None)
    assert len(every) == 4
    assert label[0] == label[1] != label[2] == label[3]
    assert (label[4], label[5]) == (0, 3)


# -- live ---------------------------------------------------------------------------------------------------------


class _Answers(BaseHTTPRequestHandler):
    """60 pages, linked from the first: those of even numbers differ at every request, the others never."""

    def do_GET(self):
        self.server.asked += 1
        number = self.path.removeprefix("/page-").removesuffix(".html")
        links = "".join(f'<a href="/page-{one}.html">{one}</a> ' for one in range(60)) if self.path == "/" else ""
        story = f"Story {self.server.asked} of the day." if number.isdigit() and not int(number) % 2 else "As ever."
        body = f"<p>{story * 9}</p>{links}".encode()
        self.send_response(200 if number.isdigit() or self.path == "/" else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments):
        """Say nothing."""


@pytest.fixture
def site():
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    server.asked = 0
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.slow
def test_a_run_trains_the_first_model_in_a_process_beside_it_and_starts_pages_by_it(run, workspace, site, tmp_path):
    """Two workers: only one of them trains. What they cost is measured."""
    settings = {
        "schedule.policy": "historic-classes", "schedule.classes": "2s 8s", "schedule.budget": "60/s",
        "schedule.discovery_share": "1", "predict.train_from": "40", "politeness.min_delay": "0",
        "politeness.factor": "0", "politeness.ip_delay": "0", "fetch.contact": "me@example.org",
        "fetch.allow_networks": "127.0.0.1", "detect.confirm_changes": "no",
    }  # fmt: skip
    flags = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    run("add", "-w", workspace, site)
    command = [sys.executable, "-m", "recrawl", "run", "-w", str(workspace), "--for", "3min", *flags]

    place = open_workspace(workspace, settings)

    def watched():
        with place.open_store() as store:
            return int((store.histories().counts() > 0).sum())

    files = [tmp_path / name for name in ("first", "one", "other")]

    def told():
        return "".join(file.read_text() for file in files if file.exists())

    @contextmanager
    def crawling(file):
        with file.open("wb") as stderr, subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr) as process:
            try:
                yield
            finally:
                process.send_signal(signal.SIGINT)

    with crawling(files[0]):
        wait_until(lambda: watched() >= 45)
    with crawling(files[1]), crawling(files[2]):
        wait_until(lambda: "model of changes was trained" in told() or "could not be" in told())
    said = told()
    assert said.count("The first model of changes was trained") == 1
    assert "could not be updated" not in said
    found = json.loads(run("predict", "status", "-w", workspace, *flags, "--json").stdout)
    assert found["starts_pages"]
    assert found["model"]["classes"]["intervals"] == [2.0, 8.0]
    measured = json.loads(run("plan", "capacity", "-w", workspace, *flags, "--json").stdout)
    assert measured["visits_measured"] >= 200
    assert 0 <= measured["parse_seconds_per_visit"] < measured["cpu_seconds_per_visit"]
    with place.open_store() as store:
        assert not registered_workers(store.controls())


def wait_until(condition):
    """For two minutes at most."""
    for _ in range(120):
        if condition():
            return
        time.sleep(1.0)
    pytest.fail("it did not come about in two minutes")
