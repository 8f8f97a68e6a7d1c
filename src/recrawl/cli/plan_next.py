"""What would be fetched next and why, what the budget buys, and what cannot be had."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.cli.plan_outlook import Outlook
from recrawl.cli.rates_words import in_words
from recrawl.cli.tables import shown_time
from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.model.words import counted, told
from recrawl.plan.capacity import Capacity, Hosts, capacity
from recrawl.plan.keeping import Kept, keep, keep_at_rates
from recrawl.time import DAY, format_duration

if TYPE_CHECKING:
    from recrawl.cli.knowledge import Knowledge
    from recrawl.store.base import Store

Columns = dict[str, list[Any]]
STEP = 0.1
"""How much more or less budget is tried."""
NEARLY = 1.0 - 1e-6
IN_SECONDS = {"archive": "", "freshness": "", "harmonic": "", "blur": " of changes missed", "links": " of links missed"}
"""Objectives whose value is a time: during which a copy is right, or changes and links are not missed."""
UNNAMED = 5
"""Hosts that are named at most."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What a budget buys, and a little less and more of it."""

    less: Kept
    now: Kept
    more: Kept
    rate: FloatArray
    """Visits per second that each page asks for at the budget there is, whatever its host allows."""


def what_if(outlook: Outlook, known: Knowledge | None = None) -> WhatIf:
    """The three budgets, spent as the policy spends them; what a host cannot take goes to others.

    Changes are counted by what ``recrawl rates`` has ``known`` of pages; where it knows of none, what a budget buys is
    not known (NaN).
    """
    from recrawl.schedule.price import allocate
    from recrawl.schedule.valued import Valued

    budgets = [outlook.budget * factor for factor in (1.0 - STEP, 1.0, 1.0 + STEP)]
    changing = None if known is None or outlook.of_links else known.at(outlook.pages.id, known.rate)
    if isinstance(outlook.policy, Valued):
        limits = outlook.limits
        less, now, more = (keep(outlook.demand, budget, limits, changing) for budget in budgets)
        return WhatIf(less, now, more, allocate(outlook.demand, outlook.budget).rate)
    evenly = [np.full(len(outlook.pages), budget / float(outlook.pages.cost.sum())) for budget in budgets]
    less, now, more = (keep_at_rates(outlook.demand, rate, changing) for rate in evenly)
    return WhatIf(less, now, more, evenly[1])


def next_pages(store: Store, outlook: Outlook, rows: IntArray, known: Knowledge) -> Columns:
    """The pages at these rows: when, and why. How often they change is what ``recrawl rates`` has ``known`` of them."""
    ids = outlook.pages.id[rows]
    last, due = outlook.last_look[rows], outlook.due[rows]
    urgency = outlook.policy.urgency(ids, outlook.now)
    rate, low, high = (known.at(ids, one) for one in (known.rate, *known.interval()))
    with np.errstate(divide="ignore"):
        words = [in_words(*times) for times in (1.0 / np.stack([rate, high, low])).T.tolist()]
    with np.errstate(invalid="ignore"):  # nothing times without limit
        value = _prices(outlook, rows) * urgency
    return {
        "url": store.urls(ids),
        "host": [outlook.hosts.name[row] for row in outlook.host[rows]],
        "due": due.tolist(),
        "late": np.maximum(outlook.now - due, 0.0).tolist(),
        "why": reasons(outlook, rows),
        "value": value.tolist(),
        "worth": urgency.tolist(),
        "last_look": last.tolist(),
        "p_changed": changed_since(outlook, ids, known).tolist(),
        "changes_per_day": (rate * DAY).tolist(),
        "low": (low * DAY).tolist(),
        "high": (high * DAY).tolist(),
        "in_words": words,
    }


def _prices(outlook: Outlook, rows: IntArray) -> FloatArray:
    """What a visit to each page must bring: more where its host is slow; NaN for a policy without prices."""
    from recrawl.schedule.valued import Valued

    policy = outlook.policy
    prices = policy.prices if isinstance(policy, Valued) else None
    return np.full(len(rows), math.nan) if prices is None else prices.of(outlook.pages.host[rows])


def changed_since(outlook: Outlook, page: IntArray, known: Knowledge) -> FloatArray:
    """Probability that each page changed since it was last seen; NaN where that is not known.

    What ``recrawl rates`` says, or more where a sitemap or a feed that proved true announced a change.
    """
    quiet = 1.0 - known.at(page, known.changed(outlook.now))
    return 1.0 - quiet * np.exp(-outlook.expert.announced(page, outlook.now))


