"""Pages that tick, rotate and change slowly in one markup: ``python benchmarks/ticking_sites.py [--phases N]``.

A real crawl over HTTP on loopback, in virtual time: servers, store, confirmations and audits are real. Each host has
twelve pages in one template, with a reading, a text, and on one host a motto drawn at each request:

    ticking    one page whose reading is another every second, beside eleven whose readings change every 25 s
    plain      the eleven alone
    rotating   a motto is drawn at each request on every page; readings change every 25 s to 2 h
    slow       one ticking page; the readings of the others change every 5 min to 2 h

Printed for each host: visits that had a verdict, those before which the reading had changed, how many of these were
found, how many were not since the reading changed once more before the confirmation, changes reported that were none,
confirmations, and parts masked at the end. Ticking pages are left out: what differs at every request is noise there,
and nothing to be found. The tests hold the floor of it.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from zlib import crc32

import numpy as np

from recrawl.crawl.visit.scope import HostScope
from recrawl.crawl.worker.crawl_assembly import WorkerSettings, live_crawl
from recrawl.detect.comparison import NEAR
from recrawl.detect.noise.learned_noise import NoiseEvidence
from recrawl.model import Verdict
from recrawl.schedule.policies.fixed_interval import Uniform
from recrawl.schedule.politeness.host_politeness import PolitenessRules
from recrawl.store.base import Store
from recrawl.store.open import open_store
from recrawl.time import VirtualClock

START = 1_790_000_000.0
PAGES = 12
TICKING_PAGE = 0
_WORDS = ["river", "harbour", "market", "council", "winter", "bridge", "garden", "library", "school", "ferry", "tower"]
_MOMENTS = min(NEAR, 20.0)
"""Seconds within which a visit to the same page is a confirmation."""
_PHASE = 2.1
"""Seconds between phases; 25 s is the shortest time between edits."""
_LONG = (300.0, 900.0, 1800.0, 3600.0, 7200.0)


@dataclass(frozen=True)
class Site:
    """One host: how often the readings of its pages change, seconds, by page."""

    name: str
    periods: tuple[float, ...]
    rotates: bool = False
    ticks: bool = False
    phase: float = 0.0
    """Seconds by which all its readings change earlier."""

    def version(self, page: int, now: float) -> int:
        """Which reading a page has."""
        return int((now - START + 7.3 * page + self.phase) // self.periods[page])

    def html(self, page: int, now: float, request: int) -> str:
        """The page as it is now."""
        motto = (
            f"<blockquote class=motto><p>{_sentence('motto', request % 7, 3)}</p></blockquote>" if self.rotates else ""
        )
        reading = _sentence(self.name, page, self.version(page, now))
        about = " ".join(_sentence("about", self.name, page, number) for number in range(6))
        return (
            f"<html><head><title>Station {page}</title></head><body><main><h1>Station {page}</h1>"
            f"<p class=reading>{reading}</p><p class=about>{about}</p></main>{motto}</body></html>"
        )


SITES = (
    Site("ticking.test", (1.0, *[25.0] * (PAGES - 1)), ticks=True),
    Site("plain.test", (1e9, *[25.0] * (PAGES - 1))),
    Site("rotating.test", (1e9, *(25.0, *_LONG, 25.0, *_LONG)[: PAGES - 1]), rotates=True),
    Site("slow.test", (1.0, *(_LONG * 3)[: PAGES - 1]), ticks=True),
)


def _sentence(*seed: object) -> str:
    seeded = np.random.default_rng(crc32(repr(seed).encode()))
    return f"The {' '.join(seeded.choice(_WORDS, 7))}."


@dataclass
class Web:
    """The sites, served on loopback by the time of a clock."""

    clock: VirtualClock
    sites: tuple[Site, ...] = SITES
    port: int = 0
    requests: int = 0
    edited: set[str] = field(default_factory=set)
    """Hosts whose mottos are no longer drawn but edited, every four minutes."""

    def hosts(self) -> list[str]:
        """Names with the port."""
        return [f"{site.name}:{self.port}" for site in self.sites]

    def urls(self) -> list[str]:
        """Of all pages."""
        return [f"http://{host}/{page}" for host in self.hosts() for page in range(PAGES)]

    def answer(self, host: str, path: str) -> str | None:
        """What a host says to a path."""
        site = next((site for site in self.sites if site.name == host.partition(":")[0]), None)
        if site is None or not path[1:].isdigit():
            return None
        self.requests += 1
        now = self.clock.now()
        drawn = int(now // 240.0) if site.name in self.edited else crc32(b"%d" % self.requests)
        return site.html(int(path[1:]), now, drawn)


@contextmanager
def served(web: Web) -> Iterator[Web]:
    """The web, answering on a port of its own."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            said = web.answer(self.headers.get("Host", ""), self.path)
            body = (said or "nothing").encode()
            self.send_response(200 if said else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's signature
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    web.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield web
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def crawl(web: Web, store: Store, folder: Path, seconds: float, *, every: float = 60.0) -> None:
    """Visit all pages about every ``every`` seconds for ``seconds`` seconds."""

    async def run() -> None:
        settings = WorkerSettings(
            len(web.sites) * PAGES / every,
            "ticking/1.0 (+https://example.org/)",
            politeness=PolitenessRules(factor=0.0, shortest=2.0),
            durable=False,
            pins=dict.fromkeys(web.hosts(), "127.0.0.1"),
        )
        async with live_crawl(
            "w",
            Uniform(),
            clock=web.clock,
            store=store,
            folder=folder,
            scope=HostScope(frozenset(web.hosts())),
            settings=settings,
        ) as driver:
            store.discover(web.urls(), web.clock.now())
            await driver.run(web.clock.now() + seconds)

    asyncio.run(run())


@dataclass
class Found:
    """What a crawl made of a host, ticking pages apart."""

    judged: int = 0
    changed: int = 0
    """Visits before which the reading had changed."""
    found: int = 0
    between: int = 0
    """Not found by their visit, since the reading changed again between it and its confirmation. The next visit is
    compared with the same version and finds them."""
    alarms: int = 0
    """Changes reported that were none."""
    confirmations: int = 0
    masked: int = 0
    ticking: int = 0
    """Changes reported of the page that ticks."""

    def add(self, other: Found) -> None:
        """Count another crawl, too."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


def assess(store: Store, site: Site, since: float = START) -> Found:
    """What was found on a host beside what was so."""
    [host] = [number for number, name in zip(*_hosts(store), strict=True) if name.startswith(f"{site.name}:")]
    found = Found(masked=NoiseEvidence.counted(store.noise(np.array([host]))).noise_of(host).masked)
    pages = store.pages()
    for page in pages.id[pages.host == host].tolist():
        number = int(store.urls(np.array([page]))[0].rpartition("/")[2])
        visits = store.visits(pages=np.array([page]))
        known: int | None = None
        times = visits.time.tolist()
        for time, after, verdict in zip(times, [*times[1:], np.inf], visits.verdict.tolist(), strict=True):
            version = site.version(number, time)
            edited = after - time < _MOMENTS and site.version(number, after) != version
            if verdict != Verdict.UNKNOWN and time >= since:
                if site.ticks and number == TICKING_PAGE:
                    found.ticking += verdict == Verdict.CHANGED
                else:
                    found.judged += 1
                    found.changed += version != known
                    found.found += version != known and verdict == Verdict.CHANGED
                    found.between += version != known and verdict == Verdict.UNCHANGED and edited
                    found.alarms += version == known and verdict == Verdict.CHANGED
            if known is None or verdict == Verdict.CHANGED:  # else it is compared with the version before
                known = version
        found.confirmations += int((np.diff(visits.time) < _MOMENTS).sum())
    return found


def _hosts(store: Store) -> tuple[list[int], list[str]]:
    hosts = store.hosts()
    return hosts.id.tolist(), hosts.name


def main() -> None:
    """Print one line a host, the sum over all phases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0, help="of virtual time")
    parser.add_argument("--phases", type=int, default=1, help="crawls, in each of which edits fall on other seconds")
    options = parser.parse_args()
    heads = ("host", "judged", "changed", "found", "between", "recall", "alarms", "share", "confirmations", "masked")
    print("".join(f"{head:>14}" for head in heads))
    whole = {site.name: Found() for site in SITES}
    for phase in range(options.phases):
        sites = tuple(replace(site, phase=_PHASE * phase) for site in SITES)
        with (
            tempfile.TemporaryDirectory() as name,
            served(Web(VirtualClock(START), sites)) as web,
            open_store(f"{name}/store.db", create=True, durable=False) as store,
        ):
            crawl(web, store, Path(name), 60.0 * options.minutes)
            for site in web.sites:
                whole[site.name].add(assess(store, site))
    for host, told in whole.items():
        recall = told.found / max(1, told.changed)
        alarms = told.alarms / max(1, told.judged)
        counts = (told.judged, told.changed, told.found, told.between, f"{recall:.4f}", told.alarms)
        values = (host, *counts, f"{alarms:.4f}", told.confirmations, told.masked)
        print("".join(f"{value:>14}" for value in values))


if __name__ == "__main__":
    main()
