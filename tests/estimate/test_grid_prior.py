"""Priors on the grid: found when they are there, shared by groups, defined when there is nothing."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.estimate.estimator import RateEvidence
from recrawl.estimate.posterior import grid_posterior
from recrawl.estimate.posterior.gamma_posterior import UNKNOWN_RATE
from recrawl.estimate.posterior.grid_posterior import fit_priors, spanning
from recrawl.estimate.posterior.posterior_estimators import GammaPosterior, Posterior
from recrawl.model import Histories, Visits
from recrawl.model.arrays import offsets_of
from recrawl.model.belief import doubling
from recrawl.time import DAY


def population(rates, observations, seed=0, gap=10 * DAY):
    """Pages of these rates per second, each looked at so often, at irregular gaps."""
    rng = np.random.default_rng(seed)
    row = np.repeat(np.arange(len(rates)), observations)
    gaps = rng.lognormal(np.log(gap), 1.0, len(row))
    changed = rng.random(len(row)) < -np.expm1(-rates[row] * gaps)
    nothing = np.full(len(rates), np.nan)
    return Histories(np.arange(len(rates)), offsets_of(row, len(rates)), gaps, changed, nothing, nothing, nothing)


def log_normal(pages, median=1 / (30 * DAY), spread=2.0, seed=1):
    return median * np.exp(np.random.default_rng(seed).normal(0.0, spread, pages))


def test_finds_the_population():
    rates = log_normal(5_000, spread=1.5)
    found = fit_priors(population(rates, 12)).belief
    for q in (0.1, 0.25, 0.5, 0.75, 0.9):
        assert np.log(found.quantile(q)[0] / np.quantile(rates, q)) == pytest.approx(0.0, abs=0.2)


def test_finds_two_kinds_of_pages():
    """No Gamma can say this: half the pages change daily, half every two years."""
    rates = np.where(np.arange(3_000) % 2, 1.0, 1 / 700) / DAY
    found = fit_priors(population(rates, 20)).belief
    cold, between, hot = (found.cumulative(np.array([rate / DAY]))[0] for rate in (1 / 150, 1 / 8, 8.0))
    assert cold == pytest.approx(0.5, abs=0.08)
    assert between - cold < 0.1
    assert hot > 0.95


def test_scales_with_time():
    one = population(log_normal(300), 6)
    other = Histories(one.page, one.offsets, one.gaps * 8, one.changed, *[one.first_visit] * 3)
    rates = spanning(one)
    base, scaled = (fit_priors(each, rates=grid).belief for each, grid in ((one, rates), (other, rates / 8)))
    np.testing.assert_allclose(scaled.weights, base.weights, rtol=1e-4, atol=1e-8)


def test_no_page_and_no_look_give_the_default():
    for histories in (Histories.concatenate([]), population(np.ones(5), 0)):
        found = fit_priors(histories, (np.zeros(len(histories), np.int64),))
        assert found.belief.quantile(0.5)[0] == pytest.approx(UNKNOWN_RATE, rel=0.05)
        assert found.belief.quantile(0.95)[0] > 20 * UNKNOWN_RATE
        assert found.belief.quantile(0.05)[0] < UNKNOWN_RATE / 20
        assert found.rows((np.array([3, 4]),), 2).max() <= 1


@pytest.mark.parametrize("rate", [0.0, 1e9])
def test_nothing_or_everything_changed(rate):
    found = fit_priors(population(np.full(50, rate), 5)).belief
    assert np.isfinite(found.weights).all()
    assert (found.weights > 0).all()
    assert 0 < found.mean()[0] < np.inf


def test_groups_are_told_apart_and_small_ones_follow_their_parent():
    rates = np.concatenate([np.full(200, 0.1), np.full(200, 0.005), [0.1]]) / DAY
    group = np.repeat([10, 20, 30], [200, 200, 1])
    found = fit_priors(population(rates, 10), (group,))
    everyone, hot, cold, single = found.belief.quantile(0.5)
    assert np.log(hot * 10 * DAY) == pytest.approx(0.0, abs=0.4)
    assert np.log(cold * 200 * DAY) == pytest.approx(0.0, abs=0.4)
    assert cold < everyone < hot
    assert abs(np.log(single / everyone)) < 0.5 * np.log(hot / everyone)


def test_a_group_outgrows_its_parent():
    """The same pages in a group of 2, 20 and 200, within a population of slow pages: the more, the further away."""
    pages = 2_000
    rates = np.full(pages, 1 / 200) / DAY
    host = np.full(pages, 9)
    for size, at in ((2, 0), (20, 10), (200, 100)):
        rates[at : at + size], host[at : at + size] = 1.0 / DAY, size
    found = fit_priors(population(rates, 8), (host,))
    own = found.belief.quantile(0.5)[1 + np.searchsorted(found.groups[0], [2, 20, 200])]
    assert (np.diff(own) > 0).all()
    assert own[2] * DAY > 0.5


def test_clusters_lie_within_hosts():
    host = np.repeat([1, 2], 400)
    cluster = np.repeat([10, 11, 20, 21], [390, 10, 200, 200])
    rates = np.select([cluster == 10, cluster == 11, cluster == 20], [0.2, 0.002, 0.02], 0.01) / DAY
    found = fit_priors(population(rates, 12), (host, cluster))
    assert [len(ids) for ids in found.groups] == [2, 4]
    assert len(found.belief) == 1 + 2 + 4
    of = found.rows((host, cluster), len(host))
    assert of[[0, 399, 400, 799]].tolist() == [3, 4, 5, 6]
    middle = found.belief.quantile(0.5)
    assert middle[4] < middle[1]  # the small slow cluster of the fast host
    # a new cluster of a known host, and one of a new host
    assert found.rows((np.array([2, 3]), np.array([77, 78])), 2).tolist() == [2, 0]


def test_compiled_code_and_numpy_agree(monkeypatch):
    histories, group = population(log_normal(700), 5), np.random.default_rng(0).integers(0, 40, 700)
    fast = fit_priors(histories, (group,))
    monkeypatch.setattr(grid_posterior, "can_compile", lambda: False)
    slow = fit_priors(histories, (group,))
    np.testing.assert_allclose(fast.belief.weights, slow.belief.weights, rtol=1e-5)


def test_blocks_of_groups_do_not_matter(monkeypatch):
    histories, group = population(log_normal(700), 5), np.random.default_rng(0).integers(0, 40, 700)
    whole = fit_priors(histories, (group,))
    monkeypatch.setattr(grid_posterior, "_PRIOR_BLOCK", 50)
    parts = fit_priors(histories, (group,))
    np.testing.assert_allclose(parts.belief.weights, whole.belief.weights, rtol=1e-5)


def test_large_populations_are_sampled(monkeypatch):
    rates = log_normal(6_000, spread=1.5)
    histories, group = population(rates, 8), np.arange(6_000) % 3
    whole = fit_priors(histories, (group,)).belief.quantile(0.5)
    seen = []
    real = grid_posterior.evenly_spread
    monkeypatch.setattr(grid_posterior, "_SAMPLE", 1_000)
    monkeypatch.setattr(grid_posterior, "evenly_spread", lambda *args: seen.append(real(*args)) or seen[-1])
    some = fit_priors(histories, (group,)).belief.quantile(0.5)
    assert [len(sample) for sample in seen] == [1_000, 600]
    np.testing.assert_allclose(np.log(some / whole), 0.0, atol=0.25)


# -- how far the grid reaches -----------------------------------------------------------------


def test_ordinary_pages_get_the_usual_grid():
    assert len(spanning(population(log_normal(500), 5))) == 36
    assert len(spanning(Histories.concatenate([]))) == 36


def one_page(gaps, changed):
    unknown = np.array([np.nan])
    return Histories(np.array([1]), np.array([0, len(gaps)]), np.array(gaps), np.array(changed), *[unknown] * 3)


@pytest.mark.parametrize("gap", [1e-6, 1e-3, 1.0, DAY, 30 * 365 * DAY])
def test_the_grid_reaches_from_microseconds_to_decades(gap):
    always = fit_priors(one_page([gap] * 5, [True] * 5)).belief
    never = fit_priors(one_page([gap] * 5, [False] * 5)).belief
    assert always.rates[-1] * gap > 3
    assert never.rates[0] * gap * 5 < 0.35
    assert doubling(always.rates) == 2
    assert len(always.rates) < 200


@pytest.mark.parametrize("gap", [5e-324, 1e-200, 1e200])
def test_absurd_gaps_do_not_make_absurd_grids(gap):
    for changed in (True, False):
        found = fit_priors(one_page([gap, gap], [changed, True])).belief
        assert len(found.rates) < 200
        assert np.isfinite(found.mean()).all()


def test_a_stray_page_does_not_lengthen_the_grid_of_all():
    many = population(log_normal(20_000), 2)
    gaps, changed = many.gaps.copy(), many.changed.copy()
    gaps[:2], changed[:2] = 1e-3, True
    stray = Histories(many.page, many.offsets, gaps, changed, *[many.first_visit] * 3)
    assert len(spanning(stray)) == 36
    assert len(spanning(stray.take(slice(0, 5_000)))) > 36


@pytest.mark.parametrize("estimator", [Posterior(jump=None), GammaPosterior()], ids=lambda one: one.name)
def test_a_new_cluster_is_believed_of_as_its_host_is(estimator):
    """A slow and a fast host, each with two unseen pages in a cluster of their own: they follow their host."""
    rng = np.random.default_rng(6)
    pages = 400
    host = np.arange(pages) // 200
    cluster = np.arange(pages) // 20
    cluster[[198, 199]], cluster[[398, 399]] = 90, 91
    rate = np.where(host == 0, 1 / 200, 1.0) / DAY
    observations = np.tile(np.arange(11) * 2 * DAY, pages)
    changed = rng.random(len(observations)) < -np.expm1(-np.repeat(rate, 11) * 2 * DAY)
    page = np.repeat(np.arange(pages), 11)
    seen = ~np.isin(page, [198, 199, 398, 399]) | (observations == 0)
    verdict = np.where(observations == 0, 0, np.where(changed, 2, 1))[seen]
    histories = Histories.from_visits(Visits.of(page[seen], observations[seen], verdict=verdict))
    middle = estimator(RateEvidence(histories, (host, cluster))).quantile(0.5) * DAY
    assert middle[198] < 0.05
    assert middle[398] > 0.3
    alone = estimator(RateEvidence(histories, (cluster,))).quantile(0.5) * DAY
    assert np.isclose(alone[198], alone[398], rtol=0.3)


def test_the_grid_reaches_the_rate_of_a_page_that_changed_twice_in_a_century():
    """An earlier grid ended at one change in nine years for all that ever changed: believed was then its end."""
    century = 36_525 * DAY
    found = spanning(one_page([century / 2, 1.0, century / 4, 1.0, century / 4], [False, True, False, True, False]))
    assert found[0] < 0.5 * 2 / century
