"""Archive files compared with the store: where each capture lies, and which records are there.

Files are read once, in their order. What the store says of them is sorted into a table on the disk first: memory grows
neither with captures nor with files, and no transaction of the store stays open meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

import numpy as np

from recrawl.crawl.archive import REVISIT
from recrawl.crawl.archived_bytes import imported_into, may_be_read
from recrawl.crawl.verify_places import Place, PlaceTable, places_of
from recrawl.errors import InputError
from recrawl.formats.arc import read_arc_capture
from recrawl.formats.disk import has_file
from recrawl.formats.sniff import Format, sniff
from recrawl.formats.warc_check import CAPTURES, CheckedRecord, Reference, checked_record_at, checked_records
from recrawl.formats.warc_fields import parse_date
from recrawl.formats.warc_repair import OPEN, lock
from recrawl.store.base import Store
from recrawl.store.base_checks import Tell
from recrawl.store.values import CaptureRecord, Captures

_AT_ONCE = 10_000
"""Captures that are read from the store in one go."""
_TOLD_EVERY = 256
"""Records between two reports of progress."""
_ROUNDING = 2e-6
"""Seconds: WARC dates have microseconds."""
_SHA1 = 20
_SURE = 0.95
"""How sure the bound on undetected errors is."""
_BESIDE = ("/robots.txt", ".xml", ".xml.gz", ".rss", ".atom")
"""How addresses end that are asked for beside pages."""


class Add(Protocol):
    """Takes findings in: their kind, examples, how many there are and how many were repaired."""

    def __call__(self, kind: str, examples: Iterable[str], count: int = 1, repaired: int = 0) -> None:
        """Take findings in."""
        ...


@dataclass(frozen=True, slots=True)
class Sample:
    """How far a sample speaks for the rest."""

    drawn: int
    """Captures that were checked."""
    captures: int
    """Captures there are."""
    wrong: int
    """Captures of the sample that cannot be read as they should be."""
    bound: float
    """With 95 % confidence, at most this share of all captures is wrong (Clopper and Pearson)."""


class _Whereabouts(NamedTuple):
    """One archive file of the workspace."""

    path: Path
    is_open: bool
    """Whether it has no final name yet."""
    is_written: bool
    """Whether a process writes it."""


class ArchiveCheck:
    """Compares the archive files of a workspace with its store."""

    def __init__(  # noqa: PLR0913 - what, where, and whom to tell
        self, store: Store, warc: Path, add: Add, tell: Tell, *, repair: bool, others: Sequence[Path] = ()
    ) -> None:
        """``others`` are more folders with archive files, of other workspaces that share the store."""
        self._store, self._warc, self._add, self._tell, self._repair = store, warc, add, tell, repair
        self._folders = (warc, *others)
        self._is_imported = cache(imported_into(store))
        self.captures = self.records = self.files = self.read = 0

    # -- all of it ------------------------------------------------------------------------------

    def check_all(self) -> None:
        """Read every archive file from its beginning to its end."""
        with PlaceTable() as places:
            for piece in self._pieces():
                places.add(piece)
            places.sort()
            names = self._names(places)
            whole, done = sum(map(self._size, names)), 0
            for name in names:
                step = self._size(name)
                self._check_file(name, places, lambda at, done=done: self._tell("archive files", done + at, whole))  # type: ignore[misc]
                done += step
            self._tell("archive files", 1, 1)
            self._check_references(places)

    def _pieces(self) -> Iterator[Captures]:
        """All captures, piece by piece."""
        page, time, done = -1, 0.0, 0
        while len(piece := self._store.captures_after(page, time, _AT_ONCE)):
            yield piece
            page, time, done = int(piece.page[-1]), float(piece.time[-1]), done + len(piece)
            self._tell("captures in the store", done, done + len(piece))
        self._tell("captures in the store", 1, 1)

    def _names(self, places: PlaceTable) -> list[str]:
        """Archive files by their final names: those that captures lie in, and those that are there."""
        files = (path for folder in self._folders for path in folder.glob("*.warc.gz*") if path.is_file())
        there = {path.name.removesuffix(OPEN) for path in files}
        return sorted(there | set(places.files()))

    def _check_file(self, name: str, places: PlaceTable, tell: Callable[[int], None]) -> None:
        count, ours, end = places.extent(name)
        if not may_be_read(self._warc, name, self._is_imported):
            self._add("not_checked", [name], count)
            return
        if count and not ours:
            self._check_imported(name, places)
            return
        found = self._find(name)
        if found is None:
            if count:
                self._add("file_missing", [f"{name}: {count} captures"], count)
            return
        if found.is_open and not found.is_written:
            self._add("file_left_open", [name])
        self.files += 1
        try:
            with found.path.open("rb", buffering=0) as file:
                self._walk(file, name, places, end if found.is_open else None, tell)
        except FileNotFoundError:  # closed a moment ago, or removed by a start that found nothing in it
            final = found.path.with_name(name)
            if not found.is_open or not final.is_file():
                if count:
                    self._add("file_missing", [f"{name}: {count} captures"], count)
                return
            with final.open("rb", buffering=0) as file:
                self._walk(file, name, places, None, tell)

    def _find(self, name: str) -> _Whereabouts | None:
        for path in (folder / name for folder in (*self._folders, *self._folders)):
            still_open = path.with_name(path.name + OPEN)
            with suppress(FileNotFoundError), still_open.open("rb") as file:
                return _Whereabouts(still_open, True, not lock(file))
            if has_file(path):
                return _Whereabouts(path, False, False)
            # Each is looked for twice: between two looks a writer may have closed it.
        return None

    def _size(self, name: str) -> int:
        """Bytes of an archive file, 0 if it is not there."""
        found = self._find(name)
        with suppress(OSError):
            return 0 if found is None else found.path.stat().st_size
        return 0

    def _walk(
        self, file: BinaryIO, name: str, places: PlaceTable, end: int | None, tell: Callable[[int], None]
    ) -> None:
        """Compare the records of a file with what the store says of it.

        Of a file without its final name only what lies before ``end``, the end of the last capture that the store
        knows: what follows is not acknowledged.
        """

        def damaged(position: int, what: str) -> None:
            if end is None or position < end:
                self._add("file_damaged", [what])

        expected = places.of(name)
        place = next(expected, None)
        at = 0
        for record in checked_records(file, name, damaged):
            if end is not None and record.offset >= end:
                break
            at = record.offset
            while place is not None and place.offset < at:
                self._add("record_missing", [str(place)])
                place = next(expected, None)
            self.records += 1
            if place is not None and place.offset == at:
                self._compare(record, place)
                place = next(expected, None)
            else:
                self._check_unexpected(record, name)
            self._note_reference(record, name, places)
            if self.records % _TOLD_EVERY == 0:
                tell(at)
        while place is not None:
            self._add("record_missing", [str(place)])
            place = next(expected, None)
        self.read += at if end is None else end

    def _compare(self, record: CheckedRecord, place: Place) -> bool:
        """Whether a record is what the store says of it."""
        self.captures += 1
        wrong = _difference(record, place)
        if not wrong:
            return True
        kind = "record_damaged" if record.fault else "record_differs"
        self._add(kind if place.ours else "imported_damaged", [f"{place}: {wrong}"])
        return False

    def _check_unexpected(self, record: CheckedRecord, name: str) -> None:
        """A record that the store did not tell of: of no page, of a visit since we asked, or not known."""
        if record.fault:
            self._add("record_damaged", [f"{name} at {record.offset}: {record.fault}"])
        if record.kind not in CAPTURES or record.time is None:
            return
        page = self._store.find(record.url)
        if page is None:
            return
        since, until = record.time - _ROUNDING, record.time + _ROUNDING
        known = self._store.captures_between(page.id, since, until, 9)
        if any(at == (name, record.offset) for at in zip(known.warc_file, known.warc_offset.tolist(), strict=True)):
            return
        example = f"{record.url} in {name} at {record.offset}"
        if len(known):
            self._add("record_doubled", [example])
            return
        looks = self._store.looks(np.array([page.id]))
        times = looks.time[(looks.time >= since) & (looks.time <= until)]
        if len(times):
            self._restore(record, name, page.id, float(times[0]), example)
        elif not record.url.lower().endswith(_BESIDE) and not self._store.sources(np.array([page.id])):
            self._add("record_unknown", [example])

    def _restore(self, record: CheckedRecord, name: str, page: int, time: float, example: str) -> None:
        """The visit is known and the place of its bytes is not; it can be read from the record itself."""
        repaired = 0
        if self._repair and record.digest:
            length = 0 if record.end is None else record.end - record.offset
            mime = REVISIT if record.kind == "revisit" else record.mime
            row = CaptureRecord(
                page, time, record.status, mime, record.digest, record.size, name, record.offset, length
            )
            repaired = self._store.restore_captures([row])
        self._add("record_unindexed", [example], repaired=repaired)

    # -- revisits -------------------------------------------------------------------------------

    @staticmethod
    def _note_reference(record: CheckedRecord, name: str, places: PlaceTable) -> None:
        if record.kind == "revisit" and record.refers_to is not None:
            places.refer(record.refers_to, f"{record.url} in {name} at {record.offset}")
        elif record.kind in CAPTURES:
            places.original(Reference(record.url, record.date))

    def _check_references(self, places: PlaceTable) -> None:
        """Each revisit repeats a record of a file here, or a capture that the store knows."""
        for reference, example in places.dangling():
            if not self._is_known(reference):
                self._add("revisit_dangling", [f"{example} repeats {reference.url} of {reference.date}"])

    def _is_known(self, reference: Reference) -> bool:
        page, time = self._store.find(reference.url), parse_date(reference.date)
        if page is None or time is None:
            return False
        return len(self._store.captures_between(page.id, time - _ROUNDING, time + _ROUNDING, 1)) > 0

    # -- imported files and samples -------------------------------------------------------------

    def _check_imported(self, name: str, places: PlaceTable) -> None:
        """Read the captures of a file that is not ours one by one: what else is in it is no business of ours."""
        path = self._warc / name
        if not has_file(path):
            count, _, _ = places.extent(name)
            self._add("imported_file_missing", [f"{name}: {count} captures"], count)
            return
        self.files += 1
        for place in places.of(name):
            self._check_one(place, path)

    def check_sample(self, size: int, rng: np.random.Generator) -> Sample:
        """Read captures drawn at random, each with the same chance."""
        drawn, whole = self._drawn(size, rng)
        wrong = 0
        for checked, place in enumerate(sorted(drawn)):
            self._tell("captures", checked, len(drawn))
            found = self._find(place.file)
            if found is None:
                self._add("file_missing" if place.ours else "imported_file_missing", [str(place)])
                wrong += 1
            elif not self._check_one(place, found.path):
                wrong += 1
        self._tell("captures", 1, 1)
        return Sample(len(drawn), whole, wrong, upper_bound(wrong, len(drawn), whole))

    def _drawn(self, size: int, rng: np.random.Generator) -> tuple[list[Place], int]:
        """Places of ``size`` captures that can be read, and how many such captures there are. Memory: the sample."""
        kept: list[Place] = []
        chances, whole = np.empty(0), 0
        for piece in self._pieces():
            places = [place for place in places_of(piece) if may_be_read(self._warc, place.file, self._is_imported)]
            whole += len(places)
            chances = np.concatenate([chances, rng.random(len(places))])
            kept += places
            if len(kept) > size:
                first = np.argpartition(chances, size - 1)[:size]
                kept, chances = [kept[row] for row in first.tolist()], chances[first]
        return kept, whole

    def _check_one(self, place: Place, path: Path) -> bool:  # noqa: PLR0911 - one for each way to fail
        """Whether the capture at a place can be read and is what the store says of it."""
        if place.offset < 0:
            self._add("not_alone", [place.file])
            return True
        try:
            if not place.ours and sniff(path) is Format.ARC:
                read_arc_capture(path, place.offset)
                self.captures += 1
                return True
            with path.open("rb", buffering=0) as file:
                record = checked_record_at(file, place.offset)
        except FileNotFoundError:
            again = self._find(place.file)
            return again is not None and again.path != path and self._check_one(place, again.path)
        except InputError as error:
            self._add("imported_damaged", [str(error)])
            return False
        if record is None:
            self._add("record_missing" if place.ours else "imported_damaged", [str(place)])
            return False
        self.records += 1
        right = self._compare(record, place)
        if place.ours and record.refers_to is not None and not self._is_known(record.refers_to):
            self._add("revisit_dangling", [f"{place} repeats {record.refers_to.url} of {record.refers_to.date}"])
            return False
        return right


def _difference(record: CheckedRecord, place: Place) -> str:  # noqa: PLR0911 - one for each way to differ
    """In what a record is not the capture that the store describes; empty if in nothing."""
    if record.fault:
        return record.fault
    if record.kind not in CAPTURES:
        return f"it is a {record.kind} record"
    if place.ours and (record.time is None or abs(record.time - place.time) > _ROUNDING):
        return f"it is dated {record.date}"
    if place.ours and place.revisit != (record.kind == "revisit"):
        return f"it is a {record.kind} record"
    if place.ours and record.end is not None and record.end - record.offset != place.length:
        return f"it is {record.end - record.offset} bytes long, not {place.length}"
    if len(place.digest) == _SHA1 and record.digest and record.digest != place.digest:
        return "it has another digest"
    return ""


def upper_bound(wrong: int, drawn: int, whole: int) -> float:
    """The share of captures that are wrong at most, with 95 % confidence, if ``wrong`` of a sample are.

    Clopper and Pearson (1934): exact for drawing with replacement, on the safe side without. If all were drawn, it is
    the share itself.

    >>> round(upper_bound(0, 1000, 10**6), 5), upper_bound(1, 4, 4), upper_bound(0, 0, 9)
    (0.00299, 0.25, 1.0)
    """
    from scipy.special import betaincinv

    if drawn >= whole:
        return wrong / whole if whole else 0.0
    if not drawn or wrong >= drawn:
        return 1.0
    return float(betaincinv(wrong + 1, drawn - wrong, _SURE))
