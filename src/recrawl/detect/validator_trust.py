"""Trust in the validators of a host: whether its 304 responses are reliable, and how often to check them.

A server that answers 304 although the page changed hides changes as long as requests are conditional. So now and then a
page that has validators is requested without them. If its text changed and its validators did not, a 304 would have
been false. After one such finding every other visit is a check. A host with two findings gets no conditional requests
any more. Every visit is then a check; if nearly all its changes turn out to change the validators, the host is trusted
again. Now and then a page is also requested right after a 304: if it differs, the 304 was false, whatever its
validators are.

The opposite is a server whose pages all claim to be modified just now. It costs bandwidth but hides nothing; its dates
are no claims about change.
"""

from __future__ import annotations

import struct
from hashlib import blake2b
from typing import NamedTuple

from recrawl.model import Capture, Validators, Verdict
from recrawl.time import from_http_date

FALSE_ANSWERS = 2
"""Minimum false 304 answers of an unreliable host: a single one can happen between two versions."""
HIDDEN_SHARE = 0.05
"""Minimum share of the observed changes that the validators of an unreliable host would have hidden."""
_SUSPECTED_SHARE = 0.5
_JUST_NOW = 2.0
"""Seconds between the date of an answer and its Last-Modified that are no difference: dates have whole seconds."""


class ValidatorEvidence(NamedTuple):
    """The evidence of one visit on the validators of its host, as counts."""

    checks: int = 0
    """1 if the page had changed and the visit shows whether a conditional request would have missed it."""
    lies: int = 0
    """1 if a conditional request would have missed the change: the validators did not change."""
    restless: int = 0
    """1 if the page had not changed, although its Last-Modified is the time of the answer."""


NO_SIGN = ValidatorEvidence()
LIE = ValidatorEvidence(checks=1, lies=1)
"""A 304, and moments later another version."""


def is_believed(checks: int, lies: int) -> bool:
    """Whether conditional requests are sent to a host with these counts.

    >>> is_believed(1, 1), is_believed(2, 2), is_believed(100, 2)
    (True, False, True)
    """
    return lies < FALSE_ANSWERS or lies < HIDDEN_SHARE * checks


def check_share(lies: int, share: float) -> float:
    """The share of visits that are audits: ``share``, and at least every other visit after a false 304.

    >>> check_share(0, 0.05), check_share(1, 0.05), check_share(1, 0.0)
    (0.05, 0.5, 0.0)
    """
    return max(share, _SUSPECTED_SHARE) if lies and share else share


def is_check(page: int, due: float, share: float) -> bool:
    """Whether this visit is an audit, made without validators; ``share`` of all visits are.

    It depends only on the page and on the due time of the visit (seconds since the epoch), so a run can be repeated.
    """
    if share <= 0:
        return False
    drawn = blake2b(struct.pack("<qd", page, due), digest_size=8).digest()
    return int.from_bytes(drawn, "little") < share * 2**64


def sign_of(capture: Capture, verdict: Verdict, before: Validators, *, conditional: bool) -> ValidatorEvidence:
    r"""The evidence of an answer, given the validators ``before`` it.

    A body in answer to a conditional request is no false 304, whatever its validators are.

    >>> old = Validators(etag='"1"')
    >>> same = Capture("http://x/", 9.0, 200, raw_head=b'HTTP/1.1 200 OK\r\nETag: "1"\r\n\r\n')
    >>> sign_of(same, Verdict.CHANGED, old, conditional=False)
    ValidatorEvidence(checks=1, lies=1, restless=0)
    """
    if not 200 <= capture.status < 300 or not (before.etag or before.last_modified):  # noqa: PLR2004 - HTTP success
        return NO_SIGN
    if verdict == Verdict.UNCHANGED:
        return ValidatorEvidence(restless=int(is_restless(capture, before)))
    if verdict != Verdict.CHANGED or conditional:
        return NO_SIGN
    return ValidatorEvidence(checks=1, lies=int(_would_be_304(capture, before)))


def is_restless(capture: Capture, before: Validators) -> bool:
    """Whether the Last-Modified of the answer is the time of the answer, and differs from the one before."""
    said = capture.header("last-modified")
    if not said or not before.last_modified or said == before.last_modified:
        return False
    modified, answered = from_http_date(said), from_http_date(capture.header("date"))
    if modified is None:
        return False
    return modified >= (capture.time if answered is None else answered) - _JUST_NOW


def _would_be_304(capture: Capture, before: Validators) -> bool:
    """Whether a server that compares validators would answer 304 for this version (RFC 9110 13.2.2)."""
    if before.etag:
        return _weak(capture.header("etag")) == _weak(before.etag)
    said, known = from_http_date(capture.header("last-modified")), from_http_date(before.last_modified)
    return said is not None and known is not None and said <= known


def _weak(etag: str) -> str:
    return etag.removeprefix("W/")
