"""Writes WARC files: whole captures only, a new file every gigabyte, with the suffix ``.open`` until it is closed.

Follows conventions W1 and W2. The next writer finishes files that a killed process left open.

A writer with ``hold`` gives no file its final name before ``release``: its captures are not acknowledged yet. If it is
closed or killed in between, the file stays open, and the next start decides what counts.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, NamedTuple, Self

from recrawl.errors import DiskFullError, InputError, RecrawlError
from recrawl.formats.atomic_files import FULL, is_at, lock, remove_abandoned, sync_folder
from recrawl.formats.warc.warc_check import OPEN, Keeper, repair
from recrawl.formats.warc.warc_records import (
    VISITS_FIELD,
    VISITS_VALUE,
    CaptureRef,
    WarcRecord,
    as_auxiliary,
    block_digests,
    document,
    header,
    payload_sha1,
    records_of,
    warcinfo,
    written,
)
from recrawl.model import Capture
from recrawl.time import Clock

__all__ = ["ROLL_SIZE", "CaptureRef", "WarcInfo", "WarcLocation", "WarcPlace", "WarcWriter"]

ROLL_SIZE = 1_000_000_000
"""Bytes after which a file is closed and the next capture begins another (W1)."""
_AT_ONCE = 1 << 20
"""Bytes that are appended in one go, unless a capture is larger."""
_NOTHING: Mapping[str, str] = MappingProxyType({})


class WarcPlace(NamedTuple):
    """Where a record lies."""

    file: str
    """Name of the file once it is closed."""
    offset: int
    length: int
    """Bytes of its gzip member."""


class WarcLocation(NamedTuple):
    """Where the response or revisit record of a capture lies."""

    file: str
    """As of :class:`WarcPlace`."""
    offset: int
    length: int
    ref: CaptureRef
    """What a later capture of the page may repeat: this response, or the one this revisit refers to."""


@dataclass(frozen=True, slots=True)
class WarcInfo:
    """Who made a file: for its name and its first record."""

    prefix: str = "RECRAWL"
    software: str = "recrawl"
    operator: str = ""
    is_part_of: str = ""
    robots: str = "obey"
    host: str = ""
    """Name of the crawling machine; asked of the system if empty."""
    port: int = 0
    visits: bool = False
    """Whether each capture in the file is one visit of a page, unless it is marked as auxiliary: a crawl's file."""

    def fields(self) -> dict[str, str]:
        """As ``warcinfo`` names them."""
        return {
            "software": self.software,
            "format": "WARC File Format 1.1",
            "conformsTo": "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
            "hostname": self.host or socket.gethostname(),
            "operator": self.operator,
            "isPartOf": self.is_part_of,
            "robots": self.robots,
            VISITS_FIELD: VISITS_VALUE if self.visits else "",
        }


