"""Is it Poisson? Pages whose law is known, seen by looks or known to the moment."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from recrawl.assess.poisson_test import (
    FEWEST_CHANGES,
    MOST_PAGES,
    QUANTILES,
    ChangePattern,
    Intervals,
    PoissonNull,
    changes_of,
    diagnose,
    fit_lognormal,
    intervals_of,
    moment_rates,
    pattern_of,
    sentences,
)
from recrawl.model import Histories, Verdict, Visits
from recrawl.simulate.virtual_web import BurstProcess, EventTimes, PoissonProcess, RhythmicProcess
from recrawl.time import DAY

SPAN = 300 * DAY


class Clockwork:
    """A change every 1/λ, a tenth of that sooner or later: the law that is least like chance."""

    def times(self, rate, start, end, rng):
        count = np.ceil((end - start) * rate).astype(int) + 1
        rows = np.repeat(np.arange(len(rate)), count)
        place = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        step = place + rng.random(len(rate))[rows] + rng.normal(0, 0.1, len(rows))
        times = start + step / rate[rows]
        inside = (times > start) & (times < end)
        return EventTimes.of(rows[inside], times[inside], len(rate))


def changed_at(law, rng, *, pages=120, every=20 * DAY, spread=0.8) -> EventTimes:
    return law.times(rng.lognormal(np.log(1 / every), spread, pages), 0.0, SPAN, rng)


def looked_at(events: EventTimes, rng, *, observations=60, regular=False) -> Histories:
    """What looks at these pages see: 60 in 300 days, at any time or every five days."""
    pages = len(events.offsets) - 1
    times = np.sort(rng.uniform(0, SPAN, (pages, observations)), axis=1)
    if regular:
        times = np.tile(np.arange(observations) * (SPAN / observations), (pages, 1))
    verdict = np.full((pages, observations), Verdict.UNCHANGED)
    for row in range(pages):
        before = np.searchsorted(events.times[events.offsets[row] : events.offsets[row + 1]], times[row])
        verdict[row, 1:][np.diff(before) > 0] = Verdict.CHANGED
    verdict[:, 0] = Verdict.UNKNOWN
    return Histories.from_visits(
        Visits.of(np.repeat(np.arange(pages), observations), times.ravel(), verdict=verdict.ravel())
    )


def logged(events: EventTimes, *, closed: bool = True) -> Histories:
    """A log of the changes: opened at 0 and, if closed, looked at once more in the end."""
    every = np.arange(len(events.offsets) - 1)
    rows, times = [every, events.row_of_event()], [np.zeros(len(every)), events.times]
    verdicts = [np.full(len(every), Verdict.UNKNOWN), np.full(len(events.times), Verdict.CHANGED)]
    if closed:
        rows, times = [*rows, every], [*times, np.full(len(every), SPAN)]
        verdicts.append(np.full(len(every), Verdict.UNCHANGED))
    return Histories.from_visits(
        Visits.of(np.concatenate(rows), np.concatenate(times), verdict=np.concatenate(verdicts))
    )


LAWS = [
    (PoissonProcess(), {ChangePattern.POISSON}, "like a Poisson process"),
    (BurstProcess(size=4, spacing=2 * DAY), {ChangePattern.BURSTS}, "in bursts"),
    (Clockwork(), {ChangePattern.REGULAR}, "more regularly than by chance"),
]


@pytest.mark.parametrize(("law", "patterns", "words"), LAWS, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("regular", [False, True])
def test_looks_tell_the_law(law, patterns, words, regular):
    rng = np.random.default_rng(5)
    found = diagnose(looked_at(changed_at(law, rng), rng, regular=regular), rng)
    assert pattern_of(found) in patterns
    assert words in sentences(found)[0]
    assert "dated halfway" in " ".join(sentences(found))


@pytest.mark.parametrize(("law", "patterns", "words"), LAWS, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("closed", [False, True])
def test_logs_tell_the_law(law, patterns, words, closed):
    rng = np.random.default_rng(6)
    histories = logged(changed_at(law, rng), closed=closed)
    found = diagnose(histories, rng, exact=np.ones(len(histories), bool))
    assert pattern_of(found) in patterns
    assert words in sentences(found)[0]
    assert found.exact == len(found.pages)
    assert "halfway" not in " ".join(sentences(found))


def test_a_weekly_rhythm_is_near_poisson():
    rng = np.random.default_rng(7)
    histories = logged(changed_at(RhythmicProcess.working_hours(), rng, pages=400))
    found = diagnose(histories, rng, exact=np.ones(len(histories), bool))
    assert pattern_of(found) in {ChangePattern.NEAR_POISSON, ChangePattern.POISSON}
    assert found.distance < 0.05


def test_numbers_say_what_the_law_does():
    rng = np.random.default_rng(8)
    by_law = {
        name: diagnose(looked_at(changed_at(law, rng), rng), rng)
        for name, law in (("chance", PoissonProcess()), ("bursts", BurstProcess(4, 2 * DAY)), ("clock", Clockwork()))
    }
    assert by_law["clock"].dispersion < 0.5 < by_law["chance"].dispersion < 1.25 < by_law["bursts"].dispersion
    assert by_law["bursts"].short > 1.5 * by_law["bursts"].short_expected
    assert by_law["clock"].short < by_law["clock"].short_expected
    ratio = {name: np.median(found.pages.median_interval * found.pages.rate) for name, found in by_law.items()}
    assert ratio["bursts"] < ratio["chance"] < ratio["clock"]


@pytest.mark.slow
@pytest.mark.parametrize("known", [False, True])
def test_p_values_are_uniform_where_it_is_poisson(known):
    """Rates are estimated and looks hide much, and still a p below 0.1 comes in one case of ten."""
    rng = np.random.default_rng(9)
    p = []
    for _ in range(240):
        events = changed_at(PoissonProcess(), rng, pages=12)
        histories = logged(events) if known else looked_at(events, rng, observations=30)
        found = diagnose(histories, rng, exact=np.full(len(histories), known), repeats=79)
        p.append((found.p_distance, found.p_dispersion))
    for column in np.array(p).T:
        counts = np.bincount(np.minimum((column * 8 - 1e-9).astype(int), 7), minlength=8)
        assert stats.chisquare(counts).pvalue > 0.001, counts


def test_per_page_alarms_are_as_rare_as_they_say():
    rng = np.random.default_rng(10)
    found = diagnose(looked_at(changed_at(PoissonProcess(), rng, pages=600), rng), rng)
    for alarms in (found.pages.p_bursts, found.pages.p_regular, found.pages.p_distance):
        assert (alarms <= 0.05).mean() < 0.08
    bursts = diagnose(logged(changed_at(BurstProcess(), rng)), rng, exact=np.ones(120, bool))
    assert (bursts.pages.p_bursts <= 0.05).mean() > 0.5


def test_too_little_is_said_to_be_too_little():
    rng = np.random.default_rng(11)
    nothing = diagnose(Histories.from_visits(Visits.empty()), rng)
    assert pattern_of(nothing) is ChangePattern.UNKNOWN
    assert np.isnan(nothing.dispersion)
    always = Histories.from_visits(Visits.of([1] * 9, np.arange(9) * DAY, verdict=[0] + [2] * 8))
    found = diagnose(always, rng)
    assert (found.saturated, found.eligible, found.too_few) == (1, 0, 0)
    assert "1 page had changed at every observation" in sentences(found)[1]


def test_many_pages_are_sampled_and_long_histories_cut():
    rng = np.random.default_rng(12)
    found = diagnose(looked_at(changed_at(PoissonProcess(), rng, pages=1_400), rng, observations=20), rng, repeats=9)
    assert len(found.pages) == MOST_PAGES < found.eligible
    assert found.eligible + found.too_few + found.saturated == 1_400
    assert int(found.pages.changes.min()) >= FEWEST_CHANGES
    assert found.p_distance >= 1 / 10


def test_quantiles_of_a_dense_log_are_those_of_the_exponential():
    rng = np.random.default_rng(13)
    histories = logged(changed_at(PoissonProcess(), rng, every=5 * DAY, spread=0.1))
    found = diagnose(histories, rng, exact=np.ones(len(histories), bool))
    np.testing.assert_allclose(found.quantiles[0], -np.log1p(-np.array(QUANTILES)), rtol=0.12)
    np.testing.assert_allclose(found.quantiles[1], found.quantiles[2], rtol=0.1)
    assert found.distance_exponential < 0.03


# -- the null ----------------------------------------------------------------------------------------


def test_simulated_pages_have_the_looks_and_the_number_of_changes_of_real_ones():
    rng = np.random.default_rng(14)
    real = looked_at(changed_at(PoissonProcess(), rng), rng)
    real = real.take((real.changes() > 0) & (real.changes() < real.counts()))
    null = PoissonNull.of(real, np.zeros(len(real), bool))
    np.testing.assert_allclose(np.bincount(real.row_of_gap(), null.chance), real.changes(), rtol=1e-8)
    middles = set((real.observation_times() - real.gaps / 2).tolist())
    for _ in range(3):
        drawn = null.draw(rng)
        np.testing.assert_array_equal(np.bincount(drawn.row, minlength=len(real)), real.changes())
        assert set(drawn.time.tolist()) <= middles


def test_long_gaps_change_more_often_in_the_null():
    gaps = np.array([1.0, 1.0, 1.0, 9.0])
    real = Histories.from_visits(Visits.of([1] * 5, np.concatenate([[0], np.cumsum(gaps)]), verdict=[0, 1, 2, 1, 1]))
    null = PoissonNull.of(real, np.zeros(1, bool))
    rng = np.random.default_rng(15)
    at = np.array([null.draw(rng).time[0] for _ in range(2_000)])
    weight = np.expm1(null.rate * gaps)
    assert abs((at > 3).mean() - weight[3] / weight.sum()) < 0.03


@given(
    st.lists(
        st.tuples(st.floats(1e-3, 1e4), st.booleans()).filter(lambda observation: observation[0] > 0),
        min_size=2,
        max_size=12,
    ).filter(lambda observations: len({changed for _, changed in observations}) == 2)
)
def test_the_moment_rate_expects_what_was_seen(observations):
    gaps, changed = np.array([gap for gap, _ in observations]), np.array([flag for _, flag in observations])
    times = np.concatenate([[0.0], np.cumsum(gaps)])
    histories = Histories.from_visits(
        Visits.of(np.ones(len(times)), times, verdict=[0, *np.where(changed, 2, 1).tolist()])
    )
    rate = moment_rates(histories)
    assert np.isclose(-np.expm1(-rate * histories.gaps).sum(), changed.sum(), rtol=1e-6)


# -- intervals and the spread of rates ---------------------------------------------------------------


def test_intervals_run_from_middle_to_middle_or_from_change_to_change():
    visits = Visits.of([1] * 5 + [2] * 3, [0, 10, 20, 30, 50, 0, 4, 8], verdict=[0, 2, 1, 2, 2, 0, 1, 2])
    histories = Histories.from_visits(visits)
    assert intervals_of(histories).length.tolist() == [20.0, 15.0]
    known = intervals_of(histories, np.array([True, True]))
    assert (known.row.tolist(), known.length.tolist()) == ([0, 0, 0, 1], [10.0, 20.0, 20.0, 8.0])
    assert len(changes_of(histories)) == 4


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(0, 1e6)), max_size=30))
def test_medians_are_those_of_numpy(pairs):
    rows, values = np.array([row for row, _ in pairs], np.int64), np.array([value for _, value in pairs], float)
    found = Intervals(rows, values).medians(5)
    for row in range(5):
        own = values[rows == row]
        assert np.isnan(found[row]) if not len(own) else np.isclose(found[row], np.median(own))


def test_a_log_normal_is_recognised_and_others_are_not():
    rng = np.random.default_rng(16)
    good = fit_lognormal(rng.lognormal(np.log(1 / (74 * DAY)), 1.1, 3_000), rng)
    assert abs(good.median / (74 * DAY) - 1) < 0.1
    assert abs(good.sigma - 1.1) < 0.05
    assert good.p > 0.05
    two_kinds = np.concatenate([rng.lognormal(-16, 0.2, 500), rng.lognormal(-12, 0.2, 500)])
    assert fit_lognormal(two_kinds, rng).p < 0.01
    x = np.exp(np.linspace(good.mu - 8 * good.sigma, good.mu + 8 * good.sigma, 2_001))
    assert np.isclose(np.trapezoid(good.density(x), np.log(x)), 1.0)


def test_p_of_the_log_normal_is_uniform_though_its_parameters_are_estimated():
    rng = np.random.default_rng(17)
    p = [fit_lognormal(rng.lognormal(0, 1, 40), rng, repeats=79).p for _ in range(400)]
    counts = np.bincount(np.minimum((np.array(p) * 8 - 1e-9).astype(int), 7), minlength=8)
    assert stats.chisquare(counts).pvalue > 0.001, counts


def test_rates_that_are_none_are_left_out():
    rng = np.random.default_rng(18)
    found = fit_lognormal(np.array([0.0, np.nan, np.inf, 1.0]), rng)
    assert (found.pages, found.left_out) == (1, 3)
    assert np.isnan(found.mu)
