"""A host that does not answer is left alone, whichever page is due; its pages do not stand in the way of others."""

from __future__ import annotations

import asyncio
import io
import math

import numpy as np
import pytest

from recrawl.crawl.control.json_log import JsonLinesLog
from recrawl.crawl.control.run_control import NoRunControl
from recrawl.crawl.visit.recorder import Recorder
from recrawl.crawl.visit.scope import HostScope
from recrawl.crawl.visit.visit_machine import Deferred, RobotsFetched, VisitEvent, VisitTarget
from recrawl.crawl.visit.visitor import Visitor
from recrawl.crawl.visit.warc_archive import NoArchive
from recrawl.crawl.worker.crawl_worker import CrawlWorker, WorkerPace
from recrawl.detect import decoded
from recrawl.errors import StoreAwayError
from recrawl.fetch.http.dns import AddressPolicy, HostResolver, IpGate
from recrawl.fetch.http.http_fetcher import HttpFetcher, TransferLimits
from recrawl.fetch.robots_cache import HostRobots, RobotsCache
from recrawl.model import Capture, Outcome
from recrawl.model.visits import NO_CONNECTION, NO_NAME, NO_ROBOTS, NOT_ALLOWED
from recrawl.schedule.frontier.revisit_scheduler import RevisitScheduler
from recrawl.schedule.policies.fixed_interval import FixedInterval
from recrawl.schedule.politeness.host_politeness import IpLimiter, IpLimits, Politeness, PolitenessRules
from recrawl.store.open import open_store
from recrawl.time import DAY, HOUR, MINUTE, VirtualClock

AGENT = "trouble/1.0 (+https://example.org/)"
START = 1.79e9
NAMES = {"well.test": "127.0.0.1", "dead.test": "127.0.0.1", "hidden.test": "10.0.0.1"}


async def look_up(host):
    if host.startswith("mute"):
        raise OSError(-3, "try again")  # no name server answers
    if host not in NAMES:
        raise OSError(-2, "no such name")  # as the resolver of the system says it
    return [NAMES[host]]


def driver_of(store, clock, visitor, pace, run_control=None):
    """A driver that asks for every page again after an hour, and keeps nothing of what comes."""
    scheduler = RevisitScheduler(FixedInterval(HOUR), budget=1.0)
    return CrawlWorker(
        "w",
        clock=clock,
        store=store,
        scheduler=scheduler,
        politeness=Politeness(PolitenessRules(factor=0.0, shortest=3.0)),
        visitor=visitor,
        recorder=Recorder("w", store, scheduler, HostScope(frozenset()), NoArchive()),
        pace=pace,
        log=JsonLinesLog(io.StringIO(), clock),
        run_control=run_control,
    )


class SuspendedFetcher(HttpFetcher):
    """The process is suspended for a minute after each of these requests was begun, and before it is sent."""

    suspended_at: tuple[int, ...] = ()
    begun = 0

    def _new_transfer(self):
        transfer = super()._new_transfer()
        ask = transfer._on_connected

        def on_connected(*addresses):
            self.begun += 1
            if self.begun in self.suspended_at:
                self._clock.advance_to(self._clock.now() + MINUTE)
            return ask(*addresses)

        transfer.curl.setopt(self._pycurl.PREREQFUNCTION, on_connected)
        return transfer


class Scene:
    """A driver in virtual time at the real server of ``site``; every page is due again after an hour."""

    def __init__(self, folder, pace=None, turns=None, suspended_at=()):
        self.suspended_at = suspended_at
        self.clock = VirtualClock(START)
        self.store = open_store(str(folder / "store.db"), create=True, durable=False)
        self.pace = pace or WorkerPace(poll=math.inf)
        self.run_control = None
        self.turns = turns

    async def run(self, seeds, rules_known=(), until=START + DAY, *, until_idle=False, ready_at=None):
        clock = self.clock
        names = HostResolver(clock, reach=AddressPolicy.of(["127.0.0.1"]), look_up=look_up)
        limits = TransferLimits(connect=60.0, total=60.0)
        with self.store as store:
            async with names, SuspendedFetcher(clock, AGENT, names=names, limits=limits) as fetcher:
                fetcher.suspended_at = self.suspended_at
                robots = RobotsCache(fetcher, clock, AGENT, body_of=decoded)
                for url in rules_known:
                    await robots.rules(url)
                ip_gate = IpGate(names, IpLimiter(self.turns), clock) if self.turns else None
                driver = driver_of(store, clock, Visitor(fetcher, robots, clock, ip_gate), self.pace, self.run_control)
                pages = store.discover(seeds, START)
                if ready_at is not None:
                    hosts = store.hosts().id
                    store.set_host(hosts, ready_at=np.full(len(hosts), ready_at))
                await driver.run(until, until_idle=until_idle)
            visits = store.visits()
            return pages, visits


