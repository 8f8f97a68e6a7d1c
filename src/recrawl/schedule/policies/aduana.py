"""Aduana's ``FreqScheduler``: visit a page in proportion to how often it changes.

    rate = (changes + 1)/(last observation − first observation),   frequency = scale·rate

The first fetch counts as a change, hence the 1. Aduana returns pages in the order of a virtual time that moves by
1/frequency, as fast as they are requested. So the budget sets the pace, and the rule only sets the proportions. A given
``scale`` sets the pace itself. A page with a single observation has the default frequency of 0.1 per second: it is
revisited as soon as possible.
"""

from __future__ import annotations

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import FloatArray, IntArray, Pages, Visits
from recrawl.schedule.learning.observation_columns import GrowingColumns, LastVisits, fold
from recrawl.schedule.policies.by_interval import refuse_bad_budget

DEFAULT_FREQUENCY = 0.1
"""Visits per second to a page whose rate is not known (``FREQ_DEFAULT``)."""


class Aduana:
    """Visits in proportion to (changes + 1)/(last − first), without bounds: it has none. O(1) an observation."""

    name = "aduana"
    price = None

    def __init__(self, *, scale: float | None = None, default_frequency: float = DEFAULT_FREQUENCY) -> None:
        if not (default_frequency > 0 and (scale is None or scale > 0)):
            raise ConfigError(
                f"aduana: a scale of {scale} and a frequency of {default_frequency} are not possible.",
                "Give numbers above 0.",
            )
        self._scale = scale or 1.0
        self._scale_is_given = scale is not None
        self._default = 1.0 / default_frequency
        self._last_visits = LastVisits()
        self._table = GrowingColumns({"changes": np.int64, "observed": np.float64})

    def __len__(self) -> int:
        """How many pages it knows."""
        return len(self._last_visits)

    def add(self, pages: Pages) -> None:
        """Add pages."""
        new = self._last_visits.add(pages)
        self._table.append(changes=np.zeros(len(new), np.int64), observed=np.zeros(len(new)))

    def tell(self, visits: Visits) -> None:
        """Count changes, and the time over which they were seen."""
        observations = fold(self._last_visits.rows(visits.page), visits, self._last_visits.last_observed)
        closed = observations.take(~observations.opens())
        np.add.at(self._table["changes"], closed.row, closed.changed)
        np.add.at(self._table["observed"], closed.row, closed.seconds)

    def fit(self, budget: float, now: float) -> None:  # noqa: ARG002 - the scale is the same at any time
        """Without a given scale, set the one that spends the budget on the pages whose rate is known."""
        refuse_bad_budget(budget)
        known = self._table["observed"] > 0
        if known.any() and not self._scale_is_given:
            rate = (self._table["changes"][known] + 1) / self._table["observed"][known]
            self._scale = budget / float((self._last_visits.pages.cost[known] * rate).sum())

    def due(self, page: IntArray, now: float) -> FloatArray:  # noqa: ARG002 - due times are absolute
        """1/frequency after the last observation; at discovery if there was none."""
        return self._last_visits.due_after(page, self._intervals(page))

    def urgency(self, page: IntArray, now: float) -> FloatArray:
        """Observations missed since the last one."""
        return self._last_visits.urgency(page, self._intervals(page), now)

    def _intervals(self, page: IntArray) -> FloatArray:
        rows = self._last_visits.rows(page)
        changes, observed = self._table["changes"][rows], self._table["observed"][rows]
        with np.errstate(divide="ignore", invalid="ignore"):
            interval = observed / (self._scale * (changes + 1))
        return np.where(observed > 0, interval, self._default)
