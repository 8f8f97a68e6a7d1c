"""Proportional: every page visited in proportion to how often it changes. Adaptive crawlers converge to this.

The interval of a page is 1/(k·λ), within the shortest and the longest; k is chosen so that the budget is spent. For
freshness this is provably worse than uniform (Cho and Garcia-Molina 2003); it is a baseline.
"""

from __future__ import annotations

import numpy as np

from recrawl.estimate.estimator import Estimator, RateEvidence
from recrawl.estimate.posterior import gamma_posterior
from recrawl.estimate.posterior.gamma_posterior import vague
from recrawl.model import FloatArray, IntArray, Pages, Visits
from recrawl.schedule.learning.observation_columns import GapLog, GrowingColumns, LastVisits, fold
from recrawl.schedule.policies.by_interval import refuse_bad_budget
from recrawl.schedule.policies.fixed_interval import TrueRates
from recrawl.time import DAY, HOUR

_HALVINGS = 100
"""Of a bracket on ln k: down to neighbouring numbers."""
_NO_LIMIT = 600.0
"""On ln seconds, where no interval is the longest."""


class Proportional:
    """Visits in proportion to rates: those an oracle knows, or the means that an estimator gives at every fit.

    Without either, the mean of a Gamma belief under a vague prior: cheap, and never 0.
    """

    price = None

    def __init__(
        self,
        *,
        true_rates: TrueRates | None = None,
        estimator: Estimator | None = None,
        shortest: float = HOUR,
        longest: float = 180 * DAY,
        name: str = "proportional",
    ) -> None:
        self.name = name
        self._true_rates = true_rates
        self._estimator = estimator
        self._shortest = shortest
        self._longest = longest
        self._last_visits = LastVisits()
        self._log = GapLog()
        self._table = GrowingColumns({"interval": np.float64})

    def __len__(self) -> int:
        """How many pages it knows."""
        return len(self._last_visits)

    def add(self, pages: Pages) -> None:
        """Add pages; until the next fit they wait for the longest interval."""
        self._table.append(interval=np.full(len(self._last_visits.add(pages)), self._longest))

    def tell(self, visits: Visits) -> None:
        """Add visits; rates change at the next fit."""
        observations = fold(self._last_visits.rows(visits.page), visits, self._last_visits.last_observed)
        closed = observations.take(~observations.opens())
        self._log.append(closed.row, closed.seconds, closed.changed)

    def fit(self, budget: float, now: float) -> None:  # noqa: ARG002 - rates do not age
        """Estimate the rates again and share the budget, in units of cost per second.

        O(observations log observations).
        """
        refuse_bad_budget(budget)
        if not len(self._last_visits):
            return
        by_id, histories = self._log.histories(self._last_visits)
        if self._true_rates is not None:
            rate = np.asarray(self._true_rates(histories.page), dtype=np.float64)
        elif self._estimator is not None:
            rate = self._estimator(RateEvidence(histories, (self._last_visits.pages.host[by_id],))).mean()
        else:
            rate = gamma_posterior.fit(histories, vague(histories).take(np.zeros(len(histories), np.int64))).mean()
        cost = self._last_visits.pages.cost[by_id]
        self._table["interval"][by_id] = intervals(rate, cost, budget, self._shortest, self._longest)

    def due(self, page: IntArray, now: float) -> FloatArray:  # noqa: ARG002 - due times are absolute
        """One interval after the last observation; at discovery if there was none."""
        return self._last_visits.due_after(page, self._intervals(page))

    def urgency(self, page: IntArray, now: float) -> FloatArray:
        """Intervals since the last observation."""
        return self._last_visits.urgency(page, self._intervals(page), now)

    def _intervals(self, page: IntArray) -> FloatArray:
        return np.asarray(self._table["interval"][self._last_visits.rows(page)])


def intervals(rate: FloatArray, cost: FloatArray, budget: float, shortest: float, longest: float) -> FloatArray:
    """Seconds between visits, 1/(k·rate) within the bounds, such that Σ cost/interval is the budget. O(pages).

    A budget beyond what the bounds allow gives the bounds.

    >>> intervals(np.array([1.0, 3.0]), np.ones(2), 2.0, 0.01, 100.0).round(3).tolist()
    [2.0, 0.667]
    """
    with np.errstate(divide="ignore"):
        log_rate = np.log(rate)
    alive = log_rate[np.isfinite(log_rate)]
    if not len(alive):
        return np.full(len(rate), longest)

    def at(log_factor: float) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.asarray(np.clip(np.exp(-log_factor - log_rate), shortest, longest))

    farthest = np.log(longest) if np.isfinite(longest) else _NO_LIMIT
    low, high = float(-farthest - alive.max()), float(-np.log(shortest) - alive.min())
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if float((cost / at(middle)).sum()) > budget else (middle, high)
    return at(low)
