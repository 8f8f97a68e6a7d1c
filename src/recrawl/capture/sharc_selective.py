"""SHARC-Selective: give up the pages whose loss lets the others gain more (SHARC 5.5).

Intervals form a pyramid. Hopeful pages get the short ones, the hottest the shortest; hopeless pages get the long ones,
the hottest the longest.
"""

from __future__ import annotations

import numpy as np

from recrawl.capture.decision import Decision
from recrawl.capture.pyramid import hottest_first, pyramid
from recrawl.capture.selective_weighted import best_sacrifice, sacrificed_coherence, valley
from recrawl.model import BoolArray, CapturePlan, FloatArray

EXACT_PAGES = 2_000
"""Up to so many pages Algorithm 5 is followed to the letter."""
_TIE = 1e-12


def sharc_selective(rate: FloatArray, delay: float, weight: FloatArray | None = None) -> CapturePlan:
    """The plan of SHARC Algorithm 5 (as in readings 003.28–003.31). Cost: see :func:`hopeless_pages`.

    >>> plan = sharc_selective(np.array([0.4, 0.35, 0.3, 0.25, 0.2]), 1.0)
    >>> plan.visit.tolist(), plan.revisit.tolist()
    ([4, 0, 1, 3, 2], [4, 8, 7, 5, 6])
    """
    return select(rate, delay, weight).plan


def select(rate: FloatArray, delay: float, weight: FloatArray | None = None) -> Decision:
    """The plan of :func:`sharc_selective`, and which pages it gives up."""
    hopeless = hopeless_pages(rate, delay, weight)
    return Decision(pyramid(valley(rate, weight, hopeless), once=True), hopeless)


def hopeless_pages(rate: FloatArray, delay: float, weight: FloatArray | None = None) -> BoolArray:
    """Which pages are given up (SHARC Definition 5.7).

    Pages are tried from the hottest to the coldest. One is hopeless if the expected coherence of all pages left is
    higher with it on the longest interval left than on the shortest, the others keeping their order. The hottest of
    all takes the interval of length zero.

    O(n·h) for h hopeless pages up to :data:`EXACT_PAGES`. Above, the best number of hottest pages to give up is
    searched, in O(n log n): the hopeless pages are nearly always that, but not quite (reading 003.33). What is given
    up is the alternation of hopeful and hopeless pages behind them, less than one part in 10,000 of the
    expected coherence on all sites tried (``tests/capture``).

    With weights no one order is right for all lengths. The algorithm then tries pages by rate times weight, and the
    result is compared with giving up the pages of the highest rate for their weight, as many as are best
    (:func:`recrawl.capture.selective_weighted.best_sacrifice`). The better one can still be some percent from the
    optimum; ``benchmarks/capture.py`` prints how far.
    """
    hottest = hottest_first(rate, weight)
    weights = np.ones(len(rate)) if weight is None else weight
    hopeless = np.empty(len(rate), dtype=np.bool_)
    hopeless[hottest] = give_up(rate[hottest], weights[hottest], 0.0, 2.0 * delay, exact=len(rate) <= EXACT_PAGES)
    return hopeless


def give_up(  # noqa: PLR0913 - pages, intervals, and how hard to look
    rate: FloatArray, weight: FloatArray, shortest: float, step: float, *, exact: bool, near: int | None = None
) -> BoolArray:
    """Which pages, told from the hottest to the coldest, are hopeless on intervals from ``shortest`` on in ``step``s.

    ``exact``: try each one; else search the best number, ``near`` a guess if there is one.
    """
    ranked = Ranked(rate, weight, shortest, step)
    if bool((weight == weight[:1]).all()):
        return ranked.selected() if exact else ranked.prefix(ranked.best_prefix(near))
    found = best_sacrifice(rate, weight, shortest, step, near)
    if not exact:
        return found
    both = found, ranked.selected()
    return max(both, key=lambda hopeless: sacrificed_coherence(rate, weight, hopeless, shortest, step))


