"""The machine's clock is wrong for a while, by days, by a year, back to 1970: the crawl goes on when it is right.

Stores, archive files and HTTP are real; the machine has a clock on the wall that can be set, and a steady time that
nobody can. Whatever the first says, what was done is judged by the second.
"""

from __future__ import annotations

import asyncio
import json
import math
from itertools import product

import numpy as np
import pytest

from recrawl.crawl.clock import DOUBT, SMALL, RealClock
from recrawl.crawl.control.runtime_limits import RuntimeLimits
from recrawl.crawl.visit.scope import HostScope
from recrawl.crawl.worker.crawl_assembly import WorkerSettings, live_crawl
from recrawl.crawl.worker.crawl_worker import WorkerPace
from recrawl.schedule.policies.fixed_interval import FixedInterval
from recrawl.schedule.politeness.host_politeness import PolitenessRules
from recrawl.simulate.sites import synthetic_web
from recrawl.store.open import open_store
from recrawl.time import DAY, HOUR, MINUTE
from recrawl_testweb.virtual_web_server import VirtualWebServer

START, PAUSE = 1.79e9, 10.0
JUMPS = {"3 d ahead": 3 * DAY, "3 d behind": -3 * DAY, "400 d ahead": 400 * DAY, "400 d behind": -400 * DAY}
AGENT = "jumps/1.0 (+https://example.org/)"


class Machine:
    """A machine whose clock is set at moments of its steady time, all told beforehand: when, and by how much."""

    def __init__(self):
        self.steady, self.off, self.sets = 0.0, 0.0, []

    def pass_(self, seconds):
        self.steady += seconds
        while self.sets and self.sets[0][0] <= self.steady:
            self.off += self.sets.pop(0)[1]

    def now(self):
        """As a clock on the wall that nobody sets."""
        return START + self.steady

    @property
    def wall(self):
        return START + self.steady + self.off


class MachineClock(RealClock):
    """The real clock on such a machine; whoever sleeps lets the time of the machine pass."""

    def __init__(self, machine):
        super().__init__(lambda: machine.wall, lambda: machine.steady)
        self._machine = machine

    async def sleep_until(self, when):
        while (left := when - self.now()) > 0:
            await asyncio.sleep(0)
            self._machine.pass_(min(left, MINUTE) if left > 1e-6 else 1e-6)

    async def wait(self, running, until):
        if running:
            done, _ = await asyncio.wait(running)
            return done
        await asyncio.sleep(0)
        self._machine.pass_(min(max(until - self.now(), 1e-3), MINUTE))
        return set()


class Crawl:
    """A crawl of twelve pages that are due ever again, so that each host is asked as often as its pause allows."""

    def __init__(self, tmp_path, store, living, machine):
        self.folder, self.store, self.living, self.machine = tmp_path, store, living, machine
        self.made = []
        """When visits were acknowledged, by the steady time."""
        self.runs = 0
        self.settings = WorkerSettings(
            budget=1.0,
            user_agent=AGENT,
            politeness=PolitenessRules(factor=0.0, shortest=PAUSE, longest=PAUSE),
            pace=WorkerPace(poll=2.0),
            pins=dict.fromkeys(living.hosts(), living.ip),
            durable=False,
        )

    def orders(self, _limits):
        return RuntimeLimits(budget=1.0, burst=HOUR, politeness=self.settings.politeness)

    async def run(self, seconds):
        """As ``recrawl run`` does it: another run begins when the clock was set by a large step."""
        machine, clock = self.machine, MachineClock(self.machine)
        over = machine.steady + seconds
        while machine.steady < over:
            self.runs += 1
            async with live_crawl(
                f"worker {self.runs}",
                FixedInterval(PAUSE),
                clock=clock,
                store=self.store,
                folder=self.folder,
                scope=HostScope(frozenset(self.living.hosts())),
                settings=self.settings,
                orders=self.orders,
                on_visits=lambda visited: self.made.extend([machine.steady] * len(visited)),
            ) as driver:

                def stop_in_time(_now, driver=driver):
                    if machine.steady >= over:
                        driver.stop()

                await driver.run(math.inf, stop_in_time)

    def events(self, message):
        lines = map(json.loads, (self.folder / "recrawl.log").read_text(encoding="utf-8").splitlines())
        return [event for event in lines if event["message"] == message]


