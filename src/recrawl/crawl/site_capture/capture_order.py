"""The order of a capture: site, strategy and terms. Stored as JSON with the capture."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from recrawl import plugins
from recrawl.capture.pyramid import RevisitedStrategy, RevisitOrder
from recrawl.capture.strategies import STRATEGIES, MakeStrategy, built_in_traits
from recrawl.capture.strategy import CaptureTerms, Strategy, StrategyTraits
from recrawl.crawl.site_capture.capture_terms import DEFAULT_THRESHOLD, RateSource, Requisites, WeightSource
from recrawl.crawl.visit.scope import ScopeKind, ScopeRules
from recrawl.errors import ConfigError, StoreError
from recrawl.urls import Address, address


def strategy_named(name: str) -> MakeStrategy:
    """How to make the strategy of this name: built in, of an entry point, or at ``package.module:Name``.

    Raises:
        ConfigError: there is none, or it cannot be loaded.

    >>> strategy_named("bfs")(CaptureTerms(delay=1.0)).next_page() is None
    True
    """
    make: MakeStrategy = plugins.find("strategy", name, STRATEGIES)
    return make


def traits_of(name: str) -> StrategyTraits:
    """What must be known of a strategy before it is made; of a plug-in, what its attribute ``traits`` says.

    Raises:
        ConfigError: there is none, or it cannot be loaded.

    >>> traits_of("bfs-lifo") == StrategyTraits(revisits=True)
    True
    """
    if name in STRATEGIES:
        return built_in_traits(name)
    traits = getattr(strategy_named(name), "traits", StrategyTraits())
    if not isinstance(traits, StrategyTraits):
        raise ConfigError(
            f"The attribute traits of the strategy {name} is {traits!r}.", "Make it a recrawl.capture.StrategyTraits."
        )
    return traits


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureOrder:
    """One requested capture. Two equal orders of one site are one capture until it is finished."""

    site: str
    """The start page: a URL as a browser would write it."""
    strategy: str
    """A built-in name, the name of an entry point, or ``package.module:Name``."""
    revisit: bool | None = None
    """Whether pages are revisited; ``None``: as the strategy does."""
    delay: float | None = None
    """Seconds from one request to the next; ``None``: what politeness asks for."""
    expected: int | None = None
    """Expected number of pages of the site."""
    threshold: float = DEFAULT_THRESHOLD
    """See :class:`recrawl.capture.CaptureTerms`."""
    rates: RateSource = RateSource.KNOWN
    from_sitemap: bool = False
    """Start with the pages in the site's sitemaps."""
    max_pages: int | None = None
    """Maximum pages of the capture."""
    scope: ScopeRules = field(default_factory=ScopeRules)
    requisites: Requisites = Requisites.ANY
    """Which page requisites belong to the capture."""
    weights: WeightSource = WeightSource.IMPORTANCE
    """What the weight of a page is."""
    observe: tuple[float, float] | None = None
    """Start and end of a given observation interval, seconds since the epoch; ``None``: that of the capture."""

    def __post_init__(self) -> None:
        if address(self.site) is None:
            raise ConfigError(
                f"{self.site!r} is not an http or https URL.", "Write it in full, like https://example.org/."
            )
        if self.revisit is None and self.strategy not in STRATEGIES:
            # Stored with the order, so that a finished capture can be read where the plug-in is not installed.
            object.__setattr__(self, "revisit", traits_of(self.strategy).revisits)
        if self.max_pages is not None and self.max_pages < 1:
            raise ConfigError(f"A capture of {self.max_pages} pages is none.", "Take in at least 1, or say nothing.")
        self.terms(self.delay or 0.0)

    @property
    def seed(self) -> Address:
        """The start page."""
        found = address(self.site)
        if found is None:
            raise AssertionError  # checked when it was made
        return found

    @property
    def revisits(self) -> bool:
        """Whether pages are revisited."""
        return built_in_traits(self.strategy).revisits if self.revisit is None else self.revisit

    @property
    def needs_all_pages(self) -> bool:
        """Whether the strategy needs all pages beforehand."""
        return traits_of(self.strategy).needs_all_pages

    @property
    def reads_expected(self) -> bool:
        """Whether the strategy uses the expected number of pages."""
        return traits_of(self.strategy).reads_expected

    @property
    def reads_threshold(self) -> bool:
        """Whether the strategy uses a threshold."""
        return traits_of(self.strategy).reads_threshold

    @property
    def reads_observe(self) -> bool:
        """Whether the strategy uses an observation interval."""
        return traits_of(self.strategy).reads_observe

    def terms(self, delay: float, *, is_first: bool = True, started: float | None = None) -> CaptureTerms:
        """The terms of the strategy, for slots of ``delay`` seconds in a capture ``started`` at a time."""
        seen = (
            None if self.observe is None else (self.observe[0] - (started or 0.0), self.observe[1] - (started or 0.0))
        )
        expected = self.expected if is_first else None
        return CaptureTerms(delay=delay, expected=expected, threshold=self.threshold, observe=seen)

    def new_strategy(self, delay: float, *, is_first: bool = True, started: float | None = None) -> Strategy:
        """A new strategy, for slots of ``delay`` seconds in a capture ``started`` at a time.

        The expected number of pages is that of the first host.

        A single-visit strategy that is asked for revisits makes them in reverse order: of all orders it keeps the most
        pages coherent (SHARC Theorem 5.2).
        """
        make = strategy_named(self.strategy)
        terms = self.terms(delay, is_first=is_first, started=started)
        strategy: Strategy = plugins.made("strategy", self.strategy, Strategy, make, terms)
        if self.revisits and not traits_of(self.strategy).revisits:
            return RevisitedStrategy(strategy, RevisitOrder.LIFO)
        return strategy

    def as_json(self) -> str:
        """As it is stored; equal orders give equal texts."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> CaptureOrder:
        """The stored order.

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
        # A capture of an older version has no requisites, and goes on without them.
        kept["weights"] = WeightSource(kept.get("weights", WeightSource.IMPORTANCE))
        kept["observe"] = None if kept.get("observe") is None else tuple(kept["observe"])
        kept["requisites"] = Requisites(kept.get("requisites", Requisites.NONE))
        return cls(**kept, scope=ScopeRules(**scope | {"kind": ScopeKind(scope["kind"])}))
