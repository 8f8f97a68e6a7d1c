"""Keeping the policy in step with the store: learning what is recorded, and fitting to it in time.

One piece of code fits (:class:`ScheduleFit`), and two run it: :class:`Fitting` in the event loop, for virtual time and
for small stores, where it takes milliseconds; and a process of its own (``crawl.fit_process``) everywhere else.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np

from recrawl.crawl.garbage import give_back_memory
from recrawl.crawl.log import JsonLinesLog
from recrawl.crawl.recorder import Recorder, recall_signals
from recrawl.errors import StoreError
from recrawl.model import BoolArray, FloatArray, IntArray, Pages
from recrawl.schedule.agenda import Agenda
from recrawl.store.base import Store

_PATIENCE = 60.0
"""Seconds a fit waits for a moment without requests; then it is made beside them."""
_FIRST_PATIENCE = 1.0
"""The same for the first fit, without which no visit has a value."""
_CHUNK = 100_000
"""Pages rescheduled in one transaction, so that other workers get their turn."""
_DUE_CHUNK = 50_000
"""Pages whose due times are computed at a time."""


class ScheduleFit:
    """Tells an agenda what a store knows, fits it, and writes the due times that follow.

    State is a fold over visits, so recovery is replay; and what other workers record is learned the same way.
    """

    def __init__(self, store: Store, agenda: Agenda, late: float) -> None:
        """Others may record visits up to ``late`` seconds after they were made."""
        self._store = store
        self._agenda = agenda
        self._late = late
        self._told_until = -math.inf

    def start_over(self) -> None:
        """Learn of all visits again, not only of those since the last time."""
        self._told_until = -math.inf

    def catch_up(self, now: float) -> Pages:
        """Learn of all pages, and of visits since the last time, also of other workers'; the pages to be visited.

        What is known already is passed over. O(pages, and visits since).
        """
        pages = self._store.pages()
        wanted = pages.take(pages.importance > 0)
        self._agenda.add(wanted)
        first, since = math.isinf(self._told_until), self._told_until - self._late
        # Visits ahead of the clock say nothing yet: with them pages would not be due before their time.
        visits = self._store.visits(since=None if first else since, until=now).sorted()
        self._agenda.tell(visits.take(np.isin(visits.page, wanted.id)))
        if first:
            recall_signals(self._store, self._agenda, wanted.id)
        self._told_until = now
        return wanted

    def fit(self, wanted: Pages, now: float) -> Due:
        """Fit the policy to all that is known; when pages are due by the store, which due times change that."""
        due = Due(wanted.id, wanted.host, self._store.due(wanted.id))
        self._agenda.line_up(wanted.id, now)
        self._agenda.fit(now)
        return due

    def moved(self, due: Due, now: float, at_once: Collection[int], tolerance: float) -> Iterator[Move]:
        """Due times that differ from those of the store by more than ``tolerance`` of the time left, by chunks."""
        urgent = np.array(sorted(at_once), np.int64)
        for start in range(0, len(due.page), _DUE_CHUNK):
            rows = slice(start, start + _DUE_CHUNK)
            page, before = due.page[rows], due.before[rows]
            after = self._agenda.due(page, now)
            after[np.isin(page, urgent)] = now
            moves = np.flatnonzero(_differs(before, after, now, tolerance))
            yield Move(page, due.host[rows], after, before).take(moves)


class Due(NamedTuple):
    """When pages were due before a fit."""

    page: IntArray
    host: IntArray
    before: FloatArray


class Move(NamedTuple):
    """Due times to be written, and those that stood when they were thought out."""

    page: IntArray
    host: IntArray
    due: FloatArray
    before: FloatArray

    def take(self, rows: IntArray | slice) -> Move:
        """Some of them."""
        return Move(self.page[rows], self.host[rows], self.due[rows], self.before[rows])


def _differs(before: FloatArray, after: FloatArray, now: float, tolerance: float) -> BoolArray:
    """Which due times are worth writing; with a tolerance of 0, all that are not the same."""
    differs: BoolArray = before != after
    rows = np.flatnonzero(differs & np.isfinite(before) & np.isfinite(after))
    differs[rows] = np.abs(after[rows] - before[rows]) > tolerance * np.abs(after[rows] - now)
    return differs


class Fitting:
    """Fits in the event loop, which stands still meanwhile: for virtual time, and for few pages."""

    def __init__(self, store: Store, agenda: Agenda, recorder: Recorder, log: JsonLinesLog, late: float) -> None:
        """Others may record visits up to ``late`` seconds after they were made."""
        self._store = store
        self._agenda = agenda
        self._recorder = recorder
        self._log = log
        self._fit = ScheduleFit(store, agenda, late)
        self._wanted_since = math.inf

    def resume(self, now: float) -> None:
        """Learn all that is recorded."""
        self._recorder.take_in()
        self._fit.start_over()
        self._fit.catch_up(now)
        give_back_memory()

    def is_overdue(self, now: float) -> bool:
        """Whether a fit has waited long enough for a moment without requests: one of them may take minutes."""
        if now < self._agenda.fit_at:
            self._wanted_since = math.inf
            return False
        self._wanted_since = min(self._wanted_since, now)
        first = math.isinf(self._agenda.fit_at)
        return now >= self._wanted_since + (_FIRST_PATIENCE if first else _PATIENCE)

    def fit(self, now: float) -> None:
        """Fit the policy to all that is known and reschedule every page, but those that others visit meanwhile."""
        self._recorder.take_in()
        wanted = self._fit.catch_up(now)
        due = self._fit.fit(wanted, now)
        try:
            for move in self._fit.moved(due, now, self._recorder.at_once, tolerance=0.0):
                for some in parts_of(move, _CHUNK):
                    self._store.reschedule(some.page, some.due, before=some.before)
        except StoreError:
            self._agenda.fit_again()
            raise
        give_back_memory()
        self._log.event("schedule", "policy fitted", details=fitted(len(wanted), self._agenda))


def parts_of(move: Move, most: int) -> Iterator[Move]:
    """The same in parts of at most so many pages."""
    for start in range(0, len(move.page), most):
        yield move.take(slice(start, start + most))


def fitted(pages: int, agenda: Agenda, **more: object) -> dict[str, object]:
    """What the log says of a fit."""
    return {"pages": pages, "price": agenda.policy.price, **more}