def of(visits, pages):
    return visits.take(np.isin(visits.page, pages))


@pytest.mark.slow
def test_a_host_that_refuses_connections_is_asked_a_few_times_a_day(tmp_path, site, linked):
    """Its rules are known, and one connection a page would be a thousand."""
    port = int(site.home.split(":")[2].strip("/"))
    for number in range(20):
        site.answers[f"/{number}"] = linked()
    well = [f"http://well.test:{port}/{number}" for number in range(20)]
    dead = [f"http://dead.test:1/{number}" for number in range(1_000)]

    async def run():
        scene = Scene(tmp_path, WorkerPace(poll=math.inf, lease_size=64))
        return await scene.run([*well, *dead])

    pages, visits = asyncio.run(run())
    of_dead, of_well = of(visits, pages[20:]), of(visits, pages[:20])
    assert 3 <= len(of_dead) <= 20
    assert set(of_dead.outcome.tolist()) == {Outcome.UNREACHABLE}
    assert len(of_well) >= 20 * 23, "the other host is visited every hour all the same"
    assert set(of_well.outcome.tolist()) == {Outcome.FETCHED}


@pytest.mark.parametrize(
    ("host", "outcome", "status"),
    [("gone.test:80", Outcome.UNREACHABLE, NO_NAME), ("hidden.test:80", Outcome.REFUSED, NOT_ALLOWED)],
)
def test_why_a_page_could_not_be_visited_is_kept(tmp_path, host, outcome, status):
    """As a number in place of the status (conventions L3)."""

    class Allowed(RobotsCache):
        """Somebody else told the rules, or they are from yesterday."""

        def known(self, _url):
            return HostRobots("rules of yesterday", expires=math.inf)

    async def run():
        clock = VirtualClock(START)
        names = HostResolver(clock, reach=AddressPolicy(), look_up=look_up)
        async with names, HttpFetcher(clock, AGENT, names=names, reach=AddressPolicy()) as fetcher:
            visitor = Visitor(fetcher, Allowed(fetcher, clock, AGENT, body_of=decoded), clock)
            return await visitor.go(_target(f"http://{host}/"))

    visited = asyncio.run(run())
    assert (visited.visit.outcome, visited.visit.status) == (outcome, status)


def test_why_a_host_cannot_tell_its_rules_is_why_its_pages_are_not_visited(tmp_path):
    """And each kind of failure has its own patience: a name without address is not asked for again after an hour."""
    seeds = ["http://gone.test/a", "http://gone.test/b", "http://hidden.test/", "http://dead.test:1/"]
    pages, visits = asyncio.run(Scene(tmp_path).run(seeds, until=START + 3 * HOUR))
    found = {page: of(visits, [page]) for page in pages.tolist()}
    gone, also_gone, hidden, dead = (found[page] for page in pages.tolist())
    assert set(gone.status.tolist()) == set(also_gone.status.tolist()) == {NO_NAME}
    assert set(gone.outcome.tolist()) == set(dead.outcome.tolist()) == {Outcome.UNREACHABLE}
    assert len(gone) == len(also_gone) == 1
    assert (set(hidden.status.tolist()), set(hidden.outcome.tolist())) == ({NOT_ALLOWED}, {Outcome.REFUSED})
    assert hidden.time.min() < START + MINUTE <= hidden.time[1] < START + 10 * MINUTE, "nobody is asked, so it is cheap"
    assert set(dead.status.tolist()) == {NO_CONNECTION}
    assert len(dead) == 3  # once an hour, each time its rules were asked for


def test_pages_that_may_not_be_asked_for_take_no_turn_of_their_host(tmp_path, site, linked):
    """Nobody is asked, so nobody has to rest; the page that may be asked for has its turn at once."""
    site.answers["/robots.txt"] = (200, {}, "User-agent: *\nDisallow: /secret")
    site.answers["/open"] = linked()
    port = int(site.home.split(":")[2].strip("/"))
    seeds = [f"http://well.test:{port}/{path}" for path in [*(f"secret{number}" for number in range(12)), "open"]]
    pages, visits = asyncio.run(Scene(tmp_path).run(seeds, until=START + 60))
    refused, opened = of(visits, pages[:-1]), of(visits, pages[-1:])
    assert refused.outcome.tolist() == [Outcome.REFUSED] * 12
    assert opened.outcome.tolist() == [Outcome.FETCHED]
    assert visits.time.max() < START + 10


@pytest.mark.parametrize("hosts", [1, 4])
def test_pages_of_a_host_do_not_fail_while_it_is_in_doubt_who_is_silent(tmp_path, hosts):
    """Its rules could not be read; the other pages in hand wait with the one that asked."""
    seeds = [f"http://mute{host}.test/{number}" for host in range(hosts) for number in range(20)]
    scene = Scene(tmp_path, WorkerPace(poll=1.0))
    _, visits = asyncio.run(scene.run(seeds, until=START + 60, ready_at=START + 20.0))  # after the first fit
    assert len(visits) == 0


