"""The estimators behind the seam: calibrated, covering, defined everywhere, better informed by neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from recrawl.estimate.estimator import Estimator, RateEvidence, estimate
from recrawl.estimate.posterior import grid_posterior
from recrawl.estimate.posterior.grid_posterior import fit_priors
from recrawl.estimate.posterior.posterior_estimators import GammaPosterior, Posterior
from recrawl.model import ChangeKind, GridBelief, Histories
from recrawl.model.arrays import offsets_of
from recrawl.model.belief import half_octaves
from recrawl.time import DAY

BOTH = [Posterior(), Posterior(jump=None), Posterior(depth=0), GammaPosterior()]


def seen(rates, observations, rng, spread=1.0):
    """Histories of pages of these rates, with irregular gaps around ten days."""
    row = np.repeat(np.arange(len(rates)), observations)
    gaps = rng.lognormal(np.log(10 * DAY), spread, len(row))
    changed = rng.random(len(row)) < -np.expm1(-rates[row] * gaps)
    nothing = np.full(len(rates), np.nan)
    return Histories(np.arange(len(rates)), offsets_of(row, len(rates)), gaps, changed, nothing, nothing, nothing)


def hosts_and_rates(pages, hosts, rng):
    """Half the log-variance lies between hosts."""
    host = rng.integers(0, hosts, pages)
    return host, np.exp(rng.normal(0, 1.4, hosts)[host] + rng.normal(0, 1.4, pages)) / (30 * DAY)


@pytest.mark.parametrize("observations", [0, 1, 5, 25])
@pytest.mark.parametrize("seed", [1, 2])
def test_ranks_are_uniform(observations, seed):
    """Simulation-based calibration: rates drawn from the prior lie anywhere in their posteriors equally often."""
    rng = np.random.default_rng(seed)
    rates = half_octaves()
    prior = GridBelief.of(rates, stats.norm(np.log(1 / (30 * DAY)), 2.0).pdf(np.log(rates)))
    pages = 20_000
    true = rng.choice(len(rates), pages, p=prior.weights[0].astype(np.float64) / prior.weights[0].sum(dtype=np.float64))
    belief = grid_posterior.fit(seen(rates[true], observations, rng), prior, jump=None)
    below = np.cumsum(belief.weights, axis=1, dtype=np.float64)
    own = belief.weights[np.arange(pages), true]
    rank = below[np.arange(pages), true] - own * rng.random(pages)
    counts = np.histogram(rank, bins=20, range=(0.0, 1.0 + 1e-6))[0]
    assert stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize("seed", [1, 2])
def test_ranks_are_uniform_with_jumps(seed):
    """The same where rates do jump: the filter's belief is about the rate that now holds."""
    rng = np.random.default_rng(seed)
    rates = half_octaves()
    prior = GridBelief.of(rates, stats.norm(np.log(1 / (30 * DAY)), 2.0).pdf(np.log(rates)))
    pages, observations, jump = 20_000, 15, 120 * DAY
    share = prior.weights[0].astype(np.float64) / prior.weights[0].sum(dtype=np.float64)
    gaps = rng.lognormal(np.log(10 * DAY), 1.0, (pages, observations))
    changed = np.empty((pages, observations), dtype=np.bool_)
    true = rng.choice(len(rates), pages, p=share)
    for k in range(observations):
        jumps = rng.random(pages) < -np.expm1(-gaps[:, k] / jump)
        true = np.where(jumps, rng.choice(len(rates), pages, p=share), true)
        changed[:, k] = rng.random(pages) < -np.expm1(-rates[true] * gaps[:, k])
    nothing = np.full(pages, np.nan)
    offsets = np.arange(pages + 1) * observations
    histories = Histories(np.arange(pages), offsets, gaps.ravel(), changed.ravel(), nothing, nothing, nothing)
    belief = grid_posterior.fit(histories, prior, jump=jump)
    below = np.cumsum(belief.weights, axis=1, dtype=np.float64)
    rank = below[np.arange(pages), true] - belief.weights[np.arange(pages), true] * rng.random(pages)
    counts = np.histogram(rank, bins=20, range=(0.0, 1.0 + 1e-6))[0]
    assert stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize("observations", [3, 10, 30])
@pytest.mark.parametrize("depth", [0, 1])
def test_intervals_cover_what_they_promise(observations, depth):
    rng = np.random.default_rng(observations)
    host, rates = hosts_and_rates(8_000, 100, rng)
    belief = Posterior(jump=None, depth=depth)(RateEvidence(seen(rates, observations, rng), (host,)))
    inside = (belief.quantile(0.05) <= rates) & (rates <= belief.quantile(0.95))
    assert 0.88 <= inside.mean() <= 0.93


