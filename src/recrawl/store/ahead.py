"""Records dated after the clock: found, marked, and repaired where they are derived.

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
from dataclasses import asdict, dataclass, fields, replace

import numpy as np

from recrawl.model import FloatArray, IntArray, Visits
from recrawl.store.engine.database import DatabaseSession
from recrawl.store.history import MISDATED, VisitSelection, append, load_misdated, load_visits, mark_misdated
from recrawl.store.page_leases import claim_hosts, set_due
from recrawl.time import DAY

NOTE = "misdated visits"
"""The name of the state that holds the number of marked visits."""
SLACK = 2.0
"""Seconds that are ignored: clocks of machines differ by as much."""
LONGEST_PAUSE = 31 * DAY
"""Seconds beyond which no host can have asked for a pause (``fetch.http.response_headers``)."""
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
    """How far ahead the last visit lies, in seconds."""
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


def repair(session: DatabaseSession, now: float, lease_time: float) -> AheadOfClock:
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
