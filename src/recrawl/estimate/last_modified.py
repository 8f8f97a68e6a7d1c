r"""Last-Modified, and a sitemap's lastmod, as the time of the last change (algorithms §5).

If a page changed in the gap that a look closed, and a statement made at c dates that change at L, then what was
observed is: a change at L, and none from L to the look (or to c, if that came first). Its likelihood is λ·e^{−λs},
s = min(c, look) − L, where the look alone has 1 − e^{−λτ}. So even looks that always find a change tell how fast the
page is. Statements that the looks contradict date nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from recrawl.estimate import trust
from recrawl.estimate.trust import Statements
from recrawl.model import FloatArray, Histories, IntArray


class Dates(NamedTuple):
    """Dated changes, at most one a gap and one before each first look."""

    row: IntArray
    gap: IntArray
    """The gap the change happened in; ``trust.BEFORE_ALL_LOOKS`` for one before the first look."""
    age: FloatArray
    """Seconds from the change to the look that closed the gap, or to the statement if that came first."""


def dates(histories: Histories, statements: Statements, weight: FloatArray) -> Dates:
    """The changes that statements date and no look contradicts; ``weight[i]`` > 0 where row i is heard. O(m + s log s).

    Of statements about one gap the one with the latest change counts, and of those the last.
    """
    checked = trust.check(histories, statements)
    usable = np.flatnonzero(checked.true & (checked.gap != trust.AFTER_ALL_LOOKS) & (weight[checked.row] > 0.0))
    gap, row = checked.gap[usable], checked.row[usable]
    slot = np.where(gap >= 0, gap, len(histories.gaps) + row)
    for column in (checked.changed_at, checked.time):
        best = np.full(len(histories.gaps) + len(histories), -np.inf)
        np.maximum.at(best, slot, column[usable])
        stays = column[usable] == best[slot]
        usable, slot = usable[stays], slot[stays]
    chosen = usable[np.unique(slot, return_index=True)[1]]
    row, gap = checked.row[chosen], checked.gap[chosen]
    look = np.where(gap >= 0, np.append(histories.look_times(), np.nan)[gap], histories.first_visit[row])
    return Dates(row, gap, np.minimum(checked.time[chosen], look) - checked.changed_at[chosen])
