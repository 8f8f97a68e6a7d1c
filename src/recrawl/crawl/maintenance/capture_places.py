"""Places of captures, sorted by file and offset on disk, to compare files with a store of any size."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol, Self

import apsw
import numpy as np

from recrawl.formats.warc.warc_check import RevisitReference
from recrawl.store.store_values import REVISIT, CaptureColumns

ROUNDING = 2e-6
"""Seconds: WARC dates have microseconds."""


class Add(Protocol):
    """Adds findings: their kind, examples, number and number repaired."""

    def __call__(self, kind: str, examples: Iterable[str], count: int = 1, repaired: int = 0) -> None:
        """Add findings."""
        ...


class CapturePlace(NamedTuple):
    """One capture, as the store describes it."""

    file: str
    offset: int
    length: int
    page: int
    time: float
    digest: bytes
    revisit: bool
    ours: bool

    def __str__(self) -> str:
        return f"page {self.page} in {self.file} at {self.offset}"


class RulesRecord(NamedTuple):
    """A record at the URL of a robots.txt."""

    url: str
    time: float
    file: str
    offset: int
    digest: bytes
    revisit: bool


def places_of(captures: CaptureColumns) -> Iterator[CapturePlace]:
    """The captures that lie in a file."""
    ours = captures.ours if captures.ours is not None else np.ones(len(captures), np.bool_)
    rows = zip(
        captures.warc_file,
        captures.warc_offset.tolist(),
        captures.warc_length.tolist(),
        captures.page.tolist(),
        captures.time.tolist(),
        captures.digest,
        (mime == REVISIT for mime in captures.mime),
        ours.tolist(),
        strict=True,
    )
    return (CapturePlace(*row) for row in rows if row[0])


class PlaceTable:
    """Captures by file and offset, and what revisits refer to. On disk; deleted with the process."""

    def __init__(self) -> None:
        self._base = apsw.Connection("")  # a file without a name: SQLite makes and removes it
        self._base.execute(
            "CREATE TABLE file (id INTEGER PRIMARY KEY, name TEXT UNIQUE);"
            "CREATE TABLE place (file, offset, length, page, time, digest, revisit, ours);"
            "CREATE TABLE original (key INTEGER);"
            "CREATE TABLE reference (key INTEGER, url, date, example);"
            "CREATE TABLE said (page INTEGER, key INTEGER, PRIMARY KEY (page, key)) WITHOUT ROWID;"
            "CREATE TABLE unsure (page INTEGER PRIMARY KEY);"
            "CREATE TABLE rules (url TEXT PRIMARY KEY);"
            "CREATE TABLE rules_record (url TEXT, time, file, offset, digest, revisit)"
        )
        self._files: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._base.close()

    def add(self, captures: CaptureColumns) -> None:
        """Add captures."""
        with self._base:
            self._base.executemany(
                "INSERT INTO place VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                ((self._id(place.file), *place[1:]) for place in places_of(captures)),
            )

    def _id(self, file: str) -> int:
        if file not in self._files:
            self._base.execute("INSERT INTO file (name) VALUES (?)", (file,))
            self._files[file] = self._base.last_insert_rowid()
        return self._files[file]

    def sort(self) -> None:
        """Build the index after the last ``add``."""
        self._base.execute("CREATE INDEX by_place ON place (file, offset)")

    def files(self) -> list[str]:
        """Files that captures lie in."""
        return list(self._files)

    def extent(self, file: str) -> tuple[int, bool, int]:
        """The number of captures in a file, whether one is our own, and where the last of them ends."""
        rows: list[tuple[Any, ...]] = self._base.execute(
            "SELECT count(*), coalesce(max(ours), 0), coalesce(max(offset + length), 0) FROM place WHERE file = ?",
            (self._files.get(file, 0),),
        ).fetchall()
        [(count, ours, end)] = rows
        return int(count), bool(ours), int(end)

    def of(self, file: str) -> Iterator[CapturePlace]:
        """Captures in a file, by offset."""
        rows = self._base.execute(
            "SELECT offset, length, page, time, digest, revisit, ours FROM place WHERE file = ? ORDER BY offset",
            (self._files.get(file, 0),),
        )
        for offset, length, page, time, digest, revisit, ours in rows:
            yield CapturePlace(file, offset, length, page, time, bytes(digest), bool(revisit), bool(ours))

    # -- validators: the headers of a page's captures ---------------------------------------------

    def add_values(self, page: int, *values: str) -> None:
        """Record values in an archived header of a page."""
        self._base.executemany(
            "INSERT OR IGNORE INTO said VALUES (?, ?)", ((page, _text_key(value)) for value in values if value)
        )

    def mark_unreadable(self, page: int) -> None:
        """Record that a header of a page could not be read, so its values are unknown."""
        self._base.execute("INSERT OR IGNORE INTO unsure VALUES (?)", (page,))

    def missing_values(self, page: int, *values: str) -> list[str]:
        """The values that no archived header of a page has; none if a header could not be read, or there is none."""
        if not self._any("SELECT 1 FROM place WHERE page = ? LIMIT 1", page):
            return []
        if self._any("SELECT 1 FROM unsure WHERE page = ?", page):
            return []
        known = "SELECT 1 FROM said WHERE page = ? AND key = ?"
        return [value for value in values if value and not self._any(known, page, _text_key(value))]

    def captures(self, page: int) -> int:
        """The number of captures of a page in files."""
        rows: list[tuple[Any, ...]] = self._base.execute(
            "SELECT count(*) FROM place WHERE page = ?", (page,)
        ).fetchall()
        return int(rows[0][0])

    def by_page(self) -> None:
        """Build the index for look-ups by page."""
        self._base.execute("CREATE INDEX by_page ON place (page)")

    def _any(self, question: str, *arguments: object) -> bool:
        return bool(self._base.execute(question, arguments).fetchall())

    # -- robots.txt: records at the URLs of stored copies -----------------------------------------

    def expect_rules(self, url: str) -> None:
        """Expect records at this URL, of which the store has a copy."""
        self._base.execute("INSERT OR IGNORE INTO rules VALUES (?)", (url,))

    def rules_record(self, record: RulesRecord) -> None:
        """Add a record; it counts if its URL is expected."""
        if self._any("SELECT 1 FROM rules WHERE url = ?", record.url):
            self._base.execute("INSERT INTO rules_record VALUES (?, ?, ?, ?, ?, ?)", record)

    def rules_read(self, url: str, since: float, until: float) -> RulesRecord | None:
        """The record of the last read in an interval; for a revisit the record that it repeats."""
        columns = "SELECT url, time, file, offset, digest, revisit FROM rules_record WHERE url = ?"
        last_first = f"{columns} AND time BETWEEN ? AND ? ORDER BY time DESC LIMIT 1"
        rows: list[Any] = self._base.execute(last_first, (url, since, until)).fetchall()
        if not rows:
            return None
        last = RulesRecord(*rows[0])
        if not last.revisit:
            return last
        again: list[Any] = self._base.execute(
            f"{columns} AND digest = ? AND NOT revisit LIMIT 1", (url, last.digest)
        ).fetchall()
        return RulesRecord(*again[0]) if again else None

    # -- what revisits repeat -------------------------------------------------------------------

    def original(self, reference: RevisitReference) -> None:
        """Add a record that a revisit may refer to."""
        self._base.execute("INSERT INTO original VALUES (?)", (_key(reference),))

    def refer(self, reference: RevisitReference, example: str) -> None:
        """Add the reference of a revisit."""
        self._base.execute("INSERT INTO reference VALUES (?, ?, ?, ?)", (_key(reference), *reference, example))

    def dangling(self) -> Iterator[tuple[RevisitReference, str]]:
        """References to records that were not found."""
        self._base.execute("CREATE INDEX IF NOT EXISTS by_key ON original (key)")
        rows = self._base.execute(
            "SELECT url, date, example FROM reference WHERE key NOT IN (SELECT key FROM original)"
        )
        return ((RevisitReference(url, date), example) for url, date, example in rows)


def _key(reference: RevisitReference) -> int:
    """A 64-bit hash of a URL and a date."""
    return _text_key(f"{reference.date} {reference.url}")


def _text_key(text: str) -> int:
    """A 64-bit hash of a text."""
    named = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(named.digest(), "big", signed=True)
