"""What every policy promises (``recrawl.schedule.policy``), run over every implementation."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest

from recrawl.errors import ConfigError
from recrawl.model import GammaBelief, Outcome, Pages, Verdict, Visits
from recrawl.schedule.hacs import hacs
from recrawl.schedule.new_links import NewLinks
from recrawl.schedule.policies import EXPLORING, ORACLES, POLICIES, START_FROM_BUDGET, VALUED
from recrawl.schedule.policy import Replicable
from recrawl.schedule.proportional import Proportional
from recrawl.schedule.valued import Valued
from recrawl.time import DAY, HOUR

START = 1_750_000_000.0
PER_PAGE_DAY = 0.1


def true_rates(page):
    """What an oracle might say: from never to twice a day."""
    return (page % 7) / (3.5 * DAY)


def expected_links(pages):
    """What a model might say: a new link in one to ten days."""
    return GammaBelief(np.full(len(pages), 0.5), 0.5 * DAY * (1.0 + pages.id % 10))


def expected_rates(pages):
    """What a model might say: a change in one to thirty days."""
    return 1.0 / (DAY * (1 + pages.id % 30))


MAKERS = {
    **POLICIES,
    **{name: EXPLORING[name] for name in ("thompson-archive", "ucb-archive")},
    **{name: partial(make, true_rates) for name, make in ORACLES.items()},
    "proportional to the truth": partial(Proportional, true_rates=true_rates),
    "new links": partial(NewLinks, {"internal": expected_links, "external": expected_links}),
    "archive with expected rates": partial(Valued, expected=expected_rates),
    "two numbers a page with expected rates": partial(Valued, belief="gamma", expected=expected_rates),
    "hacs within 60 days": partial(hacs, window=60 * DAY),
    "hacs as printed": partial(hacs, theta=0.5, unknown_rate=0.0, longest=np.inf),
    **{f"{name} from the budget": partial(POLICIES[name], start=None) for name in sorted(START_FROM_BUDGET)},
}
BUDGETED = ["uniform", "proportional", "proportional to the truth", "hacs-since-look", "aduana", "new links", *VALUED]
"""Those that spend exactly their budget in the long run."""
REFUSING = [*BUDGETED, "random", "hacs", "last-obs", *(name for name in MAKERS if name.endswith("from the budget"))]


@pytest.fixture(params=list(MAKERS))
def make(request):
    return MAKERS[request.param]


def some_pages(n=40, seed=1):
    rng = np.random.default_rng(seed)
    ids = rng.permutation(10 * n)[:n]
    importance = np.exp(rng.normal(0, 0.5, n))
    return Pages.of(ids, host=rng.integers(0, 4, n), importance=importance, discovered=START - rng.random(n) * DAY)


def some_visits(pages, per_page=8, seed=2):
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


def end_of(visits):
    return float(visits.time.max()) + DAY


def budget_of(pages):
    return PER_PAGE_DAY * float(pages.cost.sum()) / DAY


def taught(make, pages, batches, *, fit=True):
    policy = make()
    policy.add(pages)
    if fit:
        policy.fit(budget_of(pages), START)
    for batch in batches:
        policy.tell(batch)
    return policy


def due_of(policy, pages, now, *, fit=True):
    if fit:
        policy.fit(budget_of(pages), now)
    return policy.due(pages.id, now)


def copies(table):
    return {name: getattr(table, name).copy() for name in type(table).__slots__}


def test_has_a_name_and_a_price_or_none(make):
    policy = taught(make, some_pages(), [])
    assert policy.name
    assert policy.price is None or policy.price >= 0


def test_it_counts_the_pages_it_knows(make):
    pages = some_pages()
    policy = taught(make, pages, [])
    assert len(policy) == len(pages)
    policy.add(pages)
    assert len(policy) == len(pages)


def test_same_input_same_answer(make):
    pages = some_pages()
    visits = some_visits(pages)
    first, second = (due_of(taught(make, pages, [visits]), pages, end_of(visits)) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("fit", [True, False])
def test_batches_and_single_visits_teach_the_same(make, fit):
    pages = some_pages()
    visits = some_visits(pages)
    by_time = np.argsort(visits.time)
    singles = [visits.take(np.array([row])) for row in by_time]
    now = end_of(visits)
    whole = due_of(taught(make, pages, [visits]), pages, now, fit=fit)
    one_by_one = due_of(taught(make, pages, singles), pages, now, fit=fit)
    np.testing.assert_allclose(whole, one_by_one, rtol=1e-12)


def test_order_across_pages_does_not_matter(make):
    pages = some_pages()
    visits = some_visits(pages)
    now = end_of(visits)
    shuffled = visits.take(np.random.default_rng(3).permutation(len(visits)))
    np.testing.assert_allclose(
        due_of(taught(make, pages, [visits]), pages, now),
        due_of(taught(make, pages, [shuffled]), pages, now),
        rtol=1e-12,
    )


def test_order_of_the_pages_does_not_matter(make):
    pages = some_pages()
    visits = some_visits(pages)
    now = end_of(visits)
    order = np.random.default_rng(4).permutation(len(pages))
    straight = due_of(taught(make, pages, [visits]), pages, now)
    mixed = taught(make, pages.take(order), [visits])
    mixed.fit(budget_of(pages), now)
    np.testing.assert_allclose(mixed.due(pages.id[order], now), straight[order], rtol=1e-9)


def test_telling_again_changes_nothing(make):
    pages = some_pages()
    visits = some_visits(pages)
    now = end_of(visits)
    once = due_of(taught(make, pages, [visits]), pages, now)
    np.testing.assert_array_equal(due_of(taught(make, pages, [visits, visits]), pages, now), once)


def test_adding_again_changes_nothing(make):
    pages = some_pages()
    policy = taught(make, pages, [some_visits(pages)])
    before = policy.due(pages.id, START)
    policy.add(Pages.of(pages.id, importance=99.0, discovered=0.0))
    np.testing.assert_array_equal(policy.due(pages.id, START), before)


def test_it_pickles_and_goes_on_as_if_nothing_had_happened(make):
    pages = some_pages()
    visits = some_visits(pages)
    early = visits.time < np.median(visits.time)
    policy = taught(make, pages, [visits.take(early)])
    again = pickle.loads(pickle.dumps(policy, protocol=5))
    half, now = end_of(visits.take(early)), end_of(visits)
    np.testing.assert_array_equal(again.due(pages.id, half), policy.due(pages.id, half))
    for one in (policy, again):
        one.tell(visits.take(~early))
    np.testing.assert_array_equal(again.urgency(pages.id, now), policy.urgency(pages.id, now))
    np.testing.assert_array_equal(due_of(again, pages, now), due_of(policy, pages, now))


def test_a_replica_answers_the_same_and_takes_visits_and_pages(make):
    pages = some_pages()
    visits = some_visits(pages)
    known, later = pages.take(slice(0, 30)), pages.take(slice(30, None))
    of_known = visits.take(np.isin(visits.page, known.id))
    policy, now = taught(make, known, [of_known]), end_of(visits)
    policy.fit(budget_of(known), now)
    before = policy.due(known.id, now)
    replica = policy.replica() if isinstance(policy, Replicable) else policy
    replica = pickle.loads(pickle.dumps(replica, protocol=5))
    np.testing.assert_array_equal(replica.due(known.id, now), before)
    replica.add(later)
    replica.tell(of_known)  # what it knows already changes nothing
    np.testing.assert_array_equal(replica.due(known.id, now), before)
    seen = Visits.of(known.id, now + np.arange(30.0), outcome=0, verdict=Verdict.UNCHANGED)
    first = Visits.of(later.id, now + np.arange(10.0), outcome=0, verdict=Verdict.UNKNOWN)
    for some in (seen, first):
        replica.tell(some)
    after = replica.due(pages.id, now + 40.0)
    assert (after > now).all()
    np.testing.assert_array_equal(policy.due(known.id, now), before)  # which was told nothing of that
    long_after = now + 400 * DAY  # no period is folded, however late it is
    np.testing.assert_allclose(replica.due(pages.id, long_after), after)


def test_unseen_pages_are_due_at_discovery(make):
    pages = some_pages()
    np.testing.assert_array_equal(taught(make, pages, []).due(pages.id, START), pages.discovered)


def test_pages_may_come_later(make):
    pages = some_pages()
    policy = taught(make, pages.take(slice(0, 20)), [])
    policy.add(pages.take(slice(10, 40)))
    np.testing.assert_array_equal(policy.due(pages.id, START), pages.discovered)


def test_seen_pages_are_due_after_their_last_look(make):
    pages = some_pages()
    visits = some_visits(pages)
    answered = visits.take(visits.answered())
    due = due_of(taught(make, pages, [visits]), pages, end_of(visits))
    last = np.array([answered.time[answered.page == page].max() for page in pages.id])
    assert (due > last).all()


@pytest.mark.parametrize("outcome", [Outcome.UNREACHABLE, Outcome.FETCHED])
def test_a_visit_without_a_word_on_change_does_not_move_the_due_time(make, outcome):
    pages = some_pages()
    visits = some_visits(pages)
    policy = taught(make, pages, [visits])
    before = due_of(policy, pages, end_of(visits))
    policy.tell(Visits.of(pages.id, np.full(len(pages), end_of(visits)), outcome=outcome))
    np.testing.assert_array_equal(policy.due(pages.id, end_of(visits)), before)


def test_a_first_visit_that_failed_leaves_the_page_unseen(make):
    pages = some_pages()
    failed = Visits.of(pages.id, np.full(len(pages), START), outcome=Outcome.SERVER_ERROR)
    np.testing.assert_array_equal(taught(make, pages, [failed]).due(pages.id, START), pages.discovered)


def test_an_unknown_page_is_named(make):
    policy = taught(make, some_pages(), [])
    with pytest.raises(LookupError, match="page -5 was never added"):
        policy.due(np.array([-5]), START)
    with pytest.raises(LookupError, match="page -5 was never added"):
        policy.tell(Visits.of([-5], [START]))


def test_arguments_are_neither_modified_nor_kept(make):
    pages = some_pages()
    visits = some_visits(pages)
    now = end_of(visits)
    before = copies(pages), copies(visits)
    asked = pages.id.copy()
    policy = taught(make, pages, [visits])
    due = due_of(policy, pages, now)
    for table, saved in zip((pages, visits), before, strict=True):
        for name, column in saved.items():
            np.testing.assert_array_equal(getattr(table, name), column)
    expected = due.copy()
    due[:] = 0.0
    for column in copies(pages):
        getattr(pages, column)[:] = 0
    for column in copies(visits):
        getattr(visits, column)[:] = 0
    np.testing.assert_array_equal(policy.due(asked, now), expected)


def test_no_pages_no_trouble(make):
    policy = make()
    none = np.empty(0, dtype=np.int64)
    policy.add(Pages.of(none))
    policy.fit(1.0, START)
    policy.tell(Visits.empty())
    assert policy.due(none, START).shape == (0,)
    policy.add(Pages.of([3], discovered=START))
    policy.tell(Visits.of([3], [START]))
    assert policy.due(np.array([3]), START)[0] > START


@pytest.mark.parametrize("name", BUDGETED)
def test_the_budget_is_kept_in_the_long_run(name):
    """Visit every page when due, for a year, nothing ever changing the beliefs: visits per day are the budget.

    Where time passes evenly, that is: pages whose siblings just changed are visited sooner, and others later.
    """
    policy = MAKERS[name](factors=()) if name in VALUED else MAKERS[name]()
    pages = some_pages(60)
    visits = some_visits(pages, per_page=30)
    policy.add(pages)
    policy.tell(visits)
    now = end_of(visits)
    policy.fit(budget_of(pages), now)
    last = np.array([visits.time[(visits.page == page) & visits.answered()].max() for page in pages.id])
    interval = policy.due(pages.id, now) - last
    assert float((pages.cost / interval).sum()) == pytest.approx(budget_of(pages), rel=1e-6)
    assert interval.min() >= HOUR * (1 - 1e-9)


@pytest.mark.parametrize("name", REFUSING)
@pytest.mark.parametrize("budget", [-1.0, np.nan])
def test_an_impossible_budget_is_refused(name, budget):
    policy = MAKERS[name]()
    policy.add(some_pages())
    with pytest.raises(ConfigError, match="budget"):
        policy.fit(budget, START)


@pytest.mark.parametrize("name", [*BUDGETED, "random", "hacs", "last-obs"])
def test_more_budget_is_never_later(name):
    pages = some_pages()
    visits = some_visits(pages)
    policy = taught(MAKERS[name], pages, [visits])
    now = end_of(visits)
    before = None
    for factor in (0.0, 0.5, 1.0, 3.0, 1e6):
        policy.fit(factor * budget_of(pages), now)
        due = policy.due(pages.id, now)
        assert before is None or (due <= before + 1e-3).all()
        before = due


def test_urgency_reaches_one_when_a_page_is_due(make):
    pages = some_pages()
    visits = some_visits(pages)
    policy = taught(make, pages, [visits])
    now = end_of(visits)
    due = due_of(policy, pages, now)
    for at in (now, now + 10 * DAY, now + 200 * DAY):
        urgency = policy.urgency(pages.id, at)
        assert (urgency >= 0).all()
        clear = np.abs(due - at) > 1.0
        np.testing.assert_array_equal((urgency >= 1)[clear], (due <= at)[clear])


def test_urgency_never_falls_while_a_page_waits_and_is_without_limit_for_the_unseen(make):
    pages = some_pages()
    visits = some_visits(pages)
    seen = np.isin(pages.id, visits.page[::3])
    policy = taught(make, pages, [visits.take(np.isin(visits.page, pages.id[seen]))])
    policy.fit(budget_of(pages), end_of(visits))
    times = end_of(visits) + np.array([0.0, HOUR, DAY, 30 * DAY, 400 * DAY])
    urgency = np.stack([policy.urgency(pages.id, float(at)) for at in times])
    assert np.isinf(urgency[:, ~seen]).all()
    assert (np.diff(urgency[:, seen], axis=0) >= -1e-9).all()
    policy.urgency(pages.id, times[0])[:] = -1.0
    np.testing.assert_array_equal(policy.urgency(pages.id, float(times[0])), urgency[0])
