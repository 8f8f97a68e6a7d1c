"""The lists of ``recrawl list`` that are about work: hosts, what is due, what fails."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.cli.noise import masked_by_host
from recrawl.cli.settings import ScheduleSettings
from recrawl.cli.status_words import failure_words
from recrawl.detect.conduct import is_believed
from recrawl.model import FloatArray, IntArray, Outcome
from recrawl.store.values import QUARANTINED

if TYPE_CHECKING:
    from recrawl.store.base import Store

Columns = dict[str, list[Any]]
_ALL = 1 << 40
"""More rows than there are."""
_NEARLY = 1e-6


def hosts(store: Store, host: int | None, limit: int) -> tuple[Columns, str]:
    """Hosts with their pause, their state, and what is known of their conduct."""
    every = store.hosts(None if host is None else np.array([host]))
    pages = np.bincount(np.searchsorted(every.id, _hosts_of_pages(store, host)), minlength=len(every))
    failing, forbidden = _failing_by_host(store, every.id, host)
    some = slice(limit)
    masked = masked_by_host(store, every.id[some])
    return {
        "id": every.id[some].tolist(),
        "host": every.name[some],
        "pages": pages[some].tolist(),
        "delay": every.delay[some].tolist(),
        "ready_at": every.ready_at[some].tolist(),
        "next_due": every.next_due[some].tolist(),
        "state": ["paused" if paused else "running" for paused in every.paused[some].tolist()],
        "failing": failing[some].tolist(),
        "forbidden": forbidden[some].tolist(),
        "masked": [masked.get(one, 0) for one in every.id[some].tolist()],
        "lies": every.lies[some].tolist(),
        "believed": [
            is_believed(*record) for record in zip(every.checks[some].tolist(), every.lies[some].tolist(), strict=True)
        ],
    }, how_many(len(every), limit)


def _hosts_of_pages(store: Store, host: int | None) -> IntArray:
    of_page = store.pages().host
    return of_page if host is None else of_page[of_page == host]


def _failing_by_host(store: Store, ids: IntArray, host: int | None) -> tuple[IntArray, IntArray]:
    """How many pages of each host fail, and how many robots.txt forbids."""
    failing = store.failing(_ALL, host=host)
    order = np.argsort(failing.page)
    place = np.searchsorted(ids, store.pages(failing.page[order]).host)
    forbidden = failing.outcome[order] == Outcome.REFUSED
    return np.bincount(place[~forbidden], minlength=len(ids)), np.bincount(place[forbidden], minlength=len(ids))


def due(store: Store, schedule: ScheduleSettings, host: int | None, limit: int, now: float) -> tuple[Columns, str]:
    """Pages that are due, the one that waits longest first, and why they are due."""
    found = store.due_pages(now, limit, host=host)
    total = store.backlog(now).due if host is None else len(store.due_pages(now, _ALL, host=host))
    name = dict(zip(*_names(store, found.host), strict=True))
    return {
        "page": found.page.tolist(),
        "url": store.urls(found.page),
        "host": [name[one] for one in found.host.tolist()],
        "due": found.due.tolist(),
        "late": (now - found.due).tolist(),
        "why": _reasons(store, schedule, found.page, found.due),
    }, how_many(total, limit)


def _names(store: Store, host: IntArray) -> tuple[list[int], list[str]]:
    found = store.hosts(np.unique(host))
    return found.id.tolist(), found.name


def _reasons(store: Store, schedule: ScheduleSettings, page: IntArray, due_at: FloatArray) -> list[str]:
    """Why each page is due when it is due, by what is recorded of it and in the words of ``recrawl plan``."""
    last = store.histories(pages=page).align(page).last_visit
    valued = schedule.policy.startswith("valued")
    reason = np.full(len(page), "worth its price" if valued else "its turn", dtype=object)
    interval = due_at - last
    if valued:
        reason[interval >= schedule.max_interval * (1 - _NEARLY)] = "longest interval"
        reason[interval <= schedule.min_interval * (1 + _NEARLY)] = "shortest interval"
    reason[np.isnan(last)] = "never seen"
    failing = store.failing(_ALL)
    times = dict(zip(failing.page.tolist(), failing.failures.tolist(), strict=True))
    for row, one in enumerate(page.tolist()):
        if one in times:
            reason[row] = f"tried again after {'a failure' if times[one] == 1 else f'{times[one]} failures'}"
    return reason.tolist()


def failing(store: Store, host: int | None, limit: int) -> tuple[Columns, str]:
    """Pages whose last visit failed: how, for how long, how often, and when they are tried again."""
    found = store.failing(limit + 1, host=host)
    some = slice(limit)
    page = found.page[some]
    return {
        "page": page.tolist(),
        "url": store.urls(page),
        "outcome": [in_words(Outcome(code)) for code in found.outcome[some].tolist()],
        "status": found.status[some].tolist(),
        "meaning": [
            f"{failure_words(status)}, at {reason}" if reason else failure_words(status)
            for status, reason in zip(found.status[some].tolist(), found.reason[some], strict=True)
        ],
        "quarantined": (found.faults[some] >= QUARANTINED).tolist(),
        "tries": found.failures[some].tolist(),
        "since": found.since[some].tolist(),
        "last_try": found.time[some].tolist(),
        "next_try": store.due(page).tolist(),
    }, "latest" if len(found) > limit else ""


def how_many(total: int, limit: int) -> str:
    """What to say of how many there are, if that is more than is shown.

    >>> how_many(120, 50), how_many(3, 50)
    ('of 120', '')
    """
    return f"of {total}" if total > limit else ""


def in_words(value: enum.Enum) -> str:
    """The name of a member as people write it.

    >>> in_words(Outcome.NOT_MODIFIED)
    'not modified'
    """
    return value.name.lower().replace("_", " ")
