"""Changes whose time is known: complete logs, and dates that sites give, as far as they can be trusted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.estimate import last_modified, oracle, trust
from recrawl.estimate.empirical_bayes import UNKNOWN_RATE
from recrawl.estimate.estimator import Evidence
from recrawl.estimate.last_modified import LastModified
from recrawl.estimate.oracle import DatedEvidence, Oracle
from recrawl.estimate.trust import Statements, Trust
from recrawl.model import ChangeKind, GammaBelief, Histories, Visits
from recrawl.time import DAY

START = 1.6e9


def site(rng, pages=200, looks=20, law="honest"):
    """A host of Poisson pages, looked at now and then: histories, statements by the law, and true rates."""
    rate = np.exp(rng.normal(np.log(1 / 20), 1.0, pages)) / DAY
    gaps = np.exp(rng.normal(np.log(10), 1.0, (pages, looks))) * DAY
    time = START + np.concatenate([np.zeros((pages, 1)), np.cumsum(gaps, axis=1)], axis=1)
    changed, latest = np.zeros(time.shape, bool), np.empty(time.shape)
    latest[:, 0] = START - rng.exponential(1 / rate)
    for k in range(1, looks + 1):
        back = rng.exponential(1 / rate)
        changed[:, k] = back < gaps[:, k - 1]
        latest[:, k] = np.where(changed[:, k], time[:, k] - back, latest[:, k - 1])
    said = {
        "honest": latest,
        "now": time,
        "stuck": np.full_like(time, START - 100 * DAY),
        "restless": time - rng.random(time.shape) * 2 * DAY,
        "ahead": latest + 400 * DAY,
        "epoch": np.zeros_like(time),
    }[law]
    page = np.repeat(np.arange(pages), looks + 1)
    visits = Visits.of(page, time.ravel(), verdict=np.where(changed, 2, 1).ravel())
    return Histories.from_visits(visits), Statements(page, time.ravel(), said.ravel()), rate


# -- the form λ^m e^{−λE} ----------------------------------------------------------------------


def test_what_is_known_twice_counts_twice():
    prior = GammaBelief(np.array([0.5, 2.0]), np.array([10.0, 3.0]) * DAY)
    known = DatedEvidence(np.array([4.0, 0.0]), np.array([60.0, 9.0]) * DAY)
    both = known.plus(known).fold_into_gamma(prior)
    twice = known.fold_into_gamma(known.fold_into_gamma(prior))
    np.testing.assert_allclose([both.a, both.b], [twice.a, twice.b])


def test_a_complete_log_is_counted():
    exact = ChangeKind.CONTENT | ChangeKind.EXACT
    visits = Visits.of(
        [1, 1, 1, 1, 2, 2, 3, 3],
        [0.0, 5.0, 6.0, 20.0, 0.0, 8.0, 0.0, 4.0],
        verdict=[0, 2, 2, 1, 0, 2, 0, 1],
        kinds=[0, exact, exact, 0, 0, ChangeKind.CONTENT, 0, 0],
    )
    histories = Histories.from_visits(visits)
    known = oracle.complete_log(histories)
    assert known.changes.tolist() == [2.0, 1.0, 0.0]
    assert known.exposure.tolist() == [20.0, 8.0, 4.0]
    assert oracle.exact_pages(visits, histories.page).tolist() == [True, False, False]
    assert oracle.exact_pages(visits, np.array([], dtype=np.int64)).tolist() == []
    assert oracle.rate(known.changes, known.exposure)[0] == 0.1


def test_the_oracle_is_conjugate_and_always_defined():
    histories = Histories.from_visits(Visits.of([1, 1, 1, 2], [0.0, 5.0, 20.0, 0.0], verdict=[0, 2, 1, 0]))
    belief = Oracle()(Evidence(histories))
    typical = 1.5 / 20.0
    np.testing.assert_allclose(belief.a, [1.5, 0.5])
    np.testing.assert_allclose(belief.b, [0.5 / typical + 20.0, 0.5 / typical])
    nobody = Oracle()(Evidence(Histories.from_visits(Visits.of([1], [0.0]))))
    np.testing.assert_allclose(nobody.mean(), UNKNOWN_RATE)
    assert np.isnan(oracle.rate(0, 0.0))


# -- true and false statements -----------------------------------------------------------------


def checked_by_hand(times, changed, said, claimed):
    """(gap, tested, true, about_change) of one statement about one page; look k closes the gap of changed[k]."""
    if claimed > said + trust.INSTANT:
        return None, True, False, True
    claimed = min(claimed, said)
    place = next((k for k, time in enumerate(times) if time >= claimed), None)
    if place is None:
        return trust.AFTER_ALL_LOOKS, False, True, None
    last = max([place] + [k for k, time in enumerate(times) if time <= said])
    fine = (place == 0 or changed[place]) and not any(changed[place + 1 : last + 1])
    gap = place - 1 if place > 0 else trust.BEFORE_ALL_LOOKS
    return gap, last > 0, fine, changed[last] if last > 0 else None


day = st.integers(1, 40).map(lambda d: d * DAY)


@given(
    st.lists(day, min_size=1, max_size=6, unique=True).map(sorted),
    st.lists(st.booleans(), min_size=6, max_size=6),
    st.lists(st.tuples(day, day), min_size=1, max_size=6),
)
def test_statements_are_judged_as_by_hand(times, flags, said):
    verdict = [0] + [2 if flag else 1 for flag in flags[1 : len(times)]]
    # a page before and one behind, so that rows do not begin at 0
    others = Visits.of([1, 1, 9, 9], [0.0, 5.0, 0.0, 7.0], verdict=[0, 2, 0, 2])
    own = Visits.of(np.full(len(times), 5), times, verdict=verdict)
    histories = Histories.from_visits(Visits.concatenate([others, own]))
    statements = Statements(np.full(len(said), 5), *(np.array(column) for column in zip(*said, strict=True)))
    found = trust.check(histories, statements)
    for i, (time, claimed) in enumerate(said):
        gap, tested, fine, about = checked_by_hand(times, [False, *flags[1 : len(times)]], time, claimed)
        assert found.tested[i] == tested
        assert found.true[i] == fine
        if gap is not None:
            assert found.gap[i] == (gap if gap < 0 else gap + 1)  # one gap of page 1 comes first
        if about is not None:
            assert found.about_change[i] == about


@pytest.mark.parametrize(
    ("law", "heard"),
    [("honest", True), ("now", False), ("stuck", False), ("restless", False), ("ahead", False), ("epoch", False)],
)
def test_only_the_honest_host_is_heard(law, heard):
    histories, statements, _ = site(np.random.default_rng(5), law=law)
    counted = trust.count(trust.check(histories, statements), np.zeros(len(histories), dtype=np.int64))
    assert (counted.of(np.zeros(1, dtype=np.int64))[0] > 0.9) == heard
    if not heard:
        assert counted.of(np.zeros(1, dtype=np.int64))[0] == 0.0


def test_hosts_are_judged_apart_and_periods_add_up():
    rng = np.random.default_rng(6)
    histories, honest, _ = site(rng)
    lying = honest.changed_at.copy()
    lying[honest.page >= 100] = honest.time[honest.page >= 100]
    host = np.where(np.arange(200) < 100, 7, 3)
    checked = trust.check(histories, Statements(honest.page, honest.time, lying))
    counted = trust.count(checked, host)
    assert counted.group.tolist() == [3, 7]
    assert counted.weights()[0] == 0.0
    assert counted.weights()[1] > 0.9
    assert counted.of(np.array([7, 99, 3])).tolist() == [counted.weights()[1], 0.0, 0.0]
    halves = [
        trust.count(trust.Checked(*(column[part] for column in checked)), host)
        for part in (slice(0, 2000), slice(2000, None))
    ]
    together = halves[0].plus(halves[1])
    for name in ("group", "moved", "kept", "instant"):
        np.testing.assert_array_equal(getattr(together, name), getattr(counted, name))


def test_a_host_that_said_little_is_not_heard_yet():
    assert Trust(np.array([1]), np.array([[1, 0]]), np.array([[50, 0]]), np.array([[51, 0]])).weights()[0] == 0.0
    nobody = trust.count(trust.check(Histories.concatenate([]), Statements(*(np.empty(0),) * 3)), np.empty(0, np.int64))
    assert nobody.of(np.array([4])).tolist() == [0.0]


# -- dating ------------------------------------------------------------------------------------

SURE = Trust(np.array([0]), np.full((1, 2), [10**15, 0]), np.full((1, 2), [10**15, 0]), np.full((1, 2), [10**15, 0]))


def test_by_hand_with_a_source_beyond_doubt():
    #   first look at 100 days (changed 4 before), changed at 107 (look 110), quiet, changed at 125 (look 140)
    time = np.array([100.0, 110.0, 120.0, 140.0]) * DAY
    histories = Histories.from_visits(Visits.of([1] * 4, time, verdict=[0, 2, 1, 2]))
    said = Statements(np.ones(4, dtype=np.int64), time, np.array([96.0, 107.0, 107.0, 125.0]) * DAY)
    dated = last_modified.date(histories, said, np.zeros(1, dtype=np.int64), SURE)
    assert dated.evidence.changes[0] == pytest.approx(3.0)
    assert dated.evidence.exposure[0] == pytest.approx((4 + 3 + 15) * DAY)
    np.testing.assert_allclose(dated.gap_weight, [0.0, 1.0, 0.0], atol=1e-12)
    everything = dated.gamma_form(histories, np.array([1e-6]))
    assert everything.changes[0] == pytest.approx(3.0)
    assert everything.exposure[0] == pytest.approx((4 + 3 + 10 + 15) * DAY)


def test_a_sitemap_between_two_looks_dates_up_to_when_it_was_fetched():
    histories = Histories.from_visits(Visits.of([1, 1], np.array([100.0, 140.0]) * DAY, verdict=[0, 2]))
    said = Statements(np.array([1]), np.array([130.0 * DAY]), np.array([121.0 * DAY]))
    dated = last_modified.date(histories, said, np.zeros(1, dtype=np.int64), SURE)
    assert dated.evidence.changes[0] == pytest.approx(1.0)
    assert dated.evidence.exposure[0] == pytest.approx(9 * DAY)


def test_what_the_looks_contradict_dates_nothing():
    histories = Histories.from_visits(Visits.of([1] * 3, np.array([100.0, 110.0, 120.0]) * DAY, verdict=[0, 1, 2]))
    said = Statements(np.ones(2, dtype=np.int64), np.array([110.0, 120.0]) * DAY, np.array([105.0, 99.0]) * DAY)
    dated = last_modified.date(histories, said, np.zeros(1, dtype=np.int64), SURE)
    assert dated.evidence.changes[0] == 0.0
    assert dated.gap_weight.tolist() == [1.0, 1.0]


def test_trust_weighs_as_the_formula_says():
    time = np.array([100.0, 110.0]) * DAY
    histories = Histories.from_visits(Visits.of([1, 1], time, verdict=[0, 2]))
    said = Statements(np.array([1]), time[1:], np.array([107.0]) * DAY)
    eight = np.array([[8, 0]])
    told = Trust(np.array([0]), eight, eight, eight)
    dated = last_modified.date(histories, said, np.zeros(1, dtype=np.int64), told)
    w = 0.81
    assert dated.evidence.changes[0] == pytest.approx(w)
    assert dated.evidence.exposure[0] == pytest.approx(w * 3 * DAY)
    assert dated.gap_weight[0] == pytest.approx(1 - w)


@given(
    st.lists(st.tuples(st.floats(0.01, 50.0), st.booleans(), st.floats(0.0, 1.0)), min_size=1, max_size=8),
    st.floats(0.01, 5.0),
)
@settings(deadline=None)
def test_the_gamma_form_has_the_slope_and_the_curvature_of_the_likelihood(looks, rate):
    gaps, changed, weight = (np.array(column) for column in zip(*looks, strict=True))
    nothing = np.full(1, np.nan)
    histories = Histories(
        np.array([1]), np.array([0, len(gaps)]), gaps, changed.astype(bool), nothing, nothing, nothing
    )
    none = DatedEvidence(np.zeros(1), np.zeros(1))
    form = last_modified.Dated(none, weight).gamma_form(histories, np.array([rate]))

    def log_likelihood(theta):
        x = np.exp(theta) * gaps
        return float((weight * np.where(changed, np.log(-np.expm1(-x)), -x)).sum())

    theta, h = np.log(rate), 1e-4
    up, mid, down = (log_likelihood(theta + k * h) for k in (1, 0, -1))
    scale = 1.0 + float((weight * rate * gaps).sum())
    assert form.changes[0] - rate * form.exposure[0] == pytest.approx((up - down) / (2 * h), abs=1e-6 * scale)
    assert -rate * form.exposure[0] == pytest.approx((up - 2 * mid + down) / h**2, abs=1e-5 * scale)


def test_dates_make_rates_much_better_and_their_intervals_hold():
    histories, honest, rate = site(np.random.default_rng(8), pages=500, looks=10)
    silent = Statements(np.empty(0, np.int64), np.empty(0), np.empty(0))
    with_dates, without = (LastModified(source)(Evidence(histories)) for source in (honest, silent))
    errors = [np.sqrt(np.mean(np.log(belief.mean() / rate) ** 2)) for belief in (with_dates, without)]
    assert errors[0] < 0.85 * errors[1]
    held = np.mean((with_dates.quantile(0.05) <= rate) & (rate <= with_dates.quantile(0.95)))
    assert 0.85 < held < 0.95


@pytest.mark.parametrize("law", ["now", "stuck", "restless", "ahead", "epoch"])
def test_a_liar_changes_nothing(law):
    histories, lies, _ = site(np.random.default_rng(9), pages=50, looks=8, law=law)
    silent = Statements(np.empty(0, np.int64), np.empty(0), np.empty(0))
    believed, without = (LastModified(source)(Evidence(histories)) for source in (lies, silent))
    np.testing.assert_array_equal(believed.mean(), without.mean())


def test_strange_statements_are_no_statements():
    histories = Histories.from_visits(Visits.of([1, 1, 4], [1e9, 2e9, 1e9], verdict=[0, 2, 0]))
    page = np.array([1, 1, 1, 77, 4])
    said = Statements(page, np.array([2e9, np.nan, 2e9, 2e9, 1e9]), np.array([-np.inf, 1.5e9, np.nan, 1.5e9, 0.9e9]))
    belief = LastModified(said)(Evidence(histories, (np.array([0, 0]),)))
    assert np.isfinite(belief.mean()).all()
    assert len(LastModified(said)(Evidence(Histories.concatenate([])))) == 0
