"""The rules of :class:`recrawl.schedule.policy.Policy` as tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recrawl.model import AnyArray, FloatArray, Outcome, Pages, Verdict, Visits
from recrawl.schedule.policy import Policy, ReplicablePolicy
from recrawl.testing.checks import pickled, raises
from recrawl.time import DAY, HOUR

START = 1_750_000_000.0
"""When the visits of the suite start, seconds since the epoch."""
_PER_PAGE_DAY = 0.1
"""The budget of the suite: visits per page and day."""


def some_pages(n: int = 40, seed: int = 1) -> Pages:
    """Pages of four hosts with scattered ids, found during the day before :data:`START`."""
    rng = np.random.default_rng(seed)
    ids = rng.permutation(10 * n)[:n]
    importance = np.exp(rng.normal(0, 0.5, n))
    return Pages.of(ids, host=rng.integers(0, 4, n), importance=importance, discovered=START - rng.random(n) * DAY)


def some_visits(pages: Pages, per_page: int = 8, seed: int = 2) -> Visits:
    """Visits of every page, by page and time, with failures among them; page k changes about every k days."""
    rng = np.random.default_rng(seed)
    n = len(pages)
    time = START + np.cumsum(rng.exponential(4 * DAY, (n, per_page)), axis=1)
    gap = np.diff(time, axis=1, prepend=START)
    changed = rng.random((n, per_page)) < -np.expm1(-gap / (DAY * (1 + np.arange(n)))[:, None])
    verdict = np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED)
    verdict[:, 0] = Verdict.UNKNOWN
    outcome = np.full((n, per_page), Outcome.FETCHED)
    failed = rng.random((n, per_page)) < 0.15
    outcome[failed], verdict[failed] = Outcome.UNREACHABLE, Verdict.UNKNOWN
    page = np.repeat(pages.id, per_page)
    return Visits.of(page, time.ravel(), outcome=outcome.ravel(), verdict=verdict.ravel())


def end_of(visits: Visits) -> float:
    """A day after the last visit."""
    return float(visits.time.max()) + DAY


def budget_of(pages: Pages) -> float:
    """The budget of the suite for these pages, in units of cost per second."""
    return _PER_PAGE_DAY * float(pages.cost.sum()) / DAY


def due_after_fit(policy: Policy, pages: Pages, now: float) -> FloatArray:
    """Fit, then ask for the due times of all pages."""
    policy.fit(budget_of(pages), now)
    return policy.due(pages.id, now)


def _columns(table: Pages | Visits) -> dict[str, AnyArray]:
    return {name: getattr(table, name).copy() for name in type(table).__slots__}


class PolicyConformance:
    """Tests for one policy. Override :meth:`make`."""

    def make(self) -> Policy:
        """A new policy that knows no pages."""
        raise NotImplementedError

    def taught(self, pages: Pages, batches: Sequence[Visits]) -> Policy:
        """A new policy with pages, fitted at :data:`START`, that was told visits."""
        policy = self.make()
        policy.add(pages)
        policy.fit(budget_of(pages), START)
        for batch in batches:
            policy.tell(batch)
        return policy

    def test_it_is_a_policy_with_a_name_and_a_price_or_none(self) -> None:
        """Members of the protocol, and their ranges."""
        policy = self.taught(some_pages(), [])
        assert isinstance(policy, Policy)
        assert policy.name
        assert policy.price is None or policy.price >= 0

    def test_it_counts_its_pages(self) -> None:
        """A page that is added twice counts once."""
        pages = some_pages()
        policy = self.taught(pages, [])
        assert len(policy) == len(pages)
        policy.add(pages)
        assert len(policy) == len(pages)

    def test_same_input_same_answer(self) -> None:
        """Rule 1: state is a fold over what was added and told."""
        pages = some_pages()
        visits = some_visits(pages)
        first, second = (due_after_fit(self.taught(pages, [visits]), pages, end_of(visits)) for _ in range(2))
        np.testing.assert_array_equal(first, second)

    def test_batches_and_single_visits_teach_the_same(self) -> None:
        """Rule 1: how visits are batched makes no difference, with and without a later fit."""
        pages = some_pages()
        visits = some_visits(pages)
        singles = [visits.take(np.array([row])) for row in np.argsort(visits.time)]
        now = end_of(visits)
        whole, one_by_one = self.taught(pages, [visits]), self.taught(pages, singles)
        np.testing.assert_allclose(whole.due(pages.id, now), one_by_one.due(pages.id, now), rtol=1e-12)
        np.testing.assert_allclose(due_after_fit(whole, pages, now), due_after_fit(one_by_one, pages, now), rtol=1e-12)

    def test_order_across_pages_does_not_matter(self) -> None:
        """Rule 1: visits of different pages may be interleaved in any way."""
        pages = some_pages()
        visits = some_visits(pages)
        shuffled = visits.take(np.random.default_rng(3).permutation(len(visits)))
        np.testing.assert_allclose(
            due_after_fit(self.taught(pages, [visits]), pages, end_of(visits)),
            due_after_fit(self.taught(pages, [shuffled]), pages, end_of(visits)),
            rtol=1e-12,
        )

    def test_order_of_the_pages_does_not_matter(self) -> None:
        """Rule 1: pages may be added in any order."""
        pages = some_pages()
        visits = some_visits(pages)
        now = end_of(visits)
        order = np.random.default_rng(4).permutation(len(pages))
        straight = due_after_fit(self.taught(pages, [visits]), pages, now)
        mixed = self.taught(pages.take(order), [visits])
        mixed.fit(budget_of(pages), now)
        np.testing.assert_allclose(mixed.due(pages.id[order], now), straight[order], rtol=1e-9)

    def test_telling_again_changes_nothing(self) -> None:
        """A visit that is not after the last observation of its page is ignored."""
        pages = some_pages()
        visits = some_visits(pages)
        once = due_after_fit(self.taught(pages, [visits]), pages, end_of(visits))
        again = due_after_fit(self.taught(pages, [visits, visits]), pages, end_of(visits))
        np.testing.assert_array_equal(again, once)

    def test_adding_again_changes_nothing(self) -> None:
        """A known page keeps its columns."""
        pages = some_pages()
        policy = self.taught(pages, [some_visits(pages)])
        before = policy.due(pages.id, START)
        policy.add(Pages.of(pages.id, importance=99.0, discovered=0.0))
        np.testing.assert_array_equal(policy.due(pages.id, START), before)

    def test_a_new_policy_pickles(self) -> None:
        """Rule 5, before anything is known."""
        pages = some_pages()
        policy = pickled(self.make())
        policy.add(pages)
        np.testing.assert_array_equal(policy.due(pages.id, START), pages.discovered)

    def test_it_pickles_and_goes_on_with_the_same_answers(self) -> None:
        """Rule 5: a copy in another process takes visits and answers as the original does."""
        pages = some_pages()
        visits = some_visits(pages)
        early = visits.time < np.median(visits.time)
        policy = self.taught(pages, [visits.take(early)])
        again = pickled(policy)
        half, now = end_of(visits.take(early)), end_of(visits)
        np.testing.assert_array_equal(again.due(pages.id, half), policy.due(pages.id, half))
        for one in (policy, again):
            one.tell(visits.take(~early))
        np.testing.assert_array_equal(again.urgency(pages.id, now), policy.urgency(pages.id, now))
        np.testing.assert_array_equal(due_after_fit(again, pages, now), due_after_fit(policy, pages, now))

    def test_a_replica_answers_the_same_and_takes_visits_and_pages(self) -> None:
        """:class:`~recrawl.schedule.policy.ReplicablePolicy`; of another policy, a pickled copy does the same."""
        pages = some_pages()
        visits = some_visits(pages)
        known, later = pages.take(slice(0, 30)), pages.take(slice(30, None))
        of_known = visits.take(np.isin(visits.page, known.id))
        policy, now = self.taught(known, [of_known]), end_of(visits)
        policy.fit(budget_of(known), now)
        before = policy.due(known.id, now)
        replica = pickled(policy.replica() if isinstance(policy, ReplicablePolicy) else policy)
        np.testing.assert_array_equal(replica.due(known.id, now), before)
        replica.add(later)
        replica.tell(of_known)  # what it knows already changes nothing
        np.testing.assert_array_equal(replica.due(known.id, now), before)
        replica.tell(Visits.of(known.id, now + np.arange(30.0), outcome=0, verdict=Verdict.UNCHANGED))
        replica.tell(Visits.of(later.id, now + np.arange(10.0), outcome=0, verdict=Verdict.UNKNOWN))
        after = replica.due(pages.id, now + 40.0)
        assert (after > now).all()
        np.testing.assert_array_equal(policy.due(known.id, now), before)  # which was told nothing of that
        long_after = now + 400 * DAY  # a replica folds no period, however late it is
        np.testing.assert_allclose(replica.due(pages.id, long_after), after)

    def test_unseen_pages_are_due_at_discovery(self) -> None:
        """Every page gets its first visit."""
        pages = some_pages()
        np.testing.assert_array_equal(self.taught(pages, []).due(pages.id, START), pages.discovered)

    def test_pages_may_come_later(self) -> None:
        """Also after a fit, and overlapping with known ones."""
        pages = some_pages()
        policy = self.taught(pages.take(slice(0, 20)), [])
        policy.add(pages.take(slice(10, 40)))
        np.testing.assert_array_equal(policy.due(pages.id, START), pages.discovered)

    def test_seen_pages_are_due_after_their_last_observation(self) -> None:
        """A page is never due at or before its last observation."""
        pages = some_pages()
        visits = some_visits(pages)
        answered = visits.take(visits.answered())
        due = due_after_fit(self.taught(pages, [visits]), pages, end_of(visits))
        last = np.array([answered.time[answered.page == page].max() for page in pages.id])
        assert (due > last).all()

    def test_a_visit_without_a_verdict_does_not_move_the_due_time(self) -> None:
        """Rule 4: failures are the retry rule's business."""
        pages = some_pages()
        visits = some_visits(pages)
        for outcome in (Outcome.UNREACHABLE, Outcome.FETCHED):
            policy = self.taught(pages, [visits])
            before = due_after_fit(policy, pages, end_of(visits))
            policy.tell(Visits.of(pages.id, np.full(len(pages), end_of(visits)), outcome=outcome))
            np.testing.assert_array_equal(policy.due(pages.id, end_of(visits)), before)

    def test_a_first_visit_that_failed_leaves_the_page_unseen(self) -> None:
        """It stays due at its discovery."""
        pages = some_pages()
        failed = Visits.of(pages.id, np.full(len(pages), START), outcome=Outcome.SERVER_ERROR)
        np.testing.assert_array_equal(self.taught(pages, [failed]).due(pages.id, START), pages.discovered)

    def test_an_unknown_page_is_named(self) -> None:
        """Rule 3: :class:`LookupError`."""
        policy = self.taught(some_pages(), [])
        with raises(LookupError, "page -5 was never added"):
            policy.due(np.array([-5]), START)
        with raises(LookupError, "page -5 was never added"):
            policy.tell(Visits.of([-5], [START]))

    def test_arguments_are_neither_modified_nor_stored(self) -> None:
        """Rule 2, and answers are fresh arrays."""
        pages = some_pages()
        visits = some_visits(pages)
        now = end_of(visits)
        before = _columns(pages), _columns(visits)
        asked = pages.id.copy()
        policy = self.taught(pages, [visits])
        due = due_after_fit(policy, pages, now)
        for table, saved in zip((pages, visits), before, strict=True):
            for name, column in saved.items():
                np.testing.assert_array_equal(getattr(table, name), column)
        expected = due.copy()
        due[:] = 0.0
        for table, saved in zip((pages, visits), before, strict=True):
            for name in saved:
                getattr(table, name)[:] = 0
        np.testing.assert_array_equal(policy.due(asked, now), expected)

    def test_it_works_without_pages(self) -> None:
        """Empty tables are valid input, before the first page too."""
        policy = self.make()
        none = np.empty(0, dtype=np.int64)
        policy.add(Pages.of(none))
        policy.fit(1.0, START)
        policy.tell(Visits.empty())
        assert policy.due(none, START).shape == (0,)
        policy.add(Pages.of([3], discovered=START))
        policy.tell(Visits.of([3], [START]))
        assert policy.due(np.array([3]), START)[0] > START

    def test_urgency_reaches_one_when_a_page_is_due(self) -> None:
        """Below 1 before the due time, at least 1 from then on."""
        pages = some_pages()
        visits = some_visits(pages)
        policy = self.taught(pages, [visits])
        now = end_of(visits)
        due = due_after_fit(policy, pages, now)
        for at in (now, now + 10 * DAY, now + 200 * DAY):
            urgency = policy.urgency(pages.id, at)
            assert (urgency >= 0).all()
            clear = np.abs(due - at) > 1.0
            np.testing.assert_array_equal((urgency >= 1)[clear], (due <= at)[clear])

    def test_urgency_never_falls_while_a_page_waits_and_is_infinite_for_unseen_pages(self) -> None:
        """Waiting never lowers the rank of a page."""
        pages = some_pages()
        visits = some_visits(pages)
        seen = np.isin(pages.id, visits.page[::3])
        policy = self.taught(pages, [visits.take(np.isin(visits.page, pages.id[seen]))])
        policy.fit(budget_of(pages), end_of(visits))
        times = end_of(visits) + np.array([0.0, HOUR, DAY, 30 * DAY, 400 * DAY])
        urgency = np.stack([policy.urgency(pages.id, float(at)) for at in times])
        assert np.isinf(urgency[:, ~seen]).all()
        assert (np.diff(urgency[:, seen], axis=0) >= -1e-9).all()
        policy.urgency(pages.id, times[0])[:] = -1.0
        np.testing.assert_array_equal(policy.urgency(pages.id, float(times[0])), urgency[0])
