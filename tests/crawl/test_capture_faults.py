"""One page can only harm itself, also in a capture of a site: whatever fails on it, the capture is completed."""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from functools import wraps
from importlib import import_module

import numpy as np
import pytest

from recrawl.crawl.site_capture.capture_course import CaptureStep, SiteMap
from recrawl.crawl.site_capture.capture_order import CaptureOrder
from recrawl.crawl.site_capture.site_capture_driver import StepRecorder
from recrawl.crawl.visit.change_classifier import ChangeClassifier
from recrawl.crawl.visit.fault_isolation import STEPS as ALL_STEPS
from recrawl.crawl.visit.visitor import Visitor
from recrawl.crawl.visit.warc_archive import WarcArchive
from recrawl.formats.warc.warc_reader import read_capture
from recrawl.model.visits import OUR_FAULT
from recrawl.store.engine.sql import SqlStore

STEPS = {
    "known": (StepRecorder, "known"),
    "visit": (Visitor, "go"),
    "judge": (ChangeClassifier, "classify"),
    "archive": (WarcArchive, "write"),
    "note": (StepRecorder, "_note"),
    "found": (StepRecorder, "_found"),
    "commit": (SqlStore, "record"),
}
KEPT = {"judge", "note", "found", "commit"}
"""Steps after which there are bytes to keep."""


def is_about(argument, page, number):
    """Whether what a step is given is about a page, which is found as the ``number``-th after the first."""
    match argument:
        case int():
            return argument == page
        case list():
            return any(is_about(one, page, number) for one in argument)
        case SiteMap():
            return False
        case CaptureStep():
            return argument.number == number
    return page in np.atleast_1d(getattr(getattr(argument, "target", argument), "page", -1))


@pytest.mark.parametrize("step", sorted(STEPS))
def test_a_page_that_breaks_a_step_harms_no_other(scene, site, linked, monkeypatch, step):
    site.answers = {"/": linked("/bad", "/good"), "/bad": linked("/deep"), "/good": linked("/more"), "/more": linked()}
    owner, name = STEPS[step]
    real, failed = getattr(owner, name), []

    async def capture():
        async with scene() as stage:
            [bad] = stage.store.discover([f"{site.home}bad"], 0.0, importance=0.0).tolist()

            def broken(*arguments, **named):
                if any(is_about(one, bad, 1) for one in arguments[1:]) and (step != "commit" or not failed):
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
            assert {event["details"]["url"] for event in stage.events("visit failed internally")} == {f"{site.home}bad"}
            assert bool(stage.store.captures(np.array([bad]))) == (step in KEPT)
            return stage.store.captures(stage.store.pages().id)

    kept = asyncio.run(capture())
    assert len({(row.warc_file, row.warc_offset) for row in kept}) == len(kept)


@pytest.mark.parametrize("strategy", ["bfs", "bfs-fifo"])
def test_several_pages_that_break_several_steps_harm_no_other(scene, site, linked, monkeypatch, strategy):
    """One capture, a page broken at each step, with another kind of exception each, and in revisits again."""
    kinds = [ValueError, KeyError, MemoryError, RecursionError, UnicodeError, OverflowError, AssertionError]
    bad = {step: f"/bad-{step}" for step in sorted(STEPS)}
    good = [f"/good-{number}" for number in range(4)]
    # Good pages lie between bad ones and behind them.
    site.answers = {"/": linked(*bad.values(), good[0]), "/more": linked(), **{path: linked("/more") for path in good}}
    site.answers |= {path: linked(good[number % len(good)]) for number, path in enumerate(bad.values())}
    broken = Counter()

    def breaks(step, kind, page, number):
        owner, name = STEPS[step]
        real = getattr(owner, name)

        def wrapper(*arguments, **named):
            if any(is_about(one, page, number) for one in arguments[1:]) and (step != "commit" or not broken[step]):
                broken[step] += 1
                raise kind(step)
            return real(*arguments, **named)

        monkeypatch.setattr(owner, name, wrapper)

    async def capture():
        async with scene() as stage:
            urls = [f"{site.home}{path[1:]}" for path in bad.values()]
            ids = stage.store.discover(urls, 0.0, importance=0.0).tolist()
            for number, (step, kind, page) in enumerate(zip(bad, kinds, ids, strict=True), start=1):
                breaks(step, kind, page, number)
            report = await stage.capture(CaptureOrder(site=site.home, strategy=strategy))
            monkeypatch.undo()
            assert report is not None
            assert set(broken) == set(STEPS)
            visits = stage.store.visits()
            for step, page in zip(bad, ids, strict=True):
                assert OUR_FAULT in visits.status[visits.page == page].tolist(), step
            others = visits.take(~np.isin(visits.page, ids) & (visits.status != 404))
            assert set(stage.urls(others.page)) >= {site.home, f"{site.home}{good[0][1:]}", f"{site.home}more"}
            assert (others.status == 200).all()
            assert {event["details"]["url"] for event in stage.events("visit failed internally")} == set(urls)
            kept = stage.store.captures(stage.store.pages().id)
            assert len({(row.warc_file, row.warc_offset) for row in kept}) == len(kept)
            assert stage.store.counts(stage.clock.now()).leased == 0

    asyncio.run(capture())


@pytest.mark.parametrize("seed", range(6))
def test_faults_by_chance_in_all_steps_do_not_end_a_capture(scene, site, linked, monkeypatch, tmp_path, seed):  # noqa: PLR0913, PLR0917
    """Every step of the table fails now and then, whatever it is about; each page that was not broken is as it is."""
    paths = [f"/{number}" for number in range(30)]
    site.answers = {"/": linked(*paths), **{path: linked("/", text=path) for path in paths}}
    rng, raised = np.random.default_rng(seed), Counter()

    def falters(step, function):
        def fail():
            if len(site.paths()) > 1 and raised.total() < 40 and rng.random() < 0.05:  # the first page names all
                raised[step] += 1
                raise [ValueError, KeyError, MemoryError, RecursionError][rng.integers(4)](step)

        @wraps(function)
        def wrapper(*arguments, **named):
            fail()
            return function(*arguments, **named)

        @wraps(function)
        async def wrapped(*arguments, **named):
            fail()
            return await function(*arguments, **named)

        return wrapped if inspect.iscoroutinefunction(function) else wrapper

    async def capture():
        async with scene() as stage:
            capture_id = await stage.driver.begin(CaptureOrder(site=site.home, strategy="bfs-fifo"))
            for step, place in ALL_STEPS.items():
                module, _, name = place.partition(":")
                owner, _, attribute = name.rpartition(".")
                found = getattr(import_module(module), owner)
                monkeypatch.setattr(found, attribute, falters(step, getattr(found, attribute)))
            report = await stage.driver.run(capture_id)
            monkeypatch.undo()
            assert report is not None
            assert len(raised) > 3
            visits = stage.store.visits()
            assert set(visits.status.tolist()) <= {200, OUR_FAULT}
            assert (visits.status == 200).sum() >= len(paths) - raised.total()
            assert stage.store.counts(stage.clock.now()).leased == 0
            kept = stage.store.captures(stage.store.pages().id)
            return [(row, *stage.urls([row.page])) for row in kept]

    for row, url in asyncio.run(capture()):
        [file] = (tmp_path / "warc").glob(f"{row.warc_file}*")  # one with answers that do not count has another name
        assert read_capture(file, row.warc_offset).url == url


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
