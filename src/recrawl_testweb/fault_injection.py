"""How a server misbehaves: shares of pages with a trait, and chances that a request goes wrong.

Traits are dealt to pages once, by seed; failures are drawn for each request from (seed, page, number of
the request to that page). Both can be asked for afterwards, so a test can say which page lied.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import AnyArray
from recrawl.simulate.sites import PRIVATE
from recrawl_testweb.seeded_rng import SeededRng


class ValidatorOffer(enum.IntEnum):
    """Which validators a page sends."""

    BOTH = 0
    ETAG = 1
    LAST_MODIFIED = 2
    NONE = 3


class ValidatorLie(enum.IntEnum):
    """How the validators of a page lie."""

    NONE = 0
    STUCK = 1
    """They never move on: 304 although the page changed."""
    RESTLESS = 2
    """Last-Modified is now, at every request, and there is no ETag: never 304."""


class SitemapLie(enum.IntEnum):
    """How a page's entry in the sitemap lies."""

    NONE = 0
    STALE = 1
    """lastmod stays at the page's birth and changefreq says ``never``."""
    FRESH = 2
    """lastmod is now and changefreq says ``always``."""


class PageNoise(enum.IntFlag):
    """What differs on every request and is no change."""

    NONE = 0
    CLOCK = 1
    NONCE = 2
    BANNER = 4
    RELATED = 8
    """A box with a few of the page's links, others each time."""
    COUNTER = 16
    """How many have read it."""
    QUOTE = 32
    """Another wise word each time."""


class RequestFailure(enum.IntEnum):
    """What happens to one request."""

    NONE = 0
    ERROR = 1
    """500 or 502."""
    BUSY = 2
    """503 or 429 with Retry-After."""
    SLOW = 3
    TRUNCATED = 4
    """The connection closes in the middle of the body."""


CHARSETS = ("utf-8", "iso-8859-1", "windows-1252", "utf-16", "shift_jis")
REDIRECTS = (301, 302, 307, 308)


class PageFaults(NamedTuple):
    """The traits of one page."""

    offer: ValidatorOffer
    lie: ValidatorLie
    noise: PageNoise
    charset: str
    in_header: bool
    """The charset is declared in Content-Type, else in a meta element (UTF-16: by its byte order mark)."""
    gzip: bool
    """Compressed for clients that accept it."""
    chunked: bool
    redirect: int
    """Links lead to an old address that answers with this status; 0: straight to the page."""
    map_lie: SitemapLie


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultProfile:
    """Shares of pages (0 to 1), chances for each request (0 to 1), and what robots.txt says."""

    no_validators: float = 0.0
    """Share of pages with neither ETag nor Last-Modified."""
    one_validator: float = 0.0
    """Share of pages with only one of the two."""
    stuck_validators: float = 0.0
    restless_validators: float = 0.0
    noise: float = 0.0
    """Share of pages with a clock, a nonce or a rotating banner, or several of them."""
    odd_noise: float = 0.0
    """Share of pages with noise that looks like content: a related box, a counter or a rotating quote, or several."""
    charsets: float = 0.0
    """Share of pages in another charset than UTF-8."""
    meta_charset: float = 0.0
    """Share of pages that declare their charset inside the page."""
    gzip: float = 0.0
    chunked: float = 0.0
    redirects: float = 0.0
    lying_maps: float = 0.0
    """Share of pages whose sitemap entry lies."""
    errors: float = 0.0
    """Chance that a request gets 500 or 502."""
    busy: float = 0.0
    """Chance that a request gets 503 or 429 with Retry-After."""
    robots_errors: float = 0.0
    """Chance that a request for robots.txt gets 503: a crawler then must stay away (RFC 9309 2.3.1.4)."""
    slow: float = 0.0
    truncated: float = 0.0
    retry_after: float = 60.0
    """Seconds of the web's own time that Retry-After asks for."""
    slowness: float = 0.3
    """Seconds of real time that a slow answer takes: it is the client's patience that it tries."""
    crawl_delay: float = 0.0
    """Seconds in robots.txt; 0: none is named."""
    disallow: tuple[str, ...] = (PRIVATE,)
    """Path prefixes that robots.txt disallows. They are served all the same, and the log tells."""

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            limit = np.inf if item.name in _NO_SHARES else 1.0
            if isinstance(value, float | int) and not 0 <= value <= limit:
                raise ConfigError(f"The quirk {item.name} = {value} is out of range.", f"Use 0 to {limit}.")
        if self.errors + self.busy + self.slow + self.truncated > 1:
            raise ConfigError("The chances of failures add up to more than 1.", "Lower some of them.")

    @classmethod
    def none(cls) -> FaultProfile:
        """A server without fault: ETag and Last-Modified, UTF-8, plain bodies, no failures."""
        return cls()

    @classmethod
    def mild(cls) -> FaultProfile:
        """What a crawler meets on any day."""
        return cls(
            no_validators=0.15, one_validator=0.2, stuck_validators=0.02, restless_validators=0.05, noise=0.15,
            charsets=0.1, meta_charset=0.3, gzip=0.6, chunked=0.2, redirects=0.03, lying_maps=0.1, errors=0.005,
            busy=0.002, truncated=0.002, crawl_delay=1.0,
        )  # fmt: skip

    @classmethod
    def wild(cls) -> FaultProfile:
        """Everything that can go wrong, often."""
        return cls(
            no_validators=0.25, one_validator=0.25, stuck_validators=0.15, restless_validators=0.15, noise=0.5,
            charsets=0.6, meta_charset=0.5, gzip=0.5, chunked=0.5, redirects=0.2, lying_maps=0.4, errors=0.05,
            busy=0.05, robots_errors=0.2, slow=0.02, truncated=0.05, slowness=0.1, crawl_delay=2.0,
        )  # fmt: skip

    def robots_failure(self, seed: int, host: int, count: int) -> bool:
        """Whether request number ``count`` (from 0) for the robots.txt of a host fails."""
        return self.robots_errors > 0 and SeededRng(seed, -1 - host, count, 1).share() < self.robots_errors

    def failure(self, seed: int, page: int, count: int) -> RequestFailure:
        """What happens to request number ``count`` (from 0) to a page."""
        if not (self.errors or self.busy or self.slow or self.truncated):
            return RequestFailure.NONE
        draw = SeededRng(seed, page, count, 1).share()
        chances = (
            (RequestFailure.ERROR, self.errors),
            (RequestFailure.BUSY, self.busy),
            (RequestFailure.SLOW, self.slow),
            (RequestFailure.TRUNCATED, self.truncated),
        )
        for failure, chance in chances:
            if draw < chance:
                return failure
            draw -= chance
        return RequestFailure.NONE


