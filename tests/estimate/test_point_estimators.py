"""What all point estimators have in common, behind the seam and before it; and what each promises alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.estimate import mle
from recrawl.estimate.estimator import RateEvidence, estimate
from recrawl.estimate.estimators import POINT_ESTIMATORS, at_site_level
from recrawl.estimate.mle import interpolate, update_model
from recrawl.estimate.point_estimators import (
    OnlineRates,
    bias_reduced_rates,
    fit_online,
    fold_online,
    fold_online_by_numpy,
    lln_rates,
    moment_rates,
    naive_rates,
    update_online,
)
from recrawl.estimate.point_evidence import pooled_rate, sound
from recrawl.estimate.posterior.gamma_posterior import UNKNOWN_RATE
from recrawl.model import ChangeKind, Histories, Visits
from recrawl.model.arrays import offsets_of

FORMULAS = [naive_rates, bias_reduced_rates, mle.rates, moment_rates, lln_rates]
MONOTONE = [naive_rates, bias_reduced_rates, moment_rates, lln_rates]
NAMES = [
    "naive",
    "naive-interpolated",
    "bias-reduced",
    "bias-reduced-interpolated",
    "mle",
    "mle-interpolated",
    "moment",
    "lln",
    "natural-gradient",
]


def ragged(rows):
    """Histories from [(gap, changed), …] of each page; page ids are 100, 101, …"""
    gaps = np.array([gap for row in rows for gap, _ in row], dtype=float)
    flags = np.array([flag for row in rows for _, flag in row], dtype=bool)
    index = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    offsets = offsets_of(index, len(rows))
    first = np.where(np.diff(offsets) > 0, 0.0, np.nan)
    last = np.array([sum(gap for gap, _ in row) if row else np.nan for row in rows])
    return Histories(np.arange(len(rows)) + 100, offsets, gaps, flags, first, last, np.full(len(rows), np.nan))


gap = st.floats(1e-6, 1e9)
row = st.lists(st.tuples(gap, st.booleans()), max_size=15)
pages = st.lists(row, max_size=6)


def test_every_estimator_has_its_name():
    assert [estimator.name for estimator in POINT_ESTIMATORS] == NAMES


@pytest.mark.parametrize("estimator", POINT_ESTIMATORS, ids=NAMES)
@given(rows=pages, elapsed=st.floats(0.0, 1e9))
@settings(deadline=None, max_examples=30)
def test_a_belief_is_always_a_number(estimator, rows, elapsed):
    found = estimate(estimator, RateEvidence(ragged(rows), kind=ChangeKind.TEXT))
    assert found.method == estimator.name
    assert found.kind == ChangeKind.TEXT
    rates = found.belief.mean()
    assert len(rates) == len(rows)
    assert (np.isfinite(rates) & (rates >= 0)).all()
    p = found.belief.p_change(np.full(len(rows), elapsed))
    assert ((p >= 0) & (p <= 1)).all()


@pytest.mark.parametrize("estimator", POINT_ESTIMATORS, ids=NAMES)
def test_a_page_nobody_looked_at_gets_the_pooled_rate(estimator):
    seen = [(2.0, False), (2.0, True), (3.0, False)]
    rates = estimator(RateEvidence(ragged([[], seen]))).mean()
    used = interpolate(ragged([seen])) if "interpolated" in estimator.name else ragged([seen])
    assert rates[0] == pytest.approx(pooled_rate(used), rel=1e-12)
    nobody = estimator(RateEvidence(ragged([[], []]))).mean()
    np.testing.assert_allclose(nobody, UNKNOWN_RATE)
    assert len(estimator(RateEvidence(ragged([])))) == 0


@pytest.mark.parametrize("formula", FORMULAS)
@given(rows=pages, factor=st.floats(1e-3, 1e3))
@settings(deadline=None, max_examples=40)
def test_scale_order_and_company_do_not_matter(formula, rows, factor):
    together = formula(ragged(rows))
    np.testing.assert_allclose([formula(ragged([one]))[0] for one in rows], together, rtol=1e-10)
    np.testing.assert_allclose(formula(ragged([one[::-1] for one in rows])), together, rtol=1e-10)
    scaled = formula(ragged([[(g * factor, flag) for g, flag in one] for one in rows]))
    np.testing.assert_allclose(scaled * factor, together, rtol=1e-8)


@pytest.mark.parametrize("formula", MONOTONE)
@given(one=st.lists(st.tuples(gap, st.booleans()), min_size=1, max_size=15), which=st.integers(0, 14))
@settings(deadline=None, max_examples=60)
def test_one_more_change_never_lowers_a_rate(formula, one, which):
    which %= len(one)
    more = [(g, flag or k == which) for k, (g, flag) in enumerate(one)]
    before, after = formula(ragged([one, more]))
    assert after >= before * (1 - 1e-12)


@given(one=st.lists(st.tuples(gap, st.booleans()), min_size=2, max_size=15), which=st.integers(0, 14))
@settings(deadline=None)
def test_one_more_change_never_lowers_the_likeliest_rate_while_a_quiet_gap_is_left(one, which):
    which %= len(one)
    more = [(g, flag or k == which) for k, (g, flag) in enumerate(one)]
    if not all(flag for _, flag in more):
        before, after = mle.rates(ragged([one, more]))
        assert after >= before * (1 - 1e-12)


@pytest.mark.parametrize("formula", [*FORMULAS, interpolate, lambda h: fit_online(h, np.ones(len(h)))])
@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf, -np.inf])
def test_a_gap_that_is_none_is_refused_with_its_page(formula, bad):
    with pytest.raises(ValueError, match="page 101 has a gap of"):
        formula(ragged([[(1.0, True)], [(2.0, False), (bad, True)], []]))


@pytest.mark.parametrize("formula", FORMULAS)
def test_gaps_of_no_length_are_dropped(formula):
    with_zero = ragged([[(0.0, True), (2.0, True), (0.0, False), (5.0, False)], [(0.0, True)]])
    without = ragged([[(2.0, True), (5.0, False)], []])
    np.testing.assert_array_equal(formula(with_zero), formula(without))
    assert sound(without) is without


@pytest.mark.parametrize("estimator", POINT_ESTIMATORS, ids=NAMES)
def test_a_million_looks_at_one_page_and_doubled_visits(estimator):
    rng = np.random.default_rng(0)
    gaps = rng.exponential(10.0, 1_000_000)
    changed = rng.random(len(gaps)) < -np.expm1(-0.1 * gaps)
    times = np.concatenate([[0.0], np.cumsum(gaps)])
    visits = Visits.of(np.zeros(len(times)), times, verdict=np.concatenate([[0], np.where(changed, 2, 1)]))
    doubled = Visits.concatenate([visits, visits.take(slice(0, None, 2))])
    rate = estimator(RateEvidence(Histories.from_visits(doubled))).mean()
    assert rate[0] == estimator(RateEvidence(Histories.from_visits(visits))).mean()[0]
    if estimator.name in ("mle", "moment", "lln", "natural-gradient"):  # the others are biased at such gaps
        assert rate[0] == pytest.approx(0.1, rel=0.01)


def test_worked_numbers():
    half = ragged([[(5.0, True), (5.0, False)]])
    assert moment_rates(half)[0] == pytest.approx(np.log(2) / 5, rel=1e-14)
    assert moment_rates(ragged([[(5.0, False)]]))[0] == pytest.approx(-np.log(0.75) / 5, rel=1e-14)
    assert moment_rates(ragged([[(5.0, True)]]))[0] == pytest.approx(-np.log(0.25) / 5, rel=1e-14)
    assert lln_rates(half)[0] == pytest.approx(0.2 * 1 / 2)
    assert naive_rates(half)[0] == 0.1


@given(st.lists(st.tuples(gap, st.booleans()), min_size=1, max_size=15))
@settings(deadline=None)
def test_the_moment_estimator_expects_the_changes_it_saw(one):
    rate = moment_rates(ragged([one]))[0]
    expected = sum(-np.expm1(-rate * g) for g, _ in one)
    seen = np.clip(sum(flag for _, flag in one), 0.25, len(one) - 0.25)
    assert expected == pytest.approx(seen, rel=1e-9)


# -- interpolated ------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.floats(0.01, 1e6), st.booleans()), min_size=1, max_size=15))
def test_interpolation_is_that_of_the_times(one):
    times = np.concatenate([[0.0], np.cumsum([g for g, _ in one])])
    moved = times.copy()
    for k, (_, flag) in enumerate(one, start=1):
        if flag:
            moved[k] = (times[k - 1] + times[k]) / 2
    visits = Visits.of(np.full(len(times), 3), times, verdict=[0] + [2 if flag else 1 for _, flag in one])
    found = interpolate(Histories.from_visits(visits))
    np.testing.assert_allclose(found.gaps, np.diff(moved), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.observation_times(), moved[1:], rtol=1e-9, atol=1e-9)
    updates = [moved[k] for k, (_, flag) in enumerate(one, start=1) if flag]
    np.testing.assert_allclose(found.last_change, [updates[-1] if updates else np.nan], rtol=1e-9)
    tau = update_model(Histories.from_visits(visits)).last_update
    np.testing.assert_allclose(tau, [updates[-1] if updates else 0.0], rtol=1e-9)


def test_observed_and_interpolated_models_differ_as_the_paper_says():
    visits = Visits.of(np.ones(4), [0.0, 10.0, 20.0, 30.0], verdict=[0, 2, 1, 2])
    histories = Histories.from_visits(visits)
    seen, moved = update_model(histories, interpolated=False), update_model(histories)
    assert seen.last_update[0] == 30.0
    assert moved.last_update[0] == 25.0
    assert seen.rate[0] == pytest.approx(np.log(3) / 10)  # two of three equal gaps
    assert moved.rate[0] == pytest.approx(np.log(1 + 10 / 15) / 5)  # changed 5, 5, unchanged 15


# -- site level --------------------------------------------------------------------------------


def test_site_level_is_one_row_a_site():
    visits = Visits.of([1, 1, 2, 2, 5, 5], [0.0, 10.0, 0.0, 10.0, 0.0, 20.0], verdict=[0, 1, 0, 2, 0, 1])
    evidence = RateEvidence(
        Histories.from_visits(visits), (np.array([9, 9, 4]), np.array([70, 70, 71])), ChangeKind.TEXT
    )
    sites = at_site_level(evidence, level=1)
    assert sites.histories.page.tolist() == [70, 71]
    assert sites.histories.gaps.tolist() == [10.0, 20.0]
    assert sites.histories.changed.tolist() == [True, False]
    assert [level.tolist() for level in sites.levels] == [[9, 4]]
    assert sites.kind == ChangeKind.TEXT
    assert naive_rates(at_site_level(evidence).histories).tolist() == [0.0, 0.1]


# -- online ------------------------------------------------------------------------------------


@given(pages, st.floats(1e-4, 10.0))
@settings(deadline=None)
def test_streaming_and_batch_are_the_same(rows, start):
    histories = ragged(rows)
    batch = fit_online(histories, np.full(len(rows), start))
    stream = OnlineRates.starting_at(np.full(len(rows), start))
    longest = max((len(one) for one in rows), default=0)
    for k in range(longest):  # the k-th look at every page that has one, as a crawl would bring them
        now = [(i, *one[k]) for i, one in enumerate(rows) if len(one) > k]
        index, gaps, flags = (np.array(column) for column in zip(*now, strict=True))
        update_online(stream, index, gaps, flags)
    np.testing.assert_allclose(stream.log_rate, batch.log_rate, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(stream.information, batch.information, rtol=1e-12)


def test_the_online_kernel_is_the_numpy_path():
    pytest.importorskip("numba")
    rng = np.random.default_rng(3)
    rows, gaps, flags = rng.integers(0, 60, 5000), rng.exponential(5.0, 5000), rng.random(5000) < 0.5
    rows[:1000] = 7  # one page with many more looks than the others
    states = [OnlineRates.starting_at(np.full(60, 0.2)) for _ in range(2)]
    fold_online(states[0].log_rate, states[0].information, rows, gaps, flags)
    fold_online_by_numpy(states[1].log_rate, states[1].information, rows, gaps, flags)
    np.testing.assert_allclose(states[0].log_rate, states[1].log_rate, rtol=1e-10)
    np.testing.assert_allclose(states[0].information, states[1].information, rtol=1e-10)


def test_one_online_step_by_hand():
    state = OnlineRates.starting_at(np.array([1.0, 1.0]))
    update_online(state, np.array([0, 1]), np.array([1.0, 9.0]), np.array([True, False]))
    pull = 1 / np.expm1(1.0)
    assert state.log_rate[0] == pytest.approx(pull / (1 + pull))
    assert state.log_rate[1] == -1.5  # the step is −9/I, cut
    assert state.information[1] == pytest.approx(1 + 81 / np.expm1(9.0))


def test_a_bad_gap_in_a_stream_is_refused_with_its_row():
    state = OnlineRates.starting_at(np.ones(3))
    with pytest.raises(ValueError, match="row 2"):
        update_online(state, np.array([0, 2]), np.array([1.0, 0.0]), np.array([True, False]))
    assert state.log_rate.tolist() == [0.0, 0.0, 0.0]
