"""Uploads closed WARC files to object storage, in a thread beside the crawl.

Rules of this file:

1. A file is uploaded when it is closed, checked in the storage, and then recorded in the store. Only a file that is
   recorded is ever removed here. A kill at any moment repeats a step at worst.
2. One process uploads the files of a folder: it holds the lock.
3. A storage that is away stops nothing but uploads. They are tried again after a pause that doubles.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from recrawl.errors import RecrawlError, StorageError
from recrawl.formats.atomic_files import has_file, lock
from recrawl.formats.warc.archive_folder import StorageOptions
from recrawl.formats.warc.archive_storage import S3Storage, digests_of, folder_url, storage_at
from recrawl.model.captures import UploadedFile
from recrawl.store.base import Store

LOCK = ".upload.lock"
"""In the folder of archive files."""
_LOOK_EVERY = 10.0
"""Seconds between two looks for closed files."""
_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 600.0
"""Seconds after a failure."""
_LAST_SECONDS = 3.0
"""For uploads when a crawl ends; what is left is uploaded later."""
_ENDINGS = (".warc.gz", ".warc")


class UploadsWaiting(NamedTuple):
    """Closed files that are not in object storage yet."""

    files: int = 0
    bytes: int = 0


@dataclass(slots=True)
class UploadSummary:
    """What was done."""

    files: int = 0
    bytes: int = 0
    removed: int = 0
    """Local files that were removed, since their time was over."""
    is_elsewhere: bool = False
    """Whether another process uploads the files of this folder."""


class ArchiveUploader:
    """Uploads the closed files of a folder."""

    def __init__(self, warc: Path, options: StorageOptions, now: Callable[[], float]) -> None:
        """``now`` tells seconds since the epoch."""
        self._warc, self._options, self._now = warc, options, now

    @property
    def removes(self) -> bool:
        """Whether local files are removed some time after their upload."""
        return self._options.keep_local is not None

    def waiting(self, store: Store) -> list[Path]:
        """Closed files that are not uploaded, the oldest first."""
        if not self._options.upload:
            return []
        done = {file.name for file in store.uploaded_files()}
        return sorted(path for path in _closed_files(self._warc) if path.name not in done)

    def run(
        self,
        store: Store,
        on_done: Callable[[UploadedFile], None] = lambda _file: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> UploadSummary:
        """Upload what waits, and remove local files whose time is over.

        Raises:
            StorageError: a file could not be uploaded; those before it are.
        """
        summary = UploadSummary()
        self._warc.mkdir(parents=True, exist_ok=True)
        with (self._warc / LOCK).open("ab") as held:
            if not lock(held):
                summary.is_elsewhere = True
                return summary
            for path in self.waiting(store):
                if cancelled():
                    return summary
                found = self._upload(path, cancelled)
                if found is None:
                    return summary
                store.record_upload(found)
                summary.files, summary.bytes = summary.files + 1, summary.bytes + found.size
                on_done(found)
            summary.removed = self._remove_old(store)
        return summary

    def _upload(self, path: Path, cancelled: Callable[[], bool]) -> UploadedFile | None:
        """Upload one file and check it; ``None`` if it was cancelled."""
        storage = storage_at(self._options.upload, self._options.s3)
        if not isinstance(storage, S3Storage):
            raise StorageError(f"{storage.location} cannot be written.", "Set archive.storage to s3://bucket/prefix.")
        known = digests_of(path)
        if not storage.upload(path, known, cancelled):
            return None
        return UploadedFile(path.name, folder_url(self._options.upload), known.size, known.sha256, self._now())

    def _remove_old(self, store: Store) -> int:
        """Remove local files that were uploaded long enough ago; only if they are as they were then."""
        keep, removed = self._options.keep_local, 0
        if keep is None:
            return 0
        for file in store.uploaded_files():
            path = self._warc / file.name
            if file.uploaded + keep <= self._now() and has_file(path) and path.stat().st_size == file.size:
                path.unlink(missing_ok=True)
                removed += 1
        return removed


def _closed_files(warc: Path) -> Iterator[Path]:
    for path in warc.glob("*.warc*"):
        if path.name.endswith(_ENDINGS) and has_file(path):
            yield path


class UploadThread:
    """Uploads beside a crawl, until the block ends."""

    def __init__(
        self, uploader: ArchiveUploader, open_store: Callable[[], Store], on_error: Callable[[RecrawlError], None]
    ) -> None:
        """``open_store`` opens a store for the thread; ``on_error`` is told the first of several failures in a row."""
        self._uploader, self._open_store, self._on_error = uploader, open_store, on_error
        self._ends, self._ended = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="recrawl-upload")
        self.waiting = UploadsWaiting()
        """As of the last look."""

    def _run(self) -> None:
        pause = 0.0
        while True:
            last = self._ends.wait(pause or _LOOK_EVERY)
            try:
                with self._open_store() as store:
                    self._count(store)
                    if self.waiting.files or self._uploader.removes:
                        self._uploader.run(store, lambda _file: self._count(store), self._ended.is_set)
                    self._count(store)
                pause = 0.0
            except RecrawlError as error:  # the storage or the store is away
                if not pause:
                    self._on_error(error)
                pause = min(max(2 * pause, _FIRST_PAUSE), _LONGEST_PAUSE)
            if last:
                return

    def _count(self, store: Store) -> None:
        sizes = []
        for path in self._uploader.waiting(store):
            with suppress(OSError):
                sizes.append(path.stat().st_size)
        self.waiting = UploadsWaiting(len(sizes), sum(sizes))

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Upload what was closed last, for a few seconds; then stop at the next part of a file."""
        self._ends.set()
        self._thread.join(_LAST_SECONDS)
        self._ended.set()
        self._thread.join(_LAST_SECONDS)


@contextmanager
def uploads_meanwhile(
    uploader: ArchiveUploader | None, open_store: Callable[[], Store], on_error: Callable[[RecrawlError], None]
) -> Iterator[UploadThread | None]:
    """Upload in a thread while the block runs; nothing happens without an uploader."""
    if uploader is None:
        yield None
        return
    thread = UploadThread(uploader, open_store, on_error)
    thread.start()
    try:
        yield thread
    finally:
        thread.stop()
