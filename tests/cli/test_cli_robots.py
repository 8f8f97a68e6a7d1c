"""``recrawl robots``, and rules that workers share: real processes, a real server."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

pytestmark = pytest.mark.slow

OPEN = "User-agent: *\nCrawl-delay: 0\nUser-agent: Bingbot\nDisallow: /private\nSitemap: /map.xml\n"
HURRY = ("politeness.min_delay=20ms", "politeness.factor=0", "politeness.ip_delay=0", "schedule.policy=uniform",
         "fetch.contact=me@example.org", "fetch.allow_networks=127.0.0.0/8", "schedule.budget=200/s")  # fmt: skip
PATIENCE = 120.0


class Hosts(ThreadingHTTPServer):
    """Every loopback address is a host; the requests are noted, and the rules can be changed."""

    def __init__(self):
        self.asked: list[str] = []
        self.rules = OPEN
        super().__init__(("0.0.0.0", 0), Answering)

    def name(self, number):
        return f"127.0.9.{number}:{self.server_port}"

    def reads(self):
        return sum(path == "/robots.txt" for path in list(self.asked))


class Answering(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        body = self.server.rules.encode() if self.path == "/robots.txt" else b"<p>A page that stays as it is.</p>"
        self.send_response(404 if self.path == "/map.xml" else 200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def hosts():
    with Hosts() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def recrawl(run, workspace):
    """``recrawl(*arguments)`` runs a command to its end, ``recrawl.start(*arguments)`` lets it run as a process."""
    running = []

    def start(*arguments):
        command = [sys.executable, "-m", "recrawl", *map(str, arguments)]
        process = subprocess.Popen(
            command, cwd=workspace.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        running.append(process)
        return process

    def run_to_its_end(*arguments, code=0):
        done = run(*arguments)
        said = done.stdout + done.stderr
        assert done.returncode == code, said
        return said

    run_to_its_end.start = start
    yield run_to_its_end
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


def options():
    return [word for setting in HURRY for word in ("--set", setting)]


def until(so, what):
    for _ in range(int(PATIENCE * 50)):
        if so():
            return
        time.sleep(0.02)
    raise AssertionError(f"never came: {what}")


def test_workers_and_restarts_share_the_rules(recrawl, hosts):
    names = [hosts.name(number) for number in range(1, 11)]
    recrawl("add", "-w", "ws", *(f"http://{name}/{page}" for name in names for page in range(3)))
    for workers in (3, 1):  # the second time it is a restart
        running = [recrawl.start("run", "-w", "ws", *options()) for _ in range(workers)]
        before = len(hosts.asked)
        until(lambda: len(hosts.asked) > before + 90, "visits")  # noqa: B023 - it is over before the next
        for process in running:
            process.terminate()
            process.communicate(timeout=PATIENCE)
    assert hosts.reads() == 10
    assert len({path for path in hosts.asked if path.strip("/").isdigit()}) == 3


def test_an_opt_out_takes_effect_in_a_running_crawl(recrawl, hosts):
    name = hosts.name(1)
    recrawl("add", "-w", "ws", *(f"http://{name}/{page}" for page in range(5)))
    running = recrawl.start("run", "-w", "ws", *options())
    until(lambda: len(hosts.asked) > 6, "visits")
    shown = json.loads(recrawl("robots", "-w", "ws", name, "--json", "--url", f"http://{name}/private/x"))
    [copy] = shown["robots"]
    assert (shown["agent"], copy["group"], copy["status"], copy["crawlDelay"]) == ("recrawl", "*", 200, 0.0)
    assert copy["rules"] == [{"line": 4, "allow": False, "pattern": "/private"}]
    assert (copy["allowed"], copy["line"]) == (False, 4)
    said = recrawl("robots", "-w", "ws", name)
    assert "line 4: Disallow: /private" in said
    assert "as recrawl: the group of *" in said
    assert "may be visited: no rule matches" in recrawl("robots", "-w", "ws", name, "--url", f"http://{name}/1")

    hosts.rules = "User-agent: recrawl\nDisallow: /\n"
    assert "will be read again" in recrawl("robots", "-w", "ws", name, "--refresh")
    until(lambda: hosts.reads() == 2, "the second reading of the rules")
    refused = "may not be visited, by line 2: Disallow: /"
    until(lambda: refused in recrawl("robots", "-w", "ws", name, "--url", f"http://{name}/1"), "the new rules")
    running.terminate()
    running.communicate(timeout=PATIENCE)
    read_again = [place for place, path in enumerate(hosts.asked) if path == "/robots.txt"][1]
    assert hosts.asked[read_again + 1 :] == [], "no page was asked for under the new rules"
    listed = json.loads(recrawl("list", "failing", "-w", "ws", "--json"))
    assert {row["outcome"] for row in listed} == {"refused"}


def test_what_is_not_known_is_said(recrawl, hosts):
    name = hosts.name(1)
    recrawl("add", "-w", "ws", f"http://{name}/")
    assert "was not read yet" in recrawl("robots", "-w", "ws", name)
    assert "was not read yet" in recrawl("robots", "-w", "ws", name, "--url", f"http://{name}/x")
    assert json.loads(recrawl("robots", "-w", "ws", name, "--json"))["robots"] == []
    assert "There is no host" in recrawl("robots", "-w", "ws", "other.example", code=1)
    assert "not a URL of the host" in recrawl("robots", "-w", "ws", name, "--url", "http://other.example/", code=4)
