"""The change detector: classify a capture against the last known version of the page.

The steps go from cheap to expensive: the status of the server (304), the bytes, the text without noise, then the parts
of the page under the learned noise, and how much of the text differs.

Rules of this file:
 1. The first answer opens a history: it has nothing to compare with, so its verdict is unknown.
 2. Noise is not change. Where the bytes differ but text, links and type are the same, the verdict is unchanged and the
    kind CONTENT records that the bytes differed.
 3. A failure has no verdict: no answer, a body cut by time or by the server, 5xx, 429, 4xx other than 404 and 410.
 4. 404 and 410 are answers: the page is gone, and that is a change once; so is its return.
 5. A body longer than the stored limit, or one that cannot be decoded, is compared by the bytes received.
 6. The baseline is the last version that counted as a change; its fingerprint is stored. So a page that drifts by less
    than the threshold at each visit is found changed once it has drifted far enough.
 7. Versions that were read under different rules of the user are not compared.
 8. The part with most of a page's text is compared even if it was learned to be noise.

Links to publications are recognised by their URLs, for crawlers of scholarly pages (HACS §VI).
"""

from __future__ import annotations

import re
from dataclasses import field, replace
from operator import itemgetter
from typing import NamedTuple

from recrawl.detect.body import media_type
from recrawl.detect.change_criteria import ChangeCriteria
from recrawl.detect.comparison import PartComparison, compared_links, differences, nothing_differed
from recrawl.detect.fingerprint import Fingerprint, PageState, digest
from recrawl.detect.noise.text_noise import is_noisy_key
from recrawl.detect.version import Effort, Version, body_of, page_version, redirect_version
from recrawl.model import UNCOUNTED, UNMEASURED, Capture, ChangeKind, Outcome, Validators, Verdict
from recrawl.model.arrays import plain_value
from recrawl.urls import host_of

_FILE = re.compile(r"^[^?#]*\.(pdf|ps|eps|dvi|djvu?|docx?|odt|rtf|epub)(\.(gz|z|bz2|zip))?([?#]|$)", re.IGNORECASE)
_PLACE = re.compile(r"^https?://((dx\.)?doi\.org/10\.|([a-z]+\.)?arxiv\.org/(abs|pdf)/)", re.IGNORECASE)


def is_publication(url: str) -> bool:
    """Whether a URL names a document as papers are published in: a PDF and the like, a DOI, a preprint of arXiv.

    >>> is_publication("http://foo.edu/~bar/a.pdf"), is_publication("http://foo.edu/a.ps.gz?x=1")
    (True, True)
    >>> is_publication("https://doi.org/10.1145/1"), is_publication("http://foo.edu/pdf/")
    (True, False)
    """
    return _FILE.match(url) is not None or _PLACE.match(url) is not None


_NOT_MODIFIED = 304
_BY_STATUS = {_NOT_MODIFIED: Outcome.NOT_MODIFIED, 404: Outcome.GONE, 410: Outcome.GONE, 429: Outcome.SERVER_ERROR}
_BY_CLASS = {2: Outcome.FETCHED, 3: Outcome.REDIRECTED, 4: Outcome.REJECTED}
_ANY = ChangeCriteria()
_URL = itemgetter(0)
"""Of a link."""


@plain_value
class ChangeResult:
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
    """False if links could not be read from the capture: those known before stay valid."""
    redirect_to: str = ""
    new_internal: int = UNCOUNTED
    """Links to the same host never seen on this page before (HACS l*)."""
    new_external: int = UNCOUNTED
    added_internal: int = UNCOUNTED
    """Links to the same host that the previous version did not have (LBLA)."""
    added_external: int = UNCOUNTED
    size: int = 0
    """Bytes of body received."""
    magnitude: float = UNMEASURED
    """How much of the page changed, from 0 to 1: the share of its text (or rows) that is not in both versions. 1 for a
    page that is gone, is back, or is of another type; -1 where nothing was measured."""
    fingerprint: bytes = b""
    """What to keep for the next comparison; empty if what is kept still stands."""
    compared: PartComparison | None = None
    """What the comparison teaches about noise on the host."""
    shunned: tuple[str, ...] = ()
    """Absolute URLs that are not among ``links`` because the page or its server asks robots not to follow them."""
    feeds: tuple[str, ...] = ()
    """Absolute URLs of the feeds that the page names, if ``links_read``."""
    embeds: tuple[str, ...] = ()
    """Absolute URLs of what a browser loads to show the page, if ``links_read`` and the standards ask for it."""


