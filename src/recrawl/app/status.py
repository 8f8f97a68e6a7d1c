"""The work of a workspace, as ``recrawl status`` and ``recrawl list`` show it.

Workers, their speed and what holds them up; failures in words; hosts, due and failing pages, and masked noise.
"""

from __future__ import annotations

import enum
import math
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.app.display import shown_size
from recrawl.app.workspace.settings import ScheduleSettings
from recrawl.crawl.control.runtime_limits import is_paused, limits
from recrawl.crawl.control.worker_registry import RegisteredWorker, is_alive, live_workers, registered_workers
from recrawl.crawl.units.unit_registry import (
    RegisteredUnit,
    registered_units,
    unit_buckets,
    unit_state,
    unpacked_buckets,
)
from recrawl.detect.validator_trust import is_believed
from recrawl.errors import ConfigError, counted
from recrawl.model import FloatArray, IntArray, Outcome, visits
from recrawl.model.visits import NO_ROBOTS, REFUSED_BY_ROBOTS
from recrawl.schedule.frontier.token_bucket import memory, replayed
from recrawl.store.store_values import QUARANTINED, DueBacklog
from recrawl.time import DAY, HOUR, format_duration
from recrawl.urls import BUCKETS

if TYPE_CHECKING:
    from recrawl.app.rates.belief_table import Expected
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.detect.noise.learned_noise import HostNoise
    from recrawl.formats.warc.archived_bytes import ArchivedBytes
    from recrawl.store.base import CaptureIndex, HistoryStore, PageTable, ScheduleStore, Store


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
class BucketFacts:
    """Which workers own the buckets of hosts."""

    owned: dict[str, int]
    """By worker."""
    free: int
    """Buckets that nobody owns."""
    moving: int
    """Buckets that their owners hand over as soon as their requests there have ended."""
    moves: int
    """How often a bucket changed hands, over all time."""


def bucket_facts(store: ScheduleStore) -> BucketFacts:
    """Which workers own how many buckets. O(buckets)."""
    rows = store.buckets()
    owned = Counter(owner for owner in rows.owner if owner is not None)
    moving = sum(heir is not None for heir in rows.heir)
    return BucketFacts(dict(sorted(owned.items())), len(rows) - owned.total(), moving, int(rows.token.sum()))


_ALL_PAGES_UP_TO = 20_000
"""Pages up to which all of them are read to estimate how many are unchanged."""
_FEW_PAGES = 2_000
"""Pages whose beliefs are computed before compiled code is loaded; also the largest sample."""
_LOOK_UPS = 500_000
"""Look-ups for the visits of a sample: one for each page and each segment of visits."""


@dataclass(frozen=True, slots=True)
class FreshnessEstimate:
    """How many pages are as they were when they were last observed."""

    share: float
    """Of the pages observed at least twice; NaN if there are none."""
    seen: int
    """Pages observed at least once."""
    rated: int
    """Pages observed at least twice that are not gone."""
    sample: int
    """Pages that were drawn to estimate the three above; 0 if all pages were read."""


