"""Changes whose time is known: complete logs, and dates that sites give, as far as they can be trusted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.estimate import site_signals
from recrawl.estimate.posterior import posterior_estimators
from recrawl.estimate.site_signals import SourceStatements, SourceTrust
from recrawl.model import Histories, Visits
from recrawl.time import DAY

START = 1.6e9


def site(rng, pages=200, observations=20, law="honest"):
    """A host of Poisson pages, looked at now and then: histories, statements by the law, and true rates."""
    rate = np.exp(rng.normal(np.log(1 / 20), 1.0, pages)) / DAY
    gaps = np.exp(rng.normal(np.log(10), 1.0, (pages, observations))) * DAY
    time = START + np.concatenate([np.zeros((pages, 1)), np.cumsum(gaps, axis=1)], axis=1)
    changed, latest = np.zeros(time.shape, bool), np.empty(time.shape)
    latest[:, 0] = START - rng.exponential(1 / rate)
    for k in range(1, observations + 1):
        back = rng.exponential(1 / rate)
        changed[:, k] = back < gaps[:, k - 1]
        latest[:, k] = np.where(changed[:, k], time[:, k] - back, latest[:, k - 1])
    said = {
        "honest": latest,
        "now": time,
        "stuck": np.full_like(time, START - 100 * DAY),
        "restless": time - rng.random(time.shape) * 2 * DAY,
        "ahead": latest + 400 * DAY,
        "epoch": np.zeros_like(time),
    }[law]
    page = np.repeat(np.arange(pages), observations + 1)
    visits = Visits.of(page, time.ravel(), verdict=np.where(changed, 2, 1).ravel())
    return Histories.from_visits(visits), SourceStatements(page, time.ravel(), said.ravel()), rate


def test_an_exact_rate_is_changes_over_time_and_nothing_where_nothing_was_observed():
    found = site_signals.rate([2, 0, 0], [20.0, 8.0, 0.0])
    np.testing.assert_array_equal(found, [0.1, 0.0, np.nan])


# -- true and false statements -----------------------------------------------------------------


def checked_by_hand(times, changed, said, claimed):
    """(gap, tested, true, about_change) of one statement about one page; look k closes the gap of changed[k]."""
    if claimed > said + site_signals.INSTANT:
        return None, True, False, True
    claimed = min(claimed, said)
    place = next((k for k, time in enumerate(times) if time >= claimed), None)
    if place is None:
        return site_signals.AFTER_ALL_OBSERVATIONS, False, True, None
    last = max([place] + [k for k, time in enumerate(times) if time <= said])
    fine = (place == 0 or changed[place]) and not any(changed[place + 1 : last + 1])
    gap = place - 1 if place > 0 else site_signals.BEFORE_ALL_OBSERVATIONS
    return gap, last > 0, fine, changed[last] if last > 0 else None


day = st.integers(1, 40).map(lambda d: d * DAY)


@given(
    st.lists(day, min_size=1, max_size=6, unique=True).map(sorted),
    st.lists(st.booleans(), min_size=6, max_size=6),
    st.lists(st.tuples(day, day), min_size=1, max_size=6),
)
def test_statements_are_judged_as_by_hand(times, flags, said):
    verdict = [0] + [2 if flag else 1 for flag in flags[1 : len(times)]]
    # a page before and one behind, so that rows do not begin at 0
    others = Visits.of([1, 1, 9, 9], [0.0, 5.0, 0.0, 7.0], verdict=[0, 2, 0, 2])
    own = Visits.of(np.full(len(times), 5), times, verdict=verdict)
    histories = Histories.from_visits(Visits.concatenate([others, own]))
    statements = SourceStatements(np.full(len(said), 5), *(np.array(column) for column in zip(*said, strict=True)))
    found = site_signals.check(histories, statements)
    for i, (time, claimed) in enumerate(said):
        gap, tested, fine, about = checked_by_hand(times, [False, *flags[1 : len(times)]], time, claimed)
        assert found.tested[i] == tested
        assert found.true[i] == fine
        if gap is not None:
            assert found.gap[i] == (gap if gap < 0 else gap + 1)  # one gap of page 1 comes first
        if about is not None:
            assert found.about_change[i] == about


@pytest.mark.parametrize(
    ("law", "heard"),
    [("honest", True), ("now", False), ("stuck", False), ("restless", False), ("ahead", False), ("epoch", False)],
)
def test_only_the_honest_host_is_heard(law, heard):
    histories, statements, _ = site(np.random.default_rng(5), law=law)
    counted = site_signals.count(site_signals.check(histories, statements), np.zeros(len(histories), dtype=np.int64))
    assert (counted.of(np.zeros(1, dtype=np.int64))[0] > 0.9) == heard
    if not heard:
        assert counted.of(np.zeros(1, dtype=np.int64))[0] == 0.0


def test_hosts_are_judged_apart_and_periods_add_up():
    rng = np.random.default_rng(6)
    histories, honest, _ = site(rng)
    lying = honest.changed_at.copy()
    lying[honest.page >= 100] = honest.time[honest.page >= 100]
    host = np.where(np.arange(200) < 100, 7, 3)
    checked = site_signals.check(histories, SourceStatements(honest.page, honest.time, lying))
    counted = site_signals.count(checked, host)
    assert counted.group.tolist() == [3, 7]
    assert counted.weights()[0] == 0.0
    assert counted.weights()[1] > 0.9
    assert counted.of(np.array([7, 99, 3])).tolist() == [counted.weights()[1], 0.0, 0.0]
    halves = [
        site_signals.count(site_signals.CheckedStatements(*(column[part] for column in checked)), host)
        for part in (slice(0, 2000), slice(2000, None))
    ]
    together = halves[0].plus(halves[1])
    for name in ("group", "moved", "kept", "instant"):
        np.testing.assert_array_equal(getattr(together, name), getattr(counted, name))


def test_a_host_that_said_little_is_not_heard_yet():
    assert SourceTrust(np.array([1]), np.array([[1, 0]]), np.array([[50, 0]]), np.array([[51, 0]])).weights()[0] == 0.0
    nobody = site_signals.count(
        site_signals.check(Histories.concatenate([]), SourceStatements(*(np.empty(0),) * 3)), np.empty(0, np.int64)
    )
    assert nobody.of(np.array([4])).tolist() == [0.0]


# -- dating ------------------------------------------------------------------------------------

HEARD = np.ones(1)


def dated(histories, page, time, changed_at, weight=HEARD):
    """(gap, days from the change to the look) of what statements date, in days."""
    said = SourceStatements(np.asarray(page), np.asarray(time) * DAY, np.asarray(changed_at) * DAY)
    found = posterior_estimators.dates(histories, said, weight)
    return list(zip(found.gap.tolist(), (found.age / DAY).tolist(), strict=True))


def history(days, verdict):
    return Histories.from_visits(Visits.of([1] * len(days), np.array(days) * DAY, verdict=verdict))


def test_changes_are_dated_by_hand():
    #   first look at 100 days (changed 4 before), changed at 107 (look 110), quiet, changed at 125 (look 140)
    days = [100.0, 110.0, 120.0, 140.0]
    found = dated(history(days, [0, 2, 1, 2]), [1] * 4, days, [96.0, 107.0, 107.0, 125.0])
    assert found == [(0, 3.0), (2, 15.0), (site_signals.BEFORE_ALL_OBSERVATIONS, 4.0)]


def test_who_is_not_heard_dates_nothing():
    assert dated(history([100.0, 110.0], [0, 2]), [1], [110.0], [107.0], weight=np.zeros(1)) == []


def test_a_sitemap_between_two_looks_dates_up_to_when_it_was_fetched():
    assert dated(history([100.0, 140.0], [0, 2]), [1], [130.0], [121.0]) == [(0, 9.0)]


def test_of_several_dates_the_latest_change_counts():
    assert dated(history([100.0, 140.0], [0, 2]), [1] * 3, [130.0, 140.0, 140.0], [121.0, 137.0, 122.0]) == [(0, 3.0)]


def test_what_the_looks_contradict_dates_nothing():
    assert dated(history([100.0, 110.0, 120.0], [0, 1, 2]), [1, 1], [110.0, 120.0], [105.0, 99.0]) == []


def test_strange_statements_are_no_statements():
    histories = Histories.from_visits(Visits.of([1, 1, 4], [1e9, 2e9, 1e9], verdict=[0, 2, 0]))
    page = np.array([1, 1, 1, 77, 4])
    said = SourceStatements(
        page, np.array([2e9, np.nan, 2e9, 2e9, 1e9]), np.array([-np.inf, 1.5e9, np.nan, 1.5e9, 0.9e9])
    )
    found = posterior_estimators.dates(histories, said, np.ones(2))
    assert (found.row.tolist(), found.gap.tolist(), found.age.tolist()) == (
        [1],
        [site_signals.BEFORE_ALL_OBSERVATIONS],
        [1e8],
    )
    assert len(posterior_estimators.dates(Histories.concatenate([]), said, np.empty(0)).row) == 0