def classify_change(
    capture: Capture, known: PageState | None, standards: ChangeCriteria = _ANY, effort: Effort = Effort.ALL
) -> ChangeResult:
    """Compare ``capture`` with the ``known`` state of its page (``None`` before its first answer).

    ``standards`` define what counts as a change on this host; ``effort`` limits the cost of the comparison.

    Raises:
        CostlyError: more than a cheap effort is needed, and no more is allowed.
    """
    outcome, size = outcome_of(capture), len(capture.raw_body)
    if known is not None and not known.gone and not _answered(known.validators):
        known = None
    if outcome > Outcome.GONE:
        kept = known or PageState()
        return ChangeResult(outcome, validators=kept.validators, mime=kept.mime, size=size)
    if outcome == Outcome.GONE:
        return _gone(known, size)
    if outcome == Outcome.NOT_MODIFIED:
        return _not_modified(capture, known, size, standards)
    if outcome == Outcome.REDIRECTED:
        return _compare(capture, outcome, redirect_version(capture), known, standards)
    body, whole = body_of(capture, effort)
    named = capture.body_digest() if body is capture.raw_body else digest(body)
    if known is not None and _same_bytes(capture, named, known):
        old = known.validators
        said = capture.header("etag"), capture.header("last-modified")
        same = ChangeResult(
            outcome, validators=Validators(*said, old.digest, old.text_digest), mime=known.mime, size=size
        )
        return _stayed(unchanged(same), capture, known, standards)
    version = page_version(capture, body, named, whole=whole, standards=standards, effort=effort)
    return _compare(capture, outcome, version, known, standards)


