"""The visit machine: the states of one visit, from its lease to its new due time. No I/O, no clock, no store.

Continuous runs and site captures make their visits with it. ``feed`` tells the machine what happened, and returns what
to do next; whoever drives the visit does that and feeds the result. ``Visitor`` executes the steps of one turn of a
host. Then the worker (``worker/result_handler.py``, ``worker/group_commit.py``) or the capture driver
(``site_capture/site_capture_driver.py``) executes the rest.

A visit takes one or more turns of its host. In each turn it sends one request at most:

    ==============  ======================================  =========================================================
    state           what it waits for                       events → next state: action
    ==============  ======================================  =========================================================
    WAITING         the turn of its host                    TURN → ROBOTS: look up the rules of the host
                                                            HELD → WAITING: others hold the host, wait
                                                            UNREACHABLE → ARCHIVE: its redirect leads to a host that
                                                            rests, so the visit failed
                                                            EXPIRED → ARCHIVE: its confirmation comes too late
                                                            RETURN → RETURNED: its lease is returned
    ROBOTS          the rules of the host                   ALLOWED → ADDRESS: enter the address gate
                                                            UNKNOWN → ROBOTS_ADDRESS: the same, for robots.txt
                                                            RECALLED → RULES: the store had them, hand over
                                                            FORBIDDEN, EXPIRED → VISITED: hand over
                                                            POLLED → READ: a forbidden sitemap, hand over
                                                            ELSEWHERE → FETCH: no HTTP, ask another fetcher
    ROBOTS_ADDRESS  the IP address, for robots.txt          OPEN → ROBOTS_FETCH: read robots.txt
                                                            BUSY → DEFERRED: hand over
    ROBOTS_FETCH    robots.txt                              RULES_READ → RULES, LATE → DEFERRED: hand over
    ADDRESS         the IP address                          OPEN → FETCH: send the request
                                                            BUSY → DEFERRED: hand over
    FETCH           the response                            ANSWERED → CLASSIFY: classify it
                                                            LATE → DEFERRED: hand over
    CLASSIFY        the classification                      CLASSIFIED → VISITED, DOUBTFUL → UNCONFIRMED,
                                                            UNFINISHED → UNDERWAY, POLLED → READ: hand over
    ==============  ======================================  =========================================================

The turn is over, and its result is handed over. It is believed, or the target is requested again (AGAIN → WAITING: the
network was down, our event loop was late, or the page has another spelling):

    ==============  ======================================  =========================================================
    state           result                                  events → next state: action
    ==============  ======================================  =========================================================
    DEFERRED        ``Deferred``                            BELIEVED → WAITING: wait until the address is free
    RULES           ``RobotsFetched``                       BELIEVED → RULES: apply the rules, then
                                                            ALLOWED → WAITING: wait for the next turn
                                                            FORBIDDEN, EXPIRED → ARCHIVE
                                                            POLLED → READ: a forbidden sitemap
    UNDERWAY        ``ExchangeUnderway``                    BELIEVED → UNDERWAY: archive the step, then
                                                            ARCHIVED → WAITING: wait for the next turn
    UNCONFIRMED     ``NeedsConfirmation``                   BELIEVED → WAITING: fetch it again in the next turn
                                                            EXPIRED → ARCHIVE: no second fetch
    READ            ``AuxiliaryFetched``                    BELIEVED → READ: record the claims, then
                                                            COMMITTED → POLLED
    VISITED         ``VisitDone``                           BELIEVED → ARCHIVE
    BROKEN          ``InternalFailure``                     BELIEVED → ARCHIVE: a failed visit
                                                            COMMITTED → POLLED: a sitemap, polled again later
    BLOCKED         ``StorageBlocked``                      BELIEVED → WAITING: wait for the disk or the store
    ==============  ======================================  =========================================================

The visit is made. Its bytes are archived and synced before the store acknowledges it, with its new due time:

    ==============  ======================================  =========================================================
    ARCHIVE         its batch, and the sync of the bytes    ARCHIVED → COMMIT: commit
                                                            BELIEVED, UNRECORDED → ARCHIVE: no batch took it yet
    COMMIT          the transaction                         COMMITTED → RESCHEDULED
                                                            UNRECORDED → ARCHIVE: it failed and is prepared again
    RESCHEDULED     the end: acknowledged, with a new due time
    RETURNED        the end: the lease is returned, nothing was visited, the page is as due as before
    POLLED          the end of an auxiliary fetch: its next poll is a new visit
    GIVEN_UP        the end: no row in the store; the lease is returned or expires, and the page is visited again
    ==============  ======================================  =========================================================

From every state that is no end, FAULT leads to BROKEN (our own code raised an exception), DROP to GIVEN_UP (the run
ends, or no form of the visit can be recorded). Until the visit is made, STORAGE leads to BLOCKED (the disk is full, or
the store is unreachable). Any other event is a programming error: :class:`VisitOrderError`.

Below the machine are the values that it moves: the target of a visit, the results of a turn, and how a fetch becomes a
visit row and the next state of the page.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeAlias

from recrawl import detect
from recrawl.crawl.visit.fault_isolation import InternalFault
from recrawl.detect import ChangeResult, PageState
from recrawl.detect.fingerprint import digest
from recrawl.detect.validator_trust import NO_SIGN, ValidatorEvidence, sign_of
from recrawl.errors import StoreError
from recrawl.fetch.access.access_method import Exchange
from recrawl.fetch.robots_cache import HostRobots
from recrawl.formats.atomic_files import waits_for
from recrawl.formats.sitemap_feed import Sitemap
from recrawl.model import ANSWERED, Capture, Outcome, Validators, Verdict, Visit
from recrawl.model.arrays import plain_value
from recrawl.model.visits import OUR_FAULT


class VisitState(enum.Enum):
    """Where a visit is; see the tables above."""

    __hash__ = object.__hash__  # that of Enum is a function of Python, and every step looks up two members

    WAITING = "waiting"
    ROBOTS = "robots"
    ROBOTS_ADDRESS = "address of robots.txt"
    ROBOTS_FETCH = "fetch of robots.txt"
    ADDRESS = "address"
    FETCH = "fetch"
    CLASSIFY = "classify"
    DEFERRED = "deferred"
    RULES = "rules read"
    UNDERWAY = "exchange under way"
    UNCONFIRMED = "needs confirmation"
    READ = "sitemap or feed read"
    VISITED = "visited"
    BROKEN = "failed internally"
    BLOCKED = "blocked by storage"
    ARCHIVE = "archive"
    COMMIT = "commit"
    RESCHEDULED = "rescheduled"
    RETURNED = "returned"
    POLLED = "polled"
    GIVEN_UP = "given up"


class VisitEvent(enum.Enum):
    """What happened to a visit; see the tables above."""

    __hash__ = object.__hash__  # that of Enum is a function of Python, and every step looks up two members

    TURN = "the host has a turn for it"
    HELD = "others hold the host"
    UNREACHABLE = "the host that it redirects to rests"
    EXPIRED = "its confirmation comes too late"
    RETURN = "its lease is returned"
    ALLOWED = "the rules allow it"
    UNKNOWN = "the rules are unknown"
    RECALLED = "the store had the rules"
    FORBIDDEN = "the rules forbid it"
    POLLED = "a sitemap or feed was read, or may not be"
    ELSEWHERE = "the next request is not HTTP"
    OPEN = "the address gate is open"
    BUSY = "the address gate is closed for now"
    RULES_READ = "robots.txt was read"
    LATE = "it was too late to send the request"
    ANSWERED = "a response came, or none"
    CLASSIFIED = "the response makes a visit"
    DOUBTFUL = "the difference may be noise"
    UNFINISHED = "another request is needed"
    BELIEVED = "the result is accepted"
    AGAIN = "it must be requested again"
    ARCHIVED = "its bytes are on disk"
    COMMITTED = "the store has it"
    UNRECORDED = "it could not be recorded and is tried again"
    FAULT = "our own code failed"
    STORAGE = "the disk or the store failed"
    DROP = "nothing more is done for it"


class VisitAction(enum.Enum):
    """What to do next."""

    CHECK_ROBOTS = "look up the rules of the host"
    ENTER_GATE = "enter the address gate"
    FETCH_ROBOTS = "read robots.txt"
    FETCH = "send the request"
    FETCH_ELSEWHERE = "ask the fetcher of another scheme"
    CLASSIFY = "classify the response"
    HAND_OVER = "end the turn with its result"
    DEFER = "queue it until its address or its host is free"
    WAIT = "queue it for the next turn of its host"
    WAIT_FOR_STORAGE = "queue it, and back off"
    APPLY_ROBOTS = "apply the rules to the host"
    ARCHIVE_STEP = "archive the response of one step"
    RECORD_CLAIMS = "record what a sitemap or feed says"
    ARCHIVE = "archive the visit, with others"
    COMMIT = "commit the visit and its due time"
    END = "nothing: the visit has ended"


_S, _E, _A = VisitState, VisitEvent, VisitAction
_Row: TypeAlias = Mapping[VisitEvent, tuple[VisitState, VisitAction]]

_WAITING: _Row = {
    _E.TURN: (_S.ROBOTS, _A.CHECK_ROBOTS),
    _E.HELD: (_S.WAITING, _A.DEFER),
    _E.UNREACHABLE: (_S.ARCHIVE, _A.ARCHIVE),
    _E.EXPIRED: (_S.ARCHIVE, _A.ARCHIVE),
    _E.RETURN: (_S.RETURNED, _A.END),
}
_TURN: Mapping[VisitState, _Row] = {
    _S.ROBOTS: {
        _E.ALLOWED: (_S.ADDRESS, _A.ENTER_GATE),
        _E.UNKNOWN: (_S.ROBOTS_ADDRESS, _A.ENTER_GATE),
        _E.RECALLED: (_S.RULES, _A.HAND_OVER),
        _E.FORBIDDEN: (_S.VISITED, _A.HAND_OVER),
        _E.EXPIRED: (_S.VISITED, _A.HAND_OVER),
        _E.POLLED: (_S.READ, _A.HAND_OVER),
        _E.ELSEWHERE: (_S.FETCH, _A.FETCH_ELSEWHERE),
    },
    _S.ROBOTS_ADDRESS: {_E.OPEN: (_S.ROBOTS_FETCH, _A.FETCH_ROBOTS), _E.BUSY: (_S.DEFERRED, _A.HAND_OVER)},
    _S.ROBOTS_FETCH: {_E.RULES_READ: (_S.RULES, _A.HAND_OVER), _E.LATE: (_S.DEFERRED, _A.HAND_OVER)},
    _S.ADDRESS: {_E.OPEN: (_S.FETCH, _A.FETCH), _E.BUSY: (_S.DEFERRED, _A.HAND_OVER)},
    _S.FETCH: {_E.ANSWERED: (_S.CLASSIFY, _A.CLASSIFY), _E.LATE: (_S.DEFERRED, _A.HAND_OVER)},
    _S.CLASSIFY: {
        _E.CLASSIFIED: (_S.VISITED, _A.HAND_OVER),
        _E.DOUBTFUL: (_S.UNCONFIRMED, _A.HAND_OVER),
        _E.UNFINISHED: (_S.UNDERWAY, _A.HAND_OVER),
        _E.POLLED: (_S.READ, _A.HAND_OVER),
    },
}
"""The states of one turn."""
_HANDED_OVER: Mapping[VisitState, _Row] = {
    _S.DEFERRED: {_E.BELIEVED: (_S.WAITING, _A.DEFER)},
    _S.RULES: {
        _E.BELIEVED: (_S.RULES, _A.APPLY_ROBOTS),
        _E.ALLOWED: (_S.WAITING, _A.WAIT),
        _E.FORBIDDEN: (_S.ARCHIVE, _A.ARCHIVE),
        _E.EXPIRED: (_S.ARCHIVE, _A.ARCHIVE),
        _E.POLLED: (_S.READ, _A.RECORD_CLAIMS),
    },
    _S.UNDERWAY: {_E.BELIEVED: (_S.UNDERWAY, _A.ARCHIVE_STEP), _E.ARCHIVED: (_S.WAITING, _A.WAIT)},
    _S.UNCONFIRMED: {_E.BELIEVED: (_S.WAITING, _A.WAIT), _E.EXPIRED: (_S.ARCHIVE, _A.ARCHIVE)},
    _S.READ: {_E.BELIEVED: (_S.READ, _A.RECORD_CLAIMS), _E.COMMITTED: (_S.POLLED, _A.END)},
    _S.VISITED: {_E.BELIEVED: (_S.ARCHIVE, _A.ARCHIVE)},
    _S.BROKEN: {_E.BELIEVED: (_S.ARCHIVE, _A.ARCHIVE), _E.COMMITTED: (_S.POLLED, _A.END)},
    _S.BLOCKED: {_E.BELIEVED: (_S.WAITING, _A.WAIT_FOR_STORAGE)},
}
"""The results of a turn."""
_RECORDING: Mapping[VisitState, _Row] = {
    _S.ARCHIVE: {
        _E.ARCHIVED: (_S.COMMIT, _A.COMMIT),
        _E.BELIEVED: (_S.ARCHIVE, _A.ARCHIVE),
        _E.UNRECORDED: (_S.ARCHIVE, _A.ARCHIVE),
    },
    _S.COMMIT: {_E.COMMITTED: (_S.RESCHEDULED, _A.END), _E.UNRECORDED: (_S.ARCHIVE, _A.ARCHIVE)},
}
"""After the turns."""
ENDS = frozenset({_S.RESCHEDULED, _S.RETURNED, _S.POLLED, _S.GIVEN_UP})
"""The states in which a visit ends."""
_ALWAYS: _Row = {_E.FAULT: (_S.BROKEN, _A.HAND_OVER), _E.DROP: (_S.GIVEN_UP, _A.END)}
_BLOCKED: _Row = {_E.STORAGE: (_S.BLOCKED, _A.HAND_OVER)}
_AGAIN: _Row = {_E.AGAIN: (_S.WAITING, _A.WAIT)}

TRANSITIONS: Mapping[VisitState, _Row] = MappingProxyType(
    {_S.WAITING: {**_WAITING, **_BLOCKED, **_ALWAYS}}
    | {state: {**row, **_BLOCKED, **_ALWAYS} for state, row in _TURN.items()}
    | {state: {**row, **_AGAIN, **_BLOCKED, **_ALWAYS} for state, row in _HANDED_OVER.items()}
    | {state: {**row, **_ALWAYS} for state, row in _RECORDING.items()}
    | {state: {} for state in ENDS}
)
"""For every state, the events that it allows: the next state, and what to do then."""


class VisitOrderError(Exception):
    """A visit was told something that cannot happen in its state: a programming error."""


class VisitMachine:
    """The state of one visit.

    >>> visit = VisitMachine()
    >>> visit.feed(VisitEvent.TURN)
    <VisitAction.CHECK_ROBOTS: 'look up the rules of the host'>
    >>> visit.feed(VisitEvent.ALLOWED)
    <VisitAction.ENTER_GATE: 'enter the address gate'>
    >>> visit.feed(VisitEvent.ARCHIVED)
    Traceback (most recent call last):
    ...
    recrawl.crawl.visit.visit_machine.VisitOrderError: its bytes are on disk: not possible in the state address
    """

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state = VisitState.WAITING

    def feed(self, event: VisitEvent) -> VisitAction:
        """Apply an event; return what to do next.

        Raises:
            VisitOrderError: the event is impossible in this state, which stays.
        """
        step = TRANSITIONS[self.state].get(event)
        if step is None:
            msg = f"{event.value}: not possible in the state {self.state.value}"
            raise VisitOrderError(msg)
        self.state, action = step
        return action

    @property
    def has_ended(self) -> bool:
        """Whether the visit has ended."""
        return self.state in ENDS


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
    machine: VisitMachine = field(default_factory=VisitMachine, compare=False, repr=False)
    """The state of the visit; every form of the target shares it."""

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
    is_first: bool = False
    """Whether the visit goes on after this row: it is a first fetch, and the row of its confirmation follows."""
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
    """The request was not sent: the IP address of the target serves another one, or it was too late.

    The target still waits.
    """

    target: VisitTarget
    until: float
    """When its turn comes, seconds since the epoch."""
    asked: bool = False
    """Whether another request was sent before, so that the host pauses: a robots.txt that redirects."""
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


def failure_of(target: VisitTarget, error: Exception, now: float) -> StorageBlocked | InternalFailure:
    """The result of a turn in which this exception was raised: the storage failed, or our own code did."""
    trouble = waits_for(error)
    if trouble is not None:
        target.machine.feed(VisitEvent.STORAGE)
        return StorageBlocked(target, trouble)
    target.machine.feed(VisitEvent.FAULT)
    return InternalFailure(target, now, InternalFault.of(error))


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