def reasons(outlook: Outlook, rows: IntArray) -> list[str]:
    """Why each page is due when it is due."""
    interval = outlook.due[rows] - outlook.last_look[rows]
    schedule = outlook.settings.schedule
    price = outlook.policy.price
    reason = np.full(len(rows), "its turn" if price is None else "worth its price", dtype=object)
    if price is not None:
        reason[_prices(outlook, rows) > price] = "worth the price on its host"
        reason[interval >= schedule.max_interval * NEARLY] = "longest interval"
        reason[interval <= schedule.min_interval / NEARLY] = "shortest interval"
    reason[np.isnan(interval)] = "never seen"
    reason[outlook.patience[rows] > 0] = "tried again after a failure"
    reason[np.isinf(outlook.due[rows])] = "never"
    return reason.tolist()


@dataclass(frozen=True, slots=True)
class Unmet:
    """A request that cannot be met, and the reason."""

    what: str
    reason: str
    asked: float
    """Visits per second; of a host that must wait, visits until then."""
    possible: float
    pages: int


def cannot_be_met(outlook: Outlook, buys: WhatIf) -> list[Unmet]:
    """Hosts that cannot be asked as often as wanted, or not now; a budget below what the intervals ask for."""
    host, hosts = outlook.host, outlook.hosts
    limits = host_capacity(outlook, buys.rate)
    asked = np.bincount(host, buys.rate, len(hosts.id))
    pages = np.bincount(host, minlength=len(hosts.id))
    found = [
        Unmet(
            hosts.name[row],
            f"its pages ask for {asked[row] * DAY:,.0f} visits a day; "
            f"with {format_duration(hosts.pause[row])} of pause after each it takes {limits.limit[row] * DAY:,.0f}",
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
        found.append(Unmet("the budget", reason, least, outlook.budget, len(outlook.pages)))
    return found


def _put_off(outlook: Outlook) -> list[Unmet]:
    """Hosts that must not be asked for longer than an ordinary pause, though pages of theirs are due."""
    hosts, host = outlook.hosts, outlook.host
    late = np.bincount(host[outlook.due <= hosts.ready_at[host]], minlength=len(hosts.id))
    blocked = hosts.ready_at > outlook.now + hosts.manners.rules.longest
    return [
        Unmet(
            hosts.name[row],
            f"it is not to be asked before {shown_time(float(hosts.ready_at[row]))}, by when "
            f"{counted(int(late[row]), 'page')} will be due",
            float(late[row]),
            0.0,
            int(late[row]),
        )
        for row in np.flatnonzero(blocked & (late > 0))
    ]


def host_capacity(outlook: Outlook, rate: FloatArray, workers: int = 64) -> Capacity:
    """What hosts and workers can bear of these visits."""
    host, hosts = outlook.host, outlook.hosts
    count = len(hosts.id)
    asked = np.bincount(host, weights=rate, minlength=count).astype(np.float64)
    return capacity(Hosts(np.bincount(host, minlength=count), hosts.pause, hosts.times.mean(), asked), workers)


def chosen(outlook: Outlook, host: int | None) -> BoolArray:
    """The pages that were asked for."""
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
        return "beyond all"
    if objective in IN_SECONDS:
        return format_duration(price) + IN_SECONDS[objective]
    return f"{price:.3g} changes" if objective == "changes" else f"{price / DAY**2:.3g} d² of age"


HEADINGS = ("budget", "visits a day", "pages current", "changes found a day", "price of a visit")
LINK_HEADINGS = ("budget", "visits a day", "no unseen links", "new links a day", "wait on average", "price of a visit")


def what_if_rows(buys: WhatIf, budget: float, objective: str, *, links: bool = False) -> list[tuple[str, ...]]:
    """The three budgets as a table: visits a day, pages current, changes found a day.

    Where visits are made for new ``links``: pages without any that nobody saw yet, how many come, how long they wait.
    """
    rows: list[tuple[str, ...]] = []
    for name, factor, kept in (
        ("10 % less", 1.0 - STEP, buys.less),
        ("as it is", 1.0, buys.now),
        ("10 % more", 1.0 + STEP, buys.more),
    ):
        gain = kept.freshness - buys.now.freshness
        if math.isnan(kept.freshness):
            nothing = ("not known",) * (3 if links else 2)
            rows.append((name, told(budget * factor * DAY), *nothing, shown_price(kept.price, objective)))
            continue
        rows.append(
            (
                name,
                told(budget * factor * DAY),
                f"{kept.freshness:.1%}" + (f" ({gain:+.1%})" if factor != 1.0 else ""),
                *(
                    (told(kept.happening * DAY), format_duration(kept.delay))
                    if links
                    else (f"{told(kept.found * DAY)} of {told(kept.happening * DAY)}",)
                ),
                shown_price(kept.price, objective),
            )
        )
    return rows
