"""The results of ``recrawl rates`` for single pages, for a server: computed in the background and cached.

A server answers for one page at a time and cannot fit all visits for each response. So beliefs are fitted as in
``recrawl rates``, at most every ten minutes. With many pages the fit uses a sample; beliefs about the others then come
from their own observations and the priors of their hosts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from recrawl.app.predict.model_use import expected_changes
from recrawl.app.rates.belief_table import LEVEL, BeliefTable, VisitSpan, learn, middle_of
from recrawl.errors import StoreError
from recrawl.estimate.estimator import RateEvidence
from recrawl.estimate.estimators import DEFAULT, ESTIMATORS
from recrawl.estimate.operational.operational_posterior import ClockedBelief, OperationalPosterior
from recrawl.model import Belief, FloatArray, Histories, IntArray, Verdict, Visits
from recrawl.web.dashboard.stale_cache import StaleCache, WorkerPool

if TYPE_CHECKING:
    from collections.abc import Callable

    from recrawl.app.workspace.workspace import Workspace
    from recrawl.store.base import PageTable, Store

SAMPLE = 20_000
"""Pages that teach, at most."""
FRESH = 600.0
"""Seconds for which beliefs are good enough: a crawl goes on beside us."""
PATIENCE = 60.0
"""Seconds that the first request waits for them."""


@dataclass(frozen=True)
class LearnedPages:
    """What is known of the pages that teach, and how to learn about others."""

    known: BeliefTable

    @cached_property
    def _middle(self) -> FloatArray:
        return self.known.rate

    @cached_property
    def ends(self) -> tuple[FloatArray, FloatArray]:
        """Of the intervals of all pages that teach, per second."""
        return self.known.interval()

    def rates(self, store: PageTable, visits: Visits) -> FloatArray:
        """Changes per second of each page that was observed in these visits, by ascending id; NaN if not known.

        O(visits + log n) for pages that teach.
        """
        pages = np.unique(visits.page[visits.answered() | (visits.verdict != Verdict.UNKNOWN)])
        at = self.known.rows(pages)
        rate = np.full(len(pages), np.nan)
        rate[at >= 0] = self._middle[at[at >= 0]]
        others = pages[at < 0]
        if len(others):
            histories = Histories.from_visits(visits.take(np.isin(visits.page, others))).align(others)
            seen = histories.counts() > 0
            if seen.any():
                some = histories.take(seen)
                found = np.full(len(others), np.nan)
                found[seen] = middle_of(self.of_others(some, store.pages(some.page).host), some)
                rate[at < 0] = found
        return rate

    def of_others(self, histories: Histories, host: IntArray) -> Belief:
        """The belief about pages that did not teach, by their own observations and the priors of their hosts."""
        belief, estimator = self.known.belief, ESTIMATORS[DEFAULT]
        if isinstance(belief, ClockedBelief) and isinstance(estimator, OperationalPosterior):
            return estimator.posterior.learn(RateEvidence(histories, (host,)), belief.learned.priors).belief
        return estimator(RateEvidence(histories, (host,)))

    def over_time(self, page: int, host: int, grown: Histories) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Rate and ends of the interval of one page after each of several observations, per second.

        ``grown`` has a row for each: what was observed by then. The last is what is known of the page, if nothing was
        observed since the fit: it also uses the claims of sites.
        """
        [at] = self.known.rows(np.array([page]))
        belief, estimator = self.known.belief, ESTIMATORS[DEFAULT]
        if at >= 0 and isinstance(belief, ClockedBelief) and isinstance(estimator, OperationalPosterior):
            found: Belief = estimator.follow(belief, np.full(len(grown), at), grown)
        else:
            found = self.of_others(grown, np.full(len(grown), host))
        rate = middle_of(found, grown)
        low, high = (found.quantile(q) for q in ((1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0))
        low, high = np.minimum(low, rate), np.maximum(high, rate)
        if at >= 0 and len(grown) and grown.last_visit[-1] == self.known.histories.last_visit[at]:
            rate[-1], low[-1], high[-1] = self._middle[at], self.ends[0][at], self.ends[1][at]
        return rate, low, high


class PageBeliefs:
    """Cached beliefs about the pages of a workspace. Thread-safe."""

    def __init__(self, place: Workspace, clock: Callable[[], float]) -> None:
        self._place = place
        self._lease_pool = WorkerPool(1)
        self.kept = StaleCache(self._learn, fresh=FRESH, clock=clock, lease_pool=self._lease_pool)
        """What is known now, if anything is."""

    def rates(self, store: Store, visits: Visits) -> FloatArray:
        """Changes per second of each page that was observed in these visits, by ascending id; NaN if not known.

        Raises:
            StoreError: nothing was learned yet.
        """
        found = self.kept.get(PATIENCE)
        if found.value is None:
            raise StoreError(found.error or "Estimating change rates takes a while.", "Try again later.")
        return found.value.rates(store, visits)

    def close(self, patience: float) -> None:
        """Stop fitting, and wait a limited number of seconds for a running fit."""
        self._lease_pool.end(patience)

    def _learn(self) -> LearnedPages:
        """Takes a moment; later requests get the known beliefs while new ones are fitted."""
        with self._place.open_store() as store:
            last = store.last_page()
            chosen = None if last <= SAMPLE else np.unique(np.linspace(1, last, SAMPLE).astype(np.int64))
            return LearnedPages(learn(store, VisitSpan(pages=chosen), expected=expected_changes(self._place, store)))
