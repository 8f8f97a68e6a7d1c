"""Copies of robots.txt in the store: shared by all workers, and there after a restart."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from recrawl.model.robots import RobotsCopy
from recrawl.store.database import Column, Database, Session
from recrawl.time import DAY

_KEPT = 30 * DAY
"""Seconds after its end for which a copy is kept: then nobody visits the host any more."""
_LARGEST = 512 * 1024
"""Bytes that the text of a copy may unfold to."""


class SqlRobots:
    """Part of the store over any database: see :class:`recrawl.model.robots.RobotsCopies`."""

    _database: Database

    def robots_copy(self, origin: str) -> RobotsCopy | None:
        """The copy of an origin."""
        rows = self._database.read(lambda session: session.rows(session.statements.robots.get, origin))
        return _copy(rows[0][:-2], bytes(rows[0][-2]), rows[0][-1]) if rows else None

    def keep_robots_copies(self, copies: Sequence[RobotsCopy]) -> None:
        """Keep copies, of each origin the last; they can be read again, so nobody waits for the disk."""
        last = list({copy.origin: copy for copy in copies}.values())
        if not last:
            return
        columns = _columns(last)
        before = max(copy.fetched_at for copy in last) - _KEPT

        def work(session: Session) -> None:
            session.run(session.statements.robots.drop, before)
            session.apply(session.statements.robots.keep, *columns)

        self._database.write(work, lasting=False)

    def expire_robots_copies(self, origins: Sequence[str], now: float) -> None:
        """Have copies read again."""
        nothing = [RobotsCopy(origin, now, now, 0, "", True, origin, b"", now) for origin in dict.fromkeys(origins)]
        if nothing:
            columns = _columns(nothing)
            self._database.write(lambda session: session.apply(session.statements.robots.expire, *columns))

    def changed_robots_copies(self, since: float) -> list[RobotsCopy]:
        """Copies that changed, without their text."""
        rows = self._database.read(lambda session: session.rows(session.statements.robots.changed, since))
        return [_copy(row[:-1], b"", row[-1]) for row in rows]


def _columns(copies: Sequence[RobotsCopy]) -> list[Column]:
    """Copies as columns, in the order of the table."""
    return [
        [copy.origin for copy in copies],
        np.array([copy.fetched_at for copy in copies]),
        np.array([copy.expires for copy in copies]),
        np.array([copy.status for copy in copies]),
        [copy.reason for copy in copies],
        np.array([int(copy.available) for copy in copies]),
        [copy.url for copy in copies],
        [zlib.compress(copy.body[:_LARGEST], 1) if copy.body else b"" for copy in copies],
        np.array([copy.changed for copy in copies]),
    ]


def _copy(facts: Sequence[Any], packed: bytes, changed: float) -> RobotsCopy:
    origin, fetched_at, expires, status, reason, available, url = facts
    body = zlib.decompressobj().decompress(packed, _LARGEST) if packed else b""
    return RobotsCopy(origin, fetched_at, expires, status, reason, bool(available), url, body, changed)
