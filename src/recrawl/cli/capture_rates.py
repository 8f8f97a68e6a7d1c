"""How often pages are believed to change, for a capture that is about to visit them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from recrawl.estimate import sitemap
from recrawl.model import FloatArray, IntArray
from recrawl.predict import prior
from recrawl.store.base import Store


@dataclass(frozen=True)
class BelievedRates:
    """Rates by page id, per second: what visits taught, else what sitemaps claim, else what pages around do.

    Only visits before the capture teach: so a capture that was interrupted is told what one that was not is told.
    """

    store: Store
    until: float
    """When the capture began, seconds since the epoch."""

    def __call__(self, page: IntArray) -> FloatArray:
        """The rate of each page. The first call learns from all visits; then O(n log n)."""
        rate, claimed = self._expected(page), self._claimed(page)
        rate = np.where(np.isfinite(claimed), claimed, rate)
        known, learned = self._learned
        if len(known):
            place = np.minimum(np.searchsorted(known, page), len(known) - 1)
            rate = np.where(known[place] == page, learned[place], rate)
        return rate

    @cached_property
    def _learned(self) -> tuple[IntArray, FloatArray]:
        """Pages that were seen, ascending, and what visits taught of each."""
        if not len(self.store.latest_visits(1)):
            return np.empty(0, np.int64), np.empty(0)
        from recrawl.cli.knowledge import Span, learn  # takes long to import, and a first capture has nothing to learn

        known = learn(self.store, Span(until=self.until))
        return known.histories.page, known.belief.mean() if len(known.histories) else np.empty(0)

    @cached_property
    def _around(self) -> prior.NeighbourPrior:
        """What to expect of a page that nobody has seen."""
        histories = self.store.histories(until=self.until)
        return prior.fit(histories, self._host(histories.page), self._section(histories.page))

    def _expected(self, page: IntArray) -> FloatArray:
        return self._around.of(self._host(page), self._section(page)).mean()

    def _host(self, page: IntArray) -> IntArray:
        pages = self.store.pages(np.unique(page))
        return pages.host[np.searchsorted(pages.id, page)]

    def _section(self, page: IntArray) -> IntArray:
        return np.array([prior.section_id(url) for url in self.store.urls(page)], np.int64)

    def _claimed(self, page: IntArray) -> FloatArray:
        """What the last ``changefreq`` said of each page means (SHARC Def. 6.1, literal reading); NaN for nothing."""
        claims = self.store.claims(np.unique(page))
        said = np.flatnonzero(claims.changefreq > 0)
        last = dict(zip(claims.page[said].tolist(), claims.changefreq[said].tolist(), strict=True))
        return sitemap.rates(np.array([last.get(one, sitemap.UNSAID) for one in page.tolist()], np.int64))
