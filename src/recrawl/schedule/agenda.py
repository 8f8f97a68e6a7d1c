"""The agenda: when every page is due, and when to think again.

The policy says when a page is worth another visit; a page that just failed is not tried again before its
back-off is over. The policy is fitted to the budget regularly, and at once when many pages were found since.
The simulator and the live driver both settle their visits here, so that neither can schedule in a way the
other does not.
"""

from __future__ import annotations

import math

import numpy as np

from recrawl.model import ANSWERED, FloatArray, IntArray, Pages, Visits
from recrawl.schedule.policy import Policy
from recrawl.schedule.retry import Retry
from recrawl.time import DAY

_GROWTH = 1.25
"""A fit serves until there are this many times the pages it was made for (ALGORITHMS §5)."""


class Agenda:
    """A policy, its budget, and the patience with pages that fail. State is a fold over pages and visits."""

    def __init__(self, policy: Policy, *, budget: float, fit_every: float = DAY, retry: Retry | None = None) -> None:
        """``budget`` is in visits per second, ``fit_every`` in seconds."""
        self.policy = policy
        self._budget = budget
        self._fit_every = fit_every
        self._retry = retry or Retry()
        self._failing: dict[int, tuple[int, float, int]] = {}
        """Pages whose last visits failed: how often in a row, when last, and how. Few, so a dict will do."""
        self._pages = 0
        self._fit_when_pages = 0.0
        self._fit_at = -math.inf

    def add(self, pages: Pages) -> None:
        """Take note of new pages; ids known already change nothing."""
        self.policy.add(pages)
        self._pages += len(pages)

    def tell(self, visits: Visits) -> None:
        """Fold in visits, of each page in the order of time."""
        self.policy.tell(visits)
        failed = visits.outcome > ANSWERED
        concerned = failed | np.isin(visits.page, [*self._failing, *visits.page[failed].tolist()])
        for row in np.flatnonzero(concerned):
            page = int(visits.page[row])
            if failed[row]:
                times = self._failing.get(page, (0, 0.0, 0))[0]
                self._failing[page] = (times + 1, float(visits.time[row]), int(visits.outcome[row]))
            else:
                self._failing.pop(page, None)

    def due(self, page: IntArray, now: float) -> FloatArray:
        """When each page should be visited next, seconds since the epoch; inf for never."""
        due = self.policy.due(page, now)
        held = np.flatnonzero(np.isin(page, list(self._failing)))
        if len(held):
            times, attempt, outcome = np.array([self._failing[int(page[row])] for row in held]).T
            due[held] = np.maximum(due[held], self._retry.at(times.astype(np.int64), attempt, outcome))
        return due

    @property
    def fit_at(self) -> float:
        """When the policy should be fitted next, seconds since the epoch; -inf for at once."""
        return -math.inf if self._pages >= self._fit_when_pages else self._fit_at

    def fit(self, now: float) -> None:
        """Fit the policy to the budget and to all that is known. Every due time may change."""
        self.policy.fit(self._budget, now)
        self._fit_at = now + self._fit_every
        self._fit_when_pages = max(self._pages * _GROWTH, self._pages + 1.0)
