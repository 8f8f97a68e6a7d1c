"""Known change times told as looks: the likelihood becomes the exact one, and doubtful words change nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.estimate import mle
from recrawl.estimate.estimator import RateEvidence
from recrawl.estimate.posterior import grid_posterior
from recrawl.estimate.posterior.posterior_estimators import DatedPosterior, Posterior, trusted_dates
from recrawl.estimate.site_signals import MOMENT, SourceStatements, as_dated, as_known_at, exact_times_as_observations
from recrawl.model import GridBelief, Histories, Visits
from recrawl.simulate.sampling import IrregularVisits, PageTruth, sample
from recrawl.simulate.virtual_web import PoissonProcess
from recrawl.time import DAY


def test_a_watched_log_has_the_likelihood_of_its_changes():
    """Maximum likelihood of a complete log is X/T."""
    verdict, kinds = np.array([0, 2, 2, 2, 1, 0, 1, 2]), np.array([0, 129, 129, 129, 0, 0, 0, 1])
    time = DAY * np.array([0, 3, 10, 11, 20, 0, 5, 9])
    visits = Visits.of([1] * 5 + [2] * 3, time, verdict=verdict, kinds=kinds)
    histories, watched = Histories.from_visits(visits), Histories.from_visits(exact_times_as_observations(visits))
    np.testing.assert_allclose(watched.observed(), histories.observed())
    np.testing.assert_array_equal(watched.changes(), histories.changes())
    assert watched.counts().tolist() == [7, 2]
    assert np.isclose(mle.rates(watched)[0] * DAY, 3 / 20, rtol=1e-4)
    assert mle.rates(watched)[1] == mle.rates(histories)[1]


def test_a_log_that_is_cut_says_that_nothing_happened_up_to_the_cut():
    """But visits of a crawler say nothing about the time after them."""
    opened, same, changed = 0, 1, 2
    page = np.array([1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 4, 5])
    day = np.array([0, 3, 10, 20, 0, 20, 0, 18, 0, 3, 18, 15])  # 1 and 2 are pages of a log that ends on day 20
    verdict = np.array([opened, changed, changed, same, opened, same, opened, same, opened, changed, same, opened])
    kinds = np.array([0, 129, 129, 0, 0, 0, 0, 0, 0, 1, 0, 0])
    visits = Visits.of(page, DAY * day, verdict=verdict, kinds=kinds)
    cut = as_known_at(visits, 7 * DAY)
    assert list(zip(cut.page.tolist(), (cut.time / DAY).tolist(), cut.verdict.tolist(), strict=True)) == [
        (1, 0, opened), (1, 3, changed), (1, 7, same), (2, 0, opened), (2, 7, same), (3, 0, opened), (4, 0, opened),
        (4, 3, changed),
    ]  # fmt: skip
    assert as_known_at(visits, 20 * DAY) is visits
    assert as_known_at(visits, 3 * DAY).page.tolist() == [1, 1, 2, 2, 3, 4, 4]  # page 1 has an event at the cut


@given(st.lists(st.tuples(st.floats(10.0, 1e6), st.booleans(), st.floats(0.01, 0.99)), min_size=1, max_size=12))
def test_dated_gaps_have_the_likelihood_of_a_change_at_its_time(gaps):
    """Up to a constant the weight of a rate is Π λ·e^{−λs} over dated gaps and Π e^{−λτ} over quiet ones."""
    length, changed, share = (np.array(column) for column in zip(*gaps, strict=True))
    time = np.concatenate([[0.0], np.cumsum(length)])
    verdict = np.concatenate([[0], np.where(changed, 2, 1)])
    histories = Histories.from_visits(Visits.of(np.zeros(len(time)), time, verdict=verdict))
    dated, age = np.flatnonzero(changed), np.maximum(share * length, MOMENT)[changed]
    told = as_dated(histories, dated[::-1], age[::-1])
    rates = np.geomspace(1e-6, 1e-3, 9)
    flat = GridBelief.of(rates, np.ones(9))
    found = np.log(grid_posterior.fit(told, flat, jump=None).weights[0].astype(float))
    exact = changed.sum() * np.log(-np.expm1(-rates * MOMENT)) - rates * (age.sum() + length[~changed].sum())
    seen = found > -60
    np.testing.assert_allclose((found - found.max())[seen], (exact - exact.max())[seen], atol=1e-3)


@pytest.fixture(scope="module")
def dated_web():
    """Lively pages looked at seldom: looks alone cannot tell how lively, dates can."""
    rng = np.random.default_rng(8)
    pages = 600
    rate = np.exp(rng.normal(np.log(0.3), 1.0, pages)) / DAY
    changes = PoissonProcess().times(rate, 0.0, 200 * DAY, rng)
    truth = PageTruth(np.zeros(pages), np.full(pages, np.inf), changes, 0.0, 200 * DAY)
    visits = sample(truth, IrregularVisits(10 * DAY, 0.5), rng)
    histories = Histories.from_visits(visits).align(np.arange(pages))
    said = changes.last_until(visits.page, visits.time)
    host = np.arange(pages) // 200
    return rate, histories, SourceStatements(visits.page, visits.time, said), RateEvidence(histories, (host,)), visits


def error(belief, rate):
    return float(np.sqrt(np.mean(np.log(belief.quantile(0.5) / rate) ** 2)))


def test_true_dates_make_rates_better_known_and_the_intervals_still_cover(dated_web):
    rate, _, statements, evidence, _ = dated_web
    plain, dated = Posterior(jump=None)(evidence), DatedPosterior((statements,), Posterior(jump=None))(evidence)
    assert error(dated, rate) < 0.75 * error(plain, rate)
    inside = (dated.quantile(0.05) <= rate) & (rate <= dated.quantile(0.95))
    assert 0.85 < inside.mean() < 0.97


def test_dates_that_lie_are_not_heard(dated_web):
    _, _, statements, evidence, visits = dated_web
    always_now = SourceStatements(visits.page, visits.time, visits.time)
    rng = np.random.default_rng(4)
    made_up = SourceStatements(visits.page, visits.time, visits.time * rng.random(len(visits)))
    for lie in (always_now, made_up):
        assert not trusted_dates(evidence, (lie,)).any()
        np.testing.assert_array_equal(DatedPosterior((lie,))(evidence).weights, Posterior()(evidence).weights)
    heard, alone = trusted_dates(evidence, (made_up, statements, always_now)), trusted_dates(evidence, (statements,))
    assert (heard.weight > 0.7).all()
    np.testing.assert_array_equal(heard.gap, alone.gap)
    np.testing.assert_array_equal(heard.age, alone.age)


def test_only_the_host_that_tells_the_truth_is_heard(dated_web):
    _, _, statements, evidence, _ = dated_web
    lying = evidence.levels[0][statements.page] == 1
    mixed = SourceStatements(statements.page, statements.time, np.where(lying, statements.time, statements.changed_at))
    weight = trusted_dates(evidence, (mixed,)).weight
    assert (weight > 0).tolist() == (evidence.levels[0] != 1).tolist()


def test_without_statements_nothing_changes(dated_web):
    evidence = dated_web[3]
    np.testing.assert_array_equal(DatedPosterior(())(evidence).weights, Posterior()(evidence).weights)
