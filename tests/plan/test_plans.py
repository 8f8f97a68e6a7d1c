"""Crawl time as paper 001 estimates it, and what hosts and workers can bear."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from recrawl.errors import ConfigError
from recrawl.plan.budget_outcome import HostLimits, capacity
from recrawl.plan.crawl_time import Domains, estimate


def domains(*rows):
    name, docs, seconds, delay = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Domains(name, np.array(docs, dtype=np.int64), np.array(seconds, dtype=float), np.array(delay, dtype=float))


def test_golden_estimate():
    found = estimate(domains(("d0", 25, 2.32, 1.12), ("d1", 83, 1.53, 0.76)), 3)
    assert found.seconds == pytest.approx(126.99)
    assert (found.concurrency, found.cap, found.bins) == (2, 1, 2)


def test_one_domain_uses_as_many_threads_as_its_delay_lets_work():
    found = estimate(domains(("a", 6, 3.5, 1.0)), 10)
    assert (found.seconds, found.concurrency) == (6 * 3.5 / 3 + 2.0, 3)


def test_never_more_threads_than_documents():
    assert estimate(domains(("a", 1, 9.0, 1.0)), 10).seconds == 9.0
    assert estimate(domains(("a", 4, 9.0, 0.0)), 10).seconds == 9.0


def test_short_domains_share_a_bin():
    found = estimate(domains(("long", 100, 1.0, 1.0), ("b", 40, 1.0, 1.0), ("c", 60, 1.0, 1.0)), 5)
    assert (found.seconds, found.bins, found.concurrency) == (100.0, 2, 2)


def test_too_few_threads_lay_the_domains_out_one_after_another():
    found = estimate(domains(*((str(k), 10, 1.0, 1.0) for k in range(5))), 2)
    assert (found.seconds, found.concurrency, found.bins) == (30.0, 2, 2)


def test_a_quick_domain_still_keeps_its_delay_if_asked():
    quick = domains(("a", 11, 0.1, 5.0))
    assert estimate(quick, 1).seconds == pytest.approx(1.1)
    assert estimate(quick, 1, keep_delay=True).seconds == pytest.approx(50.1)


def test_nothing_to_fetch_and_nobody_to_fetch_it():
    assert estimate(domains(), 3).seconds == 0.0
    assert estimate(domains(("a", 0, 1.0, 1.0)), 3).seconds == 0.0
    with pytest.raises(ConfigError, match="a concurrency of 0"):
        estimate(domains(("a", 1, 1.0, 1.0)), 0)


row = st.tuples(st.text("abc", max_size=3), st.integers(0, 60), st.floats(0.1, 9.0), st.floats(0.05, 5.0))


@given(st.lists(row, min_size=1, max_size=12), st.integers(1, 12))
@settings(deadline=None)
def test_the_threads_are_kept_and_the_order_of_domains_does_not_matter(rows, threads):
    found = estimate(domains(*rows), threads)
    assert found.concurrency <= threads
    again = estimate(domains(*rows[::-1]), threads)
    assert again.seconds == pytest.approx(found.seconds)
    assert (again.concurrency, again.cap, again.bins) == (found.concurrency, found.cap, found.bins)


def some_hosts(n=6, seed=0):
    rng = np.random.default_rng(seed)
    return HostLimits(rng.integers(0, 50, n), rng.random(n) * 10, rng.random(n) + 0.05, rng.random(n) * 0.3)


@given(st.integers(0, 10**6), st.integers(1, 5))
@settings(deadline=None, max_examples=50)
def test_the_largest_budget_is_that_of_a_linear_program(seed, workers):
    hosts = some_hosts(seed=seed)
    found = capacity(hosts, workers)
    best = optimize.linprog(
        -np.ones(len(hosts)),
        A_ub=[hosts.duration],
        b_ub=[workers],
        bounds=list(zip(np.zeros(6), found.limit, strict=True)),
    )
    assert found.largest_budget == pytest.approx(-best.fun, rel=1e-6, abs=1e-9)


def test_hosts_that_cannot_keep_up_are_named():
    hosts = HostLimits(np.array([100, 10, 0]), np.array([9.0, 9.0, 9.0]), np.ones(3), np.array([0.2, 0.05, 0.0]))
    found = capacity(hosts, workers=4)
    assert found.too_slow.tolist() == [True, False, False]
    assert found.limit.tolist() == [0.1, 0.1, 0.0]
    assert found.served == pytest.approx(0.15)
    assert found.workers_needed == pytest.approx(0.15)
    assert found.round_seconds == 99 * 10 + 1


def test_few_workers_make_the_round_longer():
    hosts = HostLimits(np.full(20, 10), np.zeros(20), np.ones(20), np.zeros(20))
    assert capacity(hosts, workers=2).round_seconds == 100.0
    assert capacity(hosts, workers=2).largest_budget == pytest.approx(2.0)
    assert capacity(hosts, workers=1_000).round_seconds == 10.0


def test_no_hosts_and_no_workers():
    nobody = HostLimits(np.empty(0, np.int64), np.empty(0), np.empty(0), np.empty(0))
    assert capacity(nobody, 3).round_seconds == 0.0
    assert capacity(nobody, 3).largest_budget == 0.0
    with pytest.raises(ConfigError, match="0 workers"):
        capacity(nobody, 0)
