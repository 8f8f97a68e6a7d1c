"""Checks of a store against itself: every derived table is compared with its source, and repaired from it.

What is derived: the segments' counts and packs (from visits), due times of hosts (from those of pages), rows of the
schedule (from pages), holds and leases, the list of failing pages (from visits), and rows about pages that are
not there. Visits, captures and pages are the source: they are read, never written.

Rules of this file:
 1. Short transactions over ranges of ids: a crawl goes on beside a check, and memory does not grow with the store.
 2. Each check sees one snapshot, and what it compares is written in one transaction: so what differs is a fault, not a
    write that is under way.
"""

# ruff: noqa: S608 - names of our own, values are always parameters

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np

from recrawl.model import IntArray
from recrawl.store import frontier, recording
from recrawl.store.archives import columns_of
from recrawl.store.base_checks import Fault, Horizon, LeaseRow, Tell
from recrawl.store.database import Database, Session
from recrawl.store.discovery import key_hash
from recrawl.store.statements import NOT_HELD
from recrawl.store.values import CaptureRecord, Captures
from recrawl.store.visit_checks import Span, Tally, check_segments, check_visits_of_pages
from recrawl.urls import surt

_AT_ONCE = 20_000
"""Ids that one transaction looks at."""
_LEAST, _MOST = -(2**62), 2**62
"""Beyond all ids."""
_WORKER = "worker "
"""How the names of controls begin by which workers say that they are there."""

Found: TypeAlias = list[tuple[int, str]]
"""Ids, each with an example in words."""


class _Check(NamedTuple):
    """One comparison over a range of ids."""

    kind: str
    query: str
    """Selects id and example of what is wrong, from the ids above $1 up to $2; further parameters follow."""
    parameters: tuple[float, ...] = ()
    repair: Callable[[Session, IntArray], object] | None = None


def check_derived(database: Database, now: float, horizon: Horizon, tell: Tell, *, repair: bool) -> list[Fault]:
    """Compare every derived table with its source, and repair it if asked to."""
    tally = Tally()
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


def _run(database: Database, check: _Check, span: Span, tally: Tally, *, repair: bool) -> None:
    def find(session: Session) -> Found:
        return [(row[0], str(row[1])) for row in session.rows(check.query, *span, *check.parameters)]

    found = database.read(find)
    mend = check.repair
    if found and repair and mend is not None:

        def work(session: Session) -> Found:
            again = find(session)
            if again:
                mend(session, np.unique(np.array([row for row, _ in again], np.int64)))
            return again

        found = database.write(work)
        tally.add(check.kind, [example for _, example in found], repaired=True)
    else:
        tally.add(check.kind, [example for _, example in found])


# -- pages ----------------------------------------------------------------------------------------

_ABOUT_PAGES = ("schedule", "lease", "fingerprint", "failing", "unjudged", "unread", "resource", "source", "memento")
"""Tables with a row for a page."""


