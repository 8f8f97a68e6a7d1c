"""The port for other crawlers: pages handed out to them, and what they store with a page.

A crawler that is not ours asks for URLs, fetches them, and reports. Rules of this file:

1. A page that was handed out is in flight until a time: then it is due again, unless it was reported before. Until is
   its due time, so no other crawler and no worker of ours takes it, and a restart changes nothing.
2. A fit leaves pages in flight as they are: it asks :meth:`ClientPages.in_flight`.
3. A queue is a host. After it gave pages it pauses, as after a request of our own.
4. A page that its crawler called done is never due; being found again does not change that.
5. Nothing is deleted: what a crawler removes is no longer scheduled, and its visits stay.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from recrawl.model import BoolArray, FloatArray, IntArray, Validators
from recrawl.store import discovery, page_leases
from recrawl.store.engine.database import Database, DatabaseSession
from recrawl.store.learned_state import from_row

_ID = np.dtype([("id", np.int64)])
_DUE = np.dtype([("page", np.int64), ("host", np.int64), ("due", np.float64)])


class HandedOut(NamedTuple):
    """Pages handed out to a crawler: columns of equal length, by due time."""

    page: IntArray
    host: IntArray
    due: FloatArray
    """When each was due before."""
    url: list[str]
    validators: list[Validators]
    metadata: list[bytes]
    """What the crawler stored with each; empty where it stored nothing."""


class HandOutLimits(NamedTuple):
    """How many pages to hand out, and for how long."""

    pages: int
    """Pages in all."""
    per_host: int
    """Pages of one host in flight at once."""
    hosts: int
    lease: float
    """Seconds until a page is handed out again if nobody reports it."""
    pause: float
    """Seconds for which a host rests at least after it gave pages."""


class ClientReport(NamedTuple):
    """What is recorded with visits of another crawler: one entry per visit."""

    page: IntArray
    host: IntArray
    done: BoolArray
    """Never hand out this page again."""
    metadata: list[bytes]
    """Replaces what is stored with the page; empty for nothing."""


class QueueCounts(NamedTuple):
    """The size of some queues, or of all."""

    queues: int
    active_queues: int
    """Queues with a page that is due at some time."""
    active: int
    """Pages that are due at some time."""
    in_flight: int
    done: int


class ListedPage(NamedTuple):
    """One page in a list."""

    page: int
    url: str
    host: str
    due: float
    """``inf`` for never."""
    discovered: float
    done: bool
    metadata: bytes


class UrlFilter(NamedTuple):
    """A text that URLs contain."""

    text: str = ""
    """Empty for any URL."""
    any_case: bool = False


ANY_TEXT = UrlFilter()


class ClientPages(Protocol):
    """Pages of other crawlers. Under the rules of :class:`~recrawl.store.base.Store`."""

    def hand_out(self, now: float, limits: HandOutLimits, hosts: IntArray | None = None) -> HandedOut:
        """Hand out pages that are due and whose hosts may be requested now, of all hosts or of these, earliest first.

        O(pages handed out · log pages).
        """
        ...

    def take_back(self, pages: IntArray, due: FloatArray) -> None:
        """Withdraw pages that never reached the crawler: they are due when they were."""
        ...

    def in_flight(self, now: float) -> IntArray:
        """The pages that are in flight, ascending."""
        ...

    def add_metadata(self, pages: IntArray, metadata: Sequence[bytes]) -> None:
        """Store something with distinct pages that have nothing yet."""
        ...

    def metadata(self, pages: IntArray) -> dict[int, bytes]:
        """What is stored with those of these pages that have something."""
        ...

    def revive(self, pages: IntArray) -> IntArray:
        """Schedule those of these pages that are not, and are not done; return them."""
        ...

    def done_pages(self, pages: IntArray) -> IntArray:
        """Those of these pages that are done, ascending."""
        ...

    def queue_hosts(self, name: str) -> IntArray:
        """The host of this name; else all hosts of this domain, or of this name and some port. Ascending."""
        ...

    def queue_names(self, start: int, limit: int, due: float) -> tuple[list[str], int]:
        """Names of the hosts with a page due by this time, by id, and their number. O(hosts)."""
        ...

    def queue_counts(self, now: float, hosts: IntArray | None = None) -> QueueCounts:
        """Counts of all hosts, or of these. O(pages counted), on a separate connection."""
        ...

    def set_client_limit(self, hosts: IntArray, most: int | None) -> None:
        """Hand out no page of these hosts once N of their pages are done; ``None`` removes the limit."""
        ...

    def list_pages(
        self, start: int, limit: int, hosts: IntArray | None = None, text: UrlFilter = ANY_TEXT, *, after: int = 0
    ) -> list[ListedPage]:
        """Scheduled and done pages with ids behind ``after``, by id; of all hosts or of these; with a text in the URL.

        The first ``start`` are left out. O(pages behind ``after`` up to the last one listed).
        """
        ...

    def count_pages(self, hosts: IntArray | None = None, text: UrlFilter = ANY_TEXT) -> int:
        """The number of pages that :meth:`list_pages` lists. O(pages)."""
        ...

    def unschedule(self, hosts: IntArray | None, *, before: float = math.inf) -> int:
        """Remove the pages of these hosts, or of all, from the schedule; return their number.

        With ``before`` only pages that were discovered before that time. Visits stay.
        """
        ...


class SqlClientPages:
    """Part of the store over any database: see :class:`ClientPages`."""

    _database: Database

    def hand_out(self, now: float, limits: HandOutLimits, hosts: IntArray | None = None) -> HandedOut:
        """Hand out pages that are due."""
        return self._database.write(lambda session: _hand_out(session, now, limits, hosts))

    def take_back(self, pages: IntArray, due: FloatArray) -> None:
        """Withdraw pages."""
        if len(pages):
            self._database.write(lambda session: _take_back(session, pages, due))

    def in_flight(self, now: float) -> IntArray:
        """The pages in flight."""
        found = self._database.read(lambda session: session.table(_ID, session.statements.clients.in_flight, now))
        return np.ascontiguousarray(found["id"])

    def add_metadata(self, pages: IntArray, metadata: Sequence[bytes]) -> None:
        """Store metadata where there is none."""
        if not len(pages):
            return

        def work(session: DatabaseSession) -> None:
            host = _hosts(session, pages)
            session.apply(
                session.statements.clients.add, pages, host, np.zeros(len(pages)), np.zeros(len(pages), np.int16),
                list(metadata),
            )  # fmt: skip

        self._database.write(work)

    def metadata(self, pages: IntArray) -> dict[int, bytes]:
        """What is stored with pages."""
        return self._database.read(lambda session: _metadata(session, pages))

    def revive(self, pages: IntArray) -> IntArray:
        """Schedule pages that are not."""
        if not len(pages):
            return pages
        asleep = self._database.read(
            lambda session: session.table(_ID, session.statements.clients.asleep, np.unique(pages))
        )["id"]
        asleep = np.ascontiguousarray(asleep)
        if len(asleep):
            self._database.write(lambda session: discovery.set_importance(session, asleep, np.ones(len(asleep))))
        return asleep

    def done_pages(self, pages: IntArray) -> IntArray:
        """Those that are done."""
        if not len(pages):
            return pages
        found = self._database.read(
            lambda session: session.table(_ID, session.statements.clients.done_among, np.unique(pages))
        )
        return np.ascontiguousarray(found["id"])

    def queue_hosts(self, name: str) -> IntArray:
        """The hosts of a queue."""

        def work(session: DatabaseSession) -> IntArray:
            statements = session.statements.clients
            found = session.table(_ID, statements.host_named, name)
            if not len(found) and name:
                found = session.table(_ID, statements.hosts_below, f"%.{escaped(name)}", f"{escaped(name)}:%")
            return np.ascontiguousarray(found["id"])

        return self._database.read(work)

    def queue_names(self, start: int, limit: int, due: float) -> tuple[list[str], int]:
        """Names of queues."""

        def work(session: DatabaseSession) -> tuple[list[str], int]:
            statements = session.statements.clients
            rows = session.rows(statements.queue_names, due, limit, start)
            [(total,)] = session.rows(statements.count_queues, due)
            return [str(name) for (name,) in rows], int(total)

        return self._database.read(work)

    def queue_counts(self, now: float, hosts: IntArray | None = None) -> QueueCounts:
        """Counts of queues."""

        def work(session: DatabaseSession) -> QueueCounts:
            statements, some = session.statements.clients, () if hosts is None else (hosts,)
            if hosts is not None and not len(hosts):
                return QueueCounts(0, 0, 0, 0, 0)
            kind = hosts is not None
            [(queues, awake)] = session.rows(statements.count_hosts[kind], math.inf, *some)
            [(active,)] = session.rows(statements.count_active[kind], math.inf, *some)
            [(flying,)] = session.rows(statements.count_in_flight[kind], now, *some)
            [(done,)] = session.rows(statements.count_done[kind], *some)
            return QueueCounts(int(queues), int(awake), int(active), int(flying), int(done))

        with closing(self._database.beside()) as beside:
            return beside.read(work)

    def set_client_limit(self, hosts: IntArray, most: int | None) -> None:
        """Limit hosts."""
        if not len(hosts):
            return
        if most is None:
            self._database.write(lambda session: session.run(session.statements.clients.drop_limits, hosts))
        else:
            column = np.full(len(hosts), most, np.int64)
            self._database.write(lambda session: session.apply(session.statements.clients.set_limits, hosts, column))

    def list_pages(
        self, start: int, limit: int, hosts: IntArray | None = None, text: UrlFilter = ANY_TEXT, *, after: int = 0
    ) -> list[ListedPage]:
        """List pages."""
        if hosts is not None and not len(hosts):
            return []

        def work(session: DatabaseSession) -> list[ListedPage]:
            statement = session.statements.clients.listed(hosts is not None, text, count=False)
            rows = session.rows(statement, after, *_given(hosts, text), limit, start)
            return [
                ListedPage(page, url, host, due, found, bool(done), bytes(data or b""))
                for page, url, host, due, found, done, data in rows
            ]

        with closing(self._database.beside()) as beside:
            return beside.read(work)

    def count_pages(self, hosts: IntArray | None = None, text: UrlFilter = ANY_TEXT) -> int:
        """Count pages."""
        if hosts is not None and not len(hosts):
            return 0

        def work(session: DatabaseSession) -> int:
            statement = session.statements.clients.listed(hosts is not None, text, count=True)
            [(number,)] = session.rows(statement, 0, *_given(hosts, text))
            return int(number)

        with closing(self._database.beside()) as beside:
            return beside.read(work)

    def unschedule(self, hosts: IntArray | None, *, before: float = math.inf) -> int:
        """Remove pages from the schedule."""
        total, after = 0, 0
        while len(some := self._database.write(partial(_unschedule, hosts=hosts, before=before, after=after))):
            total, after = total + len(some), int(some[-1])
        return total


_CHUNK = 5_000
"""Pages taken from the schedule in one transaction, so that others can write in between."""


def _given(hosts: IntArray | None, text: UrlFilter) -> list[IntArray | str]:
    """The parameters of a list of pages."""
    return [*([] if hosts is None else [hosts]), *([text.text] if text.text else [])]


def escaped(text: str) -> str:
    """A text as part of an SQL LIKE pattern, in which a backslash escapes."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _hand_out(session: DatabaseSession, now: float, limits: HandOutLimits, hosts: IntArray | None) -> HandedOut:
    statements = session.statements
    if hosts is None:
        ready = session.table(_ID, statements.clients.ready, now, limits.per_host, limits.hosts)["id"]
    elif len(hosts):
        ready = session.table(_ID, statements.clients.ready_among, now, limits.per_host, hosts, limits.hosts)["id"]
    else:
        ready = np.empty(0, np.int64)
    none = np.empty(0, np.int64)
    if not len(ready):
        return HandedOut(none, none, np.empty(0), [], [], [])
    due = session.table(_DUE, statements.first_due, np.ascontiguousarray(ready), now, limits.per_host)
    due = due[np.lexsort((due["page"], due["due"]))][: limits.pages]
    page, host = np.ascontiguousarray(due["page"]), np.ascontiguousarray(due["host"])
    if not len(page):
        return HandedOut(none, none, np.empty(0), [], [], [])
    until, gave = np.full(len(page), now + limits.lease), np.unique(host)
    session.apply(statements.clients.fly, page, host, until, np.zeros(len(page), np.int16), [b""] * len(page))
    page_leases.set_due(session, page, until, gave)
    session.run(statements.clients.rest, now, limits.pause, gave)
    rows = session.rows(statements.leased_pages, page)
    known = {number: (url, from_row(rest)) for number, url, *rest in rows}
    urls, validators = zip(*(known[number] for number in page.tolist()), strict=True)
    stored = _metadata(session, page)
    metadata = [stored.get(number, b"") for number in page.tolist()]
    return HandedOut(page, host, np.ascontiguousarray(due["due"]), list(urls), list(validators), metadata)


