"""What a look at a page makes: a visit, and what to know of the page after it."""

from __future__ import annotations

import math
from dataclasses import replace

from recrawl import detect
from recrawl.crawl.target import Sight, Target, Visited
from recrawl.detect import Judgement, Known
from recrawl.detect.conduct import sign_of
from recrawl.model import ANSWERED, Capture, Outcome, Validators, Verdict, Visit

NEVER_SEEN = Validators()
"""What a page said of its version that was not visited yet."""


def seen_once(target: Target, sight: Sight) -> Visited:
    """The visit that one look makes."""
    capture, judgement = sight.capture, sight.judgement
    before = target.known.validators if target.known else NEVER_SEEN
    sign = sign_of(capture, judgement.verdict, before, conditional=sight.conditional)
    visit = visit_of(target.page, capture, judgement)
    return Visited(replace(target, seen=None) if target.seen else target, visit, judgement, capture, sign=sign)


def settled(target: Target) -> Visited:
    """The visit of a target that waits for its second look in vain: what the first one makes."""
    if target.seen is None:
        msg = f"{target.url} does not wait for a second look"
        raise ValueError(msg)
    return seen_once(target, target.seen)


def visit_of(page: int, capture: Capture, judgement: Judgement) -> Visit:
    """The row that a capture and its judgement make."""
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


def last_version(visited: Visited) -> Validators:
    """What to remember of the page after this visit. A second look without a verdict leaves what the first found."""
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


def links_stand(visited: Visited) -> bool:
    """Whether the page has the links of the version before: then nothing is written about them.

    So ``links_read_at`` is when the links of a page were last written, and a link stands if it was last seen then.
    """
    judgement, known = visited.judgement, visited.target.known
    return (
        judgement.links_read
        and known is not None
        and known.validators.links_read_at > -math.inf
        and judgement.link_keys == known.links_last
    )


def known_after(visited: Visited, last: Validators | None = None) -> Known:
    """What the judge of the next visit must know; ``last`` is the last version, if that was found out before."""
    after = detect.known_after(visited.judgement, visited.target.known) or Known()
    last = last or last_version(visited)
    return Known(last, last.gone, last.mime, after.links_last, after.links_ever, after.fingerprint, after.links_read)
