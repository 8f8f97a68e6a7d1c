"""The Store seam: four ports, and the store that implements them all.

    ScheduleStore   leases and schedule
    HistoryStore    history and beliefs
    CaptureIndex    captures by page, time and key
    Coordination    demand of the partitions of a crawl (``store.coordination``)
    ClientPages     pages handed out to crawlers of others (``store.client_pages``)

A function that needs one of them takes that type. :class:`Store` is their union, with checks and totals. Packages
register stores as entry points of the group ``recrawl.stores``, by URL scheme (:func:`recrawl.store.open.open_store`).
Every implementation passes :class:`recrawl.testing.StoreConformance`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self, TypedDict, Unpack, runtime_checkable

from recrawl.model import (
    BoolArray,
    ChangeKind,
    FloatArray,
    Histories,
    IntArray,
    NoiseCounts,
    Page,
    Pages,
    Validators,
    Visits,
)
from recrawl.model.captures import RobotsCopies, RobotsCopy, UploadedFile
from recrawl.store.browse import HostCounts, PageQuery, PageRows
from recrawl.store.client_pages import ClientPages, ClientReport
from recrawl.store.coordination import Coordination
from recrawl.store.recording import AheadOfClock, MisdatedVisits
from recrawl.store.store_values import (
    BucketRows,
    CaptureColumns,
    CaptureEnds,
    CaptureRecord,
    ClaimColumns,
    DueBacklog,
    DuePages,
    FailingPages,
    FoundPages,
    HostHold,
    HostRows,
    ImportMark,
    KeyedCaptures,
    KeyRange,
    LearnedFacts,
    LeasedPages,
    LinkRows,
    LinksSeen,
    MementoState,
    SiteCapture,
    SiteCounts,
    SiteLog,
    SiteProgress,
    SiteStep,
    StoreCounts,
    VisitCounts,
)

Tell = Callable[[str, int, int], None]
"""Receives the progress of a long task: its name, the amount done and the total."""


@dataclass(frozen=True, slots=True)
class StoreInconsistency:
    """Rows of a store that contradict each other, by kind."""

    kind: str
    """A key of ``recrawl.crawl.maintenance.workspace_check.KINDS``, which holds its meaning and severity."""
    count: int
    examples: tuple[str, ...]
    """A few of them, as text."""
    repaired: int = 0
    """How many of them were repaired."""


class ClockHorizon(NamedTuple):
    """How far after now a time may lie, in seconds, before it counts as the trace of a wrong clock."""

    lease: float = 7_200.0
    """The end of a lease, and of a hold on a host. Leases last minutes."""
    ready: float = 31 * 86_400.0
    """When a host may be requested again. Retry-After counts for 30 days at most."""
    due: float = 20 * 365 * 86_400.0
    """When a page is due, if it is ever."""
    visit: float = 60.0
    """When a visit was made."""


class LeaseRow(NamedTuple):
    """One lease."""

    page: int
    worker: str
    until: float
    """Seconds since the epoch."""


class VisitFacts(TypedDict, total=False):
    """What may be recorded with visits, in the same transaction. Columns with one entry per visit say so."""

    due: FloatArray | None
    """The next due time, per visit. Of several visits to a page the latest decides, here and below."""
    validators: Sequence[Validators | None] | None
    """The validators of the page, per visit; ``None`` leaves the stored ones."""
    captures: Sequence[CaptureRecord] | None
    """Where the bytes are."""
    links: LinksSeen | None
    """Links that were seen: see :meth:`Store.record_links`."""
    worker: str | None
    """The worker whose leases on these pages end, and its reservations of hosts where it has no other lease. If it
    lost the lease, or the bucket of the page changed hands since (:meth:`ScheduleStore.buckets`), another worker may
    have visited the page. Then the visit and its capture are stored without a verdict; the state of the page, its
    links and its due time stay."""
    tokens: IntArray | None
    """The token of the lease under which each visit was made (:attr:`LeasedPages.token`), or 0. A lease with another
    token is not the one of the visit, which then counts as one whose lease was lost."""
    on_lost: Callable[[IntArray], object] | None
    """Receives the pages whose leases were lost that way, if there are any; again if the call is repeated."""
    host_ready: FloatArray | None
    """The time before which nobody may request the host, per visit; the latest counts."""
    site: SiteProgress | None
    """The step of a site capture that the visit was. It is refused if another process made that step."""
    reasons: Sequence[str] | None
    """How our own code failed, per visit; empty where it did not."""
    behind_until: float
    """Up to this time visits are marked as misdated: the clock was behind what is recorded (see ``repair_ahead``)."""
    client_report: ClientReport | None
    """What the crawler of somebody else said of these pages (``store.client_pages``)."""
    learned_facts: LearnedFacts | None
    """What else was learned: fingerprints of pages, and counts about noise and hosts, which are added."""


class PageTable(Protocol):
    """Pages and hosts by their ids: what every port needs.

    O(log n) for each page or host that is named.
    """

    def discover(self, urls: Sequence[str], now: float | FloatArray, *, importance: float = 1.0) -> IntArray:
        """The page id of each URL; -1 where it is not an http(s) URL.

        New pages are added with this importance and are due ``now``, or never if it is 0: such pages are only link
        targets. Known pages are not changed. ``now`` may have one entry per URL. URLs with the same SURT are one page,
        spelled as first named and found at the earliest time.
        """
        ...

    def find(self, url: str) -> Page | None:
        """The page of a URL, if it is known."""
        ...

    def pages(self, pages: IntArray | None = None) -> Pages:
        """Pages as columns by ascending id: all, or those of these ids that exist."""
        ...

    def pages_in(self, buckets: IntArray) -> Pages:
        """Pages of the hosts in these buckets (:meth:`ScheduleStore.buckets`), by ascending id. O(pages returned)."""
        ...

    def urls(self, pages: IntArray) -> list[str]:
        """The URL of each page, in order. An id that is no page is a ``KeyError``."""
        ...

    def last_page(self) -> int:
        """The largest id of a page; 0 if there is none."""
        ...

    def hosts(self, hosts: IntArray | None = None) -> HostRows:
        """Hosts as columns by ascending id: all, or those of these ids that exist."""
        ...

    def paused_hosts(self) -> HostRows:
        """Hosts that are paused, as columns by ascending id. O(paused hosts)."""
        ...

    def find_host(self, name: str) -> int | None:
        """The id of the host of this name, if it is known."""
        ...

    def host_size(self, name: str) -> int:
        """How many pages of the host of this name are due at some time. O(pages of the host), from an index alone."""
        ...

    def has_wanted_pages(self) -> bool:
        """Whether any page has an importance above 0. O(1) if the first pages have."""
        ...

    def folders_of(self, host_key: str, *, whole: bool = False) -> list[str]:
        """A URL for each folder of pages to be visited on hosts of this SURT key: up to the last slash, each once.

        ``host_key`` is what precedes ``)`` in the keys of pages. Sources with their own access method are left out.
        With ``whole`` the URLs of the pages themselves. O(pages of these hosts), in the database.
        """
        ...

    def never_due(self, after: int, hosts: int) -> tuple[IntArray, IntArray, int | None]:
        """Pages that are never due, on the next ``hosts`` hosts by ascending id after the id ``after``.

        Returns pages and their hosts, by host and page, and the id of the last host; ``None`` if there was none.
        O(hosts + pages returned), from an index alone.
        """
        ...


class ScheduleStore(PageTable, RobotsCopies, Protocol):
    """The port for leases and schedule: which page is due, who has it, when a host may be asked.

    A worker leases pages, renews its leases while it works, and ends each by recording its visit
    (:meth:`HistoryStore.record` with ``worker``) or by giving it back. No two workers ever hold one host. O(log n) for
    each page that is leased, renewed or rescheduled. Under the rules of :class:`Store`.
    """

    def set_importance(self, pages: IntArray, importance: FloatArray) -> None:
        """Set the weight of distinct pages in every objective. With 0 a page is never due; raised from 0, at once."""
        ...

    def set_host(self, hosts: IntArray, *, ready_at: FloatArray | None = None, delay: FloatArray | None = None) -> None:
        """Set the time before which nobody may request these hosts, or their crawl delay in seconds."""
        ...

    def pause(self, hosts: IntArray) -> None:
        """Lease no page of these hosts until ``resume``. Existing leases go on."""
        ...

    def resume(self, hosts: IntArray) -> None:
        """Allow leases of pages of these hosts again."""
        ...

    def lease(  # noqa: PLR0913 - worker, time and limits
        self, worker: str, now: float, limit: int, *, per_host: int = 1, ttl: float, owned: bool = False
    ) -> LeasedPages:
        """Lease at most ``limit`` pages with due <= now, earliest first, for ``ttl`` seconds.

        Never a page of a host that pauses (``ready_at > now``) or that any worker holds, this one included: a host can
        be leased from again when every lease on it was recorded, returned or has expired. At most ``per_host`` pages of
        one host. Expired leases are dropped first. With ``owned``, only pages of hosts in buckets that this worker
        owns and that have no heir; the leases are void once the bucket changes hands.
        """
        ...

    def renew(self, worker: str, now: float, *, ttl: float, pages: IntArray | None = None) -> int:
        """Extend this worker's leases (all, or on these pages) until ``now + ttl``; return how many it still had."""
        ...

    def acknowledge(self, worker: str, pages: IntArray | None = None) -> int:
        """Return this worker's leases (all, or on these pages) without a visit; the result is how many it still had."""
        ...

    def hold_host(self, worker: str, host: int, now: float, *, ttl: float) -> HostHold:
        """Reserve a host for a request that is for none of its pages: a sitemap, or a redirect target.

        Not while it pauses (``ready_at > now``) or another worker holds it. If this worker holds it, it may. A lease on
        an unleased page of the host keeps others away; it is renewed, expires and ends as all leases do.
        """
        ...

    def free_host(self, worker: str, host: int, page: int, ready: float) -> None:
        """Return what ``hold_host`` reserved; nobody may request the host before ``ready``, seconds since the epoch."""
        ...

    def release_worker(self, worker: str, now: float, *, pause: float, unless: tuple[str, str] | None = None) -> int:
        """Free all leases of a dead worker, its reservations of hosts and its buckets; return the number of leases.

        Nobody knows when it last requested its hosts: each pauses as long as it asks for, and at least ``pause``
        seconds from ``now``. With ``unless``, the name and the value of a control, nothing happens (-1) if that control
        has another value by now: the worker reported meanwhile.
        """
        ...

    def lease_holders(self) -> dict[str, int]:
        """The number of leases by worker name."""
        ...

    def held(self, worker: str) -> IntArray:
        """The pages this worker has leases on, ascending."""
        ...

    def expire(self, now: float) -> int:
        """Drop the leases that ended by ``now``; return how many. ``lease`` does it by itself."""
        ...

    def leases(self) -> list[LeaseRow]:
        """Every lease, by page."""
        ...

    def drop_leases(self, now: float, pause: float) -> int:
        """End all leases and host reservations of all workers, and remove all workers; return the number of leases.

        Nobody owns a bucket afterwards.

        For a copy of a store, where no worker runs. Reserved hosts pause for ``pause`` seconds, or as long as they ask
        for: they may have been requested just before.
        """
        ...

    def reschedule(self, pages: IntArray, due: FloatArray, *, before: FloatArray | None = None) -> None:
        """Set when pages are due, ``inf`` for never. Leases stay.

        ``before`` is the due time of each page when ``due`` was computed: a page that was rescheduled since, because of
        a visit, stays as it is.
        """
        ...

    def due(self, pages: IntArray) -> FloatArray:
        """When each of these pages is due, in order; ``inf`` for never. An id that is no page is a ``KeyError``."""
        ...

    def due_pages(self, now: float, limit: int, *, host: int | None = None) -> DuePages:
        """The first ``limit`` pages (of a host) with due <= now, by due time and id, leased ones included."""
        ...

    def backlog(self, now: float) -> DueBacklog:
        """The number of due pages, and since when. The cost depends on the due pages, not on all pages."""
        ...

    def next_due(self, owner: str | None = None) -> float:
        """The earliest time at which ``lease`` could return something; ``inf`` if nothing is scheduled.

        With ``owner``, in the buckets of that worker.
        """
        ...

    def buckets(self) -> BucketRows:
        """All 1,024 buckets with their owners.

        Every host is in one bucket, by its registered domain (:func:`recrawl.urls.bucket_of`). A worker that shares
        the store with others leases only from its own buckets. Each change of hands raises the token of a bucket.
        """
        ...

    def claim_buckets(self, worker: str, buckets: IntArray, now: float) -> int:
        """Take those of these buckets that nobody owns; return their number.

        An owner that does not report as a worker (the control ``worker NAME``) owns nothing.
        """
        ...

    def plan_moves(
        self, worker: str, buckets: IntArray, heirs: Sequence[str], now: float, *, kept: IntArray | None = None
    ) -> int:
        """Name the heir of each of these buckets of this worker: no page of them is leased until they change hands.

        ``kept`` are buckets of this worker that have no heir any more. Returns how many buckets got another heir.
        """
        ...

    def hand_over(self, worker: str, now: float, *, patience: float) -> int:
        """Give buckets of this worker to their heirs; return their number.

        Only where it has no lease on a page of the bucket, or where the heir was named ``patience`` seconds ago. In
        that case a host with a lease stays reserved until the lease ends, and its visit counts as one whose lease was
        lost.
        """
        ...

    def release_buckets(self, worker: str, now: float) -> int:
        """Give up all buckets of this worker, for their heirs or for nobody; return their number.

        What it published as a partition (:class:`~recrawl.store.coordination.Coordination`) is deleted.
        """
        ...

    def soon_free(self, now: float, pause: float) -> float:
        """When the first host with a page due by ``now`` can be leased from; ``inf`` if there is none.

        Hosts that any worker holds do not count, nor those that pause for longer than their crawl delay, or for
        ``pause`` seconds if that is more: these fail, or asked us to stay away. O(hosts with a page due).
        """
        ...

    def quarantined(self) -> int:
        """The number of quarantined pages: our own code failed on them twice in a row. O(pages that fail)."""
        ...

    def set_source(self, pages: IntArray, method: str, options: str = "{}") -> None:
        """Fetch these pages by this access method from now on, with options as JSON; without one, by plain HTTP."""
        ...

    def sources(self, pages: IntArray | None = None) -> dict[int, tuple[str, str]]:
        """Method and options of each of these pages, or of all, that has an access method. Cheap where none has."""
        ...

    def set_control(self, name: str, value: str | None, now: float) -> None:
        """Set a control of running crawls; ``None`` removes it."""
        ...

    def controls(self) -> dict[str, str]:
        """The controls in force, by name."""
        ...

    def controls_changed(self) -> float:
        """When a control was last set or removed; -inf if never. Cheap enough to query every second."""
        ...

    def time(self) -> float | None:
        """The time of the database server, seconds since the epoch; ``None`` if the store is a file of this machine."""
        ...


