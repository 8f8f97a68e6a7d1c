"""What ``recrawl status`` says of work: who is at it, how fast it goes, and what holds it up.

What the status of a visit means, in words.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from recrawl.crawl.control.runtime_limits import is_paused, limits
from recrawl.crawl.control.worker_registry import RegisteredWorker, is_alive, live_workers, registered_workers
from recrawl.crawl.visit.visitor import NO_ROBOTS, REFUSED_BY_ROBOTS
from recrawl.model import Outcome, visits
from recrawl.model.plurals import counted
from recrawl.schedule.frontier.token_bucket import memory, replayed
from recrawl.time import DAY, HOUR, format_duration

if TYPE_CHECKING:
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.store.base import ScheduleStore, Store


_WORDS = {
    0: "no answer",
    visits.NO_NAME: "unknown host name",
    visits.NO_CONNECTION: "connection refused",
    visits.BROKEN_OFF: "connection broken, or not HTTP",
    visits.TOO_SLOW: "timeout",
    visits.OUR_FAULT: "a bug of recrawl",
    visits.NO_NAME_SERVER: "no response from DNS",
    visits.NO_URL: "URL cannot be fetched",
    visits.NO_TRUST: "TLS failed",
    visits.NO_ROUTE: "address unreachable",
    visits.EMPTY: "closed without a response",
    visits.NOT_ALLOWED: "address not allowed",
    NO_ROBOTS: "robots.txt unavailable",
    REFUSED_BY_ROBOTS: "robots.txt forbids it",
}


def status_words(status: int) -> str:
    """The status of a visit: HTTP's own words, or what went wrong where there is none (conventions L3).

    >>> status_words(503), status_words(-4), status_words(299)
    ('Service Unavailable', 'timeout', 'status 299')
    """
    if status in _WORDS:
        return _WORDS[status]
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return f"status {status}"


def failure_words(status: int) -> str:
    """The meaning of the status of a failed visit. For a success status, the body was incomplete.

    >>> failure_words(503), failure_words(200)
    ('Service Unavailable', 'response incomplete')
    """
    return "response incomplete" if 200 <= status < 400 else status_words(status)  # noqa: PLR2004 - success, redirects


_NAMED = 3
"""Failures, hosts and workers that are named at most."""


@dataclass(frozen=True, slots=True)
class CrawlActivity:
    """How the work goes."""

    workers: list[RegisteredWorker]
    """Those that said something lately."""
    orphaned: dict[str, int]
    """Leases of workers that do not answer any more, by worker."""
    misdated: int
    """Visits that were made while the clock was wrong."""
    visits_last_hour: int
    late_seconds: float
    """Since when the page that waits longest is due."""
    policy: str
    price: float | None
    """What a visit must be worth, as a worker said last."""
    budget_per_day: float
    budget_left: float
    """Visits that the budget allows now."""
    paused: bool
    paused_hosts: list[str]
    limits: dict[str, str]
    """By key, as they were written."""
    failing: list[dict[str, object]]
    """The latest failures."""
    disk_free: int
    """Bytes."""
    archive_bytes: int


def work_facts(place: Workspace, store: Store, now: float) -> CrawlActivity:
    """What store and disk say."""
    told, hosts = store.controls(), store.hosts()
    held = limits(told)
    schedule = place.limited(held).configuration.settings.schedule
    budget = schedule.budget / DAY
    recent = store.visits(since=now - max(memory(budget, schedule.burst), HOUR), until=now)
    asked = recent.time[recent.outcome != Outcome.REFUSED]
    backlog, failing = store.backlog(now), store.failing(_NAMED)
    workers = [one for one in registered_workers(told) if is_alive(one, now)]
    urls = store.urls(failing.page)
    return CrawlActivity(
        workers=workers,
        misdated=store.misdated().visits,
        orphaned=_orphaned(place, store, {one.worker for one in workers}),
        visits_last_hour=int((recent.time > now - HOUR).sum()),
        late_seconds=max(now - backlog.earliest, 0.0) if backlog.due else 0.0,
        policy=schedule.policy,
        price=next((one.price for one in workers if one.price is not None), None),
        budget_per_day=schedule.budget,
        budget_left=replayed(budget, schedule.burst, asked, now).left(now),
        paused=is_paused(told),
        paused_hosts=[name for name, paused in zip(hosts.name, hosts.paused.tolist(), strict=True) if paused],
        limits=held,
        failing=[
            {"url": url, "status": status, "meaning": failure_words(status), "time": time, "tries": tries}
            for url, status, time, tries in zip(
                urls, failing.status.tolist(), failing.time.tolist(), failing.failures.tolist(), strict=True
            )
        ],
        disk_free=shutil.disk_usage(place.folder).free,
        archive_bytes=sum(file.stat().st_size for file in place.warc.glob("*") if file.is_file()),
    )


def work_rows(work: CrawlActivity, now: float) -> list[tuple[str, str]]:
    """The same for people."""
    late = f"by up to {format_duration(work.late_seconds)}" if work.late_seconds > 1 else "nothing"
    price = "" if work.price is None else f"; threshold (shadow price) {work.price:.3g}"
    return [
        ("late", late),
        ("workers", _workers(work.workers, now)),
        *_orphans(work.orphaned),
        *_misdated(work.misdated),
        ("last hour", counted(work.visits_last_hour, "visit")),
        ("budget", f"{work.budget_per_day:,.0f} visits a day, {int(work.budget_left):,} available now"),
        ("policy", f"{work.policy}{price}"),
        ("paused", _paused(work)),
        ("limits", ", ".join(f"{key}={text}" for key, text in work.limits.items()) or "none besides the settings"),
        ("disk", f"{shown_size(work.disk_free)} free; archive files take {shown_size(work.archive_bytes)}"),
        *(("failing", f"{one['url']}: {one['meaning']}, {one['tries']} in a row") for one in work.failing),
    ]


def _orphaned(place: Workspace, store: ScheduleStore, alive: set[str]) -> dict[str, int]:
    """Leases of workers that are neither registered nor alive in this folder, as one that just started is."""
    here = set(live_workers(place.folder))
    return {worker: leases for worker, leases in store.lease_holders().items() if worker not in alive | here}


def _orphans(orphaned: dict[str, int]) -> list[tuple[str, str]]:
    if not orphaned:
        return []
    names = ", ".join(list(orphaned)[:_NAMED]) + (
        f" and {len(orphaned) - _NAMED} more" if len(orphaned) > _NAMED else ""
    )
    leases = counted(sum(orphaned.values()), "page")
    return [("dead workers", f"{names}: {leases} leased; any run releases them within a minute")]


def _misdated(visits: int) -> list[tuple[str, str]]:
    told = f"{counted(visits, 'visit')} made while the clock was wrong, not used: recrawl list misdated"
    return [("misdated", told)] if visits else []


def _workers(workers: list[RegisteredWorker], now: float) -> str:
    if not workers:
        return "nobody"
    named = [
        # A worker whose clock is ahead of ours started in our future.
        f"{one.worker} for {format_duration(max(now - one.since, 0.0))}: {counted(one.visits, 'visit')}, "
        f"{one.underway} in flight"
        for one in workers[:_NAMED]
    ]
    more = len(workers) - len(named)
    return "; ".join(named) + (f"; {more} more" if more else "")


def _paused(work: CrawlActivity) -> str:
    names = ", ".join(work.paused_hosts[:_NAMED])
    more = len(work.paused_hosts) - _NAMED
    hosts = names + (f" and {more} more" if more > 0 else "")
    if work.paused:
        return "the whole crawl" + (f"; by name: {hosts}" if hosts else "")
    return hosts or "nothing"


def shown_size(count: float) -> str:
    """Bytes as people write them.

    >>> shown_size(512), shown_size(3_400_000), shown_size(12_345_678_900)
    ('512 B', '3.4 MB', '12.3 GB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < _NEXT_UNIT:
            return f"{count:.3g} {unit}"
        count /= _NEXT_UNIT
    return f"{count:.3g} TB"


_NEXT_UNIT = 1000
