"""Checks a store against itself: every derived table is compared with its source, and repaired from it.

Derived are: counts and packs of segments (from visits), due times of hosts (from those of pages), rows of the schedule
(from pages), reservations and leases, the list of failing pages (from visits), and rows about pages that do not exist.
Visits, captures and pages are the source: they are read, never written.

Rules of this file:

1. Short transactions over ranges of ids: a crawl goes on beside a check, and memory does not grow with the store.
2. Each check sees one snapshot, and what it compares is written in one transaction: so a difference is a fault, not a
   write under way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from recrawl.model import ANSWERED, AnyArray, BoolArray, IntArray, Outcome, Verdict
from recrawl.model.arrays import ends_of_runs
from recrawl.store import history, page_leases, recording
from recrawl.store.archives import columns_of
from recrawl.store.base import ClockHorizon, LeaseRow, StoreInconsistency, Tell
from recrawl.store.discovery import key_hash
from recrawl.store.engine.database import Database, DatabaseSession
from recrawl.store.engine.statements import NOT_HELD
from recrawl.store.history import LOOK, MISDATED, SEGMENT_VISITS, WITHDRAWN
from recrawl.store.store_values import CaptureColumns, CaptureRecord
from recrawl.urls import bucket_of, surt

EXAMPLES = 5
"""Faults of a kind that are named."""
_BEFORE_ALL = -(2**62)
_FIRST_TIME, _LAST_TIME = 0.0, 4_102_444_800.0
"""1970, where broken clocks begin, and 2100."""
_KEYS = np.dtype([("page", np.int64), ("time", np.float64)])
_VISITS = np.dtype([("page", np.int64), ("time", np.float64), ("segment", np.int64), ("outcome", np.int64)])
_OUTCOMES = np.array([*Outcome, *(outcome | MISDATED for outcome in Outcome), WITHDRAWN])
Span: TypeAlias = tuple[int, int]
"""Ids above the first, up to the second."""


class InconsistencyCounts:
    """Counts faults by kind and keeps a few examples."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._repaired: dict[str, int] = {}
        self._examples: dict[str, list[str]] = {}

    def add(self, kind: str, examples: Sequence[str], count: int | None = None, *, repaired: bool = False) -> None:
        """Take faults in: as many as there are examples, unless their number is given."""
        count = len(examples) if count is None else count
        if count:
            self._counts[kind] = self._counts.get(kind, 0) + count
            self._repaired[kind] = self._repaired.get(kind, 0) + (count if repaired else 0)
            kept = self._examples.setdefault(kind, [])
            kept += examples[: EXAMPLES - len(kept)]

    def faults(self) -> list[StoreInconsistency]:
        """All of them, by kind."""
        return [
            StoreInconsistency(kind, count, tuple(self._examples[kind]), self._repaired[kind])
            for kind, count in self._counts.items()
        ]


def check_visits_of_pages(
    database: Database, span: Span, latest: float, tally: InconsistencyCounts, *, repair: bool
) -> None:
    """Each capture of our own belongs to a visit, each failing page has failed, and no visit is dated after ``latest``.

    Visits that were marked as misdated are told apart: their captures are there all the same.
    """

    def work(session: DatabaseSession) -> tuple[AnyArray, AnyArray, AnyArray]:
        statements = session.statements.checks
        captures = session.table(_KEYS, statements.captures_between, *span)
        failing = session.table(_KEYS, statements.failing_between, *span)
        ids = np.array([segment for segment, _ in session.rows(session.statements.segment_states)], np.int64)
        if not len(ids):
            return captures, failing, np.empty(0, _VISITS)
        return captures, failing, session.table(_VISITS, statements.visits_between, ids, *span)

    captures, failing, recorded = database.read(work)
    visits = recorded[np.lexsort((recorded["segment"], recorded["time"], recorded["page"]))]
    if len(visits):
        visits = visits[ends_of_runs(visits["page"], visits["time"]) & (visits["outcome"] != WITHDRAWN)]
    lost = captures[~_among(captures, visits)]
    tally.add("capture_without_visit", [_named(row) for row in lost[:EXAMPLES]], len(lost))
    outcome = visits["outcome"] % MISDATED
    wrong = failing[~np.isin(failing["page"], visits["page"][outcome > ANSWERED])]
    if len(wrong) and repair:
        pages = np.unique(wrong["page"])
        database.write(lambda session: session.run(session.statements.checks.delete_from["failing"], pages))
    tally.add("failing_wrong", [_named(row) for row in wrong[:EXAMPLES]], len(wrong), repaired=repair)
    misdated = visits[visits["outcome"] >= MISDATED]
    tally.add("visit_misdated", [_named(row) for row in misdated[:EXAMPLES]], len(misdated))
    ahead = visits[(visits["time"] > latest) & (visits["outcome"] < MISDATED)]
    tally.add("visit_ahead", [_named(row) for row in ahead[:EXAMPLES]], len(ahead))


