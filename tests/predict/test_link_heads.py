"""Laws of numbers around a predicted mean."""

import numpy as np
import pytest
from scipy import stats

from recrawl_lab.learners.link_learners import CountHead, FittedHead, fit_head

MEAN = np.array([0.2, 1.0, 7.5])


@pytest.mark.parametrize("head", CountHead)
@pytest.mark.parametrize("number", [-1.0, 0.0, 2.0])
def test_every_law_sums_to_one_and_keeps_the_mean(head, number):
    law = FittedHead(head, number)
    count = np.arange(3000.0)
    for mean in MEAN:
        chance = np.exp(law.likelihood(np.full(3000, mean), count))
        assert chance.sum() == pytest.approx(1.0, abs=1e-9)
        assert chance @ count == pytest.approx(mean, rel=1e-6)


def test_the_laws_are_those_of_the_books():
    count = np.array([0.0, 3.0, 1.0])
    shape = np.exp(0.7)
    assert FittedHead(CountHead.POISSON, 0.0).likelihood(MEAN, count) == pytest.approx(
        stats.poisson(MEAN).logpmf(count)
    )
    found = FittedHead(CountHead.NEGATIVE_BINOMIAL, 0.7).likelihood(MEAN, count)
    assert found == pytest.approx(stats.nbinom(shape, shape / (shape + MEAN)).logpmf(count))
    asleep = 0.5 * (count == 0) + 0.5 * stats.poisson(2 * MEAN).pmf(count)
    assert FittedHead(CountHead.ZERO_INFLATED, 0.0).likelihood(MEAN, count) == pytest.approx(np.log(asleep))


def test_the_law_that_numbers_were_drawn_from_is_found():
    rng = np.random.default_rng(1)
    mean = rng.uniform(0.1, 4.0, 20_000)
    wide = rng.poisson(rng.gamma(0.5, mean / 0.5)).astype(float)
    sleepy = rng.poisson(mean / 0.7) * (rng.random(20_000) < 0.7).astype(float)
    assert fit_head(CountHead.NEGATIVE_BINOMIAL, mean, wide).number == pytest.approx(np.log(0.5), abs=0.1)
    assert fit_head(CountHead.ZERO_INFLATED, mean, sleepy).number == pytest.approx(np.log(0.3 / 0.7), abs=0.1)
    for counts, best in ((wide, CountHead.NEGATIVE_BINOMIAL), (sleepy, CountHead.ZERO_INFLATED)):
        told = {head: fit_head(head, mean, counts).likelihood(mean, counts).mean() for head in CountHead}
        assert max(told, key=told.__getitem__) is best


def test_a_mean_of_nothing_rules_nothing_out():
    for head in CountHead:
        law = fit_head(head, np.zeros(5), np.array([0.0, 0.0, 0.0, 0.0, 2.0]))
        assert np.isfinite(law.likelihood(np.zeros(2), np.array([0.0, 5.0]))).all()
