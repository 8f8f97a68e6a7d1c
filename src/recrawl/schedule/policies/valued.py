"""The default policies: come back when the value of a visit reaches the threshold (shadow price).

Belief × operational time × objective × price. The belief about each page's rate and the speed of its clock are learned
from every observation (``schedule.learning``); the objective turns them into the value of a visit; the price, found
from the budget, turns the value into a due time.
"""

from __future__ import annotations

import copy
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np

from recrawl.estimate.operational.factor_state import TimeFactor
from recrawl.estimate.point_evidence import PointBelief
from recrawl.model import Belief, FloatArray, IntArray, Pages, Visits
from recrawl.schedule.learning.belief_state import (
    BeliefState,
    ExpectedRates,
    GammaBeliefState,
    GridBeliefState,
    PagePrior,
)
from recrawl.schedule.learning.observation_columns import LastVisits
from recrawl.schedule.learning.online_fit import OnlineFit
from recrawl.schedule.learning.page_clocks import USED, Clusters, PageClocks, by_host
from recrawl.schedule.learning.replayable_chance import uniform
from recrawl.schedule.objectives import ARCHIVE, Objective, basics_of
from recrawl.schedule.price.budget_price import Allocation, HostLimits, PagePrices, spend, spend_at
from recrawl.schedule.price.due_times import VisitDemand
from recrawl.schedule.price.paced_value import POWERS, PacedBelief, paced_value, time_to_reach
from recrawl.schedule.price.price_roots import DemandCurve, demand_curve
from recrawl.time import DAY, HOUR

JUMP = 700 * DAY
"""Mean operational time between two changes of a page's rate.

Set on four real collections: against 400 days freshness is .001 higher on mdn, uvarc, freebooks and equal on wcag. On
four others (jekylldocs, ropensci, llvm, til) the two differ by less than .0005, either way. With 800 days it is lower
by .002 on freebooks, and within .0004 either way on llvm, uvarc, wcag, ropensci, twir, til and jekylldocs.
"""
_MOMENT = 1e-3
"""Seconds: before an age at which the pace of a page falls, to see whether it was worth a visit already."""
_TIE = 1e-6
"""Relative difference of urgency, at most, between pages of which all that is known is the same. Callers break ties
with far smaller ones."""


