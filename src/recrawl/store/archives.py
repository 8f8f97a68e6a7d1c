"""What archives and sites told: captures made elsewhere, claims about change, and how far each source was read."""

from __future__ import annotations

import numpy as np

from recrawl.model import IntArray
from recrawl.store.database import Session
from recrawl.store.recording import check_known
from recrawl.store.values import Captures, Claims, ImportMark

_PAGE = np.dtype([("page", np.int64)])


def add_captures(session: Session, captures: Captures, mark: ImportMark | None) -> int:
    """Add captures that are not there yet; return how many."""
    check_known(session, captures.page)
    added = 0
    if len(captures):
        added = session.apply(
            session.statements.add_captures,
            captures.page,
            captures.time,
            captures.status,
            captures.mime,
            captures.digest,
            captures.size,
            captures.warc_file,
            captures.warc_offset,
            captures.warc_length,
        )
        session.apply(session.statements.add_unjudged, np.unique(captures.page))
    if mark is not None:
        set_mark(session, mark)
    return added


def capture_columns(session: Session, pages: IntArray) -> Captures:
    """Captures of these pages, by page and time."""
    rows = session.rows(session.statements.captures_of, pages) if len(pages) else []
    page, time, status, mime, digest, size, file, offset, length = zip(*rows, strict=True) if rows else ((),) * 9
    return Captures(
        np.array(page, np.int64),
        np.array(time, np.float64),
        np.array(status, np.int64),
        list(mime),
        [bytes(value) for value in digest],
        np.array(size, np.int64),
        list(file),
        np.array(offset, np.int64),
        np.array(length, np.int64),
    )


def unjudged(session: Session) -> IntArray:
    """Pages whose captures wait for judgement."""
    return np.ascontiguousarray(session.table(_PAGE, session.statements.unjudged)["page"])


def set_judged(session: Session, pages: IntArray) -> None:
    """The captures of these pages have been judged."""
    if len(pages):
        session.run(session.statements.drop_unjudged, pages)


def add_claims(session: Session, claims: Claims, mark: ImportMark | None) -> int:
    """Add claims that are not there yet; return how many."""
    check_known(session, claims.page)
    added = 0
    if len(claims):
        added = session.apply(
            session.statements.add_claims,
            claims.page,
            claims.time,
            claims.source,
            claims.lastmod,
            claims.changefreq,
            claims.priority,
        )
    if mark is not None:
        set_mark(session, mark)
    return added


def claims_of(session: Session, pages: IntArray) -> Claims:
    """Claims about these pages, by page and time."""
    rows = session.rows(session.statements.claims_of, pages) if len(pages) else []
    page, time, source, lastmod, changefreq, priority = zip(*rows, strict=True) if rows else ((),) * 6
    return Claims(
        np.array(page, np.int64),
        np.array(time, np.float64),
        list(source),
        np.array(lastmod, np.float64),
        np.array(changefreq, np.int64),
        np.array(priority, np.float64),
    )


def set_mark(session: Session, mark: ImportMark) -> None:
    """Note how far a source was read."""
    numbers = (np.array([number]) for number in (mark.position, mark.accepted, mark.skipped, mark.broken))
    session.apply(
        session.statements.set_mark, [mark.source], [mark.fingerprint], *numbers, np.array([int(mark.finished)])
    )


def mark_of(session: Session, source: str) -> ImportMark | None:
    """How far a source was read."""
    rows = session.rows(session.statements.mark, source)
    if not rows:
        return None
    source, fingerprint, position, accepted, skipped, broken, finished = rows[0]
    return ImportMark(source, fingerprint, position, accepted, skipped, broken, bool(finished))
