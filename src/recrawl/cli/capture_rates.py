"""How often pages are believed to change, for a capture that is about to visit them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from recrawl.crawl.capture_terms import RateSource
from recrawl.estimate import sitemap
from recrawl.estimate.empirical_bayes import UNKNOWN_RATE
from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.predict import prior
from recrawl.store.base import Store

if TYPE_CHECKING:
    from recrawl.cli.knowledge import Expected

_CLAIMS: dict[RateSource, sitemap.Reading] = {
    RateSource.KNOWN: "literal",
    RateSource.SITEMAP: "literal",
    RateSource.SITEMAP_CORRECTED: "corrected",
}
"""How each source that asks sitemaps reads them."""
_VISITS = (RateSource.KNOWN, RateSource.BELIEF)
_NOTHING = np.empty(0, np.int64), np.empty(0)


@dataclass(frozen=True)
class BelievedRates:
    """Rates by page id, per second: by default what visits taught, else what sitemaps claim, else what is expected.

    Only visits before the capture teach: so a capture that was interrupted is told what one that was not is told.
    """

    store: Store
    until: float
    """When the capture began, seconds since the epoch."""
    source: RateSource = RateSource.KNOWN
    """Which of these are asked."""
    expected: Expected | None = None
    """What a model expects of pages that nobody has seen, by their URLs; what pages around do where there is none."""
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

    def foretold(self, page: IntArray) -> BoolArray:
        """Which of these pages the model speaks for: nobody has seen them, and no sitemap that is asked names them."""
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
        from recrawl.cli.knowledge import Span, learn  # takes long to import, and a first capture has nothing to learn

        known = learn(self.store, Span(until=self.until), expected=self.compared)
        twice = np.flatnonzero(known.histories.counts() > 0)  # of the others nothing is known but what is expected
        return known.histories.page[twice], known.rate[twice]

    @cached_property
    def _around(self) -> tuple[prior.NeighbourPrior, bool]:
        """What to expect of a page that nobody has seen, and whether any observation taught it."""
        histories = self.store.histories(until=self.until)
        histories = histories.take(~np.isin(histories.page, self.store.resources()))
        found = prior.fit(histories, self._host(histories.page), self._section(histories.page))
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
        return np.array([prior.section_id(url) for url in self.store.urls(page)], np.int64)

    def _claimed(self, page: IntArray, reading: sitemap.Reading) -> FloatArray:
        """What the last ``changefreq`` said of each page means (SHARC Definition 6.1); NaN for nothing."""
        claims = self.store.claims(np.unique(page))
        said = np.flatnonzero(claims.changefreq > 0)
        last = dict(zip(claims.page[said].tolist(), claims.changefreq[said].tolist(), strict=True))
        said_of = np.array([last.get(one, sitemap.UNSAID) for one in page.tolist()], np.int64)
        return sitemap.rates(said_of, reading)
