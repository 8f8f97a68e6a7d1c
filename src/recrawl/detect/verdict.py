"""The judgement: what a capture says about change since the version we knew.

Rules of this file:
 1. The first answer opens a history: it has nothing to compare with, so its verdict is unknown.
 2. Noise is not change. Where the bytes differ but text, links and type are the same, the verdict is unchanged
    and the kind CONTENT remembers that the bytes did differ.
 3. A failure says nothing: no answer, a body cut by time or by the server, 5xx, 429, 4xx other than 404 and 410.
 4. 404 and 410 are answers: the page is gone, and that is a change once; so is its return.
 5. A body longer than we keep, or one that cannot be decoded, is judged by the bytes we have.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from recrawl.detect.body import media_type
from recrawl.detect.digest import digest
from recrawl.detect.noise import is_noisy_key
from recrawl.detect.version import Version, body_of, page_version, redirect_version
from recrawl.model import UNCOUNTED, Capture, ChangeKind, Outcome, Validators, Verdict
from recrawl.urls import Address, host_of

_NOT_MODIFIED = 304
_BY_STATUS = {_NOT_MODIFIED: Outcome.NOT_MODIFIED, 404: Outcome.GONE, 410: Outcome.GONE, 429: Outcome.SERVER_ERROR}
_BY_CLASS = {2: Outcome.FETCHED, 3: Outcome.REDIRECTED, 4: Outcome.REJECTED}


@dataclass(frozen=True, slots=True)
class Known:
    """What we knew of a page before the capture."""

    validators: Validators = field(default_factory=Validators)
    gone: bool = False
    """The last answer was 404 or 410."""
    mime: str = ""
    links_last: frozenset[str] = frozenset()
    """SURT keys of the outlinks of the last version."""
    links_ever: frozenset[str] = frozenset()
    """SURT keys of all outlinks the page ever had."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a capture taught us: the fields of a visit, and what to know for the next one."""

    outcome: Outcome
    verdict: Verdict = Verdict.UNKNOWN
    kinds: ChangeKind = ChangeKind.NONE
    validators: Validators = field(default_factory=Validators)
    mime: str = ""
    links: tuple[str, ...] = ()
    """Absolute URLs of the outlinks, if ``links_read``."""
    link_keys: frozenset[str] = frozenset()
    """Their SURT keys."""
    links_read: bool = False
    """False if the capture says nothing about links: those known before still stand."""
    redirect_to: str = ""
    new_internal: int = UNCOUNTED
    """Links to the same host never seen on this page before (HACS l*)."""
    new_external: int = UNCOUNTED
    added_internal: int = UNCOUNTED
    """Links to the same host that the previous version did not have (LBLA)."""
    added_external: int = UNCOUNTED
    size: int = 0
    """Bytes of body received."""


def judge(capture: Capture, known: Known | None) -> Judgement:
    """What ``capture`` says about the page, given what was ``known`` (``None`` if it never answered before)."""
    outcome, size = outcome_of(capture), len(capture.raw_body)
    if known is not None and not known.gone and not _answered(known.validators):
        known = None
    if outcome > Outcome.GONE:
        kept = known or Known()
        return Judgement(outcome, validators=kept.validators, mime=kept.mime, size=size)
    if outcome == Outcome.GONE:
        return _gone(known, size)
    if outcome == Outcome.NOT_MODIFIED:
        return _not_modified(capture, known, size)
    if outcome == Outcome.REDIRECTED:
        return _compare(capture, outcome, redirect_version(capture), known)
    body, whole = body_of(capture)
    named = digest(body)
    if known is not None and _same_bytes(capture, named, known):
        old = known.validators
        validators = replace(_said(capture), digest=old.digest, text_digest=old.text_digest)
        return unchanged(Judgement(outcome, validators=validators, mime=known.mime, size=size))
    return _compare(capture, outcome, page_version(capture, body, named, whole=whole), known)


