"""Leases on due pages, and reservations of their hosts.

Rules of this file:

1. One worker holds a host at a time. A lease on a page reserves its host until every lease on it is returned, recorded
   or expired; only then can any worker lease from it again.
2. So a host that is not reserved has no leases, and its earliest page is the first by due time.
3. A request to a host that is for no page of it takes a lease on one of its pages, too.
4. A reservation lasts at least as long as the leases under it. Expired leases are dropped before new ones are made.
"""

from __future__ import annotations

import numpy as np

from recrawl.model import AnyArray, FloatArray, IntArray
from recrawl.store import bucket_ownership
from recrawl.store.engine.database import DatabaseSession
from recrawl.store.learned_state import from_row
from recrawl.store.store_values import DueBacklog, DuePages, HostHold, LeasedPages

_DUE = np.dtype([("page", np.int64), ("host", np.int64), ("due", np.float64)])
_DUE_OF_PAGE = np.dtype([("page", np.int64), ("due", np.float64)])
_HOST_OF_PAGE = np.dtype([("page", np.int64), ("host", np.int64)])
_ID = np.dtype([("id", np.int64)])
_TOKEN = np.dtype([("host", np.int64), ("token", np.int64)])


def lease(  # noqa: PLR0913 - as the store's own call
    session: DatabaseSession, worker: str, now: float, limit: int, *, per_host: int, ttl: float, owned: bool
) -> LeasedPages:
    """Take the pages that are due, earliest first. O(limit log pages), however many pages and hosts there are."""
    expire(session, now)
    if owned:
        ready = session.table(_ID, session.statements.ready_hosts_owned, now, worker, limit)["id"]
        tokens = _tokens(session, worker, ready)
        ready = tokens["host"]  # a bucket may have changed hands between the two statements
    else:
        ready = session.table(_ID, session.statements.ready_hosts, now, limit)["id"]
        tokens = np.zeros(len(ready), _TOKEN)
    if not len(ready):
        return LeasedPages(ready, ready, np.empty(0), [], [], ready)
    due = session.table(_DUE, session.statements.first_due, np.ascontiguousarray(ready), now, per_host)
    due = due[np.lexsort((due["page"], due["due"]))][:limit]
    page, host = np.ascontiguousarray(due["page"]), np.ascontiguousarray(due["host"])
    until = now + ttl
    hosts = np.unique(host)
    token = tokens["token"][np.searchsorted(ready, host)] if owned else np.zeros(len(page), np.int64)
    session.apply(session.statements.add_leases, page, host, [worker] * len(page), np.full(len(page), until), token)
    session.run(session.statements.hold_hosts, worker, until, hosts)
    rows = session.rows(session.statements.leased_pages, page)
    known = {number: (url, from_row(rest)) for number, url, *rest in rows}
    urls, validators = zip(*(known[number] for number in page.tolist()), strict=True)
    return LeasedPages(page, host, np.ascontiguousarray(due["due"]), list(urls), list(validators), token)


def renew(session: DatabaseSession, worker: str, now: float, ttl: float, pages: IntArray | None) -> int:
    """Keep leases that have not expired for another ``ttl`` seconds from now."""
    pages = held_pages(session, worker) if pages is None else pages
    if not len(pages):
        return 0
    hosts = session.table(_ID, session.statements.held_hosts, worker, pages)["id"]
    kept = session.run(session.statements.renew_leases, now + ttl, worker, now, pages)
    if kept:
        session.run(session.statements.renew_holds, now + ttl, worker, hosts)
    return kept


def hold_host(session: DatabaseSession, worker: str, host: int, now: float, ttl: float) -> HostHold:
    """Take a host by a lease on one of its pages that nobody has, due or not."""
    expire(session, now)
    hosts = np.array([host], np.int64)
    session.rows(session.statements.lock_hosts, hosts)
    [(held_by, held_until, ready_at)] = session.rows(session.statements.hold_of_host, host)
    if held_by not in (None, worker):
        return HostHold(held_until)
    if held_by is None and ready_at > now:
        return HostHold(ready_at)
    rows = session.rows(session.statements.page_without_lease, host)
    if not rows:  # all its pages are ours
        return HostHold(-np.inf)
    page = np.array([rows[0][0]], np.int64)
    session.apply(session.statements.add_leases, page, hosts, [worker], np.array([now + ttl]), np.zeros(1, np.int64))
    session.run(session.statements.hold_hosts, worker, max(now + ttl, held_until if held_by else -np.inf), hosts)
    return HostHold(-np.inf, int(page[0]))


def free_host(session: DatabaseSession, worker: str, host: int, page: int, ready: float) -> None:
    """End the lease that kept others away, after the host's pause is noted."""
    hosts = np.array([host], np.int64)
    session.rows(session.statements.lock_hosts, hosts)
    session.apply(session.statements.raise_ready, hosts, np.array([ready]))
    if page >= 0:
        give_back(session, worker, np.array([page], np.int64), hosts)


def held_pages(session: DatabaseSession, worker: str) -> IntArray:
    """Every page this worker has a lease on."""
    return np.ascontiguousarray(session.table(_ID, session.statements.held_by_worker, worker)["id"])


def expire(session: DatabaseSession, now: float) -> int:
    """Drop the leases and holds whose time is over."""
    count = session.run(session.statements.expire_leases, now)
    session.run(session.statements.expire_holds, now)
    return count


