"""Workers that share a PostgreSQL server, as processes: one is stopped or killed, the server goes away at a start."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import apsw
import numpy as np
import pytest
import yaml

from recrawl.crawl.worker.group_commit import LEASE_LOST
from recrawl.model import Verdict
from recrawl.store.open import open_store

pytest.importorskip("resource", reason="processes are forked here, and this system cannot")
STARTER = Path(__file__).parents[2] / "benchmarks" / "crawl_process.py"
HOSTS, PAGES, PAUSE = 12, 8, 0.3
"""So many hosts that each worker owns the bucket of one."""
PATIENCE = 180
UNCOMMITTED = 32
"""Visits that a worker may have made and not committed when it is killed: one a host, and a quarter of a second."""
SETTINGS = {
    "fetch": {"contact": "me@example.org", "allow_networks": "127.0.0.0/8"},
    "politeness": {"factor": 0.0, "min_delay": f"{PAUSE}s", "ip_delay": 0.0},
    "schedule": {"policy": "uniform", "budget": "2000/s"},
    "crawl": {"concurrency": 8, "scope": "host"},
}


def until(so, said=lambda: ""):
    """Wait until it is so; else tell what is ``said``."""
    for _ in range(PATIENCE * 20):
        if found := so():
            return found
        time.sleep(0.05)
    raise AssertionError(f"no progress: {said()}")


class Site:
    """Hosts that answer one request at a time, and write down when each came and when it was answered."""

    def __init__(self):
        self.log = defaultdict(list)
        """By host: when a request was read, when its answer was about to be written, the port it came from, whether it
        was for robots.txt, and who sent it."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.names = [f"127.0.0.{number + 1}" for number in range(HOSTS)]
        self._servers = [socket.create_server((name, self.port)) for name in self.names]
        for name, server in zip(self.names, self._servers, strict=True):
            threading.Thread(target=self._accept, args=(name, server), daemon=True).start()

    def _accept(self, name, server):
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(name, connection), daemon=True).start()

    def _serve(self, name, connection):
        data = b""
        with connection:
            while True:
                try:
                    more = connection.recv(65_536)
                except OSError:
                    return
                if not more:
                    return
                data += more
                while b"\r\n\r\n" in data:
                    head, _, data = data.partition(b"\r\n\r\n")
                    read = time.monotonic()  # noqa: TID251 - a server of its own, beside the crawler
                    number = int(head.split(b" ", 2)[1].strip(b"/") or 0) if b"robots" not in head else 0
                    links = "".join(f'<a href="/{(number * 3 + n) % PAGES}">{n}</a>' for n in range(4))
                    body = f"<html><body><p>Page {number}.</p>{links}</body></html>".encode()
                    if b"robots" in head:
                        body = b""
                    kind = b"text/plain" if b"robots" in head else b"text/html"
                    written, port = time.monotonic(), connection.getpeername()[1]  # noqa: TID251 - likewise
                    self.log[name].append((read, written, port, b"robots" in head, _asker(head)))
                    answer = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s"
                    connection.sendall(answer % (kind, len(body), body))

    def close(self):
        for server in self._servers:
            server.close()

    def asked(self, name):
        return len(self.log[name])

    def short(self, besides=None):
        """Where the time from an answer to the next request was too short: no load of the machine can shorten it.

        The request ``besides`` does not count.
        """
        return [
            (name, before, after)
            for name, requests in self.log.items()
            for before, after in pairwise(one for one in requests if one is not besides)
            if after[0] - before[1] < PAUSE - 1e-3
        ]

    def first_after(self, moment, asker):
        """The first request that somebody sent after a moment."""
        later = (one for requests in self.log.values() for one in list(requests) if one[4] == asker and one[0] > moment)
        return min(later, default=None)


@pytest.fixture
def site():
    try:
        socket.create_server((f"127.0.0.{HOSTS}", 0)).close()
    except OSError:
        pytest.skip("hosts are addresses of loopback here, and this system has but one")
    opened = Site()
    yield opened
    opened.close()


