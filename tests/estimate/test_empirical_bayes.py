"""Priors from populations: found when they are there, defined when there is nothing."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.estimate.posterior import gamma_posterior
from recrawl.estimate.posterior.gamma_posterior import UNKNOWN_RATE, fit_group_priors, fit_prior
from recrawl.model import GammaBelief, Histories
from recrawl.model.arrays import offsets_of


def population(rates, observations, seed=0, gap=10.0):
    rng = np.random.default_rng(seed)
    row = np.repeat(np.arange(len(rates)), observations)
    gaps = rng.exponential(gap, len(row))
    changed = rng.random(len(row)) < -np.expm1(-rates[row] * gaps)
    nothing = np.full(len(rates), np.nan)
    return Histories(np.arange(len(rates)), offsets_of(row, len(rates)), gaps, changed, nothing, nothing, nothing)


@pytest.mark.parametrize(("a", "b"), [(0.5, 15.0), (1.0, 20.0), (0.3, 30.0)])
def test_finds_the_prior_that_made_the_population(a, b):
    rates = np.random.default_rng(1).gamma(a, 1 / b, 3_000)
    found = fit_prior(population(rates, 12))
    assert found.mean()[0] == pytest.approx(a / b, rel=0.1)
    assert found.a[0] == pytest.approx(a, rel=0.2)


def test_scales_with_time():
    rates = np.random.default_rng(1).gamma(0.5, 1 / 15.0, 300)
    one = population(rates, 6)
    other = Histories(
        *[getattr(one, name) for name in ("page", "offsets")], one.gaps * 86_400, one.changed, *[one.first_visit] * 3
    )
    assert fit_prior(other).a[0] == pytest.approx(fit_prior(one).a[0], rel=1e-6)
    assert fit_prior(other).mean()[0] == pytest.approx(fit_prior(one).mean()[0] / 86_400, rel=1e-6)


def test_no_page_and_no_look_give_the_default():
    for histories in (Histories.concatenate([]), population(np.ones(5), 0)):
        assert fit_prior(histories).mean()[0] == pytest.approx(UNKNOWN_RATE)
    empty = fit_group_priors(Histories.concatenate([]), np.empty(0, np.int64))
    assert len(empty.prior) == 0
    assert empty.of(np.array([3, 4])).mean() == pytest.approx([UNKNOWN_RATE] * 2)


@pytest.mark.parametrize("rate", [0.0, 1e9])
def test_nothing_or_everything_changed(rate):
    found = fit_prior(population(np.full(50, rate), 5))
    assert np.isfinite(found.a).all()
    assert 0 < found.mean()[0] < np.inf


def test_groups_are_told_apart_and_small_ones_follow_their_parent():
    rates = np.concatenate([np.full(200, 0.1), np.full(200, 0.005), [0.1]])
    group = np.repeat([10, 20, 30], [200, 200, 1])
    found = fit_group_priors(population(rates, 10), group)
    hot, cold, single = found.prior.mean()
    assert hot == pytest.approx(0.1, rel=0.15)
    assert cold == pytest.approx(0.005, rel=0.3)
    overall = found.overall.mean()[0]
    assert abs(np.log(single / overall)) < 0.5 * abs(np.log(0.1 / overall))
    known = found.of(np.array([20, 99, 10]))
    np.testing.assert_allclose(known.mean(), [cold, overall, hot])


def test_the_order_of_pages_within_groups_does_not_matter():
    rates = np.random.default_rng(2).gamma(0.5, 1 / 15.0, 120)
    histories = population(rates, 5)
    group = np.arange(120) % 3
    order = np.random.default_rng(3).permutation(120)
    counts = histories.counts()[order]
    source = np.concatenate([np.arange(histories.offsets[i], histories.offsets[i + 1]) for i in order])
    nothing = np.full(120, np.nan)
    turned = Histories(
        np.arange(120),
        np.concatenate([[0], np.cumsum(counts)]),
        histories.gaps[source],
        histories.changed[source],
        *[nothing] * 3,
    )
    one, other = fit_group_priors(histories, group), fit_group_priors(turned, group[order])
    np.testing.assert_allclose(one.prior.a, other.prior.a, rtol=1e-9)
    np.testing.assert_allclose(one.prior.b, other.prior.b, rtol=1e-9)


def test_samples_are_spread_evenly_over_each_group():
    histories = population(np.ones(1_000), 1)
    group = np.repeat([0, 1], [900, 100])
    chosen = gamma_posterior.evenly_spread(histories, group, 90)
    assert np.bincount(group[chosen]).tolist() == [90, 90]
    assert np.diff(chosen[:90]).max() <= 11
    assert gamma_posterior.evenly_spread(histories, group, 10_000).tolist() == list(range(1_000))


def test_a_given_parent_is_followed():
    parent = GammaBelief(np.array([2.0, 3.0]), np.array([1.0, 300.0]))
    nothing_seen = population(np.ones(4), 0)
    found = fit_group_priors(nothing_seen, np.array([5, 5, 6, 6]), parent)
    np.testing.assert_array_equal(found.prior.a, parent.a)
    np.testing.assert_array_equal(found.prior.b, parent.b)
