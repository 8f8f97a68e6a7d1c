import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from recrawl.simulate.virtual_web import BurstProcess, PoissonProcess, RhythmicProcess, WholeGapProcess
from recrawl.time import DAY, HOUR, WEEK

START = 1_700_000_000.0
LAWS = [PoissonProcess(), RhythmicProcess.working_hours(), BurstProcess(size=4.0, spacing=HOUR)]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_every_law_keeps_the_mean_rate(law):
    rate = np.array([0.0, 0.1, 1.0, 10.0]) / DAY
    pages, span = 200, 8 * WEEK
    counts = law.times(np.repeat(rate, pages), START, START + span, np.random.default_rng(5)).counts()
    means = counts.reshape(len(rate), pages).mean(axis=1)
    # The widest of the laws has a variance of about 2·size−1 = 7 times the mean.
    tolerance = 4 * np.sqrt(7 * rate * span / pages)
    assert means[0] == 0
    assert np.all(np.abs(means - rate * span) <= tolerance)


@given(st.sampled_from([*LAWS, WholeGapProcess()]), st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_times_ascend_inside_the_span_and_repeat_with_the_seed(law, seed):
    rate = np.array([0.0, 1e-4, 3e-3])
    made = [law.times(rate, START, START + DAY, np.random.default_rng(seed)) for _ in range(2)]
    assert np.array_equal(made[0].times, made[1].times)
    assert np.array_equal(made[0].offsets, made[1].offsets)
    for row in range(len(rate)):
        times = made[0].row(row)
        assert np.all(np.diff(times) >= 0)
        assert np.all((times >= START) & (times <= START + DAY))


def test_poisson_gaps_are_exponential():
    times = PoissonProcess().times(np.array([0.01]), 0.0, 300_000.0, np.random.default_rng(1)).times
    assert stats.kstest(np.diff(times), "expon", args=(0, 100.0)).pvalue > 0.01


def test_poisson_counts_have_the_variance_of_their_mean():
    counts = PoissonProcess().times(np.full(4_000, 1e-3), 0.0, 10_000.0, np.random.default_rng(2)).counts()
    assert counts.var() / counts.mean() == pytest.approx(1.0, abs=0.1)


def test_bursts_cluster():
    counts = (
        BurstProcess(size=4.0, spacing=60.0)
        .times(np.full(2_000, 10 / DAY), 0.0, DAY, np.random.default_rng(3))
        .counts()
    )
    assert counts.mean() == pytest.approx(10, rel=0.05)
    # E[N²]/E[N] of a geometric cluster of mean 4 is 7.
    assert counts.var() / counts.mean() == pytest.approx(7.0, rel=0.15)


def test_bursts_that_began_before_the_span_reach_into_it():
    law = BurstProcess(size=20.0, spacing=HOUR)
    times = law.times(np.full(3_000, 1 / DAY), 0.0, 10 * HOUR, np.random.default_rng(4)).times
    early, late = np.sum(times < HOUR), np.sum(times > 9 * HOUR)
    assert early == pytest.approx(late, rel=0.25)


def test_working_hours_follow_the_week():
    times = RhythmicProcess.working_hours(night=0.1, weekend=0.2).times(
        np.full(50, 24 / DAY), START, START + 8 * WEEK, np.random.default_rng(6)
    )
    hour = ((times.times - 4 * DAY) % WEEK / HOUR).astype(int)
    found = np.bincount(hour, minlength=168) / len(hour)
    weights = np.array(RhythmicProcess.working_hours(night=0.1, weekend=0.2).hourly)
    assert hour.min() >= 0
    assert np.allclose(found, weights / weights.sum(), atol=0.0015)
    assert RhythmicProcess.working_hours().hourly[12] == 1.0  # Monday noon


@given(st.floats(0, 3e9), st.floats(0.05, 1), st.floats(0.05, 1))
def test_operational_time_and_its_inverse_agree(t, night, weekend):
    law = RhythmicProcess.working_hours(night=night, weekend=weekend)
    assert float(law.calendar(law.operational(t))) == pytest.approx(t, abs=1e-4)
    assert float(law.operational(t + WEEK) - law.operational(t)) == pytest.approx(WEEK)


def test_a_rhythm_needs_a_whole_week():
    with pytest.raises(ValueError, match="168"):
        RhythmicProcess((1.0,) * 24)


def test_a_burst_needs_a_change():
    with pytest.raises(ValueError, match="at least one"):
        BurstProcess(size=0.5)


@pytest.mark.parametrize("rate", [0.05, 0.7, 3.0])
def test_whole_gaps_are_whole_and_have_their_stated_mean(rate):
    times = WholeGapProcess().times(np.array([rate]), 0.0, 40_000.0, np.random.default_rng(7)).times
    gaps = np.diff(np.concatenate([[0.0], times]))
    assert np.all(gaps == np.floor(gaps))
    assert gaps.min() >= 1
    stated = (1 - np.exp(-rate)) + np.exp(-rate) / (1 - np.exp(-rate))
    assert gaps.mean() == pytest.approx(stated, rel=0.06)
    assert 40_000 - times[-1] < 50 / min(rate, 1.0)
