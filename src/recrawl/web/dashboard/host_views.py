"""Hosts: how many pages each has, what is due, how long it rests, whether it is paused or believed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from recrawl.model import AnyArray, IntArray
from recrawl.store.browse import HostCounts
from recrawl.store.store_values import HostRows
from recrawl.web.dashboard.routes import Answer, CheckedParameters, Parameter, View
from recrawl.web.dashboard.stale_cache import CachedAnswer

MOST_ROWS = 200
SORTS = ("pages", "name", "due", "failing", "next", "delay")
_DESCENDING = frozenset({"pages", "due", "failing", "delay"})


@dataclass(frozen=True, slots=True)
class HostTable:
    """All hosts and what is counted of each, row by row."""

    hosts: HostRows
    counts: HostCounts
    """Of the same hosts, in the same order."""
    believed: list[bool]
    """Whether each is believed when it says that nothing has changed."""
    masked: Mapping[int, int] = field(default_factory=dict)
    """By the id of a host, how many parts of its pages are masked as noise; hosts without any may be missing."""
    orders: dict[str, IntArray] = field(default_factory=dict)
    """Rows by sort order, each sorted on first use."""

    def of(self, host: IntArray) -> IntArray:
        """The row of each id."""
        return np.searchsorted(self.hosts.id, host)


def table_of(
    hosts: HostRows, counts: HostCounts, believed: Callable[[int, int], bool], masked: Mapping[int, int] | None = None
) -> HostTable:
    """The two joined; hosts that have no page yet have none of anything."""
    place = np.searchsorted(hosts.id, counts.host)
    place, known = place[place < len(hosts)], np.isin(counts.host, hosts.id)

    def spread(column: IntArray) -> IntArray:
        out = np.zeros(len(hosts), np.int64)
        out[place] = column[known]
        return out

    columns = (counts.pages, counts.due, counts.never, counts.failing, counts.forbidden)
    trust = [believed(*one) for one in zip(hosts.checks.tolist(), hosts.lies.tolist(), strict=True)]
    return HostTable(hosts, HostCounts(hosts.id, *(spread(column) for column in columns)), trust, masked or {})


def views(table: Callable[[], CachedAnswer[HostTable]]) -> list[View]:
    """The list of hosts."""
    return [
        View(
            "/hosts",
            "/api/hosts",
            "Hosts",
            "Hosts with their pages, due and failing pages, the pause between requests, and their state.",
            lambda asked: answer(table(), asked),
            "dashboard/hosts.html",
            (
                Parameter("search", "Only hosts with this text in their name.", default=""),
                Parameter("sort", "Sort order.", default="pages", choices=SORTS),
                Parameter("after", "Continue after this host, by its id.", "integer", least=0),
                Parameter("limit", "Rows.", "integer", default=50, least=1, most=MOST_ROWS),
            ),
            {
                "at": "Time of the counts.",
                "running": "Whether new counts are being computed.",
                "total": "Number of hosts that match the search.",
                "hosts": "The rows.",
                "next": "Value of after for the next page of the list; null at the end.",
            },
            menu="Hosts",
        )
    ]


def answer(found: CachedAnswer[HostTable], asked: CheckedParameters) -> Answer:
    """One screen of hosts."""
    table = found.value
    if table is None:
        return {"at": found.at, "running": found.running, "error": found.error, "total": 0, "hosts": [], "next": None}
    rows = _order(table, asked["sort"])
    if asked["search"]:
        wanted = asked["search"].lower()
        fits = np.array([wanted in name for name in table.hosts.name], np.bool_)
        rows = rows[fits[rows]]
    start = 0
    if asked["after"] is not None:
        behind = np.flatnonzero(table.hosts.id[rows] == asked["after"])
        start = int(behind[0]) + 1 if len(behind) else len(rows)  # the row after a missing one is not known
    some = rows[start : start + asked["limit"]]
    more = start + len(some) < len(rows)
    return {
        "at": found.at,
        "running": found.running,
        "error": found.error,
        "total": len(rows),
        "hosts": [row_of(table, row) for row in some.tolist()],
        "next": int(table.hosts.id[some[-1]]) if more and len(some) else None,
    }


def row_of(table: HostTable, row: int) -> dict[str, Any]:
    """One host, for people and programs."""
    hosts, counts = table.hosts, table.counts
    return {
        "id": int(hosts.id[row]),
        "name": hosts.name[row],
        "pages": int(counts.pages[row]),
        "due": int(counts.due[row]),
        "never": int(counts.never[row]),
        "failing": int(counts.failing[row]),
        "forbidden": int(counts.forbidden[row]),
        "next_due": float(hosts.next_due[row]),
        "ready_at": float(hosts.ready_at[row]),
        "delay": float(hosts.delay[row]),
        "paused": bool(hosts.paused[row]),
        "checks": int(hosts.checks[row]),
        "lies": int(hosts.lies[row]),
        "believed": table.believed[row],
        "masked": table.masked.get(int(hosts.id[row]), 0),
    }


def _order(table: HostTable, sort: str) -> IntArray:
    """All rows in an order, ties by id. Sorted once per count of hosts."""
    if sort not in table.orders:
        table.orders[sort] = _sorted(table, sort)
    return table.orders[sort]


def _sorted(table: HostTable, sort: str) -> IntArray:
    if sort == "name":
        return np.array(sorted(range(len(table.hosts)), key=table.hosts.name.__getitem__), np.int64)
    columns: dict[str, AnyArray] = {
        "pages": table.counts.pages,
        "due": table.counts.due,
        "failing": table.counts.failing,
        "next": table.hosts.next_due,
        "delay": table.hosts.delay,
    }
    values = columns[sort]
    return np.lexsort((table.hosts.id, -values if sort in _DESCENDING else values))
