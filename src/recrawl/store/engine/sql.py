"""The store over any database engine: each call of ``base.Store`` as one transaction."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Self, Unpack

import numpy as np

from recrawl.model import (
    ANSWERED,
    VISIT_COLUMNS,
    AnyArray,
    BoolArray,
    ChangeKind,
    FloatArray,
    Histories,
    IntArray,
    NoiseCounts,
    Page,
    Pages,
    Validators,
    Verdict,
    Visits,
)
from recrawl.model.captures import UploadedFile
from recrawl.store import (
    archives,
    browse,
    bucket_ownership,
    discovery,
    history,
    learned_state,
    page_leases,
    recording,
    site_captures,
)
from recrawl.store.base import VisitFacts
from recrawl.store.browse import HostCounts, PageQuery, PageRows
from recrawl.store.checks import SqlChecks
from recrawl.store.client_pages import SqlClientPages
from recrawl.store.coordination import SqlCoordination
from recrawl.store.engine.database import Database, DatabaseSession
from recrawl.store.history import LOOK, VisitSelection, standing, standing_observations
from recrawl.store.learned_state import SqlRobots
from recrawl.store.recording import AheadOfClock, MisdatedVisits, check_known, noted
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
    LeasedPages,
    LinkRows,
    MementoState,
    SiteCapture,
    SiteCounts,
    SiteLog,
    SiteStep,
    StoreCounts,
    VisitCounts,
)


def set_source(session: DatabaseSession, pages: IntArray, method: str, options: str) -> None:
    """Set the access method and options of these pages; without a method, the default access."""
    check_known(session, pages)
    distinct = np.unique(pages)
    if not len(distinct):
        return
    if method:
        given = ([value] * len(distinct) for value in (method, options))
        session.apply(session.statements.live.set_sources, distinct, *given)
    else:
        session.run(session.statements.live.drop_sources, distinct)


def sources(session: DatabaseSession, pages: IntArray | None) -> dict[int, tuple[str, str]]:
    """Access method and options of those of these pages, or of all, that have their own."""
    if pages is None:
        rows = session.rows(session.statements.live.all_sources)
    elif not len(pages) or not session.rows(session.statements.live.any_source):
        return {}
    else:
        rows = session.rows(session.statements.live.sources, np.unique(pages))
    return {page: (method, options) for page, method, options in rows}


def set_control(session: DatabaseSession, name: str, value: str | None, now: float) -> None:
    """Store a control. A withdrawn control keeps its row, with the time of the withdrawal."""
    session.run(session.statements.live.set_control, name, value, now)


def controls(session: DatabaseSession) -> dict[str, str]:
    """Every control in force."""
    return dict(session.rows(session.statements.live.controls))


def controls_changed(session: DatabaseSession) -> float:
    """When a control was last set or withdrawn; -inf if never."""
    [(changed,)] = session.rows(session.statements.live.controls_changed)
    return float("-inf") if changed is None else float(changed)


_VISIT = np.dtype(list(VISIT_COLUMNS.items()))
_TIME = np.dtype([("time", np.float64)])


def latest_visits(session: DatabaseSession, limit: int, host: int | None) -> Visits:
    """The latest visits (of a host), latest first.

    Segments hold visits in the order of recording, which need not be that of time. So the engine sorts the times of
    each segment that may have some of the latest; then the visits from the earliest of these on are read. Where
    records were replaced or taken back there may be too few, and it looks further back.
    """
    wanted = limit
    while True:
        since = _time_of(session, wanted, host)
        visits = _since(session, since, host)
        if len(visits) >= limit or np.isneginf(since):
            return visits.take(np.lexsort((visits.page, -visits.time))[:limit])
        wanted *= 2


def _time_of(session: DatabaseSession, wanted: int, host: int | None) -> float:
    """The time of the earliest of the latest N records; -inf if there are fewer."""
    times = np.empty(0)
    for segment, last in _segments(session):
        if len(times) == wanted and last < times[-1]:
            break
        if host is None:
            found = session.table(_TIME, session.statements.latest_times, segment, wanted)
        else:
            found = session.table(_TIME, session.statements.latest_times_of_host, segment, host, wanted)
        times = np.sort(np.concatenate([times, found["time"]]))[::-1][:wanted]
    return float(times[-1]) if len(times) == wanted and wanted else -np.inf


def _since(session: DatabaseSession, since: float, host: int | None) -> Visits:
    parts = []
    # The later record stands, so segments are joined in the order of recording.
    for segment in sorted(segment for segment, last in _segments(session) if last >= since):
        if host is None:
            rows = session.table(_VISIT, session.statements.visits_since, segment, since)
        else:
            rows = session.table(_VISIT, session.statements.visits_since_of_host, segment, since, host)
        parts.append(Visits(*(np.ascontiguousarray(rows[name]) for name in VISIT_COLUMNS)))
    return standing(Visits.concatenate(parts))


def _segments(session: DatabaseSession) -> list[tuple[int, float]]:
    """Segments and their latest time, latest first; an open one may have any."""
    rows = session.rows(session.statements.segment_ends)
    ends = [(int(segment), np.inf if last is None else float(last)) for segment, last in rows]
    return sorted(ends, key=lambda end: -end[1])


def rough_size(session: DatabaseSession) -> tuple[int, int]:
    """The largest page id and the visits of all segments. O(segments)."""
    [(pages,)] = session.rows(session.statements.last_page)
    [(_, visits)] = session.rows(session.statements.segments)
    return int(pages), int(visits)


def counts(session: DatabaseSession, now: float) -> StoreCounts:
    """Totals. Triggers keep those of pages, hosts, links and captures. O(due pages), and visits as they are counted."""
    rows = Counter({name: int(count) for name, count in session.rows(session.statements.row_counts)})
    [(leased,)] = session.rows(session.statements.count_leases)
    rewritten = session.rows(session.statements.any_mark) or noted(session).visits
    looked = _standing if rewritten else _recorded
    visits, changed, failed = looked(session)
    return StoreCounts(
        pages=rows["page"],
        hosts=rows["host"],
        visits=visits,
        changed=changed,
        failed=failed,
        links=rows["link"],
        captures=rows["capture"],
        leased=int(leased),
        due=page_leases.backlog(session, now).due,
    )


def _recorded(session: DatabaseSession) -> tuple[int, int, int]:
    """Visits of full segments were counted when they were sealed, the others are counted here."""
    [sealed] = session.rows(session.statements.count_sealed)
    visits, changed, failed = (
        int(old) + new
        for old, new in zip(sealed, _counted(session.table(LOOK, session.statements.observations_of_open)), strict=True)
    )
    return visits, changed, failed


def _standing(session: DatabaseSession) -> tuple[int, int, int]:
    """Count visits one by one: imports reclassify and withdraw visits, and others are misdated. O(visits)."""
    return _counted(standing_observations(session, VisitSelection()))


def _counted(observations: AnyArray | dict[str, AnyArray]) -> tuple[int, int, int]:
    return (
        len(observations["page"]),
        int(np.count_nonzero(observations["verdict"] == Verdict.CHANGED)),
        int(np.count_nonzero(observations["outcome"] > ANSWERED)),
    )


class SqlArchives:
    """See :class:`recrawl.store.base.CaptureIndex` for what each call promises."""

    _database: Database

    def captures(self, pages: IntArray) -> list[CaptureRecord]:
        """The locations of the captures of these pages."""
        return self._database.read(lambda session: recording.captures_of(session, pages))

    def add_captures(
        self, captures: CaptureColumns, mark: ImportMark | None = None, *, located: bool = False, restart: bool = False
    ) -> tuple[int, int]:
        """Note captures made elsewhere, and how far their source was read."""
        return self._database.write(
            lambda session: archives.add_captures(session, captures, mark, located=located, restart=restart)
        )

    def capture_columns(self, pages: IntArray) -> CaptureColumns:
        """Captures of these pages, by page and time."""
        return self._database.read(lambda session: archives.capture_columns(session, pages))

    def captures_of_page(self, page: int, *, after: float, limit: int) -> CaptureColumns:
        """The first captures of a page after a time."""
        return self._database.read(lambda session: archives.captures_of_page(session, page, after, limit))

    def capture_counts(self, pages: IntArray) -> IntArray:
        """How many captures each page has."""
        return self._database.read(lambda session: archives.capture_counts(session, pages))

    def capture_offsets(self, file: str) -> IntArray:
        """Where the captures in an archive file begin."""
        return self._database.read(lambda session: recording.capture_offsets(session, file))

    def unjudged(self) -> IntArray:
        """Pages with captures that are not classified yet."""
        return self._database.read(lambda session: archives.waiting(session, session.statements.unjudged))

    def set_judged(self, pages: IntArray) -> None:
        """Mark the captures of these pages as classified."""
        self._database.write(lambda session: archives.wait_no_more(session, session.statements.drop_unjudged, pages))

    def unread(self, files: Sequence[str] | None = None) -> IntArray:
        """Pages whose archived bytes wait to be read."""
        if files is not None:
            return self._database.read(lambda session: archives.unread_in(session, files))
        return self._database.read(lambda session: archives.waiting(session, session.statements.unread))

    def unread_files(self) -> list[str]:
        """Archive files with captures of unread pages."""
        return [file for (file,) in self._database.read(lambda session: session.rows(session.statements.unread_files))]

    def set_read(self, pages: IntArray) -> None:
        """Mark the archived bytes of these pages as read."""
        self._database.write(lambda session: archives.wait_no_more(session, session.statements.drop_unread, pages))

    def add_mementos(self, page: IntArray, time: FloatArray, question: int, uri: Sequence[str]) -> None:
        """Let captures wait for their bytes."""
        self._database.write(lambda session: archives.add_mementos(session, page, time, question, uri))

    def mementos(self, question: int, state: MementoState) -> tuple[IntArray, FloatArray]:
        """The captures of a question in a state."""
        return self._database.read(lambda session: archives.mementos(session, question, state))

    def memento_uri(self, page: int, time: float) -> str:
        """Where the bytes of a capture are given."""
        rows = self._database.read(lambda session: session.rows(session.statements.memento_uri, page, time))
        return str(rows[0][0]) if rows else ""

    def set_mementos(self, page: IntArray, time: FloatArray, state: MementoState) -> None:
        """What became of captures that waited."""
        self._database.write(lambda session: archives.set_mementos(session, page, time, state))

    def memento_counts(self, question: int) -> dict[MementoState, int]:
        """How many captures of a question are in each state."""
        rows = self._database.read(lambda session: session.rows(session.statements.memento_counts, question))
        return {MementoState(state): int(count) for state, count in rows}

    def retry_mementos(self, question: int) -> None:
        """What an archive did not give waits once more."""
        self._database.write(lambda session: session.run(session.statements.retry_mementos, question))

    def resources(self, pages: IntArray | None = None) -> IntArray:
        """Imported pages that are not revisited."""
        return self._database.read(lambda session: archives.resources(session, pages))

    def set_resources(self, pages: IntArray, are: BoolArray) -> None:
        """Note which pages are resources."""
        self._database.write(lambda session: archives.set_resources(session, pages, are))

    def add_claims(self, claims: ClaimColumns, mark: ImportMark | None = None) -> int:
        """Store claims of sites about their changes."""
        return self._database.write(lambda session: archives.add_claims(session, claims, mark))

    def claims(self, pages: IntArray) -> ClaimColumns:
        """The claims about these pages."""
        return self._database.read(lambda session: archives.claims_of(session, pages))

    def set_import_mark(self, mark: ImportMark) -> None:
        """Note how far a source was read."""
        self._database.write(lambda session: archives.set_mark(session, mark))

    def import_mark(self, source: str) -> ImportMark | None:
        """How far a source was read."""
        return self._database.read(lambda session: archives.mark_of(session, source))

    def import_sources(self) -> list[str]:
        """Everything that was ever read, sorted."""
        return self._database.read(lambda session: sorted(one for (one,) in session.rows(session.statements.sources)))


class SqlCaptureIndex:
    """See :class:`recrawl.store.base.CaptureIndex` for what each call promises."""

    _database: Database

    def record_upload(self, file: UploadedFile) -> None:
        """Record that an archive file is in object storage."""
        self._database.write(lambda session: archives.record_upload(session, file))

    def uploaded_file(self, name: str) -> UploadedFile | None:
        """Where an archive file was uploaded to."""
        found = self._database.read(lambda session: session.rows(session.statements.upload, name))
        return UploadedFile(*found[0]) if found else None

    def uploaded_files(self) -> list[UploadedFile]:
        """Every uploaded archive file."""
        found = self._database.read(lambda session: session.rows(session.statements.uploads))
        return [UploadedFile(*row) for row in found]

    def captures_between(
        self, page: int, since: float, until: float, limit: int, *, backwards: bool = False
    ) -> CaptureColumns:
        """Captures of a page in a span of time."""
        return self._database.read(
            lambda session: archives.captures_between(session, page, since, until, limit, backwards=backwards)
        )

    def capture_ends(self, page: int) -> CaptureEnds | None:
        """First, last and number of the captures of a page."""
        return self._database.read(lambda session: archives.capture_ends(session, page))

    def captures_by_key(self, keys: KeyRange, limit: int, skip: int = 0) -> KeyedCaptures:
        """Captures of the pages in a range of keys."""
        return self._database.read(lambda session: archives.captures_by_key(session, keys, limit, skip))

    def count_by_key(self, keys: KeyRange) -> int:
        """How many captures the pages in a range of keys have."""
        return self._database.read(lambda session: archives.count_by_key(session, keys))

    def last_page(self) -> int:
        """The largest id of a page."""
        return self._database.read(lambda session: int(session.rows(session.statements.last_page)[0][0]))

    def drop_captures(self, page: IntArray, time: FloatArray) -> int:
        """Delete captures that were imported from the index of an archive."""
        return self._database.write(lambda session: archives.drop_captures(session, page, time))


class SqlStore(SqlArchives, SqlCaptureIndex, SqlRobots, SqlChecks, SqlCoordination, SqlClientPages):
    """A store in a database. See :class:`recrawl.store.base.Store` for what each call promises."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._spans = history.PageSpans()

    def discover(self, urls: Sequence[str], now: float | FloatArray, *, importance: float = 1.0) -> IntArray:
        """The id of the page each URL names, added if it is new; -1 where it is not an http(s) URL."""
        pages, names = discovery.parse(urls)
        ids = self._database.read(lambda session: discovery.known(session, list(pages)))
        new = {name: found for name, found in pages.items() if name not in ids}
        if new:  # known pages cost no write, and do not wait for one
            heard = discovery.first_found(new, names, now)
            ids |= self._database.write(lambda session: discovery.add(session, new, heard, importance))
        return np.array([discovery.NO_PAGE if name is None else ids[name] for name in names], np.int64)

    def find(self, url: str) -> Page | None:
        """The page a URL names, if it is known."""
        return self._database.read(lambda session: discovery.find(session, url))

    def pages(self, pages: IntArray | None = None) -> Pages:
        """Pages as columns by ascending id."""
        return self._database.read(lambda session: discovery.columns(session, pages))

    def pages_in(self, buckets: IntArray) -> Pages:
        """Pages of hosts in these buckets."""
        return self._database.read(lambda session: discovery.in_buckets(session, buckets))

    def urls(self, pages: IntArray) -> list[str]:
        """The URL of each page."""
        return self._database.read(lambda session: discovery.urls(session, pages))

    def validators(self, pages: IntArray) -> list[Validators]:
        """The validators of each page at its last answer."""
        return self._database.read(lambda session: discovery.validators(session, pages))

    def set_importance(self, pages: IntArray, importance: FloatArray) -> None:
        """Set the weight of pages."""
        self._database.write(lambda session: discovery.set_importance(session, pages, importance))

    def set_gone(self, pages: IntArray, gone: BoolArray) -> None:
        """Note whether pages are gone."""
        differ = self._database.read(lambda session: discovery.gone_differs(session, pages, gone))
        if bool(differ.any()):
            self._database.write(lambda session: discovery.set_gone(session, pages[differ], gone[differ]))

    def respell(self, pages: IntArray, urls: Sequence[str]) -> None:
        """Write the URLs of pages in another way."""
        self._database.write(lambda session: discovery.respell(session, pages, urls))

    def hosts(self, hosts: IntArray | None = None) -> HostRows:
        """Hosts as columns by ascending id."""
        return self._database.read(lambda session: discovery.hosts(session, hosts))

    def paused_hosts(self) -> HostRows:
        """Hosts that are paused."""
        return self._database.read(discovery.paused_hosts)

    def set_host(self, hosts: IntArray, *, ready_at: FloatArray | None = None, delay: FloatArray | None = None) -> None:
        """Set when the next request to hosts may start, or the pause after each request."""

        def work(session: DatabaseSession) -> None:
            if ready_at is not None:
                session.apply(session.statements.set_ready, hosts, ready_at)
            if delay is not None:
                session.apply(session.statements.set_delay, hosts, delay)

        self._database.write(work)

    def pause(self, hosts: IntArray) -> None:
        """Lease no page of these hosts."""
        self._set_paused(hosts, 1)

    def resume(self, hosts: IntArray) -> None:
        """Lease pages of these hosts again."""
        self._set_paused(hosts, 0)

    def _set_paused(self, hosts: IntArray, paused: int) -> None:
        if len(hosts):
            self._database.write(lambda session: session.run(session.statements.pause_hosts, paused, hosts))

    def record(self, visits: Visits, **more: Unpack[VisitFacts]) -> None:
        """Append visits with all that follows from them; when it returns, the batch is acknowledged."""
        self._database.write(lambda session: recording.record(session, visits, **more))

    def record_ahead(self, visits: Visits, **more: Unpack[VisitFacts]) -> Callable[[], object]:
        """As :meth:`record`, without the wait for the disk: the returned function waits, also in a thread."""
        return self._database.write_ahead(lambda session: recording.record(session, visits, **more))

    def visits(
        self,
        *,
        host: int | None = None,
        pages: IntArray | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> Visits:
        """Visits with all columns, by page and time."""
        return self._database.read(
            lambda session: history.load_visits(session, history.select(session, host, pages, since, until))
        )

    def observations(
        self, pages: IntArray | None = None, *, since: float | None = None, beside: bool = False
    ) -> Visits:
        """Visits, as far as histories need them."""
        if beside:
            with closing(self._database.beside()) as other:
                return other.read(
                    lambda session: history.load_observations(
                        session, history.select(session, None, pages, since, None)
                    )
                )
        if pages is None or since is not None:
            return self._database.read(
                lambda session: history.load_observations(session, history.select(session, None, pages, since, None))
            )
        return self._database.read(lambda session: history.observations_of_pages(session, pages, self._spans))

    def count_before(self, time: float) -> VisitCounts:
        """Count the visits before a time."""
        return self._database.read(lambda session: history.count_before(session, time))

    def latest_visits(self, limit: int, *, host: int | None = None) -> Visits:
        """The latest visits, latest first."""
        return self._database.read(lambda session: latest_visits(session, limit, host))

    def repair_ahead(self, now: float, *, lease_time: float) -> AheadOfClock:
        """Mark and repair what is dated after the clock."""
        return self._database.write(lambda session: recording.repair_ahead(session, now, lease_time))

    def misdated(self) -> MisdatedVisits:
        """How many visits are misdated."""
        return self._database.read(recording.noted)

    def misdated_visits(self, pages: IntArray | None = None) -> Visits:
        """The visits that are misdated."""

        def work(session: DatabaseSession) -> Visits:
            if not recording.noted(session).visits:
                return Visits.empty()
            return history.load_misdated(session, history.select(session, None, pages, None, None))

        return self._database.read(work)

    def time(self) -> float | None:
        """The time of the database server."""
        return self._database.time()

    def withdraw(self, page: IntArray, time: FloatArray) -> None:
        """Withdraw visits."""
        if len(page):
            self._database.write(lambda session: history.withdraw(session, page, time))

    def histories(
        self,
        *,
        host: int | None = None,
        pages: IntArray | None = None,
        since: float | None = None,
        until: float | None = None,
        kind: ChangeKind | None = None,
    ) -> Histories:
        """Histories of the visits in the selection, in one pass."""
        return self._database.read(
            lambda session: history.load_histories(session, history.select(session, host, pages, since, until), kind)
        )

    def failing(self, limit: int, *, host: int | None = None) -> FailingPages:
        """Pages whose last visit of our own failed."""
        return self._database.read(lambda session: learned_state.failing(session, limit, host))

    def fingerprints(self, pages: IntArray) -> list[bytes]:
        """The fingerprint of each page."""
        return self._database.read(lambda session: learned_state.fingerprints(session, pages))

    def noise(self, hosts: IntArray | None = None) -> NoiseCounts:
        """How often parts of pages differed."""
        return self._database.read(lambda session: learned_state.noise(session, hosts))

    def drop_noise(self, hosts: IntArray) -> int:
        """Forget all evidence on parts of these hosts."""
        return self._database.write(lambda session: learned_state.drop_noise(session, hosts))

    def trim_noise(self, host: int, parts: IntArray, pages: IntArray) -> None:
        """Forget the evidence on some parts and pages of a host."""
        self._database.write(lambda session: learned_state.trim_noise(session, host, parts, pages))

    def set_source(self, pages: IntArray, method: str, options: str = "{}") -> None:
        """Set the access method of pages."""
        self._database.write(lambda session: set_source(session, pages, method, options))

    def sources(self, pages: IntArray | None = None) -> dict[int, tuple[str, str]]:
        """The access methods of those of these pages that have one."""
        return self._database.read(lambda session: sources(session, pages))

    def set_control(self, name: str, value: str | None, now: float) -> None:
        """Set or withdraw a control, which running workers read."""
        self._database.write(lambda session: set_control(session, name, value, now))

    def controls(self) -> dict[str, str]:
        """The controls in force."""
        return self._database.read(controls)

    def controls_changed(self) -> float:
        """When a control was last set or withdrawn."""
        return self._database.read(controls_changed)

    def record_links(self, source: IntArray, target: IntArray, time: FloatArray) -> None:
        """Note links seen at a time."""
        if len(source):
            self._database.write(lambda session: recording.record_links(session, source, target, time))

    def outlinks(self, pages: IntArray) -> LinkRows:
        """Every link ever seen on these pages."""
        return self._database.read(lambda session: recording.outlinks(session, pages))

    def lease(  # noqa: PLR0913 - who, when, and how much
        self, worker: str, now: float, limit: int, *, per_host: int = 1, ttl: float, owned: bool = False
    ) -> LeasedPages:
        """Lease pages that are due, earliest first."""
        return self._database.write(
            lambda session: page_leases.lease(session, worker, now, limit, per_host=per_host, ttl=ttl, owned=owned),
            lasting=False,
        )

    def renew(self, worker: str, now: float, *, ttl: float, pages: IntArray | None = None) -> int:
        """Extend leases."""
        return self._database.write(lambda session: page_leases.renew(session, worker, now, ttl, pages), lasting=False)

    def acknowledge(self, worker: str, pages: IntArray | None = None) -> int:
        """Return leases without a visit."""

        def work(session: DatabaseSession) -> int:
            mine = page_leases.held_pages(session, worker) if pages is None else pages
            return len(page_leases.give_back(session, worker, mine, page_leases.claim_hosts(session, mine)))

        return self._database.write(work, lasting=False)

    def hold_host(self, worker: str, host: int, now: float, *, ttl: float) -> HostHold:
        """Reserve a host for a request that belongs to no page."""
        return self._database.write(
            lambda session: page_leases.hold_host(session, worker, host, now, ttl), lasting=False
        )

    def free_host(self, worker: str, host: int, page: int, ready: float) -> None:
        """Release a host that ``hold_host`` reserved."""
        self._database.write(lambda session: page_leases.free_host(session, worker, host, page, ready), lasting=False)

    def release_worker(self, worker: str, now: float, *, pause: float, unless: tuple[str, str] | None = None) -> int:
        """Release all leases of a dead worker."""

        def work(session: DatabaseSession) -> int:
            if unless is not None and controls(session).get(unless[0]) != unless[1]:
                return -1
            return page_leases.release_worker(session, worker, now, pause)

        return self._database.write(work, lasting=False)

    def lease_holders(self) -> dict[str, int]:
        """How many leases each worker has."""
        return dict(self._database.read(lambda session: session.rows(session.statements.lease_holders)))

    def held(self, worker: str) -> IntArray:
        """The pages this worker has leases on."""
        return self._database.read(lambda session: np.sort(page_leases.held_pages(session, worker)))

    def expire(self, now: float) -> int:
        """Drop the leases that have ended."""
        return self._database.write(lambda session: page_leases.expire(session, now), lasting=False)

    def reschedule(self, pages: IntArray, due: FloatArray, *, before: FloatArray | None = None) -> None:
        """Set when pages are due."""
        last = len(pages) - 1 - np.unique(pages[::-1], return_index=True)[1]
        distinct = pages[last]

        def work(session: DatabaseSession) -> None:
            hosts = page_leases.claim_hosts(session, distinct)
            still = slice(None) if before is None else page_leases.due(session, distinct) == before[last]
            page_leases.set_due(session, distinct[still], due[last][still], hosts)

        self._database.write(work)

    def due(self, pages: IntArray) -> FloatArray:
        """When each of these pages is due."""
        return self._database.read(lambda session: page_leases.due(session, pages))

    def due_pages(self, now: float, limit: int, *, host: int | None = None) -> DuePages:
        """The pages that are due."""
        return self._database.read(lambda session: page_leases.due_pages(session, now, limit, host))

    def backlog(self, now: float) -> DueBacklog:
        """How much is due."""
        return self._database.read(lambda session: page_leases.backlog(session, now))

    def next_due(self, owner: str | None = None) -> float:
        """The earliest time at which a lease could return something."""
        return self._database.read(lambda session: page_leases.next_due(session, owner))

    def buckets(self) -> BucketRows:
        """All buckets with their owners."""
        return self._database.read(bucket_ownership.buckets)

    def claim_buckets(self, worker: str, buckets: IntArray, now: float) -> int:
        """Take buckets that nobody owns."""
        return self._database.write(
            lambda session: bucket_ownership.claim(session, worker, buckets, now), lasting=False
        )

    def plan_moves(
        self, worker: str, buckets: IntArray, heirs: Sequence[str], now: float, *, kept: IntArray | None = None
    ) -> int:
        """Name the heirs of buckets."""
        none = np.empty(0, np.int64) if kept is None else kept
        return self._database.write(
            lambda session: bucket_ownership.plan_moves(session, worker, buckets, heirs, none, now), lasting=False
        )

    def hand_over(self, worker: str, now: float, *, patience: float) -> int:
        """Give buckets to their heirs."""
        return self._database.write(
            lambda session: bucket_ownership.hand_over(session, worker, now, patience), lasting=False
        )

    def release_buckets(self, worker: str, now: float) -> int:
        """Give up all buckets of a worker."""
        return self._database.write(lambda session: bucket_ownership.release(session, worker, now), lasting=False)

    def soon_free(self, now: float, pause: float) -> float:
        """When the first host is free that has a page due and only rests between two requests."""
        return self._database.read(lambda session: page_leases.soon_free(session, now, pause))

    def quarantined(self) -> int:
        """How many pages are quarantined."""
        return self._database.read(learned_state.quarantined)

    def begin_site_capture(self, site: str, terms: str, *, delay: float, now: float, known: FoundPages) -> int:
        """Note a capture that begins."""
        return self._database.write(
            lambda session: site_captures.begin(session, site, terms, delay=delay, now=now, known=known)
        )

    def site_captures(self, *, only: IntArray | None = None) -> list[SiteCapture]:
        """Every capture of a site, or some."""
        return self._database.read(lambda session: site_captures.some_of(session, only))

    def latest_site_captures(self, before: int, limit: int) -> list[int]:
        """The numbers of the latest captures before one."""
        return self._database.read(lambda session: site_captures.latest(session, before, limit))

    def site_log(self, capture: int) -> SiteLog:
        """Pages and steps of a capture."""
        return self._database.read(lambda session: site_captures.log_of(session, capture))

    def site_steps(self, capture: int, every: int) -> list[SiteStep]:
        """Every N-th step of a site capture, with N = ``every``."""
        return self._database.read(lambda session: site_captures.some_steps(session, capture, every))

    def site_counts(self, capture: int) -> SiteCounts:
        """How far a capture is."""
        return self._database.read(lambda session: site_captures.counts_of(session, capture))

    def finish_site_capture(self, capture: int, statement: str, now: float) -> None:
        """Note that a capture is complete."""
        self._database.write(lambda session: site_captures.finish(session, capture, statement, now))

    def save_state(self, name: str, state: bytes, now: float) -> None:
        """Keep a policy's state."""
        self._database.write(lambda session: session.run(session.statements.save_state, name, state, now))

    def load_state(self, name: str) -> bytes | None:
        """A policy's state, if there is one."""
        rows = self._database.read(lambda session: session.rows(session.statements.load_state, name))
        return bytes(rows[0][0]) if rows else None

    def rough_size(self) -> tuple[int, int]:
        """The largest page id, and about how many visits there are."""
        return self._database.read(rough_size)

    def counts(self, now: float) -> StoreCounts:
        """How much there is."""
        return self._database.read(lambda session: counts(session, now))

    def browse_pages(self, query: PageQuery, now: float) -> PageRows:
        """One screen of pages."""
        return self._database.read(lambda session: browse.browse_pages(session, query, now))

    def find_host(self, name: str) -> int | None:
        """The host of a name."""
        return self._database.read(lambda session: browse.find_host(session, name))

    def host_size(self, name: str) -> int:
        """How many pages of the host of this name are due at some time."""
        rows = self._database.read(lambda session: session.rows(session.statements.host_size, name, math.inf))
        return int(rows[0][0])

    def has_wanted_pages(self) -> bool:
        """Whether any page is to be visited."""
        return bool(self._database.read(lambda session: session.rows(session.statements.any_wanted)))

    def folders_of(self, host_key: str, *, whole: bool = False) -> list[str]:
        """The folders of pages to be visited on hosts of this key, or these pages."""
        return self._database.read(lambda session: discovery.folders_of(session, host_key, whole=whole))

    def never_due(self, after: int, hosts: int) -> tuple[IntArray, IntArray, int | None]:
        """Pages that are never due on the next hosts."""
        return self._database.read(lambda session: discovery.never_due(session, after, hosts))

    def host_counts(self, now: float) -> HostCounts:
        """Pages of hosts, counted."""
        return self._database.read(lambda session: browse.host_counts(session, now))

    def close(self) -> None:
        """Close files and connections."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
