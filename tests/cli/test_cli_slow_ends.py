"""A signal ends a command within seconds though a host, a reader or a file takes for ever; nothing is recorded for it.

Order is asserted, not time: the process ends while the server still holds its answer back.
"""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

from recrawl.errors import ExitCode
from recrawl.formats.warc.warc_records import from_base32
from recrawl.formats.warc.warc_writer import WarcWriter
from recrawl.model import Capture, Outcome, Visits
from recrawl.store.open import open_store
from recrawl.store.store_values import CaptureRecord
from recrawl.time import VirtualClock

PATIENCE = 150.0
"""Seconds until a test gives up on a process. The server holds its answer for longer."""
SETTINGS = (
    *("--set", "fetch.contact=me@example.org", "--set", "fetch.allow_networks=127.0.0.1"),
    *("--set", "politeness.min_delay=0s", "--set", "politeness.factor=0", "--set", "politeness.ip_delay=0s"),
    *("--set", "fetch.timeout=1h", "--set", "fetch.idle_timeout=1h", "--set", "fetch.connect_timeout=10min"),
)
HALF = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1000\r\n\r\n<p>One"


class HoldingServer:
    """Answers robots.txt, and for the rest says what it is told to and then nothing, with the connection open."""

    def __init__(self, said: bytes, robots: bytes = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n") -> None:
        self._said, self._robots = said, robots
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.home = f"http://127.0.0.1:{self._listening.getsockname()[1]}/"
        self.held = threading.Event()
        """Whether somebody waits for an answer."""
        self._connections: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self._connections.append(connection)
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        buffered = b""
        while True:
            while b"\r\n\r\n" not in buffered:
                try:
                    piece = connection.recv(65536)
                except OSError:
                    return
                if not piece:
                    return
                buffered += piece
            request, _, buffered = buffered.partition(b"\r\n\r\n")
            if request.startswith(b"GET /robots.txt") and self._robots:
                connection.sendall(self._robots)
                continue
            connection.sendall(self._said)
            self.held.set()

    def close(self) -> None:
        self._listening.close()
        for connection in self._connections:
            connection.close()


@contextmanager
def holding(*said):
    server = HoldingServer(*said)
    try:
        yield server
    finally:
        server.close()


def command(*words):
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("RECRAWL_")}  # noqa: TID251 - a child's
    return subprocess.Popen(
        [sys.executable, "-m", "recrawl", *map(str, words)],
        env=inherited,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process, number, begun):
    """What a command said that got a signal once something had begun."""
    with process:
        for _ in range(int(PATIENCE / 0.01)):
            if begun():
                break
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        else:
            process.kill()
            raise AssertionError(process.communicate())
        process.send_signal(number)
        try:
            said, wrong = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert process.returncode == ExitCode.INTERRUPTED, (said, wrong)
    assert "Traceback" not in wrong
    return said + wrong


def resting(store, now):
    hosts = store.hosts()
    return hosts.ready_at[np.argmax(hosts.ready_at)] - now


def test_a_run_ends_though_a_host_holds_its_answer(workspace):
    with holding(HALF) as server:
        with open_store(workspace / "recrawl.db", durable=False) as store:
            store.discover([server.home], 1.79e9)
        ended(command("run", "-w", workspace, *SETTINGS), signal.SIGTERM, server.held.is_set)
        now = time.time()  # noqa: TID251 - the clock of the process
    with open_store(workspace / "recrawl.db", durable=False) as store:
        assert not store.lease_holders()
        assert len(store.visits()) == 0
        assert resting(store, now) > 0  # as long as a slow host does, from the end of the run on


SLOW_READER = """
import sys, time
from pathlib import Path
from recrawl.detect import detector
from recrawl.parse.parse_pool import ParsePool
from recrawl.detect.version import CostlyError, Effort

begun, sys.argv = Path(sys.argv[1]), ["recrawl", *sys.argv[2:]]
call, real = ParsePool.call, detector.classify_change

def classify(capture, known, standards, effort=Effort.ALL):
    if effort is Effort.CHEAP:
        raise CostlyError
    return real(capture, known, standards, effort)

def read_for_ever(self, *task):
    call(self, time.sleep, 0)  # now the worker is there
    begun.touch()
    return call(self, time.sleep, 3600)

detector.classify_change, ParsePool.call = classify, read_for_ever
from recrawl.cli.entry import main
main()
"""
"""A process whose workers read every answer for an hour."""