def _take_back(session: DatabaseSession, pages: IntArray, due: FloatArray) -> None:
    hosts = page_leases.claim_hosts(session, pages)
    session.run(session.statements.clients.land, pages)
    page_leases.set_due(session, pages, due, hosts)


def _metadata(session: DatabaseSession, pages: IntArray) -> dict[int, bytes]:
    rows = session.rows(session.statements.clients.metadata, pages) if len(pages) else []
    return {page: bytes(data) for page, data in rows}


def _hosts(session: DatabaseSession, pages: IntArray) -> IntArray:
    """The host of each of these distinct pages."""
    rows = dict(session.rows(session.statements.hosts_of_pages, pages))
    return np.array([rows[page] for page in pages.tolist()], np.int64)


def note_report(session: DatabaseSession, report: ClientReport) -> None:
    """Store what a crawler said of pages beside its visits: they are in flight no longer."""
    statements, some = session.statements.clients, len(report.page)
    columns = (report.page, report.host, np.zeros(some), report.done.astype(np.int16), report.metadata)
    session.apply(statements.land_with, *columns)
    over = np.unique(report.page[report.done])
    if len(over):
        hosts = page_leases.claim_hosts(session, over)
        session.apply(session.statements.set_importance, over, np.zeros(len(over)))
        page_leases.set_due(session, over, np.full(len(over), np.inf), hosts)


def _unschedule(session: DatabaseSession, hosts: IntArray | None, before: float, after: int) -> IntArray:
    statements = session.statements.clients
    if hosts is None:
        found = session.table(_ID, statements.removable[False], before, after, _CHUNK)["id"]
    elif len(hosts):
        found = session.table(_ID, statements.removable[True], before, after, hosts, _CHUNK)["id"]
    else:
        return np.empty(0, np.int64)
    pages = np.ascontiguousarray(found)
    if len(pages):
        discovery.set_importance(session, pages, np.zeros(len(pages)))
        session.run(statements.drop, pages)
    return pages
