"""Operational time is exact: against numerical integration, to the last bit where it should be, at all scales."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.estimate.operational.operational_time import (
    CalendarTable,
    OperationalTime,
    StepTable,
    WeekTable,
    detected_before,
)
from recrawl.model import Histories, Visits
from recrawl.time import DAY, HOUR, WEEK

BEGIN = 18_000 * DAY
PAGES = 6


def clocks(rng: np.random.Generator, *, parts: str = "camb") -> OperationalTime:
    """Random factors: c calendar, a age, m week, b bursts."""
    host = np.array([0, 1, 0])
    week = WeekTable(_mean_one(rng.uniform(0.1, 5.0, (2, 168)))) if "m" in parts else None
    factor = rng.uniform(0.05, 20.0, (3, 7))
    return OperationalTime(
        cluster=np.array([0, 1, 2, 0, 1, 2]),
        host=host,
        born=np.array([BEGIN - 5 * DAY, BEGIN, BEGIN + 11 * DAY, np.nan, -np.inf, BEGIN + 3.3 * DAY]),
        calendar=CalendarTable.of(BEGIN, 3 * DAY, factor, host, week) if "c" in parts else None,
        age=StepTable(np.array([2.0, 5.0, 30.0]) * DAY, rng.uniform(0.1, 30.0, 5)) if "a" in parts else None,
        week=week,
        bursts=StepTable(np.array([0.5, 4.0]) * DAY, rng.uniform(0.1, 30.0, 4)) if "b" in parts else None,
    )


def _mean_one(values: np.ndarray) -> np.ndarray:
    return values / values.mean(axis=1, keepdims=True)


def integral(time: OperationalTime, row: int, start: float, end: float, change: float) -> float:
    """∫ speed by the midpoint rule between all moments at which any factor may step."""
    edges = [np.arange(np.floor(start / HOUR), np.ceil(end / HOUR) + 1) * HOUR]
    for table, origin in ((time.age, time.born[row]), (time.bursts, change)):
        if table is not None and np.isfinite(origin):
            edges.append(origin + table.edges)
    cuts = np.unique(np.clip(np.concatenate([*edges, [start, end]]), start, end))
    middle = (cuts[1:] + cuts[:-1]) / 2
    rows = np.full(len(middle), row)
    return float((time.speed(rows, middle, np.full(len(middle), change)) * np.diff(cuts)).sum())


gaps = st.tuples(
    st.integers(0, PAGES - 1),
    st.floats(-20, 40).map(lambda d: BEGIN + d * DAY),
    st.one_of(st.floats(1e-6, 1.0), st.floats(1.0, 40 * DAY)),
    st.one_of(st.just(np.nan), st.floats(0.0, 10 * DAY)),
)


@given(gaps, st.integers(0, 2**32 - 1), st.sampled_from(["camb", "c", "a", "m", "b", "cm", "ab", "cab"]))
def test_elapsed_is_the_integral_of_the_speed(gap, seed, parts):
    row, start, length, since = gap
    time = clocks(np.random.default_rng(seed), parts=parts)
    end = start + length
    change = start - since
    got = time.elapsed(np.array([row]), np.array([start]), np.array([end]), np.array([change]))[0]
    # Times near 1.5e9 s are apart by 2.4e-7 s, so edges are known no better.
    assert got == pytest.approx(integral(time, row, start, end, change), rel=1e-9, abs=1e-4)


@given(gaps, st.floats(0.0, 1.0), st.integers(0, 2**32 - 1))
def test_time_adds_up_and_never_runs_backwards(gap, share, seed):
    row, start, length, since = gap
    time = clocks(np.random.default_rng(seed))
    middle, end = start + share * length, start + length
    change = np.array([start - since])

    def passed(a: float, b: float) -> float:
        return float(time.elapsed(np.array([row]), np.array([a]), np.array([b]), change)[0])

    assert passed(start, middle) >= 0.0
    assert passed(start, end) >= passed(start, middle) - 1e-4
    assert passed(start, middle) + passed(middle, end) == pytest.approx(passed(start, end), rel=1e-9, abs=1e-4)


@given(st.lists(gaps, min_size=1, max_size=20))
def test_without_factors_it_is_wall_time_to_the_last_bit(gap_list):
    row, start, length, _ = (np.array(column) for column in zip(*gap_list, strict=True))
    end = start + length
    assert np.array_equal(OperationalTime.wall(PAGES).elapsed(row, start, end), end - start)


@given(st.lists(gaps, min_size=1, max_size=20))
def test_neutral_factors_are_wall_time(gap_list):
    row, start, length, _ = (np.array(column) for column in zip(*gap_list, strict=True))
    end = start + length
    host = np.array([0, 1, 0])
    week = WeekTable(np.ones((2, 168)))
    time = clocks(np.random.default_rng(0))
    ones = StepTable(np.array([2.0, 9.0]) * DAY, np.ones(4))
    neutral = OperationalTime(
        time.cluster, host, time.born, CalendarTable.of(BEGIN, 3 * DAY, np.ones((3, 7)), host, week), ones, week, ones
    )
    passed = neutral.elapsed(row, start, end, start - DAY)
    # One edge may be rounded by 2.4e-7 s, the distance of float64 times near 1.5e9 s.
    np.testing.assert_allclose(passed, end - start, rtol=1e-12, atol=1e-6)


def test_microseconds_keep_their_digits_and_decades_their_sum():
    time = clocks(np.random.default_rng(3), parts="cm")
    start = np.array([BEGIN + 1.5 * DAY])
    micro = start + 2.0**-20
    speed = time.speed(np.array([0]), start)
    np.testing.assert_allclose(time.elapsed(np.array([0]), start, micro), speed * 2.0**-20, rtol=1e-12)
    far = start + 60 * 365.25 * DAY
    long = time.elapsed(np.array([0]), start, far)[0]
    assert long == pytest.approx(integral(time, 0, float(start[0]), float(far[0]), np.nan), rel=1e-9)


def test_outside_the_calendar_time_has_its_usual_pace():
    time = clocks(np.random.default_rng(4), parts="c")
    row = np.array([0, 1])
    before = time.elapsed(row, np.array([BEGIN - 9 * DAY] * 2), np.array([BEGIN - 2 * DAY] * 2))
    after = time.elapsed(row, np.array([BEGIN + 40 * DAY] * 2), np.array([BEGIN + 45 * DAY] * 2))
    assert before.tolist() == [7 * DAY] * 2
    assert after.tolist() == [5 * DAY] * 2


def test_unknown_age_is_a_step_of_its_own():
    time = clocks(np.random.default_rng(5), parts="a")
    at = np.array([BEGIN, BEGIN])
    assert time.speed(np.array([3, 4]), at).tolist() == [time.age.factor[-1]] * 2


def test_a_week_takes_a_week_whatever_its_rhythm():
    time = clocks(np.random.default_rng(6), parts="m")
    start = BEGIN + np.linspace(0, WEEK, 37)
    row = np.zeros(37, np.int64)
    np.testing.assert_allclose(time.elapsed(row, start, start + WEEK), WEEK, rtol=1e-12)


def visits_of(rng: np.random.Generator, pages: int, observations: int) -> Visits:
    page = np.repeat(np.arange(pages), observations)
    time = BEGIN + np.cumsum(rng.exponential(DAY, (pages, observations)), axis=1).ravel()
    return Visits.of(page, time, verdict=rng.integers(1, 3, pages * observations))


def test_stretched_histories_have_the_elapsed_gaps_and_times_that_fit_them():
    rng = np.random.default_rng(7)
    time = clocks(rng)
    histories = Histories.from_visits(visits_of(rng, PAGES, 9))
    told = time.stretch(histories)
    end = histories.observation_times()
    before = detected_before(histories, end)
    expected = time.elapsed(histories.row_of_gap(), end - histories.gaps, end, before)
    np.testing.assert_allclose(told.gaps, expected, rtol=1e-12)
    assert np.array_equal(told.changed, histories.changed)
    np.testing.assert_allclose(told.first_visit + told.observed(), told.last_visit, rtol=1e-12)
    last = np.array(
        [
            told.observation_times()[a:b][told.changed[a:b]].max()
            for a, b in zip(told.offsets, told.offsets[1:], strict=False)
        ]
    )
    np.testing.assert_allclose(told.last_change, last, rtol=1e-12)


def test_histories_stay_as_they_are_in_wall_time():
    histories = Histories.from_visits(visits_of(np.random.default_rng(8), 4, 5))
    assert OperationalTime.wall(4).stretch(histories) is histories


def test_stretching_the_wrong_number_of_pages_is_refused():
    histories = Histories.from_visits(visits_of(np.random.default_rng(8), 4, 5))
    with pytest.raises(ValueError, match="3 rows"):
        OperationalTime.wall(3).stretch(histories)


@given(st.integers(0, 2**32 - 1))
def test_the_change_before_a_gap_is_the_last_one_seen_when_it_began(seed):
    rng = np.random.default_rng(seed)
    histories = Histories.from_visits(visits_of(rng, 4, 6)).align(np.arange(6))
    end = histories.observation_times()
    found = detected_before(histories, end)
    for row in range(len(histories)):
        a, b = histories.offsets[row : row + 2]
        last = np.nan
        for k in range(a, b):
            assert found[k] == pytest.approx(last, nan_ok=True)
            if histories.changed[k]:
                last = end[k]


def test_no_pages_and_no_gaps():
    nobody = OperationalTime.wall(0)
    assert len(nobody.stretch(Histories.concatenate([]))) == 0
    time = clocks(np.random.default_rng(9))
    empty = np.empty(0)
    assert len(time.elapsed(np.empty(0, np.int64), empty, empty, empty)) == 0
    nothing = Histories.concatenate([]).align(np.arange(PAGES))
    assert np.isnan(time.stretch(nothing).last_visit).all()


def test_taking_pages_takes_their_clocks():
    time = clocks(np.random.default_rng(10))
    start, end = np.full(2, BEGIN), np.full(2, BEGIN + 9 * DAY)
    some = time.take(np.array([4, 2]))
    assert np.array_equal(some.elapsed(np.array([0, 1]), start, end), time.elapsed(np.array([4, 2]), start, end))
