"""State that lies ahead of the clock: found, marked, and repaired where it is derived.

A clock that was wrong for a while leaves visits in the future behind it, and hosts, due times and leases that wait for
that future. A visit is never rewritten, so it is marked: those that stand apart from all others were made by a clock
that was wrong then, and no reader takes them for visits any more. Those that continue the visits before them may be as
true as these, and the clock may be wrong now: they stay, and count when the clock has come that far. And where the
clock leaps over visits that were marked, it was wrong when they were: they stand again.

What follows from either is moved back with them, as if the visit had been made now: pauses last as long as they would
have, and due times keep their distance to the visit.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields

import numpy as np

from recrawl.model import FloatArray, IntArray, Visits
from recrawl.store.database import Session
from recrawl.store.frontier import claim_hosts, set_due
from recrawl.store.history import Selection, load_misdated, load_visits
from recrawl.store.segments import append, mark_misdated
from recrawl.time import DAY

NOTE = "misdated visits"
"""The name of the state that says how many visits were marked."""
SLACK = 2.0
"""Seconds that are nobody's concern: clocks of machines differ by as much."""
LONGEST_PAUSE = 31 * DAY
"""Seconds beyond which no host can have asked to be left alone (``fetch.patience``)."""
LONGEST_RULES = 2 * DAY
"""Seconds beyond which no copy of a robots.txt can be meant to last."""
_NEWEST = 1_000
"""Pages among the newest that tell whether pages were found ahead of the clock."""
_DUE = np.dtype([("page", np.int64), ("due", np.float64)])
_HOST = np.dtype([("page", np.int64), ("host", np.int64)])
_READY = np.dtype([("id", np.int64), ("ready_at", np.float64)])
_CLAIM_STEP = 1e-3
"""Seconds between claims that are moved back together, so that their order stays."""


@dataclass(frozen=True, slots=True)
class Misdated:
    """Visits whose times were ahead of the clock when they were found: marked, and no evidence of anything."""

    visits: int = 0
    found: float = 0.0
    """When the last of them were found, seconds since the epoch."""
    seconds: float = 0.0
    """How far ahead these were at most."""
    first: float = 0.0
    """The time of the first of these, seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class FoundAhead:
    """What lay ahead of the clock, and was repaired."""

    visits: int = 0
    """Recorded visits."""
    misdated: int = 0
    """Those of them that were marked: they stand apart from all others."""
    seconds: float = 0.0
    """How far ahead the last visit lies."""
    hosts: int = 0
    """Hosts that would have waited for that time."""
    pages: int = 0
    """Pages whose due times were moved back, or that were found ahead of the clock."""
    leases: int = 0
    """Leases that would have lasted until then."""
    restored: int = 0
    """Visits that had been marked and stand again: the clock was wrong when they were."""

    def __bool__(self) -> bool:
        """Whether there was anything."""
        return any(getattr(self, each.name) for each in fields(self))


def repair(session: Session, now: float, lease_time: float) -> FoundAhead:
    """Mark and repair what lies ahead of ``now``. Cheap where nothing does: it reads the newest visits and pages.

    No lease of a living worker lasts longer than ``lease_time`` seconds from now.
    """
    restored = _stand_again(session, now)
    visits = load_visits(session, Selection(since=now + SLACK))
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
    if misdated:
        first = float(visits.time[apart].min())
        _note(session, Misdated(noted(session).visits + misdated, now, seconds, first))
    return FoundAhead(len(visits), misdated, seconds, hosts, pages, leases, restored)


def _stand_again(session: Session, now: float) -> int:
    """Let the visits that were marked last stand again, if the clock has leapt over them since.

    It did if the crawl, which went on from when they were found, has come less than half of the way to them. One that
    came further has seen that time pass, and knows that nothing was visited then.
    """
    last = noted(session)
    if not last.visits or now < last.found + last.seconds:
        return 0
    before = load_visits(session, Selection(since=last.found, until=last.first))
    reached = float(before.time.max()) if len(before) else last.found
    if reached - last.found >= last.first - reached:
        return 0
    visits = load_misdated(session, Selection(since=last.first, until=last.found + last.seconds))
    append(session, visits)
    _note(session, Misdated(last.visits - len(visits), last.found))
    return len(visits)


def _note(session: Session, note: Misdated) -> None:
    session.run(session.statements.save_state, NOTE, json.dumps(asdict(note)).encode(), note.found)


def _stand_apart(time: FloatArray, now: float) -> float:
    """From which time on visits ahead of the clock stand apart from those before them; infinity if all go on from it.

    They do behind a gap as wide as a third of the way to the last of them.
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


def _end_pauses(session: Session, page: IntArray, last: FloatArray, now: float) -> int:
    """Let hosts rest from now on as long as they would have after their last visit."""
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


def _bring_forward(session: Session, page: IntArray, last: FloatArray, now: float) -> int:
    """Let pages be due as long after now as they would have been after their last visit."""
    found = session.table(_DUE, session.statements.due_of_pages, page)
    interval = found["due"] - last[np.searchsorted(page, found["page"])]
    late, due = np.isfinite(interval) & (interval >= 0), now + interval  # likewise
    moved = np.ascontiguousarray(found["page"][late])
    set_due(session, moved, due[late], claim_hosts(session, moved))
    return len(moved)


def _found_now(session: Session, now: float) -> int:
    """Let pages that were found ahead of the clock be found now, and be due."""
    newest = session.rows(session.statements.ahead.newest_pages, _NEWEST)
    if all(discovered <= now + SLACK for (discovered,) in newest):
        return 0
    found = session.table(_DUE, session.statements.ahead.found_later, now)
    pages = np.ascontiguousarray(found["page"])
    session.run(session.statements.ahead.find_now, now)
    waiting = np.ascontiguousarray(pages[np.isfinite(found["due"]) & (found["due"] > now)])
    set_due(session, waiting, np.full(len(waiting), now), claim_hosts(session, waiting))
    return len(pages)


def _hear_claims(session: Session, now: float) -> None:
    """Let what sites claimed have been heard by now, in the same order."""
    rows = session.rows(session.statements.ahead.claims_later, now)
    for number, (page, time, source) in enumerate(reversed(rows)):
        session.run(session.statements.ahead.hear_claim, now - number * _CLAIM_STEP, page, time, source)


def noted(session: Session) -> Misdated:
    """What is known of misdated visits, without looking for them."""
    rows = session.rows(session.statements.load_state, NOTE)
    return Misdated(**json.loads(bytes(rows[0][0]))) if rows else Misdated()
