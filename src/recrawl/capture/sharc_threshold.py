"""SHARC-Threshold: as many pages as possible stay unchanged with probability τ; the others are given up (SHARC 5.3).

The second variant scans from the outside in, as in the figures of the thesis; it works online.
"""

from __future__ import annotations

import heapq
import math

import numpy as np

from recrawl.capture.online_pages import RankedPages, SiteSize
from recrawl.capture.pyramid import pyramid
from recrawl.capture.strategy import CaptureTerms, KnownPages, PlanDecision
from recrawl.model import BoolArray, CapturePlan, FloatArray, IntArray


def sharc_threshold(rate: FloatArray, delay: float, threshold: float, weight: FloatArray | None = None) -> CapturePlan:
    """Hopeful pages inside, the hottest innermost; hopeless ones outside, the hottest outermost. O(n log n).

    >>> plan = sharc_threshold(np.array([0.557, 0.016, 0.037, 0.083, 0.311, 0.249]), 0.5, 0.9)
    >>> plan.visit.tolist(), plan.revisit.tolist()
    ([0, 3, 4, 5, 1, 2], [11, 8, 7, 6, 10, 9])
    """
    return divide(rate, delay, threshold, weight).plan


def divide(rate: FloatArray, delay: float, threshold: float, weight: FloatArray | None = None) -> PlanDecision:
    """The plan of :func:`sharc_threshold`, and which pages it gives up."""
    hottest = np.argsort(-rate, kind="stable")
    hopeful = hopeful_pages(rate, delay, threshold, weight)
    inside, outside = hottest[hopeful[hottest]], hottest[~hopeful[hottest]]
    return PlanDecision(pyramid(np.concatenate([inside, outside[::-1]]), once=False), ~hopeful)


def hopeful_pages(rate: FloatArray, delay: float, threshold: float, weight: FloatArray | None = None) -> BoolArray:
    """Which pages can be coherent with a probability above ``threshold`` together (SHARC Definition 5.4).

    Pages are tried from the hottest to the coldest; a page is hopeful if e^{−λ(2i+1)Δ} > τ, where i pages are
    hopeful already (reading 003.19). No other choice makes more pages hopeful. With weights, the hopeful pages have
    the largest total weight possible: each page is a job with a deadline, the last place in which it is hopeful.
    """
    hottest = np.argsort(-rate, kind="stable")
    places = _hopeful_places(rate[hottest], delay, threshold)
    equal = weight is None or bool((weight == weight[:1]).all())
    hopeful = np.zeros(len(rate), dtype=np.bool_)
    hopeful[hottest] = _most(places) if weight is None or equal else _heaviest(places, weight[hottest])
    return hopeful


def _hopeful_places(rate: FloatArray, delay: float, threshold: float) -> IntArray:
    """How many of the innermost intervals are short enough for each page."""
    with np.errstate(divide="ignore", over="ignore"):
        slots = math.log(1.0 / threshold) / (rate * delay)
    return np.ceil(np.clip((slots - 1.0) / 2.0, 0.0, len(rate))).astype(np.int64)


def _most(places: IntArray) -> BoolArray:
    """Take each page in turn if a place is left: c ← min(c + 1, places), all at once by a running minimum."""
    turn = np.arange(len(places))
    taken = np.minimum(turn + 1, turn + np.minimum.accumulate(places - turn))
    return np.diff(taken, prepend=0) > 0


def _heaviest(places: IntArray, weight: FloatArray) -> BoolArray:
    """Take each page in turn, and drop the lightest if they are then too many for their places. O(n log n)."""
    kept = np.zeros(len(places), dtype=np.bool_)
    held: list[tuple[float, int]] = []
    for page, (limit, value) in enumerate(zip(places.tolist(), weight.tolist(), strict=True)):
        heapq.heappush(held, (value, page))
        if len(held) > limit:
            heapq.heappop(held)
    kept[[page for _, page in held]] = True
    return kept


class SharcThresholdOutermost:
    """Each interval, the longest first, goes to the hottest known page that can stand it.

    That is one with e^{−λI} > τ; if there is none, the hottest page known is given up. Table 5.1 was made by this scan
    (reading 003.19). It keeps every page just above τ and is far worse than the definition, but needs no
    more than the pages known and the size. Weights have no part in it.
    """

    def __init__(self, terms: CaptureTerms) -> None:
        self._terms = terms
        self._known = KnownPages()
        self._waiting = RankedPages()
        self._size = SiteSize(terms.expected)
        self._visited: list[int] = []
        self._hopeless: list[int] = []

    def discover(self, page: IntArray, rate: FloatArray, weight: FloatArray | None = None) -> None:
        """Rank new pages by rate among the waiting ones."""
        new = self._known.admit(page, rate, weight)
        self._size.discovered(len(new.page))
        self._waiting.add(new.rate, new.page)

    def next_page(self) -> int | None:
        """The hottest page that is hopeful on the longest interval left, or else the hottest."""
        if not self._waiting:
            return None
        left = self._size.estimate() - self._size.visited
        self._size.visit()
        length = (2 * left - 1) * self._terms.delay
        limit = math.log(1.0 / self._terms.threshold) / length if length else math.inf
        hopeful = self._waiting.colder_than(limit)
        page = self._waiting.take(hopeful - 1)
        self._visited.append(page)
        if not hopeful:
            self._hopeless.append(page)
        return page

    def revisits(self) -> IntArray:
        """Every page, the one visited last first."""
        return np.array(self._visited[::-1], dtype=np.int64)

    def given_up(self) -> IntArray:
        """The pages given up, as they were visited."""
        return np.array(self._hopeless, dtype=np.int64)