@pytest.fixture
def engine():
    return "sqlite"


on_both = pytest.mark.parametrize("engine", ["sqlite", "postgres"])


@pytest.fixture
def scene(engine, request, tmp_path):
    location = tmp_path / "store.db" if engine == "sqlite" else request.getfixturevalue("new_database")()
    web = synthetic_web(pages=12, start=START, days=1, seed=2)
    machine = Machine()
    with VirtualWebServer(web, machine) as living, open_store(location, create=True, durable=False) as store:
        store.discover(living.urls(), START)
        yield Crawl(tmp_path, store, living, machine)


def goes_on_all_the_time(scene, since=0.0):
    """No minute or so without a visit."""
    moments = np.array([since, *(moment for moment in scene.made if moment >= since), scene.machine.steady])
    gaps = [(moment, gap) for moment, gap in zip(moments, np.diff(moments), strict=False) if gap >= MINUTE]
    assert gaps == []
    return True


def pauses_are_kept(scene):
    """By what the server saw, on a clock that nobody set."""
    requests = scene.living.requests()
    return all((np.diff(requests.time[requests.host == host]) >= PAUSE - 1e-3).all() for host in set(requests.host))


@pytest.mark.slow
@pytest.mark.parametrize("lasts", [20.0, 4 * MINUTE], ids=["a glitch", "for long"])
@pytest.mark.parametrize("jump", [*JUMPS.values(), -START], ids=[*JUMPS, "1970"])
def test_visits_go_on_while_the_clock_is_wrong_and_after(scene, jump, lasts):
    """A glitch leaves no trace at all; what stands longer is believed, and believed again when it is right."""
    begin, machine = 3 * MINUTE, scene.machine
    machine.sets = [(begin, jump), (begin + lasts, -jump)]
    asyncio.run(scene.run(begin + lasts + 4 * MINUTE))
    assert goes_on_all_the_time(scene)
    assert pauses_are_kept(scene)
    believed = lasts > DOUBT and jump != -START
    assert scene.runs == (3 if believed else 1)
    assert scene.events("clock jump ignored for now")
    assert len(scene.events("clock was set")) == scene.runs - 1
    assert bool(scene.events("records dated after the clock")) == believed
    assert scene.store.visits().time.max() <= machine.wall
    marked = scene.store.misdated_visits()
    assert len(marked) == scene.store.misdated().visits
    assert bool(len(marked)) == believed  # those made while it was wrong, ahead or behind, and no others
    wrong = (np.array(scene.made) > begin + DOUBT) & (np.array(scene.made) < begin + lasts + DOUBT)
    assert not believed or abs(len(marked) - wrong.sum()) <= 4
    assert (np.abs(marked.time - machine.wall) > 2 * DAY).all()
    assert (np.abs(scene.store.visits().time - machine.wall) < DAY).all()
    assert scene.store.counts(machine.wall).leased == 0


@pytest.mark.slow
@on_both
@pytest.mark.parametrize("jump", JUMPS.values(), ids=JUMPS)
def test_a_crawl_that_begins_when_the_clock_is_right_goes_on_at_once(scene, jump):
    """The one before ran with a clock that was wrong all the time, and was killed then."""
    machine = scene.machine
    asyncio.run(scene.run(4 * MINUTE))
    machine.off = jump
    asyncio.run(scene.run(4 * MINUTE))
    assert len(scene.store.lease("killed", machine.wall + MINUTE, 1, ttl=120.0))
    machine.off, right_at = 0.0, machine.steady
    asyncio.run(scene.run(4 * MINUTE))
    assert goes_on_all_the_time(scene, right_at)
    assert pauses_are_kept(scene)
    visits = scene.store.visits()
    assert visits.time.max() <= machine.wall
    since = visits.page[visits.time >= START + right_at]
    assert set(since.tolist()) == set(scene.store.pages().id.tolist())  # no page and no host is left out
    assert scene.store.misdated().visits
    assert (np.abs(visits.time - machine.wall) < DAY).all()


