"""``recrawl run`` as a process whose clock is wrong: it waits for one that was never set, and survives steps.

The clock of the machine is not touched. A process is started that reads from a file how wrong its clock is, and that
believes a jump after a second instead of a minute.
"""

import json
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from recrawl.errors import ExitCode
from recrawl.store.open import open_store
from recrawl.time import DAY

PATIENCE = 180.0
RUN = """
import sys, time
from pathlib import Path
from recrawl.crawl import clock

off, sys.argv = Path(sys.argv[1]), ["recrawl", *sys.argv[2:]]
clock.DOUBT = 1.0
clock.RealClock.__init__.__defaults__ = (lambda: time.time() + float(off.read_text()), clock._steady)
from recrawl.cli.main import main
main()
"""
HURRY = ("politeness.min_delay=100ms", "politeness.ip_delay=0s", "politeness.factor=0", "schedule.policy=uniform")
HOME = ("fetch.contact=me@example.org", "fetch.allow_networks=127.0.0.1", "schedule.budget=1000/s")


@pytest.fixture
def site():
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", "9")
            self.end_headers()
            self.wfile.write(b"unchanged" if self.path != "/robots.txt" else b"# nothing")

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def until(so):
    for _ in range(int(PATIENCE * 20)):
        if so():
            return
        time.sleep(0.05)
    raise AssertionError("no progress")


@pytest.mark.slow
def test_a_run_waits_for_its_clock_and_goes_on_after_steps(run, workspace, site, tmp_path):
    run("add", "-w", "ws", *(f"{site}{number}" for number in range(20)))
    off = tmp_path / "off.txt"
    log = workspace / "recrawl.log"

    def set_clock(seconds):
        new = off.with_suffix(".new")
        new.write_text(str(seconds))
        new.replace(off)

    def steps():
        told = map(json.loads, log.read_text(encoding="utf-8").splitlines()) if log.exists() else ()
        return [event["details"]["seconds"] for event in told if "clock was set" in event["message"]]

    set_clock(-time.time())  # noqa: TID251 - it is 1970
    settings = [part for each in (*HURRY, *HOME) for part in ("--set", each)]
    command = [sys.executable, "-c", RUN, off, "run", "-w", workspace, *settings]
    said = (tmp_path / "said.txt").open("w+", encoding="utf-8")
    with (
        said,
        subprocess.Popen(command, stdout=said, stderr=said) as process,
        open_store(workspace / "recrawl.db") as store,
    ):
        try:
            until(lambda: "waiting until it is set" in (tmp_path / "said.txt").read_text())
            assert len(store.visits()) == 0
            set_clock(0.0)
            until(lambda: len(store.visits()) > 20)
            set_clock(3 * DAY)
            until(lambda: len(steps()) == 1)
            ahead = time.time() + DAY  # noqa: TID251 - the clock of this machine, which is right
            until(lambda: (store.visits().time > ahead).sum() > 5)
            set_clock(0.0)
            until(lambda: len(steps()) == 2 and store.misdated().visits > 5)
            before = len(store.visits())
            until(lambda: len(store.visits()) > before + 20)
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == ExitCode.INTERRUPTED
        finally:
            process.kill()
        assert store.visits().time.max() < ahead
        marked = store.misdated().visits
    assert [round(seconds / DAY) for seconds in steps()] == [3, -3]
    assert f"The clock was wrong: {marked:,} visits misdated." in (tmp_path / "said.txt").read_text()
    assert f"{marked} visits made while the clock was wrong" in run("status", "-w", "ws").stdout
    listed = json.loads(run("list", "misdated", "-w", "ws", "--json", "--limit", "1000").stdout)
    assert len(listed) == marked
    told = json.loads(run("explain", listed[0]["url"], "-w", "ws", "--json").stdout)
    assert listed[0]["time"] in told["misdated"]
