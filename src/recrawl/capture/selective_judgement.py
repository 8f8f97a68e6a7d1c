"""Which of the waiting pages are hopeless and which hopeful, and what follows from it for newcomers."""

from __future__ import annotations

import heapq
import math
from typing import NamedTuple

import numpy as np

from recrawl.capture.sharc_selective import Ranked
from recrawl.capture.strategy import NewPages
from recrawl.model import BoolArray, FloatArray, IntArray

ONE_BY_ONE = 64
"""Up to so many pages each is judged on its own; above, the best number of hottest pages to give up is searched."""


class _Columns(NamedTuple):
    """Pages in the order they are taken."""

    page: IntArray
    rate: FloatArray
    weight: FloatArray
    heat: FloatArray

    def where(self, chosen: BoolArray | IntArray | slice) -> _Columns:
        return _Columns(self.page[chosen], self.rate[chosen], self.weight[chosen], self.heat[chosen])


_NONE = _Columns(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0), np.empty(0))


class _Side:
    """Hopeless or hopeful pages: some in the order judged, newcomers in a heap. O(log n) for the newcomers a call."""

    def __init__(self, judged: _Columns, sign: float) -> None:
        self._judged = judged
        self._sign = sign
        self._next = 0
        self._new: list[tuple[float, int, int, float, float]] = []

    def __len__(self) -> int:
        return len(self._judged.page) - self._next + len(self._new)

    def add(self, heat: float, came: int, page: int, rate: float, weight: float) -> None:
        heapq.heappush(self._new, (self._sign * heat, came, page, rate, weight))

    def take(self) -> int:
        """Remove the page that comes first: with sign −1 the hottest, with sign 1 the coldest."""
        judged = self._next < len(self._judged.page)
        if self._new and not (judged and self._sign * self._judged.heat.item(self._next) <= self._new[0][0]):
            return heapq.heappop(self._new)[2]
        self._next += 1
        return self._judged.page.item(self._next - 1)

    def rest(self) -> tuple[_Columns, _Columns]:
        """Those left, the judged in order and the newcomers in the order they came."""
        judged = self._judged.where(slice(self._next, None))
        if not self._new:
            return judged, _NONE
        _, _, page, rate, weight = zip(*sorted(self._new, key=lambda entry: entry[1]), strict=True)
        rates, weights = np.array(rate), np.array(weight)
        return judged, _Columns(np.array(page, dtype=np.int64), rates, weights, rates * weights)


class Judgement:
    """The waiting pages in two lots. A newcomer is hopeless if at least as hot as the coldest hopeless page."""

    def __init__(self, hopeless: _Columns = _NONE, hopeful: _Columns = _NONE) -> None:
        """``hopeless`` from the hottest on, ``hopeful`` from the coldest on."""
        self._hopeless = _Side(hopeless, -1.0)
        self._hopeful = _Side(hopeful, 1.0)
        self._hot = hopeless.heat.item(-1) if len(hopeless.heat) else math.inf
        self._came = 0

    def add(self, new: NewPages) -> None:
        """Put newcomers into the lot where they would likely be."""
        for heat, page, rate, weight in zip(new.heat(), *new, strict=True):
            side = self._hopeless if heat >= self._hot else self._hopeful
            side.add(heat, self._came, page, rate, weight)
            self._came += 1

    def take(self) -> int:
        """Remove the hottest hopeless page, or else the coldest hopeful one."""
        return (self._hopeless if len(self._hopeless) else self._hopeful).take()

    def renewed(self, shortest: float, step: float) -> Judgement:
        """Judge everybody again, on intervals from ``shortest`` seconds on, each longer by ``step``. O(n log n)."""
        hopeless, new_hopeless = self._hopeless.rest()
        hopeful, new_hopeful = self._hopeful.rest()
        lots = (hopeless, hopeful.where(slice(None, None, -1)), new_hopeless, new_hopeful)
        everybody = _Columns(*(np.concatenate(columns) for columns in zip(*lots, strict=True)))
        everybody = everybody.where(np.argsort(-everybody.heat, kind="stable"))
        ranked = Ranked(everybody.rate, everybody.weight, shortest, step)
        if len(everybody.page) <= ONE_BY_ONE:
            given_up = ranked.selected()
        else:
            given_up = ranked.prefix(ranked.best_prefix(near=len(self._hopeless)))
        return Judgement(everybody.where(given_up), everybody.where(np.flatnonzero(~given_up)[::-1]))