class OneScheme:
    """A host that refuses connections for http, and serves https."""

    def __init__(self, clock):
        self.clock = clock

    async def fetch(self, request):
        url, now = request.url, self.clock.now()
        if url.startswith("http:"):
            return Capture(url, now, 0, error="refused", failure=NO_CONNECTION)
        if url.endswith("/robots.txt"):
            return Capture(url, now, 404, b"HTTP/1.1 404 No\r\n\r\n")
        return Capture(url, now, 200, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", b"<p>ok")


def test_a_scheme_without_rules_does_not_close_the_other(tmp_path):
    async def run():
        clock = VirtualClock(START)
        with open_store(str(tmp_path / "store.db"), create=True, durable=False) as store:
            fetcher = OneScheme(clock)
            visitor = Visitor(fetcher, RobotsCache(fetcher, clock, AGENT, body_of=decoded), clock)
            driver = driver_of(store, clock, visitor, WorkerPace(poll=math.inf))
            urls = [*(f"https://a.test/{number}" for number in range(20)), "http://a.test/old"]
            pages = store.discover(urls, START)
            await driver.run(START + DAY)
            return pages, store.visits()

    pages, visits = asyncio.run(run())
    assert len(of(visits, pages[:-1])) > 20 * 22, "every hour, but for some minutes of rest"
    assert set(of(visits, pages[-1:]).status.tolist()) == {NO_CONNECTION}


def test_a_run_until_idle_does_not_wait_for_a_host_that_cannot_tell_its_rules(tmp_path, site):
    site.answers["/robots.txt"] = (503, {}, "")
    scene = Scene(tmp_path)
    seeds = [f"{site.home}{number}" for number in range(3)]
    _, visits = asyncio.run(scene.run([url.replace("127.0.0.1", "well.test") for url in seeds], until_idle=True))
    assert visits.status.tolist() == [NO_ROBOTS]
    assert scene.clock.now() < START + 30


def test_a_connection_that_is_refused_is_kept_as_such(tmp_path):
    async def run():
        clock = VirtualClock(START)
        async with HttpFetcher(clock, AGENT) as fetcher:
            robots = RobotsCache(fetcher, clock, AGENT, body_of=decoded)
            robots.known = lambda _url: HostRobots("rules of yesterday", expires=math.inf)
            return await Visitor(fetcher, robots, clock).go(_target("http://127.0.0.1:1/"))

    assert asyncio.run(run()).visit.status == NO_CONNECTION


def _target(url):
    from recrawl.crawl.visit.visit_machine import VisitTarget

    return VisitTarget(1, 1, url, START)


def test_many_hosts_at_one_address_are_all_visited_in_turn(tmp_path, site, linked):
    """Sixty names on one machine, and room for few pages in hand: those that wait make room for others."""
    port = int(site.home.split(":")[2].strip("/"))
    site.answers["/"] = linked()
    hosts = [f"h{number}.test" for number in range(60)]
    NAMES.update(dict.fromkeys(hosts, "127.0.0.1"))

    async def run():
        scene = Scene(tmp_path, WorkerPace(poll=5.0, lease_size=16, concurrency=8), IpLimits(2.0, 1))
        return await scene.run([f"http://{host}:{port}/" for host in hosts], until=START + 2 * HOUR)

    pages, visits = asyncio.run(run())
    assert set(visits.page.tolist()) == set(pages.tolist())
    assert set(visits.outcome.tolist()) == {Outcome.FETCHED}
    gaps = np.diff(np.sort(visits.time))
    assert (gaps >= 2.0).all()


def test_a_request_that_did_not_go_out_in_time_does_not_go_out(tmp_path, site, linked):
    """The process may have been stopped meanwhile, and its leases be somebody else's."""
    site.answers["/0"] = linked()
    clock = VirtualClock(START)
    host = site.home.split("/")[2]

    async def slowly(_name):
        await clock.sleep_until(clock.now() + MINUTE)
        return ["127.0.0.1"]

    async def run():
        names = HostResolver(clock, reach=AddressPolicy.of(["127.0.0.1"]), look_up=slowly, patience=math.inf)
        async with names, HttpFetcher(clock, AGENT, names=names) as fetcher:
            robots = RobotsCache(fetcher, clock, AGENT, body_of=decoded)
            visitor = Visitor(fetcher, robots, clock, IpGate(names, IpLimiter(IpLimits(0.0, 1)), clock))
            target = VisitTarget(1, 1, f"http://slow.test:{host.partition(':')[2]}/0", START)
            late = await visitor.go(target, clock.elapsed() + 20.0)
            assert isinstance(late, Deferred)
            assert not site.asked
            target.machine.feed(VisitEvent.BELIEVED)
            return await visitor.go(target, clock.elapsed() + 20.0)

    assert isinstance(asyncio.run(run()), RobotsFetched)
    assert site.asked


def test_nothing_is_sent_in_a_turn_in_which_the_process_was_suspended(tmp_path, site, linked, monkeypatch):
    """Its leases may be somebody else's: they are checked in the next turn, before anything is sent."""
    site.answers["/0"] = linked()
    scene = Scene(tmp_path)
    asked = []
    lease = scene.store.lease

    def suspended(*arguments, **options):
        leased = lease(*arguments, **options)
        if len(leased) and not asked:
            scene.clock.advance_to(scene.clock.now() + MINUTE)
            asked.append(scene.clock.now())
        return leased

    go = Visitor.go

    async def noted(self, target, not_after=math.inf):
        if len(asked) == 1:
            result = await go(self, target, not_after)
            assert isinstance(result, Deferred)
            assert not site.asked
            asked.append(-math.inf)
            return result
        return await go(self, target, not_after)

    monkeypatch.setattr(scene.store, "lease", suspended)
    monkeypatch.setattr(Visitor, "go", noted)
    pages, visits = asyncio.run(scene.run([f"{site.home}0"], until=START + HOUR / 2))
    assert len(asked) == 2
    assert set(visits.page.tolist()) == set(pages.tolist()), "it is visited once the leases were checked"


@pytest.mark.parametrize("page", [1, -1])
def test_nothing_is_sent_if_the_process_was_suspended_after_the_last_check(site, linked, page):
    """libcurl has a connection by then: robots.txt, a page or a sitemap is not requested, and nothing is learned."""
    site.answers["/0"] = linked()

    async def run():
        clock = VirtualClock(START)
        async with SuspendedFetcher(clock, AGENT) as fetcher:
            fetcher.suspended_at = (1, 3)
            visitor = Visitor(fetcher, RobotsCache(fetcher, clock, AGENT, body_of=decoded), clock)
            target, results = VisitTarget(page, 1, f"{site.home}0", START), []
            for _ in range(4):
                results.append(await visitor.go(target, clock.elapsed() + 20.0))
                target.machine.feed(VisitEvent.BELIEVED)
                if isinstance(results[-1], RobotsFetched):
                    target.machine.feed(VisitEvent.ALLOWED)
            return results

    late, rules, late_too, made = asyncio.run(run())
    assert isinstance(late, Deferred)
    assert isinstance(late_too, Deferred)
    assert not late.asked
    assert not late_too.asked
    assert isinstance(rules, RobotsFetched)
    assert made.capture.status == 200
    assert [path for path, _ in site.asked] == ["/robots.txt", "/0"]


def test_a_run_goes_on_after_the_process_was_suspended_before_it_sent(tmp_path, site, linked):
    """No visit fails, and no host is left alone for it; a robots.txt that redirects is read again after a pause."""
    port = int(site.home.split(":")[2].strip("/"))
    site.answers["/0"] = linked()
    site.answers["/robots.txt"] = (302, {"Location": "/rules.txt"}, "")
    site.answers["/rules.txt"] = (200, {"Content-Type": "text/plain"}, "")

    async def run():
        scene = Scene(tmp_path, suspended_at=(2, 5))
        return await scene.run([f"http://well.test:{port}/0"], until=START + HOUR / 2)

    _pages, visits = asyncio.run(run())
    assert visits.outcome.tolist() == [Outcome.FETCHED]
    assert [path for path, _ in site.asked] == ["/robots.txt", "/robots.txt", "/rules.txt", "/0"]


def test_leases_are_checked_before_anything_is_requested_after_the_store_was_away(tmp_path, site, linked):
    """A worker that was suspended finds its connection closed, and its pages leased to another."""
    site.answers["/0"] = linked()
    scene = Scene(tmp_path)

    class LostConnection(NoRunControl):
        """Pages may be requested once the report to the registry failed."""

        update_at = -math.inf
        has_failed = False

        def room(self, now, underway):
            return super().room(now, underway) if self.has_failed else 0

        def next_at(self, now):
            return now + 1.0

        def update(self, now, _load):
            self.update_at = now + 1.0
            if not self.has_failed and scene.store.held("w").tolist():
                self.has_failed = True
                scene.store.release_worker("w", now, pause=0.0)
                assert len(scene.store.lease("other", now, 9, per_host=9, ttl=HOUR)) == 1
                raise StoreAwayError("The connection was lost.", "Start the server.")
            return False

    scene.run_control = LostConnection(8)
    _, visits = asyncio.run(scene.run([f"{site.home}0"], until=START + HOUR / 2))
    assert scene.run_control.has_failed
    assert site.asked == []
    assert len(visits) == 0
