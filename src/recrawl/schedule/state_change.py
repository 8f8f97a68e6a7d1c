"""``state-1`` and ``state-2`` of datamonitor (§4.1): how likely is a change next, after what the last looks found?

For each page and each interval it was ever visited at, a table counts how often a change and no change followed each
context, i.e. the results of the last one (or two) looks. The probability of a change after the current context moves
the interval by the steps of ``window``. Contexts do not reach across a move of the interval, tables are kept and
found again, and without data the interval stays (reading 001.5).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from recrawl.model import AnyArray, BoolArray, FloatArray, IntArray, Pages
from recrawl.schedule import datamonitor_steps as steps
from recrawl.schedule.by_interval import INTERVAL, ByInterval, at_start
from recrawl.schedule.columns import Columns
from recrawl.schedule.looks import Looks

_CONTEXT, _LENGTH, _HERE, _LATEST = "context", "length", "here", "latest"
_NONE = -1
_FINENESS = 1e6
"""Intervals that differ by less than a millionth are the same: rounding, since they move by a factor of 1.5 at
least."""


def probability(unchanged: AnyArray, changed: AnyArray) -> FloatArray:
    """P(change) after a context that was followed so often by no change and by a change; NaN without data.

    >>> probability(np.array([10, 0]), np.array([40, 0])).tolist()  # datamonitor Table 1
    [0.8, nan]
    """
    total = unchanged + changed
    return np.where(total > 0, changed / np.maximum(total, 1), np.nan)


class Tables:
    """One table a page and interval, in a chain for each page; found in O(intervals the page had)."""

    def __init__(self, contexts: int) -> None:
        self._contexts = contexts
        columns: dict[str, type[np.generic]] = {"interval": np.int64, "next": np.int64}
        self._table = Columns(columns | dict.fromkeys(self._counts(), np.int32))

    def find(self, latest: IntArray, interval: FloatArray) -> tuple[IntArray, IntArray]:
        """Which table each page has for its interval, and its latest table; made where there is none."""
        key = np.rint(np.log(interval) * _FINENESS).astype(np.int64)
        here = latest.copy()
        while True:
            wrong = np.flatnonzero(here != _NONE)
            wrong = wrong[self._table["interval"][here[wrong]] != key[wrong]]
            if not len(wrong):
                break
            here[wrong] = self._table["next"][here[wrong]]
        new = here == _NONE
        here[new] = len(self._table) + np.arange(int(new.sum()))
        empty = np.zeros(int(new.sum()), np.int32)
        self._table.append(interval=key[new], next=latest[new], **dict.fromkeys(self._counts(), empty))
        return here, np.where(new, here, latest)

    def count(self, table: IntArray, context: IntArray, changed: BoolArray) -> None:
        """Note what followed a context; no table twice."""
        for place, name in enumerate(self._counts()):
            self._table[name][table[2 * context + changed == place]] += 1

    def probability(self, table: IntArray, context: IntArray) -> FloatArray:
        """P(change) after each context; NaN without data."""
        counts = np.stack([self._table[name][table] for name in self._counts()])
        place = np.arange(len(table))
        return probability(counts[2 * context, place], counts[2 * context + 1, place])

    def _counts(self) -> list[str]:
        """Columns of counts, no change and change for each context in turn."""
        return [f"count_{place}" for place in range(2 * self._contexts)]


class StateRule:
    """The rule for contexts of ``order`` looks. It holds the tables, so it serves one policy only."""

    shortest = steps.SHORTEST
    longest = steps.LONGEST
    reads_first_looks = False
    columns: Mapping[str, type[np.generic]] = MappingProxyType(
        {_CONTEXT: np.int64, _LENGTH: np.int64, _HERE: np.int64, _LATEST: np.int64}
    )

    def __init__(self, order: int, start: float) -> None:
        self.name = f"state-{order}"
        self.start = start
        self._order = order
        self._tables = Tables(1 << order)

    def begin(self, pages: Pages) -> Mapping[str, AnyArray]:
        """No context and no table."""
        zero, none = np.zeros(len(pages), np.int64), np.full(len(pages), _NONE)
        return at_start(pages) | {_CONTEXT: zero, _LENGTH: zero, _HERE: none, _LATEST: none}

    def after(self, page: Mapping[str, AnyArray], look: Looks) -> Mapping[str, AnyArray]:
        """Count what followed the context, move the context on, and the interval by what is likely to follow it."""
        here, latest = page[_HERE], page[_LATEST]
        lost = np.flatnonzero(here == _NONE)
        here, latest = here.copy(), latest.copy()
        here[lost], latest[lost] = self._tables.find(latest[lost], page[INTERVAL][lost])
        full = page[_LENGTH] == self._order
        self._tables.count(here[full], page[_CONTEXT][full], look.changed[full])
        context = ((page[_CONTEXT] << 1) | look.changed) & ((1 << self._order) - 1)
        length = np.minimum(page[_LENGTH] + 1, self._order)
        likely = np.where(length == self._order, self._tables.probability(here, context), np.nan)
        interval = steps.by_ratio(page[INTERVAL], likely)
        moved = interval != page[INTERVAL]
        return {
            INTERVAL: interval,
            _CONTEXT: np.where(moved, 0, context),
            _LENGTH: np.where(moved, 0, length),
            _HERE: np.where(moved, _NONE, here),
            _LATEST: latest,
        }


def state_1(*, start: float | None = steps.START) -> ByInterval:
    """Move by how likely a change is after the last look's result; a ``start`` of ``None`` is the budget's."""
    return ByInterval(StateRule(1, steps.start_of(start)), start_from_budget=start is None)


def state_2(*, start: float | None = steps.START) -> ByInterval:
    """Move by how likely a change is after the last two looks' results; a ``start`` of ``None`` is the budget's."""
    return ByInterval(StateRule(2, steps.start_of(start)), start_from_budget=start is None)
