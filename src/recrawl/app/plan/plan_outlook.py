"""The input of ``recrawl plan``, read from the store once: pages, due times, hosts, download times."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recrawl.app.display import shown_time
from recrawl.app.workspace.settings import Settings
from recrawl.app.workspace.workspace_wiring import host_limits_of, policy_of, politeness_of
from recrawl.crawl.visit.site_claims import signals
from recrawl.errors import InputError
from recrawl.estimate.signals.exact_times import exact_times_as_observations
from recrawl.model import ANSWERED, Belief, BoolArray, FloatArray, IntArray, Outcome, Pages
from recrawl.plan.budget_outcome import HostVisitLimits
from recrawl.plan.crawl_time import HostTreatment
from recrawl.plan.download_times import Downloads, DownloadTimes, learn_downloads
from recrawl.schedule.frontier.revisit_scheduler import RevisitScheduler
from recrawl.schedule.objectives import OBJECTIVES
from recrawl.schedule.policies.new_links import NewLinks
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.schedule.policy import Policy
from recrawl.schedule.politeness.retry import Retry
from recrawl.schedule.price.due_times import VisitDemand
from recrawl.time import DAY

if TYPE_CHECKING:
    from recrawl.app.rates.belief_table import Expected, LinkBeliefs
    from recrawl.store.base import HistoryStore, Store
    from recrawl.store.store_values import HostRows

TIMED = 200_000
"""Latest visits from which download times are learned."""


@dataclass(frozen=True, slots=True)
class HostCosts:
    """Hosts, and what one request to each takes."""

    id: IntArray
    name: list[str]
    crawl_delay: FloatArray
    """Crawl-delay of the host in seconds; NaN where our own settings apply."""
    ready_at: FloatArray
    """The earliest next request to the host; -inf where not known at the time of reference."""
    all_times: DownloadTimes
    """Of these hosts, with one more row for an unknown host."""
    treatment: HostTreatment

    @property
    def times(self) -> DownloadTimes:
        """Of these hosts."""
        return self.all_times.take(np.arange(len(self.id)))

    def rows(self, host: IntArray) -> IntArray:
        """The row of each id."""
        return np.searchsorted(self.id, host)

    @property
    def pause(self) -> FloatArray:
        """Expected seconds of pause after a request."""
        return self.treatment.pause(self.times.mean(), self.crawl_delay)


@dataclass(frozen=True, slots=True)
class PlanOutlook:
    """What is known at a moment, and what follows from it."""

    now: float
    settings: Settings
    policy: Policy
    expert: ValuedPolicy
    """The source of beliefs: the policy itself if it has beliefs."""
    pages: Pages
    """All that are ever to be visited, by ascending id."""
    due: FloatArray
    patience: FloatArray
    """Seconds by which each page is put off because it failed."""
    last_observed: FloatArray
    gone: BoolArray
    """Whether that observation found no page."""
    belief: Belief
    """About the rates at which the same pages change, at the pace of now."""
    demand: VisitDemand
    """Of the same pages, for what a budget would do. Where new links are wanted, by their rates.

    Pages that are gone have no weight: nothing happens to them, and they get what the longest interval gives.
    """
    hosts: HostCosts
    expected: Expected | None = None
    """The predicted change rates of pages without history."""

    @property
    def of_links(self) -> bool:
        """Whether visits are made for new links, at their own rates."""
        return isinstance(self.policy, NewLinks)

    @property
    def budget(self) -> float:
        """Visits per second."""
        return self.settings.schedule.budget / DAY

    @property
    def host(self) -> IntArray:
        """Row of each page's host."""
        return self.hosts.rows(self.pages.host)

    @property
    def late(self) -> FloatArray:
        """Seconds for which each page has been waiting; 0 if it is not due yet.

        An imported page waits since its import, as in ``recrawl status``. A page that was added after the time of
        reference waits since its due time.
        """
        added = np.where(self.pages.discovered <= self.now, self.pages.discovered, -math.inf)
        return np.maximum(self.now - np.maximum(self.due, added), 0.0)

    @property
    def interval(self) -> FloatArray:
        """Seconds after a visit until each page is due again.

        This is the inverse of its visit rate at the current threshold. A policy without a threshold keeps its current
        interval and treats new pages like the average page.
        """
        allocation = self.policy.allocation if isinstance(self.policy, ValuedPolicy) else None
        if allocation is not None:
            with np.errstate(divide="ignore"):
                return 1.0 / allocation.rate
        asked = self.due - self.patience - self.last_observed
        evenly = float(self.pages.cost.sum()) / self.budget if self.budget > 0 else math.inf
        return np.where(asked > 0, asked, evenly)

    @property
    def limits(self) -> HostVisitLimits:
        """What politeness lets each host take."""
        return HostVisitLimits(self.host, 1.0 / np.maximum(self.hosts.pause + self.hosts.times.mean(), 1e-9))