_NO_SHARES = ("retry_after", "slowness", "crawl_delay")


@dataclass(frozen=True, slots=True)
class AssignedFaults:
    """The traits of all pages, as columns."""

    offer: AnyArray
    lie: AnyArray
    noise: AnyArray
    charset: AnyArray
    """Index into ``CHARSETS``."""
    in_header: AnyArray
    gzip: AnyArray
    chunked: AnyArray
    redirect: AnyArray
    map_lie: AnyArray

    @classmethod
    def deal(cls, fault_profile: FaultProfile, pages: int, seed: int) -> AssignedFaults:
        """Traits for ``pages`` pages, the same for the same seed. O(n)."""
        rng = np.random.default_rng([seed, 0x0DD])

        def some(share: float) -> AnyArray:
            return rng.random(pages) < share

        def one_of(low: int, high: int) -> AnyArray:
            return rng.integers(low, high, pages)

        one = np.where(
            some(fault_profile.one_validator), one_of(ValidatorOffer.ETAG, ValidatorOffer.NONE), ValidatorOffer.BOTH
        )
        offer = np.where(some(fault_profile.no_validators), ValidatorOffer.NONE, one)
        restless = np.where(some(fault_profile.restless_validators), ValidatorLie.RESTLESS, ValidatorLie.NONE)
        lie = np.where(some(fault_profile.stuck_validators), ValidatorLie.STUCK, restless)
        dealt = cls(
            offer=offer.astype(np.uint8),
            # A page that sends no validators has nothing to lie with.
            lie=np.where(offer == ValidatorOffer.NONE, ValidatorLie.NONE, lie).astype(np.uint8),
            noise=np.where(some(fault_profile.noise), one_of(1, 8), 0).astype(np.uint8),
            charset=np.where(some(fault_profile.charsets), one_of(1, len(CHARSETS)), 0).astype(np.uint8),
            in_header=~some(fault_profile.meta_charset),
            gzip=some(fault_profile.gzip),
            chunked=some(fault_profile.chunked),
            redirect=np.where(some(fault_profile.redirects), np.array(REDIRECTS)[one_of(0, len(REDIRECTS))], 0),
            map_lie=np.where(some(fault_profile.lying_maps), one_of(1, 3), 0).astype(np.uint8),
        )
        odd = np.where(some(fault_profile.odd_noise), PageNoise.RELATED * one_of(1, 8), 0).astype(np.uint8)
        return replace(dealt, noise=dealt.noise | odd)

    def followed_by(self, others: AssignedFaults) -> AssignedFaults:
        """The traits of these pages and then of others."""
        names = [item.name for item in fields(self)]
        return AssignedFaults(**{name: np.concatenate([getattr(self, name), getattr(others, name)]) for name in names})

    def of(self, page: int) -> PageFaults:
        """The traits of one page."""
        return PageFaults(
            ValidatorOffer(self.offer[page]),
            ValidatorLie(self.lie[page]),
            PageNoise(int(self.noise[page])),
            CHARSETS[self.charset[page]],
            bool(self.in_header[page]),
            bool(self.gzip[page]),
            bool(self.chunked[page]),
            int(self.redirect[page]),
            SitemapLie(self.map_lie[page]),
        )
