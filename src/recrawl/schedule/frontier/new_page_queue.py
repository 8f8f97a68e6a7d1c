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
    """Pages in line, and when it is the turn of each.

    >>> line = NewPageQueue(share=0.5, burst=20.0)
    >>> line.begin(np.array([7, 8, 9]), budget=0.1, now=0.0)
    >>> line.turn(np.array([9, 8, 7, 1])).tolist()
    [20.0, 0.0, 0.0, -inf]
    """

    def __init__(self, share: float, burst: float) -> None:
        """New pages take at most ``share`` of the budget; ``burst`` in seconds."""
        self._share, self._burst = share, burst
        self._page = np.empty(0, np.int64)
        self._turn = np.empty(0)
        self._since: dict[int, float] = {}
        """Pages that joined since the line was made: few, beside those in the columns."""
        self._rate = 0.0
        self._end = -math.inf
        """When the last in line would be due if nobody might come early, and one place further."""

    def __len__(self) -> int:
        """Pages in line, those included whose turn has come."""
        return len(self._page) + len(self._since)

    @property
    def terms(self) -> tuple[float, float]:
        """The share of the budget and the burst, in seconds, from the next ``begin`` on."""
        return self._share, self._burst

    def change(self, share: float, burst: float) -> None:
        """Other terms, from the next ``begin`` on."""
        self._share, self._burst = share, burst

    def taken(self, budget: float, seconds: float) -> float:
        """What those in line will take of a budget over the next N seconds, visits per second."""
        return min(self._share * budget, len(self) / seconds)

    def begin(self, page: IntArray, budget: float, now: float) -> None:
        """Make the line again of these distinct pages, in this order. O(n log n)."""
        self._rate, self._end = self._share * budget, now
        self._since = {}
        turn = self._turns(len(page), now)
        order = np.argsort(page, kind="stable")
        self._page, self._turn = page[order], turn[order]

    def join(self, page: IntArray, now: float) -> None:
        """These pages were found now; those in line already keep their place. O(log n) each."""
        new = page[~self._is_in_line(page)]
        self._since.update(zip(new.tolist(), self._turns(len(new), now).tolist(), strict=True))

    def turn(self, page: IntArray) -> FloatArray:
        """When it is the turn of each page, seconds since the epoch; -inf for one that is not in line."""
        turn = np.full(len(page), -math.inf)
        if len(self._page):
            place = np.minimum(np.searchsorted(self._page, page), len(self._page) - 1)
            turn = np.where(self._page[place] == page, self._turn[place], turn)
        if self._since:
            late = np.fromiter((self._since.get(one, -math.inf) for one in page.tolist()), np.float64, len(page))
            turn = np.maximum(turn, late)
        return turn

    def _is_in_line(self, page: IntArray) -> BoolArray:
        return self.turn(page) > -math.inf

    def _turns(self, count: int, now: float) -> FloatArray:
        """The turns of the next N pages; the end of the line moves on behind them."""
        if self._rate <= 0:
            return np.full(count, math.inf)
        begin = max(self._end, now)
        self._end = begin + count / self._rate
        return np.maximum(begin + np.arange(count) / self._rate - self._burst, now)
