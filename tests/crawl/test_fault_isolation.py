"""One page can only harm itself: faults are injected into every step of a visit, and the crawl goes on each time.

The table of steps is ``recrawl.crawl.visit.fault_isolation.STEPS``; each of its functions is wrapped here by name.
Everything is real but the hours and the faults: a server, HTTP, a store, archive files, both logs. A step is poisoned
for several pages at once, each with another kind of fault, and all other pages must be as if nothing had happened.
"""

from __future__ import annotations

import asyncio
import errno
import inspect
import json
import math
import sys
import time
from collections import Counter
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field, is_dataclass
from functools import wraps
from importlib import import_module
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest
from warcio.archiveiterator import ArchiveIterator

from recrawl.crawl.clock import RealClock
from recrawl.crawl.control.health import HealthMonitor
from recrawl.crawl.control.json_log import JsonLinesLog
from recrawl.crawl.control.metrics import Metrics
from recrawl.crawl.visit.fault_isolation import STEPS, FaultReporter, InternalFault, step_of
from recrawl.crawl.visit.recorder import Recorder
from recrawl.crawl.visit.scope import HostScope
from recrawl.crawl.visit.visit_machine import VisitMachine, VisitState
from recrawl.crawl.worker.crawl_assembly import WorkerSettings, crawl_parts, live_crawl
from recrawl.crawl.worker.crawl_worker import CrawlWorker, WorkerPace
from recrawl.crawl.worker.lease_pool import LeasePool
from recrawl.crawl.worker.result_handler import ResultHandler
from recrawl.detect import classify_change
from recrawl.detect.version import CostlyError, Effort
from recrawl.errors import DiskFullError, StoreAwayError, StoreMissingError
from recrawl.fetch.http.http_fetcher import HttpFetcher
from recrawl.formats.atomic_files import waits_for
from recrawl.formats.warc.warc_reader import read_capture
from recrawl.model import Outcome
from recrawl.model.visits import OUR_FAULT
from recrawl.parse.parse_pool import ParseLimits, ParsePool
from recrawl.schedule.policies.fixed_interval import FixedInterval
from recrawl.schedule.politeness.host_politeness import PolitenessRules
from recrawl.store.base import Store
from recrawl.store.open import open_store
from recrawl.time import DAY, HOUR, VirtualClock

START = 1.79e9
HOSTS = [f"127.0.0.{number}" for number in range(1, 9)]
FAULTS = [
    lambda: ValueError("poison"),
    lambda: KeyError("poison"),
    MemoryError,
    lambda: RecursionError("too deep"),
    lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "poison"),
    TimeoutError,  # an OSError without a number
]
"""Of our own code: the page fails."""
TROUBLE = [lambda: OSError(errno.ENOSPC, "no space left"), lambda: StoreAwayError("The store is away.")]
"""They pass, and the page is visited as if nothing had been."""
KINDS = [*FAULTS, *TROUBLE]
POISONED = [f"/p{number}" for number in range(len(KINDS))]
"""Pages of the second host, one for each kind."""
HEALTHY = ["/", "/one", "/two", "/moved", "/there"]


class Injection:
    """Raises faults at a step: for a page with each kind, or where no page is named at some calls in a row."""

    def __init__(self, kinds, *, twice=2):
        self.kinds = kinds
        self.hits = Counter()
        """How often each kind was raised."""
        self._twice = twice
        self.pages: dict[int, int] = {}
        """Page ids of poisoned pages, and their kinds."""
        self.urls: dict[str, int] = {}
        self.calls = 0

    def raise_for(self, arguments):
        self.calls += 1
        kind = self._named(arguments)
        if kind is None:
            return
        self.hits[kind] += 1
        error = self.kinds[kind]()
        raise error

    def _named(self, arguments):
        """The kind of a poisoned page that the arguments are about, the first that is still to be raised."""
        found = sorted({kind for argument in arguments for kind in self._kinds_in(argument, 3)})
        return next((kind for kind in found if self.kinds[kind] not in TROUBLE or self.hits[kind] < self._twice), None)

    def _kinds_in(self, value, depth):
        if isinstance(value, str):
            return {self.urls[value]} if value in self.urls else set()
        if isinstance(value, np.ndarray):
            return {self.pages[page] for page in value.tolist() if page in self.pages}
        inside = []
        if isinstance(value, list | tuple) and depth:
            inside = value
        elif isinstance(value, dict) and depth:
            inside = value.values()
        elif is_dataclass(value) and depth:
            names = ("page", "url", "target", "result", "batch", "visits")
            inside = [getattr(value, name) for name in names if hasattr(value, name)]
        return set().union(*(self._kinds_in(one, depth - 1) for one in inside))


