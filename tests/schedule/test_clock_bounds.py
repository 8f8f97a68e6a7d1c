"""The clocks of clusters that stop, resume and stop for years stay bounded, and so do the rates believed of pages.

The web of these tests made the clocks of an earlier version run away: factors fell to 1e-9, rates rose to 136,585
changes a day, and the seed, which breaks ties, moved freshness by 2 points.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from recrawl.app.compare.benchmark_runs import collections
from recrawl.estimate.operational.operational_factors import RANGE
from recrawl.schedule.learning.online_fit import OnlineFit
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.simulate.benchmark_field import BenchmarkField, field_of_all
from recrawl.simulate.policy_benchmark import BenchmarkRules, compete, entry
from recrawl.simulate.sampling import PageTruth
from recrawl.simulate.virtual_web import EventTimes
from recrawl.time import DAY

DAYS = 3000
STOPPED, RESUMED, ALONE = 0, 1, 2
"""Clusters: one that stopped after 400 days; one that stopped, resumed and stopped; a single page that stopped."""
LAST_CHANGE = 1500
"""Days after which none of these three changed."""


def a_web(scale: int = 1) -> BenchmarkField:
    """Three kinds of hot clusters that stop, and 60 slow pages that go on, all on one host; half come later.

    Clusters have ``scale`` times as many pages.
    """
    rng = np.random.default_rng(0)
    busy = {
        STOPPED: (20 * scale, [(0, 400)]),
        RESUMED: (20 * scale, [(0, 700), (LAST_CHANGE - 100, LAST_CHANGE)]),
        ALONE: (1, [(0, 900)]),
        3: (10 * scale, [(0, 1500)]),
    }
    rows, times, cluster, born = [], [], [], []

    def page(number: int, rate: float, spans: list[tuple[float, float]], latest: float) -> None:
        birth = rng.uniform(0, latest) if len(cluster) % 2 else -1.0
        for start, end in spans:
            first = max(birth, start)
            count = rng.poisson(rate * max(end - first, 0.0))
            rows.append(np.full(count, len(cluster)))
            times.append(np.sort(rng.uniform(first, max(end, first), count)) * DAY)
        cluster.append(number)
        born.append(birth * DAY)

    for number, (pages, spans) in busy.items():
        for _ in range(pages):
            page(number, 5.0, spans, spans[0][1] - 200.0)
    for place in range(60 * scale):
        page(4 + place // (20 * scale), 1 / rng.choice([20.0, 60.0, 200.0]), [(0, DAYS)], 0.8 * DAYS)
    changes = EventTimes.of(np.concatenate(rows), np.concatenate(times), len(cluster))
    truth = PageTruth(np.array(born), np.full(len(cluster), np.inf), changes, 0.0, DAYS * DAY)
    return BenchmarkField.of("stopping", truth, host=0, cluster=np.array(cluster))


@dataclass
class Run:
    """One contest, and what was seen of the policy on the way."""

    freshness: float = 0.0
    slowest: float = 1.0
    """Factor of any cluster in any bin, at any fit."""
    fastest: float = 1.0
    highest: float = 0.0
    """Rate believed of any page at any fit, changes a day."""
    steps: list[float] = field(default_factory=list)
    """By how much each review moved the expected changes of any page with 30 looks: the largest |Δ ln|."""
    last: np.ndarray = field(default_factory=lambda: np.empty(0))
    """Rates believed at the end, changes a day."""


def ordered(web: BenchmarkField, order: int) -> ValuedPolicy:
    """The policy, with another order of pages of which all that is known is the same."""
    policy = entry("valued-archive", web)
    policy._ties = order
    return policy


def held(web: BenchmarkField, seed: int, budget: float = 0.1) -> Run:
    """Hold a contest with so many visits a page a day; record clocks and beliefs at each fit and around reviews.

    The seed breaks the ties of the contest and orders pages that are alike in the policy.
    """
    run, policy = Run(), ordered(web, seed)
    learning = policy._learning
    review = OnlineFit._review.__get__(learning)

    def watched_review(until: float, known: int) -> None:
        observations = np.bincount(learning._log["row"][learning._log["folded"]], minlength=len(learning.beliefs))
        rows = np.flatnonzero(observations >= 30)
        before = foreseen(rows, until)
        review(until, known)
        if len(rows):
            run.steps.append(float(np.abs(np.log(foreseen(rows, until) / before)).max()))

    def foreseen(rows: np.ndarray, now: float) -> np.ndarray:
        passed = learning.clocks.elapsed(rows, np.full(len(rows), now), np.full(len(rows), now + 10 * DAY))
        return -np.log(learning.beliefs.of(rows).survival(passed))

    class Watched:
        def __getattr__(self, name: str):
            return getattr(policy, name)

        def fit(self, budget: float, now: float) -> None:
            policy.fit(budget, now)
            clocks = learning.clocks._tempo.clusters
            if clocks is not None:
                factor = clocks.factor()
                run.slowest, run.fastest = min(run.slowest, factor.min()), max(run.fastest, factor.max())
            run.highest = max(run.highest, float(learning.beliefs.of(slice(None)).quantile(0.5).max()) * DAY)

    learning._review = watched_review
    rules = BenchmarkRules(budget, fit_every=30 * DAY)
    run.freshness = compete(web, Watched(), rules, np.random.default_rng(seed)).tally.ratio("freshness")
    found = policy._last_visits.pages.id  # those that went before they could be found were never added
    run.last = np.full(len(web), np.nan)
    run.last[found] = policy.belief(found, web.truth.end).quantile(0.5) * DAY
    return run


@pytest.fixture(scope="module")
def web() -> BenchmarkField:
    return a_web()


@pytest.fixture(scope="module")
def runs(web) -> list[Run]:
    return [held(web, seed) for seed in (1, 2)]


@pytest.mark.slow
def test_factors_stay_bounded_whatever_clusters_do(runs):
    for run in runs:
        assert 1 / RANGE <= run.slowest < 0.5  # they do move, within their bounds
        assert 2.0 < run.fastest <= RANGE


@pytest.mark.slow
def test_no_rate_is_believed_that_daily_visits_could_not_tell(runs):
    """A page that changed at every daily visit may change at most a few times a gap, a gap be it ten times as short."""
    for run in runs:
        assert run.highest < 4.5 * RANGE


@pytest.mark.slow
def test_pages_that_stopped_years_ago_are_believed_slow_and_others_are_not(web, runs):
    lived = web.truth.changes.counts() / np.maximum(DAYS - np.maximum(web.truth.born / DAY, 0.0), 1.0)
    for run in runs:
        for cluster in (STOPPED, RESUMED, ALONE):
            assert (run.last[web.cluster == cluster] < 1 / 100).all()
        slow = np.flatnonzero((web.cluster > 3) & (web.truth.changes.counts() >= 10))
        assert np.median(np.abs(np.log(run.last[slow] / lived[slow]))) < np.log(1.5)


@pytest.mark.slow
def test_a_review_moves_no_belief_by_much(runs):
    for run in runs:
        assert len(run.steps) > 10
        assert max(run.steps) < np.log(5.0 * RANGE)  # whether pages or their cluster fell silent may be seen anew
        assert np.median(run.steps) < np.log(3.0)


def test_the_seed_of_a_contest_which_only_breaks_ties_changes_no_visit():
    """Pages of which all that is known is the same have an order of the policy's own."""
    web = a_web()
    web = replace(web, truth=replace(web.truth, end=400 * DAY))
    rules = BenchmarkRules(0.1, fit_every=30 * DAY)
    first, second = (
        compete(web, ordered(web, 0), rules, np.random.default_rng(seed), keep_visits=True).visits for seed in (1, 2)
    )
    assert len(first) > 2_000
    assert np.array_equal(first.page, second.page)
    other = compete(web, ordered(web, 1), rules, np.random.default_rng(1), keep_visits=True).visits
    assert not np.array_equal(first.page, other.page)  # there are such pages


@pytest.mark.slow
def test_another_order_of_pages_that_are_alike_makes_no_difference():
    """Beside chance, which is half as large with four times the pages: on 111 pages even visits differ by .0008."""
    web, rules = a_web(scale=4), BenchmarkRules(0.1, fit_every=30 * DAY)
    found = [
        compete(web, ordered(web, order), rules, np.random.default_rng(order)).tally.ratio("freshness")
        for order in range(5)
    ]
    assert max(found) - min(found) < 1e-3


@pytest.mark.big
@pytest.mark.slow
def test_the_seed_makes_no_difference_on_real_data_sources(data_folder):
    """Pooled as one collection: before, factors fell to 1e-6, rates rose to 2,990 a day, and freshness fell by .002."""
    web = field_of_all("data-sources", collections(data_folder / "data-sources"))
    found = [held(web, seed, budget=0.03) for seed in range(5)]
    assert max(run.freshness for run in found) - min(run.freshness for run in found) < 1e-3
    assert min(run.freshness for run in found) > 0.932
    assert all(run.slowest >= 1 / RANGE and run.highest < 4.5 * RANGE for run in found)
