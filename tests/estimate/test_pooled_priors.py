"""Two priors as one: between both, the one where the other has no say, and never certain of a mistake."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.estimate.pooled_priors import on_grid, pooled, pooled_gamma
from recrawl.model import GammaBelief, GridBelief
from recrawl.model.grid_belief import half_octaves
from recrawl.time import DAY

RATES = half_octaves()


def gammas(*pairs):
    return GammaBelief(*(np.array(column, dtype=float) for column in zip(*pairs, strict=True)))


def test_a_gamma_lies_on_the_grid_with_its_mean_and_spread():
    belief = gammas((2.0, 2.0 * 20 * DAY), (0.3, 0.3 * 5 * DAY))
    found = GridBelief(RATES, on_grid(belief, RATES))
    np.testing.assert_allclose(found.weights.sum(axis=1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(found.mean(), belief.mean(), rtol=0.05)
    np.testing.assert_allclose(found.survival(np.full(2, 9 * DAY)), belief.survival(np.full(2, 9 * DAY)), atol=0.01)


@settings(deadline=None)  # the first example may wait for machine code
@given(st.floats(0.1, 0.9), st.floats(0.1, 20.0), st.floats(0.1, 20.0))
def test_on_the_grid_and_as_gammas_it_is_the_same_law(share, a, other):
    one, two = gammas((a, a * 30 * DAY)), gammas((other, other * 10 * DAY))
    grid = pooled(on_grid(one, RATES).astype(float), on_grid(two, RATES).astype(float), share)
    both = pooled_gamma(one, two, share)
    low, high = sorted((1 / (30 * DAY), 1 / (10 * DAY)))
    assert low * 0.999 <= both.mean()[0] <= high * 1.001
    if min(a, other) > 2:  # cells are half an octave wide: a density that ends in one of them has no power there
        assert GridBelief(RATES, grid).mean()[0] == pytest.approx(both.mean()[0], rel=0.3)


def test_without_a_say_nothing_is_said():
    around, model = on_grid(gammas((1.0, 9 * DAY)), RATES), on_grid(gammas((4.0, 99 * DAY)), RATES)
    np.testing.assert_allclose(pooled(around, model, 0.0), around, atol=1e-6)
    assert pooled(around, model, 1.0) is model
    assert pooled(around[:0], model[:0]).shape == (0, len(RATES))


def test_no_rate_is_excluded_by_one_alone():
    around, model = np.zeros((1, 4)), np.zeros((1, 4))
    around[0, 0], model[0, 3] = 1.0, 1.0
    assert (pooled(around, model, 0.5) > 0).all()
