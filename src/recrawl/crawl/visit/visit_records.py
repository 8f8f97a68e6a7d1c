"""Turns a fetch into a visit row, and into the state of the page after it."""

from __future__ import annotations

import math
from dataclasses import replace

from recrawl import detect
from recrawl.crawl.visit.visit_target import FirstFetch, VisitDone, VisitTarget
from recrawl.detect import ChangeResult, PageState
from recrawl.detect.validator_trust import sign_of
from recrawl.model import ANSWERED, Capture, Outcome, Validators, Verdict, Visit

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
