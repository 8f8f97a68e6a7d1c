"""The target of a visit, and the result types of a request.

A fetch becomes a visit row, and the state of the page after it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

from recrawl import detect
from recrawl.crawl.visit.fault_isolation import InternalFault
from recrawl.detect import ChangeResult, PageState
from recrawl.detect.fingerprint import digest
from recrawl.detect.validator_trust import NO_SIGN, ValidatorEvidence, sign_of
from recrawl.errors import StoreError
from recrawl.fetch.access.access_method import Exchange
from recrawl.fetch.robots_cache import HostRobots
from recrawl.formats.sitemap_feed import Sitemap
from recrawl.model import ANSWERED, Capture, Outcome, Validators, Verdict, Visit
from recrawl.model.arrays import plain_value
from recrawl.model.visits import OUR_FAULT


@plain_value
class FirstFetch:
    """The first fetch of a page that waits for its confirmation."""

    capture: Capture
    judgement: ChangeResult
    """The result of the first fetch, before a confirmation."""
    conditional: bool
    """Whether the request carried validators."""
    requisites: tuple[Capture, ...] = ()
    """Answers that were loaded with the page."""


@plain_value
class VisitTarget:
    """A page to visit, or an auxiliary fetch: a sitemap or feed, which is no page and has a negative number."""

    page: int
    host: int
    url: str
    due: float
    known: PageState | None = None
    source: tuple[str, str] | None = None
    """Its access method and the options of it, as JSON; ``None`` for plain HTTP."""
    exchange: Exchange | None = None
    """The exchange so far, if the page takes more than one request and some were made."""
    seen: FirstFetch | None = None
    """The first fetch, if the next one is its confirmation."""
    home: int | None = None
    """The host of the page, while a redirect is followed to another host, which ``host`` is then."""
    repeats: int = 0
    """How often it was requested again since it was leased, because our own event loop was late."""
    token: int = 0
    """The token of its lease, which the store compares before it records the visit."""

    @property
    def asks(self) -> str:
        """The URL of the next request."""
        return self.url if self.exchange is None else self.exchange.request.url

    @property
    def was_redirected_here(self) -> bool:
        """Whether the last response was a redirect to this same URL: then a difference is not noise."""
        return self.known is not None and self.known.validators.digest == digest(self.url.encode())

    @property
    def is_begun(self) -> bool:
        """Whether a request was made and another has to follow: in an exchange, or for a confirmation."""
        return self.exchange is not None or self.seen is not None

    def at_host(self, host: int) -> VisitTarget:
        """The same target, to be requested at another host, whose pauses and rules then apply."""
        home = self.host if self.home is None else self.home
        return replace(self, host=host, home=None if host == home else home)

    def at_home(self) -> VisitTarget:
        """The same target at the host of its page."""
        return self if self.home is None else replace(self, host=self.home, home=None)

    def repeated(self) -> VisitTarget:
        """The same target, to be requested again from its own URL on; the exchange so far is dropped."""
        return replace(self.at_home(), exchange=None, repeats=self.repeats + 1)

    @property
    def is_auxiliary(self) -> bool:
        """True for a sitemap or feed."""
        return self.page < 0


@plain_value
class VisitDone:
    """A page was visited, or refused by robots.txt (then there is no capture)."""

    target: VisitTarget
    visit: Visit
    judgement: ChangeResult
    capture: Capture | None = None
    aside: tuple[Capture, ...] = ()
    """Responses to archive that are not the version of the page."""
    sign: ValidatorEvidence = NO_SIGN
    """What the response shows about the validators of its host."""
    first: VisitDone | None = None
    """The visit to record before this one, if this one was its confirmation."""
    via: str = ""
    """The page that redirected to this one, if that is how it was found."""
    hops: str = ""
    """Redirects that led here, one letter each (conventions L2)."""
    reason: str = ""
    """Why it was refused, or how our own code failed."""

    @property
    def is_our_fault(self) -> bool:
        """Whether our own code failed. The bytes, if there are any, are archived as received."""
        return self.visit.status == OUR_FAULT


@dataclass(frozen=True, slots=True)
class ExchangeUnderway:
    """One request of several was made; the target waits for the next turn of its host."""

    target: VisitTarget
    capture: Capture


@dataclass(frozen=True, slots=True)
class NeedsConfirmation:
    """A page differs in what may be noise.

    Nothing is recorded before its confirmation, in the next turn of its host.
    """

    target: VisitTarget
    capture: Capture


@dataclass(frozen=True, slots=True)
class RobotsFetched:
    """The robots.txt of the host was read first; the target still waits."""

    target: VisitTarget
    rules: HostRobots
    capture: Capture | None = None
    """The last response on the way to it."""
    asked: bool = True
    """Whether a request was sent; otherwise another worker or an earlier run left the rules in the store."""


@dataclass(frozen=True, slots=True)
class AuxiliaryFetched:
    """A sitemap or feed was fetched, or may not be."""

    target: VisitTarget
    capture: Capture
    asked: bool = True
    """Whether a request was sent."""
    announced: Sitemap | str = ""
    """Its content, or why it could not be read."""


@dataclass(frozen=True, slots=True)
class Deferred:
    """Nothing was sent: the IP address of the target serves another request. The target still waits."""

    target: VisitTarget
    until: float
    """When its turn comes, seconds since the epoch."""
    capture: None = None


@dataclass(frozen=True, slots=True)
class InternalFailure:
    """Our own code failed on a response: a bug, recorded as a failed visit with the bytes received."""

    target: VisitTarget
    time: float
    fault: InternalFault
    capture: Capture | None = None

    def as_visit(self) -> VisitDone:
        """A visit that says nothing about the page; the page state stays."""
        return failed_visit(self.target, self.time, self.fault.words, self.capture)


@dataclass(frozen=True, slots=True)
class StorageBlocked:
    """The disk was full or the store unreachable when something had to be written; the target still waits."""

    target: VisitTarget
    fault: StoreError
    capture: None = None


Result: TypeAlias = (
    VisitDone
    | ExchangeUnderway
    | NeedsConfirmation
    | RobotsFetched
    | AuxiliaryFetched
    | Deferred
    | InternalFailure
    | StorageBlocked
)
"""The results of a request."""


def failed_visit(target: VisitTarget, time: float, reason: str, capture: Capture | None) -> VisitDone:
    """The visit of a page that our own code failed on; ``capture`` is archived as received.

    It says nothing about the page; the page state stays.
    """
    known = target.known
    judgement = ChangeResult(
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
    return VisitDone(before, visit, judgement, capture, reason=reason)


NEVER_SEEN = Validators()
"""The validators of a page that was not visited yet."""


def seen_once(target: VisitTarget, sight: FirstFetch) -> VisitDone:
    """The visit of a single fetch."""
    capture, judgement = sight.capture, sight.judgement
    before = target.known.validators if target.known else NEVER_SEEN
    sign = sign_of(capture, judgement.verdict, before, conditional=sight.conditional)
    visit = visit_of(target.page, capture, judgement)
    target = replace(target, seen=None) if target.seen else target
    return VisitDone(target, visit, judgement, capture, aside=sight.requisites, sign=sign)


def unconfirmed_visit(target: VisitTarget) -> VisitDone:
    """The visit of a target that waits for its confirmation in vain: that of its first fetch."""
    if target.seen is None:
        msg = f"{target.url} does not wait for a confirmation"
        raise ValueError(msg)
    return seen_once(target, target.seen)


def visit_of(page: int, capture: Capture, judgement: ChangeResult) -> Visit:
    """The visit row of a capture and its classification."""
    return Visit(
        page,
        capture.time,
        judgement.outcome,
        judgement.verdict,
        judgement.kinds,
        capture.status or capture.failure,
        judgement.size,
        capture.duration,
        judgement.new_internal,
        judgement.new_external,
        judgement.added_internal,
        judgement.added_external,
        judgement.magnitude,
    )


def last_version(visited: VisitDone) -> Validators:
    """The validators to store after this visit. A confirmation without a verdict leaves those of the first fetch."""
    if visited.first is not None and visited.visit.verdict == Verdict.UNKNOWN:
        return last_version(visited.first)
    judgement, known = visited.judgement, visited.target.known
    read_at = known.validators.links_read_at if known else -math.inf
    if judgement.links_read and not links_stand(visited):
        read_at = visited.visit.time
    gone = judgement.outcome == Outcome.GONE or (visited.visit.outcome > ANSWERED and known is not None and known.gone)
    said = judgement.validators
    return Validators(
        said.etag, said.last_modified, said.digest, said.text_digest, judgement.mime, gone=gone, links_read_at=read_at
    )


def links_stand(visited: VisitDone) -> bool:
    """Whether the page has the links of its last version: then no links are written.

    So ``links_read_at`` is the time when the links of a page were last written, and a link exists if it was last seen
    then.
    """
    judgement, known = visited.judgement, visited.target.known
    return (
        judgement.links_read
        and known is not None
        and known.validators.links_read_at > -math.inf
        and judgement.link_keys == known.links_last
    )


def known_after(visited: VisitDone, last: Validators | None = None) -> PageState:
    """The page state for the next comparison; ``last`` is the last version, if it was computed before."""
    after = detect.known_after(visited.judgement, visited.target.known) or PageState()
    last = last or last_version(visited)
    return PageState(
        last, last.gone, last.mime, after.links_last, after.links_ever, after.fingerprint, after.links_read
    )
