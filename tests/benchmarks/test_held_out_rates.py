"""Rates shown as of a past time hold in the year after: those of ``recrawl rates`` and those of the policy."""

import pytest
from held_out_rates import ALL_TIME, POLICY, RATES, TESTS, held_out, imported


def intervals_hold(source, folder, least):
    """Pages change as often as their 90 % intervals say; the plain rate of all time is no better as a number."""
    with imported(source, folder) as store:
        found = list(held_out(store))
    assert len(found) == 2
    for one in found:
        assert one.pages > 10
        assert min(one.covered[RATES], one.covered[POLICY]) > least, one
        assert one.error[RATES] <= one.error[ALL_TIME] + 0.01, one


@pytest.mark.slow
@pytest.mark.parametrize("name", ["recorded", "sites", "published"])
def test_intervals_hold_in_the_year_that_follows(name, tmp_path):
    intervals_hold(TESTS / name, tmp_path, 0.88)


@pytest.mark.big
@pytest.mark.slow
@pytest.mark.parametrize("name", ["data-sources", "terms", "scholarly"])
def test_intervals_hold_on_large_data_sets(name, tmp_path, data_folder):
    """In some of these years sources that had changed for years stopped, and pages were edited in bursts."""
    intervals_hold(data_folder / name, tmp_path, 0.75)
