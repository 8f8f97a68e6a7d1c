"""Compares archive files with the store: the place of each capture, the records, validators and robots.txt copies.

Files are read once, in order. What the store says of them is sorted into a table on disk first: memory grows neither
with captures nor with files, and no transaction of the store stays open meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from recrawl.crawl.maintenance.archive_upload import ArchiveUploader
from recrawl.crawl.maintenance.capture_places import ROUNDING, Add, CapturePlace, PlaceTable, RulesRecord, places_of
from recrawl.crawl.visit.warc_archive import REVISIT
from recrawl.detect import decoded
from recrawl.errors import InputError, MissingExtraError, StorageError
from recrawl.formats.atomic_files import has_file, lock
from recrawl.formats.sniff import SourceFormat, sniff
from recrawl.formats.warc.arc import read_arc_capture
from recrawl.formats.warc.archive_folder import ArchiveFolder, ArchivePath
from recrawl.formats.warc.archive_storage import storage_at
from recrawl.formats.warc.archive_stream import OpenArchive
from recrawl.formats.warc.archived_bytes import imported_into, may_be_read
from recrawl.formats.warc.warc_check import (
    CAPTURES,
    OPEN,
    CheckedRecord,
    RevisitReference,
    checked_record_at,
    checked_records,
)
from recrawl.formats.warc.warc_fields import parse_date
from recrawl.formats.warc.warc_reader import read_capture
from recrawl.model.captures import RobotsCopy
from recrawl.store.base import Store, Tell
from recrawl.store.store_values import CaptureColumns, CaptureRecord

_AT_ONCE = 10_000
"""Pages that are read from the store at a time."""
_LONGEST_READ = 600.0
"""Maximum seconds between the request for a robots.txt and its copy: redirects wait for the pauses of their hosts."""
_COPIES_AT_ONCE = 100
"""Copies of robots.txt that are read from the store at a time: each may have 500 KiB."""


class HeaderNotes:
    """Collects the HTTP headers of captures. Those of a 304 are in the metadata record after it (W7)."""

    def __init__(self, places: PlaceTable) -> None:
        self._places = places
        self._waiting: int | None = None
        """The page whose capture had no headers."""
        self.last = -math.inf
        """When the last capture was made, seconds since the epoch."""

    def capture(self, record: CheckedRecord, place: CapturePlace, *, right: bool) -> None:
        """Add a record that is, or should be, the capture of a page."""
        self.end()
        self.last = max(self.last, place.time)
        if not right:
            self._places.mark_unreadable(place.page)
        elif record.said is not None:
            self._places.add_values(place.page, *record.said)
        else:
            self._waiting = place.page

    def other(self, record: CheckedRecord) -> None:
        """Add another record."""
        if record.kind in CAPTURES:
            self.end()
        elif self._waiting is not None and record.said is not None:
            self._places.add_values(self._waiting, *record.said)
            self._waiting = None

    def end(self) -> None:
        """End of file: the last capture has no more records."""
        if self._waiting is not None:
            self._places.mark_unreadable(self._waiting)
            self._waiting = None

    def note_rules(self, record: CheckedRecord, name: str) -> None:
        """Add a record that may be a robots.txt of which the store has a copy."""
        if record.kind in CAPTURES and record.time is not None and not record.fault:
            revisit = record.kind == "revisit"
            self._places.rules_record(RulesRecord(record.url, record.time, name, record.offset, record.digest, revisit))


class HeaderCheck:
    """Compares stored validators and robots.txt copies with the collected headers."""

    def __init__(self, store: Store, places: PlaceTable, add: Add, tell: Tell) -> None:
        self._store, self._places, self._add, self._tell = store, places, add, tell
        self.seen_until = math.inf
        """The time up to which all records were read, seconds since the epoch: later ones may be in writing."""

    def expect_rules(self) -> None:
        """Collect the URLs of robots.txt copies, before archive files are read."""
        for copies in self._rules():
            for copy, _ in copies:
                self._places.expect_rules(copy.url)

    def check_validators(self, *, repair: bool) -> None:
        """Check that an archived response of its page contains each stored ETag and Last-Modified.

        Pages visited while files were read, and pages made of several responses, are skipped.
        """
        self._places.by_page()
        ids = self._store.pages().id
        for start in range(0, len(ids), _AT_ONCE):
            self._tell("validators", start, len(ids))
            some = ids[start : start + _AT_ONCE]
            wrong = {
                page: never
                for page, said in zip(some.tolist(), self._store.validators(some), strict=True)
                if (never := self._places.missing_values(page, said.etag, said.last_modified))
            }
            if not wrong:
                continue
            pages = np.array(list(wrong), np.int64)
            for page in self._store.sources(pages):
                del wrong[page]
            counts = dict(zip(pages.tolist(), self._store.capture_counts(pages).tolist(), strict=True))
            wrong = {page: never for page, never in wrong.items() if counts[page] == self._places.captures(page)}
            if wrong:
                pages = np.array(list(wrong), np.int64)
                repaired = self._store.forget_validators(pages) if repair else 0
                examples = [f"page {page}: {', '.join(never)[:100]}" for page, never in wrong.items()]
                self._add("validators_differ", examples, len(wrong), repaired)
        self._tell("validators", 1, 1)

    def _rules(self) -> Iterator[list[tuple[RobotsCopy, bool]]]:
        """Copies of robots.txt in chunks, and whether each can be parsed."""
        origin = ""
        while copies := self._store.robots_copies_after(origin, _COPIES_AT_ONCE):
            yield copies
            origin = copies[-1][0].origin

    def check_rules(self, path_of: Callable[[str], ArchivePath | None], *, repair_at: float | None) -> None:
        """Check that each copy of a robots.txt is what was archived; one that differs is marked to be read again.

        ``path_of`` returns the path of an archive file, ``repair_at`` is the time now, if they are to be repaired.
        """
        for copies in self._rules():
            wrong = [copy.origin for copy, readable in copies if not readable or self._differs(copy, path_of)]
            if wrong:
                if repair_at is not None:
                    self._store.forget_robots_copies(wrong, repair_at)
                self._add("robots_differ", wrong, len(wrong), 0 if repair_at is None else len(wrong))

    def _differs(self, copy: RobotsCopy, path_of: Callable[[str], ArchivePath | None]) -> bool:
        """Whether a copy differs from the record of its fetch; not if there is no record."""
        judged = copy.body and copy.fetched_at <= self.seen_until
        since, until = copy.fetched_at - _LONGEST_READ, copy.fetched_at + ROUNDING
        record = self._places.rules_read(copy.url, since, until) if judged else None
        path = None if record is None else path_of(record.file)
        if record is None or path is None:
            return False
        with suppress(InputError, StorageError):
            return decoded(read_capture(path, record.offset))[: len(copy.body)] != copy.body
        return False


_TOLD_EVERY = 256
"""Records between two progress reports."""
_SHA1 = 20
_SURE = 0.95
"""Confidence of the bound on undetected errors."""
_BESIDE = ("/robots.txt", ".xml", ".xml.gz", ".rss", ".atom")
"""Endings of URLs that are requested beside pages."""


@dataclass(frozen=True, slots=True)
class SampleCoverage:
    """What a sample says about the rest."""

    drawn: int
    """Captures that were checked."""
    captures: int
    """Captures in total."""
    wrong: int
    """Captures of the sample that cannot be read as they should be."""
    bound: float
    """With 95 % confidence, at most this share of all captures is wrong (Clopper and Pearson)."""


class _FilePosition(NamedTuple):
    """One archive file of the workspace."""

    path: ArchivePath
    is_open: bool
    """Whether it has no final name yet."""
    is_written: bool
    """Whether a process writes it."""


class ArchiveCheck:
    """Compares the archive files of a workspace with its store."""

    def __init__(  # noqa: PLR0913 - what to check, where, and callbacks
        self,
        store: Store,
        warc: Path | ArchiveFolder,
        add: Add,
        tell: Tell,
        *,
        now: float,
        repair: bool,
        others: Sequence[Path] = (),
    ) -> None:
        """``others`` are more folders with archive files, of other workspaces that share the store."""
        self._now = self._seen_until = now
        self._files = ArchiveFolder.of(warc, store).uncached()
        self._warc = self._files.path
        self._store, self._add, self._tell, self._repair = store, add, tell, repair
        self._folders = (self._warc, *others)
        self._is_imported = cache(imported_into(store))
        self.captures = self.records = self.files = self.read = 0

    def check_uploads(self) -> None:
        """Check that uploaded files are in object storage with their size, and report closed files that are not."""
        options = self._files.options
        if options is None:
            return
        for file in self._store.uploaded_files():
            try:
                about = storage_at(file.location, options.s3).about(file.name)
            except (StorageError, MissingExtraError) as error:
                self._add("storage_away", [str(error)])
                return
            if about is None or about.size != file.size:
                self._add("upload_missing", [f"{file.location}{file.name}"])
        for path in ArchiveUploader(self._warc, options, lambda: self._now).waiting(self._store):
            self._add("not_uploaded", [path.name])

    # -- all of it ------------------------------------------------------------------------------

    def check_all(self) -> None:
        """Read every archive file from start to end."""
        with PlaceTable() as places:
            for piece in self._pieces():
                places.add(piece)
            places.sort()
            said = HeaderCheck(self._store, places, self._add, self._tell)
            said.expect_rules()
            names = self._names(places)
            whole, done = sum(map(self._size, names)), 0
            for name in names:
                step = self._size(name)
                self._check_file(name, places, lambda at, done=done: self._tell("archive files", done + at, whole))  # type: ignore[misc]
                done += step
            self._tell("archive files", 1, 1)
            self._check_references(places)
            said.seen_until = self._seen_until
            said.check_validators(repair=self._repair)
            said.check_rules(self._path, repair_at=self._now if self._repair else None)

    def _pieces(self) -> Iterator[CaptureColumns]:
        """All captures, in chunks."""
        page, time, done = -1, 0.0, 0
        while len(piece := self._store.captures_after(page, time, _AT_ONCE)):
            yield piece
            page, time, done = int(piece.page[-1]), float(piece.time[-1]), done + len(piece)
            self._tell("captures in the store", done, done + len(piece))
        self._tell("captures in the store", 1, 1)

    def _names(self, places: PlaceTable) -> list[str]:
        """Archive files by their final names: those that captures lie in, and those that exist."""
        files = (path for folder in self._folders for path in folder.glob("*.warc.gz*") if path.is_file())
        there = {path.name.removesuffix(OPEN) for path in files}
        uploaded = {file.name for file in self._store.uploaded_files()} if self._files.options else set()
        return sorted(there | uploaded | set(places.files()))

    def _check_file(self, name: str, places: PlaceTable, tell: Callable[[int], None]) -> None:
        count, ours, end = places.extent(name)
        if not may_be_read(self._warc, name, self._is_imported):
            self._add("not_checked", [name], count)
            _mark_unreadable(places, name)
            return
        if count and not ours:
            self._check_imported(name, places)
            return
        try:
            found = self._find(name)
            if found is None:
                self._tell_missing(name, count, places)
                return
            if found.is_open and not found.is_written:
                self._add("file_left_open", [name])
            self.files += 1
            self._walk_found(found, name, places, end, tell)
        except StorageError as error:
            self._add("storage_away", [str(error)], max(count, 1))
            _mark_unreadable(places, name)

    def _tell_missing(self, name: str, count: int, places: PlaceTable) -> None:
        if count:
            self._add("file_missing", [f"{name}: {count} captures"], count)
            _mark_unreadable(places, name)

    def _walk_found(
        self, found: _FilePosition, name: str, places: PlaceTable, end: int, tell: Callable[[int], None]
    ) -> None:
        try:
            with found.path.open("rb", buffering=0) as file:
                self._walk(file, name, places, end if found.is_open else None, tell)
        except FileNotFoundError:  # closed a moment ago, removed by a start that found nothing in it, or uploaded
            again = self._find(name)
            if again is None or again.is_open:
                self._tell_missing(name, places.extent(name)[0], places)
                return
            with again.path.open("rb", buffering=0) as file:
                self._walk(file, name, places, None, tell)

    def _find(self, name: str) -> _FilePosition | None:
        for path in (folder / name for folder in (*self._folders, *self._folders)):
            still_open = path.with_name(path.name + OPEN)
            with suppress(FileNotFoundError), still_open.open("rb") as file:
                return _FilePosition(still_open, True, not lock(file))
            if has_file(path):
                return _FilePosition(path, False, False)
            # Each is looked up twice: a writer may close it in between.
        remote = self._files.remote(name)
        return None if remote is None else _FilePosition(remote, False, False)

    def _path(self, name: str) -> ArchivePath | None:
        """The path of an archive file."""
        found = self._find(name)
        return None if found is None else found.path

    def _size(self, name: str) -> int:
        """Bytes of an archive file, 0 if it does not exist."""
        with suppress(OSError, StorageError):
            found = self._find(name)
            return 0 if found is None else found.path.stat().st_size
        return 0

    def _walk(
        self, file: OpenArchive, name: str, places: PlaceTable, end: int | None, tell: Callable[[int], None]
    ) -> None:
        """Compare the records of a file with the store.

        Of a file without its final name only the part before ``end``, the end of the last capture in the store: later
        records are not acknowledged.
        """

        def damaged(position: int, what: str) -> None:
            if end is None or position < end:
                self._add("file_damaged", [what])

        expected = places.of(name)
        place = next(expected, None)
        at = 0
        heads = HeaderNotes(places)

        def missing(before: float) -> None:
            nonlocal place
            while place is not None and place.offset < before:
                self._add("record_missing", [str(place)])
                places.mark_unreadable(place.page)
                place = next(expected, None)

        for record in checked_records(file, name, damaged):
            if end is not None and record.offset >= end:
                break
            at = record.offset
            missing(at)
            self.records += 1
            if place is not None and place.offset == at:
                heads.capture(record, place, right=self._compare(record, place))
                place = next(expected, None)
            else:
                heads.other(record)
                self._check_unexpected(record, name)
                heads.note_rules(record, name)
            self._note_reference(record, name, places)
            if self.records % _TOLD_EVERY == 0:
                tell(at)
        missing(np.inf)
        heads.end()
        if end is not None:
            self._seen_until = min(self._seen_until, heads.last)
        self.read += at if end is None else end

    def _compare(self, record: CheckedRecord, place: CapturePlace) -> bool:
        """Whether a record is what the store says of it."""
        self.captures += 1
        wrong = _difference(record, place)
        if not wrong:
            return True
        kind = "record_damaged" if record.fault else "record_differs"
        self._add(kind if place.ours else "imported_damaged", [f"{place}: {wrong}"])
        return False

    def _check_unexpected(self, record: CheckedRecord, name: str) -> None:
        """Check a record that the store did not list: of no page, of a newer visit, or unknown."""
        if record.fault:
            self._add("record_damaged", [f"{name} at {record.offset}: {record.fault}"])
        if record.kind not in CAPTURES or record.time is None:
            return
        page = self._store.find(record.url)
        if page is None:
            return
        since, until = record.time - ROUNDING, record.time + ROUNDING
        known = self._store.captures_between(page.id, since, until, 9)
        if any(at == (name, record.offset) for at in zip(known.warc_file, known.warc_offset.tolist(), strict=True)):
            return
        example = f"{record.url} in {name} at {record.offset}"
        if len(known):
            self._add("record_doubled", [example])
            return
        observations = self._store.observations(np.array([page.id]))
        times = observations.time[(observations.time >= since) & (observations.time <= until)]
        if len(times):
            self._restore(record, name, page.id, float(times[0]), example)
        elif not record.url.lower().endswith(_BESIDE) and not self._store.sources(np.array([page.id])):
            self._add("record_unknown", [example])

    def _restore(self, record: CheckedRecord, name: str, page: int, time: float, example: str) -> None:
        """Restore the place of a known visit's bytes from the record itself."""
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
            places.original(RevisitReference(record.url, record.date))

    def _check_references(self, places: PlaceTable) -> None:
        """Check that each revisit refers to a record of a file here, or to a capture in the store."""
        for reference, example in places.dangling():
            if not self._is_known(reference):
                self._add("revisit_dangling", [f"{example} repeats {reference.url} of {reference.date}"])

    def _is_known(self, reference: RevisitReference) -> bool:
        page, time = self._store.find(reference.url), parse_date(reference.date)
        if page is None or time is None:
            return False
        return len(self._store.captures_between(page.id, time - ROUNDING, time + ROUNDING, 1)) > 0

    # -- imported files and samples -------------------------------------------------------------

    def _check_imported(self, name: str, places: PlaceTable) -> None:
        """Read the captures of an imported file one by one; its other records do not matter."""
        path: ArchivePath | None = self._warc / name
        _mark_unreadable(places, name)  # others need not archive the headers they received
        if not has_file(self._warc / name):
            try:
                path = self._files.remote(name)
            except StorageError as error:
                self._add("storage_away", [str(error)])
                return
        if path is None:
            count, _, _ = places.extent(name)
            self._add("imported_file_missing", [f"{name}: {count} captures"], count)
            return
        self.files += 1
        for place in places.of(name):
            self._check_one(place, path)

    def check_sample(self, size: int, rng: np.random.Generator) -> SampleCoverage:
        """Read captures drawn at random, each with the same probability."""
        drawn, whole = self._drawn(size, rng)
        wrong = 0
        for checked, place in enumerate(sorted(drawn)):
            self._tell("captures", checked, len(drawn))
            try:
                found = self._find(place.file)
            except StorageError as error:
                self._add("storage_away", [str(error)])
                continue
            if found is None:
                self._add("file_missing" if place.ours else "imported_file_missing", [str(place)])
                wrong += 1
            elif not self._check_one(place, found.path):
                wrong += 1
        self._tell("captures", 1, 1)
        return SampleCoverage(len(drawn), whole, wrong, upper_bound(wrong, len(drawn), whole))

    def _drawn(self, size: int, rng: np.random.Generator) -> tuple[list[CapturePlace], int]:
        """Places of ``size`` readable captures, and the number of such captures. Memory: the sample."""
        kept: list[CapturePlace] = []
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

    def _check_one(self, place: CapturePlace, path: ArchivePath) -> bool:  # noqa: PLR0911 - one per way to fail
        """Whether the capture at a place can be read and is what the store says of it."""
        if place.offset < 0:
            self._add("not_alone", [place.file])
            return True
        try:
            if not place.ours and sniff(path) is SourceFormat.ARC:
                read_arc_capture(path, place.offset)
                self.captures += 1
                return True
            with path.open("rb", buffering=0) as file:
                record = checked_record_at(file, place.offset)
        except FileNotFoundError:
            again = self._find(place.file)
            return again is not None and again.path != path and self._check_one(place, again.path)
        except StorageError as error:
            self._add("storage_away", [str(error)])
            return True
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


