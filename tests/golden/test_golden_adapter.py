"""Arguments of golden functions that no case of our copy varies."""

import pytest


def test_oracle_mle_gives_a_rate_per_interval_of_length_delta(functions):
    """Eleven changes in 40 units: 0.275 a unit, twice that for intervals of two units (SHARC 6.2, reading 003.37)."""
    rate = functions["sharc.oracle_mle"]
    assert rate(times=list(range(11)), T=40.0, delta=2.0) == pytest.approx(0.55)
    assert rate(times=list(range(11)), T=40.0, delta=0.5) == pytest.approx(0.1375)


def test_gold_downloads_at_the_mean_interval_within_the_bounds(functions):
    """Four changes in 400 days: every 100 days, whatever the first interval; no change at all: the longest one."""
    simulate = functions["datamonitor.simulate"]
    known = simulate(events=[50.0, 150.0, 250.0, 350.0], T=400.0, strategy="gold", f0=1.0)
    assert known["intervals"] == pytest.approx([100.0] * 4)
    assert known["recall"] == known["precision"] == 1.0
    assert simulate(events=[], T=400.0, strategy="gold", f0=1.0)["intervals"] == pytest.approx([180.0] * 2)


def test_week_downloads_every_seven_days(functions):
    found = functions["datamonitor.simulate"](events=[10.0], T=30.0, strategy="week", f0=1.0)
    assert found["intervals"] == pytest.approx([7.0] * 4)