class HistoryStore(PageTable, Protocol):
    """The port for history and beliefs: visits, links, claims, learned noise, captures of whole sites, policy state.

    Visits are appended and never rewritten, except that one may be classified again. Reading costs what is returned.
    Under the rules of :class:`Store`.
    """

    def record(self, visits: Visits, **more: Unpack[VisitFacts]) -> None:
        """Append visits with all their facts. When it returns, the batch is acknowledged.

        A visit recorded twice (same page, same time) is returned once, as it was last recorded: so a capture can be
        classified again. A capture recorded twice stays as it was first recorded. A visit by a worker that lost the
        lease is recorded all the same: it happened (see :attr:`VisitFacts.worker`).
        """
        ...

    def record_ahead(self, visits: Visits, **more: Unpack[VisitFacts]) -> Callable[[], object]:
        """As :meth:`record`, without the part that waits for others: a thread calls the returned function for that.

        When that has returned, the batch is acknowledged. If it raises, the batch is to be recorded again.
        """
        ...

    def visits(
        self,
        *,
        host: int | None = None,
        pages: IntArray | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> Visits:
        """Visits with all columns, by page and time, each once.

        All of them, or those of a host, of these pages, with since <= time <= until.
        """
        ...

    def observations(
        self, pages: IntArray | None = None, *, since: float | None = None, beside: bool = False
    ) -> Visits:
        """Visits (of these pages, from a time on) by page and time, quickly: page, time, outcome, verdict and kinds.

        The other columns are empty: 0, and no magnitude. ``beside`` reads them on a separate connection: for a thread
        that takes seconds for millions of visits while others use the store.
        """
        ...

    def count_before(self, time: float) -> VisitCounts:
        """Count the visits before a time, as recorded: they differ if one was added, withdrawn or classified again.

        O(full segments), and the rows of those that are open or go on past that time.
        """
        ...

    def latest_visits(self, limit: int, *, host: int | None = None) -> Visits:
        """The latest ``limit`` visits (of a host), latest first, each once. Memory: about that many visits."""
        ...

    def repair_ahead(self, now: float, *, lease_time: float) -> AheadOfClock:
        """Mark visits dated after the clock as misdated, and repair what was derived from them; return what was found.

        Visits after the clock that continue the earlier ones without a gap are not marked: the clock may be wrong now,
        and until it has caught up (``behind_until`` of the result, and of :class:`VisitFacts`) new visits are marked
        instead. Pauses of hosts and due times are moved back with their visits, and no lease lasts longer than
        ``lease_time`` seconds from ``now``. Cheap where nothing lies ahead.
        """
        ...

    def misdated(self) -> MisdatedVisits:
        """The number of visits marked as misdated, and when the last of them were found. Cheap."""
        ...

    def misdated_visits(self, pages: IntArray | None = None) -> Visits:
        """The visits (of these pages) marked as misdated, by page and time: no other call returns them."""
        ...

    def withdraw(self, page: IntArray, time: FloatArray) -> None:
        """Withdraw visits: no reader sees them any more, unless they are recorded again."""
        ...

    def histories(
        self,
        *,
        host: int | None = None,
        pages: IntArray | None = None,
        since: float | None = None,
        until: float | None = None,
        kind: ChangeKind | None = None,
    ) -> Histories:
        """Histories of the selected visits, in one pass. Pages without a visit have no row.

        The first observation inside the span opens a history. With a ``kind``, only changes of that kind count.
        """
        ...

    def failing(self, limit: int, *, host: int | None = None) -> FailingPages:
        """Pages (of a host) whose last visit by a worker failed, latest first, at most ``limit``."""
        ...

    def validators(self, pages: IntArray) -> list[Validators]:
        """The last validators of each page, in order. An id that is no page is a ``KeyError``."""
        ...

    def set_gone(self, pages: IntArray, gone: BoolArray) -> None:
        """Set for distinct pages whether the last response was that there is no such page: for imported results."""
        ...

    def respell(self, pages: IntArray, urls: Sequence[str]) -> None:
        """Set another spelling, with the same key, of the URLs of distinct pages: the target of a redirect.

        Raises:
            ValueError: a URL names another page.
        """
        ...

    def fingerprints(self, pages: IntArray) -> list[bytes]:
        """The fingerprint of each page when its text was last new, in order; empty where none is stored."""
        ...

    def noise(self, hosts: IntArray | None = None) -> NoiseCounts:
        """How often parts of pages were compared and differed, by host, page and part: of all hosts, or of these."""
        ...

    def drop_noise(self, hosts: IntArray) -> int:
        """Delete all evidence on the parts of pages of these hosts; return the number of rows."""
        ...

    def trim_noise(self, host: int, parts: IntArray, pages: IntArray) -> None:
        """Delete the evidence on some parts of a host, and all evidence of some of its pages."""
        ...

    def record_links(self, source: IntArray, target: IntArray, time: FloatArray) -> None:
        """Record links seen at a time: the first time of a link stays, the latest replaces the last one."""
        ...

    def outlinks(self, pages: IntArray) -> LinkRows:
        """Every link ever seen on these pages, by source and target."""
        ...

    def add_claims(self, claims: ClaimColumns, mark: ImportMark | None = None) -> int:
        """Add claims of sites about their own changes; return how many were new."""
        ...

    def claims(self, pages: IntArray) -> ClaimColumns:
        """The claims about these pages, by page and time."""
        ...

    def begin_site_capture(self, site: str, terms: str, *, delay: float, now: float, known: FoundPages) -> int:
        """Add a capture that starts, with the pages known beforehand; return its id.

        ``terms`` is the order, as JSON; ``delay`` the seconds of a slot. From here on steps are recorded with their
        visits (see ``record``).
        """
        ...

    def site_captures(self, *, only: IntArray | None = None) -> list[SiteCapture]:
        """Every capture of a site, oldest first, or ``only`` these numbers."""
        ...

    def latest_site_captures(self, before: int, limit: int) -> list[int]:
        """The numbers of at most ``limit`` captures with a number below ``before``, latest first."""
        ...

    def site_log(self, capture: int) -> SiteLog:
        """The pages of a capture in the order found, and its steps in the order made."""
        ...

    def site_steps(self, capture: int, every: int) -> list[SiteStep]:
        """One of ``every`` steps of a capture, the first included, in the order made: enough for a plot."""
        ...

    def site_counts(self, capture: int) -> SiteCounts:
        """The progress of a capture, for displays. O(steps), but returns only counts."""
        ...

    def finish_site_capture(self, capture: int, statement: str, now: float) -> None:
        """Record that a capture is complete, and its quality, as JSON."""
        ...

    def save_state(self, name: str, state: bytes, now: float) -> None:
        """Store a policy's state under a name, replacing the last one."""
        ...

    def load_state(self, name: str) -> bytes | None:
        """The state stored under a name, ``None`` if there is none."""
        ...


class CaptureIndex(PageTable, Protocol):
    """The port for captures: where their bytes lie, by page, time and key, and how far other archives were read.

    Under the rules of :class:`Store`.
    """

    def captures(self, pages: IntArray) -> list[CaptureRecord]:
        """The places of the captures of these pages, by page and time."""
        ...

    def add_captures(
        self, captures: CaptureColumns, mark: ImportMark | None = None, *, located: bool = False, restart: bool = False
    ) -> tuple[int, int]:
        """Add imported captures, and how far their source was read; return how many were new and how many improved.

        Of several records of one capture (same page, same time) the best is kept, whichever came first: a response
        before a failure, one with a digest before one without. With ``located`` the bytes lie where the captures say,
        and known captures are found there from now on. If a capture differs from its earlier record, its visit is
        withdrawn. A visit of our own stays as it is.

        Nothing is classified. The pages of captures that are new or improved, or all of them if ``restart``, are marked
        in the same transaction as waiting to be classified and to be read.
        """
        ...

    def capture_columns(self, pages: IntArray) -> CaptureColumns:
        """All captures of these pages, by page and time."""
        ...

    def captures_of_page(self, page: int, *, after: float, limit: int) -> CaptureColumns:
        """The first ``limit`` captures of a page with time > after, by time: for pages with very many."""
        ...

    def capture_counts(self, pages: IntArray) -> IntArray:
        """The number of captures of each of these pages, in order."""
        ...

    def capture_offsets(self, file: str) -> IntArray:
        """The offsets of the captures in an archive file, ascending. Reads every capture once."""
        ...

    def unjudged(self) -> IntArray:
        """Pages with new captures whose visits are not derived from their digests yet, ascending."""
        ...

    def set_judged(self, pages: IntArray) -> None:
        """Mark that the visits of these pages are derived from the digests of their captures."""
        ...

    def unread(self, files: Sequence[str] | None = None) -> IntArray:
        """Pages with new captures whose visits are not derived from their bytes yet, ascending.

        All of them, or those with a capture in one of these archive files.
        """
        ...

    def unread_files(self) -> list[str]:
        """Archive files with captures of unread pages, as far as known."""
        ...

    def set_read(self, pages: IntArray) -> None:
        """Mark that the visits of these pages are derived from the bytes of their captures, where there are any."""
        ...

    def add_mementos(self, page: IntArray, time: FloatArray, question: int, uri: Sequence[str]) -> None:
        """Queue captures of another archive for download of their bytes from these URIs.

        Captures that were fetched or spared before stay so. A capture that one archive did not serve waits again if
        another one lists it.
        """
        ...

    def mementos(self, question: int, state: MementoState) -> tuple[IntArray, FloatArray]:
        """Page and time of the captures of a query in a state, ascending."""
        ...

    def memento_uri(self, page: int, time: float) -> str:
        """The URI of a capture's bytes in its archive; empty if unknown."""
        ...

    def set_mementos(self, page: IntArray, time: FloatArray, state: MementoState) -> None:
        """Set the state of captures that waited for their bytes."""
        ...

    def memento_counts(self, question: int) -> dict[MementoState, int]:
        """The number of captures of a query in each state."""
        ...

    def retry_mementos(self, question: int) -> None:
        """Queue the captures of a query again that an archive did not serve."""
        ...

    def resources(self, pages: IntArray | None = None) -> IntArray:
        """Pages known only as resources of imported archives, ascending: all, or those among ``pages``.

        Style sheets, images, robots.txt and the like have captures and visits, but are not revisited. A resource with
        an importance above 0 is a page like any other. O(resources).
        """
        ...

    def set_resources(self, pages: IntArray, are: BoolArray) -> None:
        """Set which of these distinct pages are resources. Importance and due times stay."""
        ...

    def set_import_mark(self, mark: ImportMark) -> None:
        """Set how far a source was read, replacing the last mark."""
        ...

    def import_mark(self, source: str) -> ImportMark | None:
        """How far a source was read; ``None`` if never."""
        ...

    def import_sources(self) -> list[str]:
        """Every source that was ever read, sorted: paths of files, URLs, and uploads."""
        ...

    def record_upload(self, file: UploadedFile) -> None:
        """Record that an archive file is in object storage, replacing what was recorded of it."""
        ...

    def uploaded_file(self, name: str) -> UploadedFile | None:
        """Where an archive file was uploaded to; ``None`` if nowhere."""
        ...

    def uploaded_files(self) -> list[UploadedFile]:
        """Every uploaded archive file, by name."""
        ...

    def captures_between(
        self, page: int, since: float, until: float, limit: int, *, backwards: bool = False
    ) -> CaptureColumns:
        """At most ``limit`` captures of a page with since <= time <= until, by time, or from the last to the first.

        The cost depends on the result, not on the number of captures.
        """
        ...

    def capture_ends(self, page: int) -> CaptureEnds | None:
        """First, last and number of the captures of a page; ``None`` if it has none. Reads each of them."""
        ...

    def captures_by_key(self, keys: KeyRange, limit: int, skip: int = 0) -> KeyedCaptures:
        """At most ``limit`` captures of all pages in a range of keys, by key (byte by byte) and time.

        The first ``skip`` are left out. The cost depends on what is skipped and returned, and on pages without captures
        in between.
        """
        ...

    def count_by_key(self, keys: KeyRange) -> int:
        """The number of captures in a range of keys and time. Reads each of them."""
        ...

    def drop_captures(self, page: IntArray, time: FloatArray) -> int:
        """Delete imported captures, and withdraw their visits; return how many there were.

        Captures of our own visits stay: their bytes are in our own files. The pages wait to be classified again.
        """
        ...

    def captures_after(self, page: int, time: float, limit: int) -> CaptureColumns:
        """The first ``limit`` captures after a page and time, by page and time: to read all of them in chunks."""
        ...

    def restore_captures(self, captures: Sequence[CaptureRecord]) -> int:
        """Add the places of our own captures that the store lacks; return how many it lacked."""
        ...

    def last_offsets(self) -> dict[str, int]:
        """The offset of our last capture in each archive file. Reads every capture once."""
        ...


class StoreMaintenance(Protocol):
    """Checks, repairs and totals. Under the rules of :class:`Store`."""

    def engine_faults(self, *, thorough: bool) -> list[str]:
        """Faults that the database engine finds in its own file; ``thorough`` also compares indexes with tables.

        PostgreSQL is not checked: it checks its pages when it reads them.
        """
        ...

    def rebuild_indexes(self) -> None:
        """Rebuild all indexes of an SQLite file from the tables."""
        ...

    def check_derived(self, now: float, horizon: ClockHorizon, tell: Tell, *, repair: bool) -> list[StoreInconsistency]:
        """Compare every derived table with its source, and repair it if ``repair``.

        Visits, captures and pages are never changed. Runs in short transactions, so a crawl may run beside it; memory
        does not grow with the store.
        """
        ...

    def forget_validators(self, pages: IntArray) -> int:
        """Let the next requests for these pages carry neither ETag nor Last-Modified; return the number of pages."""
        ...

    def robots_copies_after(self, origin: str, limit: int) -> list[tuple[RobotsCopy, bool]]:
        """The first ``limit`` copies of robots.txt after an origin, and whether the text of each can be read."""
        ...

    def forget_robots_copies(self, origins: Sequence[str], now: float) -> None:
        """Delete copies of robots.txt: every worker reads them again before anything else of their hosts."""
        ...

    def rough_size(self) -> tuple[int, int]:
        """The largest page id, and the approximate number of visits. Cheap, whatever the size."""
        ...

    def counts(self, now: float) -> StoreCounts:
        """The size of the store, and the number of due pages. Reads every page once."""
        ...

    def browse_pages(self, query: PageQuery, now: float) -> PageRows:
        """One screen of pages, in an order, from a row on. Costs the same anywhere in the list."""
        ...

    def host_counts(self, now: float) -> HostCounts:
        """Pages of each host: how many there are, are due, are never due, fail. Reads every page once."""
        ...


@runtime_checkable
class Store(ScheduleStore, HistoryStore, CaptureIndex, Coordination, ClientPages, StoreMaintenance, Protocol):
    """Hosts, pages, visits, links, captures, schedule and policy state.

    Every call is one transaction: when it returns, its effect is visible to every other process and survives the death
    of this one; when it raises, there is no effect. All times are seconds since the epoch. Threads may share a store
    (calls then wait for each other), and several processes may open it.

    After a lost connection the next call connects again. Read-only calls are repeated automatically. A call that writes
    raises if it cannot tell whether its commit arrived; repeating it is safe, because every writing call is idempotent.
    (Only the counts of noise and validator trust may then count twice.)

    Calls raise :class:`~recrawl.errors.StoreError` for what the database refuses, :class:`KeyError` for an id that is
    no page where that is said, and nothing else.
    """

    def close(self) -> None:
        """Close files and connections. Leases stay until they expire."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_error: object) -> None: ...
