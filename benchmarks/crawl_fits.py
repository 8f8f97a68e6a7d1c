"""How a crawl of many pages gets ready, goes on beside fits of its policy, and stops.

``crawl.py fits --pages N``, and ``crawl.py starts --pages N`` for the start alone, up to ten million pages.

``recrawl run`` itself, as a process, on a store of N pages with eight visits each. What the server of the pages
sees tells how long the crawl was silent; what ``recrawl.log`` says tells how late its event loop was.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from crawl_web import Web, page_urls, small_document, web
from figures import note
from store_population import DUE_SPAN, add_visits, populate_sqlite

from recrawl.app.crawl_run import warm_up_kernels
from recrawl.app.workspace.settings import Settings
from recrawl.app.workspace.workspace import open_workspace
from recrawl.app.workspace.workspace_wiring import policy_of
from recrawl.crawl.clock import RealClock
from recrawl.crawl.worker.fit_process import note_fit
from recrawl.crawl.worker.kernel_compilation import kernels_ready
from recrawl.model import Outcome, Verdict, Visits
from recrawl.model.compiled import can_compile
from recrawl.store import open_store
from recrawl.time import DAY

HOSTS = 500
VISITS = 8
_CHUNK = 20_000
_SMALL, _STARTS = 10_000, 3
_FEW = 10
"""Requests with which nothing can be said."""
_CORE = [sys.executable, "-m", "recrawl"]


def populate(folder: Path, pages: int, port: int) -> None:
    """A workspace with N pages and their visits over the last two months."""
    subprocess.run([*_CORE, "init", str(folder)], check=True, capture_output=True)
    rng, now = np.random.default_rng(1), RealClock().now()
    urls = page_urls(HOSTS, -(-pages // HOSTS), port)[:pages]
    with open_store(str(folder / "recrawl.db"), durable=False) as store:
        ids = np.concatenate(
            [store.discover(urls[k : k + _CHUNK], now - 70 * DAY) for k in range(0, pages, _CHUNK)], dtype=np.int64
        )
        rate = np.exp(rng.normal(np.log(1 / (10 * DAY)), 1.5, pages))
        last = np.full(pages, now - 61 * DAY)
        for number in range(VISITS):
            time_of = last + rng.exponential(60 * DAY / VISITS, pages)
            changed = rng.random(pages) < -np.expm1(-rate * (time_of - last))
            verdict = np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED)
            last = np.minimum(time_of, now - 60.0)
            for k in range(0, pages, _CHUNK):
                some = slice(k, k + _CHUNK)
                said = verdict[some] if number else Verdict.UNKNOWN
                visits = Visits.of(ids[some], last[some], outcome=Outcome.FETCHED, verdict=said)
                store.record(visits, due=last[some] + 20 * DAY * rng.random(len(visits)))


class _Tree:
    """Memory of a process and its children, sampled: the most there was of it."""

    def __init__(self, pid: int) -> None:
        self.most = self.own = 0.0
        self._pid, self._over = pid, threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def _sample(self) -> None:
        while not self._over.wait(0.5):
            try:
                children = Path(f"/proc/{self._pid}/task/{self._pid}/children").read_text().split()
                each = [_pss(pid) for pid in (str(self._pid), *children)]
            except OSError:
                continue
            self.own, self.most = max(self.own, each[0]), max(self.most, sum(each))

    def end(self) -> None:
        self._over.set()
        self._thread.join()


def _pss(pid: str) -> float:
    """Its share of memory, in MiB: what is mapped by several is divided among them."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _events(folder: Path) -> list[dict[str, Any]]:
    log = folder / "recrawl.log"
    return [json.loads(line) for line in log.read_text("utf-8").splitlines()] if log.exists() else []


def _fits(folder: Path) -> int:
    log = folder / "recrawl.log"
    return log.read_text("utf-8").count('"policy fitted"') if log.exists() else 0


_SETTINGS = (
    "politeness.min_delay=0s",
    "politeness.factor=0",
    "politeness.ip_delay=0s",
    "fetch.allow_networks=127.0.0.0/8",
    "fetch.contact=benchmark@example.org",
    "crawl.log_level=info",
)


def measure_fits(pages: int, seconds: float) -> None:
    """Start, crawl beside fits for N seconds, stop; then stop other runs while they get ready."""
    with tempfile.TemporaryDirectory() as place, web(200, small_document) as server:
        folder = Path(place) / "workspace"
        populate(folder, pages, server.port)
        server.log()
        command = _command(folder)
        print(f"{pages:,} pages, {VISITS} visits each")
        _measure_run(command, folder, server, seconds)
        _measure_start(command, folder, server)
        for wait in (0.1, 0.5, 2.0, 4.0, 8.0):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(wait)
            code, took = _stopped(process)
            print(f"  SIGTERM {wait} s after the start: exit code {code} after {took:.2f} s")


def measure_starts(pages: int, visits: int) -> None:
    """CPU seconds of all processes until the first request, beside those of 10,000 pages. Kernels are compiled before.

    The stores have due times of an earlier fit, and no state of it: the start does not wait for the visits to be read.
    """
    means = []
    asyncio.run(_compile())
    for count in (_SMALL, pages):
        with tempfile.TemporaryDirectory() as place, web(200, small_document) as server:
            folder, now = Path(place) / "workspace", RealClock().now()
            subprocess.run([*_CORE, "init", str(folder)], check=True, capture_output=True)
            (folder / "recrawl.db").unlink()
            store = folder / "recrawl.db"
            populate_sqlite(store, count, HOSTS, since=now - DUE_SPAN / 100, port=server.port)
            add_visits(store, count, visits, now - DAY)
            workspace = open_workspace(folder, {})
            with workspace.open_store() as opened:
                note_fit(opened, policy_of(workspace.configuration.settings.schedule).name, now)
            spent = [_started(_command(folder), server) for _ in range(_STARTS)]
        cpu, wall, memory = (float(np.median([one[k] for one in spent])) for k in range(3))
        means.append(cpu)
        print(f"{count:>12,} pages: first request after {cpu:.1f} s of CPU, {wall:.1f} s; the crawler {memory:.0f} MiB")
    print(f"{means[1] / means[0]:.2f} x")
    sizes = f"{pages:,} pages, visits of each: {visits}"
    note("start", means[1], "s of CPU", sizes, baseline=means[0], beside=f"{_SMALL:,} pages")


