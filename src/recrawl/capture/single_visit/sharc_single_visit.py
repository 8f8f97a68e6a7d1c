"""SHARC-Offline (SHARC 4.3) and SHARC-Online (SHARC 4.4): the order of least blur.

The further from the middle of the crawl a page is visited, the higher its blur penalty. So the hottest pages belong
into the middle and the coldest to both ends, like organ pipes. SHARC-Offline knows all pages beforehand; SHARC-Online
approximates the organ pipes with the pages known so far.
"""

from __future__ import annotations

import numpy as np

from recrawl.capture.ranked_pages import RankedPages
from recrawl.capture.site_size import SiteSize
from recrawl.capture.strategy import CaptureTerms, KnownPages
from recrawl.model import CapturePlan, FloatArray, IntArray


def organ_pipes(rate: FloatArray, weight: FloatArray | None = None) -> CapturePlan:
    """The plan of least blur over the capture's own interval (SHARC 4.7). O(n log n).

    With pages by ascending rate, page i gets slot i/2 if i is even, else n − (i−1)/2, where n is the last slot.
    With weights the weighted blur is least: rate times weight takes the place of the rate.
    Algorithm 1 prints the two sides exchanged (reading 003.5). Pages of equal rate keep their order.

    >>> organ_pipes(np.arange(6.0)).visit.tolist()
    [0, 5, 1, 4, 2, 3]
    """
    rank = np.arange(len(rate))
    slot = np.where(rank % 2 == 0, rank // 2, len(rate) - 1 - rank // 2)
    visit = np.empty(len(rate), dtype=np.int64)
    visit[np.argsort(rate if weight is None else rate * weight, kind="stable")] = slot
    return CapturePlan(visit)


def centred_start(pages: int, delay: float, start: float, end: float) -> float:
    """When to start so that the middle of the crawl is the middle of the observation (SHARC Theorem 4.4).

    Seconds; ``delay`` between two visits. No start that lies whole delays away gives organ pipes a lower blur, if
    the crawl may be moved at all (reading 003.7). A start up to half a delay earlier can: the very least blur puts the
    rate-weighted mean of the visit times in the middle, and the hotter page of each pair is visited after it.

    >>> centred_start(6, 1.0, 10.0, 30.0)
    17.5
    """
    return (start + end - (pages - 1) * delay) / 2.0


class SharcOnline:
    """Coldest first while few pages are known, hottest first past the middle, and between them organ pipes.

    Algorithm 2 as repaired in reading 003.9. With v pages visited, w waiting and N expected: the coldest while
    v + w ≤ N/2; then, until v > N/2, the page of rank v, as if every page so far had left its partner for the way
    down; then the hottest. With everything known at the start this is SHARC-Offline.
    """

    def __init__(self, terms: CaptureTerms) -> None:
        self._known = KnownPages()
        self._waiting = RankedPages()
        self._size = SiteSize(terms.expected)

    def discover(self, page: IntArray, rate: FloatArray, weight: FloatArray | None = None) -> None:
        """Rank new pages by rate times weight among the waiting ones."""
        new = self._known.admit(page, rate, weight)
        self._size.discovered(len(new.page))
        self._waiting.add(new.heat(), new.page)

    def next_page(self) -> int | None:
        """The page that fits the phase of the capture."""
        visited, waiting = self._size.visited, self._size.waiting
        if not waiting:
            return None
        middle = self._size.estimate() / 2.0
        self._size.visit()
        if visited + waiting <= middle:
            return self._waiting.take(0)
        if visited <= middle and visited < waiting:
            return self._waiting.take(visited)
        return self._waiting.take(-1)

    def revisits(self) -> IntArray:
        """None: a single-visit strategy."""
        return np.empty(0, dtype=np.int64)
