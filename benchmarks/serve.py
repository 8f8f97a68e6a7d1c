"""Look-ups in a large archive beside pywb on the same index, and pages of the dashboard of a large workspace.

uv run python benchmarks/serve.py                       10 million captures of 1 million pages; needs 6 GB of disk
uv run python benchmarks/serve.py --pages 20000         a quick look
uv run python benchmarks/serve.py --folder DIR          keep the workspace there, and use it again

Each server is a process of its own on one core; requests come from another, at the times of a Poisson process with
``--rate`` requests per second, whether answers to earlier ones have come or not. A request takes from when it should
have been sent to the last byte of its answer, so waiting in line and a new connection count. pywb is asked for the
nearest capture and for the captures of a prefix through its index server, which is the part of it that does the same
work; its TimeGate does more. Questions of each kind are asked before any is measured, so that programs are loaded.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import serve_population as population
from figures import note, options_of
from store_population import temporary_folder

HERE = Path(__file__).parent
DASHBOARD = (
    "/",
    "/hosts",
    "/pages",
    "/pages?sort=due",
    "/pages?search=page-777",
    "/pages/12345",
    "/captures",
    "/settings",
)
WARM_UP = 64
"""Questions that are asked before any is measured, eight at a time."""
TRIES = 10
AFTER_START = 2.0
"""Seconds until somebody has opened the address that the server printed."""
Question = tuple[str, dict[str, str]]
"""A path with its query, and headers."""
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--captures", type=int, default=10, help="of each page")
    parser.add_argument("--rate", type=float, default=50.0, help="requests a second")
    parser.add_argument("--seconds", type=float, default=20.0, help="for each kind of question")
    parser.add_argument("--folder", type=Path, help="where the workspace is, or is made and kept")
    parser.add_argument("--without", choices=["pywb", "dashboard"], nargs="*", default=[])
    parser.add_argument(
        "--real-time", action="store_true", help="before all other programs of a machine that is busy; needs root"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = options_of(parser)
    if options.real_time:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))  # children inherit it
    if options.folder is not None:
        measure(options, options.folder)
    else:
        with temporary_folder() as folder:
            measure(options, folder)


def measure(options: argparse.Namespace, folder: Path) -> None:
    """Build what is not there, and ask."""
    workspace, index, hosts = folder / "ws", folder / "index.cdxj", max(options.pages // 100, 10)
    if not (workspace / "recrawl.yaml").exists():
        begun = time.perf_counter()
        place = population.build(workspace, options.pages, hosts, options.captures)
        population.write_index(place, index, options.captures)
        print(f"built in {time.perf_counter() - begun:.0f} s")
    count = options.pages * options.captures
    print(
        f"{count:,} captures of {options.pages:,} pages, {options.rate:g} requests a second; "
        f"load of the machine {os.getloadavg()[0]:.1f}{', before all other programs' * options.real_time}"
    )
    rng = np.random.default_rng(options.seed)

    def page() -> int:
        return int(rng.integers(1, options.pages + 1))

    def moment(number: int) -> float:
        return population.time_of(number, 0) + float(rng.uniform(0, options.captures * population.ROUND))

    def gate() -> Question:
        number = page()
        date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(moment(number)))
        return f"/archive/{population.url_of(number, hosts)}", {"Accept-Datetime": date}

    def closest(way: str, more: str = "") -> Callable[[], Question]:
        def ask() -> Question:
            number = page()
            stamp = time.strftime("%Y%m%d%H%M%S", time.gmtime(moment(number)))
            query = f"url={population.url_of(number, hosts)}&closest={stamp}&sort=closest&limit=1{more}"
            return f"{way}?{query}", {}

        return ask

    def prefix(way: str, more: str = "") -> Callable[[], Question]:
        return lambda: (f"{way}?url=h{rng.integers(1, hosts + 1)}.example/section/*&limit=100{more}", {})

    run = Run(rng, options.rate, options.seconds)
    with server([str(HERE / "serve_ours.py"), "travel", str(workspace)]) as (port, pid):
        times_gate = run.measure("recrawl TimeGate", port, pid, gate)
        near = run.measure("recrawl CDX, nearest", port, pid, closest("/archive/cdx"))
        many = run.measure("recrawl CDX, prefix, 100 lines", port, pid, prefix("/archive/cdx"))
    if "pywb" not in options.without:
        with server([str(HERE / "serve_pywb.py"), str(index)]) as (port, pid):
            near_there = run.measure("pywb index, nearest", port, pid, closest("/bench/index"))
            many_there = run.measure("pywb index, prefix, 100 lines", port, pid, prefix("/bench/index"))
        sizes = f"{count:,} captures, {options.rate:g} requests/s"
        note("TimeGate", times_gate, "ms", sizes, baseline=near_there, beside="pywb's index, nearest")
        note("CDX, nearest", near, "ms", sizes, baseline=near_there, beside="pywb's index, nearest")
        note("CDX, prefix", many, "ms", sizes, baseline=many_there, beside="pywb's index, prefix")
    if "dashboard" not in options.without:
        with server([str(HERE / "serve_ours.py"), "dashboard", str(workspace)]) as (port, pid):
            slowest, again, path = asyncio.run(dashboard(port, pid))
        sizes = f"{options.pages:,} pages, slowest view of {len(DASHBOARD)}: {path}"
        note("dashboard", slowest, "ms", sizes, baseline=again, beside="the same view again, median")


@contextmanager
def server(command: list[str]) -> Iterator[tuple[int, int]]:
    """A server on the first core; its port and process. We ourselves go to the last one."""
    cores = sorted(os.sched_getaffinity(0))
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    os.sched_setaffinity(process.pid, {cores[0]})
    os.sched_setaffinity(0, {cores[-1]})
    try:
        assert process.stdout is not None
        line = next(line for line in process.stdout if line.startswith("port "))
        yield int(line.split()[1]), process.pid
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(30)
        os.sched_setaffinity(0, set(cores))


def processor_seconds(pid: int) -> float:
    """Time of processors that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Run:
    """Asks many questions of one kind."""

    def __init__(self, rng: np.random.Generator, rate: float, seconds: float) -> None:
        self._rng, self._rate, self._seconds = rng, rate, seconds

    def measure(self, name: str, port: int, pid: int, question: Callable[[], Question]) -> float:
        """Print how long answers take; milliseconds within which 99 % come."""
        asyncio.run(_timed(port, [question() for _ in range(WARM_UP)], np.arange(WARM_UP) // 8 * 0.5))
        count = round(self._rate * self._seconds)
        due = np.cumsum(self._rng.exponential(1 / self._rate, count))
        questions = [question() for _ in range(count)]
        before = processor_seconds(pid)
        took = 1_000 * asyncio.run(_timed(port, questions, due))
        spent = 1_000 * (processor_seconds(pid) - before) / count
        p50, p99 = np.quantile(took, [0.5, 0.99])
        print(
            f"{name:32} p50 {p50:6.1f} ms, p99 {p99:6.1f} ms, longest {took.max():6.1f} ms; "
            f"processor {spent:.1f} ms each"
        )
        return float(p99)


async def _timed(port: int, questions: list[Question], due: np.ndarray) -> np.ndarray:
    """Seconds each answer took from when its question was due."""
    begun = asyncio.get_running_loop().time()

    async def one(question: Question, when: float) -> float:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(begun + when - loop.time())
        connection = await asyncio.open_connection("127.0.0.1", port)
        status, _ = await _ask(connection, question)
        took = loop.time() - begun - when
        if status not in (200, 302):
            raise RuntimeError(f"{question[0]} was answered with {status}")
        connection[1].close()
        return took

    took = await asyncio.gather(*(one(question, when) for question, when in zip(questions, due.tolist(), strict=True)))
    return np.array(took)


async def _ask(connection: Connection, question: Question) -> tuple[int, bytes]:
    """Status and body of an answer."""
    reader, writer = connection
    path, headers = question
    lines = [f"GET {path} HTTP/1.1", "Host: 127.0.0.1", *(f"{name}: {value}" for name, value in headers.items())]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    status = int(head.split()[1])
    if "transfer-encoding: chunked" in head:
        parts = []
        while size := int(await reader.readline(), 16):
            parts.append((await reader.readexactly(size + 2))[:-2])
        await reader.readline()
        return status, b"".join(parts)
    length = int(head.partition("content-length:")[2].split()[0]) if "content-length:" in head else 0
    return status, await reader.readexactly(length)


async def _view(port: int, path: str) -> tuple[float, int, bytes]:
    """Milliseconds until a page is there, its status, and the page."""
    connection = await asyncio.open_connection("127.0.0.1", port)
    begun = time.perf_counter()
    status, body = await _ask(connection, (path, {"Accept": "text/html"}))
    took = 1_000 * (time.perf_counter() - begun)
    connection[1].close()
    return took, status, body


async def dashboard(port: int, pid: int) -> tuple[float, float, str]:
    """Print how long pages of the dashboard take, one after the other: first views, and the same again.

    Before, one page is asked for in the moment in which the server says where it is, while it still loads libraries.
    Returned is the slowest first view: its milliseconds, those of the same page afterwards, and its path.
    """
    at_once, _, _ = await _view(port, DASHBOARD[0])
    print(f"dashboard {DASHBOARD[0]:24} in the moment in which it starts: {at_once:.0f} ms")
    await asyncio.sleep(AFTER_START)
    views = []
    for path in DASHBOARD:
        took, before = [], processor_seconds(pid)
        for _ in range(TRIES):
            milliseconds, status, body = await _view(port, path)
            took.append(milliseconds)
        spent = 1_000 * (processor_seconds(pid) - before) / TRIES
        print(
            f"dashboard {path:24} {status}, {len(body):8,} bytes: first {took[0]:6.0f} ms, "
            f"then {np.median(took[1:]):5.0f} ms, longest {max(took[1:]):5.0f} ms; processor {spent:.0f} ms each"
        )
        views.append((took[0], float(np.median(took[1:])), path))
    return max(views)


if __name__ == "__main__":
    main()
