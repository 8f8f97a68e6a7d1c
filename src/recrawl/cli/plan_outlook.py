"""All that ``recrawl plan`` looks at, taken from the store once: pages, due times, hosts, what requests take."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recrawl.cli.settings import Settings
from recrawl.cli.tables import shown_time
from recrawl.cli.wiring import host_limits_of, policy_of, politeness_of
from recrawl.crawl.site_claims import signals
from recrawl.errors import InputError
from recrawl.estimate.watched import as_watched
from recrawl.model import ANSWERED, Belief, BoolArray, FloatArray, IntArray, Outcome, Pages
from recrawl.plan.durations import Downloads, DownloadTimes, learn_downloads
from recrawl.plan.forecast import Manners
from recrawl.plan.keeping import Limits
from recrawl.schedule.agenda import Agenda
from recrawl.schedule.due import Demand
from recrawl.schedule.new_links import NewLinks
from recrawl.schedule.objectives import OBJECTIVES
from recrawl.schedule.policy import Policy
from recrawl.schedule.retry import Retry
from recrawl.schedule.valued import Valued
from recrawl.time import DAY

if TYPE_CHECKING:
    from recrawl.cli.knowledge import Expected, LinkBeliefs
    from recrawl.store.base import Store
    from recrawl.store.values import Hosts

TIMED = 200_000
"""Latest visits from which download times are learned."""


@dataclass(frozen=True, slots=True)
class HostTable:
    """Hosts, and what one request to each takes."""

    id: IntArray
    name: list[str]
    crawl_delay: FloatArray
    """Seconds that the host asks for; NaN where our own rules decide."""
    ready_at: FloatArray
    """Before this time nobody asks the host; -inf where that is not known as of the moment that is looked at."""
    all_times: DownloadTimes
    """Of these hosts, and in one more row of a host that nobody heard of."""
    manners: Manners

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
        return self.manners.pause(self.times.mean(), self.crawl_delay)


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is known at a moment, and what follows from it."""

    now: float
    settings: Settings
    policy: Policy
    expert: Valued
    """Who is asked what is believed: the policy itself if it believes anything."""
    pages: Pages
    """All that are ever to be visited, by ascending id."""
    due: FloatArray
    patience: FloatArray
    """Seconds by which each page is put off because it failed."""
    last_look: FloatArray
    gone: BoolArray
    """Whether that look found no page."""
    belief: Belief
    """About the rates at which the same pages change, at the pace of now."""
    demand: Demand
    """Of the same pages, for what a budget would do. Where new links are wanted, by their rates.

    Pages that are gone have no weight: nothing happens to them, and they get what the longest interval gives.
    """
    hosts: HostTable
    expected: Expected | None = None
    """What a model says of changes of pages before their histories tell."""

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
    def interval(self) -> FloatArray:
        """Seconds after a visit until each page is due again.

        That is one over its rate at the price there is. A policy without prices is thought to keep to the interval it
        has now, and to treat pages that nobody has seen as one like all.
        """
        allocation = self.policy.allocation if isinstance(self.policy, Valued) else None
        if allocation is not None:
            with np.errstate(divide="ignore"):
                return 1.0 / allocation.rate
        asked = self.due - self.patience - self.last_look
        evenly = float(self.pages.cost.sum()) / self.budget if self.budget > 0 else math.inf
        return np.where(asked > 0, asked, evenly)

    @property
    def limits(self) -> Limits:
        """What politeness lets each host take."""
        return Limits(self.host, 1.0 / np.maximum(self.hosts.pause + self.hosts.times.mean(), 1e-9))


def look_ahead(
    store: Store,
    settings: Settings,
    now: float,
    expected: Expected | None = None,
    links: LinkBeliefs | None = None,
) -> Outlook:
    """Learn from visits and signals up to ``now`` as the crawler would; fit its policy. O(visits + pages · steps).

    ``expected`` and ``links`` are what a model says of changes and new links of pages before their histories tell.
    """
    everything, visits = store.pages(), store.visits(until=now).sorted()
    # What was imported later may tell of visits before: those who made them knew the page.
    known = (everything.discovered <= now) | np.isin(everything.id, visits.page)
    pages = everything.take((everything.importance > 0) & known)
    if not len(pages):
        raise InputError(
            f"There is no page to plan for as of {shown_time(now)}.",
            "Add some with recrawl add or recrawl import, or ask for a later time.",
        )
    visits = visits.take(np.isin(visits.page, pages.id))
    limits = host_limits_of(store, lambda: politeness_of(settings.politeness))
    policy = policy_of(settings.schedule, store.urls, limits, expected, links)
    agenda = Agenda(policy, budget=settings.schedule.budget / DAY, retry=Retry.beginning(settings.politeness.retry))
    heard, when = signals(store.claims(pages.id))
    heard, when = heard[when <= now], when[when <= now]
    agenda.add(pages)
    agenda.hear(heard, when)
    agenda.tell(visits)
    agenda.fit(now)
    due = agenda.due(pages.id, now)
    wanted = policy.due(pages.id, now)
    expert = policy if isinstance(policy, Valued) else Valued(OBJECTIVES[settings.schedule.objective])
    if expert is not policy:
        expert.add(pages)
        expert.signal(heard, when)
        expert.tell(as_watched(visits))
    looks = visits.take(visits.answered())
    last, gone = np.full(len(pages), math.nan), np.zeros(len(pages), np.bool_)
    place = np.searchsorted(pages.id, looks.page)  # by time: of a page the last assignment stands
    last[place], gone[place] = looks.time, looks.outcome == Outcome.GONE
    belief = expert.belief(pages.id, now)
    demand = Demand(
        OBJECTIVES[settings.schedule.objective],
        policy.links(pages.id) if isinstance(policy, NewLinks) else belief,
        np.where(gone, 0.0, pages.importance), pages.cost,
        settings.schedule.min_interval, settings.schedule.max_interval,
    )  # fmt: skip
    put_off = np.maximum(np.nan_to_num(due - wanted, posinf=0.0), 0.0)
    hosts = hosts_of(store, settings, now)
    return Outlook(now, settings, policy, expert, pages, due, put_off, last, gone, belief, demand, hosts, expected)


def hosts_of(store: Store, settings: Settings, now: float) -> HostTable:
    """All hosts, with what their last downloads say of the next ones."""
    hosts = store.hosts()
    rules = politeness_of(settings.politeness)
    later = bool((store.latest_visits(1).time > now).any())
    return HostTable(
        hosts.id,
        hosts.name,
        np.where(hosts.delay > rules.shortest, hosts.delay, math.nan),
        np.full(len(hosts), -math.inf) if later else hosts.ready_at,
        _times(store, hosts, settings.fetch.timeout, now),
        Manners(rules),
    )


def _times(store: Store, hosts: Hosts, limit: float, now: float) -> DownloadTimes:
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
