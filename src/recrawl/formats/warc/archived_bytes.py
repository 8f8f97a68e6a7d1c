"""Reads the bytes of captures back from archive files, local or elsewhere, only from those that may be read.

A store names the files. A foreign index may have named any file of this machine, so :func:`may_be_read` is checked
before a file is opened.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, Self

from recrawl.errors import InputError
from recrawl.formats.atomic_files import has_file
from recrawl.formats.sniff import SourceFormat, sniff
from recrawl.formats.warc.arc import read_arc_capture
from recrawl.formats.warc.archive_folder import ArchiveFolder, ArchivePath, UploadRecords
from recrawl.formats.warc.warc_check import OPEN
from recrawl.formats.warc.warc_fields import MAX_BODY
from recrawl.formats.warc.warc_reader import read_capture
from recrawl.model import Capture

_FILES_REMEMBERED = 10_000


class _RecordReader(Protocol):
    def __call__(self, path: ArchivePath, offset: int, *, max_body: int = MAX_BODY) -> Capture: ...


class ImportMarks(Protocol):
    """As much of a store as tells which files were imported."""

    def import_mark(self, source: str, /) -> object | None:
        """How far a file was imported; ``None`` if it never was."""
        ...


class ArchiveRecords(ImportMarks, UploadRecords, Protocol):
    """As much of a store as tells which files may be read, and where they are."""


def may_be_read(warc_folder: Path, file: str, is_imported: Callable[[str], bool]) -> bool:
    """Whether a file that a store names is one of the workspace, or one that somebody imported by its own name.

    An index from elsewhere may name any file of this machine: what nobody here named is not read, let alone served.

    >>> [may_be_read(Path("ws/warc"), file, {"/old/b.warc"}.__contains__) for file in ("a.warc", "../x", "/old/b.warc")]
    [True, False, True]
    """
    inside = Path(os.path.normpath(warc_folder))
    return Path(os.path.normpath(warc_folder / file)).is_relative_to(inside) or is_imported(file)


def imported_into(store: ImportMarks) -> Callable[[str], bool]:
    """Tells whether a file was imported into a store by its own name."""
    return lambda file: store.import_mark(file) is not None


class ArchivedBytes:
    """Reads captures out of archive files again; remembers of files that are there what they are."""

    def __init__(self, warc: Path | ArchiveFolder, is_imported: Callable[[str], bool]) -> None:
        """Files that are named without a folder are in ``warc``; see :func:`may_be_read` for the others."""
        self._files = ArchiveFolder(warc) if isinstance(warc, Path) else warc
        self._warc_folder = self._files.path
        self._is_imported = is_imported
        self._reader_of: dict[str, _RecordReader] = {}

    @classmethod
    def of(cls, warc: Path | ArchiveFolder, store: ArchiveRecords) -> Self:
        """The files of a workspace, as its store knows them."""
        return cls(ArchiveFolder.of(warc, store), imported_into(store))

    def has(self, file: str) -> bool:
        """Whether the file is there and may be read, also while a crawl writes it or after one was killed.

        Raises:
            StorageError: a location of archive files does not say.
        """
        there = has_file(self._warc_folder / file) or has_file(self._warc_folder / f"{file}{OPEN}")
        return (there or self._files.remote(file) is not None) and may_be_read(
            self._warc_folder, file, self._is_imported
        )

    def read(self, file: str, offset: int, *, max_body: int = MAX_BODY) -> Capture | None:
        """The bytes of a capture; ``None`` if its file is not there, not what it was, or not ours to read.

        A body above ``max_body`` bytes is cut.

        Raises:
            StorageError: the file is elsewhere and cannot be reached: that says nothing about the capture.
        """
        if offset < 0:  # an index need not say where in its file a capture lies
            return None
        path = self._warc_folder / file
        read = self._reader_of.get(file)
        if read is None and not self.has(file):
            return None
        try:
            if read is None and not has_file(path):
                return self._read_apart(file, offset, max_body)
            if read is None:
                read = self._remember(file, path)
            return read(path, offset, max_body=max_body)
        except InputError:
            if read is None or has_file(path):
                return None
        self._reader_of.pop(file, None)  # removed after its upload
        return self.read(file, offset, max_body=max_body)

    def _read_apart(self, file: str, offset: int, max_body: int) -> Capture:
        """The bytes of a capture in a file that a crawl still writes, or that is elsewhere."""
        if has_file(self._warc_folder / f"{file}{OPEN}"):
            return self._read_open(file, offset, max_body)
        remote = self._files.remote(file)
        if remote is None:
            raise InputError("it is not there", "Check the archive files.", source=file)
        return _reader_for(remote)(remote, offset, max_body=max_body)

    def _read_open(self, file: str, offset: int, max_body: int) -> Capture:
        """The bytes of a capture in a file that a crawl still writes. What the store names is whole there.

        If the file is closed in between, this fails, and the next reading finds it under its name.
        """
        return read_capture(self._warc_folder / f"{file}{OPEN}", offset, max_body=max_body)

    def _remember(self, file: str, path: Path) -> _RecordReader:
        read = _reader_for(path)
        if len(self._reader_of) >= _FILES_REMEMBERED:
            self._reader_of.clear()
        self._reader_of[file] = read
        return read


def _reader_for(path: ArchivePath) -> _RecordReader:
    return read_arc_capture if sniff(path) is SourceFormat.ARC else read_capture