class ByCount(Injection):
    """Raises each kind at a call of its own, whatever the call is about."""

    def __init__(self, kinds, first=2, every=3):
        super().__init__(kinds)
        self._first, self._every = first, every

    def raise_for(self, arguments):
        kind, rest = divmod(self.calls - self._first, self._every)
        self.calls += 1
        if rest == 0 and 0 <= kind < len(self.kinds):
            self.hits[kind] += 1
            error = self.kinds[kind]()
            raise error


def inject(monkeypatch, step, injection):
    """Wrap the function of a step, so that it raises before it does anything."""
    module, _, name = STEPS[step].partition(":")
    owner, _, attribute = name.rpartition(".")
    found = getattr(import_module(module), owner)
    function = inspect.getattr_static(found, attribute)
    monkeypatch.setattr(found, attribute, faulty(function, injection))


def faulty(function, injection):
    raise_for = injection.raise_for
    if inspect.iscoroutinefunction(function):

        async def wrapper(*arguments, **named):
            raise_for([*arguments[1:], *named.values()])
            return await function(*arguments, **named)

    else:

        def wrapper(*arguments, **named):
            raise_for([*arguments[1:], *named.values()])
            return function(*arguments, **named)

    # A traceback is to tell the name of the function, as if it had raised by itself.
    code = wrapper.__code__.replace(co_qualname=function.__qualname__)
    made = FunctionType(code, function.__globals__, function.__name__, closure=wrapper.__closure__)
    return wraps(function)(made)


@dataclass
class Scene:
    driver: CrawlWorker
    store: Store
    clock: VirtualClock
    folder: Path
    urls: list[str]
    poisoned: list[str]
    asked: Counter = field(default_factory=Counter)

    def events(self, *messages):
        lines = map(json.loads, (self.folder / "recrawl.log").read_text(encoding="utf-8").splitlines())
        return [event for event in lines if event["message"] in messages]

    def page(self, url):
        return self.store.find(url).id

    def visits(self, url):
        return self.store.visits(pages=np.array([self.page(url)]))

    def poison(self, injection):
        injection.urls = {url: kind for kind, url in enumerate(self.poisoned)}
        injection.pages = {self.page(url): kind for url, kind in injection.urls.items()}


def page(path):
    """Everything that the steps look for: links, something embedded, a feed, a redirect, a date."""
    links = "".join(f"<a href={other}>x</a>" for other in HEALTHY)
    feed = "<link rel=alternate type=application/rss+xml href=/feed>"
    return f"<html><head>{feed}</head><body>{path}<img src=/i.png>{links}"


