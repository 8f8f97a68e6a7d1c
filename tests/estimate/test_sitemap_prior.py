"""SHARC Definition 6.1 in both readings, and the prior made of it."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.estimate import site_signals
from recrawl.model import GammaBelief

MINUTES = [1, 60, 1440, 10080, 43200, 525600]


def test_the_printed_formula():
    rates = site_signals.category_rates(MINUTES, 0.9)
    c = np.log(1 / 0.9)
    assert rates[0] == 1.0
    for i in range(1, 6):
        before, own = MINUTES[i - 1], MINUTES[i]
        assert rates[i] == pytest.approx((before + own) / (2 * before * own) * c)
    assert rates[6] == pytest.approx(c / (2 * 525600))


def test_the_corrected_reading_says_what_the_text_wants_and_is_capped():
    rates = site_signals.category_rates(MINUTES, 0.95, "corrected")
    c = np.log(1 / 0.05)
    assert rates[1] == 1.0  # (1 + 1/60)/2·c would be 1.52
    assert rates[2] == pytest.approx((1 / 60 + 1 / 1440) / 2 * c)
    assert (np.diff(rates) <= 0).all()
    assert -np.expm1(-rates[2] * 1440) > 0.95


@pytest.mark.parametrize("reading", ["literal", "corrected"])
def test_rates_per_second_follow_the_words(reading):
    rates = site_signals.rates(np.arange(9), reading)
    assert np.isnan(rates[0])  # unsaid
    assert np.isnan(rates[8])  # no such word
    assert rates[1] == pytest.approx(1 / 60)
    assert (np.diff(rates[1:8]) <= 0).all()
    assert (rates[1:8] > 0).all()
    np.testing.assert_allclose(rates[1:8] * 60, site_signals.category_rates(MINUTES, 0.95, reading), rtol=0.02)


def test_the_prior_has_the_claimed_mean_and_else_the_other():
    other = GammaBelief(np.full(3, 2.0), np.full(3, 5.0))
    prior = site_signals.prior(np.array([0, 3, 7]), other, "corrected", strength=0.5)
    assert prior.mean()[0] == pytest.approx(0.4)
    assert prior.a.tolist() == [2.0, 0.5, 0.5]
    np.testing.assert_allclose(prior.mean()[1:], site_signals.rates(np.array([3, 7]), "corrected"))


@pytest.mark.parametrize(("intervals", "tau"), [([], 0.5), ([2, 1], 0.5), ([0, 1], 0.5), ([1, 2], 1.0), ([1, 2], 0.0)])
def test_what_is_no_set_of_categories_is_refused(intervals, tau):
    with pytest.raises(ValueError, match="must be positive and ascend"):
        site_signals.category_rates(intervals, tau)
