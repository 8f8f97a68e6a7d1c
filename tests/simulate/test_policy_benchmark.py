"""Contests: the budget is kept, the score is exact, and no policy sees what it has not visited."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.app.compare.benchmark_runs import collections
from recrawl.assess.truth_scores import PageLifetimes, assess_changes, freshness
from recrawl.model import Verdict
from recrawl.model.arrays import offsets_of
from recrawl.schedule.policies.fixed_interval import FixedInterval, Uniform
from recrawl.schedule.policies.policy_registry import ORACLES
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.simulate.benchmark_field import BenchmarkField, field_of, field_of_all
from recrawl.simulate.policy_benchmark import METRICS, NAMES, SAME_AT_A_BUDGET, BenchmarkRules, compete, entry
from recrawl.simulate.sampling import PageTruth
from recrawl.simulate.virtual_web import EventTimes, PoissonProcess
from recrawl.time import DAY

RECORDED = Path(__file__).parents[1] / "data" / "recorded"


def field(seed=3, *, pages=60, days=120, hosts=4):
    """Pages that come and go, with log-normal rates."""
    rng = np.random.default_rng(seed)
    born = np.where(rng.random(pages) < 0.5, 0.0, rng.uniform(0, days * DAY, pages))
    died = np.where(rng.random(pages) < 0.7, np.inf, born + rng.uniform(0.1, days, pages) * DAY)
    rate = np.exp(rng.normal(np.log(0.1), 1.5, pages)) / DAY
    changes = PoissonProcess().times(rate, 0.0, days * DAY, rng)
    row, when = changes.row_of_event(), changes.times
    changes = changes.where((when > born[row]) & (when < died[row]))
    truth = PageTruth(born, died, changes, 0.0, days * DAY)
    host = rng.integers(0, hosts, pages)
    weight = rng.choice([0.5, 1.0, 4.0], pages)
    made = BenchmarkField.of("made up", truth, host=host, cluster=host, importance=weight)
    return replace(made, links=rng.poisson(1.0, len(made.truth.changes.times)).astype(np.float64))


RULES = BenchmarkRules(0.2)


def run(where, policy, rules=RULES, seed=1):
    return compete(where, policy, rules, np.random.default_rng(seed), keep_visits=True)


class Careless:
    """Wants every page equally little: the draw decides."""

    name, price = "careless", None

    def __init__(self, want=0.0):
        self.want, self.pages = want, 0

    def __len__(self):
        return self.pages

    def add(self, pages):
        self.pages += len(pages)

    def tell(self, visits):
        pass

    def fit(self, budget, now):
        pass

    def due(self, page, now):
        return np.full(len(page), now)

    def urgency(self, page, now):
        return np.full(len(page), self.want)


# -- the score -----------------------------------------------------------------------------------


def test_a_score_worked_out_by_hand():
    """Two pages, visited every second day; the first changes at 2.5 and 2.75, the second never."""
    changes = EventTimes.of([0, 0], [2.5 * DAY, 2.75 * DAY], rows=2)
    where = BenchmarkField.of("two", PageTruth(np.zeros(2), np.full(2, np.inf), changes, 0.0, 5 * DAY))
    where = replace(where, links=np.array([3.0, 4.0]))
    tally = run(where, Uniform(), BenchmarkRules(1.0, tick=2 * DAY, scored_from=0.0)).tally
    # Found and first visited at day 2, visited again at day 4.
    assert tally.watched.tolist() == [3 * DAY, 3 * DAY]
    assert tally.fresh.tolist() == [1.5 * DAY, 3 * DAY]
    assert tally.aged.tolist() == [1.5**2 / 2 * DAY**2, 0.0]
    assert tally.changes.tolist() == [2, 0]
    assert (tally.caught.tolist(), tally.covered.tolist()) == ([1, 0], [2, 0])
    assert tally.waited.tolist() == [2.75 * DAY, 0.0]
    assert tally.missed.tolist() == [2.75 * DAY, 0.0]
    assert tally.harmonic.tolist() == [(1.5 + 1.25 / 2) * DAY, 0.0]
    assert (tally.links.tolist(), tally.links_waited.tolist()) == ([7.0, 0.0], [(3 * 1.5 + 4 * 1.25) * DAY, 0.0])
    assert tally.ratio("freshness") == pytest.approx(4.5 / 6)
    assert tally.ratio("recall") == pytest.approx(0.5)
    assert tally.ratio("delay") == pytest.approx(1.375)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    budget=st.sampled_from([0.02, 0.3, 1.5]),
    scored_from=st.sampled_from([0.0, 0.25, 0.6]),
    tick=st.sampled_from([DAY / 2, DAY, 3 * DAY]),
)
def test_scores_are_those_of_the_collection_measures(seed, budget, scored_from, tick):
    """Counted while visits happen, and computed afterwards from the log of visits, by other code."""
    where = field(seed)
    rules = BenchmarkRules(budget, tick=tick, scored_from=scored_from)
    result = run(where, Uniform(), rules)
    tally, visits, truth = result.tally, result.visits, where.truth
    start = scored_from * truth.end
    first = np.full(len(where), np.inf)
    np.minimum.at(first, visits.page, visits.time)
    seen = np.flatnonzero(np.isfinite(first))
    row, when = truth.changes.row_of_event(), truth.changes.times
    known = when > first[row]
    place = np.full(len(where), -1)
    place[seen] = np.arange(len(seen))
    offsets = offsets_of(place[row[known]], len(seen))
    lifetimes = PageLifetimes(seen, offsets, when[known], first[seen], truth.died[seen])
    expected = freshness(lifetimes, visits, np.array([start, truth.end]), where.importance[seen])
    if np.isfinite(expected.mean_fresh):
        assert tally.ratio("freshness") == pytest.approx(expected.mean_fresh, abs=1e-9)
        assert tally.ratio("age") == pytest.approx(expected.mean_age / DAY, abs=1e-6)
    report = assess_changes(lifetimes, visits, start, truth.end)
    assert tally.changes.sum() == report.total
    assert tally.caught.sum() == report.true_detections == report.detections
    assert tally.covered.sum() == report.alone + report.merged
    assert tally.visits.sum() == report.observations
    assert (tally.visits - tally.caught).sum() == report.wasted
    if tally.covered.sum():
        assert tally.waited.sum() / tally.covered.sum() == pytest.approx(report.mean_delay, abs=1e-3)
    assert tally.choices[:, :2].sum() == tally.visits.sum()
    assert tally.choices[:, 0].sum() == tally.caught.sum()


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), budget=st.sampled_from([0.02, 0.3]), scored_from=st.sampled_from([0.0, 0.25]))
def test_what_copies_lack_is_what_a_sample_of_moments_says(seed, budget, scored_from):
    where = field(seed, pages=12, days=40)
    result = run(where, Uniform(), BenchmarkRules(budget, scored_from=scored_from))
    tally, visits, changes = result.tally, result.visits, where.truth.changes
    for page in range(len(where)):
        observations = visits.time[visits.page == page]
        end = min(where.truth.died[page], where.truth.end)
        times, links = (
            column[changes.offsets[page] : changes.offsets[page + 1]] for column in (changes.times, where.links)
        )
        missed = harmonic = waited = found = 0.0
        begin = scored_from * where.truth.end
        for observation, until in pairwise([*observations, end]):
            lacking = times[(times > observation) & (times <= until)]
            spans = until - np.maximum(lacking, begin)
            missed += np.maximum(spans, 0.0).sum()
            harmonic += (np.maximum(spans, 0.0) / np.arange(1, len(lacking) + 1)).sum()
            new = (times > observation) & (times <= until) & (times >= begin)
            waited += (links[new] * (until - times[new])).sum()
            found += links[new].sum()
        assert tally.missed[page] == pytest.approx(missed, abs=1e-3)
        assert tally.harmonic[page] == pytest.approx(harmonic, abs=1e-3)
        assert tally.links_waited[page] == pytest.approx(waited, abs=1e-3)
        assert tally.links[page] == found


def test_who_ranks_pages_by_their_next_change_ranks_them_perfectly():
    """Every page changes once, after all rankings; the policy wants those first that change first."""
    changes = EventTimes.of(np.arange(30), (70.0 + np.arange(30) / 10) * DAY, rows=30)
    where = BenchmarkField.of("once", PageTruth(np.zeros(30), np.full(30, np.inf), changes, 0.0, 75 * DAY))

    class Knowing(Careless):
        def urgency(self, page, now):
            return 1.0 / (1.0 + page)

    knowing, careless = (
        run(where, policy, BenchmarkRules(0.1, scored_from=0.0)).tally for policy in (Knowing(), Careless())
    )
    assert knowing.rankings.tolist() == [1.0] * 3
    assert 0.2 < careless.precision_at_k() < 0.9
    assert careless.summary()["weighted_p_at_k"] == careless.precision_at_k()
    assert np.isnan(run(where, Careless(), BenchmarkRules(1.0)).tally.precision_at_k())


def test_choices_count_every_page_that_could_be_chosen():
    where = field()
    tally = run(where, Uniform(), BenchmarkRules(1.0, scored_from=0.0)).tally
    assert (tally.choices >= 0).all()
    micro, macro = tally.micro(), tally.macro()
    assert micro.precision == pytest.approx(tally.caught.sum() / tally.visits.sum())
    assert 0 < macro.recall <= 1
    assert tally.summary()["macro_recall"] == macro.recall
    assert METRICS.keys() < tally.summary().keys()


def test_a_page_that_is_visited_at_every_tick_is_stale_for_less_than_a_tick():
    where = field()
    tally = run(where, Uniform(), BenchmarkRules(1.0)).tally
    assert tally.ratio("age") < 1.0
    assert tally.ratio("delay") <= 1.0
    lazy = run(where, Uniform(), BenchmarkRules(0.0)).tally
    assert lazy.visits.sum() == 0
    assert np.isnan(lazy.ratio("precision"))
    assert lazy.ratio("freshness") < tally.ratio("freshness")


# -- the rules -----------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [0.013, 0.2, 1.0])
def test_the_budget_is_spent_to_the_last_whole_visit(budget):
    where = field()
    visits = run(where, Uniform(), BenchmarkRules(budget)).visits
    again = visits.take(visits.verdict != Verdict.UNKNOWN)
    owed = 0.0
    for tick in np.arange(0, where.truth.end + 1, DAY):
        there = (where.truth.born + DAY / 4 <= tick) & (where.truth.died > tick)
        before = there & (where.truth.born + DAY / 4 <= tick - DAY)
        owed += budget * there.sum()
        assert (again.time == tick).sum() == min(int(owed + 1e-9), before.sum())
        owed -= int(owed + 1e-9)


def test_pages_are_first_visited_at_the_first_tick_a_quarter_day_after_birth_and_never_after_death():
    where = field()
    truth, visits = where.truth, run(where, Uniform()).visits
    first = np.full(len(where), np.inf)
    np.minimum.at(first, visits.page, visits.time)
    expected = np.ceil((truth.born + DAY / 4) / DAY) * DAY
    missed = (expected > truth.end) | (truth.died <= expected)
    assert first.tolist() == np.where(missed, np.inf, expected).tolist()
    assert (visits.time < truth.died[visits.page]).all()


def test_no_host_gets_more_than_it_may():
    where = field(pages=200, hosts=3)
    free = run(where, Uniform(), BenchmarkRules(0.3)).visits
    visits = run(where, Uniform(), BenchmarkRules(0.3, per_host=2)).visits
    again = visits.take(visits.verdict != Verdict.UNKNOWN)
    _, count = np.unique(np.stack([where.host[again.page], again.time]), axis=1, return_counts=True)
    assert count.max() == 2
    assert len(visits) < len(free)


def test_those_that_want_a_visit_most_get_it_also_under_a_host_limit():
    """With one host the limit is just a smaller quota."""
    where = field(hosts=1)
    once = run(where, Uniform(), BenchmarkRules(5.0, per_host=1)).visits
    assert len(once.page[once.verdict != Verdict.UNKNOWN]) > 100
    again = once.take(once.verdict != Verdict.UNKNOWN)
    _, per_tick = np.unique(again.time, return_counts=True)
    assert per_tick.max() == 1


@pytest.mark.parametrize("want", [0.0, 1e-9, 3.0, np.inf])
def test_ties_are_broken_anew_at_every_tick(want):
    """Else a policy that wants many pages equally would visit the same ones for ever."""
    where = BenchmarkField.of(
        "equal", PageTruth(np.zeros(50), np.full(50, np.inf), EventTimes.of([], [], rows=50), 0.0, 400 * DAY)
    )
    visits = run(where, Careless(want), BenchmarkRules(0.1)).visits
    count = np.bincount(visits.page, minlength=50)
    assert count.min() >= 20
    assert count.max() <= 65


# -- no peeking ----------------------------------------------------------------------------------


def _other_future(where, moment, seed):
    """The same field until ``moment``; afterwards other changes, births and deaths."""
    rng = np.random.default_rng(seed)
    truth = where.truth
    early = truth.changes.where(truth.changes.times <= moment)
    rate = rng.exponential(0.5, len(where)) / DAY
    later = PoissonProcess().times(rate, moment + 1.0, truth.end, rng)
    died = np.where(truth.died <= moment, truth.died, rng.uniform(moment + 1.0, 2 * truth.end, len(where)))
    born = truth.born.copy()
    unborn = born > moment
    born[unborn] = np.sort(rng.uniform(moment + 1.0, truth.end, int(unborn.sum())))
    row = np.concatenate([early.row_of_event(), later.row_of_event()])
    when = np.concatenate([early.times, later.times])
    kept = (when > born[row]) & (when < died[row])
    changes = EventTimes.of(row[kept], when[kept], len(where))
    return replace(where, truth=PageTruth(born, died, changes, truth.start, truth.end), links=np.empty(0))


def _chosen_until(moment, name, rules):
    """Visits until ``moment`` in two worlds that are the same until then, and whether they differ afterwards."""
    where = field(days=40)
    worlds = (where, _other_future(where, moment, seed=9))
    mine, theirs = (run(one, entry(name, one), rules).visits.columns() for one in worlds)
    apart = not np.array_equal(mine["page"], theirs["page"])
    until = [np.asarray(columns["time"] <= moment) for columns in (mine, theirs)]
    before = [{name: of[name][rows] for name in of} for of, rows in zip((mine, theirs), until, strict=True)]
    return *before, apart


@pytest.mark.parametrize(
    ("name", "per_host"),
    [*((name, None) for name in NAMES if name not in ORACLES), ("uniform", 3), ("valued-changes", 3)],
)
def test_choices_do_not_depend_on_the_future(name, per_host):
    mine, theirs, apart = _chosen_until(25 * DAY, name, BenchmarkRules(0.2, tick=2 * DAY, per_host=per_host))
    assert apart
    assert len(mine["page"]) > 100
    for column in mine:
        assert np.array_equal(mine[column], theirs[column]), column


@pytest.mark.parametrize("name", ORACLES)
def test_choices_of_an_oracle_do_depend_on_the_future(name):
    mine, theirs, _ = _chosen_until(25 * DAY, name, RULES)
    assert not np.array_equal(mine["page"], theirs["page"])


@pytest.mark.parametrize("pages", [1, 10, 59])
def test_some_pages_are_taken_even_where_clusters_are_large(pages):
    where = field(hosts=1)
    few = where.at_most(pages)
    assert len(few) == pages
    assert few.truth.born[-1] == where.truth.born[-1] or pages == 1
    by_four = field(hosts=4).at_most(30)
    assert 0 < len(by_four) < 60
    assert len(where.at_most(60)) == 60


def test_runs_are_repeatable_and_policies_of_intervals_run_too():
    where = field()
    first, second = (run(where, FixedInterval(7 * DAY)).visits for _ in range(2))
    assert all(np.array_equal(first.columns()[name], second.columns()[name]) for name in first.columns())


# -- intervals and metrics -----------------------------------------------------------------------


@pytest.mark.slow
def test_differences_are_judged_in_pairs():
    where = field(pages=300, hosts=30)
    uniform, ours = (
        run(where, policy, BenchmarkRules(0.1, tick=4 * DAY)).tally for policy in (Uniform(), ValuedPolicy())
    )
    rng = np.random.default_rng(1)
    alone = ours.interval("freshness", where.cluster, rng)
    paired = ours.interval("freshness", where.cluster, rng, than=uniform)
    assert paired.mean == pytest.approx(ours.ratio("freshness") - uniform.ratio("freshness"))
    assert paired.low <= paired.mean <= paired.high
    assert paired.high - paired.low < alone.high - alone.low
    with pytest.raises(ValueError, match="denominators"):
        ours.interval("delay", where.cluster, rng, than=uniform)


@pytest.mark.parametrize("metric", METRICS)
def test_importance_weighs_every_metric(metric):
    where = field()
    tally = run(where, Uniform()).tally
    above, below = METRICS[metric](tally)
    assert tally.ratio(metric) == pytest.approx((above @ where.importance) / (below @ where.importance))


@pytest.mark.parametrize(
    "broken", [{"budget": -1.0}, {"budget": 1.0, "tick": 0.0}, {"budget": 1.0, "scored_from": 1.0}]
)
def test_impossible_rules_are_refused(broken):
    with pytest.raises(ValueError, match="no contest"):
        BenchmarkRules(**broken)


# -- recorded collections ------------------------------------------------------------------------


def test_a_recorded_site_rewards_learning():
    where = field_of(collections(RECORDED)[0])
    tallies = [run(where, policy, BenchmarkRules(0.03, tick=14 * DAY)).tally for policy in (Uniform(), ValuedPolicy())]
    assert tallies[1].ratio("freshness") > tallies[0].ratio("freshness")
    assert 0.94 < tallies[0].ratio("freshness") < 0.99


def test_a_field_may_take_whole_clusters_only():
    whole = field_of(collections(RECORDED)[0])
    some = field_of(collections(RECORDED)[0], most_pages=60)
    assert 0 < len(some) < len(whole)
    for cluster in np.unique(some.cluster):
        assert (some.cluster == cluster).sum() == (whole.cluster == cluster).sum()
    assert some.urls == tuple(url for url in whole.urls if url in set(some.urls))


@pytest.mark.big
@pytest.mark.parametrize(
    ("site", "published"),
    [("llvm", 0.9723), ("til", 0.9932), ("twir", 0.9943), ("18f", 0.9928), ("jekylldocs", 0.9772), ("uvarc", 0.9617)],
)
def test_even_visits_score_as_in_the_table_of_real_histories(data_folder, site, published):
    found = {one.name: one for one in collections(data_folder / "documents")}
    tally = compete(field_of(found[site]), Uniform(), BenchmarkRules(0.03), np.random.default_rng(1)).tally
    assert tally.ratio("freshness") == pytest.approx(published, abs=0.004)


@pytest.mark.big
def test_all_data_sources_are_one_field(data_folder):
    where = field_of_all("data-sources", collections(data_folder / "data-sources"))
    tally = compete(where, Uniform(), BenchmarkRules(0.03), np.random.default_rng(1)).tally
    # The table says .8985; it does not say how the ends of the single repositories were treated.
    assert tally.ratio("freshness") == pytest.approx(0.8985, abs=0.01)


@pytest.mark.parametrize(("name", "same"), SAME_AT_A_BUDGET.items())
@pytest.mark.parametrize("per_host", [None, 2])
def test_some_policies_make_the_same_visits(name, same, per_host):
    where = field(pages=30, days=60)
    rules = BenchmarkRules(0.2, per_host=per_host)
    first, second = (run(where, entry(one, where), rules).visits.columns() for one in (name, same))
    assert all(np.array_equal(first[column], second[column]) for column in first)
