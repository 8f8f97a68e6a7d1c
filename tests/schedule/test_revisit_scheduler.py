from __future__ import annotations

import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recrawl.model import ANSWERED, Outcome, Pages, Visits
from recrawl.schedule.frontier.revisit_scheduler import NewPageQueue, RevisitScheduler
from recrawl.schedule.policies.fixed_interval import FixedInterval
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.schedule.politeness.retry import Retry
from recrawl.time import DAY, HOUR

outcomes = st.lists(st.tuples(st.integers(0, 2), st.sampled_from(Outcome)), min_size=1, max_size=25)


def scheduler(**settings) -> RevisitScheduler:
    new = RevisitScheduler(FixedInterval(HOUR), budget=1.0, **settings)
    new.add(Pages.of([0, 1, 2]))
    return new


@given(outcomes, st.integers(1, 5))
def test_a_failing_page_waits_for_its_back_off_however_visits_are_told(events, batch):
    """Against counting the failures since the last answer by hand."""
    visits = Visits.of(
        [page for page, _ in events], np.arange(len(events)) * 60.0, outcome=[outcome for _, outcome in events]
    )
    told = scheduler()
    for start in range(0, len(visits), batch):
        told.tell(visits.take(slice(start, start + batch)))
        told.tell(visits.take(slice(max(0, start - 3), start + batch)))  # again, as another worker's news might bring
    now = 60.0 * len(events)
    plain = FixedInterval(HOUR)
    plain.add(Pages.of([0, 1, 2]))
    plain.tell(visits)
    for page in range(3):
        mine = [(time, outcome) for (p, outcome), time in zip(events, visits.time.tolist(), strict=True) if p == page]
        failures = 0
        while failures < len(mine) and mine[-1 - failures][1] > ANSWERED:
            failures += 1
        expected = plain.due(np.array([page]), now)
        if failures:
            time, outcome = mine[-1]
            expected = np.maximum(expected, Retry().at(np.array([failures]), np.array([time]), np.array([outcome])))
        assert told.due(np.array([page]), now).tolist() == expected.tolist()


def test_a_fit_is_due_at_once_then_after_a_while_or_when_many_pages_came():
    mine = scheduler(fit_every=DAY)
    assert mine.fit_at == -np.inf
    mine.fit(now=100.0)
    assert mine.fit_at == 100.0 + DAY
    mine.add(Pages.of([0, 1, 2]))
    assert mine.fit_at == 100.0 + DAY  # known already
    mine.add(Pages.of([3]))
    assert mine.fit_at == 100.0  # a third more pages
    mine.add(Pages.of(np.arange(4, 100)))
    mine.fit(now=200.0)
    mine.add(Pages.of(np.arange(100, 120)))
    assert mine.fit_at == 200.0 + DAY
    mine.add(Pages.of(np.arange(120, 130)))
    assert mine.fit_at == 200.0


@given(outcomes, st.integers(0, 25), st.integers(0, 25))
def test_what_came_while_a_copy_was_fitted_is_told_to_the_copy_that_is_taken_over(events, asked, handed_over):
    """The agenda ends up where one is that was told everything, wherever the request and the answer fall."""
    first, second = sorted((min(asked, len(events)), min(handed_over, len(events))))
    times = 60.0 * np.arange(1, len(events) + 1)
    visits = Visits.of([page for page, _ in events], times, outcome=[outcome for _, outcome in events])
    now, budget = 60.0 * (len(events) + 1), {"discovery_share": 0.5, "burst": 60.0}
    live, elsewhere = scheduler(new_page_queue=NewPageQueue(1.0, 0.0)), scheduler(new_page_queue=NewPageQueue(1.0, 0.0))
    live.tell(visits.take(slice(0, first)))
    live.begin_journal(visits.take(slice(max(first - 2, 0), first)))  # told, and maybe not recorded yet
    elsewhere.tell(visits.take(slice(0, max(first - 2, 0))))
    live.tell(visits.take(slice(first, second)))
    live.add(Pages.of([7, 8]))
    live.enqueue_new_pages(np.array([7, 8]), now)
    live.change_budget(3.0, **budget)
    elsewhere.fit(now)
    live.take_over(pickle.loads(pickle.dumps(elsewhere.replica())), Pages.of([0, 1, 2]))
    live.tell(visits.take(slice(second, None)))
    alone = scheduler(new_page_queue=NewPageQueue(1.0, 0.0))
    alone.tell(visits)
    asked_for = np.array([0, 1, 2])
    assert live.due(asked_for, now).tolist() == alone.due(asked_for, now).tolist()
    assert len(live.policy) == 5
    assert live.terms == {"budget": 3.0, **budget}
    assert live.fit_at <= now  # the budget changed since
    assert live.fits == 1


def test_before_the_first_fit_no_page_is_put_off_for_the_longest_interval():
    """A short run may end before the fit does; then the due times that it wrote stay."""
    pages, seen = Pages.of([1, 2], discovered=[0.0, 0.0]), Visits.of([1, 2], [HOUR, HOUR])

    def scheduler():
        made = RevisitScheduler(ValuedPolicy(), budget=1e-6, fit_every=DAY)
        made.add(pages)
        made.tell(seen)
        return made

    waiting, fitted = scheduler(), scheduler()
    assert (waiting.due(pages.id, HOUR) > 100 * DAY).all()
    waiting.await_first_fit()
    assert waiting.due(pages.id, HOUR).tolist() == [DAY + HOUR, DAY + HOUR]
    fitted.fit(HOUR)
    waiting.begin_journal(seen)
    waiting.take_over(fitted, pages)
    np.testing.assert_array_equal(waiting.due(pages.id, HOUR), fitted.due(pages.id, HOUR))
