"""Visits in the store: rows in segments, and a packed copy of each full segment for reading them all at once.

Every visit is a row of the table ``visit``. Rows go into an open segment; when it holds ``SEGMENT_VISITS`` it is
sealed: it never changes again, and the columns that histories are made of are written beside it as one array of
bytes (the pack), sorted by page and time. Millions of visits are then read at the speed of memory, in runs that
a merge sort joins in one go, and in both engines by the same code.

The pack holds nothing that the rows do not; a page's visits, or all columns, come from the rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from recrawl.model import ANSWERED, VISIT_COLUMNS, AnyArray, FloatArray, IntArray, Verdict, Visits
from recrawl.model.arrays import ends_of_runs
from recrawl.store.database import Session

SEGMENT_VISITS = 65_536
"""Visits of a full segment. More make an append touch more blocks, fewer make a page's visits lie in more places."""

LOOK = np.dtype([(name, VISIT_COLUMNS[name]) for name in ("page", "time", "outcome", "verdict", "kinds")])
"""The columns histories are made of."""
LOOK_NAMES = tuple(LOOK.fields or ())


MISDATED = 64
"""Added to an outcome: the time of this visit was ahead of the clock when it was found, so it is not when it was made.

Such a visit stays as it was recorded, and no reader takes it for one, but those that ask for it."""
WITHDRAWN = 255
"""In place of an outcome: this visit was taken back."""


def append(session: Session, visits: Visits) -> None:
    """Add visits to the open segment, sealing segments as they fill. O(n log n) for the batch alone.

    A visit that the open segment already has (same page, same time) takes the place of the one before; of one in a
    full segment, which never changes, the reader passes over the older.
    """
    done = 0
    while done < len(visits):
        segment, used = _open_segment(session)
        part = _distinct(visits.take(slice(done, done + SEGMENT_VISITS - used)))
        done += SEGMENT_VISITS - used
        columns = (np.full(len(part), segment), *part.columns().values())
        added = session.apply(session.statements.add_visits, *columns)
        if added < len(part):
            session.apply(session.statements.replace_visits, *columns)
        session.run(session.statements.grow_segment, added, segment)
        if used + added >= SEGMENT_VISITS:
            _seal(session, segment)


def withdraw(session: Session, page: IntArray, time: FloatArray) -> None:
    """Take visits back: recorded as withdrawn, they stand no more. Rows of full segments never change."""
    append(session, Visits.of(page, time, outcome=WITHDRAWN))


def mark_misdated(session: Session, visits: Visits) -> None:
    """Record visits once more, as misdated. Rows of full segments never change."""
    append(session, replace(visits, outcome=visits.outcome | np.uint8(MISDATED)))


def pack(looks: AnyArray) -> bytes:
    """The columns of looks one after the other, little-endian: 20 bytes a visit."""
    return b"".join(looks[name].astype(_little(name)).tobytes() for name in LOOK_NAMES)


def unpack(data: bytes) -> dict[str, AnyArray]:
    """The columns in a pack, by name, not copied.

    >>> looks = np.array([(7, 1.5, 0, 2, 3), (9, 0.5, 7, 0, 0)], LOOK)
    >>> {name: column.tolist() for name, column in unpack(pack(looks)).items()}["page"]
    [7, 9]
    """
    count, start = len(data) // LOOK.itemsize, 0
    columns: dict[str, AnyArray] = {}
    for name in LOOK_NAMES:
        dtype = _little(name)
        columns[name] = np.frombuffer(data, dtype, count, start)
        start += count * dtype.itemsize
    return columns


def _little(name: str) -> np.dtype[np.generic]:
    return np.dtype(VISIT_COLUMNS[name]).newbyteorder("<")


def _open_segment(session: Session) -> tuple[int, int]:
    """A segment with room that no other transaction adds to, and how many visits it has."""
    found = session.rows(session.statements.open_segment)
    if found:
        segment, used = found[0]
        return int(segment), int(used)
    return int(session.rows(session.statements.add_segment)[0][0]), 0


def _distinct(visits: Visits) -> Visits:
    """Sorted by page and time, each visit once: in the order of the key, rows are written side by side."""
    ordered = visits.sorted()
    last = ends_of_runs(ordered.page, ordered.time)
    return ordered if bool(last.all()) else ordered.take(last)


def _seal(session: Session, segment: int) -> None:
    looks = session.table(LOOK, session.statements.looks_of_segment, segment)
    session.run(
        session.statements.seal_segment,
        len(looks),
        int((looks["verdict"] == Verdict.CHANGED).sum()),
        int(((looks["outcome"] > ANSWERED) & (looks["outcome"] < MISDATED)).sum()),
        float(looks["time"].min()),
        float(looks["time"].max()),
        pack(looks),
        segment,
    )
