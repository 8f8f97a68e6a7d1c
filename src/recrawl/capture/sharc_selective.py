"""SHARC-Selective: give up the pages whose loss lets the others gain more (SHARC 5.5), offline and online.

Intervals form a pyramid. Hopeful pages get the short ones, the hottest the shortest; hopeless pages get the long ones,
the hottest the longest. If pages have weights, those of the highest rate for their weight are given up (past the
thesis).

Online (SHARC 5.5, Algorithm 6) the waiting pages are partitioned into hopeless and hopeful ones. The hottest hopeless
page comes first, or else the coldest hopeful one. New pages are added by the current partition.
"""

from __future__ import annotations

import heapq
import math
from typing import NamedTuple

import numpy as np

from recrawl.capture.online_pages import SiteSize
from recrawl.capture.pyramid import pyramid
from recrawl.capture.single_visit import hottest_first
from recrawl.capture.strategy import CaptureTerms, KnownPages, NewPages, PlanDecision
from recrawl.model import BoolArray, CapturePlan, FloatArray, IntArray


def valley(rate: FloatArray, weight: FloatArray | None, hopeless: BoolArray) -> IntArray:
    """Pages from the shortest interval to the longest: hopeful ones get colder outwards, then hopeless ones faster.

    Hopeful pages go by rate times weight, which is what they lose a second as long as they lose little. O(n log n).
    """
    hottest = hottest_first(rate, weight)
    fastest = hottest if weight is None else hottest_first(rate)
    return np.concatenate([hottest[~hopeless[hottest]], fastest[hopeless[fastest]][::-1]])


def sacrificed_coherence(
    rate: FloatArray, weight: FloatArray, hopeless: BoolArray, shortest: float, step: float
) -> float:
    """Expected weight of coherent pages in that order, on intervals from ``shortest`` on, each longer by ``step``."""
    order = valley(rate, weight, hopeless)
    length = shortest + step * np.arange(len(rate))
    return float((weight[order] * np.exp(-rate[order] * length)).sum())


def sacrifice_order(rate: FloatArray, weight: FloatArray) -> FloatArray:
    """Rate over weight: who comes first is given up first. A page without weight comes before all."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return np.where(weight > 0.0, rate / weight, np.inf)


def best_sacrifice(
    rate: FloatArray, weight: FloatArray, shortest: float, step: float, near: int | None = None
) -> BoolArray:
    """Give up as many of the pages of the highest rate over weight as is best. O(n log² n).

    The number is found by looking around the best of 33, or of 9 and ``near``, in steps that halve; if the coherence
    has several summits it may be a lower one.
    """
    order = np.argsort(-sacrifice_order(rate, weight), kind="stable")

    def given_up(number: int) -> BoolArray:
        hopeless = np.zeros(len(rate), dtype=np.bool_)
        hopeless[order[:number]] = True
        return hopeless

    def coherence(number: int) -> float:
        return sacrificed_coherence(rate, weight, given_up(number), shortest, step)

    most = len(rate)
    starts = np.linspace(0, most, 33 if near is None else 9).astype(int).tolist()
    starts += [] if near is None else [min(near, most)]
    best, number = max((coherence(start), start) for start in starts)
    reach = max(most // 32, 1)
    while reach:
        around = [near for near in (number - reach, number + reach) if 0 <= near <= most]
        found, where = max(((coherence(near), near) for near in around), default=(best, number))
        if found > best:
            best, number = found, where
        else:
            reach //= 2
    return given_up(number)


EXACT_PAGES = 2_000
"""Up to this many pages Algorithm 5 is followed to the letter."""
_TIE = 1e-12


def sharc_selective(rate: FloatArray, delay: float, weight: FloatArray | None = None) -> CapturePlan:
    """The plan of SHARC Algorithm 5 (as in readings 003.28–003.31). Cost: see :func:`hopeless_pages`.

    >>> plan = sharc_selective(np.array([0.4, 0.35, 0.3, 0.25, 0.2]), 1.0)
    >>> plan.visit.tolist(), plan.revisit.tolist()
    ([4, 0, 1, 3, 2], [4, 8, 7, 5, 6])
    """
    return select(rate, delay, weight).plan


def select(rate: FloatArray, delay: float, weight: FloatArray | None = None) -> PlanDecision:
    """The plan of :func:`sharc_selective`, and which pages it gives up."""
    hopeless = hopeless_pages(rate, delay, weight)
    return PlanDecision(pyramid(valley(rate, weight, hopeless), once=True), hopeless)


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
    (:func:`recrawl.capture.sharc_selective.best_sacrifice`). The better one can still be some percent
    from the optimum; ``benchmarks/capture.py`` prints how far.
    """
    hottest = hottest_first(rate, weight)
    weights = np.ones(len(rate)) if weight is None else weight
    hopeless = np.empty(len(rate), dtype=np.bool_)
    hopeless[hottest] = give_up(rate[hottest], weights[hottest], 0.0, 2.0 * delay, exact=len(rate) <= EXACT_PAGES)
    return hopeless


