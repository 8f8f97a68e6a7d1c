"""Ours: come back when a visit is worth its price (design, "One question").

Belief × objective × price: a Gamma belief about each page's rate, learned from every look; the objective turns it into
the value of a visit after a time; the price, found from the budget, turns that into a due time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from recrawl.estimate import gamma
from recrawl.estimate.empirical_bayes import GroupPriors, fit_group_priors, vague
from recrawl.model import FloatArray, GammaBelief, Histories, IntArray, Pages, Visits
from recrawl.model.arrays import offsets_of
from recrawl.schedule.columns import Columns
from recrawl.schedule.due import Demand
from recrawl.schedule.ledger import Ledger
from recrawl.schedule.objectives import ARCHIVE, Objective
from recrawl.schedule.price import Allocation, allocate
from recrawl.time import DAY, HOUR

PagePrior: TypeAlias = Callable[[Pages], GammaBelief]
"""What is believed of pages before any look at them, one row a page: for example a learned model's answer."""


class Valued:
    """The policy of recrawl. Memory: about 90 bytes a page and 17 a look, room to grow aside.

    ``longest_interval`` is the floor against starvation: no page waits longer, whatever its value, and where pages
    are hopeless or the budget is too small it is all they get. ``prior`` replaces the prior that is otherwise
    estimated at each fit: of the whole population, and of each host shrunk towards it.
    """

    def __init__(
        self,
        objective: Objective = ARCHIVE,
        *,
        shortest_interval: float = HOUR,
        longest_interval: float = 180 * DAY,
        prior: PagePrior | None = None,
    ) -> None:
        self._objective = objective
        self._shortest = shortest_interval
        self._longest = longest_interval
        self._given_prior = prior
        self._ledger = Ledger()
        self._shape = Columns({"a": np.float64, "b": np.float64})
        self._gaps = Columns({"row": np.int64, "seconds": np.float64, "changed": np.bool_})
        unknown = vague(Histories.concatenate([]))
        self._host_priors = GroupPriors(np.empty(0, np.int64), unknown.take(slice(0)), unknown)
        self._allocation: Allocation | None = None

    @property
    def name(self) -> str:
        """``valued-`` and the objective."""
        return f"valued-{self._objective.name}"

    @property
    def price(self) -> float | None:
        """Value a unit of cost must bring; ``None`` before a fit that had pages."""
        return None if self._allocation is None else self._allocation.price

    @property
    def allocation(self) -> Allocation | None:
        """The last fit: rates by row in the order the pages were added, who is hopeless, whether the budget is kept."""
        return self._allocation

    def belief(self, page: IntArray) -> GammaBelief:
        """What is held about the change rates of these pages."""
        return self._belief.take(self._ledger.rows(page))

    def __len__(self) -> int:
        """How many pages it knows."""
        return len(self._ledger)

    def add(self, pages: Pages) -> None:
        """Learn of pages; until they are seen, their prior is what is believed of them."""
        new = self._ledger.add(pages)
        prior = self._prior(new)
        self._shape.append(a=prior.a, b=prior.b)

    def tell(self, visits: Visits) -> None:
        """Fold looks into the beliefs. O(1) a look."""
        closed = self._ledger.tell(visits)
        gamma.update(self._belief, closed.row, closed.seconds, closed.changed)
        self._gaps.append(row=closed.row, seconds=closed.seconds, changed=closed.changed)

    def fit(self, budget: float, now: float) -> None:  # noqa: ARG002 - beliefs do not age yet
        """Estimate the prior anew, fold all looks into it again, and solve the price.

        O(looks log looks) for the beliefs and O(pages · steps) for the price.
        """
        if not len(self._ledger):
            return
        by_id = np.argsort(self._ledger.pages.id)
        pages, histories = self._ledger.pages.take(by_id), self._histories(by_id)
        if self._given_prior is None:
            self._host_priors = fit_group_priors(histories, pages.host)
        belief = gamma.fit(histories, self._prior(pages))
        self._shape["a"][by_id], self._shape["b"][by_id] = belief.a, belief.b
        self._allocation = allocate(self._demand(slice(None)), budget)

    def due(self, page: IntArray, now: float) -> FloatArray:  # noqa: ARG002 - due times are absolute
        """When the value of a visit reaches the price, at the latest ``longest_interval`` after the last look.

        Before a fit there is no price, and seen pages wait for the longest interval. O(m · steps).
        """
        if self.price is None:
            return self._ledger.due_after(page, self._longest)
        interval = self._demand(self._ledger.rows(page)).intervals(self.price)
        return self._ledger.due_after(page, np.minimum(interval, self._longest))

    def urgency(self, page: IntArray, now: float) -> FloatArray:
        """Value of a visit now in units of the price, within the shortest and the longest interval. O(m)."""
        longest = self._ledger.urgency(page, self._longest, now)
        if self.price is None:
            return longest
        rows = self._ledger.rows(page)
        elapsed = np.maximum(np.nan_to_num(now - self._ledger.last_look[rows]), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            worth = np.nan_to_num(self._demand(rows).worth(elapsed) / self.price, nan=0.0, posinf=np.inf)
        worth = np.where(elapsed < self._shortest, np.minimum(worth, elapsed / self._shortest), worth)
        return np.where(np.isinf(longest), np.inf, np.maximum(worth, longest))

    # -- inside -------------------------------------------------------------------------------

    @property
    def _belief(self) -> GammaBelief:
        """Views of the stored columns: written to in place by ``tell``."""
        return GammaBelief(self._shape["a"], self._shape["b"])

    def _prior(self, pages: Pages) -> GammaBelief:
        if self._given_prior is not None:
            return self._given_prior(pages)
        return self._host_priors.of(pages.host)

    def _demand(self, rows: IntArray | slice) -> Demand:
        pages = self._ledger.pages.take(rows)
        belief = self._belief.take(rows)
        return Demand(self._objective, belief, pages.importance, pages.cost, self._shortest, self._longest)

    def _histories(self, by_id: IntArray) -> Histories:
        """All looks told so far; pages in the order of their ids, so that the order they came in does not matter."""
        n = len(by_id)
        rank = np.empty(n, dtype=np.int64)
        rank[by_id] = np.arange(n)
        row = rank[self._gaps["row"]]
        order = np.argsort(row, kind="stable")
        row, seconds, changed = row[order], self._gaps["seconds"][order], self._gaps["changed"][order]
        last = self._ledger.last_look[by_id]
        first = last - np.bincount(row, seconds, n)
        last_change = np.full(n, np.nan)
        found = Histories(self._ledger.pages.id[by_id], offsets_of(row, n), seconds, changed, first, last, last_change)
        last_change[row[changed]] = found.look_times()[changed]
        return found
