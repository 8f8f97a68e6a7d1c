"""Visits that another crawler made and reports: what its words say of change. Pure.

A crawler that is not ours sends no bytes, only what it noted: a status, a digest, ETag and Last-Modified, the target
of a redirect. Rules of this file:

1. What the crawler itself says of change counts. Otherwise 304 is unchanged.
2. A page that went away or came back has changed.
3. Two digests of one algorithm decide; else two ETags; else two Last-Modified. The target of a redirect is the version
   of a page that redirects.
4. Without two things to compare there is no verdict. A failed visit has none, and changes nothing of what is known.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from recrawl.detect.digest_verdicts import outcomes_of
from recrawl.model import ANSWERED, ChangeKind, Outcome, Validators, Verdict, Visits
from recrawl.model.visits import BROKEN_OFF

_SHA1_HEX, _SHA1_BASE32 = 40, 32
_LONGEST_DIGEST = 128
_HEX = re.compile(r"[0-9a-fA-F]{40}")
_BASE32 = re.compile(r"[A-Z2-7]{32}")
_OK = 200


@dataclass(frozen=True, slots=True)
class ReportedVisit:
    """One visit, in the words of the crawler that made it. Empty where it says nothing."""

    status: int = 0
    """HTTP status, or Heritrix's negative numbers; 0 if it says only that it fetched the page."""
    failed: bool = False
    """There was no answer, whatever the status."""
    digest: str = ""
    """Of the content, as the crawler writes it: ``sha1:`` and base32, hexadecimal, or any other text."""
    etag: str = ""
    last_modified: str = ""
    redirect_to: str = ""
    mime: str = ""
    changed: bool | None = None
    """Whether the crawler itself found a change."""
    size: int = 0
    """Bytes."""
    seconds: float = 0.0
    """How long the request took."""


class JudgedVisits(NamedTuple):
    """Visits with their verdicts, and the validators after each; ``None`` leaves what is known."""

    visits: Visits
    validators: list[Validators | None]


def digest_of(text: str) -> bytes:
    """A digest in the form in which the store compares it: 20 bytes of a SHA-1, or else the text itself.

    >>> digest_of("sha1:" + "0" * 40) == digest_of("0" * 40) == bytes(20)
    True
    >>> digest_of("d41d8cd98f00b204e9800998ecf8427e"), digest_of("")
    (b'd41d8cd98f00b204e9800998ecf8427e', b'')
    """
    name, colon, value = text.strip().rpartition(":")
    if not colon or name.lower() == "sha1":
        if _HEX.fullmatch(value):
            return bytes.fromhex(value)
        if _BASE32.fullmatch(value):
            try:
                return base64.b32decode(value)
            except binascii.Error:
                pass
    kept = text.strip().encode("utf-8", "replace")
    if len(kept) > _LONGEST_DIGEST:
        return b"sha256:" + hashlib.sha256(kept).hexdigest().encode()
    return kept


def judge(
    page: Sequence[int], time: Sequence[float], told: Sequence[ReportedVisit], before: Sequence[Validators]
) -> JudgedVisits:
    """The visits as they are recorded. ``before`` is what was known of each page. O(visits)."""
    status = np.array([_status(one) for one in told], np.int64)
    outcome = outcomes_of(status)
    verdict = np.full(len(told), Verdict.UNKNOWN, np.uint8)
    kinds = np.full(len(told), ChangeKind.NONE, np.uint16)
    after: list[Validators | None] = []
    for row, (one, known) in enumerate(zip(told, before, strict=True)):
        ended = int(outcome[row])
        if ended > ANSWERED:
            after.append(None)
            continue
        digest = _version(one, ended)
        found, kind = _verdict(one, ended, digest, known)
        verdict[row], kinds[row] = found, kind
        after.append(_known_after(one, ended, digest, known))
    visits = Visits.of(
        np.asarray(page, np.int64),
        np.asarray(time, np.float64),
        outcome=outcome,
        verdict=verdict,
        kinds=kinds,
        status=status,
        size=[min(max(one.size, 0), 2**62) for one in told],
        cost=[min(max(one.seconds, 0.0), 1e6) for one in told],
    )
    return JudgedVisits(visits, after)


