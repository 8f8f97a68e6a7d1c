"""The frontier of one workspace: what is worth a fetch and allowed now, and what came of it.

Crawlers of others use it through gRPC (``web.urlfrontier``), HTTP (``web.dashboard.frontier_routes``) or Python
(``integrations.scrapy``). It schedules as ``recrawl run`` does, with the same policy, budget, priors and fits; only the
fetching is somebody else's.

Rules of this file:

1. A report is acknowledged once the store has committed visit, due time and the end of its lease together.
2. URLs that were handed out count against the budget, whether they are reported or not: somebody may have fetched them.
3. Every call is one batch, may be made from any thread, and costs what is in the batch.
"""

from __future__ import annotations

import enum
import json
import math
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from recrawl.app.frontier.fit_thread import FitThread
from recrawl.crawl.clock import RealClock, follow_store
from recrawl.crawl.control.json_log import LEVELS, JsonLinesLog, LogFile
from recrawl.crawl.control.runtime_limits import LimitsWatcher, RuntimeLimits, SharedBudget, set_paused
from recrawl.crawl.worker.crawl_assembly import LOG
from recrawl.detect.reported_visits import ReportedVisit, judge
from recrawl.errors import RecrawlError
from recrawl.model import FloatArray, IntArray, Pages, Validators, Visits
from recrawl.store.client_pages import ClientReport, HandOutLimits, ListedPage, QueueCounts, UrlFilter
from recrawl.time import DAY

if TYPE_CHECKING:
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.store.base import Store

Metadata = Mapping[str, Sequence[str]]
"""What a crawler stores with a URL: several texts by name."""

LEASE = 30.0
"""Seconds for which a URL is handed out if the client names none."""
LONGEST_LEASE = 30 * DAY
MOST = 1_000
"""Maximum URLs in one batch that is handed out, and of one queue at once."""
LONGEST_URL = 8_192
"""Bytes."""
LARGEST_METADATA = 32_768
"""Bytes of the metadata of one URL, as JSON."""
_FOR_EVER = 31 * DAY
"""Seconds. A block that is longer pauses the queue until it is unblocked: see ``ClockHorizon.ready``."""
_DELAY = "frontier delay"
"""The control with the default pause of queues, in seconds."""
_NAMES = 100_000
"""Host names in memory."""
_QUICK, _SHARE = 0.05, 50.0
"""Counts of a whole crawl that take more than ``_QUICK`` seconds are kept for ``_SHARE`` times as long."""


class Status(enum.IntEnum):
    """What became of an item, in the numbers of URLFrontier."""

    OK = 0
    SKIPPED = 1
    """It is known already, or it is nothing that can be scheduled: do not send it again."""
    FAIL = 2
    """The store is away: send it again."""