@asynccontextmanager
async def scene(  # noqa: PLR0913
    folder,
    *,
    hosts=2,
    every=0.5 * HOUR,
    durable=True,
    pace=None,
    pause=1.0,
    parsing=None,
    on_visits=lambda _visited: None,
):
    asked = Counter()

    def answer_to(path, host):
        if path == "/robots.txt":
            return 200, "", f"User-agent: *\nSitemap: http://{host}/sitemap.xml\n"
        if path == "/sitemap.xml":
            return 200, "", f"<urlset><url><loc>http://{host}/one</loc></url></urlset>"
        if path == "/feed":
            return 200, "", "<rss version='2.0'><channel><title>f</title></channel></rss>"
        if path == "/moved":
            return 301, "Location: /there\r\n", ""
        return 200, "Last-Modified: Sun, 06 Nov 2022 08:49:37 GMT\r\nContent-Type: text/html\r\n", page(path)

    async def serve(reader, writer):
        with closing(writer), suppress(asyncio.IncompleteReadError, ConnectionError):
            while head := (await reader.readuntil(b"\r\n\r\n")).decode():
                path, host = head.split(" ", 2)[1], head.partition("Host: ")[2].partition("\r\n")[0]
                asked[f"http://{host}{path}"] += 1
                status, more, body = answer_to(path, host)
                writer.write(
                    f"HTTP/1.1 {status} X\r\nServer: x\r\n{more}Content-Length: {len(body)}\r\n\r\n{body}".encode()
                )

    server = await asyncio.start_server(serve, HOSTS[:hosts], 0)
    places = sorted("{}:{}".format(*listening.getsockname()[:2]) for listening in server.sockets)
    healthy = [f"http://{place}{path}" for place in places for path in HEALTHY]
    poisoned = [f"http://{places[1]}{path}" for path in POISONED]
    clock = VirtualClock(START)
    settings = WorkerSettings(
        budget=1.0,
        user_agent="faults/1.0 (+https://example.org/)",
        politeness=PolitenessRules(factor=0.0, shortest=pause, longest=pause),
        pace=pace or WorkerPace(poll=math.inf),
        durable=durable,
        parsing=parsing,
    )
    with open_store(folder / "store.db", create=True, durable=False) as store:
        store.discover([*healthy, *poisoned], START)
        async with live_crawl(
            "one",
            FixedInterval(every),
            clock=clock,
            store=store,
            folder=folder,
            scope=HostScope(frozenset(place for place in places)),
            settings=settings,
            on_visits=on_visits,
        ) as driver:
            yield Scene(driver, store, clock, folder, healthy, poisoned, asked)
    server.close()
    with suppress(TimeoutError):
        await asyncio.wait_for(server.wait_closed(), 0.05)


def check_archive(folder):
    """Store and archive agree: every capture can be read where the store says, and no other is there."""
    clock = VirtualClock(START + 10 * DAY)
    settings = WorkerSettings(budget=1.0, user_agent="faults/1.0 (+https://example.org/)")
    with open_store(folder / "store.db") as store:

        async def start_again():
            async with crawl_parts(clock, store, folder, settings):
                pass

        asyncio.run(start_again())  # cuts off what was never acknowledged
        known = store.captures(store.pages().id)
        visits = store.visits()
        times = set(zip(visits.page.tolist(), visits.time.tolist(), strict=True))
        for row in known:
            assert (row.page, row.time) in times
            capture = read_capture(folder / "warc" / row.warc_file, row.warc_offset)
            [url] = store.urls(np.array([row.page]))
            assert capture.url == url
        places = {(row.warc_file, row.warc_offset) for row in known}
        asides = ("robots.txt", "sitemap.xml", "/feed")
        for path in (folder / "warc").glob("*.warc.gz"):
            with path.open("rb") as stream:
                records = ArchiveIterator(stream)
                for record in records:
                    if record.rec_type in {"response", "revisit"}:
                        place = path.name, records.get_record_offset()
                        url = record.rec_headers["WARC-Target-URI"]
                        assert place in places or url.endswith(asides), f"{url} is in the archive, and nobody knows"
        assert store.counts(clock.now()).leased == 0
        return known


def check_others(here, least=3):
    """All healthy pages were visited again and again, and every visit is recorded once."""
    visits = here.store.visits()
    for url in here.urls:
        mine = here.visits(url)
        assert len(mine) >= least, url
        assert not (mine.status == OUR_FAULT).any(), url
    keys = list(zip(visits.page.tolist(), visits.time.tolist(), strict=True))
    assert len(set(keys)) == len(keys)


