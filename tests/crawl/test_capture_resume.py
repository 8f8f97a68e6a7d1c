"""A capture that is stopped goes on where it was, in either phase, and ends as one that was not stopped."""

import asyncio
import json
from functools import partial

import numpy as np
import pytest

from recrawl.app.site_capture import statement_words
from recrawl.crawl.site_capture.capture_order import CaptureOrder
from recrawl.crawl.visit.scope import ScopeKind, ScopeRules
from recrawl.errors import StoreError
from recrawl.simulate.sites import lognormal_rates, tree_site
from recrawl.time import DAY, HOUR, VirtualClock
from recrawl_testweb.virtual_web_server import VirtualWebServer

START = 1.79e9
PAGES = 9


def living_site():
    rng = np.random.default_rng(3)
    rate = lognormal_rates(PAGES, median=1e-3, sigma=1.0, rng=rng)
    return tree_site("site", rate, start=START - HOUR, end=START + DAY, rng=rng, outdegree=3)


async def until_stopped(scene, clock, hosts, order, steps):
    """One process: begin or go on, stop after so many steps; the report if it is complete."""
    async with scene(clock=clock, hosts=hosts) as stage:
        unfinished = [known for known in stage.store.site_captures() if not known.is_finished]
        capture = unfinished[0] if unfinished else await stage.driver.begin(order)
        made = []

        def observation(progress):
            made.append(progress)
            if len(made) == steps + 1:  # the first tells where it begins
                stage.driver.stop()

        report = await stage.driver.run(capture, observation)
        return report, stage.store.site_log(capture.id).steps, made


def run(scene, order_of, steps_at_once):
    """A capture in pieces: its steps, its statement and the requests for pages that the server saw."""
    clock, web = VirtualClock(START), living_site()
    with VirtualWebServer(web, clock, port=0) as living:
        report = None
        while report is None:
            one = until_stopped(scene, clock, living.hosts(), order_of(living), steps_at_once)
            report, steps, _ = asyncio.run(one)
        requests = living.requests()
    asked = requests.page[requests.page >= 0]
    return steps, json.loads(report.capture.statement), np.bincount(asked, minlength=len(web))


@pytest.mark.parametrize("steps_at_once", [1, 4, PAGES, PAGES + 3])
def test_a_capture_in_pieces_makes_each_step_once(scene, steps_at_once):
    def order_of(living):
        return CaptureOrder(site=living.seeds()[0], strategy="hottest-first-lifo", delay=60.0)

    steps, said, asked = run(scene, order_of, steps_at_once)
    assert asked.tolist() == [2] * PAGES
    numbers = [(step.number, step.revisit) for step in steps]
    assert len(set(numbers)) == len(numbers) == 2 * PAGES
    assert np.diff([step.time for step in steps]).min() >= 60.0
    coherence = said["quality"]["coherence"]
    assert coherence["coherent"] + coherence["changed"] == PAGES


@pytest.mark.parametrize("steps_at_once", [1, 9, 100])
def test_pages_given_up_are_named_however_often_a_capture_was_stopped(scene, site, linked, steps_at_once):
    """Every second page found is believed to change in every slot."""
    site.answers |= {"/": linked("/1", "/2", "/3", "/4", "/5", "/6")}
    site.answers |= {f"/{number}": linked() for number in range(1, 7)}
    order = CaptureOrder(site=site.home, strategy="sharc-selective-online", expected=7)
    believing = partial(scene, rates=lambda page: np.where(page % 2 == 0, 3.0, 1e-9))
    clock, report = VirtualClock(START), None
    while report is None:
        report, *_ = asyncio.run(until_stopped(believing, clock, (), order, steps_at_once))
    assert report.quality.hopeless_named
    hopeless = json.loads(report.capture.statement)["quality"]["hopeless"]
    assert hopeless["by"] == "strategy"
    assert sorted(hopeless["pages"]) == [f"{site.home}{number}" for number in (1, 3, 5)][: hopeless["count"]]
    assert hopeless["count"] >= 2
    assert "abandoned by the strategy" in "".join(statement_words(report.quality, lambda pages: [str(pages)]))


