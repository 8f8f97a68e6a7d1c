"""Writes visits and their facts: one transaction per batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import attrgetter

import numpy as np

from recrawl.model import (
    UNMEASURED,
    BoolArray,
    ChangeKind,
    FloatArray,
    IntArray,
    Validators,
    Verdict,
    Visits,
)
from recrawl.model.arrays import AnyArray, order_by
from recrawl.store import ahead, learned_state, page_leases, site_captures
from recrawl.store.engine.database import DatabaseSession
from recrawl.store.history import VisitSelection, append, load_observations
from recrawl.store.learned_state import to_columns
from recrawl.store.store_values import CaptureRecord, LearnedFacts, LinkRows, LinksSeen, SiteProgress

_capture_row = attrgetter("page", "time", "status", "mime", "digest", "size", "warc_file", "warc_offset", "warc_length")
_LINKS = np.dtype([("source", np.int64), ("target", np.int64), ("first_seen", np.float64), ("last_seen", np.float64)])


def check_known(session: DatabaseSession, pages: IntArray) -> None:
    """Refuse ids that no page can have. Cheap: it looks only at the largest."""
    [(last,)] = session.rows(session.statements.last_page)
    if len(pages) and (int(pages.min()) < 1 or int(pages.max()) > int(last)):
        msg = f"page ids run from 1 to {last}; got {int(pages.min())} to {int(pages.max())}"
        raise ValueError(msg)


def record(  # noqa: C901, PLR0912, PLR0913 - the parts of one transaction, each optional
    session: DatabaseSession,
    visits: Visits,
    *,
    due: FloatArray | None = None,
    validators: Sequence[Validators | None] | None = None,
    captures: Sequence[CaptureRecord] | None = None,
    links: LinksSeen | None = None,
    worker: str | None = None,
    host_ready: FloatArray | None = None,
    site: SiteProgress | None = None,
    learned_facts: LearnedFacts | None = None,
    reasons: Sequence[str] | None = None,
    on_lost: Callable[[IntArray], object] | None = None,
    behind_until: float = 0.0,
) -> None:
    """Append visits and everything that follows from them."""
    for name, column in (("due", due), ("validators", validators), ("host_ready", host_ready), ("reasons", reasons)):
        if column is not None and len(column) != len(visits):
            msg = f"{name} has {len(column)} entries for {len(visits)} visits"
            raise ValueError(msg)
    if not np.isfinite(visits.time).all():
        msg = "a visit has no finite time"
        raise ValueError(msg)
    check_known(session, visits.page)
    latest = _latest_of_each(visits)
    schedules = due is not None or worker is not None or host_ready is not None
    hosts = page_leases.claim_hosts(session, visits.page[latest]) if schedules else np.empty(0, np.int64)
    if captures:
        add_captures(session, captures)
    if host_ready is not None:
        page_leases.keep_away(session, visits.page, host_ready)
    if worker is not None:
        ours = page_leases.give_back(session, worker, visits.page[latest], hosts)
        kept = np.isin(visits.page, ours)
        if not kept.all():
            _keep_lost(session, visits.take(~kept), on_lost, behind_until)
            latest = latest[kept[latest]]
            links, learned_facts = _links_of(links, ours), _trainings_of(learned_facts, kept)
        said = [reasons[row] for row in latest.tolist()] if reasons is not None else None
        learned_state.note_failures(session, visits.take(latest), said)
        append(session, ahead.dated(session, visits if kept.all() else visits.take(kept), behind_until))
    else:
        append(session, ahead.dated(session, visits, behind_until))
    if validators is not None:
        _set_validators(session, visits.page[latest], [validators[row] for row in latest.tolist()])
    if links is not None:
        record_links(session, *links)
    if site is not None:
        site_captures.advance(session, site)
    if due is not None:
        page_leases.set_due(session, visits.page[latest], due[latest], hosts)
    if learned_facts is not None:
        learned_state.add(session, visits.page, learned_facts)


def add_captures(session: DatabaseSession, captures: Sequence[CaptureRecord]) -> int:
    """Note where the bytes of captures lie, as far as that is not known; return how many were new."""
    if not captures:
        return 0
    return session.apply(session.statements.add_captures, *map(list, zip(*map(_capture_row, captures), strict=True)))


def _keep_lost(
    session: DatabaseSession, visits: Visits, on_lost: Callable[[IntArray], object] | None, behind_until: float
) -> None:
    """Append visits whose leases were lost, with no word on change, and tell the pages of those that are new here.

    Somebody else may have visited these pages since, and found the same change. Visits that are recorded already were
    committed by a call whose answer was lost: these stay as they are.
    """
    span = VisitSelection(np.unique(visits.page), float(visits.time.min()), float(visits.time.max()))
    there = load_observations(session, span)
    known = set(zip(there.page.tolist(), there.time.tolist(), strict=True))
    pairs = zip(visits.page.tolist(), visits.time.tolist(), strict=True)
    new = visits.take(np.array([pair not in known for pair in pairs], np.bool_))
    if not len(new):
        return
    no_word = Visits.of(new.page, new.time, verdict=Verdict.UNKNOWN, kinds=ChangeKind.NONE, magnitude=UNMEASURED)
    said = replace(new, verdict=no_word.verdict, kinds=no_word.kinds, magnitude=no_word.magnitude)
    append(session, ahead.dated(session, said, behind_until))
    if on_lost is not None:
        on_lost(np.unique(new.page))


def _links_of(links: LinksSeen | None, pages: IntArray) -> LinksSeen | None:
    """Those of the links that are on these pages."""
    if links is None:
        return None
    mine = np.isin(links.source, pages)
    return LinksSeen(links.source[mine], links.target[mine], links.time[mine])


def _trainings_of(learned_facts: LearnedFacts | None, kept: BoolArray) -> LearnedFacts | None:
    """The same without what pages look like whose leases were lost; what was counted of others is so."""
    if learned_facts is None or not kept.any():
        return None
    prints = zip(learned_facts.fingerprints, kept.tolist(), strict=True) if learned_facts.fingerprints else ()
    return replace(learned_facts, fingerprints=[one if mine else b"" for one, mine in prints])


def _latest_of_each(visits: Visits) -> IntArray:
    """The row of the latest visit of each page, in the order of page ids."""
    order = order_by(visits.page, visits.time)
    rows = np.arange(len(visits)) if order is None else order
    page = visits.page[rows]
    return rows[np.append(page[1:] != page[:-1], True)] if len(rows) else rows


def _set_validators(session: DatabaseSession, page: IntArray, validators: Sequence[Validators | None]) -> None:
    given = [(number, value) for number, value in zip(page.tolist(), validators, strict=True) if value is not None]
    if not given:
        return
    columns = to_columns([value for _, value in given])
    session.apply(session.statements.set_validators, np.array([number for number, _ in given]), *columns)


def record_links(session: DatabaseSession, source: IntArray, target: IntArray, time: FloatArray) -> None:
    """Note that links were seen; a batch may hold a link several times."""
    if not len(source):
        return
    check_known(session, source)
    check_known(session, target)
    distinct = _by_source_and_target(source, target)
    if distinct is not None:
        source, target, time = source[distinct], target[distinct], time[distinct]
        session.add_links(source, target, time, time)
        return
    order = np.lexsort((time, target, source))
    source, target, time = source[order], target[order], time[order]
    first = np.append(True, (source[1:] != source[:-1]) | (target[1:] != target[:-1]))
    last = np.append(first[1:], True)
    session.add_links(source[first], target[first], time[first], time[last])


def _by_source_and_target(source: IntArray, target: IntArray) -> IntArray | None:
    """The order of links by source, then target, if each is there once and all ids are small; else ``None``.

    Both as one number: a seventh of the time that three columns take to sort.
    """
    if not len(source) or (int(source.max()) + 1) * (span := int(target.max()) + 1) > np.iinfo(np.int64).max:
        return None
    both = source * span + target
    order = np.argsort(both)
    both = both[order]
    return None if bool((both[1:] == both[:-1]).any()) else order


def outlinks(session: DatabaseSession, pages: IntArray) -> LinkRows:
    """Every link ever seen on these pages."""
    table = session.table(_LINKS, session.statements.links_from, pages) if len(pages) else np.empty(0, _LINKS)
    columns: list[AnyArray] = [np.ascontiguousarray(table[name]) for name in _LINKS.fields or ()]
    return LinkRows(*columns)


def captures_of(session: DatabaseSession, pages: IntArray) -> list[CaptureRecord]:
    """Every capture of these pages, by page and time."""
    rows = session.rows(session.statements.captures_of, pages) if len(pages) else []
    return [CaptureRecord(*row) for row in rows]


def capture_offsets(session: DatabaseSession, file: str) -> IntArray:
    """Where the captures in an archive file begin."""
    return np.array([offset for (offset,) in session.rows(session.statements.capture_offsets, file)], dtype=np.int64)