def give_up(  # noqa: PLR0913 - pages, intervals, and the effort
    rate: FloatArray, weight: FloatArray, shortest: float, step: float, *, exact: bool, near: int | None = None
) -> BoolArray:
    """Which pages, given from the hottest to the coldest, are hopeless on intervals from ``shortest`` on in ``step``s.

    ``exact``: try each one; else search the best number, ``near`` a guess if there is one.
    """
    ranked = RankedByHeat(rate, weight, shortest, step)
    if bool((weight == weight[:1]).all()):
        return ranked.selected() if exact else ranked.prefix(ranked.best_prefix(near))
    found = best_sacrifice(rate, weight, shortest, step, near)
    if not exact:
        return found
    both = found, ranked.selected()
    return max(both, key=lambda hopeless: sacrificed_coherence(rate, weight, hopeless, shortest, step))


class RankedByHeat:
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

        Observations for a place where giving up one more no longer pays. There may be several: without a place ``near``
        which to start, the best of 33 numbers is taken, and kept if no better one is found.
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


ONE_BY_ONE = 64
"""Up to this many pages each is decided on its own; above, the best number of pages to give up is searched."""


class _Columns(NamedTuple):
    """Pages in some order."""

    page: IntArray
    rate: FloatArray
    weight: FloatArray

    def where(self, chosen: BoolArray | IntArray | slice) -> _Columns:
        return _Columns(self.page[chosen], self.rate[chosen], self.weight[chosen])


_NONE = _Columns(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))


class _Lot:
    """Pages by rising key: some ranked, in order, and new pages in a heap. O(log n) for the new pages a call."""

    def __init__(self, ranked: _Columns, key: FloatArray) -> None:
        self._ranked = ranked
        self._key = key
        self._next = 0
        self._new: list[tuple[float, int, int, float, float]] = []

    def __len__(self) -> int:
        return len(self._key) - self._next + len(self._new)

    def add(self, key: float, came: int, page: int, rate: float, weight: float) -> None:
        heapq.heappush(self._new, (key, came, page, rate, weight))

    def take(self) -> int:
        """Remove the page of the lowest key."""
        if self._new and not (self._next < len(self._key) and self._key.item(self._next) <= self._new[0][0]):
            return heapq.heappop(self._new)[2]
        self._next += 1
        return self._ranked.page.item(self._next - 1)

    def rest(self) -> tuple[_Columns, _Columns]:
        """Those left, the ranked in order and the new pages in the order they came."""
        ranked = self._ranked.where(slice(self._next, None))
        if not self._new:
            return ranked, _NONE
        _, _, page, rate, weight = zip(*sorted(self._new, key=lambda entry: entry[1]), strict=True)
        return ranked, _Columns(np.array(page, dtype=np.int64), np.array(rate), np.array(weight))


