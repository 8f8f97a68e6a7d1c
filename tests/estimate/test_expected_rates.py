"""What is expected of pages sharpens the priors of their groups, and never moves the level of a group."""

import numpy as np
import pytest

from recrawl.estimate import grid
from recrawl.estimate.expected_rates import fit_sharpened, moved
from recrawl.estimate.grid_prior import fit_priors
from recrawl.model import GridBelief, Histories, Verdict, Visits
from recrawl.model.grid_belief import half_octaves
from recrawl.time import DAY

RATES = half_octaves()


def pages(n, seed, looks=8):
    """Pages of two hosts, one ten times as fast as the other; within both some are nine times as fast as others."""
    rng = np.random.default_rng(seed)
    host, fast = np.arange(n) % 2, rng.integers(0, 2, n)
    rate = np.where(host, 1 / 10, 1 / 100) * np.where(fast, 3.0, 1 / 3) / DAY
    gaps = rng.uniform(3, 30, (n, looks)) * DAY
    changed = rng.random((n, looks)) < -np.expm1(-rate[:, None] * gaps)
    time = np.concatenate([np.zeros((n, 1)), np.cumsum(gaps, axis=1)], axis=1)
    verdict = np.concatenate([np.zeros((n, 1)), np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED)], axis=1)
    visits = Visits.of(np.repeat(np.arange(n), looks + 1), time.ravel(), verdict=verdict.ravel().astype(int))
    return Histories.from_visits(visits), host, fast, rate


def loss(weights, histories):
    first = histories.offsets[:-1]
    stays = GridBelief(RATES if weights.shape[1] == len(RATES) else None, weights).survival(histories.gaps[first])
    return -np.log(np.where(histories.changed[first], 1 - stays, stays)).mean()


def test_what_is_said_within_a_group_foretells_better_whatever_the_level():
    histories, host, fast, _ = pages(400, 1)
    to_come, host2, fast2, _ = pages(400, 2)
    plain = fit_priors(histories, (host,), rates=RATES)
    said = np.where(fast, 9.0, 1.0)
    sharp = fit_sharpened(histories, (host,), said / DAY)
    again = fit_sharpened(histories, (host,), 1000.0 * said / DAY)
    row = sharp.priors.rows((host2,), 400)
    with_model = sharp.of(row, np.where(fast2, 9.0, 1.0) / DAY)
    assert sharp.priors.belief.rates == pytest.approx(RATES)
    assert loss(with_model, to_come) < loss(plain.belief.weights[row], to_come) - 0.02
    np.testing.assert_allclose(again.of(row, np.where(fast2, 9e3, 1e3) / DAY), with_model, atol=1e-5)


def test_a_page_like_all_others_has_the_prior_of_its_group():
    histories, host, _, _ = pages(200, 3)
    sharp = fit_sharpened(histories, (host,), np.full(200, 1 / DAY))
    row = sharp.priors.rows((host,), 200)
    plain = fit_priors(histories, (host,))
    np.testing.assert_allclose(sharp.of(row, np.full(200, 1 / DAY)), plain.belief.weights[row], atol=1e-5)


@pytest.mark.parametrize("seed", [4, 5, 6])
def test_a_model_that_is_wrong_does_not_count(seed):
    histories, host, _, rate = pages(400, seed)
    rng = np.random.default_rng(seed)
    for said in (rng.lognormal(0.0, 1.5, 400) / DAY, 1.0 / rate):
        sharp = fit_sharpened(histories, (host,), said)
        row = sharp.priors.rows((host,), 400)
        assert sharp.power == 0.0
        np.testing.assert_array_equal(sharp.of(row, said), fit_priors(histories, (host,)).belief.weights[row])


def test_moving_keeps_the_whole_and_multiplies_the_rates():
    belief = grid.fit(pages(50, 7)[0], GridBelief.of(RATES, np.ones(len(RATES))), of=np.zeros(50, np.int64), jump=None)
    factor = np.random.default_rng(8).uniform(-1.0, 1.0, 50)
    there = GridBelief(RATES, moved(belief.weights, RATES, factor))
    np.testing.assert_allclose(there.weights.sum(axis=1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(there.quantile(0.5), belief.quantile(0.5) * np.exp(factor), rtol=0.3)
    at_the_end = moved(np.eye(len(RATES))[-1:], RATES, np.array([9.0]))
    assert at_the_end[0, -1] == 1.0
    assert moved(belief.weights[:0], RATES, np.empty(0)).shape == (0, len(RATES))
