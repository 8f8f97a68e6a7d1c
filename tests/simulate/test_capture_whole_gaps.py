"""Closed forms for changes whole seconds apart, against the recursion they come from and against the thesis."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.assess.blur_coherence import average_blur
from recrawl.capture.single_visit import organ_pipes
from recrawl.simulate.sites import power_rates
from recrawl_lab.trials.capture_trial import expected_blur, page_coherence


def chances(rate, end):
    """u_k by the renewal equation: the chance of a change at each second, and of each gap."""
    seconds = np.arange(end + 1)
    gap = np.exp(-rate * seconds) - np.exp(-rate * (seconds + 1))
    gap[1] += gap[0]
    gap[0] = 0.0
    chance = np.zeros(end + 1)
    chance[0] = 1.0
    for second in range(1, end + 1):
        chance[second] = chance[:second] @ gap[second:0:-1]
    return chance, gap


@settings(max_examples=30, deadline=None)
@given(rate=st.floats(1e-4, 20.0), end=st.integers(1, 40), data=st.data())
def test_closed_forms_are_those_of_the_recursion(rate, end, data):
    visit = data.draw(st.integers(0, end))
    revisit = data.draw(st.integers(visit, end))
    chance, gap = chances(rate, end + 1)
    seconds = np.arange(end + 1)
    blur = chance[:-1] @ np.where(seconds <= visit, seconds, end - seconds) / end
    rates, visits, revisits = np.array([rate]), np.array([float(visit)]), np.array([float(revisit)])
    assert expected_blur(rates, visits, float(end))[0] == pytest.approx(blur, abs=1e-9)
    beyond = 1.0 - np.cumsum(gap)
    stays = sum(chance[k] * beyond[revisit - k] for k in range(visit + 1))
    assert page_coherence(rates, visits, revisits)[0] == pytest.approx(stays if revisit > visit else 1.0, abs=1e-9)


@pytest.mark.parametrize(
    ("skew", "poisson", "whole"),
    [(2.0, 0.411, 0.374), (1.5, 0.650, 0.619), (1.2, 1.222, 1.200), (1.0, 2.572, 2.564), (0.5, 59.63, 60.41)],
)
def test_expected_blur_of_organ_pipes_on_the_sites_of_the_thesis(skew, poisson, whole):
    """Exact expectations by an independent implementation; the published values are those of whole seconds."""
    rate = power_rates(10_000, skew=skew)
    visit = organ_pipes(rate).visit_times(0.0, 1.0)
    assert average_blur(rate, visit, 0.0, 9_999.0) == pytest.approx(poisson, rel=2e-3)
    assert expected_blur(rate, visit, 9_999.0).mean() == pytest.approx(whole, rel=2e-3)


def test_a_capture_of_one_instant_has_no_blur():
    assert expected_blur(np.array([3.0]), np.array([0.0]), 0.0).tolist() == [0.0]
