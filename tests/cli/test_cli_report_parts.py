"""Reports on several hosts: each by itself, those that are looked at all the time, and parts that change together."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.app.workspace.workspace import make_workspace
from recrawl.cli.collect.report_command import report_of_workspace
from recrawl.model import Verdict, Visits
from recrawl.time import DAY, HOUR
from recrawl.web.report.report_page import report_json

START, DAYS = 1_699_920_000.0, 20
"""A midnight, since stretches of a day begin there."""


def crawled(store, rng):
    """Host b: a crawl a day; sections s0 and s1 change on the same days, s2 on others. Returns verdicts, by page."""
    urls = [f"http://b.org/s{part}/p{page}" for part in range(3) for page in range(8)]
    pages = store.discover(urls, START)
    days = rng.random(DAYS) < 0.4
    changed = np.array([days if number < 16 else ~days for number in range(24)]) & (rng.random((24, DAYS)) < 0.9)
    time = START + DAY * np.arange(DAYS)[None, :] + np.arange(24)[:, None]
    return record(store, pages, time, changed)


def watched(store, rng):
    """Host a: some page every three hours, so that there is never a pause. Returns verdicts, by page."""
    pages = store.discover([f"http://a.org/p{page}" for page in range(8)], START)
    time = START + DAY * np.arange(DAYS)[None, :] + 3 * HOUR * np.arange(8)[:, None]
    return record(store, pages, time, rng.random((8, DAYS)) < 0.3)


def record(store, pages, time, changed):
    verdict = np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED)
    verdict[:, 0] = Verdict.UNKNOWN
    store.record(Visits.of(np.repeat(pages, DAYS), time.ravel(), verdict=verdict.ravel()))
    return verdict


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The sections of the report by anchor, and what looks at a and b found."""
    place = make_workspace(tmp_path_factory.mktemp("parts") / "archive", {})
    rng = np.random.default_rng(4)
    with place.open_store() as store:
        found = watched(store, rng), crawled(store, rng)
        made = report_json(report_of_workspace(place, store))
    return {section["anchor"]: section for section in made["sections"]}, *found


def series(figure, name):
    return np.array(next(one["y"] for one in figure["series"] if one["name"] == name))


def test_areas_are_told_of_all_hosts_and_of_each(told):
    sections, a, b = told
    [html] = [one for one in sections["crawls"]["figures"] if one["name"] == "areas-html"]
    every, *hosts = html["data"]["choices"]
    assert (every["name"], sorted(one["name"] for one in hosts)) == ("all 2 hosts", ["a.org", "b.org"])
    assert html["data"]["series"] == every["series"]
    assert html["data"]["y"]["title"] == "HTML pages"
    assert html["words"] == every["words"]
    said = sections["crawls"]["words"][0]
    assert said.endswith("likely to be incoherent.")
    assert "of the HTML pages observed again had changed" in html["words"]
    assert html["words"] not in said
    by_name = {one["name"]: one for one in hosts}
    assert by_name["b.org"]["words"].startswith("20 crawls of b.org")
    assert series(by_name["b.org"], "changed").tolist() == (b[:, 1:] == Verdict.CHANGED).sum(axis=0).tolist()
    assert by_name["a.org"]["words"].startswith("a.org was observed continuously")
    changes = {"a.org": int((a == Verdict.CHANGED).sum()), "b.org": int((b == Verdict.CHANGED).sum())}
    for name, one in by_name.items():
        assert series(one, "changed").sum() == changes[name]
    assert series(every, "changed").sum() == sum(changes.values())


def test_only_crawls_are_called_so_and_other_hosts_are_told_by_stretches(told):
    sections, a, b = told
    figures = {one["name"]: one for one in sections["quality"]["figures"]}
    crawls = series(figures["coherence-by-crawl"]["data"], "found")
    assert crawls.tolist() == pytest.approx((b[:, 1:] == Verdict.UNCHANGED).mean(axis=0).tolist())
    [table] = [one for one in sections["quality"]["tables"] if one["name"] == "crawls"]
    assert table["words"].startswith("1 host is observed continuously: rows of it")
    stretches = figures["coherence-by-stretch"]
    assert "1 host is observed continuously" in stretches["words"]
    assert "each period of 1 d counts as a capture" in stretches["words"]
    shares = series(stretches["data"], "found")
    # Each stretch has a copy of each page, and the next look says what became of it.
    assert shares.tolist() == pytest.approx((a[:, 1:] == Verdict.UNCHANGED).mean(axis=0).tolist())


def test_sections_that_change_together_are_named(told):
    sections, _, _ = told
    [table] = sections["subsites"]["tables"]
    columns = {one["title"]: one["values"] for one in table["columns"]}
    [row] = [place for place, many in enumerate(columns["sections"]) if many > 1]
    assert columns["host"][row] == "b.org"
    assert columns["pages"][row] == 16
    assert columns["sections that change together"][row].split() == ["/s0/", "/s1/"]
    assert sections["subsites"]["words"][0].startswith("1 group of sections changes together")


def test_one_page_is_told_of_as_one(tmp_path):
    place = make_workspace(tmp_path / "one", {})
    with place.open_store() as store:
        store.record(Visits.of(store.discover(["http://a.org/"], START), np.array([START])))
        made = report_json(report_of_workspace(place, store))
    sections = {section["anchor"]: section for section in made["sections"]}
    assert sections["holdings"]["words"][0].startswith("1 page on 1 host was observed 1 time")
    assert "of 1 page shown for 2023-11-14" in [tile["words"] for tile in sections["quality"]["tiles"]]
