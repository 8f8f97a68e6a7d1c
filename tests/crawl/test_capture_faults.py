"""One page can only harm itself, also in a capture of a site: whatever fails on it, the capture is completed."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from recrawl.crawl.archive import WarcArchive
from recrawl.crawl.capture_course import Stop
from recrawl.crawl.capture_map import SiteMap
from recrawl.crawl.capture_order import CaptureOrder
from recrawl.crawl.capture_recording import StepRecorder
from recrawl.crawl.judging import Judging
from recrawl.crawl.visitor import Visitor
from recrawl.model.failures import OUR_FAULT
from recrawl.store.sql import SqlStore

STEPS = {
    "known": (StepRecorder, "known"),
    "visit": (Visitor, "go"),
    "judge": (Judging, "heard"),
    "archive": (WarcArchive, "keep"),
    "note": (StepRecorder, "_note"),
    "found": (StepRecorder, "_found"),
    "commit": (SqlStore, "record"),
}
KEPT = {"judge", "note", "found", "commit"}
"""Steps after which there are bytes to keep."""


@pytest.mark.parametrize("step", sorted(STEPS))
def test_a_page_that_breaks_a_step_harms_no_other(scene, site, linked, monkeypatch, step):
    site.answers = {"/": linked("/bad", "/good"), "/bad": linked("/deep"), "/good": linked("/more"), "/more": linked()}
    owner, name = STEPS[step]
    real, failed = getattr(owner, name), []

    def is_about(argument, page):
        match argument:
            case int():
                return argument == page
            case list():
                return any(is_about(one, page) for one in argument)
            case SiteMap():
                return False
            case Stop():
                return argument.number == 1  # the first link of the first page
        return page in np.atleast_1d(getattr(getattr(argument, "target", argument), "page", -1))

    async def capture():
        async with scene() as stage:
            [bad] = stage.store.discover([f"{site.home}bad"], 0.0, importance=0.0).tolist()

            def broken(*arguments, **named):
                if any(is_about(one, bad) for one in arguments[1:]) and (step != "commit" or not failed):
                    failed.append(step)
                    raise ValueError(step)
                return real(*arguments, **named)

            monkeypatch.setattr(owner, name, broken)
            report = await stage.capture(CaptureOrder(site=site.home, strategy="bfs"))
            monkeypatch.undo()
            assert report is not None
            assert failed
            visits = stage.store.visits()
            assert visits.status[visits.page == bad][0] == OUR_FAULT
            others = visits.take((visits.page != bad) & (visits.status != 404))
            assert set(stage.urls(others.page)) == {site.home, f"{site.home}good", f"{site.home}more"}
            assert (others.status == 200).all()
            assert {event["details"]["url"] for event in stage.events("visit broken")} == {f"{site.home}bad"}
            assert bool(stage.store.captures(np.array([bad]))) == (step in KEPT)
            return stage.store.captures(stage.store.pages().id)

    kept = asyncio.run(capture())
    assert len({(row.warc_file, row.warc_offset) for row in kept}) == len(kept)


def test_who_is_told_of_a_capture_does_not_end_it(scene, site, linked):
    site.answers = {"/": linked("/a"), "/a": linked()}

    def cannot(_what):
        raise ValueError

    async def capture():
        async with scene(on_visit=cannot) as stage:
            report = await stage.driver.run(await stage.driver.begin(CaptureOrder(site=site.home, strategy="bfs")))
            assert report.quality.pages == 2
            assert len(stage.events("step failed")) == 1

    asyncio.run(capture())
