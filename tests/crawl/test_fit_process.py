"""Fits beside the crawl: visits go on during a fit, a fit process may die, and its result is that of the event loop."""

import asyncio
import importlib
import io
import json
import os
import shutil
import signal
import threading
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from recrawl.crawl.clock import RealClock
from recrawl.crawl.control.json_log import JsonLinesLog
from recrawl.crawl.control.run_control import NoRunControl
from recrawl.crawl.visit.recorder import Recorder
from recrawl.crawl.visit.scope import HostScope
from recrawl.crawl.visit.visit_machine import ExchangeUnderway, InternalFailure, VisitDone, VisitTarget
from recrawl.crawl.visit.visitor import Visitor
from recrawl.crawl.visit.warc_archive import NoArchive
from recrawl.crawl.worker import crawl_worker as driver_module
from recrawl.crawl.worker import event_loop, fit_process
from recrawl.crawl.worker.crawl_worker import CrawlWorker, WorkerPace
from recrawl.crawl.worker.fit_process import (
    FitDone,
    FitProcess,
    FitRequest,
    FittedState,
    has_due_times_of,
    note_fit,
    read_state,
)
from recrawl.crawl.worker.inline_fit import DueBefore, ScheduleFit
from recrawl.crawl.worker.outages import may_be_our_fault
from recrawl.detect import ChangeResult, decoded
from recrawl.fetch.http.http_fetcher import HttpFetcher, TransferLimits
from recrawl.fetch.robots_cache import RobotsCache
from recrawl.model import ANSWERED, Capture, Outcome, Verdict, Visit, Visits, visits
from recrawl.schedule.frontier.revisit_scheduler import RevisitScheduler
from recrawl.schedule.policies.fixed_interval import FixedInterval
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.schedule.politeness.host_politeness import Politeness, PolitenessRules
from recrawl.schedule.politeness.retry import Backoff
from recrawl.simulate.sites import tree_site
from recrawl.simulate.virtual_web import join
from recrawl.store.open import open_store
from recrawl.time import DAY, HOUR
from recrawl_testweb.virtual_web_server import VirtualWebServer

AGENT = "fits/1.0 (+https://example.org/)"
PATIENCE = 200.0
INTERVAL = 0.1


@pytest.fixture
def recipes(monkeypatch):
    """The module with recipes, which fit processes find, too."""
    monkeypatch.syspath_prepend(Path(__file__).parent)
    return importlib.import_module("fit_recipes")


class Crawl:
    """A crawl on a real server, and what it logs."""

    def __init__(self, clock, driver, scheduler, store, log):
        self.clock, self.driver, self.scheduler, self.store, self._log = clock, driver, scheduler, store, log

    async def run(self, seconds=2 * PATIENCE):
        await self.driver.run(self.clock.now() + seconds)

    def events(self, message):
        return [event for event in map(json.loads, self._log.getvalue().splitlines()) if event["message"] == message]

    async def until(self, condition, task):
        """Wait until something is so; the run must not end before."""
        end = self.clock.now() + PATIENCE
        while not condition():
            if task.done():
                task.result()
            assert not task.done()
            assert self.clock.now() < end
            await asyncio.sleep(0.02)

    async def visits_go_on(self, task):
        before = len(self.events("visited"))
        await self.until(lambda: len(self.events("visited")) > before + 20, task)


@asynccontextmanager
async def crawl(folder, *, fits=None, visitor=Visitor, limits=None, urls=None, run_control=None):  # noqa: PLR0913 - what varies
    clock, log = RealClock(), io.StringIO()
    rng = np.random.default_rng(0)
    begin = clock.now()
    web = join([tree_site(f"h{n}", np.full(6, 1e-6), start=begin, end=begin + 5 * DAY, rng=rng) for n in range(4)])
    with VirtualWebServer(web, clock) as living, open_store(folder / "store.db", create=True, durable=False) as store:
        pins = dict.fromkeys(living.hosts(), living.ip)
        store.discover(urls or living.urls(), begin)
        async with HttpFetcher(clock, AGENT, resolve=pins, limits=limits or TransferLimits()) as fetcher:
            scheduler = RevisitScheduler(FixedInterval(INTERVAL), budget=1.0)
            driver = CrawlWorker(
                "one",
                clock=clock,
                store=store,
                scheduler=scheduler,
                politeness=Politeness(PolitenessRules(0.0, 0.004, 0.004, 0.004)),
                visitor=visitor(fetcher, RobotsCache(fetcher, clock, AGENT, body_of=decoded), clock),
                recorder=Recorder("one", store, scheduler, HostScope(frozenset(pins)), NoArchive()),
                pace=WorkerPace(poll=0.05),
                log=JsonLinesLog(log, clock),
                fits=fits,
                run_control=run_control,
            )
            yield Crawl(clock, driver, scheduler, store, log)


