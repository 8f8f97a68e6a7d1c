"""The policy for new links: come back when the delay of links that wait to be found is worth the price.

New links appear at the rate ν of a page, and each waits until the next visit: after t seconds the delay of all of them
is ν·t²/2, the objective ``links`` (algorithms §1). A model gives the belief about ν before the first visit, Gamma(a, b)
(``predict.prior_model``); a visit counts the links it finds, so after X of them in the time T the belief is

    ν ~ Gamma(a + X, b + T).

Internal and external links have separate counts and beliefs; the objective for both uses the sum of their rates. Visits
that did not count links, because nothing had changed, found none. The priors are requested again at every fit: a model
may have been replaced. The belief about *changes* is learned as in every ``valued`` policy and can be queried; only the
value of a visit depends on links.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import numpy as np

from recrawl.estimate.posterior.gamma_posterior import sum_of
from recrawl.model import AnyArray, FloatArray, GammaBelief, IntArray, Pages, Visits
from recrawl.schedule.learning.belief_state import ExpectedRates
from recrawl.schedule.learning.observation_columns import ClosedGapColumns, GrowingColumns
from recrawl.schedule.learning.page_clocks import Clusters, by_host
from recrawl.schedule.objectives import OBJECTIVES
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.schedule.price.budget_price import HostLimits
from recrawl.schedule.price.due_times import VisitDemand
from recrawl.time import DAY, HOUR

LinkPrior: TypeAlias = Callable[[Pages], GammaBelief]
"""What to believe of the rates of new links of pages before any visit, one row per page, per second."""
KINDS: Final = ("internal", "external")
"""Links to pages of the same host, and to others."""


class NewLinks(ValuedPolicy):
    """The policy of recrawl for new links, of one kind or of both, by the priors that are given.

    24 bytes per page and kind, and 8 more a page, beside what every policy of ours needs.
    """

    def __init__(  # noqa: PLR0913 - each is a choice of its own, and each but the first has a default
        self,
        links: Mapping[str, LinkPrior],
        *,
        shortest_interval: float = HOUR,
        longest_interval: float = 180 * DAY,
        expected: ExpectedRates | None = None,
        clusters: Clusters = by_host,
        host_limits: HostLimits | None = None,
    ) -> None:
        super().__init__(
            OBJECTIVES["links"],
            shortest_interval=shortest_interval,
            longest_interval=longest_interval,
            expected=expected,
            clusters=clusters,
            host_limits=host_limits,
        )
        if not links or not set(links) <= set(KINDS):
            msg = f"there must be priors of links that are {' or '.join(KINDS)}, not of {', '.join(links) or 'none'}"
            raise ValueError(msg)
        self._priors = dict(links)
        counted = [name for kind in links for name in _columns(kind)]
        self._links = GrowingColumns(dict.fromkeys([*counted, "seconds"], np.float64))

    def links(self, page: IntArray) -> GammaBelief:
        """What is held about the rates of new links of these pages, of all kinds that are wanted, per second."""
        return self._of(self._last_visits.rows(page))

    @property
    def given(self) -> tuple[object, ...]:
        """What it was made with (``SnapshotPolicy``)."""
        return (*super().given, *self._priors.values())

    def tell(self, visits: Visits) -> None:
        """Note observations and the links they found; links of the first observation of a page are not new.

        O(visits log visits).
        """
        closed = self._last_visits.tell(visits)
        self._learning.tell(closed)
        self._grow()
        self._count(closed, self._last_visits.rows(visits.page), visits)

    def fit(self, budget: float, now: float) -> None:
        """Solve the prices by what the priors say now: a model may have been replaced since. O(pages · steps)."""
        have = len(self._links)
        if have:
            pages = self._last_visits.pages.take(slice(have))
            for kind, said in self._priors.items():
                prior = said(pages)
                a, b, _ = _columns(kind)
                self._links[a][:], self._links[b][:] = prior.a, prior.b
        super().fit(budget, now)

    def _count(self, closed: ClosedGapColumns, row: IntArray, visits: Visits) -> None:
        """Add what visits found; ``closed`` are the gaps they closed, ``row`` the row of each visit."""
        np.add.at(self._links["seconds"], closed.row, closed.seconds)
        some = np.flatnonzero((visits.new_internal > 0) | (visits.new_external > 0))
        if len(some):
            told = some[np.isin(row[some] + 1j * visits.time[some], closed.row + 1j * closed.end)]
            for kind in self._priors:
                new = visits.new_internal if kind == "internal" else visits.new_external
                np.add.at(self._links[f"{kind} found"], row[told], np.maximum(new[told], 0))

    def _grow(self) -> None:
        """Rows for the pages that were added since."""
        have = len(self._links)
        if have < len(self._last_visits):
            new = self._last_visits.pages.take(slice(have, None))
            nothing = np.zeros(len(new))
            rows = {"seconds": nothing}
            for kind, said in self._priors.items():
                prior = said(new)
                rows |= dict(zip(_columns(kind), (prior.a, prior.b, nothing), strict=True))
            self._links.append(**rows)

    def _of(self, rows: AnyArray) -> GammaBelief:
        self._grow()
        own, seconds = self._links, self._links["seconds"][rows]
        held = [[own[name][rows] for name in _columns(kind)] for kind in self._priors]
        return sum_of([GammaBelief(a + found, b + seconds) for a, b, found in held])

    # -- what a visit is worth: in wall time, whatever the pace of changes ------------------------

    def _demand(
        self, rows: IntArray, pace: FloatArray, shortest: FloatArray, longest: FloatArray
    ) -> tuple[VisitDemand, FloatArray]:
        """What these pages ask for, in seconds; the intervals are given in operational seconds."""
        pages = self._last_visits.pages
        ends = shortest / pace, longest / pace
        return VisitDemand(self._objective, self._of(rows), pages.importance[rows], pages.cost[rows], *ends), pace

    def _wait(self, rows: IntArray, last: FloatArray, price: FloatArray) -> FloatArray:  # noqa: ARG002 - at any time
        """Seconds until a visit is worth the price."""
        ends = self._least(rows), np.full(len(rows), self._longest)
        demand, _ = self._demand(rows, np.ones(len(rows)), *ends)
        return demand.intervals(price)

    def _wait_ageing(self, rows: IntArray, last: FloatArray, price: FloatArray) -> FloatArray:
        """The same: links know no age."""
        return self._wait(rows, last, price)

    def _worth(self, rows: IntArray, last: FloatArray, at: FloatArray) -> FloatArray:
        """w·U/c of visits at ``at`` to pages last observed at ``last``; 0 for those that were not."""
        since = np.where(np.isnan(last), 0.0, np.maximum(at - last, 0.0))
        pages = self._last_visits.pages
        return pages.importance[rows] * self._objective.value(self._of(rows), since) / pages.cost[rows]


def _columns(kind: str) -> tuple[str, str, str]:
    """Of one kind of links: both numbers of the prior, and how many were found."""
    return f"{kind} a", f"{kind} b", f"{kind} found"
