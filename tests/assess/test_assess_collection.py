"""Freshness, age and fate of changes against a page-by-page recomputation by hand."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.assess.truth_scores import (
    NO_LIFE,
    ChangeOutcome,
    PageLifetimes,
    assess_changes,
    change_outcomes,
    deletions,
    freshness,
)
from recrawl.model import Outcome, Verdict, Visits
from recrawl.model.arrays import ragged_search

# Times are quarters of a second: ties between changes, visits, births and edges are then common.
TICKS = st.integers(0, 20).map(lambda tick: tick / 4)


@st.composite
def lifetimes(draw):
    """(page, birth, death, change times) of up to three pages with up to two lives each."""
    rows = []
    for page in draw(st.lists(st.integers(0, 5), unique=True, min_size=1, max_size=3).map(sorted)):
        ends = sorted(draw(st.lists(TICKS, min_size=1, max_size=4, unique=True)))
        for birth, death in zip(ends[::2], [*ends[1::2], np.inf], strict=False):
            inside = [t for t in draw(st.lists(TICKS, max_size=8)) if birth < t < death]
            rows.append((page, birth, death, sorted(inside)))
    return rows


VISITS = st.lists(
    st.tuples(
        st.integers(0, 6),
        TICKS,
        st.sampled_from([Outcome.FETCHED, Outcome.NOT_MODIFIED, Outcome.GONE, Outcome.UNREACHABLE]),
        st.sampled_from(list(Verdict)),
    ),
    max_size=25,
)


def truth_of(rows):
    counts = [len(changes) for *_, changes in rows]
    return PageLifetimes.of(
        [row[0] for row in rows],
        np.concatenate([[0], np.cumsum(counts)]),
        [t for *_, changes in rows for t in changes],
        birth=[row[1] for row in rows],
        death=[row[2] for row in rows],
    )


def visits_of(table):
    page, time, outcome, verdict = zip(*table, strict=True) if table else ([], [], [], [])
    return Visits.of(list(page), list(time), outcome=list(outcome), verdict=list(verdict))


def state_at(row, table, t):
    """(fresh, stale since) of one life at one instant, by the rules of the module, read literally."""
    page, birth, _, changes = row
    copies = [v for p, v, outcome, _ in table if p == page and outcome == Outcome.FETCHED and birth <= v <= t]
    if not copies:
        return False, birth
    later = [c for c in changes if max(copies) < c <= t]
    return not later, min(later, default=None)


@given(lifetimes(), VISITS, st.lists(TICKS, min_size=2, max_size=6, unique=True).map(sorted), st.booleans())
def test_freshness_and_age_equal_the_sum_over_pieces_on_which_nothing_happens(rows, table, edges, weighted):
    weight = np.arange(1.0, len(rows) + 1) if weighted else np.ones(len(rows))
    got = freshness(truth_of(rows), visits_of(table), np.array(edges), weight if weighted else None)
    quarter = 0.25  # nothing happens inside a quarter: its middle tells all of it, and age is linear
    total = np.zeros(3)
    for j, (low, high) in enumerate(pairwise(edges)):
        bin_sum = np.zeros(3)
        for t in np.arange(low, high, quarter) + quarter / 2:
            for w, row in zip(weight, rows, strict=True):
                if row[1] <= t < row[2]:
                    fresh, since = state_at(row, table, t)
                    bin_sum += w * np.array([1.0, fresh, 0.0 if fresh else t - since])
        total += bin_sum
        if bin_sum[0]:
            assert [got.fresh[j], got.age[j]] == pytest.approx(bin_sum[1:] / bin_sum[0], abs=1e-9)
        else:
            assert np.isnan(got.fresh[j])
            assert np.isnan(got.age[j])
    if total[0]:
        assert [got.mean_fresh, got.mean_age] == pytest.approx(total[1:] / total[0], abs=1e-9)


def looks_of(row, table):
    """{time: what it says} of one life."""
    page, birth, death, _ = row
    observations = {}
    for p, v, outcome, verdict in table:
        if p == page and birth <= v < death and (outcome <= Outcome.GONE or verdict):
            observations[v] = max(observations.get(v, Verdict.UNKNOWN), verdict)
    return dict(sorted(observations.items()))


def fate_of(change, row, table):
    observations = looks_of(row, table)
    after = [v for v in observations if v >= change]
    if not after:
        return ChangeOutcome.PENDING
    opening = min(observations)
    if change <= opening:
        return ChangeOutcome.BEFORE
    told = [v for v in observations if observations[v] == Verdict.CHANGED and v > opening]
    if not [v for v in told if v >= change]:
        return ChangeOutcome.OVERLOOKED
    cover = min(v for v in told if v >= change)
    since = max([opening, *(v for v in told if v < cover)])
    return ChangeOutcome.ALONE if sum(since < c <= cover for c in row[3]) == 1 else ChangeOutcome.MERGED


@given(lifetimes(), VISITS, TICKS, TICKS)
def test_every_change_has_the_fate_that_the_rules_give_it(rows, table, one, other):
    start, end = min(one, other), max(one, other)
    upto = [visit for visit in table if visit[1] <= end]
    expected = [fate_of(c, row, upto) for row in rows for c in row[3]]
    truth, visits = truth_of(rows), visits_of(table)
    assert change_outcomes(truth, visits, end).tolist() == expected

    report = assess_changes(truth, visits, start, end)
    counted = [fate for fate, c in zip(expected, truth.times, strict=True) if start <= c <= end]
    assert report.total == len(counted)
    assert [report.pending, report.before, report.overlooked, report.merged, report.alone] == [
        counted.count(fate) for fate in ChangeOutcome
    ]
    lost = detections = true_detections = looked = wasted = 0
    for row in rows:
        page, _, death, changes = row
        for c, until in zip(changes, [*changes, death][1:], strict=True):
            fetched = any(p == page and o == Outcome.FETCHED and c <= v < until for p, v, o, _ in upto)
            lost += start <= c <= end and until <= end and not fetched
        observations = looks_of(row, upto)
        last = since = min(observations, default=0.0)
        for v, verdict in list(observations.items())[1:]:
            if v >= start:
                looked += 1
                wasted += not any(last < c <= v for c in changes)
                detections += verdict == Verdict.CHANGED
                true_detections += verdict == Verdict.CHANGED and any(since < c <= v for c in changes)
            last = v
            since = v if verdict == Verdict.CHANGED else since
    assert (report.lost, report.detections, report.true_detections) == (lost, detections, true_detections)
    assert (report.observations, report.wasted) == (looked, wasted)
    failed = [v for _, v, outcome, verdict in upto if v >= start and outcome > Outcome.GONE and not verdict]
    assert report.failed == len(failed)


def test_changes_seen_merged_overlooked_and_missed_in_one_life():
    truth = PageLifetimes.of([1], [0, 5], [0.5, 2.0, 4.0, 7.0, 11.0], birth=0.0)
    visits = Visits.of([1] * 5, [1.0, 5.0, 6.0, 8.0, 9.0], verdict=[0, 2, 1, 1, 2])
    report = assess_changes(truth, visits, 0.0, 12.0)
    assert (report.before, report.merged, report.alone, report.pending) == (1, 2, 1, 1)
    assert report.lost == 1  # the version of 2.0, replaced at 4.0
    assert (report.observations, report.wasted, report.detections) == (4, 2, 2)
    assert report.mean_delay == pytest.approx((3.0 + 1.0 + 2.0) / 3)
    assert (report.seen, report.recall, report.precision, report.hit_rate) == (3 / 5, 2 / 5, 1.0, 2 / 4)


@pytest.mark.parametrize(
    ("verdict", "fate"), [(Verdict.UNCHANGED, ChangeOutcome.OVERLOOKED), (Verdict.CHANGED, ChangeOutcome.ALONE)]
)
def test_a_change_at_the_instant_of_a_look_is_met_by_that_look(verdict, fate):
    truth = PageLifetimes.of([1], [0, 2], [1.0, 5.0], birth=0.0)
    visits = Visits.of([1, 1], [1.0, 5.0], verdict=[Verdict.UNKNOWN, verdict])
    assert change_outcomes(truth, visits, 9.0).tolist() == [ChangeOutcome.BEFORE, fate]
    assert freshness(truth, visits, np.array([1.0, 9.0])).mean_fresh == pytest.approx(1.0)


def test_a_304_that_lies_leaves_the_copy_stale():
    truth = PageLifetimes.of([1], [0, 1], [4.0], birth=0.0)
    visits = Visits.of([1, 1], [0.0, 6.0], outcome=[Outcome.FETCHED, Outcome.NOT_MODIFIED])
    assert freshness(truth, visits, np.array([0.0, 8.0])).mean_fresh == pytest.approx(0.5)


def test_epoch_times_keep_their_precision():
    start, week = 1.7e9, 604_800.0
    rng = np.random.default_rng(5)
    pages = 500
    counts = rng.poisson(20, pages)
    times = [np.sort(rng.uniform(start, start + week, n)) for n in counts]
    truth = PageLifetimes.of(
        np.arange(pages), np.append(0, np.cumsum(counts)), np.concatenate(times), birth=start - 1.0
    )
    visits = Visits.of(rng.integers(0, pages, 9_000), rng.uniform(start, start + week, 9_000))
    got = freshness(truth, visits, np.linspace(start, start + week, 50))
    moved = PageLifetimes.of(truth.page, truth.offsets, truth.times - start, birth=-1.0)
    near_zero = freshness(moved, Visits.of(visits.page, visits.time - start), np.linspace(0, week, 50))
    np.testing.assert_allclose(got.fresh, near_zero.fresh, rtol=1e-8)
    np.testing.assert_allclose(got.age, near_zero.age, rtol=1e-7)


def test_a_deletion_is_noticed_only_by_a_visit_between_death_and_return():
    truth = PageLifetimes.of([1, 1, 2], [0, 0, 0, 0], [], birth=[0.0, 6.0, 0.0], death=[4.0, np.inf, 4.0])
    fetched, gone = Outcome.FETCHED, Outcome.GONE
    visits = Visits.of([1, 1, 2], [1.0, 7.0, 5.0], outcome=[fetched, gone, gone])
    assert deletions(truth, visits, 9.0).total == 1  # of page 2 we never had a copy
    assert deletions(truth, visits, 9.0).noticed == 0  # at 7 page 1 was back
    noticing = Visits.of([1, 1, 1], [1.0, 5.5, 5.0], outcome=[fetched, gone, gone])
    assert deletions(truth, noticing, 9.0).mean_delay == pytest.approx(1.0)
    assert deletions(truth, noticing, 4.5).noticed == 0


@given(lifetimes(), st.lists(st.tuples(st.integers(0, 9), TICKS), max_size=20), st.randoms(use_true_random=False))
def test_a_truth_from_births_and_deaths_keeps_only_changes_inside_a_life(rows, loose, shuffler):
    pages = sorted({row[0] for row in rows})
    shuffler.shuffle(pages)
    events = [[t for p, b, d, _ in rows if p == page for t in (b, d) if t < np.inf] for page in pages]
    changes = [sorted(t for p, t in loose if p == page) for page in pages]

    def ragged(table):
        return np.array([t for row in table for t in row]), np.append(0, np.cumsum([len(row) for row in table]))

    truth = PageLifetimes.from_lifetimes(np.array(pages), *ragged(events), *ragged(changes))
    expected = truth_of([(p, b, d, sorted(t for q, t in loose if q == p and b < t < d)) for p, b, d, _ in rows])
    for name in ("page", "offsets", "times", "birth", "death"):
        assert getattr(truth, name).tolist() == getattr(expected, name).tolist()


def test_visits_of_unknown_and_unborn_pages_belong_to_no_life():
    truth = PageLifetimes.of([3], [0, 0], [], birth=5.0)
    assert truth.row_of_visit(np.array([2, 3, 3, 4]), np.array([9.0, 4.0, 5.0, 9.0])).tolist() == [
        NO_LIFE,
        NO_LIFE,
        0,
        NO_LIFE,
    ]
    assert np.isnan(freshness(truth, Visits.empty(), np.array([0.0, 1.0])).mean_fresh)
    nothing = PageLifetimes.of([], [0], [], birth=0.0)
    assert assess_changes(nothing, Visits.of([1], [1.0]), 0.0, 9.0).total == 0


@given(st.lists(st.lists(TICKS, max_size=5).map(sorted), min_size=1, max_size=4), TICKS, st.booleans(), st.data())
def test_ragged_search_is_searchsorted_on_each_row(rows, time, after_equal, data):
    row = data.draw(st.integers(0, len(rows) - 1))
    offsets = np.concatenate([[0], np.cumsum([len(r) for r in rows])])
    flat = np.array([t for r in rows for t in r])
    found = ragged_search(offsets, flat, np.array([row]), np.array([time]), after_equal=after_equal)
    side = "right" if after_equal else "left"
    assert found[0] == offsets[row] + np.searchsorted(np.array(rows[row]), time, side=side)


@pytest.mark.parametrize(
    ("columns", "what"),
    [
        ({"page": [2, 1], "offsets": [0, 0, 0], "times": [], "birth": 0.0}, "not ascending"),
        ({"page": [1], "offsets": [0, 2], "times": [3.0, 2.0], "birth": 0.0}, "change times"),
        ({"page": [1], "offsets": [0, 1], "times": [0.0], "birth": 0.0}, "outside its life"),
        ({"page": [1, 1], "offsets": [0, 0, 0], "times": [], "birth": [0.0, 1.0]}, "overlap"),
        ({"page": [1], "offsets": [0, 3], "times": [1.0], "birth": 0.0}, "span"),
        ({"page": [1], "offsets": [0, 0], "times": [], "birth": -np.inf}, "finite"),
        ({"page": [1], "offsets": [0, 0], "times": [], "birth": 2.0, "death": 2.0}, "death"),
    ],
)
def test_a_truth_that_breaks_its_rules_is_refused(columns, what):
    with pytest.raises(ValueError, match=what):
        PageLifetimes.of(columns.pop("page"), columns.pop("offsets"), columns.pop("times"), **columns)
