"""What the driver has in hand: where to go, and what came of going there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from recrawl.crawl.faults import Fault
from recrawl.detect import Judgement, Known
from recrawl.detect.conduct import NO_SIGN, Sign
from recrawl.detect.digest import digest
from recrawl.errors import StoreError
from recrawl.fetch.access import Talk
from recrawl.fetch.robots import Rules
from recrawl.formats.sitemap import Sitemap
from recrawl.model import Capture, Outcome, Validators, Visit
from recrawl.model.failures import OUR_FAULT
from recrawl.model.values import plain_value


@plain_value
class Sight:
    """What one look at a page showed, while a second one is to tell what of it is noise."""

    capture: Capture
    judgement: Judgement
    """As far as the one look can tell."""
    conditional: bool
    """Whether the request carried validators."""


@plain_value
class Target:
    """A page to visit, or an errand: a sitemap to read, which is no page. Errands have negative numbers."""

    page: int
    host: int
    url: str
    due: float
    known: Known | None = None
    source: tuple[str, str] | None = None
    """Its access method and the options of it, as JSON; ``None`` for plain HTTP."""
    talk: Talk | None = None
    """What was said so far, if it takes more than one request and some were made."""
    seen: Sight | None = None
    """The first look, if this is to be the second."""
    home: int | None = None
    """The host of the page, while a redirect is followed to another host; ``host`` is that one meanwhile."""

    @property
    def asks(self) -> str:
        """The URL of the next request."""
        return self.url if self.talk is None else self.talk.request.url

    @property
    def was_sent_here(self) -> bool:
        """Whether the last answer was a redirect to this very URL: then what comes now is other than noise."""
        return self.known is not None and self.known.validators.digest == digest(self.url.encode())

    @property
    def is_begun(self) -> bool:
        """Whether it was asked for, and has to be asked for again: of a talk, or for a second look."""
        return self.talk is not None or self.seen is not None

    def at_host(self, host: int) -> Target:
        """The same target, to be asked for at another host, whose pauses and rules then hold."""
        home = self.host if self.home is None else self.home
        return replace(self, host=host, home=None if host == home else home)

    def at_home(self) -> Target:
        """The same target at the host of its page."""
        return self if self.home is None else replace(self, host=self.home, home=None)

    @property
    def is_errand(self) -> bool:
        """True for a sitemap."""
        return self.page < 0


@plain_value
class Visited:
    """A page was visited, or refused by the rules of its host (then there is no capture)."""

    target: Target
    visit: Visit
    judgement: Judgement
    capture: Capture | None = None
    aside: tuple[Capture, ...] = ()
    """Answers to keep that are not the version of the page."""
    sign: Sign = NO_SIGN
    """What the answer shows about its host."""
    first: Visited | None = None
    """The visit to be recorded before this one, which was the second look."""
    via: str = ""
    """The page that redirected us here, if that is how the page was found."""
    hops: str = ""
    """How many redirects led here, one from the other: a letter for each (conventions L2)."""
    reason: str = ""
    """Why it was refused, or what our own code failed at, in words."""

    @property
    def is_our_fault(self) -> bool:
        """Whether it failed because our own code did: the bytes, if there are any, are kept as they came."""
        return self.visit.status == OUR_FAULT


@dataclass(frozen=True, slots=True)
class Underway:
    """One request of several was made; the target waits for the next turn of its host."""

    target: Target
    capture: Capture


@dataclass(frozen=True, slots=True)
class SeenOnce:
    """A page differs in what may be noise. Nothing is recorded before its second look, in the next turn of its host."""

    target: Target
    capture: Capture


@dataclass(frozen=True, slots=True)
class RulesRead:
    """The rules of the host had to be read first; the target still waits."""

    target: Target
    rules: Rules
    capture: Capture | None = None
    """The last answer on the way to them."""
    asked: bool = True
    """Whether there was a request; else another worker, or an earlier run, left them in the store."""


@dataclass(frozen=True, slots=True)
class ErrandDone:
    """A sitemap was fetched, or may not be."""

    target: Target
    capture: Capture
    asked: bool = True
    """Whether there was a request."""
    announced: Sitemap | str = ""
    """What it says, or why it could not be read."""


@dataclass(frozen=True, slots=True)
class TurnedAway:
    """Nothing was asked: the address that the target lies at serves others. The target still waits."""

    target: Target
    until: float
    """When it is its turn, seconds since the epoch."""
    capture: None = None


@dataclass(frozen=True, slots=True)
class Broken:
    """Our own code failed on what came back: a bug, kept as a failed visit with the bytes that came."""

    target: Target
    time: float
    fault: Fault
    capture: Capture | None = None

    def as_visit(self) -> Visited:
        """A visit that says nothing about the page; what was known of it stays."""
        return failed_visit(self.target, self.time, self.fault.words, self.capture)


@dataclass(frozen=True, slots=True)
class Hindered:
    """The disk was full, or the store away, while something had to be kept; the target still waits."""

    target: Target
    fault: StoreError
    capture: None = None


Result: TypeAlias = Visited | Underway | SeenOnce | RulesRead | ErrandDone | TurnedAway | Broken | Hindered
"""What comes of going to a target."""


def failed_visit(target: Target, time: float, reason: str, capture: Capture | None) -> Visited:
    """The visit of a page that our own code failed on; ``capture`` is kept as it came.

    It says nothing about the page, and what was known of the page stays.
    """
    known = target.known
    judgement = Judgement(
        Outcome.UNREACHABLE,
        validators=known.validators if known else Validators(),
        mime=known.mime if known else "",
        size=len(capture.raw_body) if capture else 0,
    )
    visit = Visit(
        target.page,
        capture.time if capture else time,
        Outcome.UNREACHABLE,
        status=OUR_FAULT,
        size=judgement.size,
        cost=capture.duration if capture else 0.0,
    )
    before = replace(target, seen=None) if target.seen else target
    return Visited(before, visit, judgement, capture, reason=reason)
