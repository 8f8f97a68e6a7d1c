"""Keeping the policy in step with the store: learning what is recorded, and fitting to it in time."""

from __future__ import annotations

import math

import numpy as np

from recrawl.crawl.garbage import give_back_memory
from recrawl.crawl.log import JsonLinesLog
from recrawl.crawl.recorder import Recorder
from recrawl.errors import StoreError
from recrawl.model import Pages
from recrawl.schedule.agenda import Agenda
from recrawl.store.base import Store

_PATIENCE = 60.0
"""Seconds a fit waits for a moment without requests; then it is made beside them."""
_FIRST_PATIENCE = 1.0
"""The same for the first fit, without which no visit has a value."""
_CHUNK = 100_000
"""Pages rescheduled in one transaction, so that other workers get their turn."""


class Fitting:
    """State is a fold over visits, so recovery is replay; and what other workers record is learned the same way."""

    def __init__(self, store: Store, agenda: Agenda, recorder: Recorder, log: JsonLinesLog, late: float) -> None:
        """Others may record visits up to ``late`` seconds after they were made."""
        self._store = store
        self._agenda = agenda
        self._recorder = recorder
        self._log = log
        self._late = late
        self._told_until = -math.inf
        self._wanted_since = math.inf

    def resume(self, now: float) -> None:
        """Learn all that is recorded."""
        self._recorder.take_in()
        self._told_until = -math.inf
        pages = self._store.pages()
        self._catch_up(pages, now)
        self._recorder.recall_signals(pages.id[pages.importance > 0], now)
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
        pages = self._store.pages()
        page = pages.id[pages.importance > 0]
        before = self._store.due(page)
        self._catch_up(pages, now)
        self._agenda.line_up(page, now)
        self._agenda.fit(now)
        try:
            for start in range(0, len(page), _CHUNK):
                rows = slice(start, start + _CHUNK)
                due = self._agenda.due(page[rows], now)
                due[np.isin(page[rows], list(self._recorder.at_once))] = now
                self._store.reschedule(page[rows], due, before=before[rows])
        except StoreError:
            self._agenda.fit_again()
            raise
        give_back_memory()
        self._log.event("schedule", "policy fitted", details={"pages": len(page), "price": self._agenda.policy.price})

    def _catch_up(self, pages: Pages, now: float) -> None:
        """Learn of all pages, and visits since the last time, also of other workers'. What is known is passed over."""
        wanted = pages.take(pages.importance > 0)
        self._agenda.add(wanted)
        since = self._told_until - self._late
        visits = self._store.visits(since=None if math.isinf(since) else since).sorted()
        self._agenda.tell(visits.take(np.isin(visits.page, wanted.id)))
        self._told_until = now