def look_ahead(
    store: Store,
    settings: Settings,
    now: float,
    expected: Expected | None = None,
    links: LinkBeliefs | None = None,
) -> PlanOutlook:
    """Learn from visits and signals up to ``now`` as the crawler would; fit its policy. O(visits + pages · steps).

    ``expected`` and ``links`` are the predictions of the model for changes and new links of pages without history.
    """
    everything, visits = store.pages(), store.visits(until=now).sorted()
    # A later import may hold earlier visits: the page was known then.
    known = (everything.discovered <= now) | np.isin(everything.id, visits.page)
    pages = everything.take((everything.importance > 0) & known)
    if not len(pages):
        raise InputError(
            f"There is no page to plan for as of {shown_time(now)}.",
            "Add some with recrawl add or recrawl import, or give a later time.",
        )
    visits = visits.take(np.isin(visits.page, pages.id))
    limits = host_limits_of(store, lambda: politeness_of(settings.politeness))
    policy = policy_of(settings.schedule, store.urls, limits, expected, links)
    scheduler = RevisitScheduler(
        policy, budget=settings.schedule.budget / DAY, retry=Retry.beginning(settings.politeness.retry)
    )
    heard, when = signals(store.claims(pages.id))
    heard, when = heard[when <= now], when[when <= now]
    scheduler.add(pages)
    scheduler.add_signals(heard, when)
    scheduler.tell(visits)
    scheduler.fit(now)
    due = scheduler.due(pages.id, now)
    wanted = policy.due(pages.id, now)
    expert = policy if isinstance(policy, ValuedPolicy) else ValuedPolicy(OBJECTIVES[settings.schedule.objective])
    if expert is not policy:
        expert.add(pages)
        expert.signal(heard, when)
        expert.tell(exact_times_as_observations(visits))
    observations = visits.take(visits.answered())
    last, gone = np.full(len(pages), math.nan), np.zeros(len(pages), np.bool_)
    place = np.searchsorted(pages.id, observations.page)  # by time: of a page the last assignment stands
    last[place], gone[place] = observations.time, observations.outcome == Outcome.GONE
    belief = expert.belief(pages.id, now)
    demand = VisitDemand(
        OBJECTIVES[settings.schedule.objective],
        policy.links(pages.id) if isinstance(policy, NewLinks) else belief,
        np.where(gone, 0.0, pages.importance), pages.cost,
        settings.schedule.min_interval, settings.schedule.max_interval,
    )  # fmt: skip
    put_off = np.maximum(np.nan_to_num(due - wanted, posinf=0.0), 0.0)
    hosts = hosts_of(store, settings, now)
    return PlanOutlook(now, settings, policy, expert, pages, due, put_off, last, gone, belief, demand, hosts, expected)


def hosts_of(store: HistoryStore, settings: Settings, now: float) -> HostCosts:
    """All hosts, with what their last downloads say of the next ones."""
    hosts = store.hosts()
    rules = politeness_of(settings.politeness)
    later = bool((store.latest_visits(1).time > now).any())
    return HostCosts(
        hosts.id,
        hosts.name,
        np.where(hosts.delay > rules.shortest, hosts.delay, math.nan),
        np.full(len(hosts), -math.inf) if later else hosts.ready_at,
        _times(store, hosts, settings.fetch.timeout, now),
        HostTreatment(rules),
    )


def _times(store: HistoryStore, hosts: HostRows, limit: float, now: float) -> DownloadTimes:
    """Download times of each host, a day for a crawl."""
    visits = store.latest_visits(TIMED)
    visits = visits.take((visits.time <= now) & (visits.cost > 0))
    known, row = np.unique(visits.page, return_inverse=True)
    of_page = store.pages(known).host
    past = Downloads(
        np.searchsorted(hosts.id, of_page[row]),
        np.floor(visits.time / DAY).astype(np.int64),
        visits.cost.astype(np.float64),
        visits.outcome <= ANSWERED,
    )
    return learn_downloads(past, len(hosts) + 1, limit=limit)