class ValuedPolicy:
    """The default policy: a page is due when the value of a visit reaches the shadow price.

    Memory: 152 bytes per page for beliefs and 104 for the rest, 3 kB per cluster for its calendar, and 30 bytes per
    observation, plus reserve for growth; 140 more per observation while clocks and priors are estimated again. A
    million pages in clusters of 30 need half a gigabyte.

    ``longest_interval`` prevents starvation: no page waits longer, whatever its value. Hopeless pages, and all pages
    under a budget that is too small, are visited at this interval. ``prior`` replaces the priors that are otherwise
    learned for all pages, for each host and for each cluster; ``expected`` refines these by how often a model expects
    each page to change (``estimate.posterior.expected_rates``). ``clusters`` returns which pages are likely to be
    edited together; without it, those of a host. ``factors`` are the factors of operational time; none for wall time.
    ``host_limits`` is the highest rate of visits that the politeness of each host allows: visits that a slow host
    cannot take are spent elsewhere. ``belief="gamma"`` needs 136 bytes per page less and predicts slightly worse.
    """

    _averages = True
    """Whether values are averages over the belief, so that due times can be searched for in them."""
    _ties = 0
    """Seed of the order of pages of which all that is known is the same."""

    def __init__(  # noqa: PLR0913 - each is a choice of its own, and each has a default
        self,
        objective: Objective = ARCHIVE,
        *,
        shortest_interval: float = HOUR,
        longest_interval: float = 180 * DAY,
        prior: PagePrior | None = None,
        expected: ExpectedRates | None = None,
        belief: Literal["grid", "gamma"] = "grid",
        clusters: Clusters = by_host,
        factors: Collection[TimeFactor] = USED,
        jump: float | None = JUMP,
        host_limits: HostLimits | None = None,
    ) -> None:
        self._objective = objective
        self._shortest = shortest_interval
        self._longest = longest_interval
        self._host_limits = host_limits
        self._last_visits = LastVisits()
        self._start = _FitStart(prior, expected, belief, jump, tuple(factors), longest_interval, clusters)
        self._learning = OnlineFit(self._last_visits, self._start)
        self._allocation: Allocation | None = None
        self._prices: PagePrices | None = None

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

    @property
    def prices(self) -> PagePrices | None:
        """The price of the last fit by host; ``None`` before a fit that had pages."""
        return self._prices

    def belief(self, page: IntArray, now: float | None = None) -> Belief:
        """The belief about the change rates of these pages, per second at the pace they have at ``now``.

        Without ``now``, at the latest time of any observation or query.
        """
        now = self._learning.latest if now is None else now
        rows = self._rows(page, now)
        return self._paced(rows, np.full(len(rows), now))

    def changed(self, page: IntArray, now: float) -> FloatArray:
        """Probability that each page has changed since it was last observed; NaN for pages never observed. O(m).

        By the operational time that has passed, not by the pace of ``now``: so it never falls as time goes by, even
        where the pace does. Only observations, at this page or at others that share its clock, can lower it.
        """
        rows = self._rows(page, now)
        last, at = self._last_visits.last_observed[rows], np.full(len(rows), now)
        since = np.where(np.isnan(last), at, np.minimum(last, at))
        unchanged = self._learning.beliefs.of(rows).survival(self._learning.clocks.elapsed(rows, since, at))
        return np.where(np.isnan(last), np.nan, 1.0 - unchanged * np.exp(-self.announced(page, now)))

    def announced(self, page: IntArray, now: float) -> FloatArray:
        """Changes that signals announced since each page was last observed, each as far as signals proved true. O(m).

        0 for pages never observed.
        """
        rows = self._rows(page, now)
        last, at = self._last_visits.last_observed[rows], np.full(len(rows), now)
        since = np.where(np.isnan(last), at, np.minimum(last, at))
        signals = self._learning.signals
        return signals.weight(self._last_visits.pages.host[rows]) * signals.count(rows, since, at)

    def __len__(self) -> int:
        """How many pages it knows."""
        return len(self._last_visits)

    def add(self, pages: Pages) -> None:
        """Add pages; until its first observation the belief about a page is its prior."""
        self._last_visits.add(pages)

    def tell(self, visits: Visits) -> None:
        """Add visits; the state is updated at the next query. O(1) per observation."""
        self._learning.tell(self._last_visits.tell(visits))

    def signal(self, page: IntArray, time: FloatArray) -> None:
        """Add signals that a page changed: from a sitemap, a feed, or the change of a sibling.

        ``time`` is when each was received. A signal before the last observation of its page has no effect; a repeated
        one counts once. Signals have no effect until those of the host proved to carry information.
        """
        self._learning.add_signals(self._last_visits.rows(page), np.asarray(time, dtype=np.float64))

    def fit(self, budget: float, now: float) -> None:
        """Solve the prices for pages at the pace they have now, and for what hosts take now. O(pages · steps)."""
        if not len(self._last_visits):
            return
        demand, host, factor = self._demand_now(now)
        found, self._prices = spend(demand, budget, host, self._host_limits)
        self._allocation = replace(found, rate=found.rate * factor)

    def set_price(self, price: float, now: float) -> None:
        """As :meth:`fit`, at a price that was found over more pages than these (``PartitionedPolicy``)."""
        if not len(self._last_visits):
            return
        demand, host, factor = self._demand_now(now)
        found, self._prices = spend_at(demand, price, host, self._host_limits)
        self._allocation = replace(found, rate=found.rate * factor)

    def highest_value(self, now: float) -> float:
        """The highest price at which a page asks for more than its floor; 0 without pages. O(pages)."""
        if not len(self._last_visits):
            return 0.0
        limit = self._demand_now(now)[0].extremes().limit
        return float(limit[np.isfinite(limit)].max(initial=0.0))

    def demand_curve(self, price: FloatArray, now: float) -> DemandCurve:
        """What the pages ask for at these ascending prices, within the limits of their hosts. O(pages · prices)."""
        if not len(self._last_visits):
            return DemandCurve(price, np.zeros(len(price)), 0.0, 0.0)
        demand, host, _factor = self._demand_now(now)
        hosts, of = np.unique(host, return_inverse=True)
        limit = np.full(len(hosts), np.inf) if self._host_limits is None else self._host_limits(hosts)
        return demand_curve(demand, of, limit, price)

    def due(self, page: IntArray, now: float) -> FloatArray:
        """When the value of a visit reaches the price, at the latest ``longest_interval`` after the last observation.

        Operational time yet to come passes as it is foreseen at ``now``. Before a fit there is no price, and seen
        pages wait for the longest interval. O(m · steps).
        """
        if self._prices is None:
            return self._last_visits.due_after(page, self._longest)
        rows = self._rows(page, now)
        price = self._prices.of(self._last_visits.pages.host[rows])
        last = self._last_visits.last_observed[rows]
        interval = np.full(len(rows), self._longest)
        seen = np.flatnonzero(~np.isnan(last))
        pace = self._learning.clocks.pace
        least = self._least(rows[seen])
        ages = pace(rows[seen], last[seen] + least) != pace(rows[seen], last[seen] + self._longest)
        ages |= not self._averages
        ages |= self._learning.signals.weight(self._last_visits.pages.host[rows[seen]]) > 0
        for which, wait in ((seen[ages], self._wait_ageing), (seen[~ages], self._wait)):
            if len(which):
                interval[which] = np.minimum(wait(rows[which], last[which], price[which]), self._longest)
        return self._last_visits.due_after(page, interval)

    def urgency(self, page: IntArray, now: float) -> FloatArray:
        """Value of a visit now in units of the price, within the shortest and the longest interval. O(m).

        Where the longest interval alone asks for more than the budget there is no price, and pages that are not yet
        due by it are still ordered by their value. Pages of which all that is known is the same have an order too,
        drawn from their ids and last observations. So visits do not depend on how a caller breaks ties.
        """
        if self._prices is None:
            return self._last_visits.urgency(page, self._longest, now)
        rows = self._rows(page, now)
        price = self._prices.of(self._last_visits.pages.host[rows])
        last = self._last_visits.last_observed[rows]
        elapsed = now - last
        at = np.full(len(rows), now)
        worth = self._worth(rows, last, at)
        with np.errstate(divide="ignore", invalid="ignore"):
            urgency = np.nan_to_num(worth / price, nan=0.0, posinf=np.inf)
            urgency = np.where(np.isinf(price), 0.5 + np.arctan(np.log(worth)) / np.pi, urgency)
            least = self._least(rows)
            urgency = np.where(elapsed < least, np.minimum(urgency, elapsed / least), urgency)
        overdue = elapsed >= self._longest
        urgency[overdue] = np.maximum(urgency[overdue], elapsed[overdue] / self._longest)
        urgency[np.isnan(last)] = np.inf
        return np.maximum(urgency, 0.0) * (1.0 + _TIE * uniform(self._ties, page, last))

    def replica(self) -> Self:
        """A copy without the log of observations; it learns online (``ReplicablePolicy``). O(clusters · window)."""
        twin = copy.copy(self)
        vars(twin).update(_learning=self._learning.replica())
        return twin

    @property
    def given(self) -> tuple[object, ...]:
        """What it was made with (``SnapshotPolicy``)."""
        start = self._start
        return (start, start.prior, start.expected, start.clusters, self._objective, self._host_limits)

    def snapshot(self) -> dict[str, object]:
        """All it has learned (``SnapshotPolicy``)."""
        return dict(vars(self))

    def restore(self, state: dict[str, object], pages: Pages) -> bool:
        """Go on from a state of these pages (``SnapshotPolicy``). O(pages)."""
        last_visits = state.get("_last_visits")
        if set(state) != set(vars(self)) or not isinstance(last_visits, LastVisits):
            return False
        if not last_visits.is_among(pages):
            return False
        vars(self).update(state)
        return True

    # -- inside -------------------------------------------------------------------------------

    def _rows(self, page: IntArray, now: float) -> IntArray:
        """The rows of these pages, after the state was updated with all observations so far."""
        rows = self._last_visits.rows(page)
        self._learning.catch_up(now)
        return rows

    def _least(self, rows: IntArray) -> FloatArray:
        """Least seconds from the last observation of each page to the next.

        A page that is gone is not asked for before as long again as it is known to be gone: few come back, and fewer
        the longer they are away. So it gets a handful of visits until only those of the longest interval are left,
        however often it changed in its time; and a page that was gone for a moment is found again soon.
        """
        with np.errstate(invalid="ignore"):  # NaN where a page is there
            away = self._last_visits.last_observed[rows] - self._last_visits.gone_since[rows]
        return np.clip(np.nan_to_num(away, nan=0.0), self._shortest, self._longest)

    def _demand_now(self, now: float) -> tuple[VisitDemand, IntArray, FloatArray]:
        """What all pages ask for at their pace now, their hosts, and the factor from rates to visits per second."""
        rows = self._rows(self._last_visits.pages.id, now)
        pace = self._learning.clocks.pace(rows, np.full(len(rows), now))
        demand, unit = self._demand(rows, pace, self._least(rows) * pace, self._longest * pace)
        return demand, self._last_visits.pages.host[rows], pace / unit

    def _wait(self, rows: IntArray, last: FloatArray, price: FloatArray) -> FloatArray:
        """Seconds until a visit is worth the price, of pages whose pace stays; inf for never.

        First the operational time it takes, then when that has passed.
        """
        clocks = self._learning.clocks
        ends = [self._least(rows), np.full(len(rows), self._longest)]
        shortest, longest = (clocks.elapsed(rows, last, last + end) for end in ends)
        demand, unit = self._demand(rows, clocks.pace(rows, last), shortest, longest)
        found = demand.intervals(price) * unit
        if clocks.time.is_wall():
            return found

        def passed(which: IntArray, elapsed: FloatArray) -> FloatArray:
            return clocks.elapsed(rows[which], last[which], last[which] + elapsed)

        return np.where(np.isinf(found), np.inf, time_to_reach(passed, found, *ends))

    def _wait_ageing(self, rows: IntArray, last: FloatArray, price: FloatArray) -> FloatArray:
        """Seconds until a visit is worth the price, of pages whose pace falls on the way; inf for never."""

        def worth(which: IntArray, elapsed: FloatArray) -> FloatArray:
            return self._worth(rows[which], last[which], last[which] + elapsed)

        first, last_moment = self._least(rows), np.full(len(rows), self._longest)
        for turn in self._learning.clocks.turns(rows).T:
            after = turn - last
            which = np.flatnonzero((after > first) & (after < last_moment))
            if not len(which):
                continue
            reached = worth(which, after[which]) >= price[which]
            earlier = worth(which, np.maximum(after[which] - _MOMENT, first[which]))
            before = np.where(reached, earlier >= price[which], False)
            last_moment[which[reached]] = after[which[reached]]
            first[which[reached & ~before]] = after[which[reached & ~before]]
            first[which[~reached]] = after[which[~reached]]
        return time_to_reach(worth, price, first, last_moment)

    def _paced(self, rows: IntArray, at: FloatArray) -> Belief:
        """What is believed of these pages, at the pace they have at ``at``."""
        return PacedBelief(self._learning.beliefs.of(rows), self._learning.clocks.pace(rows, at))

    def _demand(
        self, rows: IntArray, pace: FloatArray, shortest: FloatArray, longest: FloatArray
    ) -> tuple[VisitDemand, FloatArray]:
        """What these pages ask for, and its unit of time in operational seconds; the intervals are given in these.

        The unit is 1 where it can be: a page of pace m that is visited f times in an operational second costs c·m·f
        in a second, and its value is less by m for each time that the objective is a time.
        """
        pages, belief = self._last_visits.pages, self._learning.beliefs.of(rows)
        powers = {power for power, share in zip(POWERS, basics_of(self._objective) or (), strict=False) if share}
        if len(powers) == 1:
            weight = pages.importance[rows] * pace ** (1 - powers.pop())
            cost = pages.cost[rows] * pace
            return VisitDemand(self._objective, belief, weight, cost, shortest, longest), np.ones(len(rows))
        paced, ends = PacedBelief(belief, pace), (shortest / pace, longest / pace)
        return VisitDemand(self._objective, paced, pages.importance[rows], pages.cost[rows], *ends), pace

    def _worth(self, rows: IntArray, last: FloatArray, at: FloatArray) -> FloatArray:
        """w·U/c of visits at ``at`` to pages last observed at ``last``; 0 for those that were not."""
        clocks, pages = self._learning.clocks, self._last_visits.pages
        since = np.where(np.isnan(last), at, np.minimum(last, at))
        passed, pace = clocks.elapsed(rows, since, at), clocks.pace(rows, at)
        value = self._value(rows, since, passed, pace)
        told = np.flatnonzero(self._learning.signals.weight(pages.host[rows]))
        if len(told):
            value[told] = self._value_told(rows[told], since[told], at[told], passed[told], pace[told], value[told])
        return pages.importance[rows] * value / pages.cost[rows]

    def _value(self, rows: IntArray, since: FloatArray, passed: FloatArray, pace: FloatArray) -> FloatArray:  # noqa: ARG002 - others want the last look
        """U of visits to pages, averaged over what is believed of them."""
        return paced_value(self._objective, self._learning.beliefs.of(slice(None)), rows, passed, pace)

    def _value_told(  # noqa: PLR0913, PLR0917 - columns of the same pages
        self,
        rows: IntArray,
        since: FloatArray,
        at: FloatArray,
        passed: FloatArray,
        pace: FloatArray,
        value: FloatArray,
    ) -> FloatArray:
        """U of visits to pages whose signals are trusted; ``value`` is U by what is believed of unsignalled changes.

        The cheap form of algorithms §4 for any objective: the rate is that of all changes, and the time such that the
        page is stale with the probability 1 − e^{−ℓ}.
        """
        signals, host = self._learning.signals, self._last_visits.pages.host[rows]
        belief = self._learning.beliefs.of(rows)
        quiet = belief.mean() * pace
        rate = quiet + signals.signalled_rate(rows, host)
        stale = signals.weight(host) * signals.count(rows, since, at) - np.log(belief.survival(passed))
        powers = [power for power, share in zip(POWERS, basics_of(self._objective) or (1,), strict=False) if share]
        announced = self._objective.value(PointBelief(rate), stale / rate)
        return np.maximum(value * (quiet / rate) ** max(powers), announced)


@dataclass(frozen=True, slots=True)
class _FitStart:
    """Makes the beliefs and clocks of no pages. A class and no closure, since policies are pickled."""

    prior: PagePrior | None
    expected: ExpectedRates | None
    belief: Literal["grid", "gamma"]
    jump: float | None
    factors: tuple[TimeFactor, ...]
    window: float
    clusters: Clusters

    def __call__(self) -> tuple[BeliefState, PageClocks]:
        if self.belief == "grid":
            return GridBeliefState(self.prior, self.jump, self.expected), PageClocks(
                self.factors, self.window, self.clusters
            )
        return GammaBeliefState(self.prior, self.expected), PageClocks(self.factors, self.window, self.clusters)
