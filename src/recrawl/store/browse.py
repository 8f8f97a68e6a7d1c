"""Looking through pages and hosts, a screenful at a time, however many there are.

Rules of this file:
 1. A list goes on behind the last row that was seen (its sort value and id), never after so many rows: the thousandth
    screen costs what the first does.
 2. Ids come in the order that is wanted from an index alone; only then the rows are looked up and sifted. What is
    sifted at once is bounded. A list that found too little says how far it looked, and goes on from there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from recrawl.model import FloatArray, IntArray, Outcome
from recrawl.store.database import Parameter, Session
from recrawl.urls import surt

State: TypeAlias = Literal["", "due", "waiting", "never", "failing", "gone"]
Order: TypeAlias = Literal["url", "due", "found"]
Mark: TypeAlias = tuple[str | float, int]
"""A place in a list: sort value and id of a row."""
Row: TypeAlias = tuple[Mark, tuple[Any, ...]]

SIFTED = 30_000
"""Pages that are looked at for one screen at most."""
_FIRST_SIFT = 400
_LAST_KEY = "\U0010ffff"
"""Sorts behind every key."""
_LARGEST = 2**63 - 1
_COUNTS = np.dtype([("host", np.int64), ("pages", np.int64), ("due", np.int64), ("never", np.int64)])
_FAILURES = np.dtype([("host", np.int64), ("failing", np.int64), ("forbidden", np.int64)])


@dataclass(frozen=True, slots=True)
class PageQuery:
    """Which pages, in what order, from where on."""

    host: int | None = None
    host_name: str = ""
    """Of that host: its pages lie together in the order of URLs."""
    text: str = ""
    """Somewhere in the URL, in any case; a whole URL is taken for the beginning of those wanted."""
    state: State = ""
    order: Order = "url"
    descending: bool = False
    after: Mark | None = None
    limit: int = 50
    ids: IntArray | None = None
    """An order of somebody else's: these pages, in this order. ``after`` then counts positions in it."""


@dataclass(frozen=True, slots=True)
class PageRows:
    """Pages as columns, in the order that was asked for."""

    page: IntArray
    host: IntArray
    url: list[str]
    due: FloatArray
    """Seconds since the epoch; infinity for never."""
    importance: FloatArray
    discovered: FloatArray
    mime: list[str]
    gone: list[bool]
    failures: IntArray
    """Failed visits in a row; 0 if the last one did not fail."""
    next: Mark | None
    """Where the list goes on; ``None`` at its end."""
    sifted: int = 0
    """Pages that were looked at."""
    marks: list[Mark] = field(default_factory=list)
    """The place of each row."""

    def __len__(self) -> int:
        return len(self.page)


@dataclass(frozen=True, slots=True)
class HostCounts:
    """Pages of hosts, counted, as columns by host; hosts without pages are not there."""

    host: IntArray
    pages: IntArray
    due: IntArray
    never: IntArray
    """Pages that are never to be visited."""
    failing: IntArray
    """Pages whose last visit failed, those that robots.txt forbids left out."""
    forbidden: IntArray


def browse_pages(session: Session, query: PageQuery, now: float) -> PageRows:
    """One screen of pages. O(limit log pages) without conditions; with some, at most ``SIFTED`` pages are looked at."""
    sifting = bool(query.text or query.state or (query.host is not None and query.order != "due"))
    window = min(_FIRST_SIFT, SIFTED) if sifting else query.limit
    mark, sifted, ended = query.after, 0, False
    found: list[Row] = []
    while not ended and len(found) <= query.limit and sifted < SIFTED:
        marks = _window(session, query, mark, window + 1)
        ended = len(marks) <= window
        marks = marks[:window]
        found += _sift(session, query, now, marks)
        mark, sifted, window = marks[-1] if marks else mark, sifted + len(marks), min(4 * window, SIFTED)
        if not sifting:
            break
    shown = found[: query.limit]
    if len(found) > query.limit:
        return _columns(shown, shown[-1][0], sifted)
    return _columns(shown, None if ended else mark, sifted)


def _window(session: Session, query: PageQuery, mark: Mark | None, size: int) -> list[Mark]:
    """The next ids in the order wanted, with what they are sorted by."""
    statements, down = session.statements.browse, query.descending
    if query.ids is not None:
        start = 0 if mark is None else int(mark[0]) + 1
        some = query.ids[start : start + size].tolist()
        return list(zip(map(float, range(start, start + len(some))), some, strict=True))
    if query.order == "due":
        return _by_due(session, query, mark, size)
    if query.order == "found":
        at = mark[1] if mark else (_LARGEST if down else -1)
        if query.state == "failing" and not down:
            return [(float(page), page) for (page,) in session.rows(statements.failing_ids, at, size)]
        return [(float(page), page) for (page,) in session.rows(statements.by_id[down], at, size)]
    begin, end = _key_range(query)
    value, number = mark or ((_LAST_KEY, _LARGEST) if down else ("", -1))
    return [(key, page) for key, page in session.rows(statements.by_key[down], str(value), number, begin, end, size)]