def test_probabilities_of_change_are_calibrated():
    rng = np.random.default_rng(4)
    host, rates = hosts_and_rates(20_000, 200, rng)
    belief = Posterior(jump=None)(RateEvidence(seen(rates, 6, rng), (host,)))
    t = np.full(len(rates), 10 * DAY)
    said, happens = belief.p_change(t), -np.expm1(-rates * t)
    for low, high in ((0.0, 0.1), (0.1, 0.3), (0.3, 0.6), (0.6, 0.9), (0.9, 1.0)):
        group = (said >= low) & (said < high)
        assert happens[group].mean() == pytest.approx(said[group].mean(), abs=0.015)


@pytest.mark.parametrize(("observations", "limit"), [(3, 1.10), (10, 0.79), (30, 0.55)])
def test_errors_are_those_of_the_derivation(observations, limit):
    """Algorithms §5: RMSE of log λ 1.07, 0.76, 0.52 with a prior for each host; worse with one for all."""
    rng = np.random.default_rng(10 + observations)
    host, rates = hosts_and_rates(10_000, 100, rng)
    evidence = RateEvidence(seen(rates, observations, rng), (host,))
    own, shared = (
        np.sqrt(np.mean((Posterior(jump=None, depth=depth)(evidence).expect(np.log) - np.log(rates)) ** 2))
        for depth in (1, 0)
    )
    assert own < limit
    assert own < shared


def test_a_page_never_seen_is_believed_of_as_its_neighbours():
    rng = np.random.default_rng(0)
    rates = np.repeat([0.5, 0.002], 200) / DAY
    host = np.repeat([1, 2], 200)
    observations = np.where(np.arange(400) % 200 == 0, 0, 10)
    fast, slow = Posterior()(RateEvidence(seen(rates, observations, rng), (host,))).quantile(0.5)[[0, 200]] * DAY
    assert fast > 0.2
    assert slow < 0.01


@pytest.mark.parametrize("estimator", BOTH)
@pytest.mark.parametrize("changed", [True, False, None])
def test_defined_for_every_history(estimator, changed):
    rng = np.random.default_rng(1)
    histories = seen(np.full(60, 1 / (10 * DAY)), np.arange(60) % 4, rng)
    if changed is not None:
        histories.changed[:] = changed
    level = np.arange(60) // 7
    belief = estimator(RateEvidence(histories, (level // 3, level)))
    assert len(belief) == 60
    t = np.full(60, DAY)
    for answer in (belief.mean(), belief.quantile(0.05), belief.quantile(0.95), belief.p_change(t), belief.survival(t)):
        assert np.isfinite(answer).all()
        assert (answer >= 0).all()
    assert len(estimator(RateEvidence(Histories.concatenate([])))) == 0
    unseen = estimator(RateEvidence(seen(np.ones(3), 0, rng), (np.zeros(3, np.int64),)))
    assert (unseen.quantile(0.5) * DAY > 1 / 300).all()
    assert (unseen.quantile(0.5) * DAY < 1 / 3).all()


@pytest.mark.parametrize("estimator", BOTH)
def test_the_seam(estimator: Estimator):
    found = estimate(estimator, RateEvidence(seen(np.ones(3) / DAY, 2, np.random.default_rng(0)), kind=ChangeKind.TEXT))
    assert found.method == estimator.name
    assert found.kind == ChangeKind.TEXT
    assert len(found.belief) == 3


def test_names():
    assert (Posterior().name, GammaPosterior().name) == ("posterior", "gamma")


def test_what_was_learned_can_be_carried_on():
    rng = np.random.default_rng(2)
    host, rates = hosts_and_rates(300, 5, rng)
    evidence = RateEvidence(seen(rates, 6, rng), (host,))
    estimator = Posterior()
    learned = estimator.learn(evidence)
    np.testing.assert_array_equal(learned.belief.weights, estimator(evidence).weights)
    later = learned.at(np.full(300, 400 * DAY))
    prior = learned.priors.belief.weights[learned.row]
    np.testing.assert_allclose(later.weights, learned.belief.weights / np.e + prior * (1 - 1 / np.e), atol=1e-6)
    # given priors are used, also for pages they were not learned from
    elsewhere = estimator.learn(RateEvidence(seen(rates[:2], 0, rng), (np.array([host[0], 99]),)), learned.priors)
    np.testing.assert_array_equal(elsewhere.belief.weights[0], prior[0])
    np.testing.assert_array_equal(elsewhere.belief.weights[1], learned.priors.belief.weights[0])


def test_a_learned_prior_enters_as_a_mixture():
    """Class probabilities of a page times the prior of each class, learned like those of hosts."""
    rng = np.random.default_rng(3)
    kind = np.arange(1_000) % 2
    priors = fit_priors(seen(np.where(kind, 1.0, 0.01) / DAY, 10, rng), (kind,))
    classes = priors.belief.take(slice(1, None))
    prior = GridBelief.mixture([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]], classes)
    belief = grid_posterior.fit(seen(np.ones(3), 0, rng), prior)
    fast = belief.cumulative(np.full(3, 0.1 / DAY))
    np.testing.assert_allclose(fast, [0.9, 0.1, 0.5], atol=0.05)
