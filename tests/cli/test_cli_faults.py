"""The real command goes on when a page breaks it, and tells of the page."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

HURRY = (
    *("--set", "politeness.min_delay=0", "--set", "politeness.factor=0", "--set", "politeness.ip_delay=0"),
    *("--set", "fetch.contact=me@example.org", "--set", "fetch.allow_networks=127.0.0.1"),
    *("--set", "schedule.discovery_share=1", "--budget", "100/s"),
)
POISONED = """
import runpy, sys
from recrawl.crawl.visit.recorder import Recorder
real = Recorder._links
def links(self, batch, now):
    if any(one.target.url.endswith("/poison") for one in batch):
        raise OverflowError("poison")
    return real(self, batch, now)
links.__code__ = links.__code__.replace(co_qualname="Recorder._links")
Recorder._links = links
runpy.run_module("recrawl", run_name="__main__", alter_sys=True)
"""


class Pages(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65_536

    def do_GET(self):
        body = b"" if self.path == "/robots.txt" else f"<p>{self.path}</p><a href=/found{self.path[1:2]}>x</a>".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def home():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_page_that_breaks_the_command_fails_and_the_run_goes_on(run, workspace, home):
    run("add", *(f"{home}/{name}" for name in ("a", "poison", "b", "c")), "-w", "ws")
    command = [sys.executable, "-c", POISONED, "run", "-w", str(workspace), *HURRY, "--once", "--for", "120s"]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=workspace.parent, timeout=240, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1].startswith("Ended because nothing more is due")
    visits = json.loads(run("list", "visits", "-w", "ws", "--json").stdout)
    status = {visit["url"].rpartition("/")[2]: visit["status"] for visit in visits}
    assert {name: status[name] for name in ("a", "poison", "b", "c")} == {"a": 200, "poison": -5, "b": 200, "c": 200}
    [failing] = json.loads(run("list", "failing", "-w", "ws", "--json").stdout)
    assert failing["url"] == f"{home}/poison"
    assert "OverflowError('poison')" in failing["meaning"]
    assert failing["quarantined"] is False
    shown = run("list", "failing", "-w", "ws").stdout
    assert "False" not in shown
    assert " – " in shown
    again = run("run", "-w", "ws", *HURRY, "--once", "--for", "120s")  # a restart is not stopped by it either
    assert again.returncode == 0, again.stderr
