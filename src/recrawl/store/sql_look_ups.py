"""The look-ups of a store over any database that speaks our statements: each call as one transaction."""

from __future__ import annotations

from recrawl.model import FloatArray, IntArray
from recrawl.store import look_ups
from recrawl.store.database import Database
from recrawl.store.values import CaptureEnds, Captures, KeyedCaptures, KeyRange


class SqlLookUps:
    """See :class:`recrawl.store.base_look_ups.LookUps` for what each call promises."""

    _database: Database

    def captures_between(
        self, page: int, since: float, until: float, limit: int, *, backwards: bool = False
    ) -> Captures:
        """Captures of a page in a span of time."""
        return self._database.read(
            lambda session: look_ups.captures_between(session, page, since, until, limit, backwards=backwards)
        )

    def capture_ends(self, page: int) -> CaptureEnds | None:
        """First, last and number of the captures of a page."""
        return self._database.read(lambda session: look_ups.capture_ends(session, page))

    def captures_by_key(self, keys: KeyRange, limit: int, skip: int = 0) -> KeyedCaptures:
        """Captures of the pages in a range of keys."""
        return self._database.read(lambda session: look_ups.captures_by_key(session, keys, limit, skip))

    def count_by_key(self, keys: KeyRange) -> int:
        """How many captures the pages in a range of keys have."""
        return self._database.read(lambda session: look_ups.count_by_key(session, keys))

    def last_page(self) -> int:
        """The largest id of a page."""
        return self._database.read(lambda session: int(session.rows(session.statements.last_page)[0][0]))

    def drop_captures(self, page: IntArray, time: FloatArray) -> int:
        """Forget captures that an archive told of."""
        return self._database.write(lambda session: look_ups.drop_captures(session, page, time))
