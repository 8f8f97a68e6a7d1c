"""A queue for pages without a visit, so that a flood of new pages does not stop revisits.

A page that is found is due at once, and due pages are visited in the order of their due times. So ten thousand pages
found in an hour would come before everything that falls due later: at a thousand visits per day there would be no
revisit for ten days. In this queue new pages fall due one after the other, at no more than a share of the budget.

Rules of this file:
 1. Pages keep their place: first in, first due. A rebuilt queue keeps the order it is given.
 2. After a quiet time the first few are due at once: as many as the share of the budget allows in ``burst`` seconds.
"""

from __future__ import annotations

import math

import numpy as np

from recrawl.model import BoolArray, FloatArray, IntArray


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

    def taken(self, budget: float, seconds: float) -> float:
        """The part of a budget that queued pages will use over the next ``seconds``, visits per second."""
        return min(self._share * budget, len(self) / seconds)

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
