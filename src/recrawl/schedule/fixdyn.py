"""``fix`` and ``dyn`` of datamonitor (§4.1): move when the last few snapshots all agree.

If all of the last k looks at the current interval found a change, come sooner; if none did, later; else as before.
``fix`` takes k = 2. ``dyn`` takes fewer the longer the interval: 1 above two months, 2 above a month, 3 above a week,
else 4 (reading 001.2). Counting begins anew when the interval moves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from recrawl.model import AnyArray, FloatArray, IntArray, Pages
from recrawl.schedule import datamonitor_steps as steps
from recrawl.schedule.by_interval import INTERVAL, ByInterval, at_start
from recrawl.schedule.looks import Looks
from recrawl.time import WEEK

RUN = "run"
"""Looks in a row with the same result at this interval: counted up for changes, down for none."""


def two(interval: FloatArray) -> IntArray:
    """``fix``: how many snapshots must agree."""
    return np.full(len(interval), 2)


def fewer_when_long(interval: FloatArray) -> IntArray:
    """``dyn``: how many snapshots must agree, at each of these intervals in seconds."""
    return 4 - (interval > WEEK).astype(np.int64) - (interval > steps.MONTH) - (interval > 2 * steps.MONTH)


def next_interval(interval: FloatArray, run: AnyArray, needed: IntArray) -> FloatArray:
    """Seconds to the next look; ``run`` is positive after changes in a row and negative after none."""
    moved = np.where(run >= needed, steps.shorter(interval), interval)
    return np.where(run <= -needed, steps.longer(interval), moved)


@dataclass(frozen=True, slots=True)
class SnapshotRule:
    """The rule; ``needed`` says how many snapshots must agree at an interval."""

    name: str
    needed: Callable[[FloatArray], IntArray]
    start: float
    shortest: float = steps.SHORTEST
    longest: float = steps.LONGEST
    columns: ClassVar[Mapping[str, type[np.generic]]] = MappingProxyType({RUN: np.int32})
    reads_first_looks: ClassVar[bool] = False

    def begin(self, pages: Pages) -> Mapping[str, AnyArray]:
        """No snapshot yet."""
        return at_start(pages) | {RUN: np.zeros(len(pages), np.int32)}

    def after(self, page: Mapping[str, AnyArray], look: Looks) -> Mapping[str, AnyArray]:
        """The run one longer or begun anew, and the interval it asks for."""
        interval, run = page[INTERVAL], page[RUN]
        run = np.where(look.changed, np.maximum(run, 0) + 1, np.minimum(run, 0) - 1)
        moved = next_interval(interval, run, self.needed(interval))
        return {INTERVAL: moved, RUN: np.where(moved == interval, run, 0)}


def fix(*, start: float | None = steps.START) -> ByInterval:
    """Move when the last two snapshots agree; a ``start`` of ``None`` is the budget's."""
    return ByInterval(SnapshotRule("fix", two, steps.start_of(start)), start_from_budget=start is None)


def dyn(*, start: float | None = steps.START) -> ByInterval:
    """Move when as many snapshots agree as the interval asks for; a ``start`` of ``None`` is the budget's."""
    return ByInterval(SnapshotRule("dyn", fewer_when_long, steps.start_of(start)), start_from_budget=start is None)
