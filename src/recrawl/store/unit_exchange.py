"""Pages on their way between units, and the hand-over of buckets between units: tables of a coordination database.

A coordination database has the same tables as a store. Its ``bucket`` rows name units as owners instead of workers, its
controls hold the registry of units, and ``unit_exchange`` holds pages that one unit has sent and another has not taken.

Rules of this file:

1. A row names the bucket of its page, not a unit. So it reaches whoever owns the bucket when it is taken, even if the
   bucket moves meanwhile, or the unit that it was meant for is gone.
2. A sender keeps a page until its row is committed here, and a receiver deletes a row only after it has committed the
   page in its own store. So a kill at any moment loses no page. A row may be sent or taken twice: to take it again
   changes nothing (``crawl.units.moved_pages``).
3. There are at most :data:`MOST_WAITING` rows. A sender waits beyond that, and keeps the pages in its own store.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import IntArray
from recrawl.store.base import Store
from recrawl.store.engine.database import Database, DatabaseSession
from recrawl.store.engine.sql import SqlStore
from recrawl.store.open import open_database
from recrawl.urls import BUCKETS

MOST_WAITING = 200_000
"""Rows that wait in a coordination database at most, give or take a batch for each unit."""


class SentRow(NamedTuple):
    """A row that waits to be taken."""

    id: int
    bucket: int
    content: bytes


class WaitingRows(NamedTuple):
    """What waits in a coordination database."""

    rows: IntArray
    """By bucket."""
    oldest: float
    """When the first of them was sent, seconds since the epoch; infinity if there is none."""


def open_coordination(location: str | Path, *, create: bool = False) -> tuple[Store, UnitExchange]:
    """Open a coordination database; with ``create`` its tables are created if there are none.

    Raises:
        ConfigError: it is neither a file nor a PostgreSQL database.
        StoreError: it cannot be reached.
    """
    database = _database(location, create=create)
    return SqlStore(database), UnitExchange(database)


def open_unit_store(location: str | Path) -> tuple[Store, OutgoingPages]:
    """Open the store of a unit once more, for its exchange with other units."""
    database = _database(location, create=False)
    return SqlStore(database), OutgoingPages(database)


def _database(location: str | Path, *, create: bool) -> Database:
    database = open_database(location, create=create)
    if database is None:
        raise ConfigError(
            f"Units cannot use the store {str(location).partition('://')[0]}.", "Use SQLite files or PostgreSQL."
        )
    return database


class UnitExchange:
    """The exchange of pages in a coordination database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, sender: str, buckets: IntArray, contents: Sequence[bytes], now: float) -> None:
        """Leave rows for the owners of these buckets."""

        def write(session: DatabaseSession) -> None:
            columns = {"bucket": "smallint", "sender": "text", "sent": "float8", "content": "bytea"}
            statement = session.statements.dialect.insert("unit_exchange", columns)
            many = len(contents)
            session.apply(statement, buckets.astype(np.int16), [sender] * many, np.full(many, now), list(contents))

        if len(contents):
            self._database.write(write)

    def waiting_for(self, buckets: IntArray, limit: int) -> list[SentRow]:
        """The first rows for these buckets, in the order in which they were sent."""
        if not len(buckets):
            return []

        def read(session: DatabaseSession) -> list[SentRow]:
            among = session.statements.dialect.among(1)
            query = f"SELECT id, bucket, content FROM unit_exchange WHERE bucket {among} ORDER BY id LIMIT $2"  # noqa: S608 - names of our own
            return [SentRow(*row) for row in session.rows(query, np.ascontiguousarray(buckets, np.int64), limit)]

        return self._database.read(read)

    def drop(self, rows: Sequence[int]) -> None:
        """Delete rows that were taken."""

        def write(session: DatabaseSession) -> None:
            among = session.statements.dialect.among(1)
            session.run(f"DELETE FROM unit_exchange WHERE id {among}", np.array(rows, np.int64))  # noqa: S608 - names of our own

        if rows:
            self._database.write(write)

    def waiting(self) -> WaitingRows:
        """What waits, by bucket. O(rows that wait), from an index alone but for the oldest."""

        def read(session: DatabaseSession) -> WaitingRows:
            counts = np.zeros(BUCKETS, np.int64)
            for bucket, rows in session.rows("SELECT bucket, count(*) FROM unit_exchange GROUP BY bucket"):
                counts[bucket] = rows
            first = session.rows("SELECT sent FROM unit_exchange ORDER BY id LIMIT 1")
            return WaitingRows(counts, float(first[0][0]) if first else np.inf)

        return self._database.read(read)

    def hand_over(self, unit: str, buckets: IntArray, now: float) -> int:
        """Give these buckets of a unit to their heirs; return how many changed hands."""

        def write(session: DatabaseSession) -> int:
            session.rows(session.statements.lock_buckets_of, unit)
            statement = (
                "UPDATE bucket SET owner = heir, heir = NULL, token = token + 1, since = $1 WHERE owner = $2 "  # noqa: S608 - names of our own
                f"AND heir IS NOT NULL AND id {session.statements.dialect.among(3)}"
            )
            return session.run(statement, now, unit, np.ascontiguousarray(buckets, np.int64))

        return self._database.write(write) if len(buckets) else 0


class OutgoingPages:
    """The pages in a unit's store that belong to other units: its outbox.

    They are stored and scheduled as any other page, in the transaction that found them. Workers lease only pages in
    buckets of their own unit, so these wait until they are sent.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def first(self, buckets: IntArray, limit: int) -> tuple[IntArray, IntArray]:
        """Some pages that are due at some time in these buckets, and their hosts. O(hosts + limit)."""
        if not len(buckets):
            return np.empty(0, np.int64), np.empty(0, np.int64)

        def read(session: DatabaseSession) -> tuple[IntArray, IntArray]:
            query = (
                "SELECT schedule.page, schedule.host FROM schedule JOIN host ON host.id = schedule.host "  # noqa: S608 - names of our own
                f"WHERE host.bucket {session.statements.dialect.among(1)} AND host.next_due < $2 "
                "AND schedule.due < $2 ORDER BY schedule.host, schedule.page LIMIT $3"
            )
            rows = session.rows(query, np.ascontiguousarray(buckets, np.int64), np.inf, limit)
            found = np.array(rows, np.int64).reshape(-1, 2)
            return np.ascontiguousarray(found[:, 0]), np.ascontiguousarray(found[:, 1])

        return self._database.read(read)

    def count(self, buckets: IntArray) -> IntArray:
        """How many pages are due at some time in each bucket, of these buckets. O(hosts + pages counted)."""
        counts = np.zeros(BUCKETS, np.int64)
        if not len(buckets):
            return counts

        def read(session: DatabaseSession) -> None:
            query = (
                "SELECT host.bucket, count(*) FROM schedule JOIN host ON host.id = schedule.host "  # noqa: S608 - names of our own
                f"WHERE host.bucket {session.statements.dialect.among(1)} AND host.next_due < $2 "
                "AND schedule.due < $2 GROUP BY host.bucket"
            )
            for bucket, pages in session.rows(query, np.ascontiguousarray(buckets, np.int64), np.inf):
                counts[bucket] = pages

        self._database.read(read)
        return counts