def _page_checks(now: float, horizon: Horizon) -> list[_Check]:
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
            repair=lambda session, ids: frontier.set_due(
                session, ids, np.full(len(ids), now), frontier.claim_hosts(session, ids)
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


def _deleting(table: str) -> Callable[[Session, IntArray], object]:
    return lambda session, ids: session.run(session.statements.checks.delete_from[table], ids)


def _schedule(session: Session, pages: IntArray) -> None:
    """Give pages their row: due when they were found, if they matter at all."""
    session.run(session.statements.schedule_pages, np.inf, pages)
    _refresh(session, pages)


def _move_to_host(session: Session, pages: IntArray) -> None:
    before = _hosts_of(session, pages)
    session.run(session.statements.checks.move_to_host, pages)
    _refresh_hosts(session, np.union1d(before, _hosts_of(session, pages)))


def _refresh(session: Session, pages: IntArray) -> None:
    _refresh_hosts(session, _hosts_of(session, pages))


def _hosts_of(session: Session, pages: IntArray) -> IntArray:
    rows = session.rows(session.statements.hosts_of_pages, pages)
    return np.unique(np.array([host for _, host in rows], np.int64))


def _refresh_hosts(session: Session, hosts: IntArray) -> None:
    if len(hosts):
        session.rows(session.statements.lock_hosts, hosts)
        session.run(session.statements.checks.refresh_hosts, hosts)


# -- hosts and leases -----------------------------------------------------------------------------


def _host_checks(now: float, horizon: Horizon) -> list[_Check]:
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


def _end_leases(session: Session, pages: IntArray) -> None:
    """End leases on pages, and the holds on hosts that then have none."""
    rows = session.rows(session.statements.checks.hosts_of_leases, pages)
    hosts = np.array([host for (host,) in rows], np.int64)
    session.rows(session.statements.lock_hosts, hosts)
    session.run(session.statements.checks.delete_from["lease"], pages)
    session.run(session.statements.checks.free_hosts, hosts)


def _end_holds(session: Session, hosts: IntArray) -> None:
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


def _check_keys(database: Database, span: Span, tally: Tally, *, repair: bool) -> None:
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

        def work(session: Session) -> None:
            taken = dict(session.rows(session.statements.known_pages, [hashed for _, hashed in wrong.values()]))
            free.clear()
            free.update({page: row for page, row in wrong.items() if row[1] not in taken})
            if free:
                hashes = [hashed for _, hashed in free.values()]
                session.apply(session.statements.checks.set_key_hash, np.array(list(free), np.int64), hashes)

        database.write(work)
    tally.add("page_hash", [url for page, (url, _) in wrong.items() if page in free], repaired=True)
    tally.add("page_hash", [url for page, (url, _) in wrong.items() if page not in free])


# -- for those who walk over all captures, and for copies -----------------------------------------


class SqlChecks:
    """See :class:`recrawl.store.base_checks.Checks` for what each call promises."""

    _database: Database

    def engine_faults(self, *, thorough: bool) -> list[str]:
        """What the engine finds wrong with its own file."""
        return self._database.faults(thorough=thorough)

    def rebuild_indexes(self) -> None:
        """Make all indexes of an SQLite file anew."""
        self._database.rebuild_indexes()

    def check_derived(self, now: float, horizon: Horizon, tell: Tell, *, repair: bool) -> list[Fault]:
        """Compare every derived table with its source, and repair it if asked to."""
        return check_derived(self._database, now, horizon, tell, repair=repair)

    def captures_after(self, page: int, time: float, limit: int) -> Captures:
        """The first captures behind a page and time."""
        return self._database.read(
            lambda session: columns_of(session.rows(session.statements.checks.captures_after, page, time, limit))
        )

    def restore_captures(self, captures: Sequence[CaptureRecord]) -> int:
        """Note again where captures lie."""
        return self._database.write(lambda session: recording.add_captures(session, captures))

    def last_offsets(self) -> dict[str, int]:
        """Where the last capture of our own in each archive file begins."""
        return dict(self._database.read(lambda session: session.rows(session.statements.checks.last_offsets)))

    def leases(self) -> list[LeaseRow]:
        """Every lease."""
        rows = self._database.read(lambda session: session.rows("SELECT page, worker, until FROM lease ORDER BY page"))
        return [LeaseRow(*row) for row in rows]

    def drop_leases(self, now: float, pause: float) -> int:
        """End all leases and holds, and forget all workers."""

        def work(session: Session) -> int:
            session.run(session.statements.checks.rest_held_hosts, now, pause)
            session.run(f"UPDATE host SET held_by = NULL, held_until = {NOT_HELD} WHERE held_by IS NOT NULL")
            session.run("UPDATE control SET value = NULL, changed = $1 WHERE name LIKE $2", now, f"{_WORKER}%")
            return session.run("DELETE FROM lease")

        return self._database.write(work)
