"""What a collection shows for a moment, against the truth of simulated pages and against brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.assess.archive_quality import collection_blur, mean_distance
from recrawl.assess.blur_coherence import ExpectedChanges, actual_blur, changes_between, page_blur
from recrawl.assess.observations import Observations, joint_validity
from recrawl.assess.replay_selection import CopyTable, SelectionRule, chance_unchanged, shown
from recrawl.model import ChangeKind, GammaBelief, Outcome, Verdict, Visits

instants = st.integers(0, 40).map(float)


@st.composite
def watched_pages(draw):
    """Pages with exact change times (never at a look) and looks that judge truly; some looks fail."""
    pages = draw(st.integers(1, 5))
    changes = [sorted(draw(st.sets(instants.map(lambda t: t + 0.5), max_size=6))) for _ in range(pages)]
    page, time, outcome, verdict = [], [], [], []
    for number in range(pages):
        before = None
        for observation in sorted(draw(st.sets(instants, max_size=6))):
            failed = draw(st.booleans()) and draw(st.booleans())
            page.append(number)
            time.append(observation)
            outcome.append(Outcome.SERVER_ERROR if failed else Outcome.FETCHED)
            says = Verdict.UNKNOWN
            if not failed:
                if before is not None:
                    met = any(before < h <= observation for h in changes[number])
                    says = Verdict.CHANGED if met else Verdict.UNCHANGED
                before = observation
            verdict.append(says)
    return changes, Visits.of(page, time, outcome=outcome, verdict=verdict)


def ragged(changes):
    offsets = np.append(0, np.cumsum([len(times) for times in changes])).astype(np.int64)
    return offsets, np.array([t for times in changes for t in times])


@given(watched_pages(), instants, st.sampled_from(SelectionRule))
@settings(max_examples=60, deadline=None)
def test_what_is_proved_to_be_unchanged_is(watched, at, rule):
    changes, visits = watched
    observations = Observations.from_visits(visits)
    found = shown(observations, np.full(len(observations), 0.1), at, rule)
    offsets, times = ragged([changes[page] for page in observations.page])
    between = changes_between(offsets, times, np.fmin(found.time, at), np.fmax(found.time, at))
    assert (between[found.covered()] == 0).all()
    assert (found.expected[found.covered()] == 0).all()
    for row in range(len(observations)):  # and the version shown was valid at both ends of what is claimed of it
        assert not changes_between(offsets, times, found.first, found.last)[row]


@given(watched_pages(), instants)
@settings(max_examples=60, deadline=None)
def test_the_nearest_copy_is_shown_or_the_latest_before(watched, at):
    _, visits = watched
    observations = Observations.from_visits(visits)
    nearest, before = (
        shown(observations, np.full(len(observations), 0.1), at, rule)
        for rule in (SelectionRule.NEAREST, SelectionRule.BEFORE)
    )
    for row in range(len(observations)):
        copies = observations.time[observations.offsets[row] : observations.offsets[row + 1]]
        assert nearest.away()[row] == np.abs(copies - at).min()
        earlier = copies[copies <= at]
        assert before.time[row] == (earlier.max() if len(earlier) else copies.min())


@given(st.lists(st.tuples(instants, st.integers(0, 10), st.integers(1, 3)), min_size=1, max_size=12))
@settings(max_examples=50, deadline=None)
def test_joint_validity_is_the_best_instant_of_all(intervals):
    first = np.array([a for a, _, _ in intervals])
    last = first + np.array([length for _, length, _ in intervals])
    weight = np.array([float(w) for _, _, w in intervals])
    found = joint_validity(first, last, weight)
    # The best of all instants is an end of some interval: a brute force over them misses nothing.
    best = max(weight[(first <= t) & (t <= last)].sum() for t in [*first, *last])
    assert weight[found.inside].sum() == best
    assert found.start <= found.instant <= found.end
    for t in (found.start, found.instant, found.end):
        assert ((first <= t) & (t <= last)).tolist() == found.inside.tolist()
    assert found.complete == (first.max() <= last.min())


def test_joint_validity_of_nothing_holds_no_instant():
    found = joint_validity(np.array([np.nan]), np.array([np.nan]))
    assert np.isnan(found.start)
    assert not found.inside.any()
    assert joint_validity(np.empty(0), np.empty(0)).complete


@given(watched_pages(), st.sampled_from(SelectionRule), st.booleans())
@settings(max_examples=30, deadline=None)
def test_collection_blur_is_the_mean_over_all_moments(watched, rule, evidence):
    _, visits = watched
    observations = Observations.from_visits(visits)
    rate = 0.05 + 0.1 * np.arange(len(observations))
    # Looks are at whole numbers, so that between halves everything is a straight line, whose middle is its mean.
    start, end, steps = -4.0, 47.0, 102
    blur = collection_blur(observations, rate, start, end, rule=rule, evidence=evidence)
    count, copies = ExpectedChanges.of(observations, rate, evidence=evidence), CopyTable.of(observations)
    row = np.repeat(np.arange(len(observations)), steps)
    moment = np.tile(start + (np.arange(steps) + 0.5) * (end - start) / steps, len(observations))
    if len(row):
        shown_at = copies.time[copies.shown(row, moment, rule)]
        met = np.abs(count.count(row, moment) - count.count(row, shown_at)).reshape(-1, steps)
        assert blur == pytest.approx(met.mean(axis=1))


def test_blur_of_two_copies_without_evidence_is_that_of_the_thesis():
    observations = Observations.from_visits(Visits.of([1, 1, 2], [2.0, 7.0, 5.0], verdict=[0, 2, 0]))
    rate = np.array([0.3, 0.2])
    expected = page_blur(rate, np.array([2.0, 5.0]), 0.0, 11.0, np.array([7.0, np.nan]))
    assert collection_blur(observations, rate, 0.0, 11.0, evidence=False) == pytest.approx(expected)


def test_expected_changes_given_the_evidence_are_the_mean_of_the_truth():
    rng = np.random.default_rng(3)
    rate, pages = 0.25, 40_000
    count = rng.poisson(rate * 12.0, pages)
    offsets = np.append(0, np.cumsum(count))
    row = np.repeat(np.arange(pages), count)
    times = rng.uniform(0.0, 12.0, offsets[-1])
    times = times[np.lexsort((times, row))]
    visit, revisit = np.full(pages, 3.0), np.full(pages, 9.0)
    truth = actual_blur(offsets, times, visit, 0.0, 12.0, revisit)
    changed = changes_between(offsets, times, visit, revisit) > 0
    page = np.repeat(np.arange(pages), 2)
    verdict = np.zeros(2 * pages, np.uint8)
    verdict[1::2] = np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED)
    observations = Observations.from_visits(Visits.of(page, np.tile([3.0, 9.0], pages), verdict=verdict))
    blur = collection_blur(observations, np.full(pages, rate), 0.0, 12.0)
    for which in (changed, ~changed):  # evidence tells them apart, and each is right on average
        assert blur[which].mean() == pytest.approx(truth[which].mean(), rel=0.03)
    assert blur[changed].mean() > 2.0 * blur[~changed].mean()


def test_a_log_of_changes_dates_versions_exactly():
    kinds = [0, ChangeKind.EXACT | ChangeKind.CONTENT, ChangeKind.EXACT | ChangeKind.CONTENT]
    observations = Observations.from_visits(Visits.of([1, 1, 1], [0.0, 5.0, 9.0], verdict=[0, 2, 2], kinds=kinds))
    first, last = observations.validity()
    assert first.tolist() == [0.0, 5.0, 9.0]
    assert last[0] < 5.0 < last[1] < 9.0 == last[2]
    found = shown(observations, np.array([0.1]), 4.0)  # the copy at 5 is nearest, and one change lies between
    assert (found.time[0], found.expected[0], found.covered()[0]) == (5.0, 1.0, False)
    before = shown(observations, np.array([0.1]), 4.9, SelectionRule.BEFORE)
    assert (before.time[0], before.expected[0], before.covered()[0]) == (0.0, 0.0, True)


def test_a_page_that_is_gone_is_not_shown_and_ends_its_version():
    outcome = [Outcome.FETCHED, Outcome.FETCHED, Outcome.GONE, Outcome.FETCHED]
    observations = Observations.from_visits(
        Visits.of([1] * 4, [0.0, 2.0, 4.0, 6.0], outcome=outcome, verdict=[0, 1, 1, 1])
    )
    assert observations.says.tolist() == [Verdict.UNKNOWN, Verdict.UNCHANGED, Verdict.CHANGED, Verdict.CHANGED]
    found = shown(observations, np.array([np.nan]), 4.0)
    assert (found.time[0], found.last[0]) == (2.0, 2.0)
    assert np.isnan(found.expected[0])
    dead = Observations.from_visits(Visits.of([1, 1], [0.0, 4.0], outcome=[Outcome.FETCHED, Outcome.GONE]))
    later = shown(dead, np.array([0.5]), 99.0)
    assert later.expected[0] == pytest.approx(0.5 * 4.0 / (1 - np.exp(-2.0)))  # what is gone changes no more
    only_gone = Observations.from_visits(Visits.of([1], [0.0], outcome=Outcome.GONE))
    nothing = shown(only_gone, np.array([0.1]), 1.0)
    assert not nothing.there()[0]
    assert np.isnan(nothing.time[0])
    assert np.isnan(collection_blur(only_gone, np.array([0.1]), 0.0, 1.0)[0])


def test_an_empty_collection_shows_nothing():
    observations = Observations.from_visits(Visits.empty())
    assert len(shown(observations, np.empty(0), 0.0).there()) == 0
    assert len(collection_blur(observations, np.empty(0), 0.0, 1.0)) == 0
    assert [len(side) for side in observations.validity()] == [0, 0]


def test_mean_distance_is_in_seconds():
    observations = Observations.from_visits(Visits.of([1, 1], [0.0, 10.0]))
    assert mean_distance(observations, 0.0, 10.0).tolist() == [2.5]
    assert mean_distance(observations, 0.0, 10.0, SelectionRule.BEFORE).tolist() == [5.0]


def test_some_pages_can_be_taken():
    observations = Observations.from_visits(Visits.of([1, 2, 2, 3], [0.0, 1.0, 2.0, 3.0], verdict=[0, 0, 1, 0]))
    some = observations.take(observations.page != 1)
    assert (some.page.tolist(), some.offsets.tolist(), some.time.tolist()) == ([2, 3], [0, 2, 3], [1.0, 2.0, 3.0])


def test_the_chance_to_be_unchanged_is_how_often_pages_are():
    rng = np.random.default_rng(11)
    rate, pages = 0.2, 30_000
    count = rng.poisson(rate * 20.0, pages)
    offsets = np.append(0, np.cumsum(count))
    row = np.repeat(np.arange(pages), count)
    times = rng.uniform(0.0, 20.0, offsets[-1])
    times = times[np.lexsort((times, row))]
    changed = changes_between(offsets, times, np.full(pages, 4.0), np.full(pages, 10.0)) > 0
    verdict = np.zeros(2 * pages, np.uint8)
    verdict[1::2] = np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED)
    observations = Observations.from_visits(
        Visits.of(np.repeat(np.arange(pages), 2), np.tile([4.0, 10.0], pages), verdict=verdict)
    )
    belief = GammaBelief(np.full(pages, 1e7), np.full(pages, 1e7 / rate))  # as good as certain
    for at in (2.0, 6.0, 9.0, 13.0):
        found = shown(observations, belief.mean(), at)
        met = changes_between(offsets, times, np.fmin(found.time, at), np.fmax(found.time, at))
        chance = chance_unchanged(observations, found, belief)
        for which in (changed, ~changed):
            assert chance[which].mean() == pytest.approx((met[which] == 0).mean(), abs=0.015)
        assert (chance[found.proved()] == 1.0).all()
    never = GammaBelief(np.full(pages, 1e-9), np.full(pages, 1e9))
    assert chance_unchanged(observations, shown(observations, never.mean(), 6.0), never)[changed] == pytest.approx(
        4.0 / 6.0, abs=1e-6
    )


def test_no_chance_is_told_of_pages_that_are_not_shown():
    observations = Observations.from_visits(Visits.of([1], [0.0], outcome=Outcome.GONE))
    belief = GammaBelief(np.ones(1), np.ones(1))
    assert np.isnan(chance_unchanged(observations, shown(observations, belief.mean(), 1.0), belief)[0])
