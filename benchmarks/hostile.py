"""A real crawl of hostile hosts beside healthy ones: does it end by itself, and what does it cost?

uv run python benchmarks/hostile.py                  all hosts, with the limits that a crawl has by default
uv run python benchmarks/hostile.py --quick          all hosts, with short time limits; a minute
uv run python benchmarks/hostile.py --only h2-reset  one host, beside the healthy ones

Prints a table of all hosts: what each did, what was recorded, what was kept. Ends with 1 if the run did not end with 0,
a healthy page was not visited, an outcome is not the one expected, or a server was reached that nobody may reach.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
from hostile_hosts import Host, HostileWeb, healthy, table

from recrawl.model import Outcome
from recrawl.store.open import open_store

HEALTHY = 12
PAGES_OF_HEALTHY = 5
MOST_MEMORY = 1_000_000_000
"""Bytes of the whole process tree."""
QUICK = {"fetch.connect_timeout": "8s", "fetch.idle_timeout": "6s", "fetch.timeout": "10s"}
SETTINGS = {
    "fetch.contact": "me@example.org",
    "fetch.allow_networks": "127.7.0.0/16",
    "politeness.min_delay": "50ms",
    "politeness.factor": "0",
    "politeness.ip_delay": "0",
    "schedule.budget": "100/s",
    "schedule.discovery_share": "1",
    "crawl.scope": "host",
    "crawl.max_pages_per_host": "8",
    "crawl.concurrency": "128",
}
_AS_RECRAWL = (
    "import sys; sys.path.insert(0, sys.argv[1]); port = int(sys.argv[2]); sys.argv[:3] = ['recrawl']; "
    "import hostile_hosts; hostile_hosts.resolve_with(port); from recrawl.__main__ import main; main()"
)


@dataclass(frozen=True)
class Met:
    """What came of one host."""

    host: Host
    outcome: str
    """Of the first page; empty if it was never visited."""
    status: int
    visits: int
    kept: int
    """Answers in the archive."""
    size: int
    """Bytes of body that were received, of all answers kept."""
    requests: int
    """Connections or requests that the host saw."""

    @property
    def is_right(self) -> bool:
        """Whether that was to be expected."""
        return self.outcome in self.host.expected


@dataclass(frozen=True)
class Report:
    """What came of a run."""

    met: Sequence[Met]
    code: int
    seconds: float
    memory: int
    """Largest sum of memory over the process tree, bytes; what processes share counts once (PSS)."""
    shares: Sequence[int]
    """Of each process in that moment, the crawl first, bytes."""
    late: Sequence[float]
    """By how many seconds the event loop of the crawl was late, each time that it was late by more than one."""
    longest: float
    """The most by which it was late, seconds."""
    trespasses: Sequence[str]
    said: str

    @property
    def faults(self) -> list[str]:
        """What is not as it should be."""
        found = [f"{one.host.name}: {one.outcome or 'never visited'}" for one in self.met if not one.is_right]
        found += [
            f"{one.host.name}: {one.visits} pages visited"
            for one in self.met
            if one.host.kind == "healthy" and one.visits < PAGES_OF_HEALTHY
        ]
        if self.code:
            found.append(f"exit code {self.code}: {self.said[-2_000:]}")
        if self.memory > MOST_MEMORY:
            found.append(f"{self.memory / 1e6:.0f} MB of memory")
        return [*found, *(f"reached {place}" for place in self.trespasses)]


def crawl(
    hosts: Sequence[Host], folder: Path, settings: Mapping[str, str], patience: float, dns_outage: float = 0.0
) -> Report:
    """Crawl hosts with ``recrawl run --once`` in a workspace below a folder; at most ``patience`` seconds.

    DNS answers nothing at all in the first ``dns_outage`` seconds after it was first asked.
    """
    with HostileWeb(hosts, folder) as web:
        web.be_down(dns_outage)
        environment = os.environ | {"SSL_CERT_FILE": str(web.trusted)}  # noqa: TID251 - inherited
        start = [sys.executable, "-c", _AS_RECRAWL, str(Path(__file__).parent), str(web.dns_port)]
        workspace = folder / "ws"

        def begin(*words: str) -> subprocess.Popen[str]:
            return subprocess.Popen(
                [*start, *words], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )

        seeds = folder / "seeds.txt"
        seeds.write_text("".join(f"{web.url(host.name)}\n" for host in hosts))
        for words in (("init", str(workspace)), ("add", "-w", str(workspace), "--file", str(seeds))):
            prepared = begin(*words)
            said, _ = prepared.communicate()
            if prepared.returncode:
                raise SystemExit(said)
        options = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        began = time.perf_counter()
        process = begin("run", "-w", str(workspace), "--once", "--for", f"{patience}s", *options)
        shares = _watch(process, 3 * patience)
        said, _ = process.communicate()
        seconds = time.perf_counter() - began
        web.close()
        met = [_met(web, host, workspace) for host in hosts]
        late, longest = _late(workspace)
        return Report(met, process.returncode, seconds, sum(shares), shares, late, longest, list(web.trespasses), said)


def _late(workspace: Path) -> tuple[list[float], float]:
    """Stalls of the event loop, as the log of the crawl tells them; and the longest, seconds."""
    late, longest = [], 0.0
    for line in (workspace / "recrawl.log").read_text("utf-8").splitlines():
        event = json.loads(line)
        if event["message"] == "event loop stalled":
            late.append(float(event["details"]["seconds"]))
        elif event["message"] == "event loop":
            longest = float(event["details"]["longest_lag"])
    return late, longest


def _watch(process: subprocess.Popen[str], patience: float) -> list[int]:
    """Wait for the end of a process; memory of it and its children when they held most together, bytes."""
    most, until = [0], time.perf_counter() + patience
    while process.poll() is None:
        if time.perf_counter() > until:
            process.kill()
        tree: list[psutil.Process] = []
        try:
            parent = psutil.Process(process.pid)
            tree = [parent, *parent.children(recursive=True)]
        except psutil.Error:
            pass
        shares = []
        for one in tree:
            try:
                shares.append(one.memory_full_info().pss)  # what processes share counts once
            except psutil.Error:
                continue
        most = max(most, shares, key=sum)
        time.sleep(0.2)
    return most


def _met(web: HostileWeb, host: Host, workspace: Path) -> Met:
    import numpy as np

    with open_store(workspace / "recrawl.db") as store:
        page, name = store.find(web.url(host.name)), web.url(host.name).split("/")[2]
        number = store.find_host(name)
        visits = store.visits(host=number)
        first = store.visits(pages=np.array([page.id])) if page else visits.take(np.empty(0, np.int64))
        pages = np.unique(visits.page)
        kept = store.captures(pages) if len(pages) else []
        outcome, status = (
            ("", 0) if not len(first) else (Outcome(first.outcome[-1]).name.lower(), int(first.status[-1]))
        )
        size = sum(one.size for one in kept)
        return Met(host, outcome, status, len(pages), len(kept), size, len(web.asked.get(host.name, ())))


def main() -> None:
    """Crawl and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="short time limits")
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="only this hostile host; repeatable"
    )
    parser.add_argument("--dns-outage", type=float, default=0.0, metavar="SECONDS", help="DNS is silent at first")
    parser.add_argument("--patience", type=float, default=600.0, metavar="SECONDS", help="most time for the run")
    asked = parser.parse_args()
    hostile = [host for host in table() if not asked.only or host.name in asked.only]
    with tempfile.TemporaryDirectory() as folder:
        settings = SETTINGS | (QUICK if asked.quick else {})
        report = crawl([*hostile, *healthy(HEALTHY)], Path(folder), settings, asked.patience, asked.dns_outage)
    print("| host | kind | what it does | outcome | status | pages | kept | bytes | requests |")
    print("|---|---|---|---|---:|---:|---:|---:|---:|")
    for one in report.met:
        row = (one.host.name, one.host.kind, one.host.does, one.outcome, one.status)
        print("|", " | ".join(map(str, (*row, one.visits, one.kept, one.size, one.requests))), "|")
    beside = f"{len(hostile)} hostile hosts beside {HEALTHY} healthy ones"
    print(f"\n{beside}: exit code {report.code} after {report.seconds:.0f} s, {report.memory / 1e6:.0f} MB at most")
    print("memory of each process then, the crawl first:", ", ".join(f"{one / 1e6:.0f} MB" for one in report.shares))
    print(f"event loop late by {report.longest:.2f} s at most; by more than 1 s: {sorted(report.late, reverse=True)}")
    print(report.said[-600:])
    for fault in report.faults:
        print("FAULT", fault)
    sys.exit(bool(report.faults))


if __name__ == "__main__":
    main()
