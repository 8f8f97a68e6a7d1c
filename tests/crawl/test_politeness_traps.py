"""Sites without end: a crawl of them ends, or stays within bounds, and goes on with other pages."""

from __future__ import annotations

import asyncio
import math
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from warcio.archiveiterator import ArchiveIterator

from recrawl.crawl.visit.scope import ScopeKind, ScopeRules, WorkspaceScope
from recrawl.crawl.worker.crawl_assembly import WorkerSettings, live_crawl
from recrawl.crawl.worker.crawl_worker import WorkerPace
from recrawl.schedule.policies.fixed_interval import FixedInterval
from recrawl.schedule.politeness.host_politeness import PolitenessRules
from recrawl.store.open import open_store
from recrawl.time import DAY, VirtualClock
from recrawl.urls import address

START = 1.79e9  # in 2026
MOST = 60


def calendar(path):
    """Every month links to the next one."""
    year, month = map(int, path.split("/")[2:4]) if path.startswith("/calendar/") else (2026, 1)
    year, month = year + month // 12, month % 12 + 1
    return 200, {}, f'<a href="/calendar/{year}/{month:02}/">next</a>'


def deeper(path):
    """A link relative to the wrong place."""
    return 200, {}, f'<a href="{path.rstrip("/")}/a/b/">deeper</a>'


def numbers(path):
    """Nothing in its URLs gives it away."""
    number = int(path.strip("/") or 0)
    return 200, {}, "".join(f'<a href="/{2 * number + step}">x</a>' for step in (1, 2))


def chain(path):
    """Each page sends us to the next one."""
    return 302, {"Location": f"/{int(path.strip('/') or 0) + 1}"}, ""


def circle(path):
    return 302, {"Location": "/b" if path != "/b" else "/c", "Set-Cookie": "way=1"}, ""


def sessions(path):
    """A new session for whoever brings none."""
    return (
        200,
        {"Set-Cookie": f"sid={len(path)}"},
        f'<a href="/page?sid={len(path)}a">x</a><a href="/in;jsessionid=9">y</a>',
    )


def lists(path):
    """Each list of sitemaps names two more."""
    if path == "/robots.txt":
        return 200, {}, "Sitemap: /1.xml"
    if path == "/":
        return 200, {}, "home"
    names = (2 * int(path[1:-4]), 2 * int(path[1:-4]) + 1)
    children = "".join(f"<sitemap><loc>HOME/{name}.xml</loc></sitemap>" for name in names)
    return 200, {}, f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{children}</sitemapindex>'


@pytest.mark.parametrize(
    ("answer", "most"),
    [(calendar, 25), (deeper, 10), (numbers, MOST), (chain, 21), (circle, 3), (sessions, 1), (lists, 8)],
    ids=lambda case: getattr(case, "__name__", str(case)),
)
def test_a_trap_is_left_again(tmp_path, answer, most):
    asked = _crawl(tmp_path, answer)
    pages = {path for path, _ in asked if path != "/robots.txt"}
    assert 1 <= len(pages) <= most
    assert answer is not numbers or len(pages) == MOST, "as many as a host may have"
    assert answer is not lists or len(pages) == most, "the page, and sitemaps on three levels"
    assert not any("Cookie" in headers for _, headers in asked)


def test_the_way_by_redirects_is_kept_in_the_archive_and_in_the_log(tmp_path):
    """Letters for hops and the page before (conventions W4, L1, L2)."""
    _crawl(tmp_path, lambda path: chain(path) if path < "/3" else (200, {}, "the end"))
    [file] = (tmp_path / "warc").glob("*.warc.gz")
    with file.open("rb") as stream:
        about = {
            record.rec_headers.get_header("WARC-Target-URI").rpartition("/")[2]: record.content_stream().read().decode()
            for record in ArchiveIterator(stream)
            if record.rec_type == "metadata" and record.rec_headers.get_header("WARC-Target-URI").startswith("http")
        }
    ways = {name: (re.search(r"via: .*/(.*)\r", text)[1], re.search(r"hopsFromSeed: (\w+)", text)[1])
            for name, text in about.items() if "via:" in text}  # fmt: skip
    assert ways == {"1": ("", "R"), "2": ("1", "RR"), "3": ("2", "RRR")}
    lines = [line.split() for line in (tmp_path / "crawl.log").read_text().splitlines()]
    assert {(line[3].rpartition("/")[2], line[4], line[5].rpartition("/")[2]) for line in lines} == {
        ("robots.txt", "P", "-"),
        ("", "-", "-"),
        ("1", "R", ""),
        ("2", "RR", "1"),
        ("3", "RRR", "2"),
    }


def _crawl(folder, answer):
    """What was asked for in two days of virtual time, every page being due every six hours."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 65_536

        def do_GET(self):
            asked.append((self.path, dict(self.headers)))
            status, headers, body = (
                answer(self.path) if answer is lists or self.path != "/robots.txt" else (404, {}, "")
            )
            body = body.replace("HOME", f"http://{self.headers['Host']}")
            self.send_response(status)
            for name, value in {"Content-Type": "text/html", **headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        asyncio.run(_run(folder, address(f"http://127.0.0.1:{server.server_port}/")))
    finally:
        server.shutdown()
        server.server_close()
    return asked


async def _run(folder, home):
    clock = VirtualClock(START)
    settings = WorkerSettings(
        1.0,
        "traps/1.0 (+https://example.org/)",
        politeness=PolitenessRules(factor=0.0, shortest=60.0, longest=60.0),
        max_pages_per_host=MOST,
        pace=WorkerPace(poll=math.inf),
        durable=False,
    )
    scope = WorkspaceScope(ScopeRules(kind=ScopeKind.HOST), [home], year=2026)
    with open_store(str(folder / "store.db"), create=True, durable=False) as store:
        store.discover([home.url], START)
        crawling = live_crawl(
            "w", FixedInterval(DAY / 4), clock=clock, store=store, folder=folder, scope=scope, settings=settings
        )
        async with crawling as driver:
            await driver.run(START + DAY / 2)