def _among(rows: AnyArray, visits: AnyArray) -> BoolArray:
    """True where a visit with that page and time is there."""
    if not len(rows):
        return np.zeros(0, np.bool_)
    page = np.concatenate([visits["page"], rows["page"]])
    time = np.concatenate([visits["time"], rows["time"]])
    is_row = np.arange(len(page)) >= len(visits)
    order = np.lexsort((is_row, time, page))
    page, time = page[order], time[order]
    starts = np.append(True, (page[1:] != page[:-1]) | (time[1:] != time[:-1]))
    run = np.cumsum(starts) - 1
    has_visit = ~is_row[order][starts]
    there = np.empty(len(page), np.bool_)
    there[order] = has_visit[run]
    return there[len(visits) :]


def _named(row: Any) -> str:  # noqa: ANN401 - a row of a structured array
    return f"page {row['page']} at {row['time']:.6f}"


class _Segment(NamedTuple):
    """The stored counts of a segment, and the counts of its visits."""

    observations: AnyArray
    noted: tuple[Any, ...] | None
    """Visits, changed, failed, first and last time, pack; ``None`` if the segment is not listed at all."""

    def is_right(self) -> bool:
        if self.noted is None:
            return not len(self.observations)
        visits, changed, failed, first, last, pack = self.noted
        if pack is None:
            return bool(visits == len(self.observations) and last is None)
        if not len(self.observations):
            return False
        return (visits, changed, failed, first, last, bytes(pack)) == _summary(self.observations)


def _summary(observations: AnyArray) -> tuple[int, int, int, float, float, bytes]:
    """What is written beside a full segment: as :func:`segments.append` does."""
    return (
        len(observations),
        int((observations["verdict"] == Verdict.CHANGED).sum()),
        int(((observations["outcome"] > ANSWERED) & (observations["outcome"] < MISDATED)).sum()),
        float(observations["time"].min()),
        float(observations["time"].max()),
        history.pack(observations),
    )


def check_segments(database: Database, tally: InconsistencyCounts, tell: Tell, *, repair: bool) -> None:
    """Each segment has as many visits as is noted, and a full one a packed copy that says what its rows do."""
    ids = database.read(_segment_ids)
    for done, segment in enumerate(ids):
        tell("segments of visits", done, len(ids))
        found = database.read(lambda session, segment=segment: _segment(session, segment))  # type: ignore[misc]
        if not found.is_right():
            if repair:
                database.write(lambda session, segment=segment: _repair_segment(session, segment))  # type: ignore[misc]
            tally.add("segment", [f"segment {segment}"], repaired=repair)
        _check_observations(database, segment, found.observations, tally)
    tell("segments of visits", 1, 1)


def _segment_ids(session: DatabaseSession) -> list[int]:
    """Segments that are listed, and those that only visits name."""
    ids = {segment for segment, _ in session.rows(session.statements.segment_states)}
    last = _BEFORE_ALL
    while True:
        [(segment,)] = session.rows("SELECT min(segment) FROM visit WHERE segment > $1", last)
        if segment is None:
            return sorted(ids)
        ids.add(segment)
        last = segment


def _segment(session: DatabaseSession, segment: int) -> _Segment:
    observations = session.table(LOOK, session.statements.observations_of_segment, segment)
    rows = session.rows(
        "SELECT visits, changed, failed, first_time, last_time, pack FROM visit_segment WHERE id = $1", segment
    )
    return _Segment(observations, rows[0] if rows else None)


