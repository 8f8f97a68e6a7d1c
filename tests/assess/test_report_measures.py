"""What reports are made of: what happened when, what was missed, how sharp, how fresh, in what rhythm."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.assess.archive_quality import archive_quality, sharpness_over_time, staying_fresh
from recrawl.assess.changes_over_time import ObservationResult, bins, counts_over_time, observation_results
from recrawl.assess.observations import Observations, certainly_missed, dated_changes, expected_missed
from recrawl.assess.poisson_test import interval_spread, rhythm, rhythm_words
from recrawl.assess.prediction_scores import Calibration
from recrawl.model import GammaBelief, Outcome, Verdict, Visits
from recrawl.time import DAY, HOUR

whole = st.integers(0, 40)
looked = st.lists(st.tuples(st.integers(1, 3), whole, st.integers(0, 2)), min_size=1, max_size=25)


def looks_of(rows) -> Observations:
    page, time, verdict = (list(column) for column in zip(*rows, strict=True))
    return Observations.from_visits(Visits.of(page, np.array(time, float), verdict=verdict))


@given(st.floats(0.0, 2e9), st.floats(0.0, 3e9), st.integers(2, 80))
def test_bins_hold_the_span_and_are_few_and_equal(start, span, most):
    edges = bins(start, start + span, most)
    assert edges[0] <= start < edges[-1] + 1e-6
    assert edges[-1] > start + span - 1e-6
    assert 1 <= len(edges) - 1 <= most + 1
    assert np.allclose(np.diff(edges), edges[1] - edges[0])


@given(looked)
def test_every_look_tells_one_thing_and_falls_into_one_bin(rows):
    observations = looks_of(rows)
    says = observation_results(observations)
    edges = bins(0.0, 40.0)
    counts = counts_over_time(observations.time, says, len(ObservationResult), edges)
    assert counts.sum() == len(observations.time)
    assert counts.sum(axis=1).tolist() == np.bincount(says, minlength=len(ObservationResult)).tolist()
    assert (says == ObservationResult.FIRST).sum() == len(observations)


def test_what_looks_tell():
    visits = Visits.of(
        [1, 1, 1, 1, 1, 2],
        [0.0, 1.0, 2.0, 3.0, 4.0, 0.0],
        outcome=[Outcome.FETCHED, Outcome.NOT_MODIFIED, Outcome.FETCHED, Outcome.GONE, Outcome.GONE, Outcome.GONE],
        verdict=[
            *(Verdict.UNKNOWN, Verdict.UNCHANGED, Verdict.UNKNOWN, Verdict.CHANGED, Verdict.UNCHANGED),
            Verdict.UNKNOWN,
        ],
    )
    says = [ObservationResult(one).name for one in observation_results(Observations.from_visits(visits))]
    assert says == ["FIRST", "UNCHANGED", "UNJUDGED", "CHANGED", "GONE", "GONE"]


@given(looked, st.lists(st.tuples(st.integers(1, 4), whole, whole), max_size=20))
def test_certainly_missed_is_what_counting_by_hand_finds(rows, claims):
    observations = looks_of(rows)
    page, said, dated = (np.array([row[place] for row in claims], float) for place in range(3))
    missed = certainly_missed(observations, page.astype(np.int64), said, dated)
    could_be = dated_changes(observations, page.astype(np.int64), said, dated)
    for row, number in enumerate(observations.page.tolist()):
        times = observations.time[observations.offsets[row] : observations.offsets[row + 1]]
        dates = sorted({d for p, s, d in claims if p == number and d <= s and d > times[0]})
        by_hand = sum(not any(first <= time < following for time in times) for first, following in pairwise(dates))
        assert missed[row] == by_hand
        assert could_be[row] == len(dates)


def test_hidden_changes_are_those_of_a_poisson_page():
    rng = np.random.default_rng(3)
    rate, gap = 0.3, 5.0
    counts = rng.poisson(rate * gap, 200_000)
    observations = looks_of([(1, 0, 0), (1, 5, 2)])
    expected = counts[counts > 0].mean() - 1.0
    assert expected_missed(observations, np.array([rate]))[0] == pytest.approx(expected, rel=0.01)
    assert expected_missed(observations, np.array([np.nan]))[0] == 0.0


@given(looked, st.floats(0.001, 2.0))
def test_sharpness_over_bins_averages_to_that_of_the_whole(rows, rate):
    observations = looks_of(rows)
    quality = archive_quality(
        observations,
        np.full(len(observations), rate),
        np.ones(len(observations)),
        np.zeros(len(observations), np.int64),
    )
    edges = np.linspace(quality.start, quality.end, 6) if quality.end > quality.start else np.array([0.0, 1.0])
    found = sharpness_over_time(quality, edges)
    if quality.end > quality.start:
        assert np.mean(found.distance) == pytest.approx(np.mean(quality.distance), rel=1e-9, abs=1e-9)
        assert np.mean(found.blur) == pytest.approx(np.mean(quality.achieved), rel=1e-9, abs=1e-9)
    else:
        assert np.isnan(found.blur).all()


@given(st.lists(st.tuples(st.floats(0.1, 50.0), st.floats(1.0, 1e6)), min_size=1, max_size=10))
def test_copies_go_stale_and_grow_old(pages):
    a, b = (np.array(column) for column in zip(*pages, strict=True))
    found = staying_fresh(GammaBelief(a, b), np.zeros(len(a)), np.ones(len(a)), np.array([0.0, 10.0, 1e3, 1e5]))
    assert found.fresh[0] == 1.0
    assert found.age[0] == 0.0
    assert (np.diff(found.fresh) <= 1e-12).all()
    assert (np.diff(found.age) >= -1e-9).all()
    assert (found.age <= found.time + 1e-9).all()


def test_of_no_page_nothing_stays_fresh():
    found = staying_fresh(GammaBelief(np.empty(0), np.empty(0)), np.empty(0), np.empty(0), np.array([0.0]))
    assert np.isnan(found.fresh).all()


def test_working_hours_are_found_and_a_flat_week_is_none():
    rng = np.random.default_rng(5)
    hour = np.arange(168)
    busy = (hour < 120) & (hour % 24 >= 8) & (hour % 24 < 18)
    found = rhythm(rng.poisson(np.where(busy, 30.0, 3.0)).astype(float), np.full(168, 10.0))
    assert found.days.certain
    assert found.hours.certain
    days, hours = rhythm_words(found)
    assert "a working day brings" in days
    assert int(hours.partition("The busiest hour is ")[2][:2]) in range(8, 18)
    flat = rhythm(rng.poisson(10.0, 168).astype(float), np.full(168, 10.0))
    assert rhythm_words(flat) == [
        "No day of the week is clearly busier than another.",
        "No hour of the day is clearly busier than another.",
    ]


def test_of_few_changes_no_rhythm_is_told():
    assert "are needed" in rhythm_words(rhythm(np.zeros(168), np.zeros(168)))[0]
    assert "are needed" in rhythm_words(rhythm(np.full(168, 0.1), np.full(168, 1.0)))[0]


def test_of_days_and_hours_that_nobody_watched_nothing_is_told():
    hour = np.arange(168)
    one, few, day = (np.where(which, 10.0, 0.0) for which in (hour == 0, hour < 72, hour % 24 < 8))
    [alone] = rhythm_words(rhythm(8.0 * one, one))
    assert "1 of 7 days of the week and 1 of 24 hours" in alone
    uneven = rhythm(np.where(hour < 24, 9.0, 1.0) * few, few)
    assert not uneven.days.certain
    assert "3 of 7 days of the week: which days are busier is not known" in rhythm_words(uneven)[0]
    assert "8 of 24 hours" in rhythm_words(rhythm(day, day))[1]


def test_a_weekend_without_changes_is_told():
    hour = np.arange(168)
    [days, _] = rhythm_words(rhythm(np.where(hour < 120, 5.0, 0.0), np.full(168, 3.0)))
    assert days.endswith("none comes on a day of the weekend.")


@given(st.lists(st.tuples(st.floats(0.2, 30.0), st.floats(HOUR, 1_000 * DAY)), min_size=1, max_size=30))
def test_every_page_is_in_both_histograms_once(pages):
    a, b = (np.array(column) for column in zip(*pages, strict=True))
    found = interval_spread(GammaBelief(a, b))
    assert found is not None
    assert found.middle.sum() == pytest.approx(1.0)
    assert found.believed.sum() == pytest.approx(1.0)
    assert (np.diff(found.edges) > 0).all()


def test_a_page_that_is_hardly_known_is_spread_further():
    found = interval_spread(GammaBelief(np.full(50, 0.5), np.full(50, DAY)))
    assert found is not None
    assert (found.believed > 0).sum() > 3 * (found.middle > 0).sum()


@given(st.integers(1, 500), st.data())
def test_the_interval_of_a_share_holds_it(count, data):
    hits = data.draw(st.integers(0, count))
    observed = np.array([hits / count])
    low, high = Calibration(observed, observed, np.array([count])).interval()
    assert 0.0 <= low[0] <= observed[0] <= high[0] <= 1.0
