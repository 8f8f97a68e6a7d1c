"""How often pages are believed to change, for a capture that is about to visit them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from recrawl.crawl.site_capture.capture_terms import RateSource
from recrawl.estimate.posterior.gamma_posterior import UNKNOWN_RATE
from recrawl.estimate.signals import changefreq_prior
from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.predict import url_clusters
from recrawl.store.base import Store

if TYPE_CHECKING:
    from recrawl.app.rates.belief_table import Expected

_CLAIMS: dict[RateSource, changefreq_prior.Reading] = {
    RateSource.KNOWN: "literal",
    RateSource.SITEMAP: "literal",
    RateSource.SITEMAP_CORRECTED: "corrected",
}
"""How each rate source reads sitemaps."""
_VISITS = (RateSource.KNOWN, RateSource.BELIEF)
_NOTHING = np.empty(0, np.int64), np.empty(0)


@dataclass(frozen=True)
class BelievedRates:
    """Rates by page id, per second: by default from visits, then from sitemaps, then from predictions.

    Only visits before the capture count, so that an interrupted capture gets the same rates as an uninterrupted one.
    """

    store: Store
    until: float
    """The start of the capture, seconds since the epoch."""
    source: RateSource = RateSource.KNOWN
    """The selected sources."""
    expected: Expected | None = None
    """Predicted rates of new pages from their URLs; the rates of neighbouring pages without a model."""
    compared: Expected | None = None
    """What it expects of pages beside each other, for what visits taught."""

    def __call__(self, page: IntArray) -> FloatArray:
        """The rate of each page. The first call learns from all visits; then O(n log n)."""
        if self.source is RateSource.EQUAL:
            return np.full(len(page), UNKNOWN_RATE)
        rate = self._expected(page)
        if self.source in _CLAIMS:
            claimed = self._claimed(page, _CLAIMS[self.source])
            rate = np.where(np.isfinite(claimed), claimed, rate)
        known, learned = self._learned if self.source in _VISITS else _NOTHING
        if len(known):
            place = np.minimum(np.searchsorted(known, page), len(known) - 1)
            rate = np.where(known[place] == page, learned[place], rate)
        return rate

    def predicted(self, page: IntArray) -> BoolArray:
        """The pages that the model predicts: never observed, and in no sitemap in use."""
        if self.expected is None or self.source is RateSource.EQUAL:
            return np.zeros(len(page), np.bool_)
        alone = np.ones(len(page), np.bool_)
        if self.source in _CLAIMS:
            alone &= ~np.isfinite(self._claimed(page, _CLAIMS[self.source]))
        if self.source in _VISITS:
            alone &= ~np.isin(page, self._learned[0])
        return alone

    @cached_property
    def _learned(self) -> tuple[IntArray, FloatArray]:
        """Pages that were seen, ascending, and what visits taught of each."""
        if not len(self.store.latest_visits(1)):
            return np.empty(0, np.int64), np.empty(0)
        from recrawl.app.rates.belief_table import (  # takes long to import, and a first capture has nothing to learn
            VisitSpan,
            learn,
        )

        known = learn(self.store, VisitSpan(until=self.until), expected=self.compared)
        twice = np.flatnonzero(known.histories.counts() > 0)  # of the others nothing is known but what is expected
        return known.histories.page[twice], known.rate[twice]

    @cached_property
    def _around(self) -> tuple[url_clusters.NeighbourPrior, bool]:
        """The rate of a new page, and whether it comes from observations."""
        histories = self.store.histories(until=self.until)
        histories = histories.take(~np.isin(histories.page, self.store.resources()))
        found = url_clusters.fit_neighbour_prior(histories, self._host(histories.page), self._section(histories.page))
        return found, bool(len(histories.gaps))

    def _expected(self, page: IntArray) -> FloatArray:
        if self.expected is not None:
            return self.expected(page)
        around, taught = self._around
        belief = around.of(self._host(page), self._section(page))
        # The middle, as of pages that were seen: where some changed at every observation the mean is all tail.
        return belief.quantile(0.5) if taught else belief.mean()

    def _host(self, page: IntArray) -> IntArray:
        pages = self.store.pages(np.unique(page))
        return pages.host[np.searchsorted(pages.id, page)]

    def _section(self, page: IntArray) -> IntArray:
        return np.array([url_clusters.section_id(url) for url in self.store.urls(page)], np.int64)

    def _claimed(self, page: IntArray, reading: changefreq_prior.Reading) -> FloatArray:
        """What the last ``changefreq`` said of each page means (SHARC Definition 6.1); NaN for nothing."""
        claims = self.store.claims(np.unique(page))
        said = np.flatnonzero(claims.changefreq > 0)
        last = dict(zip(claims.page[said].tolist(), claims.changefreq[said].tolist(), strict=True))
        said_of = np.array([last.get(one, changefreq_prior.UNSAID) for one in page.tolist()], np.int64)
        return changefreq_prior.rates(said_of, reading)