def test_without_revisits_nothing_is_given_up(scene, site, linked):
    site.answers |= {"/": linked("/1", "/2"), "/1": linked(), "/2": linked()}
    order = CaptureOrder(site=site.home, strategy="sharc-selective-online", revisit=False)
    report, *_ = asyncio.run(
        until_stopped(partial(scene, rates=lambda page: page * 1.0), VirtualClock(START), (), order, 9)
    )
    assert not report.quality.hopeless_named
    assert not len(report.quality.hopeless)


@pytest.mark.parametrize("steps_at_once", [2, 100])
def test_what_is_proven_of_a_plan_is_stated_also_by_one_who_resumed(scene, steps_at_once):
    def order_of(living):
        return CaptureOrder(site=living.seeds()[0], strategy="sharc-optimal", delay=60.0, from_sitemap=True)

    steps, said, _ = run(scene, order_of, steps_at_once)
    pages = sum(not step.revisit for step in steps)
    assert said["plan"]["pages"] == pages
    # All rates are believed to be 1e-5 here, so any pyramid is the best.
    best = np.exp(-1e-5 * 60.0 * 2.0 * np.arange(pages)).sum()
    assert said["plan"]["expectedCoherence"] == pytest.approx(best)
    assert said["plan"]["bound"] == pytest.approx(best)
    assert said["plan"]["gap"] == pytest.approx(0.0, abs=1e-12)
    assert said["quality"]["hopeless"]["by"] != "strategy"


def test_progress_tells_what_is_left(scene):
    clock, web = VirtualClock(START), living_site()
    with VirtualWebServer(web, clock) as living:
        order = CaptureOrder(site=living.seeds()[0], strategy="bfs-fifo", delay=60.0)
        _, steps, made = asyncio.run(until_stopped(scene, clock, living.hosts(), order, 100))
    assert len(made) - 1 == len(steps) == 2 * PAGES
    assert [now.visited for now in made] == [*range(PAGES + 1), *[PAGES] * PAGES]
    assert [now.seen_again for now in made] == [*[0] * PAGES, *range(PAGES + 1)]
    found_all = next(place for place, now in enumerate(made) if now.pages == PAGES)
    for place, now in enumerate(made[found_all:], start=found_all):
        assert now.seconds_left == 60.0 * (len(made) - place - 1)


def test_the_scope_that_moved_along_with_the_home_page_is_remembered(scene, site, linked):
    elsewhere = site.home.replace("127.0.0.1", "localhost")
    site.answers |= {"/": (302, {"Location": f"{elsewhere}new/"}, ""), "/new/": linked("/new/a", "/old")}
    site.answers |= {"/new/a": linked("/new/b"), "/new/b": linked("/c"), "/c": linked()}
    order = CaptureOrder(site=site.home, strategy="bfs", scope=ScopeRules(kind=ScopeKind.PREFIX))
    clock = VirtualClock(START)
    for steps in (1, 1, 1):
        assert asyncio.run(until_stopped(scene, clock, (), order, steps))[0] is None
    report, *_ = asyncio.run(until_stopped(scene, clock, (), order, 100))
    assert site.paths() == ["/", "/new/", "/new/a", "/new/b"]
    assert report.found == 4


def test_stopping_before_the_first_step_leaves_nothing_behind(scene, site):
    async def stopped_at_once():
        async with scene() as stage:
            stage.driver.stop()
            begun = await stage.driver.begin(CaptureOrder(site=site.home, strategy="bfs"))
            return begun, stage.store.site_captures()

    assert asyncio.run(stopped_at_once()) == (None, [])
    assert site.asked == []


def test_two_at_work_on_one_capture_are_told_apart(scene, site, linked):
    """The one that comes second with a step makes no step any more."""
    site.answers |= {"/": linked("/a", "/b"), "/a": linked(), "/b": linked()}

    async def two():
        async with scene() as first, scene(clock=VirtualClock(1.79e9 + 7.0)) as second:
            capture = await first.driver.begin(CaptureOrder(site=site.home, strategy="bfs"))
            await asyncio.gather(first.driver.run(capture), second.driver.run(capture))

    with pytest.raises(StoreError, match="Another process"):
        asyncio.run(two())
