"""The latest visits, without reading the others."""

from __future__ import annotations

import numpy as np

from recrawl.model import VISIT_COLUMNS, Visits
from recrawl.store.database import Session
from recrawl.store.history import standing

_VISIT = np.dtype(list(VISIT_COLUMNS.items()))
_TIME = np.dtype([("time", np.float64)])


def latest_visits(session: Session, limit: int, host: int | None) -> Visits:
    """The latest visits (of a host), latest first.

    Segments hold visits in the order of recording, which need not be that of time. So the engine sorts the times of
    each segment that may have some of the latest; then the visits from the earliest of these on are read. Where
    records were replaced or taken back there may be too few, and it looks further back.
    """
    wanted = limit
    while True:
        since = _time_of(session, wanted, host)
        visits = _since(session, since, host)
        if len(visits) >= limit or np.isneginf(since):
            return visits.take(np.lexsort((visits.page, -visits.time))[:limit])
        wanted *= 2


def _time_of(session: Session, wanted: int, host: int | None) -> float:
    """The time of the last of so many latest records; -inf if there are no more."""
    times = np.empty(0)
    for segment, last in _segments(session):
        if len(times) == wanted and last < times[-1]:
            break
        if host is None:
            found = session.table(_TIME, session.statements.latest_times, segment, wanted)
        else:
            found = session.table(_TIME, session.statements.latest_times_of_host, segment, host, wanted)
        times = np.sort(np.concatenate([times, found["time"]]))[::-1][:wanted]
    return float(times[-1]) if len(times) == wanted and wanted else -np.inf


def _since(session: Session, since: float, host: int | None) -> Visits:
    parts = []
    # The later record stands, so segments are joined in the order of recording.
    for segment in sorted(segment for segment, last in _segments(session) if last >= since):
        if host is None:
            rows = session.table(_VISIT, session.statements.visits_since, segment, since)
        else:
            rows = session.table(_VISIT, session.statements.visits_since_of_host, segment, since, host)
        parts.append(Visits(*(np.ascontiguousarray(rows[name]) for name in VISIT_COLUMNS)))
    return standing(Visits.concatenate(parts))


def _segments(session: Session) -> list[tuple[int, float]]:
    """Segments and their latest time, latest first; an open one may have any."""
    rows = session.rows(session.statements.segment_ends)
    ends = [(int(segment), np.inf if last is None else float(last)) for segment, last in rows]
    return sorted(ends, key=lambda end: -end[1])
