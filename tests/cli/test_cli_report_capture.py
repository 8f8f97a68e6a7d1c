"""``recrawl report`` on a workspace with captures of a site: each is one crawl, and has a graph of its own."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.app.workspace.workspace import make_workspace
from recrawl.assess.site_structure import ChangeClass
from recrawl.cli.collect.report_command import report_of_workspace
from recrawl.crawl.site_capture.capture_order import CaptureOrder
from recrawl.model import ChangeKind, Outcome, Verdict, Visits
from recrawl.store.store_values import FoundPages, SiteProgress, SiteStep
from recrawl.web.report.report_page import report_json

START = 1_700_000_000.0
URLS = ["http://a.org/", "http://a.org/x/", "http://a.org/x/1", "http://a.org/x/2"]
NONE = FoundPages(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0))


def capture(store, start, changed):
    """A capture of all pages with revisits; one of them finds a change, which a second look a moment later confirms."""
    page = store.discover(URLS, start)
    known = FoundPages(page[:1], np.array([-1]), np.array([1e-6]), np.ones(1))
    terms = CaptureOrder(site=URLS[0], strategy="bfs-lifo").as_json()
    number = store.begin_site_capture(URLS[0], terms, delay=1.0, now=start, known=known)
    found = FoundPages(page[1:], np.array([0, 1, 1]), np.full(3, 1e-6), np.ones(3))
    steps = [(which, False, Verdict.UNKNOWN) for which in range(4)]
    steps += [(which, True, Verdict.CHANGED if which == changed else Verdict.UNCHANGED) for which in (2, 1, 0)]
    for place, (which, again, verdict) in enumerate(steps):
        time = start + 10.0 * place
        step = SiteStep(place, which, again, time, int(Outcome.FETCHED), int(verdict))
        progress = SiteProgress(number, step, NONE if place else found, 4 if place else 1)
        store.record(Visits.of(page[[which]], [time], verdict=verdict, kinds=ChangeKind.CONTENT), site=progress)
        if verdict == Verdict.CHANGED:
            store.record(Visits.of(page[[which]], [time + 1.0]))
    store.finish_site_capture(number, "{}", start + 100.0)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """``report(capture=…)``: sections of a workspace with two captures; /x/1 changed in the first, /x/ later."""
    place = make_workspace(tmp_path_factory.mktemp("ws") / "archive", {"fetch.contact": "https://example.org/"})
    with place.open_store() as store:
        capture(store, START, changed=2)
        capture(store, START + 3_600.0, changed=1)

        def made(**about):
            told = report_json(report_of_workspace(place, store, now=START + 7_200.0, **about))
            return {section["anchor"]: section for section in told["sections"]}

        yield made


def test_second_looks_are_no_crawls_of_their_own(report):
    sections = report()
    [crawls] = [table for table in sections["quality"]["tables"] if table["name"] == "crawls"]
    told = {column["title"]: column["values"] for column in crawls["columns"]}
    assert told["pages"] == [4, 4]
    assert told["coherent"] == [3, 3]
    assert told["changed"] == [1, 1]
    assert sections["crawls"]["words"][0].startswith("2 crawls of a.org")


@pytest.mark.parametrize(("number", "changed"), [(1, URLS[2]), (2, URLS[1])])
def test_the_graph_of_a_capture_is_its_own(report, number, changed):
    section = report(capture=number)["graph"]
    [table] = section["tables"]
    assert table["columns"][0]["values"] == [changed]
    drawn = section["figures"][0]["data"]
    assert drawn["pages"]["change"].count(ChangeClass.CONTENT) == 1
    assert all(rate != 1e-6 for rate in drawn["pages"]["rate"])  # what is known by now, not what the strategy was told
