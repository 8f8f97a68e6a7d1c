"""Hosts that share an address: none is asked too early, all have their turn, and few are turned away often."""

from __future__ import annotations

import heapq

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.errors import ConfigError
from recrawl.schedule.politeness.host_politeness import IpLimiter, IpLimits


class Street:
    """Hosts at some addresses, each with pages, that come when they are told to and a little later."""

    def __init__(self, rules, hosts, addresses, seed):
        self.turns = IpLimiter(rules)
        self.rng = np.random.default_rng(seed)
        self.address = [f"192.0.2.{number}" for number in self.rng.integers(0, addresses, hosts)]
        self.left = self.rng.integers(1, 4, hosts).tolist()
        self.requests = [[] for _ in range(hosts)]
        """Of each host, when its requests began and ended."""
        self.away = 0

    def run(self, duration, late):
        events = [(float(self.rng.uniform(0, 2)), "come", host) for host in range(len(self.left))]
        heapq.heapify(events)
        while events:
            now, what, host = heapq.heappop(events)
            if what == "done":
                self.turns.done(self.address[host], host, now)
                self.requests[host][-1][1] = now
                self.left[host] -= 1
                if self.left[host]:
                    heapq.heappush(events, (now + 3.0, "come", host))
                continue
            told = self.turns.begin(self.address[host], host, now)
            if told > now:
                self.away += 1
                heapq.heappush(events, (told + float(self.rng.exponential(late)), "come", host))
            else:
                assert told == now
                self.requests[host].append([now, np.inf])
                heapq.heappush(events, (now + float(self.rng.exponential(duration)), "done", host))

    def at(self, address):
        """What happened at one address, in order of time."""
        return sorted(
            tuple(request)
            for host, requests in enumerate(self.requests)
            if self.address[host] == address
            for request in requests
        )


rules = st.builds(IpLimits, delay=st.sampled_from([0.0, 0.5, 2.0]), connections=st.integers(1, 4))


@given(rules, st.integers(1, 40), st.integers(1, 3), st.sampled_from([0.01, 0.5, 5.0]), st.integers(0, 2**32))
@settings(deadline=None, max_examples=60)
def test_no_request_is_nearer_to_another_than_its_address_allows(rules, hosts, addresses, duration, seed):
    street = Street(rules, hosts, addresses, seed)
    street.run(duration, late=0.05)
    assert not any(street.left), "everybody had a turn"
    for address in set(street.address):
        log = street.at(address)
        begins = [begin for begin, _ in log]
        for number, begin in enumerate(begins[1:], 1):
            before = [moment for request in log[:number] for moment in request if moment <= begin]
            assert begin - max(before) >= rules.delay - 1e-9
            assert sum(end > begin for _, end in log[:number]) < rules.connections


@pytest.mark.parametrize("hosts", [10, 100, 1_000])
@pytest.mark.parametrize("duration", [0.01, 0.5])
def test_a_long_line_does_not_turn_hosts_away_more_often(hosts, duration):
    street = Street(IpLimits(), hosts, 1, 7)
    street.run(duration, late=0.02)
    assert street.away / sum(map(len, street.requests)) < 8


def test_who_is_told_comes_back_at_another_time_each():
    turns = IpLimiter(IpLimits(delay=2.0, connections=1))
    assert turns.begin("a", 0, 100.0) == 100.0
    told = [turns.begin("a", host, 100.0) for host in range(1, 6)]
    assert told == [102.0, 104.0, 106.0, 108.0, 110.0]
    assert turns.begin("b", 1, 100.0) == 100.0, "at another address nobody waits"


def test_who_is_in_the_line_goes_before_who_is_not():
    turns = IpLimiter(IpLimits(delay=2.0, connections=1))
    turns.begin("a", 0, 100.0)
    assert turns.begin("a", 1, 100.0) == 102.0
    turns.done("a", 0, 100.0)
    assert turns.begin("a", 9, 102.0) > 102.0
    assert turns.begin("a", 1, 102.5) == 102.5


def test_who_does_not_come_is_not_waited_for_for_ever():
    turns = IpLimiter(IpLimits(delay=2.0, connections=1))
    turns.begin("a", 0, 100.0)
    turns.begin("a", 1, 100.0)
    turns.done("a", 0, 100.0)
    assert turns.begin("a", 9, 200.0) == 200.0


def test_addresses_at_rest_are_forgotten():
    turns = IpLimiter(IpLimits(delay=1.0))
    for number in range(10_000):
        turns.begin(f"address {number}", 1, float(number))
        turns.done(f"address {number}", 1, float(number))
    assert len(turns) < 2_000


@given(st.integers(1, 6), st.integers(0, 2**32))
@settings(deadline=None, max_examples=20)
def test_workers_that_share_an_address_ask_it_no_more_often_than_one(workers, seed):
    """Each keeps its own turns; all together they stay below the rate of one."""
    rules = IpLimits(delay=0.5, connections=4)
    begins = []
    for worker in range(workers):
        street = Street(rules, 20, 1, seed + worker)
        street.turns.workers = workers
        street.run(0.01, late=0.01)
        begins += [begin for begin, _ in street.at("192.0.2.0")]
    begins.sort()
    for first, last in zip(begins, begins[workers * 20 :], strict=False):
        assert last - first >= (20 - 1) * rules.delay * workers


def test_nonsense_is_refused():
    with pytest.raises(ConfigError, match="address"):
        IpLimits(delay=-1.0)
    with pytest.raises(ConfigError, match="address"):
        IpLimits(connections=0)
    turns = IpLimiter()
    turns.begin("a", 1, 0.0)
    with pytest.raises(ValueError, match="already"):
        turns.begin("a", 1, 10.0)
    with pytest.raises(ValueError, match="not being served"):
        turns.done("a", 2, 0.0)
