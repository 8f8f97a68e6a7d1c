"""``recrawl run`` against a server on loopback, as people run it."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest
from warcio.archiveiterator import ArchiveIterator

from recrawl.errors import ExitCode
from recrawl.formats.crawl_log import parse_line
from recrawl.store.open import open_store

PAGES = {
    "/shown/page.html": '<link rel=stylesheet href=style.css><img src=a.png srcset="b.png 2x, /elsewhere/c.png 3x">',
    "/shown/a.png": "a",
    "/shown/b.png": "b",
    "/shown/style.css": "p {}",
    "/elsewhere/c.png": "c",
    "/site/": '<a href="a.html">a</a> <a href="b.html">b</a> <a href="/elsewhere">out</a> <a href="x/x/x/x/">trap</a>',
    "/site/a.html": '<p>One. <a href="/site/">home</a>',
    "/site/b.html": "<p>Two.",
    "/elsewhere": "<p>Not in the folder.",
    "/moved/": "<p>Here I am.",
}
MOVED = {"/moved": "/moved/", "/round": "/round/", "/round/": "/round"}
HURRY = (
    "--set",
    "politeness.min_delay=0",
    "--set",
    "politeness.ip_delay=0",
    "--set",
    "politeness.factor=0",
    "--set",
    "fetch.contact=me@example.org",
)
PATIENCE = 120.0
"""Seconds until a test gives up on a process."""
HOME = ("--set", "fetch.allow_networks=127.0.0.1")


class Site(BaseHTTPRequestHandler):
    """A few pages that never change, and a count of who was asked for what."""

    asked: Counter
    answering: threading.Event
    """While it is not set, requests for pages wait for their answer."""

    def do_GET(self):
        self.asked[self.path] += 1
        if self.path != "/robots.txt":
            self.answering.wait(PATIENCE)
        body = PAGES.get(self.path, "").encode()
        self.send_response(301 if self.path in MOVED else 200 if body else 404)
        if self.path in MOVED:
            self.send_header("Location", MOVED[self.path])
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments):
        """Say nothing."""


@pytest.fixture
def site():
    class Counting(Site):
        asked: ClassVar[Counter] = Counter()
        answering: ClassVar[threading.Event] = threading.Event()

    Counting.answering.set()
    with ThreadingHTTPServer(("127.0.0.1", 0), Counting) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        server.home = f"http://127.0.0.1:{server.server_port}/site/"
        server.handler = Counting
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def workspace(site, run, tmp_path):
    assert run("init", "w").returncode == 0
    assert run("add", site.home, "-w", "w").returncode == 0
    return tmp_path / "w"


def test_once_visits_all_that_is_due_and_what_it_finds_in_the_folder(run, site, workspace):
    result = run("run", "--once", "--for", "60s", "-w", "w", *HURRY, *HOME)
    assert result.returncode == 0, result.stderr
    assert "3 visits: 0 found a change, 0 failed." in result.stdout
    assert site.handler.asked == {"/robots.txt": 1, "/site/": 1, "/site/a.html": 1, "/site/b.html": 1}
    lines = (workspace / "crawl.log").read_text().splitlines()
    told = sorted((parse_line(line).url.rpartition("/")[2], parse_line(line).status) for line in lines)
    assert told == [("", 200), ("a.html", 200), ("b.html", 200), ("robots.txt", 404)]
    kept = []
    for file in (workspace / "warc").glob("*.warc.gz"):
        with file.open("rb") as stream:
            kept += [
                record.rec_headers["WARC-Target-URI"]
                for record in ArchiveIterator(stream)
                if record.rec_type == "response"
            ]
    assert {re.sub(".*/", "", url) for url in kept} == {"", "a.html", "b.html", "robots.txt"}


@pytest.mark.usefixtures("workspace")
def test_a_second_run_goes_on_where_the_first_stopped(run, site):
    for _ in range(2):
        assert run("run", "--once", "--for", "60s", "-w", "w", *HURRY, *HOME).returncode == 0
    assert {path: times for path, times in site.handler.asked.items() if path != "/robots.txt"} == {
        "/site/": 1,
        "/site/a.html": 1,
        "/site/b.html": 1,
    }


@pytest.mark.usefixtures("workspace")
def test_a_page_that_redirects_to_itself_written_otherwise_is_fetched_there(run, site):
    """/moved and /moved/ have one key; so have /round and /round/, which send us in a circle."""
    for name in ("moved", "round"):
        run("add", site.home.replace("site/", name), "-w", "w")
    result = run("run", "--once", "--for", "60s", "-w", "w", *HURRY, *HOME, "--set", "crawl.scope=page")
    assert result.returncode == 0, result.stderr
    asked = site.handler.asked
    assert [asked[path] for path in ("/moved", "/moved/", "/round", "/round/")] == [1, 1, 1, 1]
    pages = json.loads(run("list", "pages", "-w", "w", "--json").stdout)
    assert site.home.replace("site/", "moved/") in {page["url"] for page in pages}


@pytest.mark.parametrize(
    ("embeds", "asked"),
    [("leave", {"page.html"}), ("take", {"page.html", "a.png", "b.png", "style.css"})],
)
def test_what_pages_embed_is_taken_within_the_scope_if_that_is_wanted(run, site, tmp_path, embeds, asked):
    """And is no link of theirs."""
    assert run("init", "w").returncode == 0
    assert run("add", site.home.replace("/site/", "/shown/page.html"), "-w", "w").returncode == 0
    options = ("--set", f"crawl.page_requisites={embeds}", *HURRY, *HOME)
    assert run("run", "--once", "--for", "60s", "-w", "w", *options).returncode == 0
    assert {path.rpartition("/")[2] for path in site.handler.asked if path.startswith("/shown/")} == asked
    assert "/elsewhere/c.png" not in site.handler.asked
    with open_store(tmp_path / "w" / "recrawl.db") as store:
        assert len(store.outlinks(store.pages().id)) == 0


@pytest.mark.parametrize(
    ("scope", "asked"), [("page", {"/site/"}), ("host", {"/site/", "/site/a.html", "/site/b.html", "/elsewhere"})]
)
@pytest.mark.usefixtures("workspace")
def test_the_scope_says_which_links_are_followed(run, site, scope, asked):
    run("run", "--once", "--for", "60s", "-w", "w", *HURRY, *HOME, "--set", f"crawl.scope={scope}")
    assert set(site.handler.asked) - {"/robots.txt"} == asked


def test_this_machine_is_out_of_reach_unless_allowed(run, site, workspace):
    result = run("run", "--once", "--for", "60s", "-w", "w", *HURRY)
    assert result.returncode == 0, result.stderr
    assert "Allow them with fetch.allow_networks" in result.stdout
    assert not site.handler.asked
    events = [json.loads(line) for line in (workspace / "recrawl.log").read_text().splitlines()]
    assert any("not public" in json.dumps(event) for event in events)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--until", "2001-01-01"), "in the past"),
        (("--until", "yesterday"), "is not a time"),
        (("--for", "soon"), "soon"),
        (("--set", "fetch.contact="), "fetch.contact is empty"),
        (("--set", "fetch.contact=nonsense"), "fetch.contact is 'nonsense', which is not an address"),
        (("--set", "fetch.allow_networks=home"), "no network"),
    ],
)
@pytest.mark.usefixtures("workspace")
def test_what_makes_no_sense_is_said_before_anything_is_asked(run, site, options, words):
    contact = () if "--set" in options else HURRY
    result = run("run", "--once", "-w", "w", *contact, *(HURRY if "home" in options[1] else ()), *options)
    assert result.returncode == ExitCode.BAD_CONFIG
    assert words in result.stderr
    assert not site.handler.asked


def test_a_workspace_without_pages_says_what_to_do(run):
    run("init", "empty")
    result = run("run", "--once", "-w", "empty", *HURRY)
    assert "recrawl add -w empty URL" in result.stderr
    assert result.returncode != 0


@pytest.mark.parametrize(("signals", "code"), [([signal.SIGINT], 11), ([signal.SIGTERM, signal.SIGTERM], 13)])
def test_a_first_interrupt_finishes_and_a_second_one_drops(run, site, workspace, signals, code):
    site.handler.answering.clear()
    command = [sys.executable, "-m", "recrawl", "run", "-w", str(workspace), *HURRY, *HOME]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RECRAWL_")}  # noqa: TID251 - a child's
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        while not site.handler.asked["/site/"] and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signals[0])
        assert any("Interrupt again to stop at once" in line for line in process.stderr)
        if signals[1:]:
            process.send_signal(signals[1])
        else:
            site.handler.answering.set()
        _, said = process.communicate(timeout=PATIENCE)
    site.handler.answering.set()
    assert process.returncode == code, said
    visits = json.loads(run("list", "visits", "-w", "w", "--json").stdout)
    assert len(visits) == (1 if len(signals) == 1 else 0)
