"""A crawl of minutes learns within minutes, and what it knows depends on its looks alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.model import Pages, Verdict, Visits
from recrawl.schedule.learning.online_fit import LearningPeriods
from recrawl.schedule.objectives import CapturedChanges
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.time import DAY

NOON = 20_000.5 * DAY
MINUTES = 5
FAST, SLOW = 1 / 10.0, 1 / 300.0
PAGES = Pages.of(np.arange(60), discovered=NOON)
RATE = np.where(PAGES.id % 3 == 0, FAST, SLOW)


def observations(seed=1):
    """Every page about every 12 s for five minutes around noon, by time."""
    rng = np.random.default_rng(seed)
    time = NOON + np.cumsum(rng.uniform(8, 16, (len(PAGES), MINUTES * 5)), axis=1)
    gap = np.diff(time, axis=1, prepend=NOON)
    changed = rng.random(time.shape) < -np.expm1(-gap * RATE[:, None])
    verdict = np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED)
    verdict[:, 0] = Verdict.UNKNOWN
    told = Visits.of(np.repeat(PAGES.id, time.shape[1]), time.ravel(), verdict=verdict.ravel())
    return told.take(np.argsort(told.time))


def policy_for(visits, how=ValuedPolicy):
    policy = how(CapturedChanges(), shortest_interval=1.0)
    policy.add(PAGES)
    policy.tell(visits)
    return policy


@pytest.mark.parametrize(("belief", "off"), [("grid", 0.3), ("gamma", 0.6)])
def test_rates_of_seconds_are_learned_before_the_day_is_over(belief, off):
    visits = observations()
    now = float(visits.time.max())
    policy = ValuedPolicy(CapturedChanges(), shortest_interval=1.0, belief=belief)
    policy.add(PAGES)
    policy.tell(visits)
    rate = policy.belief(PAGES.id, now).mean()
    fast = RATE == FAST
    assert rate[fast].mean() == pytest.approx(FAST, rel=off)
    assert rate[~fast].mean() == pytest.approx(SLOW, rel=off)
    later = policy.changed(PAGES.id, now + 20)
    assert later[fast].mean() > 0.8
    assert later[~fast].mean() < 0.2


def test_a_page_nobody_looked_at_twice_is_taken_for_one_of_its_kind():
    visits = observations()
    now = float(visits.time.max())
    policy = policy_for(visits)
    policy.add(Pages.of([1000], discovered=now))
    assert policy.belief(np.array([1000]), now).mean()[0] == pytest.approx(RATE.mean(), rel=0.5)


def test_questions_and_batches_in_between_do_not_matter():
    visits = observations()
    now = float(visits.time.max())
    whole = policy_for(visits)
    asked = policy_for(visits.take(np.arange(0)))
    for start in range(0, len(visits), 97):
        some = visits.take(np.arange(start, min(start + 97, len(visits))))
        asked.tell(some)
        asked.fit(1.0, float(some.time.max()))
    shuffled = policy_for(visits.take(np.random.default_rng(3).permutation(len(visits))))
    for policy in (whole, asked, shuffled):
        policy.fit(1.0, now)
    expected = whole.due(PAGES.id, now)
    np.testing.assert_allclose(asked.due(PAGES.id, now), expected, rtol=1e-12)
    np.testing.assert_allclose(shuffled.due(PAGES.id, now), expected, rtol=1e-12)


def test_an_earlier_look_told_late_gives_what_it_would_have_given_in_time():
    visits = observations()
    now = float(visits.time.max())
    whole, late = policy_for(visits), policy_for(visits.take(visits.page % 2 == 0))
    late.fit(1.0, now)
    late.tell(visits.take(visits.page % 2 == 1))
    for policy in (whole, late):
        policy.fit(1.0, now)
    np.testing.assert_allclose(late.due(PAGES.id, now), whole.due(PAGES.id, now), rtol=1e-12)


TIMES = st.lists(st.floats(NOON - DAY, NOON + 3 * DAY), min_size=1, max_size=30)


@given(TIMES, st.floats(1.0, 2 * DAY))
def test_periods_end_after_each_time_and_at_midnight_at_the_latest(times, gap):
    periods = LearningPeriods()
    periods.begin(start=np.array([NOON]), end=np.array([NOON + gap]))
    time = np.sort(times)
    ends = periods.ends(time)
    assert (ends > time).all()
    assert (ends <= (np.floor(time / DAY) + 1) * DAY).all()
    assert (np.diff(ends) >= 0).all()
    old = time >= NOON + DAY
    np.testing.assert_array_equal(ends[old], (np.floor(time[old] / DAY) + 1) * DAY)


@given(st.permutations(range(6)), st.integers(1, 5))
def test_periods_do_not_depend_on_the_order_in_which_looks_are_told(order, cut):
    start = NOON + np.array([0.0, 3, 7, 1, 20, 2])
    end = NOON + np.array([30.0, 9, 9, 80, 21, 9])
    whole, parts = LearningPeriods(), LearningPeriods()
    whole.begin(start=start, end=end)
    for part in (order[:cut], order[cut:]):
        parts.begin(start=start[list(part)], end=end[list(part)])
    time = NOON + np.geomspace(1, DAY, 50)
    np.testing.assert_array_equal(whole.ends(time), parts.ends(time))