def _repair_segment(session: DatabaseSession, segment: int) -> None:
    session.rows(session.statements.checks.lock_segment, segment)
    found = _segment(session, segment)
    if found.is_right():
        return
    if found.noted is None:
        session.run("INSERT INTO visit_segment (id, visits) VALUES ($1, $2)", segment, len(found.observations))
    if not len(found.observations):  # a segment that is noted as full, and has no visits
        session.run(
            "UPDATE visit_segment SET visits = 0, changed = NULL, failed = NULL, first_time = NULL, last_time = NULL, "
            "pack = NULL WHERE id = $1",
            segment,
        )
    elif len(found.observations) >= SEGMENT_VISITS or (found.noted is not None and found.noted[-1] is not None):
        session.run(session.statements.seal_segment, *_summary(found.observations), segment)
    else:
        session.run(
            "UPDATE visit_segment SET visits = $1, first_time = NULL, last_time = NULL WHERE id = $2",
            len(found.observations),
            segment,
        )


def _check_observations(database: Database, segment: int, observations: AnyArray, tally: InconsistencyCounts) -> None:
    odd = (
        ~np.isin(observations["outcome"], _OUTCOMES)
        | ~(observations["time"] >= _FIRST_TIME)
        | ~(observations["time"] < _LAST_TIME)
    )
    tally.add("visit_invalid", [_named(row) for row in observations[odd][:EXAMPLES]], int(odd.sum()))
    lost = database.read(
        lambda session: session.rows(
            "SELECT DISTINCT page FROM visit WHERE segment = $1 "
            "AND NOT EXISTS (SELECT 1 FROM page WHERE page.id = visit.page)",
            segment,
        )
    )
    tally.add("visit_page_missing", [f"page {page}" for (page,) in lost])


# ruff: noqa: S608 - names of our own, values are always parameters


_AT_ONCE = 20_000
"""Ids that one transaction checks."""
_LEAST, _MOST = -(2**62), 2**62
"""Beyond all ids."""
_WORKER = "worker "
"""Prefix of the controls by which workers report that they live."""

Found: TypeAlias = list[tuple[int, str]]
"""Ids, each with an example in words."""


class _Check(NamedTuple):
    """One comparison over a range of ids."""

    kind: str
    query: str
    """Selects id and example of what is wrong, from the ids above $1 up to $2; further parameters follow."""
    parameters: tuple[float, ...] = ()
    repair: Callable[[DatabaseSession, IntArray], object] | None = None


def check_derived(
    database: Database, now: float, horizon: ClockHorizon, tell: Tell, *, repair: bool
) -> list[StoreInconsistency]:
    """Compare every derived table with its source, and repair it if asked to."""
    tally = InconsistencyCounts()
    [(last_page, last_host)] = database.read(
        lambda session: session.rows("SELECT (SELECT max(id) FROM page), (SELECT max(id) FROM host)")
    )
    ranges = list(_ranges(last_page or 0))
    passes: list[tuple[str, list[Span], list[_Check]]] = [
        ("pages", ranges, _page_checks(now, horizon)),
        ("hosts", list(_ranges(last_host or 0)), _host_checks(now, horizon)),
        ("captures of sites", [(_LEAST, _MOST)], _site_checks()),
    ]
    for work, parts, checks in passes:
        for done, span in enumerate(parts):
            tell(work, done, len(parts))
            for check in checks:
                _run(database, check, span, tally, repair=repair)
        tell(work, len(parts), len(parts))
    for span in _ranges(last_host or 0):
        _check_buckets(database, span, tally, repair=repair)
    for done, span in enumerate(ranges):
        tell("keys and visits of pages", done, len(ranges))
        _check_keys(database, span, tally, repair=repair)
        check_visits_of_pages(database, span, now + horizon.visit, tally, repair=repair)
    tell("keys and visits of pages", 1, 1)
    check_segments(database, tally, tell, repair=repair)
    return tally.faults()


def _ranges(last: int) -> Iterator[Span]:
    """Ranges of ids that cover all there can be, the strange ones at both ends, too."""
    edges = [_LEAST, *range(_AT_ONCE, last, _AT_ONCE), _MOST]
    return pairwise(edges)


