"""The pyramid: nested visit–revisit intervals around one time, and SHARC-Threshold.

Some pyramid has the highest expected coherence among all schedules that visit every page and then revisit every page,
whatever the rates (reading 003.27; SHARC 5.3, 5.5). The module also has:

- any single-visit strategy with revisits, first in first out or last in first out (SHARC 5.6.1);
- SHARC-Revisits: visits and revisits in organ-pipe order, for low blur with two versions of each page (SHARC 5.2). All
  intervals have one length, so the expected coherence is that of any first-in-first-out order;
- the case of a fixed capture and a fixed observation interval: the hottest page next to the middle of the observation
  interval (SHARC 4.3.3);
- the best valley (beyond the thesis): each page, from the hottest on, takes the shortest or the longest interval left.
  SHARC-Selective finds one valley greedily; dynamic programming over the number of short intervals finds the best. It
  is often, but not always optimal: rates 0.5, 1 and 0.01 on the lengths 2, 3 and 4, in this order, beat every valley;
- several hosts at once (:func:`side_by_side`), each planned separately at its own delay around a common middle. Small
  or fast hosts start later and end earlier. This is optimal for coherence, which depends only on the interval of a
  page: all visits lie before the common middle and all revisits behind it, so every interval contains it. It is also
  optimal for blur, up to a shift of less than a delay (:func:`recrawl.capture.single_visit.centred_start`): the penalty
  of a visit depends only on its distance from the middle of the common observation interval.

SHARC-Threshold: as many pages as possible stay unchanged with probability τ; the others are given up (SHARC 5.3).

The second variant scans from the outside in, as in the figures of the thesis; it works online.
"""

from __future__ import annotations

import enum
import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from recrawl.capture.online_pages import RankedPages, SiteSize
from recrawl.capture.single_visit import heat, hottest_first, organ_pipes
from recrawl.capture.strategy import CaptureTerms, KnownPages, PlanDecision, Strategy
from recrawl.model import BoolArray, ByteArray, CapturePlan, FloatArray, IntArray
from recrawl.model.compiled import can_compile, compiled


def pyramid(inner_first: IntArray, *, once: bool) -> CapturePlan:
    """The plan whose intervals hold each other, given the pages from the shortest interval to the longest. O(n).

    ``once``: the innermost page is visited once, so lengths are 0, 2, 4, … slots; else 1, 3, 5, … (reading 003.17).

    >>> plan = pyramid(np.array([2, 0, 1]), once=True)
    >>> plan.visit.tolist(), plan.revisit.tolist()
    ([1, 0, 2], [3, 4, 2])
    """
    pages = len(inner_first)
    rank = np.empty(pages, dtype=np.int64)
    rank[inner_first] = np.arange(pages)
    return CapturePlan(pages - 1 - rank, pages - int(once) + rank)


def pyramid_lengths(pages: int, delay: float, *, once: bool) -> FloatArray:
    """Seconds from visit to revisit, from the innermost interval outwards.

    >>> pyramid_lengths(3, 0.5, once=True).tolist(), pyramid_lengths(3, 0.5, once=False).tolist()
    ([0.0, 1.0, 2.0], [0.5, 1.5, 2.5])
    """
    return delay * np.arange(0.0 if once else 1.0, 2 * pages, 2.0)


class RevisitOrder(enum.Enum):
    """In which order pages are seen again."""

    FIFO = "fifo"
    """As they were visited: all visit–revisit intervals have one length."""
    LIFO = "lifo"
    """In reverse: the intervals are nested, the page visited last has the shortest."""


class RevisitedStrategy:
    """Visits as another strategy says, and then sees every page again."""

    def __init__(self, strategy: Strategy, order: RevisitOrder) -> None:
        self._strategy = strategy
        self._order = order
        self._visited: list[int] = []

    def discover(self, page: IntArray, rate: FloatArray, weight: FloatArray | None = None) -> None:
        """Pass it on."""
        self._strategy.discover(page, rate, weight)

    def next_page(self) -> int | None:
        """As the other strategy says."""
        page = self._strategy.next_page()
        if page is not None:
            self._visited.append(page)
        return page

    def revisits(self) -> IntArray:
        """Every page visited, in the order chosen."""
        visited = np.array(self._visited, dtype=np.int64)
        return visited if self._order is RevisitOrder.FIFO else visited[::-1]


def sharc_revisits(rate: FloatArray, weight: FloatArray | None = None) -> CapturePlan:
    """Organ pipes twice, one after the other (SHARC Definition 5.3). O(n log n).

    It is the greedy schedule, hottest page to the least penalty, and not the best: at 5 pages up to 2 % more blur,
    0.3 % in the mean (reading 003.18). With weights, rate times weight takes the place of the rate.

    >>> import numpy as np
    >>> plan = sharc_revisits(np.arange(6.0))
    >>> plan.visit.tolist(), plan.revisit.tolist()
    ([0, 5, 1, 4, 2, 3], [6, 11, 7, 10, 8, 9])
    """
    visit = organ_pipes(rate, weight).visit
    return CapturePlan(visit, visit + len(visit))


def around_middle(
    rate: FloatArray, visit_time: FloatArray, start: float, end: float, weight: FloatArray | None = None
) -> CapturePlan:
    """Which page to visit in which slot, for slots at given times and an observation from ``start`` to ``end``.

    The penalty of a visit grows with its distance from the middle of the observation, on either side alike, so the
    hottest page goes to the nearest slot (reading 003.7); of two equally near, to the later one. No order has less
    blur. O(n log n), times in seconds. With slots centred on the observation these are organ pipes.

    >>> around_middle(np.array([0.1, 0.2, 0.3]), np.array([0.0, 1.0, 2.0]), 0.0, 10.0).visit.tolist()
    [0, 1, 2]
    """
    nearest = np.lexsort((-visit_time, np.abs(visit_time - (start + end) / 2.0)))
    hottest = np.argsort(heat(rate, weight), kind="stable")[::-1]
    visit = np.empty(len(rate), dtype=np.int64)
    visit[hottest] = nearest
    return CapturePlan(visit)


