"""Random (HACS §III-B, C): pages by chance, as many as the budget allows. The baseline that knows nothing.

Picking K of N pages at random again and again makes the time between two visits to a page memoryless. So after each
look the wait is drawn from an exponential distribution with mean N/K: Σ cost over the budget.
"""

from __future__ import annotations

import numpy as np

from recrawl.model import FloatArray, IntArray, Pages, Visits
from recrawl.schedule.by_interval import refuse_bad_budget
from recrawl.schedule.chance import uniform
from recrawl.schedule.ledger import Ledger
from recrawl.schedule.looks import fold
from recrawl.time import DAY


class RandomOrder:
    """Waits drawn by chance: the same for the same seed, page and last look."""

    name = "random"
    price = None

    def __init__(self, *, seed: int = 0, unfitted_interval: float = 180 * DAY) -> None:
        self._seed = seed
        self._ledger = Ledger()
        self._mean = unfitted_interval

    def __len__(self) -> int:
        """How many pages it knows."""
        return len(self._ledger)

    def add(self, pages: Pages) -> None:
        """Learn of pages."""
        self._ledger.add(pages)

    def tell(self, visits: Visits) -> None:
        """Note when pages were looked at."""
        fold(self._ledger.rows(visits.page), visits, self._ledger.last_look)

    def fit(self, budget: float, now: float) -> None:  # noqa: ARG002 - the mean is the same at any time
        """Share the budget, in units of cost per second; without pages the mean wait stays."""
        refuse_bad_budget(budget)
        if len(self._ledger):
            self._mean = float(self._ledger.pages.cost.sum()) / budget if budget > 0 else np.inf

    def due(self, page: IntArray, now: float) -> FloatArray:  # noqa: ARG002 - due times are absolute
        """A drawn wait after the last look; at discovery if there was none."""
        return self._ledger.due_after(page, self._waits(page))

    def urgency(self, page: IntArray, now: float) -> FloatArray:
        """Drawn waits since the last look."""
        return self._ledger.urgency(page, self._waits(page), now)

    def _waits(self, page: IntArray) -> FloatArray:
        chance = uniform(self._seed, page, self._ledger.last_look[self._ledger.rows(page)])
        return -np.log(chance) * self._mean
