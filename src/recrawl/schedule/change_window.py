"""``window`` of datamonitor (§4.1): move by the share of changes among the last looks.

Of N looks the last k = min(10, ⌈N/2⌉) count (reading 001.4), at whatever interval they were made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from recrawl.model import AnyArray, Pages
from recrawl.schedule import datamonitor_steps as steps
from recrawl.schedule.by_interval import INTERVAL, ByInterval, at_start
from recrawl.schedule.looks import Looks

_MOST = 10
_SEEN, _RECENT = "seen", "recent"
_ONES = np.array([number.bit_count() for number in range(1 << _MOST)])
"""How many bits of a number are set."""


@dataclass(frozen=True, slots=True)
class WindowRule:
    """The rule; it remembers the last ten results as the bits of a number, the latest lowest."""

    start: float
    name: str = "window"
    shortest: float = steps.SHORTEST
    longest: float = steps.LONGEST
    columns: ClassVar[Mapping[str, type[np.generic]]] = MappingProxyType({_SEEN: np.int32, _RECENT: np.int16})
    reads_first_looks: ClassVar[bool] = False

    def begin(self, pages: Pages) -> Mapping[str, AnyArray]:
        """No look yet."""
        return at_start(pages) | {_SEEN: np.zeros(len(pages), np.int32), _RECENT: np.zeros(len(pages), np.int16)}

    def after(self, page: Mapping[str, AnyArray], look: Looks) -> Mapping[str, AnyArray]:
        """One bit more, and the interval that the window's share of changes asks for."""
        seen = page[_SEEN] + 1
        recent = ((page[_RECENT].astype(np.int64) << 1) | look.changed) & ((1 << _MOST) - 1)
        size = np.minimum(_MOST, (seen + 1) // 2)
        ratio = _ONES[recent & ((1 << size.astype(np.int64)) - 1)] / size
        return {INTERVAL: steps.by_ratio(page[INTERVAL], ratio), _SEEN: seen, _RECENT: recent}


def window(*, start: float | None = steps.START) -> ByInterval:
    """Move by the share of changes among the last looks; a ``start`` of ``None`` is the budget's."""
    return ByInterval(WindowRule(steps.start_of(start)), start_from_budget=start is None)
