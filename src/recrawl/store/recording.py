"""Writes visits and their facts, one transaction per batch; marks and repairs records dated after the clock.

A clock that was wrong for a while leaves visits in the future, and hosts, due times and leases that wait for that
future. A visit is never rewritten, so it is marked. Visits that stand apart from all others were made by a clock that
was wrong then; they are marked, and no reader returns them any more. Visits that continue the earlier ones may be
right, and the clock may be wrong now: they stay, and count when the clock has caught up. Until then the clock is behind
what is recorded, and new visits are marked (:func:`dated`), because their place is unknown. If the clock jumps over
visits that were marked, it was wrong when they were marked: they are restored, and the visits made in between by a
clock that was behind are marked instead.

What is derived from either is moved back with them, as if the visit had been made now: pauses keep their length, and
due times keep their distance to the visit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
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
from recrawl.store import learned_state, page_leases, site_captures
from recrawl.store.client_pages import ClientReport, note_report
from recrawl.store.engine.database import DatabaseSession
from recrawl.store.history import (
    MISDATED,
    VisitSelection,
    append,
    load_misdated,
    load_observations,
    load_visits,
    mark_misdated,
)
from recrawl.store.learned_state import to_columns
from recrawl.store.page_leases import claim_hosts, set_due
from recrawl.store.store_values import CaptureRecord, LearnedFacts, LinkRows, LinksSeen, SiteProgress
from recrawl.time import DAY

NOTE = "misdated visits"
"""The name of the state that holds the number of marked visits."""
SLACK = 2.0
"""Seconds that are ignored: clocks of machines differ by as much."""
LONGEST_PAUSE = 31 * DAY
"""Seconds beyond which no host can have asked for a pause (``fetch.http.transfer.retry_after``)."""
LONGEST_RULES = 2 * DAY
"""Seconds beyond which no copy of a robots.txt can be valid."""
_NEWEST = 1_000
"""Newest pages that are checked for pages found after the clock."""
_DUE = np.dtype([("page", np.int64), ("due", np.float64)])
_HOST = np.dtype([("page", np.int64), ("host", np.int64)])
_READY = np.dtype([("id", np.int64), ("ready_at", np.float64)])
_CLAIM_STEP = 1e-3
"""Seconds between claims that are moved back together, so that their order stays."""


@dataclass(frozen=True, slots=True)
class MisdatedVisits:
    """Visits made while the clock was wrong: marked, and no evidence of anything."""

    visits: int = 0
    found: float = 0.0
    """When the last of those after the clock were found, seconds since the epoch."""
    seconds: float = 0.0
    """How far ahead these were at most, in seconds."""
    first: float = 0.0
    """The time of the first of these, seconds since the epoch."""
    between: float = 0.0
    """The time of the last valid visit when they were found: later ones were made since."""


@dataclass(frozen=True, slots=True)
class AheadOfClock:
    """What was dated after the clock, and repaired."""

    visits: int = 0
    """Recorded visits."""
    misdated: int = 0
    """Visits that were marked: they stand apart from all others."""
    seconds: float = 0.0
    """How far ahead of the clock the last visit is, in seconds."""
    hosts: int = 0
    """Hosts that would have waited for that time."""
    pages: int = 0
    """Pages whose due times were moved back, or that were found after the clock."""
    leases: int = 0
    """Leases that would have lasted until then."""
    restored: int = 0
    """Marked visits that were restored: the clock was wrong when they were marked."""
    behind_until: float = 0.0
    """The time of the last valid visit, if it lies after the clock: until the clock has caught up it is behind what
    is recorded. Seconds since the epoch; 0 if none does."""

    def __bool__(self) -> bool:
        """Whether anything was found."""
        return any(getattr(self, each.name) for each in fields(self))


def repair_ahead(session: DatabaseSession, now: float, lease_time: float) -> AheadOfClock:
    """Mark and repair what is dated after ``now``. Cheap where nothing is: it reads the newest visits and pages.

    No lease of a live worker lasts longer than ``lease_time`` seconds from now.
    """
    restored, behind = _stand_again(session, now)
    visits = load_visits(session, VisitSelection(since=now + SLACK))
    apart = visits.time >= _stand_apart(visits.time, now)
    misdated = int(apart.sum())
    if misdated:
        mark_misdated(session, visits.take(apart))
    until = now + lease_time
    leases = session.run(session.statements.ahead.shorten_leases, until, until + SLACK)
    session.run(session.statements.ahead.shorten_holds, until, until + SLACK)
    hosts = session.run(session.statements.ahead.end_pauses, now, now + LONGEST_PAUSE)
    session.run(session.statements.ahead.expire_robots, now, now + LONGEST_RULES)
    session.run(session.statements.ahead.robots_changed, now)
    pages = _found_now(session, now)
    if len(visits):
        page, last = _last_of_each(visits)
        hosts += _end_pauses(session, page, last, now)
        pages += _bring_forward(session, page, last, now)
        session.run(session.statements.ahead.read_links, now, page)
        session.run(session.statements.ahead.see_links, now, page)
        session.run(session.statements.ahead.fail_now, now, page)
        _hear_claims(session, now)
    seconds = float(visits.time.max()) - now if len(visits) else 0.0
    standing = float(visits.time[~apart].max()) if misdated < len(visits) else 0.0
    if misdated:
        first = float(visits.time[apart].min())
        _note(session, MisdatedVisits(noted(session).visits + misdated, now, seconds, first, max(standing, now)))
    return AheadOfClock(len(visits), misdated + behind, seconds, hosts, pages, leases, restored, standing)


def dated(session: DatabaseSession, visits: Visits, behind_until: float) -> Visits:
    """Visits as they are to be recorded: marked up to the time until which the clock is behind what is recorded.

    0 means that it is not behind. Recording them again counts none twice.
    """
    if behind_until <= 0.0:  # the clock is not behind: imported visits may be older than the epoch
        return visits
    behind = visits.time <= behind_until
    if not behind.any():
        return visits
    marked = visits.take(behind)
    span = VisitSelection(np.unique(marked.page), float(marked.time.min()), float(marked.time.max()))
    known = load_misdated(session, span)
    there = set(zip(known.page.tolist(), known.time.tolist(), strict=True))
    new = sum(pair not in there for pair in zip(marked.page.tolist(), marked.time.tolist(), strict=True))
    before = noted(session)
    _note(session, replace(before, visits=before.visits + new))
    return replace(visits, outcome=np.where(behind, visits.outcome | np.uint8(MISDATED), visits.outcome))


def _stand_again(session: DatabaseSession, now: float) -> tuple[int, int]:
    """Restore the visits that were marked last, if the clock has jumped over them since; mark those made since.

    Returns how many were restored, and how many marked. The clock jumped if the crawl, which went on from when they
    were found, has covered less than half of the way to them. A crawl that covered more has seen that time pass, and
    knows that nothing was visited then.
    """
    last = noted(session)
    if not last.visits or now < last.found + last.seconds:
        return 0, 0
    before = load_visits(session, VisitSelection(since=last.found, until=last.first))
    reached = float(before.time.max()) if len(before) else last.found
    if reached - last.found >= last.first - reached:
        return 0, 0
    visits = load_misdated(session, VisitSelection(since=last.first, until=last.found + last.seconds))
    append(session, visits)
    behind = before.take(before.time > max(last.between, last.found))
    if len(behind):
        mark_misdated(session, behind)
    _note(session, MisdatedVisits(last.visits - len(visits) + len(behind), last.found))
    return len(visits), len(behind)


def _note(session: DatabaseSession, note: MisdatedVisits) -> None:
    session.run(session.statements.save_state, NOTE, json.dumps(asdict(note)).encode(), note.found)


def _stand_apart(time: FloatArray, now: float) -> float:
    """The time from which on visits after the clock stand apart from those before; infinity if all continue them.

    They stand apart after a gap as wide as a third of the way to the last of them.
    """
    edges, first = np.append(now, np.unique(time)), np.inf
    while len(edges) > 1:
        gaps = np.diff(edges)
        widest = int(gaps.argmax())
        if gaps[widest] < (edges[-1] - now) / 3:
            break
        first = float(edges[widest + 1])
        edges = edges[: widest + 1]
    return first


def _last_of_each(visits: Visits) -> tuple[IntArray, FloatArray]:
    """Each page once, ascending, and when it was last visited; the visits are in order."""
    page, first = np.unique(visits.page[::-1], return_index=True)
    return page, visits.time[::-1][first]


def _end_pauses(session: DatabaseSession, page: IntArray, last: FloatArray, now: float) -> int:
    """Let hosts pause from now on as long as they would have after their last visit."""
    of_page = session.table(_HOST, session.statements.hosts_of_pages, page)
    hosts, place = np.unique(of_page["host"], return_inverse=True)
    asked = np.full(len(hosts), -np.inf)
    np.maximum.at(asked, place, last[np.searchsorted(page, of_page["page"])])
    found = session.table(_READY, session.statements.ahead.ready_at, hosts)
    pause = found["ready_at"] - asked[np.searchsorted(hosts, found["id"])]
    later, ready = pause >= 0, now + pause  # else it was set since, by a clock that was right
    if later.any():
        session.apply(session.statements.set_ready, found["id"][later], ready[later])
    return int(later.sum())


def _bring_forward(session: DatabaseSession, page: IntArray, last: FloatArray, now: float) -> int:
    """Let pages be due as long after now as they would have been after their last visit."""
    found = session.table(_DUE, session.statements.due_of_pages, page)
    interval = found["due"] - last[np.searchsorted(page, found["page"])]
    late, due = np.isfinite(interval) & (interval >= 0), now + interval  # likewise
    moved = np.ascontiguousarray(found["page"][late])
    set_due(session, moved, due[late], claim_hosts(session, moved))
    return len(moved)


def _found_now(session: DatabaseSession, now: float) -> int:
    """Set pages that were found after the clock to be found now, and due."""
    newest = session.rows(session.statements.ahead.newest_pages, _NEWEST)
    if all(discovered <= now + SLACK for (discovered,) in newest):
        return 0
    found = session.table(_DUE, session.statements.ahead.found_later, now)
    pages = np.ascontiguousarray(found["page"])
    session.run(session.statements.ahead.find_now, now)
    waiting = np.ascontiguousarray(pages[np.isfinite(found["due"]) & (found["due"] > now)])
    set_due(session, waiting, np.full(len(waiting), now), claim_hosts(session, waiting))
    return len(pages)


def _hear_claims(session: DatabaseSession, now: float) -> None:
    """Set claims dated after the clock to now, in the same order."""
    rows = session.rows(session.statements.ahead.claims_later, now)
    for number, (page, time, source) in enumerate(reversed(rows)):
        session.run(session.statements.ahead.hear_claim, now - number * _CLAIM_STEP, page, time, source)


def noted(session: DatabaseSession) -> MisdatedVisits:
    """The stored facts on misdated visits, without a search."""
    rows = session.rows(session.statements.load_state, NOTE)
    return MisdatedVisits(**json.loads(bytes(rows[0][0]))) if rows else MisdatedVisits()


_capture_row = attrgetter("page", "time", "status", "mime", "digest", "size", "warc_file", "warc_offset", "warc_length")
_LINKS = np.dtype([("source", np.int64), ("target", np.int64), ("first_seen", np.float64), ("last_seen", np.float64)])


def check_known(session: DatabaseSession, pages: IntArray) -> None:
    """Refuse ids that no page can have. Cheap: it checks only the largest."""
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
    tokens: IntArray | None = None,
    host_ready: FloatArray | None = None,
    site: SiteProgress | None = None,
    learned_facts: LearnedFacts | None = None,
    reasons: Sequence[str] | None = None,
    on_lost: Callable[[IntArray], object] | None = None,
    behind_until: float = 0.0,
    client_report: ClientReport | None = None,
) -> None:
    """Append visits and everything that follows from them."""
    for name, column in (
        ("due", due),
        ("validators", validators),
        ("tokens", tokens),
        ("host_ready", host_ready),
        ("reasons", reasons),
    ):
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
        ours = _still_ours(session, worker, visits.page[latest], hosts, None if tokens is None else tokens[latest])
        kept = np.isin(visits.page, ours)
        if not kept.all():
            _keep_lost(session, visits.take(~kept), on_lost, behind_until)
            latest = latest[kept[latest]]
            links, learned_facts = _links_of(links, ours), _trainings_of(learned_facts, kept)
        said = [reasons[row] for row in latest.tolist()] if reasons is not None else None
        learned_state.note_failures(session, visits.take(latest), said)
        append(session, dated(session, visits if kept.all() else visits.take(kept), behind_until))
    else:
        append(session, dated(session, visits, behind_until))
    if validators is not None:
        _set_validators(session, visits.page[latest], [validators[row] for row in latest.tolist()])
    if links is not None:
        record_links(session, *links)
    if site is not None:
        site_captures.advance(session, site)
    if due is not None:
        page_leases.set_due(session, visits.page[latest], due[latest], hosts)
    if client_report is not None:
        note_report(session, client_report)
    if learned_facts is not None:
        learned_state.add(session, visits.page, learned_facts)


def _still_ours(
    session: DatabaseSession, worker: str, pages: IntArray, hosts: IntArray, tokens: IntArray | None
) -> IntArray:
    """End the leases of a worker on distinct pages; return the pages whose leases were valid.

    Valid is a lease whose bucket the worker has owned ever since. With ``tokens`` it must also be the lease under which
    the page was visited: the worker may have lost the bucket, got it back and leased the page again.
    """
    page, token = page_leases.end_leases(session, worker, pages, hosts)
    valid = token >= 0
    if tokens is not None and len(page):
        order = np.argsort(pages)
        visited = tokens[order][np.searchsorted(pages[order], page)]
        valid &= (visited == 0) | (visited == token)
    return page[valid]


def add_captures(session: DatabaseSession, captures: Sequence[CaptureRecord]) -> int:
    """Store the locations of captures that are not stored yet; return their number."""
    if not captures:
        return 0
    columns = map(list, zip(*map(_capture_row, captures), strict=True))
    return len(session.touched(session.statements.add_captures, *columns))


def _keep_lost(
    session: DatabaseSession, visits: Visits, on_lost: Callable[[IntArray], object] | None, behind_until: float
) -> None:
    """Append visits whose leases were lost, without a verdict; ``on_lost`` receives the pages of the new ones.

    Another worker may have visited these pages since, and found the same change. Visits that are already recorded were
    committed by a call whose answer was lost: they stay unchanged.
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
    append(session, dated(session, said, behind_until))
    if on_lost is not None:
        on_lost(np.unique(new.page))


def _links_of(links: LinksSeen | None, pages: IntArray) -> LinksSeen | None:
    """Those of the links that are on these pages."""
    if links is None:
        return None
    mine = np.isin(links.source, pages)
    return LinksSeen(links.source[mine], links.target[mine], links.time[mine])


def _trainings_of(learned_facts: LearnedFacts | None, kept: BoolArray) -> LearnedFacts | None:
    """The same without the fingerprints of pages whose leases were lost; counts of hosts are kept."""
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