AFTER_THE_COMMIT = {
    "remember the page",
    "find feeds",
    "write recrawl.log",
    "write crawl.log",
    "count visits",
}
"""The visit is recorded, whatever fails then."""
BEFORE_THE_ANSWER = {
    "check robots.txt",
    "load the page",
    "queue the page",
    "admit the request",
    "visit",
    "choose validators",
    "fetch",
}
"""No bytes came."""
NOTHING_TO_RECORD = {"wait for the group", "commit"}
"""Not even a failed visit can be recorded: the page is given back, and tried again a day later."""
HARMLESS = {"rate the host"}
"""The visit is as good as without it."""
BESIDE_PAGES = {
    "discover pages",
    "keep robots.txt",
    "load the host",
    "record a sitemap or feed",
    "trust dates",
    "learn from the visit",
    "read robots.txt",
    "apply robots.txt",
    "read a sitemap or feed",
    "archive an auxiliary fetch",
    "lease pages",
    "renew leases",
    "choose the next pages",
    "fit the policy",
    "sync the WARC file",
    "release the WARC file",
    "write to the WARC file",
    "hold the host",
    "return the host",
    "take from the queue",
}
"""What they are given names no page, or not one of the poisoned: they fail at some calls, one after the other."""


@pytest.fixture
def machines(monkeypatch):
    """Every visit machine that is made."""
    made: list[VisitMachine] = []
    begin = VisitMachine.__init__

    def noted(machine):
        begin(machine)
        made.append(machine)

    monkeypatch.setattr(VisitMachine, "__init__", noted)
    return made


def check_every_visit_ended(driver, machines):
    """Once a run is over, only sitemaps and feeds wait for their next poll."""
    polls = {auxiliary.machine for auxiliary in driver._auxiliary_fetches._waiting.values()}
    assert [machine.state for machine in machines if not machine.has_ended and machine not in polls] == []
    assert {machine.state for machine in polls} <= {VisitState.WAITING}


@pytest.mark.parametrize("step", sorted(set(STEPS) - BESIDE_PAGES))
def test_a_page_that_breaks_a_step_harms_no_other(tmp_path, monkeypatch, machines, step):
    injection = Injection(KINDS)
    metrics = Metrics(HealthMonitor("one", tmp_path, lambda: None, lambda: START))

    def tell(visited):
        metrics.add(visited)  # as it is by then

    async def crawl():
        async with scene(tmp_path, on_visits=tell) as here:
            here.poison(injection)
            inject(monkeypatch, step, injection)
            await here.driver.run(START + 3 * HOUR)
            monkeypatch.undo()
            check_every_visit_ended(here.driver, machines)
            check_others(here)
            said = here.events("visit failed internally", "step failed")
            for kind, url in enumerate(here.poisoned):
                assert injection.hits[kind], f"{step} is not on the way"
                mine = here.visits(url)
                if kind >= len(FAULTS) or step in AFTER_THE_COMMIT | HARMLESS:  # it passed
                    assert len(mine) >= 3
                    assert (mine.status == 200).all()
                elif step in NOTHING_TO_RECORD:
                    assert not len(mine)
                    assert here.store.due(np.array([here.page(url)]))[0] > START + HOUR
                else:
                    assert set(mine.outcome.tolist()) == {Outcome.UNREACHABLE}
                    assert set(mine.status.tolist()) == {OUR_FAULT}
                    told = [event for event in said if event["details"].get("url") == url]
                    assert {event["details"]["step"] for event in told} == {step}
                    assert type(KINDS[kind]()).__name__ in told[0]["details"]["traceback"]
            if step != "write recrawl.log":
                assert {event["details"]["step"] for event in said} == {step}
            return {here.page(url): url for url in here.poisoned[: len(FAULTS)]}

    broken = asyncio.run(crawl())
    known = check_archive(tmp_path)
    kept = {row.page for row in known} & set(broken)
    if step in BEFORE_THE_ANSWER | NOTHING_TO_RECORD | {"archive the response", "make a WARC record"}:
        assert not kept
    else:
        assert kept == set(broken), "the bytes are kept"


