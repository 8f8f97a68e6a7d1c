"""SHARC-Offline: the order of least blur when all pages are known beforehand (SHARC 4.3).

The later or earlier than the middle of the crawl a page is visited, the higher the penalty; so the hottest
pages belong into the middle and the coldest to both ends, like organ pipes.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from recrawl.capture.strategy import KnownPages
from recrawl.model import CapturePlan, FloatArray, IntArray


def organ_pipes(rate: FloatArray) -> CapturePlan:
    """The plan of least blur over the capture's own interval (SHARC 4.7). O(n log n).

    With pages by ascending rate, page i gets slot i/2 if i is even, else n − (i−1)/2, where n is the last slot.
    Algorithm 1 prints the two sides exchanged (reading 003.5). Pages of equal rate keep their order.

    >>> organ_pipes(np.arange(6.0)).visit.tolist()
    [0, 5, 1, 4, 2, 3]
    """
    rank = np.arange(len(rate))
    slot = np.where(rank % 2 == 0, rank // 2, len(rate) - 1 - rank // 2)
    visit = np.empty(len(rate), dtype=np.int64)
    visit[np.argsort(rate, kind="stable")] = slot
    return CapturePlan(visit)


def centred_start(pages: int, delay: float, start: float, end: float) -> float:
    """When to begin so that the middle of the crawl is the middle of the observation (SHARC Theorem 4.4).

    Seconds; ``delay`` between two visits. No start that lies whole delays away gives organ pipes a lower blur, if
    the crawl may be moved at all (reading 003.7). A start up to half a delay earlier can: the very least blur puts the
    rate-weighted mean of the visit times in the middle, and the hotter page of each pair is visited after it.

    >>> centred_start(6, 1.0, 10.0, 30.0)
    17.5
    """
    return (start + end - (pages - 1) * delay) / 2.0


class SharcOffline:
    """Organ pipes over all pages told of before the first visit.

    Pages that turn up later are outside the plan and come after it, in the order found.
    """

    def __init__(self) -> None:
        self._known = KnownPages()
        self._found: list[tuple[int, float]] = []
        self._waiting: deque[int] = deque()
        self._planned = False

    def discover(self, page: IntArray, rate: FloatArray) -> None:
        """Collect pages for the plan, or put them behind it."""
        new = self._known.admit(page, rate)
        if self._planned:
            self._waiting.extend(one for one, _ in new)
        else:
            self._found.extend(new)

    def next_page(self) -> int | None:
        """The next page of the plan, which is made at the first question that finds pages."""
        if not self._planned and self._found:
            self._make_plan()
        return self._waiting.popleft() if self._waiting else None

    def revisits(self) -> IntArray:
        """None: a single-visit strategy."""
        return np.empty(0, dtype=np.int64)

    def _make_plan(self) -> None:
        pages = np.array([page for page, _ in self._found], dtype=np.int64)
        plan = organ_pipes(np.array([rate for _, rate in self._found]))
        self._waiting.extend(pages[np.argsort(plan.visit)].tolist())
        self._found.clear()
        self._planned = True
