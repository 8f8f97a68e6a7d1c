"""The pages of a capture in the order found: where each lies, how it was reached, and which others belong to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from recrawl.crawl.capture_order import CaptureOrder
from recrawl.crawl.scope import Place, SiteScope
from recrawl.crawl.traps import trap
from recrawl.model import Outcome
from recrawl.store.site_values import SiteLog
from recrawl.urls import address


@dataclass(slots=True)
class SiteMap:
    """Grows as a capture goes on; of equal steps it grows equally. O(1) a link beside the scope."""

    scope: SiteScope
    most: int | None = None
    """Pages that are taken in at most."""
    page: list[int] = field(default_factory=list)
    """Ids, by number."""
    url: list[str] = field(default_factory=list)
    host: list[int] = field(default_factory=list)
    _place: list[Place] = field(default_factory=list)
    _known: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, order: CaptureOrder, log: SiteLog, urls: Sequence[str], hosts: list[int]) -> SiteMap:
        """The map as the recorded steps left it."""
        site = cls(SiteScope(order.scope, (order.seed,)), order.max_pages)
        redirected = {step.number for step in log.steps if step.outcome == Outcome.REDIRECTED and not step.revisit}
        for page, via, url in zip(log.found.page.tolist(), log.found.via.tolist(), urls, strict=True):
            if via in redirected:
                site.follow(via, url)
            found = address(url)
            place = site.scope.place(found, site._place[via]) if found and via >= 0 else Place()
            site._add(page, url, place or Place())
        site.host = hosts
        if site.url:
            site.url[0] = order.seed.url
        return site

    def follow(self, number: int, url: str) -> None:
        """A page redirects to this URL. If it is the one where the capture began, the site lies there."""
        found = address(url)
        if number == 0 and found and not self.scope.covers(found):
            self.scope = self.scope.with_seed(found)

    def admit(self, via: int, urls: Sequence[str], pages: Sequence[int]) -> list[int]:
        """Take in what belongs to the site of the links of page ``via``; ids of the new pages, in order.

        Their hosts are for the caller to add.
        """
        new = []
        for url, page in zip(urls, pages, strict=True):
            if page < 0 or page in self._known or (self.most is not None and len(self.page) >= self.most):
                continue
            found = address(url)
            if found is None or trap(found.url, max_depth=self.scope.rules.max_depth):
                continue
            place = self.scope.place(found, self._place[via])
            if place is not None:
                self._add(page, url, place)
                new.append(page)
        return new

    def back_to(self, pages: int, scope: SiteScope) -> None:
        """Forget all but the first pages: the step that found the others could not be recorded."""
        self._known.difference_update(self.page[pages:])
        del self.page[pages:], self.url[pages:], self._place[pages:], self.host[pages:]
        self.scope = scope

    def _add(self, page: int, url: str, place: Place) -> None:
        self.page.append(page)
        self.url.append(url)
        self._place.append(place)
        self._known.add(page)