def _status(one: ReportedVisit) -> int:
    """The status of a visit, in the column of the store."""
    if one.failed and not 400 <= one.status < 600:  # noqa: PLR2004 - HTTP
        return one.status if -9_999 <= one.status < 0 else BROKEN_OFF  # noqa: PLR2004 - Heritrix's numbers
    return one.status if -9_999 <= one.status < 1_000 else BROKEN_OFF  # noqa: PLR2004


def _version(one: ReportedVisit, outcome: int) -> bytes:
    """What identifies the version of a page; empty if nothing does."""
    if outcome == Outcome.REDIRECTED and one.redirect_to:
        return b"to:" + hashlib.sha1(one.redirect_to.encode("utf-8", "replace"), usedforsecurity=False).digest()
    return digest_of(one.digest) if outcome == Outcome.FETCHED and one.digest else b""


def _verdict(one: ReportedVisit, outcome: int, digest: bytes, known: Validators) -> tuple[Verdict, ChangeKind]:
    if one.changed is not None:
        return (Verdict.CHANGED, ChangeKind.CONTENT) if one.changed else (Verdict.UNCHANGED, ChangeKind.NONE)
    if outcome == Outcome.NOT_MODIFIED:
        return Verdict.UNCHANGED, ChangeKind.NONE
    gone = outcome == Outcome.GONE
    if gone and known.gone:
        return Verdict.UNCHANGED, ChangeKind.NONE
    if gone != known.gone:
        return (Verdict.CHANGED, ChangeKind.EXISTENCE) if known.gone or _has_version(known) else _NO_VERDICT
    for new, old in (
        (digest, known.digest if _comparable(digest, known.digest) else b""),
        (_strong(one.etag), _strong(known.etag)),
        (one.last_modified.strip(), known.last_modified),
    ):
        if new and old:
            return (Verdict.UNCHANGED, ChangeKind.NONE) if new == old else (Verdict.CHANGED, ChangeKind.CONTENT)
    return _NO_VERDICT


_NO_VERDICT = (Verdict.UNKNOWN, ChangeKind.NONE)


def _has_version(known: Validators) -> bool:
    return bool(known.digest or known.etag or known.last_modified)


def _comparable(new: bytes, old: bytes) -> bool:
    """Whether two digests are of one algorithm."""
    return bool(new) and len(new) == len(old) and _algorithm(new) == _algorithm(old)


def _algorithm(digest: bytes) -> bytes:
    return (
        b"" if len(digest) == _SHA1_HEX // 2 else digest.rpartition(b":")[0] if not digest.startswith(b"to:") else b"to"
    )


def _strong(etag: str) -> str:
    return etag.strip().removeprefix("W/")


def _known_after(one: ReportedVisit, outcome: int, digest: bytes, known: Validators) -> Validators | None:
    """What is known of a page after a visit that was answered."""
    if outcome == Outcome.NOT_MODIFIED:
        etag = one.etag[:_LONGEST_TAG].strip() or known.etag
        return replace(known, gone=False, etag=etag) if known.gone or etag != known.etag else None
    if outcome == Outcome.GONE:
        return None if known.gone else replace(known, gone=True)
    said = bool(digest or one.etag or one.last_modified or one.mime)
    if not said:
        return replace(known, gone=False) if known.gone else None
    return Validators(
        etag=one.etag[:_LONGEST_TAG].strip(),
        last_modified=one.last_modified[:_LONGEST_TAG].strip(),
        digest=digest,
        mime=one.mime[:_LONGEST_TAG] or known.mime,
    )


_LONGEST_TAG = 1_000
"""Letters of a validator that are stored."""