def outcome_of(capture: Capture) -> Outcome:
    """How the visit ended, from status and truncation alone.

    >>> outcome_of(Capture("http://x/", 0.0, 503)).name, outcome_of(Capture("http://x/", 0.0, 0, error="refused")).name
    ('SERVER_ERROR', 'UNREACHABLE')
    """
    if capture.status == 0 or capture.truncated not in ("", "length"):
        return Outcome.UNREACHABLE
    by_class = _BY_CLASS.get(capture.status // 100, Outcome.SERVER_ERROR)
    return _BY_STATUS.get(capture.status, by_class)


def _gone(known: Known | None, size: int) -> Judgement:
    gone = Judgement(Outcome.GONE, links_read=True, size=size)
    if known is None:
        return gone
    if known.gone:
        return replace(gone, verdict=Verdict.UNCHANGED)
    return replace(gone, verdict=Verdict.CHANGED, kinds=ChangeKind.EXISTENCE)


def _not_modified(capture: Capture, known: Known | None, size: int) -> Judgement:
    if known is None:
        return Judgement(Outcome.NOT_MODIFIED, validators=_said(capture), size=size)
    said, old = _said(capture), known.validators
    validators = replace(old, etag=said.etag or old.etag, last_modified=said.last_modified or old.last_modified)
    now = unchanged(Judgement(Outcome.NOT_MODIFIED, validators=validators, mime=known.mime, size=size))
    return replace(now, verdict=Verdict.CHANGED, kinds=ChangeKind.EXISTENCE) if known.gone else now


def _answered(validators: Validators) -> bool:
    return bool(validators.digest or validators.etag or validators.last_modified)


def _said(capture: Capture) -> Validators:
    """What the server said about this version."""
    return Validators(capture.header("etag"), capture.header("last-modified"))


def _same_bytes(capture: Capture, named: bytes, known: Known) -> bool:
    same_type = not known.mime or known.mime == media_type(capture)
    return same_type and not known.gone and known.validators.digest == named


def unchanged(now: Judgement) -> Judgement:
    """The same judgement, of a capture that repeats the version before: nothing is new."""
    return replace(now, verdict=Verdict.UNCHANGED, new_internal=0, new_external=0, added_internal=0, added_external=0)


def _compare(capture: Capture, outcome: Outcome, version: Version, known: Known | None) -> Judgement:
    now = Judgement(
        outcome,
        validators=replace(_said(capture), digest=version.digest, text_digest=version.text_digest),
        mime=version.mime,
        links=tuple(link.url for link in version.links or ()),
        link_keys=frozenset(link.key for link in version.links or ()),
        links_read=version.links is not None,
        redirect_to=version.redirect_to,
        size=len(capture.raw_body),
    )
    if known is None or not (known.gone or known.validators.digest):
        return now
    if version.links is not None:
        now = _with_counts(now, host_of(capture.url), version.links, known)
    if known.gone:
        return replace(now, verdict=Verdict.CHANGED, kinds=ChangeKind.EXISTENCE)
    kinds = _kinds(version, now.link_keys, known)
    if now.new_internal > 0 or now.new_external > 0:
        kinds |= ChangeKind.NEW_LINKS
    comparable = bool(version.text_digest and known.validators.text_digest)
    told = kinds & ~ChangeKind.CONTENT if comparable else kinds
    return replace(now, verdict=Verdict.CHANGED if told else Verdict.UNCHANGED, kinds=kinds)


def _kinds(version: Version, link_keys: frozenset[str], known: Known) -> ChangeKind:
    kinds, old = ChangeKind.NONE, known.validators
    if version.digest != old.digest:
        kinds |= ChangeKind.CONTENT
    if version.text_digest and old.text_digest and version.text_digest != old.text_digest:
        kinds |= version.kind
    if version.mime and known.mime and version.mime != known.mime:
        kinds |= ChangeKind.TYPE
    if version.links is not None and _differ(link_keys, known.links_last):
        kinds |= ChangeKind.LINKS
    return kinds


def _differ(links: frozenset[str], others: frozenset[str]) -> bool:
    """Whether a link that is no noise is in one of them only."""
    return any(not is_noisy_key(key) for key in links ^ others)


def _with_counts(now: Judgement, host: str | None, links: Iterable[Address], known: Known) -> Judgement:
    added = [link for link in links if link.key not in known.links_last and not is_noisy_key(link.key)]
    new = [link for link in added if link.key not in known.links_ever]
    added_internal, new_internal = (sum(link.host == host for link in some) for some in (added, new))
    return replace(
        now,
        new_internal=new_internal,
        new_external=len(new) - new_internal,
        added_internal=added_internal,
        added_external=len(added) - added_internal,
    )
