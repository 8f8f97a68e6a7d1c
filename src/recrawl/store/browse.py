"""Browses pages and hosts, a screen at a time, however many there are.

Rules of this file:

1. A list continues after the last row that was shown (its sort value and id), never after a number of rows: the
   thousandth screen costs what the first does.
2. Ids come in the wanted order from an index alone; only then are the rows read and filtered. The rows filtered per
   call are bounded. A list that found too few rows says how far it searched, and continues from there.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from recrawl.model import FloatArray, IntArray, Outcome
from recrawl.store.engine.database import DatabaseSession, Parameter
from recrawl.urls import surt

State: TypeAlias = Literal["", "due", "waiting", "never", "failing", "gone"]
Order: TypeAlias = Literal["url", "due", "found"]
Mark: TypeAlias = tuple[str | float, int]
"""A place in a list: sort value and id of a row."""

SIFTED = 100_000
"""Maximum pages that are filtered for one screen."""
PATIENCE = 0.1
"""Seconds after which a list is returned as far as it is found."""
_FIRST_SIFT, _LARGEST_SIFT = 400, 4_000
_LAST_KEY = "\U0010ffff"
"""Sorts after every key."""
_LARGEST = 2**63 - 1
_LAST_TIME = sys.float_info.max
"""Before never."""
_COUNTS = np.dtype([("host", np.int64), ("pages", np.int64), ("due", np.int64), ("never", np.int64)])
_FAILURES = np.dtype([("host", np.int64), ("failing", np.int64), ("forbidden", np.int64)])


@dataclass(frozen=True, slots=True)
class PageQuery:
    """Which pages, in what order, from where on."""

    host: int | None = None
    host_name: str = ""
    """Pages of this host, which are adjacent in the order of URLs."""
    text: str = ""
    """Anywhere in the URL, in any case; a whole URL is taken as a prefix."""
    state: State = ""
    order: Order = "url"
    descending: bool = False
    after: Mark | None = None
    limit: int = 50
    ids: IntArray | None = None
    """A given order: these pages, in this order. ``after`` then counts positions in it."""


@dataclass(frozen=True, slots=True)
class PageRows:
    """Pages as columns, in the requested order."""

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
    """Where the list continues; ``None`` at its end."""
    sifted: int = 0
    """Pages that were filtered."""
    marks: list[Mark] = field(default_factory=list)
    """The place of each row."""

    def __len__(self) -> int:
        return len(self.page)


@dataclass(frozen=True, slots=True)
class HostCounts:
    """Page counts of hosts, as columns by host; hosts without pages are left out."""

    host: IntArray
    pages: IntArray
    due: IntArray
    never: IntArray
    """Pages that are never to be visited."""
    failing: IntArray
    """Pages whose last visit failed, without those that robots.txt forbids."""
    forbidden: IntArray


def browse_pages(session: DatabaseSession, query: PageQuery, now: float) -> PageRows:
    """One screen of pages. O(limit log pages) without conditions.

    With conditions that no index covers, pages are filtered until the screen is full, ``PATIENCE`` is over or
    ``SIFTED`` pages were filtered.
    """
    conditions = _conditions(session, query, now)
    window = _FIRST_SIFT if conditions else query.limit
    end = time.monotonic() + PATIENCE  # noqa: TID251 - bounds how much is returned at once, not what
    mark, sifted, ended = query.after, 0, False
    found: list[Mark] = []
    while not ended and len(found) <= query.limit and sifted < SIFTED:
        window = min(window, SIFTED)
        marks = _window(session, query, now, mark, window + 1)
        ended = len(marks) <= window
        marks = marks[:window]
        found += _sift(session, conditions, marks) if conditions else marks
        mark, sifted, window = marks[-1] if marks else mark, sifted + len(marks), min(2 * window, _LARGEST_SIFT)
        if not conditions or time.monotonic() > end:  # noqa: TID251 - likewise
            break
    shown = found[: query.limit]
    following = shown[-1] if len(found) > query.limit else mark
    return _columns(session, shown, None if ended and len(found) <= query.limit else following, sifted)


def _window(session: DatabaseSession, query: PageQuery, now: float, mark: Mark | None, size: int) -> list[Mark]:
    """The next ids in the wanted order, with their sort values."""
    statements, down = session.statements.browse, query.descending
    if query.ids is not None:
        start = 0 if mark is None else int(mark[0]) + 1
        some = query.ids[start : start + size].tolist()
        return list(zip(map(float, range(start, start + len(some))), some, strict=True))
    if query.order == "due":
        return _by_due(session, query, now, mark, size)
    if query.order == "found":
        at = mark[1] if mark else (_LARGEST if down else -1)
        by_id = statements.failing_by_id if query.state == "failing" and not down else statements.by_id[down]
        return [(float(page), page) for (page,) in session.rows(by_id, at, size)]
    begin, end = _key_range(query)
    value, number = mark or ((end, _LARGEST) if down else (begin, -1))
    by_key = (statements.failing_by_key if query.state == "failing" else statements.by_key)[down]
    return [(key, page) for key, page in session.rows(by_key, str(value), number, begin if down else end, size)]


def _key_range(query: PageQuery) -> tuple[str, str]:
    """The range of keys that can match."""
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


def _by_due(session: DatabaseSession, query: PageQuery, now: float, mark: Mark | None, size: int) -> list[Mark]:
    """By due time. Over all hosts, the hosts of the first pages are found first: others have none among that many.

    A state that is a span of due times bounds the list.
    """
    statements, down = session.statements.browse, query.descending
    least, most = _DUE_SPANS[query.state](now) if query.state in _DUE_SPANS else _ALWAYS
    first: Mark = (most, _LARGEST) if down else (least, _LARGEST if query.state in _DUE_SPANS else -1)
    value, number = first if mark is None else mark
    if query.host is None:
        hosts = [host for (host,) in session.rows(statements.first_of_hosts[down], float(value), number, size)]
    else:
        hosts = [query.host]
    by_due = statements.by_due[down]
    found = [(due, page) for host in hosts for due, page in session.rows(by_due, host, float(value), number, size)]
    some = sorted(found, reverse=down)[:size]
    return [(float(due), page) for due, page in some if (due > least if down and least > -math.inf else due <= most)]


_ALWAYS = (-math.inf, math.inf)
_DUE_SPANS: dict[str, Callable[[float], tuple[float, float]]] = {
    "due": lambda now: (-math.inf, now),
    "waiting": lambda now: (now, _LAST_TIME),
    "never": lambda _now: (_LAST_TIME, math.inf),
}
"""States that are spans of due times: after the first, up to the second."""


def _conditions(session: DatabaseSession, query: PageQuery, now: float) -> tuple[str, list[Parameter]] | None:
    """The conditions on the pages of a window, as the end of a statement with its values; ``None`` for none."""
    statements = session.statements.browse
    parts: list[tuple[str, tuple[Parameter, ...]]] = []
    tables = ""
    if query.host is not None and query.order != "due":
        parts.append((statements.of_host, (query.host,)))
    if query.text and not (query.order == "url" and query.ids is None and _prefix_of(query.text)):
        parts.append((statements.with_text, (_like(query.text),)))
    if query.state and not (query.state in _DUE_SPANS and query.order == "due" and query.ids is None):
        moments: dict[str, tuple[Parameter, ...]] = {"due": (now,), "waiting": (now, math.inf), "never": (math.inf,)}
        parts.append((statements.in_state[query.state], moments.get(query.state, ())))
        tables = statements.with_failing if query.state == "failing" else ""
        tables = statements.with_schedule if query.state in moments else tables
    if not parts:
        return None
    text = statements.sift.format(tables)
    values: list[Parameter] = []
    for condition, given in parts:
        text += condition.format(*range(len(values) + 2, len(values) + 2 + len(given)))
        values += given
    return text, values


def _sift(session: DatabaseSession, conditions: tuple[str, list[Parameter]], marks: list[Mark]) -> list[Mark]:
    """The pages that fulfil the conditions, in the same order."""
    if not marks:
        return []
    text, values = conditions
    kept = {page for (page,) in session.rows(text, np.array([page for _, page in marks], np.int64), *values)}
    return [mark for mark in marks if mark[1] in kept]


def _like(text: str) -> str:
    r"""A pattern that finds a text anywhere, in lower case.

    >>> _like("50%_a")
    '%50\\%\\_a%'
    """
    escaped = text.lower().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def _columns(session: DatabaseSession, marks: list[Mark], following: Mark | None, sifted: int) -> PageRows:
    ids = np.array([page for _, page in marks], np.int64)
    known = {row[0]: row for row in session.rows(session.statements.browse.rows, ids)} if marks else {}
    rows = [known[page] for page in ids.tolist()]
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
        marks,
    )


def host_counts(session: DatabaseSession, now: float) -> HostCounts:
    """Pages of each host, how many are due, and how many fail. O(pages), from an index alone."""
    counts = session.table(_COUNTS, session.statements.browse.host_counts, now, math.inf)
    failures = session.table(_FAILURES, session.statements.browse.host_failures, int(Outcome.REFUSED))
    place = np.searchsorted(counts["host"], failures["host"])
    forbidden, failing = np.zeros(len(counts), np.int64), np.zeros(len(counts), np.int64)
    forbidden[place] = failures["forbidden"]
    failing[place] = failures["failing"] - failures["forbidden"]
    host, pages, due, never = (np.ascontiguousarray(counts[name]) for name in ("host", "pages", "due", "never"))
    return HostCounts(host, pages, due, never, failing, forbidden)


def find_host(session: DatabaseSession, name: str) -> int | None:
    """The id of a host by its name."""
    rows = session.rows(session.statements.known_hosts, [name])
    return int(rows[0][1]) if rows else None
