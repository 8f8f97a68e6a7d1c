"""The agenda: after each batch of visits, when those pages are due again.

The policy says when a page is worth another visit; a page that just failed is not tried again before its
back-off is over. The simulator and the live driver both settle their visits here, so that neither can
schedule in a way the other does not.
"""

from __future__ import annotations

import numpy as np

from recrawl.model import ANSWERED, FloatArray, IntArray, Pages, Visits
from recrawl.schedule.policy import Policy
from recrawl.schedule.retry import Retry


class Agenda:
    """A policy and the patience with pages that fail. State is a fold over visits."""

    def __init__(self, policy: Policy, retry: Retry) -> None:
        self._policy = policy
        self._retry = retry
        self._failing: dict[int, tuple[int, float, int]] = {}
        """Pages whose last visits failed: how often in a row, when last, and how. Few, so a dict will do."""

    @property
    def policy(self) -> Policy:
        """The policy that is asked."""
        return self._policy

    def add(self, pages: Pages) -> None:
        """Take note of pages; ids known already change nothing."""
        self._policy.add(pages)

    def tell(self, visits: Visits) -> None:
        """Fold in visits, of each page in the order of time."""
        self._policy.tell(visits)
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
        due = self._policy.due(page, now)
        held = np.flatnonzero(np.isin(page, list(self._failing)))
        if len(held):
            times, attempt, outcome = np.array([self._failing[int(page[row])] for row in held]).T
            due[held] = np.maximum(due[held], self._retry.at(times.astype(np.int64), attempt, outcome))
        return due
