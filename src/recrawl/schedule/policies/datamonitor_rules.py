"""The adaptive rules of datamonitor (§4.1): ``fix``, ``dyn``, ``window``, ``state-1`` and ``state-2``.

"Frequency" is an interval throughout (reading 001.1). A month is 30 days; intervals stay between 1 and 180 days and
start at 7 days, which the paper does not give. Several rules share the steps by which an interval moves.

``fix`` and ``dyn`` move the interval when the last few snapshots all agree. If all of the last k observations at the
current interval found a change, the interval becomes shorter; if none did, longer; else it stays. ``fix`` takes k = 2.
``dyn`` takes fewer the longer the interval: 1 above two months, 2 above a month, 3 above a week, else 4 (reading
001.2). Counting starts over when the interval moves.

``window`` moves the interval by the share of changes among the last observations. Of N observations the last k =
min(10, ⌈N/2⌉) count (reading 001.4), at whatever interval they were made.

``state-1`` and ``state-2`` move it by the probability of a change after the last results. For each page and each
interval of its past visits, a table counts how often a change and no change followed each context, i.e. the results of
the last one (or two) observations. The probability of a change after the current context moves the interval by the
steps of ``window``. Contexts do not reach across a move of the interval, tables are kept for intervals that return, and
without data the interval stays (reading 001.5).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from recrawl.model import AnyArray, BoolArray, FloatArray, IntArray, Pages
from recrawl.schedule.learning.observation_columns import GrowingColumns, ObservationColumns
from recrawl.schedule.policies.by_interval import INTERVAL, ByInterval, at_start
from recrawl.time import DAY, WEEK

SHORTEST = DAY
START = WEEK
MONTH = 30 * DAY
LONGEST = 180 * DAY

FASTER: Mapping[float, float] = MappingProxyType({0.6: 1.5, 0.75: 2.0, 0.9: 3.0})
"""Share of changes above which the interval is divided, and by what; the last that holds counts."""
SLOWER: Mapping[float, float] = MappingProxyType({0.4: 1.5, 0.25: 2.0, 0.1: 3.0})
"""Share of changes below which the interval is multiplied, and by what."""


@dataclass(frozen=True, slots=True)
class IntervalBounds:
    """Between what intervals stay, seconds."""

    shortest: float = SHORTEST
    longest: float = LONGEST

    def keep(self, interval: FloatArray) -> FloatArray:
        """These intervals, within the bounds."""
        return np.clip(interval, self.shortest, self.longest)


USUAL_BOUNDS = IntervalBounds()
"""1 to 180 days (paper 001 §4.1)."""


def by_ratio(interval: FloatArray, ratio: FloatArray, within: IntervalBounds = USUAL_BOUNDS) -> FloatArray:
    """The next interval after changes at this share (or probability) of observations; NaN keeps it. Seconds.

    >>> (by_ratio(np.full(4, 12 * DAY), np.array([0.95, 0.7, 0.5, 0.0])) / DAY).tolist()
    [4.0, 8.0, 12.0, 36.0]
    """
    divisor = np.ones(len(interval))
    for above, factor in FASTER.items():
        divisor = np.where(ratio > above, factor, divisor)
    for below, factor in SLOWER.items():
        divisor = np.where(ratio < below, 1.0 / factor, divisor)
    return within.keep(interval / divisor)


def shorter(interval: FloatArray, within: IntervalBounds = USUAL_BOUNDS) -> FloatArray:
    """The next interval after nothing but changes: two thirds beyond a month, half up to it (reading 001.3)."""
    return within.keep(interval / np.where(interval > MONTH, 1.5, 2.0))


def longer(interval: FloatArray, within: IntervalBounds = USUAL_BOUNDS) -> FloatArray:
    """The next interval after no change: half as much again below a month, double from there on (reading 001.3)."""
    return within.keep(interval * np.where(interval < MONTH, 1.5, 2.0))


def start_of(start: float | None, within: IntervalBounds = USUAL_BOUNDS) -> float:
    """The start that was asked for, or the usual one until the budget sets it: within bounds that were asked for."""
    if start is None or (start == START and within != USUAL_BOUNDS):
        return float(np.clip(START, within.shortest, within.longest))
    return start


_MOST = 10
_SEEN, _RECENT = "seen", "recent"
_ONES = np.array([number.bit_count() for number in range(1 << _MOST)])
"""How many bits of a number are set."""


@dataclass(frozen=True, slots=True)
class WindowRule:
    """The rule; it remembers the last ten results as the bits of a number, the latest lowest."""

    start: float
    name: str = "window"
    shortest: float = SHORTEST
    longest: float = LONGEST
    columns: ClassVar[Mapping[str, type[np.generic]]] = MappingProxyType({_SEEN: np.int32, _RECENT: np.int16})
    reads_first_observations: ClassVar[bool] = False

    def begin(self, pages: Pages) -> Mapping[str, AnyArray]:
        """No observation yet."""
        return at_start(pages) | {_SEEN: np.zeros(len(pages), np.int32), _RECENT: np.zeros(len(pages), np.int16)}

    def after(self, page: Mapping[str, AnyArray], observation: ObservationColumns) -> Mapping[str, AnyArray]:
        """One bit more, and the interval that the window's share of changes asks for."""
        seen = page[_SEEN] + 1
        recent = ((page[_RECENT].astype(np.int64) << 1) | observation.changed) & ((1 << _MOST) - 1)
        size = np.minimum(_MOST, (seen + 1) // 2)
        ratio = _ONES[recent & ((1 << size.astype(np.int64)) - 1)] / size
        bounds = IntervalBounds(self.shortest, self.longest)
        return {INTERVAL: by_ratio(page[INTERVAL], ratio, bounds), _SEEN: seen, _RECENT: recent}


def window(*, start: float | None = START, shortest: float = SHORTEST, longest: float = LONGEST) -> ByInterval:
    """Move by the share of changes among the last observations; a ``start`` of ``None`` is the budget's."""
    first = start_of(start, IntervalBounds(shortest, longest))
    return ByInterval(WindowRule(first, shortest=shortest, longest=longest), start_from_budget=start is None)


RUN = "run"
"""Observations in a row with the same result at this interval: counted up for changes, down for none."""


def two(interval: FloatArray) -> IntArray:
    """``fix``: how many snapshots must agree."""
    return np.full(len(interval), 2)


def fewer_when_long(interval: FloatArray) -> IntArray:
    """``dyn``: how many snapshots must agree, at each of these intervals in seconds."""
    return 4 - (interval > WEEK).astype(np.int64) - (interval > MONTH) - (interval > 2 * MONTH)


def next_interval(
    interval: FloatArray, run: AnyArray, needed: IntArray, within: IntervalBounds = USUAL_BOUNDS
) -> FloatArray:
    """Seconds to the next observation; ``run`` is positive after changes in a row and negative after none."""
    moved = np.where(run >= needed, shorter(interval, within), interval)
    return np.where(run <= -needed, longer(interval, within), moved)


@dataclass(frozen=True, slots=True)
class SnapshotRule:
    """The rule; ``needed`` says how many snapshots must agree at an interval."""

    name: str
    needed: Callable[[FloatArray], IntArray]
    start: float
    shortest: float = SHORTEST
    longest: float = LONGEST
    columns: ClassVar[Mapping[str, type[np.generic]]] = MappingProxyType({RUN: np.int32})
    reads_first_observations: ClassVar[bool] = False

    def begin(self, pages: Pages) -> Mapping[str, AnyArray]:
        """No snapshot yet."""
        return at_start(pages) | {RUN: np.zeros(len(pages), np.int32)}

    def after(self, page: Mapping[str, AnyArray], observation: ObservationColumns) -> Mapping[str, AnyArray]:
        """The run one longer or restarted, and the interval it asks for."""
        interval, run = page[INTERVAL], page[RUN]
        run = np.where(observation.changed, np.maximum(run, 0) + 1, np.minimum(run, 0) - 1)
        moved = next_interval(interval, run, self.needed(interval), IntervalBounds(self.shortest, self.longest))
        return {INTERVAL: moved, RUN: np.where(moved == interval, run, 0)}


def fix(*, start: float | None = START, shortest: float = SHORTEST, longest: float = LONGEST) -> ByInterval:
    """Move when the last two snapshots agree; a ``start`` of ``None`` is the budget's."""
    return _by_snapshots("fix", two, start, IntervalBounds(shortest, longest))


def dyn(*, start: float | None = START, shortest: float = SHORTEST, longest: float = LONGEST) -> ByInterval:
    """Move when as many snapshots agree as the interval asks for; a ``start`` of ``None`` is the budget's."""
    return _by_snapshots("dyn", fewer_when_long, start, IntervalBounds(shortest, longest))


def _by_snapshots(
    name: str, needed: Callable[[FloatArray], IntArray], start: float | None, within: IntervalBounds
) -> ByInterval:
    rule = SnapshotRule(name, needed, start_of(start, within), within.shortest, within.longest)
    return ByInterval(rule, start_from_budget=start is None)


_CONTEXT, _LENGTH, _HERE, _LATEST = "context", "length", "here", "latest"
_NONE = -1
_FINENESS = 1e6
"""Intervals that differ by less than a millionth are the same: rounding, since they move by a factor of 1.5 at
least."""


def probability(unchanged: AnyArray, changed: AnyArray) -> FloatArray:
    """P(change) after a context, from the numbers of no change and of change that followed it; NaN without data.

    >>> probability(np.array([10, 0]), np.array([40, 0])).tolist()  # datamonitor Table 1
    [0.8, nan]
    """
    total = unchanged + changed
    return np.where(total > 0, changed / np.maximum(total, 1), np.nan)


class StateTables:
    """One table a page and interval, in a chain for each page; found in O(intervals the page had)."""

    def __init__(self, contexts: int) -> None:
        self._contexts = contexts
        columns: dict[str, type[np.generic]] = {"interval": np.int64, "next": np.int64}
        self._table = GrowingColumns(columns | dict.fromkeys(self._counts(), np.int32))

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
    """The rule for contexts of ``order`` observations. It holds the tables, so it serves one policy only."""

    reads_first_observations = False
    columns: Mapping[str, type[np.generic]] = MappingProxyType(
        {_CONTEXT: np.int64, _LENGTH: np.int64, _HERE: np.int64, _LATEST: np.int64}
    )

    def __init__(self, order: int, start: float, within: IntervalBounds = USUAL_BOUNDS) -> None:
        self.name = f"state-{order}"
        self.start = start
        self.shortest, self.longest = within.shortest, within.longest
        self._within = within
        self._order = order
        self._tables = StateTables(1 << order)

    def begin(self, pages: Pages) -> Mapping[str, AnyArray]:
        """No context and no table."""
        zero, none = np.zeros(len(pages), np.int64), np.full(len(pages), _NONE)
        return at_start(pages) | {_CONTEXT: zero, _LENGTH: zero, _HERE: none, _LATEST: none}

    def after(self, page: Mapping[str, AnyArray], observation: ObservationColumns) -> Mapping[str, AnyArray]:
        """Count what followed the context, move the context on, and the interval by what is likely to follow it."""
        here, latest = page[_HERE], page[_LATEST]
        lost = np.flatnonzero(here == _NONE)
        here, latest = here.copy(), latest.copy()
        here[lost], latest[lost] = self._tables.find(latest[lost], page[INTERVAL][lost])
        full = page[_LENGTH] == self._order
        self._tables.count(here[full], page[_CONTEXT][full], observation.changed[full])
        context = ((page[_CONTEXT] << 1) | observation.changed) & ((1 << self._order) - 1)
        length = np.minimum(page[_LENGTH] + 1, self._order)
        likely = np.where(length == self._order, self._tables.probability(here, context), np.nan)
        interval = by_ratio(page[INTERVAL], likely, self._within)
        moved = interval != page[INTERVAL]
        return {
            INTERVAL: interval,
            _CONTEXT: np.where(moved, 0, context),
            _LENGTH: np.where(moved, 0, length),
            _HERE: np.where(moved, _NONE, here),
            _LATEST: latest,
        }


def state_1(*, start: float | None = START, shortest: float = SHORTEST, longest: float = LONGEST) -> ByInterval:
    """Move by how likely a change is after the last observation's result; a ``start`` of ``None`` is the budget's."""
    return _by_state(1, start, IntervalBounds(shortest, longest))


def state_2(*, start: float | None = START, shortest: float = SHORTEST, longest: float = LONGEST) -> ByInterval:
    """Move by how likely a change is after the last two observations' results.

    A ``start`` of ``None`` is the budget's.
    """
    return _by_state(2, start, IntervalBounds(shortest, longest))


def _by_state(order: int, start: float | None, within: IntervalBounds) -> ByInterval:
    return ByInterval(StateRule(order, start_of(start, within), within), start_from_budget=start is None)