def _run(database: Database, check: _Check, span: Span, tally: InconsistencyCounts, *, repair: bool) -> None:
    def find(session: DatabaseSession) -> Found:
        return [(row[0], str(row[1])) for row in session.rows(check.query, *span, *check.parameters)]

    found = database.read(find)
    repair_rows = check.repair
    if found and repair and repair_rows is not None:

        def work(session: DatabaseSession) -> Found:
            again = find(session)
            if again:
                repair_rows(session, np.unique(np.array([row for row, _ in again], np.int64)))
            return again

        found = database.write(work)
        tally.add(check.kind, [example for _, example in found], repaired=True)
    else:
        tally.add(check.kind, [example for _, example in found])


# -- pages ----------------------------------------------------------------------------------------

_ABOUT_PAGES = ("schedule", "lease", "fingerprint", "failing", "unjudged", "unread", "resource", "source", "memento")
"""Tables with a row for a page."""


def _page_checks(now: float, horizon: ClockHorizon) -> list[_Check]:
    there = "NOT EXISTS (SELECT 1 FROM page WHERE page.id = {0})"
    orphans = [
        _Check(
            "orphan_row",
            f"SELECT page, 'a row of {table} about page ' || page FROM {table} "
            f"WHERE page > $1 AND page <= $2 AND {there.format(f'{table}.page')}",
            repair=_deleting(table),
        )
        for table in _ABOUT_PAGES
    ]
    dangling = f"({there.format('link.source')} OR {there.format('link.target')})"
    return [
        *orphans,
        _Check(
            "page_unscheduled",
            "SELECT id, url FROM page WHERE id > $1 AND id <= $2 "
            "AND NOT EXISTS (SELECT 1 FROM schedule WHERE schedule.page = page.id)",
            repair=_schedule,
        ),
        _Check(
            "schedule_host",
            "SELECT page.id, url FROM schedule JOIN page ON page.id = schedule.page "
            "WHERE schedule.page > $1 AND schedule.page <= $2 AND schedule.host <> page.host",
            repair=_move_to_host,
        ),
        _Check(
            "due_far",
            "SELECT page, 'page ' || page FROM schedule WHERE page > $1 AND page <= $2 AND due > $3 AND due < $4",
            (now + horizon.due, np.inf),
            repair=lambda session, ids: page_leases.set_due(
                session, ids, np.full(len(ids), now), page_leases.claim_hosts(session, ids)
            ),
        ),
        _Check(
            "page_host_missing",
            "SELECT id, url FROM page WHERE id > $1 AND id <= $2 "
            "AND NOT EXISTS (SELECT 1 FROM host WHERE host.id = page.host)",
        ),
        _Check(
            "link_dangling",
            f"SELECT source, 'page ' || source || ' to page ' || target FROM link "
            f"WHERE source > $1 AND source <= $2 AND {dangling}",
            repair=lambda session, ids: session.run(session.statements.checks.drop_dangling_links, ids),
        ),
        _Check(
            "link_times",
            "SELECT source, 'page ' || source || ' to page ' || target FROM link "
            "WHERE source > $1 AND source <= $2 AND first_seen > last_seen",
            repair=lambda session, ids: session.run(session.statements.checks.order_link_times, ids),
        ),
        _Check(
            "capture_page_missing",
            "SELECT page, 'page ' || page || ' in ' || warc_file || ' at ' || warc_offset FROM capture "
            f"WHERE page > $1 AND page <= $2 AND {there.format('capture.page')}",
        ),
        _Check(
            "claim_page_missing",
            "SELECT page, 'page ' || page || ' by ' || source FROM claim "
            f"WHERE page > $1 AND page <= $2 AND {there.format('claim.page')}",
        ),
    ]


def _deleting(table: str) -> Callable[[DatabaseSession, IntArray], object]:
    return lambda session, ids: session.run(session.statements.checks.delete_from[table], ids)


def _schedule(session: DatabaseSession, pages: IntArray) -> None:
    """Give pages their row: due when they were found, if they matter at all."""
    session.run(session.statements.schedule_pages, np.inf, pages)
    _refresh(session, pages)


def _move_to_host(session: DatabaseSession, pages: IntArray) -> None:
    before = _hosts_of(session, pages)
    session.run(session.statements.checks.move_to_host, pages)
    _refresh_hosts(session, np.union1d(before, _hosts_of(session, pages)))


def _refresh(session: DatabaseSession, pages: IntArray) -> None:
    _refresh_hosts(session, _hosts_of(session, pages))


