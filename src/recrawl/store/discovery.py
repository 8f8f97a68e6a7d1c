"""Pages and hosts: adding them, finding them, and their attributes beside visits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from recrawl.model import BoolArray, FloatArray, IntArray, Page, Pages, Validators
from recrawl.store import page_leases
from recrawl.store.engine.database import DatabaseSession
from recrawl.store.engine.statements import NOT_HELD
from recrawl.store.learned_state import from_row, no_validators
from recrawl.store.store_values import HostRows
from recrawl.urls import Address, address, bucket_of, surt

NO_PAGE = -1
"""The id of what is not a page: a URL that is not http(s)."""

_PAGES = np.dtype(
    [("id", np.int64), ("host", np.int64), ("importance", np.float64), ("cost", np.float64), ("discovered", np.float64)]
)

_ID = np.dtype([("id", np.int64)])
_DISCOVERED = np.dtype([("page", np.int64), ("discovered", np.float64)])


def key_hash(key: str) -> bytes:
    """128 bits of a hash of the SURT key: the probability that two pages share them is negligible."""
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def parse(urls: Sequence[str]) -> tuple[dict[bytes, Address], list[bytes | None]]:
    """The distinct pages among URLs by hash of their key, and which of them each URL names."""
    pages: dict[bytes, Address] = {}
    names: list[bytes | None] = []
    for url in urls:
        found = address(url)
        if found is None:
            names.append(None)
            continue
        name = key_hash(found.key)
        pages.setdefault(name, found)
        names.append(name)
    return pages, names


def known(session: DatabaseSession, names: Sequence[bytes]) -> dict[bytes, int]:
    """Ids of the pages with these hashes, as far as there are such pages."""
    return dict(session.rows(session.statements.known_pages, list(names))) if names else {}


def first_found(new: Iterable[bytes], names: Sequence[bytes | None], now: float | FloatArray) -> FloatArray:
    """When each new page was first found: ``now``, or the earliest time of the URLs that name it."""
    if isinstance(now, np.ndarray):
        first = dict.fromkeys(new, np.inf)
        for name, time in zip(names, now.tolist(), strict=True):
            if name in first:
                first[name] = min(first[name], time)
        return np.fromiter(first.values(), np.float64, len(first))
    return np.full(len(list(new)), now, np.float64)


def add(session: DatabaseSession, new: dict[bytes, Address], heard: FloatArray, importance: float) -> dict[bytes, int]:
    """Add new pages and their hosts; return the ids. Pages of positive importance are due when they were found.

    Ids follow the order in which pages were found, so pages due at once are visited in that order.
    """
    pages = list(new.values())
    hosts = _add_hosts(session, list(dict.fromkeys(page.host for page in pages)))
    [(last,)] = session.rows(session.statements.last_page)
    session.apply(
        session.statements.add_pages,
        np.array([hosts[page.host] for page in pages]),
        [page.url for page in pages],
        [page.key for page in pages],
        list(new),
        *(np.full(len(pages), value, np.float64) for value in (importance, 1.0)),
        heard,
        *no_validators(len(pages)),
    )
    # Ids only grow: new pages have higher ids than known ones; pages that others add at this moment may be among them.
    added = {name: page for name, page in session.rows(session.statements.pages_after, last) if name in new}
    if added:
        session.run(session.statements.schedule_pages, np.inf, np.fromiter(added.values(), np.int64))
        if importance > 0:
            session.run(
                session.statements.wake_hosts, float(heard.min()), np.unique(np.fromiter(hosts.values(), np.int64))
            )
    missing = [name for name in new if name not in added]  # somebody else added them before us
    return added | known(session, missing)


def _add_hosts(session: DatabaseSession, names: list[str]) -> dict[str, int]:
    found: dict[str, int] = dict(session.rows(session.statements.known_hosts, names))
    new = [name for name in names if name not in found]
    if not new:
        return found
    starts = (np.full(len(new), value) for value in (0.0, 0.0, NOT_HELD, np.inf))
    session.apply(session.statements.add_hosts, new, *starts, np.array([bucket_of(name) for name in new], np.int16))
    return found | dict(session.rows(session.statements.known_hosts, new))


def find(session: DatabaseSession, url: str) -> Page | None:
    """The page a URL names, if the store has it."""
    found = address(url)
    rows = session.rows(session.statements.find_page, key_hash(found.key)) if found else []
    return Page(*rows[0]) if rows else None


def urls(session: DatabaseSession, pages: IntArray) -> list[str]:
    """The URL of each page."""
    found = dict(session.rows(session.statements.urls, pages)) if len(pages) else {}
    return [found[page] for page in pages.tolist()]


_AFTER_HOST = chr(ord(")") + 1)
"""Follows, in the order of keys, what ends the host in a key."""
_PAGE_AND_HOST = np.dtype([("page", np.int64), ("host", np.int64)])


def folders_of(session: DatabaseSession, host_key: str, *, whole: bool) -> list[str]:
    """A URL for each folder of pages to be visited on hosts of this key: the pages up to their last slash, or whole."""
    statement = session.statements.wanted_of_key if whole else session.statements.folders_of_key
    rows = session.rows(statement, f"{host_key})", f"{host_key}{_AFTER_HOST}")
    return [url for (url,) in rows]


def never_due(session: DatabaseSession, after: int, hosts: int) -> tuple[IntArray, IntArray, int | None]:
    """Pages that are never due on the next hosts, their hosts, and the last host."""
    ids = np.array([host for (host,) in session.rows(session.statements.hosts_after, after, hosts)], np.int64)
    if not len(ids):
        return ids, ids, None
    found = session.table(_PAGE_AND_HOST, session.statements.never_due_of_hosts, ids, np.inf)
    return np.ascontiguousarray(found["page"]), np.ascontiguousarray(found["host"]), int(ids[-1])


def validators(session: DatabaseSession, pages: IntArray) -> list[Validators]:
    """The validators of each page at its last answer."""
    rows = session.rows(session.statements.validators, pages) if len(pages) else []
    found = {page: from_row(row) for page, *row in rows}
    return [found[page] for page in pages.tolist()]


def set_importance(session: DatabaseSession, pages: IntArray, importance: FloatArray) -> None:
    """Set the weight of distinct pages. One that matters no more is never due; one that begins to is due at once."""
    hosts = page_leases.claim_hosts(session, pages)
    session.apply(session.statements.set_importance, pages, importance)
    unwanted = pages[importance <= 0]
    page_leases.set_due(session, unwanted, np.full(len(unwanted), np.inf), hosts)
    wanted = pages[importance > 0]
    if len(wanted):
        asleep = session.table(_DISCOVERED, session.statements.never_due, wanted, np.inf)
        page, discovered = (np.ascontiguousarray(asleep[name]) for name in ("page", "discovered"))
        page_leases.set_due(session, page, discovered, hosts)


def gone_differs(session: DatabaseSession, pages: IntArray, gone: BoolArray) -> BoolArray:
    """Which of these pages are stored with another value than ``gone``."""
    if not len(pages):
        return np.zeros(0, np.bool_)
    noted = session.table(_ID, session.statements.gone_among, pages)["id"]
    return np.asarray(np.isin(pages, noted) != gone)


def set_gone(session: DatabaseSession, pages: IntArray, gone: BoolArray) -> None:
    """Note of distinct pages whether they are gone."""
    session.apply(session.statements.set_gone, pages, gone.astype(np.int16))


def respell(session: DatabaseSession, pages: IntArray, spellings: Sequence[str]) -> None:
    """Write URLs in another way that has the same key."""
    for before, after in zip(urls(session, pages), spellings, strict=True):
        if surt(before) != surt(after):
            msg = f"{after} is not {before} written in another way"
            raise ValueError(msg)
    session.apply(session.statements.set_urls, pages, list(spellings))


def columns(session: DatabaseSession, pages: IntArray | None) -> Pages:
    """Pages as columns, by id."""
    if pages is None:
        table = session.table(_PAGES, session.statements.pages_all)
    elif len(pages):
        table = session.table(_PAGES, session.statements.pages_some, pages)
    else:
        table = np.empty(0, _PAGES)
    return Pages(*(np.ascontiguousarray(table[name]) for name in ("id", "host", "importance", "cost", "discovered")))


def in_buckets(session: DatabaseSession, buckets: IntArray) -> Pages:
    """Pages of the hosts in these buckets, by id."""
    table = np.empty(0, _PAGES)
    if len(buckets):
        table = session.table(_PAGES, session.statements.pages_in_buckets, np.ascontiguousarray(buckets))
    return Pages(*(np.ascontiguousarray(table[name]) for name in ("id", "host", "importance", "cost", "discovered")))


def hosts(session: DatabaseSession, ids: IntArray | None) -> HostRows:
    """Hosts as columns, by id."""
    if ids is None:
        return _host_rows(session.rows(session.statements.hosts_all))
    return _host_rows(session.rows(session.statements.hosts_some, ids) if len(ids) else [])


def paused_hosts(session: DatabaseSession) -> HostRows:
    """Hosts that are paused, by id."""
    return _host_rows(session.rows(session.statements.hosts_paused))


def _host_rows(rows: list[tuple[Any, ...]]) -> HostRows:
    number, name, ready_at, delay, next_due, paused, checks, lies, restless, bucket = (
        zip(*rows, strict=True) if rows else ((),) * 10
    )
    return HostRows(
        np.array(number, np.int64),
        list(name),
        np.array(ready_at, np.float64),
        np.array(delay, np.float64),
        np.array(next_due, np.float64),
        np.array(paused, np.bool_),
        np.array(checks, np.int64),
        np.array(lies, np.int64),
        np.array(restless, np.int64),
        np.array(bucket, np.int64),
    )