def outcome_of(capture: Capture) -> Outcome:
    """How the visit ended, from status and truncation alone.

    >>> outcome_of(Capture("http://x/", 0.0, 503)).name, outcome_of(Capture("http://x/", 0.0, 0, error="refused")).name
    ('SERVER_ERROR', 'UNREACHABLE')
    """
    if capture.status == 0 or capture.truncated not in ("", "length"):
        return Outcome.UNREACHABLE
    by_class = _BY_CLASS.get(capture.status // 100, Outcome.SERVER_ERROR)
    return _BY_STATUS.get(capture.status, by_class)


def known_after(judged: ChangeResult, known: PageState | None) -> PageState | None:
    """What is known of a page after a verdict, from what was known before."""
    old = known or PageState()
    if judged.outcome > Outcome.GONE:
        return known
    last = judged.link_keys if judged.links_read else old.links_last
    ever = old.links_ever | last if old.links_ever else last  # one set for both as long as they are the same
    gone = judged.outcome == Outcome.GONE
    return PageState(
        judged.validators,
        gone,
        judged.mime,
        last,
        ever,
        judged.fingerprint or old.fingerprint,
        judged.links_read or (known is not None and known.links_read),
    )


def _gone(known: PageState | None, size: int) -> ChangeResult:
    gone = ChangeResult(Outcome.GONE, links_read=True, size=size)
    if known is None:
        return gone
    if known.gone:
        return replace(gone, verdict=Verdict.UNCHANGED, magnitude=0.0)
    return replace(gone, verdict=Verdict.CHANGED, kinds=ChangeKind.EXISTENCE, magnitude=1.0)


def _not_modified(capture: Capture, known: PageState | None, size: int, standards: ChangeCriteria) -> ChangeResult:
    if known is None:
        return ChangeResult(Outcome.NOT_MODIFIED, validators=_said(capture), size=size)
    said, old = _said(capture), known.validators
    validators = replace(old, etag=said.etag or old.etag, last_modified=said.last_modified or old.last_modified)
    now = unchanged(ChangeResult(Outcome.NOT_MODIFIED, validators=validators, mime=known.mime, size=size))
    if known.gone:
        return replace(now, verdict=Verdict.CHANGED, kinds=ChangeKind.EXISTENCE, magnitude=1.0)
    return _stayed(now, capture, known, standards)


def _stayed(now: ChangeResult, capture: Capture, known: PageState, standards: ChangeCriteria) -> ChangeResult:
    """The verdict of a version that came again, with what that teaches: its watched parts stayed."""
    if not standards.watched or (version := Fingerprint.unpack(known.fingerprint)) is None:
        return now
    gap = capture.time - version.time
    links = compared_links(known.links_last, known.links_last, standards.watched, gap)
    stayed = nothing_differed(version, standards.watched, gap).plus(links)
    return replace(now, compared=stayed) if stayed.same else now


def _answered(validators: Validators) -> bool:
    return bool(validators.digest or validators.etag or validators.last_modified)


def _said(capture: Capture) -> Validators:
    """The validators that the server sent with this version."""
    return Validators(capture.header("etag"), capture.header("last-modified"))


def _same_bytes(capture: Capture, named: bytes, known: PageState) -> bool:
    same_type = not known.mime or known.mime == media_type(capture)
    return same_type and not known.gone and known.validators.digest == named


def unchanged(now: ChangeResult) -> ChangeResult:
    """The same verdict, of a capture that repeats the version before: nothing is new."""
    return replace(
        now,
        verdict=Verdict.UNCHANGED,
        new_internal=0,
        new_external=0,
        added_internal=0,
        added_external=0,
        magnitude=0.0,
    )


def _compare(
    capture: Capture, outcome: Outcome, version: Version, known: PageState | None, standards: ChangeCriteria
) -> ChangeResult:
    links = version.links or ()
    keys = version.link_keys
    found, verdict, kinds, magnitude, counts = None, Verdict.UNKNOWN, ChangeKind.NONE, UNMEASURED, _UNCOUNTED
    if standards.mask and (known is None or version.text_digest != known.validators.text_digest):
        standards = replace(standards, mask=version.allowed_mask(standards))
    if known is None or not (known.gone or known.validators.digest):
        fingerprint = version.packed(capture, standards)
    elif known.gone:
        counts = _counts(capture, version, known, frozenset())
        verdict, kinds, magnitude = Verdict.CHANGED, ChangeKind.EXISTENCE, 1.0
        fingerprint = version.packed(capture, standards)
    else:
        differs = version.text_digest != known.validators.text_digest
        latest = version.fingerprint(capture, standards) if differs else None
        found = differences(capture, version, known, standards, latest, keys)
        counts = _counts(capture, version, known, found.quiet)
        kinds = found.kinds
        if counts.new_internal > 0 or counts.new_external > 0:
            kinds |= ChangeKind.NEW_LINKS
            if counts.publications:
                kinds |= ChangeKind.NEW_PUBLICATIONS
        changed = bool(kinds & found.telling)
        fingerprint = b""
        if changed or not found.comparable or not known.fingerprint:
            fingerprint = latest.pack() if latest else version.packed(capture, standards)
        if found.comparable:
            verdict, magnitude = Verdict.CHANGED if changed else Verdict.UNCHANGED, found.magnitude
        else:
            kinds = ChangeKind.NONE
    return ChangeResult(
        outcome,
        verdict,
        kinds,
        Validators(capture.header("etag"), capture.header("last-modified"), version.digest, version.text_digest),
        version.mime,
        tuple(map(_URL, links)),
        keys,
        version.links is not None,
        version.redirect_to,
        *counts[:4],
        len(capture.raw_body),
        magnitude,
        fingerprint,
        found.compared if found else None,
        tuple(map(_URL, version.shunned)),
        version.feeds,
        version.embeds,
    )


class _Counts(NamedTuple):
    """Links that are new in this version, as a verdict lists them."""

    new_internal: int = UNCOUNTED
    new_external: int = UNCOUNTED
    added_internal: int = UNCOUNTED
    added_external: int = UNCOUNTED
    publications: bool = False
    """Whether one of the new ones is to a publication."""


_UNCOUNTED = _Counts()


def _counts(capture: Capture, version: Version, known: PageState, quiet: frozenset[str]) -> _Counts:
    """How many links came since the last version, those that are noise or not observed left out."""
    if version.links is None or not known.links_read:
        return _UNCOUNTED
    host = host_of(capture.url)
    last = known.links_last
    added = [
        link for link in version.links if link.key not in last and link.key not in quiet and not is_noisy_key(link.key)
    ]
    new = [link for link in added if link.key not in known.links_ever]
    added_internal, new_internal = (sum(link.host == host for link in some) for some in (added, new))
    published = any(is_publication(link.url) for link in new)
    return _Counts(new_internal, len(new) - new_internal, added_internal, len(added) - added_internal, published)
