"""What is expected of pages sharpens the priors of their groups, and never moves the level of a group."""

import numpy as np
import pytest

from recrawl.estimate.posterior import grid_posterior
from recrawl.estimate.posterior.expected_rates import fit_sharpened, moved
from recrawl.estimate.posterior.grid_posterior import fit_priors
from recrawl.model import GridBelief, Histories
from recrawl.model.belief import half_octaves
from recrawl.time import DAY

RATES = half_octaves()


def loss(weights, histories):
    first = histories.offsets[:-1]
    stays = GridBelief(RATES if weights.shape[1] == len(RATES) else None, weights).survival(histories.gaps[first])
    return -np.log(np.where(histories.changed[first], 1 - stays, stays)).mean()


def test_what_is_said_within_a_group_foretells_better_whatever_the_level(two_hosts):
    visits, host, said, _ = two_hosts(400, 1)
    to_come, host2, said2, _ = two_hosts(400, 2)
    histories, later = Histories.from_visits(visits), Histories.from_visits(to_come)
    plain = fit_priors(histories, (host,), rates=RATES)
    sharp = fit_sharpened(histories, (host,), said)
    again = fit_sharpened(histories, (host,), 1000.0 * said)
    row = sharp.priors.rows((host2,), 400)
    with_model = sharp.of(row, said2)
    assert sharp.priors.belief.rates == pytest.approx(RATES)
    assert loss(with_model, later) < loss(plain.belief.weights[row], later) - 0.02
    np.testing.assert_allclose(again.of(row, 1000.0 * said2), with_model, atol=1e-5)


def test_a_page_like_all_others_has_the_prior_of_its_group(two_hosts):
    visits, host, _, _ = two_hosts(200, 3)
    histories = Histories.from_visits(visits)
    sharp = fit_sharpened(histories, (host,), np.full(200, 1 / DAY))
    row = sharp.priors.rows((host,), 200)
    plain = fit_priors(histories, (host,))
    np.testing.assert_allclose(sharp.of(row, np.full(200, 1 / DAY)), plain.belief.weights[row], atol=1e-5)


@pytest.mark.parametrize("seed", [4, 5, 6])
def test_a_model_that_is_wrong_does_not_count(two_hosts, seed):
    visits, host, _, rate = two_hosts(400, seed)
    histories = Histories.from_visits(visits)
    rng = np.random.default_rng(seed)
    for said in (rng.lognormal(0.0, 1.5, 400) / DAY, 1.0 / rate):
        sharp = fit_sharpened(histories, (host,), said)
        row = sharp.priors.rows((host,), 400)
        assert sharp.power == 0.0
        np.testing.assert_array_equal(sharp.of(row, said), fit_priors(histories, (host,)).belief.weights[row])


def test_moving_keeps_the_whole_and_multiplies_the_rates(two_hosts):
    histories = Histories.from_visits(two_hosts(50, 7)[0])
    belief = grid_posterior.fit(
        histories, GridBelief.of(RATES, np.ones(len(RATES))), of=np.zeros(50, np.int64), jump=None
    )
    factor = np.random.default_rng(8).uniform(-1.0, 1.0, 50)
    there = GridBelief(RATES, moved(belief.weights, RATES, factor))
    np.testing.assert_allclose(there.weights.sum(axis=1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(there.quantile(0.5), belief.quantile(0.5) * np.exp(factor), rtol=0.3)
    at_the_end = moved(np.eye(len(RATES))[-1:], RATES, np.array([9.0]))
    assert at_the_end[0, -1] == 1.0
    assert moved(belief.weights[:0], RATES, np.empty(0)).shape == (0, len(RATES))