@pytest.mark.slow
@pytest.mark.parametrize("step", sorted(BESIDE_PAGES))
def test_a_step_that_fails_now_and_then_does_not_end_the_run(tmp_path, monkeypatch, machines, step):
    injection = ByCount(KINDS, first=0 if step in SELDOM else 2, every=1 if step in SELDOM else 3)

    async def crawl():
        async with scene(
            tmp_path, hosts=8, pace=WorkerPace(poll=math.inf, sitemaps_every=600.0, lease_time=10.0)
        ) as here:
            inject(monkeypatch, step, injection)
            await here.driver.run(START + (len(KINDS) + 1 if step == "fit the policy" else 3) * HOUR)
            monkeypatch.undo()
            check_every_visit_ended(here.driver, machines)
            for url in here.urls:
                assert (here.visits(url).status > 0).sum() >= 2, url

    asyncio.run(crawl())
    check_archive(tmp_path)
    assert len(injection.hits) == len(KINDS), f"{step} was called {injection.calls} times"


SELDOM = {
    "record a sitemap or feed",
    "keep robots.txt",
    "read robots.txt",
    "apply robots.txt",
    "fit the policy",
    "read a sitemap or feed",
    "renew leases",
}
"""Called too seldom to be let pass in between."""


def test_a_progress_that_cannot_be_told_does_not_end_the_run(tmp_path):
    """As by a display, by metrics or by whoever looks after a model."""
    injection = ByCount(KINDS, first=2)

    async def crawl():
        async with scene(tmp_path) as here:
            await here.driver.run(START + HOUR, lambda _now: injection.raise_for(()))
            check_others(here, least=2)
            assert len(here.events("step failed")) == len(FAULTS)

    asyncio.run(crawl())
    assert len(injection.hits) == len(KINDS)


def test_a_page_that_broke_us_twice_is_quarantined_and_released_by_a_good_visit(tmp_path, monkeypatch):
    injection = Injection([FAULTS[0]])

    async def crawl():
        async with scene(tmp_path, every=3 * HOUR) as here:
            here.poison(injection)
            injection.urls = {url: 0 for url, kind in injection.urls.items() if kind == 0}
            injection.pages = {page: 0 for page, kind in injection.pages.items() if kind == 0}
            [page] = injection.pages
            inject(monkeypatch, "read dates", injection)
            await here.driver.run(START + DAY)
            mine = here.visits(here.poisoned[0])
            assert len(mine) == 3
            assert np.diff(mine.time).tolist() == pytest.approx([HOUR, 6 * HOUR], rel=0.01), "hours, then days"
            failing = here.store.failing(99)
            assert failing.page.tolist() == [page]
            assert failing.faults.tolist() == [3]
            assert failing.reason[0] == "read dates: ValueError('poison')"
            assert here.store.quarantined() == 1
            monkeypatch.undo()  # somebody repaired it
            await here.driver.run(START + 3 * DAY)
            assert here.visits(here.poisoned[0]).status[-1] == 200
            assert here.store.quarantined() == 0

    asyncio.run(crawl())
    check_archive(tmp_path)


IN_THE_TASK = ["visit", "fetch", "classify the response"]
"""Steps of the visit's own task, in which something that is waited for may be cancelled. Nothing cancels the others."""


def test_what_may_be_cancelled_is_what_waits():
    def waits(step):
        module, _, name = STEPS[step].partition(":")
        owner, _, attribute = name.rpartition(".")
        return inspect.iscoroutinefunction(getattr(getattr(import_module(module), owner), attribute))

    assert {step for step in STEPS if waits(step)} == {*IN_THE_TASK, "read robots.txt"}


