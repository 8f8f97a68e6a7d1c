"""What a running crawl learns beside its visits: fingerprints, noise, the conduct of hosts, pages that fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from recrawl.model import ANSWERED, AnyArray, IntArray, NoiseCounts, Visits
from recrawl.model.arrays import starts_of_runs
from recrawl.model.failures import OUR_FAULT
from recrawl.store.database import Session
from recrawl.store.values import Conduct, Failing, Lessons

_NOISE = np.dtype([(name, np.int64) for name in NoiseCounts.__slots__])
_FAILING = np.dtype(
    [
        ("page", np.int64),
        ("since", np.float64),
        ("time", np.float64),
        ("failures", np.int64),
        ("outcome", np.uint8),
        ("status", np.int16),
        ("faults", np.int64),
    ]
)


def add(session: Session, pages: IntArray, lessons: Lessons) -> None:
    """Add to what is known. After the hosts were claimed: then two workers wait for each other instead of crossing."""
    if lessons.fingerprints:
        _set_fingerprints(session, pages, lessons.fingerprints)
    if lessons.noise is not None:
        _add_noise(session, lessons.noise)
    if lessons.conduct is not None:
        _add_conduct(session, lessons.conduct)


def _set_fingerprints(session: Session, pages: IntArray, fingerprints: Sequence[bytes]) -> None:
    """Keep what pages look like now, by the last that is told of each; an empty one tells nothing."""
    last = {page: data for page, data in zip(pages.tolist(), fingerprints, strict=True) if data}
    if last:
        session.apply(session.statements.live.set_fingerprints, np.fromiter(last, np.int64), list(last.values()))


def fingerprints(session: Session, pages: IntArray) -> list[bytes]:
    """What each of these pages looked like, in order; empty where nothing is kept."""
    found = dict(session.rows(session.statements.live.fingerprints, np.unique(pages))) if len(pages) else {}
    return [bytes(found.get(page, b"")) for page in pages.tolist()]


def _add_noise(session: Session, counts: NoiseCounts) -> None:
    """Add to what is known of the parts of pages; a batch may tell of a part several times."""
    if not len(counts):
        return
    order = np.lexsort((counts.part, counts.page, counts.host))
    keys = [getattr(counts, name)[order] for name in NoiseCounts.__slots__[:3]]
    first = np.flatnonzero(starts_of_runs(*keys))
    sums = [np.add.reduceat(getattr(counts, name)[order], first) for name in NoiseCounts.__slots__[3:7]]
    sets = [np.bitwise_or.reduceat(getattr(counts, name)[order], first) for name in NoiseCounts.__slots__[7:]]
    session.apply(session.statements.live.add_noise, *(key[first] for key in keys), *sums, *sets)


def noise(session: Session, hosts: IntArray | None) -> NoiseCounts:
    """What is known of the parts of pages of all hosts, or of these."""
    if hosts is None:
        table = session.table(_NOISE, session.statements.live.noise)
    else:
        table = session.table(_NOISE, session.statements.live.noise_of, hosts) if len(hosts) else np.empty(0, _NOISE)
    return NoiseCounts(*_columns(table))


def drop_noise(session: Session, hosts: IntArray) -> int:
    """Forget all evidence on the parts of pages of these hosts; return how many rows there were."""
    return session.run(session.statements.live.drop_noise, hosts) if len(hosts) else 0


def trim_noise(session: Session, host: int, parts: IntArray, pages: IntArray) -> None:
    """Forget the evidence on some parts of a host, and all rows of some of its pages."""
    for statement, some in (
        (session.statements.live.drop_noise_parts, parts),
        (session.statements.live.drop_noise_pages, pages),
    ):
        if len(some):
            session.run(statement, host, some)


def _add_conduct(session: Session, conduct: Conduct) -> None:
    """Add to what is known of how far hosts can be believed; a batch may tell of a host several times."""
    hosts, place = np.unique(conduct.host, return_inverse=True)
    if not len(hosts):
        return
    sums = [np.zeros(len(hosts), np.int64) for _ in range(3)]
    for total, told in zip(sums, (conduct.checks, conduct.lies, conduct.restless), strict=True):
        np.add.at(total, place, told)
    session.apply(session.statements.live.add_conduct, hosts, *sums)


def note_failures(session: Session, visits: Visits, reasons: Sequence[str] | None = None) -> None:
    """Keep the list of pages that fail: visits of distinct pages, each the last of its page.

    ``reasons`` say for each visit what our own code failed at.
    """
    failed = visits.outcome > ANSWERED
    answered = visits.page[~failed]
    if len(answered):
        session.run(session.statements.live.drop_failures, answered)
    bad = visits.take(failed)
    if len(bad):
        once, faults = np.ones(len(bad), np.int64), (bad.status == OUR_FAULT).astype(np.int64)
        said = [reasons[row] if reasons else "" for row in np.flatnonzero(failed).tolist()]
        columns = (bad.page, bad.time, bad.time, once, bad.outcome, bad.status, faults, said)
        session.apply(session.statements.live.add_failures, *columns)


def quarantined(session: Session) -> int:
    """How many pages broke our own code often enough to be quarantined."""
    [(count,)] = session.rows(session.statements.live.quarantined)
    return int(count)


def failing(session: Session, limit: int, host: int | None) -> Failing:
    """Pages whose last visit of our own failed, latest first."""
    if host is None:
        table = session.table(_FAILING, session.statements.live.failing, limit)
    else:
        table = session.table(_FAILING, session.statements.live.failing_of_host, host, limit)
    said = dict(session.rows(session.statements.live.fault_reasons)) if (table["faults"] > 0).any() else {}
    columns: list[Any] = [*_columns(table), [said.get(page, "") for page in table["page"].tolist()]]
    return Failing(*columns)


def _columns(table: AnyArray) -> list[AnyArray]:
    return [np.ascontiguousarray(table[name]) for name in table.dtype.names or ()]
