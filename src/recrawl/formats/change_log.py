"""Change logs: the exact times at which each page of a site changed, as a repository of its sources records them.

A visit only shows that a page changed since the last visit; a change log has each change. So it can be replayed as
ground truth, and imported as visits at the moment of each change.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from recrawl.errors import require
from recrawl.model import BoolArray, ByteArray, ChangeKind, FloatArray, Histories, IntArray, Outcome, Verdict, Visits
from recrawl.model.arrays import starts_of_runs

BATCH = 20_000
"""Rows of a batch."""


class LoggedChange(enum.IntEnum):
    """What happened to a page."""

    ADD = 0
    """It appeared, for the first time or again."""
    MOD = 1
    """Its source changed."""
    DEL = 2
    """It went away."""


def schema() -> Any:  # noqa: ANN401 - pyarrow ships no types
    """The Arrow schema of a change log."""
    pa = require("pyarrow", "columns")
    return pa.schema(
        [
            pa.field("url", pa.string(), nullable=False),
            pa.field("time", pa.float64(), nullable=False),  # seconds since the epoch
            pa.field("kind", pa.uint8(), nullable=False),  # a Change
            pa.field("bulk", pa.bool_(), nullable=False),  # one of very many at once: an import, a mechanical edit
        ]
    )


@dataclass(frozen=True, slots=True)
class ChangeLog:
    """What happened to the pages of one site: columns of equal length, sorted by page, then time."""

    site: str
    urls: tuple[str, ...]
    """Of the pages. ``page`` counts in here."""
    page: IntArray
    time: FloatArray
    """Seconds since the epoch."""
    kind: ByteArray
    """A :class:`LoggedChange` each."""
    bulk: BoolArray
    """The change was one of very many at once."""
    links: FloatArray | None = None
    """Links the page never had before; ``None`` where nobody counted them."""

    def __len__(self) -> int:
        return len(self.page)

    @property
    def repeated(self) -> int:
        """Events that share page and time with a later one: together they are one visit."""
        return len(self) - int(starts_of_runs(self.page, self.time).sum())

    def of_pages(self, wanted: BoolArray) -> ChangeLog:
        """Only what happened to some pages; ``wanted[i]`` tells of URL i. The URLs keep their places."""
        if bool(wanted.all()):
            return self
        rows = wanted[self.page]
        links = None if self.links is None else self.links[rows]
        return ChangeLog(
            self.site, self.urls, self.page[rows], self.time[rows], self.kind[rows], self.bulk[rows], links
        )

    def of_range(self, first: int, end: int) -> ChangeLog:
        """Only what happened to the pages from ``first`` to the one before ``end``, which count from 0 then."""
        if first == 0 and end == len(self.urls):
            return self
        start, stop = np.searchsorted(self.page, [first, end]).tolist()
        rows = slice(start, stop)
        links = None if self.links is None else self.links[rows]
        return ChangeLog(
            self.site,
            self.urls[first:end],
            self.page[rows] - first,
            self.time[rows],
            self.kind[rows],
            self.bulk[rows],
            links,
        )

    def batches(self, rows: int = BATCH) -> Iterator[Any]:
        """The log as Arrow record batches of :func:`schema`."""
        pa = require("pyarrow", "columns")
        urls = pa.array(self.urls, pa.string())
        for start in range(0, len(self), rows):
            part = slice(start, start + rows)
            yield pa.RecordBatch.from_arrays(
                [
                    urls.take(pa.array(self.page[part])),
                    pa.array(self.time[part]),
                    pa.array(self.kind[part]),
                    pa.array(self.bulk[part]),
                ],
                schema=schema(),
            )

    def visits(self, *, bulk: bool = True, until: float | None = None) -> Visits:
        """Visits that came whenever something happened. The page of a visit is its row in ``urls``.

        The first appearance opens a history and says nothing about change; every later event is a change, and a
        deletion finds the page gone. Several events of a page at one time are one visit, which finds what the last of
        them left: nobody can look twice in one instant, and a history knows no gap of length zero. Without ``bulk``,
        bulk edits say nothing (they still open and close lives). Such visits stop at the last change, which makes any
        page look livelier than it is: ``until`` adds a last observation at that time to every page that was seen before
        it, which found no change: a page that was deleted is gone then too.
        """
        if not len(self):
            return Visits.of(self.page, self.time)
        instants = np.flatnonzero(starts_of_runs(self.page, self.time))
        latest = np.append(instants[1:], len(self)) - 1
        page, time, kind = self.page[latest], self.time[latest], self.kind[latest]
        first, quiet = starts_of_runs(page), (self.kind == LoggedChange.MOD) & self.bulk
        silent = first if bulk else first | np.logical_and.reduceat(quiet, instants)
        verdict = np.where(silent, Verdict.UNKNOWN, Verdict.CHANGED)
        gone = kind == LoggedChange.DEL
        outcome = np.where(gone, Outcome.GONE, Outcome.FETCHED)
        kinds = np.where(kind == LoggedChange.MOD, ChangeKind.CONTENT, ChangeKind.EXISTENCE)
        kinds = np.where(silent, ChangeKind.NONE, kinds)
        events = Visits.of(page, time, outcome=outcome, verdict=verdict, kinds=kinds)
        if until is None:
            return events
        last = np.append(first[1:], np.True_) & (time < until)
        closing = Visits.of(
            page[last], np.full(int(last.sum()), until), outcome=outcome[last], verdict=Verdict.UNCHANGED
        )
        return Visits.concatenate([events, closing]).sorted()

    def histories(self, *, bulk: bool = True, until: float | None = None) -> Histories:
        """The same as histories: every gap but the last of :meth:`visits` with ``until`` ends in a change."""
        return Histories.from_visits(self.visits(bulk=bulk, until=until))