_WORTH_COMPILING = 3_000


def best_valley(rate: FloatArray, delay: float, weight: FloatArray | None = None) -> IntArray:
    """The pages from the shortest interval to the longest. O(n²) time, n²/8 bytes.

    Pages are taken by falling rate, weights or not.

    >>> best_valley(np.array([0.4, 0.35, 0.3, 0.25, 0.2]), 1.0).tolist()
    [0, 2, 4, 3, 1]
    """
    hottest = hottest_first(rate)
    weights = np.ones(len(rate)) if weight is None else weight
    choose = _choose_compiled if can_compile() and len(rate) > _WORTH_COMPILING else _choose
    inside = _followed(choose(rate[hottest], weights[hottest], 2.0 * delay))
    return np.concatenate([hottest[inside], hottest[~inside][::-1]])


def _choose(rate: FloatArray, weight: FloatArray, step: float) -> ByteArray:
    """For each page and number taken inside, as bits: whether it takes the shortest interval left.

    With i pages placed, f of them on the f shortest intervals, page i is worth w·qᶠ inside, where q = e^{−λ·step}, and
    w·qᶠ·q^{n−1−i} outside. ``best[f]`` is what pages i … n − 1 are worth together; the choices are kept as bits.
    """
    pages = len(rate)
    chosen = np.zeros((pages, (pages + 7) // 8), dtype=np.uint8)
    best = np.zeros(pages + 1)
    length = step * np.arange(pages)
    for page in range(pages - 1, -1, -1):
        worth = weight[page] * np.exp(-rate[page] * length[: page + 1])
        inside = worth + best[1 : page + 2]
        outside = worth * np.exp(-rate[page] * length[pages - 1 - page]) + best[: page + 1]
        best[: page + 1] = np.maximum(inside, outside)
        chosen[page, : page // 8 + 1] = np.packbits(inside >= outside, bitorder="little")
    return chosen


def _choose_in_a_loop(rate: FloatArray, weight: FloatArray, step: float) -> ByteArray:
    """As :func:`_choose`, by a multiplication in place of each exponential."""
    pages = len(rate)
    chosen = np.zeros((pages, (pages + 7) // 8), dtype=np.uint8)
    best = np.zeros(pages + 1)
    for page in range(pages - 1, -1, -1):
        worth, factor = weight[page], np.exp(-rate[page] * step)
        farther = np.exp(-rate[page] * step * (pages - 1 - page))
        for taken in range(page + 1):
            inside, outside = worth + best[taken + 1], worth * farther + best[taken]
            if inside >= outside:
                best[taken] = inside
                chosen[page, taken >> 3] |= np.uint8(1 << (taken & 7))
            else:
                best[taken] = outside
            worth *= factor
    return chosen


def _followed(chosen: ByteArray) -> BoolArray:
    """The choices along the way from no page placed."""
    inside = np.zeros(len(chosen), dtype=np.bool_)
    taken = 0
    for page, row in enumerate(chosen):
        inside[page] = row[taken >> 3] >> (taken & 7) & 1
        taken += int(inside[page])
    return inside


_choose_compiled = compiled(_choose_in_a_loop)


HostPlan = Callable[[FloatArray, float, FloatArray | None], CapturePlan]
"""Rates, delay and weights of the pages of one host to their slots, such as ``sharc_selective``."""


@dataclass(frozen=True, slots=True)
class ParallelTimetable:
    """When each page is seen, in seconds from the common middle."""

    visit: FloatArray
    revisit: FloatArray
    """The last sight of each page; that of the visit for a page seen once."""

    @property
    def begin(self) -> float:
        """When the first visit of all happens: negative, or 0 for a single one."""
        return float(self.visit.min(initial=0.0))

    @property
    def end(self) -> float:
        """When the last sight of all happens."""
        return float(self.revisit.max(initial=0.0))


def side_by_side(
    host: IntArray, delay: FloatArray, plan: HostPlan, rate: FloatArray, weight: FloatArray | None = None
) -> ParallelTimetable:
    """Plan each host on its own, all around one middle. O(n log n) beside the plans.

    ``host[p]`` is the number of the host of page p, and ``delay[h]`` the seconds host h wants between two requests.

    >>> from recrawl.capture.sharc_selective import sharc_selective
    >>> times = side_by_side(np.array([0, 0, 1]), np.array([2.0, 9.0]), sharc_selective, np.array([0.1, 0.2, 0.3]))
    >>> times.visit.tolist(), times.revisit.tolist()
    ([-2.0, 0.0, 0.0], [2.0, 0.0, 0.0])
    """
    visit, revisit = np.empty(len(rate)), np.empty(len(rate))
    by_host = np.argsort(host, kind="stable")
    for pages in np.split(by_host, np.flatnonzero(np.diff(host[by_host])) + 1):
        if len(pages):
            pace = float(delay[host[pages[0]]])
            slots = plan(rate[pages], pace, None if weight is None else weight[pages])
            last = slots.visit if slots.revisit is None else slots.revisit
            begin = -pace * float(last.max()) / 2.0
            visit[pages] = slots.visit_times(begin, pace)
            revisit[pages] = slots.revisit_times(begin, pace)
    return ParallelTimetable(visit, revisit)


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