@pytest.fixture
def held(tmp_path, recipes, monkeypatch):
    """A recipe for fits that can be held up; every store is a large one."""
    monkeypatch.setattr(driver_module, "FEW_PAGES", 0)
    monkeypatch.setattr(fit_process, "_RETRY", Backoff(first=0.05, factor=1.0, longest=0.05))
    return recipes.HeldFits(tmp_path, INTERVAL)


async def hold_a_fit(here, task, folder):
    """After the first fit, ask for another, which does not end while the file ``hold`` is there."""
    await here.until(lambda: here.events("policy fitted"), task)
    (folder / "hold").touch()
    (folder / "fitting").unlink()
    here.scheduler.fit_again()
    await here.until((folder / "fitting").exists, task)


@pytest.mark.slow
def test_visits_are_acknowledged_while_a_fit_is_made(tmp_path, held):
    async def run():
        async with crawl(tmp_path, fits=held) as here:
            task = asyncio.create_task(here.run())
            await hold_a_fit(here, task, tmp_path)
            fits = len(here.events("policy fitted"))
            await here.visits_go_on(task)
            assert len(here.events("policy fitted")) == fits
            (tmp_path / "hold").unlink()
            await here.until(lambda: len(here.events("policy fitted")) > fits, task)
            await here.visits_go_on(task)
            here.driver.stop()
            await task
            assert here.store.counts(here.clock.now()).leased == 0
            assert here.scheduler.fits >= 2

    asyncio.run(run())


def test_a_fit_process_that_is_killed_is_started_again_and_the_crawl_goes_on(tmp_path, held):
    async def run():
        async with crawl(tmp_path, fits=held) as here:
            task = asyncio.create_task(here.run())
            await hold_a_fit(here, task, tmp_path)
            killed = here.driver._fits.pid
            os.kill(killed, signal.SIGKILL)
            await here.until(lambda: here.events("fit failed"), task)
            assert "-9" in here.events("fit failed")[0]["details"]["reason"]
            await here.visits_go_on(task)
            fits = len(here.events("policy fitted"))
            (tmp_path / "hold").unlink()
            await here.until(lambda: len(here.events("policy fitted")) > fits, task)
            assert here.driver._fits.pid not in (killed, None)
            here.driver.stop()
            await task

    asyncio.run(run())


def test_a_fault_in_going_on_with_fits_keeps_no_visit_from_being_made(tmp_path, held, monkeypatch):
    def fails(_fits, _now):
        raise KeyError("turn")

    async def run():
        async with crawl(tmp_path, fits=held) as here:
            task = asyncio.create_task(here.run())
            await here.until(lambda: here.events("policy fitted"), task)
            monkeypatch.setattr(fit_process.BackgroundFit, "turn", fails)
            here.scheduler.fit_again()
            await here.until(lambda: here.events("step failed"), task)
            await here.visits_go_on(task)
            here.driver.stop()
            await task
            assert here.store.counts(here.clock.now()).leased == 0

    asyncio.run(run())


def test_a_crawl_that_waits_for_its_first_fit_stops_when_it_is_asked_to(tmp_path, held):
    async def run():
        async with crawl(tmp_path, fits=held) as here:
            (tmp_path / "hold").touch()
            task = asyncio.create_task(here.run())
            await here.until((tmp_path / "fitting").exists, task)
            process = here.driver._fits.pid
            here.driver.stop()
            await task
            assert not here.events("visited")
            with pytest.raises(ProcessLookupError):
                os.kill(process, 0)
            await here.run(0.5)  # nor does it wait longer than it was to run
            assert not here.events("policy fitted")

    asyncio.run(run())


def test_a_crawl_with_due_times_of_an_earlier_fit_does_not_wait_for_another(tmp_path, held):
    """Pages that are visited before the fit get provisional due times, and those of the fit once it is there."""

    async def run():
        async with crawl(tmp_path, fits=replace(held, interval=30 * DAY)) as here:
            note_fit(here.store, here.scheduler.policy.name, here.clock.now())
            (tmp_path / "hold").touch()
            task = asyncio.create_task(here.run())
            await here.visits_go_on(task)
            assert not here.events("policy fitted")
            (tmp_path / "hold").unlink()
            pages = here.store.pages().id
            soon = here.clock.now() + 20 * DAY
            await here.until(lambda: here.store.due(pages).min() > soon, task)
            await here.until(lambda: here.events("policy fitted"), task)
            assert len(here.events("policy fitted")) == 1
            here.driver.stop()
            await task

    asyncio.run(run())