@pytest.mark.parametrize("jump", JUMPS.values(), ids=JUMPS)
def test_a_machine_that_boots_with_a_wrong_clock_is_set_right(scene, jump):
    machine = scene.machine
    machine.off, machine.sets = jump, [(3 * MINUTE, -jump)]
    asyncio.run(scene.run(8 * MINUTE))
    assert goes_on_all_the_time(scene)
    assert pauses_are_kept(scene)
    assert scene.store.visits().time.max() <= machine.wall


@pytest.mark.slow
@on_both
def test_a_clock_that_is_set_again_and_again(scene):
    scene.machine.sets = [
        (moment * 2.5 * MINUTE, jump)
        for moment, jump in enumerate([3 * DAY, -400 * DAY, HOUR, 400 * DAY, -HOUR, -3 * DAY, 30.0, -30.0], start=1)
    ]
    asyncio.run(scene.run(25 * MINUTE))
    assert goes_on_all_the_time(scene)
    assert pauses_are_kept(scene)
    assert scene.store.visits().time.max() <= scene.machine.wall


def test_a_clock_that_is_set_again_and_again_by_less_than_a_minute_stops_nothing(scene):
    """Nobody else is at work, whose leases would have to be waited for."""
    scene.machine.sets = [(30.0 + 12.0 * number, 50.0) for number in range(20)]
    asyncio.run(scene.run(6 * MINUTE))
    assert max(np.diff([0.0, *scene.made])) < MINUTE


OFFSETS = [0.0, 30.0, -50.0, 70.0, -90.0, 3 * DAY, -3 * DAY, 400 * DAY, -START]
"""How wrong a clock is, for a while each."""


@pytest.mark.parametrize("observation", [2.0, MINUTE])
def test_every_series_of_settings_is_followed_within_a_minute_of_the_clock_being_right(observation):
    """All series of three wrong clocks, each for less or more than a minute: no two of them make a third doubt longer.

    ``observation`` is how often the clock is looked at. A crawl looks at every turn, at least once a minute.
    """
    for series in product(product(OFFSETS, (25.0, 65.0)), repeat=3):
        machine = Machine()
        clock = RealClock(lambda machine=machine: machine.wall, lambda machine=machine: machine.steady)
        before = clock.now()
        for offset, lasts in (*series, (0.0, DOUBT + observation)):
            machine.off, until = offset, machine.steady + lasts
            while machine.steady < until:
                moved = clock.set_right()
                assert clock.now() >= before or moved < 0, series  # it goes back only where it says so
                before = clock.now()
                machine.steady = min(machine.steady + observation, until)
        clock.set_right()
        assert abs(clock.now() - machine.wall) <= SMALL, series
        assert clock.uncertain == 0.0, series


def random_series(seed):
    """Settings of the clock and when it is right for good: large and small ones, or many small ones in a row."""
    rng = np.random.default_rng(seed)
    sets, off, at = [], 0.0, rng.uniform(20.0, 60.0)
    for _ in range(rng.integers(3, 10)):
        kinds = [rng.uniform(2.0, 60.0), rng.uniform(-60.0, -2.0), -off, rng.choice(OFFSETS) - off]
        moved = kinds[0] if seed % 2 else kinds[rng.integers(4)]
        sets.append((at, moved))
        off, at = off + moved, at + (rng.uniform(4.0, 25.0) if seed % 2 else rng.choice([10.0, 50.0, 130.0]))
    return [*sets, (at, -off)], at


@pytest.mark.parametrize("seed", range(8))
def test_visits_go_on_within_a_minute_of_the_clock_being_right(scene, seed):
    """Whatever was done to it before. Odd seeds: workers that are alone once waited 20 s after each small setting."""
    scene.machine.sets, right_at = random_series(seed)
    asyncio.run(scene.run(right_at + 3 * MINUTE))
    assert goes_on_all_the_time(scene)
    assert goes_on_all_the_time(scene, right_at)
    assert pauses_are_kept(scene)
