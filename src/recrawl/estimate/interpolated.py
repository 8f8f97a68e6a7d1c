r"""Interpolated updates (HACS §II-B2): a change is dated at the middle of the gap in which it happened.

Observations t₀, t₁, …; the observation k that found a change is replaced by the midpoint (t_{k−1} + t_k)/2, and the
gaps are the differences of what results (reading 000.4). With z_k = 1 for a changed gap τ_k and 0 else:

    τ̃_k = τ_k·(1 − z_k/2) + z_{k−1}·τ_{k−1}/2.

The gap that ends in a change gets shorter, the one behind it longer. Any estimator can work on the result. The paper's
model f maps captures to (λ, τ): the rate by eq. 5, and the last update, or the first capture if there was none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from recrawl.estimate import mle
from recrawl.estimate.point_evidence import sound
from recrawl.model import FloatArray, Histories


def interpolate(histories: Histories) -> Histories:
    """The histories with every change moved to the middle of its gap. O(gaps).

    ``last_change`` is the last interpolated update, and ``last_visit`` too if the last observation found a change: the
    history ends where its last gap does.

    >>> from recrawl.model import Visits
    >>> h = interpolate(Histories.from_visits(Visits.of([1] * 4, [0.0, 10.0, 20.0, 30.0], verdict=[0, 2, 1, 2])))
    >>> h.gaps.tolist(), h.changed.tolist(), h.last_change.tolist()
    ([5.0, 15.0, 5.0], [True, False, True], [25.0])
    """
    histories = sound(histories)
    half = np.where(histories.changed, histories.gaps / 2.0, 0.0)
    carried = np.concatenate([np.zeros(1), half[:-1]])[: len(half)]
    carried[histories.offsets[:-1][histories.counts() > 0]] = 0.0  # nothing is carried into a page's first gap
    last_visit, last_change = histories.last_visit.copy(), histories.last_change.copy()
    row, changed = histories.row_of_gap(), histories.changed
    last_change[row[changed]] = (histories.observation_times() - half)[
        changed
    ]  # of equal indices the last assignment stands
    full = np.flatnonzero(histories.counts())
    ends = histories.offsets[full + 1] - 1
    last_visit[full] -= half[ends]
    gaps = histories.gaps - half + carried
    return Histories(histories.page, histories.offsets, gaps, changed, histories.first_visit, last_visit, last_change)


class UpdateModel(NamedTuple):
    """f of HACS §II-E: what is known of each page's updates."""

    rate: FloatArray
    """λ by eq. 5, per second; NaN for a page without gaps."""
    last_update: FloatArray
    """τ: the last update, or the first capture if none was seen (reading 000.5). NaN for a page never seen."""


def update_model(histories: Histories, *, interpolated: bool = True) -> UpdateModel:
    """Rate and last update of each page, from interpolated updates or from observed ones. O(gaps · steps)."""
    used = interpolate(histories) if interpolated else sound(histories)
    last = np.where(np.isnan(used.last_change), used.first_visit, used.last_change)
    return UpdateModel(mle.rates(used), last)