def claim_hosts(session: DatabaseSession, pages: IntArray) -> IntArray:
    """Lock the hosts of these pages for this transaction, in the order of their ids; return them.

    Every change of due times or leases does this first. Two writers then wait for each other instead of
    deadlocking, and each sees the changes of the other when it searches the earliest page of a host.
    """
    if not len(pages):
        return np.empty(0, np.int64)
    hosts = np.unique(_hosts(session, np.unique(pages)))
    session.rows(session.statements.lock_hosts, hosts)
    return hosts


def give_back(session: DatabaseSession, worker: str, pages: IntArray, hosts: IntArray) -> IntArray:
    """Drop the worker's leases on these pages, and its hold on those of the hosts where it has no other.

    Returns the pages whose leases were still the worker's, in any order.
    """
    return end_leases(session, worker, pages, hosts)[0]


def end_leases(session: DatabaseSession, worker: str, pages: IntArray, hosts: IntArray) -> tuple[IntArray, IntArray]:
    """As :func:`give_back`; return the pages and the token of each lease, -1 if its bucket changed hands since."""
    if not len(pages):
        return pages, pages
    dropped = np.array(session.rows(session.statements.drop_leases, worker, pages), np.int64).reshape(-1, 2)
    session.run(session.statements.release_hosts, worker, hosts)
    return np.ascontiguousarray(dropped[:, 0]), np.ascontiguousarray(dropped[:, 1])


def release_worker(session: DatabaseSession, worker: str, now: float, pause: float) -> int:
    """Drop all leases and holds of a worker that died, and free its buckets.

    Its hosts rest first: nobody knows when it last asked them. They are locked before its buckets, so a visit that it
    is recording at this moment is recorded in its own time.
    """
    held = session.table(_ID, session.statements.hosts_held_by, worker)["id"]
    if len(held):
        session.rows(session.statements.lock_hosts, np.ascontiguousarray(held))
        session.run(session.statements.rest_held, now, pause, worker)
    bucket_ownership.release(session, worker, now)
    return session.run(session.statements.drop_leases_of, worker)


def set_due(session: DatabaseSession, pages: IntArray, due: FloatArray, hosts: IntArray) -> None:
    """Set the due times of distinct pages, which belong to these hosts."""
    if bool(np.isnan(due).any()):
        msg = "a due time is not a number; use inf for never"
        raise ValueError(msg)
    if len(pages):
        session.apply(session.statements.set_due, pages, due)
        session.run(session.statements.refresh_hosts, hosts)


def keep_away(session: DatabaseSession, pages: IntArray, ready: FloatArray) -> None:
    """Let nobody ask the host of ``pages[i]`` before ``ready[i]``; a host that must rest longer still does."""
    if not len(pages):
        return
    distinct, place = np.unique(pages, return_inverse=True)
    hosts, place_of_host = np.unique(_hosts(session, distinct), return_inverse=True)
    latest = np.full(len(hosts), -np.inf)
    np.maximum.at(latest, place_of_host[place], ready)
    session.apply(session.statements.raise_ready, hosts, latest)


def due(session: DatabaseSession, pages: IntArray) -> FloatArray:
    """When each of these pages is due."""
    if not len(pages):
        return np.empty(0)
    distinct = np.unique(pages)
    found = session.table(_DUE_OF_PAGE, session.statements.due_of_pages, distinct)
    if len(found) < len(distinct):
        raise KeyError(int(np.setdiff1d(distinct, found["page"])[0]))
    return np.ascontiguousarray(found["due"])[np.searchsorted(distinct, pages)]


def due_pages(session: DatabaseSession, now: float, limit: int, host: int | None) -> DuePages:
    """The pages that are due, those due first before others."""
    statements = session.statements.live
    if host is None:
        found = session.table(_DUE, statements.due_pages, now, limit)
    else:
        found = session.table(_DUE, statements.due_pages_of_host, now, host, limit)
    return DuePages(*(np.ascontiguousarray(found[name]) for name in ("page", "host", "due")))


def backlog(session: DatabaseSession, now: float) -> DueBacklog:
    """How much is due. O(pages that are due)."""
    [(due, awake, earliest, resting)] = session.rows(session.statements.live.backlog, now)
    first = float("inf") if earliest is None else float(earliest)
    return DueBacklog(int(due), int(due) - int(awake), first, int(resting))


def next_due(session: DatabaseSession, owner: str | None) -> float:
    """The earliest time at which a lease could return something. One index look-up, if the first host is its own."""
    if owner is None:
        [(wake,)] = session.rows(session.statements.next_wake)
        return float("inf") if wake is None else float(wake)
    rows = session.rows(session.statements.next_wake_owned, owner)
    return float(rows[0][0]) if rows else float("inf")


def soon_free(session: DatabaseSession, now: float, pause: float) -> float:
    """When the first host can be leased from that has a page due and is at most between two requests."""
    [(wake,)] = session.rows(session.statements.live.soon_free, now, pause)
    return float("inf") if wake is None else float(wake)


def _tokens(session: DatabaseSession, worker: str, hosts: IntArray) -> AnyArray:
    """Those of these hosts whose buckets the worker owns, ascending, and the tokens of the buckets."""
    if not len(hosts):
        return np.empty(0, _TOKEN)
    return session.table(_TOKEN, session.statements.tokens_of_hosts, np.ascontiguousarray(hosts), worker)


def _hosts(session: DatabaseSession, pages: IntArray) -> IntArray:
    """The host of each of these distinct, ascending pages."""
    return np.ascontiguousarray(session.table(_HOST_OF_PAGE, session.statements.hosts_of_pages, pages)["host"])
