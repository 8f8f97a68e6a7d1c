"""Where captures lie, sorted by file and offset on the disk: for comparing files with a store of any size."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import apsw
import numpy as np

from recrawl.formats.warc_check import Reference
from recrawl.store.values import REVISIT, Captures


class Place(NamedTuple):
    """What the store says of one capture."""

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


def places_of(captures: Captures) -> Iterator[Place]:
    """Of captures, those that lie in a file."""
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
    return (Place(*row) for row in rows if row[0])


class PlaceTable:
    """Where captures lie, by file and offset, and what revisits refer to. On the disk; gone with the process."""

    def __init__(self) -> None:
        self._base = apsw.Connection("")  # a file without a name: SQLite makes and removes it
        self._base.execute(
            "CREATE TABLE file (id INTEGER PRIMARY KEY, name TEXT UNIQUE);"
            "CREATE TABLE place (file, offset, length, page, time, digest, revisit, ours);"
            "CREATE TABLE original (key INTEGER);"
            "CREATE TABLE reference (key INTEGER, url, date, example)"
        )
        self._files: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._base.close()

    def add(self, captures: Captures) -> None:
        """Take captures in."""
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
        """All are there."""
        self._base.execute("CREATE INDEX by_place ON place (file, offset)")

    def files(self) -> list[str]:
        """Files that captures lie in."""
        return list(self._files)

    def extent(self, file: str) -> tuple[int, bool, int]:
        """How many captures lie in a file, whether one is our own, and where the last of them ends."""
        rows: list[tuple[Any, ...]] = self._base.execute(
            "SELECT count(*), coalesce(max(ours), 0), coalesce(max(offset + length), 0) FROM place WHERE file = ?",
            (self._files.get(file, 0),),
        ).fetchall()
        [(count, ours, end)] = rows
        return int(count), bool(ours), int(end)

    def of(self, file: str) -> Iterator[Place]:
        """Captures in a file, by offset."""
        rows = self._base.execute(
            "SELECT offset, length, page, time, digest, revisit, ours FROM place WHERE file = ? ORDER BY offset",
            (self._files.get(file, 0),),
        )
        for offset, length, page, time, digest, revisit, ours in rows:
            yield Place(file, offset, length, page, time, bytes(digest), bool(revisit), bool(ours))

    def original(self, reference: Reference) -> None:
        """A record is there that may be repeated."""
        self._base.execute("INSERT INTO original VALUES (?)", (_key(reference),))

    def refer(self, reference: Reference, example: str) -> None:
        """A revisit repeats a record."""
        self._base.execute("INSERT INTO reference VALUES (?, ?, ?, ?)", (_key(reference), *reference, example))

    def dangling(self) -> Iterator[tuple[Reference, str]]:
        """References to records that were not met."""
        self._base.execute("CREATE INDEX IF NOT EXISTS by_key ON original (key)")
        rows = self._base.execute(
            "SELECT url, date, example FROM reference WHERE key NOT IN (SELECT key FROM original)"
        )
        return ((Reference(url, date), example) for url, date, example in rows)


def _key(reference: Reference) -> int:
    """64 bits that stand for a URL and a date."""
    named = hashlib.blake2b(f"{reference.date} {reference.url}".encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(named.digest(), "big", signed=True)
