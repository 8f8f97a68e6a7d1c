"""The scheduler inside a real Scrapy process, against a real server whose pages change."""

import hashlib
import json
import subprocess
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from recrawl.app.workspace.workspace import make_workspace
from recrawl.model import Outcome, Verdict

pytestmark = pytest.mark.slow

SPIDER = """
import sys
import scrapy
from scrapy.crawler import CrawlerProcess

BASE, FOLDER, KEYS = sys.argv[1], sys.argv[2], eval(sys.argv[3])

class Pages(scrapy.Spider):
    name = "pages"
    start_urls = [BASE + "/"]

    def parse(self, response):
        yield {"url": response.url, "by": "parse"}
        if response.url == BASE + "/":
            for name in ("steady", "restless", "moved", "gone", "broken"):
                yield response.follow("/" + name, meta=response.meta)  # as many spiders do
            yield response.follow("/named", callback=self.parse_named, cb_kwargs={"word": "kept"})
            yield scrapy.FormRequest(BASE + "/form", formdata={"a": "1"}, callback=self.parse_form)
            yield scrapy.Request(BASE + "/lambda", callback=lambda r: {"url": r.url, "by": "lambda"})

    def parse_named(self, response, word):
        yield {"url": response.url, "by": word}

    def parse_form(self, response):
        yield {"url": response.url, "by": response.text}

settings = {
    "ADDONS": {"recrawl.integrations.scrapy.Addon": 500},
    "RECRAWL_WORKSPACE": FOLDER,
    "FEEDS": {FOLDER + "/items.jsonl": {"format": "jsonlines"}},
    "ROBOTSTXT_OBEY": True,
    "RETRY_TIMES": 1,
    "RETRY_PRIORITY_ADJUST": 0,
    "TELNETCONSOLE_ENABLED": False,
    "DOWNLOAD_DELAY": 0,
    "LOG_LEVEL": "WARNING",
    **KEYS,
}
process = CrawlerProcess(settings)
process.crawl(Pages)
process.start()
"""


class Pages(BaseHTTPRequestHandler):
    """Pages by name; ``restless`` is another one each time it is asked for."""

    def do_GET(self):
        name = self.path.strip("/")
        count = self.server.asked
        count[name] += 1
        self.server.headers.append((name, self.headers.get("If-None-Match")))
        if name == "moved":
            self.answer(302, b"", Location="/target")
        elif name == "gone":
            self.answer(404, b"gone")
        elif name == "broken":
            self.close_connection = True
            self.connection.close()
        elif name == "robots.txt":
            self.answer(200, b"User-agent: *\nDisallow: /forbidden\n")
        else:
            body = f"<html>{name} {count[name] if name == 'restless' else ''}</html>".encode()
            tag = f'"{hashlib.sha1(body).hexdigest()}"'
            if self.headers.get("If-None-Match") == tag:
                self.answer(304, b"", ETag=tag)
            else:
                self.answer(200, body, ETag=tag)

    def do_POST(self):
        self.answer(200, self.rfile.read(int(self.headers["Content-Length"])))

    def answer(self, status, body, **headers):
        self.send_response(status)
        for name, value in {"Content-Type": "text/html", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_words):
        pass


@pytest.fixture
def web():
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        server.asked, server.headers = Counter(), []
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        server.base = f"http://127.0.0.1:{server.server_port}"
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def place(tmp_path):
    flags = {
        "schedule.budget": "50/s",
        "schedule.discovery_share": "1",
        "schedule.min_interval": "1s",
        "politeness.min_delay": "0s",
        "politeness.retry": "1h",
    }
    return make_workspace(tmp_path / "archive", flags)


def crawl(place, web, **keys):
    """Run the spider to its end; the items it made."""
    script = place.folder / "spider.py"  # Scrapy reads the source of callbacks
    script.write_text(SPIDER)
    done = subprocess.run(
        [sys.executable, str(script), web.base, str(place.folder), repr(keys)],
        check=False,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    assert "integrations/scrapy.py" not in done.stderr, done.stderr
    lines = (place.folder / "items.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def visits(place, web, path):
    """Outcomes and verdicts of the visits to a page."""
    with place.open_store() as store:
        page = store.find(web.base + path)
        if page is None:
            return []
        found = store.visits(pages=np.array([page.id])).sorted()
        return [(Outcome(a), Verdict(b)) for a, b in zip(found.outcome, found.verdict, strict=True)]


def test_a_spider_that_ends_when_nothing_is_due(place, web):
    items = crawl(place, web, RECRAWL_FOREVER=False, RECRAWL_SETTINGS={"schedule.min_interval": "1h"})
    by = {item["url"].removeprefix(web.base): item["by"] for item in items}
    assert by == {
        "/": "parse",
        "/steady": "parse",
        "/restless": "parse",
        "/target": "parse",
        "/named": "kept",
        "/form": "a=1",
        "/lambda": "lambda",
    }
    assert visits(place, web, "/steady") == [(Outcome.FETCHED, Verdict.UNKNOWN)]
    assert visits(place, web, "/moved") == [(Outcome.REDIRECTED, Verdict.UNKNOWN)]
    assert visits(place, web, "/target") == [(Outcome.FETCHED, Verdict.UNKNOWN)]
    assert visits(place, web, "/gone") == [(Outcome.GONE, Verdict.UNKNOWN)]
    assert visits(place, web, "/broken") == [(Outcome.UNREACHABLE, Verdict.UNKNOWN)]
    assert web.asked["broken"] == 2  # Scrapy's own second try
    assert visits(place, web, "/form") == []  # it is no page
    assert web.asked["steady"] == 1


def test_a_spider_that_runs_for_ever_comes_back_with_conditional_requests(place, web):
    """A second start goes on where the first ended, with the callbacks of the first."""
    crawl(place, web, CLOSESPIDER_PAGECOUNT=20)
    steady = visits(place, web, "/steady")
    assert steady[0] == (Outcome.FETCHED, Verdict.UNKNOWN)
    assert set(steady[1:]) == {(Outcome.NOT_MODIFIED, Verdict.UNCHANGED)}
    assert set(visits(place, web, "/restless")[1:]) == {(Outcome.FETCHED, Verdict.CHANGED)}
    asked = [tag for name, tag in web.headers if name == "steady"]
    assert asked[0] is None
    assert all(asked[1:])
    before = web.asked["named"]
    items = crawl(place, web, CLOSESPIDER_PAGECOUNT=20)
    assert web.asked["named"] > before
    assert items[-1]["by"] in {"parse", "kept"}
    with place.open_store() as store:
        assert len(store.in_flight(0.0)) == 0 or store.queue_counts(0.0).in_flight <= 10


def test_a_budget_holds(place, web):
    """A budget of three requests an hour hands out three, whatever is due."""
    limits = {"schedule.budget": "3/h", "schedule.burst": "1h"}
    crawl(place, web, CLOSESPIDER_TIMEOUT=4, RECRAWL_SETTINGS=limits)
    handed_out = {name for name, count in web.asked.items() if count and name not in {"robots.txt", "lambda", "target"}}
    assert len(handed_out) <= 3
