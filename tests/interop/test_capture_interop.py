"""The judges accept a WARC and a WACZ that hold what is stated about a capture."""

from __future__ import annotations

import json
import zipfile

import numpy as np

from recrawl.crawl.site_capture.capture_course import capture_urn, report_json, report_of
from recrawl.crawl.site_capture.capture_order import CaptureOrder
from recrawl.formats.wacz import WaczInfo
from recrawl.formats.warc.warc_writer import WarcInfo, WarcWriter
from recrawl.model import Capture, Outcome, Verdict, Visits
from recrawl.store.open import open_store
from recrawl.store.store_values import FoundPages, SiteProgress, SiteStep
from recrawl.time import VirtualClock
from recrawl.transfer.wacz_export import pack

START = 1_700_000_000.0
HOME = "http://example.org/"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\n"
NO_PAGES = FoundPages(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0))


def stated(store, writer):
    """A capture of one page, seen twice, and its statement in store and archive."""
    page = store.discover([HOME], START, importance=0.0)
    order = CaptureOrder(site=HOME, strategy="bfs-lifo").as_json()
    known = FoundPages(page, np.array([-1]), np.array([1e-6]), np.ones(1))
    number = store.begin_site_capture(HOME, order, delay=1.0, now=START, known=known)
    for step, verdict in enumerate((Verdict.UNKNOWN, Verdict.UNCHANGED)):
        made = SiteStep(step, 0, bool(step), START + step, Outcome.FETCHED, verdict)
        visit = Visits.of(page, [START + step], verdict=verdict)
        store.record(visit, site=SiteProgress(number, made, NO_PAGES, known=1))
        writer.write(Capture(HOME, START + step, 200, HEAD, b"hello", b"GET / HTTP/1.1\r\n\r\n"))
    store.finish_site_capture(number, "", START + 2)
    [capture] = store.site_captures()
    text = json.dumps(report_json(report_of(store, capture), store.urls), allow_nan=False)
    writer.write_document(capture_urn(capture), START + 2, text.encode())
    store.finish_site_capture(number, text, START + 2)
    return json.loads(text)


def test_what_is_stated_about_a_capture_breaks_no_tool(tool, tmp_path):
    with open_store(tmp_path / "store.db", create=True) as store:
        with WarcWriter(tmp_path / "warc", VirtualClock(START), WarcInfo(host="crawler")) as writer:
            said = stated(store, writer)
        assert said["quality"]["coherence"]["coherent"] == 1
        checked = tool("warcio", "check", "-v", writer.path)
        assert checked.returncode == 0, checked.stdout
        pack(store, tmp_path / "warc", tmp_path / "ours.wacz", WaczInfo(START))
    with zipfile.ZipFile(tmp_path / "ours.wacz") as package:
        assert json.loads(package.read("captures/capture-1.json")) == said
    done = tool("wacz", "validate", "-f", tmp_path / "ours.wacz")
    assert done.returncode == 0, done.stdout + done.stderr
    listed = tool("cdxj-indexer", writer.path).stdout.splitlines()
    assert sum(line.startswith("org,example)/ ") for line in listed) == 2
