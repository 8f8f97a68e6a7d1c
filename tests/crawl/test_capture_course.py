"""The course of a capture: every page in its phase, failures once more, and the same again when replayed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.capture import STRATEGIES, CaptureTerms
from recrawl.crawl.site_capture.capture_course import TRIES, CaptureCourse, CapturePhase, CaptureStep, replay
from recrawl.errors import StoreError
from recrawl.model import Outcome
from recrawl.store.store_values import FoundPages, SiteLog, SiteStep

STRATEGY = st.sampled_from(["bfs", "bfs-lifo", "dfs-fifo", "hottest-first-lifo", "sharc-offline", "sharc-revisits"])
OUTCOMES = st.lists(st.sampled_from(list(Outcome)), max_size=60)
THERE = {Outcome.FETCHED, Outcome.NOT_MODIFIED, Outcome.REDIRECTED}
FAILED = {Outcome.SERVER_ERROR, Outcome.UNREACHABLE}


def new_course(strategy, revisit=True):
    return CaptureCourse(lambda _: STRATEGIES[strategy](CaptureTerms(delay=1.0)), revisit=revisit)


def log_of(after, steps):
    count = len(after)
    rate = 1.0 / (1.0 + np.arange(count))
    none = np.full(count, -1)
    return SiteLog(FoundPages(none, none, rate, np.ones(count)), np.array(after, np.int64), steps)


def tell(course, log, after):
    mine = log.after == after
    course.found(log.found.rate[mine], log.found.weight[mine])


def carried_out(strategy, growth, outcomes, revisit=True):
    """A whole capture: what it was told and did, as it would be recorded. ``growth`` is pages found per step."""
    after = [0] * (1 + growth[0] if growth else 1)
    course, steps = new_course(strategy, revisit), []
    tell(course, log_of(after, steps), 0)
    while (stop := course.next()) is not None:
        assert course.next() == stop
        number = len(steps)
        outcome = outcomes[number] if number < len(outcomes) else Outcome.FETCHED
        steps.append(SiteStep(number, stop.number, stop.revisit, float(number), outcome, 0))
        course.done(outcome)
        if not stop.revisit and number + 1 < len(growth):
            after += [number + 1] * growth[number + 1]
            tell(course, log_of(after, steps), number + 1)
    assert course.phase is CapturePhase.DONE
    return log_of(after, steps), course


@given(strategy=STRATEGY, growth=st.lists(st.integers(0, 3), max_size=8), outcomes=OUTCOMES, revisit=st.booleans())
@settings(max_examples=60)
def test_every_page_is_seen_as_often_as_it_should_be(strategy, growth, outcomes, revisit):
    log, course = carried_out(strategy, growth, outcomes, revisit)
    visits = {}
    for step in log.steps:
        visits.setdefault((step.number, step.revisit), []).append(Outcome(step.outcome))
    assert {number for number, again in visits if not again} == set(range(course.pages))
    for (number, again), seen in visits.items():
        assert len(seen) <= TRIES
        assert all(outcome in FAILED for outcome in seen[:-1])
        assert seen[-1] not in FAILED or len(seen) == TRIES
        if again:
            assert revisit
            assert visits[number, False][-1] in THERE
    phases = [step.revisit for step in log.steps]
    assert phases == sorted(phases)


@given(strategy=STRATEGY, growth=st.lists(st.integers(0, 3), max_size=8), outcomes=OUTCOMES, data=st.data())
@settings(max_examples=60)
def test_a_replayed_course_goes_on_as_the_one_that_was_not_interrupted(strategy, growth, outcomes, data):
    whole, course = carried_out(strategy, growth, outcomes)
    cut = data.draw(st.integers(0, len(whole.steps)))
    begun = SiteLog(whole.found, whole.after, whole.steps[:cut])
    resumed = new_course(strategy)
    known = whole.after <= cut
    found = FoundPages(*(column[known] for column in (whole.found.page, whole.found.via, *rates_of(whole))))
    replay(resumed, SiteLog(found, whole.after[known], begun.steps))
    assert resumed.steps == cut
    for step in whole.steps[cut:]:
        assert resumed.next() == CaptureStep(step.number, step.revisit)
        resumed.done(Outcome(step.outcome))
        tell(resumed, whole, step.step + 1)
    assert resumed.next() is None
    assert (resumed.pages, resumed.visited, resumed.seen_again) == (course.pages, course.visited, course.seen_again)


def rates_of(log):
    return log.found.rate, log.found.weight


def test_a_course_that_would_go_another_way_is_not_resumed():
    log, _ = carried_out("bfs", [3], [])
    with pytest.raises(StoreError, match="another way"):
        replay(new_course("hottest-last"), log)


def test_the_last_visit_is_its_own_revisit_unless_others_came_after_it():
    quiet, _ = carried_out("sharc-intervals", [3], [])
    seen_again = [step.number for step in quiet.steps if step.revisit]
    last = [step.number for step in quiet.steps if not step.revisit][-1]
    assert last not in seen_again
    assert len(seen_again) == 3
    failing, _ = carried_out("sharc-intervals", [3], [Outcome.UNREACHABLE])
    visits = [step.number for step in failing.steps if not step.revisit]
    assert visits[-1] == visits[0]  # what failed first came last
    assert next(step.number for step in failing.steps if step.revisit) == visits[-2]
    assert sorted(step.number for step in failing.steps if step.revisit) == [0, 1, 2, 3]


def test_nothing_is_done_that_was_not_asked_for():
    with pytest.raises(ValueError, match="no step"):
        new_course("bfs").done(Outcome.FETCHED)


@given(
    strategy=STRATEGY,
    growth=st.lists(st.lists(st.sampled_from(["a", "b", "c"]), max_size=3), max_size=8),
    outcomes=OUTCOMES,
    data=st.data(),
)
@settings(max_examples=60)
def test_hosts_side_by_side_are_replayed_in_whatever_order_their_steps_ended(strategy, growth, outcomes, data):
    """Steps of three hosts end in any order. All visits come before all revisits, and a replay goes on the same way."""
    after, lanes, steps, course = [0], ["a"], [], new_course(strategy)
    course.found(np.ones(1), np.ones(1), ["a"])
    while ready := course.ready():
        assert len({course.lane(step.number) for step in ready}) == len(ready)
        stop = data.draw(st.sampled_from(ready))
        number = len(steps)
        outcome = outcomes[number] if number < len(outcomes) else Outcome.FETCHED
        steps.append(SiteStep(number, stop.number, stop.revisit, float(number), outcome, 0))
        course.done(outcome, stop)
        new = growth[number] if number < len(growth) and not stop.revisit else []
        rate = 1.0 / (1.0 + np.arange(len(lanes), len(lanes) + len(new)))
        course.found(rate, np.ones(len(new)), new)
        after += [number + 1] * len(new)
        lanes += new
    phases = [step.revisit for step in steps]
    assert phases == sorted(phases)
    assert {step.number for step in steps if not step.revisit} == set(range(len(lanes)))
    whole = log_of(after, steps)
    cut = data.draw(st.integers(0, len(steps)))
    known = whole.after <= cut
    found = FoundPages(*(column[known] for column in (whole.found.page, whole.found.via, *rates_of(whole))))
    resumed = new_course(strategy)
    replay(
        resumed,
        SiteLog(found, whole.after[known], steps[:cut]),
        [lane for lane, is_known in zip(lanes, known.tolist(), strict=True) if is_known],
    )
    for step in steps[cut:]:
        stop = CaptureStep(step.number, step.revisit)
        assert stop in resumed.ready()
        resumed.done(Outcome(step.outcome), stop)
        mine = whole.after == step.step + 1
        names = [lane for lane, is_mine in zip(lanes, mine.tolist(), strict=True) if is_mine]
        resumed.found(whole.found.rate[mine], whole.found.weight[mine], names)
    assert resumed.ready() == []


def test_of_several_hosts_only_the_page_visited_last_of_all_is_its_own_revisit():
    course = new_course("sharc-intervals")
    course.found(np.full(4, 0.1), np.ones(4), ["a", "a", "b", "b"])
    made = []
    while ready := course.ready():
        step = ready[-1]  # the second host first, as long as it has pages
        made.append(step)
        course.done(Outcome.FETCHED, step)
    visited = [step.number for step in made if not step.revisit]
    again = {step.number for step in made if step.revisit}
    assert set(range(4)) - again == {visited[-1]}