def estimate_freshness(
    store: Store, now: float, expected: Callable[[Store], Expected | None] = lambda _store: None
) -> FreshnessEstimate:
    """How many pages were observed, and how many of them are probably unchanged.

    In a large store both are estimated from pages drawn at random, always the same ones. ``expected`` makes what a
    model says of pages, which the sample goes without. O(1) in pages and visits.
    """
    from recrawl.app.rates.belief_table import VisitSpan, learn
    from recrawl.estimate.estimators import ESTIMATORS
    from recrawl.model.compiled import interpreted
    from recrawl.store.history import SEGMENT_VISITS

    pages, visits = store.rough_size()
    if pages <= _ALL_PAGES_UP_TO:
        with interpreted() if pages <= _FEW_PAGES else nullcontext():
            known = learn(store, expected=expected(store))
            changed = known.changed(now)
        scale, drawn = 1.0, 0
    else:
        drawn = min(_FEW_PAGES, _LOOK_UPS // (visits // SEGMENT_VISITS + 1))
        ids = np.unique(np.random.default_rng(0).integers(1, pages, drawn, endpoint=True))
        with interpreted():
            known = learn(store, VisitSpan(pages=ids), ESTIMATORS["posterior"])
            changed = known.changed(now)
        scale, drawn = pages / len(ids), len(ids)
    rated = ~np.isnan(changed)
    share = float(1.0 - changed[rated].mean()) if rated.any() else float("nan")
    return FreshnessEstimate(share, round(len(known.histories) * scale), round(int(rated.sum()) * scale), drawn)


@dataclass(frozen=True, slots=True)
class UnitFacts:
    """A unit, as its own store knows it."""

    unit: str
    buckets: int
    """Buckets that its workers may own."""
    outbox: int
    """Pages that wait to be sent to other units."""
    since_contact: float
    """Seconds since the coordination database was last reached."""
    error: str
    """Why it cannot be reached; empty if it can."""
    standing_in: int = 0
    """Buckets of silent units in which it visits important pages; part of the former."""


def unit_facts(told: Mapping[str, str], now: float) -> UnitFacts | None:
    """What the controls of a store say of its unit."""
    state = unit_state(told)
    if state is None:
        return None
    buckets = int(unit_buckets(told).sum())
    stands_in = int(unpacked_buckets(state.standing_in).sum())
    return UnitFacts(state.unit, buckets, state.outbox, max(now - state.at, 0.0), state.error, stands_in)


def unit_columns(place: Workspace, limit: int, now: float) -> tuple[Columns, str]:
    """All units of the crawl: what they can do, what they own, and what waits for them.

    Raises:
        ConfigError: the workspace is no unit.
        StoreError: the coordination database cannot be reached.
    """
    from recrawl.app.workspace.workspace_wiring import unit_terms
    from recrawl.store.unit_exchange import open_coordination

    terms = unit_terms(place)
    if terms is None:
        raise ConfigError("This workspace is no unit.", "Set units.name and units.coordination.")
    shared, exchange = open_coordination(terms.coordination)
    with shared:
        time, rows, waiting = shared.time() or now, shared.buckets(), exchange.waiting().rows
        every = list(registered_units(shared.controls()).values())
    owned, some = Counter(rows.owner), every[:limit]
    moving = Counter(owner for owner, heir in zip(rows.owner, rows.heir, strict=True) if heir is not None)
    waits = {one.unit: sum(waiting[np.array([owner == one.unit for owner in rows.owner])].tolist()) for one in some}
    return {
        "unit": [one.unit for one in some],
        "state": [_state_of(one, time) for one in some],
        "buckets": [owned[one.unit] for one in some],
        "moving": [moving[one.unit] for one in some],
        "standing_in": [int(one.stands_in_for().sum()) for one in some],
        "workers": [one.workers for one in some],
        "capacity": [one.capacity or math.nan for one in some],
        "visits_per_second": [one.visits_per_second for one in some],
        "cpu_per_visit": [one.cpu_per_visit or math.nan for one in some],
        "parse_per_visit": [one.parse_per_visit for one in some],
        "waiting": [waits[one.unit] for one in some],
        "outbox": [one.outbox for one in some],
        "price": [math.nan if one.price is None else one.price for one in some],
        "budget_per_second": [one.budget for one in some],
        "reported": [one.at for one in some],
        "address": [one.address for one in some],
    }, how_many(len(every), limit)


def _state_of(one: RegisteredUnit, now: float) -> str:
    return "silent" if not one.is_alive(now) else "leaving" if one.leaving else "running" if one.workers else "idle"


@dataclass(frozen=True, slots=True)
class CrawlActivity:
    """How the work goes."""

    workers: list[RegisteredWorker]
    """Those that said something lately."""
    unit: UnitFacts | None
    """The unit that the store is; ``None`` if there are no other units."""
    buckets: BucketFacts
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
    not_uploaded: dict[str, int]
    """Closed WARC files of this workspace that are not in object storage yet: ``files`` and ``bytes``."""


def work_facts(place: Workspace, store: Store, now: float, backlog: DueBacklog | None = None) -> CrawlActivity:
    """What store and disk say; ``backlog`` is that of the store now, for callers that have it."""
    told = store.controls()
    held = limits(told)
    schedule = place.limited(held).configuration.settings.schedule
    failing = store.failing(_NAMED)
    if backlog is None:
        backlog = store.backlog(now)
    workers = [one for one in registered_workers(told) if is_alive(one, now)]
    urls = store.urls(failing.page)
    return CrawlActivity(
        workers=workers,
        unit=unit_facts(told, now) if place.configuration.settings.units.name else None,
        buckets=bucket_facts(store),
        misdated=store.misdated().visits,
        orphaned=_orphaned(place, store, {one.worker for one in workers}),
        visits_last_hour=store.count_before(now).visits - store.count_before(now - HOUR).visits,
        late_seconds=max(now - backlog.earliest, 0.0) if backlog.due else 0.0,
        policy=schedule.policy,
        price=next((one.price for one in workers if one.price is not None), None),
        budget_per_day=schedule.budget,
        budget_left=_budget_left(store, workers, schedule, now),
        paused=is_paused(told),
        paused_hosts=store.paused_hosts().name,
        limits=held,
        failing=[
            {"url": url, "status": status, "meaning": failure_words(status), "time": time, "tries": tries}
            for url, status, time, tries in zip(
                urls, failing.status.tolist(), failing.time.tolist(), failing.failures.tolist(), strict=True
            )
        ],
        disk_free=shutil.disk_usage(place.folder).free,
        archive_bytes=sum(file.stat().st_size for file in place.warc.glob("*") if file.is_file()),
        not_uploaded=_not_uploaded(place, store, now),
    )


def _budget_left(store: Store, workers: list[RegisteredWorker], schedule: ScheduleSettings, now: float) -> float:
    """Visits that the budget allows now: as the workers said last, or by the visits made if there are none."""
    said = [one.left for one in workers if one.left is not None]
    if said:
        return sum(said)
    budget = schedule.budget / DAY
    made = store.observations(since=now - memory(budget, schedule.burst))
    asked = made.time[(made.outcome != Outcome.REFUSED) & (made.time <= now)]
    return replayed(budget, schedule.burst, asked, now).left(now)


def _not_uploaded(place: Workspace, store: Store, now: float) -> dict[str, int]:
    from recrawl.crawl.maintenance.archive_upload import ArchiveUploader

    options = place.archive.options
    waiting = [] if options is None else ArchiveUploader(place.warc, options, lambda: now).waiting(store)
    return {"files": len(waiting), "bytes": sum(path.stat().st_size for path in waiting if path.exists())}


def work_rows(work: CrawlActivity, now: float) -> list[tuple[str, str]]:
    """The same for people."""
    late = f"by up to {format_duration(work.late_seconds)}" if work.late_seconds > 1 else "nothing"
    price = "" if work.price is None else f"; threshold (shadow price) {work.price:.3g}"
    return [
        ("late", late),
        ("workers", _workers(work.workers, now)),
        *_unit(work.unit),
        *_buckets(work),
        *_orphans(work.orphaned),
        *_misdated(work.misdated),
        ("last hour", counted(work.visits_last_hour, "visit")),
        ("budget", f"{work.budget_per_day:,.0f} visits a day, {int(work.budget_left):,} available now"),
        ("policy", f"{work.policy}{price}"),
        ("paused", _paused(work)),
        ("limits", ", ".join(f"{key}={text}" for key, text in work.limits.items()) or "none besides the settings"),
        ("disk", f"{shown_size(work.disk_free)} free; archive files take {shown_size(work.archive_bytes)}"),
        *_uploads(work.not_uploaded),
        *(("failing", f"{one['url']}: {one['meaning']}, {one['tries']} in a row") for one in work.failing),
    ]


def _uploads(waiting: dict[str, int]) -> list[tuple[str, str]]:
    if not waiting["files"]:
        return []
    files = counted(waiting["files"], "WARC file")
    return [("uploads", f"{files}, {shown_size(waiting['bytes'])}, not in object storage yet; a run uploads them")]


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


def _unit(unit: UnitFacts | None) -> list[tuple[str, str]]:
    if unit is None:
        return []
    told = f"{unit.unit}: {unit.buckets:,} of {BUCKETS:,} buckets, {counted(unit.outbox, 'page')} to send to others"
    if unit.standing_in:
        told += f"; stands in for a silent unit in {counted(unit.standing_in, 'bucket')}"
    away = f"; without coordination for {format_duration(unit.since_contact)}: {unit.error}" if unit.error else ""
    return [("unit", told + away)]


def _buckets(work: CrawlActivity) -> list[tuple[str, str]]:
    """Who owns what, where there is more than one worker or some buckets of a running crawl have no owner."""
    known = work.buckets
    if not known.owned or (len(known.owned) == 1 and not known.free):
        return []
    named = [f"{worker} {count:,}" for worker, count in list(known.owned.items())[:_NAMED]]
    more = len(known.owned) - len(named)
    parts = [", ".join(named) + (f" and {more} more" if more else "")]
    parts += [f"{known.moving:,} moving"] if known.moving else []
    parts += [f"{known.free:,} without an owner"] if known.free else []
    return [("buckets", "; ".join(parts))]


def worker_columns(store: Store, limit: int, now: float) -> tuple[Columns, str]:
    """Every registered worker: what it does, the buckets of hosts that it owns, and whether it still reports.

    With what it published at its last fit: the pages that it schedules, its price, and the visits per day that its
    pages ask for at this price.
    """
    owned, published = bucket_facts(store).owned, {said.partition: said for said in store.demands()}
    every = registered_workers(store.controls())
    some = every[:limit]
    return {
        "worker": [one.worker for one in some],
        "state": ["silent" if not is_alive(one, now) else "paused" if one.paused else "running" for one in some],
        "buckets": [owned.get(one.worker, 0) for one in some],
        "pages": [said.pages if (said := published.get(one.worker)) else 0 for one in some],
        "price": [said.price if (said := published.get(one.worker)) else None for one in some],
        "demand": [said.asked_for * DAY if (said := published.get(one.worker)) else None for one in some],
        "fitted": [said.time if (said := published.get(one.worker)) else None for one in some],
        "visits": [one.visits for one in some],
        "in_flight": [one.underway for one in some],
        "leased": [one.in_hand for one in some],
        "since": [one.since for one in some],
        "reported": [one.at for one in some],
    }, how_many(len(every), limit)


def _paused(work: CrawlActivity) -> str:
    names = ", ".join(work.paused_hosts[:_NAMED])
    more = len(work.paused_hosts) - _NAMED
    hosts = names + (f" and {more} more" if more > 0 else "")
    if work.paused:
        return "the whole crawl" + (f"; by name: {hosts}" if hosts else "")
    return hosts or "nothing"


_EXAMPLES_READ = 3
"""Pages of a host that are read to show what a masked part says."""


_LONGEST = 60


def masked_by_host(store: HistoryStore, hosts: IntArray) -> dict[int, int]:
    """How many parts of pages are masked on each of these hosts; hosts without any are left out."""
    import numpy as np

    from recrawl.detect.noise.learned_noise import NoiseEvidence
    from recrawl.transfer.archive_noise_learning import with_archive_noise

    found = NoiseEvidence.counted(store.noise(hosts if len(hosts) < _MANY_HOSTS else None))
    found = found.take(np.isin(found.host, found.host[found.is_noise()]))  # most hosts have no noise
    masked = {host: found.noise_of(host).masked for host in np.unique(found.host).tolist()}
    for host in _with_archives(store, hosts):
        masked[host] = with_archive_noise(store, host, found.noise_of(host)).masked
    return {host: count for host, count in masked.items() if count}


_MANY_HOSTS = 1_000
"""Hosts from which on the evidence on all is read at once."""


def noise_rows(store: Store, archived: ArchivedBytes, host: int | None, limit: int) -> tuple[dict[str, list[Any]], int]:
    """The masked parts as columns, host by host, at most ``limit``, and how many there are."""
    import numpy as np

    from recrawl.detect.noise.learned_noise import NoiseEvidence, masked_parts
    from recrawl.transfer.archive_noise_learning import noise_in, with_archive_noise

    found = NoiseEvidence.counted(store.noise(None if host is None else np.array([host])))
    rows: list[tuple[Any, ...]] = []
    wanted = None if host is None else np.array([host])
    numbers = np.union1d(found.host[found.is_noise()], np.array(_with_archives(store, wanted), np.int64))
    for number in numbers.tolist():
        learned = found.noise_of(number)
        noise = with_archive_noise(store, number, learned)
        parts = masked_parts(noise)
        [name] = store.hosts(np.array([number])).name
        said = _texts(store, archived, number, noise) if len(rows) < limit else {}
        stored = {part.key: part.text for part in noise_in(store, [name]).get(name, [])}
        for page, key, split in parts:
            mine = noise.rows.take((noise.rows.part == key) & (noise.rows.page == page))
            where = store.urls(np.array([page]))[0] if page else "all pages"
            from_archive = not page and key not in learned.mask
            counts = (mine.far_differed, mine.far) if from_archive else (mine.near_differed, mine.near)
            differed = f"{counts[0][0]} of {counts[1][0]}"
            origin = "captures in archives" if from_archive else "confirmations"
            text = said.get(key) or stored.get(key) or split.without_text
            short = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
            rows.append((key, name, where, short, split.kind.name.lower(), split.place, differed, origin))
    names = ("part", "host", "where", "text", "differs_in", "position", "differed", "learned_from")
    columns = {name: [row[place] for row in rows[:limit]] for place, name in enumerate(names)}
    return columns, len(rows)


def _with_archives(store: HistoryStore, hosts: IntArray | None) -> list[int]:
    """Hosts among these, or among all, for which captures of imported archives taught what is noise."""
    from recrawl.transfer.archive_noise_learning import hosts_with_noise

    names = hosts_with_noise(store)
    if not names:
        return []
    known = store.hosts(hosts)
    return [number for number, name in zip(known.id.tolist(), known.name, strict=True) if name in names]


def _texts(store: CaptureIndex, archived: ArchivedBytes, host: int, noise: HostNoise) -> dict[int, str]:
    """What masked parts said when pages of the host were last archived, as far as that can be read."""
    import numpy as np

    from recrawl.app.visit_explanation import place_at
    from recrawl.detect.change_criteria import ChangeCriteria
    from recrawl.detect.explanation import shown
    from recrawl.errors import RecrawlError

    pages = [page for page in noise.page_masks if page]
    of_host = store.pages()
    pages += of_host.id[of_host.host == host][:_EXAMPLES_READ].tolist() if noise.mask else []
    said: dict[int, str] = {}
    for page in pages[: 2 * _EXAMPLES_READ]:
        captures = store.capture_columns(np.array([page]))
        if not len(captures):
            continue
        place = place_at(captures, np.inf)
        try:
            capture = archived.read(*place) if place else None
        except (RecrawlError, OSError):
            continue
        if capture is not None:
            told = shown(capture, ChangeCriteria(mask=noise.mask_of(page)), noise, page)
            said |= {one.key: one.text for one in told.left_out if one.key}
    return said


Columns = dict[str, list[Any]]
_ALL = 1 << 40
"""More rows than there are."""
_NEARLY = 1e-6


def hosts(store: Store, host: int | None, limit: int) -> tuple[Columns, str]:
    """Hosts with their pause, their state, and what is known of their behaviour."""
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


def _hosts_of_pages(store: CaptureIndex, host: int | None) -> IntArray:
    """The host of each page; style sheets, images and similar resources are none."""
    pages = store.pages()
    of_page = pages.host[~np.isin(pages.id, store.resources())]
    return of_page if host is None else of_page[of_page == host]


def _failing_by_host(store: HistoryStore, ids: IntArray, host: int | None) -> tuple[IntArray, IntArray]:
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


def _names(store: PageTable, host: IntArray) -> tuple[list[int], list[str]]:
    found = store.hosts(np.unique(host))
    return found.id.tolist(), found.name


def _reasons(store: HistoryStore, schedule: ScheduleSettings, page: IntArray, due_at: FloatArray) -> list[str]:
    """Why each page is due when it is due, by what is recorded of it and in the words of ``recrawl plan``."""
    last = store.histories(pages=page).align(page).last_visit
    valued = schedule.policy.startswith("valued")
    reason = np.full(len(page), "above threshold" if valued else "its turn", dtype=object)
    interval = due_at - last
    if valued:
        reason[interval >= schedule.max_interval * (1 - _NEARLY)] = "longest interval"
        reason[interval <= schedule.min_interval * (1 + _NEARLY)] = "shortest interval"
    reason[np.isnan(last)] = "never seen"
    failing = store.failing(_ALL)
    times = dict(zip(failing.page.tolist(), failing.failures.tolist(), strict=True))
    for row, one in enumerate(page.tolist()):
        if one in times:
            reason[row] = f"retry after {'a failure' if times[one] == 1 else f'{times[one]} failures'}"
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