def _hosts_of(session: DatabaseSession, pages: IntArray) -> IntArray:
    rows = session.rows(session.statements.hosts_of_pages, pages)
    return np.unique(np.array([host for _, host in rows], np.int64))


def _refresh_hosts(session: DatabaseSession, hosts: IntArray) -> None:
    if len(hosts):
        session.rows(session.statements.lock_hosts, hosts)
        session.run(session.statements.checks.refresh_hosts, hosts)


# -- hosts and leases -----------------------------------------------------------------------------


def _host_checks(now: float, horizon: ClockHorizon) -> list[_Check]:
    first_due = "(SELECT min(due) FROM schedule WHERE schedule.host = host.id)"
    return [
        _Check(
            "host_next_due",
            f"SELECT id, name FROM host WHERE id > $1 AND id <= $2 AND next_due <> {first_due}",
            repair=_refresh_hosts,
        ),
        _Check(
            "host_ready_far",
            "SELECT id, name FROM host WHERE id > $1 AND id <= $2 AND ready_at > $3",
            (now + horizon.ready,),
            repair=lambda session, ids: session.run(session.statements.checks.set_ready, now, ids),
        ),
        _Check(
            "lease_wrong",
            "SELECT lease.page, 'page ' || lease.page || ' of ' || worker FROM lease "
            "LEFT JOIN host ON host.id = lease.host LEFT JOIN schedule ON schedule.page = lease.page "
            "WHERE lease.host > $1 AND lease.host <= $2 AND lease.until > $3 AND (host.id IS NULL "
            "OR host.held_by IS NULL OR host.held_by <> lease.worker OR host.held_until < lease.until "
            "OR schedule.host IS NULL OR schedule.host <> lease.host)",
            (now,),
            repair=_end_leases,
        ),
        _Check(
            "lease_far",
            "SELECT page, 'page ' || page || ' of ' || worker FROM lease WHERE host > $1 AND host <= $2 AND until > $3",
            (now + horizon.lease,),
            repair=_end_leases,
        ),
        _Check(
            "hold_far",
            "SELECT id, name || ', held by ' || held_by FROM host "
            "WHERE id > $1 AND id <= $2 AND held_by IS NOT NULL AND held_until > $3",
            (now + horizon.lease,),
            repair=_end_holds,
        ),
    ]


def _end_leases(session: DatabaseSession, pages: IntArray) -> None:
    """End leases on pages, and the holds on hosts that then have none."""
    rows = session.rows(session.statements.checks.hosts_of_leases, pages)
    hosts = np.array([host for (host,) in rows], np.int64)
    session.rows(session.statements.lock_hosts, hosts)
    session.run(session.statements.checks.delete_from["lease"], pages)
    session.run(session.statements.checks.free_hosts, hosts)


def _end_holds(session: DatabaseSession, hosts: IntArray) -> None:
    session.rows(session.statements.lock_hosts, hosts)
    session.run(session.statements.checks.drop_leases_of_hosts, hosts)
    session.run(session.statements.checks.free_hosts, hosts)


def _site_checks() -> list[_Check]:
    return [
        _Check(
            "site_capture_broken",
            "SELECT capture, 'capture ' || capture || ', step ' || step FROM site_capture_step AS s "
            "WHERE capture > $1 AND capture <= $2 AND NOT EXISTS "
            "(SELECT 1 FROM site_capture_page AS p WHERE p.capture = s.capture AND p.number = s.number)",
        ),
        _Check(
            "site_capture_broken",
            "SELECT capture, 'capture ' || capture || ', page ' || page FROM site_capture_page AS p "
            "WHERE capture > $1 AND capture <= $2 AND (NOT EXISTS (SELECT 1 FROM page WHERE page.id = p.page) "
            "OR NOT EXISTS (SELECT 1 FROM site_capture AS c WHERE c.id = p.capture))",
        ),
    ]


# -- keys -----------------------------------------------------------------------------------------


