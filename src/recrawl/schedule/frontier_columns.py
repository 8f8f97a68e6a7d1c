"""The queues of a large frontier: columns and machine code, 45 to 110 bytes a page, room to grow included."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from recrawl.model import FloatArray, IntArray
from recrawl.schedule import frontier_kernels as kernels
from recrawl.schedule.frontier_queues import Fetches
from recrawl.schedule.politeness import Politeness

_SORTED = 1_000
"""Of so many pages at once, the last due go in first: then every heap is a chain, and taking its first page is O(1)."""


class ColumnQueues:
    """Pages on offer, for millions of pages. Only where numba is installed."""

    def __init__(self, politeness: Politeness) -> None:
        self._politeness = politeness
        self._id, self._due, self._links = np.empty(1024, np.int64), np.empty(1024), np.empty((1024, 4), np.int32)
        self._when, self._asked, self._at = np.empty(0), np.empty(0, np.int64), np.empty((0, 3), np.int32)
        self._index = np.full(2048, kernels.NONE, np.int32)
        self._queues = np.empty((2, 0), np.int32)
        self._counts = np.array([0, 0, 0, 0, kernels.NONE], np.int64)

    def __len__(self) -> int:
        """Pages on offer."""
        return int(self._counts[kernels.OFFERS])

    @property
    def nbytes(self) -> int:
        """Memory of all columns."""
        return sum(column.nbytes for column in self._state)

    def offer(self, page: IntArray, host: IntArray, due: FloatArray) -> None:
        """Add pages, or give them a new due time and host. O(1) each, and O(n log n) to sort many at once."""
        rows = self._politeness.rows(host)
        self._grow(len(page))
        loose = np.empty(len(page), np.int32)
        due = due.astype(np.float64)
        loose = loose[: kernels.take_in(page.astype(np.int64), rows, due, self._state, loose)]
        if len(loose) > _SORTED:
            loose = loose[np.argsort(-self._due[loose], kind="stable")]
        kernels.put_in(loose, self._state)

    def withdraw(self, page: IntArray) -> None:
        """Take pages off. O(log n) each."""
        self._grow(0)
        kernels.take_off(page.astype(np.int64), self._state)

    def next_many(self, now: float, most: int) -> Fetches:
        """Up to ``most`` pages to fetch at ``now``, each taken off, and its host until ``done``. O(log n) each."""
        self._grow(0)
        page, row = np.empty(most, np.int64), np.empty(most, np.int64)
        found, until = kernels.hand_out(now, self._state, page, row)
        return Fetches(page[:found], self._politeness.hosts(row[:found]), until)

    def done(self, page: int, host: int, now: float, duration: float) -> None:
        """This fetch has ended after so many seconds; its host begins its pause. O(log n)."""
        self.done_many(np.array([page]), np.array([host]), now, np.array([duration]))

    def done_many(self, page: IntArray, host: IntArray, now: float, duration: FloatArray) -> None:
        """These fetches have ended after so many seconds each; their hosts begin their pauses. O(log n) each."""
        rows = self._politeness.rows(host)
        self._grow(0)
        if len(rows) == 1:
            wrong = 0 if self._asked[rows[0]] != page[0] or not self._politeness.columns[1][rows[0]] else None
        else:
            right = (self._asked[rows] == page) & self._politeness.columns[1][rows]
            wrong = 0 if len(np.unique(rows)) < len(rows) else None
            wrong = wrong if right.all() else int(np.argmin(right))
        if wrong is not None:
            raise ValueError(f"page {page[wrong]} of host {host[wrong]} is not being fetched")
        if len(rows) == 1:
            self._politeness.done(int(host[0]), now, float(duration[0]))
        else:
            self._politeness.done_many(rows, now, duration)
        kernels.take_back(rows, self._state)

    def undone(self, page: int, host: int, until: float) -> None:
        """This fetch did not take place; its host makes no pause, but is left alone until then. O(log n)."""
        rows = self._politeness.rows(np.array([host]))
        self._grow(0)
        if self._asked[rows[0]] != page or not self._politeness.columns[1][rows[0]]:
            raise ValueError(f"page {page} of host {host} is not being fetched")
        self._politeness.undone(host)
        self._politeness.block_until(host, until)
        kernels.take_back(rows, self._state)

    def adopt(self, in_flight: Mapping[int, int]) -> None:
        """Take over fetches that other queues handed out: of each host, which page."""
        rows = self._politeness.rows(np.fromiter(in_flight, np.int64, len(in_flight)))
        self._grow(0)
        self._asked[rows] = np.fromiter(in_flight.values(), np.int64, len(in_flight))

    # -- inside -------------------------------------------------------------------------------

    @property
    def _state(self) -> kernels.State:
        pages, hosts = (self._id, self._due, self._links), (self._when, self._asked, self._at)
        return *pages, *hosts, self._index, self._queues, self._counts, *self._politeness.columns

    def _grow(self, pages: int) -> None:
        """Make room for more pages, and for hosts that politeness has heard of."""
        hosts = len(self._politeness)
        if hosts > len(self._at):
            more = max(hosts, 3 * len(self._at) // 2) - len(self._at)
            self._when = np.concatenate([self._when, np.zeros(more)])
            self._asked = np.concatenate([self._asked, np.zeros(more, np.int64)])
            unknown = np.tile(np.array([kernels.NONE, 0, kernels.NOWHERE], np.int32), (more, 1))
            self._at = np.concatenate([self._at, unknown])
            self._queues = np.concatenate([self._queues, np.empty((2, more), np.int32)], axis=1)
        needed = len(self) + pages
        if needed > len(self._id):
            more = max(needed, 3 * len(self._id) // 2) - len(self._id)
            self._id = np.concatenate([self._id, np.empty(more, np.int64)])
            self._due = np.concatenate([self._due, np.empty(more)])
            self._links = np.concatenate([self._links, np.empty((more, 4), np.int32)])
        if 2 * needed > len(self._index):
            self._index = np.full(1 << int(2 * needed - 1).bit_length(), kernels.NONE, np.int32)
            kernels.build_index(int(self._counts[kernels.USED]), self._state)
