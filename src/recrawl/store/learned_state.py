"""What a crawl learns beside its visits: fingerprints, noise, validator trust, failing pages, robots.txt copies.

All workers share it, and it survives a restart.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from recrawl.model import ANSWERED, AnyArray, IntArray, NoiseCounts, Validators, Visits
from recrawl.model.arrays import starts_of_runs
from recrawl.model.captures import RobotsCopy
from recrawl.model.noise_counts import NOISE_SUMS, runs_at_end
from recrawl.model.visits import OUR_FAULT
from recrawl.store.engine.database import Column, Database, DatabaseSession
from recrawl.store.store_values import FailingPages, LearnedFacts, ValidatorCounts
from recrawl.time import DAY


def to_columns(values: Sequence[Validators]) -> list[Column]:
    """One column a field, in the order of the statements."""
    return [
        [_storable(value.etag) for value in values],
        [_storable(value.last_modified) for value in values],
        [value.digest for value in values],
        [value.text_digest for value in values],
        [_storable(value.mime) for value in values],
        np.array([value.gone for value in values], np.int16),
        np.array([value.links_read_at for value in values], np.float64),
    ]


def no_validators(count: int) -> list[Column]:
    """The validator columns of ``count`` pages without an answer, as ``to_columns`` makes them."""
    none = Validators()
    return [
        [none.etag] * count,
        [none.last_modified] * count,
        [none.digest] * count,
        [none.text_digest] * count,
        [none.mime] * count,
        np.full(count, none.gone, np.int16),
        np.full(count, none.links_read_at, np.float64),
    ]


def from_row(row: Sequence[Any]) -> Validators:
    """The validators in one row of these columns."""
    etag, last_modified, digest, text_digest, mime, gone, links_read_at = row
    return Validators(etag, last_modified, digest, text_digest, mime, bool(gone), links_read_at)


def _storable(text: str) -> str:
    """A header's value, or nothing if it holds a NUL: no server would take it back, and PostgreSQL keeps none."""
    return "" if "\0" in text else text


_KEPT = 30 * DAY
"""Seconds after its end for which a copy is kept: then nobody visits the host any more."""
_LARGEST = 512 * 1024
"""Bytes that the text of a copy may unfold to."""


class SqlRobots:
    """Part of the store over any database: see :class:`recrawl.model.captures.RobotsCopies`."""

    _database: Database

    def robots_copy(self, origin: str) -> RobotsCopy | None:
        """The copy of an origin."""
        rows = self._database.read(lambda session: session.rows(session.statements.robots.get, origin))
        return _copy(rows[0][:-2], bytes(rows[0][-2]), rows[0][-1]) if rows else None

    def keep_robots_copies(self, copies: Sequence[RobotsCopy]) -> None:
        """Keep copies, of each origin the last; they can be read again, so nobody waits for the disk."""
        last = list({copy.origin: copy for copy in copies}.values())
        if not last:
            return
        columns = _columns(last)
        before = max(copy.fetched_at for copy in last) - _KEPT

        def work(session: DatabaseSession) -> None:
            session.run(session.statements.robots.drop, before)
            session.apply(session.statements.robots.keep, *columns)

        self._database.write(work, lasting=False)

    def expire_robots_copies(self, origins: Sequence[str], now: float) -> None:
        """Have copies read again."""
        nothing = [RobotsCopy(origin, now, now, 0, "", True, origin, b"", now) for origin in dict.fromkeys(origins)]
        if nothing:
            columns = _columns(nothing)
            self._database.write(lambda session: session.apply(session.statements.robots.expire, *columns))

    def robots_copies_after(self, origin: str, limit: int) -> list[tuple[RobotsCopy, bool]]:
        """Copies behind an origin, and whether each can be read."""
        rows = self._database.read(lambda session: session.rows(session.statements.robots.after, origin, limit))
        return [_checked_copy(row) for row in rows]

    def forget_robots_copies(self, origins: Sequence[str], now: float) -> None:
        """Forget copies, and have them read again."""

        def work(session: DatabaseSession) -> None:
            for origin in origins:
                session.run(session.statements.robots.forget, origin)

        self._database.write(work)
        self.expire_robots_copies(origins, now)

    def changed_robots_copies(self, since: float) -> list[RobotsCopy]:
        """Copies that changed, without their text."""
        rows = self._database.read(lambda session: session.rows(session.statements.robots.changed, since))
        return [_copy(row[:-1], b"", row[-1]) for row in rows]


def _columns(copies: Sequence[RobotsCopy]) -> list[Column]:
    """Copies as columns, in the order of the table."""
    return [
        [copy.origin for copy in copies],
        np.array([copy.fetched_at for copy in copies]),
        np.array([copy.expires for copy in copies]),
        np.array([copy.status for copy in copies]),
        [copy.reason for copy in copies],
        np.array([int(copy.available) for copy in copies]),
        [copy.url for copy in copies],
        [zlib.compress(copy.body[:_LARGEST], 1) if copy.body else b"" for copy in copies],
        np.array([copy.changed for copy in copies]),
    ]


def _checked_copy(row: Sequence[Any]) -> tuple[RobotsCopy, bool]:
    try:
        return _copy(row[:-2], bytes(row[-2]), row[-1]), True
    except zlib.error:
        return _copy(row[:-2], b"", row[-1]), False


