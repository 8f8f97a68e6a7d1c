"""Last-Obs (HACS §III-C): visit the pages that have not been updated for longest.

Ranked by t − τ, τ the last update; the paper also says "last accessed" (reading 000.8). A page that never changes is
always first, so that this is the ranking to beat.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.estimate.interpolated import interpolate
from recrawl.model import FloatArray, Histories
from recrawl.schedule.update_ranking import UpdateRanking
from recrawl.time import DAY, WEEK


@dataclass(frozen=True, slots=True)
class LastObservationModel:
    """All pages alike; only the last update counts."""

    name: str = "last-obs"
    unfitted_slope: float = 1.0

    def __call__(self, histories: Histories, now: float) -> tuple[FloatArray, FloatArray]:  # noqa: ARG002 - at any time
        """A slope of 1, and the last update, or the first look if none was seen."""
        change = interpolate(histories).last_change
        return np.ones(len(histories)), np.where(np.isnan(change), histories.first_visit, change)


def last_observation(*, period: float = WEEK, longest: float = 180 * DAY) -> UpdateRanking:
    """The best K by the time since the last update, K being what the budget pays for in one ``period``, in seconds."""
    return UpdateRanking(LastObservationModel(), horizon=0.0, period=period, longest=longest, threshold=None)
