"""Compiled code for operational time says what whole arrays say."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.estimate.operational import cluster_intensity, operational_factors, operational_time
from recrawl.estimate.operational.cluster_intensity import BIN, ClusterIntensity
from recrawl.estimate.operational.operational_factors import ClosedGaps
from recrawl.estimate.operational.operational_time import OperationalTime
from recrawl.model.compiled import can_compile
from recrawl.schedule.learning import page_clocks
from recrawl.schedule.learning.page_clocks import PageClocks
from recrawl.time import DAY

pytestmark = pytest.mark.skipif(not can_compile(), reason="numba is not installed")
MODULES = (operational_time, cluster_intensity, page_clocks)
START = 1.7e9


def both(ask):
    """The same question in compiled code, and with whole arrays."""
    with pytest.MonkeyPatch.context() as patch:
        compiled = ask()
        for module in MODULES:
            patch.setattr(module, "can_compile", lambda: False)
        return compiled, ask()


def some_time(rng, *, calendar, age, pages=30, clusters=4):
    begin = np.floor(START / BIN) * BIN
    host = rng.integers(0, 2, clusters)
    born = np.where(rng.random(pages) < 0.5, np.nan, START - rng.exponential(60 * DAY, pages))
    counts = ClusterIntensity.of(host, begin, begin + 40 * DAY)
    counts.changes[:] = rng.exponential(1.0, counts.changes.shape)
    counts.exposure[:] = rng.exponential(1.0, counts.changes.shape)
    return OperationalTime(
        rng.integers(0, clusters, pages),
        host,
        born,
        calendar=counts.table() if calendar else None,
        age=operational_factors.no_ages_seen().table() if age else None,
    )


def some_observations(rng, pages=30, observations=200):
    """Of all lengths, within and around the calendar, some of them instants after an edge of age or calendar."""
    row = np.sort(rng.integers(0, pages, observations))
    start = START + rng.uniform(-60, 120, observations) * DAY
    start[::7] = np.floor(start[::7] / BIN) * BIN
    end = start + np.exp(rng.normal(0, 3, observations)) * DAY
    return ClosedGaps(row, start, end, rng.random(observations) < 0.3, np.full(observations, np.nan))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.booleans(), st.booleans())
def test_elapsed_time_is_the_same(seed, calendar, age):
    rng = np.random.default_rng(seed)
    time, observations = some_time(rng, calendar=calendar, age=age), some_observations(rng)
    found, expected = both(lambda: time.elapsed(observations.row, observations.start, observations.end))
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_factors_are_the_same(seed, whole):
    rng = np.random.default_rng(seed)
    counts = ClusterIntensity.of(rng.integers(0, 3, 6), START, START + 50 * DAY)
    counts.changes[:] = rng.poisson(0.3, counts.changes.shape)
    counts.exposure[:] = rng.exponential(0.3, counts.changes.shape) if whole else 0.0
    np.testing.assert_allclose(*both(counts.factor), rtol=1e-12)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([("clusters", "age"), ("clusters",), ("age",), ()]))
def test_clocks_learn_the_same_from_the_same_days(seed, factors):
    """Day by day: what is learned from one changes what the next is made of."""

    def learned():
        rng = np.random.default_rng(seed)
        clock = PageClocks(factors, 60 * DAY)
        clock.append(rng.integers(0, 2, 30), np.where(rng.random(30) < 0.5, np.nan, START - 9 * DAY))
        made = []
        for day in range(12):
            until = START + (day + 1) * DAY
            row = np.sort(rng.choice(30, 8, replace=False))
            observations = ClosedGaps(
                row, until - rng.exponential(9 * DAY, 8), np.full(8, until), rng.random(8) < 0.4, np.zeros(8)
            )
            made.append(clock.fold(observations, rng.exponential(0.2, 8) / DAY, until))
        rows = np.arange(30)
        ends = np.full(30, START + 12 * DAY)
        return np.concatenate([*made, clock.elapsed(rows, ends - 30 * DAY, ends), clock.pace(rows, ends)])

    np.testing.assert_allclose(*both(learned), rtol=1e-9)


def test_the_pace_of_a_page_is_the_speed_of_its_time():
    """Also where old pages changed more often: before, their time ran up to 70 times faster than their pace."""
    clock = PageClocks(("age",), 60 * DAY)
    age = np.array([10.0, 200.0, 2000.0]) * DAY
    clock.append(np.zeros(3, np.int64), START - age)
    row = np.repeat(np.arange(3), 200)
    changed = np.concatenate([np.arange(200) % 100 == 0, np.arange(200) % 50 == 0, np.arange(200) % 2 == 0])
    end = np.tile(START + np.arange(200) * DAY / 200 + DAY / 200, 3)
    gaps = ClosedGaps(row, end - DAY / 200, end, changed, np.full(600, np.nan))
    clock.fold(gaps, np.full(600, 10.0 / DAY), START + DAY)
    now = np.full(3, START + DAY)
    pace = clock.pace(np.arange(3), now)
    np.testing.assert_allclose(pace, clock.elapsed(np.arange(3), now, now + 1000.0) / 1000.0)
    assert (np.diff(pace) <= 0).all()


def test_a_look_at_an_edge_of_age_belongs_to_the_step_it_begins():
    rng = np.random.default_rng(1)
    time = some_time(rng, calendar=True, age=True)
    edge = START + time.age.edges[0]
    time = replace(time, born=np.full(30, START))
    start = np.array([edge, np.nextafter(edge, 0.0), START])
    found, expected = both(lambda: time.elapsed(np.zeros(3, np.int64), start, start + DAY))
    np.testing.assert_allclose(found, expected, rtol=1e-13)