@pytest.mark.parametrize("step", IN_THE_TASK)
def test_a_visit_that_is_cancelled_by_itself_fails_and_harms_no_other(tmp_path, monkeypatch, step):
    injection = Injection([asyncio.CancelledError])

    async def crawl():
        async with scene(tmp_path) as here:
            here.poison(injection)
            injection.urls = dict.fromkeys(here.poisoned[:1], 0)
            injection.pages = {here.page(here.poisoned[0]): 0}
            inject(monkeypatch, step, injection)
            await here.driver.run(START + HOUR)
            check_others(here, least=2)
            assert set(here.visits(here.poisoned[0]).status.tolist()) == {OUR_FAULT}

    asyncio.run(crawl())
    assert injection.hits


@pytest.mark.parametrize("kind", [FAULTS[0], TROUBLE[1]], ids=["our fault", "trouble"])
def test_a_task_that_raises_costs_its_page_and_frees_its_host(tmp_path, monkeypatch, kind):
    """Also behind the visit itself, where the answer is compressed."""
    injection = Injection([kind], twice=3)
    pack_ahead = Recorder.pack_ahead

    async def raises(self, result, clock):
        injection.raise_for([result])
        await pack_ahead(self, result, clock)

    monkeypatch.setattr(Recorder, "pack_ahead", raises)

    async def crawl():
        async with scene(tmp_path) as here:
            injection.urls = dict.fromkeys(here.poisoned[:1], 0)
            injection.pages = {here.page(here.poisoned[0]): 0}
            await here.driver.run(START + 3 * HOUR)
            check_others(here)
            mine = here.visits(here.poisoned[0])
            assert injection.hits
            assert set(mine.status.tolist()) == {OUR_FAULT if kind is FAULTS[0] else 200}
            for url in here.poisoned[1:]:  # of the same host
                assert len(here.visits(url)) >= 3

    asyncio.run(crawl())
    check_archive(tmp_path)


def test_hosts_chosen_together_with_one_that_meets_trouble_are_not_lost(tmp_path, monkeypatch):
    """The store goes away while a sitemap is put off: hosts chosen in the same moment were never asked again."""
    refused, met = [], []
    enter, let_rest = LeasePool.enter, ResultHandler._let_rest

    def others_hold(self, target, now):
        if len(refused) < 3:
            refused.append(target.host)
            return now + 60.0
        return enter(self, target, now)

    def goes_away(self, host, now):
        if len(met) < len(refused):
            met.append(host)
            raise StoreAwayError("The store is away.")
        let_rest(self, host, now)

    monkeypatch.setattr(LeasePool, "enter", others_hold)
    monkeypatch.setattr(ResultHandler, "_let_rest", goes_away)

    async def crawl():
        async with scene(tmp_path, hosts=8) as here:
            await here.driver.run(START + 3 * HOUR)
            assert met
            for url in here.urls:
                assert (here.visits(url).status > 0).sum() >= 3, url

    asyncio.run(crawl())
    check_archive(tmp_path)


def test_a_visit_that_never_ends_is_given_up(tmp_path, monkeypatch):
    """On the machine's clock: a virtual one waits for all that runs."""
    monkeypatch.setattr(f"{__name__}.VirtualClock", lambda _start: RealClock())
    fetch, begun = HttpFetcher.fetch, []

    async def hangs(self, request):
        if request.url.endswith("/p0"):
            begun.append(request.url)
            await asyncio.Event().wait()
        return await fetch(self, request)

    monkeypatch.setattr(HttpFetcher, "fetch", hangs)

    async def crawl():
        async with scene(tmp_path, pace=WorkerPace(poll=0.05), pause=0.01) as here:
            # As many seconds as fetches may take, or more: that is what the scene is made with.
            here.driver._longest_visit = 1.0

            def stop_when_given_up(_now):
                if len(here.visits(here.poisoned[0])):
                    here.driver.stop()

            await here.driver.run(here.clock.now() + 120.0, stop_when_given_up)
            mine = here.visits(here.poisoned[0])
            assert mine.status.tolist() == [OUR_FAULT]
            assert begun
            others = here.store.visits()
            assert len(np.unique(others.page[others.status > 0])) >= len(here.urls)
            [event] = here.events("visit failed internally")
            assert "did not end in time" in event["details"]["error"]

    asyncio.run(crawl())