def _check_keys(database: Database, span: Span, tally: InconsistencyCounts, *, repair: bool) -> None:
    """The hash by which a page is found is that of its key, and the key that of its URL."""
    rows = database.read(
        lambda session: session.rows("SELECT id, url, key, key_hash FROM page WHERE id > $1 AND id <= $2", *span)
    )
    wrong = {page: (url, key_hash(key)) for page, url, key, hashed in rows if key_hash(key) != bytes(hashed)}
    tally.add("page_key", [url for _, url, key, _ in rows if surt(url) != key])
    if not wrong:
        return
    free: dict[int, tuple[str, bytes]] = {}
    if repair:

        def work(session: DatabaseSession) -> None:
            taken = dict(session.rows(session.statements.known_pages, [hashed for _, hashed in wrong.values()]))
            free.clear()
            free.update({page: row for page, row in wrong.items() if row[1] not in taken})
            if free:
                hashes = [hashed for _, hashed in free.values()]
                session.apply(session.statements.checks.set_key_hash, np.array(list(free), np.int64), hashes)

        database.write(work)
    tally.add("page_hash", [url for page, (url, _) in wrong.items() if page in free], repaired=True)
    tally.add("page_hash", [url for page, (url, _) in wrong.items() if page not in free])


def _check_buckets(database: Database, span: Span, tally: InconsistencyCounts, *, repair: bool) -> None:
    """The bucket of a host is that of its registered domain. A newer public suffix list may have changed a few."""
    rows = database.read(
        lambda session: session.rows("SELECT id, name, bucket FROM host WHERE id > $1 AND id <= $2", *span)
    )
    wrong = {host: name for host, name, bucket in rows if bucket_of(name) != bucket}
    if wrong and repair:
        right = np.array([bucket_of(name) for name in wrong.values()], np.int64)
        hosts = np.array(list(wrong), np.int64)
        database.write(lambda session: session.apply(session.statements.set_bucket, hosts, right))
    tally.add("host_bucket", list(wrong.values()), repaired=repair)


# -- for those who walk over all captures, and for copies -----------------------------------------


class SqlChecks:
    """See :class:`recrawl.store.base.StoreMaintenance` for what each call promises."""

    _database: Database

    def engine_faults(self, *, thorough: bool) -> list[str]:
        """What the engine finds wrong with its own file."""
        return self._database.faults(thorough=thorough)

    def rebuild_indexes(self) -> None:
        """Rebuild all indexes of an SQLite file."""
        self._database.rebuild_indexes()

    def check_derived(self, now: float, horizon: ClockHorizon, tell: Tell, *, repair: bool) -> list[StoreInconsistency]:
        """Compare every derived table with its source, and repair it if asked to."""
        return check_derived(self._database, now, horizon, tell, repair=repair)

    def captures_after(self, page: int, time: float, limit: int) -> CaptureColumns:
        """The first captures behind a page and time."""
        return self._database.read(
            lambda session: columns_of(session.rows(session.statements.checks.captures_after, page, time, limit))
        )

    def restore_captures(self, captures: Sequence[CaptureRecord]) -> int:
        """Note again where captures lie."""
        return self._database.write(lambda session: recording.add_captures(session, captures))

    def forget_validators(self, pages: IntArray) -> int:
        """Have the next requests carry no validators."""
        forget = "UPDATE page SET etag = '', last_modified = '' WHERE id = $1"
        return self._database.write(lambda session: sum(session.run(forget, page) for page in pages.tolist()))

    def last_offsets(self) -> dict[str, int]:
        """Where the last capture of our own in each archive file begins."""
        return dict(self._database.read(lambda session: session.rows(session.statements.checks.last_offsets)))

    def leases(self) -> list[LeaseRow]:
        """Every lease."""
        rows = self._database.read(lambda session: session.rows("SELECT page, worker, until FROM lease ORDER BY page"))
        return [LeaseRow(*row) for row in rows]

    def drop_leases(self, now: float, pause: float) -> int:
        """End all leases and holds, and forget all workers."""

        def work(session: DatabaseSession) -> int:
            session.run(session.statements.checks.rest_held_hosts, now, pause)
            session.run(f"UPDATE host SET held_by = NULL, held_until = {NOT_HELD} WHERE held_by IS NOT NULL")
            session.run(session.statements.disown_buckets, now)
            for statement in session.statements.drop_demands:
                session.run(statement)
            session.run("UPDATE control SET value = NULL, changed = $1 WHERE name LIKE $2", now, f"{_WORKER}%")
            return session.run("DELETE FROM lease")

        return self._database.write(work)
