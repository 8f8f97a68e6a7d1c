"""Patience after failures, and pauses between requests."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import ConfigError
from recrawl.model import Outcome
from recrawl.model.visits import NO_CONNECTION, NO_NAME, NO_TRUST
from recrawl.schedule.politeness.host_politeness import Politeness, PolitenessRules
from recrawl.schedule.politeness.retry import FORBIDDEN, TRANSIENT, Backoff, Retry
from recrawl.time import DAY, HOUR, MINUTE


@given(st.integers(1, 10**9), st.floats(0.1, 1e4), st.floats(1.0, 10.0), st.floats(1e4, 1e7))
def test_backoff_never_shrinks_and_stays_within_its_bounds(failures, first, factor, longest):
    wait = Backoff(first, factor, longest).wait(np.array([failures, failures + 1]))
    assert first <= wait[0] <= wait[1] <= longest


def test_retry_depends_on_how_it_failed():
    outcome = np.array([Outcome.FETCHED, Outcome.GONE, Outcome.REFUSED, Outcome.SERVER_ERROR, Outcome.UNREACHABLE])
    when = Retry().at(np.array([3, 0, 1, 1, 3]), np.full(5, 1_000.0), outcome)
    assert when.tolist() == [1_000.0, 1_000.0, 1_000.0 + DAY, 1_000.0 + 15 * MINUTE, 1_000.0 + 60 * MINUTE]


def test_retry_without_an_outcome_takes_it_for_passing():
    counts = np.array([0, 1, 50])
    np.testing.assert_array_equal(Retry().at(counts, np.zeros(3)), TRANSIENT.wait(counts))
    assert FORBIDDEN.wait(np.array([50]))[0] == 30 * DAY


def test_every_failure_has_its_patience():
    failures = [outcome for outcome in Outcome if outcome > Outcome.GONE]
    waits = Retry().at(np.ones(len(failures), np.int64), np.zeros(len(failures)), np.array(failures))
    assert (waits > 0).all()


def test_a_host_is_free_until_asked_and_busy_until_answered():
    hosts = Politeness(PolitenessRules(factor=4.0, shortest=1.0, longest=8.0))
    assert hosts.free_at(1) == -math.inf
    hosts.begin(1, 100.0)
    assert hosts.free_at(1) == math.inf
    assert hosts.free_at(2) == -math.inf
    hosts.done(1, 101.5, 1.5)
    assert hosts.free_at(1) == 107.5
    with pytest.raises(ValueError, match="may not be asked"):
        hosts.begin(1, 107.0)
    hosts.begin(1, 107.5)
    hosts.done(1, 150.0, 42.5)
    assert hosts.free_at(1) == 158.0


def test_crawl_delay_replaces_the_rule_up_to_the_cap():
    hosts = Politeness(PolitenessRules(factor=4.0, shortest=1.0, longest=8.0, crawl_delay_cap=60.0))
    for delay, pause in ((20.0, 20.0), (1e9, 60.0), (0.0, 1.0), (None, 8.0)):
        hosts.set_crawl_delay(3, delay)
        start = hosts.free_at(3) if hosts.free_at(3) > 0 else 0.0
        hosts.begin(3, start)
        hosts.done(3, start, 100.0)
        assert hosts.free_at(3) == start + pause


def test_retry_after_is_kept_and_never_shortened():
    hosts = Politeness()
    hosts.block_until(1, 500.0)
    hosts.block_until(1, 400.0)
    assert hosts.free_at(1) == 500.0
    hosts.begin(1, 500.0)
    hosts.block_until(1, 900.0)
    assert hosts.free_at(1) == math.inf
    hosts.done(1, 501.0, 1.0)
    assert hosts.free_at(1) == 900.0


def test_what_does_not_heal_soon_is_not_asked_for_soon():
    status = np.array([NO_CONNECTION, NO_TRUST, NO_NAME, 200, 503, NO_TRUST])
    outcome = np.array([Outcome.UNREACHABLE] * 4 + [Outcome.SERVER_ERROR, Outcome.FETCHED])
    waits = Retry().at(np.ones(6, np.int64), np.zeros(6), outcome, status)
    assert waits.tolist() == [15 * MINUTE, 6 * HOUR, 6 * HOUR, HOUR, 15 * MINUTE, 0.0]


def test_a_dead_host_is_asked_a_few_times_a_day_however_many_pages_it_has():
    hosts = Politeness(PolitenessRules(shortest=3.0))
    asked, now = [], 0.0
    for _ in range(1_000):
        hosts.begin(1, now)
        hosts.done(1, now, 0.0)
        hosts.failed(1, now)
        asked.append(now)
        now = hosts.free_at(1)
    assert sum(when < DAY for when in asked) <= 15
    assert sum(DAY <= when < 2 * DAY for when in asked) == 6
    hosts.begin(1, now)
    hosts.done(1, now, 0.0)
    hosts.answered(1)
    assert hosts.free_at(1) == now + 3.0
    hosts.begin(1, now + 3.0)
    hosts.done(1, now + 3.0, 0.0)
    hosts.failed(1, now + 3.0)
    assert hosts.free_at(1) == now + 3.0 + MINUTE, "one answer is enough to begin anew"


def test_a_host_that_was_not_asked_after_all_makes_no_pause():
    hosts = Politeness(PolitenessRules(shortest=3.0))
    hosts.begin(1, 10.0)
    hosts.undone(1)
    assert hosts.free_at(1) == -math.inf
    with pytest.raises(ValueError, match="no request"):
        hosts.undone(1)


def test_nonsense_is_refused():
    with pytest.raises(ConfigError, match="politeness"):
        PolitenessRules(shortest=5.0, longest=1.0)
    with pytest.raises(ValueError, match="no request"):
        Politeness().done(1, 0.0, 0.0)
