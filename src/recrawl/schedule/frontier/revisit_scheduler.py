"""The revisit scheduler: when every page is due, and when to fit the policy again.

The policy decides when a page is worth another visit; a page that just failed is not retried before its back-off is
over. The policy is fitted to the budget regularly, and at once when many pages were found since the last fit. The
simulator and the live crawler both report their visits here, so both schedule in the same way.

Pages without a visit have a queue of their own, so that a flood of new pages does not stop revisits. A page that is
found is due at once, and due pages are visited in the order of their due times. So ten thousand pages found in an hour
would come before everything that falls due later: at a thousand visits per day there would be no revisit for ten days.
In this queue new pages fall due one after the other, at no more than a share of the budget.

Rules of the queue:
 1. Pages keep their place: first in, first due. A rebuilt queue keeps the order it is given.
 2. After a quiet time the first few are due at once: as many as the share of the budget allows in ``burst`` seconds.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from recrawl.estimate.site_signals import exact_times_as_observations
from recrawl.model import ANSWERED, BoolArray, FloatArray, IntArray, Pages, Visits
from recrawl.schedule.policy import Policy, ReplicablePolicy, SignalAware, SnapshotPolicy
from recrawl.schedule.politeness.retry import Retry
from recrawl.time import DAY


class NewPageQueue:
    """The queued pages, and when each of them is due.

    >>> queue = NewPageQueue(share=0.5, burst=20.0)
    >>> queue.begin(np.array([7, 8, 9]), budget=0.1, now=0.0)
    >>> queue.due(np.array([9, 8, 7, 1])).tolist()
    [20.0, 0.0, 0.0, -inf]
    """

    def __init__(self, share: float, burst: float) -> None:
        """New pages take at most ``share`` of the budget; ``burst`` in seconds."""
        self._share, self._burst = share, burst
        self._page = np.empty(0, np.int64)
        self._due = np.empty(0)
        self._since: dict[int, float] = {}
        """Pages that were added after the last ``begin``, with their due times: few, compared with the columns."""
        self._rate = 0.0
        self._end = -math.inf
        """The due time of the next page to join, without the burst."""

    def __len__(self) -> int:
        """The number of queued pages, including those that are due."""
        return len(self._page) + len(self._since)

    @property
    def terms(self) -> tuple[float, float]:
        """The share of the budget and the burst, in seconds, from the next ``begin`` on."""
        return self._share, self._burst

    def change(self, share: float, burst: float) -> None:
        """Set the share and the burst from the next ``begin`` on."""
        self._share, self._burst = share, burst

    def taken(self, budget: float, seconds: float, elsewhere: int = 0) -> float:
        """The part of a budget that queued pages will use over the next ``seconds``, visits per second.

        ``elsewhere`` more pages are queued in other processes that share the budget.
        """
        return min(self._share * budget, (len(self) + elsewhere) / seconds)

    def begin(self, page: IntArray, budget: float, now: float) -> None:
        """Rebuild the queue from these distinct pages, in this order. O(n log n)."""
        self._rate, self._end = self._share * budget, now
        self._since = {}
        due = self._next_due(len(page), now)
        order = np.argsort(page, kind="stable")
        self._page, self._due = page[order], due[order]

    def join(self, page: IntArray, now: float) -> None:
        """Append pages that were found now; pages already in the queue keep their place. O(log n) each."""
        new = page[~self._is_queued(page)]
        self._since.update(zip(new.tolist(), self._next_due(len(new), now).tolist(), strict=True))

    def due(self, page: IntArray) -> FloatArray:
        """When each page is due, seconds since the epoch; -inf for a page that is not in the queue."""
        due = np.full(len(page), -math.inf)
        if len(self._page):
            place = np.minimum(np.searchsorted(self._page, page), len(self._page) - 1)
            due = np.where(self._page[place] == page, self._due[place], due)
        if self._since:
            late = np.fromiter((self._since.get(one, -math.inf) for one in page.tolist()), np.float64, len(page))
            due = np.maximum(due, late)
        return due

    def _is_queued(self, page: IntArray) -> BoolArray:
        return self.due(page) > -math.inf

    def _next_due(self, count: int, now: float) -> FloatArray:
        """The due times of the next ``count`` pages; the end of the queue moves behind them."""
        if self._rate <= 0:
            return np.full(count, math.inf)
        begin = max(self._end, now)
        self._end = begin + count / self._rate
        return np.maximum(begin + np.arange(count) / self._rate - self._burst, now)


class SharedFit(Protocol):
    """How to fit a policy whose budget is shared with other processes."""

    @property
    def waiting(self) -> int:
        """Pages in the queues of the others."""
        ...

    def fit(self, policy: Policy, budget: float, now: float) -> None:
        """Fit a policy of some of the pages to a budget for all of them, in cost per second."""
        ...


_GROWTH = 1.25
"""A fit serves until there are this many times the pages it was made for (algorithms §5)."""


class RevisitScheduler:
    """A policy, its budget, and the retry rule with pages that fail. State is a fold over pages and visits."""

    def __init__(
        self,
        policy: Policy,
        *,
        budget: float,
        fit_every: float = DAY,
        retry: Retry | None = None,
        new_page_queue: NewPageQueue | None = None,
    ) -> None:
        """``budget`` is in visits per second, ``fit_every`` in seconds.

        With ``new_page_queue`` pages without a visit wait in that queue; without it, they are due when they are found.
        """
        self.policy = policy
        self._new_page_queue = new_page_queue
        self._budget = budget
        self._fit_every = fit_every
        self._retry = retry or Retry()
        self._failing: dict[int, _FailureCounts] = {}
        """Pages whose last visits failed."""
        self._fit_when_pages = 0.0
        self._longest_wait = math.inf
        """Seconds until a page is due again at the latest, while the policy awaits its first fit."""
        self._fit_at = self._fitted_at = -math.inf
        self.fits = 0
        """How often the policy was fitted."""
        self._journal: list[Callable[[], object]] | None = None
        """Calls since a copy of this scheduler began to be fitted in another process; ``None`` if there is no copy."""
        self._journal_pages: list[IntArray] = []

    def add(self, pages: Pages) -> None:
        """Add new pages; known ids are ignored."""
        before = len(self.policy)
        self.policy.add(pages)
        if self._journal is not None and len(self.policy) > before:
            self._journal.append(partial(self.add, pages))

    def tell(self, visits: Visits) -> None:
        """Update the state with visits to known pages, in the order of time for each page; repeated visits are ignored.

        A visit with an exact time of change reaches the policy as two observations: unchanged until that time, then
        changed (``exact_times_as_observations``). O(1) for each failed visit and each visit to a failing page,
        vectorised for the rest.
        """
        if self._journal is not None:
            self._journal.append(partial(self.tell, visits))
            self._journal_pages.append(visits.page)
        self.policy.tell(exact_times_as_observations(visits))
        failed = visits.outcome > ANSWERED
        concerned = failed | np.isin(visits.page, np.unique(visits.page[failed]))
        concerned |= self._is_failing(visits.page)
        for row in np.flatnonzero(concerned).tolist():
            page, time = int(visits.page[row]), float(visits.time[row])
            before = self._failing.get(page, _NOT_FAILING)
            if time <= before.time:
                continue
            if failed[row]:
                self._failing[page] = _FailureCounts(
                    before.times + 1, time, int(visits.outcome[row]), int(visits.status[row])
                )
            else:
                self._failing.pop(page, None)

    def add_signals(self, page: IntArray, time: FloatArray) -> bool:
        """Pass signals of change of known pages, received at these times, to the policy; False if it uses none."""
        if not isinstance(self.policy, SignalAware):
            return False
        if self._journal is not None:
            self._journal.append(partial(self.add_signals, page, time))
            self._journal_pages.append(page)
        self.policy.signal(page, time)
        return True

    def due(self, page: IntArray, now: float) -> FloatArray:
        """When each page should be visited next, seconds since the epoch; inf for never."""
        due = self.policy.due(page, now)
        if self._longest_wait < math.inf:
            due = np.minimum(due, now + self._longest_wait)
        rows = np.flatnonzero(self._is_failing(page))
        if len(rows):
            times, attempt, outcome, status = np.array([self._failing[int(page[row])] for row in rows]).T
            due[rows] = np.maximum(due[rows], self._retry.at(times.astype(np.int64), attempt, outcome, status))
        if self._new_page_queue:
            turn = self._new_page_queue.due(page)
            waits = np.flatnonzero(turn > due)
            new = waits[self._is_new(page[waits], now)]
            due[new] = turn[new]
        return due

    def rebuild_new_page_queue(self, page: IntArray, now: float, elsewhere: Sequence[int] = ()) -> None:
        """Rebuild the queue of new pages from all pages, in the given order. O(n log n).

        ``elsewhere``: how many pages each of the processes that share the budget has queued. Each gets a part by the
        number of its pages, and counts as if it had found one more.
        """
        if self._new_page_queue is not None:
            new = page[self._is_new(page, now)]
            part = (len(new) + 1) / (len(new) + 1 + sum(elsewhere) + len(elsewhere))
            self._new_page_queue.begin(new, self._budget * part, now)

    @property
    def waiting(self) -> int:
        """Number of pages in the queue of new pages."""
        return len(self._new_page_queue) if self._new_page_queue is not None else 0

    @property
    def budget(self) -> float:
        """Visits per second."""
        return self._budget

    @property
    def fitted_at(self) -> float:
        """The time of the last fit, seconds since the epoch; -inf before the first."""
        return self._fitted_at

    def enqueue_new_pages(self, page: IntArray, now: float) -> IntArray:
        """Add found pages: the new ones join the queue. Return those that must wait in it."""
        if self._new_page_queue is None or not len(page):
            return page[:0]
        if self._journal is not None:
            self._journal.append(partial(self.enqueue_new_pages, page, now))
            self._journal_pages.append(page)
        new = page[self._is_new(page, now)]
        self._new_page_queue.join(new, now)
        return new[self._new_page_queue.due(new) > now]

    def queue_found(self, page: IntArray, now: float) -> FloatArray:
        """When pages that were just found are due, whether or not the policy knows them: they join the queue."""
        if self._new_page_queue is None or not len(page):
            return np.full(len(page), now)
        if self._journal is not None:
            self._journal.append(partial(self.queue_found, page, now))
            self._journal_pages.append(page)
        self._new_page_queue.join(page, now)
        return np.maximum(self._new_page_queue.due(page), now)

    def _is_new(self, page: IntArray, now: float) -> BoolArray:
        """Which of these pages have no observation: their urgency is infinite."""
        return np.isinf(self.policy.urgency(page, now)) if len(page) else np.zeros(0, np.bool_)

    def _is_failing(self, page: IntArray) -> BoolArray:
        """Which of these m pages failed at the last visit. O(m), or O(m log f) if m exceeds the f failing pages."""
        if len(page) > len(self._failing):
            return np.isin(page, np.fromiter(self._failing, np.int64, len(self._failing)))
        return np.fromiter((number in self._failing for number in page.tolist()), np.bool_, len(page))

    @property
    def fit_at(self) -> float:
        """When the policy should be fitted next, seconds since the epoch: a time in the past for at once."""
        return self._fitted_at if len(self.policy) >= self._fit_when_pages else self._fit_at

    def fit(self, now: float, shared: SharedFit | None = None) -> None:
        """Fit the policy to the budget, all pages and all visits. Every due time may change.

        The part of the budget that queued new pages will use until the next fit is subtracted first. With ``shared``,
        other processes spend the same budget on other pages.
        """
        taken = 0.0
        if self._new_page_queue is not None:
            waiting = shared.waiting if shared is not None else 0
            taken = self._new_page_queue.taken(self._budget, self._fit_every, waiting)
        if shared is None:
            self.policy.fit(self._budget - taken, now)
        else:
            shared.fit(self.policy, self._budget - taken, now)
        self.fits += 1
        self._longest_wait = math.inf
        self._fitted_at = now
        self._fit_at = now + self._fit_every
        self._fit_when_pages = max(len(self.policy) * _GROWTH, len(self.policy) + 1.0)

    def start_over(self, policy: Policy) -> None:
        """Go on with a policy that knows no page yet: all pages and visits are to be added again."""
        self.policy, self._failing = policy, {}
        self.rebuild_new_page_queue(np.empty(0, np.int64), -math.inf)

    def fit_again(self) -> None:
        """Make another fit due at once: the last one is outdated, or its due times could not be stored."""
        self._fit_when_pages = 0.0

    def put_off_fit(self, until: float) -> None:
        """Keep the last fit until this time, seconds since the epoch, because the next one failed."""
        self._fit_at, self._fit_when_pages = until, math.inf

    def change_budget(self, budget: float, *, discovery_share: float, burst: float) -> None:
        """Set the budget (visits per second) and the limits for new pages; a fit is due at once."""
        if self._journal is not None:
            self._journal.append(partial(self.change_budget, budget, discovery_share=discovery_share, burst=burst))
        self.set_budget(budget, discovery_share=discovery_share, burst=burst)
        self.fit_again()

    def set_budget(self, budget: float, *, discovery_share: float, burst: float) -> None:
        """Set the budget (visits per second) and the limits for new pages from the next fit on."""
        self._budget = budget
        if self._new_page_queue is not None:
            self._new_page_queue.change(discovery_share, burst)

    @property
    def terms(self) -> dict[str, float]:
        """The arguments of :meth:`set_budget` that are in force."""
        share, burst = self._new_page_queue.terms if self._new_page_queue is not None else (0.0, 0.0)
        return {"budget": self._budget, "discovery_share": share, "burst": burst}

    def await_first_fit(self) -> None:
        """Until the first fit, make every page due again within the interval between two fits.

        A policy without a fit knows no value and would put pages off for its longest interval. If the process ended
        before the fit did, nobody would correct that. :meth:`take_over` and :meth:`fit` remove the limit.
        """
        self._longest_wait = self._fit_every

    # -- a state that outlives the process --------------------------------------------------------

    @property
    def given(self) -> tuple[object, ...]:
        """What the policy was made with, which is not part of a state; empty if the policy has no snapshots."""
        return self.policy.given if isinstance(self.policy, SnapshotPolicy) else ()

    def snapshot(self) -> dict[str, object] | None:
        """What was learned from visits, to be pickled; it shares memory. ``None`` if the policy has no snapshots."""
        if not isinstance(self.policy, SnapshotPolicy):
            return None
        failing = np.array([(page, *counts) for page, counts in self._failing.items()], np.float64).reshape(-1, 5)
        return {"name": self.policy.name, "policy": self.policy.snapshot(), "failing": failing}

    def restore(self, state: dict[str, object], pages: Pages) -> bool:
        """Go on from a state; False, and nothing changed, if it is not of this policy and these pages. O(pages)."""
        learned, failing = state["policy"], state["failing"]
        if not isinstance(self.policy, SnapshotPolicy) or state["name"] != self.policy.name:
            return False
        if not isinstance(learned, dict) or not isinstance(failing, np.ndarray):
            return False
        if not self.policy.restore(learned, pages):
            return False
        self._failing = {
            int(page): _FailureCounts(int(times), time, int(outcome), int(status))
            for page, times, time, outcome, status in failing.tolist()
        }
        return True

    # -- a fit in another process ---------------------------------------------------------------

    def begin_journal(self, underway: Visits) -> None:
        """Record all calls from now on, so that :meth:`take_over` can repeat them on the fitted copy.

        ``underway`` are visits that this scheduler has and the store may not have yet. Memory: all visits until then.
        """
        self._journal, self._journal_pages = [partial(self.tell, underway)], [underway.page]

    def end_journal(self) -> None:
        """Discard the journal: the fitted copy will not arrive."""
        self._journal, self._journal_pages = None, []

    def journal_pages(self) -> IntArray:
        """The pages that the journal is about."""
        return np.unique(np.concatenate([np.empty(0, np.int64), *self._journal_pages]))

    def replica(self) -> RevisitScheduler:
        """A copy to pickle, for :meth:`take_over` in another process. It shares memory with this one."""
        twin = copy.copy(self)
        for name in _OWN:
            del vars(twin)[name]
        twin.policy = self.policy.replica() if isinstance(self.policy, ReplicablePolicy) else self.policy
        return twin

    def take_over(self, fitted: RevisitScheduler, concerned: Pages) -> None:
        """Replace the state by that of a fitted scheduler, then repeat the calls of the journal.

        ``concerned`` are pages with recent or upcoming visits: the fitted scheduler may not know all of them. Repeated
        visits change nothing. O(calls in the journal).
        """
        journal = self._journal or []
        self.end_journal()
        vars(self).update({name: value for name, value in vars(fitted).items() if name not in _OWN})
        self.fits += 1
        self.add(concerned)
        for call in journal:
            call()


_OWN = frozenset({"fits", "_journal", "_journal_pages", "_retry"})
"""Attributes that ``take_over`` leaves unchanged."""


class _FailureCounts(NamedTuple):
    """A page whose last visits failed: how often in a row, when last, and how."""

    times: int
    time: float
    outcome: int
    status: int


_NOT_FAILING = _FailureCounts(0, -math.inf, 0, 0)