class Ranked:
    """Pages from the hottest to the coldest, and as many intervals from the shortest to the longest."""

    def __init__(self, rate: FloatArray, weight: FloatArray, shortest: float, step: float) -> None:
        """``shortest`` is the first interval and ``step`` what each is longer than the one before, in seconds."""
        self._rate = rate
        self._weight = weight
        self._shortest = shortest
        self._step = step
        self._first = int(shortest == 0.0)
        """The page on an interval of length zero is never hopeless (reading 003.29)."""

    def selected(self) -> BoolArray:
        """The hopeless pages by trying each one. O(n·h) for h of them."""
        hopeless = np.zeros(len(self._rate), dtype=np.bool_)
        tried = self._first
        for given_up in range(len(self._rate)):
            found = np.flatnonzero(self._better_given_up(tried, given_up))
            if not len(found):
                break
            tried += int(found[0]) + 1
            hopeless[tried - 1] = True
        return hopeless

    def prefix(self, given_up: int) -> BoolArray:
        """The hottest pages as hopeless ones, behind the one of length zero."""
        page = np.arange(len(self._rate))
        return (page >= self._first) & (page < self._first + given_up)

    def best_prefix(self, near: int | None = None) -> int:
        """How many of the hottest pages to give up. O(n log n).

        Looks for a place where giving up one more no longer pays. There may be several: without a place ``near``
        which to begin, the best of 33 numbers is taken, and kept if no better one is found.
        """
        most = max(len(self._rate) - self._first - 1, 0)
        if near is not None:
            return self._summit(min(near, most), most)
        start: int = max(np.linspace(0, most, 33).astype(int).tolist(), key=self._coherence_of_prefix)
        return max(self._summit(start, most), start, key=self._coherence_of_prefix)

    def _summit(self, near: int, most: int) -> int:
        """A number up to which giving up one more pays, and from which it does not, by doubling and halving steps."""
        reach = 1
        if self._pays(near):
            low = near
            while low + reach < most and self._pays(low + reach):
                low, reach = low + reach, 2 * reach
            high = min(low + reach, most)
        else:
            high = near
            while high - reach > -1 and not self._pays(high - reach):
                high, reach = high - reach, 2 * reach
            low = max(high - reach, -1)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._pays(middle) else (low, middle)
        return high

    def _pays(self, given_up: int) -> bool:
        """Whether it is better to give up one more of the hottest than ``given_up``."""
        page = self._first + given_up
        return bool(self._better_given_up(page, given_up, only_first=True)[0])

    def _better_given_up(self, start: int, given_up: int, *, only_first: bool = False) -> BoolArray:
        """For each page from ``start`` on, as if all between were hopeful: whether it is hopeless. O(n).

        Compares what the colder pages gain by moving inwards with what the page loses by moving to the outside. Ties
        go to the hopeful (reading 003.30), except where all is lost beyond what floats can hold.
        """
        rate, weight, step = self._rate[start:], self._weight[start:], self._step
        length = self._shortest + step * (start - given_up + np.arange(len(rate)))
        outside = self._shortest + step * (len(self._rate) - 1 - given_up)
        moved = -weight[1:] * np.exp(-rate[1:] * length[:-1]) * np.expm1(-rate[1:] * step)
        tried = slice(0, 1) if only_first else slice(None)
        gain = moved.sum(keepdims=True) if only_first else np.append(np.cumsum(moved[::-1])[::-1], 0.0)
        inside = weight[tried] * np.exp(-rate[tried] * length[tried])
        loss = inside - weight[tried] * np.exp(-rate[tried] * outside)
        return np.where(inside + gain > 0.0, gain - loss > _TIE * (inside + gain), weight[tried] * rate[tried] > 0.0)

    def _coherence_of_prefix(self, given_up: int) -> float:
        return sacrificed_coherence(self._rate, self._weight, self.prefix(given_up), self._shortest, self._step)
