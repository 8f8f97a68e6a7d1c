"""The input and the answers of ``recrawl plan``.

Pages, due times, hosts and download times are read from the store once. From them: what is fetched next and why, what
the budget achieves, what cannot be met, and the pages that another crawler should visit in a given time.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from recrawl.app.display import rows_of, seconds_of, shown_time
from recrawl.app.rates.belief_table import LEVEL, VisitSpan, host_id, learn
from recrawl.app.rates.rates_table import in_words, told_of_page
from recrawl.app.workspace.settings import Settings
from recrawl.app.workspace.workspace_wiring import host_limits_of, policy_of, politeness_of
from recrawl.crawl.visit.site_claims import signals
from recrawl.errors import ConfigError, InputError, counted, four_digits
from recrawl.estimate.site_signals import as_known_at, exact_times_as_observations
from recrawl.model import ANSWERED, Belief, BoolArray, FloatArray, IntArray, Outcome, Pages
from recrawl.plan.budget_outcome import (
    BudgetOutcome,
    Capacity,
    HostLimits,
    HostVisitLimits,
    capacity,
    keep,
    keep_at_rates,
)
from recrawl.plan.crawl_time import HostTreatment
from recrawl.plan.download_times import Downloads, DownloadTimes, learn_downloads
from recrawl.schedule.frontier.revisit_scheduler import RevisitScheduler
from recrawl.schedule.objectives import OBJECTIVES
from recrawl.schedule.policies.new_links import NewLinks
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.schedule.policy import Policy
from recrawl.schedule.politeness.retry import Retry
from recrawl.schedule.price.due_times import VisitDemand
from recrawl.time import DAY, format_duration

if TYPE_CHECKING:
    from recrawl.app.predict.class_models import FirstClasses
    from recrawl.app.rates.belief_table import BeliefTable, Expected, LinkBeliefs
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.store.base import HistoryStore, PageTable, Store
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


def look_ahead(  # noqa: PLR0913, PLR0917 - a store, a moment, and what a model says
    store: Store,
    settings: Settings,
    now: float,
    expected: Expected | None = None,
    links: LinkBeliefs | None = None,
    classes: FirstClasses | None = None,
) -> PlanOutlook:
    """Learn from visits and signals up to ``now`` as the crawler would; fit its policy. O(visits + pages · steps).

    ``expected``, ``links`` and ``classes`` are the predictions of the model for changes, new links and the first class
    of pages without history.
    """
    everything, visits = store.pages(), as_known_at(store.visits(), now).sorted()
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
    policy = policy_of(settings.schedule, store.urls, limits, expected, links, classes)
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


Columns = dict[str, list[Any]]
STEP = 0.1
"""How much more or less budget is tried."""
NEARLY = 1.0 - 1e-6
IN_SECONDS = {"archive": "", "freshness": "", "harmonic": "", "blur": " of changes missed", "links": " of links missed"}
"""Objectives whose value is a time: during which a copy is right, or changes and links are not missed."""
UNNAMED = 5
"""Hosts that are named at most."""


@dataclass(frozen=True, slots=True)
class BudgetAlternatives:
    """What a budget buys, and a little less and more of it."""

    less: BudgetOutcome
    now: BudgetOutcome
    more: BudgetOutcome
    rate: FloatArray
    """Visits per second that each page needs at the current budget, without host limits."""


def what_if(outlook: PlanOutlook, known: BeliefTable | None = None) -> BudgetAlternatives:
    """The three budgets, spent as the policy spends them; what a host cannot take goes to others.

    Changes are counted by what ``recrawl rates`` has ``known`` of pages; where it knows of none, what a budget buys is
    not known (NaN).
    """
    from recrawl.schedule.price.budget_price import allocate

    budgets = [outlook.budget * factor for factor in (1.0 - STEP, 1.0, 1.0 + STEP)]
    changing = None if known is None else changes_known(outlook, known)
    if isinstance(outlook.policy, ValuedPolicy):
        limits = outlook.limits
        less, now, more = (keep(outlook.demand, budget, limits, changing) for budget in budgets)
        return BudgetAlternatives(less, now, more, allocate(outlook.demand, outlook.budget).rate)
    evenly = [np.full(len(outlook.pages), budget / float(outlook.pages.cost.sum())) for budget in budgets]
    less, now, more = (keep_at_rates(outlook.demand, rate, changing) for rate in evenly)
    return BudgetAlternatives(less, now, more, evenly[1])


def changes_known(outlook: PlanOutlook, known: BeliefTable) -> FloatArray | None:
    """Changes per second of each page, NaN where they are not known; ``None`` where visits are made for new links."""
    return None if outlook.of_links else known.at(outlook.pages.id, known.rate)


def next_pages(store: PageTable, outlook: PlanOutlook, rows: IntArray, known: BeliefTable) -> Columns:
    """The pages at these rows: when, and why.

    ``changes_per_day`` is the rate that ``recrawl rates`` has ``known`` of them, ``policy_per_day`` the estimate of the
    policy (:func:`policy_estimates`).
    """
    ids = outlook.pages.id[rows]
    last, due = outlook.last_observed[rows], outlook.due[rows]
    urgency = outlook.policy.urgency(ids, outlook.now)
    rate, low, high = (known.at(ids, one) for one in (known.rate, *known.interval()))
    with np.errstate(divide="ignore"):
        words = [in_words(*times) for times in (1.0 / np.stack([rate, high, low])).T.tolist()]
    gone_since = known.at(ids, known.gone_since)
    since = gone_since.tolist()
    words = [told_of_page(rate_words, gone) for rate_words, gone in zip(words, since, strict=True)]
    with np.errstate(invalid="ignore"):  # nothing times without limit
        value = _prices(outlook, rows) * urgency
    return {
        "url": store.urls(ids),
        "host": [outlook.hosts.name[row] for row in outlook.host[rows]],
        "due": due.tolist(),
        "late": outlook.late[rows].tolist(),
        "why": reasons(outlook, rows),
        "value": value.tolist(),
        "worth": urgency.tolist(),
        "last_observed": last.tolist(),
        "gone_since": since,
        "p_changed": changed_since(outlook, ids, known).tolist(),
        "changes_per_day": (rate * DAY).tolist(),
        "low": (low * DAY).tolist(),
        "high": (high * DAY).tolist(),
        "in_words": words,
    } | policy_estimates(outlook, ids, ~np.isnan(rate), gone_since)


def policy_estimates(outlook: PlanOutlook, page: IntArray, known: BoolArray, gone_since: FloatArray) -> Columns:
    """The estimate of each page's rate by which the policy decides, with its 90 % interval, changes a day.

    It is about the same rate as that of ``recrawl rates``, by another method: the policy learns from each observation
    as it comes, in bounded memory and with clocks of its own. On recorded histories both predict the following year,
    now one better, now the other (``benchmarks/held_out_rates.py``). NaN where not ``known``, and for pages that are
    never to be visited.
    """
    place = np.minimum(np.searchsorted(outlook.pages.id, page), len(outlook.pages) - 1)
    known = known & (outlook.pages.id[place] == page)
    held = outlook.belief.take(place)
    middle, low, high = (
        np.where(known, held.quantile(q), np.nan) for q in (0.5, (1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0)
    )
    with np.errstate(divide="ignore"):
        words = [in_words(every, every, every) for every in (1.0 / middle).tolist()]
    return {
        "policy_per_day": (middle * DAY).tolist(),
        "policy_low": (low * DAY).tolist(),
        "policy_high": (high * DAY).tolist(),
        "policy_in_words": [
            told if math.isnan(gone) else "–" for told, gone in zip(words, gone_since.tolist(), strict=True)
        ],
    }


def _prices(outlook: PlanOutlook, rows: IntArray) -> FloatArray:
    """What a visit to each page must bring: more where its host is slow; NaN for a policy without prices."""
    policy = outlook.policy
    prices = policy.prices if isinstance(policy, ValuedPolicy) else None
    return np.full(len(rows), math.nan) if prices is None else prices.of(outlook.pages.host[rows])


def changed_since(outlook: PlanOutlook, page: IntArray, known: BeliefTable) -> FloatArray:
    """Probability that each page changed since it was last seen; NaN where that is not known.

    What ``recrawl rates`` says, or more where a sitemap or a feed that proved true announced a change.
    """
    quiet = 1.0 - known.at(page, known.changed(outlook.now))
    return 1.0 - quiet * np.exp(-outlook.expert.announced(page, outlook.now))


def reasons(outlook: PlanOutlook, rows: IntArray) -> list[str]:
    """Why each page is due when it is due."""
    interval = outlook.due[rows] - outlook.last_observed[rows]
    schedule = outlook.settings.schedule
    price = outlook.policy.price
    reason = np.full(len(rows), "its turn" if price is None else "above threshold", dtype=object)
    if price is not None:
        reason[_prices(outlook, rows) > price] = "above threshold of host"
        reason[interval >= schedule.max_interval * NEARLY] = "longest interval"
        reason[interval <= schedule.min_interval / NEARLY] = "shortest interval"
    reason[np.isnan(interval)] = "never seen"
    reason[outlook.patience[rows] > 0] = "retry after a failure"
    reason[np.isinf(outlook.due[rows])] = "never"
    return reason.tolist()


@dataclass(frozen=True, slots=True)
class UnmetRequest:
    """A request that cannot be met, and the reason."""

    what: str
    reason: str
    asked: float
    """Visits per second; of a host that must wait, visits until then."""
    possible: float
    pages: int


def cannot_be_met(outlook: PlanOutlook, buys: BudgetAlternatives) -> list[UnmetRequest]:
    """Hosts that allow fewer visits than needed, or none now; a budget below the longest interval."""
    host, hosts = outlook.host, outlook.hosts
    limits = host_capacity(outlook, buys.rate)
    asked = np.bincount(host, buys.rate, len(hosts.id))
    pages = np.bincount(host, minlength=len(hosts.id))
    found = [
        UnmetRequest(
            hosts.name[row],
            f"its pages need {asked[row] * DAY:,.0f} visits a day; "
            f"a pause of {format_duration(hosts.pause[row])} after each allows {limits.limit[row] * DAY:,.0f}",
            float(asked[row]),
            float(limits.limit[row]),
            int(pages[row]),
        )
        for row in np.flatnonzero(limits.too_slow)
    ]
    found += _put_off(outlook)
    least = float((outlook.pages.cost / outlook.settings.schedule.max_interval).sum())
    if outlook.policy.price is not None and least > outlook.budget:
        longest = format_duration(outlook.settings.schedule.max_interval)
        reason = (
            f"one visit to every page in {longest} takes {least * DAY:,.1f} visits a day; the budget is "
            f"{outlook.budget * DAY:,.1f}"
        )
        found.append(UnmetRequest("the budget", reason, least, outlook.budget, len(outlook.pages)))
    return found


def _put_off(outlook: PlanOutlook) -> list[UnmetRequest]:
    """Hosts that allow no request for longer than the usual pause although pages are due."""
    hosts, host = outlook.hosts, outlook.host
    late = np.bincount(host[outlook.due <= hosts.ready_at[host]], minlength=len(hosts.id))
    blocked = hosts.ready_at > outlook.now + hosts.treatment.rules.longest
    return [
        UnmetRequest(
            hosts.name[row],
            f"no request is allowed before {shown_time(float(hosts.ready_at[row]))}; by then "
            f"{counted(int(late[row]), 'page')} will be due",
            float(late[row]),
            0.0,
            int(late[row]),
        )
        for row in np.flatnonzero(blocked & (late > 0))
    ]


def host_capacity(outlook: PlanOutlook, rate: FloatArray, workers: int = 64) -> Capacity:
    """What hosts and workers can bear of these visits."""
    host, hosts = outlook.host, outlook.hosts
    count = len(hosts.id)
    asked = np.bincount(host, weights=rate, minlength=count).astype(np.float64)
    return capacity(HostLimits(np.bincount(host, minlength=count), hosts.pause, hosts.times.mean(), asked), workers)


def chosen(outlook: PlanOutlook, host: int | None) -> BoolArray:
    """The requested pages."""
    return np.ones(len(outlook.pages), np.bool_) if host is None else outlook.pages.host == host


def shown_price(price: float, objective: str) -> str:
    """What a visit must bring, in the unit of its objective.

    >>> shown_price(7200.0, "archive"), shown_price(0.25, "changes"), shown_price(math.nan, "archive")
    ('2 h', '0.25 changes', '–')
    >>> shown_price(7200.0, "links"), shown_price(DAY * DAY / 4, "age")
    ('2 h of links missed', '0.25 d² of age')
    """
    if math.isnan(price):
        return "–"
    if math.isinf(price):
        return "infinite"
    if objective in IN_SECONDS:
        return format_duration(price) + IN_SECONDS[objective]
    return f"{price:.3g} changes" if objective == "changes" else f"{price / DAY**2:.3g} d² of age"


HEADINGS = ("budget", "visits a day", "pages current", "changes found a day", "threshold (shadow price)")
LINK_HEADINGS = (
    "budget",
    "visits a day",
    "no unseen links",
    "new links a day",
    "wait on average",
    "threshold (shadow price)",
)


def what_if_rows(
    buys: BudgetAlternatives, budget: float, objective: str, *, links: bool = False
) -> list[tuple[str, ...]]:
    """The three budgets as a table: visits a day, pages current, changes found a day.

    With the objective ``links``: pages without unseen links, the number of new links, and their waiting time.
    """
    rows: list[tuple[str, ...]] = []
    for name, factor, kept in (
        ("10% less", 1.0 - STEP, buys.less),
        ("as it is", 1.0, buys.now),
        ("10% more", 1.0 + STEP, buys.more),
    ):
        gain = kept.freshness - buys.now.freshness
        if math.isnan(kept.freshness):
            nothing = ("not known",) * (3 if links else 2)
            rows.append((name, four_digits(budget * factor * DAY), *nothing, shown_price(kept.price, objective)))
            continue
        rows.append(
            (
                name,
                four_digits(budget * factor * DAY),
                f"{kept.freshness:.1%}" + (f" ({gain:+.1%})" if factor != 1.0 else ""),
                *(
                    (four_digits(kept.happening * DAY), format_duration(kept.delay))
                    if links
                    else (f"{four_digits(kept.found * DAY)} of {four_digits(kept.happening * DAY)}",)
                ),
                shown_price(kept.price, objective),
            )
        )
    return rows


@dataclass(frozen=True, slots=True)
class UpcomingVisits:
    """The pages that come next, what the budget buys, and what cannot be had."""

    outlook: PlanOutlook
    columns: Columns
    """Of the first pages, by due time."""
    due: FloatArray
    """Of all requested pages."""
    waits: FloatArray
    """Seconds since which the same pages wait; 0 of those that are not due."""
    buys: BudgetAlternatives
    unmet: list[UnmetRequest]

    @property
    def late(self) -> FloatArray:
        """Seconds by which pages are late, of those that are."""
        return self.waits[self.waits > 0]


def coming(store: Store, outlook: PlanOutlook, host: str | None, limit: int | None) -> UpcomingVisits:
    """The first ``limit`` pages of a host, or of all. O(n log n) for n pages."""
    wanted = np.flatnonzero(chosen(outlook, host_id(store, host)))
    order = wanted[np.lexsort((outlook.pages.id[wanted], outlook.due[wanted]))]
    known = learn(store, VisitSpan(until=outlook.now), expected=outlook.expected)
    buys = what_if(outlook, known)
    columns = next_pages(store, outlook, order[:limit], known)
    return UpcomingVisits(
        outlook, columns, outlook.due[wanted], outlook.late[wanted], buys, cannot_be_met(outlook, buys)
    )


def facts(found: UpcomingVisits) -> dict[str, Any]:
    """All of it for other programs."""
    outlook = found.outlook
    return {
        "now": outlook.now,
        "policy": outlook.policy.name,
        "budget_per_day": outlook.budget * DAY,
        "price": outlook.policy.price,
        "pages": len(found.due),
        "late": len(found.late),
        "next": rows_of(found.columns),
        "budgets": {name: asdict(getattr(found.buys, name)) for name in ("less", "now", "more")},
        "unmet": [asdict(one) for one in found.unmet],
    }


@dataclass(frozen=True, slots=True)
class ExportPeriod:
    """A time for which a list of pages is made, in seconds."""

    start: float
    """Visits after it do not count."""
    length: float

    @classmethod
    def from_options(cls, at: str | None, length: str) -> Self:
        """The period that options name: DURATION from a time, by default from now.

        Raises:
            ConfigError: it has no length, or the moment is none.
        """
        from recrawl.app.rates.rates_table import moment
        from recrawl.crawl.clock import RealClock

        seconds = seconds_of("--due", length)
        if not seconds > 0:
            raise ConfigError(f"Nothing falls due within {length}.", "Give --due a duration above 0, for example 1d.")
        return cls(moment(at, RealClock().now()), seconds)


def due_pages(place: Workspace, store: Store, period: ExportPeriod) -> tuple[IntArray, str]:
    """Ids of the pages to visit in the period, the one that waits longest first, and a sentence on those left out.

    Due times are those of ``recrawl plan``. More than the budget allows in the period are not taken: the others are
    still due in the next. O(visits + pages · steps).
    """
    import numpy as np

    from recrawl.app.predict.model_use import expected_changes, expected_links, first_classes
    from recrawl.crawl.control.runtime_limits import limits

    settings = place.limited(limits(store.controls())).configuration.settings
    now = period.start
    expected, links = expected_changes(place, store, now), expected_links(place, store, now)
    outlook = look_ahead(store, settings, now, expected, links, first_classes(place, store, now))
    due = np.flatnonzero(outlook.due < now + period.length)
    due = due[np.lexsort((outlook.pages.id[due], outlook.due[due]))]
    affordable = int(np.searchsorted(np.cumsum(outlook.pages.cost[due]), outlook.budget * period.length, "right"))
    waiting = len(due) - affordable
    more = "1 more falls due" if waiting == 1 else f"{waiting:,} more fall due"
    budget = counted(outlook.settings.schedule.budget, "visit")
    said = f"{more}; {'it waits' if waiting == 1 else 'they wait'} for the budget ({budget} a day)."
    return outlook.pages.id[due[:affordable]], said if waiting > 0 else ""
