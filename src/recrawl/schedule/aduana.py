"""Aduana's ``FreqScheduler``: as often as the page changes, times a scale.

    rate = (changes + 1)/(last look − first look),   frequency = scale·rate

The first fetch counts as a change, hence the 1. Aduana hands out pages in the order of a virtual time that moves by
1/frequency, as fast as they are asked for; so it is the budget that sets the pace, and only the proportions are the
rule's. A given ``scale`` sets the pace itself. A page with a single look has the default frequency of 0.1 a second:
it is looked at again as soon as possible.
"""

from __future__ import annotations

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import FloatArray, IntArray, Pages, Visits
from recrawl.schedule.by_interval import refuse_bad_budget
from recrawl.schedule.columns import Columns
from recrawl.schedule.ledger import Ledger
from recrawl.schedule.looks import fold

DEFAULT_FREQUENCY = 0.1
"""Visits per second to a page whose rate is not known (``FREQ_DEFAULT``)."""


class Aduana:
    """Visits in proportion to (changes + 1)/(last − first), without bounds: it has none. O(1) a look."""

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
        self._ledger = Ledger()
        self._table = Columns({"changes": np.int64, "observed": np.float64})

    def __len__(self) -> int:
        """How many pages it knows."""
        return len(self._ledger)

    def add(self, pages: Pages) -> None:
        """Learn of pages."""
        new = self._ledger.add(pages)
        self._table.append(changes=np.zeros(len(new), np.int64), observed=np.zeros(len(new)))

    def tell(self, visits: Visits) -> None:
        """Count changes, and the time over which they were seen."""
        looks = fold(self._ledger.rows(visits.page), visits, self._ledger.last_look)
        closed = looks.take(~looks.opens())
        np.add.at(self._table["changes"], closed.row, closed.changed)
        np.add.at(self._table["observed"], closed.row, closed.seconds)

    def fit(self, budget: float, now: float) -> None:  # noqa: ARG002 - the scale is the same at any time
        """Without a given scale, set the one that spends the budget on the pages whose rate is known."""
        refuse_bad_budget(budget)
        known = self._table["observed"] > 0
        if known.any() and not self._scale_is_given:
            rate = (self._table["changes"][known] + 1) / self._table["observed"][known]
            self._scale = budget / float((self._ledger.pages.cost[known] * rate).sum())

    def due(self, page: IntArray, now: float) -> FloatArray:  # noqa: ARG002 - due times are absolute
        """1/frequency after the last look; at discovery if there was none."""
        return self._ledger.due_after(page, self._intervals(page))

    def urgency(self, page: IntArray, now: float) -> FloatArray:
        """Looks missed since the last one."""
        return self._ledger.urgency(page, self._intervals(page), now)

    def _intervals(self, page: IntArray) -> FloatArray:
        rows = self._ledger.rows(page)
        changes, observed = self._table["changes"][rows], self._table["observed"][rows]
        with np.errstate(divide="ignore", invalid="ignore"):
            interval = observed / (self._scale * (changes + 1))
        return np.where(observed > 0, interval, self._default)
