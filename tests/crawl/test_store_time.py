"""Workers that share a server share its clock, whatever the clocks of their own machines say."""

from __future__ import annotations

import pytest

from recrawl.crawl.clock import APART, DOUBT, RealClock, StoreTime, follow_store, time_of
from recrawl.store.open import open_store
from recrawl.time import DAY


class Server:
    """As much of a store as tells the time: a clock of its own, and a way there that takes some seconds."""

    def __init__(self, machine, now, way=0.0):
        self.machine, self.ahead, self.way = machine, now, way

    def time(self):
        self.machine.steady += self.way / 2
        told = self.machine.steady + self.ahead
        self.machine.steady += self.way / 2
        return told


class Machine:
    def __init__(self, wall):
        self.steady, self.wall = 100.0, wall

    def clock(self):
        return RealClock(lambda: self.wall, lambda: self.steady)


def test_the_time_is_that_of_a_real_server_however_wrong_the_machine_is(new_database):
    with open_store(new_database(), create=True) as store:
        real = RealClock()
        for wrong in (-400 * DAY, 3 * DAY):
            clock = RealClock(lambda wrong=wrong: real.now() + wrong)
            _, ahead = follow_store(clock, store)
            assert ahead == pytest.approx(wrong, abs=60.0)
            assert clock.now() == pytest.approx(real.now(), abs=60.0)
        assert time_of(store) == pytest.approx(real.now(), abs=60.0)


def test_a_store_in_a_file_has_the_time_of_the_machine(tmp_path):
    with open_store(tmp_path / "store.db", create=True) as store:
        machine = Machine(1.79e9)
        assert follow_store(machine.clock(), store) == (None, 0.0)
        assert abs(time_of(store) - RealClock().now()) < 60.0


def test_the_way_to_the_server_is_taken_into_account_and_late_answers_tell_nothing():
    machine = Machine(1.79e9)
    server, clock = Server(machine, 1.79e9, way=0.8), machine.clock()
    time, _ = follow_store(clock, server)
    assert isinstance(time, StoreTime)
    assert time() == pytest.approx(machine.steady + 1.79e9)
    server.way, server.ahead = 9.0, 1.79e9 + 500.0
    time.measure()
    assert time() == pytest.approx(machine.steady + 1.79e9)
    assert APART < 500.0


def test_a_jump_of_the_machine_is_nobodys_concern_and_one_of_the_server_is_doubted():
    machine = Machine(1.79e9)
    server, clock = Server(machine, 1.79e9), machine.clock()
    time, _ = follow_store(clock, server)
    machine.wall += 400 * DAY
    assert (clock.set_right(), clock.uncertain) == (0.0, 0.0)
    server.ahead -= 3 * DAY
    time.measure()
    assert (clock.set_right(), clock.uncertain) == (0.0, -3 * DAY)
    machine.steady += DOUBT
    time.measure()
    assert clock.set_right() == -3 * DAY
    assert clock.now() == server.time()
