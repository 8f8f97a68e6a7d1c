"""What was asked for: which site to capture, by which strategy, on which terms. Kept as JSON with the capture."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from recrawl.capture import EXPECTING, OFFLINE, REVISITING, THRESHOLDED, Strategy, Terms
from recrawl.capture.revisited import Revisited, RevisitOrder
from recrawl.capture.strategies import strategy_named
from recrawl.crawl.capture_terms import DEFAULT_THRESHOLD, RateSource
from recrawl.crawl.scope import ScopeKind, ScopeRules
from recrawl.errors import ConfigError, StoreError
from recrawl.urls import Address, address


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureOrder:
    """One capture, as asked for. Two equal orders of one site are one capture until it is finished."""

    site: str
    """Where to begin: the URL of a page, as a browser would write it."""
    strategy: str
    revisit: bool | None = None
    """Whether pages are seen again; ``None``: as the strategy does."""
    delay: float | None = None
    """Seconds from one request to the next; ``None``: what politeness asks for."""
    expected: int | None = None
    """How many pages the site is believed to have."""
    threshold: float = DEFAULT_THRESHOLD
    """See :class:`recrawl.capture.Terms`."""
    rates: RateSource = RateSource.KNOWN
    from_sitemap: bool = False
    """Begin with the pages that the site's sitemaps name."""
    max_pages: int | None = None
    """Pages that are taken in at most."""
    scope: ScopeRules = field(default_factory=ScopeRules)

    def __post_init__(self) -> None:
        if address(self.site) is None:
            raise ConfigError(
                f"{self.site!r} is not an http or https URL.", "Write it in full, like https://example.org/."
            )
        strategy_named(self.strategy)
        if self.max_pages is not None and self.max_pages < 1:
            raise ConfigError(f"A capture of {self.max_pages} pages is none.", "Take in at least 1, or say nothing.")
        self.terms(self.delay or 0.0)

    @property
    def seed(self) -> Address:
        """The page where it begins."""
        found = address(self.site)
        if found is None:
            raise AssertionError  # checked when it was made
        return found

    @property
    def revisits(self) -> bool:
        """Whether pages are seen again."""
        return self.strategy in REVISITING if self.revisit is None else self.revisit

    @property
    def needs_all_pages(self) -> bool:
        """Whether the strategy must know the pages beforehand."""
        return self.strategy in OFFLINE

    @property
    def reads_expected(self) -> bool:
        """Whether the strategy asks how many pages are expected."""
        return self.strategy in EXPECTING

    @property
    def reads_threshold(self) -> bool:
        """Whether the strategy asks for a threshold."""
        return self.strategy in THRESHOLDED

    def terms(self, delay: float) -> Terms:
        """The terms of the strategy, for slots of ``delay`` seconds."""
        return Terms(delay=delay, expected=self.expected, threshold=self.threshold)

    def new_strategy(self, delay: float) -> Strategy:
        """A new state machine, for slots of ``delay`` seconds.

        One that visits pages once and is asked for revisits sees them again in reverse order: of all orders that is
        the one by which most pages stay coherent (SHARC Theorem 5.2).
        """
        strategy = strategy_named(self.strategy)(self.terms(delay))
        if self.revisits and self.strategy not in REVISITING:
            return Revisited(strategy, RevisitOrder.LIFO)
        return strategy

    def as_json(self) -> str:
        """As it is kept; equal orders give equal texts."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> CaptureOrder:
        """The order that was kept.

        >>> order = CaptureOrder(site="https://example.org/", strategy="bfs")
        >>> CaptureOrder.from_json(order.as_json()) == order
        True
        """
        kept: dict[str, Any] = json.loads(text)
        if unknown := kept.keys() - {one.name for one in fields(cls)}:
            raise StoreError(
                f"This capture was asked for in words that this recrawl does not know: {', '.join(sorted(unknown))}.",
                "Upgrade recrawl: pip install --upgrade recrawl",
            )
        scope: dict[str, Any] = kept.pop("scope")
        scope |= {name: tuple(scope[name]) for name in ("include", "exclude")}
        kept["rates"] = RateSource(kept.get("rates", RateSource.KNOWN))
        return cls(**kept, scope=ScopeRules(**scope | {"kind": ScopeKind(scope["kind"])}))
