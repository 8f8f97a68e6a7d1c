"""Which of the waiting pages are hopeless and which hopeful, and what follows from it for newcomers."""

from __future__ import annotations

import heapq
import math
from typing import NamedTuple

import numpy as np

from recrawl.capture.selective_weighted import sacrifice_order
from recrawl.capture.sharc_selective import give_up
from recrawl.capture.strategy import NewPages
from recrawl.model import BoolArray, FloatArray, IntArray

ONE_BY_ONE = 64
"""Up to so many pages each is judged on its own; above, the best number of pages to give up is searched."""


class _Columns(NamedTuple):
    """Pages in some order."""

    page: IntArray
    rate: FloatArray
    weight: FloatArray

    def where(self, chosen: BoolArray | IntArray | slice) -> _Columns:
        return _Columns(self.page[chosen], self.rate[chosen], self.weight[chosen])


_NONE = _Columns(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))


class _Lot:
    """Pages by rising key: some judged, in order, and newcomers in a heap. O(log n) for the newcomers a call."""

    def __init__(self, judged: _Columns, key: FloatArray) -> None:
        self._judged = judged
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
        return self._judged.page.item(self._next - 1)

    def rest(self) -> tuple[_Columns, _Columns]:
        """Those left, the judged in order and the newcomers in the order they came."""
        judged = self._judged.where(slice(self._next, None))
        if not self._new:
            return judged, _NONE
        _, _, page, rate, weight = zip(*sorted(self._new, key=lambda entry: entry[1]), strict=True)
        return judged, _Columns(np.array(page, dtype=np.int64), np.array(rate), np.array(weight))


class Judgement:
    """The waiting pages in two lots. A newcomer is hopeless if its rate over weight is that of a hopeless page."""

    def __init__(self, hopeless: _Columns = _NONE, hopeful: _Columns = _NONE) -> None:
        """``hopeless`` from the fastest on, ``hopeful`` from the coldest on."""
        self._hopeless = _Lot(hopeless, -hopeless.rate)
        self._hopeful = _Lot(hopeful, hopeful.rate * hopeful.weight)
        self._limit = float(sacrifice_order(hopeless.rate, hopeless.weight).min(initial=math.inf))
        self._came = 0

    def add(self, new: NewPages) -> None:
        """Put newcomers into the lot where they would likely be."""
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

    def renewed(self, shortest: float, step: float) -> Judgement:
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
        return Judgement(hopeless.where(fastest), hottest.where(np.flatnonzero(~given_up)[::-1]))