class Starter:
    """Runs ``recrawl`` in processes of its own, quickly."""

    def __init__(self, process, folder):
        self._process, self._folder = process, folder

    def _ask(self, order):
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def start(self, *arguments):
        return self._ask({"run": [str(argument) for argument in arguments], "said": str(self._folder / "said.txt")})

    def end(self, process, number=None):
        if number is not None:
            os.kill(process, number)
        return self._ask({"wait": process})

    def said(self):
        return (self._folder / "said.txt").read_text(encoding="utf-8")


@contextmanager
def a_starter(folder):
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("RECRAWL_")}  # noqa: TID251 - a child's
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, STARTER], text=True, env=inherited, **pipes) as process:
        assert process.stdout.readline() == "ready\n"
        yield Starter(process, folder)
        process.stdin.close()


@pytest.fixture
def starter(tmp_path):
    with a_starter(tmp_path) as started:
        yield started


def _asker(head):
    """The workspace of whoever asks, by its contact address."""
    found = re.search(rb"([a-z]+)@example", head)
    return found[1].decode() if found else ""


def workspace(starter, folder, location, site):
    assert starter.end(starter.start("init", folder, "--store", location)) == 0, starter.said()
    fetch = SETTINGS["fetch"] | {"contact": f"{folder.name}@example.org"}
    settings = SETTINGS | {"store": {"location": location}, "fetch": fetch}
    (folder / "recrawl.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    seed_scope = [f"http://{name}:{site.port}/" for name in site.names]
    assert starter.end(starter.start("add", "-w", folder, *seed_scope)) == 0, starter.said()
    return folder


def leases_of(store, process):
    """What the worker that runs in this process has leased."""
    return {name: count for name, count in store.lease_holders().items() if f"-{process}-" in name}


def events(folder, message):
    lines = (folder / "recrawl.log").read_text(encoding="utf-8").splitlines()
    return [event for event in map(json.loads, lines) if event["message"] == message]


@pytest.mark.parametrize("engine", ["postgres", "sqlite"])
def test_a_worker_that_is_stopped_loses_its_hosts_and_does_no_harm_when_it_goes_on(
    starter, site, tmp_path, request, engine
):
    """As one that is killed, until it comes back: then it asks for nothing and changes nothing that is not its own."""
    location = request.getfixturevalue("new_database")() if engine == "postgres" else str(tmp_path / "shared.db")
    first, second = (workspace(starter, tmp_path / name, location, site) for name in ("first", "second"))
    with open_store(location) as store:
        stopped, other = starter.start("run", "-w", first), starter.start("run", "-w", second)
        until(lambda: leases_of(store, stopped) and leases_of(store, other), starter.said)
        until(lambda: all(site.asked(name) > 3 for name in site.names), starter.said)
        while True:
            os.kill(stopped, signal.SIGSTOP)
            if leases_of(store, stopped) and (engine == "postgres" or is_free(location)):
                break
            os.kill(stopped, signal.SIGCONT)
            time.sleep(0.01)
        before = {name: site.asked(name) for name in site.names}
        until(lambda: all(site.asked(name) > before[name] + 3 for name in site.names), starter.said)
        assert not leases_of(store, stopped)
        assert events(second, "leases of a dead worker freed")
        assert {name.split("-")[-2] for name in store.buckets().owner} == {str(other)}
        resumed = time.monotonic()  # noqa: TID251 - as in the log of the site
        os.kill(stopped, signal.SIGCONT)
        until(lambda: leases_of(store, stopped), starter.said)  # it is at work again
        for process in (stopped, other):
            assert starter.end(process, signal.SIGTERM) in {0, 11}, starter.said()
        visits = store.visits()
        assert store.lease_holders() == {}
    # It may have been stopped between its last check and the bytes of a request, which then follow.
    assert site.short(besides=site.first_after(resumed, "first")) == []
    assert (np.diff(visits.time)[np.diff(visits.page) == 0] > 0).all()
    assert (visits.verdict == Verdict.CHANGED).sum() == 0  # no page ever changed, whoever recorded what
    # PostgreSQL may have ended the connection of one that was stopped in the middle of a transaction.
    assert events(first, "leases were lost") or events(first, LEASE_LOST) or events(first, "waiting for the store")


def is_free(location):
    """Whether nobody was stopped in the middle of a transaction, for which all others would wait."""
    connection = apsw.Connection(location)
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except apsw.BusyError:
        return False
    finally:
        connection.close()
    return True


def shares(store):
    """How many buckets each worker owns, most first."""
    return sorted(Counter(store.buckets().owner).values(), reverse=True)


def test_workers_join_leave_and_die_and_each_host_has_one_at_a_time(starter, site, tmp_path, new_database):
    """Each change moves a host once at most: nobody asks a host between two requests of its owner."""
    location = new_database()
    folders = {name: workspace(starter, tmp_path / name, location, site) for name in ("one", "two", "three")}
    running = {}

    def progress():
        before = {name: site.asked(name) for name in site.names}
        until(lambda: all(site.asked(name) > before[name] + 2 for name in site.names), starter.said)

    with open_store(location) as store:
        for number, name in enumerate(folders, start=1):
            running[name] = starter.start("run", "-w", folders[name])
            fair = sorted([1024 // number + (place < 1024 % number) for place in range(number)], reverse=True)
            until(lambda fair=fair: shares(store) == fair, starter.said)
            progress()
        assert starter.end(running["two"], signal.SIGTERM) in {0, 11}, starter.said()
        until(lambda: shares(store) == [512, 512], starter.said)
        progress()
        assert starter.end(running["three"], signal.SIGKILL) != 0
        killed = time.monotonic()  # noqa: TID251 - beside the crawler
        until(lambda: shares(store) == [1024], starter.said)
        progress()
        assert starter.end(running["one"], signal.SIGTERM) in {0, 11}, starter.said()
        visits, tokens = store.visits(), store.buckets().token
        assert shares(store) == [1024]
        assert store.buckets().owner == [None] * 1024
    assert site.short() == []
    for requests in site.log.values():
        askers = [asker for *_, asker in requests]
        assert sum(before != after for before, after in pairwise(askers)) <= 4
        assert [asker for read, *_, asker in requests if read > killed and asker == "three"] == []
    assert {asker for requests in site.log.values() for *_, asker in requests} == set(folders)
    assert len(np.unique(visits.page)) == HOSTS * (PAGES + 1)  # every page was visited and recorded
    # One request a host at most was under way when one was killed; each host was also asked for its robots.txt.
    made = sum(map(len, site.log.values()))
    assert len(visits) <= made
    assert len(visits) >= made - len(folders) * HOSTS - SETTINGS["crawl"]["concurrency"] - UNCOMMITTED
    assert int(tokens.sum()) <= 1024 + 512 + 342 + 2 * 341 + 2 * 512 + 1024 + 8  # no bucket moved needlessly


def test_a_run_that_starts_when_the_server_goes_away_waits_for_it(starter, site, tmp_path, new_postgres):
    """At whatever moment of its start: none of them ends."""
    rng = np.random.default_rng(0)
    with new_postgres() as server:
        folder = workspace(starter, tmp_path / "ws", server.get_uri(), site)
        for attempt in range(6):
            before = sum(map(len, site.log.values()))
            if attempt == 0:
                server.stop()  # it is away from the beginning
            process = starter.start("run", "-w", folder)
            if attempt:
                time.sleep(rng.random() * 2.0)
                server.stop()
            time.sleep(0.5)
            server.start()
            until(lambda before=before: sum(map(len, site.log.values())) > before, starter.said)
            assert starter.end(process, signal.SIGTERM) in {0, 11}, starter.said()
    assert events(folder, "waiting for the store")


def test_waiting_for_a_store_ends_when_the_run_is_to_end(starter, site, tmp_path, new_postgres):
    with new_postgres() as server:
        folder = workspace(starter, tmp_path / "ws", server.get_uri(), site)
        server.stop()
        assert starter.end(starter.start("run", "-w", folder, "--for", "15s")) == 1
        process = starter.start("run", "-w", folder)
        said = starter.said().count("Waiting for the store")
        until(lambda: starter.said().count("Waiting for the store") > said)
        assert starter.end(process, signal.SIGTERM) == 11
        server.start()
        assert starter.end(starter.start("run", "-w", folder, "--set", f"store.location={server.get_uri('none')}")) == 1
        assert "does not exist" in starter.said()