async def _compile() -> None:
    """Wait until the kernels of a crawl are compiled."""
    done: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    async with kernels_ready([partial(warm_up_kernels, Settings())], done=done.set_result):
        if not can_compile():
            await done


def _started(command: list[str], server: Web) -> tuple[float, float, float]:
    """CPU seconds of all processes, seconds, and MiB of the crawler until the first request."""
    server.log()
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not len(arrived := server.log()[1]) and process.poll() is None:
        time.sleep(0.02)
    cpu, memory = sum(_cpu(process.pid)), _pss(str(process.pid))
    _stopped(process)
    return cpu, float(arrived[0]) - began, memory


def _command(folder: Path) -> list[str]:
    command = [*_CORE, "run", "-w", str(folder), "--budget", "100000000/day"]
    return command + [word for setting in _SETTINGS for word in ("--set", setting)]


def _measure_run(command: list[str], folder: Path, server: Web, seconds: float) -> None:
    began, before = time.perf_counter(), os.times()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    tree = _Tree(process.pid)
    _wait_for_fits(folder, 1, process)
    first_fit = time.perf_counter() - began
    time.sleep(seconds / 2)
    asked = time.perf_counter()
    limit = [*_CORE, "limit", "-w", str(folder), "schedule.budget=50000000/day"]  # which makes another fit necessary
    subprocess.run(limit, check=True, capture_output=True)
    _wait_for_fits(folder, 2, process)
    fitted = time.perf_counter()
    time.sleep(seconds / 2)
    stopped = time.perf_counter()
    code, took = _stopped(process)
    tree.end()
    arrived = np.sort(server.log()[1])
    if len(arrived) < _FEW and process.stderr is not None:
        print(process.stderr.read().decode())
        return
    cpu = sum(np.array(os.times()[2:4]) - before[2:4])
    beside = ((arrived > asked) & (arrived < fitted)).sum() / (fitted - asked)
    alone = ((arrived > fitted) & (arrived < stopped)).sum() / (stopped - fitted)
    told = _events(folder)
    late = [event["details"]["seconds"] for event in told if event["message"] == "event loop stalled"]
    loop = [event["details"] for event in told if event["message"] == "event loop"]
    wrong = sum(event["message"] == "no host can be reached" for event in told)
    failed = sum(event["message"] == "visited" and event["logLevel"] == "warn" for event in told)
    written = [event["details"].get("moved") for event in told if event["message"] == "policy fitted"]
    print(f"  first request after {arrived[0] - began:.1f} s, first fit complete after {first_fit:.1f} s")
    print(f"  {beside:,.0f} visits/s beside a fit of {fitted - asked:.1f} s, {alone:,.0f}/s after it")
    print(f"  due times written by fits: {written}")
    print(f"  longest silence {np.diff(arrived).max():.2f} s; event loop {loop}; late by more than 1 s: {late}")
    print(f"  {failed} failed visits, {wrong} times 'no host can be reached'")
    print(f"  memory {tree.most:,.0f} MiB at most, the crawler alone {tree.own:,.0f}; CPU {cpu:.1f} s")
    print(f"  SIGTERM to exit: {took:.2f} s, exit code {code}")


def _measure_start(command: list[str], folder: Path, server: Web) -> None:
    """Start twice more, with due times of an earlier fit in the store: with the state of that fit and without.

    What it takes until the first request, and until the first fit.
    """
    spent = []
    for what in ("with the state of the last fit", "without"):
        if what == "without":
            shutil.rmtree(folder / "state")
        server.log()
        fits, began = _fits(folder), time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not len(server.log()[1]) and process.poll() is None:
            time.sleep(0.02)
        took, (own, children) = time.perf_counter() - began, _cpu(process.pid)
        print(f"  next start, {what}: first request after {took:.1f} s; CPU {own:.1f} s, subprocesses {children:.1f} s")
        _wait_for_fits(folder, fits + 1, process)
        spent.append(_cpu(process.pid)[1])
        [*_, fit] = (event["details"] for event in _events(folder) if event["message"] == "policy fitted")
        print(f"    its first fit: {spent[-1]:.1f} s of CPU, {fit['visits']:,} visits read")
        _stopped(process)
    print(f"    the first fit without the state takes {spent[1] / spent[0]:.1f} x the CPU")


def _cpu(pid: int) -> tuple[float, float]:
    """CPU seconds of a process, and of its children that run."""

    def of(number: str) -> float:
        fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return of(str(pid)), sum(of(child) for child in children)


def _stopped(process: subprocess.Popen[bytes]) -> tuple[int, float]:
    """Stop a run; its exit code, and the seconds it took."""
    began = time.perf_counter()
    process.send_signal(signal.SIGTERM)
    return process.wait(), time.perf_counter() - began


def _wait_for_fits(folder: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    while _fits(folder) < count and process.poll() is None:
        time.sleep(0.2)