@pytest.mark.slow
def test_commands_end_while_an_answer_is_read(workspace, tmp_path):
    """The answer came, and the worker process that reads it does not end: it is ended with the command."""
    whole = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 3\r\n\r\n<p>"
    with holding(whole) as server:
        with open_store(workspace / "recrawl.db", durable=False) as store:
            store.discover([server.home], 1.79e9)
        for number, words in enumerate((["run"], ["capture", server.home])):
            begun = tmp_path / f"begun{number}"
            script = [sys.executable, "-c", SLOW_READER, begun, *words, "-w", workspace, *SETTINGS]
            process = subprocess.Popen(
                [*map(str, script), "--set", "detect.read_time=1h"],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            ended(process, signal.SIGTERM, begun.exists)
    with open_store(workspace / "recrawl.db", durable=False) as store:
        assert not store.lease_holders()
        assert len(store.visits()) == 0


def test_a_capture_ends_though_its_host_holds_its_answer(workspace):
    with holding(b"") as server:
        said = ended(command("capture", server.home, "-w", workspace, *SETTINGS), signal.SIGTERM, server.held.is_set)
        now = time.time()  # noqa: TID251 - the clock of the process
    assert "capture --resume" in said
    with open_store(workspace / "recrawl.db", durable=False) as store:
        assert len(store.visits()) == 0
        assert resting(store, now) > 0


def test_an_import_from_a_server_that_holds_its_answer_ends(workspace):
    with holding(b"HTTP/1.1 200 OK\r\nContent-Type: text/x-cdx\r\n\r\n", b"") as server:
        words = ("import", f"{server.home}cdx?url=example.org/*", "-w", workspace, *SETTINGS)
        ended(command(*words), signal.SIGTERM, server.held.is_set)
    with open_store(workspace / "recrawl.db", durable=False) as store:
        assert len(store.visits()) == 0


def archived(workspace):
    """An archive file of the workspace, with one visit."""
    with (
        open_store(workspace / "recrawl.db", durable=False) as store,
        WarcWriter(workspace / "warc", VirtualClock(1.79e9), durable=False) as writer,
    ):
        [page] = store.discover(["http://a.example/"], 1.79e9).tolist()
        kept = writer.write(Capture("http://a.example/", 1.79e9, 200, b"HTTP/1.1 200 OK\r\n\r\n", b"One"))
        digest = from_base32(kept.ref.payload_digest.removeprefix("sha1:"))
        row = CaptureRecord(page, 1.79e9, 200, "text/plain", digest, 3, *kept[:3])
        store.record(Visits.of(np.array([page]), np.array([1.79e9]), outcome=Outcome.FETCHED), captures=[row])
    [file] = (workspace / "warc").glob("*.warc.gz")
    return file


def stuck_in(place, words):
    """A command that comes to a function and there to native code that hears no signal and does not return."""
    module, _, name = place.partition(":")
    code = f"""
        import hashlib, importlib, sys
        def stuck(*arguments, **named):
            print("begun", flush=True)
            hashlib.pbkdf2_hmac("sha256", b"", b"", 2_000_000_000)
        holder = importlib.import_module({module!r})
        *path, last = {name.split(".")!r}
        for part in path:
            holder = getattr(holder, part)
        setattr(holder, last, stuck)
        sys.argv = {["recrawl", *map(str, words)]!r}
        from recrawl.cli.entry import main
        main()
    """
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_commands_end_though_native_code_does_not_return(workspace, tmp_path):
    warc = archived(workspace)
    began = [
        stuck_in("recrawl.crawl.maintenance.archive_check:ArchiveCheck._walk", ["verify", "-w", workspace]),
        stuck_in(
            "recrawl.crawl.maintenance.workspace_backup:_sha256", ["backup", tmp_path / "backups", "-w", workspace]
        ),
        stuck_in("recrawl.transfer.archive_import:Importer.take", ["import", warc, "-w", workspace]),
        stuck_in("recrawl.transfer.exporter:capture_batches", ["export", tmp_path / "out.cdx", "-w", workspace]),
        stuck_in("recrawl.transfer.archive_import:Importer.judge", ["assess", warc]),
    ]
    for number, process in enumerate(began):
        assert process.stdout.readline() == "begun\n", process.communicate()
        process.send_signal(signal.SIGINT if number % 2 else signal.SIGTERM)
    for process in began:
        said, wrong = process.communicate(timeout=PATIENCE)
        assert process.returncode == ExitCode.INTERRUPTED, (said, wrong)
    for words in (["backup", tmp_path / "backups", "-w", workspace], ["verify", "-w", workspace]):
        done = command(*words)
        said, wrong = done.communicate(timeout=PATIENCE)
        assert done.returncode == 0, (said, wrong)
    assert "The workspace is complete and consistent." in said
