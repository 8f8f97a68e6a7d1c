"""Several hosts captured side by side, each at its own pace, around one moment.

Politeness applies to each host alone, so hosts are captured at once, and the slots of one do not delay another. They
share the moment that the capture stands for. Each host is planned on its own, and its slots are placed so that their
middle is the common middle: a small or fast host starts later and ends earlier than a large or slow one.

That is optimal for both aims. The blur penalty of a visit in the common observation interval, which lasts as long as
the slowest host, depends only on its distance from the middle; so each host gets its own centred organ pipes (up to a
shift by less than a delay, see :func:`recrawl.capture.single_visit.sharc_single_visit.centred_start`). The coherence of
a page depends only on its own interval. All visits lie before the common middle and all revisits behind it, so every
interval contains it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from recrawl.model import CapturePlan, FloatArray, IntArray

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

    >>> from recrawl.capture.visit_revisit.sharc_selective import sharc_selective
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
