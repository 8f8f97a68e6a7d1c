"""Operating a crawl: pause, limits, budget, slots, lists and metrics, on real processes and a real server."""

import csv
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from prometheus_client.parser import text_string_to_metric_families

from recrawl.app.crawl_run import worker_name
from recrawl.crawl.control.metrics import COUNTERS, HEALTH_GAUGES, STORE_GAUGES, WORKER_GAUGES

pytestmark = pytest.mark.slow

HURRY = (
    *("--set", "politeness.min_delay=0", "--set", "politeness.factor=0", "--set", "politeness.ip_delay=0"),
    *("--set", "fetch.contact=me@example.org", "--set", "fetch.allow_networks=127.0.0.1"),
)
RICH = ("--budget", "100/s", "--set", "schedule.discovery_share=1")
PATIENCE = 120.0
"""Seconds until a test gives up on a process."""


class Site(ThreadingHTTPServer):
    """Pages below /site/, all linked from the first; says who asked for what, and when."""

    def __init__(self, pages: int, delay: float) -> None:
        self.pages, self.delay = pages, delay
        self.asked: list[tuple[float, str]] = []
        super().__init__(("127.0.0.1", 0), Answering)
        self.host = f"127.0.0.1:{self.server_port}"
        self.home = f"http://{self.host}/site/"

    def visits(self) -> list[str]:
        return [path for _, path in list(self.asked) if path.startswith("/site/")]


class Answering(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self):
        self.server.asked.append((time.monotonic(), self.path))  # noqa: TID251 - real processes, real time
        time.sleep(self.server.delay)
        links = "".join(f'<a href="{number}.html">{number}</a> ' for number in range(self.server.pages))
        body = (links if self.path == "/site/" else f"<p>Page {self.path}.").encode()
        there = self.path.startswith("/site/") and not self.path.endswith("broken.html")
        self.send_response(200 if there else 403 if "broken" in self.path else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments):
        """Say nothing."""