def _mark_unreadable(places: PlaceTable, name: str) -> None:
    """Mark the headers of all captures in a file as unreadable."""
    for page in {place.page for place in places.of(name)}:
        places.mark_unreadable(page)


def _difference(record: CheckedRecord, place: CapturePlace) -> str:  # noqa: PLR0911 - one per way to differ
    """How a record differs from the capture that the store describes; empty if it does not."""
    if record.fault:
        return record.fault
    if record.kind not in CAPTURES:
        return f"it is a {record.kind} record"
    if place.ours and (record.time is None or abs(record.time - place.time) > ROUNDING):
        return f"it is dated {record.date}"
    if place.ours and place.revisit != (record.kind == "revisit"):
        return f"it is a {record.kind} record"
    if place.ours and record.end is not None and record.end - record.offset != place.length:
        return f"it is {record.end - record.offset} bytes long, not {place.length}"
    if len(place.digest) == _SHA1 and record.digest and record.digest != place.digest:
        return "it has another digest"
    return ""


def upper_bound(wrong: int, drawn: int, whole: int) -> float:
    """The maximum share of wrong captures, with 95 % confidence, if ``wrong`` of a sample are.

    Clopper and Pearson (1934): exact for drawing with replacement, conservative without. If all were drawn, it is the
    share itself.

    >>> round(upper_bound(0, 1000, 10**6), 5), upper_bound(1, 4, 4), upper_bound(0, 0, 9)
    (0.00299, 0.25, 1.0)
    """
    from scipy.special import betaincinv

    if drawn >= whole:
        return wrong / whole if whole else 0.0
    if not drawn or wrong >= drawn:
        return 1.0
    return float(betaincinv(wrong + 1, drawn - wrong, _SURE))