def _copy(facts: Sequence[Any], packed: bytes, changed: float) -> RobotsCopy:
    origin, fetched_at, expires, status, reason, available, url = facts
    body = zlib.decompressobj().decompress(packed, _LARGEST) if packed else b""
    return RobotsCopy(origin, fetched_at, expires, status, reason, bool(available), url, body, changed)


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


def add(session: DatabaseSession, pages: IntArray, learned_facts: LearnedFacts) -> None:
    """Add to what is known. After the hosts were claimed: then two workers wait for each other instead of crossing."""
    if learned_facts.fingerprints:
        _set_fingerprints(session, pages, learned_facts.fingerprints)
    if learned_facts.noise is not None:
        _add_noise(session, learned_facts.noise)
    if learned_facts.validator_trust is not None:
        _add_validator_trust(session, learned_facts.validator_trust)


def _set_fingerprints(session: DatabaseSession, pages: IntArray, fingerprints: Sequence[bytes]) -> None:
    """Store the last fingerprint of each page; empty ones are ignored."""
    last = {page: data for page, data in zip(pages.tolist(), fingerprints, strict=True) if data}
    if last:
        session.apply(session.statements.live.set_fingerprints, np.fromiter(last, np.int64), list(last.values()))


def fingerprints(session: DatabaseSession, pages: IntArray) -> list[bytes]:
    """The stored fingerprint of each of these pages, in order; empty if there is none."""
    found = dict(session.rows(session.statements.live.fingerprints, np.unique(pages))) if len(pages) else {}
    return [bytes(found.get(page, b"")) for page in pages.tolist()]


def _add_noise(session: DatabaseSession, counts: NoiseCounts) -> None:
    """Add evidence on noise; a batch may have a part several times."""
    if not len(counts):
        return
    order = np.lexsort((counts.part, counts.page, counts.host))
    keys = [getattr(counts, name)[order] for name in NoiseCounts.__slots__[:3]]
    first = np.flatnonzero(starts_of_runs(*keys))
    told = {name: getattr(counts, name)[order] for name in NoiseCounts.__slots__[3:]}
    added = {name: np.add.reduceat(count, first) for name, count in told.items() if name in NOISE_SUMS}
    added["run"] = runs_at_end(first, told["near_differed"], told["run"])
    united = {name: np.bitwise_or.reduceat(bits, first) for name, bits in told.items() if name not in added}
    columns = [(added | united)[name] for name in told]
    session.apply(session.statements.live.add_noise, *(key[first] for key in keys), *columns)


def noise(session: DatabaseSession, hosts: IntArray | None) -> NoiseCounts:
    """The evidence on noise of all hosts, or of these."""
    if hosts is None:
        table = session.table(_NOISE, session.statements.live.noise)
    else:
        table = session.table(_NOISE, session.statements.live.noise_of, hosts) if len(hosts) else np.empty(0, _NOISE)
    return NoiseCounts(*_noise_columns(table))


def drop_noise(session: DatabaseSession, hosts: IntArray) -> int:
    """Forget all evidence on the parts of pages of these hosts; return how many rows there were."""
    return session.run(session.statements.live.drop_noise, hosts) if len(hosts) else 0


def trim_noise(session: DatabaseSession, host: int, parts: IntArray, pages: IntArray) -> None:
    """Forget the evidence on some parts of a host, and all rows of some of its pages."""
    for statement, some in (
        (session.statements.live.drop_noise_parts, parts),
        (session.statements.live.drop_noise_pages, pages),
    ):
        if len(some):
            session.run(statement, host, some)


def _add_validator_trust(session: DatabaseSession, validator_trust: ValidatorCounts) -> None:
    """Add evidence on the validators of hosts; a batch may have a host several times."""
    hosts, place = np.unique(validator_trust.host, return_inverse=True)
    if not len(hosts):
        return
    sums = [np.zeros(len(hosts), np.int64) for _ in range(3)]
    for total, told in zip(sums, (validator_trust.checks, validator_trust.lies, validator_trust.restless), strict=True):
        np.add.at(total, place, told)
    session.apply(session.statements.live.add_validator_trust, hosts, *sums)


def note_failures(session: DatabaseSession, visits: Visits, reasons: Sequence[str] | None = None) -> None:
    """Keep the list of pages that fail: visits of distinct pages, each the last of its page.

    ``reasons`` has the error of recrawl's own code for each visit.
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


def quarantined(session: DatabaseSession) -> int:
    """How many pages broke our own code often enough to be quarantined."""
    [(count,)] = session.rows(session.statements.live.quarantined)
    return int(count)


def failing(session: DatabaseSession, limit: int, host: int | None) -> FailingPages:
    """Pages whose last visit of our own failed, latest first."""
    if host is None:
        table = session.table(_FAILING, session.statements.live.failing, limit)
    else:
        table = session.table(_FAILING, session.statements.live.failing_of_host, host, limit)
    said = dict(session.rows(session.statements.live.fault_reasons)) if (table["faults"] > 0).any() else {}
    columns: list[Any] = [*_noise_columns(table), [said.get(page, "") for page in table["page"].tolist()]]
    return FailingPages(*columns)


def _noise_columns(table: AnyArray) -> list[AnyArray]:
    return [np.ascontiguousarray(table[name]) for name in table.dtype.names or ()]