@pytest.fixture
def serve():
    """Makes sites: ``serve(pages=12, delay=0.1)``."""
    sites: list[tuple[Site, threading.Thread]] = []

    def make(*, pages: int = 12, delay: float = 0.0) -> Site:
        site = Site(pages, delay)
        thread = threading.Thread(target=site.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        sites.append((site, thread))
        return site

    yield make
    for site, thread in sites:
        site.shutdown()
        thread.join()
        site.server_close()


@pytest.fixture
def crawling(workspace):
    """Starts ``recrawl run`` in processes of their own; those that still run in the end are ended."""
    started: list[subprocess.Popen[str]] = []

    def start(*options: str) -> subprocess.Popen[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RECRAWL_")}  # noqa: TID251 - a child's
        command = [sys.executable, "-m", "recrawl", "run", "-w", str(workspace), *HURRY, *options]
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=workspace.parent
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def until(true: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE  # noqa: TID251 - real processes, real time
    while not true():
        assert time.monotonic() < end, f"waited in vain: {what}"  # noqa: TID251 - real processes, real time
        time.sleep(0.05)


def quiet(site: Site, seconds: float) -> bool:
    return not site.asked or time.monotonic() - site.asked[-1][0] > seconds  # noqa: TID251 - real processes, real time


def read_json(result) -> object:
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.usefixtures("workspace")
def test_a_crawl_that_runs_is_watched_held_limited_and_let_go(run, serve, crawling):
    site = serve(pages=2_000, delay=0.05)
    run("add", site.home, "-w", "ws")
    process = crawling(*RICH, "--metrics", "0")
    address = re.search(r"http://\S+/metrics", process.stderr.readline())[0]
    until(lambda: len(site.visits()) > 5, "the first visits")

    def measured() -> dict[tuple[str, str], float]:
        with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
            families = text_string_to_metric_families(answer.read().decode())
            return {
                (sample.name, sample.labels.get("outcome", "")): sample.value
                for family in families
                for sample in family.samples
            }

    until(lambda: measured().get(("recrawl_visits_total", "fetched"), 0) > 0, "visits in the metrics")
    until(lambda: ("recrawl_due_pages", "") in measured(), "what is true of the whole store")
    names = {name for name, _ in measured()}
    gauges = (*WORKER_GAUGES, *HEALTH_GAUGES, *STORE_GAUGES)
    assert {f"recrawl_{name}" for name in gauges if name != "price"} <= names
    assert {f"recrawl_{name}_total" for name in (*COUNTERS, "events", "received_bytes", "visits")} <= names
    assert {"recrawl_build_info", "process_cpu_seconds_total", "process_resident_memory_bytes"} <= names
    assert {"process_open_fds", "recrawl_responses_total", "recrawl_robots_refusals_total"} <= names
    assert measured()["recrawl_archive_bytes_total", ""] > 0
    assert measured()["recrawl_store_up", ""] == 1.0
    assert measured()["recrawl_budget_visits_per_second", ""] == 100.0

    def at_work() -> list[dict]:
        return read_json(run("status", "-w", "ws", "--json"))["workers"]

    until(lambda: [worker["visits"] > 0 for worker in at_work()] == [True], "a worker that tells of visits")
    assert read_json(run("status", "-w", "ws", "--json"))["visits_last_hour"] > 0

    assert "is paused" in run("pause", "-w", "ws").stdout
    until(lambda: quiet(site, 1.0), "the pause")
    until(lambda: measured()["recrawl_paused", ""] == 1.0, "the pause in the metrics")
    until(lambda: read_json(run("status", "-w", "ws", "--json"))["leased"] == 0, "the end of what was under way")
    assert read_json(run("status", "-w", "ws", "--json"))["paused"]
    before = len(site.visits())

    run("limit", "-w", "ws", "politeness.min_delay=600s", "politeness.max_delay=700s")
    run("resume", "-w", "ws")
    until(lambda: len(site.visits()) > before, "a visit after the pause")
    until(lambda: quiet(site, 1.0), "the longer pause between requests")
    assert len(site.visits()) <= before + 2
    process.terminate()
    assert process.wait(PATIENCE) == 11
    assert at_work() == []


class Monitored:
    """What a run that was started with ``--metrics 0`` tells who watches it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._base = re.search(r"(http://\S+)/metrics", process.stderr.readline())[1]

    def metrics(self) -> dict[str, float]:
        with urllib.request.urlopen(f"{self._base}/metrics", timeout=PATIENCE) as answer:
            families = list(text_string_to_metric_families(answer.read().decode()))
        return {sample.name: sample.value for family in families for sample in family.samples}

    def worker(self) -> str:
        with urllib.request.urlopen(f"{self._base}/metrics", timeout=PATIENCE) as answer:
            return re.search(r'recrawl_build_info\{.*worker="([^"]+)"', answer.read().decode())[1]

    def asked(self, path: str) -> tuple[int, dict]:
        try:
            with urllib.request.urlopen(self._base + path, timeout=PATIENCE) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as answer:
            return answer.code, json.load(answer)


@pytest.fixture(params=["sqlite", "postgresql"])
def breakable(request, tmp_path, run, workspace):
    """A workspace whose store is away within ``with breakable(): …``."""
    if request.param == "sqlite":
        file = workspace / "recrawl.db"

        @contextmanager
        def away():
            file.rename(tmp_path / "elsewhere")
            yield
            (tmp_path / "elsewhere").rename(file)

        yield away
        return
    from psycopg import connect, sql

    with request.getfixturevalue("new_postgres")() as server:
        name = "monitored"
        with connect(server.get_uri("postgres"), autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        shutil.rmtree(workspace)
        assert run("init", "ws", "--set", f"store.location={server.get_uri(name)}").returncode == 0

        @contextmanager
        def away():
            """The server runs, and lets nobody in: as far as a client can see, it is gone."""
            with connect(server.get_uri("postgres"), autocommit=True) as connection:
                connection.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(sql.Identifier(name)))
                connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
            yield
            with connect(server.get_uri("postgres"), autocommit=True) as connection:
                connection.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(sql.Identifier(name)))

        yield away


def test_while_the_store_is_away_nobody_is_told_that_all_is_well(run, serve, crawling, breakable):
    """No value is told as if it were of now, the checks say why, and everything comes back with the store."""
    site = serve(pages=2_000, delay=0.02)
    run("add", site.home, "-w", "ws")
    watched = Monitored(process := crawling(*RICH, "--metrics", "0"))
    until(lambda: watched.metrics().get("recrawl_due_pages", 0) > 0, "the first figures of the store")
    until(lambda: watched.asked("/readyz")[0] == 200, "readiness")
    status, facts = watched.asked("/readyz")
    assert (facts["status"], facts["store_up"], facts["reasons"]) == ("ok", True, [])
    assert facts["disk_free_bytes"] > 0
    until(lambda: watched.asked("/readyz")[1]["last_visit"] is not None, "a visit that is acknowledged")
    assert watched.metrics()["recrawl_last_visit_timestamp_seconds"] > 1e9
    with breakable():
        until(lambda: watched.metrics()["recrawl_store_up"] == 0.0, "word that the store is away")
        told = watched.metrics()
        assert not {f"recrawl_{name}" for name in STORE_GAUGES} & set(told)
        assert told["process_resident_memory_bytes"] > 0
        until(lambda: watched.asked("/readyz")[0] == 503, "a check that fails")
        status, facts = watched.asked("/readyz")
        assert (status, facts["status"], facts["store_up"]) == (503, "failing", False)
        assert any("store" in reason for reason in facts["reasons"])
        assert watched.asked("/healthz")[0] == 200  # nobody is helped if the worker is killed for it
    until(lambda: watched.metrics()["recrawl_store_up"] == 1.0, "word that the store is back")
    until(lambda: "recrawl_due_pages" in watched.metrics(), "figures of the store")
    until(lambda: watched.asked("/readyz")[0] == 200, "readiness again")
    process.terminate()
    assert process.wait(PATIENCE) == 11


@pytest.mark.parametrize("breakable", ["postgresql"], indirect=True)
def test_a_run_that_waits_for_its_store_at_the_start_says_so(run, serve, crawling, breakable):
    site = serve(pages=20)
    run("add", site.home, "-w", "ws")
    with breakable():
        watched = Monitored(process := crawling(*RICH, "--metrics", "0"))
        until(lambda: "store" in str(watched.asked("/readyz")[1]["reasons"]), "the reason")
        assert (watched.asked("/readyz")[0], watched.asked("/readyz")[1]["status"]) == (503, "starting")
        assert watched.asked("/healthz")[0] == 200
        assert watched.metrics()["recrawl_store_up"] == 0.0
    until(lambda: watched.asked("/readyz")[0] == 200, "readiness")
    process.terminate()
    assert process.wait(PATIENCE) == 11


@pytest.mark.usefixtures("workspace")
def test_two_workers_tell_once_what_is_true_of_the_whole_store(run, serve, crawling, workspace):
    """A sum over workers is right, and if the one that told it ends the other does."""
    sites = [serve(pages=400, delay=0.05) for _ in range(2)]
    run("add", *(site.home for site in sites), "-w", "ws")
    first = Monitored(one := crawling(*RICH, "--metrics", "0"))
    until(lambda: first.metrics().get("recrawl_workers") == 1.0, "the first worker")
    second = Monitored(two := crawling(*RICH, "--metrics", "0"))
    until(lambda: first.metrics().get("recrawl_workers") == 2.0, "a first worker that knows of the second")
    run("pause", "-w", "ws")
    until(lambda: first.metrics().get("recrawl_paused") == 1.0, "the pause")
    until(lambda: second.asked("/readyz")[0] == 200, "a second worker at work")

    def due() -> int:
        return read_json(run("status", "-w", "ws", "--json"))["due"]

    def told() -> list[float]:
        return [one["recrawl_due_pages"] for one in (first.metrics(), second.metrics()) if "recrawl_due_pages" in one]

    until(lambda: len(told()) == 1 and sum(told()) == due() > 0, "one figure, and the right one")
    for name in STORE_GAUGES:
        assert [f"recrawl_{name}" in one.metrics() for one in (first, second)] == [True, False], name
    workers = {first.worker(), second.worker()}
    one.terminate()
    assert one.wait(PATIENCE) == 11
    until(lambda: second.metrics().get("recrawl_due_pages") == due(), "the second worker to tell it")
    two.terminate()
    assert two.wait(PATIENCE) == 11
    lines = [json.loads(line) for line in (workspace / "recrawl.log").read_text().splitlines()]
    assert {line["worker"] for line in lines} == workers


@pytest.mark.usefixtures("workspace")
def test_two_runs_in_the_same_slot_visit_every_page_once(run, serve, crawling):
    sites = [serve(pages=15, delay=0.02) for _ in range(3)]
    run("add", *(site.home for site in sites), "-w", "ws")
    both = [crawling(*RICH, "--once", "--for", "60s") for _ in range(2)]
    said = [process.communicate(timeout=2 * PATIENCE) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    for site in sites:
        assert sorted(site.visits()) == sorted(["/site/", *(f"/site/{number}.html" for number in range(15))])
    made = [int(re.search(r"([\d,]+) visits", out)[1]) for out, _ in said]
    assert sum(made) == 3 * 16


@pytest.mark.usefixtures("workspace")
def test_a_slot_that_is_too_short_leaves_the_rest_to_the_next(run, serve):
    site = serve(pages=40, delay=0.5)
    run("add", site.home, "-w", "ws")
    first = run("run", "-w", "ws", *HURRY, *RICH, "--once", "--for", "8s")
    assert first.returncode == 0, first.stderr
    assert len(site.visits()) < 41
    site.delay = 0.0
    assert run("run", "-w", "ws", *HURRY, *RICH, "--once", "--for", "60s").returncode == 0
    assert sorted(site.visits()) == sorted(["/site/", *(f"/site/{number}.html" for number in range(40))])


@pytest.mark.usefixtures("workspace")
def test_once_goes_on_while_a_host_only_rests_between_two_requests(run, serve):
    """More pages than are leased from a host at once, and a pause of some tenths of a second after each."""
    site = serve(pages=24, delay=0.02)
    run("add", site.home, "-w", "ws")
    ran = run("run", "-w", "ws", *HURRY, "--set", "politeness.factor=5", *RICH, "--once", "--for", "100s")
    assert len(site.visits()) == 25
    assert "Ended because nothing more is due that may be visited now, 0 pages due." in ran.stdout.splitlines()[-1]


@pytest.mark.usefixtures("workspace")
def test_the_last_line_says_why_a_run_ended_and_how_much_is_due(run, serve):
    site = serve(pages=24)
    run("add", *(f"{site.home}{number}.html" for number in range(24)), "-w", "ws")
    slow = ("--set", "politeness.min_delay=30s", "--set", "politeness.max_delay=30s")
    ran = run("run", "-w", "ws", *HURRY[4:], *slow, *RICH, "--for", "8s")
    assert ran.returncode == 0, ran.stderr
    last = ran.stdout.splitlines()[-1]
    assert last.startswith(
        ("Ended because its time is over, ", "Ended before the first visit because its time is over")
    )
    due = read_json(run("status", "-w", "ws", "--json"))["due"]
    assert due >= 22
    assert f", {due} pages due" in last


@pytest.mark.usefixtures("workspace")
def test_no_more_visits_are_made_than_the_budget_allows_over_all_runs(run, serve):
    site = serve(pages=30)
    run("add", site.home, "-w", "ws")
    capped = ("--budget", "6/h", "--set", "schedule.discovery_share=1")
    first = run("run", "-w", "ws", *HURRY, *capped, "--once", "--for", "60s")
    assert "6 visits" in first.stdout
    assert re.match(r"The budget is spent, \d+ pages due", first.stdout.splitlines()[-1])
    again = run("run", "-w", "ws", *HURRY, *capped, "--once", "--for", "60s")
    assert "0 visits" in again.stdout
    assert len(site.visits()) == 6
    assert read_json(run("status", "-w", "ws", "--set", "schedule.budget=6/h", "--json"))["budget_left"] < 1
    more = run(
        "run", "-w", "ws", *HURRY, "--budget", "8/h", "--set", "schedule.discovery_share=1", "--once", "--for", "60s"
    )
    assert "2 visits" in more.stdout


@pytest.mark.usefixtures("workspace")
def test_new_pages_take_their_share_and_no_more(run, serve):
    site = serve(pages=30)
    run("add", site.home, "-w", "ws")
    run("run", "-w", "ws", *HURRY, "--budget", "20/h", "--once", "--for", "60s")
    assert len(site.visits()) in range(10, 13)  # half of the hour that is saved up, and the first page
    due = read_json(run("list", "pages", "-w", "ws", "--json"))
    assert len({page["next_due"] for page in due if page["observations"] == 0}) == 31 - len(site.visits())


@pytest.mark.usefixtures("workspace")
def test_a_host_is_held_by_name_until_it_is_let_go(run, serve):
    quick, held = serve(pages=2), serve(pages=2)
    run("add", quick.home, held.home, "-w", "ws")
    assert f"{held.host} is paused." in run("pause", held.host, "-w", "ws").stdout
    once = ("run", "-w", "ws", *HURRY, *RICH, "--once", "--for", "60s")
    assert run(*once).returncode == 0
    assert (len(quick.visits()), len(held.asked)) == (3, 0)
    states = {row["host"]: row["state"] for row in read_json(run("list", "hosts", "-w", "ws", "--json"))}
    assert states == {quick.host: "running", held.host: "paused"}
    assert read_json(run("status", "-w", "ws", "--json"))["paused_hosts"] == [held.host]
    assert "still" in run("resume", "-w", "ws").stdout
    assert f"{held.host} is no longer paused." in run("resume", held.host, "-w", "ws").stdout
    assert run(*once).returncode == 0
    assert (len(quick.visits()), len(held.visits())) == (3, 3)


@pytest.mark.usefixtures("workspace")
def test_a_site_that_is_added_while_a_run_goes_on_is_crawled_as_a_whole(run, serve, crawling):
    first, later = serve(pages=2), serve(pages=5)
    run("add", first.home, "-w", "ws")
    process = crawling(*RICH, "--for", "600s")
    until(lambda: len(first.visits()) >= 3, "the first site")
    run("add", later.home, "-w", "ws")
    run("pause", first.host, "-w", "ws")  # so that it looks for others at once
    whole = {"/site/", *(f"/site/{number}.html" for number in range(5))}
    until(lambda: set(later.visits()) >= whole, "the other one")
    process.terminate()
    process.communicate(timeout=PATIENCE)
    assert set(later.visits()) == whole


@pytest.mark.usefixtures("workspace")
def test_links_that_a_narrower_scope_passed_over_are_followed_by_a_wider_one(run, serve):
    site = serve(pages=4)
    run("add", site.home, "-w", "ws")
    once = ("run", "-w", "ws", *HURRY, *RICH, "--once", "--for", "60s")
    run(*once, "--set", "crawl.scope=page")
    assert site.visits() == ["/site/"]
    assert "4 visits" in run(*once, "--set", "crawl.scope=host").stdout


@pytest.mark.usefixtures("workspace")
def test_a_run_that_starts_while_the_crawl_is_paused_asks_nothing(run, serve):
    site = serve()
    run("add", site.home, "-w", "ws")
    run("pause", "-w", "ws")
    result = run("run", "-w", "ws", *HURRY, "--once", "--for", "60s")
    assert result.returncode == 0
    assert "The crawl is paused, 1 page due" in result.stdout
    assert site.asked == []
    assert "whole crawl is still paused" in run("resume", site.host, "-w", "ws").stdout


@pytest.mark.usefixtures("workspace")
def test_limits_win_until_they_are_taken_back_and_are_shown(run):
    assert run("limit", "-w", "ws", "schedule.budget=500/h", "crawl.concurrency=8").returncode == 0
    shown = read_json(run("config", "show", "-w", "ws", "--set", "schedule.budget=7", "--json"))
    assert shown["schedule.budget"] == {"value": 12_000.0, "origin": "limit"}
    assert shown["crawl.concurrency"] == {"value": 8, "origin": "limit"}
    assert read_json(run("status", "-w", "ws", "--json"))["limits"] == {
        "crawl.concurrency": "8",
        "schedule.budget": "500/h",
    }
    run("limit", "-w", "ws", "--reset", "crawl.concurrency")
    assert {key for key, row in read_json(run("limit", "-w", "ws", "--json")).items() if row["origin"] == "limit"} == {
        "schedule.budget"
    }
    run("limit", "-w", "ws", "--reset")
    assert {row["origin"] for row in read_json(run("limit", "-w", "ws", "--json")).values()} == {"default"}


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (("store.location=x",), "read when a run starts", 4),
        (("schedule.bugdet=5",), "no such setting", 4),
        (("schedule.budget",), "has no value", 4),
        (("--reset", "schedule.budget=5"), "has a value", 4),
        (("schedule.budget=lots",), "not a number", 4),
        (("politeness.min_delay=60s",), "longer than politeness.max_delay", 4),
    ],
)
@pytest.mark.usefixtures("workspace")
def test_a_limit_that_makes_no_sense_is_refused_and_changes_nothing(run, arguments, words, code):
    result = run("limit", "-w", "ws", *arguments)
    assert (result.returncode, words in result.stderr) == (code, True), result.stderr
    assert {row["origin"] for row in read_json(run("limit", "-w", "ws", "--json")).values()} == {"default"}


@pytest.mark.usefixtures("workspace")
def test_what_is_due_and_what_fails_is_listed_with_the_reason(run, serve):
    site = serve(pages=2)
    urls = [site.home + name for name in ("", "broken.html")]
    run("add", *urls, "-w", "ws")
    due = read_json(run("list", "due", "-w", "ws", "--json"))
    assert {(row["url"], row["why"]) for row in due} == {(url, "never seen") for url in urls}
    assert all(row["late"] > 0 for row in due)
    assert run("run", "-w", "ws", *HURRY, *RICH, "--once", "--for", "60s").returncode == 0
    assert read_json(run("list", "due", "-w", "ws", "--json")) == []
    [failed] = read_json(run("list", "failing", "-w", "ws", "--json"))
    assert (failed["url"], failed["status"], failed["meaning"], failed["tries"]) == (
        urls[1],
        403,
        "Forbidden",
        1,
    )
    assert failed["next_try"] > failed["last_try"]
    [row] = csv.DictReader(io.StringIO(run("list", "failing", "-w", "ws", "--csv").stdout))
    assert (row["url"], row["outcome"]) == (urls[1], "rejected")
    [host] = read_json(run("list", "hosts", "-w", "ws", "--json"))
    assert (host["pages"], host["failing"], host["forbidden"], host["believed"]) == (4, 1, 0, True)
    told = run("status", "-w", "ws").stdout
    assert "Forbidden, 1 in a row" in told
    assert any(line.split()[:1] == ["failing"] for line in told.splitlines())
    assert run("list", "due", "--json", "--csv", "-w", "ws").returncode == 4


def test_two_workers_never_have_one_name_although_machine_and_process_have():
    names = {worker_name() for _ in range(8)}
    assert len(names) > 1
    assert all(name.startswith(f"{socket.gethostname()}-{os.getpid()}-") for name in names)


@pytest.mark.parametrize("address", ["nowhere", "127.0.0.1:99999", "no..name:9090", "taken"])
@pytest.mark.usefixtures("workspace")
def test_metrics_that_cannot_be_served_are_said_before_anything_is_asked(run, serve, address):
    site = serve()
    run("add", site.home, "-w", "ws")
    result = run("run", "-w", "ws", *HURRY, "--once", "--metrics", site.host if address == "taken" else address)
    assert result.returncode == 4
    assert "crawl.metrics" in result.stderr
    assert site.asked == []
