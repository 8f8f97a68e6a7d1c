"""The schedulers of today's crawlers: their numbers, their bounds, what a change and no change do to an interval."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import ConfigError
from recrawl.model import Outcome, Pages, Verdict, Visits
from recrawl.schedule.policies.by_interval import ByInterval
from recrawl.schedule.policies.heritrix_policy import IMAGE_START, TEXT_START, heritrix
from recrawl.schedule.policies.nutch import nutch
from recrawl.schedule.policies.policy_registry import POLICIES, START_FROM_BUDGET
from recrawl.schedule.policies.stormcrawler import news_crawl, stormcrawler
from recrawl.time import DAY, HOUR, MINUTE

START = 1_750_000_000.0
PAGE = np.array([7])
BOUNDS = {
    "fix": (DAY, 180 * DAY),
    "dyn": (DAY, 180 * DAY),
    "window": (DAY, 180 * DAY),
    "state-1": (DAY, 180 * DAY),
    "state-2": (DAY, 180 * DAY),
    "week": (7 * DAY, 7 * DAY),
    "brute-force": (7 * DAY, 7 * DAY),
    "historic-classes": (DAY, 96 * DAY),
    "bayes-classes": (DAY, 96 * DAY),
    "nutch": (MINUTE, 365 * DAY),
    "stormcrawler": (HOUR, 14 * DAY),
    "news-crawl": (90 * MINUTE, 90 * DAY),
    "heritrix": (HOUR, 28 * DAY),
}
STEADY = sorted(BOUNDS.keys() - {"state-1", "state-2", "window", "nutch"})
"""A change never lengthens their interval and no change never shortens it; the others look back further."""


def seen(policy, *, at=START):
    policy.add(Pages.of(PAGE))
    policy.tell(Visits.of(PAGE, [at]))
    return policy


def observation(policy, at, *, changed=False, outcome=Outcome.FETCHED):
    verdict = Verdict.CHANGED if changed else Verdict.UNCHANGED
    policy.tell(Visits.of(PAGE, [at], verdict=verdict, outcome=outcome))
    return float(policy.intervals(PAGE)[0])


def intervals(policy, results):
    """Visit when due; the interval before each look, and after all."""
    now, found = START, [float(seen(policy).intervals(PAGE)[0])]
    for changed in results:
        now = float(policy.due(PAGE, now)[0])
        found.append(observation(policy, now, changed=changed))
    return found


observations = st.lists(st.booleans(), min_size=1, max_size=60)


@pytest.mark.parametrize("name", sorted(BOUNDS))
@given(results=observations)
def test_intervals_stay_within_the_bounds(name, results):
    found = intervals(POLICIES[name](), results)
    low, high = BOUNDS[name]
    assert min(found) >= low * (1 - 1e-9)
    assert max(found) <= high * (1 + 1e-9)


@pytest.mark.parametrize("name", STEADY)
@given(results=observations)
def test_a_change_never_lengthens_and_none_never_shortens(name, results):
    found = np.array(intervals(POLICIES[name](), results))
    steps = np.diff(found)
    changed = np.array(results)
    assert (steps[changed] <= 1e-6).all()
    assert (steps[~changed] >= -1e-6).all()


@given(results=observations)
def test_the_nominal_interval_of_nutch_obeys_too(results):
    policy, now = seen(nutch()), START
    before = 30 * DAY
    for changed in results:
        now = float(policy.due(PAGE, now)[0])
        observation(policy, now, changed=changed)
        nominal = float(policy.state(PAGE, "nominal")[0])
        assert nominal <= before if changed else nominal >= before
        before = nominal


@pytest.mark.parametrize("name", sorted(BOUNDS))
def test_always_and_never_changing_pages_end_at_the_bounds(name):
    low, high = BOUNDS[name]
    always, never = (intervals(POLICIES[name](), [changed] * 120)[-1] for changed in (True, False))
    assert always == pytest.approx(low, rel=0.02)
    if name != "nutch":  # it comes sooner than its interval says, to draw near the change
        assert never == pytest.approx(high, rel=1e-9)


def test_nutch_without_sync():
    policy = nutch(sync_delta_rate=0.0)
    assert intervals(policy, [True, True, False]) == pytest.approx([30 * DAY, 24 * DAY, 19.2 * DAY, 26.88 * DAY])


def test_nutch_draws_near_the_time_of_change():
    policy = seen(nutch())
    assert observation(policy, START + 30 * DAY) == pytest.approx((42 - 0.3 * 30) * DAY)
    # unchanged for 63 days, longer than 1.4 · 42: the interval is that time
    assert observation(policy, START + 63 * DAY) == pytest.approx((63 - 0.3 * 63) * DAY)
    assert observation(policy, START + 70 * DAY, changed=True) == pytest.approx(0.8 * 63 * DAY)
    assert observation(policy, START + 80 * DAY) == pytest.approx((1.4 * 0.8 * 63 - 0.3 * 10) * DAY)


def test_nutch_never_looks_back_however_long_a_page_is_unchanged():
    policy = seen(nutch())
    assert observation(policy, START + 5000 * DAY) == pytest.approx(0.7 * 365 * DAY)


def test_nutch_waits_half_as_long_again_for_a_page_that_is_gone():
    policy = seen(nutch())
    assert observation(policy, START + DAY, changed=True, outcome=Outcome.GONE) == pytest.approx(45 * DAY)
    gone_at_first = nutch()
    gone_at_first.add(Pages.of(PAGE))
    gone_at_first.tell(Visits.of(PAGE, [START], outcome=Outcome.GONE))
    assert gone_at_first.intervals(PAGE)[0] == pytest.approx(45 * DAY)
    for day, days in ((46, 67.5), (114, 81), (200, 81)):
        gone_at_first.tell(Visits.of(PAGE, [START + day * DAY], outcome=Outcome.GONE, verdict=Verdict.UNCHANGED))
        assert gone_at_first.intervals(PAGE)[0] == pytest.approx(days * DAY)


def test_stormcrawler_in_whole_minutes():
    minutes = [interval / MINUTE for interval in intervals(stormcrawler(), [True, True, False, True])]
    assert minutes == [1440, 750, 405, 607, 333]
    assert intervals(news_crawl(), [True, False])[1:] == [594 * MINUTE, 891 * MINUTE]  # 720 · .8 + 90 · .2


@pytest.mark.parametrize("outcome", [Outcome.UNREACHABLE, Outcome.SERVER_ERROR, Outcome.REFUSED])
def test_a_failure_makes_stormcrawler_forget(outcome):
    policy = seen(stormcrawler())
    assert observation(policy, START + DAY) == 1.5 * DAY
    due = policy.due(PAGE, START)
    policy.tell(Visits.of(PAGE, [START + 2 * DAY], outcome=outcome))
    np.testing.assert_array_equal(policy.due(PAGE, START), due)
    assert observation(policy, START + 3 * DAY) == DAY
    assert observation(policy, START + 4 * DAY) == 1.5 * DAY


@pytest.mark.parametrize(
    ("make", "outcome", "interval"),
    [
        (stormcrawler, Outcome.REDIRECTED, DAY),
        (stormcrawler, Outcome.GONE, np.inf),
        (news_crawl, Outcome.REDIRECTED, 14 * DAY),
        (news_crawl, Outcome.GONE, 60 * DAY),
    ],
)
def test_a_page_that_moved_or_went_waits_and_is_forgotten(make, outcome, interval):
    policy = seen(make())
    start = float(policy.intervals(PAGE)[0])
    observation(policy, START + DAY)
    assert observation(policy, START + 2 * DAY, changed=True, outcome=outcome) == interval
    assert observation(policy, START + 90 * DAY, changed=True) == start


def test_heritrix():
    assert intervals(heritrix(), [True, False, False]) == pytest.approx([DAY, DAY / 1.5, DAY, 1.5 * DAY])
    assert intervals(heritrix(start=TEXT_START), [False]) == pytest.approx([12 * HOUR, 18 * HOUR])
    assert intervals(heritrix(start=IMAGE_START), [True]) == pytest.approx([48 * HOUR, 32 * HOUR])


@pytest.mark.parametrize(
    "make",
    [
        lambda unit: nutch(shortest=MINUTE * unit, longest=365 * DAY * unit, start=30 * DAY * unit),
        lambda unit: heritrix(shortest=HOUR * unit, longest=28 * DAY * unit, start=DAY * unit),
    ],
)
@given(results=observations, unit=st.sampled_from([0.25, 1 / 60, 7.0]))
def test_the_unit_of_time_does_not_matter(make, results, unit):
    np.testing.assert_allclose(
        intervals(make(unit), results), unit * np.array(intervals(make(1.0), results)), rtol=1e-4
    )


@pytest.mark.parametrize("name", sorted(START_FROM_BUDGET))
def test_the_budget_sets_the_start_once(name):
    policy = POLICIES[name](start=None)
    pages = Pages.of(np.arange(20), cost=2.0)
    policy.fit(1.0 / DAY, START)  # nobody to share it
    policy.add(pages)
    policy.fit(0.0, START)  # nothing to share
    policy.fit(20 / DAY, START)
    np.testing.assert_allclose(policy.intervals(pages.id), 2 * DAY)
    policy.fit(100 / DAY, START)
    np.testing.assert_allclose(policy.intervals(pages.id), 2 * DAY)
    low, high = BOUNDS[name]
    for budget, bound in ((1e9, low), (1e-9, high)):
        rushed = POLICIES[name](start=None)
        rushed.add(pages)
        rushed.fit(budget, START)
        np.testing.assert_allclose(rushed.intervals(pages.id), bound)


@pytest.mark.parametrize("name", sorted(BOUNDS.keys() - {"state-1", "state-2"}))
def test_a_crowd_is_treated_page_by_page(name):
    """Many pages at once, with several looks each in one batch, are what each page alone is."""
    rng = np.random.default_rng(5)
    n, most = 25, 12
    counts = rng.integers(1, most, n)
    page = np.repeat(np.arange(n), counts)
    time = START + np.concatenate([np.cumsum(rng.exponential(3 * DAY, count)) for count in counts])
    verdict = rng.choice([Verdict.CHANGED, Verdict.UNCHANGED], len(page))
    crowd = POLICIES[name]()
    crowd.add(Pages.of(np.arange(n)))
    crowd.tell(Visits.of(page, time, verdict=verdict))
    for number in range(n):
        alone = POLICIES[name]()
        alone.add(Pages.of([number]))
        alone.tell(Visits.of(page, time, verdict=verdict).take(page == number))
        assert alone.intervals(np.array([number]))[0] == crowd.intervals(np.array([number]))[0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: nutch(increase=-0.1),
        lambda: nutch(decrease=1.0),
        lambda: nutch(sync_delta_rate=1.0),
        lambda: nutch(shortest=DAY, longest=HOUR),
        lambda: nutch(start=np.nan),
        lambda: stormcrawler(decrease=1.5),
        lambda: stormcrawler(start=MINUTE),
        lambda: heritrix(changed_factor=0.5),
        lambda: heritrix(shortest=0.0),
    ],
)
def test_impossible_settings_are_refused(make):
    with pytest.raises(ConfigError, match="not possible"):
        make()


def test_a_policy_made_of_a_rule_has_its_name():
    assert isinstance(heritrix(), ByInterval)
    assert heritrix().name == "heritrix"
    assert heritrix().price is None
