"""What ``recrawl status`` says of work: who is at it, how fast it goes, and what holds it up."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recrawl.cli.status_words import failure_words
from recrawl.crawl.controls import is_paused, limits
from recrawl.crawl.presence import at_work
from recrawl.crawl.rollcall import AtWork, is_alive, roll
from recrawl.model import Outcome
from recrawl.model.words import counted
from recrawl.schedule.allowance import memory, replayed
from recrawl.time import DAY, HOUR, format_duration

if TYPE_CHECKING:
    from recrawl.cli.workspace import Workspace
    from recrawl.store.base import Store

_NAMED = 3
"""Failures, hosts and workers that are named at most."""


@dataclass(frozen=True, slots=True)
class Work:
    """How the work goes."""

    workers: list[AtWork]
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


def work_facts(place: Workspace, store: Store, now: float) -> Work:
    """What store and disk say."""
    told, hosts = store.controls(), store.hosts()
    held = limits(told)
    schedule = place.limited(held).configuration.settings.schedule
    budget = schedule.budget / DAY
    recent = store.visits(since=now - max(memory(budget, schedule.burst), HOUR), until=now)
    asked = recent.time[recent.outcome != Outcome.REFUSED]
    backlog, failing = store.backlog(now), store.failing(_NAMED)
    workers = [one for one in roll(told) if is_alive(one, now)]
    urls = store.urls(failing.page)
    return Work(
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


def work_rows(work: Work, now: float) -> list[tuple[str, str]]:
    """The same for people."""
    late = f"the first page waits for {format_duration(work.late_seconds)}" if work.late_seconds > 1 else "nothing"
    price = "" if work.price is None else f"; a visit must be worth {work.price:.3g}"
    return [
        ("late", late),
        ("at work", _workers(work.workers, now)),
        *_orphans(work.orphaned),
        *_misdated(work.misdated),
        ("last hour", counted(work.visits_last_hour, "visit")),
        ("budget", f"{work.budget_per_day:,.0f} visits a day, {int(work.budget_left):,} may be made now"),
        ("policy", f"{work.policy}{price}"),
        ("paused", _paused(work)),
        ("limits", ", ".join(f"{key}={text}" for key, text in work.limits.items()) or "none beside the settings"),
        ("disk", f"{_size(work.disk_free)} free; archive files take {_size(work.archive_bytes)}"),
        *(("failing", f"{one['url']}: {one['meaning']}, {one['tries']} in a row") for one in work.failing),
    ]


def _orphaned(place: Workspace, store: Store, alive: set[str]) -> dict[str, int]:
    """Leases of workers that are neither on the roll nor alive in this folder, as one is that has just begun."""
    here = set(at_work(place.folder))
    return {worker: leases for worker, leases in store.lease_holders().items() if worker not in alive | here}


def _orphans(orphaned: dict[str, int]) -> list[tuple[str, str]]:
    if not orphaned:
        return []
    names = ", ".join(list(orphaned)[:_NAMED]) + (
        f" and {len(orphaned) - _NAMED} more" if len(orphaned) > _NAMED else ""
    )
    leases = counted(sum(orphaned.values()), "page")
    return [("dead workers", f"{names}: {leases} leased; any run frees them within a minute")]


def _misdated(visits: int) -> list[tuple[str, str]]:
    told = f"{counted(visits, 'visit')} made while the clock was wrong, used for nothing: recrawl list misdated"
    return [("misdated", told)] if visits else []


def _workers(workers: list[AtWork], now: float) -> str:
    if not workers:
        return "nobody"
    named = [
        f"{one.worker} for {format_duration(now - one.since)}: {counted(one.visits, 'visit')}, {one.underway} under way"
        for one in workers[:_NAMED]
    ]
    more = len(workers) - len(named)
    return "; ".join(named) + (f"; {more} more" if more else "")


def _paused(work: Work) -> str:
    names = ", ".join(work.paused_hosts[:_NAMED])
    more = len(work.paused_hosts) - _NAMED
    hosts = names + (f" and {more} more" if more > 0 else "")
    if work.paused:
        return "the whole crawl" + (f"; by name: {hosts}" if hosts else "")
    return hosts or "nothing"


def _size(count: float) -> str:
    """Bytes as people write them.

    >>> _size(512), _size(3_400_000), _size(12_345_678_900)
    ('512 B', '3.4 MB', '12.3 GB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < _NEXT_UNIT:
            return f"{count:.3g} {unit}"
        count /= _NEXT_UNIT
    return f"{count:.3g} TB"


_NEXT_UNIT = 1000