def _key_range(query: PageQuery) -> tuple[str, str]:
    """Between which keys the pages lie that can be meant."""
    prefix = _prefix_of(query.text)
    if not prefix and query.host is not None:
        key = surt(f"http://{query.host_name}/") or ""
        prefix = key.partition(")")[0] + ")" if ")" in key else ""
    prefix = prefix[:_KEY_START]
    return prefix, prefix + _LAST_KEY


_KEY_START = 250
"""Characters of a prefix that are compared; the index holds a few more of each key."""


def _prefix_of(text: str) -> str:
    """The beginning of keys that a whole URL stands for; empty if the text is not one.

    >>> _prefix_of("https://www.example.org/a"), _prefix_of("/news/")
    ('org,example)/a', '')
    """
    return (surt(text) or "") if text.startswith(("http://", "https://")) else ""


def _by_due(session: Session, query: PageQuery, mark: Mark | None, size: int) -> list[Mark]:
    """By due time. Of all hosts, those of the first pages are found first: others have none among so many."""
    statements, down = session.statements.browse, query.descending
    value, number = mark or ((math.inf, _LARGEST) if down else (-math.inf, -1))
    if query.host is None:
        hosts = [host for (host,) in session.rows(statements.first_of_hosts[down], float(value), number, size)]
    else:
        hosts = [query.host]
    found = [
        (due, page)
        for host in hosts
        for due, page in session.rows(statements.by_due[down], host, float(value), number, size)
    ]
    return [(float(due), page) for due, page in sorted(found, reverse=down)[:size]]


def _sift(session: Session, query: PageQuery, now: float, marks: list[Mark]) -> list[Row]:
    """The rows of these pages that are wanted, in the same order."""
    if not marks:
        return []
    statements = session.statements.browse
    parameters: list[Parameter] = [np.array([page for _, page in marks], np.int64)]
    text = statements.rows
    conditions: list[tuple[str, tuple[Parameter, ...]]] = []
    if query.host is not None:
        conditions.append((statements.of_host, (query.host,)))
    if query.text and not (query.order == "url" and query.ids is None and _prefix_of(query.text)):
        conditions.append((statements.with_text, (_like(query.text),)))
    if query.state:
        moments: dict[str, tuple[Parameter, ...]] = {"due": (now,), "waiting": (now, math.inf), "never": (math.inf,)}
        conditions.append((statements.in_state[query.state], moments.get(query.state, ())))
    for condition, values in conditions:
        first = len(parameters) + 1
        text += condition.format(*range(first, first + len(values)))
        parameters += values
    rows = {row[0]: row for row in session.rows(text, *parameters)}
    return [(mark, rows[mark[1]]) for mark in marks if mark[1] in rows]


def _like(text: str) -> str:
    r"""A pattern that finds a text anywhere, in lower case.

    >>> _like("50%_a")
    '%50\\%\\_a%'
    """
    escaped = text.lower().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def _columns(found: list[Row], following: Mark | None, sifted: int) -> PageRows:
    rows = [row for _, row in found]
    page, host, url, due, importance, discovered, mime, gone, failures = zip(*rows, strict=True) if rows else ((),) * 9
    return PageRows(
        np.array(page, np.int64),
        np.array(host, np.int64),
        [str(one) for one in url],
        np.array(due, np.float64),
        np.array(importance, np.float64),
        np.array(discovered, np.float64),
        [str(one) for one in mime],
        [bool(one) for one in gone],
        np.array(failures, np.int64),
        following,
        sifted,
        [mark for mark, _ in found],
    )


def host_counts(session: Session, now: float) -> HostCounts:
    """Pages of each host, how many are due, and how many fail. O(pages), from an index alone."""
    counts = session.table(_COUNTS, session.statements.browse.host_counts, now, math.inf)
    failures = session.table(_FAILURES, session.statements.browse.host_failures, int(Outcome.REFUSED))
    place = np.searchsorted(counts["host"], failures["host"])
    forbidden, failing = np.zeros(len(counts), np.int64), np.zeros(len(counts), np.int64)
    forbidden[place] = failures["forbidden"]
    failing[place] = failures["failing"] - failures["forbidden"]
    host, pages, due, never = (np.ascontiguousarray(counts[name]) for name in ("host", "pages", "due", "never"))
    return HostCounts(host, pages, due, never, failing, forbidden)