def test_an_answer_whose_reading_never_ends_costs_one_page(tmp_path, monkeypatch):
    """A worker that hangs is ended by the limit of the pool, the page is judged by its bytes, and others go on."""
    monkeypatch.setattr(f"{__name__}.VirtualClock", lambda _start: RealClock())
    call, hung = ParsePool.call, []

    def hangs(self, function, capture, *more):
        if not capture.url.endswith("/p0"):
            return call(self, function, capture, *more)
        hung.append(capture.url)
        return call(self, time.sleep, 3600)

    def costly(capture, known, standards, effort=Effort.ALL):
        if capture.url.endswith("/p0") and effort is Effort.CHEAP:
            raise CostlyError
        return classify_change(capture, known, standards, effort)

    monkeypatch.setattr(ParsePool, "call", hangs)
    monkeypatch.setattr("recrawl.detect.detector.classify_change", costly)

    async def crawl():
        async with scene(tmp_path, pace=WorkerPace(poll=0.05), pause=0.01, parsing=ParseLimits(cpu=0.05)) as here:

            def stop_when_all_are_visited(_now):
                if len(np.unique(here.store.visits().page)) >= len(here.urls) + len(here.poisoned):
                    here.driver.stop()

            await here.driver.run(here.clock.now() + 120.0, stop_when_all_are_visited)
            [event] = here.events("response not parsed")
            assert event["details"]["url"] == here.poisoned[0] == hung[0]
            assert "not read within" in event["details"]["reason"]
            visits = here.store.visits()
            assert (visits.status > 0).all()
            assert len(np.unique(visits.page)) >= len(here.urls) + len(here.poisoned)
            assert len(here.store.captures(np.array([here.page(here.poisoned[0])]))) == 1  # its bytes are kept
            assert here.events("visit failed internally", "step failed") == []

    asyncio.run(crawl())
    check_archive(tmp_path)


class ByChance(Injection):
    """Raises any kind at any call, now and then, for as long as it is told to."""

    def __init__(self, kinds, seed, share):
        super().__init__(kinds)
        self._random, self._share, self.is_on = np.random.default_rng(seed), share, True

    def raise_for(self, arguments):
        if self.is_on and self._random.random() < self._share:
            kind = int(self._random.integers(len(self.kinds)))
            self.hits[kind] += 1
            error = self.kinds[kind]()
            raise error


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_faults_by_chance_in_all_steps_at_once(tmp_path, monkeypatch, seed):
    """Whatever fails, the run does not end; when nothing fails any more, every page is visited again."""
    injection = ByChance(KINDS, seed, share=0.02)

    async def crawl():
        async with scene(tmp_path, every=3 * HOUR, durable=bool(seed % 2)) as here:
            for step in STEPS:
                inject(monkeypatch, step, injection)
            await here.driver.run(START + 6 * HOUR)
            injection.is_on = False
            await here.driver.run(START + 2 * DAY)
            for url in here.urls:
                assert (here.visits(url).status > 0).any(), url

    asyncio.run(crawl())
    assert len(injection.hits) == len(KINDS)
    check_archive(tmp_path)


