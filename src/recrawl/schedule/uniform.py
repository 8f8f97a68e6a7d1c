"""Uniform: every page as often as every other, as often as the budget allows. The yardstick."""

from __future__ import annotations

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import FloatArray, IntArray, Pages, Visits
from recrawl.schedule.ledger import Ledger
from recrawl.time import DAY


class Uniform:
    """One interval for all pages: Σ cost / budget. It learns no rates and pays no heed to importance."""

    name = "uniform"
    price = None

    def __init__(self, *, unfitted_interval: float = 180 * DAY) -> None:
        self._ledger = Ledger()
        self._interval = unfitted_interval

    @property
    def interval(self) -> float:
        """Seconds between two visits to a page; inf at a budget of 0."""
        return self._interval

    def __len__(self) -> int:
        """How many pages it knows."""
        return len(self._ledger)

    def add(self, pages: Pages) -> None:
        """Learn of pages."""
        self._ledger.add(pages)

    def tell(self, visits: Visits) -> None:
        """Note when pages were looked at."""
        self._ledger.tell(visits)

    def fit(self, budget: float, now: float) -> None:  # noqa: ARG002 - the interval is the same at any time
        """Share the budget, in units of cost per second, equally; without pages the interval stays."""
        if not budget >= 0:
            raise ConfigError(f"A budget of {budget} visits per second is not possible.", "Give a number of 0 or more.")
        if len(self._ledger):
            self._interval = float(self._ledger.pages.cost.sum()) / budget if budget > 0 else np.inf

    def due(self, page: IntArray, now: float) -> FloatArray:  # noqa: ARG002 - due times are absolute
        """One interval after the last look; at discovery if there was none."""
        return self._ledger.due_after(page, self._interval)

    def urgency(self, page: IntArray, now: float) -> FloatArray:
        """Intervals since the last look."""
        return self._ledger.urgency(page, self._interval, now)