@dataclass(frozen=True, slots=True)
class FrontierUrl:
    """A URL that was handed out."""

    page: int
    url: str
    key: str
    """Its queue: the name of its host."""
    metadata: Metadata
    validators: Validators
    """What is known of its last version, for a conditional request."""
    due: float
    """When it became worth a fetch, seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class UrlReport:
    """A fetch that a client reports."""

    url: str
    visit: ReportedVisit = field(default_factory=ReportedVisit)
    metadata: Metadata = field(default_factory=dict)
    refetch: float = math.nan
    """When the client wants to fetch it again, seconds since the epoch; 0 for never, NaN if it does not say."""
    retry_after: float = 0.0
    """Seconds for which the host asks to be left alone."""


class QueueInfo(NamedTuple):
    """Names of queues, and their number."""

    names: list[str]
    total: int


class UrlFrontier:
    """The frontier of one workspace. Close it, or use it in a ``with`` block."""

    def __init__(self, place: Workspace, clock: RealClock | None = None) -> None:
        from recrawl.app.predict.model_use import live_model
        from recrawl.app.workspace.workspace_wiring import (
            LiveSettings,
            WorkspaceFits,
            host_limits_of,
            policy_of,
        )
        from recrawl.schedule.frontier.revisit_scheduler import NewPageQueue, RevisitScheduler
        from recrawl.schedule.politeness.host_politeness import Politeness
        from recrawl.schedule.politeness.retry import Retry

        self._place = place
        self._clock = clock or RealClock()
        settings = place.configuration.settings
        self._dates = settings.frontier.refetch_date
        self._store: Store = place.open_store()
        try:
            self._time, _ = follow_store(self._clock, self._store)
            live = LiveSettings(place)
            self._store.repair_ahead(self._clock.now(), lease_time=settings.crawl.lease_time)
            self._limits: RuntimeLimits = live.orders({})
            self._watch = LimitsWatcher(self._store, live.orders)
            self._budget = SharedBudget(self._store, self._clock)
            self._politeness = Politeness(self._limits.politeness)
            model = live_model(place, self._store)
            self._scheduler = RevisitScheduler(
                policy_of(
                    settings.schedule,
                    self._store.urls,
                    host_limits_of(self._store, live.politeness),
                    model,
                    None if model is None else model.links,
                ),
                budget=self._limits.budget,
                retry=Retry.beginning(settings.politeness.retry),
                new_page_queue=NewPageQueue(self._limits.discovery_share, self._limits.burst),
            )
            self._log_file = LogFile(place.folder / LOG, self._clock, most=settings.crawl.log_size)
            level = LEVELS[LEVELS.index(settings.crawl.log_level)]
            self._log = JsonLinesLog(self._log_file.__enter__(), self._clock, level=level, worker="frontier")
            self._lock = threading.RLock()
            """Guards the scheduler and the budget."""
            self._delay: float | None = None
            self._names: dict[int, str] = {}
            self._counts: tuple[float, float, QueueCounts] | None = None
            """Counts of the whole crawl: when they were made, until when they are used."""
            self._update(self._clock.now(), first=True)
            self._fits = FitThread(
                self._store,
                self._scheduler,
                lock=self._lock,
                politeness=self._politeness,
                recipe=WorkspaceFits(place.folder, place.flags),
                log=self._log,
                now=self._clock.now,
                update=self._update,
            )
            self._fits.start()
        except BaseException:
            self._store.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop fitting, and close the store. What was handed out stays in flight."""
        self._fits.close()
        self._log_file.__exit__(None, None, None)
        self._store.close()

    # -- handing out ------------------------------------------------------------------------------

    def next(  # noqa: PLR0913 - limits, each optional
        self,
        *,
        urls: int = 0,
        per_queue: int = 0,
        queues: int = 0,
        key: str = "",
        lease: float = 0.0,
        pause: float | None = None,
    ) -> list[FrontierUrl]:
        """Hand out URLs that are worth a fetch and allowed now, at most ``MOST``; earliest due first.

        ``urls`` in all, ``per_queue`` of one queue in flight at once, of at most ``queues`` queues, or of the queue
        ``key``; 0 for no limit of the client's. They are handed out again after ``lease`` seconds unless reported.
        ``pause`` is for how many seconds a queue without a delay of its own rests; by default ``default_delay``.
        """
        now = self._clock.now()
        hosts = self._queue(key)
        with self._lock:
            if self._limits.paused:
                return []
            room = min(urls or MOST, MOST, self._budget.room(now))
            if room < 1:
                return []
            limits = HandOutLimits(
                int(room),
                min(per_queue or MOST, MOST),
                min(queues or MOST, MOST),
                min(lease, LONGEST_LEASE) if lease > 0 else LEASE,
                self.default_delay if pause is None else pause,
            )
            found = self._store.hand_out(now, limits, hosts)
            self._budget.take(now, len(found.page))
        names = self._names_of(found.host)
        rows = zip(
            found.page.tolist(), found.url, names, found.metadata, found.validators, found.due.tolist(), strict=True
        )
        return [
            FrontierUrl(page, url, name, unpacked(data), validators, due)
            for page, url, name, data, validators, due in rows
        ]

    def take_back(self, urls: Sequence[FrontierUrl]) -> None:
        """Withdraw URLs that never reached their client; they are due when they were."""
        if urls:
            self._store.take_back(_ids(one.page for one in urls), np.array([one.due for one in urls]))
            with self._lock:
                self._budget.give_back(len(urls))

    # -- reporting --------------------------------------------------------------------------------

    def discover(self, urls: Sequence[str], metadata: Sequence[Metadata] | None = None) -> list[Status]:
        """Add URLs; those that are known stay as they are. New ones wait their turn in the queue of new pages.

        Raises:
            StoreError: the store is away; send the batch again.
        """
        packed = [packed_metadata(one) for one in metadata] if metadata is not None else [b""] * len(urls)
        status = [
            Status.OK if data is not None and is_fit(url) else Status.SKIPPED
            for url, data in zip(urls, packed, strict=True)
        ]
        rows = [row for row, one in enumerate(status) if one is Status.OK]
        if not rows:
            return status
        now = self._clock.now()
        with self._lock:
            last = self._store.last_page()
            ids = self._store.discover([urls[row] for row in rows], now)
            pages, first = np.unique(ids, return_index=True)
            is_new = pages > last
            new, known = pages[is_new], pages[~is_new & (pages >= 0)]
            revived = self._store.revive(known) if len(known) else known
            added = np.concatenate([new, revived])
            due = self._scheduler.queue_found(added, now)
            wait = due > now
            if wait.any():
                self._store.reschedule(added[wait], due[wait])
        with_data = [(int(page), packed[rows[row]]) for page, row in zip(pages.tolist(), first.tolist(), strict=True)]
        some = [(page, data) for page, data in with_data if data and page >= 0]
        if some:
            self._store.add_metadata(_ids(page for page, _ in some), [data or b"" for _, data in some])
        fresh = frozenset(added.tolist())
        for row, page in zip(rows, ids.tolist(), strict=True):
            if page not in fresh:
                status[row] = Status.SKIPPED
        return status

    def seen(self, reports: Sequence[UrlReport]) -> list[Status]:
        """Record fetches, and compute when each URL is worth the next. Of several reports of a URL the last counts.

        Raises:
            StoreError: the store is away; send the batch again.
        """
        packed = [packed_metadata(one.metadata) for one in reports]
        status = [
            Status.OK if data is not None and is_fit(one.url) else Status.SKIPPED
            for one, data in zip(reports, packed, strict=True)
        ]
        rows = [row for row, one in enumerate(status) if one is Status.OK]
        if not rows:
            return status
        now = self._clock.now()
        with self._lock:
            ids = self._store.discover([reports[row].url for row in rows], now).tolist()
            last = {page: row for row, page in zip(rows, ids, strict=True) if page >= 0}
            page = np.array(sorted(last), np.int64)
            if len(page):
                told = [reports[last[number]] for number in page.tolist()]
                self._record(page, told, [packed[last[number]] or b"" for number in page.tolist()], now)
        for row, number in zip(rows, ids, strict=True):
            if number < 0:
                status[row] = Status.SKIPPED
        return status

    def _record(self, page: IntArray, told: Sequence[UrlReport], metadata: list[bytes], now: float) -> None:
        """Record visits to distinct pages, by ascending id."""
        pages, before = self._store.pages(page), self._store.validators(page)
        refetch = np.array([one.refetch for one in told])
        done = (refetch == 0) & (self._dates != "ignore")
        asleep = page[(pages.importance <= 0) & ~done]
        if len(asleep):
            self._store.set_importance(asleep, np.ones(len(asleep)))
            pages = self._store.pages(page)
        judged = judge(page.tolist(), [now] * len(page), [one.visit for one in told], before)
        due = self._due(pages, judged.visits, now)
        if self._dates == "client":
            wished = np.isfinite(refetch) & (refetch > 0)
            due[wished] = np.maximum(refetch[wished], now)
        due[done] = math.inf
        rest = np.array([one.retry_after for one in told])
        asked = (rest > 0) & np.isfinite(rest)
        self._store.record(
            judged.visits,
            due=due,
            validators=judged.validators,
            host_ready=np.where(asked, now + np.clip(rest, 0, 30 * DAY), 0.0) if asked.any() else None,
            client_report=ClientReport(page, pages.host, done, metadata),
        )

    def _due(self, pages: Pages, visits: Visits, now: float) -> FloatArray:
        """Tell the policy of visits; when the pages are due then."""
        self._scheduler.add(pages)
        self._scheduler.tell(visits)
        return self._scheduler.due(pages.id, now)

    # -- queues -----------------------------------------------------------------------------------

    @property
    def default_delay(self) -> float:
        """Seconds for which a queue rests after it gave URLs, if it has no delay of its own."""
        return self._limits.politeness.shortest if self._delay is None else self._delay

    @property
    def is_active(self) -> bool:
        """Whether URLs are handed out."""
        return not self._limits.paused

    def set_active(self, active: bool) -> None:
        """Hand out URLs or not, as ``recrawl pause`` and ``recrawl resume``. Survives a restart."""
        now = self._clock.now()
        set_paused(self._store, now, paused=not active)
        with self._lock:
            self._watch.read_at = -math.inf
            self._update(now)

    def set_log_level(self, level: str) -> None:
        """Write events from this level on into the log of the workspace."""
        if level in LEVELS:
            self._log.write_from(LEVELS[LEVELS.index(level)])

    def report_fault(self, message: str, error: Exception) -> None:
        """Write a failure of our own code into the log of the workspace."""
        with suppress(RecrawlError):
            self._log.event("frontier", message, level="error", details={"reason": repr(error)})

    def set_delay(self, key: str, seconds: float) -> None:
        """Let a queue rest this long after it gave URLs; without ``key``, all queues without a delay of their own."""
        if not key:
            self._store.set_control(_DELAY, repr(float(seconds)), self._clock.now())
            self._delay = float(seconds)
            return
        hosts = self._store.queue_hosts(key)
        self._store.set_host(hosts, delay=np.full(len(hosts), float(seconds)))

    def block(self, key: str, until: float) -> None:
        """Hand out nothing of a queue before ``until``; 0 ends the block. Longer than a month is until it is ended."""
        hosts, now = self._store.queue_hosts(key), self._clock.now()
        if not len(hosts):
            return
        if until > now + _FOR_EVER:
            self._store.pause(hosts)
            return
        self._store.resume(hosts)
        self._store.set_host(hosts, ready_at=np.full(len(hosts), max(until, 0.0)))

    def set_limit(self, key: str, most: int) -> None:
        """Hand out nothing of a queue once this many of its URLs are done; 0 removes the limit."""
        self._store.set_client_limit(self._store.queue_hosts(key), most or None)

    def queues(self, start: int, size: int, *, inactive: bool = False) -> QueueInfo:
        """Names of queues with a URL that is due, or of all."""
        return QueueInfo(*self._store.queue_names(start, size, math.inf if inactive else self._clock.now()))

    def counts(self, key: str = "") -> QueueCounts:
        """Counts of a queue, or of the crawl: the latter may be some seconds old, since every page is counted."""
        now = self._clock.now()
        if key:
            return self._store.queue_counts(now, self._store.queue_hosts(key))
        counts = self._counts
        if counts is None or not counts[0] <= now < counts[1]:
            began = time.monotonic()  # noqa: TID251 - how long counting takes
            found = self._store.queue_counts(now)
            took = time.monotonic() - began  # noqa: TID251
            self._counts = counts = (now, now + _SHARE * took if took > _QUICK else now, found)
        return counts[2]

    @property
    def is_used(self) -> bool:
        """Whether there is any URL to be fetched at some time."""
        return self._store.has_wanted_pages()

    # -- URLs -------------------------------------------------------------------------------------

    def find(self, url: str) -> ListedPage | None:
        """What is known of a URL; ``None`` if it is not scheduled and not done."""
        known = self._store.find(url) if is_fit(url) else None
        if known is None:
            return None
        page = _ids([known.id])
        done = bool(len(self._store.done_pages(page)))
        if known.importance <= 0 and not done:
            return None
        [due], data = self._store.due(page).tolist(), self._store.metadata(page).get(known.id, b"")
        [name] = self._names_of(_ids([known.host]))
        return ListedPage(known.id, known.url, name, due, known.discovered, done, data)

    def list_urls(  # noqa: PLR0913 - which ones
        self, start: int, size: int, *, after: int = 0, key: str = "", text: str = "", any_case: bool = False
    ) -> list[ListedPage]:
        """URLs by page, of a queue or of all; with ``text``, those that contain it; only those behind ``after``."""
        return self._store.list_pages(start, size, self._queue(key), UrlFilter(text, any_case), after=after)

    def count_urls(self, *, key: str = "", text: str = "", any_case: bool = False) -> int:
        """The number of these URLs."""
        return self._store.count_pages(self._queue(key), UrlFilter(text, any_case))

    def remove(self, key: str = "", *, older: float = 0.0) -> int:
        """Take the URLs of a queue, or all, out of the schedule; return their number. Their visits stay.

        With ``older`` only those that were discovered that many seconds ago.
        """
        before = self._clock.now() - older if older > 0 else math.inf
        return self._store.unschedule(self._queue(key), before=before)

    # -- inside -----------------------------------------------------------------------------------

    def _queue(self, key: str) -> IntArray | None:
        """The hosts of a queue; ``None`` for all."""
        return self._store.queue_hosts(key) if key else None

    def _names_of(self, hosts: IntArray) -> list[str]:
        wanted = hosts.tolist()
        missing = {host for host in wanted if host not in self._names}
        if missing:
            if len(self._names) > _NAMES:
                self._names = {}
                missing = set(wanted)
            rows = self._store.hosts(_ids(sorted(missing)))
            self._names |= dict(zip(rows.id.tolist(), rows.name, strict=True))
        return [self._names[host] for host in wanted]

    def _update(self, now: float, *, first: bool = False) -> None:
        """Apply the limits that ``recrawl limit`` and ``recrawl pause`` set, and those of other processes."""
        changed = self._watch.changed_limits(now)
        delay = self._watch.everything.get(_DELAY)
        self._delay = float(delay) if delay is not None else None
        if changed is not None:
            before, self._limits = self._limits, changed
            self._politeness.rules = changed.politeness
            if not first and (before.budget, before.burst) != (changed.budget, changed.burst):
                self._scheduler.change_budget(
                    changed.budget, discovery_share=changed.discovery_share, burst=changed.burst
                )
                self._budget.set(changed.budget, changed.burst, now)
        if first:
            self._scheduler.set_budget(
                self._limits.budget, discovery_share=self._limits.discovery_share, burst=self._limits.burst
            )
            self._budget.set(self._limits.budget, self._limits.burst, now)


def is_fit(url: str) -> bool:
    """Whether a text may be a URL that is scheduled."""
    return 0 < len(url) <= LONGEST_URL and "\0" not in url


def packed_metadata(metadata: Metadata) -> bytes | None:
    """Metadata as the store has them; empty for none, ``None`` if they are too large."""
    if not metadata:
        return b""
    text = json.dumps({name: list(values) for name, values in metadata.items()}, ensure_ascii=False)
    data = text.encode("utf-8", "replace")
    return data if len(data) <= LARGEST_METADATA else None


def unpacked(data: bytes) -> dict[str, list[str]]:
    """The metadata in what the store has."""
    found: dict[str, list[str]] = json.loads(data) if data else {}
    return found


def _ids(numbers: Any) -> IntArray:  # noqa: ANN401 - any iterable of integers
    return np.fromiter(numbers, np.int64)