class WarcWriter:
    """Appends captures to new WARC files in ``folder``. A context manager, for one task at a time.

    The first file is begun at once, each further one with the first capture after ``roll_size`` bytes. Files that a
    killed process left open in the folder are finished first; ``keeper`` says how much of them counts. What else such
    processes left there half-written is removed.
    """

    def __init__(  # noqa: PLR0913 - where, when, who; the rest is optional
        self,
        folder: Path,
        clock: Clock,
        info: WarcInfo | None = None,
        *,
        roll_size: int = ROLL_SIZE,
        durable: bool = True,
        keeper: Keeper | None = None,
    ) -> None:
        """If ``durable``, :meth:`sync` waits for the disk; else what is written only survives the process."""
        self._folder, self._clock, self._info, self._roll_size = folder, clock, info or WarcInfo(), roll_size
        self._durable = durable
        self._serial = 0
        self._held = False
        self.written = 0
        """Bytes appended so far, to all files together."""
        self._waiting: list[tuple[BinaryIO, Path]] = []
        """Full files with records that are held."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            repair(folder, keeper)
            remove_abandoned(folder)
        except OSError as error:
            raise _cannot_be_made(folder, error) from error
        self._begin()

    def _begin(self) -> None:
        """Open the next file and say who makes it."""
        opened = self._clock.now()
        first = warcinfo(opened, self._info.fields())
        [digest] = block_digests([first])
        try:
            self._file, self.path = self._next_file(opened)
            """Where the file that is written will be once it is closed."""
        except OSError as error:
            raise _cannot_be_made(self._folder, error) from error
        self._name = self.path.name
        self._size = 0
        self._about_file = header("WARC-Warcinfo-ID", f"<{first.id}>")
        try:
            self._append([*first.member(digest, header("WARC-Filename", self.path.name))])
        except BaseException:
            _open_name(self.path).unlink()
            self._file.close()
            raise
        self._full = False

    def _next_file(self, opened: float) -> tuple[BinaryIO, Path]:
        """A new file, locked, under the first name of the template that is free; and its final path."""
        for serial in count(self._serial):
            path = self._folder / _name(self._info, opened, serial)
            if path.exists():
                continue
            with suppress(FileExistsError):
                file = _open_name(path).open("xb", buffering=0)
                lock(file, wait=True)
                if is_at(file, _open_name(path)):  # a repair may have seen the empty file before it was locked
                    self._serial = serial + 1
                    if self._durable:
                        sync_folder(self._folder)
                    return file, path
                file.close()
        raise AssertionError  # names do not run out

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Make the file durable and give it its final name; without that name if something is held."""
        for file, path in self._open_files():
            if self._held:
                file.close()
            else:
                self._seal(file, path)
        self._waiting = []

    def hold(self) -> None:
        """What is written from now on is not acknowledged: until :meth:`release` no file gets its final name."""
        self._held = True

    def release(self) -> None:
        """All that was written is acknowledged; full files get their final names."""
        self._held = False
        while self._waiting:
            self._seal(*self._waiting[0])
            del self._waiting[0]

    def abandon(self) -> None:
        """What is held will never be acknowledged: the next capture begins another file.

        Files with what is held keep their open names; the next writer to start decides what of them counts.
        """
        for file, _ in self._open_files():
            file.close()
        self._waiting, self._held, self._full = [], False, True

    def sync(self) -> None:
        """Return once all that was written is on the disk, if the writer is durable.

        A thread may wait for what is held while others go on writing.
        """
        if self._durable:
            for file, path in self._open_files():
                try:
                    _fdatasync(file.fileno())
                except OSError as error:
                    if error.errno in FULL:
                        raise _no_room(path) from error
                    raise

    def _open_files(self) -> list[tuple[BinaryIO, Path]]:
        """Full files that wait, and the one that is written, unless the disk was full when it was to be begun."""
        last = self._file, self.path  # before the others: by then it may be one of them
        return [*(each for each in self._waiting if each[0] is not last[0]), *([] if last[0].closed else [last])]

    def _seal(self, file: BinaryIO, path: Path) -> None:
        os.fsync(file.fileno())
        _open_name(path).rename(path)
        file.close()
        if self._durable:
            sync_folder(self._folder)

    def write(
        self,
        capture: Capture,
        *,
        revisit_of: CaptureRef | None = None,
        about: Mapping[str, str] = _NOTHING,
        auxiliary: bool = False,
    ) -> WarcLocation:
        """Append a capture and return where it is. It has reached the operating system when this returns.

        ``revisit_of`` is the response the capture may repeat. If it does, because the server said 304 or the
        payload is the same, a revisit record takes the place of the body; else it is written in full. ``about`` is
        what else is known of it, such as ``via`` and ``hopsFromSeed`` (W4), and becomes a metadata record. An
        ``auxiliary`` capture is marked as none that is a visit of a page: robots.txt, a sitemap.

        Raises:
            ValueError: nothing was received, so there is nothing to keep.
            DiskFullError: the disk is full; the file ends with the capture before.
        """
        if not capture.raw_head:
            msg = f"{capture.url}: a capture without an answer cannot be archived"
            raise ValueError(msg)
        [digest] = written([payload_sha1(capture)])
        ref, records = records_of(capture, digest, revisit_of, about)
        if auxiliary:
            records[0] = as_auxiliary(records[0])
        [[place]] = self.append([records])
        return WarcLocation(*place, ref)

    def write_document(self, name: str, when: float, block: bytes) -> None:
        """Append a JSON document about what the archive holds, under a URN (see :func:`warc_records.document`)."""
        [[_]] = self.append([[document(name, when, block)]])

    def append(self, captures: Sequence[Sequence[WarcRecord]]) -> Iterator[list[WarcPlace]]:
        """Append the records of captures, many in one go; after each go, where the first record of each is.

        If the disk is full before all are told of, those that were not told of are not there: the file ends with the
        last that was.
        """
        digests = iter(block_digests([record for records in captures for record in records]))
        members: list[bytes] = []
        lengths: list[tuple[int, int]] = []
        """Bytes of each capture that waits to be written, and of its first record."""
        waiting = 0
        for records in captures:
            if waiting and (self._size + waiting >= self._roll_size or waiting >= _AT_ONCE):
                yield self._append_all(members, lengths)
                members, lengths, waiting = [], [], 0
            if self._full:
                self._roll()
            sizes = []
            for record in records:
                pieces = record.member(next(digests), self._about_file)
                members += pieces
                sizes.append(sum(map(len, pieces)))
            size = sum(sizes)
            lengths.append((size, sizes[0]))
            waiting += size
        if waiting:
            yield self._append_all(members, lengths)

    def _append_all(self, members: Sequence[bytes], lengths: Sequence[tuple[int, int]]) -> list[WarcPlace]:
        """Append the members of captures of these lengths to the file; where each begins, and its first member's."""
        offset, places = self._append(members), []
        self._full = self._size >= self._roll_size
        for whole, first in lengths:
            places.append(WarcPlace(self._name, offset, first))
            offset += whole
        return places

    def _roll(self) -> None:
        """Begin the next file; the full one gets its final name, at once or when what is held is released."""
        if not self._held:
            self.close()
        elif not self._file.closed and all(self._file is not file for file, _ in self._waiting):
            self._waiting.append((self._file, self.path))
        self._begin()

    def _append(self, pieces: Sequence[bytes]) -> int:
        """Write all of it or nothing, many pieces in one go; where it begins."""
        offset, size = self._size, sum(map(len, pieces))
        try:
            for data in [b"".join(pieces)] if size <= 2 * _AT_ONCE else pieces:  # what is large is not copied
                rest = memoryview(data)
                while rest:
                    rest = rest[self._file.write(rest) :]
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(offset)
                self._file.seek(offset)
            if error.errno in FULL:
                raise _no_room(self.path) from error
            raise
        self._size += size
        self.written += size
        return offset


_fdatasync = getattr(os, "fdatasync", os.fsync)
"""Where the system has it: the time of the last write need not be on the disk."""


def _no_room(path: Path) -> DiskFullError:
    return DiskFullError(f"{_open_name(path)}: the disk is full.", "Free some space; what was written before is kept.")


def _cannot_be_made(folder: Path, error: OSError) -> RecrawlError:
    if error.errno in FULL:
        return DiskFullError(f"{folder}: the disk is full.", "Free some space; what was written before is kept.")
    what = f"no WARC file can be made ({error.strerror})"
    return InputError(what, "Check the folder and its permissions.", source=str(folder))


def _open_name(path: Path) -> Path:
    return path.with_name(path.name + OPEN)


def _name(info: WarcInfo, opened: float, serial: int) -> str:
    """A file name after Heritrix's template (W1)."""
    moment = datetime.fromtimestamp(opened, UTC)
    stamp = f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03}"
    place = f"{os.getpid()}~{info.host or socket.gethostname()}~{info.port}"
    return f"{info.prefix}-{stamp}-{serial:05}-{place}.warc.gz"