def test_due_times_of_another_policy_are_not_started_with(tmp_path):
    with open_store(tmp_path / "store.db", create=True) as store:
        assert not has_due_times_of(store, "valued-archive")
        note_fit(store, "uniform", 1.0)
        assert not has_due_times_of(store, "valued-archive")
        note_fit(store, "valued-archive", 2.0)
        assert has_due_times_of(store, "valued-archive")


def test_a_fit_process_exits_with_its_parent_and_leaves_nothing_behind(tmp_path, held, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    open_store(tmp_path / "store.db", create=True).close()

    async def run():
        process = FitProcess(held)
        process.request(
            FitRequest(0.0, {"budget": 1.0, "discovery_share": 0.0, "burst": 0.0}, PolitenessRules(), frozenset())
        )
        message = None
        while not isinstance(message, FitDone):
            message = await asyncio.wait_for(process.message(), PATIENCE)
        [folder] = tmp_path.glob("recrawl-fit-*")
        process._process.stdin.close()  # as the system does when the crawler is killed
        await asyncio.wait_for(process.message(), PATIENCE)
        assert not folder.exists()
        await process.close()

    asyncio.run(run())


@pytest.mark.slow
def test_a_process_and_the_event_loop_find_the_same_due_times(tmp_path, recipes):
    rng, now, pages = np.random.default_rng(7), 1.79e9, 600
    with open_store(tmp_path / "one.db", create=True, durable=False) as store:
        page = store.discover([f"http://h{n % 7}.example/{n % 40}/{n}" for n in range(pages)], now - 60 * DAY)
        time_of = np.sort(now - 50 * DAY * rng.random((pages, 8)), axis=1)
        verdict = np.where(rng.random((pages, 8)) < 0.4, Verdict.CHANGED, Verdict.UNCHANGED)
        verdict[:, 0] = Verdict.UNKNOWN
        visits = Visits.of(
            np.repeat(page, 8)[: 8 * pages - 800],
            time_of.ravel()[: 8 * pages - 800],
            outcome=Outcome.FETCHED,
            verdict=verdict.ravel()[: 8 * pages - 800],
        )
        store.record(visits)
    shutil.copy(tmp_path / "one.db", tmp_path / "two.db")
    budget = pages / (3 * DAY)
    with open_store(tmp_path / "one.db", durable=False) as store:
        scheduler = RevisitScheduler(ValuedPolicy(), budget=budget)
        fit = ScheduleFit(store, scheduler, HOUR)
        due = fit.fit(fit.catch_up(now), now)
        for move in fit.moved(due, now, [int(page[3])], 0.0):
            store.reschedule(move.page, move.due, before=move.before)
        expected, later = store.due(page), scheduler.due(page, now + 1.0)

    async def run(store):
        process = FitProcess(recipes.ExactFits(tmp_path / "two.db", budget))
        terms = {"budget": budget, "discovery_share": 0.0, "burst": 0.0}
        process.request(FitRequest(now, terms, PolitenessRules(), frozenset({int(page[3])})))
        state = done = None
        while done is None:
            message = await asyncio.wait_for(process.message(), PATIENCE)
            state = read_state(message, store) if isinstance(message, FittedState) else state
            done = message if isinstance(message, FitDone) else None
        await process.close()
        return state, done

    with open_store(tmp_path / "two.db", durable=False) as store:
        state, done = asyncio.run(run(store))
        np.testing.assert_array_equal(store.due(page), expected)
        np.testing.assert_array_equal(state.due(page, now + 1.0), later)
        assert done.pages == pages
        assert store.due(page)[3] == now


def test_due_times_that_hardly_move_are_not_written():
    page = np.arange(1, 5)
    before = np.array([1e6, 1e6, np.inf, 2e6])

    class Asked:
        def due(self, page, now):
            return np.array([1e6 + 10.0, 1e6 + 1e5, np.inf, np.inf])[page - 1]

    fit = ScheduleFit(None, Asked(), HOUR)
    [move] = fit.moved(DueBefore(page, page, before), 0.0, (), tolerance=0.005)
    assert move.page.tolist() == [2, 4]
    [move] = fit.moved(DueBefore(page, page, before), 0.0, (), tolerance=0.0)
    assert move.page.tolist() == [1, 2, 4]


# -- a loop that is late ------------------------------------------------------------------------


class Blocking(Visitor):
    """Once, with a request under way, the whole event loop stands still for longer than that may take."""

    visits = 0

    async def go(self, target, _not_after=None):
        task = asyncio.ensure_future(super().go(target))
        self.visits += 1
        if self.visits == 12:
            await asyncio.sleep(0.2)
            time.sleep(6.5)  # noqa: ASYNC251 - that is the point
        return await task


@pytest.mark.slow
def test_a_host_is_not_blamed_for_what_happens_while_our_own_loop_stands_still(tmp_path, site):
    def answered_late(_times):
        time.sleep(0.4)
        return 200, {}, "<p>Here I am."

    site.answers |= {f"/{number}": answered_late for number in range(8)}
    urls = [f"{site.home}{number}" for number in range(8)]

    async def run():
        limits = TransferLimits(connect=5.0, total=5.0, idle=5.0)
        async with crawl(tmp_path, visitor=Blocking, limits=limits, urls=urls) as here:
            task = asyncio.create_task(here.run())
            await here.until(lambda: len(here.events("visited")) >= 20, task)
            here.driver.stop()
            await task
            assert here.driver.loop_lag.stalls >= 1
            assert here.driver.loop_lag.longest > 6.0
            assert max(event["details"]["seconds"] for event in here.events("event loop stalled")) > 6.0
            assert here.events("requested again after an event loop stall")
            assert not here.events("no host can be reached")
            assert (here.store.visits().outcome <= ANSWERED).all()

    asyncio.run(run())


@pytest.mark.parametrize("silent", ["page", "robots"])
def test_a_host_that_never_answers_is_not_asked_for_ever_while_our_own_loop_is_late(
    tmp_path, site, monkeypatch, silent
):
    """The loop is late most of the time, so that every request to the silent host may have failed because of us."""
    monkeypatch.setattr(event_loop, "LATE", 0.05)
    over = threading.Event()
    path = "/silent" if silent == "page" else "/robots.txt"

    def never(_times):
        over.wait(PATIENCE)
        return 200, {}, ""

    site.answers[path] = never
    spared = []

    class Budgeted(NoRunControl):
        def refund(self, visits):
            spared.append(visits)

    async def be_late():
        while True:
            await asyncio.sleep(0.05)
            time.sleep(0.3)  # noqa: ASYNC251 - that is the point

    async def run():
        limits = TransferLimits(connect=1.0, total=1.0, idle=1.0)
        async with crawl(tmp_path, limits=limits, urls=[f"{site.home}silent"], run_control=Budgeted(8)) as here:
            late = asyncio.create_task(be_late())
            task = asyncio.create_task(here.run())
            asked = lambda: sum(one == path for one, _ in site.asked)  # noqa: E731 - short
            await here.until(lambda: len(here.store.visits()) > 0 or asked() > 3, task)
            assert len(here.store.visits()) == 1, "asked again and again, and nothing recorded"
            assert here.store.visits().outcome.tolist() == [Outcome.UNREACHABLE]
            assert asked() == 2
            assert len(here.events("requested again after an event loop stall")) == 1
            late.cancel()
            here.driver.stop()
            await task

    try:
        asyncio.run(run())
    finally:
        over.set()
    # Both requests for the page count towards the budget; one for rules never did.
    assert sum(spared) == (1 if silent == "page" else 2)


TARGET = VisitTarget(1, 1, "http://a.example/", 0.0)


def unanswered(failure, truncated=""):
    capture = Capture(TARGET.url, 0.0, 200 if truncated else 0, truncated=truncated, failure=failure)
    visit = Visit(1, 0.0, Outcome.UNREACHABLE, status=failure)
    return VisitDone(TARGET, visit, ChangeResult(Outcome.UNREACHABLE), capture)


def test_only_a_time_out_that_we_slept_through_may_be_our_own_fault():
    for failure in (visits.TOO_SLOW, visits.NO_ROUTE, visits.NO_NAME_SERVER):
        assert may_be_our_fault(unanswered(failure), 6.0, 10.0)
        assert not may_be_our_fault(unanswered(failure), 4.0, 10.0)  # short, compared with the time-out
        assert not may_be_our_fault(unanswered(failure), 0.0, 0.0)
    assert may_be_our_fault(unanswered(0, "time"), 6.0, 10.0)
    for failure in (
        visits.BROKEN_OFF,
        visits.NO_CONNECTION,
        visits.NO_TRUST,
        visits.NO_NAME,
    ):
        assert not may_be_our_fault(unanswered(failure), 9.0, 10.0)  # it would say so again
    for closed in (unanswered(visits.EMPTY), unanswered(0, "disconnect")):
        assert may_be_our_fault(closed, 9.0, 10.0)
        assert not may_be_our_fault(closed, 1.5, 1.6)  # no host loses its patience so soon
    capture = unanswered(visits.TOO_SLOW).capture
    assert not may_be_our_fault(ExchangeUnderway(TARGET, capture), 9.0, 10.0)  # there is more to be asked in any case
    assert not may_be_our_fault(InternalFailure(TARGET, 0.0, None, capture), 9.0, 10.0)


def test_a_repeat_begins_from_the_page_itself_and_is_counted():
    moved = replace(TARGET, exchange=object()).at_host(2)
    assert moved.repeated() == replace(TARGET, repeats=1)
    assert moved.repeated().repeated().repeats == 2