PATH = [
    "recrawl.crawl.visit.visitor",
    "recrawl.crawl.visit.change_classifier",
    "recrawl.crawl.worker.result_handler",
    "recrawl.crawl.worker.group_commit",
    "recrawl.crawl.visit.recorder",
    "recrawl.crawl.visit.warc_archive",
    "recrawl.crawl.worker.sitemap_feed_poller",
    "recrawl.crawl.control.heritrix_log",
    "recrawl.crawl.worker.crawl_worker",
    "recrawl.crawl.worker.lease_pool",
    "recrawl.crawl.worker.outages",
]
"""Modules of the crawl that a visit passes through."""
NO_STEPS = {
    "Visitor.visit",
    "Recorder.prepare",
    "Recorder.sync",
    "Recorder.finish",
    "Recorder.archive_auxiliary",
    "Recorder.give_up",
    "WarcArchive.give_up",
    "HeritrixLog.write_auxiliary",
    "AuxiliaryFetches.take",
    "GroupCommit.begin",
    "GroupCommit.end",
    "GroupCommit.give_up",
    "GroupCommit.record",
    "LeasePool.start_empty",
    "OutageDetector.take",
    "ReadyQueue.done",
    "ReadyQueue.drop_lost",
    "ReadyQueue.empty",
    "ReadyQueue.enter",
    "ReadyQueue.free_hosts",
    "ReadyQueue.join",
    "ReadyQueue.leave",
    "ReadyQueue.put_back",
    "ReadyQueue.renew",
    "ReadyQueue.take_unconfirmed",
    "Recorder.widen_scope",
    "ResultHandler.believe_doubtful",
    "ResultHandler.give_up",
    "ResultHandler.handle_believed",
    "ResultHandler.requeue_doubtful",
    "ResultHandler.take",
    "SitemapFeedPoller.begin",
    "SitemapFeedPoller.rules_read",
    "StorageBackoff.over",
}
"""Their parts are steps, or they are parts of one."""
ANSWERS = {
    "GroupCommit.due",
    "GroupCommit.is_due",
    "GroupCommit.made",
    "GroupCommit.writing",
    "LeasePool.__len__",
    "LeasePool.lease_at",
    "LeasePool.lease_soon",
    "NetworkOutage.room",
    "ResultHandler.doubt_ends",
    "ResultHandler.held",
    "ResultHandler.outage",
    "StorageBackoff.is_on",
}
"""They read or set a field."""
ELSEWHERE = {"Recorder.pack_ahead"}
"""It does nothing on a virtual clock: see ``test_a_task_that_raises_costs_its_page_and_frees_its_host``."""


def test_every_step_of_a_visit_is_in_the_table(tmp_path):
    """What the worker, the visitor and the recorder call of each other during a crawl, and the table does not name."""
    called = set()
    inside = set(PATH)
    listed = {function.partition(":")[2] for function in STEPS.values()}

    def profile(frame, event, _argument):
        if event != "call" or frame.f_back is None:
            return
        module, caller = (one.f_globals.get("__name__", "") for one in (frame, frame.f_back))
        name = frame.f_code.co_qualname
        if module in inside and caller in inside and module != caller and "." in name and "<" not in name:
            called.add(name)

    async def crawl():
        async with scene(tmp_path, durable=False) as here:
            sys.setprofile(profile)
            try:
                await here.driver.run(START + HOUR)
            finally:
                sys.setprofile(None)

    asyncio.run(crawl())
    assert called & listed, "the table and what is called have the same names"
    assert sorted(called - listed - NO_STEPS - ANSWERS - ELSEWHERE) == []


def test_an_error_without_a_known_step_names_our_innermost_function():
    with pytest.raises(StoreMissingError) as raised:
        open_store(Path("/nowhere/at/all.db"))
    assert InternalFault.of(raised.value).words.startswith("recrawl.store.")
    assert step_of(ValueError()) == "unknown"
    assert isinstance(waits_for(OSError(errno.ENOSPC, "full")), DiskFullError)
    assert waits_for(OSError(errno.EIO, "tired")) is None


def test_a_log_that_cannot_be_written_does_not_end_anything(capsys):
    class Broken:
        def write(self, _text):
            raise OSError(errno.EIO, "tired")

        def flush(self):
            pass

    faults = FaultReporter(JsonLinesLog(Broken(), VirtualClock(START)))
    for _ in range(3):
        with faults.contained():
            raise ValueError
        faults.broke_visit("http://a.example/", InternalFault.of(ValueError()))
    assert capsys.readouterr().err.count("cannot write its log") == 1