class SelectivePartition:
    """The waiting pages in two lots. A new page is hopeless if its rate over weight is that of a hopeless page."""

    def __init__(self, hopeless: _Columns = _NONE, hopeful: _Columns = _NONE) -> None:
        """``hopeless`` from the fastest on, ``hopeful`` from the coldest on."""
        self._hopeless = _Lot(hopeless, -hopeless.rate)
        self._hopeful = _Lot(hopeful, hopeful.rate * hopeful.weight)
        self._limit = float(sacrifice_order(hopeless.rate, hopeless.weight).min(initial=math.inf))
        self._came = 0

    def add(self, new: NewPages) -> None:
        """Put new pages into the lot where they would likely be."""
        for page, rate, weight in zip(*new, strict=True):
            if rate >= self._limit * weight:
                self._hopeless.add(-rate, self._came, page, rate, weight)
            else:
                self._hopeful.add(rate * weight, self._came, page, rate, weight)
            self._came += 1

    @property
    def gives_up(self) -> bool:
        """Whether the page taken next is hopeless."""
        return len(self._hopeless) > 0

    def take(self) -> int:
        """Remove the fastest hopeless page, or else the coldest hopeful one."""
        return (self._hopeless if self.gives_up else self._hopeful).take()

    def renewed(self, shortest: float, step: float) -> SelectivePartition:
        """Judge everybody again, on intervals from ``shortest`` seconds on, each longer by ``step``. O(n log n)."""
        hopeless, new_hopeless = self._hopeless.rest()
        hopeful, new_hopeful = self._hopeful.rest()
        lots = (hopeless, hopeful.where(slice(None, None, -1)), new_hopeless, new_hopeful)
        everybody = _Columns(*(np.concatenate(columns) for columns in zip(*lots, strict=True)))
        hottest = everybody.where(np.argsort(-everybody.rate * everybody.weight, kind="stable"))
        exact = len(hottest.page) <= ONE_BY_ONE
        given_up = give_up(*hottest[1:], shortest, step, exact=exact, near=len(self._hopeless))
        hopeless = hottest.where(given_up)
        fastest = np.argsort(-hopeless.rate, kind="stable")
        return SelectivePartition(hopeless.where(fastest), hottest.where(np.flatnonzero(~given_up)[::-1]))


SELECTION_DRIFT = 1.0 / 32.0
"""A selection stays valid until this share of the waiting pages has come or gone."""
VISITS_PER_SELECTION = 2_000
"""And until one in this many of all visits was made: a small frontier does not make a long capture slow."""


class SharcSelectiveOnline:
    """The pages known compete for the longest intervals left; the one on the very longest is visited now.

    With v pages visited, w waiting and N expected, the lengths left are 0 to 2(N − v − 1) slots, and the waiting pages
    share the w longest of them (reading 003.32). Algorithm 6 judges all of them again before every visit, which is
    quadratic. Here a selection stays valid for a while; ``drift`` 0 is the algorithm to the letter on a short capture.
    Memory is linear, and n visits cost O(n log n / drift).
    """

    def __init__(self, terms: CaptureTerms, drift: float = SELECTION_DRIFT) -> None:
        self._step = 2.0 * terms.delay
        self._drift = drift
        self._known = KnownPages()
        self._size = SiteSize(terms.expected)
        self._selection = SelectivePartition()
        self._changes = 0
        self._visited: list[int] = []
        self._hopeless: list[int] = []

    def discover(self, page: IntArray, rate: FloatArray, weight: FloatArray | None = None) -> None:
        """Add new pages to those that the selection covers."""
        new = self._known.admit(page, rate, weight)
        self._size.discovered(len(new.page))
        self._changes += len(new.page)
        self._selection.add(new)

    def next_page(self) -> int | None:
        """The page for the longest interval left."""
        waiting, visited = self._size.waiting, self._size.visited
        if not waiting:
            return None
        if waiting > 1 and self._changes > max(self._drift * waiting, visited / VISITS_PER_SELECTION):
            shortest = self._step * (self._size.estimate() - visited - waiting)
            self._selection = self._selection.renewed(shortest, self._step)
            self._changes = 0
        self._changes += 1
        self._size.visit()
        given_up = self._selection.gives_up
        page = self._selection.take()
        self._visited.append(page)
        if given_up:
            self._hopeless.append(page)
        return page

    def revisits(self) -> IntArray:
        """All but the page visited last, which is its own revisit, in reverse order."""
        return np.array(self._visited[-2::-1], dtype=np.int64)

    def given_up(self) -> IntArray:
        """The pages given up, as they were visited; the page visited last is not one of them."""
        last = self._visited[-1:]
        return np.array([page for page in self._hopeless if page not in last], dtype=np.int64)
